//! The contents of records for a port's queues that were changed at run time.
//!
//! **Format.** The length of the port's name in 2 bytes and the name, then the queues with which the switch was started, and
//! then the current ones. Both start with the rate of all queues in 8 bytes (0: none) and the number of queues in 4 bytes.
//! Each queue has its number in 4 bytes, its minimum and maximum rates in 8 bytes each (0: none), its priority in 1 byte, and
//! its limits on frames and bytes in 4 bytes each.

use crate::queues::NamedQueues;
use crate::{MAX_QUEUES, PortQueues, Queue};
use std::collections::BTreeMap;

/// Appends the contents of a record; `None` if the port's name is too long.
pub(super) fn put_queues(out: &mut Vec<u8>, name: &str, queues: &NamedQueues) -> Option<()> {
    out.extend(u16::try_from(name.len()).ok()?.to_be_bytes());
    out.extend(name.as_bytes());
    put_settings(out, &queues.configured);
    put_settings(out, &queues.current);
    Some(())
}

fn put_settings(out: &mut Vec<u8>, settings: &PortQueues) {
    out.extend(settings.rate_bps.unwrap_or(0).to_be_bytes());
    out.extend((settings.queues.len() as u32).to_be_bytes());
    for (queue_id, queue) in &settings.queues {
        out.extend(queue_id.to_be_bytes());
        out.extend(queue.min_rate_bps.unwrap_or(0).to_be_bytes());
        out.extend(queue.max_rate_bps.unwrap_or(0).to_be_bytes());
        out.push(queue.priority);
        out.extend(queue.max_packets.to_be_bytes());
        out.extend(queue.max_bytes.to_be_bytes());
    }
}

/// Reads the contents of a record: a port's name and its queues.
pub(super) fn read_queues(mut body: &[u8]) -> Option<(&str, NamedQueues)> {
    let length = u16::from_be_bytes(take(&mut body)?);
    let (name, mut rest) = body.split_at_checked(length.into())?;
    let queues = NamedQueues {
        configured: read_settings(&mut rest)?,
        current: read_settings(&mut rest)?,
    };
    let name = std::str::from_utf8(name).ok()?;
    rest.is_empty().then_some((name, queues))
}

fn read_settings(rest: &mut &[u8]) -> Option<PortQueues> {
    let rate_bps = read_rate(rest)?;
    let count = u32::from_be_bytes(take(rest)?) as usize;
    if count > MAX_QUEUES {
        return None;
    }
    let queues = (0..count).map(|_| read_queue(rest));
    let queues = queues.collect::<Option<BTreeMap<_, _>>>()?;
    Some(PortQueues { rate_bps, queues })
}

fn read_queue(rest: &mut &[u8]) -> Option<(u32, Queue)> {
    let queue_id = u32::from_be_bytes(take(rest)?);
    let queue = Queue {
        min_rate_bps: read_rate(rest)?,
        max_rate_bps: read_rate(rest)?,
        priority: u8::from_be_bytes(take(rest)?),
        max_packets: u32::from_be_bytes(take(rest)?),
        max_bytes: u32::from_be_bytes(take(rest)?),
    };
    Some((queue_id, queue))
}

fn read_rate(rest: &mut &[u8]) -> Option<Option<u64>> {
    let rate_bps = u64::from_be_bytes(take(rest)?);
    Some((rate_bps != 0).then_some(rate_bps))
}

/// Removes bytes from the front.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*bytes)
}

#[cfg(test)]
mod tests;
