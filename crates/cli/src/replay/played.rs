//! What has become of a session, in words.

use std::fmt;
use std::io;
use std::time::Duration;
use urtica_socket::{Address, TlsError};
use urtica_wire::{DecodeError, ErrorCode, Version};

/// Why a session could not be replayed to its end.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    #[error("cannot connect to {address}: {error}; expected a controller that listens there")]
    Connect { address: Address, error: io::Error },
    #[error("no TLS connection with {address}: {error}")]
    Tls { address: Address, error: TlsError },
    #[error("the controller closed the connection after {sent} of {all} asynchronous messages of the switch{}", because(.error))]
    Closed {
        sent: u64,
        all: u64,
        error: Option<io::Error>,
    },
    #[error("the controller said nothing for {0} s; expected {1}")]
    Silent(u64, &'static str),
    #[error("the controller took nothing for {0} s")]
    Stalled(u64),
    #[error(
        "the controller speaks another version of OpenFlow; expected {0}, which the recording has"
    )]
    Version(Version),
    #[error("the controller refused: {code}{}", reason(.text))]
    Refused { code: ErrorCode, text: String },
    #[error("what the controller sent is not OpenFlow: {0}")]
    NotOpenFlow(#[from] DecodeError),
    #[error("the connection failed: {0}")]
    Io(io::Error),
}

fn because(error: &Option<io::Error>) -> String {
    error
        .as_ref()
        .map_or(String::new(), |error| format!(": {error}"))
}

/// The sentence that came with an error, with nothing in it that a terminal would obey.
fn reason(text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!(" ({})", text.escape_debug()),
    }
}

/// What has become of a session.
#[derive(Debug, Default)]
pub struct Played {
    /// Asynchronous messages that were sent.
    pub sent: u64,
    /// Messages of the controller, without keep-alives.
    pub received: u64,
    /// Those that were answered from the recording.
    pub answered: u64,
    /// Requests that the recording has no answer to.
    pub unknown: u64,
    /// How many times a message of the controller did not come.
    pub missed: u64,
    /// From the first of these to the controller's end of it.
    pub taken: Duration,
    /// Where the controller's messages differ first.
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
                "; {unknown} requests refused, which the recording has no answer to"
            )?;
        }
        if self.missed > 0 {
            let missed = self.missed;
            write!(
                f,
                "; {missed} times the controller did not send what it had in the recording"
            )?;
        }
        Ok(())
    }
}
