//! Addresses of OpenFlow peers, in Open vSwitch's forms (`ovs-vswitchd(8)`, "Active and Passive OpenFlow Connections").
//!
//! | form | the side that connects |
//! | --- | --- |
//! | `tcp:HOST[:PORT]`, `ssl:HOST[:PORT]`, `unix:FILE` | we do (active) |
//! | `ptcp:[PORT][:HOST]`, `pssl:[PORT][:HOST]`, `punix:FILE` | the peer does, we listen (passive) |
//!
//! IPv6 addresses are in brackets: `tcp:[::1]:6653`. The port defaults to [`DEFAULT_PORT`]. `ssl:` and `pssl:` are TLS over
//! TCP; their names are older than the protocol's.
//!
//! Parsing resolves no names and opens no sockets.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// The port that IANA assigned to OpenFlow, and the default of an address without one.
pub const DEFAULT_PORT: u16 = 6653;

/// An OpenFlow connection method: an address to connect to or to listen at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Address {
    /// `tcp:HOST[:PORT]`: connect to this host.
    Tcp {
        /// A host name or an IP address, without brackets.
        host: String,
        /// Never 0.
        port: u16,
    },
    /// `ptcp:[PORT][:HOST]`: listen on this port.
    PassiveTcp {
        /// The local address to listen at; `None` means every IPv4 address, as in Open vSwitch.
        host: Option<IpAddr>,
        /// 0 lets the system choose.
        port: u16,
    },
    /// `ssl:HOST[:PORT]`: connect to this host by TLS.
    Ssl {
        /// A host name or an IP address, without brackets.
        host: String,
        /// Never 0.
        port: u16,
    },
    /// `pssl:[PORT][:HOST]`: listen on this port for TLS connections.
    PassiveSsl {
        /// As in [`Address::PassiveTcp`].
        host: Option<IpAddr>,
        /// 0 lets the system choose.
        port: u16,
    },
    /// `unix:FILE`: connect to this Unix domain socket.
    Unix(PathBuf),
    /// `punix:FILE`: listen at this Unix domain socket.
    PassiveUnix(PathBuf),
}

impl Address {
    /// Returns `true` for an address to listen at (`ptcp:`, `pssl:`, `punix:`), `false` for one to connect to.
    pub fn is_passive(&self) -> bool {
        matches!(
            self,
            Self::PassiveTcp { .. } | Self::PassiveSsl { .. } | Self::PassiveUnix(_)
        )
    }

    /// Returns `true` if connections use TLS (`ssl:`, `pssl:`).
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Ssl { .. } | Self::PassiveSsl { .. })
    }

    /// Returns the text before the first colon.
    fn method(&self) -> &'static str {
        match self {
            Self::Tcp { .. } => "tcp",
            Self::PassiveTcp { .. } => "ptcp",
            Self::Ssl { .. } => "ssl",
            Self::PassiveSsl { .. } => "pssl",
            Self::Unix(_) => "unix",
            Self::PassiveUnix(_) => "punix",
        }
    }

    /// Returns the socket address to bind for `ptcp:` and `pssl:`; `None` for every other form.
    pub fn listen_addr(&self) -> Option<SocketAddr> {
        match self {
            Self::PassiveTcp { host, port } | Self::PassiveSsl { host, port } => {
                let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
                Some(SocketAddr::new(host.unwrap_or(any), *port))
            }
            _ => None,
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (method, rest) = text
            .split_once(':')
            .ok_or_else(|| AddressError::no_method(text))?;
        match method {
            "tcp" => parse_host(text, rest).map(|(host, port)| Self::Tcp { host, port }),
            "ssl" => parse_host(text, rest).map(|(host, port)| Self::Ssl { host, port }),
            "ptcp" => parse_local(text, rest).map(|(host, port)| Self::PassiveTcp { host, port }),
            "pssl" => parse_local(text, rest).map(|(host, port)| Self::PassiveSsl { host, port }),
            "unix" => parse_file(text, rest).map(Self::Unix),
            "punix" => parse_file(text, rest).map(Self::PassiveUnix),
            _ => Err(AddressError::no_method(text)),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = self.method();
        match self {
            Self::Tcp { host, port } | Self::Ssl { host, port } if host.contains(':') => {
                write!(f, "{method}:[{host}]:{port}")
            }
            Self::Tcp { host, port } | Self::Ssl { host, port } => {
                write!(f, "{method}:{host}:{port}")
            }
            Self::PassiveTcp { host, port } | Self::PassiveSsl { host, port } => match host {
                None => write!(f, "{method}:{port}"),
                Some(IpAddr::V4(host)) => write!(f, "{method}:{port}:{host}"),
                Some(IpAddr::V6(host)) => write!(f, "{method}:{port}:[{host}]"),
            },
            Self::Unix(file) | Self::PassiveUnix(file) => write!(f, "{method}:{}", file.display()),
        }
    }
}

/// Parses `HOST[:PORT]`.
fn parse_host(text: &str, rest: &str) -> Result<(String, u16), AddressError> {
    let (host, port) = match rest.strip_prefix('[') {
        Some(bracketed) => {
            let (host, after) = bracketed
                .split_once(']')
                .ok_or_else(|| AddressError::new(text, "lacks the closing ']'"))?;
            let address = host.split('%').next().unwrap_or(host);
            if address.parse::<Ipv6Addr>().is_err() {
                return Err(AddressError::new(
                    text,
                    "has something other than an IPv6 address in brackets",
                ));
            }
            (host, optional_port(text, after)?)
        }
        None => match rest.split_once(':') {
            Some((_, port)) if port.contains(':') => return Err(AddressError::unbracketed(text)),
            Some((host, port)) => (host, Some(parse_port(text, port)?)),
            None => (rest, None),
        },
    };
    if host.is_empty() {
        return Err(AddressError::new(
            text,
            "has no host; expected tcp:HOST[:PORT] or ssl:HOST[:PORT]",
        ));
    }
    match port.unwrap_or(DEFAULT_PORT) {
        0 => Err(AddressError::new(
            text,
            "has port 0, which cannot be connected to",
        )),
        port => Ok((host.to_owned(), port)),
    }
}

/// Parses the text after a bracketed host: empty, or `:PORT`.
fn optional_port(text: &str, after: &str) -> Result<Option<u16>, AddressError> {
    if after.is_empty() {
        return Ok(None);
    }
    let port = after
        .strip_prefix(':')
        .ok_or_else(|| AddressError::new(text, "has no ':' between ']' and the port"))?;
    parse_port(text, port).map(Some)
}

/// Parses `[PORT][:HOST]`.
fn parse_local(text: &str, rest: &str) -> Result<(Option<IpAddr>, u16), AddressError> {
    let (port, host) = match rest.split_once(':') {
        Some((port, host)) => (port, Some(parse_listen_host(text, host)?)),
        None => (rest, None),
    };
    let port = if port.is_empty() {
        DEFAULT_PORT
    } else {
        parse_port(text, port)?
    };
    Ok((host, port))
}

fn parse_listen_host(text: &str, host: &str) -> Result<IpAddr, AddressError> {
    match host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        Some(bracketed) => bracketed.parse::<Ipv6Addr>().map(IpAddr::V6).map_err(|_| {
            AddressError::new(text, "has something other than an IPv6 address in brackets")
        }),
        None if host.contains(':') => Err(AddressError::unbracketed(text)),
        None => host.parse::<Ipv4Addr>().map(IpAddr::V4).map_err(|_| {
            AddressError::new(
                text,
                "must have the address to listen at as an IP address: ptcp:[PORT][:HOST] or pssl:[PORT][:HOST]",
            )
        }),
    }
}

fn parse_port(text: &str, port: &str) -> Result<u16, AddressError> {
    port.parse().map_err(|_| {
        AddressError::new(
            text,
            &format!("has the port '{port}', which is not from 0 to 65535"),
        )
    })
}

fn parse_file(text: &str, file: &str) -> Result<PathBuf, AddressError> {
    if file.is_empty() {
        return Err(AddressError::new(text, "names no file"));
    }
    Ok(PathBuf::from(file))
}

/// The error for a text that is not an [`Address`]: a message with the problem and the expected form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError {
    sentence: String,
}

impl AddressError {
    fn new(text: &str, what: &str) -> Self {
        Self {
            sentence: format!("the address '{text}' {what}"),
        }
    }

    fn no_method(text: &str) -> Self {
        Self::new(
            text,
            "has none of the known forms: tcp:HOST[:PORT], ssl:HOST[:PORT], unix:FILE, ptcp:[PORT][:HOST], \
             pssl:[PORT][:HOST], punix:FILE",
        )
    }

    fn unbracketed(text: &str) -> Self {
        Self::new(
            text,
            "has too many colons; expected IPv6 addresses in brackets, as in [::1]",
        )
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for AddressError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Address {
        text.parse().unwrap()
    }

    fn refusal(text: &str) -> String {
        text.parse::<Address>().unwrap_err().to_string()
    }

    #[test]
    fn active_forms() {
        let tcp = |host: &str, port| Address::Tcp {
            host: host.to_owned(),
            port,
        };
        assert_eq!(parse("tcp:10.0.0.1"), tcp("10.0.0.1", 6653));
        assert_eq!(
            parse("tcp:controller.example:6633"),
            tcp("controller.example", 6633)
        );
        assert_eq!(parse("tcp:[::1]"), tcp("::1", 6653));
        assert_eq!(parse("tcp:[fe80::1%eth0]:6633"), tcp("fe80::1%eth0", 6633));
        assert_eq!(parse("ssl:10.0.0.1").to_string(), "ssl:10.0.0.1:6653");
        assert_eq!(
            parse("unix:/run/of.sock"),
            Address::Unix("/run/of.sock".into())
        );
    }

    #[test]
    fn passive_forms() {
        let ptcp = |host: Option<&str>, port| Address::PassiveTcp {
            host: host.map(|h| h.parse().unwrap()),
            port,
        };
        assert_eq!(parse("ptcp:"), ptcp(None, 6653));
        assert_eq!(parse("ptcp:0"), ptcp(None, 0));
        assert_eq!(parse("ptcp:6633"), ptcp(None, 6633));
        assert_eq!(parse("ptcp::127.0.0.1"), ptcp(Some("127.0.0.1"), 6653));
        assert_eq!(parse("ptcp:6653:[::]"), ptcp(Some("::"), 6653));
        assert_eq!(
            parse("punix:of.sock"),
            Address::PassiveUnix("of.sock".into())
        );
    }

    #[test]
    fn display_round_trip() {
        for text in [
            "tcp:h:1",
            "tcp:[::1]:6653",
            "tcp:[fe80::1%eth0]:6633",
            "ptcp:6653",
            "ptcp:0:127.0.0.1",
            "ptcp:6653:[::1]",
            "ssl:h:1",
            "ssl:[::1]:6653",
            "pssl:6653",
            "pssl:0:127.0.0.1",
            "pssl:6653:[::1]",
            "unix:/a:b",
            "punix:c",
        ] {
            assert_eq!(parse(text).to_string(), text);
        }
    }

    #[test]
    fn listen_address() {
        assert_eq!(
            parse("ptcp:1").listen_addr(),
            Some("0.0.0.0:1".parse().unwrap())
        );
        assert_eq!(
            parse("ptcp:1:[::1]").listen_addr(),
            Some("[::1]:1".parse().unwrap())
        );
        assert_eq!(parse("tcp:127.0.0.1").listen_addr(), None);
        assert_eq!(parse("pssl:1").listen_addr(), parse("ptcp:1").listen_addr());
        assert!(parse("pssl:").is_tls() && parse("ssl:h").is_tls());
        assert!(!parse("ptcp:").is_tls() && !parse("tcp:h").is_tls());
        assert!(parse("punix:f").is_passive() && parse("pssl:").is_passive());
        assert!(!parse("unix:f").is_passive());
    }

    #[test]
    fn errors_name_the_expected_form() {
        for (text, what) in [
            ("", "known forms"),
            ("localhost", "known forms"),
            ("udp:1.2.3.4", "known forms"),
            ("tcp:", "has no host"),
            ("tcp::6653", "has no host"),
            ("tcp:h:0", "port 0"),
            ("tcp:h:65536", "from 0 to 65535"),
            ("tcp:::1", "brackets"),
            ("tcp:[::1", "closing ']'"),
            ("tcp:[h]:1", "IPv6 address in brackets"),
            ("tcp:[::1]6653", "between ']'"),
            ("ptcp:x", "from 0 to 65535"),
            ("ptcp:1:localhost", "IP address"),
            ("ptcp:1:::1", "brackets"),
            ("unix:", "no file"),
            ("ssl:", "has no host"),
            ("ssl:h:0", "port 0"),
            ("pssl:1:localhost", "IP address"),
        ] {
            let sentence = refusal(text);
            assert!(sentence.contains(what), "{text}: {sentence}");
            assert!(sentence.contains(&format!("'{text}'")), "{sentence}");
        }
    }
}
