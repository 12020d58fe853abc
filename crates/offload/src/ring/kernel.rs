//! The program in the kernel, and which rings and connections it has.

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

/// How many rings there can be: `MAX_RINGS` of `bpf/ring.bpf.c`.
const MAX_RINGS: usize = 1024;

/// The kernel's half of ring mode, loaded. It is in the kernel until the last copy of this is dropped or the process ends.
#[derive(Clone)]
pub struct RingKernel(Arc<Shared>);

struct Shared {
    untold: Arc<Untold>,
    sessions: Pool,
    slots: Mutex<Slots>,
}

/// The program, and what of its maps is in use.
struct Slots {
    programs: Programs,
    rings: Slab<()>,
}

impl RingKernel {
    /// Loads the program.
    ///
    /// # Errors
    /// [`Unavailable`] where there is none, or the kernel does not take it.
    pub fn start() -> Result<Self, Unavailable> {
        check_system()?;
        let shared = load().map_err(Unavailable::because)?;
        Ok(Self(Arc::new(shared)))
    }

    /// The same for at most so many connections at a time: see [`Kernel::max_switches`](crate::Kernel::max_switches). Each takes about
    /// 50 KB of the kernel's memory; the program reads from the others' sockets.
    pub fn max_switches(self, count: u32) -> Self {
        self.0.sessions.limit(count);
        self
    }

    /// A ring of at least so many bytes.
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

    /// A session, which nobody has used.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where none is ready now, or there are too many.
    pub(crate) fn open_session(&self) -> io::Result<(Lease, Memory)> {
        let lease = self.0.sessions.take().ok_or(io::ErrorKind::WouldBlock)?;
        let memory = Memory::map(lease.session())?;
        Ok((lease, memory))
    }

    /// Has what comes from a switch's socket go through the program.
    pub(crate) fn attach(&self, slot: u32, cookie: u64, socket: BorrowedFd) -> io::Result<()> {
        self.0.slots.lock().programs.attach(slot, cookie, socket)
    }

    /// Takes a session's socket out of the maps.
    pub(crate) fn close_session(&self, slot: u32, cookie: u64) {
        let slots = self.0.slots.lock();
        slots.programs.forget_session(slot, cookie);
    }
}

/// A ring of the kernel's; it is given back when this is dropped.
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

/// A number below `limit` that nobody has.
fn take(used: &mut Slab<()>, limit: usize) -> io::Result<u32> {
    let number = used.insert(());
    if number < limit {
        return Ok(number as u32);
    }
    used.remove(number);
    Err(io::Error::other(format!(
        "there are {limit} already, and no more are possible"
    )))
}
