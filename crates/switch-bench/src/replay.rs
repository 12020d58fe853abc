//! Packets received from memory, as fast as they are requested.
//!
//! **What.** Every frame is in a cell, of 64 bytes if that is enough for all frames. Cells are consecutive, and their
//! frames are delivered in order, endlessly.
//!
//! **Cost.** Reading one cell and its length; the receiver copies it. Cells are read in order, so the processor
//! prefetches them even if they exceed its caches: a million cells have 64 MB. They are in huge pages if the system
//! permits.

use super::workload::Frame;
use memmap2::{Advice, MmapMut};
use std::io;
use std::sync::Arc;

/// The number of frames that are received at once.
pub const BURST: usize = 32;

/// The unit of the cells' lengths.
pub const CELL_SIZE: usize = 64;

/// A received frame.
#[derive(Clone, Copy)]
pub struct Replayed<'a> {
    cell: &'a [u8],
    length: usize,
}

impl<'a> Replayed<'a> {
    /// Returns the frame.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        &self.cell[..self.length]
    }

    /// Returns the frame if it has exactly `N` bytes, so that the compiler knows the length.
    #[inline]
    pub fn of_length<const N: usize>(self) -> Option<&'a [u8; N]> {
        match self.length == N {
            true => self.cell.first_chunk(),
            false => None,
        }
    }

    /// Copies the frame, and possibly the rest of its cell, to the start of a buffer with space for the cell. Returns
    /// the frame's length.
    #[inline]
    pub fn copy_to(self, buffer: &mut [u8]) -> usize {
        match self.cell.first_chunk::<CELL_SIZE>() {
            // Most frames are short, and a copy of a known length takes two instructions.
            Some(cell) if self.length <= CELL_SIZE => buffer[..CELL_SIZE].copy_from_slice(cell),
            _ => buffer[..self.length].copy_from_slice(self.bytes()),
        }
        self.length
    }
}

/// The frames of all active flows.
pub struct Cells {
    memory: MmapMut,
    /// The distance between frames in bytes.
    cell_size: usize,
    lengths: Vec<u16>,
    /// The length of all frames, if it is equal, so that `lengths` need not be read.
    length_of_all: Option<u16>,
}

impl Cells {
    /// Lays out frames: at least one, of at most 65,535 bytes each.
    ///
    /// # Errors
    /// If memory for the frames cannot be allocated.
    pub fn new(frames: &[impl AsRef<[u8]>]) -> io::Result<Self> {
        let length = |frame: &dyn AsRef<[u8]>| frame.as_ref().len();
        let longest = frames.iter().map(|frame| length(frame)).max().unwrap_or(0);
        let cell_size = longest.max(1).next_multiple_of(CELL_SIZE);
        let mut memory = MmapMut::map_anon(frames.len() * cell_size)?;
        // A hint; if it is refused, small pages only cause TLB misses.
        let _ = memory.advise(Advice::HugePage);
        for (cell, frame) in memory.chunks_exact_mut(cell_size).zip(frames) {
            let frame = frame.as_ref();
            cell[..frame.len()].copy_from_slice(frame);
        }
        Ok(Self {
            memory,
            cell_size,
            length_of_all: frames
                .iter()
                .all(|frame| length(frame) == longest)
                .then_some(longest as u16),
            lengths: frames.iter().map(|frame| length(frame) as u16).collect(),
        })
    }

    /// Returns the number of frames.
    pub fn count(&self) -> usize {
        self.lengths.len()
    }

    /// Returns the size of a buffer with space for any frame.
    pub fn cell_size(&self) -> usize {
        self.cell_size
    }
}

/// A position in the endless sequence of frames.
pub struct Replay {
    cells: Arc<Cells>,
    next: usize,
    /// The last frame of each burst, if set.
    probe: Option<Frame>,
}

impl Replay {
    /// Starts at the first frame.
    pub fn new(cells: &Arc<Cells>) -> Self {
        Self {
            cells: Arc::clone(cells),
            next: 0,
            probe: None,
        }
    }

    /// Like `new`, with this frame as the last of each burst.
    pub fn with_probe(cells: &Arc<Cells>, probe: &Frame) -> Self {
        Self {
            probe: Some(*probe),
            ..Self::new(cells)
        }
    }

    /// Passes on the next [`BURST`] frames.
    #[inline]
    pub fn receive(&mut self, mut take: impl FnMut(Replayed<'_>)) {
        let replayed = BURST - usize::from(self.probe.is_some());
        let Cells {
            memory,
            cell_size,
            lengths,
            length_of_all,
        } = &*self.cells;
        for _ in 0..replayed {
            let at = self.next * cell_size;
            take(Replayed {
                cell: &memory[at..at + cell_size],
                length: length_of_all.unwrap_or_else(|| lengths[self.next]).into(),
            });
            self.next += 1;
            if self.next == lengths.len() {
                self.next = 0;
            }
        }
        if let Some(probe) = &self.probe {
            take(Replayed {
                cell: probe,
                length: probe.len(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::workload::FRAME_SIZE;
    use super::*;
    use proptest::prelude::*;

    fn bursts(replay: &mut Replay, count: usize) -> Vec<u8> {
        let mut firsts = Vec::new();
        for _ in 0..count {
            replay.receive(|frame| firsts.push(frame.bytes()[0]));
        }
        firsts
    }

    proptest! {
        #[test]
        fn frames_are_delivered_in_order_endlessly(count in 1..100u8, rounds in 1..10usize) {
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

    #[test]
    fn frames_keep_their_lengths() {
        let frames: Vec<Vec<u8>> = [1, 60, 64, 65, 1514].map(|length| vec![7; length]).into();
        let cells = Arc::new(Cells::new(&frames).unwrap());
        assert_eq!((cells.count(), cells.cell_size()), (5, 1536));
        let (mut lengths, mut copied) = (Vec::new(), Vec::new());
        Replay::new(&cells).receive(|frame| {
            let mut buffer = [0; 1536];
            lengths.push(frame.bytes().len());
            copied.push(frame.copy_to(&mut buffer));
            assert_eq!(&buffer[..frame.bytes().len()], frame.bytes());
            assert_eq!(frame.of_length::<60>().is_some(), frame.bytes().len() == 60);
        });
        assert_eq!(lengths[..5], [1, 60, 64, 65, 1514]);
        assert_eq!(lengths, copied);
    }
}
