//! The log of commands that run until they are stopped.

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Has what the program says of its work written to standard error; RUST_LOG tells how much.
pub fn log_to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_writer(std::io::stderr)
        // Told on standard error, which is what failed: that would be a panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}
