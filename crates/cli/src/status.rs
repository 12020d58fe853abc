//! The exit status of commands, and a message on standard error if they failed.

use crate::say::{complain, end_unread};
use std::fmt::Display;
use std::io;
use std::process::ExitCode;

/// Returns 0, or prints the error and returns 1.
pub fn of(result: Result<(), impl Display>) -> ExitCode {
    of_printed(result.map(|()| ExitCode::SUCCESS), |_| None)
}

/// Like `of`, for a command with output. If the reader has closed the pipe, which `of_output` recognises, the command ends
/// silently.
pub fn of_printed<E: Display>(
    result: Result<ExitCode, E>,
    of_output: impl FnOnce(&E) -> Option<&io::Error>,
) -> ExitCode {
    result.unwrap_or_else(|error| {
        if of_output(&error).is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            end_unread();
        }
        complain(format_args!("urtica: {error}"));
        ExitCode::FAILURE
    })
}
