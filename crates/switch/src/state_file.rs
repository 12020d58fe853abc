//! The persistent state of a switch: flow entries, groups and meters, the numbers of its ports, and their queues.
//!
//! Changes since the file was written are in a journal next to it ([`journal`]).
//!
//! **Format.** A line with the file's type and version, then records, then the SHA-256 digest of all of these. A record
//! is a byte for its kind, its length in 4 bytes, big-endian like all numbers, and:
//!
//! | kind | contents |
//! | --- | --- |
//! | `N` | 16 bytes that identify the run of the switch, those of the previous run, the number of the last change, and the time in nanoseconds, in 8 bytes each |
//! | `P` | a port number in 4 bytes, and the name that it belongs to |
//! | `Q` | a port's name, its queues when they were changed at run time, and those before: see [`queues`] |
//! | `F` | the time since the entry's last packet, in 8 bytes of nanoseconds; a multipart reply of OpenFlow 1.3 with the entry |
//! | `E` | an entry that OpenFlow 1.0 added: the `dl_vlan_pcp` of its match on untagged packets, or 255, in 1 byte; then as in `F` |
//! | `G` | two such replies: a group's description, and its counters |
//! | `M` | two such replies: a meter's configuration, and its counters |
//!
//! **Safety.** A new file is written next to the old one, synchronized, and renamed: the file is either the old or the new
//! one, and complete. Only its owner may access it. Readers check the digest first, and then all records before they use any.
//!
//! **Consistency.** The file contains all changes up to one ([`StateView`]), and no later one.

mod feed;
mod journal;
mod key;
mod queues;
mod record;
#[cfg(test)]
mod tests;
mod writer;

use crate::Switch;
use crate::queues::NamedQueues;
use crate::shared::Shared;
pub(crate) use feed::{Durability, Feed, Item};
pub(crate) use key::RunId;
pub(crate) use record::RunRecord;
use record::{FlowKind, Key, Record, take_record};
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use urtica_pipeline::{FlowWalk, Group, Meter, Pipeline, StateChange};
use urtica_wire::{FlowStats, FlowStatsRequest, PortNo};
use writer::Writer;

/// The start of the file. Other formats will have other numbers.
const MAGIC: &[u8] = b"urtica switch state 3\n";

/// The starts of files of earlier versions: version 2 has no `Q`; version 1 also has no `N`, and no journal.
const MAGICS_BEFORE: [&[u8]; 2] = [b"urtica switch state 2\n", b"urtica switch state 1\n"];

/// The start of files in all formats.
const FAMILY: &[u8] = b"urtica switch state ";

const UNREADABLE: &str = "has a record that cannot be read";

/// Length of the digest at the end.
const DIGEST_BYTES: usize = 32;

/// Maximum size of a file, which is larger than any real one.
const MAX_BYTES: u64 = 4 << 30;

/// The reason why a state file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Another switch uses it.
    #[error("the state file {} is used by another switch; expected a separate file for each", .0.display())]
    InUse(PathBuf),
    /// An operation of the system failed.
    #[error("cannot {what} the state file {}: {error}", file.display())]
    Io {
        /// The failed operation.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file is of another type or version, or damaged.
    #[error(
        "the state file {} {problem}; expected a file written by this version of urtica switch, or no file, to start without flow entries",
        file.display()
    )]
    Content {
        /// The file.
        file: PathBuf,
        /// The problem with it.
        problem: &'static str,
    },
    /// The journal belongs to another state file.
    #[error(
        "the journal {} does not belong to its state file; expected the one that was written with it, or no journal, to start without its changes",
        .0.display()
    )]
    ForeignJournal(PathBuf),
}

/// A switch's state file, which no other switch can use at the same time.
#[derive(Debug)]
pub struct StateFile {
    file: PathBuf,
    /// Held while the switch runs. The lock's file stays, and is empty.
    _lock: File,
    saved: Option<SavedState>,
    /// This run's id.
    id: RunId,
}

/// The contents of a file and its journal.
#[derive(Debug)]
struct SavedState {
    bytes: Vec<u8>,
    journal: Vec<u8>,
    /// The valid records: the last one for each key.
    kept: Vec<KeptRecord>,
    run: Option<RunRecord>,
    /// The age of the oldest entry, group or meter.
    age: Duration,
}

/// The location of a record.
#[derive(Debug)]
struct KeptRecord {
    in_journal: bool,
    at: Range<usize>,
    /// The time from when it was written to the end of the saved run.
    older: Duration,
}

/// A switch's state at one moment, to be saved.
pub(crate) struct StateView {
    /// The number of the last change that it contains.
    pub sequence: u64,
    flows: FlowWalk,
    groups: Vec<(u32, Arc<Group>)>,
    meters: Vec<(u32, Arc<Meter>)>,
    queues: Vec<(String, NamedQueues)>,
}

impl StateView {
    /// Opens a view of a switch's current state.
    pub fn open(shared: &Shared) -> io::Result<Self> {
        let pipeline = shared.pipeline();
        let flows = pipeline.walk_flows(&FlowStatsRequest::default());
        Ok(Self {
            sequence: shared.sequence(),
            flows: flows.map_err(|_| io::ErrorKind::InvalidInput)?,
            groups: pipeline.list_groups(0..=u32::MAX),
            meters: pipeline.list_meters(0..=u32::MAX),
            queues: shared.changed_queues(),
        })
    }
}

/// A journal being written.
pub(crate) struct Journal {
    file: File,
    /// Length of the journal.
    bytes: u64,
}

impl Journal {
    /// Appends frames. If that fails, restores the previous length if the system allows it.
    pub fn append(&mut self, frames: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(frames);
        match written {
            Ok(()) => self.bytes += frames.len() as u64,
            Err(_) => drop(self.file.set_len(self.bytes)),
        }
        written
    }

    /// Waits until all appended frames are on the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Returns its length.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the bytes appended after a length.
    pub fn tail(&mut self, from: u64) -> io::Result<Vec<u8>> {
        let mut tail = Vec::new();
        self.file.seek(SeekFrom::Start(from))?;
        self.file.read_to_end(&mut tail)?;
        Ok(tail)
    }

    /// Appends changes as a frame; the last change has this number.
    pub fn put_changes(
        id: RunId,
        sequence: u64,
        changes: &[StateChange],
        now: Duration,
        out: &mut Vec<u8>,
    ) {
        let mut records = Vec::new();
        for change in changes {
            if journal::put_change(change, now, &mut records).is_none() {
                urtica_log::warn!(about: "state journal", "cannot save an entry or group: it is too long");
            }
        }
        journal::put_frame(id, sequence, now, &records, out);
    }

    /// Appends the change with this number as a frame, which is of the queues of a port's name.
    pub fn put_queues(
        id: RunId,
        sequence: u64,
        (name, queues): (&str, &NamedQueues),
        now: Duration,
        out: &mut Vec<u8>,
    ) {
        let mut records = Vec::new();
        // No port's name is too long.
        let _ = journal::put_queues(name, queues, &mut records);
        journal::put_frame(id, sequence, now, &records, out);
    }

    /// Appends port numbers as a frame.
    pub fn put_numbers<'a>(
        id: RunId,
        numbers: impl Iterator<Item = (&'a String, &'a PortNo)>,
        now: Duration,
        out: &mut Vec<u8>,
    ) {
        let mut records = Vec::new();
        numbers.for_each(|(name, number)| writer::put_port(&mut records, name, *number));
        journal::put_frame(id, journal::NO_CHANGE, now, &records, out);
    }
}

/// Numbers of restored objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// Flow entries.
    pub flows: usize,
    /// Groups.
    pub groups: usize,
    /// Meters.
    pub meters: usize,
    /// Ports with queues that were changed at run time.
    pub queues: usize,
    /// Objects that this switch cannot have, for example because it lacks the table.
    pub refused: usize,
}

impl StateFile {
    /// Locks the file for this switch, and reads it, if it exists.
    ///
    /// # Errors
    /// [`StateError`] if another switch uses it, or it is damaged.
    pub fn open(file: &Path) -> Result<Self, StateError> {
        let lock = lock(file)?;
        let saved = match std::fs::metadata(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            found => Some(found.and_then(|found| read(file, found.len()))),
        };
        let bytes = saved
            .transpose()
            .map_err(|error| io_error("read", file, error))?;
        let journal_file = beside(file, "journal");
        let journal = match std::fs::metadata(&journal_file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            found => Some(found.and_then(|found| read(&journal_file, found.len()))),
        };
        let journal = journal
            .transpose()
            .map_err(|error| io_error("read", &journal_file, error))?;
        let content = |problem| StateError::Content {
            file: file.to_owned(),
            problem,
        };
        let saved = match (bytes, journal) {
            (None, None) => None,
            (None, Some(_)) => return Err(StateError::ForeignJournal(journal_file)),
            (Some(bytes), journal) => {
                let mut saved = SavedState::parse(bytes).map_err(content)?;
                if let Some(journal) = journal {
                    saved.take_journal(journal, &journal_file)?;
                }
                saved.note_age().map_err(content)?;
                Some(saved)
            }
        };
        Ok(Self {
            file: file.to_owned(),
            _lock: lock,
            saved,
            id: RunId::new(),
        })
    }

    /// Returns this run's id, which its journal contains.
    pub(crate) fn id(&self) -> RunId {
        self.id
    }

    /// Returns the start of a clock that precedes the addition of all saved objects, if the system can represent it.
    pub fn clock_start(&self) -> Instant {
        let now = Instant::now();
        let age = self
            .saved
            .as_ref()
            .map_or(Duration::ZERO, |saved| saved.age);
        now.checked_sub(age).unwrap_or(now)
    }

    /// Returns the numbers that port names have had.
    pub(crate) fn port_numbers(&self) -> Vec<(String, PortNo)> {
        let records = self.saved.iter().flat_map(SavedState::records);
        let ports = records.filter_map(|(record, _)| match record {
            Record::Port(number, name) => Some((name.to_owned(), number)),
            _ => None,
        });
        ports.collect()
    }

    /// Replaces the file with a switch's state at the view's moment. `between` is called between steps.
    ///
    /// # Errors
    /// [`StateError`]; then the file is unchanged.
    pub(crate) fn write(
        &self,
        view: StateView,
        shared: &Shared,
        numbers: &BTreeMap<String, PortNo>,
        now: Duration,
        between: &mut dyn FnMut() -> io::Result<()>,
    ) -> Result<(), StateError> {
        let run = RunRecord {
            id: self.id,
            previous: self.saved.as_ref().and_then(|saved| Some(saved.run?.id)),
            sequence: view.sequence,
            now,
        };
        let new = beside(&self.file, "new");
        let written = replace(&self.file, &new, |out| {
            Writer::new(out).write_all(view, run, numbers, shared, between)
        });
        written.map_err(|error| io_error("write", &self.file, error))
    }

    /// Restarts this run's journal, with these frames.
    ///
    /// # Errors
    /// [`StateError`]; then the journal is unchanged.
    pub(crate) fn start_journal(&self, frames: &[u8]) -> Result<Journal, StateError> {
        let file = beside(&self.file, "journal");
        let new = beside(&self.file, "journal.new");
        let header = journal::header(self.id);
        let open = || {
            replace(&file, &new, |out| {
                out.write_all(&header)?;
                out.write_all(frames)
            })?;
            OpenOptions::new().read(true).append(true).open(&file)
        };
        let opened = open().map_err(|error| io_error("write", &file, error))?;
        Ok(Journal {
            file: opened,
            bytes: (header.len() + frames.len()) as u64,
        })
    }

    /// Returns an error of the system about the file.
    pub(crate) fn io_error(&self, error: io::Error) -> StateError {
        io_error("write", &self.file, error)
    }

    /// Returns the length of the file; 0 if it is unknown.
    pub(crate) fn file_bytes(&self) -> u64 {
        std::fs::metadata(&self.file).map_or(0, |found| found.len())
    }

    /// Removes the journal, whose changes the file contains.
    ///
    /// # Errors
    /// [`StateError`].
    pub(crate) fn remove_journal(&self) -> Result<(), StateError> {
        let file = beside(&self.file, "journal");
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(io_error("remove", &file, error))
            }
            _ => Ok(()),
        }
    }
}

impl Switch {
    /// Restores the contents of a state file, before the first packet and controller. `now` is the time of a clock that started
    /// at [`StateFile::clock_start`]; times continue from their saved values, as if no time had passed since.
    ///
    /// A port's queues that were changed at run time are restored if [`Switch::configure_queues`] has set the same queues as in
    /// the saved run, or neither has set any; so call that before.
    pub fn restore(&mut self, file: &StateFile, now: Duration) -> Restored {
        let mut restored = Restored::default();
        if let Some(saved) = &file.saved {
            self.shared
                .change(|pipeline| saved.restore(pipeline, now, &mut restored));
            for (record, _) in saved.records() {
                if let Record::Queues(name, queues) = record {
                    let is_restored = self.restore_queues(name, queues, now);
                    restored.queues += usize::from(is_restored);
                }
            }
        }
        restored
    }
}

impl SavedState {
    /// Checks the contents of a file.
    fn parse(bytes: Vec<u8>) -> Result<Self, &'static str> {
        if !bytes.starts_with(FAMILY) {
            return Err("was not written by a switch");
        }
        let mut magics = MAGICS_BEFORE.iter().chain([&MAGIC]);
        if !magics.any(|magic| bytes.starts_with(magic)) {
            return Err("has another version");
        }
        let end = bytes.len().saturating_sub(DIGEST_BYTES);
        if end < MAGIC.len() || Sha256::digest(&bytes[..end])[..] != bytes[end..] {
            return Err("is incomplete or was changed");
        }
        let mut saved = Self {
            bytes,
            journal: Vec::new(),
            kept: Vec::new(),
            run: None,
            age: Duration::ZERO,
        };
        let mut at = MAGIC.len();
        while at < end {
            let mut rest = &saved.bytes[at..end];
            let record = take_record(&mut rest).ok_or(UNREADABLE)?;
            if let Record::Run(run) = record {
                saved.run = Some(run);
            }
            let record_end = end - rest.len();
            saved.kept.push(KeptRecord {
                in_journal: false,
                at: at..record_end,
                older: Duration::ZERO,
            });
            at = record_end;
        }
        Ok(saved)
    }

    /// Applies the changes of a journal.
    fn take_journal(&mut self, journal: Vec<u8>, file: &Path) -> Result<(), StateError> {
        let foreign = || StateError::ForeignJournal(file.to_owned());
        let run = self.run.ok_or_else(foreign)?;
        // A journal that was truncated within its header has no changes.
        let Some(id) = journal::run_of(&journal) else {
            let header = journal::header(run.id);
            return match header.starts_with(&journal) {
                true => Ok(()),
                false => Err(foreign()),
            };
        };
        // The switch was stopped after replacing the file, and before replacing the journal.
        if Some(id) == run.previous {
            return Ok(());
        }
        if id != run.id {
            return Err(foreign());
        }
        let (frames, end) = journal::frames(id, &journal);
        if end < journal.len() {
            tracing::warn!(
                file = %file.display(), bytes = journal.len() - end,
                "the journal ends within an incomplete change; ignoring that change"
            );
        }
        self.journal = journal;
        self.apply(run, frames)
            .map_err(|problem| StateError::Content {
                file: file.to_owned(),
                problem,
            })
    }

    /// Applies the records of frames, which replace or remove earlier records.
    fn apply(&mut self, run: RunRecord, frames: Vec<journal::Frame>) -> Result<(), &'static str> {
        let frames = frames
            .into_iter()
            .filter(|frame| frame.sequence > run.sequence);
        let frames: Vec<_> = frames.collect();
        let last = frames.last().map_or(run.now, |frame| frame.at);
        let mut places: BTreeMap<Key, usize> = BTreeMap::new();
        let mut kept: Vec<Option<KeptRecord>> = Vec::new();
        for mut record in std::mem::take(&mut self.kept) {
            record.older = last.saturating_sub(run.now);
            let key = self.record(&record).and_then(|record| record.key());
            places.insert(key.ok_or(UNREADABLE)?, kept.len());
            kept.push(Some(record));
        }
        for frame in frames {
            let (mut at, end) = (frame.records.start, frame.records.end);
            while at < end {
                let mut rest = &self.journal[at..end];
                let record = take_record(&mut rest).ok_or(UNREADABLE)?;
                let key = record.key().ok_or(UNREADABLE)?;
                let record_end = end - rest.len();
                if record.is_removal() {
                    if let Some(place) = places.remove(&key) {
                        kept[place] = None;
                    }
                } else {
                    let place = *places.entry(key).or_insert(kept.len());
                    kept.resize_with(kept.len().max(place + 1), || None);
                    kept[place] = Some(KeptRecord {
                        in_journal: true,
                        at: at..record_end,
                        older: last.saturating_sub(frame.at),
                    });
                }
                at = record_end;
            }
        }
        self.kept = kept.into_iter().flatten().collect();
        Ok(())
    }

    fn note_age(&mut self) -> Result<(), &'static str> {
        let ages = self.records().map(|(record, older)| record.age() + older);
        self.age = ages.max().unwrap_or_default();
        Ok(())
    }

    fn record(&self, kept: &KeptRecord) -> Option<Record<'_>> {
        let bytes = match kept.in_journal {
            true => &self.journal,
            false => &self.bytes,
        };
        take_record(&mut &bytes[kept.at.clone()])
    }

    /// Returns the valid records, and the time that has passed for their objects since they were written.
    fn records(&self) -> impl Iterator<Item = (Record<'_>, Duration)> {
        let kept = self.kept.iter();
        kept.filter_map(|kept| Some((self.record(kept)?, kept.older)))
    }

    /// Restores meters, then groups, each after those that it refers to, and then entries, which refer to both.
    fn restore(&self, pipeline: &mut Pipeline, now: Duration, restored: &mut Restored) {
        let mut groups = Vec::new();
        for (record, older) in self.records() {
            let then = now.saturating_sub(older);
            match record {
                Record::Meter(config, stats) => {
                    let outcome = pipeline.restore_meter(&config, &stats, then);
                    restored.meters += restored.note(outcome.is_ok());
                }
                Record::Group(desc, stats) => groups.push((desc, stats, then)),
                _ => {}
            }
        }
        loop {
            let waiting = groups.len();
            groups
                .retain(|(desc, stats, then)| pipeline.restore_group(desc, stats, *then).is_err());
            restored.groups += waiting - groups.len();
            if groups.len() == waiting {
                break;
            }
        }
        restored.refused += groups.len();
        for (record, older) in self.records() {
            if let Record::Flow {
                kind,
                idle,
                mut stats,
            } = record
            {
                // Later packets are unknown, so the entry is considered idle since then.
                age_by(&mut stats, older);
                let outcome = match kind {
                    FlowKind::Of13 => pipeline.restore_flow(&stats, idle, now),
                    FlowKind::Of10 { pcp_of_untagged } => {
                        pipeline.restore_flow_of10(&stats, pcp_of_untagged, idle, now)
                    }
                };
                restored.flows += restored.note(outcome.is_ok());
            }
        }
    }
}

/// Increases an entry's age.
fn age_by(stats: &mut FlowStats, older: Duration) {
    let age = Duration::new(stats.duration_sec.into(), 0) + older;
    let age = age + Duration::from_nanos(stats.duration_nsec.into());
    stats.duration_sec = age.as_secs().try_into().unwrap_or(u32::MAX);
    stats.duration_nsec = age.subsec_nanos();
}

impl Restored {
    /// Returns 1 for a restored object; otherwise counts it as refused.
    fn note(&mut self, is_restored: bool) -> usize {
        self.refused += usize::from(!is_restored);
        is_restored.into()
    }
}

fn io_error(what: &'static str, file: &Path, error: io::Error) -> StateError {
    let file = file.to_owned();
    StateError::Io { what, file, error }
}

/// Returns the path of a file next to another.
fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

fn lock(file: &Path) -> Result<File, StateError> {
    let mut options = OpenOptions::new();
    let options = options.create(true).append(true).mode(0o600);
    let lock = options.open(beside(file, "lock"));
    let lock = lock.map_err(|error| io_error("lock", file, error))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(StateError::InUse(file.to_owned())),
        Err(error) => Err(io_error("lock", file, error.into())),
    }
}

fn read(file: &Path, length: u64) -> io::Result<Vec<u8>> {
    match length {
        0..=MAX_BYTES => std::fs::read(file),
        _ => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

/// Writes a file next to another, and renames it to replace that one when it is complete. If that fails, no additional file is
/// left.
fn replace(
    file: &Path,
    beside: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let replaced = write_beside(beside, write).and_then(|()| std::fs::rename(beside, file));
    if let Err(error) = replaced {
        let _ = std::fs::remove_file(beside);
        return Err(error);
    }
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Writes a file completely, and synchronizes it.
fn write_beside(
    beside: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // The file may have been left by a switch that was killed.
    let _ = std::fs::remove_file(beside);
    let mut options = OpenOptions::new();
    let out = options
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(beside)?;
    let mut out = BufWriter::new(out);
    write(&mut out)?;
    out.into_inner()?.sync_all()
}
