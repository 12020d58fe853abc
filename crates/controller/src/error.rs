//! Errors that prevent the controller from starting, or that stop it.

use crate::ProgramId;
use crate::setting::SettingError;
use crate::xid::MAX_PROGRAMS;
use std::io;
use urtica_socket::{ListenError, NoTlsConfig, TlsError};

/// An error that prevents the controller from starting, or that stops it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The controller cannot listen at an address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A file that TLS needs cannot be used.
    #[error("cannot use TLS: {0}")]
    Tls(#[from] TlsError),
    /// An address needs TLS, but the settings for TLS are missing.
    #[error(transparent)]
    NoTls(#[from] NoTlsConfig),
    /// No control program was given.
    #[error("no control program was given; expected at least one")]
    NoProgram,
    /// Too many control programs were given.
    #[error("{0} control programs were given; at most {MAX_PROGRAMS} fit into one controller")]
    TooManyPrograms(usize),
    /// No running program has this number.
    #[error("{0} is not running; expected a running program, or one to be added")]
    NoSuchProgram(ProgramId),
    /// A program is both kept and replaced, or kept twice.
    #[error("{0} was named twice; expected each program once")]
    ProgramTwice(ProgramId),
    /// The first filter cannot be added while the controller runs, nor the last one removed: the programs' tables are fixed
    /// when it starts.
    #[error(
        "the first program that filters cannot be added while the controller runs, nor the last one be removed, since they \
         determine the tables that all programs use; restart the controller"
    )]
    FilterAtRunTime,
    /// A setting of the controller or a program is invalid.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A thread has ended, and so the controller has stopped.
    #[error(
        "the controller has stopped, because its thread {thread} ended: {reason}; all connections are closed: restart it"
    )]
    Ended {
        /// The thread's name.
        thread: String,
        /// The reason.
        reason: String,
    },
    /// A system call failed.
    #[error("the controller cannot {what}: {error}")]
    Io {
        /// The failed operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl Error {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { what, error }
    }
}
