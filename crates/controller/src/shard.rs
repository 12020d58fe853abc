//! A shard: one thread on one core, and the switches that it owns from their first byte to their last.
//!
//! **What.** An epoll loop. For each ready socket: one large read, all whole messages in it handled in order, all
//! replies sent in one write: a *batch*. No message crosses to another core (McNettle section 5.1).
//!
//! **Why one read per batch.** A switch that floods is always ready; it gets one buffer's worth and then waits until
//! every other ready switch has been served. That is the read budget that keeps max-rate loads fair, where
//! McNettle's scheduler was not (section 6.5).
//!
//! **Cost.** Two buffers per shard, allocated and first touched by the shard's own thread after it was pinned
//! (Primetime section IV.D) and reused for its life. An idle switch costs a [`Connection`] and no buffer.
//!
//! **Thread-safety.** Nothing in here is shared but the mailbox, the queues of connections, the list of programs and the counters.

use crate::KernelHalves;
use crate::batch::{BatchContext, whole_seconds};
use crate::connection::{Close, Connection, contain};
use crate::connection_queue::ConnectionQueue;
use crate::input_ring::{InputRing, RingEntry};
use crate::kernel_half::Threshold;
use crate::mailbox::{Command, Mailbox, Token};
use crate::network::Network;
use crate::panics::contain_thread;
use crate::program_list::CurrentPrograms;
use crate::request::Asker;
use crate::role::RoleRequest;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use slab::Slab;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most that is read from one switch for one batch.
const READ_BYTES: usize = 256 << 10;

/// Space before the read for an incomplete frame of the last read; no frame is longer.
const FRAGMENT_BYTES: usize = 64 << 10;

/// The number of sockets that one wait can report.
const EVENTS: usize = 512;

/// The interval at which connections handle the passing of time.
const TICK: Duration = Duration::from_millis(250);

const STOPPED: Close = Close::Asked("the controller stops");

/// The peer sends nothing more.
const GONE: epoll::EventFlags = epoll::EventFlags::RDHUP.union(epoll::EventFlags::HUP);

/// The epoll data that stands for the mailbox.
const MAILBOX: u64 = u64::MAX;

/// The epoll data that stands for the ring.
const RING: u64 = u64::MAX - 1;

pub(crate) struct Shard {
    epoll: OwnedFd,
    /// The connections on their way into each shard, this one among them.
    queues: Arc<[ConnectionQueue]>,
    connections: Slab<Box<Connection>>,
    by_token: HashMap<Token, usize>,
    batch: BatchContext,
    /// The buffer of reads.
    input: Vec<u8>,
    commands: Vec<Command>,
    /// The programs in use, which connections adopt on a command.
    programs: CurrentPrograms,
    next_tick: Instant,
    /// A source of input that is used before sockets, if there is one.
    ring: Option<Box<dyn InputRing>>,
    /// Whether connections are left to the next program when it ends.
    is_leaving: bool,
}

impl Shard {
    /// The shard with this index. To be called on its own thread, after that was pinned.
    pub fn new(
        index: usize,
        network: Network,
        queues: Arc<[ConnectionQueue]>,
        programs: CurrentPrograms,
    ) -> std::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wakeup = network.shard(index).mailbox.wakeup();
        epoll::add(
            &epoll,
            wakeup,
            epoll::EventData::new_u64(MAILBOX),
            epoll::EventFlags::IN,
        )?;
        let now = Instant::now();
        Ok(Self {
            epoll,
            queues,
            connections: Slab::new(),
            by_token: HashMap::new(),
            batch: BatchContext::new(
                Vec::with_capacity(READ_BYTES),
                now,
                network,
                Arc::clone(&programs.load()),
                index,
            ),
            input: vec![0; FRAGMENT_BYTES + READ_BYTES],
            commands: Vec::new(),
            programs,
            next_tick: now + TICK,
            ring: None,
            is_leaving: false,
        })
    }

    /// Makes input arrive through this ring, if possible.
    pub fn with_ring(mut self, ring: Box<dyn InputRing>) -> std::io::Result<Self> {
        let data = epoll::EventData::new_u64(RING);
        epoll::add(&self.epoll, ring.wakeup(), data, epoll::EventFlags::IN)?;
        self.ring = Some(ring);
        Ok(self)
    }

    /// Records the durations of packet-ins in each program.
    pub fn with_times(mut self, are_wanted: bool) -> Self {
        self.batch.read_at = are_wanted.then_some(self.batch.now);
        self
    }

    /// Has these settle messages in front of all programs.
    pub fn with_kernel_halves(mut self, halves: Option<Arc<dyn KernelHalves>>) -> Self {
        self.batch.kernel_halves = halves;
        self
    }

    /// Gives switches their kernel halves when they have reached this threshold.
    pub fn with_half_threshold(mut self, threshold: Threshold) -> Self {
        self.batch.half_threshold = threshold;
        self
    }

    /// Serves until a command to stop, and then until switches have read their waiting output, for `drain_timeout` at most. It
    /// always closes all its connections, or leaves them to the next program, before it returns.
    pub fn run(mut self, drain_timeout: Duration) -> std::io::Result<()> {
        let served = contain_thread(|| {
            self.serve_all()?;
            match self.is_leaving {
                true => Ok(()),
                false => self.drain(drain_timeout),
            }
        });
        self.close_all();
        served
    }

    fn serve_all(&mut self) -> std::io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            self.wait(&mut events)?;
            // Before the sockets: entries in the ring precede the report of a switch's end.
            self.serve_ring();
            for event in &events {
                match event.data.u64() {
                    RING => {}
                    MAILBOX => {
                        if self.handle_commands().is_break() {
                            return Ok(());
                        }
                    }
                    key => self.serve(key as usize, event.flags),
                }
            }
            if self.batch.now >= self.next_tick {
                self.tick();
            }
        }
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>) -> std::io::Result<()> {
        let shard = self.batch.network.shard(self.batch.shard);
        let counters = &shard.counters;
        let now = Instant::now();
        let busy_ns = now.duration_since(self.batch.now).as_nanos() as u64;
        counters.busy_ns.add(busy_ns);
        shard.busy_times.add(busy_ns);
        counters.waits.add(1);
        let timeout = self.next_tick.saturating_duration_since(now);
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        events.clear();
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(events),
            Some(&timeout),
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.batch.now = Instant::now();
        self.batch.now_s = whole_seconds(self.batch.now.duration_since(self.batch.started));
        Ok(())
    }

    /// Handles all entries of the ring.
    fn serve_ring(&mut self) {
        let Some(mut ring) = self.ring.take() else {
            return;
        };
        ring.look();
        while let Some(entry) = ring.next() {
            match entry {
                RingEntry::Messages(token, messages) => {
                    self.serve_from_ring(token, |connection, batch| {
                        connection.handle_ring_messages(messages, batch)
                    });
                }
                RingEntry::Passed(token) => self.serve_from_ring(token, |connection, batch| {
                    connection.take_back_from_ring(batch);
                    Ok(())
                }),
            }
        }
        self.ring = Some(ring);
    }

    fn serve_from_ring(
        &mut self,
        token: Token,
        work: impl FnOnce(&mut Connection, &mut BatchContext) -> Result<(), Close>,
    ) {
        // It may have been closed since.
        let Some(&key) = self.by_token.get(&token) else {
            return;
        };
        let connection = &mut self.connections[key];
        let watched = interest(connection);
        let batch = &mut self.batch;
        let result = contain(|| work(connection, batch));
        self.settle(key, watched, result);
    }

    /// Serves a ready socket: first sends what waits, then, when no replies do, reads.
    fn serve(&mut self, key: usize, ready: epoll::EventFlags) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        if connection.is_auxiliary() {
            return self.serve_auxiliary(key, ready);
        }
        let watched = interest(connection);
        let (input, batch) = (&mut self.input, &mut self.batch);
        let result = contain(|| serve_ready(connection, ready, input, batch));
        self.settle(key, watched, result);
    }

    /// Like `serve`, for an auxiliary connection, to which its main connection lends the switch.
    #[cold]
    fn serve_auxiliary(&mut self, key: usize, ready: epoll::EventFlags) {
        let token = self.connections[key].main();
        let main = token.and_then(|token| self.by_token.get(&token).copied());
        let pair = main.and_then(|main| self.connections.get2_mut(main, key));
        let (Some(main_key), Some((main, auxiliary))) = (main, pair) else {
            let without_main = self.connections[key].without_main();
            return self.close(key, &without_main);
        };
        let (main_watched, watched) = (interest(main), interest(auxiliary));
        let (input, batch) = (&mut self.input, &mut self.batch);
        main.reclaim_from_kernel(batch);
        auxiliary.borrow_from(main);
        let result = contain(|| serve_ready(auxiliary, ready, input, batch));
        auxiliary.return_to(main);
        let panic = match &result {
            Err(Close::Panic(reason)) => Err(Close::Panic(reason.clone())),
            _ => Ok(()),
        };
        self.settle(key, watched, result);
        // After that, so that remaining output uses the connection of its request. The handler is the main one's.
        self.settle(main_key, main_watched, panic);
    }

    /// Makes a connection an auxiliary one of its switch's main connection; if another shard owns that, hands it over.
    fn attach(&mut self, key: usize, watched: epoll::EventFlags) {
        let connection = &mut self.connections[key];
        if let Err(close) = connection.flush(&mut self.batch) {
            return self.close(key, &close);
        }
        let network = &self.batch.network;
        let switch = connection.awaits_main();
        let Some((shard, token)) = switch.and_then(|switch| network.main_connection(switch)) else {
            let refusal = connection.without_main();
            return self.close(key, &refusal);
        };
        if shard != self.batch.shard {
            return self.give_to(key, shard);
        }
        let attached = self.attach_to(token, key);
        let is_attached = attached.is_ok();
        self.settle(key, watched, attached);
        if is_attached {
            // The input that followed its announcement.
            self.serve(key, epoll::EventFlags::IN);
        }
    }

    fn attach_to(&mut self, token: Token, key: usize) -> Result<(), Close> {
        let main = self.by_token.get(&token).copied();
        let pair = main.and_then(|main| self.connections.get2_mut(main, key));
        let Some((main, auxiliary)) = pair else {
            return Err(self.connections[key].without_main());
        };
        let by_token = &self.by_token;
        auxiliary.attach(main, |token| by_token.contains_key(&token), &self.batch)
    }

    /// Must be called after anything was done with a connection that was watched for `watched`: closes it if that failed, and
    /// otherwise updates the events that it is watched for.
    fn settle(&mut self, key: usize, watched: epoll::EventFlags, result: Result<(), Close>) {
        match result {
            Ok(()) => {}
            Err(Close::ToMain) => return self.attach(key, watched),
            Err(close) => return self.close(key, &close),
        }
        let connection = &mut self.connections[key];
        connection.await_kernel_half(&self.batch);
        if let Some(wakeup) = connection.wakeup_to_watch() {
            let data = epoll::EventData::new_u64(key as u64);
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            if let Err(error) = epoll::add(&self.epoll, wakeup, data, flags) {
                return self.close(key, &Close::Io(error.into()));
            }
        }
        let batch = &mut self.batch;
        if let Err(close) = contain(|| connection.hand_to_kernel(batch)) {
            return self.close(key, &close);
        }
        connection.settle_ring(self.ring.as_deref_mut());
        let interest = interest(connection);
        if interest != watched {
            self.watch(key, interest);
        }
    }

    fn watch(&mut self, key: usize, interest: epoll::EventFlags) {
        let socket = self.connections[key].socket();
        let data = epoll::EventData::new_u64(key as u64);
        if let Err(error) = epoll::modify(&self.epoll, socket, data, interest) {
            self.close(key, &Close::Io(error.into()));
        }
    }

    fn handle_commands(&mut self) -> std::ops::ControlFlow<()> {
        let mut commands = std::mem::take(&mut self.commands);
        self.batch
            .network
            .shard(self.batch.shard)
            .mailbox
            .drain_into(&mut commands);
        let mut stop = std::ops::ControlFlow::Continue(());
        let mut touched = Vec::new();
        let mut give = None;
        for command in commands.drain(..) {
            match command {
                Command::Adopt => self.adopt_all(),
                Command::Give { to, share } => give = Some((to, share)),
                Command::Send {
                    token,
                    bytes,
                    count,
                    reply,
                } => {
                    // A switch that has left gets no messages, and dropping `reply` reports it.
                    if let Some(&key) = self.by_token.get(&token) {
                        touched.extend(self.enqueue(key, |connection, now| {
                            connection.send(bytes, count, reply, now);
                        }));
                    }
                }
                Command::SendFrames {
                    token,
                    bytes,
                    count,
                } => {
                    if let Some(&key) = self.by_token.get(&token) {
                        touched.extend(self.enqueue(key, |connection, now| {
                            connection.send_frames(bytes, count, now);
                        }));
                    }
                }
                Command::AskForRole {
                    token,
                    request,
                    asker,
                } => {
                    if let Some(&key) = self.by_token.get(&token) {
                        self.ask_for_role(key, request, asker);
                    }
                }
                Command::Close { token, reason } => {
                    if let Some(&key) = self.by_token.get(&token) {
                        self.close(key, &Close::Asked(reason));
                    }
                }
                Command::FollowPrograms => self.follow_programs(),
                Command::Stop => stop = std::ops::ControlFlow::Break(()),
                Command::Leave => {
                    self.is_leaving = true;
                    stop = std::ops::ControlFlow::Break(());
                }
            }
        }
        self.commands = commands;
        for (key, watched) in touched {
            self.send_enqueued(key, watched);
        }
        // Last, so that messages of these commands are sent before their connection moves.
        if let Some((to, share)) = give {
            self.give(to, share);
        }
        stop
    }

    /// Has all switches follow the list of programs in use.
    fn follow_programs(&mut self) {
        self.batch.programs = Arc::clone(&self.programs.load());
        for key in self.keys() {
            self.have_followed(key);
        }
    }

    fn have_followed(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let watched = interest(connection);
        let batch = &mut self.batch;
        let result = contain(|| {
            connection.reclaim_from_kernel(batch);
            connection.follow_programs(batch)?;
            connection.flush(batch)
        });
        self.settle(key, watched, result);
    }

    /// Adds messages to the queue of a switch. If it was empty, returns the key and the events that the connection is watched
    /// for, so that one write sends the messages of all commands.
    fn enqueue(
        &mut self,
        key: usize,
        send: impl FnOnce(&mut Connection, Instant),
    ) -> Option<(usize, epoll::EventFlags)> {
        let connection = &mut self.connections[key];
        let (was_waiting, watched) = (connection.is_waiting(), interest(connection));
        connection.reclaim_from_kernel(&self.batch);
        send(connection, self.batch.now);
        (!was_waiting).then_some((key, watched))
    }

    /// Sends the messages enqueued for a connection whose queue was empty.
    fn send_enqueued(&mut self, key: usize, watched: epoll::EventFlags) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let result = connection.flush_backlog(&self.batch);
        self.settle(key, watched, result);
    }

    fn ask_for_role(&mut self, key: usize, request: RoleRequest, asker: Asker) {
        let connection = &mut self.connections[key];
        let watched = interest(connection);
        let batch = &mut self.batch;
        let result = contain(|| {
            connection.reclaim_from_kernel(batch);
            connection.ask_for_role(request, asker, batch);
            connection.flush(batch)
        });
        self.settle(key, watched, result);
    }

    fn adopt_all(&mut self) {
        for connection in self.queues[self.batch.shard].take_all() {
            self.adopt(connection);
        }
    }

    fn adopt(&mut self, connection: Box<Connection>) {
        let token = connection.token;
        let key = self.connections.insert(connection);
        self.by_token.insert(token, key);
        self.batch
            .network
            .shard(self.batch.shard)
            .counters
            .connections
            .add(1);
        let connection = &self.connections[key];
        let ready = match connection.channel().has_input() {
            true => epoll::EventFlags::IN,
            false => epoll::EventFlags::empty(),
        };
        let data = epoll::EventData::new_u64(key as u64);
        match epoll::add(&self.epoll, connection.socket(), data, interest(connection)) {
            Ok(()) => self.begin(key, ready),
            Err(error) => self.close(key, &Close::Io(error.into())),
        }
    }

    /// Does the work for a connection before it is ready: one of an earlier program makes its switch join.
    fn begin(&mut self, key: usize, ready: epoll::EventFlags) {
        let connection = &mut self.connections[key];
        let watched = interest(connection);
        let batch = &mut self.batch;
        let result = contain(|| {
            connection.take_up(batch);
            connection.follow_programs(batch)?;
            connection.flush(batch)?;
            connection.expect_main()
        });
        self.settle(key, watched, result);
        self.serve(key, ready);
    }

    /// Hands over the connection whose load is nearest to `share` of the shard's without exceeding it: moving more would only
    /// reverse the imbalance.
    fn give(&mut self, to: usize, share: f64) {
        // Connections attached to the ring stay: it may contain their input. So do all connections of one switch.
        let may_go = |connection: &Connection| !connection.has_ring() && !connection.has_siblings();
        let loads = self.connections.iter().filter(|(_, it)| may_go(it));
        let loads: Vec<_> = loads
            .map(|(key, connection)| (connection.load(), key))
            .collect();
        let all: u64 = loads.iter().map(|(load, _)| load).sum();
        let most = (all as f64 * share) as u64;
        let fitting = loads
            .into_iter()
            .filter(|(load, _)| (1..=most).contains(load));
        let Some((_, key)) = fitting.max() else {
            return;
        };
        self.give_to(key, to);
    }

    /// Gives this connection to another shard.
    fn give_to(&mut self, key: usize, to: usize) {
        let connection = self.detach(key);
        tracing::debug!(
            peer = connection.name(),
            from = self.batch.shard,
            to,
            "connection moved to another shard"
        );
        let (network, from) = (&self.batch.network, self.batch.shard);
        let (token, datapath_id) = (connection.token, connection.datapath_id());
        let given = self.queues[to].put(connection, || {
            network.hand_over(token, datapath_id, from, to)
        });
        if let Err(connection) = given {
            // That shard has ended. This one will soon be stopped; until then it keeps the connection.
            self.adopt(connection);
        }
    }

    fn close(&mut self, key: usize, close: &Close) {
        let mut connection = self.detach(key);
        connection.reclaim_from_kernel(&self.batch);
        let batch = &mut self.batch;
        let _ = contain(|| {
            connection.handle_events(batch);
            Ok(())
        });
        // Sends a last OFPT_ERROR, for instance, if the socket accepts it.
        let _ = connection.flush(&mut self.batch);
        self.batch.out.clear();
        connection.close(close, &mut self.batch);
    }

    /// Removes a connection from all tables and from epoll.
    fn detach(&mut self, key: usize) -> Box<Connection> {
        let mut connection = self.connections.remove(key);
        self.by_token.remove(&connection.token);
        self.batch
            .network
            .shard(self.batch.shard)
            .counters
            .departures
            .add(1);
        // Fails only for sockets that are not watched, which is the wanted state.
        let _ = epoll::delete(&self.epoll, connection.socket());
        if let Some(wakeup) = connection.watched() {
            let _ = epoll::delete(&self.epoll, wakeup);
        }
        connection
    }

    fn tick(&mut self) {
        self.next_tick = self.batch.now + TICK;
        for key in self.keys() {
            let Some(connection) = self.connections.get_mut(key) else {
                continue;
            };
            if let (true, Some(ring)) = (connection.is_found_lost(), &mut self.ring) {
                ring.find_passed();
            }
            let watched = interest(connection);
            let batch = &mut self.batch;
            let result = contain(|| {
                connection.reclaim_from_kernel(batch);
                connection.handle_events(batch);
                connection.count_ring(batch);
                connection.handle_timeout(batch)?;
                connection.flush(batch)
            });
            self.settle(key, watched, result);
        }
    }

    /// Closes each connection once its output is empty, and at the time-out all.
    fn drain(&mut self, timeout: Duration) -> std::io::Result<()> {
        // `None` if that is beyond the range of `Instant`.
        let deadline = Instant::now().checked_add(timeout);
        let mut events = Vec::with_capacity(EVENTS);
        epoll::delete(&self.epoll, self.mailbox().wakeup())?;
        self.stop_where(|connection| !connection.is_waiting());
        for key in self.keys() {
            // No more input is read.
            self.watch(key, epoll::EventFlags::OUT);
        }
        while !self.connections.is_empty() && deadline.is_none_or(|until| self.batch.now < until) {
            self.next_tick = self.batch.now + TICK;
            self.wait(&mut events)?;
            for event in &events {
                self.send_last(event.data.u64() as usize);
            }
            self.stop_where(|connection| !connection.is_waiting());
        }
        Ok(())
    }

    /// Closes or leaves all connections, including those that others have just handed over. No more will arrive.
    fn close_all(&mut self) {
        if self.is_leaving {
            for key in self.keys() {
                self.detach(key).leave(&mut self.batch);
            }
        }
        self.stop_where(|_| true);
        self.batch.network.end_shard(self.batch.shard);
        for mut connection in self.queues[self.batch.shard].take_all() {
            match self.is_leaving {
                true => connection.leave(&mut self.batch),
                false => connection.close(&STOPPED, &mut self.batch),
            }
        }
    }

    fn send_last(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        if let Err(close) = connection.flush_backlog(&self.batch) {
            self.close(key, &close);
        }
    }

    fn stop_where(&mut self, is_done: impl Fn(&Connection) -> bool) {
        let done = self
            .connections
            .iter()
            .filter(|(_, connection)| is_done(connection));
        let keys: Vec<_> = done.map(|(key, _)| key).collect();
        for key in keys {
            self.close(key, &STOPPED);
        }
    }

    fn keys(&self) -> Vec<usize> {
        self.connections.iter().map(|(key, _)| key).collect()
    }

    fn mailbox(&self) -> &Mailbox {
        &self.batch.network.shard(self.batch.shard).mailbox
    }
}

/// What to watch a connection for: back-pressure means that a switch that does not read its replies is not read from.
fn interest(connection: &Connection) -> epoll::EventFlags {
    use epoll::EventFlags;
    if connection.is_stalled() {
        return EventFlags::OUT;
    }
    if connection.is_owned_by_kernel() {
        // The kernel half's wake-up descriptor announces input.
        return EventFlags::RDHUP;
    }
    let input = match connection.awaits_rest() {
        // The ring announces input.
        _ if connection.is_owned_by_ring() => EventFlags::RDHUP,
        // An incomplete message stays in the queue: the relevant events are more input, or its end.
        true => EventFlags::IN | EventFlags::RDHUP | EventFlags::ET,
        false => EventFlags::IN,
    };
    match connection.is_waiting() {
        true => input | EventFlags::OUT,
        false => input,
    }
}

/// Returns the events after which a connection's socket must be read.
fn readable(connection: &Connection) -> epoll::EventFlags {
    let closed = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
    match connection.is_owned_by_ring() {
        // Input is in the ring first.
        true => closed,
        false => closed | epoll::EventFlags::IN,
    }
}

/// Serves a ready socket: first sends what waits, then, when no replies do, reads.
fn serve_ready(
    connection: &mut Connection,
    ready: epoll::EventFlags,
    buffer: &mut [u8],
    batch: &mut BatchContext,
) -> Result<(), Close> {
    if connection.is_waiting() {
        resume(connection, batch)?;
    }
    if !connection.is_stalled() && ready.intersects(readable(connection)) {
        read(connection, buffer, batch)?;
        // The rest of the message will never arrive.
        if connection.awaits_rest() && ready.intersects(GONE) {
            return Err(Close::ByPeer);
        }
    }
    Ok(())
}

/// Reads once, after an incomplete frame that the last read may have left.
fn read(
    connection: &mut Connection,
    buffer: &mut [u8],
    batch: &mut BatchContext,
) -> Result<(), Close> {
    batch.network.shard(batch.shard).counters.reads.add(1);
    if connection.is_owned_by_ring() {
        // The switch has closed its end: an earlier passing of input may not have been reported yet.
        connection.take_back_from_ring(batch);
    }
    let count = match connection.receive(&mut buffer[FRAGMENT_BYTES..])? {
        Some(0) => return Err(Close::ByPeer),
        Some(count) => count,
        None => 0,
    };
    batch.note_read();
    batch
        .network
        .shard(batch.shard)
        .counters
        .received_bytes
        .add(count.saturating_sub(connection.left()) as u64);
    connection.note_read_beside_ring(count, count < READ_BYTES);
    if !connection.note_read(count, count < READ_BYTES, batch) {
        return Ok(());
    }
    connection.handle_events(batch);
    let start = FRAGMENT_BYTES - connection.input_len();
    connection.drain_input(&mut buffer[start..FRAGMENT_BYTES]);
    connection.handle_input(&buffer[start..FRAGMENT_BYTES + count], batch)?;
    connection.flush(batch)
}

/// After a stall: sends waiting output, then handles input that was received before the switch stalled.
fn resume(connection: &mut Connection, batch: &mut BatchContext) -> Result<(), Close> {
    connection.flush_backlog(batch)?;
    if connection.is_stalled() {
        return Ok(());
    }
    let input = connection.take_input();
    if connection.is_held() {
        // The input to handle waits in the socket's queue; this is the start of a message that continues there.
        connection.keep_input(&input);
    } else if !input.is_empty() {
        batch.note_read();
        connection.handle_input(&input, batch)?;
    }
    connection.flush(batch)
}

#[cfg(test)]
mod tests;
