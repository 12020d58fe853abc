//! The memory for frames that XDP sockets share with the kernel and with each other (UMEM).
//!
//! **What.** Frames of [`FRAME_BYTES`]. Each is in a socket's ring, or in use as a [`LentFrame`], or free: in a port's own
//! store, or in the shared one. Ports that forward to each other share a memory ([`FrameMemory`]), so that forwarding moves
//! a frame between rings without copying it.
//!
//! **Cost.** `SHARE` frames for each queue, in huge pages if the system has free ones. The shared store is locked when a
//! port's own store is empty or too large: at most once per burst.
//!
//! **Limits.** Other ports cannot use a closed port's frames. Its share is also unused, so they do not lack frames.

use crate::port::lent::{LentFrame, MemoryId};
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::net::sockopt;
use rustix::net::xdp::{XdpUmemReg, XdpUmemRegFlags};
use std::ptr::{NonNull, null_mut};
use std::sync::{Arc, Weak};

/// Size of one frame's memory.
pub(super) const FRAME_BYTES: usize = 4096;

/// Number of frames that may wait to be received by a queue, and to be sent; both are powers of two.
pub(super) const RX_FRAMES: usize = 2048;
pub(super) const TX_FRAMES: usize = 1024;

/// Number of free frames in a port's own store.
pub(super) const SPARE_FRAMES: usize = 64;

/// Number of frames that a queue needs, including a burst in progress.
const SHARE: usize = RX_FRAMES + TX_FRAMES + 4 * SPARE_FRAMES;

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The memory that sockets share.
pub(super) struct Memory {
    id: MemoryId,
    start: NonNull<u8>,
    bytes: usize,
    /// Addresses of free frames that no port has.
    free: Mutex<Vec<u64>>,
}

// SAFETY: the mapping belongs to this value alone, and nothing in it depends on the thread; the owner of a frame's address
// may access the frame.
unsafe impl Send for Memory {}
// SAFETY: as for `Send`.
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates memory for `queues` queues.
    ///
    /// # Errors
    /// The system's error if there is not enough memory.
    pub fn new(queues: usize) -> Result<Self, Errno> {
        let frames = queues * SHARE;
        let bytes = (frames * FRAME_BYTES).next_multiple_of(HUGE_PAGE_BYTES);
        Ok(Self {
            id: MemoryId::new(),
            start: map(bytes)?,
            bytes,
            free: Mutex::new((0..frames).rev().map(address).collect()),
        })
    }

    pub fn id(&self) -> MemoryId {
        self.id
    }

    /// Registers the memory with the kernel through this socket.
    pub fn register(&self, socket: &OwnedFd) -> Result<(), Errno> {
        let region = XdpUmemReg {
            addr: self.start.as_ptr() as u64,
            len: self.bytes as u64,
            chunk_size: FRAME_BYTES as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(socket, region)
    }

    /// Moves up to `count` free frames to `to`.
    pub fn take(&self, count: usize, to: &mut Vec<u64>) {
        let mut free = self.free.lock();
        let left = free.len().saturating_sub(count);
        to.extend(free.drain(left..));
    }

    /// Takes back all frames of `from` except the first `keep`.
    pub fn release(&self, from: &mut Vec<u64>, keep: usize) {
        if from.len() > keep {
            self.free.lock().extend(from.drain(keep..));
        }
    }

    /// Returns the memory of the frame that contains this address.
    ///
    /// # Panics
    /// If there is no such frame.
    pub fn room(&self, address: u64) -> NonNull<[u8]> {
        let begin = frame_of(address) as usize;
        assert!(
            begin + FRAME_BYTES <= self.bytes,
            "addresses are of our frames"
        );
        // SAFETY: this is within the mapping, as just asserted.
        NonNull::slice_from_raw_parts(unsafe { self.start.add(begin) }, FRAME_BYTES)
    }

    /// Returns `len` bytes of a frame, starting at this address.
    ///
    /// # Panics
    /// If the frame ends before.
    ///
    /// # Safety
    /// The caller owns the frame: the kernel has returned it, or it was free.
    #[allow(clippy::mut_from_ref)] // Different addresses are different frames.
    pub unsafe fn bytes_mut(&self, address: u64, len: usize) -> &mut [u8] {
        // SAFETY: this is within the mapping; the caller promises the rest.
        let room = unsafe { self.room(address).as_mut() };
        &mut room[offset(address)..][..len]
    }

    /// Returns the address of a lent frame.
    pub fn address_of(&self, frame: &LentFrame) -> u64 {
        let room = frame.room().cast::<u8>().addr().get() - self.start.addr().get();
        (room + frame.start()) as u64
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping. The kernel keeps the pages as long as it needs them. Ports keep this value, and
        // lent frames are not used without ports.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Maps huge pages, if some are reserved; otherwise small ones, which the system may combine.
fn map(bytes: usize) -> Result<NonNull<u8>, Errno> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let map = |flags| {
        // SAFETY: a new mapping, at an address of the kernel's choice.
        unsafe { mmap_anonymous(null_mut(), bytes, access, MapFlags::PRIVATE | flags) }
    };
    let start = map(MapFlags::HUGETLB | MapFlags::POPULATE).or_else(|error| {
        tracing::info!(%error, bytes, "too few huge pages are reserved for AF_XDP (vm.nr_hugepages); using normal pages");
        let start = map(MapFlags::empty())?;
        // This is advice, which a kernel without huge pages refuses.
        // SAFETY: this is our own mapping, which contains nothing yet.
        let _ = unsafe { madvise(start, bytes, Advice::LinuxHugepage) };
        Ok::<_, Errno>(start)
    })?;
    NonNull::new(start.cast()).ok_or(Errno::NOMEM)
}

/// Returns the address of frame `number`.
fn address(number: usize) -> u64 {
    (number * FRAME_BYTES) as u64
}

/// Returns the address of the frame that contains `address`.
pub(super) fn frame_of(address: u64) -> u64 {
    address & !(FRAME_BYTES as u64 - 1)
}

/// Returns the offset of `address` in its frame.
pub(super) fn offset(address: u64) -> usize {
    address as usize % FRAME_BYTES
}

/// How frames are received and sent. All sockets that share a memory are of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// Whether the driver uses the memory itself; otherwise the kernel copies.
    pub is_zero_copy: bool,
    /// Whether frames longer than a frame's memory are received in parts (Linux 6.6).
    pub has_parts: bool,
}

/// The memories of AF_XDP ports that forward to each other, in one thread. A port that cannot share any of them, since its
/// driver receives frames differently, gets its own.
#[derive(Default)]
pub struct FrameMemory {
    /// Number of ports that have not been opened yet.
    expected: usize,
    memories: Vec<Known>,
}

struct Known {
    kind: Kind,
    memory: Weak<Memory>,
    /// The socket through which the memory was registered.
    socket: Weak<OwnedFd>,
    /// Number of queues for which the memory has space.
    room: usize,
}

impl FrameMemory {
    /// Prepares memory for `count` ports. A further port gets its own.
    pub fn for_ports(count: usize) -> Self {
        Self {
            expected: count,
            memories: Vec::new(),
        }
    }

    /// Notes that one port is about to be opened.
    pub(super) fn expect_one_less(&mut self) {
        self.expected = self.expected.saturating_sub(1);
    }

    /// Returns memory that a port with `queues` queues may share, and the socket through which to share it.
    pub(super) fn find(&self, kind: Kind, queues: usize) -> Option<(Arc<Memory>, Arc<OwnedFd>)> {
        let fits = |known: &&Known| known.kind == kind && known.room >= queues;
        let mut fitting = self.memories.iter().filter(fits);
        fitting.find_map(|known| Some((known.memory.upgrade()?, known.socket.upgrade()?)))
    }

    /// Allocates memory for `queues` queues and for later ports.
    pub(super) fn make(&self, queues: usize) -> Result<Memory, Errno> {
        Memory::new(queues + self.expected)
    }

    /// Notes that `queues` further queues share a memory that was registered through this socket.
    pub(super) fn note(
        &mut self,
        kind: Kind,
        memory: &Arc<Memory>,
        socket: &Arc<OwnedFd>,
        queues: usize,
    ) {
        let is_known = |known: &&mut Known| std::ptr::eq(known.memory.as_ptr(), &**memory);
        if let Some(known) = self.memories.iter_mut().find(is_known) {
            known.room -= queues;
            return;
        }
        self.memories.push(Known {
            kind,
            memory: Arc::downgrade(memory),
            socket: Arc::downgrade(socket),
            room: self.expected,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_taken_and_released() {
        let memory = Memory::new(1).unwrap();
        let mut taken = Vec::new();
        memory.take(40, &mut taken);
        assert_eq!(taken.len(), 40);
        memory.take(usize::MAX, &mut taken);
        assert_eq!(taken.len(), SHARE);
        taken.sort_unstable();
        assert!(taken.iter().copied().eq((0..SHARE).map(address)));
        memory.release(&mut taken, 10);
        assert_eq!(taken.len(), 10);
        memory.take(usize::MAX, &mut taken);
        assert_eq!(taken.len(), SHARE);
    }

    #[test]
    fn frame_memories_are_adjacent() {
        let memory = Memory::new(1).unwrap();
        let (one, next) = (memory.room(5000), memory.room(8192));
        assert_eq!(
            next.cast::<u8>().addr().get() - one.cast::<u8>().addr().get(),
            FRAME_BYTES
        );
        let frame = LentFrame::new(memory.id(), one, 300, 60);
        assert_eq!(memory.address_of(&frame), 4096 + 300);
        // SAFETY: only this code has the frame.
        let bytes = unsafe { memory.bytes_mut(8192 + 4000, 96) };
        bytes.fill(1);
    }

    #[test]
    #[should_panic]
    fn bytes_beyond_a_frame_are_refused() {
        let memory = Memory::new(1).unwrap();
        // SAFETY: nothing else has the frame.
        unsafe { memory.bytes_mut(4000, 97) };
    }
}
