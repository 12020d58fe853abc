//! Logging of commands that run until they are stopped.

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// The log filter, which can be changed.
pub struct LogFilter(Box<dyn Fn(EnvFilter)>);

impl LogFilter {
    /// Sets the filter; without one, uses RUST_LOG.
    pub fn set(&self, filter: Option<&str>) {
        (self.0)(env_filter(filter));
    }
}

/// Checks a filter in the form of RUST_LOG.
pub fn parse_filter(text: &str) -> Result<String, String> {
    match EnvFilter::try_new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!(
            "{error}; expected a level (error, warn, info, debug, trace) or filters, such as info,urtica_services=debug"
        )),
    }
}

fn env_filter(filter: Option<&str>) -> EnvFilter {
    let said = filter.and_then(|filter| EnvFilter::try_new(filter).ok());
    let said = said.or_else(|| EnvFilter::try_from_default_env().ok());
    said.unwrap_or_else(|| EnvFilter::new("info"))
}

/// Writes the program's log to standard error; RUST_LOG sets the level.
pub fn log_to_stderr() {
    let _ = log_filtered(None);
}

/// Writes the program's log to standard error; `filter` overrides RUST_LOG.
pub fn log_filtered(filter: Option<&str>) -> LogFilter {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(env_filter(filter))
        .with_target(false)
        .with_writer(std::io::stderr)
        // An error would be reported on standard error, which has just failed: that would panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_filter_reloading();
    let handle = builder.reload_handle();
    builder.init();
    LogFilter(Box::new(move |filter| {
        // Fails only if the log no longer exists.
        let _ = handle.reload(filter);
    }))
}
