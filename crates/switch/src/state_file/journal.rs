//! The journal next to a state file: the changes since the file was written.
//!
//! **Format.** A line with the format's version, the [`RunId`] of the file that it continues, and then frames. A frame
//! consists of a number of bytes in 4 bytes, the number of its last change (all ones for port numbers, which are not numbered)
//! and the switch's time in nanoseconds in 8 bytes each, records as in the state file, and 16 bytes of the SHA-256 digest of
//! the run's id and all previous bytes. Records in a journal may also remove objects that others have added:
//!
//! | kind | meaning |
//! | --- | --- |
//! | `f` | the entry with this key was removed: its version, `dl_vlan_pcp` as in `E`, and a flow mod of OpenFlow 1.3 with table, priority and match |
//! | `g`, `m` | the group or meter with this number, in 4 bytes, was removed |
//! | `q` | the port with this name has the queues with which the switch is started |
//!
//! **Safety.** Frames are only appended. A frame that is incomplete, or has a wrong digest, ends the journal: it was being
//! written when the machine or the switch stopped, and so were all bytes after it.

use super::key::{ID_BYTES, RunId, flow_key};
use super::writer::{flow_record, group_record, meter_record, put_record, queues_record};
use crate::queues::NamedQueues;
use sha2::{Digest, Sha256};
use std::ops::Range;
use std::time::Duration;
use urtica_pipeline::{FlowEntry, StateChange};
use urtica_wire::Version;

/// The start of a journal.
pub(super) const MAGIC: &[u8] = b"urtica switch journal 1\n";

/// Length of the header before the frames.
pub(super) const HEADER_BYTES: usize = MAGIC.len() + ID_BYTES;

/// Replaces the number of the last change, in frames that apply whichever changes the state file contains.
pub(super) const NO_CHANGE: u64 = u64::MAX;

const DIGEST_BYTES: usize = 16;
/// Length of a frame's header: the number of bytes, the number of the last change, and the time.
const FRAME_HEADER_BYTES: usize = 4 + 8 + 8;

/// A frame of a journal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// The number of the last change in it.
    pub sequence: u64,
    /// The time when it was written.
    pub at: Duration,
    /// The location of its records in the journal.
    pub records: Range<usize>,
}

/// Returns the header of a journal.
pub(super) fn header(id: RunId) -> Vec<u8> {
    [MAGIC, &id.0].concat()
}

/// Returns the run that a journal continues; `None` if it is not a journal of this version.
pub(super) fn run_of(journal: &[u8]) -> Option<RunId> {
    let rest = journal.strip_prefix(MAGIC)?;
    Some(RunId(*rest.first_chunk()?))
}

/// Appends a frame with these records.
pub(super) fn put_frame(
    id: RunId,
    sequence: u64,
    now: Duration,
    records: &[u8],
    out: &mut Vec<u8>,
) {
    let start = out.len();
    out.extend((records.len() as u32).to_be_bytes());
    out.extend(sequence.to_be_bytes());
    out.extend((now.as_nanos() as u64).to_be_bytes());
    out.extend(records);
    let digest = digest(id, &out[start..]);
    out.extend(digest);
}

/// Returns the complete frames of a journal, and their length including the header's.
pub(super) fn frames(id: RunId, journal: &[u8]) -> (Vec<Frame>, usize) {
    let (mut frames, mut end) = (Vec::new(), HEADER_BYTES);
    while let Some((frame, len)) = journal.get(end..).and_then(|rest| frame(id, rest)) {
        let records = end + frame.records.start..end + frame.records.end;
        frames.push(Frame { records, ..frame });
        end += len;
    }
    (frames, end)
}

/// Returns the frame at the front, and its length.
fn frame(id: RunId, bytes: &[u8]) -> Option<(Frame, usize)> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (sequence, rest) = rest.split_first_chunk()?;
    let (at, _) = rest.split_first_chunk()?;
    let end = FRAME_HEADER_BYTES.checked_add(u32::from_be_bytes(*len) as usize)?;
    let found = bytes.get(end..end.checked_add(DIGEST_BYTES)?)?;
    let frame = Frame {
        sequence: u64::from_be_bytes(*sequence),
        at: Duration::from_nanos(u64::from_be_bytes(*at)),
        records: FRAME_HEADER_BYTES..end,
    };
    (digest(id, &bytes[..end]) == found).then_some((frame, end + DIGEST_BYTES))
}

fn digest(id: RunId, frame: &[u8]) -> [u8; DIGEST_BYTES] {
    let whole = Sha256::new().chain_update(id.0).chain_update(frame);
    let mut digest = [0; DIGEST_BYTES];
    digest.copy_from_slice(&whole.finalize()[..DIGEST_BYTES]);
    digest
}

/// Appends the record of a change; `None` if 1.3 has no message for it.
pub(super) fn put_change(change: &StateChange, now: Duration, out: &mut Vec<u8>) -> Option<()> {
    match change {
        StateChange::Flow(entry) => flow_record(out, entry, now),
        StateChange::FlowRemoved(entry) => put_record(out, b'f', |out| {
            out.extend(key_of_entry(entry)?);
            Some(())
        }),
        StateChange::Group(id, Some(group)) => {
            group_record(out, group.to_desc(*id), group.to_stats(*id, 0, now))
        }
        StateChange::Meter(id, Some(meter)) => {
            meter_record(out, meter.to_config(*id), meter.to_stats(*id, 0, now))
        }
        StateChange::Group(id, None) => put_number(out, b'g', *id),
        StateChange::Meter(id, None) => put_number(out, b'm', *id),
        _ => None,
    }
}

/// Appends the record of changed queues of a port's name; `None` if the name is too long.
pub(super) fn put_queues(name: &str, queues: &NamedQueues, out: &mut Vec<u8>) -> Option<()> {
    if queues.has_changed() {
        return queues_record(out, name, queues);
    }
    put_record(out, b'q', |out| {
        out.extend(name.as_bytes());
        Some(())
    })
}

fn put_number(out: &mut Vec<u8>, kind: u8, id: u32) -> Option<()> {
    put_record(out, kind, |out| {
        out.extend(id.to_be_bytes());
        Some(())
    })
}

fn key_of_entry(entry: &FlowEntry) -> Option<Vec<u8>> {
    let pcp = match entry.version {
        Version::Of10 => entry.match_.pcp_of_untagged(),
        Version::Of13 => None,
    };
    let match_ = entry.match_.to_wire();
    flow_key(entry.version, pcp, entry.table_id, entry.priority, &match_)
}
