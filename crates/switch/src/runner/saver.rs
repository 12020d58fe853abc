//! The thread that writes flow entries into a file, so that a restart keeps them.
//!
//! It writes after a change when no other has come for a while, at the latest so long after the first, and once more when the switch
//! has stopped. Packets and controllers wait for it no longer than for who reads entries.

use super::RunError;
use crate::StateFile;
use crate::shared::Shared;
use crate::state_file::StateError;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use urtica_wire::PortNo;

/// For how long there is to be no change before what there is is written.
const QUIET: Duration = Duration::from_secs(1);

/// After how long it is written however many changes come.
const LATEST: Duration = Duration::from_secs(30);

/// What is to be written, and where.
pub(super) struct Saver {
    pub file: StateFile,
    pub shared: Arc<Shared>,
    /// The numbers that names of ports have had.
    pub numbers: Arc<Mutex<BTreeMap<String, PortNo>>>,
    /// When the switch's time began.
    pub started: Instant,
}

/// One at work.
pub(super) struct Saving {
    stop: Sender<()>,
    thread: JoinHandle<Saver>,
}

impl Saver {
    /// Writes from now on.
    ///
    /// # Errors
    /// [`RunError::Io`] where the system gives no thread.
    pub fn start(self) -> Result<Saving, RunError> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("state".into());
        let thread = thread.spawn(move || self.run(&stopped));
        Ok(Saving {
            stop,
            thread: thread.map_err(RunError::io("start a thread"))?,
        })
    }

    fn run(self, stopped: &Receiver<()>) -> Self {
        let (mut written, mut seen) = (0, 0);
        let mut latest = None;
        while stopped.recv_timeout(QUIET) == Err(RecvTimeoutError::Timeout) {
            let changes = self.shared.changes();
            let is_quiet = changes == std::mem::replace(&mut seen, changes);
            if changes == written {
                continue;
            }
            let is_late = Instant::now() >= *latest.get_or_insert_with(|| Instant::now() + LATEST);
            if !is_quiet && !is_late {
                continue;
            }
            latest = None;
            match self.write() {
                Ok(()) => written = changes,
                Err(error) => {
                    urtica_log::warn!(about: "state file", %error, "flow entries are not saved; it is tried again");
                }
            }
        }
        self
    }

    fn write(&self) -> Result<(), StateError> {
        let numbers = self.numbers.lock().clone();
        self.file
            .write(&self.shared, &numbers, self.started.elapsed())
    }
}

impl Saving {
    /// Writes a last time, now that no packet comes any more.
    ///
    /// # Errors
    /// [`RunError::State`].
    ///
    /// # Panics
    /// Where the thread did.
    pub fn finish(self) -> Result<(), RunError> {
        drop(self.stop);
        match self.thread.join() {
            Ok(saver) => Ok(saver.write()?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}
