//! Why the controller could not start, or ended.

use crate::ProgramId;
use crate::setting::SettingError;
use crate::xid::MAX_PROGRAMS;
use std::io;
use urtica_socket::{ListenError, NoTlsConfig, TlsError};

/// Why the controller could not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address cannot be listened at.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A file that TLS needs cannot be used.
    #[error("cannot speak TLS: {0}")]
    Tls(#[from] TlsError),
    /// TLS is to be spoken, and nothing was said about how.
    #[error(transparent)]
    NoTls(#[from] NoTlsConfig),
    /// No control program was given.
    #[error("no control program was given; expected at least one")]
    NoProgram,
    /// Too many control programs were given.
    #[error("{0} control programs were given; at most {MAX_PROGRAMS} fit into one controller")]
    TooManyPrograms(usize),
    /// No program with this number runs.
    #[error("{0} does not run; expected one of those that do, or a program to be added")]
    NoSuchProgram(ProgramId),
    /// A program was to be kept and replaced, or kept twice.
    #[error("{0} was named twice; expected each program once")]
    ProgramTwice(ProgramId),
    /// The first program that filters cannot come while the controller runs, nor the last one go: which tables programs have is settled
    /// when it starts.
    #[error(
        "the first program that filters cannot be added while the controller runs, nor the last one be removed, since they decide \
         which tables all programs use; restart the controller"
    )]
    FilterAtRunTime,
    /// A setting of the controller or a program is not usable.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// One of its threads has ended, and so the controller has stopped by itself.
    #[error(
        "the controller has stopped, because its thread {thread} ended: {reason}; all connections are closed: restart it"
    )]
    Ended {
        /// The thread's name.
        thread: String,
        /// Why it ended.
        reason: String,
    },
    /// A system call failed.
    #[error("the controller cannot {what}: {error}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        error: io::Error,
    },
}

impl Error {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { what, error }
    }
}
