//! A connection's kernel half, and the owner of the connection.
//!
//! ```text
//!           keep              attach            hand over
//!  Unkept ───────► Detached ───────► Program ◄────────────► Kernel
//!     │                │                │        reclaim
//!     └────────────────┴─── let go ─────┴───► LetGo ───► dropped
//! ```
//! A held connection starts at *Unkept*, an earlier program's at *Program*, and any other at *Detached*.

use super::{Channel, Front, Transport, TransportError};
use crate::KernelHalfTotals;
use crate::kernel_half::{
    Counted, Handover, HeldHalf, Keeper, KernelHalf, Reclaimed, Resumed, Taken,
};
use rustix::fd::BorrowedFd;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// The stage of a kernel half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The holder lacks the state that the next program needs.
    Unkept,
    /// It is not attached between the socket and the program.
    Detached,
    /// The program owns the connection.
    Program,
    /// The kernel half owns the connection.
    Kernel,
    /// The program owns the connection, and drops the kernel half as soon as possible.
    LetGo { is_attached: bool },
}

/// A connection's kernel half.
pub(super) struct Half {
    kernel: Box<dyn KernelHalf>,
    stage: Stage,
    /// Whether the shard watches its wake-up descriptor.
    is_watched: bool,
    /// The counts that the earlier program had not added.
    uncounted: Option<Reclaimed>,
    counted: Option<Counted>,
}

impl Half {
    fn new(kernel: Box<dyn KernelHalf>, stage: Stage) -> Self {
        Self {
            kernel,
            stage,
            is_watched: false,
            uncounted: None,
            counted: None,
        }
    }

    /// Creates the state of an earlier program's kernel half; this program owns the connection.
    pub fn resumed(resumed: Resumed) -> Self {
        let is_attached = resumed.is_attached;
        let stage = match (resumed.is_let_go, is_attached) {
            (true, _) => Stage::LetGo { is_attached },
            (false, true) => Stage::Program,
            (false, false) => Stage::Detached,
        };
        Self {
            uncounted: Some(resumed.reclaimed),
            ..Self::new(resumed.half, stage)
        }
    }

    /// Adds it to these totals for its lifetime.
    fn count_in(&mut self, totals: &Arc<KernelHalfTotals>) {
        let bytes = self.kernel.memory_bytes() as u64;
        self.counted = Some(Counted::new(totals, bytes));
    }

    /// Returns the part that outlives the program, once the holder has the state that the next program needs. For held
    /// connections.
    pub fn kept(&mut self) -> Option<&mut dyn HeldHalf> {
        match self.stage {
            Stage::Unkept => None,
            _ => self.kernel.held(),
        }
    }

    /// Stores the state that the next program needs with the holder, unless that has been done.
    ///
    /// Returns whether it was stored now: `false` if it was before, or cannot be without waiting.
    ///
    /// # Errors
    /// If it cannot be stored; the kernel half must then be dropped.
    pub fn keep(&mut self, keeper: &Keeper) -> io::Result<bool> {
        if self.stage != Stage::Unkept {
            return Ok(false);
        }
        let held = self.kernel.held().ok_or(io::ErrorKind::Unsupported)?;
        match held.keep(keeper) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            kept => kept?,
        }
        self.stage = Stage::Detached;
        Ok(true)
    }

    /// Attaches it to the socket, whose input has all been read, if it is detached.
    fn attach(&mut self, socket: BorrowedFd) -> io::Result<()> {
        if self.stage != Stage::Detached {
            return Ok(());
        }
        match self.kernel.attach(socket) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            attached => attached?,
        }
        self.stage = Stage::Program;
        Ok(())
    }

    fn is_attached(&self) -> bool {
        match self.stage {
            Stage::Unkept | Stage::Detached => false,
            Stage::Program | Stage::Kernel => true,
            Stage::LetGo { is_attached } => is_attached,
        }
    }

    pub fn is_owner(&self) -> bool {
        self.stage == Stage::Kernel
    }

    pub fn is_let_go(&self) -> bool {
        matches!(self.stage, Stage::LetGo { .. })
    }

    /// Makes the program, which owns the connection, continue without the kernel half as soon as possible.
    fn let_go(&mut self) {
        let is_attached = self.is_attached();
        self.stage = Stage::LetGo { is_attached };
    }

    /// Returns the length of the longest incomplete message that can be handed over.
    pub fn max_fragment(&self) -> usize {
        self.kernel.max_fragment()
    }

    /// Notes that the program has removed `count` bytes from the socket's queue.
    pub fn note_read(&mut self, count: usize) {
        if self.is_attached() {
            self.kernel.note_read(count);
        }
    }

    /// Notes that the program has written `count` bytes.
    pub fn note_written(&mut self, count: usize) {
        if self.is_attached() {
            self.kernel.note_written(count);
        }
    }

    /// Returns `true` if the program may write to the socket now: it must wait until the kernel half's replies are written.
    pub fn may_write(&mut self, socket: BorrowedFd) -> bool {
        match self.stage {
            Stage::Kernel => false,
            _ => !self.is_attached() || self.kernel.may_write(socket),
        }
    }

    /// Returns the number of passed bytes that the program has not read.
    fn unread(&self) -> u64 {
        match self.is_attached() {
            true => self.kernel.unread(),
            false => 0,
        }
    }

    /// Returns `true` if its ownership ends, since it has passed input or has events.
    pub fn has_passed(&self) -> bool {
        self.is_owner() && (self.kernel.has_passed() || self.kernel.has_events())
    }

    fn hand_over(&mut self, socket: BorrowedFd, handover: Handover) -> io::Result<Taken> {
        let can_be = self.stage == Stage::Program
            && self.is_watched
            && handover.fragment.len() <= self.kernel.max_fragment()
            && self.kernel.may_write(socket);
        if !can_be {
            return Ok(Taken::NotYet);
        }
        let taken = self.kernel.hand_over(socket, handover)?;
        if taken == Taken::Yes {
            self.stage = Stage::Kernel;
        }
        Ok(taken)
    }

    /// Returns `true` if it has events that handlers have not received.
    pub fn has_events(&self) -> bool {
        self.is_attached() && self.kernel.has_events()
    }

    fn reclaim(&mut self, input: &mut Vec<u8>) -> Option<Reclaimed> {
        if !self.is_owner() {
            return None;
        }
        self.stage = Stage::Program;
        Some(self.kernel.reclaim(input))
    }
}

/// Ownership shared with the kernel half.
impl<C: Channel> Transport<C> {
    /// Returns `true` if it has a kernel half.
    pub fn has_kernel_half(&self) -> bool {
        matches!(self.front, Front::KernelHalf(_))
    }

    /// Returns `true` if it may get a kernel half: it has a plain socket, from which nothing else reads.
    pub fn may_get_kernel_half(&self) -> bool {
        let is_free = matches!(self.front, Front::Program | Front::RefusedByRing);
        is_free && self.channel.socket().is_some()
    }

    /// Starts this kernel half, and adds it to these totals. If a holder keeps the connection, it must keep the kernel half
    /// as well.
    pub fn start_half(&mut self, mut half: Box<dyn KernelHalf>, totals: &Arc<KernelHalfTotals>) {
        let stage = match &self.hold {
            None => Stage::Detached,
            Some(_) if half.held().is_some() => Stage::Unkept,
            Some(_) => return,
        };
        self.front = Front::KernelHalf(Half::new(half, stage));
        // It is attached after the next read that empties the socket.
        self.is_drained = false;
        self.count_half(totals);
    }

    /// Adds its kernel half, if any, to these totals. Returns the counts that an earlier program had not added.
    pub fn count_half(&mut self, totals: &Arc<KernelHalfTotals>) -> Option<Reclaimed> {
        let half = self.front.kernel_half()?;
        half.count_in(totals);
        half.uncounted.take()
    }

    /// Returns the number of answers that an earlier program did not count.
    pub fn uncounted_answers(&self) -> u64 {
        match &self.front {
            Front::KernelHalf(half) => half.uncounted.map_or(0, |uncounted| uncounted.answered),
            _ => 0,
        }
    }

    /// Returns `true` if the kernel half owns the connection, and wakes the shard when it returns it.
    pub fn is_owned_by_kernel(&self) -> bool {
        matches!(&self.front, Front::KernelHalf(half) if half.is_owner())
    }

    /// Attaches its kernel half, once a read has emptied the socket and the holder has the state that the next program needs.
    /// Returns whether the holder started to keep it in this call.
    ///
    /// # Errors
    /// If it cannot be attached; the program continues alone.
    pub fn attach_half(&mut self) -> Result<bool, TransportError> {
        let attached = self.keep_and_attach_half();
        if let (Err(_), Front::KernelHalf(half)) = (&attached, &mut self.front) {
            match self.hold.is_some() && half.stage != Stage::Unkept {
                // The holder must first forget its state.
                true => half.let_go(),
                false => self.front = Front::Program,
            }
        }
        attached
    }

    fn keep_and_attach_half(&mut self) -> Result<bool, TransportError> {
        let is_new = self.keep_half()?;
        if let (Front::KernelHalf(half), Some(socket), true) =
            (&mut self.front, self.channel.socket(), self.is_drained)
        {
            half.attach(socket)?;
        }
        Ok(is_new)
    }

    /// Returns the descriptor that must be watched in addition to the socket, if it is not watched; from now on it counts as
    /// watched.
    pub fn wakeup_to_watch(&mut self) -> Option<BorrowedFd<'_>> {
        let half = self.front.kernel_half()?;
        if half.is_watched || !matches!(half.stage, Stage::Program | Stage::Kernel) {
            return None;
        }
        half.is_watched = true;
        Some(half.kernel.wakeup())
    }

    /// Returns the descriptor that is watched in addition to the socket; from now on it counts as unwatched.
    pub fn take_wakeup(&mut self) -> Option<BorrowedFd<'_>> {
        let half = self.front.kernel_half()?;
        std::mem::take(&mut half.is_watched).then(|| half.kernel.wakeup())
    }

    /// Hands the connection over to its kernel half, if no work is left, until a message arrives that the kernel half does
    /// not answer.
    ///
    /// # Errors
    /// If the connection must be closed.
    pub fn hand_over(&mut self, xid: u32, started: Instant) -> Result<Taken, TransportError> {
        // Messages sent through the mailbox go before replies to new input.
        let is_pending = !self.output.is_empty() || self.output.backlog().bytes() > 0;
        let (Some(half), Some(socket), false) =
            (self.front.kernel_half(), self.channel.socket(), is_pending)
        else {
            return Ok(Taken::NotYet);
        };
        let handover = Handover {
            is_drained: self.is_drained,
            ..Handover::new(&self.input, xid, started)
        };
        let taken = half.hand_over(socket, handover)?;
        if taken == Taken::Yes {
            self.input.clear();
            if let Some(hold) = &mut self.hold {
                hold.hand_over();
            }
        }
        Ok(taken)
    }

    /// Returns whether passed input is still on its way to the socket's queue, so that the end of the stream, which the
    /// socket already reports, is not the next to be read.
    pub fn is_end_early(&mut self) -> bool {
        let left = self.left() as u64;
        match &mut self.front {
            Front::KernelHalf(half) if half.is_owner() => half.has_passed(),
            Front::KernelHalf(half) => half.unread() > left,
            _ => false,
        }
    }

    /// Notes whether a read has found the end of the stream early.
    pub fn note_early_end(&mut self, is_early: bool) {
        self.found_early_end = is_early;
    }

    /// Returns whether passed input on its way to the socket's queue must be waited for: the socket is readable in any case.
    pub fn awaits_passed(&self) -> bool {
        self.found_early_end
    }

    /// Returns whether the kernel half's answers are on their way to a peer that can still receive them. The program must own
    /// the connection.
    pub fn is_answering(&mut self) -> bool {
        !self.may_write() && self.channel.is_open()
    }

    /// Reclaims the connection, if its kernel half owns it.
    pub fn reclaim(&mut self) -> Option<Reclaimed> {
        let half = self.front.kernel_half()?;
        let reclaimed = half.reclaim(&mut self.input)?;
        self.note_reclaimed();
        Some(reclaimed)
    }

    /// Passes the events of its kernel half to `tell`, if the program owns the connection.
    pub fn take_events(&mut self, tell: &mut dyn FnMut(&[u8])) {
        let Some(half) = self.front.kernel_half() else {
            return;
        };
        if !half.is_owner() && half.has_events() {
            half.kernel.take_events(tell);
        }
    }

    /// Makes the program continue without the kernel half, if any, as soon as possible.
    pub fn let_go(&mut self) {
        if let Some(half) = self.front.kernel_half() {
            half.let_go();
        }
    }

    /// Returns `true` if the kernel half will be dropped as soon as possible.
    pub fn is_let_go(&self) -> bool {
        matches!(&self.front, Front::KernelHalf(half) if half.is_let_go())
    }

    /// Returns the state of its kernel half, for the log.
    pub fn describe_half(&self) -> String {
        match (&self.front, self.channel.socket()) {
            (Front::KernelHalf(half), Some(socket)) => format!(
                "{:?} watched={} drained={} {}",
                half.stage,
                half.is_watched,
                self.is_drained,
                half.kernel.describe(socket),
            ),
            _ => "none".into(),
        }
    }
}
