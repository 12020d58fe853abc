//! Errors of measurements.

use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use urtica_client::{ClientError, LoadError};
use urtica_recordings::ReadError;
use urtica_switch::{RunError, SessionError};
use urtica_wire::text::ParseError;
use urtica_wire::{DecodeError, EncodeError, ErrorCode};

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This process may not run on the core.
    #[error("there is no core {core} for this process; expected one of {}", list(.available))]
    NoCore {
        /// The core's number.
        core: usize,
        /// The cores on which this process may run.
        available: Vec<usize>,
    },
    /// A text is not a flow entry.
    #[error("cannot measure: '{entry}' is not an entry: {error}")]
    Entry {
        /// The text.
        entry: String,
        /// The error in it.
        error: ParseError,
    },
    /// Entries cannot be loaded.
    #[error("cannot measure: {0}")]
    Load(#[from] LoadError),
    /// A file has no flow entries.
    #[error("cannot measure: {} has no flow entries; expected one per line", .0.display())]
    NoEntries(PathBuf),
    /// A file's packets cannot be replayed.
    #[error("cannot measure: {}: {error}", file.display())]
    Capture {
        /// The file.
        file: PathBuf,
        /// The reason.
        error: CaptureError,
    },
    /// The switch cannot run.
    #[error("cannot measure: {0}")]
    Run(#[from] RunError),
    /// A request to the switch failed.
    #[error("cannot measure: {0}")]
    Client(#[from] ClientError),
    /// A message cannot be expressed in OpenFlow 1.3.
    #[error("cannot measure: {0}")]
    Encode(#[from] EncodeError),
    /// A message of the switch is malformed.
    #[error("cannot measure: {0}")]
    Decode(#[from] DecodeError),
    /// The switch's session has failed.
    #[error("cannot measure: {0}")]
    Session(#[from] SessionError),
    /// The switch closed its connection.
    #[error("cannot measure: the switch closed the connection")]
    Closed,
    /// The switch or the pipeline refuses an entry, group or meter.
    #[error("cannot measure: the switch refuses '{message}': {code}")]
    Refused {
        /// The entry, group or meter.
        message: String,
        /// The error.
        code: ErrorCode,
    },
    /// The switch refuses one of many entries.
    #[error("cannot measure: the switch refuses an entry: {0}")]
    EntryRefused(ErrorCode),
    /// Entries are missing after they were loaded.
    #[error("the switch holds {found} entries after {sent} were sent; expected all of them")]
    EntriesMissing {
        /// The entries that the switch has.
        found: u32,
        /// The entries that were sent.
        sent: u32,
    },
    /// A form lost packets.
    #[error(
        "{sent} of {received} packets of {case} were sent in the form {form}; expected all: the form is invalid, so its figures \
         are meaningless"
    )]
    Lost {
        /// The case.
        case: String,
        /// The form.
        form: &'static str,
        /// Packets received.
        received: u64,
        /// Packets sent.
        sent: u64,
    },
    /// A form sends a different frame than the plain form.
    #[error(
        "frame {number} of {case} leaves the form {form} as {found}; expected {expected}: the form is invalid, so its figures \
         are meaningless"
    )]
    OtherFrame {
        /// The case.
        case: String,
        /// The form.
        form: &'static str,
        /// The frame's number, from 0.
        number: usize,
        /// The frame and its port.
        found: String,
        /// The plain form's frame and its port.
        expected: String,
    },
    /// In a form, a rule matches a different number of frames than in a linear search over the rules.
    #[error(
        "rule {rule} of {case} met {found} frames in the form {form}; a linear search expects {expected}: the form is invalid, so \
         its figures are meaningless"
    )]
    OtherRule {
        /// The case.
        case: String,
        /// The form.
        form: &'static str,
        /// The rule's number.
        rule: u64,
        /// The frames that it matched.
        found: u64,
        /// The frames that it should match.
        expected: u64,
    },
    /// A system call failed.
    #[error("cannot {doing}: {source}")]
    System {
        /// The failed operation, as in "open the file x".
        doing: String,
        /// The system's error.
        source: io::Error,
    },
}

/// Why packets in a file cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file is not a capture, or damaged.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A packet is not an Ethernet frame.
    #[error("packet {number} is of link type {link}; expected Ethernet frames")]
    Link {
        /// The packet's number, from 1.
        number: u64,
        /// The link type.
        link: String,
    },
    /// A frame is too short or too long.
    #[error("packet {number} has {length} bytes; expected {min} to {max}")]
    Length {
        /// The packet's number, from 1.
        number: u64,
        /// Its length in bytes.
        length: usize,
        /// The shortest frame.
        min: usize,
        /// The longest frame.
        max: usize,
    },
    /// The file has no packets.
    #[error("it has no packets; expected at least one")]
    Empty,
}

impl Error {
    /// Adds the description of the failed operation to a system error.
    pub(crate) fn system<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        let doing = doing.into();
        move |source| Self::System {
            doing,
            source: source.into(),
        }
    }

    /// Adds the refused entry, group or meter to an error of the specification.
    pub(crate) fn refused(message: impl Display, code: ErrorCode) -> Self {
        Self::Refused {
            message: message.to_string(),
            code,
        }
    }
}

fn list(numbers: &[usize]) -> String {
    let numbers: Vec<_> = numbers.iter().map(usize::to_string).collect();
    numbers.join(",")
}
