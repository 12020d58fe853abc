//! Logging of commands that run until they are stopped.

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Writes the program's log to standard error; RUST_LOG sets the level.
pub fn log_to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_writer(std::io::stderr)
        // An error would be reported on standard error, which is what failed: a panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}
