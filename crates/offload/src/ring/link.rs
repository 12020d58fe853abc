//! One connection's link to a ring.

use super::kernel::RingKernel;
use super::session::{CARRY_BYTES, Memory, Shared};
use crate::link::{has_input, have_queue_checked};
use crate::pool::Lease;
use crate::socket::{bound_queues, cookie};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use urtica_wire::Version;

/// A connection's settings for the kernel.
pub(crate) struct Setup {
    /// The connection's number in entries. No other connection of the ring has or had it.
    pub connection: u64,
    pub ring: u32,
    pub version: Version,
    /// Whether entries have records.
    pub wants_records: bool,
    /// Bit N: messages of type N are sent to the ring.
    pub types: u64,
}

/// Counts of the kernel's work since the connection was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelCounts {
    /// Bytes of messages that were put into the ring.
    pub delivered_bytes: u64,
    /// Number of times that input was passed because it contained a message that is not for the ring, or because the switch did
    /// not read its replies.
    pub passed: u64,
    /// Number of times that input was passed because it was long: the queue is then long too, and large reads are faster.
    pub fell_back: u64,
    /// Number of times that input was passed because the ring was full.
    pub ring_full: u64,
}

impl std::ops::Add for KernelCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            delivered_bytes: self.delivered_bytes + other.delivered_bytes,
            passed: self.passed + other.passed,
            fell_back: self.fell_back + other.fell_back,
            ring_full: self.ring_full + other.ring_full,
        }
    }
}

/// One connection's link to a ring. Either the kernel puts the connection's input there, or the program reads it from the
/// socket.
pub(crate) struct Link {
    kernel: RingKernel,
    lease: Lease,
    cookie: u64,
    memory: Arc<Memory>,
    /// Number of bytes that the program has read from the socket since it was attached.
    read: u64,
    is_read_by_kernel: bool,
    /// Whether the kernel has lost the socket.
    is_lost: bool,
}

impl Link {
    /// Inserts the kernel half between this socket and the program, which continues to read until it hands over. All earlier
    /// input has been read.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if no session is available for it now.
    pub fn attach(kernel: &RingKernel, socket: BorrowedFd, setup: &Setup) -> io::Result<Self> {
        let cookie = cookie(socket)?;
        bound_queues(socket)?;
        let (lease, memory) = kernel.open_session()?;
        let slot = lease.slot();
        let link = Self {
            kernel: kernel.clone(),
            lease,
            cookie,
            memory: Arc::new(memory),
            read: 0,
            is_read_by_kernel: false,
            is_lost: false,
        };
        link.set_up(setup);
        kernel.attach(slot, cookie, socket)?;
        have_queue_checked(socket);
        Ok(link)
    }

    fn set_up(&self, setup: &Setup) {
        let shared = self.shared();
        shared.connection.store(setup.connection, Relaxed);
        shared.ring.store(setup.ring, Relaxed);
        shared
            .version
            .store(setup.version.to_wire().into(), Relaxed);
        shared
            .wants_records
            .store(setup.wants_records.into(), Relaxed);
        shared.types.store(setup.types, Relaxed);
    }

    fn shared(&self) -> &Shared {
        self.memory.shared()
    }

    /// Returns the session's memory, which kernel and program share.
    pub fn memory(&self) -> Weak<Memory> {
        Arc::downgrade(&self.memory)
    }

    /// Sends messages of these types to the ring from now on.
    pub fn set_types(&self, types: u64) {
        self.shared().types.store(types, Relaxed);
    }

    /// Returns whether the kernel puts the input into the ring, as far as the program knows.
    pub fn is_read_by_kernel(&self) -> bool {
        self.is_read_by_kernel
    }

    /// Notes that the program has read this number of bytes from the socket.
    pub fn note_read(&mut self, count: usize) {
        self.read += count as u64;
    }

    /// Hands the input over to the kernel, with the start of a message. Returns `false` if that is not possible now, for
    /// instance because more input was passed.
    pub fn hand_over(&mut self, fragment: &[u8]) -> bool {
        let shared = self.memory.shared();
        if self.is_read_by_kernel || self.is_lost || fragment.len() >= CARRY_BYTES {
            return false;
        }
        shared.set_fragment(fragment);
        shared.is_wanted.store(0, Relaxed);
        self.is_read_by_kernel = shared.owner.hand_over(self.read);
        self.is_read_by_kernel
    }

    /// Takes the input back if the kernel has passed some: appends the start of a message that the kernel had kept. All earlier
    /// messages in the ring have been read. Returns whether the kernel had passed any.
    pub fn take_back(&mut self, input: &mut Vec<u8>) -> bool {
        let shared = self.memory.shared();
        if !self.is_read_by_kernel || !shared.owner.is_program() {
            return false;
        }
        self.is_read_by_kernel = false;
        shared.take_fragment(input);
        true
    }

    /// Returns whether input waits in the socket although the kernel has passed none, because another process has removed the
    /// socket from its map. The program is then the owner permanently.
    pub fn is_found_lost(&mut self, socket: BorrowedFd) -> bool {
        let owner = &self.memory.shared().owner;
        if !self.is_read_by_kernel || !has_input(socket) || owner.is_program() {
            return false;
        }
        owner.reclaim();
        self.is_lost = true;
        true
    }

    /// Requests the kernel to pass further input, after its messages in the ring.
    pub fn request_back(&self) {
        self.shared().is_wanted.store(1, Relaxed);
    }

    /// Returns the kernel's counts.
    pub fn counts(&self) -> KernelCounts {
        let (shared, get) = (self.shared(), |counter: &AtomicU64| counter.load(Relaxed));
        KernelCounts {
            delivered_bytes: get(&shared.delivered),
            passed: get(&shared.passed_other),
            fell_back: get(&shared.passed_long),
            ring_full: get(&shared.passed_full),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.kernel.close_session(self.lease.slot(), self.cookie);
    }
}
