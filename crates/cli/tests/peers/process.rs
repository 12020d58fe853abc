//! Commands that end, daemons that do not, and waiting for conditions.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The timeout of all waits. Only a failing test waits for it, so a busy machine causes no failure.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Runs a command to its end and returns its standard output.
///
/// # Panics
/// If it does not start or does not succeed; the message has both of its outputs.
pub fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} did not start: {error}"));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?} ended with {}\n{stdout}{stderr}",
        output.status
    );
    stdout
}

/// Waits until `condition` holds.
///
/// # Panics
/// If it does not within `deadline`; the message names `what` was expected.
pub fn eventually(what: &str, deadline: Duration, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < deadline,
            "expected within {deadline:?}: {what}"
        );
        thread::sleep(POLL_INTERVAL);
    }
}

/// A process that runs until it is stopped, or until it is dropped.
pub struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts `command`, and writes both of its outputs to the file `log`.
    pub fn start(command: &mut Command, log: &Path) -> Self {
        let output = File::create(log).expect("a log file can be made in the test's folder");
        let errors = output.try_clone().expect("a file handle can be cloned");
        let child = command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} did not start: {error}"));
        Self {
            child,
            log: log.into(),
        }
    }

    /// Returns its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its output so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Returns `true` if it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends `signal`.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal)
            .expect("a child of ours takes our signals");
    }

    /// Sends `signal` and waits for the end; `None` if the process does not end in time.
    pub fn stop(&mut self, signal: Signal) -> Option<ExitStatus> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Some(status);
        }
        self.signal(signal);
        let start = Instant::now();
        while start.elapsed() < DEADLINE {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            thread::sleep(POLL_INTERVAL);
        }
        None
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.stop(Signal::TERM).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if thread::panicking() {
            eprintln!("--- {}\n{}", self.log.display(), self.log());
        }
    }
}
