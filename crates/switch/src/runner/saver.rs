//! The thread that saves entries, groups, meters and queues, so that a restart keeps them.
//!
//! Changes are appended to the journal next to the state file. The journal is synchronized when a barrier waits for that
//! ([`StateSync::Barrier`]), and each second. When the journal has become long, the whole file is written again, and the
//! journal restarts; this also happens when the switch starts. When the switch stops, the file is written and the journal
//! removed. Packets and controllers do not wait for any of this, but barriers do.
//!
//! **Failures.** If the system refuses a write, changes are dropped. The saver then tries each second to write the whole file,
//! which contains them. Until that succeeds, barriers that wait for the disk are refused.

use super::RunError;
use crate::StateFile;
use crate::shared::Shared;
use crate::state_file::{Feed, Item, Journal, StateError, StateView};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use urtica_wire::PortNo;

/// Interval at which the journal is synchronized.
const INTERVAL: Duration = Duration::from_secs(1);

/// Length at which the whole file replaces a journal; a journal that is longer than the file is also replaced.
const JOURNAL_BYTES: u64 = 8 << 20;

/// When changes are synchronized to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateSync {
    /// Each second.
    #[default]
    Interval,
    /// Also before the reply to a barrier.
    Barrier,
}

/// The state to save, and its file.
pub(super) struct Saver {
    file: StateFile,
    shared: Arc<Shared>,
    /// The numbers that port names have had.
    numbers: Arc<Mutex<BTreeMap<String, PortNo>>>,
    appender: Appender,
    /// The length of the whole file, in bytes.
    file_bytes: u64,
}

/// The part of the saver that receives changes.
struct Appender {
    id: crate::state_file::RunId,
    feed: Arc<Feed>,
    items: Receiver<Item>,
    /// Wakes the switch when changes are durable.
    wake: Box<dyn Fn() + Send>,
    /// The start of the switch's time.
    started: Instant,
    /// The journal; `None` before the first one, and after a failure.
    journal: Option<Journal>,
    /// Frames that are not in the journal yet.
    pending: Vec<u8>,
    /// The number of the last change received.
    last: u64,
    is_dirty: bool,
    is_sync_requested: bool,
    is_stopped: bool,
    synced: Instant,
    known_numbers: BTreeMap<String, PortNo>,
}

/// A running saver.
pub(super) struct Saving {
    feed: Arc<Feed>,
    thread: JoinHandle<Saver>,
}

impl Saver {
    /// Creates a saver for a switch's changes. `wake` wakes the switch's thread.
    pub fn new(
        file: StateFile,
        sync: StateSync,
        shared: Arc<Shared>,
        numbers: Arc<Mutex<BTreeMap<String, PortNo>>>,
        started: Instant,
        wake: Box<dyn Fn() + Send>,
    ) -> Self {
        let (sender, items) = channel();
        let feed = Arc::new(Feed::new(sender, sync == StateSync::Barrier));
        shared.set_feed(Arc::clone(&feed));
        let appender = Appender {
            id: file.id(),
            feed,
            items,
            wake,
            started,
            journal: None,
            pending: Vec::new(),
            last: 0,
            is_dirty: false,
            is_sync_requested: false,
            is_stopped: false,
            synced: Instant::now(),
            known_numbers: BTreeMap::new(),
        };
        Self {
            file,
            shared,
            numbers,
            appender,
            file_bytes: 0,
        }
    }

    /// Starts saving.
    ///
    /// # Errors
    /// [`RunError::Io`] if the system cannot create a thread.
    pub fn start(self) -> Result<Saving, RunError> {
        let feed = Arc::clone(&self.appender.feed);
        let thread = std::thread::Builder::new().name("state".into());
        let thread = thread.spawn(move || self.run());
        Ok(Saving {
            feed,
            thread: thread.map_err(RunError::io("start a thread"))?,
        })
    }

    fn run(mut self) -> Self {
        self.renew_or_log();
        while !self.appender.is_stopped {
            self.appender.wait();
            let numbers = self.numbers.lock().clone();
            self.appender.note_numbers(numbers);
            if let Err(error) = self.appender.save_due() {
                self.appender.fail(&error);
            }
            if self.is_renewal_due() {
                self.renew_or_log();
            }
        }
        self
    }

    /// Returns whether the whole file must be written: the journal is long, or was lost some time ago.
    fn is_renewal_due(&mut self) -> bool {
        if self.appender.feed.take_lost() {
            self.appender.give_up();
            return true;
        }
        match &self.appender.journal {
            Some(journal) => journal.bytes() > JOURNAL_BYTES.max(self.file_bytes),
            None => self.appender.synced.elapsed() >= INTERVAL,
        }
    }

    fn renew_or_log(&mut self) {
        if let Err(error) = self.renew() {
            self.appender.fail(&error);
        }
    }

    /// Writes the whole file, and restarts the journal with the changes made since the file's view was opened.
    fn renew(&mut self) -> Result<(), StateError> {
        let appender = &mut self.appender;
        let save = |appender: &mut Appender| appender.save_due().map_err(|e| self.file.io_error(e));
        let view = StateView::open(&self.shared).map_err(|e| self.file.io_error(e))?;
        let sequence = view.sequence;
        // The queue contains all changes up to the view, since they were queued while the pipeline was locked.
        appender.take_all();
        save(appender)?;
        if appender.journal.is_none() {
            appender.pending.clear();
        }
        let from = appender.journal.as_ref().map(Journal::bytes);
        let numbers = self.numbers.lock().clone();
        let now = appender.started.elapsed();
        self.file
            .write(view, &self.shared, &numbers, now, &mut || {
                appender.take_all();
                appender.save_due()
            })?;
        let mut tail = match (&mut appender.journal, from) {
            (Some(journal), Some(from)) => journal.tail(from).map_err(|e| self.file.io_error(e))?,
            _ => Vec::new(),
        };
        tail.append(&mut appender.pending);
        let journal = self.file.start_journal(&tail)?;
        self.file_bytes = self.file.file_bytes();
        appender.known_numbers = numbers;
        appender.begin(journal, sequence);
        Ok(())
    }

    /// Writes the whole file a last time, after all changes.
    fn write_last(&mut self) -> Result<(), StateError> {
        let view = StateView::open(&self.shared).map_err(|e| self.file.io_error(e))?;
        let numbers = self.numbers.lock().clone();
        let now = self.appender.started.elapsed();
        self.file
            .write(view, &self.shared, &numbers, now, &mut || Ok(()))?;
        self.file.remove_journal()
    }
}

impl Appender {
    /// Waits for changes, at most for an interval, and receives all queued ones.
    fn wait(&mut self) {
        if let Ok(item) = self.items.recv_timeout(INTERVAL) {
            self.take(item);
            self.take_all();
        }
    }

    fn take_all(&mut self) {
        while let Ok(item) = self.items.try_recv() {
            self.take(item);
        }
    }

    fn take(&mut self, item: Item) {
        match item {
            Item::Changes(sequence, changes) => {
                let now = self.started.elapsed();
                Journal::put_changes(self.id, sequence, &changes, now, &mut self.pending);
                self.feed.took(changes.len());
                self.last = sequence;
            }
            Item::Queues(sequence, name, queues) => {
                let now = self.started.elapsed();
                let change = (&name[..], &queues);
                Journal::put_queues(self.id, sequence, change, now, &mut self.pending);
                self.feed.took(1);
                self.last = sequence;
            }
            Item::Sync => {
                self.feed.begin_sync();
                self.is_sync_requested = true;
            }
            Item::Stop => {
                self.is_stopped = true;
                self.is_sync_requested = true;
            }
        }
    }

    /// Notes new port numbers.
    fn note_numbers(&mut self, numbers: BTreeMap<String, PortNo>) {
        if numbers == self.known_numbers {
            return;
        }
        let known = &self.known_numbers;
        let new = numbers
            .iter()
            .filter(|(name, no)| known.get(*name) != Some(no));
        let now = self.started.elapsed();
        Journal::put_numbers(self.id, new, now, &mut self.pending);
        self.known_numbers = numbers;
    }

    /// Appends new changes to the journal, and synchronizes it if that is due.
    fn save_due(&mut self) -> io::Result<()> {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        if !self.pending.is_empty() {
            journal.append(&self.pending)?;
            self.pending.clear();
            self.is_dirty = true;
        }
        let is_due = self.is_dirty && self.synced.elapsed() >= INTERVAL;
        if is_due || self.is_sync_requested {
            journal.sync()?;
            self.note_synced();
        }
        Ok(())
    }

    fn note_synced(&mut self) {
        self.synced = Instant::now();
        self.is_dirty = false;
        self.is_sync_requested = false;
        self.feed.note_durable(self.last);
        (self.wake)();
    }

    /// Continues with a new journal; the whole file contains all changes up to `sequence`.
    fn begin(&mut self, journal: Journal, sequence: u64) {
        self.journal = Some(journal);
        self.last = self.last.max(sequence);
        self.note_synced();
    }

    /// Abandons the journal until the whole file can be written.
    fn fail(&mut self, error: &dyn std::fmt::Display) {
        urtica_log::warn!(about: "state file", %error, "cannot save changes of entries; retrying with the whole file each second");
        self.give_up();
    }

    /// Abandons the journal; changes wait for the whole file.
    fn give_up(&mut self) {
        self.journal = None;
        self.pending.clear();
        self.synced = Instant::now();
        self.is_sync_requested = false;
        self.feed.note_failure();
        (self.wake)();
    }
}

impl Saving {
    /// Saves a last time, after the last packet.
    ///
    /// # Errors
    /// [`RunError::State`].
    ///
    /// # Panics
    /// If the thread has panicked.
    pub fn finish(self) -> Result<(), RunError> {
        self.feed.stop();
        match self.thread.join() {
            Ok(mut saver) => Ok(saver.write_last()?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}
