//! Other programs that are asked.

use std::io::ErrorKind;
use std::process::{Command, Stdio};

/// Why a program has not told what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    #[error("{0} is not installed")]
    Missing(String),
    /// With its own words.
    #[error("{0}")]
    Refused(String),
}

/// What a program prints for these arguments. It only reads, and gives up by itself.
///
/// # Errors
/// [`NoAnswer`].
pub fn ask(program: &str, arguments: &[&str]) -> Result<String, NoAnswer> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
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
    Err(NoAnswer::Refused(said.join(" ")))
}

/// Whether it is installed.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
