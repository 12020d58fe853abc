//! Executable memory, which is first written and then made executable, and never both at once (W^X).

use super::error::CodeError;
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The granularity of mappings.
const PAGE_BYTES: usize = 4096;

/// The size of a cache line.
const LINE_BYTES: usize = 64;

/// The used and the maximum memory for code.
#[derive(Debug)]
pub(super) struct Room {
    limit_bytes: usize,
    used_bytes: AtomicUsize,
    /// The number of pieces of code so far, from which the next one's offset in its page is derived.
    count: AtomicUsize,
}

impl Room {
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            used_bytes: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
        }
    }

    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Relaxed)
    }

    /// Returns the offset of the next code in its page. If all had offset 0, they would compete for a few sets of the
    /// instruction cache.
    fn skip(&self) -> usize {
        let lines = PAGE_BYTES / LINE_BYTES;
        let number = self.count.fetch_add(1, Relaxed);
        // 27 is odd, so that all lines are used, and pieces of code created in sequence are far apart.
        number.wrapping_mul(27) % lines * LINE_BYTES
    }

    fn take(&self, bytes: usize) -> Result<(), CodeError> {
        let more = |used: usize| {
            used.checked_add(bytes)
                .filter(|&sum| sum <= self.limit_bytes)
        };
        match self.used_bytes.fetch_update(Relaxed, Relaxed, more) {
            Ok(_) => Ok(()),
            Err(_) => Err(CodeError::NoRoom {
                limit_bytes: self.limit_bytes,
            }),
        }
    }
}

/// Executable code, which is freed on drop.
#[derive(Debug)]
pub(super) struct Executable {
    room: Arc<Room>,
    mapping: NonNull<u8>,
    mapping_bytes: usize,
    skip: usize,
    len: usize,
}

// SAFETY: it owns its mapping, which is never written to.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

impl Executable {
    /// Maps a copy of the code.
    ///
    /// # Errors
    /// If the maximum is reached, or the system refuses.
    pub fn new(code: &[u8], room: &Arc<Room>) -> Result<Self, CodeError> {
        let skip = room.skip();
        let mapping_bytes = (skip + code.len()).next_multiple_of(PAGE_BYTES);
        room.take(mapping_bytes)?;
        let mapping = match map(mapping_bytes) {
            Ok(mapping) => mapping,
            Err(error) => {
                room.used_bytes.fetch_sub(mapping_bytes, Relaxed);
                return Err(error);
            }
        };
        // From here on, dropping this releases everything.
        let executable = Self {
            room: Arc::clone(room),
            mapping,
            mapping_bytes,
            skip,
            len: code.len(),
        };
        // SAFETY: the mapping is new, writable, and long enough for the code after `skip`.
        unsafe {
            mapping
                .add(skip)
                .copy_from_nonoverlapping(NonNull::from(code).cast(), code.len())
        };
        let rights = MprotectFlags::READ | MprotectFlags::EXEC;
        // SAFETY: this is our own mapping, which is not written to from here on.
        unsafe { mprotect(mapping.as_ptr().cast(), mapping_bytes, rights) }
            .map_err(|source| CodeError::Refused(source.into()))?;
        Ok(executable)
    }

    /// Returns the code.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes were written there, and they never change.
        unsafe { std::slice::from_raw_parts(self.mapping.add(self.skip).as_ptr(), self.len) }
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // This fails only for addresses that are not a mapping. SAFETY: this is our own mapping; the owner drops code only
        // when no thread executes it.
        let _ = unsafe { munmap(self.mapping.as_ptr().cast(), self.mapping_bytes) };
        self.room.used_bytes.fetch_sub(self.mapping_bytes, Relaxed);
    }
}

fn map(bytes: usize) -> Result<NonNull<u8>, CodeError> {
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the system chooses the address, so none of our mappings is replaced.
    let mapping = unsafe { mmap_anonymous(null_mut(), bytes, rights, MapFlags::PRIVATE) }
        .map_err(|source| CodeError::Refused(source.into()))?;
    NonNull::new(mapping.cast()).ok_or(CodeError::Refused(Errno::NOMEM.into()))
}
