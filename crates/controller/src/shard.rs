//! A shard: one thread on one core, and the switches that it owns from their first byte to their last.
//!
//! **What.** An epoll loop. For each socket that has something: one large read, all whole messages in it handled in
//! order, all replies sent in one write. No message crosses to another core (McNettle section 5.1).
//!
//! **Why one read per turn.** A switch that floods is always ready; it gets one buffer's worth and then waits until
//! every other ready switch has had its turn. That is the read budget that keeps max-rate loads fair, where
//! McNettle's scheduler was not (section 6.5).
//!
//! **Cost.** Two buffers per shard, allocated and first touched by the shard's own thread after it was pinned
//! (Primetime section IV.D) and reused for its life. A quiet switch costs a [`Connection`] and no buffer.
//!
//! **Thread-safety.** Nothing in here is shared but the mailbox and the counters.

use crate::Program;
use crate::connection::{Close, Connection, Turn, contain, whole_seconds};
use crate::connection_queue::ConnectionQueue;
use crate::mailbox::{Command, Mailbox, Token};
use crate::network::Network;
use crate::panics::contain_thread;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use slab::Slab;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most that is read from one switch in one turn.
const READ_BYTES: usize = 256 << 10;

/// Room before the read for the beginning of a frame that an earlier read ended in; no frame is longer.
const FRAGMENT_BYTES: usize = 64 << 10;

/// How many sockets one wait can report.
const EVENTS: usize = 512;

/// How often connections are told that time has passed.
const TICK: Duration = Duration::from_millis(250);

const STOPPED: Close = Close::Asked("the controller stops");

/// Marks the mailbox among the sockets.
const MAILBOX: u64 = u64::MAX;

pub(crate) struct Shard {
    epoll: OwnedFd,
    /// The ways of connections into the shards, this one's among them.
    queues: Arc<[ConnectionQueue]>,
    connections: Slab<Box<Connection>>,
    by_token: HashMap<Token, usize>,
    turn: Turn,
    /// Where reads go.
    input: Vec<u8>,
    commands: Vec<Command>,
    next_tick: Instant,
}

impl Shard {
    /// Makes the shard with this index. To be called on its own thread, after that was pinned.
    pub fn new(
        index: usize,
        network: Network,
        queues: Arc<[ConnectionQueue]>,
        programs: Vec<Arc<dyn Program>>,
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
            turn: Turn::new(
                Vec::with_capacity(READ_BYTES),
                now,
                network,
                programs,
                index,
            ),
            input: vec![0; FRAGMENT_BYTES + READ_BYTES],
            commands: Vec::new(),
            next_tick: now + TICK,
        })
    }

    /// Serves until it is told to stop, and then until switches have taken what waits for them, for `drain_timeout` at most. However it ends, it leaves no switch that nobody serves.
    pub fn run(mut self, drain_timeout: Duration) -> std::io::Result<()> {
        let served = contain_thread(|| {
            self.serve_all()?;
            self.drain(drain_timeout)
        });
        self.let_go();
        served
    }

    fn serve_all(&mut self) -> std::io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            self.wait(&mut events)?;
            for event in &events {
                match event.data.u64() {
                    MAILBOX => {
                        if self.handle_commands().is_break() {
                            return Ok(());
                        }
                    }
                    key => self.serve(key as usize, event.flags),
                }
            }
            if self.turn.now >= self.next_tick {
                self.tick();
            }
        }
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>) -> std::io::Result<()> {
        let counters = &self.turn.network.shard(self.turn.shard).counters;
        let now = Instant::now();
        let busy = now.duration_since(self.turn.now);
        counters.busy_ns.add(busy.as_nanos() as u64);
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
        self.turn.now = Instant::now();
        self.turn.now_s = whole_seconds(self.turn.now.duration_since(self.turn.started));
        Ok(())
    }

    /// A socket is ready: first what waits to be sent, then, when nothing does, what there is to read.
    fn serve(&mut self, key: usize, ready: epoll::EventFlags) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let watched = interest(connection);
        let (input, turn) = (&mut self.input, &mut self.turn);
        let result = contain(|| {
            if connection.is_waiting() {
                resume(connection, turn)?;
            }
            if !connection.is_stalled()
                && ready.intersects(
                    epoll::EventFlags::IN
                        | epoll::EventFlags::RDHUP
                        | epoll::EventFlags::HUP
                        | epoll::EventFlags::ERR,
                )
            {
                read(connection, input, turn)?;
            }
            Ok(())
        });
        self.settle(key, watched, result);
    }

    /// After anything was done with a connection that was watched for `watched`: closes it where that failed, watches for
    /// the right thing otherwise.
    fn settle(&mut self, key: usize, watched: epoll::EventFlags, result: Result<(), Close>) {
        if let Err(close) = result {
            return self.close(key, &close);
        }
        let connection = &mut self.connections[key];
        if let Some(wakeup) = connection.unwatched() {
            let data = epoll::EventData::new_u64(key as u64);
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            if let Err(error) = epoll::add(&self.epoll, wakeup, data, flags) {
                return self.close(key, &Close::Io(error));
            }
        }
        connection.give_turn(&self.turn);
        let interest = interest(connection);
        if interest != watched {
            self.watch(key, interest);
        }
    }

    fn watch(&mut self, key: usize, interest: epoll::EventFlags) {
        let socket = self.connections[key].socket();
        let data = epoll::EventData::new_u64(key as u64);
        if let Err(error) = epoll::modify(&self.epoll, socket, data, interest) {
            self.close(key, &Close::Io(error));
        }
    }

    fn handle_commands(&mut self) -> std::ops::ControlFlow<()> {
        let mut commands = std::mem::take(&mut self.commands);
        self.turn
            .network
            .shard(self.turn.shard)
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
                    // A switch that has left gets no messages, and dropping `reply` says so.
                    if let Some(&key) = self.by_token.get(&token) {
                        touched.extend(self.enqueue(key, bytes, count, reply));
                    }
                }
                Command::Close { token, reason } => {
                    if let Some(&key) = self.by_token.get(&token) {
                        self.close(key, &Close::Asked(reason));
                    }
                }
                Command::Stop => stop = std::ops::ControlFlow::Break(()),
            }
        }
        self.commands = commands;
        for (key, watched) in touched {
            self.send_enqueued(key, watched);
        }
        // Last, so that a connection takes along what this batch had for it.
        if let Some((to, share)) = give {
            self.give(to, share);
        }
        stop
    }

    /// Adds a message to what waits for a switch. Returns the key, and for what the connection is watched, where nothing waited
    /// before, so that one write sends all that this batch of commands brings.
    fn enqueue(
        &mut self,
        key: usize,
        bytes: Vec<u8>,
        count: u64,
        reply: Option<crate::request::Asker>,
    ) -> Option<(usize, epoll::EventFlags)> {
        let connection = &mut self.connections[key];
        let (was_waiting, watched) = (connection.is_waiting(), interest(connection));
        connection.take_turn(&self.turn);
        connection.send(bytes, count, reply, self.turn.now);
        (!was_waiting).then_some((key, watched))
    }

    /// Sends what was put to a connection for which nothing waited.
    fn send_enqueued(&mut self, key: usize, watched: epoll::EventFlags) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let result = connection.flush_backlog(&self.turn);
        self.settle(key, watched, result);
    }

    fn adopt_all(&mut self) {
        for connection in self.queues[self.turn.shard].take_all() {
            self.adopt(connection);
        }
    }

    fn adopt(&mut self, connection: Box<Connection>) {
        let token = connection.token;
        let key = self.connections.insert(connection);
        self.by_token.insert(token, key);
        self.turn
            .network
            .shard(self.turn.shard)
            .counters
            .connections
            .add(1);
        let connection = &self.connections[key];
        let data = epoll::EventData::new_u64(key as u64);
        match epoll::add(&self.epoll, connection.socket(), data, interest(connection)) {
            Ok(()) => self.serve(key, epoll::EventFlags::empty()),
            Err(error) => self.close(key, &Close::Io(error)),
        }
    }

    /// Gives away the connection whose load comes nearest to `share` of the shard's without exceeding it: moving more
    /// would only turn the imbalance round.
    fn give(&mut self, to: usize, share: f64) {
        let loads = self.connections.iter();
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
        let connection = self.detach(key);
        tracing::debug!(
            peer = connection.name(),
            from = self.turn.shard,
            to,
            "switch moved to a less busy shard"
        );
        let (network, from) = (&self.turn.network, self.turn.shard);
        let (token, datapath_id) = (connection.token, connection.datapath_id());
        let given = self.queues[to].put(connection, || {
            network.hand_over(token, datapath_id, from, to)
        });
        if let Err(connection) = given {
            // That shard has ended. This one will be told to soon; until then it keeps the connection.
            self.adopt(connection);
        }
    }

    fn close(&mut self, key: usize, close: &Close) {
        let mut connection = self.detach(key);
        connection.take_turn(&self.turn);
        // The last words, such as an OFPT_ERROR, where the socket takes them.
        let _ = connection.flush(&mut self.turn);
        self.turn.out.clear();
        connection.close(close, &mut self.turn);
    }

    /// Takes a connection out of everything that knows it.
    fn detach(&mut self, key: usize) -> Box<Connection> {
        let mut connection = self.connections.remove(key);
        self.by_token.remove(&connection.token);
        self.turn
            .network
            .shard(self.turn.shard)
            .counters
            .departures
            .add(1);
        // Fails only for sockets that are not watched, which is what is wanted.
        let _ = epoll::delete(&self.epoll, connection.socket());
        if let Some(wakeup) = connection.watched() {
            let _ = epoll::delete(&self.epoll, wakeup);
        }
        connection
    }

    fn tick(&mut self) {
        self.next_tick = self.turn.now + TICK;
        for key in self.keys() {
            let Some(connection) = self.connections.get_mut(key) else {
                continue;
            };
            let watched = interest(connection);
            let turn = &mut self.turn;
            let result = contain(|| {
                connection.take_turn(turn);
                connection.handle_timeout(turn)?;
                connection.flush(turn)
            });
            self.settle(key, watched, result);
        }
    }

    /// The orderly end: closes each connection when nothing waits for its switch any more, or after a while all.
    fn drain(&mut self, timeout: Duration) -> std::io::Result<()> {
        // None where that is further than times reach.
        let deadline = Instant::now().checked_add(timeout);
        let mut events = Vec::with_capacity(EVENTS);
        epoll::delete(&self.epoll, self.mailbox().wakeup())?;
        self.stop_where(|connection| !connection.is_waiting());
        for key in self.keys() {
            // What switches still say is not read any more.
            self.watch(key, epoll::EventFlags::OUT);
        }
        while !self.connections.is_empty() && deadline.is_none_or(|until| self.turn.now < until) {
            self.next_tick = self.turn.now + TICK;
            self.wait(&mut events)?;
            for event in &events {
                self.send_last(event.data.u64() as usize);
            }
            self.stop_where(|connection| !connection.is_waiting());
        }
        Ok(())
    }

    /// Closes all connections, and those that others have handed over meanwhile. No more come.
    fn let_go(&mut self) {
        self.stop_where(|_| true);
        self.turn.network.end_shard(self.turn.shard);
        for mut connection in self.queues[self.turn.shard].take_all() {
            connection.close(&STOPPED, &mut self.turn);
        }
    }

    fn send_last(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        if let Err(close) = connection.flush_backlog(&self.turn) {
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
        &self.turn.network.shard(self.turn.shard).mailbox
    }
}

/// What to watch a connection for: back-pressure means that a switch that does not read its replies is not read from.
fn interest(connection: &Connection) -> epoll::EventFlags {
    if connection.is_stalled() {
        epoll::EventFlags::OUT
    } else if connection.is_kernels() {
        // What there is to read is told by what wakes the kernel half's program.
        epoll::EventFlags::RDHUP
    } else if connection.is_waiting() {
        epoll::EventFlags::IN | epoll::EventFlags::OUT
    } else {
        epoll::EventFlags::IN
    }
}

/// One read, after the beginning of a frame that the last one may have left.
fn read(connection: &mut Connection, buffer: &mut [u8], turn: &mut Turn) -> Result<(), Close> {
    turn.network.shard(turn.shard).counters.reads.add(1);
    let count = match rustix::io::read(connection.socket(), &mut buffer[FRAGMENT_BYTES..]) {
        Ok(0) => return Err(Close::ByPeer),
        Ok(count) => count,
        Err(Errno::AGAIN | Errno::INTR) => 0,
        Err(error) => return Err(error.into()),
    };
    turn.network
        .shard(turn.shard)
        .counters
        .received_bytes
        .add(count as u64);
    if !connection.note_read(count, count < READ_BYTES, turn) {
        return Ok(());
    }
    let start = FRAGMENT_BYTES - connection.input_len();
    connection.drain_input(&mut buffer[start..FRAGMENT_BYTES]);
    connection.handle_input(&buffer[start..FRAGMENT_BYTES + count], turn)?;
    connection.flush(turn)
}

/// The switch may read again: sends what waited, then handles what was received before it stalled.
fn resume(connection: &mut Connection, turn: &mut Turn) -> Result<(), Close> {
    connection.flush_backlog(turn)?;
    if connection.is_stalled() {
        return Ok(());
    }
    let input = connection.take_input();
    connection.handle_input(&input, turn)?;
    connection.flush(turn)
}

#[cfg(test)]
mod tests;
