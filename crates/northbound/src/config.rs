//! The interface's address, tokens and limits.

use sha2::{Digest, Sha256};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The port that Ryu's scripts use.
pub const DEFAULT_PORT: u16 = 8080;

/// The configuration of the interface.
///
/// ```
/// use urtica_northbound::{NorthboundConfig, Tokens};
///
/// let everywhere = NorthboundConfig {
///     address: "0.0.0.0:8080".parse()?,
///     tokens: Tokens::new(["4f9ec7d0b6a1c5e2"]),
///     ..NorthboundConfig::default()
/// };
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct NorthboundConfig {
    /// The address at which the interface listens: `127.0.0.1:8080` by default.
    pub address: SocketAddr,
    /// A folder whose files are served below `/static/`, even without a token: `None` by default.
    pub static_files: Option<PathBuf>,
    /// The tokens that permit access. Without tokens, all clients on this machine have access, and the address must be a
    /// loopback address.
    pub tokens: Tokens,
    /// The maximum length of a request's body: 1 MiB.
    pub max_body_bytes: usize,
    /// The maximum number of connections: 256. A further connection replaces an idle one, or waits until one is idle.
    pub max_connections: usize,
    /// The maximum number of connections from one client's address: 128. A further connection replaces the oldest idle one
    /// from this address, or is refused if none is idle.
    pub max_connections_per_address: usize,
    /// The maximum number of clients that watch events: 64.
    pub max_watchers: usize,
    /// The maximum average rate of requests from a client's address: 1,000 per second; bursts may have twice as many.
    pub max_requests_per_second: u32,
    /// The time limit for receiving a request's headers, and for receiving its body: 10 s.
    pub receive_timeout: Duration,
    /// The time limit for a client that does not read its response: 30 s.
    pub send_timeout: Duration,
    /// The time limit for a switch's reply: 10 s.
    pub reply_timeout: Duration,
}

impl Default for NorthboundConfig {
    fn default() -> Self {
        Self {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT),
            static_files: None,
            tokens: Tokens::default(),
            max_body_bytes: 1 << 20,
            max_connections: 256,
            max_connections_per_address: 128,
            max_watchers: 64,
            max_requests_per_second: 1000,
            receive_timeout: Duration::from_secs(10),
            send_timeout: Duration::from_secs(30),
            reply_timeout: Duration::from_secs(10),
        }
    }
}

impl NorthboundConfig {
    /// Returns an error for settings with which the interface would not start. Does not listen.
    ///
    /// # Errors
    /// [`NorthboundError::NoTokens`] if other machines could use it without a token, [`NorthboundError::NoFolder`] if the
    /// path of the files to serve is not that of a folder.
    pub fn check(&self) -> Result<(), NorthboundError> {
        if self.tokens.is_empty() && !self.address.ip().is_loopback() {
            return Err(NorthboundError::NoTokens(self.address));
        }
        let folder = self.static_files.iter();
        match folder.into_iter().find(|folder| !folder.is_dir()) {
            Some(path) => Err(NorthboundError::NoFolder(path.clone())),
            None => Ok(()),
        }
    }
}

/// The reason why the interface cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NorthboundError {
    /// Other machines could use it without a token.
    #[error(
        "the northbound address {0} can be reached from other machines, and no token is set: expected a file with bearer \
         tokens (--northbound-tokens FILE), or an address of this machine, such as 127.0.0.1:8080"
    )]
    NoTokens(SocketAddr),
    /// The path of the files to serve is not that of a folder.
    #[error("the files to serve cannot be found: expected a folder, not {}", .0.display())]
    NoFolder(PathBuf),
    /// It cannot listen.
    #[error("the northbound interface cannot listen at {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The file of tokens cannot be read.
    #[error("the tokens in {} cannot be read: {error}", path.display())]
    ReadTokens {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Other users can read the file of tokens.
    #[error("others can read the tokens in {}: expected a file for its owner only; type `chmod 600 {}`", .0.display(), .0.display())]
    OpenTokens(PathBuf),
    /// A token is too short to be a secret, or the file has none.
    #[error(
        "the tokens in {} cannot be used: expected one of {MIN_TOKEN_LENGTH} or more characters without spaces on each \
         line, such as `openssl rand -hex 16` prints, and before it `read-only` if it may make no changes", .0.display()
    )]
    BadTokens(PathBuf),
}

/// The minimum length of a token in a file.
const MIN_TOKEN_LENGTH: usize = 16;

/// The word before a read-only token in a file.
const READ_ONLY: &str = "read-only";

/// The access that a token permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    /// Only requests that change nothing.
    ReadOnly,
    /// All requests.
    Full,
}

/// The bearer tokens that permit access. Only their digests are kept, so that the tokens cannot be printed.
#[derive(Clone, Default)]
pub struct Tokens(Vec<([u8; 32], Access)>);

impl Tokens {
    /// Creates the set of these tokens, which permit all requests.
    pub fn new<T: AsRef<str>>(tokens: impl IntoIterator<Item = T>) -> Self {
        Self::default().and(tokens, Access::Full)
    }

    /// Adds tokens with which requests may only read; requests that change something are refused with status 403. A token
    /// that is also among the other tokens may only read, too.
    ///
    /// ```
    /// use urtica_northbound::Tokens;
    ///
    /// let tokens = Tokens::new(["4f9ec7d0b6a1c5e2"]).with_read_only(["0d2e6b8a9c1f3e57"]);
    /// # assert!(!tokens.is_empty());
    /// ```
    pub fn with_read_only<T: AsRef<str>>(self, tokens: impl IntoIterator<Item = T>) -> Self {
        self.and(tokens, Access::ReadOnly)
    }

    fn and<T: AsRef<str>>(mut self, tokens: impl IntoIterator<Item = T>, access: Access) -> Self {
        let tokens = tokens.into_iter();
        self.0
            .extend(tokens.map(|token| (digest(token.as_ref()), access)));
        self
    }

    /// Reads the tokens in a file, one per line, with the word `read-only` before tokens that may only read. Empty lines and
    /// lines that start with `#` are ignored.
    ///
    /// # Errors
    /// If the file cannot be read, if others can read it, or if a line is not a valid token.
    pub fn read(path: &Path) -> Result<Self, NorthboundError> {
        let failed = |error| NorthboundError::ReadTokens {
            path: path.to_owned(),
            error,
        };
        let mode = std::fs::metadata(path)
            .map_err(failed)?
            .permissions()
            .mode();
        if mode & 0o077 != 0 {
            return Err(NorthboundError::OpenTokens(path.to_owned()));
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let lines = text.lines().map(str::trim);
        let tokens: Option<Vec<_>> = lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(token)
            .collect();
        match tokens {
            Some(tokens) if !tokens.is_empty() => Ok(Self(tokens)),
            _ => Err(NorthboundError::BadTokens(path.to_owned())),
        }
    }

    /// Returns `true` if there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the access that this token permits; `None` if it is unknown. Since digests are compared, the time that this
    /// takes reveals nothing about the tokens.
    pub(crate) fn access(&self, token: &str) -> Option<Access> {
        let digest = digest(token);
        let same = self.0.iter().filter(|(known, _)| *known == digest);
        same.map(|(_, access)| *access).min()
    }
}

/// Parses the token of a line, and its access. Returns `None` if it is too short to be a secret, or not a token.
fn token(line: &str) -> Option<([u8; 32], Access)> {
    let (token, access) = match line.split_once(char::is_whitespace) {
        Some((READ_ONLY, token)) => (token.trim_start(), Access::ReadOnly),
        _ => (line, Access::Full),
    };
    let is_right =
        token.len() >= MIN_TOKEN_LENGTH && token.bytes().all(|byte| byte.is_ascii_graphic());
    is_right.then(|| (digest(token), access))
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;

    fn file(text: &str, mode: u32) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        std::fs::set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn tokens_are_read_from_a_private_file() {
        let tokens = file(
            "# for the scripts\n0123456789abcdef\n\n fedcba9876543210 \n",
            0o600,
        );
        let tokens = Tokens::read(tokens.path()).unwrap();
        for token in ["0123456789abcdef", "fedcba9876543210"] {
            assert_eq!(tokens.access(token), Some(Access::Full));
        }
        assert_eq!(tokens.access("# for the scripts"), None);
        assert_eq!(tokens.access(""), None);
        assert_eq!(format!("{tokens:?}"), "2 tokens");
    }

    #[test]
    fn read_only_tokens_are_recognised() {
        let tokens = file(
            "0123456789abcdef\nread-only fedcba9876543210\n  read-only\t0f0f0f0f0f0f0f0f\nread-only-is-a-token\n",
            0o600,
        );
        let tokens = Tokens::read(tokens.path()).unwrap();
        for (token, access) in [
            ("0123456789abcdef", Some(Access::Full)),
            ("fedcba9876543210", Some(Access::ReadOnly)),
            ("0f0f0f0f0f0f0f0f", Some(Access::ReadOnly)),
            ("read-only-is-a-token", Some(Access::Full)),
            ("read-only fedcba9876543210", None),
            ("read-only", None),
        ] {
            assert_eq!(tokens.access(token), access, "{token}");
        }
        let twice = Tokens::new(["0123456789abcdef"]).with_read_only(["0123456789abcdef"]);
        assert_eq!(twice.access("0123456789abcdef"), Some(Access::ReadOnly));
    }

    #[test]
    fn invalid_token_files_are_refused_with_advice() {
        for (text, mode, expected) in [
            ("0123456789abcdef", 0o640, "chmod 600"),
            ("", 0o600, "openssl rand"),
            ("short", 0o600, "16 or more characters"),
            ("0123456789abcdef with words", 0o600, "without spaces"),
            ("read-only short", 0o600, "16 or more characters"),
            ("readonly 0123456789abcdef", 0o600, "before it `read-only`"),
            (
                "read-only read-only 0123456789abcdef",
                0o600,
                "without spaces",
            ),
        ] {
            let tokens = file(text, mode);
            let error = Tokens::read(tokens.path()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
        let missing = Tokens::read(Path::new("/nonexistent"))
            .unwrap_err()
            .to_string();
        assert!(missing.contains("/nonexistent"), "{missing}");
    }
}
