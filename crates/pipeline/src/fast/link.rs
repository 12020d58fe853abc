//! From an entry to the cell that counts for it.

use super::table::Cell;
use crate::entry::EntryCounts;
use std::fmt;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where an entry's cell is, if it has one.
///
/// The compiler alone sets it, and takes it back before it frees the cell. The lock is for others who have the entry and
/// ask what it counted, in whatever thread: while one reads, the cell stays. Packets do not come this way.
pub(crate) struct CellLink(Mutex<Place>);

/// Null where there is no cell.
struct Place(*mut Cell);

// SAFETY: a cell belongs to no thread; what reads it through a link reads atomics, under the lock.
unsafe impl Send for Place {}

impl CellLink {
    /// What the cell has counted so far.
    pub fn counts(&self) -> EntryCounts {
        let place = self.place();
        // SAFETY: null, or a cell that is not freed while the place is locked: see `set`.
        match unsafe { place.0.as_ref() } {
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
        self.place().0
    }

    /// Links a cell.
    ///
    /// # Safety
    /// The cell is not freed before another one, or none, is set.
    pub unsafe fn set(&self, cell: *mut Cell) {
        self.place().0 = cell;
    }

    /// Unlinks the cell.
    pub fn clear(&self) {
        self.place().0 = null_mut();
    }

    /// A place is whole at any time, so that it does not matter who died with it.
    fn place(&self) -> MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for CellLink {
    fn default() -> Self {
        Self(Mutex::new(Place(null_mut())))
    }
}

impl fmt::Debug for CellLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CellLink").field(&self.counts()).finish()
    }
}
