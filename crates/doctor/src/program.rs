//! Queries of other programs.

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::process::{Command, Output, Stdio};

/// The reason why a program did not answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    #[error("{0} is not installed")]
    Missing(String),
    /// The program's own error message.
    #[error("{0}")]
    Refused(String),
}

/// Returns the output of a program with these arguments, which only reads and has its own time-out.
///
/// # Errors
/// [`NoAnswer`].
pub fn ask(program: &str, arguments: &[&str]) -> Result<String, NoAnswer> {
    ask_with_input(program, arguments, "")
}

/// Like [`ask`], for a program that reads input.
pub fn ask_with_input(program: &str, arguments: &[&str], input: &str) -> Result<String, NoAnswer> {
    let output = output(program, arguments, input).map_err(|error| match error.kind() {
        ErrorKind::NotFound => NoAnswer::Missing(program.to_owned()),
        _ => NoAnswer::Refused(format!("{program} does not start: {error}")),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<_> = said.lines().map(str::trim).collect();
    Err(NoAnswer::Refused(match said.join(" ") {
        said if said.is_empty() => format!("{program} failed ({})", output.status),
        said => said,
    }))
}

fn output(program: &str, arguments: &[&str], input: &str) -> std::io::Result<Output> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("PATH", search_path())
        .env("LC_ALL", "C");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stdin = child.stdin.take();
    std::thread::scope(|scope| {
        // Write the input while the output is read, since pipes have limited buffers. A program that ends early needs
        // no further input.
        scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        child.wait_with_output()
    })
}

/// Returns the folders of programs, including the administrators', which are not on other users' path.
fn search_path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    path
}

/// Returns `true` if it is installed.
pub fn is_installed(program: &str) -> bool {
    std::env::split_paths(&search_path()).any(|folder| folder.join(program).is_file())
}
