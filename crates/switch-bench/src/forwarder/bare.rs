//! The upper limit of the pipeline alone: receives packets like the pipeline, and swaps their Ethernet addresses.

use super::rings::Ring;
use super::{Departure, Forwarder, Sent, Sides};
use crate::Error;
use crate::case::Case;
use crate::replay::{BURST, Replay};
use crate::workload::OUT_PORT;
use std::hint::black_box;
use std::time::Duration;
use urtica_wire::PortNo;

/// The space before a frame for bytes that a pipeline may push.
const HEADROOM: usize = 64;

/// Creates the forwarding side; there are no entries to control.
///
/// # Errors
/// If memory for the buffers cannot be allocated.
pub fn open(case: &Case) -> Result<Sides, Error> {
    let buffers = Ring::new(BURST, HEADROOM + case.cells.cell_size())?;
    Ok(Sides {
        forwarder: Box::new(Bare {
            buffers,
            lengths: [0; BURST],
        }),
        control: None,
    })
}

struct Bare {
    buffers: Ring,
    lengths: [usize; BURST],
}

impl Forwarder for Bare {
    fn forward(&mut self, replay: &mut Replay, _now: Duration) -> Sent {
        let mut numbers = 0..;
        replay.receive(|frame| {
            let number = numbers.next().unwrap_or(0);
            let buffer = &mut self.buffers.slot_mut(number)[HEADROOM..];
            self.lengths[number] = frame.copy_to(buffer);
        });
        let mut sent = Sent::default();
        for number in 0..BURST {
            let (eth_dst, rest) = self.buffers.slot_mut(number)[HEADROOM..].split_at_mut(6);
            eth_dst.swap_with_slice(&mut rest[..6]);
            sent.out += 1;
        }
        // Sent frames are not read, but must be written.
        black_box(&mut self.buffers);
        sent
    }

    fn departures(&mut self, replay: &mut Replay, now: Duration) -> Vec<Departure> {
        self.forward(replay, now);
        let frames = self.lengths.iter().enumerate().map(|(number, &length)| {
            let frame = &self.buffers.slot(number)[HEADROOM..][..length];
            (PortNo(OUT_PORT), frame.to_vec())
        });
        frames.collect()
    }
}
