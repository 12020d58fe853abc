//! The upper limit of a whole switch: its ports without a switch, which move each frame from a receive ring to a send ring.

use super::rings::{RingPort, Rings};
use super::{Departure, Forwarder, Sent, Sides};
use crate::Error;
use crate::case::Case;
use crate::replay::{BURST, Replay};
use crate::workload::{IN_PORT, OUT_PORT};
use std::time::Duration;
use urtica_switch::PortIo;
use urtica_wire::PortNo;

/// Creates the forwarding side; there are no entries to control.
///
/// # Errors
/// If memory for the rings cannot be allocated.
pub fn open(case: &Case) -> Result<Sides, Error> {
    let rings = Rings::new(case.cells.cell_size())?;
    let forwarder = Limit {
        incoming: rings.port(PortNo(IN_PORT))?,
        outgoing: rings.port(PortNo(OUT_PORT))?,
        rings,
    };
    Ok(Sides {
        forwarder: Box::new(forwarder),
        control: None,
    })
}

struct Limit {
    rings: Rings,
    incoming: RingPort,
    outgoing: RingPort,
}

impl Forwarder for Limit {
    fn forward(&mut self, replay: &mut Replay, _now: Duration) -> Sent {
        let before = self.rings.exits.count();
        self.rings.incoming.lock().fill(replay);
        let outgoing = &mut self.outgoing;
        // A port in memory always works.
        let _ = self.incoming.receive(BURST, &mut |frame| {
            outgoing.send(frame);
        });
        outgoing.flush();
        self.rings.exits.count().since(before)
    }

    fn departures(&mut self, replay: &mut Replay, now: Duration) -> Vec<Departure> {
        let exits = self.rings.exits.clone();
        exits.departures(|| {
            self.forward(replay, now);
        })
    }
}
