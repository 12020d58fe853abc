//! The program in the kernel, and its rings and connections.

use super::programs::Programs;
use super::queue::{Queue, Untold};
use super::session::Memory;
use crate::kernel::{Unavailable, check_system};
use crate::pool::{Lease, Pool};
use crate::waker::ring_bytes;
use parking_lot::Mutex;
use slab::Slab;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Maximum number of rings: `MAX_RINGS` of `bpf/ring.bpf.c`.
const MAX_RINGS: usize = 1024;

/// The kernel's half of ring mode, loaded. It stays in the kernel until the last clone of this is dropped or the process ends.
#[derive(Clone)]
pub struct RingKernel(Arc<Shared>);

struct Shared {
    untold: Arc<Untold>,
    sessions: Pool,
    slots: Mutex<Slots>,
}

/// The program, and the used slots of its maps.
struct Slots {
    programs: Programs,
    rings: Slab<()>,
}

impl RingKernel {
    /// Loads the program.
    ///
    /// # Errors
    /// [`Unavailable`] if this build has no program, or the kernel does not accept it.
    pub fn start() -> Result<Self, Unavailable> {
        check_system()?;
        let shared = load().map_err(Unavailable::because)?;
        Ok(Self(Arc::new(shared)))
    }

    /// Limits the number of connections at a time: see [`Kernel::max_switches`](crate::Kernel::max_switches). Each needs about
    /// 50 KB of the kernel's memory. The program reads the sockets of further connections itself.
    pub fn max_switches(self, count: u32) -> Self {
        self.0.sessions.limit(count);
        self
    }

    /// Creates a ring of at least this number of bytes.
    pub(crate) fn open_ring(&self, bytes: usize) -> io::Result<RingHandle> {
        let bytes = bytes.clamp(ring_bytes(), 1 << 30);
        let bytes = bytes.next_power_of_two();
        let mut slots = self.0.slots.lock();
        let number = take(&mut slots.rings, MAX_RINGS)?;
        let queue = slots
            .programs
            .new_ring(number, bytes as u32)
            .and_then(|ring| Queue::map(ring, number, bytes, Arc::clone(&self.0.untold)));
        match queue {
            Ok(queue) => Ok(RingHandle {
                kernel: self.clone(),
                queue,
            }),
            Err(error) => {
                slots.forget_ring(number);
                Err(error)
            }
        }
    }

    /// Returns an unused session.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if no session is ready now, or the limit is reached.
    pub(crate) fn open_session(&self) -> io::Result<(Lease, Memory)> {
        let lease = self.0.sessions.take().ok_or(io::ErrorKind::WouldBlock)?;
        let memory = Memory::map(lease.session())?;
        Ok((lease, memory))
    }

    /// Passes input of a switch's socket through the program from now on.
    pub(crate) fn attach(&self, slot: u32, cookie: u64, socket: BorrowedFd) -> io::Result<()> {
        self.0.slots.lock().programs.attach(slot, cookie, socket)
    }

    /// Removes a session's socket from the maps.
    pub(crate) fn close_session(&self, slot: u32, cookie: u64) {
        let slots = self.0.slots.lock();
        slots.programs.forget_session(slot, cookie);
    }
}

/// A ring in the kernel, which is released when this is dropped.
pub(crate) struct RingHandle {
    kernel: RingKernel,
    pub queue: Queue,
}

impl Drop for RingHandle {
    fn drop(&mut self) {
        let number = self.queue.number();
        self.kernel.0.slots.lock().forget_ring(number);
    }
}

impl Slots {
    fn forget_ring(&mut self, number: u32) {
        self.programs.forget_ring(number);
        self.rings.remove(number as usize);
    }
}

fn load() -> io::Result<Shared> {
    let programs = Programs::load()?;
    let (entries, maker) = programs.sessions()?;
    Ok(Shared {
        untold: Arc::new(programs.untold(MAX_RINGS)?),
        sessions: Pool::start(entries, Some(maker), &[])?,
        slots: Mutex::new(Slots {
            programs,
            rings: Slab::new(),
        }),
    })
}

/// Returns an unused number below `limit`.
fn take(used: &mut Slab<()>, limit: usize) -> io::Result<u32> {
    let number = used.insert(());
    if number < limit {
        return Ok(number as u32);
    }
    used.remove(number);
    Err(io::Error::other(format!("the limit of {limit} is reached")))
}
