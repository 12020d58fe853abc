//! From an entry to the cell that counts for it.

use super::table::Cell;
use crate::entry::EntryCounts;
use std::fmt;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Where an entry's cell is, if it has one.
///
/// The compiler alone sets it, and takes it back before it frees the cell.
#[derive(Default)]
pub(crate) struct CellLink(AtomicPtr<Cell>);

impl CellLink {
    /// What the cell has counted so far.
    pub fn counts(&self) -> EntryCounts {
        let cell = self.0.load(Acquire);
        // SAFETY: null, or a cell that is not freed: see `set`.
        match unsafe { cell.as_ref() } {
            Some(cell) => EntryCounts {
                packets: cell.packets.load(Relaxed),
                bytes: cell.bytes.load(Relaxed),
                last_used_ns: cell.last_used_ns.load(Relaxed),
            },
            None => EntryCounts::default(),
        }
    }

    /// The cell; null where there is none.
    pub fn cell(&self) -> *mut Cell {
        self.0.load(Relaxed)
    }

    /// Links a cell.
    ///
    /// # Safety
    /// The cell is not freed before another one, or none, is set; nor while somebody reads counts.
    pub unsafe fn set(&self, cell: *mut Cell) {
        self.0.store(cell, Release);
    }

    /// Unlinks the cell.
    pub fn clear(&self) {
        self.0.store(null_mut(), Release);
    }
}

impl fmt::Debug for CellLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CellLink").field(&self.counts()).finish()
    }
}
