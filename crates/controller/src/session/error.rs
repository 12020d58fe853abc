//! The reasons why a session ends, or does not know all ports of a switch.

use std::time::Duration;
use urtica_wire::{DecodeError, ErrorCode};

/// The reason why a session ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The bytes are not well-formed OpenFlow.
    #[error("{0}")]
    Malformed(#[from] DecodeError),
    /// The first message is not a hello: a port scanner, a browser, or Mininet's probe.
    #[error("the first bytes are not an OpenFlow hello; expected a switch")]
    NotOpenFlow,
    /// The peer uses TLS, but our address does not.
    #[error(
        "the peer uses TLS, which this address does not; expected tcp: in its configuration, or pssl: in ours (docs/operating.md, \"Securing the channel\")"
    )]
    Tls,
    /// The peers have no common version of OpenFlow.
    #[error(
        "the switch speaks OpenFlow up to wire version {theirs:#04x} and we speak {ours}; on Open vSwitch type \
         `ovs-vsctl set bridge NAME protocols=OpenFlow10,OpenFlow13`"
    )]
    NoCommonVersion {
        /// The version in the switch's hello.
        theirs: u8,
        /// Ours, as text.
        ours: String,
    },
    /// The peer refused our hello.
    #[error("the peer refused the connection with {0}")]
    Refused(ErrorCode),
    /// The peer did not send a features reply in time.
    #[error("no features reply was received within {0:?}")]
    HandshakeTimeout(Duration),
    /// The switch sent nothing for too long, including replies to echo requests.
    #[error("no message was received for {0:?}, in spite of echo requests")]
    Dead(Duration),
    /// The switch did not answer the role request.
    #[error(
        "no reply to the role request was received within {0:?}; expected a switch that supports roles, or a controller with --role equal"
    )]
    RoleTimeout(Duration),
}

impl SessionError {
    /// Returns `true` if this is background noise of an open port, which no operator needs to see.
    pub fn is_noise(&self) -> bool {
        matches!(self, Self::NotOpenFlow)
    }
}

/// The reason why not all ports of a switch are known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PortsProblem {
    /// The switch answered the request for them with an error.
    #[error("it refused to describe its ports with {0}")]
    Refused(ErrorCode),
    /// Their description could not be decoded.
    #[error("its description of its ports is malformed: {0}")]
    Malformed(DecodeError),
    /// Their description was not complete in time.
    #[error("its description of its ports was not complete {0:?} after it connected")]
    Late(Duration),
}
