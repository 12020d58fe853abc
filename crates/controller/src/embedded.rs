//! A controller that somebody else drives.

use crate::background::{Background, TaskQueue};
use crate::connection::{Channel, Close, Connection, Turn, contain, whole_seconds};
use crate::counters::is_worth_telling;
use crate::mailbox::{Command, Mailbox, Token};
use crate::session::SessionConfig;
use crate::switch::FLUSH_BYTES;
use crate::{BackgroundCounters, Network, Program};
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many bytes a connection takes that the caller has not sent on; beyond that the switch counts as one that does not
/// read.
const OUTPUT_BYTES: usize = FLUSH_BYTES;

/// How many turns background programs may take without any time passing: beyond that, they wake each other, or
/// themselves, for ever.
const MAX_TURNS: usize = 10_000;

/// After how long such programs go on.
const REST: Duration = Duration::from_millis(1);

const STOPPED: Close = Close::Asked("the controller stops");

/// Names a connection of an [`Embedded`] controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(Token);

/// The way to whoever drives the controller: like a socket, with room for some bytes, which wait until they are taken.
#[derive(Default)]
struct Memory(RefCell<Vec<u8>>);

impl Memory {
    fn room(&self) -> usize {
        OUTPUT_BYTES.saturating_sub(self.0.borrow().len())
    }
}

impl Channel for Memory {
    fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        let taken = bytes.len().min(self.room());
        self.0.borrow_mut().extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }
}

/// A controller without threads, sockets or clock, for networks in one process: bytes of switches and times go in, bytes
/// come out. Made by [`Controller::embed`](crate::Controller::embed).
///
/// `now` is the time since any moment of the caller's choice. It never goes back: an earlier one counts as the latest.
/// After each call there may be something to send to any switch: see [`Embedded::output`]. Given the same calls, it does
/// the same, to the byte, as far as the programs do.
///
/// ```
/// use std::time::Duration;
/// use urtica_controller::{Controller, Switch, SwitchHandler, SwitchInfo};
///
/// struct Quiet;
///
/// impl SwitchHandler for Quiet {}
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut controller = Controller::new().program(|_: &SwitchInfo| Quiet).embed()?;
/// let start = Duration::ZERO;
/// let switch = controller.connect("s1".into(), start);
/// // A hello of OpenFlow 1.0 is answered with ours, of 16 bytes, a features request and configuration.
/// controller.handle_input(switch, &[1, 0, 0, 8, 0, 0, 0, 1], start)?;
/// controller.poll(start);
/// let sent = controller.output(switch).map(std::mem::take).unwrap_or_default();
/// assert_eq!(sent[..2], [4, 0]);
/// assert_eq!(sent[16..18], [1, 5]);
/// # Ok(())
/// # }
/// ```
///
/// Dropping it stops it: see [`Embedded::stop`].
pub struct Embedded {
    connections: BTreeMap<Token, Connection<Memory>>,
    /// Those for which more waits than their output has room for.
    waiting: BTreeSet<Token>,
    /// What connections that have ended had still to say.
    last_words: BTreeMap<Token, Vec<u8>>,
    session: SessionConfig,
    turn: Turn,
    background: Arc<TaskQueue>,
    /// Until when programs that did not come to rest are left alone.
    rest_until: Duration,
    commands: Vec<Command>,
    last_token: Token,
}

impl Embedded {
    pub(crate) fn new(
        network: Network,
        session: SessionConfig,
        programs: Vec<Arc<dyn Program>>,
    ) -> Self {
        let started = Instant::now();
        let (background, queue) = Background::on_queue(network.clone(), started);
        for (index, program) in programs.iter().enumerate() {
            program.start(&background.for_program(index, program.stage()));
        }
        Self {
            connections: BTreeMap::new(),
            waiting: BTreeSet::new(),
            last_words: BTreeMap::new(),
            session,
            turn: Turn::new(Vec::new(), started, network, programs, 0),
            background: queue,
            rest_until: Duration::ZERO,
            commands: Vec::new(),
            last_token: 0,
        }
    }

    /// The connected switches.
    pub fn network(&self) -> &Network {
        &self.turn.network
    }

    /// What happened to background programs.
    pub fn background_counters(&self) -> &BackgroundCounters {
        &self.background.counters
    }

    /// A switch has connected. `peer` names it in logs.
    pub fn connect(&mut self, peer: String, now: Duration) -> ConnectionId {
        self.set_time(now);
        self.last_token += 1;
        let (token, config) = (self.last_token, self.session.clone());
        let connection = Connection::new(Memory::default(), peer, token, config, self.turn.now);
        self.connections.insert(token, connection);
        ConnectionId(token)
    }

    /// Takes in bytes of a switch, in pieces of any size. What comes while the switch does not read
    /// ([`Embedded::wants_input`]) is kept, however much it is, and handled once its output has been taken.
    ///
    /// # Errors
    /// Where the connection has ended: a sentence that says why. What is still to be sent stays in its output until
    /// [`Embedded::disconnect`].
    pub fn handle_input(
        &mut self,
        connection: ConnectionId,
        bytes: &[u8],
        now: Duration,
    ) -> Result<(), String> {
        self.set_time(now);
        let token = connection.0;
        if !self.connections.contains_key(&token) {
            return Err("the connection is not open; expected one that connect() returned".into());
        }
        self.with(token, |connection, turn| {
            if connection.is_stalled() || connection.input_len() > 0 {
                connection.keep_input(bytes);
                handle_kept_input(connection, turn)
            } else {
                connection.handle_input(bytes, turn)?;
                connection.flush(turn)
            }
        })
        .map_err(|close| self.close(token, &close))
    }

    /// Whether a switch should be read from: not while it leaves unread what is there for it.
    pub fn wants_input(&self, connection: ConnectionId) -> bool {
        let open = self.connections.get(&connection.0);
        open.is_some_and(|open| !open.is_stalled())
    }

    /// What is to be sent to a switch; the caller takes off the front what it has sent. Where more waited than there was
    /// room for, [`Embedded::next_timeout`] is now, and [`Embedded::poll`] brings it. `None` where there is no such
    /// connection.
    pub fn output(&mut self, connection: ConnectionId) -> Option<&mut Vec<u8>> {
        match self.connections.get_mut(&connection.0) {
            Some(open) => Some(open.channel_mut().0.get_mut()),
            None => self.last_words.get_mut(&connection.0),
        }
    }

    /// A switch has gone, or whoever drives the controller has closed a connection that had ended.
    pub fn disconnect(&mut self, connection: ConnectionId, now: Duration) {
        self.set_time(now);
        self.close(connection.0, &Close::ByPeer);
        self.last_words.remove(&connection.0);
    }

    /// Runs background programs that have something to do, and brings what they and handlers have sent to the switches'
    /// outputs. Returns the connections that have ended, with why. To be called after input and at
    /// [`Embedded::next_timeout`].
    pub fn poll(&mut self, now: Duration) -> Vec<(ConnectionId, String)> {
        self.set_time(now);
        let mut ended = Vec::new();
        let mut turns = MAX_TURNS;
        loop {
            self.background.run(&mut turns);
            self.handle_commands(&mut ended);
            self.resume_waiting(&mut ended);
            if self.is_quiet() {
                return ended;
            }
            if turns == 0 {
                self.send_to_rest();
                return ended;
            }
        }
    }

    /// Does what is due on every connection: echo requests, time-outs. To be called a few times a second. Returns the
    /// connections that have ended, with why.
    pub fn handle_timeout(&mut self, now: Duration) -> Vec<(ConnectionId, String)> {
        let mut ended = self.poll(now);
        for token in self.tokens() {
            let result = self.with(token, |connection, turn| {
                connection.handle_timeout(turn)?;
                connection.flush(turn)
            });
            self.settle(token, result, &mut ended);
        }
        ended
    }

    /// When [`Embedded::poll`] has something to do next, as far as that is known: at once, or when a background program's
    /// timer is due.
    pub fn next_timeout(&self) -> Option<Duration> {
        if !self.is_quiet() || self.can_resume() {
            return Some(self.now().max(self.rest_until));
        }
        let deadline = self.background.clock.next_deadline()?;
        Some(deadline.saturating_duration_since(self.turn.started))
    }

    /// Ends: background programs are dropped, then handlers are told that their switches are gone. So does dropping it.
    pub fn stop(self) {}

    fn set_time(&mut self, now: Duration) {
        let clock = &self.background.clock;
        if let Some(now) = self.turn.started.checked_add(now) {
            clock.set(now);
        }
        self.turn.now = clock.now();
        self.turn.now_s = whole_seconds(self.now());
    }

    fn now(&self) -> Duration {
        self.turn.now.duration_since(self.turn.started)
    }

    fn tokens(&self) -> Vec<Token> {
        self.connections.keys().copied().collect()
    }

    fn mailbox(&self) -> &Mailbox {
        &self.turn.network.shard(0).mailbox
    }

    /// Whether all programs wait and nothing has been sent that is not on its way.
    fn is_quiet(&self) -> bool {
        self.background.is_idle() && self.mailbox().is_empty()
    }

    /// Whether there is room again for what waited.
    fn can_resume(&self) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|token| {
            let connection = self.connections.get(token);
            connection.is_some_and(|connection| connection.channel().room() > 0)
        })
    }

    fn send_to_rest(&mut self) {
        self.rest_until = self.now().saturating_add(REST);
        let counters = &self.background.counters;
        counters.add_stall();
        if is_worth_telling(counters.stalls()) {
            tracing::warn!(
                turns = MAX_TURNS,
                count = counters.stalls(),
                "background programs wake each other without end; they go on when time has passed"
            );
        }
    }

    /// Does something with a connection that may call handlers.
    fn with(
        &mut self,
        token: Token,
        work: impl FnOnce(&mut Connection<Memory>, &mut Turn) -> Result<(), Close>,
    ) -> Result<(), Close> {
        let turn = &mut self.turn;
        let Some(connection) = self.connections.get_mut(&token) else {
            return Ok(());
        };
        let result = contain(|| work(connection, turn));
        if connection.is_waiting() {
            self.waiting.insert(token);
        }
        result
    }

    fn handle_commands(&mut self, ended: &mut Vec<(ConnectionId, String)>) {
        if self.mailbox().is_empty() {
            return;
        }
        let mut commands = std::mem::take(&mut self.commands);
        self.mailbox().drain_into(&mut commands);
        for command in commands.drain(..) {
            match command {
                // A switch that has left gets no messages, and dropping `reply` says so.
                Command::Send {
                    token,
                    bytes,
                    count,
                    reply,
                } => {
                    let result = self.with(token, |connection, turn| {
                        connection.send(bytes, count, reply, turn.now);
                        connection.flush_backlog(turn)
                    });
                    self.settle(token, result, ended);
                }
                Command::Close { token, reason } => {
                    self.settle(token, Err(Close::Asked(reason)), ended);
                }
                // What shards say to each other; here is only one.
                Command::Adopt | Command::Give { .. } | Command::Stop => {}
            }
        }
        self.commands = commands;
    }

    /// Goes on with connections whose output was full.
    fn resume_waiting(&mut self, ended: &mut Vec<(ConnectionId, String)>) {
        for token in std::mem::take(&mut self.waiting) {
            let result = self.with(token, |connection, turn| {
                connection.flush_backlog(turn)?;
                handle_kept_input(connection, turn)
            });
            self.settle(token, result, ended);
        }
    }

    fn settle(
        &mut self,
        token: Token,
        result: Result<(), Close>,
        ended: &mut Vec<(ConnectionId, String)>,
    ) {
        if let Err(close) = result
            && self.connections.contains_key(&token)
        {
            ended.push((ConnectionId(token), self.close(token, &close)));
        }
    }

    /// Ends a connection, which may still have something to say; returns why, in words.
    fn close(&mut self, token: Token, close: &Close) -> String {
        if let Some(mut connection) = self.connections.remove(&token) {
            self.waiting.remove(&token);
            // As much as there is room for. Sending into memory does not fail.
            let _ = connection.flush(&mut self.turn);
            let last_words = std::mem::take(connection.channel_mut().0.get_mut());
            if !last_words.is_empty() {
                self.last_words.insert(token, last_words);
            }
            connection.close(close, &mut self.turn);
        }
        self.turn.out.clear();
        close.to_string()
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.background.stop();
        for token in self.tokens() {
            self.close(token, &STOPPED);
        }
        // Whoever waits for a reply learns that there is none.
        drop(self.mailbox().close());
    }
}

/// Handles what was received before, where the switch reads.
fn handle_kept_input(connection: &mut Connection<Memory>, turn: &mut Turn) -> Result<(), Close> {
    if connection.is_stalled() {
        return Ok(());
    }
    let input = connection.take_input();
    connection.handle_input(&input, turn)?;
    connection.flush(turn)
}
