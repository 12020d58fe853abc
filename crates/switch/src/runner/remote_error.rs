//! Errors of requests from other threads to a running switch.

use super::RunError;
use crate::QueueError;
use std::time::Duration;
use urtica_pipeline::ViewLost;
use urtica_socket::{Address, ListenError, NoTlsConfig};
use urtica_wire::{ErrorCode, PortNo};

/// Maximum time for a request, longer than any needs.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The switch no longer runs.
    #[error("the switch has stopped")]
    Ended,
    /// The switch is not running yet, or hangs.
    #[error("the switch has not answered within {PATIENCE:?}")]
    NoAnswer,
    /// Another port has the number.
    #[error("port {0} exists already; expected an unused number")]
    NumberTaken(PortNo),
    /// No port can have the number.
    #[error("no port can have the number {0}; expected 1 to {max}", max = PortNo::MAX.0)]
    BadNumber(PortNo),
    /// Another port has the name.
    #[error("'{0}' is already port {1}; expected another interface")]
    NameTaken(String, PortNo),
    /// Ports have had so many names that the number of another name cannot be kept.
    #[error(
        "ports have had too many names since the switch was started; expected a name that a port has had, or a restart of the switch"
    )]
    TooManyNames,
    /// No port has this number or name.
    #[error("there is no port '{0}'; expected the number or name of a port")]
    NoPort(String),
    /// The LOCAL port belongs to the switch.
    #[error("the LOCAL port cannot be removed; expected another port")]
    LocalStays,
    /// The switch already connects to the controller.
    #[error("controller {0} exists already")]
    ControllerTwice(Address),
    /// No controller has the address.
    #[error("there is no controller {0}; expected an address as it is listed")]
    NoController(Address),
    /// The port cannot have such queues.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// A request for entries has an invalid match, or an unknown table.
    #[error("the switch refused the request with {0}")]
    Request(ErrorCode),
    /// Too many entries changed before they were read.
    #[error(transparent)]
    ViewLost(ViewLost),
    /// The address cannot be used, or an operation of the system failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl From<ListenError> for RemoteError {
    fn from(error: ListenError) -> Self {
        Self::Run(error.into())
    }
}

impl From<NoTlsConfig> for RemoteError {
    fn from(error: NoTlsConfig) -> Self {
        Self::Run(error.into())
    }
}
