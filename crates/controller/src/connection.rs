//! One switch's connection: bytes to frames, frames to the session and the handlers, replies to bytes.

use crate::backlog::Backlog;
use crate::handler::PacketIns;
use crate::kernel_half::{Hand, Turns};
use crate::mailbox::Token;
use crate::network::{Entry, Network};
use crate::request::{Asker, Requests};
use crate::session::{Event, PortsProblem, Session, SessionConfig, SessionError, Subject};
use crate::stage::Tables;
use crate::xid::{Origin, Sender, Xids};
use crate::{MAX_PORTS, Program, Switch, SwitchCounters, SwitchHandler, SwitchInfo};
use parking_lot::Mutex;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use urtica_state::Series;
use urtica_wire::{
    DatapathId, DecodeError, Header, Message, PacketIn, PortStatus, Version, split_frame,
};

/// Replies leave when this many bytes have gathered, or when the batch has been handled: about as many as one full read
/// brings, so that a batch costs one system call each way, and still within the core's second cache.
pub(crate) const FLUSH_BYTES: usize = 256 << 10;

/// What a shard lends a connection while it handles a batch; the same for all its turns.
pub(crate) struct Turn {
    /// Where replies gather; empty between turns.
    pub out: Vec<u8>,
    pub now: Instant,
    /// Whole seconds since the shard started.
    pub now_s: u32,
    pub network: Network,
    /// The same for each program.
    networks: Vec<Network>,
    pub programs: Vec<Arc<dyn Program>>,
    pub shard: usize,
    /// When the shard started.
    pub started: Instant,
}

impl Turn {
    /// A shard's, with this memory for replies.
    pub fn new(
        out: Vec<u8>,
        now: Instant,
        network: Network,
        programs: Vec<Arc<dyn Program>>,
        shard: usize,
    ) -> Self {
        let networks = (0..programs.len()).map(|program| network.for_program(program));
        Self {
            out,
            now,
            now_s: 0,
            networks: networks.collect(),
            network,
            programs,
            shard,
            started: now,
        }
    }
}

/// What [`Turn::now_s`] is after this time.
pub(crate) fn whole_seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Close {
    #[error("the peer closed the connection")]
    ByPeer,
    #[error("{0}")]
    Session(#[from] SessionError),
    #[error("the connection failed: {0}")]
    Io(#[from] Errno),
    #[error("{0}")]
    Asked(&'static str),
    #[error("a handler panicked: {0}")]
    Panic(String),
}

/// Where a connection's bytes go.
pub(crate) trait Channel {
    /// Takes as many bytes off the front as there is room for now, and says how many; none where that is to wait.
    fn send(&self, bytes: &[u8]) -> Result<usize, Errno>;

    /// The socket, where it is one that the kernel can answer at.
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Channel for OwnedFd {
    fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        match send(self, bytes, SendFlags::NOSIGNAL) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            sent => sent,
        }
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

/// A connection. Owned by one shard at a time; may move to another between two batches.
pub(crate) struct Connection<C = OwnedFd> {
    channel: C,
    pub token: Token,
    session: Session,
    /// The switch, once it has said who it is.
    switch: Option<Joined>,
    requests: Requests,
    counters: Arc<SwitchCounters>,
    /// Bytes received and not yet handled: the beginning of a frame, or, while the switch does not read, more.
    input: Vec<u8>,
    /// Bytes that the channel did not take yet.
    output: Vec<u8>,
    /// Whether the socket had no room for all when it was last given something.
    was_full: bool,
    /// How many of them came through the mailbox; the others are replies, which count as the first to leave.
    counted: usize,
    /// Counts these and those in the mailbox.
    backlog: Arc<Backlog>,
    /// Messages received of late, those before `received_before` counting ever less.
    load: u64,
    /// Messages received when `load` was last brought up to date.
    received_before: u64,
    /// The part of its program that answers in the kernel.
    kernel: Option<Turns>,
}

/// A switch that has said who it is, and its handlers, one per program.
struct Joined {
    info: Arc<SwitchInfo>,
    handlers: Vec<Box<dyn SwitchHandler>>,
    /// The table that each program has to itself, where it has one.
    own_tables: Vec<Option<u8>>,
    /// Whether handlers were told that it is up.
    is_up: bool,
    /// Those of handlers that have an interval.
    timers: Vec<TickTimer>,
}

/// When a handler's [`SwitchHandler::tick`] is due.
struct TickTimer {
    program: usize,
    interval: Duration,
    due: Instant,
}

impl TickTimer {
    /// `None` where that is beyond what an [`Instant`] can say.
    fn start(program: usize, interval: Duration, now: Instant) -> Option<Self> {
        Some(Self {
            program,
            interval,
            due: now.checked_add(interval)?,
        })
    }
}

/// Where a connection ends without [`Connection::close`], as its shard has: a handler may panic even when it is dropped.
impl Drop for Joined {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            if let Err(reason) = drop_contained(handler) {
                urtica_log::error!(about: Subject::Switch(self.info.datapath_id), dp_id = %self.info.datapath_id, %reason, "while its handler was dropped");
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

    /// The programs whose handlers' time has come; their next begins now.
    fn take_due(&mut self, now: Instant) -> Vec<usize> {
        let due = self.timers.extract_if(.., |timer| timer.due <= now);
        let due: Vec<_> = due.collect();
        let next = due
            .iter()
            .filter_map(|timer| TickTimer::start(timer.program, timer.interval, now));
        self.timers.extend(next);
        due.iter().map(|timer| timer.program).collect()
    }

    /// Calls the handlers of the programs in `range`, in order, until one consumes the message.
    fn call(
        &mut self,
        range: Range<usize>,
        xids: &mut Xids,
        counters: &SwitchCounters,
        turn: &mut Turn,
        mut call: impl FnMut(&mut dyn SwitchHandler, &mut Switch),
    ) {
        let mut switch = self.info.lend(&self.own_tables, xids, counters, turn);
        for (program, handler) in self.handlers.iter_mut().enumerate() {
            if range.contains(&program) && !switch.consumed {
                switch.begin(program);
                call(handler.as_mut(), &mut switch);
            }
        }
    }
}

/// Hands a packet-in to the programs, in order, until one consumes it.
fn pass(handlers: &mut [Box<dyn SwitchHandler>], switch: &mut Switch, packet: &PacketIn) {
    for (program, handler) in handlers.iter_mut().enumerate() {
        switch.begin(program);
        handler.packet_in(switch, packet);
        if switch.consumed {
            return;
        }
    }
}

impl SwitchInfo {
    /// What handlers get to see of the switch during a turn.
    fn lend<'t>(
        &'t self,
        own_tables: &'t [Option<u8>],
        xids: &'t mut Xids,
        counters: &'t SwitchCounters,
        turn: &'t mut Turn,
    ) -> Switch<'t> {
        Switch {
            info: self,
            out: &mut turn.out,
            xids,
            counters,
            network: &turn.network,
            networks: &turn.networks,
            now: turn.now,
            now_s: turn.now_s,
            origin: Origin::SESSION,
            cookie_be: 0,
            own_table: None,
            own_tables,
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
}

/// Turns with the kernel half: see `kernel_half.rs`.
impl<C: Channel> Connection<C> {
    /// A read brought so many bytes, all that there was where `is_drained`. Returns whether there is something to handle:
    /// the kernel half wakes the shard also for what it answers itself.
    pub fn note_read(&mut self, count: usize, is_drained: bool, turn: &Turn) -> bool {
        let Some(kernel) = &mut self.kernel else {
            return true;
        };
        kernel.note_read(count, is_drained);
        if count > 0 || kernel.has_passed() {
            self.take_turn(turn);
            return true;
        }
        kernel.is_ours()
    }

    /// Whether the kernel half has the turn, and wakes the shard when it ends.
    pub fn is_kernels(&self) -> bool {
        self.kernel.as_ref().is_some_and(|kernel| !kernel.is_ours())
    }

    /// What else than the socket is to be watched for this connection, and is not yet.
    pub fn unwatched(&mut self) -> Option<BorrowedFd<'_>> {
        let (Some(kernel), Some(socket)) = (&mut self.kernel, self.channel.socket()) else {
            return None;
        };
        if let Err(error) = kernel.attach(socket) {
            urtica_log::warn!(about: self.subject(), peer = self.name(), %error, "the kernel half cannot take part; the program answers alone");
            self.kernel = None;
            return None;
        }
        self.kernel.as_mut()?.unwatched()
    }

    /// What else is watched for this connection, and is not to be any more.
    pub fn watched(&mut self) -> Option<BorrowedFd<'_>> {
        self.kernel.as_mut()?.watched()
    }

    /// Takes the turn where the kernel half has it. To be done before anything is done with the connection.
    pub fn take_turn(&mut self, turn: &Turn) {
        let Some(kernel) = &mut self.kernel else {
            return;
        };
        let Some(taken) = kernel.take(&mut self.input) else {
            return;
        };
        self.session.xids.go_on_after(taken.xid);
        if taken.answered > 0 {
            self.session.heard(turn.now);
        }
        self.counters.received.add(taken.answered);
        self.counters.packet_ins.add(taken.answered);
        self.counters.answered_in_kernel.add(taken.answered);
        self.counters.sent.add(taken.sent);
        self.counters.sent_bytes.add(taken.sent_bytes);
        self.counters.passed_by_kernel.add(taken.passed);
        self.counters.fell_back.add(taken.fell_back);
        let shard = &turn.network.shard(turn.shard).counters;
        shard.received.add(taken.answered);
        shard.sent_bytes.add(taken.sent_bytes);
        shard.answered_in_kernel.add(taken.answered);
        shard.passed_by_kernel.add(taken.passed);
        shard.fell_back.add(taken.fell_back);
    }

    /// Gives the turn away where nothing is left to do, until something comes that the kernel half does not answer.
    pub fn give_turn(&mut self, turn: &Turn) {
        let (Some(kernel), Some(socket)) = (&mut self.kernel, self.channel.socket()) else {
            return;
        };
        if !self.output.is_empty() {
            return;
        }
        let hand = Hand {
            fragment: &self.input,
            xid: self.session.xids.last(),
            started: turn.started,
        };
        if kernel.give(socket, hand) {
            self.input.clear();
        }
    }

    /// Whether the program may write to the socket now: not before what the kernel half has answered is written.
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

    /// The switch is up: has its program's kernel half begin, where the program is the only one and has one.
    fn begin_turns(&mut self) {
        if self.channel.socket().is_some()
            && let Some(switch) = &mut self.switch
            && let [handler] = &mut switch.handlers[..]
        {
            self.kernel = handler.kernel_half().map(Turns::new);
        }
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
            session: Session::new(config, peer, now),
            switch: None,
            requests: Requests::default(),
            counters: Arc::default(),
            input: Vec::new(),
            output: Vec::new(),
            was_full: false,
            counted: 0,
            backlog: Arc::default(),
            load: 0,
            received_before: 0,
            kernel: None,
        }
    }

    /// Whether anything waits that the socket did not take.
    pub fn is_waiting(&self) -> bool {
        !self.output.is_empty()
    }

    /// Whether replies wait that the socket did not take: then nothing is read. Messages from elsewhere alone, however
    /// many there are to be sent, do not keep a switch from being heard.
    pub fn is_stalled(&self) -> bool {
        self.output.len() > self.counted
    }

    /// Where its bytes go.
    pub fn channel(&self) -> &C {
        &self.channel
    }

    /// The same, to take bytes out.
    pub fn channel_mut(&mut self) -> &mut C {
        &mut self.channel
    }

    /// What was received and not handled.
    pub fn take_input(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.input)
    }

    /// Puts bytes to those that were received and not handled.
    pub fn keep_input(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// How many bytes were received and not handled.
    pub fn input_len(&self) -> usize {
        self.input.len()
    }

    /// Copies what was received and not handled to `to`, which has its length, and forgets it.
    pub fn drain_input(&mut self, to: &mut [u8]) {
        to.copy_from_slice(&self.input);
        self.input.clear();
    }

    /// Who the connection is with, for logs.
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

    /// Handles what has been received, in order, and keeps what is left: the beginning of a frame, or everything after
    /// the point at which the switch stopped reading our replies.
    pub fn handle_input(&mut self, input: &[u8], turn: &mut Turn) -> Result<(), Close> {
        let mut rest = input;
        let result = self.handle_frames(&mut rest, turn);
        let handled = input.len() - rest.len();
        if handled > 0 {
            self.session.heard(turn.now);
            self.counters.received_bytes.add(handled as u64);
        }
        self.input.extend_from_slice(rest);
        result
    }

    /// Handles whole frames off the front of `rest`, as long as the switch reads our replies. Runs of packet-ins go
    /// straight to the handlers; all else, one frame at a time, through the session.
    fn handle_frames(&mut self, rest: &mut &[u8], turn: &mut Turn) -> Result<(), Close> {
        loop {
            self.handle_packet_ins(rest, turn);
            if turn.out.len() >= FLUSH_BYTES {
                self.flush(turn)?;
                if self.is_stalled() {
                    return Ok(());
                }
                continue;
            }
            match split_frame(rest) {
                Ok(None) => return Ok(self.session.handle_fragment(rest)?),
                Ok(Some((frame, after))) => {
                    *rest = after;
                    self.count_received(1, turn);
                    self.handle_frame(frame, turn)?;
                }
                Err(error) => {
                    let end = self.session.handle_malformed(error, rest, &mut turn.out);
                    return Err(end.into());
                }
            }
        }
    }

    /// Hands the packet-ins at the front of `rest` to the handlers, until something else comes or the replies fill the
    /// output: the path that a controller spends its life on.
    fn handle_packet_ins(&mut self, rest: &mut &[u8], turn: &mut Turn) {
        let (Some(joined), Some(version)) = (&mut self.switch, self.session.version()) else {
            return;
        };
        // Many handlers run a transaction for each.
        let _series = Series::new();
        let mut packets = PacketIns::new(version, rest);
        let (own_tables, xids) = (&joined.own_tables, &mut self.session.xids);
        let mut switch = joined.info.lend(own_tables, xids, &self.counters, turn);
        if let [handler] = &mut joined.handlers[..] {
            switch.begin(0);
            handler.packet_ins(&mut switch, &mut packets);
        } else {
            while let Some(packet) = packets.next(&switch) {
                pass(&mut joined.handlers, &mut switch, &packet);
            }
        }
        drop(switch);
        let (after, received) = packets.finish();
        *rest = after;
        self.counters.packet_ins.add(received);
        self.count_received(received, turn);
    }

    fn count_received(&self, count: u64, turn: &Turn) {
        self.counters.received.add(count);
        turn.network.shard(turn.shard).counters.received.add(count);
    }

    fn handle_frame(&mut self, frame: &[u8], turn: &mut Turn) -> Result<(), Close> {
        match self.session.handle_frame(turn.now, frame, &mut turn.out)? {
            Event::Nothing => {}
            Event::Joined(info) => self.join(info, turn),
            Event::Ports { ports, last } => self.learn_ports(ports, last, turn),
            Event::PortsUnknown(problem) => self.do_without_ports(&problem, turn),
            Event::Message(header, message) => self.dispatch(header, &message, frame, turn),
            Event::Malformed(error) => self.note_malformed(&error),
        }
        Ok(())
    }

    fn note_malformed(&self, error: &DecodeError) {
        self.counters.malformed.add(1);
        let count = self.counters.malformed.get();
        if is_worth_telling(count) {
            urtica_log::warn!(about: self.subject(), peer = self.name(), %error, count, "a malformed message was refused");
        }
    }

    /// The switch has said who it is: makes its handlers and tells the network.
    fn join(&mut self, info: SwitchInfo, turn: &mut Turn) {
        urtica_log::info!(about: Subject::Switch(info.datapath_id), dp_id = %info.datapath_id, peer = info.peer, openflow = %info.version, "switch joined");
        let tables = turn.network.tables();
        warn_if_unguarded(&info, tables);
        let programs = turn.programs.iter();
        let own_tables = programs.map(|program| tables.own_table(program.stage()));
        let own_tables = own_tables.collect();
        let version = info.version;
        let info = Arc::new(info);
        let joined = self.switch.insert(Joined {
            info: info.clone(),
            handlers: Vec::with_capacity(turn.programs.len()),
            own_tables,
            is_up: false,
            timers: Vec::new(),
        });
        for program in &turn.programs {
            joined.handlers.push(program.handler(&info));
        }
        let entry = Entry {
            shard: turn.shard,
            token: self.token,
            joined: Arc::clone(&info),
            info: Mutex::new(info),
            counters: self.counters.clone(),
            backlog: Arc::clone(&self.backlog),
            permanent: Arc::default(),
            is_up: false,
        };
        if let Some(older) = turn.network.register(entry) {
            urtica_log::warn!(
                about: Subject::Switch(older.joined.datapath_id),
                dp_id = %older.joined.datapath_id,
                older = older.joined.peer,
                newer = self.session.peer(),
                "two connections have the same datapath id: the newer one is used and the older one closed; if these are \
                 two switches, give them ids of their own"
            );
        }
        // 1.0 tells the ports with the features; in 1.3 their descriptions are on the way.
        if version == Version::Of10 {
            self.come_up(turn);
        }
    }

    fn come_up(&mut self, turn: &mut Turn) {
        self.call_each(turn, |handler, switch| handler.switch_up(switch));
        if let Some(switch) = &mut self.switch {
            switch.is_up = true;
            switch.start_timers(turn.now);
            turn.network.announce(switch.info.datapath_id, self.token);
        }
        self.begin_turns();
    }

    /// Takes in a part of the port description. What comes of it when the switch is up already is news, as if it came
    /// with port-status messages.
    fn learn_ports(&mut self, ports: Vec<PortStatus>, last: bool, turn: &mut Turn) {
        let learnt = self.update_ports(ports, turn);
        let is_up = self.switch.as_ref().is_some_and(|switch| switch.is_up);
        if is_up {
            for status in &learnt {
                self.call_each(turn, |handler, switch| handler.port_status(switch, status));
            }
        } else if last {
            self.come_up(turn);
        }
    }

    /// A switch that does not describe its ports is used all the same.
    fn do_without_ports(&mut self, problem: &PortsProblem, turn: &mut Turn) {
        if let PortsProblem::Malformed(error) = problem {
            self.note_malformed(error);
        }
        let known = self.switch.as_ref().map(|switch| switch.info.ports.len());
        urtica_log::warn!(
            about: self.subject(),
            peer = self.name(),
            %problem,
            known_ports = known,
            "not all ports of a switch are known; it is used with those that it has told of"
        );
        self.come_up(turn);
    }

    /// Takes in what is said of ports. Returns the changes without those about ports that are too many.
    fn update_ports(&mut self, mut changes: Vec<PortStatus>, turn: &Turn) -> Vec<PortStatus> {
        let Some(switch) = &mut self.switch else {
            return Vec::new();
        };
        let mut info = SwitchInfo::clone(&switch.info);
        let count = changes.len();
        changes.retain(|change| info.ports.update(change));
        switch.info = Arc::new(info);
        turn.network.update_info(self.token, &switch.info, &changes);
        self.note_refused_ports(count - changes.len());
        changes
    }

    fn note_refused_ports(&self, refused: usize) {
        for _ in 0..refused {
            self.counters.ports_refused.add(1);
            let count = self.counters.ports_refused.get();
            if is_worth_telling(count) {
                urtica_log::warn!(
                    about: self.subject(),
                    peer = self.name(),
                    count,
                    "a port is not used: the switch has more than {MAX_PORTS}"
                );
            }
        }
    }

    /// A message that is not a packet-in: to whoever caused it, or to all.
    fn dispatch(&mut self, header: Header, message: &Message, frame: &[u8], turn: &mut Turn) {
        let asynchronous = matches!(
            message,
            Message::PacketIn(_) | Message::FlowRemoved(_) | Message::PortStatus(_)
        );
        if let Message::PortStatus(status) = message
            && self.update_ports(vec![*status], turn).is_empty()
        {
            return;
        }
        if let Message::Error(error) = message {
            self.counters.errors.add(1);
            let count = self.counters.errors.get();
            if is_worth_telling(count) {
                urtica_log::warn!(about: self.subject(), peer = self.name(), code = %error.code, xid = header.xid, count, "the switch refused a message");
            }
        }
        let origin = Origin::of(header.xid);
        match origin.sender() {
            Sender::Request if !asynchronous => self.requests.resolve(header, message, frame),
            // No program caused it: the log is the place for it.
            Sender::Session if matches!(message, Message::Error(_)) => {}
            Sender::Program(program) if !asynchronous && program < turn.programs.len() => {
                self.call_one(program, turn, |handler, switch| match message {
                    Message::Error(error) if origin.is_xid(header.xid) => {
                        handler.refused(switch, error);
                    }
                    _ => deliver(handler, switch, header.xid, message),
                });
            }
            _ => self.call_each(turn, |handler, switch| {
                deliver(handler, switch, header.xid, message)
            }),
        }
    }

    fn call_one(
        &mut self,
        program: usize,
        turn: &mut Turn,
        call: impl FnMut(&mut dyn SwitchHandler, &mut Switch),
    ) {
        self.call(program..program + 1, turn, call);
    }

    fn call_each(
        &mut self,
        turn: &mut Turn,
        call: impl FnMut(&mut dyn SwitchHandler, &mut Switch),
    ) {
        self.call(0..usize::MAX, turn, call);
    }

    fn call(
        &mut self,
        range: Range<usize>,
        turn: &mut Turn,
        call: impl FnMut(&mut dyn SwitchHandler, &mut Switch),
    ) {
        if let Some(joined) = &mut self.switch {
            joined.call(range, &mut self.session.xids, &self.counters, turn, call);
        }
    }

    /// Sends `count` messages that came through the mailbox; with `reply` they get an xid of their own, by which the reply
    /// finds back. They were counted when they were let in.
    pub fn send(&mut self, mut bytes: Vec<u8>, count: u64, reply: Option<Asker>, now: Instant) {
        if let Some(asker) = reply {
            let xid = self.session.xids.next(Origin::REQUEST);
            set_xids(&mut bytes, xid);
            self.requests.insert(xid, asker, now);
        }
        self.counters.sent.add(count);
        self.counted += bytes.len();
        self.output.extend_from_slice(&bytes);
    }

    /// Sends what has gathered in the turn's output; what the socket does not take waits here.
    pub fn flush(&mut self, turn: &mut Turn) -> Result<(), Close> {
        if turn.out.is_empty() {
            return Ok(());
        }
        if self.is_waiting() {
            // Not past what waits already.
            self.output.extend_from_slice(&turn.out);
            turn.out.clear();
            return Ok(());
        }
        if !self.may_write() {
            self.output.extend_from_slice(&turn.out);
            turn.out.clear();
            return Ok(());
        }
        let sent = self.write(&turn.out, turn)?;
        self.note_written(sent);
        if sent < turn.out.len() {
            self.counters.stalls.add(1);
            self.was_full = true;
            self.output.extend_from_slice(&turn.out[sent..]);
        }
        turn.out.clear();
        Ok(())
    }

    /// Sends what waits from before.
    pub fn flush_backlog(&mut self, turn: &Turn) -> Result<(), Close> {
        if !self.may_write() {
            return Ok(());
        }
        let mut sent = 0;
        while sent < self.output.len() {
            match self.write(&self.output[sent..], turn)? {
                0 => break,
                count => sent += count,
            }
        }
        if sent > 0 {
            self.note_written(sent);
            self.output.drain(..sent);
            // Its answers to our probes come after all that is before them: a switch that has read what the socket had no room
            // beside is alive. Room that there was already says nothing of it.
            if self.was_full {
                self.session.heard(turn.now);
            }
        }
        self.was_full = self.is_waiting();
        self.make_room();
        Ok(())
    }

    /// Lets as much in as has been written of what came through the mailbox.
    fn make_room(&mut self) {
        let left = self.counted.min(self.output.len());
        self.backlog.subtract(self.counted - left);
        self.counted = left;
    }

    fn write(&self, bytes: &[u8], turn: &Turn) -> Result<usize, Close> {
        let shard = &turn.network.shard(turn.shard).counters;
        shard.writes.add(1);
        let sent = self.channel.send(bytes)?;
        shard.sent_bytes.add(sent as u64);
        self.counters.sent_bytes.add(sent as u64);
        Ok(sent)
    }

    /// Time has passed: keep-alive, time-outs, and buffers that a quiet switch does not need. May call handlers.
    pub fn handle_timeout(&mut self, turn: &mut Turn) -> Result<(), Close> {
        self.requests.sweep(turn.now);
        self.age_load();
        if self.input.is_empty() {
            self.input.shrink_to(0);
        }
        if self.output.is_empty() {
            self.output.shrink_to(0);
        }
        if let Event::PortsUnknown(problem) =
            self.session.handle_timeout(turn.now, &mut turn.out)?
        {
            self.do_without_ports(&problem, turn);
        }
        self.tick(turn);
        Ok(())
    }

    /// Calls the handlers whose time has come; later, where the switch does not read what they would send.
    fn tick(&mut self, turn: &mut Turn) {
        if self.is_waiting() {
            return;
        }
        let due = self
            .switch
            .as_mut()
            .map_or(Vec::new(), |switch| switch.take_due(turn.now));
        for program in due {
            self.call_one(program, turn, |handler, switch| handler.tick(switch));
        }
    }

    /// The switch's identity, once it has said who it is.
    pub fn datapath_id(&self) -> Option<DatapathId> {
        self.switch.as_ref().map(|switch| switch.info.datapath_id)
    }

    /// How many messages were received of late, to be compared with other connections of the shard.
    pub fn load(&self) -> u64 {
        self.load + self.counters.received.get() - self.received_before
    }

    /// Has what was received until now count half as much from now on.
    pub fn age_load(&mut self) {
        self.load = self.load() / 2;
        self.received_before = self.counters.received.get();
    }

    /// Ends the connection: tells the log, the network, and the handlers.
    pub fn close(&mut self, close: &Close, turn: &mut Turn) {
        self.log_end(close);
        let shard = &turn.network.shard(turn.shard).counters;
        shard.panics.add(matches!(close, Close::Panic(_)).into());
        let Some(switch) = &mut self.switch else {
            return;
        };
        turn.network.deregister(switch.info.datapath_id, self.token);
        for mut handler in switch.handlers.drain(..) {
            let told = contain(|| {
                handler.switch_down(&switch.info);
                Ok(())
            });
            for reason in [told, drop_contained(handler)]
                .into_iter()
                .filter_map(Result::err)
            {
                shard.panics.add(1);
                urtica_log::error!(about: Subject::Switch(switch.info.datapath_id), dp_id = %switch.info.datapath_id, %reason, "while its switch left");
            }
        }
    }

    /// What log lines about it are about.
    fn subject(&self) -> Subject<'_> {
        match &self.switch {
            Some(switch) => Subject::Switch(switch.info.datapath_id),
            None => Subject::of_peer(self.session.peer()),
        }
    }

    fn log_end(&self, close: &Close) {
        let (peer, joined) = (self.name(), self.switch.is_some());
        let subject = self.subject();
        match close {
            Close::Panic(_) => {
                urtica_log::error!(about: subject, peer, reason = %close, "switch dropped; the controller lives on")
            }
            Close::ByPeer | Close::Asked(_) if joined => {
                urtica_log::info!(about: subject, peer, reason = %close, "switch left")
            }
            _ if joined => urtica_log::warn!(about: subject, peer, reason = %close, "switch lost"),
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

/// Gives all messages in `bytes`, which we encoded, this xid.
fn set_xids(bytes: &mut [u8], xid: u32) {
    let mut rest = bytes;
    while let Some(header) = rest.first_chunk_mut::<{ Header::SIZE }>() {
        header[4..].copy_from_slice(&xid.to_be_bytes());
        let length = u16::from_be_bytes([header[2], header[3]]);
        rest = &mut rest[usize::from(length)..];
    }
}

/// Tells of a switch that has no table for entries behind a filter's.
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
             forwarding programs are refused and every packet comes to the controller; on Open vSwitch type `ovs-vsctl set \
             bridge NAME protocols=OpenFlow13`"
        );
    }
}

/// Whether the log tells of something that has happened `count` times on a connection: ever more rarely, so that a
/// switch that refuses everything does not drown the rest.
pub(crate) fn is_worth_telling(count: u64) -> bool {
    count.is_power_of_two()
}

/// Runs code that calls handlers; a panic in one becomes the end of its connection.
pub(crate) fn contain(run: impl FnOnce() -> Result<(), Close>) -> Result<(), Close> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(Close::Panic(panic_text(panic))))
}

/// Drops a handler, which may panic even now.
fn drop_contained(handler: Box<dyn SwitchHandler>) -> Result<(), Close> {
    contain(|| {
        drop(handler);
        Ok(())
    })
}

/// What a panic said.
pub(crate) fn panic_text(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        // What was thrown throws when it is dropped, and so may what that has thrown.
        std::mem::forget(another);
    }
    text.unwrap_or_else(|| "no message".to_owned())
}

/// Hands a message to the handler's method for it.
fn deliver(handler: &mut dyn SwitchHandler, switch: &mut Switch, xid: u32, message: &Message) {
    match message {
        Message::PacketIn(packet) => handler.packet_in(switch, packet),
        Message::FlowRemoved(removed) => handler.flow_removed(switch, removed),
        Message::PortStatus(status) => handler.port_status(switch, status),
        Message::Error(error) => handler.error(switch, xid, error),
        other => handler.message(switch, xid, other),
    }
}

#[cfg(test)]
mod tests;
