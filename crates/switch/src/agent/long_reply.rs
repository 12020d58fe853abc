//! Multipart replies that may be long, which are written in parts as the controller reads: entries, groups and meters.
//!
//! **Why.** Reporting the entries of a full table needs a hundred megabytes of messages, and a second to write them. A part
//! is one message, and visits only as many entries as packets can wait for.
//!
//! **Consistency.** A reply shows the entries, groups or meters as they were when it started, although they may change
//! between two parts: changes need not wait for a controller that reads slowly. Entries are read through a view, which keeps
//! a limited number of changed entries (see [`FlowWalk`]); groups and meters are fewer, and the reply has a list of them. A
//! reply starts between two changes, never in the middle of one that is made in steps. A row's counters are read when its
//! part is written.
//!
//! **Errors.** If too many entries change before a controller has read them, the reply ends with an error, and without a last
//! part.
//!
//! **Order.** Until a reply is complete, the controller's barriers and multipart requests wait, and so do all messages after
//! them. Other messages may be handled before (1.3.5 section 6.2).

use super::reply::{Added, Part};
use super::requests::Request;
use super::stats;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use urtica_pipeline::{FlowEntry, FlowWalk, Group, Meter, Pipeline, ViewLost};
use urtica_wire::{
    AggregateStats, Element, EncodeError, ErrorCode, GROUP_ALL, List, Message, MultipartFlags,
    MultipartReply, MultipartReplyBody, MultipartRequestBody, Version,
};

/// The rest of a reply.
#[derive(Debug)]
pub(crate) struct LongReply {
    version: Version,
    xid: u32,
    rows: Rows,
}

/// The rows that have not been written yet.
#[derive(Debug)]
enum Rows {
    Flows {
        walk: FlowWalk,
        /// Entries that the walk has found.
        found: VecDeque<Arc<FlowEntry>>,
    },
    Sum {
        walk: FlowWalk,
        sum: AggregateStats,
    },
    Groups(Numbered<Group>),
    GroupDescs(Numbered<Group>),
    Meters(Numbered<Meter>),
    MeterConfigs(Numbered<Meter>),
}

/// Groups or meters with their numbers, as they were when the reply started.
type Numbered<T> = VecDeque<(u32, Arc<T>)>;

/// Result of writing a part of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// More parts follow.
    Part,
    /// The reply is complete.
    All,
    /// The reply cannot be completed: too many of its entries have changed.
    Lost,
}

impl LongReply {
    /// Creates the reply to a request; returns `None` for a request of another kind.
    ///
    /// The specification defines no error for a missing group. As in Open vSwitch, the reply then has no row.
    ///
    /// # Errors
    /// The specification's error if the request is invalid.
    pub fn begin(
        pipeline: &Pipeline,
        request: Request,
        asked: &MultipartRequestBody,
    ) -> Result<Option<Self>, ErrorCode> {
        let groups = |ids| pipeline.list_groups(ids).into();
        let meters = |id| {
            let ids = pipeline.meter_ids(id)?;
            Ok(pipeline.list_meters(ids).into())
        };
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
            MultipartRequestBody::Group(GROUP_ALL) => Rows::Groups(groups(0..=u32::MAX)),
            MultipartRequestBody::Group(id) => Rows::Groups(groups(*id..=*id)),
            MultipartRequestBody::GroupDesc => Rows::GroupDescs(groups(0..=u32::MAX)),
            MultipartRequestBody::Meter(id) => Rows::Meters(meters(*id)?),
            MultipartRequestBody::MeterConfig(id) => Rows::MeterConfigs(meters(*id)?),
            _ => return Ok(None),
        };
        Ok(Some(Self {
            version: request.version,
            xid: request.xid,
            rows,
        }))
    }

    /// Returns the xid of the request.
    pub fn xid(&self) -> u32 {
        self.xid
    }

    /// Appends a part to `out`, or nothing if no row was found among `looks` entries. Reduces `looks` by the number of entries
    /// visited.
    pub fn write_part(
        &mut self,
        pipeline: &Pipeline,
        now: Duration,
        looks: &mut usize,
        out: &mut Vec<u8>,
    ) -> Written {
        let written = match &mut self.rows {
            Rows::Sum { walk, sum } => {
                let Ok(found) = walk.go_on(pipeline, looks) else {
                    return Written::Lost;
                };
                found.iter().for_each(|entry| add(sum, entry));
                match walk.is_over() {
                    true => write_sum(self.version, self.xid, *sum, out).map(|()| Written::All),
                    false => Ok(Written::Part),
                }
            }
            _ => self.write_rows(pipeline, now, looks, out),
        };
        written.unwrap_or_else(|error| {
            urtica_log::debug!(about: "long reply", %error, "cannot encode a multipart reply; not sending it");
            Written::All
        })
    }

    fn write_rows(
        &mut self,
        pipeline: &Pipeline,
        now: Duration,
        looks: &mut usize,
        out: &mut Vec<u8>,
    ) -> Result<Written, EncodeError> {
        let mut part = Part::begin(self.version, self.xid, self.rows.empty_body(), out)?;
        let written = match &mut self.rows {
            Rows::Flows { walk, found } => {
                let row = |entry: &FlowEntry| stats::flow(self.version, entry, now);
                add_flows(&mut part, pipeline, walk, found, row, looks)
            }
            Rows::Groups(groups) => {
                let row = |id, group: &Group| pipeline.group_row(id, group, now);
                add_numbered(&mut part, groups, row, looks)
            }
            Rows::GroupDescs(groups) => {
                let row = |id, group: &Group| group.to_desc(id);
                add_numbered(&mut part, groups, row, looks)
            }
            Rows::Meters(meters) => {
                let row = |id, meter: &Meter| pipeline.meter_row(id, meter, now);
                add_numbered(&mut part, meters, row, looks)
            }
            Rows::MeterConfigs(meters) => {
                let row = |id, meter: &Meter| meter.to_config(id);
                add_numbered(&mut part, meters, row, looks)
            }
            Rows::Sum { .. } => Written::All,
        };
        match written {
            Written::All => part.finish(false),
            Written::Part if part.has_rows() => part.finish(true),
            Written::Part | Written::Lost => part.cancel(),
        }
        Ok(written)
    }
}

impl Rows {
    /// Returns the reply's body without rows.
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

/// Adds the entries that a walk finds to a part.
fn add_flows<'a, T: Element<'a>>(
    part: &mut Part,
    pipeline: &Pipeline,
    walk: &mut FlowWalk,
    found: &mut VecDeque<Arc<FlowEntry>>,
    row: impl Fn(&FlowEntry) -> T,
    looks: &mut usize,
) -> Written {
    loop {
        while let Some(entry) = found.front() {
            if part.add(&row(entry)) == Added::Full {
                return Written::Part;
            }
            found.pop_front();
        }
        if walk.is_over() {
            return Written::All;
        }
        if *looks == 0 {
            return Written::Part;
        }
        match walk.go_on(pipeline, looks) {
            Ok(more) => found.extend(more),
            Err(ViewLost) => return Written::Lost,
        }
    }
}

/// Adds rows of groups or meters to a part, by number.
fn add_numbered<'a, T, R: Element<'a>>(
    part: &mut Part,
    numbered: &mut Numbered<T>,
    row: impl Fn(u32, &T) -> R,
    looks: &mut usize,
) -> Written {
    while let Some((id, one)) = numbered.front() {
        if *looks == 0 || part.add(&row(*id, one)) == Added::Full {
            return Written::Part;
        }
        *looks -= 1;
        numbered.pop_front();
    }
    Written::All
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
