//! Ports in memory, each with a receive ring and a send ring, like those of network cards and sockets.
//!
//! **What.** A received frame is copied into a slot of the receive ring, from which the switch reads it; a sent frame
//! is copied into a slot of the send ring, and counted. It stays there until the ring wraps around and the slot is
//! reused.
//!
//! **Cost.** Two copies of each frame, and the cache lines of both rings: 256 slots, of which short frames touch one line
//! each. No device, no descriptor, no system call.

use super::shared::port_identity;
use super::{Departure, Sent};
use crate::Error;
use crate::replay::Replay;
use crate::workload::{IN_PORT, PROBE_PORT};
use memmap2::{Advice, MmapMut};
use parking_lot::Mutex;
use rustix::fd::BorrowedFd;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use urtica_switch::PortIo;
use urtica_wire::{MacAddr, PortNo};

/// Number of slots of a ring.
const SLOTS: usize = 256;

/// Minimum size of a slot: a frame of 1,518 bytes and the bytes that a pipeline may push.
const SLOT_SIZE: usize = 2048;

/// Added to a slot's size to avoid a power of two, with which the sets of the caches would hold only a few of the slots.
const SLOT_EXTRA: usize = 64;

/// Consecutive slots.
pub struct Ring {
    memory: MmapMut,
    slot_size: usize,
}

impl Ring {
    /// Creates this number of slots, each with space for `frame_size` bytes and for pushed bytes.
    ///
    /// # Errors
    /// If memory for the slots cannot be allocated.
    pub fn new(slots: usize, frame_size: usize) -> Result<Self, Error> {
        let slot_size = frame_size.max(SLOT_SIZE).next_multiple_of(SLOT_SIZE) + SLOT_EXTRA;
        let memory = MmapMut::map_anon(slots * slot_size)
            .map_err(Error::system("allocate memory for a ring"))?;
        // A hint; if it is refused, small pages only cause TLB misses.
        let _ = memory.advise(Advice::HugePage);
        Ok(Self { memory, slot_size })
    }

    #[inline]
    pub fn slot(&self, number: usize) -> &[u8] {
        &self.memory[number * self.slot_size..][..self.slot_size]
    }

    #[inline]
    pub fn slot_mut(&mut self, number: usize) -> &mut [u8] {
        &mut self.memory[number * self.slot_size..][..self.slot_size]
    }
}

/// The ring of received frames: filled on one side, emptied by the port.
pub struct ReceiveRing {
    ring: Ring,
    lengths: [usize; SLOTS],
    /// The first slot with a frame, and the number of slots with frames.
    first: usize,
    waiting: usize,
}

impl ReceiveRing {
    fn new(frame_size: usize) -> Result<Self, Error> {
        Ok(Self {
            ring: Ring::new(SLOTS, frame_size)?,
            lengths: [0; SLOTS],
            first: 0,
            waiting: 0,
        })
    }

    /// Receives a burst. Frames are dropped if the ring is full.
    #[inline]
    pub fn fill(&mut self, replay: &mut Replay) {
        replay.receive(|frame| {
            if self.waiting < SLOTS {
                let slot = (self.first + self.waiting) % SLOTS;
                self.lengths[slot] = frame.copy_to(self.ring.slot_mut(slot));
                self.waiting += 1;
            }
        });
    }

    #[inline]
    fn take(&mut self, max: usize, handle: &mut dyn FnMut(&[u8])) -> usize {
        let count = self.waiting.min(max);
        for _ in 0..count {
            handle(&self.ring.slot(self.first)[..self.lengths[self.first]]);
            self.first = (self.first + 1) % SLOTS;
        }
        self.waiting -= count;
        count
    }
}

/// Counts of the frames sent by all ports.
#[derive(Default)]
pub struct Exits {
    out: AtomicU32,
    probe: AtomicU32,
    is_kept: AtomicBool,
    kept: Mutex<Vec<Departure>>,
}

impl Exits {
    /// Returns the number of frames sent so far, modulo 2^32.
    #[inline]
    pub fn count(&self) -> Sent {
        Sent {
            out: self.out.load(Relaxed),
            probe: self.probe.load(Relaxed),
            plain: 0,
        }
    }

    /// Returns the frames sent while `body` runs.
    pub fn departures(&self, body: impl FnOnce()) -> Vec<Departure> {
        self.is_kept.store(true, Relaxed);
        body();
        self.is_kept.store(false, Relaxed);
        std::mem::take(&mut self.kept.lock())
    }

    #[inline]
    fn note(&self, port_no: PortNo, frame: &[u8]) {
        let counter = match port_no.0 {
            PROBE_PORT => &self.probe,
            _ => &self.out,
        };
        // Only one thread counts; another may read.
        counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
        if self.is_kept.load(Relaxed) {
            self.kept.lock().push((port_no, frame.to_vec()));
        }
    }
}

/// Ports of one switch with common rings.
pub struct Rings {
    pub incoming: Arc<Mutex<ReceiveRing>>,
    pub exits: Arc<Exits>,
    frame_size: usize,
}

impl Rings {
    /// Creates rings for frames of `frame_size` bytes.
    ///
    /// # Errors
    /// If memory for the rings cannot be allocated.
    pub fn new(frame_size: usize) -> Result<Self, Error> {
        Ok(Self {
            incoming: Arc::new(Mutex::new(ReceiveRing::new(frame_size)?)),
            exits: Arc::default(),
            frame_size,
        })
    }

    /// Returns the port with this number; only [`IN_PORT`] receives frames.
    ///
    /// # Errors
    /// If memory for its ring cannot be allocated.
    pub fn port(&self, port_no: PortNo) -> Result<RingPort, Error> {
        let (name, hw_addr) = port_identity(port_no);
        Ok(RingPort {
            port_no,
            name,
            hw_addr,
            incoming: (port_no.0 == IN_PORT).then(|| Arc::clone(&self.incoming)),
            outgoing: Ring::new(SLOTS, self.frame_size)?,
            next: 0,
            exits: Arc::clone(&self.exits),
        })
    }
}

/// A port between two rings.
pub struct RingPort {
    port_no: PortNo,
    name: String,
    hw_addr: MacAddr,
    incoming: Option<Arc<Mutex<ReceiveRing>>>,
    outgoing: Ring,
    /// The next slot of the send ring.
    next: usize,
    exits: Arc<Exits>,
}

impl PortIo for RingPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn hw_addr(&self) -> MacAddr {
        self.hw_addr
    }

    fn is_up(&self) -> bool {
        true
    }

    fn speed_kbps(&self) -> u32 {
        0
    }

    fn receive(&mut self, max: usize, handle: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        let incoming = self.incoming.as_ref();
        Ok(incoming.map_or(0, |incoming| incoming.lock().take(max, handle)))
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        let slot = self.outgoing.slot_mut(self.next);
        let Some(room) = slot.get_mut(..frame.len()) else {
            return false;
        };
        room.copy_from_slice(frame);
        self.next = (self.next + 1) % SLOTS;
        self.exits.note(self.port_no, frame);
        true
    }

    fn flush(&mut self) {}

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::BURST;
    use crate::replay::Cells;

    #[test]
    fn frames_pass_the_rings_in_order_across_wraps() {
        let frames: Vec<Vec<u8>> = (0..100)
            .map(|number| vec![number; 60 + usize::from(number)])
            .collect();
        let cells = Arc::new(Cells::new(&frames).unwrap());
        let rings = Rings::new(cells.cell_size()).unwrap();
        let (mut incoming, mut outgoing) = (
            rings.port(PortNo(IN_PORT)).unwrap(),
            rings.port(PortNo(2)).unwrap(),
        );
        let mut replay = Replay::new(&cells);
        let departures = rings.exits.departures(|| {
            for _ in 0..50 {
                rings.incoming.lock().fill(&mut replay);
                let send = &mut |frame: &[u8]| assert!(outgoing.send(frame));
                assert_eq!(incoming.receive(BURST, send).unwrap(), BURST);
            }
        });
        assert_eq!(rings.exits.count().out, 50 * BURST as u32);
        let expected = frames.iter().cycle().take(50 * BURST);
        assert!(departures.iter().map(|(_, frame)| frame).eq(expected));
    }

    #[test]
    fn only_the_first_port_receives_and_probes_are_distinguished() {
        let rings = Rings::new(60).unwrap();
        let mut port = rings.port(PortNo(PROBE_PORT)).unwrap();
        assert_eq!(port.receive(BURST, &mut |_| {}).unwrap(), 0);
        assert!(port.send(&[0; 60]));
        assert!(!port.send(&vec![0; 1 << 20]), "longer than a slot");
        assert_eq!((rings.exits.count().out, rings.exits.count().probe), (0, 1));
    }

    #[test]
    fn a_full_ring_refuses_frames() {
        let cells = Arc::new(Cells::new(&[[1; 60]]).unwrap());
        let rings = Rings::new(cells.cell_size()).unwrap();
        let mut replay = Replay::new(&cells);
        for _ in 0..10 {
            rings.incoming.lock().fill(&mut replay);
        }
        let mut port = rings.port(PortNo(IN_PORT)).unwrap();
        assert_eq!(port.receive(1000, &mut |_| {}).unwrap(), SLOTS);
    }
}
