//! One switch's connection: bytes to frames, frames to the session and the handlers, replies to bytes.

use crate::backlog::Backlog;
use crate::batch::BatchContext;
use crate::counters::is_worth_logging;
use crate::handler::PacketIns;
use crate::input_ring::{InputRing, RingState};
use crate::kernel_half::{Handover, Ownership, Reclaimed, Taken};
use crate::mailbox::Token;
use crate::network::Entry;
use crate::panics::panic_text;
use crate::program_list::ProgramList;
use crate::reconciliation::{Reconciliation, Waiting};
use crate::request::{Asker, Requests};
use crate::role::RoleRequest;
use crate::session::{Event, PortsProblem, Session, SessionConfig, SessionError, Subject};
use crate::stage::Tables;
use crate::switch::{FLUSH_BYTES, Identity, take_panicked};
use crate::xid::{Origin, Sender, Xids};
use crate::{MAX_PORTS, Switch, SwitchCounters, SwitchHandler, SwitchInfo, WaitingBytes};
use auxiliary::Auxiliary;
use hold::Hold;
pub(crate) use holding::Resumption;
use parking_lot::Mutex;
use raw::RawPart;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use urtica_socket::{Stream, is_try_again};
use urtica_state::Series;
use urtica_wire::{
    DatapathId, DecodeError, ErrorCode, Header, Message, PacketIn, PortStatus, Version, split_frame,
};

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Close {
    #[error("the peer closed the connection")]
    ByPeer,
    #[error("{0}")]
    Session(#[from] SessionError),
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    NotAdmitted(String),
    #[error("{0}")]
    Auxiliary(String),
    /// The shard hands it over to the shard of its main connection; it does not close.
    #[error("it is an auxiliary connection")]
    ToMain,
    #[error("{0}")]
    Asked(&'static str),
    #[error("cannot store its state for the next program: {0}")]
    Unkeepable(Errno),
    #[error("a handler panicked: {0}")]
    Panic(String),
}

/// The transport that a connection writes to.
pub(crate) trait Channel {
    /// Sends as many bytes from the front as there is space for, and returns their number; 0 if the caller must wait.
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Sends bytes that an earlier call accepted but kept; returns whether it could.
    fn flush(&mut self) -> io::Result<bool> {
        Ok(false)
    }

    /// Whether it keeps something back.
    fn has_unsent(&self) -> bool {
        false
    }

    /// Returns the socket on which a kernel half can answer, if there is one.
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Channel for Stream {
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.write(bytes) {
            Err(error) if is_try_again(&error) => Ok(0),
            sent => sent,
        }
    }

    fn flush(&mut self) -> io::Result<bool> {
        Stream::flush(self)
    }

    fn has_unsent(&self) -> bool {
        Stream::has_unsent(self)
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.plain_socket()
    }
}

/// Checks whether a peer may use a datapath id; the error is the reason why it may not.
pub(crate) type Admission = Box<dyn Fn(DatapathId) -> Result<(), String> + Send>;

/// A connection. Owned by one shard at a time; may move to another between two batches.
pub(crate) struct Connection<C = Stream> {
    channel: C,
    pub token: Token,
    /// Called before a switch joins, if certificates decide.
    pub admission: Option<Admission>,
    session: Session,
    /// Whether the peer has sent its features reply, and was admitted.
    is_identified: bool,
    /// The switch, once it has joined.
    switch: Option<Joined>,
    /// The state of an auxiliary connection, if it is one.
    auxiliary: Option<Auxiliary>,
    /// Its auxiliary connections and their ids, if it is a main one; some may have closed.
    auxiliaries: Vec<(u8, Token)>,
    requests: Requests,
    /// Requests for roles, with their senders: the first is under way.
    role_requests: VecDeque<(RoleRequest, Asker)>,
    counters: Arc<SwitchCounters>,
    /// Bytes received but not handled: an incomplete frame, or more while the switch does not read.
    input: Vec<u8>,
    /// Bytes that the channel has not accepted yet.
    output: Vec<u8>,
    /// Whether the last write to the socket was incomplete.
    was_full: bool,
    /// The number of bytes of `output` from the mailbox; the others are replies, which count as the first to be written.
    counted: usize,
    /// Counts the bytes from the mailbox, and those that wait in it.
    backlog: Arc<Backlog>,
    /// Messages received lately: a moving average, in which those before `received_before` count less and less.
    load: u64,
    /// Messages received when `load` was last brought up to date.
    received_before: u64,
    /// The kernel half of its program, if there is one.
    kernel: Option<Ownership>,
    /// Whether its program may have a kernel half later.
    awaits_half: bool,
    /// Its way into the shard's ring, where it has one.
    ring: RingState,
    /// Whether the last read emptied the socket.
    is_drained: bool,
    /// The state that outlives the program, if a holder keeps the connection.
    hold: Option<Box<Hold>>,
    /// The switch of a connection that an earlier program had, until it joins.
    resumed: Option<SwitchInfo>,
    /// The entries of programs that have changed, until they are settled.
    reconciliations: Vec<Reconciliation>,
    /// Frames for a raw program that arrived before the switch joined.
    early: Vec<u8>,
}

/// A switch that has identified itself by its features reply, and its handlers, one per program.
struct Joined {
    info: Arc<SwitchInfo>,
    handlers: Vec<Box<dyn SwitchHandler>>,
    /// The handlers' programs, in the same order.
    programs: Arc<ProgramList>,
    /// The raw program's part, if the controller has one.
    raw: Option<RawPart>,
    /// Whether its ports are known, if it describes them.
    is_up: bool,
    /// When they were; before, when it joined.
    up_since: Instant,
    /// One for each handler with an interval, while our role lets us write.
    timers: Vec<TickTimer>,
}

/// When a handler's [`SwitchHandler::tick`] is due.
struct TickTimer {
    program: usize,
    interval: Duration,
    due: Instant,
}

impl TickTimer {
    /// Returns `None` if the time is beyond the range of [`Instant`].
    fn start(program: usize, interval: Duration, now: Instant) -> Option<Self> {
        Some(Self {
            program,
            interval,
            due: now.checked_add(interval)?,
        })
    }

    /// Returns `false` if its next time is beyond the range of [`Instant`].
    fn restart(&mut self, now: Instant) -> bool {
        let next = now.checked_add(self.interval);
        next.map(|due| self.due = due).is_some()
    }
}

/// For connections that end without [`Connection::close`], because their shard has ended. A handler may panic even when it is
/// dropped.
impl Drop for Joined {
    fn drop(&mut self) {
        let raw = self.raw.take().map(RawPart::drop_contained);
        let handlers = self.handlers.drain(..).map(drop_contained);
        for dropped in handlers.chain(raw) {
            if let Err(reason) = dropped {
                urtica_log::error!(about: Subject::Switch(self.info.datapath_id), dp_id = %self.info.datapath_id, %reason, "a handler panicked while it was dropped");
            }
        }
    }
}

impl Joined {
    fn start_timers(&mut self, now: Instant) {
        let intervals = self.handlers.iter().map(|handler| handler.tick_interval());
        let timers = intervals
            .enumerate()
            .filter_map(|(program, interval)| TickTimer::start(program, interval?, now));
        self.timers = timers.collect();
    }

    /// Returns the programs whose timers have expired; their next intervals start now.
    fn take_due(&mut self, now: Instant) -> Vec<usize> {
        let mut programs = Vec::new();
        self.timers.retain_mut(|timer| {
            if timer.due > now {
                return true;
            }
            programs.push(timer.program);
            timer.restart(now)
        });
        programs
    }

    /// Calls the handlers of the programs in `range`, in order, until one consumes the message.
    fn call(
        &mut self,
        range: Range<usize>,
        xids: &mut Xids,
        counters: &SwitchCounters,
        batch: &mut BatchContext,
        mut call: impl FnMut(&mut dyn SwitchHandler, &mut Switch),
    ) {
        let start = batch.out.len();
        let programs = &self.programs.identities;
        let mut switch = self.info.as_switch(programs, xids, counters, batch);
        for (program, handler) in self.handlers.iter_mut().enumerate() {
            if range.contains(&program) && !switch.consumed {
                switch.begin(program);
                call(handler.as_mut(), &mut switch);
            }
        }
        if !self.info.role.may_write() {
            switch.withhold_writes(start);
        }
    }
}

/// Passes a packet-in to the handlers of the programs, in order, until one consumes it.
fn pass(handlers: &mut [Box<dyn SwitchHandler>], switch: &mut Switch, packet: &PacketIn) {
    for (program, handler) in handlers.iter_mut().enumerate() {
        switch.begin(program);
        handler.packet_in(switch, packet);
        if switch.consumed {
            return;
        }
    }
}

/// Passes packet-ins as [`pass`] does, and notes for each program when it had answered the last that it saw of them.
fn pass_timed(
    handlers: &mut [Box<dyn SwitchHandler>],
    switch: &mut Switch,
    packets: &mut PacketIns,
    shard: usize,
    read_at: Instant,
) {
    let mut next = packets.next(switch);
    while let Some(packet) = next {
        next = packets.next(switch);
        if next.is_some() {
            pass(handlers, switch, &packet);
            continue;
        }
        for (program, handler) in handlers.iter_mut().enumerate() {
            switch.begin(program);
            handler.packet_in(switch, &packet);
            let times = &switch.programs[program].times;
            times.add(shard, packets.taken(), read_at);
            if switch.consumed {
                return;
            }
        }
    }
}

impl SwitchInfo {
    /// Returns the handlers' view of the switch during a batch.
    fn as_switch<'t>(
        &'t self,
        programs: &'t [Identity],
        xids: &'t mut Xids,
        counters: &'t SwitchCounters,
        batch: &'t mut BatchContext,
    ) -> Switch<'t> {
        Switch {
            info: self,
            out: &mut batch.out,
            xids,
            counters,
            network: &batch.network,
            now: batch.now,
            now_s: batch.now_s,
            origin: Origin::SESSION,
            cookie_be: 0,
            own_table: None,
            programs,
            consumed: false,
            sent: 0,
        }
    }
}

impl Connection {
    /// The socket, to be watched.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }

    /// Reads once: see [`Stream::read`]. Returns `None` if nothing was received.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.channel.read(buffer) {
            Err(error) if is_try_again(&error) => Ok(None),
            read => read.map(Some),
        }
    }
}

/// Ownership shared with the kernel half: see `kernel_half.rs`.
impl<C: Channel> Connection<C> {
    /// Notes that a read returned `count` bytes; `is_drained` if it emptied the socket. Returns whether there is input to handle:
    /// the kernel half wakes the shard also for messages that it answers itself.
    pub fn note_read(&mut self, count: usize, is_drained: bool, batch: &BatchContext) -> bool {
        if let Some(hold) = &mut self.hold {
            hold.begin_input(count, is_drained);
        }
        let Some(kernel) = &mut self.kernel else {
            return true;
        };
        match self.hold {
            // Nothing is removed from the queue yet.
            Some(_) => kernel.note_looked(is_drained),
            None => kernel.note_read(count, is_drained),
        }
        if count > 0 || kernel.has_passed() {
            self.reclaim_from_kernel(batch);
            return true;
        }
        kernel.is_owned_by_program()
    }

    /// Whether the kernel half owns the connection, and wakes the shard when it gives it back.
    pub fn is_owned_by_kernel(&self) -> bool {
        self.kernel
            .as_ref()
            .is_some_and(|kernel| !kernel.is_owned_by_program())
    }

    /// Starts the kernel half, if the switch came up without one and its program has one now.
    pub fn await_kernel_half(&mut self, batch: &BatchContext) {
        if self.awaits_half && self.kernel.is_none() {
            self.start_kernel_half(batch);
        }
    }

    /// What is to be watched for this connection beside the socket, and is not yet.
    pub fn wakeup_to_watch(&mut self) -> Option<BorrowedFd<'_>> {
        let attached = match self.hold {
            Some(_) => self.keep_half().and_then(|may| match may {
                true => self.attach_half(),
                false => Ok(()),
            }),
            None => self.attach_half(),
        };
        if let Err(error) = attached {
            urtica_log::warn!(about: self.subject(), peer = self.name(), %error, "cannot attach the kernel half; the program answers alone");
            match self.kernel.as_mut().filter(|kernel| kernel.is_kept()) {
                // The holder must first forget its state.
                Some(kernel) => kernel.set_let_go(),
                None => self.kernel = None,
            }
            self.awaits_half = false;
            return None;
        }
        self.kernel.as_mut()?.wakeup_to_watch()
    }

    fn attach_half(&mut self) -> io::Result<()> {
        match (&mut self.kernel, self.channel.socket()) {
            (Some(kernel), Some(socket)) => kernel.attach(socket),
            _ => Ok(()),
        }
    }

    /// Returns a descriptor that is watched for this connection in addition to the socket, and no longer needs to be.
    pub fn watched(&mut self) -> Option<BorrowedFd<'_>> {
        self.kernel.as_mut()?.watched()
    }

    /// Reclaims the connection if the kernel half owns it. Must be called before anything else is done with it.
    pub fn reclaim_from_kernel(&mut self, batch: &BatchContext) {
        let Some(kernel) = &mut self.kernel else {
            return;
        };
        let Some(reclaimed) = kernel.reclaim(&mut self.input) else {
            return;
        };
        self.session.xids.go_on_after(reclaimed.xid);
        if self.hold.is_some() {
            self.note_reclaimed();
        }
        self.count_reclaimed(&reclaimed, batch);
    }

    /// Adds the kernel's counts to the counters.
    fn count_reclaimed(&mut self, reclaimed: &Reclaimed, batch: &BatchContext) {
        let received = reclaimed.answered + reclaimed.others;
        if received > 0 {
            self.session.note_received(batch.now);
        }
        self.counters.received.add(received);
        self.counters.packet_ins.add(reclaimed.answered);
        self.counters.answered_in_kernel.add(reclaimed.answered);
        self.counters.sent.add(reclaimed.sent);
        self.counters.sent_bytes.add(reclaimed.sent_bytes);
        self.counters.passed_by_kernel.add(reclaimed.passed);
        self.counters.fell_back.add(reclaimed.fell_back);
        let shard = &batch.network.shard(batch.shard).counters;
        shard.received.add(received);
        shard.sent_bytes.add(reclaimed.sent_bytes);
        shard.answered_in_kernel.add(reclaimed.answered);
        shard.passed_by_kernel.add(reclaimed.passed);
        shard.fell_back.add(reclaimed.fell_back);
    }

    /// Passes to handlers the messages that the kernel half has settled and that contain news. Must be called after
    /// [`Connection::reclaim_from_kernel`], before later input is handled.
    pub fn handle_events(&mut self, batch: &mut BatchContext) {
        let (Some(kernel), Some(joined), Some(version)) =
            (&mut self.kernel, &mut self.switch, self.session.version())
        else {
            return;
        };
        let (xids, counters) = (&mut self.session.xids, &self.counters);
        kernel.take_events(&mut |message| {
            let body = message.get(Header::SIZE..).unwrap_or_default();
            if let Ok(packet) = PacketIn::decode(version, body) {
                joined.call(0..usize::MAX, xids, counters, batch, |handler, switch| {
                    handler.settled(switch, &packet);
                });
            }
        });
    }

    /// Hands the connection over to the kernel half if nothing is left to do, until a message arrives that the kernel half does
    /// not answer.
    pub fn hand_to_kernel(&mut self, batch: &mut BatchContext) -> Result<(), Close> {
        let Some(kernel) = &self.kernel else {
            return Ok(());
        };
        if kernel.is_let_go() {
            if self.let_half_go()? {
                self.start_kernel_half(batch);
            }
            return Ok(());
        }
        // Events of a connection that was reclaimed to send something.
        self.handle_events(batch);
        if !batch.out.is_empty() {
            self.flush(batch)?;
        }
        let (Some(kernel), Some(socket)) = (&mut self.kernel, self.channel.socket()) else {
            return Ok(());
        };
        // Messages sent through the mailbox go before replies to new input.
        let is_pending = !self.output.is_empty() || self.backlog.bytes() > 0;
        if is_pending || self.session.answering_version().is_none() {
            return Ok(());
        }
        let handover = Handover::new(&self.input, self.session.xids.last(), batch.started);
        let taken = kernel.hand_over(socket, handover)?;
        match taken {
            Taken::Yes => {
                self.input.clear();
                if let Some(hold) = &mut self.hold {
                    hold.hand_over();
                }
            }
            Taken::NotYet => {}
            Taken::SteppedAside => {
                self.counters.stepped_aside.add(1);
                let shard = &batch.network.shard(batch.shard).counters;
                shard.stepped_aside.add(1);
            }
        }
        Ok(())
    }

    /// Whether the program may write to the socket now: not before the kernel half's replies are written.
    fn may_write(&mut self) -> bool {
        match (&mut self.kernel, self.channel.socket()) {
            (Some(kernel), Some(socket)) => kernel.may_write(socket),
            _ => true,
        }
    }

    fn note_written(&mut self, count: usize) {
        if let Some(kernel) = &mut self.kernel {
            kernel.note_written(count);
        }
    }

    /// Once the switch is up, may be written to, and has reached the threshold: starts the kernel half of all programs, or that of its program or of one of
    /// several for all, if there is one and none continues from an earlier program. If a holder keeps the connection, it must
    /// keep the kernel half too.
    fn start_kernel_half(&mut self, batch: &BatchContext) {
        let (Some(_), Some(switch), None) = (self.channel.socket(), &mut self.switch, &self.kernel)
        else {
            return;
        };
        // It would answer frames that a raw program has to see.
        if !switch.is_up || !self.session.role().may_write() || self.session.is_raw() {
            return;
        }
        let uptime = batch.now.saturating_duration_since(switch.up_since);
        let packet_ins = self.counters.packet_ins.get();
        if !batch.half_threshold.is_reached(uptime, packet_ins) {
            self.awaits_half = true;
            return;
        }
        self.awaits_half = match &batch.kernel_halves {
            Some(_) => true,
            None => (switch.handlers.iter()).any(|handler| handler.may_have_kernel_half()),
        };
        let mut half = match (&batch.kernel_halves, &mut switch.handlers[..]) {
            (Some(halves), _) => halves.open(&switch.info),
            (None, [handler]) => handler.kernel_half(),
            (None, several) => several
                .iter_mut()
                .find_map(|handler| handler.kernel_half_for_all()),
        };
        let is_held = self.hold.is_some();
        half.take_if(|half| is_held && half.held().is_none());
        self.kernel = half.map(Ownership::new);
        if let Some(kernel) = &mut self.kernel {
            kernel.count_in(batch.network.kernel_half_totals());
        }
    }
}

/// Input through the shard's ring: see `input_ring.rs`.
impl<C: Channel> Connection<C> {
    /// Returns whether input arrives through the ring instead of the socket.
    pub fn is_owned_by_ring(&self) -> bool {
        self.ring.is_owned_by_ring()
    }

    /// Whether the shard's ring has a part in it.
    pub fn has_ring(&self) -> bool {
        matches!(self.ring, RingState::Attached(_))
    }

    /// Notes that a read from the socket returned `count` bytes; `is_drained` if it emptied the socket.
    pub fn note_read_beside_ring(&mut self, count: usize, is_drained: bool) {
        self.is_drained = is_drained;
        if let Some(ring) = self.ring.input() {
            ring.note_read(count);
        }
    }

    /// Reads from the socket again, if input was passed there. All earlier entries of the ring have been handled.
    pub fn take_back_from_ring(&mut self, batch: &BatchContext) {
        if let Some(ring) = self.ring.input() {
            ring.take_back(&mut self.input);
        }
        self.count_ring(batch);
    }

    /// Handles messages from the ring; after others, if those wait.
    pub fn handle_ring_messages(
        &mut self,
        messages: &[u8],
        batch: &mut BatchContext,
    ) -> Result<(), Close> {
        let shard = &batch.network.shard(batch.shard).counters;
        shard.received_bytes.add(messages.len() as u64);
        shard.through_rings.add(messages.len() as u64);
        self.counters.through_rings.add(messages.len() as u64);
        if self.is_stalled() || !self.input.is_empty() {
            self.keep_input(messages);
            return Ok(());
        }
        batch.note_read();
        self.handle_input(messages, batch)?;
        self.flush(batch)
    }

    /// Hands the input over to the ring if nothing is left to read, or requests it back if the switch does not read. Must be
    /// called after anything was done with the connection.
    pub fn settle_ring(&mut self, ring: Option<&mut (dyn InputRing + 'static)>) {
        if let RingState::Attached(input) = &self.ring {
            if input.is_owned_by_ring() {
                if self.is_stalled() {
                    input.ask_back();
                }
                return;
            }
        }
        if self.is_stalled() || !self.is_drained {
            return;
        }
        if let (RingState::Without, Some(ring)) = (&self.ring, ring) {
            self.attach_to_ring(ring);
        }
        if let RingState::Attached(input) = &mut self.ring {
            if input.hand_over(&self.input) {
                self.input.clear();
            }
        }
    }

    /// Attaches once the switch is up, unless another kernel half has the socket, TLS is used, or a holder keeps the connection.
    fn attach_to_ring(&mut self, ring: &mut dyn InputRing) {
        let is_up = self.switch.as_ref().is_some_and(|switch| switch.is_up);
        let (true, None, Some(version)) = (is_up, &self.kernel, self.session.answering_version())
        else {
            return;
        };
        let (Some(socket), None) = (self.channel.socket(), &self.hold) else {
            return;
        };
        self.ring = match ring.attach(self.token, socket, version) {
            Ok(input) => RingState::Attached(input),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => RingState::Without,
            Err(error) => {
                urtica_log::warn!(about: self.subject(), peer = self.name(), %error, "cannot use the ring for the switch; reading from its socket");
                RingState::Refused
            }
        };
    }

    /// Whether the ring has lost the socket.
    pub fn is_found_lost(&mut self) -> bool {
        let (Some(ring), Some(socket)) = (self.ring.input(), self.channel.socket()) else {
            return false;
        };
        let is_lost = ring.is_found_lost(socket);
        if is_lost {
            urtica_log::warn!(about: self.subject(), peer = self.name(), "the kernel no longer fills the ring; reading from the switch's socket");
        }
        is_lost
    }

    /// Adds the counts of the ring to the counters.
    pub fn count_ring(&mut self, batch: &BatchContext) {
        let Some(counts) = self.ring.input().map(|ring| ring.take_counts()) else {
            return;
        };
        let shard = &batch.network.shard(batch.shard).counters;
        self.counters.passed_by_kernel.add(counts.passed);
        shard.passed_by_kernel.add(counts.passed);
        self.counters.fell_back.add(counts.fell_back);
        shard.fell_back.add(counts.fell_back);
        self.counters.ring_full.add(counts.ring_full);
        shard.ring_full.add(counts.ring_full);
    }
}

impl<C: Channel> Connection<C> {
    /// A new connection.
    pub fn new(
        channel: C,
        peer: String,
        token: Token,
        config: SessionConfig,
        now: Instant,
    ) -> Self {
        Self {
            channel,
            token,
            admission: None,
            session: Session::new(config, peer, now),
            is_identified: false,
            switch: None,
            auxiliary: None,
            auxiliaries: Vec::new(),
            requests: Requests::default(),
            role_requests: VecDeque::new(),
            counters: Arc::default(),
            input: Vec::new(),
            output: Vec::new(),
            was_full: false,
            counted: 0,
            backlog: Arc::default(),
            load: 0,
            received_before: 0,
            kernel: None,
            awaits_half: false,
            ring: RingState::Without,
            is_drained: false,
            hold: None,
            resumed: None,
            reconciliations: Vec::new(),
            early: Vec::new(),
        }
    }

    /// Returns whether there is output that the socket has not accepted.
    pub fn is_waiting(&self) -> bool {
        !self.output.is_empty() || self.channel.has_unsent()
    }

    /// Returns whether there are replies that the socket has not accepted: then nothing is read (back-pressure). Messages from
    /// the mailbox, however many, do not stop reading.
    pub fn is_stalled(&self) -> bool {
        self.output.len() > self.counted
    }

    /// The channel.
    pub fn channel(&self) -> &C {
        &self.channel
    }

    /// Returns the channel, from which the caller removes bytes.
    pub fn channel_mut(&mut self) -> &mut C {
        &mut self.channel
    }

    /// Notes that the switch has sent something that is handled elsewhere.
    pub fn note_alive(&mut self, batch: &BatchContext) {
        self.session.note_received(batch.now);
    }

    /// Removes and returns the bytes that were received but not handled.
    pub fn take_input(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.input)
    }

    /// Appends to the bytes that were received and not handled.
    pub fn keep_input(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Returns the number of bytes that were received but not handled.
    pub fn input_len(&self) -> usize {
        self.input.len()
    }

    /// Moves the bytes that were received and not handled to `to`, which has their length.
    pub fn drain_input(&mut self, to: &mut [u8]) {
        to.copy_from_slice(&self.input);
        self.input.clear();
    }

    /// The peer's name for logs.
    pub fn name(&self) -> String {
        match &self.switch {
            Some(switch) => format!(
                "switch {} at {}",
                switch.info.datapath_id,
                self.session.peer()
            ),
            None => self.session.peer().to_owned(),
        }
    }

    /// Handles received bytes in order and keeps the rest: an incomplete frame, or everything after the point at which the switch
    /// stopped reading our replies.
    pub fn handle_input(&mut self, input: &[u8], batch: &mut BatchContext) -> Result<(), Close> {
        let mut rest = input;
        let result = self.handle_frames(&mut rest, batch);
        let handled = input.len() - rest.len();
        if handled > 0 {
            self.session.note_received(batch.now);
            self.counters.received_bytes.add(handled as u64);
        }
        match &mut self.hold {
            None => self.input.extend_from_slice(rest),
            Some(_) => self.keep_rest(rest),
        }
        result
    }

    /// Handles the whole frames at the front of `rest`, while the switch reads our replies. Runs of packet-ins are passed
    /// straight to the handlers; everything else is passed through the session, frame by frame.
    fn handle_frames(&mut self, rest: &mut &[u8], batch: &mut BatchContext) -> Result<(), Close> {
        loop {
            self.handle_packet_ins(rest, batch);
            if batch.out.len() >= FLUSH_BYTES {
                if let Some(hold) = &mut self.hold {
                    hold.note_left(rest.len());
                }
                self.flush(batch)?;
                if self.is_stalled() {
                    return Ok(());
                }
                continue;
            }
            match split_frame(rest) {
                Ok(None) => return Ok(self.session.handle_fragment(rest)?),
                Ok(Some(_)) if self.session.is_raw() => self.handle_raw(rest, batch)?,
                Ok(Some((frame, after))) => {
                    *rest = after;
                    self.count_received(1, batch);
                    self.handle_frame(frame, batch)?;
                }
                Err(error) => {
                    let end = self.session.handle_malformed(error, rest, &mut batch.out);
                    return Err(end.into());
                }
            }
        }
    }

    /// Passes the packet-ins at the front of `rest` to the handlers, until another message or until the replies fill the output:
    /// the hot path.
    fn handle_packet_ins(&mut self, rest: &mut &[u8], batch: &mut BatchContext) {
        let (Some(joined), Some(version)) = (&mut self.switch, self.session.answering_version())
        else {
            return;
        };
        // Many handlers run a transaction for each packet-in.
        let _series = Series::new();
        let mut packets = PacketIns::new(version, rest);
        let (programs, xids) = (&joined.programs.identities, &mut self.session.xids);
        let (shard, read_at) = (batch.shard, batch.read_at);
        let mut switch = joined.info.as_switch(programs, xids, &self.counters, batch);
        match (&mut joined.handlers[..], read_at) {
            ([handler], _) => {
                switch.begin(0);
                handler.packet_ins(&mut switch, &mut packets);
                if let (Some(read_at), count @ 1..) = (read_at, packets.taken()) {
                    programs[0].times.add(shard, count, read_at);
                }
            }
            (handlers, None) => {
                while let Some(packet) = packets.next(&switch) {
                    pass(handlers, &mut switch, &packet);
                }
            }
            (handlers, Some(read_at)) => {
                pass_timed(handlers, &mut switch, &mut packets, shard, read_at);
            }
        }
        drop(switch);
        let (after, received) = packets.finish();
        *rest = after;
        self.counters.packet_ins.add(received);
        self.count_received(received, batch);
    }

    fn count_received(&self, count: u64, batch: &BatchContext) {
        self.counters.received.add(count);
        batch
            .network
            .shard(batch.shard)
            .counters
            .received
            .add(count);
    }

    fn handle_frame(&mut self, frame: &[u8], batch: &mut BatchContext) -> Result<(), Close> {
        match self
            .session
            .handle_frame(batch.now, frame, &mut batch.out)?
        {
            Event::Nothing => {}
            Event::Identified(datapath_id) => self.identify(datapath_id, frame)?,
            Event::Joined(info) => {
                // If a role was requested, this is its reply, and not the features.
                if !self.is_identified {
                    self.identify(info.datapath_id, frame)?;
                }
                self.join(info, batch);
            }
            // The main connection has requested them, too.
            Event::Ports { .. } if self.is_auxiliary() => {}
            Event::Ports { ports, last } => self.learn_ports(ports, last, batch),
            Event::PortsUnknown(problem) => self.do_without_ports(&problem, batch),
            Event::Message(header, message) => self.dispatch(header, &message, frame, batch),
            Event::Malformed(error) => self.note_malformed(&error),
            Event::Auxiliary {
                datapath_id,
                auxiliary_id,
            } => {
                self.identify(datapath_id, frame)?;
                return Err(self.become_auxiliary(datapath_id, auxiliary_id));
            }
        }
        self.note_roles(frame, batch);
        Ok(())
    }

    /// The switch has sent this features reply.
    fn identify(&mut self, datapath_id: DatapathId, features: &[u8]) -> Result<(), Close> {
        self.admit(datapath_id)?;
        if let Some(hold) = &mut self.hold {
            hold.note_features(features).map_err(Close::Unkeepable)?;
        }
        self.is_identified = true;
        Ok(())
    }

    /// Refuses a peer that uses a datapath id which is reserved for another certificate.
    fn admit(&self, datapath_id: DatapathId) -> Result<(), Close> {
        match &self.admission {
            Some(admission) => admission(datapath_id).map_err(Close::NotAdmitted),
            None => Ok(()),
        }
    }

    fn note_malformed(&self, error: &DecodeError) {
        self.counters.malformed.add(1);
        let count = self.counters.malformed.get();
        if is_worth_logging(count) {
            urtica_log::warn!(about: self.subject(), peer = self.name(), %error, count, "refused a malformed message");
        }
    }

    /// The switch has identified itself: makes its handlers and registers it.
    fn join(&mut self, info: SwitchInfo, batch: &mut BatchContext) {
        urtica_log::info!(about: Subject::Switch(info.datapath_id), dp_id = %info.datapath_id, peer = info.peer, openflow = %info.version, role = %info.role, "switch joined");
        let tables = batch.network.tables();
        warn_if_unguarded(&info, tables);
        let programs = Arc::clone(&batch.programs);
        let datapath_id = info.datapath_id;
        let info = Arc::new(info);
        let joined = self.switch.insert(Joined {
            info: info.clone(),
            handlers: Vec::with_capacity(programs.programs.len()),
            programs: Arc::clone(&programs),
            raw: None,
            is_up: false,
            up_since: batch.now,
            timers: Vec::new(),
        });
        let mut resumed = match (&self.kernel, &self.hold) {
            (Some(half), Some(hold)) if !half.is_let_go() => {
                resume_handler(&programs, &info, hold.id(), batch.started)
            }
            _ => None,
        };
        if let (Some(half), None) = (&mut self.kernel, &resumed) {
            half.set_let_go();
        }
        for (index, listed) in programs.programs.iter().enumerate() {
            let handler = resumed.take_if(|(of, _)| *of == index);
            let handler = handler.map(|(_, handler)| handler);
            let handler = handler.unwrap_or_else(|| listed.program.handler(&info));
            joined.handlers.push(handler);
        }
        joined.raw = RawPart::start(&programs, &info);
        let entry = Entry {
            shard: batch.shard,
            token: self.token,
            joined: Arc::clone(&info),
            info: Mutex::new(info),
            counters: self.counters.clone(),
            backlog: Arc::clone(&self.backlog),
            permanent: Arc::default(),
            is_up: false,
            may_write: AtomicBool::new(self.session.role().may_write()),
            is_raw: self.session.is_raw(),
        };
        if let Some(older) = batch.network.register(entry) {
            urtica_log::warn!(
                about: Subject::Switch(older.joined.datapath_id),
                dp_id = %older.joined.datapath_id,
                older = older.joined.peer,
                newer = self.session.peer(),
                "two connections have the same datapath id: the newer one is used and the older one closed; if these are \
                 two switches, give them different ids"
            );
        }
        self.ask_for_wanted_role(datapath_id, batch);
        // 1.0 describes the ports in the features reply; in 1.3, and if a session is resumed, their descriptions are still
        // missing.
        if !self.session.awaits_ports() {
            self.come_up(batch);
        }
    }

    fn come_up(&mut self, batch: &mut BatchContext) {
        let may_write = self.session.role().may_write();
        if may_write {
            self.activate(batch);
        }
        if let Some(switch) = &mut self.switch {
            (switch.is_up, switch.up_since) = (true, batch.now);
            batch.network.announce(switch.info.datapath_id, self.token);
        }
        self.start_kernel_half(batch);
    }

    /// Notes that programs may write to the switch, whose ports are known.
    fn activate(&mut self, batch: &mut BatchContext) {
        self.call_each(batch, |handler, switch| handler.switch_up(switch));
        if let Some(switch) = &mut self.switch {
            switch.start_timers(batch.now);
        }
    }

    /// Handles a part of the port description. Changes after the switch is up are reported to handlers like port-status messages.
    fn learn_ports(&mut self, ports: Vec<PortStatus>, last: bool, batch: &mut BatchContext) {
        let learnt = self.update_ports(ports, batch);
        let is_up = self.switch.as_ref().is_some_and(|switch| switch.is_up);
        if is_up {
            for status in &learnt {
                self.call_each(batch, |handler, switch| handler.port_status(switch, status));
            }
        } else if last {
            self.come_up(batch);
        }
    }

    /// Continues without the ports of a switch that does not describe them.
    fn do_without_ports(&mut self, problem: &PortsProblem, batch: &mut BatchContext) {
        if let PortsProblem::Malformed(error) = problem {
            self.note_malformed(error);
        }
        let known = self.switch.as_ref().map(|switch| switch.info.ports.len());
        urtica_log::warn!(
            about: self.subject(),
            peer = self.name(),
            %problem,
            known_ports = known,
            "not all ports of a switch are known; using those that it has described"
        );
        self.come_up(batch);
    }

    /// Updates the known ports. Returns the changes without those that exceed [`MAX_PORTS`].
    fn update_ports(
        &mut self,
        mut changes: Vec<PortStatus>,
        batch: &BatchContext,
    ) -> Vec<PortStatus> {
        let token = self.switch_token();
        let Some(switch) = &mut self.switch else {
            return Vec::new();
        };
        let mut info = SwitchInfo::clone(&switch.info);
        let count = changes.len();
        changes.retain(|change| info.ports.update(change));
        switch.info = Arc::new(info);
        batch.network.update_info(token, &switch.info, &changes);
        self.note_refused_ports(count - changes.len());
        changes
    }

    fn note_refused_ports(&self, refused: usize) {
        for _ in 0..refused {
            self.counters.ports_refused.add(1);
            let count = self.counters.ports_refused.get();
            if is_worth_logging(count) {
                urtica_log::warn!(
                    about: self.subject(),
                    peer = self.name(),
                    count,
                    "ignoring a port: the switch has more than {MAX_PORTS}"
                );
            }
        }
    }

    /// Passes a message that is not a packet-in to the sender of the request that it answers, or to all.
    fn dispatch(
        &mut self,
        header: Header,
        message: &Message,
        frame: &[u8],
        batch: &mut BatchContext,
    ) {
        let asynchronous = matches!(
            message,
            Message::PacketIn(_) | Message::FlowRemoved(_) | Message::PortStatus(_)
        );
        if matches!(message, Message::PacketIn(_)) {
            self.counters.packet_ins.add(1);
        }
        if let Message::PortStatus(status) = message {
            if self.update_ports(vec![*status], batch).is_empty() {
                return;
            }
        }
        if let Message::Error(error) = message {
            self.counters.errors.add(1);
            let count = self.counters.errors.get();
            if is_worth_logging(count) {
                urtica_log::warn!(about: self.subject(), peer = self.name(), code = %error.code, xid = header.xid, count, "the switch refused a message");
                self.report_refusal(error.code, count, batch);
            }
        }
        let origin = Origin::of(header.xid);
        match origin.sender() {
            Sender::Request if !asynchronous => {
                self.requests.resolve(header, message, frame);
                if !self.reconciliations.is_empty() {
                    self.settle(batch);
                }
            }
            // No program sent the message that caused the error, so it is only logged.
            Sender::Session if matches!(message, Message::Error(_)) => {}
            Sender::Program if !asynchronous => match self.position_of(origin) {
                Some(program) => self.call_one(program, batch, |handler, switch| match message {
                    Message::Error(error) if origin.is_xid(header.xid) => {
                        handler.refused(switch, error);
                    }
                    _ => deliver(handler, switch, header.xid, message),
                }),
                // The program that sent the message that caused the error is gone.
                None if matches!(message, Message::Error(_)) => {}
                None => self.call_each(batch, |handler, switch| {
                    deliver(handler, switch, header.xid, message)
                }),
            },
            _ => self.call_each(batch, |handler, switch| {
                deliver(handler, switch, header.xid, message)
            }),
        }
    }

    fn report_refusal(&self, code: ErrorCode, count: u64, batch: &BatchContext) {
        if let Some(switch) = &self.switch {
            let id = switch.info.datapath_id;
            batch.network.report_refusal(self.token, id, code, count);
        }
    }

    /// Returns the position of the program that sends with these xids.
    fn position_of(&self, origin: Origin) -> Option<usize> {
        let programs = &self.switch.as_ref()?.programs.identities;
        programs.iter().position(|program| program.origin == origin)
    }

    fn call_one(
        &mut self,
        program: usize,
        batch: &mut BatchContext,
        call: impl FnMut(&mut dyn SwitchHandler, &mut Switch),
    ) {
        self.call(program..program + 1, batch, call);
    }

    fn call_each(
        &mut self,
        batch: &mut BatchContext,
        call: impl FnMut(&mut dyn SwitchHandler, &mut Switch),
    ) {
        self.call(0..usize::MAX, batch, call);
    }

    fn call(
        &mut self,
        range: Range<usize>,
        batch: &mut BatchContext,
        call: impl FnMut(&mut dyn SwitchHandler, &mut Switch),
    ) {
        if let Some(joined) = &mut self.switch {
            joined.call(range, &mut self.session.xids, &self.counters, batch, call);
        }
    }

    /// Sends `count` messages from the mailbox; with `reply` they get their own xid, by which the reply is routed back. Their
    /// bytes were counted when the backlog admitted them.
    pub fn send(&mut self, bytes: Vec<u8>, count: u64, reply: Option<Asker>, now: Instant) {
        let mut sent = Some(Waiting {
            counted: bytes.len(),
            bytes,
            count,
            reply,
        });
        if !self.reconciliations.is_empty() {
            sent = sent.and_then(|sent| self.rewrite_sent(sent, now));
        }
        if let Some(sent) = sent {
            self.send_now(sent, now);
        }
    }

    fn send_now(&mut self, sent: Waiting, now: Instant) {
        let mut bytes = sent.bytes;
        if let Some(asker) = sent.reply {
            let xid = self.session.xids.next(Origin::REQUEST);
            set_xids(&mut bytes, xid);
            self.requests.insert(xid, asker, now);
        }
        self.counters.sent.add(sent.count);
        let counted = sent.counted.min(bytes.len());
        self.backlog.subtract(sent.counted - counted);
        self.counted += counted;
        self.output.extend_from_slice(&bytes);
        if let Some(hold) = &mut self.hold {
            hold.note_added(bytes.len());
        }
    }

    /// Sends the batch's output; bytes that the socket does not accept wait here.
    pub fn flush(&mut self, batch: &mut BatchContext) -> Result<(), Close> {
        if !self.reconciliations.is_empty() {
            self.rewrite_output(batch);
        }
        if self.hold.is_some() {
            self.commit(batch)?;
        }
        if batch.out.is_empty() {
            return Ok(());
        }
        if self.is_waiting() {
            // After the output that waits already.
            self.output.extend_from_slice(&batch.out);
            batch.out.clear();
            return Ok(());
        }
        if !self.may_write() {
            self.output.extend_from_slice(&batch.out);
            batch.out.clear();
            return Ok(());
        }
        let sent = write(&mut self.channel, &self.counters, &batch.out, batch)?;
        self.note_written(sent);
        if sent < batch.out.len() {
            self.counters.stalls.add(1);
            self.was_full = true;
            self.output.extend_from_slice(&batch.out[sent..]);
        }
        batch.out.clear();
        Ok(())
    }

    /// Sends output that waits from earlier.
    pub fn flush_backlog(&mut self, batch: &BatchContext) -> Result<(), Close> {
        if !self.may_write() {
            return Ok(());
        }
        if self.hold.is_some() {
            self.commit_output()?;
        }
        let has_moved = self.channel.flush()?;
        let mut sent = 0;
        while sent < self.output.len() {
            let left = &self.output[sent..];
            match write(&mut self.channel, &self.counters, left, batch)? {
                0 => break,
                count => sent += count,
            }
        }
        if sent > 0 || has_moved {
            self.note_written(sent);
            self.output.drain(..sent);
            // Its echo replies follow only after it has read everything before our requests. A switch that has read from a full
            // socket is alive; space that was there before shows nothing.
            if self.was_full {
                self.session.note_received(batch.now);
            }
        }
        self.was_full = self.is_waiting();
        self.make_room();
        Ok(())
    }

    /// Subtracts from the backlog the written bytes that came through the mailbox.
    fn make_room(&mut self) {
        let left = self.counted.min(self.output.len());
        self.backlog.subtract(self.counted - left);
        self.counted = left;
    }

    /// Handles the passing of time: keep-alive, time-outs, and buffers that an idle switch does not need. May call handlers.
    pub fn handle_timeout(&mut self, batch: &mut BatchContext) -> Result<(), Close> {
        self.requests.sweep(batch.now);
        self.age_load();
        if self.input.is_empty() {
            self.input.shrink_to(0);
        }
        if self.output.is_empty() {
            self.output.shrink_to(0);
        }
        if let Event::PortsUnknown(problem) =
            self.session.handle_timeout(batch.now, &mut batch.out)?
        {
            self.do_without_ports(&problem, batch);
        }
        self.backlog.note_waiting(WaitingBytes {
            replies: self.output.len() - self.counted,
            received: self.input.len(),
        });
        self.note_roles(&[], batch);
        if !self.reconciliations.is_empty() {
            self.settle(batch);
        }
        self.tick(batch);
        Ok(())
    }

    /// Calls the handlers whose timers have expired; later, if the switch does not read their output.
    fn tick(&mut self, batch: &mut BatchContext) {
        if self.is_waiting() {
            return;
        }
        let due = self
            .switch
            .as_mut()
            .map_or(Vec::new(), |switch| switch.take_due(batch.now));
        for program in due {
            self.call_one(program, batch, |handler, switch| handler.tick(switch));
        }
    }

    /// The switch's identity, once it is known.
    pub fn datapath_id(&self) -> Option<DatapathId> {
        self.switch.as_ref().map(|switch| switch.info.datapath_id)
    }

    /// Returns the number of messages received lately, to be compared with other connections of the shard.
    pub fn load(&self) -> u64 {
        self.load + self.counters.received.get() - self.received_before
    }

    /// Halves the weight of the messages received until now.
    pub fn age_load(&mut self) {
        self.load = self.load() / 2;
        self.received_before = self.counters.received.get();
    }

    /// Closes the connection: logs it, removes the switch from the registry, and notifies the handlers.
    pub fn close(&mut self, close: &Close, batch: &mut BatchContext) {
        self.log_end(close);
        if matches!(close, Close::Session(SessionError::Dead(_))) {
            self.log_silence();
        }
        self.close_auxiliaries(batch);
        if let (Some(hold), Some(socket)) = (self.hold.take(), self.channel.socket()) {
            hold.end(socket);
        }
        let shard = &batch.network.shard(batch.shard).counters;
        if let Close::Panic(reason) = close {
            shard.panics.add(1);
            self.note_panic(reason, batch);
        }
        self.reconciliations.clear();
        let Some(switch) = &mut self.switch else {
            return;
        };
        batch
            .network
            .deregister(switch.info.datapath_id, self.token);
        let handlers = std::mem::take(&mut switch.handlers);
        for (program, handler) in switch.programs.identities.iter().zip(handlers) {
            switch.end_handler(program, handler, batch);
        }
        switch.end_raw(batch);
    }

    /// The subject of log lines about it.
    fn subject(&self) -> Subject<'_> {
        match &self.switch {
            Some(switch) => Subject::Switch(switch.info.datapath_id),
            None => Subject::of_peer(self.session.peer()),
        }
    }

    /// Notes that a handler has panicked.
    fn note_panic(&self, reason: &str, batch: &BatchContext) {
        let panicked = take_panicked();
        let switch = self.switch.as_ref();
        let id = switch.map(|switch| switch.info.datapath_id);
        let program = switch.and_then(|switch| {
            let mut identities = switch.programs.identities.iter();
            identities.find(|identity| Some(identity.origin) == panicked)
        });
        let name = program.and_then(|program| program.times.name());
        batch.network.panic_log().note(name, id, reason);
    }

    /// What may keep a connection silent that works: output that does not leave, or input that is not read.
    fn log_silence(&self) {
        let kernel = self.kernel.as_ref().zip(self.channel.socket());
        let kernel_half = kernel.map(|(kernel, socket)| kernel.describe(socket));
        urtica_log::debug!(
            about: self.subject(),
            peer = self.name(),
            waiting_bytes = self.output.len(),
            waiting_replies = self.output.len() - self.counted,
            input_bytes = self.input.len(),
            unhandled_bytes = self.left(),
            kernel_half = kernel_half.unwrap_or_else(|| "none".into()),
            "state of the silent connection"
        );
    }

    fn log_end(&self, close: &Close) {
        let (peer, joined) = (self.name(), self.switch.is_some());
        let subject = self.subject();
        match close {
            Close::Panic(_) => {
                urtica_log::error!(about: subject, peer, reason = %close, "switch dropped; the controller keeps running")
            }
            Close::ByPeer | Close::Asked(_) if joined => {
                urtica_log::info!(about: subject, peer, reason = %close, "switch left")
            }
            _ if joined => urtica_log::warn!(about: subject, peer, reason = %close, "switch lost"),
            Close::Auxiliary(_) => {
                urtica_log::warn!(about: subject, peer, reason = %close, "connection refused")
            }
            _ if self.is_auxiliary() => {
                urtica_log::info!(about: subject, peer, reason = %close, "auxiliary connection closed")
            }
            Close::NotAdmitted(_) => {
                urtica_log::warn!(about: subject, peer, reason = %close, "switch refused")
            }
            Close::Session(error) if !error.is_noise() => {
                urtica_log::warn!(about: subject, peer, reason = %close, "connection refused")
            }
            _ => {
                urtica_log::debug!(about: subject, peer, reason = %close, "connection closed before a switch joined")
            }
        }
    }
}

impl<C> Drop for Connection<C> {
    fn drop(&mut self) {
        self.backlog.close();
    }
}

/// One write to a connection's channel, counted.
fn write<C: Channel>(
    channel: &mut C,
    counters: &SwitchCounters,
    bytes: &[u8],
    batch: &BatchContext,
) -> Result<usize, Close> {
    let shard = &batch.network.shard(batch.shard).counters;
    shard.writes.add(1);
    let sent = channel.send(bytes)?;
    shard.sent_bytes.add(sent as u64);
    counters.sent_bytes.add(sent as u64);
    Ok(sent)
}

/// Gives all messages in `bytes`, which we encoded, this xid.
fn set_xids(bytes: &mut [u8], xid: u32) {
    let mut rest = bytes;
    while let Some(header) = rest.first_chunk_mut::<{ Header::SIZE }>() {
        header[4..].copy_from_slice(&xid.to_be_bytes());
        let length = u16::from_be_bytes([header[2], header[3]]);
        rest = &mut rest[usize::from(length)..];
    }
}

/// Returns the handler that continues the kernel half of an earlier program, and its position among the programs; `None` if there
/// is none.
fn resume_handler(
    programs: &ProgramList,
    info: &SwitchInfo,
    held: urtica_hold::Id,
    started: Instant,
) -> Option<(usize, Box<dyn SwitchHandler>)> {
    if let [only] = &programs.programs[..] {
        return Some((0, only.program.resume(info, held, started)?));
    }
    let mut listed = programs.programs.iter().enumerate();
    listed.find_map(|(index, listed)| {
        let handler = listed.program.resume_for_all(info, held, started)?;
        Some((index, handler))
    })
}

/// Warns of a switch that has no table for entries behind a filter's.
fn warn_if_unguarded(info: &SwitchInfo, tables: Tables) {
    let has = match info.version {
        Version::Of10 => 1,
        Version::Of13 => info.n_tables,
    };
    if has < tables.count() {
        urtica_log::warn!(
            about: Subject::Switch(info.datapath_id),
            dp_id = %info.datapath_id,
            openflow = %info.version,
            n_tables = has,
            "a filter program cannot guard flow entries in this switch: expected OpenFlow 1.3 and two tables; entries of \
             forwarding programs are refused and every packet is sent to the controller; on Open vSwitch type `ovs-vsctl set \
             bridge NAME protocols=OpenFlow13`"
        );
    }
}

/// Runs code that calls handlers; a panic in one becomes the reason for which its connection ends.
pub(crate) fn contain(run: impl FnOnce() -> Result<(), Close>) -> Result<(), Close> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(Close::Panic(panic_text(panic))))
}

/// Returns the message of a panic that was contained.
fn panic_of(contained: &Close) -> String {
    match contained {
        Close::Panic(message) => message.clone(),
        other => other.to_string(),
    }
}

/// Drops a handler, which may panic in its destructor.
fn drop_contained(handler: Box<dyn SwitchHandler>) -> Result<(), Close> {
    contain(|| {
        drop(handler);
        Ok(())
    })
}

/// Calls the handler's method for the message.
fn deliver(handler: &mut dyn SwitchHandler, switch: &mut Switch, xid: u32, message: &Message) {
    match message {
        Message::PacketIn(packet) => handler.packet_in(switch, packet),
        Message::FlowRemoved(removed) => handler.flow_removed(switch, removed),
        Message::PortStatus(status) => handler.port_status(switch, status),
        Message::Error(error) => handler.error(switch, xid, error),
        other => handler.message(switch, xid, other),
    }
}

mod auxiliary;
mod hold;
mod holding;
mod programs;
mod raw;
mod roles;
#[cfg(test)]
mod tests;
