//! A shard: one thread on one core, and the switches that it owns for their whole lives.
//!
//! **What.** An epoll loop. For each ready socket: one large read, all whole messages in it handled in order, all replies
//! sent in one write: a *batch*. No message crosses to another core (McNettle section 5.1).
//!
//! **Why one read per batch.** A switch that floods is always ready. It gets one buffer's worth, and then waits until every
//! other ready switch has been served. This read budget keeps max-rate loads fair, as McNettle's scheduler did not (section
//! 6.5).
//!
//! **Cost.** Two buffers per shard, allocated and first touched by the shard's own thread after it was pinned (Primetime
//! section IV.D), and reused as long as the shard runs. An idle switch costs a [`Connection`] and no buffer.
//!
//! **Thread-safety.** Only the mailbox, the queues of connections, the list of programs and the counters are shared.

use crate::KernelHalves;
use crate::batch::{BatchContext, whole_seconds};
use crate::connection::{Awaited, BUFFER_BYTES, Close, Connection, Interest, Ready, contain};
use crate::connection_queue::ConnectionQueue;
use crate::input_ring::{InputRing, RingEntry};
use crate::kernel_half::Threshold;
use crate::mailbox::{Command, Mailbox, Token};
use crate::network::Network;
use crate::panics::contain_thread;
use crate::program_list::CurrentPrograms;
use crate::request::Asker;
use crate::role::RoleRequest;
use ending::Ending;
use slab::Slab;
use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use urtica_socket::{Event, EventFlags, Poller};

/// The initial size of the memory for a batch's replies.
const OUT_BYTES: usize = 256 << 10;

/// The maximum number of sockets that one wait reports.
const EVENTS: usize = 512;

/// The interval at which connections handle the passing of time.
const TICK: Duration = Duration::from_millis(250);

const STOPPED: Close = Close::Asked("the controller stops");

/// The mailbox's key in the poller.
const MAILBOX: u64 = u64::MAX;

/// The ring's key in the poller.
const RING: u64 = u64::MAX - 1;

pub(crate) struct Shard {
    poller: Poller,
    /// The connections waiting for each shard, including this one.
    queues: Arc<[ConnectionQueue]>,
    connections: Slab<Box<Connection>>,
    ending: Ending,
    /// Connections that their peers have closed, until their handlers' messages have been taken from the mailbox.
    left: Vec<Token>,
    by_token: HashMap<Token, usize>,
    batch: BatchContext,
    /// The read buffer.
    input: Vec<u8>,
    commands: Vec<Command>,
    /// The programs in use, which connections apply when commanded.
    programs: CurrentPrograms,
    next_tick: Instant,
    /// The source of input that is served before sockets, if any.
    ring: Option<Box<dyn InputRing>>,
    /// Whether connections are left to the next program when the shard ends.
    is_leaving: bool,
}

impl Shard {
    /// Creates the shard with this index. Must be called on its own thread, after that was pinned.
    pub fn new(
        index: usize,
        network: Network,
        queues: Arc<[ConnectionQueue]>,
        programs: CurrentPrograms,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(
            network.shard(index).mailbox.wakeup(),
            MAILBOX,
            EventFlags::IN,
        )?;
        let now = Instant::now();
        Ok(Self {
            poller,
            queues,
            connections: Slab::new(),
            ending: Ending::default(),
            left: Vec::new(),
            by_token: HashMap::new(),
            batch: BatchContext::new(
                Vec::with_capacity(OUT_BYTES),
                now,
                network,
                Arc::clone(&programs.load()),
                index,
            ),
            input: vec![0; BUFFER_BYTES],
            commands: Vec::new(),
            programs,
            next_tick: now + TICK,
            ring: None,
            is_leaving: false,
        })
    }

    /// Makes input arrive through this ring if possible.
    pub fn with_ring(mut self, ring: Box<dyn InputRing>) -> io::Result<Self> {
        self.poller.add(ring.wakeup(), RING, EventFlags::IN)?;
        self.ring = Some(ring);
        Ok(self)
    }

    /// Sets whether the durations of packet-ins in each program are recorded.
    pub fn with_times(mut self, are_wanted: bool) -> Self {
        self.batch.read_at = are_wanted.then_some(self.batch.now);
        self
    }

    /// Sets the kernel halves that settle messages before all programs.
    pub fn with_kernel_halves(mut self, halves: Option<Arc<dyn KernelHalves>>) -> Self {
        self.batch.kernel_halves = halves;
        self
    }

    /// Sets the threshold from which switches get their kernel halves.
    pub fn with_half_threshold(mut self, threshold: Threshold) -> Self {
        self.batch.half_threshold = threshold;
        self
    }

    /// Serves until a command to stop, and then until switches have read their output, for `drain_timeout` at most. Before it
    /// returns, it always closes all its connections, or leaves them to the next program.
    pub fn run(mut self, drain_timeout: Duration) -> io::Result<()> {
        let served = contain_thread(|| {
            self.serve_all()?;
            match self.is_leaving {
                true => Ok(()),
                false => self.drain(drain_timeout),
            }
        });
        self.close_all(drain_timeout);
        served
    }

    fn serve_all(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            self.wait(&mut events)?;
            // Served before the sockets: entries in the ring precede the report of a switch's end.
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
            if self.close_left().is_break() {
                return Ok(());
            }
        }
    }

    fn wait(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        let shard = self.batch.network.shard(self.batch.shard);
        let counters = &shard.counters;
        let now = Instant::now();
        let busy_ns = now.duration_since(self.batch.now).as_nanos() as u64;
        counters.busy_ns.add(busy_ns);
        shard.busy_times.add(busy_ns);
        counters.waits.add(1);
        let next = self.ending.next_check(self.next_tick);
        let timeout = next.saturating_duration_since(now);
        self.poller.wait(events, Some(timeout))?;
        self.batch.now = Instant::now();
        self.batch.now_s = whole_seconds(self.batch.now.duration_since(self.batch.started));
        self.ending.check(self.batch.now, &self.batch);
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
        // The connection may have been closed since.
        let Some(&key) = self.by_token.get(&token) else {
            return;
        };
        let connection = &mut self.connections[key];
        let batch = &mut self.batch;
        let result = contain(|| work(connection, batch));
        self.settle(key, result);
    }

    /// Serves a ready socket: sends waiting output, and then, if no replies wait, reads.
    fn serve(&mut self, key: usize, events: EventFlags) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        if connection.is_auxiliary() {
            return self.serve_auxiliary(key, events);
        }
        let (input, batch) = (&mut self.input, &mut self.batch);
        let result = contain(|| connection.serve(ready(events), input, batch));
        self.settle(key, result);
    }

    /// Like `serve`, for an auxiliary connection, which borrows the switch from its main connection.
    #[cold]
    fn serve_auxiliary(&mut self, key: usize, events: EventFlags) {
        let token = self.connections[key].main();
        let main = token.and_then(|token| self.by_token.get(&token).copied());
        let pair = main.and_then(|main| self.connections.get2_mut(main, key));
        let (Some(main_key), Some((main, auxiliary))) = (main, pair) else {
            let without_main = self.connections[key].without_main();
            return self.close(key, &without_main);
        };
        let (input, batch) = (&mut self.input, &mut self.batch);
        auxiliary.borrow_from(main, batch);
        let result = contain(|| auxiliary.serve(ready(events), input, batch));
        auxiliary.return_to(main);
        let panic = match &result {
            Err(Close::Panic(reason)) => Err(Close::Panic(reason.clone())),
            _ => Ok(()),
        };
        self.settle(key, result);
        // Settled last, so that remaining output uses the connection of its request. The handler belongs to the main
        // connection.
        self.settle(main_key, panic);
    }

    /// Attaches an auxiliary connection to its main connection, or hands it over to the shard that owns that.
    fn attach(&mut self, key: usize) {
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
        self.settle(key, attached);
        if is_attached {
            // Handles the input that followed its announcement.
            self.serve(key, EventFlags::IN);
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

    /// Closes a connection that has failed, and otherwise updates the events to wait for. Must be called after each use of a
    /// connection.
    fn settle(&mut self, key: usize, result: Result<(), Close>) {
        match result {
            Ok(()) => {}
            Err(Close::ToMain) => return self.attach(key),
            Err(Close::ByPeer) => return self.left.push(self.connections[key].token),
            Err(close) => return self.close(key, &close),
        }
        let connection = &mut self.connections[key];
        let (poller, batch) = (&self.poller, &mut self.batch);
        let ring = self.ring.as_deref_mut();
        let settled = contain(|| {
            connection.release(ring, batch, |wakeup| {
                poller.add(wakeup, key as u64, EventFlags::IN | EventFlags::ET)
            })
        });
        if let Err(close) = settled {
            return self.close(key, &close);
        }
        let interest = connection.interest();
        if connection.watched != Some(interest) {
            self.watch(key, interest);
        }
    }

    fn watch(&mut self, key: usize, interest: Interest) {
        let connection = &mut self.connections[key];
        connection.watched = Some(interest);
        let (socket, events) = (connection.socket(), events_of(interest));
        if let Err(error) = self.poller.modify(socket, key as u64, events) {
            self.close(key, &Close::from(error));
        }
    }

    fn handle_commands(&mut self) -> ControlFlow<()> {
        let mut commands = std::mem::take(&mut self.commands);
        self.batch
            .network
            .shard(self.batch.shard)
            .mailbox
            .drain_into(&mut commands);
        let mut stop = ControlFlow::Continue(());
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
                    // A switch that has disconnected gets no messages, and dropping `reply` reports it.
                    if let Some(&key) = self.by_token.get(&token) {
                        touched.extend(self.enqueue(key, |connection, batch| {
                            connection.send(bytes, count, reply, batch);
                        }));
                    }
                }
                Command::SendFrames {
                    token,
                    bytes,
                    count,
                } => {
                    if let Some(&key) = self.by_token.get(&token) {
                        touched.extend(self.enqueue(key, |connection, batch| {
                            connection.send_frames(bytes, count, batch);
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
                Command::Stop => stop = ControlFlow::Break(()),
                Command::Leave => {
                    self.is_leaving = true;
                    stop = ControlFlow::Break(());
                }
            }
        }
        self.commands = commands;
        for key in touched {
            self.send_enqueued(key);
        }
        // Done last, so that messages of these commands are sent before their connection moves.
        if let Some((to, share)) = give {
            self.give(to, share);
        }
        stop
    }

    /// Applies the list of programs in use to all switches.
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
        let batch = &mut self.batch;
        let result = contain(|| {
            connection.follow_programs(batch)?;
            connection.flush(batch)
        });
        self.settle(key, result);
    }

    /// Adds messages to a switch's queue. Returns the key if the queue was empty, so that one write sends the messages of all
    /// commands.
    fn enqueue(
        &mut self,
        key: usize,
        send: impl FnOnce(&mut Connection, &BatchContext),
    ) -> Option<usize> {
        let connection = &mut self.connections[key];
        let was_waiting = connection.is_waiting();
        send(connection, &self.batch);
        (!was_waiting).then_some(key)
    }

    /// Sends the messages enqueued for a connection whose queue was empty.
    fn send_enqueued(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let result = connection.flush_backlog(&self.batch);
        self.settle(key, result);
    }

    fn ask_for_role(&mut self, key: usize, request: RoleRequest, asker: Asker) {
        let connection = &mut self.connections[key];
        let batch = &mut self.batch;
        let result = contain(|| {
            connection.ask_for_role(request, asker, batch);
            connection.flush(batch)
        });
        self.settle(key, result);
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
        let connection = &mut self.connections[key];
        let events = match connection.has_input() {
            true => EventFlags::IN,
            false => EventFlags::empty(),
        };
        let interest = connection.interest();
        connection.watched = Some(interest);
        let (socket, watched) = (connection.socket(), events_of(interest));
        match self.poller.add(socket, key as u64, watched) {
            Ok(()) => self.begin(key, events),
            Err(error) => self.close(key, &Close::from(error)),
        }
    }

    /// Prepares an adopted connection: the switch of an earlier program's connection joins.
    fn begin(&mut self, key: usize, events: EventFlags) {
        let connection = &mut self.connections[key];
        let batch = &mut self.batch;
        let result = contain(|| {
            connection.take_up(batch);
            connection.follow_programs(batch)?;
            connection.flush(batch)?;
            connection.expect_main()
        });
        self.settle(key, result);
        self.serve(key, events);
    }

    /// Hands over the connection whose load is nearest to `share` of the shard's without exceeding it: moving more would only
    /// reverse the imbalance.
    fn give(&mut self, to: usize, share: f64) {
        // Connections attached to the ring stay, since it may contain their input, and so do all connections of one switch.
        let may_go = |connection: &Connection| {
            !connection.transport().has_ring() && !connection.has_siblings()
        };
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

    /// Hands this connection over to another shard.
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
            // That shard has ended, so this one will soon be stopped; until then it keeps the connection.
            self.adopt(connection);
        }
    }

    fn close(&mut self, key: usize, close: &Close) {
        let connection = self.detach(key);
        self.ending.close(connection, close, &mut self.batch);
    }

    /// Removes a connection from all tables and from the poller.
    fn detach(&mut self, key: usize) -> Box<Connection> {
        let mut connection = self.connections.remove(key);
        self.by_token.remove(&connection.token);
        self.batch
            .network
            .shard(self.batch.shard)
            .counters
            .departures
            .add(1);
        self.poller.delete(connection.socket());
        if let Some(wakeup) = connection.take_wakeup() {
            self.poller.delete(wakeup);
        }
        connection
    }

    fn tick(&mut self) {
        self.next_tick = self.batch.now + TICK;
        for key in self.keys() {
            let Some(connection) = self.connections.get_mut(key) else {
                continue;
            };
            if let (true, Some(ring)) = (connection.is_lost_by_ring(), &mut self.ring) {
                ring.find_passed();
            }
            let batch = &mut self.batch;
            let result = contain(|| {
                connection.handle_timeout(batch)?;
                connection.flush(batch)
            });
            self.settle(key, result);
        }
    }

    fn keys(&self) -> Vec<usize> {
        self.connections.iter().map(|(key, _)| key).collect()
    }

    fn mailbox(&self) -> &Mailbox {
        &self.batch.network.shard(self.batch.shard).mailbox
    }
}

/// Returns the poller's events for this interest.
fn events_of(interest: Interest) -> EventFlags {
    let input = match interest.input {
        Awaited::Nothing => EventFlags::empty(),
        Awaited::End => EventFlags::RDHUP,
        Awaited::More => EventFlags::IN | EventFlags::RDHUP | EventFlags::ET,
        Awaited::Any => EventFlags::IN,
    };
    match interest.output {
        true => input | EventFlags::OUT,
        false => input,
    }
}

/// Returns the readiness of a connection's socket from these events.
fn ready(events: EventFlags) -> Ready {
    Ready {
        has_input: events.contains(EventFlags::IN),
        is_closed: events.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR),
    }
}

mod ending;
#[cfg(test)]
mod tests;
