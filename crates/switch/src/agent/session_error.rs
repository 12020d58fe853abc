//! Why connections end.

use std::time::Duration;
use urtica_wire::{DecodeError, ErrorCode};

/// How long a controller may take to say hello.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// After how long a silence it is taken for dead.
pub(super) const DEAD_INTERVAL: Duration = Duration::from_secs(15);

/// Why a connection has to end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// There is no such connection.
    #[error("the connection is not open; expected one that connect() returned")]
    NotOpen,
    /// A message is malformed in a way that hides where the next one starts.
    #[error("{0}; the rest of the stream cannot be read")]
    Malformed(#[from] DecodeError),
    /// The peer is no controller.
    #[error("the first bytes are not an OpenFlow hello; expected a controller")]
    NotOpenFlow,
    /// The controller speaks TLS, and this end does not.
    #[error("the controller speaks TLS there; expected ssl: or pssl: here, or ptcp: or tcp: there")]
    Tls,
    /// The controller and the switch have no version in common.
    #[error(
        "the controller speaks OpenFlow up to wire version {theirs:#04x} and this switch {ours}; allow one of \
         these there"
    )]
    NoCommonVersion {
        /// The highest version of the controller, as on the wire.
        theirs: u8,
        /// Those of the switch.
        ours: String,
    },
    /// The controller answered the hello with an error.
    #[error("the controller refused the connection with {0}")]
    Refused(ErrorCode),
    /// The controller sent no hello in time.
    #[error("no hello came within {HANDSHAKE_TIMEOUT:?}")]
    HandshakeTimeout,
    /// The controller did not answer an echo request.
    #[error("nothing was heard for {DEAD_INTERVAL:?}, although an echo was asked for")]
    Dead,
    /// The controller does not read its replies, and sends more requests.
    #[error(
        "{0} bytes of output wait to be read; expected a controller that reads what it asks for"
    )]
    NotRead(usize),
}
