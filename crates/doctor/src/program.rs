//! Queries of other programs.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::{Command, Stdio};

/// The reason why a program did not answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    #[error("{0} is not installed")]
    Missing(String),
    /// With its own words.
    #[error("{0}")]
    Refused(String),
}

/// Returns the output of a program with these arguments, which only reads and has its own time-out.
///
/// # Errors
/// [`NoAnswer`].
pub fn ask(program: &str, arguments: &[&str]) -> Result<String, NoAnswer> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command.env("PATH", search_path());
    let output = command
        .env("LC_ALL", "C")
        .output()
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => NoAnswer::Missing(program.to_owned()),
            _ => NoAnswer::Refused(format!("{program} does not start: {error}")),
        })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<_> = said.lines().map(str::trim).collect();
    Err(NoAnswer::Refused(match said.join(" ") {
        said if said.is_empty() => format!("{program} gave up ({})", output.status),
        said => said,
    }))
}

/// Where programs are. Those of administrators are not on the path of others.
fn search_path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    path
}

/// Returns `true` if it is installed.
pub fn is_installed(program: &str) -> bool {
    std::env::split_paths(&search_path()).any(|folder| folder.join(program).is_file())
}
