//! Errors of requests to a switch.

use std::io;
use urtica_socket::{Address, NoTlsConfig, TlsError};
use urtica_wire::{DecodeError, EncodeError, ErrorCode};

/// The maximum length of a reply in all its parts: some millions of flow entries.
pub(crate) const ANSWER_BYTES_MAX: usize = 512 << 20;

/// The reason why a request to a switch failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The connection could not be opened.
    #[error("cannot connect to {address}: {error}; expected a switch that listens there")]
    Connect {
        /// The switch's address.
        address: String,
        /// The system's error.
        error: io::Error,
    },
    /// The address is for listening.
    #[error(
        "{0} is an address to listen on; expected one to connect to, such as tcp:HOST:PORT, ssl:HOST:PORT or unix:FILE"
    )]
    Passive(Address),
    /// The files for TLS cannot be used.
    #[error(transparent)]
    TlsFiles(#[from] TlsError),
    /// The address needs files for TLS.
    #[error(transparent)]
    NoTlsConfig(#[from] NoTlsConfig),
    /// The TLS handshake failed.
    #[error("no TLS connection with {address}: {error}")]
    Tls {
        /// The switch's address.
        address: String,
        /// The reason.
        error: TlsError,
    },
    /// The switch expects TLS.
    #[error("the switch speaks TLS there; expected ssl: in its address")]
    NeedsTls,
    /// The connection failed.
    #[error("the connection to the switch failed: {0}")]
    Io(io::Error),
    /// No byte of a reply arrived within these seconds.
    #[error("the switch did not answer within {0} s")]
    Silent(u64),
    /// A reply was incomplete when the timeout expired.
    #[error(
        "the switch's answer was incomplete after {seconds} s, with {bytes} bytes; increase --timeout"
    )]
    Slow {
        /// The timeout.
        seconds: u64,
        /// The received bytes.
        bytes: usize,
    },
    /// The switch stopped reading for these seconds.
    #[error("the switch did not read the request within {0} s")]
    Stalled(u64),
    /// A reply is too long.
    #[error("the switch's answer is too long; expected at most {} MiB", ANSWER_BYTES_MAX >> 20)]
    Endless,
    /// The switch closed the connection.
    #[error("the switch closed the connection")]
    Closed,
    /// The switch supports none of the versions.
    #[error("the switch speaks other versions of OpenFlow; expected {ours}")]
    NoCommonVersion {
        /// The versions offered.
        ours: String,
    },
    /// The switch answered with an error.
    #[error("the switch refused: {code}{}", reason(.text))]
    Refused {
        /// The error.
        code: ErrorCode,
        /// The text sent with it, which may be empty.
        text: String,
    },
    /// A message of the switch is malformed.
    #[error("the switch sent invalid OpenFlow: {0}")]
    NotOpenFlow(#[from] DecodeError),
    /// The negotiated version cannot express a message.
    #[error("{0}")]
    Unsupported(#[from] EncodeError),
}

/// Formats the text sent with an error, which may be empty.
fn reason(text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!(" ({text})"),
    }
}
