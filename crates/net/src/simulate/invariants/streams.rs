//! Streams arrive whole.
//!
//! A stream started during faults continues, once the network has recovered, until its last byte has arrived in order.

use super::{Faced, Invariant};
use crate::names::Names;
use crate::{FlowId, HostId, Net};
use std::time::Duration;

/// The time that the slowest streams need after recovery: senders retransmit after three seconds at most.
const DONE_WITHIN: Duration = Duration::from_secs(15);

/// Checks the received bytes of each stream.
pub(super) struct Streams;

impl Invariant for Streams {
    fn sentence(&self) -> &'static str {
        "streams arrive whole"
    }

    fn after_recovery(&mut self, net: &mut Net, faced: &Faced) -> Result<(), String> {
        let pairs = faced.connected_pairs(net);
        let mut streams = net.streams();
        streams.retain(|(from, to, ..)| pairs.contains(&(*from, *to)));
        let are_done = |net: &mut Net| streams.iter().all(|stream| is_done(net, stream.3));
        net.run_until(are_done, DONE_WITHIN);
        streams
            .into_iter()
            .try_for_each(|stream| check(net, stream))
    }
}

fn is_done(net: &Net, flow: FlowId) -> bool {
    net.flow_report(flow).is_ok_and(|report| report.is_done)
}

fn check(net: &Net, (from, to, bytes, flow): (HostId, HostId, u64, FlowId)) -> Result<(), String> {
    let report = net.flow_report(flow).map_err(|error| error.to_string())?;
    let names = Names::of(net);
    let stream = format!("of {} to {}", names.host(from), names.host(to));
    match report.is_done && report.received_bytes == bytes {
        false => Err(format!(
            "of the {bytes} bytes {stream}, {} have arrived",
            report.received_bytes
        )),
        true if report.corrupted > 0 => Err(format!(
            "{} packets of the {bytes} bytes {stream} had other bytes than were sent",
            report.corrupted
        )),
        true => Ok(()),
    }
}
