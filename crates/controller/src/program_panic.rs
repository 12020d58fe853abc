//! Panics of programs.

use std::time::SystemTime;
use urtica_wire::DatapathId;

/// A panic of a handler, whose switch was then disconnected, or of a background program, which then ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramPanic {
    /// The program's name, if it has one.
    pub program: Option<String>,
    /// The handler's switch; `None` for a background program.
    pub switch: Option<DatapathId>,
    /// The message of the panic.
    pub reason: String,
    /// The time when it happened.
    pub at: SystemTime,
}
