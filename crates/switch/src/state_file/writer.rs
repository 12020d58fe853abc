//! A state file in the making.

use super::MAGIC;
use super::record::NO_PCP;
use crate::shared::Shared;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;
use urtica_pipeline::{FlowEntry, Pipeline};
use urtica_wire::{
    FlowStatsRequest, METER_ALL, Message, MultipartFlags, MultipartReply, MultipartReplyBody,
    PortNo, Version,
};

/// At how many entries is looked before others may change them.
const LOOKS: usize = 512;

/// Writes records and, at the end, their digest.
pub(super) struct Writer<'out> {
    out: &'out mut dyn Write,
    digest: Sha256,
    record: Vec<u8>,
    /// What 1.3 has no words for, or no message room.
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

    /// Writes the whole file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_all(
        &mut self,
        shared: &Shared,
        numbers: &BTreeMap<String, PortNo>,
        now: Duration,
    ) -> io::Result<()> {
        self.put(MAGIC)?;
        for (name, number) in numbers {
            self.record(b'P', |record| {
                record.extend(number.0.to_be_bytes());
                record.extend(name.as_bytes());
                Some(())
            })?;
        }
        self.write_flows(shared, now)?;
        self.write_groups(&shared.pipeline(), now)?;
        self.write_meters(&shared.pipeline(), now)?;
        if self.left_out > 0 {
            tracing::warn!(
                count = self.left_out,
                "entries and groups are too long to be saved"
            );
        }
        let digest = std::mem::take(&mut self.digest).finalize();
        self.out.write_all(&digest)
    }

    fn write_flows(&mut self, shared: &Shared, now: Duration) -> io::Result<()> {
        let walk = shared.pipeline().walk_flows(&FlowStatsRequest::default());
        let mut walk = walk.map_err(|_| io::ErrorKind::InvalidInput)?;
        while !walk.is_over() {
            let found = walk.go_on(&shared.pipeline(), &mut LOOKS.clone());
            let found = found.map_err(io::Error::other)?;
            for entry in found {
                self.write_flow(&entry, now)?;
            }
        }
        Ok(())
    }

    fn write_flow(&mut self, entry: &FlowEntry, now: Duration) -> io::Result<()> {
        let used = Duration::from_nanos(entry.counted().last_used_ns).max(entry.added);
        let idle_ns = now.saturating_sub(used).as_nanos() as u64;
        let (kind, pcp) = match entry.version {
            Version::Of13 => (b'F', None),
            Version::Of10 => (b'E', Some(entry.match_.pcp_of_untagged().unwrap_or(NO_PCP))),
        };
        self.record(kind, |record| {
            record.extend(pcp);
            record.extend(idle_ns.to_be_bytes());
            let rows = [entry.to_stats(now)].into_iter().collect();
            append(record, MultipartReplyBody::Flow(rows))
        })
    }

    fn write_groups(&mut self, pipeline: &Pipeline, now: Duration) -> io::Result<()> {
        let stats = pipeline.group_stats_of(0..=u32::MAX, now);
        for (desc, stats) in pipeline.group_descs().into_iter().zip(stats) {
            self.record(b'G', |record| {
                append(
                    record,
                    MultipartReplyBody::GroupDesc([desc].into_iter().collect()),
                )?;
                append(
                    record,
                    MultipartReplyBody::Group([stats].into_iter().collect()),
                )
            })?;
        }
        Ok(())
    }

    fn write_meters(&mut self, pipeline: &Pipeline, now: Duration) -> io::Result<()> {
        let all = pipeline.meter_ids(METER_ALL);
        let ids = all.map_err(|_| io::ErrorKind::InvalidInput)?;
        let stats = pipeline.meter_stats_of(ids.clone(), now);
        for (config, stats) in pipeline.meter_configs_of(ids).zip(stats) {
            self.record(b'M', |record| {
                append(
                    record,
                    MultipartReplyBody::MeterConfig([config].into_iter().collect()),
                )?;
                append(
                    record,
                    MultipartReplyBody::Meter([stats].into_iter().collect()),
                )
            })?;
        }
        Ok(())
    }

    /// Writes a record, unless `fill` cannot.
    fn record(
        &mut self,
        kind: u8,
        fill: impl FnOnce(&mut Vec<u8>) -> Option<()>,
    ) -> io::Result<()> {
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        if fill(&mut record).is_some() {
            self.put(&[kind])?;
            self.put(&(record.len() as u32).to_be_bytes())?;
            self.put(&record)?;
        } else {
            self.left_out += 1;
        }
        self.record = record;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.out.write_all(bytes)
    }
}

/// Appends a multipart reply of 1.3; `None` where it is too long for a message.
fn append(record: &mut Vec<u8>, body: MultipartReplyBody) -> Option<()> {
    let flags = MultipartFlags::empty();
    let reply = Message::MultipartReply(MultipartReply { flags, body });
    reply.encode(Version::Of13, 0, record).ok()
}
