//! The plain form: [`urtica_pipeline::Pipeline::process`], packet by packet.
//!
//! Both sides share the pipeline under a lock, which the forwarding side acquires once for each burst.

use super::shared::{Departures, Shared, empty, load};
use super::{Departure, Forwarder, Sent, Sides};
use crate::Error;
use crate::case::Case;
use crate::replay::{BURST, Replay};
use crate::workload::IN_PORT;
use std::time::Duration;
use urtica_pipeline::{Packet, Sink};
use urtica_wire::PortNo;

/// Creates both sides of a pipeline with a case's entries.
///
/// # Errors
/// If an entry is refused.
pub fn open(case: &Case) -> Result<Sides, Error> {
    let mut pipeline = empty(case);
    load(case, &mut pipeline)?;
    let pipeline = Shared::new(pipeline);
    Ok(Sides {
        forwarder: Box::new(Plain(pipeline.clone())),
        control: Some(Box::new(pipeline)),
    })
}

struct Plain(Shared);

impl Forwarder for Plain {
    fn forward(&mut self, replay: &mut Replay, now: Duration) -> Sent {
        let mut sent = Sent {
            plain: BURST as u32,
            ..Sent::default()
        };
        self.process(replay, now, &mut sent);
        sent
    }

    fn departures(&mut self, replay: &mut Replay, now: Duration) -> Vec<Departure> {
        let mut departures = Departures::default();
        self.process(replay, now, &mut departures);
        departures.0
    }
}

impl Plain {
    fn process(&self, replay: &mut Replay, now: Duration, sink: &mut impl Sink) {
        let pipeline = self.0.read();
        replay.receive(|frame| {
            let packet = Packet::new(PortNo(IN_PORT), frame.bytes());
            pipeline.process(packet, now, sink);
        });
    }
}
