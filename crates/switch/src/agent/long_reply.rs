//! Multipart replies that may be long, written part by part as the controller reads: entries, groups and meters.
//!
//! **Why.** The entries of a full table take a hundred megabytes in messages, and a second to write. A part is one message,
//! and costs a look at so many entries as packets can wait for.
//!
//! **What is consistent.** Between two parts entries, groups and meters may change. What is there during the whole request is
//! told once; what is deleted, or added, may be told or not, and an entry that was added after the request is not
//! ([`FlowWalk`] says more). A row's counters are those of the moment when its part was written.
//!
//! **Order.** While a reply is being written the controller's barriers and multipart requests wait for it, and with them what
//! is behind them (1.3.5 section 6.2 lets other messages be carried out before).

use super::reply::{Added, Part};
use super::requests::Request;
use super::stats;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use urtica_pipeline::{FlowEntry, FlowWalk, Pipeline};
use urtica_wire::{
    AggregateStats, Element, EncodeError, ErrorCode, GROUP_ALL, List, Message, MultipartFlags,
    MultipartReply, MultipartReplyBody, MultipartRequestBody, Version,
};

/// A reply of which parts are still to be written.
#[derive(Debug)]
pub(crate) struct LongReply {
    version: Version,
    xid: u32,
    rows: Rows,
}

/// What is still to be told.
#[derive(Debug)]
enum Rows {
    Flows {
        walk: FlowWalk,
        /// What the walk has found.
        found: VecDeque<Arc<FlowEntry>>,
    },
    Sum {
        walk: FlowWalk,
        sum: AggregateStats,
    },
    /// Those with these numbers.
    Groups(RangeInclusive<u32>),
    GroupDescs(RangeInclusive<u32>),
    Meters(RangeInclusive<u32>),
    MeterConfigs(RangeInclusive<u32>),
}

impl LongReply {
    /// The reply to a request; `None` where it is not of this kind.
    ///
    /// The specification names no error for a group that does not exist; as in Open vSwitch, there is nothing to tell of it.
    ///
    /// # Errors
    /// The specification's error where the request is wrong.
    pub fn begin(
        pipeline: &Pipeline,
        request: Request,
        asked: &MultipartRequestBody,
    ) -> Result<Option<Self>, ErrorCode> {
        let rows = match asked {
            MultipartRequestBody::Flow(wanted) => Rows::Flows {
                walk: pipeline.walk_flows(wanted)?,
                found: VecDeque::new(),
            },
            MultipartRequestBody::Aggregate(wanted) => Rows::Sum {
                walk: pipeline.walk_flows(wanted)?,
                sum: AggregateStats {
                    packet_count: 0,
                    byte_count: 0,
                    flow_count: 0,
                },
            },
            MultipartRequestBody::Group(GROUP_ALL) => Rows::Groups(0..=u32::MAX),
            MultipartRequestBody::Group(id) => Rows::Groups(*id..=*id),
            MultipartRequestBody::GroupDesc => Rows::GroupDescs(0..=u32::MAX),
            MultipartRequestBody::Meter(id) => Rows::Meters(pipeline.meter_ids(*id)?),
            MultipartRequestBody::MeterConfig(id) => Rows::MeterConfigs(pipeline.meter_ids(*id)?),
            _ => return Ok(None),
        };
        Ok(Some(Self {
            version: request.version,
            xid: request.xid,
            rows,
        }))
    }

    /// Appends a part to `out`, or nothing where `looks` entries, which are taken off, had nothing to tell. Returns whether the
    /// reply is complete.
    pub fn write_part(
        &mut self,
        pipeline: &Pipeline,
        now: Duration,
        looks: &mut usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let written = match &mut self.rows {
            Rows::Sum { walk, sum } => {
                let found = walk.go_on(pipeline, looks);
                found.iter().for_each(|entry| add(sum, entry));
                match walk.is_over() {
                    true => write_sum(self.version, self.xid, *sum, out).map(|()| true),
                    false => Ok(false),
                }
            }
            _ => self.write_rows(pipeline, now, looks, out),
        };
        written.unwrap_or_else(|error| {
            urtica_log::debug!(about: "long reply", %error, "a multipart reply is not sent");
            true
        })
    }

    fn write_rows(
        &mut self,
        pipeline: &Pipeline,
        now: Duration,
        looks: &mut usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, EncodeError> {
        let mut part = Part::begin(self.version, self.xid, self.rows.empty_body(), out)?;
        let is_over = match &mut self.rows {
            Rows::Flows { walk, found } => {
                let row = |entry: &FlowEntry| stats::flow(self.version, entry, now);
                add_flows(&mut part, pipeline, walk, found, row, looks)
            }
            Rows::Groups(ids) => {
                let rows = pipeline.group_stats_of(ids.clone(), now);
                add_numbered(&mut part, ids, rows, |row| row.group_id, looks)
            }
            Rows::GroupDescs(ids) => {
                let rows = pipeline.group_descs_of(ids.clone());
                add_numbered(&mut part, ids, rows, |row| row.group_id, looks)
            }
            Rows::Meters(ids) => {
                let rows = pipeline.meter_stats_of(ids.clone(), now);
                add_numbered(&mut part, ids, rows, |row| row.meter_id, looks)
            }
            Rows::MeterConfigs(ids) => {
                let rows = pipeline.meter_configs_of(ids.clone());
                add_numbered(&mut part, ids, rows, |row| row.meter_id, looks)
            }
            Rows::Sum { .. } => true,
        };
        match is_over || part.has_rows() {
            true => part.finish(!is_over),
            false => part.cancel(),
        }
        Ok(is_over)
    }
}

impl Rows {
    /// The reply's body without rows.
    fn empty_body(&self) -> MultipartReplyBody<'static> {
        match self {
            Self::Flows { .. } => MultipartReplyBody::Flow(List::default()),
            Self::Sum { sum, .. } => MultipartReplyBody::Aggregate(*sum),
            Self::Groups(_) => MultipartReplyBody::Group(List::default()),
            Self::GroupDescs(_) => MultipartReplyBody::GroupDesc(List::default()),
            Self::Meters(_) => MultipartReplyBody::Meter(List::default()),
            Self::MeterConfigs(_) => MultipartReplyBody::MeterConfig(List::default()),
        }
    }
}

/// Adds the entries that a walk finds to a part; whether they were the last.
fn add_flows<'a, T: Element<'a>>(
    part: &mut Part,
    pipeline: &Pipeline,
    walk: &mut FlowWalk,
    found: &mut VecDeque<Arc<FlowEntry>>,
    row: impl Fn(&FlowEntry) -> T,
    looks: &mut usize,
) -> bool {
    loop {
        while let Some(entry) = found.front() {
            if part.add(&row(entry)) == Added::Full {
                return false;
            }
            found.pop_front();
        }
        match (walk.is_over(), *looks) {
            (true, _) => return true,
            (false, 0) => return false,
            (false, _) => found.extend(walk.go_on(pipeline, looks)),
        }
    }
}

/// Adds rows to a part, in the order of their numbers; whether they were the last. `ids` begins with the next number then.
fn add_numbered<'a, T: Element<'a>>(
    part: &mut Part,
    ids: &mut RangeInclusive<u32>,
    rows: impl Iterator<Item = T>,
    id_of: impl Fn(&T) -> u32,
    looks: &mut usize,
) -> bool {
    for row in rows {
        if *looks == 0 || part.add(&row) == Added::Full {
            *ids = id_of(&row)..=*ids.end();
            return false;
        }
        *looks -= 1;
    }
    true
}

fn add(sum: &mut AggregateStats, entry: &FlowEntry) {
    let counted = entry.counted();
    sum.packet_count += counted.packets;
    sum.byte_count += counted.bytes;
    sum.flow_count += 1;
}

fn write_sum(
    version: Version,
    xid: u32,
    sum: AggregateStats,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let reply = MultipartReply {
        flags: MultipartFlags::empty(),
        body: MultipartReplyBody::Aggregate(sum),
    };
    Message::MultipartReply(reply).encode(version, xid, out)
}
