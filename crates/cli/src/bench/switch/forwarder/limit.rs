//! The limit of all forms: packets are received as ever, their Ethernet addresses are swapped, and they are sent.

use super::{Departure, Forwarder, Sent, Sides};
use crate::bench::switch::replay::{BURST, Replay};
use crate::bench::switch::workload::{FRAME_SIZE, OUT_PORT};
use std::hint::black_box;
use std::time::Duration;
use urtica_wire::PortNo;

/// Room before a frame for what a pipeline may push, in bytes.
const HEADROOM: usize = 64;

/// Bytes of a buffer: a frame of 1,518, room before it and after. Not a power of two, or the caches' sets would hold a
/// few of the buffers only.
const BUFFER_SIZE: usize = 2048 + 64;

/// The forwarding side; there is nothing to change.
pub fn open() -> Sides {
    let buffers = vec![Buffer([0; BUFFER_SIZE]); BURST].into_boxed_slice();
    Sides {
        forwarder: Box::new(Limit { buffers }),
        control: None,
    }
}

#[derive(Clone)]
#[repr(align(64))]
struct Buffer([u8; BUFFER_SIZE]);

struct Limit {
    buffers: Box<[Buffer]>,
}

impl Forwarder for Limit {
    fn forward(&mut self, replay: &mut Replay, _now: Duration) -> Sent {
        let mut buffers = self.buffers.iter_mut();
        replay.receive(|cell| {
            if let Some(Buffer(bytes)) = buffers.next() {
                bytes[HEADROOM..HEADROOM + cell.len()].copy_from_slice(cell);
            }
        });
        let mut sent = Sent::default();
        for Buffer(bytes) in &mut self.buffers {
            let (eth_dst, rest) = bytes[HEADROOM..].split_at_mut(6);
            eth_dst.swap_with_slice(&mut rest[..6]);
            sent.out += 1;
        }
        // Nobody reads what is sent; it is to be written all the same.
        black_box(&mut self.buffers);
        sent
    }

    fn departures(&mut self, replay: &mut Replay, now: Duration) -> Vec<Departure> {
        self.forward(replay, now);
        let frames = self.buffers.iter().map(|Buffer(bytes)| &bytes[HEADROOM..]);
        frames
            .map(|bytes| (PortNo(OUT_PORT), bytes[..FRAME_SIZE].to_vec()))
            .collect()
    }
}
