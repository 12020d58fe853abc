//! The rings of an XDP socket: one side produces, the other consumes, without locks.
//!
//! Each side has an index that only it writes and that only increases. An entry is at its index modulo the ring's size, a
//! power of two. Publishing an index (with release) passes the entries before it to the other side; reading the index (with
//! acquire) accepts them.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::xdp::XdpRingOffset;
use std::mem::size_of;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// `XDP_RING_NEED_WAKEUP`: the kernel does not check the ring automatically.
const NEED_WAKEUP: u32 = 1;

/// A ring that the kernel consumes.
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// The index after the last entry written, which is published later.
    written: u32,
}

impl<T: Copy> Producer<T> {
    pub fn map(
        socket: &OwnedFd,
        offsets: &XdpRingOffset,
        size: usize,
        page: u64,
    ) -> Result<Self, Errno> {
        let ring = Ring::map(socket, offsets, size, page)?;
        Ok(Self { ring, written: 0 })
    }

    /// Writes an entry. The ring has space, since there are no more frames than entries.
    pub fn push(&mut self, entry: T) {
        // SAFETY: the entry is ours until it is published; there is space, as explained above.
        unsafe { self.ring.entry(self.written).write(entry) };
        self.written = self.written.wrapping_add(1);
    }

    /// Publishes the written entries to the kernel.
    pub fn publish(&mut self) {
        self.ring.producer().store(self.written, Ordering::Release);
    }

    /// Returns the number of entries that the kernel has not read.
    pub fn unread(&self) -> u32 {
        let read = self.ring.consumer().load(Ordering::Acquire);
        self.written.wrapping_sub(read)
    }

    /// Replaces the entries that the kernel has not read. It must not read any during the call.
    pub fn replace_unread(&mut self, mut replace: impl FnMut(T) -> T) {
        for back in (1..=self.unread()).rev() {
            let entry = self.ring.entry(self.written.wrapping_sub(back));
            // SAFETY: the entry was written, and the kernel does not read it during this call.
            unsafe { entry.write(replace(entry.read())) };
        }
    }

    /// Returns whether the kernel waits for a system call.
    pub fn needs_wakeup(&self) -> bool {
        self.ring.flags().load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }
}

/// A ring that the kernel produces.
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    /// The index of the next entry to read, which is published later.
    read: u32,
}

impl<T: Copy> Consumer<T> {
    pub fn map(
        socket: &OwnedFd,
        offsets: &XdpRingOffset,
        size: usize,
        page: u64,
    ) -> Result<Self, Errno> {
        let ring = Ring::map(socket, offsets, size, page)?;
        Ok(Self { ring, read: 0 })
    }

    /// Returns the next entry, if any.
    pub fn pop(&mut self) -> Option<T> {
        if self.ring.producer().load(Ordering::Acquire) == self.read {
            return None;
        }
        // SAFETY: the kernel has published the entry, and does not overwrite it before it is released.
        let entry = unsafe { self.ring.entry(self.read).read() };
        self.read = self.read.wrapping_add(1);
        Some(entry)
    }

    /// Returns the entries that have been read to the kernel.
    pub fn release(&mut self) {
        self.ring.consumer().store(self.read, Ordering::Release);
    }
}

/// A mapping with two indices, flags, and entries.
struct Ring<T> {
    memory: NonNull<u8>,
    bytes: usize,
    offsets: XdpRingOffset,
    entries: NonNull<T>,
    mask: u32,
}

// SAFETY: the mapping belongs to this value alone, and the entries are numbers.
unsafe impl<T> Send for Ring<T> {}

impl<T> Ring<T> {
    fn map(
        socket: &OwnedFd,
        offsets: &XdpRingOffset,
        size: usize,
        page: u64,
    ) -> Result<Self, Errno> {
        if offsets.flags.is_none() {
            // The kernel is older than Linux 5.4.
            return Err(Errno::OPNOTSUPP);
        }
        let bytes = offsets.desc as usize + size * size_of::<T>();
        let (access, flags) = (
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::POPULATE,
        );
        // SAFETY: this is a new mapping, at an address of the kernel's choice.
        let memory = unsafe { mmap(std::ptr::null_mut(), bytes, access, flags, socket, page)? };
        let memory = NonNull::new(memory.cast::<u8>()).ok_or(Errno::NOMEM)?;
        Ok(Self {
            memory,
            bytes,
            offsets: *offsets,
            // SAFETY: the kernel reports this as the entries' offset, and it is aligned.
            entries: unsafe { memory.add(offsets.desc as usize).cast() },
            mask: size as u32 - 1,
        })
    }

    fn entry(&self, index: u32) -> NonNull<T> {
        // SAFETY: the mask keeps it within the mapping.
        unsafe { self.entries.add((index & self.mask) as usize) }
    }

    fn producer(&self) -> &AtomicU32 {
        self.index(self.offsets.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.index(self.offsets.consumer)
    }

    fn flags(&self) -> &AtomicU32 {
        // Checked when the ring was mapped.
        self.index(self.offsets.flags.unwrap_or(self.offsets.producer))
    }

    fn index(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel reports this as an index's offset, and it is aligned; both sides access it atomically.
        unsafe { AtomicU32::from_ptr(self.memory.as_ptr().add(offset as usize).cast()) }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping, and nothing refers to it any longer.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}
