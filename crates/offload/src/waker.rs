//! Wakes a program that becomes the owner: a ring of the kernel, of which only the positions are read.

use memmap2::{MmapOptions, MmapRaw};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

/// Returns the size of a ring: the minimum, a page.
pub fn ring_bytes() -> usize {
    // SAFETY: the call only returns a value.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(page).expect("every system has pages")
}

/// A ring, which becomes readable for `epoll` after an entry was put into it.
pub struct Waker {
    ring: OwnedFd,
    consumer: MmapRaw,
    producer: MmapRaw,
}

impl Waker {
    /// Maps the positions of a ring: a page with the consumer's, and a page with the producer's.
    pub fn map(ring: OwnedFd) -> io::Result<Self> {
        let page = ring_bytes();
        let consumer = MmapOptions::new().len(page).map_raw(ring.as_raw_fd())?;
        let producer = MmapOptions::new()
            .offset(page as u64)
            .len(page)
            .map_raw_read_only(ring.as_raw_fd())?;
        Ok(Self {
            ring,
            consumer,
            producer,
        })
    }

    /// Empties the ring.
    pub fn clear(&self) {
        let last = position(&self.producer).load(Acquire);
        position(&self.consumer).store(last, Release);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

/// Returns the position at the front of a page.
fn position(page: &MmapRaw) -> &AtomicU64 {
    // SAFETY: a page is mapped there for as long as `page` lives, and it starts with a number that the kernel reads and writes
    // atomically. The producer's page, which is mapped for reading, is only read.
    unsafe { &*page.as_ptr().cast() }
}
