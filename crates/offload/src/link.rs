//! One connection's kernel half: its session, and the pair of sockets that its replies go through.

use crate::kernel::{Kernel, Opened, Way};
use crate::mode::{Mode, Pace};
use crate::session::{CARRY_BYTES, Memory, Shared};
use crate::socket::{
    bound_queues, cookie, peer, read_bytes, received_bytes, wait_for_receiver, written_bytes,
};
use crate::waker::Waker;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use urtica_controller::{Handover, KernelHalf, Reclaimed, Taken};

/// What an application does when the owner of its tables changes.
pub(crate) trait Turns: Send {
    /// The program is about to hand the connection over.
    fn before_kernel(&mut self) {}

    /// The program has the connection back.
    fn after_kernel(&mut self) {}
}

/// Tables that kernel and program use alike.
impl Turns for () {}

/// One connection's kernel half.
pub(crate) struct Link {
    kernel: Kernel,
    turns: Box<dyn Turns>,
    slot: u32,
    memory: Arc<Memory>,
    waker: Waker,
    attached: Option<Attached>,
    pace: Pace,
    /// What had been done in the kernel when the program last became the owner.
    before: Done,
}

/// What there is once the switch's socket is attached.
struct Attached {
    /// Keeps the way of the replies open.
    _relay: OwnedFd,
    _exit: OwnedFd,
    cookies: [u64; 2],
    /// Whether input goes through the kernel's programs, and not straight to the program.
    is_in: bool,
    /// Whether the kernel's part was found to be gone: somebody has taken the socket out of the maps.
    is_gone: bool,
    /// Bytes that had been read before.
    before: u64,
    /// Bytes that came straight to the program since, and that it has read.
    read_aside: u64,
    /// Bytes that were passed to the program and that it has read.
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
    pub fn new(kernel: Kernel, opened: Opened, mode: Mode) -> Self {
        Self::with_turns(kernel, opened, mode, ())
    }

    /// That of an application with something to do when the owner changes.
    pub fn with_turns(
        kernel: Kernel,
        opened: Opened,
        mode: Mode,
        turns: impl Turns + 'static,
    ) -> Self {
        Self {
            kernel,
            turns: Box::new(turns),
            slot: opened.slot,
            memory: opened.memory,
            waker: opened.waker,
            attached: None,
            pace: Pace::new(mode),
            before: Done::default(),
        }
    }

    fn shared(&self) -> &Shared {
        self.memory.shared()
    }

    /// Has input go through the kernel's programs, where it does not. Returns whether it does: not while something may be left of
    /// what came before.
    fn step_in(&mut self, socket: BorrowedFd, is_drained: bool) -> io::Result<bool> {
        let Some(attached) = &mut self.attached else {
            return Ok(false);
        };
        if !attached.is_in && !attached.is_gone && is_drained {
            self.kernel.step_in(self.slot, socket)?;
            attached.is_in = true;
            have_queue_looked_at(socket);
        }
        Ok(attached.is_in)
    }

    /// Has input go straight to the program, if it has read all that was passed to it. All replies of the kernel's are written.
    /// Returns whether that was not so before and is so now.
    fn step_aside(&mut self, socket: BorrowedFd) -> io::Result<bool> {
        let Some(attached) = &mut self.attached else {
            return Ok(false);
        };
        let shared = self.memory.shared();
        if !attached.is_in || shared.owner.passed_bytes() != attached.read {
            return Ok(false);
        }
        self.kernel.step_aside(self.slot)?;
        wait_for_receiver(socket);
        // What was passed meanwhile is before what comes now, and can be read in order only while the programs are there.
        if shared.owner.passed_bytes() != attached.read {
            self.kernel.step_in(self.slot, socket)?;
            have_queue_looked_at(socket);
            return Ok(false);
        }
        attached.is_in = false;
        Ok(true)
    }

    /// Whether something has come that neither the kernel's programs nor the program have seen, although all that was passed has
    /// been read: then the programs are not there any more. The program owns the connection.
    fn is_gone(&self, socket: BorrowedFd) -> bool {
        let (Some(attached), shared) = (&self.attached, self.shared()) else {
            return false;
        };
        let taken = shared.taken_bytes.load(Relaxed);
        let seen = attached.before + attached.read + attached.read_aside + taken;
        // In this order: what comes and is passed in between is counted as passed.
        let has_more = received_bytes(socket).is_ok_and(|received| received > seen);
        has_more && attached.is_in && shared.owner.passed_bytes() == attached.read
    }

    /// Leaves the connection to the program for good.
    fn go_on_alone(&mut self, socket: BorrowedFd) -> Taken {
        if let Some(attached) = &mut self.attached {
            let peer = peer(socket);
            tracing::warn!(%peer, "somebody has taken a switch's socket out of the kernel half's maps; the program answers it alone");
            (attached.is_in, attached.is_gone) = (false, true);
        }
        Taken::SteppedAside
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
        let (before, written) = (read_bytes(socket)?, written_bytes(socket)?);
        self.shared().slot.store(self.slot, Relaxed);
        let entered = self.kernel.attach(self.slot, &way);
        self.attached = Some(Attached {
            _relay: relay,
            _exit: exit,
            cookies,
            is_in: true,
            is_gone: false,
            before,
            read_aside: 0,
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

    fn hand_over(&mut self, socket: BorrowedFd, handover: Handover) -> io::Result<Taken> {
        if self.pace.is_idle() && self.is_gone(socket) {
            return Ok(self.go_on_alone(socket));
        }
        let is_retired = self.shared().is_retired.load(Relaxed) != 0;
        let answered = self.shared().answered.load(Relaxed);
        if is_retired || !self.pace.wants_kernel(answered) {
            return Ok(match self.step_aside(socket)? {
                true => Taken::SteppedAside,
                false => Taken::NotYet,
            });
        }
        if !self.step_in(socket, handover.is_drained)? {
            return Ok(Taken::NotYet);
        }
        let (Some(attached), shared) = (&self.attached, self.memory.shared()) else {
            return Ok(Taken::NotYet);
        };
        self.turns.before_kernel();
        shared.set_fragment(handover.fragment);
        shared.xid.store(handover.xid, Relaxed);
        shared.is_fresh.store(1, Relaxed);
        shared
            .clock_ns
            .store(clock_ns_at(handover.started), Relaxed);
        Ok(match shared.owner.hand_over(attached.read) {
            true => Taken::Yes,
            false => Taken::NotYet,
        })
    }

    fn reclaim(&mut self, input: &mut Vec<u8>) -> Reclaimed {
        let shared = self.memory.shared();
        shared.owner.reclaim();
        self.waker.clear();
        shared.take_fragment(input);
        let (before, now) = (self.before, Done::of(shared));
        self.before = now;
        self.turns.after_kernel();
        Reclaimed {
            xid: shared.xid.load(Relaxed),
            answered: now.answered - before.answered,
            others: 0,
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
        self.pace.note_read(count);
        if let Some(attached) = &mut self.attached {
            match attached.is_in {
                true => attached.read += count as u64,
                false => attached.read_aside += count as u64,
            }
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
pub(crate) fn clock_ns_at(time: std::time::Instant) -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    now_ns.saturating_sub(time.elapsed().as_nanos() as u64)
}

#[cfg(test)]
mod tests;
