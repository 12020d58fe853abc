//! A controller driven by its caller.

use crate::background::{Background, Starter, TaskQueue};
use crate::batch::{BatchContext, whole_seconds};
use crate::connection::{Close, Connection, contain};
use crate::counters::is_worth_logging;
use crate::mailbox::{Command, Mailbox, Token};
use crate::program_list::{ProgramList, ProgramSlot, Programs};
use crate::session::SessionConfig;
use crate::switch::FLUSH_BYTES;
use crate::transport::Channel;
use crate::{BackgroundCounters, Error, Network, Program, ProgramId, RawProgram};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The size of a connection's output. If more waits, its switch counts as not reading.
const OUTPUT_BYTES: usize = FLUSH_BYTES;

/// The maximum number of polls of background programs while no time passes. Programs that need more wake each other, or
/// themselves, endlessly.
const MAX_POLLS: usize = 10_000;

/// The pause before such programs are polled again.
const PAUSE: Duration = Duration::from_millis(1);

const STOPPED: Close = Close::Asked("the controller stops");

/// Identifies a connection of an [`Embedded`] controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(Token);

/// The reason why a connection of an [`Embedded`] controller has closed. Its text is a message for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConnectionError(String);

/// Output in memory: like a socket with limited space, from which the caller removes bytes.
#[derive(Default)]
struct Memory(Vec<u8>);

impl Memory {
    fn room(&self) -> usize {
        OUTPUT_BYTES.saturating_sub(self.0.len())
    }
}

impl Channel for Memory {
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.room());
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }
}

/// A controller without threads, sockets or clock, for networks in one process: its input is times and bytes from switches,
/// its output is bytes. Created by [`Controller::embed`](crate::Controller::embed).
///
/// `now` is the time since a moment that the caller chooses. It never decreases: an earlier time counts as the latest so far.
/// After each call any switch may have output: see [`Embedded::output`]. If the programs are deterministic, equal calls
/// produce equal bytes.
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
    /// Connections with more output than fits in their memory.
    waiting: BTreeSet<Token>,
    /// The remaining output of closed connections.
    last_output: BTreeMap<Token, Vec<u8>>,
    session: SessionConfig,
    batch: BatchContext,
    programs: Programs,
    background: Arc<TaskQueue>,
    /// The time until which programs that wake each other endlessly are not polled.
    paused_until: Duration,
    commands: Vec<Command>,
    /// Closed connections, which the next poll reports to the caller.
    ended: Vec<(ConnectionId, ConnectionError)>,
    last_token: Token,
}

impl Embedded {
    pub(crate) fn new(
        network: Network,
        session: SessionConfig,
        programs: Vec<Arc<dyn Program>>,
        raw: Option<Arc<dyn RawProgram>>,
        starters: Vec<Starter>,
    ) -> Self {
        let started = Instant::now();
        let (background, queue) = Background::on_queue(network.clone(), started);
        let list = ProgramList::first(programs, raw, &network);
        let programs = Programs::start(Arc::clone(&list), &network, &background);
        for start in starters {
            start(&background);
        }
        Self {
            connections: BTreeMap::new(),
            waiting: BTreeSet::new(),
            last_output: BTreeMap::new(),
            session,
            batch: BatchContext::new(Vec::new(), started, network, list, 0),
            programs,
            background: queue,
            paused_until: Duration::ZERO,
            commands: Vec::new(),
            ended: Vec::new(),
            last_token: 0,
        }
    }

    /// Returns the connected switches.
    pub fn network(&self) -> &Network {
        &self.batch.network
    }

    /// Returns the counters of background programs.
    pub fn background_counters(&self) -> &BackgroundCounters {
        &self.background.counters
    }

    /// Returns the programs' numbers, in the order in which they see messages.
    pub fn program_ids(&self) -> Vec<ProgramId> {
        self.programs.ids()
    }

    /// Replaces the running programs: see [`Running::set_programs`](crate::Running::set_programs).
    ///
    /// # Errors
    /// Like [`Running::set_programs`](crate::Running::set_programs); on an error nothing changes.
    pub fn set_programs(
        &mut self,
        slots: &[ProgramSlot],
        now: Duration,
    ) -> Result<Vec<ProgramId>, Error> {
        self.set_time(now);
        let prepared = self.programs.change(slots)?;
        self.programs.start_new(&prepared);
        self.batch.programs = Arc::clone(&prepared.list);
        let mut ended = Vec::new();
        for token in self.tokens() {
            let result = self.with(token, |connection, batch| {
                connection.follow_programs(batch)?;
                connection.flush(batch)
            });
            self.settle(token, result, &mut ended);
        }
        self.ended.append(&mut ended);
        self.programs.release_new(&prepared);
        Ok(prepared.ids)
    }

    /// Adds the connection of a switch. `peer` names it in logs.
    pub fn connect(&mut self, peer: String, now: Duration) -> ConnectionId {
        self.set_time(now);
        self.last_token += 1;
        let (token, config) = (self.last_token, self.session.clone());
        let connection = Connection::new(Memory::default(), peer, token, config, self.batch.now);
        self.connections.insert(token, connection);
        ConnectionId(token)
    }

    /// Handles bytes from a switch, in segments of any size. Input that arrives while the switch does not read
    /// ([`Embedded::wants_input`]) is kept, without a limit, and handled once its output has been removed.
    ///
    /// # Errors
    /// [`ConnectionError`] if the connection has closed. Unsent bytes stay in its output until [`Embedded::disconnect`].
    pub fn handle_input(
        &mut self,
        connection: ConnectionId,
        bytes: &[u8],
        now: Duration,
    ) -> Result<(), ConnectionError> {
        self.set_time(now);
        let token = connection.0;
        if !self.connections.contains_key(&token) {
            let reason = "the connection is not open; expected one that connect() returned";
            return Err(ConnectionError(reason.into()));
        }
        self.with(token, |connection, batch| {
            if connection.is_stalled() || connection.transport().input_len() > 0 {
                connection.transport_mut().keep_input(bytes);
                handle_kept_input(connection, batch)
            } else {
                connection.handle_input(bytes, batch)?;
                connection.flush(batch)
            }
        })
        .map_err(|close| self.close(token, &close))
    }

    /// Notes that the caller has handled input of a switch itself, which counts as a sign of life.
    pub fn note_received(&mut self, connection: ConnectionId, now: Duration) {
        self.set_time(now);
        if let Some(open) = self.connections.get_mut(&connection.0) {
            open.note_alive(&self.batch);
        }
    }

    /// Returns `true` if a switch should be read from: `false` while it does not read its output (back-pressure).
    pub fn wants_input(&self, connection: ConnectionId) -> bool {
        let open = self.connections.get(&connection.0);
        open.is_some_and(|open| !open.is_stalled())
    }

    /// Returns the output for a switch; the caller removes sent bytes from the front. If more waits than fitted,
    /// [`Embedded::next_timeout`] is now, and [`Embedded::poll`] adds it. Returns `None` if the connection does not exist.
    pub fn output(&mut self, connection: ConnectionId) -> Option<&mut Vec<u8>> {
        match self.connections.get_mut(&connection.0) {
            Some(open) => Some(&mut open.transport_mut().channel_mut().0),
            None => self.last_output.get_mut(&connection.0),
        }
    }

    /// Removes a connection that has closed, or whose switch has disconnected.
    pub fn disconnect(&mut self, connection: ConnectionId, now: Duration) {
        self.set_time(now);
        self.close(connection.0, &Close::ByPeer);
        self.last_output.remove(&connection.0);
    }

    /// Runs background programs that were woken, and moves messages from them and from handlers to the switches' outputs.
    /// Returns the connections that have closed, each with the reason. Must be called after input and at
    /// [`Embedded::next_timeout`].
    pub fn poll(&mut self, now: Duration) -> Vec<(ConnectionId, ConnectionError)> {
        self.set_time(now);
        let mut ended = std::mem::take(&mut self.ended);
        let mut polls = MAX_POLLS;
        loop {
            self.background.run(&mut polls);
            self.handle_commands(&mut ended);
            self.resume_waiting(&mut ended);
            if self.is_idle() {
                return ended;
            }
            if polls == 0 {
                self.pause();
                return ended;
            }
        }
    }

    /// Handles the timers of every connection: echo requests, time-outs, [ticks](crate::SwitchHandler::tick). Should be
    /// called a few times per second. Returns the connections that have ended, each with the reason.
    pub fn handle_timeout(&mut self, now: Duration) -> Vec<(ConnectionId, ConnectionError)> {
        let mut ended = self.poll(now);
        for token in self.tokens() {
            let result = self.with(token, |connection, batch| {
                connection.handle_timeout(batch)?;
                connection.flush(batch)
            });
            self.settle(token, result, &mut ended);
        }
        ended
    }

    /// Returns the time of the next [`Embedded::poll`], if known: now, or when a background program's timer expires.
    pub fn next_timeout(&self) -> Option<Duration> {
        if !self.is_idle() || self.can_resume() || !self.ended.is_empty() {
            return Some(self.now().max(self.paused_until));
        }
        let deadline = self.background.clock.next_deadline()?;
        Some(deadline.saturating_duration_since(self.batch.started))
    }

    /// Stops: drops background programs, then notifies handlers that their switches have disconnected. Dropping the value
    /// does this as well.
    pub fn stop(self) {}

    fn set_time(&mut self, now: Duration) {
        let clock = &self.background.clock;
        if let Some(now) = self.batch.started.checked_add(now) {
            clock.set(now);
        }
        self.batch.now = clock.now();
        self.batch.now_s = whole_seconds(self.now());
    }

    fn now(&self) -> Duration {
        self.batch.now.duration_since(self.batch.started)
    }

    fn tokens(&self) -> Vec<Token> {
        self.connections.keys().copied().collect()
    }

    fn mailbox(&self) -> &Mailbox {
        &self.batch.network.shard(0).mailbox
    }

    /// Returns `true` if all programs wait and the mailbox is empty.
    fn is_idle(&self) -> bool {
        self.background.is_idle() && self.mailbox().is_empty()
    }

    /// Returns whether a connection with waiting output has space again.
    fn can_resume(&self) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|token| {
            let connection = self.connections.get(token);
            connection.is_some_and(|connection| connection.transport().channel().room() > 0)
        })
    }

    fn pause(&mut self) {
        self.paused_until = self.now().saturating_add(PAUSE);
        let counters = &self.background.counters;
        counters.add_stall();
        if is_worth_logging(counters.stalls()) {
            tracing::warn!(
                polls = MAX_POLLS,
                count = counters.stalls(),
                "background programs wake each other endlessly; polling them again when time has passed"
            );
        }
    }

    /// Runs `work`, which may call handlers, on a connection.
    fn with(
        &mut self,
        token: Token,
        work: impl FnOnce(&mut Connection<Memory>, &mut BatchContext) -> Result<(), Close>,
    ) -> Result<(), Close> {
        let main = self.take_main_of(token);
        let batch = &mut self.batch;
        let Some(connection) = self.connections.get_mut(&token) else {
            return Ok(());
        };
        if connection.is_auxiliary() && main.is_none() {
            return Err(connection.without_main());
        }
        let result = match main {
            None => contain(|| work(connection, batch)),
            Some(mut main) => {
                connection.borrow_from(&mut main, batch);
                let result = contain(|| work(connection, batch));
                connection.return_to(&mut main);
                self.connections.insert(main.token, main);
                result
            }
        };
        let connection = self.connections.get(&token);
        if connection.is_some_and(Connection::is_waiting) {
            self.waiting.insert(token);
        }
        match result {
            Err(Close::ToMain) => self.attach(token),
            result => result,
        }
    }

    /// Removes and returns the main connection of an auxiliary connection.
    fn take_main_of(&mut self, token: Token) -> Option<Connection<Memory>> {
        let main = self.connections.get(&token)?.main()?;
        self.connections.remove(&main)
    }

    /// Makes a connection an auxiliary connection of its switch's main one, and handles the input that followed its
    /// announcement.
    fn attach(&mut self, token: Token) -> Result<(), Close> {
        let Some(mut auxiliary) = self.connections.remove(&token) else {
            return Ok(());
        };
        let network = &self.batch.network;
        let switch = auxiliary.awaits_main();
        let main = switch.and_then(|switch| network.main_connection(switch));
        let main = main.and_then(|(_, token)| self.connections.remove(&token));
        let attached = match main {
            None => Err(auxiliary.without_main()),
            Some(mut main) => {
                let is_open = |token| self.connections.contains_key(&token);
                let attached = auxiliary.attach(&mut main, is_open, &self.batch);
                self.connections.insert(main.token, main);
                attached
            }
        };
        self.connections.insert(token, auxiliary);
        attached?;
        self.with(token, handle_kept_input)
    }

    fn handle_commands(&mut self, ended: &mut Vec<(ConnectionId, ConnectionError)>) {
        if self.mailbox().is_empty() {
            return;
        }
        let mut commands = std::mem::take(&mut self.commands);
        self.mailbox().drain_into(&mut commands);
        for command in commands.drain(..) {
            match command {
                // A switch that has disconnected gets no messages, and dropping `reply` reports it.
                Command::Send {
                    token,
                    bytes,
                    count,
                    reply,
                } => {
                    let result = self.with(token, |connection, batch| {
                        connection.send(bytes, count, reply, batch);
                        connection.flush_backlog(batch)
                    });
                    self.settle(token, result, ended);
                }
                Command::SendFrames {
                    token,
                    bytes,
                    count,
                } => {
                    let result = self.with(token, |connection, batch| {
                        connection.send_frames(bytes, count, batch);
                        connection.flush_backlog(batch)
                    });
                    self.settle(token, result, ended);
                }
                Command::AskForRole {
                    token,
                    request,
                    asker,
                } => {
                    let result = self.with(token, |connection, batch| {
                        connection.ask_for_role(request, asker, batch);
                        connection.flush(batch)
                    });
                    self.settle(token, result, ended);
                }
                Command::Close { token, reason } => {
                    self.settle(token, Err(Close::Asked(reason)), ended);
                }
                // These commands are for controllers with several shards.
                Command::Adopt
                | Command::Give { .. }
                | Command::FollowPrograms
                | Command::Stop
                | Command::Leave => {}
            }
        }
        self.commands = commands;
    }

    /// Resumes connections whose output was full.
    fn resume_waiting(&mut self, ended: &mut Vec<(ConnectionId, ConnectionError)>) {
        for token in std::mem::take(&mut self.waiting) {
            let result = self.with(token, |connection, batch| {
                connection.flush_backlog(batch)?;
                handle_kept_input(connection, batch)
            });
            self.settle(token, result, ended);
        }
    }

    fn settle(
        &mut self,
        token: Token,
        result: Result<(), Close>,
        ended: &mut Vec<(ConnectionId, ConnectionError)>,
    ) {
        let Err(close) = result else {
            return;
        };
        if self.connections.contains_key(&token) {
            ended.push((ConnectionId(token), self.close(token, &close)));
        }
    }

    /// Ends a connection and keeps its remaining output. Returns the reason.
    fn close(&mut self, token: Token, close: &Close) -> ConnectionError {
        let main = self.connections.get(&token).and_then(Connection::main);
        if let Some(mut connection) = self.connections.remove(&token) {
            self.waiting.remove(&token);
            // Flushes as much as fits. Writing to memory does not fail.
            let _ = connection.flush(&mut self.batch);
            let last_output = std::mem::take(&mut connection.transport_mut().channel_mut().0);
            if !last_output.is_empty() {
                self.last_output.insert(token, last_output);
            }
            connection.close(close, &mut self.batch);
        }
        self.batch.out.clear();
        // The handler that panicked belongs to the main connection.
        if let (Close::Panic(_), Some(main)) = (close, main) {
            self.close(main, close);
        }
        ConnectionError(close.to_string())
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.background.stop();
        for token in self.tokens() {
            self.close(token, &STOPPED);
        }
        // Pending requests end with `Disconnected`.
        drop(self.mailbox().close());
    }
}

/// Handles input that was received earlier, unless the switch is stalled.
fn handle_kept_input(
    connection: &mut Connection<Memory>,
    batch: &mut BatchContext,
) -> Result<(), Close> {
    if connection.is_stalled() {
        return Ok(());
    }
    connection.handle_kept_input(batch)?;
    connection.flush(batch)
}
