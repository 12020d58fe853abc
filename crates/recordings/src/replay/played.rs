//! The result of a session, and its errors.

use std::fmt;
use std::io;
use std::time::Duration;
use urtica_socket::{Address, TlsError};
use urtica_wire::{DecodeError, ErrorCode, Version};

/// Why a session could not be replayed to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlayError {
    /// The controller does not accept the connection.
    #[error("cannot connect to {address}: {error}; expected a controller that listens there")]
    Connect {
        /// The controller's address.
        address: Address,
        /// The system's error.
        error: io::Error,
    },
    /// The TLS handshake failed.
    #[error("no TLS connection with {address}: {error}")]
    Tls {
        /// The controller's address.
        address: Address,
        /// The reason.
        error: TlsError,
    },
    /// The system could not start a thread for the switch.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// The controller closed the connection before the end.
    #[error("the controller closed the connection after {sent} of {all} asynchronous messages of the switch{}", because(.error))]
    Closed {
        /// The number of asynchronous messages sent before that.
        sent: u64,
        /// The number of all asynchronous messages.
        all: u64,
        /// The system's error, if there was one.
        error: Option<io::Error>,
    },
    /// The controller did not send an expected message, for this number of seconds.
    #[error("the controller sent nothing for {0} s; expected {1}")]
    Silent(u64, &'static str),
    /// The controller did not read, for this number of seconds.
    #[error("the controller read nothing for {0} s")]
    Stalled(u64),
    /// The controller does not speak the recorded version.
    #[error(
        "the controller speaks another version of OpenFlow; expected {0}, which the recording has"
    )]
    Version(Version),
    /// The controller answered the hello with an error.
    #[error("the controller refused: {code}{}", reason(.text))]
    Refused {
        /// The error's type and code.
        code: ErrorCode,
        /// Its text.
        text: String,
    },
    /// The controller sent invalid OpenFlow.
    #[error("the controller sent invalid OpenFlow: {0}")]
    NotOpenFlow(#[from] DecodeError),
    /// Waiting for the connection failed.
    #[error("the connection failed: {0}")]
    Io(io::Error),
}

fn because(error: &Option<io::Error>) -> String {
    error
        .as_ref()
        .map_or(String::new(), |error| format!(": {error}"))
}

/// Returns the text of an error, without control characters.
fn reason(text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!(" ({})", text.escape_debug()),
    }
}

/// The result of a session.
#[derive(Debug, Default)]
pub struct Played {
    /// Asynchronous messages that were sent.
    pub sent: u64,
    /// Messages of the controller, without keep-alives.
    pub received: u64,
    /// The number of messages that were answered from the recording.
    pub answered: u64,
    /// Requests for which the recording has no answer.
    pub unknown: u64,
    /// Number of the controller's messages that did not arrive.
    pub missed: u64,
    /// The time from sending the first asynchronous message until the controller has handled the last.
    pub taken: Duration,
    /// The first difference in the controller's messages.
    pub difference: Option<String>,
}

impl fmt::Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sent, received, answered) = (self.sent, self.received, self.answered);
        write!(
            f,
            "{sent} asynchronous messages in {:.3} s",
            self.taken.as_secs_f64()
        )?;
        write!(f, ", {received} received, {answered} of them answered")?;
        if self.unknown > 0 {
            let unknown = self.unknown;
            write!(
                f,
                "; {unknown} requests refused without an answer in the recording"
            )?;
        }
        if self.missed > 0 {
            let missed = self.missed;
            write!(
                f,
                "; {missed} times the controller did not send a recorded message"
            )?;
        }
        Ok(())
    }
}
