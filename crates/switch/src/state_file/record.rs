//! One record of a state file, read.

use std::time::Duration;
use urtica_wire::{
    Element, FlowStats, GroupDesc, GroupStats, List, Message, MeterConfig, MeterStats,
    MultipartReplyBody, PortNo, Version, split_frame,
};

/// The length of a record's kind and length.
const HEADER_BYTES: usize = 5;

/// What a record holds.
pub(super) enum Record<'a> {
    Port(PortNo, &'a str),
    Flow {
        kind: FlowKind,
        /// The time since its last packet.
        idle: Duration,
        stats: FlowStats<'a>,
    },
    Group(GroupDesc<'a>, GroupStats<'a>),
    Meter(MeterConfig<'a>, MeterStats<'a>),
}

/// Which version added an entry, and what statistics of 1.3 do not report of it.
pub(super) enum FlowKind {
    Of13,
    Of10 { pcp_of_untagged: Option<u8> },
}

/// A `dl_vlan_pcp` that an entry of 1.0 does not have.
pub(super) const NO_PCP: u8 = u8::MAX;

impl Record<'_> {
    /// How old it is.
    pub fn age(&self) -> Duration {
        let (seconds, nanoseconds) = match self {
            Self::Port(..) => (0, 0),
            Self::Flow { stats, .. } => (stats.duration_sec, stats.duration_nsec),
            Self::Group(_, stats) => (stats.duration_sec, stats.duration_nsec),
            Self::Meter(_, stats) => (stats.duration_sec, stats.duration_nsec),
        };
        Duration::from_secs(seconds.into()) + Duration::from_nanos(nanoseconds.into())
    }
}

/// Takes a record off the front; `None` where it is malformed.
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

/// The rest of a record of a flow entry.
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

/// The body of the multipart reply of 1.3 that this is.
fn reply(frame: &[u8]) -> Option<MultipartReplyBody<'_>> {
    match Message::decode(frame).ok()? {
        (header, Message::MultipartReply(reply)) if header.version == Version::Of13.to_wire() => {
            Some(reply.body)
        }
        _ => None,
    }
}

/// The only row.
fn only<'a, T: Element<'a> + Clone>(rows: &List<'a, T>) -> Option<T> {
    let mut all = rows.iter();
    let first = all.next()?;
    all.next().is_none().then_some(first)
}
