//! One connection's kernel half: its session, and the pair of sockets that its replies pass through.
//!
//! **Held connections.** The next program can continue the connection whenever this one dies: see
//! [`takeover`](crate::takeover).

mod attached;
mod done;
mod turns;

use crate::application::Application;
use crate::kernel::{Kernel, Opened, ResumedSession};
use crate::maps::is_closed_by_peer;
use crate::mode::{Mode, Pace};
use crate::pool::Lease;
use crate::session::{CARRY_BYTES, Memory, Shared, next_place};
use crate::socket::{
    bound_queues, has_unread, hold_back_input, is_peer_local, let_input_in, peer, read_bytes,
    received_bytes, written_bytes,
};
use crate::takeover::Counts;
use crate::waker::{Waker, ring_bytes};
use attached::{Attached, Relay};
use done::Done;
use rustix::net::{RecvFlags, recv};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
pub(crate) use turns::{LateTurns, Turns};
use urtica_controller::hold::{Attachment, Progress};
use urtica_controller::{Handover, HeldHalf, Keeper, KernelHalf, Reclaimed, Resumed, Taken};

/// One connection's kernel half.
pub(crate) struct Link {
    kernel: Kernel,
    turns: Box<dyn Turns>,
    lease: Arc<Lease>,
    slot: u32,
    memory: Arc<Memory>,
    waker: Arc<Waker>,
    attached: Option<Attached>,
    pace: Pace,
    /// The counts of the kernel's work when the program last became the owner.
    before: Done,
    /// The pair of sockets, until it is attached.
    relay: Option<Relay>,
    /// Whether a holder keeps the connection.
    is_kept: bool,
    /// Whether the connection stays in the kernel when this is dropped.
    is_left: bool,
    /// The slot of the newest start of a message, and the number of bytes that the kernel had answered at that time.
    place: usize,
    taken_before: u64,
}

/// Replies leave the session within microseconds, or within milliseconds on a busy machine. An unnecessary signal finds no
/// replies.
const SIGNAL_AFTER: Duration = Duration::from_millis(200);

impl Link {
    pub fn new(kernel: Kernel, opened: Opened, mode: Mode) -> Self {
        Self::with_turns(kernel, opened, mode, ())
    }

    /// Creates a link for an application with these actions for changes of the owner.
    pub fn with_turns(
        kernel: Kernel,
        opened: Opened,
        mode: Mode,
        turns: impl Turns + 'static,
    ) -> Self {
        Self {
            kernel,
            turns: Box::new(turns),
            slot: opened.lease.slot(),
            lease: opened.lease,
            memory: opened.memory,
            waker: opened.waker,
            attached: None,
            pace: Pace::new(mode),
            before: Done::default(),
            relay: None,
            is_kept: false,
            is_left: false,
            place: 0,
            taken_before: 0,
        }
    }

    /// Uses one limit for all switches: see [`Pace::without_local_limit`].
    pub fn without_local_limit(mut self) -> Self {
        self.pace.without_local_limit();
        self
    }

    /// Resumes a connection from the kernel half that an earlier program left in these maps. Also returns the session, with
    /// this application's part, for the handler; without an application, the connection can only be released.
    pub fn resume(
        kernel: Kernel,
        kept: &Attachment,
        socket: BorrowedFd,
        application: Option<Application>,
        mode: Mode,
    ) -> io::Result<(Self, ResumedSession)> {
        let copies = kept.fds.iter().map(OwnedFd::try_clone);
        // Other layouts may have further descriptors after these.
        let copies: Vec<_> = copies.take(4).collect::<io::Result<_>>()?;
        let Ok::<[_; 4], _>([session, waker, relay, exit]) = copies.try_into() else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let slot = {
            let front = Memory::map_front(session.as_fd())?;
            front.shared().slot.load(Relaxed)
        };
        let waker = Arc::new(Waker::map(waker)?);
        let lease = kernel.resume_session(slot, session, Arc::clone(&waker));
        let lease = Arc::new(lease);
        let memory = Arc::new(match application {
            Some(application) => Memory::of_lease(Arc::clone(&lease), application.bytes())?,
            None => Memory::map_front(lease.session())?,
        });
        let shared = memory.shared();
        if !shared.owner.is_sound() {
            return Err(io::Error::other(
                "the session left by the earlier program is invalid",
            ));
        }
        shared.owner.reclaim();
        waker.clear();
        let turns = LateTurns::default();
        let mut link = Self {
            kernel,
            turns: Box::new(turns.clone()),
            lease,
            slot,
            taken_before: shared.taken_bytes.load(Relaxed),
            memory: Arc::clone(&memory),
            waker,
            attached: None,
            pace: Pace::new(mode),
            before: Done::default(),
            relay: Some(Relay { relay, exit }),
            is_kept: true,
            is_left: false,
            place: 0,
        };
        if let Some(Application::Services { .. }) = application {
            link = link.without_local_limit();
        }
        link.limit_input(socket);
        if link.shared().is_attached.load(Relaxed) != 0 {
            link.attach_again(socket)?;
        }
        Ok((link, ResumedSession { memory, turns }))
    }

    /// Determines the state of a connection that the earlier program had started to attach.
    fn attach_again(&mut self, socket: BorrowedFd) -> io::Result<()> {
        let Some(relay) = self.relay.take() else {
            return Ok(());
        };
        let way = relay.way(socket)?;
        let cookies = [way.switch_cookie, way.relay_cookie];
        // The earlier program may have died while it held back input.
        let_input_in(socket)?;
        let is_in = match self.kernel.attach_rest(self.slot, &way) {
            // The earlier program died before the socket entered the maps, which is no longer possible.
            Err(error) if is_closed_by_peer(&error) && !self.has_worked() => {
                self.detach(cookies, relay);
                return Ok(());
            }
            is_in => is_in?,
        };
        if is_in {
            // It may have died before it checked the queue for input that had arrived before the socket entered the map.
            have_queue_checked(socket);
        }
        let shared = self.memory.shared();
        let position = Counts {
            is_in,
            // Passed input behind replies is unread, but FIONREAD may not count it.
            consumed: read_bytes(socket)?,
            written: Progress::of(socket)?.written,
            taken: shared.taken_bytes.load(Relaxed),
            replied: shared.reply_bytes.load(Relaxed),
            passed: shared.owner.passed_bytes(),
            unpassed: shared.unpassed.load(Relaxed),
            handed_over: shared.written.load(Relaxed),
        }
        .position();
        if position.enters {
            self.enter_again(socket)?;
        }
        self.attached = Some(Attached {
            relay,
            cookies,
            is_in: is_in || position.enters,
            is_gone: false,
            before: position.before,
            read_aside: position.read_aside,
            read: position.read,
            written: position.written,
            drained: 0,
            unsent_since: None,
        });
        Ok(())
    }

    /// Returns the state from which the controller continues, with the kernel half that `wrap` makes of the link.
    pub fn into_resumed(
        mut self,
        socket: BorrowedFd,
        wrap: impl FnOnce(Self) -> Box<dyn KernelHalf>,
    ) -> io::Result<Resumed> {
        let progress = match &self.attached {
            None => Progress::of(socket)?,
            Some(attached) => Progress {
                consumed: attached.before + attached.read + attached.read_aside,
                written: attached.written,
            },
        };
        let shared = self.memory.shared();
        let (counted, now) = (Done::counted(shared), Done::of(shared));
        let reclaimed = now.since(counted, shared.xid.load(Relaxed));
        now.count(shared);
        let mut fragment = Vec::new();
        shared.read_fragment(&mut fragment);
        self.before = now;
        let is_attached = self.attached.is_some();
        let mut resumed = Resumed::new(wrap(self), progress, reclaimed, fragment);
        resumed.is_attached = is_attached;
        Ok(resumed)
    }

    fn shared(&self) -> &Shared {
        self.memory.shared()
    }

    /// Sets the maximum length of a segment that the kernel answers, which depends on whether the switch is on this
    /// machine.
    fn limit_input(&mut self, socket: BorrowedFd) {
        if is_peer_local(socket) {
            self.pace.expect_local_switch();
        }
        let limit = self.pace.max_input_bytes() as u32;
        self.shared().max_input_bytes.store(limit, Relaxed);
    }

    /// Returns the number of input bytes that the kernel has answered so far.
    fn taken_bytes(&self) -> u64 {
        self.shared().taken_bytes.load(Relaxed)
    }

    /// Passes input through the kernel's programs, if it does not already. Returns whether it does; it does not while earlier
    /// input may remain.
    fn step_in(&mut self, socket: BorrowedFd, is_drained: bool) -> io::Result<bool> {
        let Some(attached) = &mut self.attached else {
            return Ok(false);
        };
        if !attached.is_in && !attached.is_gone && is_drained {
            if self.is_kept {
                // The programs need whole segments, so a segment that was read in part must no longer be in the queue.
                if has_unread(socket)? {
                    return Ok(false);
                }
                let unpassed = attached.before + attached.read_aside;
                self.memory.shared().unpassed.store(unpassed, Relaxed);
            }
            match self.kernel.step_in(self.slot, socket) {
                Err(error) if is_closed_by_peer(&error) => return Ok(false),
                entered => entered?,
            }
            attached.is_in = true;
            have_queue_checked(socket);
        }
        Ok(attached.is_in)
    }

    /// Passes input through the kernel's programs again, because some that they have passed is unread. If the peer has closed
    /// its side, no input follows, and the passed input can be read without the programs.
    fn enter_again(&self, socket: BorrowedFd) -> io::Result<()> {
        match self.kernel.step_in(self.slot, socket) {
            Err(error) if is_closed_by_peer(&error) => {}
            entered => entered?,
        }
        have_queue_checked(socket);
        Ok(())
    }

    /// Returns whether any input has passed through the kernel's programs.
    fn has_worked(&self) -> bool {
        self.shared().owner.passed_bytes() > 0 || self.taken_bytes() > 0
    }

    /// Undoes the start of attaching.
    fn detach(&mut self, cookies: [u64; 2], relay: Relay) {
        self.kernel.close_session(self.slot, &cookies);
        self.shared().is_attached.store(0, Relaxed);
        self.relay = Some(relay);
    }

    /// Passes input directly to the program, if the program has read all passed input. All replies of the kernel are written.
    /// Returns whether this is a change.
    fn step_aside(&mut self, socket: BorrowedFd) -> io::Result<bool> {
        let Some(attached) = &mut self.attached else {
            return Ok(false);
        };
        let shared = self.memory.shared();
        if !attached.is_in || shared.owner.passed_bytes() != attached.read {
            return Ok(false);
        }
        // The kernel drops a segment that arrives while the programs are being removed.
        hold_back_input(socket)?;
        let left = self.kernel.step_aside(self.slot);
        let_input_in(socket)?;
        left?;
        // Input passed in between precedes later input, and can be read in order only while the programs are attached.
        if shared.owner.passed_bytes() != attached.read {
            self.enter_again(socket)?;
            return Ok(false);
        }
        attached.is_in = false;
        self.check_nothing_was_lost(socket)?;
        Ok(true)
    }

    /// Checks that no input was lost while the programs were removed, which can happen if a switch fills its whole window
    /// during that time. All passed input has been read.
    fn check_nothing_was_lost(&self, socket: BorrowedFd) -> io::Result<()> {
        let seen = self.seen_bytes();
        // The end of the stream counts as a byte.
        match read_bytes(socket)? > seen + 1 {
            true => Err(io::Error::other(
                "the kernel has dropped a part of the switch's input; the switch must reconnect",
            )),
            false => Ok(()),
        }
    }

    /// Returns the number of bytes that the kernel's programs or the program have seen since the switch connected.
    fn seen_bytes(&self) -> u64 {
        let attached = self.attached.as_ref();
        let ours = attached.map_or(0, |attached| {
            attached.before + attached.read + attached.read_aside
        });
        ours + self.taken_bytes()
    }

    /// Returns whether input has arrived that neither the kernel's programs nor the program have seen, although all passed
    /// input has been read: the programs are then no longer attached. The program owns the connection.
    fn is_gone(&self, socket: BorrowedFd) -> bool {
        let Some(attached) = &self.attached else {
            return false;
        };
        let seen = self.seen_bytes();
        // In this order, so that input that arrives and is passed in between is counted as passed. The end of the stream counts
        // as a byte.
        let has_more = received_bytes(socket).is_ok_and(|received| received > seen + 1);
        let passed = self.shared().owner.passed_bytes();
        has_more && attached.is_in && passed == attached.read
    }

    /// Leaves the connection to the program permanently.
    fn continue_alone(&mut self, socket: BorrowedFd) -> Taken {
        if let Some(attached) = &mut self.attached {
            let peer = peer(socket);
            tracing::warn!(%peer, "another process has removed a switch's socket from the kernel half's maps; the program answers it alone");
            (attached.is_in, attached.is_gone) = (false, true);
        }
        Taken::SteppedAside
    }
}

impl KernelHalf for Link {
    fn attach(&mut self, socket: BorrowedFd) -> io::Result<()> {
        // The programs need whole segments, so a segment that was read in part must no longer be in the queue.
        if self.is_kept && has_unread(socket)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let relay = match self.relay.take() {
            Some(relay) => relay,
            None => Relay::new()?,
        };
        let way = relay.way(socket)?;
        bound_queues(socket)?;
        let cookies = [way.switch_cookie, way.relay_cookie];
        let (before, written) = match self.is_kept {
            true => {
                let progress = Progress::of(socket)?;
                (progress.consumed, progress.written)
            }
            false => (read_bytes(socket)?, written_bytes(socket)?),
        };
        self.limit_input(socket);
        let shared = self.shared();
        shared.slot.store(self.slot, Relaxed);
        shared.written.store(written, Relaxed);
        shared.unpassed.store(before, Relaxed);
        shared.is_attached.store(1, Relaxed);
        let entered = self.kernel.attach(self.slot, &way);
        if entered.as_ref().is_err_and(is_closed_by_peer) {
            self.detach(cookies, relay);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.attached = Some(Attached {
            relay,
            cookies,
            is_in: true,
            is_gone: false,
            before,
            read_aside: 0,
            read: 0,
            written,
            drained: 0,
            unsent_since: None,
        });
        entered?;
        have_queue_checked(socket);
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
            return Ok(self.continue_alone(socket));
        }
        let is_retired = self.shared().is_retired.load(Relaxed) != 0;
        if is_retired || !self.pace.wants_kernel(self.taken_bytes()) {
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
        shared.written.store(attached.written, Relaxed);
        let ahead_s = self.memory.clock_ahead_s.load(Relaxed);
        let started_ns = clock_ns_at(handover.started);
        let clock_ns = started_ns.wrapping_sub(u64::from(ahead_s) * 1_000_000_000);
        shared.clock_ns.store(clock_ns, Relaxed);
        self.taken_before = shared.taken_bytes.load(Relaxed);
        Ok(match shared.owner.hand_over(attached.read) {
            true => Taken::Yes,
            false => Taken::NotYet,
        })
    }

    fn reclaim(&mut self, input: &mut Vec<u8>) -> Reclaimed {
        let shared = self.memory.shared();
        shared.owner.reclaim();
        self.waker.clear();
        shared.read_fragment(input);
        if shared.taken_bytes.load(Relaxed) != self.taken_before {
            // The slot from which the kernel continues.
            self.place = 0;
        }
        let now = Done::of(shared);
        now.count(shared);
        if let Some(attached) = &mut self.attached {
            attached.signal_if_late(now.reply_bytes, shared.unsent_bytes());
        }
        let before = std::mem::replace(&mut self.before, now);
        self.turns.after_kernel();
        now.since(before, shared.xid.load(Relaxed))
    }

    fn may_write(&mut self, socket: BorrowedFd) -> bool {
        let shared = self.memory.shared();
        let (replied, unsent) = (shared.reply_bytes.load(Relaxed), shared.unsent_bytes());
        let Some(attached) = &mut self.attached else {
            return true;
        };
        if attached.drained == replied {
            return true;
        }
        // If the socket has no counts, writing to it will fail.
        let waits = written_bytes(socket).is_ok_and(|now| now < attached.written + replied);
        match waits {
            true => attached.signal_if_late(replied, unsent),
            false => attached.drained = replied,
        }
        !waits
    }

    fn note_read(&mut self, count: usize) {
        self.pace.note_read(count, self.taken_bytes());
        if let Some(attached) = &mut self.attached {
            match attached.is_in {
                true => attached.read += count as u64,
                false => attached.read_aside += count as u64,
            }
        }
    }

    fn unread(&self) -> u64 {
        let passed = self.shared().owner.passed_bytes();
        let read = self.attached.as_ref().map(|attached| attached.read);
        passed.saturating_sub(read.unwrap_or(passed))
    }

    fn note_written(&mut self, count: usize) {
        if let Some(attached) = &mut self.attached {
            attached.written += count as u64;
        }
    }

    fn max_fragment(&self) -> usize {
        CARRY_BYTES - 1
    }

    fn memory_bytes(&self) -> usize {
        self.memory.bytes() + ring_bytes()
    }

    fn describe(&self, socket: BorrowedFd) -> String {
        let Some(attached) = &self.attached else {
            return String::new();
        };
        let (shared, done) = (self.shared(), Done::of(self.shared()));
        // A broken socket has no counts.
        let [written, received, read] =
            [written_bytes, received_bytes, read_bytes].map(|count| count(socket).unwrap_or(0));
        format!(
            "in={} written_by_program={} replied={} written_by_socket={written} unsent={} received={received} read={read} read_before={} \
             read_aside={} read_passed={} passed={} taken={}",
            attached.is_in,
            attached.written,
            done.reply_bytes,
            shared.unsent_bytes(),
            attached.before,
            attached.read_aside,
            attached.read,
            shared.owner.passed_bytes(),
            self.taken_bytes(),
        )
    }

    fn held(&mut self) -> Option<&mut dyn HeldHalf> {
        let has_maps = self.is_kept || self.kernel.is_held();
        has_maps.then_some(self)
    }
}

impl HeldHalf for Link {
    fn keep(&mut self, keeper: &Keeper) -> io::Result<()> {
        let label = self.kernel.label().ok_or(io::ErrorKind::Unsupported)?;
        self.shared().slot.store(self.slot, Relaxed);
        if self.relay.is_none() {
            self.relay = Some(Relay::new()?);
        }
        let Some(relay) = &self.relay else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let fds = [
            self.lease.session(),
            self.waker.as_fd(),
            relay.relay.as_fd(),
            relay.exit.as_fd(),
        ];
        keeper.keep(label, &fds)?;
        self.is_kept = true;
        Ok(())
    }

    fn taken(&self) -> u64 {
        self.shared().taken_bytes.load(Relaxed)
    }

    fn fragment_word(&self, bytes: usize) -> u64 {
        match bytes {
            0 => 0,
            _ => (self.place as u64) << PLACE_SHIFT | bytes as u64,
        }
    }

    fn store_fragment(&mut self, fragment: &[u8]) -> u64 {
        self.place = next_place(self.place);
        self.shared().store(self.place, fragment);
        self.fragment_word(fragment.len())
    }

    fn load_fragment(&mut self, word: u64) -> Vec<u8> {
        let mut fragment = Vec::new();
        self.place = (word >> PLACE_SHIFT) as usize;
        let bytes = (word & ((1 << PLACE_SHIFT) - 1)) as usize;
        self.shared().read_stored(self.place, bytes, &mut fragment);
        fragment
    }

    fn leave(&mut self) {
        self.is_left = true;
        self.kernel.leave();
        self.memory.is_left.store(true, Relaxed);
        self.lease.leave();
    }

    fn let_go(&mut self, socket: BorrowedFd) -> io::Result<Option<Progress>> {
        let is_in = self
            .attached
            .as_ref()
            .is_some_and(|attached| attached.is_in);
        if is_in && !self.step_aside(socket)? {
            return Ok(None);
        }
        let progress = Progress {
            consumed: self.shared().taken_bytes.load(Relaxed),
            written: self.shared().reply_bytes.load(Relaxed),
        };
        // Threads that wait for this waker continue to do so.
        self.lease.remove();
        self.end();
        Ok(Some(progress))
    }
}

/// In a word that describes the start of a message, the slot is above the length.
const PLACE_SHIFT: u32 = 32;

impl Link {
    /// Returns the session, once.
    fn end(&mut self) {
        if std::mem::replace(&mut self.is_left, true) {
            return;
        }
        let cookies = self.attached.as_ref().map(|attached| attached.cookies);
        self.kernel
            .close_session(self.slot, cookies.as_slice().as_flattened());
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end();
    }
}

/// Makes the kernel pass input that arrived after the last read but before the socket was attached. The kernel does so when a
/// reader checks for input, or when more input arrives, which may never happen.
pub(crate) fn have_queue_checked(socket: BorrowedFd) {
    // The input stays in the queue, where the next read finds it.
    let _ = has_input(socket);
}

/// Returns whether there is input to read.
pub(crate) fn has_input(socket: BorrowedFd) -> bool {
    let found = recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    found.is_ok_and(|(_, count)| count > 0)
}

/// Returns the value of the kernel's monotonic clock at this time, in nanoseconds.
pub(crate) fn clock_ns_at(time: Instant) -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    let ahead = time.saturating_duration_since(Instant::now());
    let behind = time.elapsed();
    (now_ns + ahead.as_nanos() as u64).saturating_sub(behind.as_nanos() as u64)
}

#[cfg(test)]
mod tests;
