//! Replacements for memory system calls under the interpreter Miri: ordinary allocations of at most a few MiB. The arena then
//! requests less, as when a system refuses.

use rustix::io::{Errno, Result};
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;

const BYTES_MAX: usize = 8 << 20;

/// The alignment that the arena expects of `mmap`: the size of a huge page.
const ALIGN_BYTES: usize = 2 << 20;

/// Memory from the allocator, all of it readable and writable.
pub(crate) unsafe fn mmap_anonymous(
    _near: *mut c_void,
    bytes: usize,
    _protection: ProtFlags,
    _flags: MapFlags,
) -> Result<*mut c_void> {
    if bytes > BYTES_MAX {
        return Err(Errno::NOMEM);
    }
    // SAFETY: the arena requests huge pages, and so never zero bytes.
    Ok(unsafe { alloc_zeroed(layout(bytes)) }.cast())
}

pub(crate) unsafe fn munmap(mapping: *mut c_void, bytes: usize) -> Result<()> {
    // SAFETY: the caller returns a mapping of `mmap_anonymous`, with its length.
    unsafe { dealloc(mapping.cast(), layout(bytes)) };
    Ok(())
}

pub(crate) unsafe fn mprotect(_: *mut c_void, _: usize, _: MprotectFlags) -> Result<()> {
    Ok(())
}

pub(crate) unsafe fn madvise(start: *mut c_void, bytes: usize, advice: Advice) -> Result<()> {
    if advice as i32 == Advice::LinuxDontNeed as i32 {
        // SAFETY: the caller discards the content of its own memory.
        unsafe { start.write_bytes(0, bytes) };
    }
    Ok(())
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGN_BYTES).expect("a few MiB")
}
