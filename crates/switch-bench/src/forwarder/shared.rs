//! A pipeline that both sides share, behind a lock.

use super::{Control, Departure, SETTLED_AT, Sent, TICK};
use crate::Error;
use crate::case::Case;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use urtica_pipeline::{Packet, PacketInCause, Pipeline, PipelineConfig, Sink};
use urtica_wire::{ErrorCode, FlowMod, FlowStatsRequest, MacAddr, Port, PortNo};

/// Creates a pipeline with a case's ports, without entries.
pub fn empty(case: &Case) -> Pipeline {
    let mut pipeline = Pipeline::new(PipelineConfig::default());
    for port_no in case.ports() {
        let (name, hw_addr) = port_identity(port_no);
        pipeline.set_port(Port::new(port_no, hw_addr, &name));
    }
    pipeline
}

/// Returns the name and the Ethernet address of a port.
pub fn port_identity(port_no: PortNo) -> (String, MacAddr) {
    let hw_addr = MacAddr::from_u64(0x0200_0000_ff00 | u64::from(port_no.0 & 0xff));
    (format!("port{port_no}"), hw_addr)
}

/// Adds a case's entries to a pipeline.
///
/// # Errors
/// If an entry is refused.
pub fn load(case: &Case, pipeline: &mut Pipeline) -> Result<(), Error> {
    Ok(case.entries.clone().add_to(pipeline)?)
}

/// Advances a pipeline's time until it has settled.
pub fn settle(pipeline: &mut Pipeline) {
    let mut now = Duration::ZERO;
    while now < SETTLED_AT {
        now += TICK;
        pipeline.expire(now, &mut Vec::new());
    }
}

/// Returns the number of packets that a pipeline's entries have matched, by cookie.
pub fn matched<'a>(stats: impl Iterator<Item = (u64, u64)> + 'a) -> BTreeMap<u64, u64> {
    let mut matched = BTreeMap::new();
    for (cookie, packets) in stats {
        *matched.entry(cookie).or_default() += packets;
    }
    matched
}

#[derive(Clone)]
pub struct Shared(Arc<RwLock<Pipeline>>);

impl Shared {
    pub fn new(mut pipeline: Pipeline) -> Self {
        pipeline.defer_following(true);
        Self(Arc::new(RwLock::new(pipeline)))
    }

    pub fn read(&self) -> RwLockReadGuard<'_, Pipeline> {
        self.0.read()
    }
}

impl Control for Shared {
    fn flow_mod(&mut self, flow_mod: &FlowMod<'_>, now: Duration) -> Result<(), ErrorCode> {
        let mut pipeline = self.0.write();
        let outcome = pipeline.flow_mod(flow_mod, now, &mut Vec::new());
        // As in the switch, readers continue while the compiled form is updated.
        RwLockWriteGuard::downgrade(pipeline).follow();
        outcome
    }

    fn matched(&self) -> BTreeMap<u64, u64> {
        let all = FlowStatsRequest::default();
        let entries = self.read().flow_stats(&all).unwrap_or_default();
        let stats = entries.iter().map(|entry| entry.to_stats(SETTLED_AT));
        matched(stats.map(|stats| (stats.cookie, stats.packet_count)))
    }
}

/// Counts and frees sent packets.
impl Sink for Sent {
    fn transmit(&mut self, port: PortNo, _packet: &Packet) {
        self.count(port);
    }

    fn packet_in(&mut self, _packet: &Packet, _cause: PacketInCause) {}

    fn normal(&mut self, _packet: &Packet) {}
}

/// Keeps sent packets.
#[derive(Default)]
pub struct Departures(pub Vec<Departure>);

impl Sink for Departures {
    fn transmit(&mut self, port: PortNo, packet: &Packet) {
        self.0.push((port, packet.frame().to_vec()));
    }

    fn packet_in(&mut self, _packet: &Packet, _cause: PacketInCause) {}

    fn normal(&mut self, _packet: &Packet) {}
}
