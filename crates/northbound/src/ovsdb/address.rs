//! Addresses of databases, in the syntax of `ovs-vsctl --db`.

use super::OvsdbError;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The address of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// The host and the port of a TCP connection.
    Tcp(String),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = OvsdbError;

    fn from_str(text: &str) -> Result<Self, OvsdbError> {
        let invalid = || OvsdbError::Address(format!("'{text}'"));
        match text.split_once(':') {
            Some(("tcp", target)) if has_port(target) => Ok(Self::Tcp(target.to_owned())),
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            _ => Err(invalid()),
        }
    }
}

/// Returns `true` if the text is `HOST:PORT`, with an IPv6 address in brackets.
fn has_port(target: &str) -> bool {
    let Some((host, port)) = target.rsplit_once(':') else {
        return false;
    };
    let is_host = match host.strip_prefix('[') {
        Some(rest) => rest.ends_with(']'),
        None => !host.is_empty() && !host.contains(':'),
    };
    is_host && port.parse::<u16>().is_ok_and(|port| port != 0)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(target) => write!(f, "tcp:{target}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses() {
        for text in [
            "tcp:127.0.0.1:6640",
            "tcp:[::1]:6640",
            "tcp:ovs.example:1",
            "unix:/run/db.sock",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn rejects_other_texts() {
        for text in [
            "",
            "tcp",
            "tcp:",
            "tcp:host",
            "tcp::6640",
            "tcp:host:0",
            "tcp:host:65536",
            "tcp:::1:6640",
            "unix:",
            "ssl:host:6640",
            "ptcp:6640",
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("tcp:HOST:PORT or unix:FILE"), "{error}");
        }
    }
}
