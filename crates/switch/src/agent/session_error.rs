//! Reasons why connections end.

use std::time::Duration;
use urtica_wire::{DecodeError, ErrorCode};

/// Maximum time until a controller's hello.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Silence after which a controller is considered dead.
pub(super) const DEAD_INTERVAL: Duration = Duration::from_secs(15);

/// The reason why a connection must end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// There is no such connection.
    #[error("the connection is not open; expected one that connect() returned")]
    NotOpen,
    /// A message is malformed so that the start of the next one is unknown.
    #[error("{0}; the rest of the stream cannot be read")]
    Malformed(#[from] DecodeError),
    /// The peer is not a controller.
    #[error("the first bytes are not an OpenFlow hello; expected a controller")]
    NotOpenFlow,
    /// The controller uses TLS, but this end does not.
    #[error("the controller speaks TLS there; expected ssl: or pssl: here, or ptcp: or tcp: there")]
    Tls,
    /// The controller and the switch have no version in common.
    #[error(
        "the controller speaks OpenFlow up to wire version {theirs:#04x} and this switch {ours}; allow one of \
         these there"
    )]
    NoCommonVersion {
        /// The controller's highest version, as a wire version.
        theirs: u8,
        /// The switch's versions.
        ours: String,
    },
    /// The controller answered the hello with an error.
    #[error("the controller refused the connection with {0}")]
    Refused(ErrorCode),
    /// The controller sent no hello in time.
    #[error("no hello received within {HANDSHAKE_TIMEOUT:?}")]
    HandshakeTimeout,
    /// The controller did not answer an echo request.
    #[error("nothing received for {DEAD_INTERVAL:?}, not even an echo reply")]
    Dead,
    /// The controller does not read its replies, but sends further requests.
    #[error("{0} bytes of output are unread; expected a controller that reads its replies")]
    NotRead(usize),
}
