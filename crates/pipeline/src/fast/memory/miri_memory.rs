//! What stands in, under the interpreter Miri, for the system calls about memory that it does not know: ordinary
//! allocations, of a few MiB at most, so that [`super::arena`] asks for less, as it does where a system refuses.

use rustix::io::{Errno, Result};
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;

const BYTES_MAX: usize = 8 << 20;

/// What the arena expects of `mmap`: the size of a huge page.
const ALIGN_BYTES: usize = 2 << 20;

/// Memory from the allocator, all of it readable and writable.
pub(super) unsafe fn mmap_anonymous(
    _near: *mut c_void,
    bytes: usize,
    _protection: ProtFlags,
    _flags: MapFlags,
) -> Result<*mut c_void> {
    if bytes > BYTES_MAX {
        return Err(Errno::NOMEM);
    }
    // SAFETY: the arena asks for huge pages, and so never for none.
    Ok(unsafe { alloc_zeroed(layout(bytes)) }.cast())
}

pub(super) unsafe fn munmap(mapping: *mut c_void, bytes: usize) -> Result<()> {
    // SAFETY: the caller gives back what `mmap_anonymous` gave, with the same length.
    unsafe { dealloc(mapping.cast(), layout(bytes)) };
    Ok(())
}

pub(super) unsafe fn mprotect(_: *mut c_void, _: usize, _: MprotectFlags) -> Result<()> {
    Ok(())
}

pub(super) unsafe fn madvise(start: *mut c_void, bytes: usize, advice: Advice) -> Result<()> {
    if advice as i32 == Advice::LinuxDontNeed as i32 {
        // SAFETY: the caller gives up what is there, in memory of its own.
        unsafe { start.write_bytes(0, bytes) };
    }
    Ok(())
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGN_BYTES).expect("a few MiB")
}
