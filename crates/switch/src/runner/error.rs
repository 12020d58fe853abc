//! Errors of running a switch.

use crate::StateError;
use std::io;
use urtica_socket::{Address, ListenError, NoTlsConfig, TlsError};

/// The reason why a switch cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Listening at a passive address failed.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A file that TLS needs cannot be used.
    #[error("cannot use TLS: {0}")]
    Tls(#[from] TlsError),
    /// TLS is required, but not configured.
    #[error(transparent)]
    NoTls(#[from] NoTlsConfig),
    /// A controller's name cannot be resolved.
    #[error(
        "cannot find the controller {address}: {error}; expected the name or address of a host"
    )]
    LookUp {
        /// The controller's address.
        address: Address,
        /// The system's error.
        error: io::Error,
    },
    /// A thread cannot be bound to a processor.
    #[error(
        "cannot bind a thread to processor {core}: {error}; `lscpu` lists the processors, `taskset -p $$` shows those that this process may use"
    )]
    Core {
        /// The processor's number, from 0.
        core: usize,
        /// The system's error.
        error: io::Error,
    },
    /// Flow entries cannot be saved.
    #[error(transparent)]
    State(#[from] StateError),
    /// An operation of the system failed.
    #[error("the switch cannot {what}: {error}")]
    Io {
        /// The failed operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl RunError {
    pub(super) fn io<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Io {
            what,
            error: error.into(),
        }
    }
}
