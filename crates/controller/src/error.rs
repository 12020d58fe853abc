//! Why the controller could not start, or ended.

use crate::setting::SettingError;
use crate::xid::MAX_PROGRAMS;
use std::io;
use urtica_socket::ListenError;

/// Why the controller could not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address cannot be listened at.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// There is nothing to run.
    #[error("no control program was given; expected at least one")]
    NoProgram,
    /// There is too much to run.
    #[error("{0} control programs were given; at most {MAX_PROGRAMS} fit into one controller")]
    TooManyPrograms(usize),
    /// A setting with which it cannot work.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A thread that it cannot do without has ended, and so it has stopped by itself.
    #[error(
        "the controller has stopped, since its thread {thread} ended: {reason}; no switch is served any more: start it anew"
    )]
    Ended {
        /// The thread's name.
        thread: String,
        /// By what it ended.
        reason: String,
    },
    /// The system refused something.
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
