//! The plain form: [`Pipeline::process`], one packet after the other.
//!
//! Both sides share the pipeline under a lock, which the forwarding side takes once for each burst.

use super::{Control, Departure, Forwarder, Sent, Sides};
use crate::bench::switch::replay::Replay;
use crate::bench::switch::workload::{FRAME_SIZE, IN_PORT};
use parking_lot::RwLock;
use std::sync::Arc;
use std::time::Duration;
use urtica_pipeline::{Packet, PacketInCause, Pipeline, Sink};
use urtica_wire::{ErrorCode, FlowMod, PortNo};

/// Both sides of a pipeline.
pub fn open(pipeline: Pipeline) -> Sides {
    let pipeline = Shared(Arc::new(RwLock::new(pipeline)));
    Sides {
        forwarder: Box::new(pipeline.clone()),
        control: Some(Box::new(pipeline)),
    }
}

#[derive(Clone)]
struct Shared(Arc<RwLock<Pipeline>>);

impl Forwarder for Shared {
    fn forward(&mut self, replay: &mut Replay, now: Duration) -> Sent {
        let mut sent = Sent::default();
        self.process(replay, now, &mut sent);
        sent
    }

    fn departures(&mut self, replay: &mut Replay, now: Duration) -> Vec<Departure> {
        let mut departures = Departures::default();
        self.process(replay, now, &mut departures);
        departures.0
    }
}

impl Shared {
    fn process(&self, replay: &mut Replay, now: Duration, sink: &mut impl Sink) {
        let pipeline = self.0.read();
        replay.receive(|cell| {
            let packet = Packet::new(PortNo(IN_PORT), &cell[..FRAME_SIZE]);
            pipeline.process(packet, now, sink);
        });
    }
}

impl Control for Shared {
    fn flow_mod(&mut self, flow_mod: &FlowMod<'_>, now: Duration) -> Result<(), ErrorCode> {
        let mut pipeline = self.0.write();
        pipeline.flow_mod(flow_mod, now, &mut Vec::new())
    }
}

/// Sent packets are counted and freed; no workload has others.
impl Sink for Sent {
    fn transmit(&mut self, port: PortNo, _packet: &Packet) {
        self.count(port);
    }

    fn packet_in(&mut self, _packet: &Packet, _cause: PacketInCause) {}

    fn normal(&mut self, _packet: &Packet) {}
}

#[derive(Default)]
struct Departures(Vec<Departure>);

impl Sink for Departures {
    fn transmit(&mut self, port: PortNo, packet: &Packet) {
        self.0.push((port, packet.frame().to_vec()));
    }

    fn packet_in(&mut self, _packet: &Packet, _cause: PacketInCause) {}

    fn normal(&mut self, _packet: &Packet) {}
}
