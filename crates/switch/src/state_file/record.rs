//! Reading the records of state files.

use super::key::{NO_PCP, RunId, flow_key};
use super::queues::read_queues;
use crate::queues::NamedQueues;
use std::time::Duration;
use urtica_wire::{
    Element, FlowStats, GroupDesc, GroupStats, List, Message, MeterConfig, MeterStats,
    MultipartReplyBody, PortNo, Version, split_frame,
};

/// Length of a record's kind and length.
const HEADER_BYTES: usize = 5;

/// The run that wrote a file, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunRecord {
    pub id: RunId,
    /// The previous run, whose journal the file already contains.
    pub previous: Option<RunId>,
    /// The number of the last change that the file contains.
    pub sequence: u64,
    /// The switch's time.
    pub now: Duration,
}

/// The contents of a record.
pub(super) enum Record<'a> {
    Run(RunRecord),
    /// The key of an entry that was removed.
    FlowGone(&'a [u8]),
    GroupGone(u32),
    MeterGone(u32),
    /// The name of a port that has the queues with which the switch is started.
    QueuesGone(&'a str),
    Port(PortNo, &'a str),
    Queues(&'a str, NamedQueues),
    Flow {
        kind: FlowKind,
        /// The time since the last packet.
        idle: Duration,
        stats: FlowStats<'a>,
    },
    Group(GroupDesc<'a>, GroupStats<'a>),
    Meter(MeterConfig<'a>, MeterStats<'a>),
}

/// The version that added an entry, with values that 1.3's statistics do not report.
pub(super) enum FlowKind {
    Of13,
    Of10 { pcp_of_untagged: Option<u8> },
}

impl Record<'_> {
    /// Returns the age of the record's object.
    pub fn age(&self) -> Duration {
        let (seconds, nanoseconds) = match self {
            Self::Flow { stats, .. } => (stats.duration_sec, stats.duration_nsec),
            Self::Group(_, stats) => (stats.duration_sec, stats.duration_nsec),
            Self::Meter(_, stats) => (stats.duration_sec, stats.duration_nsec),
            _ => (0, 0),
        };
        Duration::from_secs(seconds.into()) + Duration::from_nanos(nanoseconds.into())
    }
}

/// The identity of a record's object: a later record replaces an earlier one with an equal key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Run,
    Port(String),
    Queues(String),
    Flow(Vec<u8>),
    Group(u32),
    Meter(u32),
}

impl Record<'_> {
    /// Returns the record's key; `None` if an entry cannot be written in a message.
    pub fn key(&self) -> Option<Key> {
        Some(match self {
            Self::Run(_) => Key::Run,
            Self::Port(_, name) => Key::Port((*name).to_owned()),
            Self::Queues(name, _) | Self::QueuesGone(name) => Key::Queues((*name).to_owned()),
            Self::FlowGone(key) => Key::Flow(key.to_vec()),
            Self::Flow { kind, stats, .. } => {
                let (version, pcp) = match kind {
                    FlowKind::Of13 => (Version::Of13, None),
                    FlowKind::Of10 { pcp_of_untagged } => (Version::Of10, *pcp_of_untagged),
                };
                let (table_id, priority) = (stats.table_id, stats.priority);
                Key::Flow(flow_key(version, pcp, table_id, priority, &stats.match_)?)
            }
            Self::Group(desc, _) => Key::Group(desc.group_id),
            Self::GroupGone(id) => Key::Group(*id),
            Self::Meter(config, _) => Key::Meter(config.meter_id),
            Self::MeterGone(id) => Key::Meter(*id),
        })
    }

    /// Returns whether the record removes an object that earlier ones have added.
    pub fn is_removal(&self) -> bool {
        matches!(
            self,
            Self::FlowGone(_) | Self::GroupGone(_) | Self::MeterGone(_) | Self::QueuesGone(_)
        )
    }
}

/// Removes a record from the front; returns `None` if it is malformed.
pub(super) fn take_record<'a>(rest: &mut &'a [u8]) -> Option<Record<'a>> {
    let (header, after) = rest.split_at_checked(HEADER_BYTES)?;
    let length = u32::from_be_bytes(header[1..].try_into().ok()?);
    let (body, after) = after.split_at_checked(length as usize)?;
    *rest = after;
    match header[0] {
        b'P' => {
            let (number, name) = body.split_at_checked(4)?;
            let number = PortNo(u32::from_be_bytes(number.try_into().ok()?));
            Some(Record::Port(number, std::str::from_utf8(name).ok()?))
        }
        b'N' => {
            let (id, body) = body.split_first_chunk()?;
            let (previous, body) = body.split_first_chunk()?;
            let (sequence, body) = body.split_first_chunk()?;
            let now_ns = u64::from_be_bytes(body.try_into().ok()?);
            Some(Record::Run(RunRecord {
                id: RunId(*id),
                previous: (*previous != [0; 16]).then_some(RunId(*previous)),
                sequence: u64::from_be_bytes(*sequence),
                now: Duration::from_nanos(now_ns),
            }))
        }
        b'Q' => read_queues(body).map(|(name, queues)| Record::Queues(name, queues)),
        b'q' => Some(Record::QueuesGone(std::str::from_utf8(body).ok()?)),
        b'f' => Some(Record::FlowGone(body)),
        b'g' => Some(Record::GroupGone(u32::from_be_bytes(body.try_into().ok()?))),
        b'm' => Some(Record::MeterGone(u32::from_be_bytes(body.try_into().ok()?))),
        b'F' => flow(FlowKind::Of13, body),
        b'E' => {
            let (&pcp, body) = body.split_first()?;
            let pcp_of_untagged = (pcp != NO_PCP).then_some(pcp);
            flow(FlowKind::Of10 { pcp_of_untagged }, body)
        }
        b'G' => match two_replies(body)? {
            (MultipartReplyBody::GroupDesc(descs), MultipartReplyBody::Group(stats)) => {
                Some(Record::Group(only(&descs)?, only(&stats)?))
            }
            _ => None,
        },
        b'M' => match two_replies(body)? {
            (MultipartReplyBody::MeterConfig(configs), MultipartReplyBody::Meter(stats)) => {
                Some(Record::Meter(only(&configs)?, only(&stats)?))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Reads the rest of a record of a flow entry.
fn flow(kind: FlowKind, body: &[u8]) -> Option<Record<'_>> {
    let (idle, frame) = body.split_at_checked(8)?;
    let idle = Duration::from_nanos(u64::from_be_bytes(idle.try_into().ok()?));
    match reply(frame)? {
        MultipartReplyBody::Flow(rows) => Some(Record::Flow {
            kind,
            idle,
            stats: only(&rows)?,
        }),
        _ => None,
    }
}

fn two_replies(body: &[u8]) -> Option<(MultipartReplyBody<'_>, MultipartReplyBody<'_>)> {
    let (first, rest) = split_frame(body).ok()??;
    Some((reply(first)?, reply(rest)?))
}

/// Returns the body of a multipart reply of 1.3.
fn reply(frame: &[u8]) -> Option<MultipartReplyBody<'_>> {
    match Message::decode(frame).ok()? {
        (header, Message::MultipartReply(reply)) if header.version == Version::Of13.to_wire() => {
            Some(reply.body)
        }
        _ => None,
    }
}

/// Returns the only row, if there is exactly one.
fn only<'a, T: Element<'a> + Clone>(rows: &List<'a, T>) -> Option<T> {
    let mut all = rows.iter();
    let first = all.next()?;
    all.next().is_none().then_some(first)
}
