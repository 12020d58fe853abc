//! What outlives a switch: its flow entries, groups and meters in a file, and the numbers of its ports.
//!
//! **Format.** A line that says what it is and in which version, then records, then the SHA-256 digest of all before. A record is a
//! byte for its kind, its length in 4 bytes, big-endian as everything, and:
//!
//! | kind | what |
//! | --- | --- |
//! | `P` | a port number in 4 bytes, and the name that it belongs to |
//! | `F` | how long ago the entry's last packet came, in 8 bytes of nanoseconds; a multipart reply of OpenFlow 1.3 with the entry |
//! | `E` | an entry that OpenFlow 1.0 added: the `dl_vlan_pcp` of its match on untagged packets, or 255, in 1 byte; then as in `F` |
//! | `G` | two such replies: a group's description, and its counters |
//! | `M` | two such replies: a meter's configuration, and its counters |
//!
//! **Safety.** It is written beside the file, synchronized, and put in its place: the file is the old one or the new one, whole. It
//! is for its owner alone. Who reads it checks the digest before anything else, and each record before any is used.
//!
//! **What is consistent.** Entries are written some at a time while others change, groups and meters behind them: an entry whose group
//! went meanwhile is refused when it is put back, as it would have gone.

mod record;
#[cfg(test)]
mod tests;
mod writer;

use crate::Switch;
use crate::shared::Shared;
use record::{FlowKind, Record, take_record};
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use urtica_pipeline::Pipeline;
use urtica_wire::PortNo;
use writer::Writer;

/// What the file begins with; other formats will have other numbers.
const MAGIC: &[u8] = b"urtica switch state 1\n";

/// What all formats begin with.
const FAMILY: &[u8] = b"urtica switch state ";

/// The length of the digest at the end.
const DIGEST_BYTES: usize = 32;

/// Nobody has so many entries.
const MAX_BYTES: u64 = 4 << 30;

/// Why a file of entries cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Another switch has it.
    #[error("the state file {} is another switch's; expected a file for each", .0.display())]
    InUse(PathBuf),
    /// The system refused something.
    #[error("cannot {what} the state file {}: {error}", file.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// Which file.
        file: PathBuf,
        /// Why it failed.
        error: io::Error,
    },
    /// It is no such file, or not whole, or of another version.
    #[error(
        "the state file {} {problem}; expected one that this version of urtica switch has written, or none, to start without flow entries",
        file.display()
    )]
    Content {
        /// Which file.
        file: PathBuf,
        /// What is wrong.
        problem: &'static str,
    },
}

/// A switch's file of entries, which no other switch uses meanwhile.
#[derive(Debug)]
pub struct StateFile {
    file: PathBuf,
    /// Held as long as the switch runs; its file stays, and is empty.
    _lock: File,
    saved: Option<SavedState>,
}

/// What was in it.
#[derive(Debug)]
struct SavedState {
    bytes: Vec<u8>,
    /// How old the oldest entry, group or meter was.
    age: Duration,
}

/// How much was put back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// Flow entries.
    pub flows: usize,
    /// Groups.
    pub groups: usize,
    /// Meters.
    pub meters: usize,
    /// Those that this switch cannot have, as for want of tables.
    pub refused: usize,
}

impl StateFile {
    /// Takes the file for this switch, and reads it, if it is there.
    ///
    /// # Errors
    /// [`StateError`] where another switch has it, or it is not as it should be.
    pub fn open(file: &Path) -> Result<Self, StateError> {
        let lock = lock(file)?;
        let saved = match std::fs::metadata(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            found => Some(found.and_then(|found| read(file, found.len()))),
        };
        let bytes = saved
            .transpose()
            .map_err(|error| io_error("read", file, error))?;
        let parse = |bytes| {
            SavedState::parse(bytes).map_err(|problem| StateError::Content {
                file: file.to_owned(),
                problem,
            })
        };
        Ok(Self {
            file: file.to_owned(),
            _lock: lock,
            saved: bytes.map(parse).transpose()?,
        })
    }

    /// The beginning of a clock by which nothing that was saved was added before the beginning, where the system can express that.
    pub fn clock_start(&self) -> Instant {
        let now = Instant::now();
        let age = self
            .saved
            .as_ref()
            .map_or(Duration::ZERO, |saved| saved.age);
        now.checked_sub(age).unwrap_or(now)
    }

    /// The numbers that names of ports have had.
    pub(crate) fn port_numbers(&self) -> Vec<(String, PortNo)> {
        let records = self.saved.iter().flat_map(SavedState::records);
        let ports = records.filter_map(|record| match record {
            Ok(Record::Port(number, name)) => Some((name.to_owned(), number)),
            _ => None,
        });
        ports.collect()
    }

    /// Writes what a switch has now, in the place of what was written before.
    ///
    /// # Errors
    /// [`StateError`]; then the file is as it was.
    pub(crate) fn write(
        &self,
        shared: &Shared,
        numbers: &BTreeMap<String, PortNo>,
        now: Duration,
    ) -> Result<(), StateError> {
        let beside = beside(&self.file, "new");
        let written = replace(&self.file, &beside, |out| {
            let mut writer = Writer::new(out);
            writer.write_all(shared, numbers, now)
        });
        written.map_err(|error| io_error("write", &self.file, error))
    }
}

impl Switch {
    /// Puts back what a state file has, before any packet comes and any controller connects. `now` is by a clock that began at
    /// [`StateFile::clock_start`]; times go on where they were, as if no time had passed since.
    pub fn restore(&mut self, file: &StateFile, now: Duration) -> Restored {
        let mut restored = Restored::default();
        if let Some(saved) = &file.saved {
            self.shared
                .change(|pipeline| saved.restore(pipeline, now, &mut restored));
        }
        restored
    }
}

impl SavedState {
    /// Checks all that is in a file.
    fn parse(bytes: Vec<u8>) -> Result<Self, &'static str> {
        if !bytes.starts_with(FAMILY) {
            return Err("is none that a switch has written");
        }
        if !bytes.starts_with(MAGIC) {
            return Err("is of another version");
        }
        let end = bytes.len().saturating_sub(DIGEST_BYTES);
        if end < MAGIC.len() || Sha256::digest(&bytes[..end])[..] != bytes[end..] {
            return Err("is not whole, or was changed");
        }
        let mut saved = Self {
            bytes,
            age: Duration::ZERO,
        };
        let ages = saved.records().map(|record| Ok(record?.age()));
        let ages: Result<Vec<_>, &'static str> = ages.collect();
        saved.age = ages?.into_iter().max().unwrap_or_default();
        Ok(saved)
    }

    fn records(&self) -> impl Iterator<Item = Result<Record<'_>, &'static str>> {
        let mut rest = &self.bytes[MAGIC.len()..self.bytes.len() - DIGEST_BYTES];
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let record = take_record(&mut rest).ok_or("has a record that cannot be read");
            if record.is_err() {
                rest = &[];
            }
            Some(record)
        })
    }

    /// Meters first, then groups, those that others hand packets to before these, then entries, as each refers to the former.
    fn restore(&self, pipeline: &mut Pipeline, now: Duration, restored: &mut Restored) {
        let mut groups = Vec::new();
        for record in self.records().flatten() {
            match record {
                Record::Meter(config, stats) => {
                    let outcome = pipeline.restore_meter(&config, &stats, now);
                    restored.meters += restored.note(outcome.is_ok());
                }
                Record::Group(desc, stats) => groups.push((desc, stats)),
                Record::Port(..) | Record::Flow { .. } => {}
            }
        }
        loop {
            let waiting = groups.len();
            groups.retain(|(desc, stats)| pipeline.restore_group(desc, stats, now).is_err());
            restored.groups += waiting - groups.len();
            if groups.len() == waiting {
                break;
            }
        }
        restored.refused += groups.len();
        for record in self.records().flatten() {
            if let Record::Flow { kind, idle, stats } = record {
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

impl Restored {
    /// 1 for what was put back; else it is counted as refused.
    fn note(&mut self, is_restored: bool) -> usize {
        self.refused += usize::from(!is_restored);
        is_restored.into()
    }
}

fn io_error(what: &'static str, file: &Path, error: io::Error) -> StateError {
    let file = file.to_owned();
    StateError::Io { what, file, error }
}

/// A file beside another.
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

/// Writes a file beside, and puts it in the place of the other when it is whole. If that fails, nothing is left beside.
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

/// Writes a file, whole and on the disk.
fn write_beside(
    beside: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // One that a switch that was killed has left.
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
