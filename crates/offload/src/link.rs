//! One connection's kernel half: its session, and the pair of sockets that its replies go through.

use crate::kernel::{Kernel, Opened, Way};
use crate::session::{CARRY_BYTES, Memory, Shared};
use crate::socket::{bound_queues, cookie, written_bytes};
use crate::waker::Waker;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use urtica_controller::{Handover, KernelHalf, Reclaimed};

/// One connection's kernel half.
pub(crate) struct Link {
    kernel: Kernel,
    slot: u32,
    memory: Arc<Memory>,
    waker: Waker,
    attached: Option<Attached>,
    /// What had been done in the kernel when the program last became the owner.
    before: Done,
}

/// What there is once the switch's socket is attached.
struct Attached {
    /// Keeps the way of the replies open.
    _relay: OwnedFd,
    _exit: OwnedFd,
    cookies: [u64; 2],
    /// Bytes that the program has read since.
    read: u64,
    /// Bytes that were written before, and that the program has written since.
    written: u64,
    /// How many bytes of the kernel's replies are known to be written.
    drained: u64,
}

/// What has been done in the kernel since the beginning.
#[derive(Clone, Copy, Default)]
struct Done {
    answered: u64,
    replies: u64,
    reply_bytes: u64,
    passed: u64,
    fell_back: u64,
}

impl Done {
    fn of(shared: &Shared) -> Self {
        let get = |counter: &AtomicU64| counter.load(Relaxed);
        Self {
            answered: get(&shared.answered),
            replies: get(&shared.replies_sent),
            reply_bytes: get(&shared.reply_bytes),
            passed: get(&shared.passed_other),
            fell_back: get(&shared.passed_long) + get(&shared.passed_full),
        }
    }
}

impl Link {
    pub fn new(kernel: Kernel, opened: Opened) -> Self {
        Self {
            kernel,
            slot: opened.slot,
            memory: opened.memory,
            waker: opened.waker,
            attached: None,
            before: Done::default(),
        }
    }

    fn shared(&self) -> &Shared {
        self.memory.shared()
    }
}

impl KernelHalf for Link {
    fn attach(&mut self, socket: BorrowedFd) -> io::Result<()> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (relay, exit) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let way = Way {
            switch: socket,
            switch_cookie: cookie(socket)?,
            relay: relay.as_fd(),
            exit: exit.as_fd(),
            relay_cookie: cookie(relay.as_fd())?,
        };
        bound_queues(socket)?;
        let cookies = [way.switch_cookie, way.relay_cookie];
        let written = written_bytes(socket)?;
        self.shared().slot.store(self.slot, Relaxed);
        let entered = self.kernel.attach(self.slot, &way);
        self.attached = Some(Attached {
            _relay: relay,
            _exit: exit,
            cookies,
            read: 0,
            written,
            drained: 0,
        });
        entered?;
        have_queue_looked_at(socket);
        Ok(())
    }

    fn wakeup(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }

    fn has_passed(&self) -> bool {
        self.shared().owner.is_program()
    }

    fn hand_over(&mut self, handover: Handover) -> bool {
        let (Some(attached), shared) = (&self.attached, self.memory.shared()) else {
            return false;
        };
        if shared.is_retired.load(Relaxed) != 0 {
            return false;
        }
        shared.set_fragment(handover.fragment);
        shared.xid.store(handover.xid, Relaxed);
        shared.is_fresh.store(1, Relaxed);
        shared
            .clock_ns
            .store(clock_ns_at(handover.started), Relaxed);
        shared.owner.hand_over(attached.read)
    }

    fn reclaim(&mut self, input: &mut Vec<u8>) -> Reclaimed {
        let shared = self.memory.shared();
        shared.owner.reclaim();
        self.waker.clear();
        shared.take_fragment(input);
        let (before, now) = (self.before, Done::of(shared));
        self.before = now;
        Reclaimed {
            xid: shared.xid.load(Relaxed),
            answered: now.answered - before.answered,
            sent: now.replies - before.replies,
            sent_bytes: now.reply_bytes - before.reply_bytes,
            passed: now.passed - before.passed,
            fell_back: now.fell_back - before.fell_back,
        }
    }

    fn may_write(&mut self, socket: BorrowedFd) -> bool {
        let replied = self.shared().reply_bytes.load(Relaxed);
        let Some(attached) = &mut self.attached else {
            return true;
        };
        if attached.drained == replied {
            return true;
        }
        // A socket that tells nothing any more is about to be found broken: by writing to it.
        let waits = written_bytes(socket).is_ok_and(|now| now < attached.written + replied);
        if !waits {
            attached.drained = replied;
        }
        !waits
    }

    fn note_read(&mut self, count: usize) {
        if let Some(attached) = &mut self.attached {
            attached.read += count as u64;
        }
    }

    fn note_written(&mut self, count: usize) {
        if let Some(attached) = &mut self.attached {
            attached.written += count as u64;
        }
    }

    fn max_fragment(&self) -> usize {
        CARRY_BYTES - 1
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let cookies = self.attached.as_ref().map(|attached| attached.cookies);
        self.kernel
            .close_session(self.slot, cookies.as_slice().as_flattened());
    }
}

/// Has the kernel pass what came after the last read and before the socket was attached: it does so when somebody looks for
/// input, or when more comes, which may be never.
pub(crate) fn have_queue_looked_at(socket: BorrowedFd) {
    // What is found stays there, and is seen when it is read.
    let _ = has_input(socket);
}

/// Whether there is something to read.
pub(crate) fn has_input(socket: BorrowedFd) -> bool {
    let found = recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    found.is_ok_and(|(_, count)| count > 0)
}

/// What the kernel's monotonic clock showed at a time in the past, in nanoseconds.
fn clock_ns_at(time: std::time::Instant) -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    now_ns.saturating_sub(time.elapsed().as_nanos() as u64)
}
