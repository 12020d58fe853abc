//! Packets that come in from memory, as fast as they are asked for.
//!
//! **What.** Every frame lies in a cell of 64 bytes, one cell after the other, and they are handed out in order for
//! ever. That is what a port's receive ring looks like to a switch, without device, driver and kernel.
//!
//! **Cost.** Reading one cell; whoever receives copies it. Cells are read in order, so the processor fetches them ahead
//! of time even where a million of them (64 MB) do not fit its caches. They lie in huge pages where the system grants
//! them.

use super::workload::{FRAME_SIZE, Frame};
use memmap2::{Advice, MmapMut};
use std::io;
use std::sync::Arc;

/// How many frames are taken in at once.
pub const BURST: usize = 32;

/// How many bytes apart frames lie.
const CELL_SIZE: usize = 64;

/// A frame and what fills its cell up.
pub type Cell = [u8; CELL_SIZE];

/// The frames of all active flows.
pub struct Cells {
    memory: MmapMut,
    count: usize,
}

impl Cells {
    /// Lays out frames, of which there is at least one.
    ///
    /// # Errors
    /// What the system says where there is no memory for them.
    pub fn new(frames: &[Frame]) -> io::Result<Self> {
        let mut memory = MmapMut::map_anon(frames.len() * CELL_SIZE)?;
        // A hint; where it is refused, small pages cost misses of the address cache and nothing else.
        let _ = memory.advise(Advice::HugePage);
        for (cell, frame) in memory.chunks_exact_mut(CELL_SIZE).zip(frames) {
            cell[..FRAME_SIZE].copy_from_slice(frame);
        }
        Ok(Self {
            memory,
            count: frames.len(),
        })
    }
}

/// A place in the endless sequence of frames.
pub struct Replay {
    cells: Arc<Cells>,
    next: usize,
    /// A frame that takes the last place of each burst.
    probe: Option<Cell>,
}

impl Replay {
    /// From the first frame on.
    pub fn new(cells: &Arc<Cells>) -> Self {
        Self {
            cells: Arc::clone(cells),
            next: 0,
            probe: None,
        }
    }

    /// The same with this frame in the last place of each burst.
    pub fn with_probe(cells: &Arc<Cells>, probe: &Frame) -> Self {
        let mut cell = [0; CELL_SIZE];
        cell[..FRAME_SIZE].copy_from_slice(probe);
        Self {
            probe: Some(cell),
            ..Self::new(cells)
        }
    }

    /// Hands out the next [`BURST`] frames; the first [`FRAME_SIZE`] bytes of each cell are the frame.
    #[inline]
    pub fn receive(&mut self, mut take: impl FnMut(&Cell)) {
        let replayed = BURST - usize::from(self.probe.is_some());
        let memory: &[u8] = &self.cells.memory;
        for _ in 0..replayed {
            let cell = memory[self.next * CELL_SIZE..].first_chunk();
            take(cell.expect("the memory has whole cells"));
            self.next += 1;
            if self.next == self.cells.count {
                self.next = 0;
            }
        }
        if let Some(probe) = &self.probe {
            take(probe);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bursts(replay: &mut Replay, count: usize) -> Vec<u8> {
        let mut firsts = Vec::new();
        for _ in 0..count {
            replay.receive(|cell| firsts.push(cell[0]));
        }
        firsts
    }

    proptest! {
        #[test]
        fn frames_come_in_order_for_ever(count in 1..100u8, rounds in 1..10usize) {
            let frames: Vec<Frame> = (0..count).map(|number| [number; FRAME_SIZE]).collect();
            let mut replay = Replay::new(&Arc::new(Cells::new(&frames).unwrap()));
            let expected: Vec<u8> = (0..count).cycle().take(rounds * BURST).collect();
            prop_assert_eq!(bursts(&mut replay, rounds), expected);
        }
    }

    #[test]
    fn a_probe_is_the_last_of_each_burst() {
        let cells = Arc::new(Cells::new(&[[1; FRAME_SIZE], [2; FRAME_SIZE]]).unwrap());
        let firsts = bursts(&mut Replay::with_probe(&cells, &[9; FRAME_SIZE]), 2);
        assert_eq!((firsts[31], firsts[63]), (9, 9));
        assert_eq!((firsts[0], firsts[30], firsts[32]), (1, 1, 2));
        assert_eq!(firsts.iter().filter(|&&first| first == 9).count(), 2);
    }
}
