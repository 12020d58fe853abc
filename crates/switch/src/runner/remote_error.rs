//! Why a running switch has not done what another thread wanted.

use super::RunError;
use crate::QueueError;
use std::time::Duration;
use urtica_pipeline::ViewLost;
use urtica_socket::{Address, ListenError, NoTlsConfig};
use urtica_wire::{ErrorCode, PortNo};

/// How long the switch may take to do something: it does nothing that takes long.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Why a switch has not done something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// It does not run any more.
    #[error("the switch has ended")]
    Ended,
    /// It does not run yet, or hangs.
    #[error("the switch has not answered within {PATIENCE:?}")]
    NoAnswer,
    /// Some port has the number.
    #[error("there is a port {0}; expected a number that no port has")]
    NumberTaken(PortNo),
    /// No port can have the number.
    #[error("no port can have the number {0}; expected 1 to {max}", max = PortNo::MAX.0)]
    BadNumber(PortNo),
    /// Some port has the name.
    #[error("'{0}' is port {1} already; expected another interface")]
    NameTaken(String, PortNo),
    /// Ports have had so many names that no number can be remembered for another one.
    #[error(
        "ports have had too many names since the switch was started; expected a name that a port has had, or a switch that is started anew"
    )]
    TooManyNames,
    /// No port has this number or name.
    #[error("there is no port '{0}'; expected the number or name of one")]
    NoPort(String),
    /// The LOCAL port belongs to the switch.
    #[error("the LOCAL port stays until the switch ends; expected another port")]
    LocalStays,
    /// The switch connects to the controller already.
    #[error("{0} is among the controllers already")]
    ControllerTwice(Address),
    /// The address is not among the controllers'.
    #[error("{0} is not among the controllers; expected an address as it is listed")]
    NoController(Address),
    /// The port cannot have such queues.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// Entries are asked for by a wrong match, or in a table that there is not.
    #[error("the switch refuses the request with {0}")]
    Request(ErrorCode),
    /// Too many entries changed before they were read.
    #[error(transparent)]
    ViewLost(ViewLost),
    /// The address cannot be used, or the system refused something.
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
