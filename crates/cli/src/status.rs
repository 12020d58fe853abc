//! How commands end: the exit status, and a sentence on standard error where they failed.

use crate::say::{complain, end_unread};
use std::fmt::Display;
use std::io;
use std::process::ExitCode;

/// 0, or 1 and the error.
pub fn of(result: Result<(), impl Display>) -> ExitCode {
    of_printed(result.map(|()| ExitCode::SUCCESS), |_| None)
}

/// The same for a command whose output others read, which `of_output` tells from its other errors: where the reader has
/// seen enough, it ends in silence.
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
