//! Writing state files.

use super::key::NO_PCP;
use super::queues::put_queues;
use super::record::RunRecord;
use super::{MAGIC, StateView};
use crate::queues::NamedQueues;
use crate::shared::Shared;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;
use urtica_pipeline::FlowEntry;
use urtica_wire::{
    GroupDesc, GroupStats, Message, MeterConfig, MeterStats, MultipartFlags, MultipartReply,
    MultipartReplyBody, PortNo, Version,
};

/// Number of entries visited before others may change entries.
const LOOKS: usize = 512;

/// Writes records, and then their digest.
pub(super) struct Writer<'out> {
    out: &'out mut dyn Write,
    digest: Sha256,
    record: Vec<u8>,
    /// The number of objects that 1.3 cannot express, or that do not fit into a message.
    left_out: usize,
}

impl<'out> Writer<'out> {
    pub fn new(out: &'out mut dyn Write) -> Self {
        Self {
            out,
            digest: Sha256::new(),
            record: Vec::new(),
            left_out: 0,
        }
    }

    /// Writes the whole file. `between` is called between steps, since changes may have to be written elsewhere.
    ///
    /// # Errors
    /// The errors of `out` and of `between`.
    pub fn write_all(
        &mut self,
        mut view: StateView,
        run: RunRecord,
        numbers: &BTreeMap<String, PortNo>,
        shared: &Shared,
        between: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let now = run.now;
        self.put(MAGIC)?;
        self.record(|out| run_record(out, run))?;
        for (name, number) in numbers {
            self.record(|out| {
                put_port(out, name, *number);
                Some(())
            })?;
        }
        for (name, queues) in &view.queues {
            self.record(|out| queues_record(out, name, queues))?;
        }
        while !view.flows.is_over() {
            let found = view
                .flows
                .go_on(&shared.pipeline(), &mut LOOKS.clone())
                .map_err(io::Error::other)?;
            for entry in found {
                self.record(|out| flow_record(out, &entry, now))?;
            }
            between()?;
        }
        for (id, group) in view.groups {
            let (desc, stats) = (group.to_desc(id), group.to_stats(id, 0, now));
            self.record(|out| group_record(out, desc, stats))?;
        }
        for (id, meter) in view.meters {
            let (config, stats) = (meter.to_config(id), meter.to_stats(id, 0, now));
            self.record(|out| meter_record(out, config, stats))?;
        }
        if self.left_out > 0 {
            tracing::warn!(
                count = self.left_out,
                "cannot save entries and groups: they are too long"
            );
        }
        let digest = std::mem::take(&mut self.digest).finalize();
        self.out.write_all(&digest)
    }

    /// Writes a record, unless `fill` cannot.
    fn record(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> io::Result<()> {
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        match fill(&mut record) {
            Some(()) => self.put(&record)?,
            None => self.left_out += 1,
        }
        self.record = record;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.out.write_all(bytes)
    }
}

/// Appends a record: its kind, its length and what `fill` appends, or nothing if `fill` cannot.
pub(super) fn put_record(
    out: &mut Vec<u8>,
    kind: u8,
    fill: impl FnOnce(&mut Vec<u8>) -> Option<()>,
) -> Option<()> {
    let start = out.len();
    out.extend([kind, 0, 0, 0, 0]);
    if fill(out).is_none() {
        out.truncate(start);
        return None;
    }
    let length = (out.len() - start - 5) as u32;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    Some(())
}

fn run_record(out: &mut Vec<u8>, run: RunRecord) -> Option<()> {
    put_record(out, b'N', |out| {
        out.extend(run.id.0);
        out.extend(run.previous.map_or([0; 16], |previous| previous.0));
        out.extend(run.sequence.to_be_bytes());
        out.extend((run.now.as_nanos() as u64).to_be_bytes());
        Some(())
    })
}

/// Appends the record of an entry.
pub(super) fn flow_record(out: &mut Vec<u8>, entry: &FlowEntry, now: Duration) -> Option<()> {
    let used = Duration::from_nanos(entry.counted().last_used_ns).max(entry.added);
    let idle_ns = now.saturating_sub(used).as_nanos() as u64;
    let (kind, pcp) = match entry.version {
        Version::Of13 => (b'F', None),
        Version::Of10 => (b'E', Some(entry.match_.pcp_of_untagged().unwrap_or(NO_PCP))),
    };
    put_record(out, kind, |out| {
        out.extend(pcp);
        out.extend(idle_ns.to_be_bytes());
        let rows = [entry.to_stats(now)].into_iter().collect();
        append(out, MultipartReplyBody::Flow(rows))
    })
}

/// Appends the record of a group.
pub(super) fn group_record(
    out: &mut Vec<u8>,
    desc: GroupDesc<'static>,
    stats: GroupStats<'static>,
) -> Option<()> {
    put_record(out, b'G', |out| {
        let desc = MultipartReplyBody::GroupDesc([desc].into_iter().collect());
        append(out, desc)?;
        append(
            out,
            MultipartReplyBody::Group([stats].into_iter().collect()),
        )
    })
}

/// Appends the record of a meter.
pub(super) fn meter_record(
    out: &mut Vec<u8>,
    config: MeterConfig<'static>,
    stats: MeterStats<'static>,
) -> Option<()> {
    put_record(out, b'M', |out| {
        let config = MultipartReplyBody::MeterConfig([config].into_iter().collect());
        append(out, config)?;
        append(
            out,
            MultipartReplyBody::Meter([stats].into_iter().collect()),
        )
    })
}

/// Appends the record of the queues of a port's name; `None` if the name is too long.
pub(super) fn queues_record(out: &mut Vec<u8>, name: &str, queues: &NamedQueues) -> Option<()> {
    put_record(out, b'Q', |out| put_queues(out, name, queues))
}

/// Appends a multipart reply of 1.3; returns `None` if it is too long for a message.
fn append(record: &mut Vec<u8>, body: MultipartReplyBody) -> Option<()> {
    let flags = MultipartFlags::empty();
    let reply = Message::MultipartReply(MultipartReply { flags, body });
    reply.encode(Version::Of13, 0, record).ok()
}

/// Appends the record of a port's number.
pub(super) fn put_port(out: &mut Vec<u8>, name: &str, number: PortNo) {
    put_record(out, b'P', |out| {
        out.extend(number.0.to_be_bytes());
        out.extend(name.as_bytes());
        Some(())
    });
}
