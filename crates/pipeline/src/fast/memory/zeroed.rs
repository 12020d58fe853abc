//! Zeroed memory for large arrays, aligned to cache lines, and in huge pages if that is faster.

#[cfg(miri)]
use crate::miri_memory::madvise;
use rustix::mm::Advice;
#[cfg(not(miri))]
use rustix::mm::madvise;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

/// The size of the processor's large pages, in bytes: a TLB entry covers this much.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The alignment of arrays and blocks, in bytes.
pub(crate) const CACHE_LINE_BYTES: usize = 64;

/// Prefetches the cache line at an address, which need not be valid.
#[inline]
pub(crate) fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which is allowed for any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Memory that is zeroed at first, and freed on drop.
#[derive(Debug)]
pub(crate) struct Zeroed {
    pointer: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its memory like a `Vec`, and returns no mutable references to it.
unsafe impl Send for Zeroed {}
// SAFETY: as above.
unsafe impl Sync for Zeroed {}

impl Zeroed {
    /// Allocates zeroed memory of at least one byte.
    ///
    /// # Panics
    /// If `bytes` is 0 or more than half of the address space. Aborts, like a `Vec`, if there is not enough memory.
    pub fn new(bytes: usize) -> Self {
        assert_ne!(bytes, 0, "an array has a size");
        let huge = bytes >= HUGE_PAGE_BYTES;
        let align = if huge {
            HUGE_PAGE_BYTES
        } else {
            CACHE_LINE_BYTES
        };
        let layout = Layout::from_size_align(bytes, align).expect("an array fits into memory");
        // SAFETY: the layout's size is not 0.
        let Some(pointer) = NonNull::new(unsafe { alloc(layout) }) else {
            handle_alloc_error(layout)
        };
        if huge {
            // This is advice, which a kernel without huge pages refuses; it then uses small ones. SAFETY: these are the whole
            // pages of our own memory; their content stays.
            let _ = unsafe {
                let whole_pages = bytes & !(HUGE_PAGE_BYTES - 1);
                madvise(pointer.as_ptr().cast(), whole_pages, Advice::LinuxHugepage)
            };
        }
        // This is the first access to the pages, which are then huge ones.
        // SAFETY: this is our own memory, `bytes` long.
        unsafe { pointer.write_bytes(0, bytes) };
        Self { pointer, layout }
    }

    /// Returns its start, which is aligned to a cache line.
    pub fn pointer(&self) -> *mut u8 {
        self.pointer.as_ptr()
    }

    /// Returns all of it as 32-bit numbers, which others may read concurrently.
    pub fn atomics(&self) -> &[AtomicU32] {
        let len = self.bytes() / size_of::<AtomicU32>();
        // SAFETY: this is our own memory, initialised with zeros and aligned to a cache line, and not freed while `self` is
        // borrowed. There are no mutable references into it, since none is ever returned.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr().cast(), len) }
    }

    /// Returns the size, in bytes.
    pub fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Zeroed {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout, and freed nowhere else.
        unsafe { dealloc(self.pointer.as_ptr(), self.layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_are_zeros_and_aligned() {
        for (bytes, align) in [
            (1, CACHE_LINE_BYTES),
            (4096, CACHE_LINE_BYTES),
            (HUGE_PAGE_BYTES + 64, HUGE_PAGE_BYTES),
        ] {
            let zeroed = Zeroed::new(bytes);
            assert_eq!(zeroed.bytes(), bytes);
            assert!(zeroed.pointer().addr() % align == 0);
            // SAFETY: these are `bytes` of initialised memory, which is not shared.
            let content = unsafe { std::slice::from_raw_parts(zeroed.pointer(), bytes) };
            assert!(content.iter().all(|&byte| byte == 0));
        }
    }
}
