//! A switch on real ports, connections and time: one thread that waits for events, or several.
//!
//! **What.** An epoll loop over the ports' descriptors, the controllers' sockets and the listeners. It only moves
//! bytes; [`Switch`] interprets them. With [`Runner::with_threads`] ports are distributed to their own threads (the
//! modules `worker` and `spread`), and this thread serves only the controllers.
//!
//! **Order.** Ports first, several bursts in a row while they are busy, then the controllers' messages: neither can
//! starve the other. The output of both is sent once an iteration, so that a burst's packet-ins are one write.
//!
//! **Back-pressure.** A controller is not read from while [`Switch::wants_input`] returns `false`.
//!
//! **TLS.** Connections in their handshake are handled separately, in the [`Acceptor`], which serves a few of them in
//! each iteration, since each needs a millisecond of computing. They are passed to the switch when they are ready.
//!
//! **Changes from outside.** A [`Remote`] makes the runner's thread add and remove ports and controllers, between two
//! iterations.
//!
//! **Thread-safety.** Everything belongs to the thread that calls [`Runner::run`], except for the workers' state; a
//! [`StopHandle`] or [`Remote`] may be used on any thread.

mod addresses;
mod backoff;
mod busy_poll;
mod ports;
mod remote;
mod remote_error;
mod saver;
mod status;
mod target;
mod worker;

use crate::mailbox::Mailbox;
use crate::port::link_watch::LinkWatch;
use crate::uplink::ControllerPacket;
use crate::{ConnectionId, PortIo, StateError, StateFile, Switch};
use busy_poll::BusyPoll;
use ports::RunPorts;
use remote::Tasks;
pub use remote::{Flows, Remote};
pub use remote_error::RemoteError;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
pub use saver::StateSync;
use saver::{Saver, Saving};
use slab::Slab;
pub use status::{
    ConnectionStatus, ControllerState, ControllerStatus, DropCounts, PortStatus, SwitchStatus,
};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
pub use target::Target;
use urtica_socket::{
    Accepted, Acceptor, Address, Certificate, ListenError, Listener, ListenerId, NoTlsConfig,
    Stream, Tls, TlsConfig, TlsError, is_try_again,
};
use worker::{Crew, Worker};

/// Number of bursts received from each port before controllers are read.
const BURSTS: usize = 8;

/// Interval of the switch's time-outs.
const TICK: Duration = Duration::from_millis(100);

/// Polling interval for ports that cannot be watched, or have frames for which they had no space.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Maximum number of bytes read from one controller in one iteration.
const READ_BYTES: usize = 64 << 10;

/// Maximum number of events that one wait can report.
const EVENTS: usize = 64;

/// Why a switch could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Listening at a passive address failed.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A file that TLS needs cannot be used.
    #[error("cannot use TLS: {0}")]
    Tls(#[from] TlsError),
    /// TLS is required, but not configured.
    #[error(transparent)]
    NoTls(#[from] NoTlsConfig),
    /// A controller's name cannot be looked up.
    #[error(
        "cannot find the controller {address}: {error}; expected the name or address of a host"
    )]
    LookUp {
        /// The controller's address.
        address: Address,
        /// The system's error.
        error: io::Error,
    },
    /// A thread cannot be bound to a processor.
    #[error(
        "cannot bind a thread to processor {core}: {error}; `lscpu` lists the processors, `taskset -p $$` shows those that this process may use"
    )]
    Core {
        /// The processor's number, from 0.
        core: usize,
        /// The system's error.
        error: io::Error,
    },
    /// Flow entries cannot be saved.
    #[error(transparent)]
    State(#[from] StateError),
    /// An operation of the system failed.
    #[error("the switch cannot {what}: {error}")]
    Io {
        /// The failed operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl RunError {
    fn io<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Io {
            what,
            error: error.into(),
        }
    }
}

/// The threads that forward packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// Number of threads in addition to the one that serves controllers; with 0, that one forwards. All of them receive
    /// by an AF_PACKET port, as many as it has queues by an AF_XDP port, and one by any other port; threads that could
    /// not receive are not started.
    pub count: usize,
    /// The processors that they are bound to, in order, counted from 0; if empty, the system chooses.
    pub cores: Vec<usize>,
}

impl Threads {
    /// Returns a choice for the processors that this process may use: with two or more, one thread forwards packets, so
    /// that controllers' requests do not delay them; with one, the thread that serves controllers forwards.
    pub fn for_this_machine() -> Self {
        let processors = std::thread::available_parallelism();
        let has_several = processors.is_ok_and(|processors| processors.get() > 1);
        Self {
            count: has_several.into(),
            cores: Vec::new(),
        }
    }
}

/// Runs a switch.
pub struct Runner {
    switch: Switch,
    /// Threads that will forward packets; if empty, the runner's own thread forwards.
    workers: Vec<Worker>,
    /// Packets from these threads for controllers.
    packets: Option<Arc<Mailbox<ControllerPacket>>>,
    /// The system's reports of links, if available.
    links: Option<LinkWatch>,
    epoll: OwnedFd,
    stop: Arc<OwnedFd>,
    started: Instant,
    /// When the runner started.
    run_started: Duration,
    /// By numbers that are not reused, like those of `targets`, so that an event for a removed one is ignored.
    listeners: BTreeMap<usize, ListenerId>,
    acceptor: Acceptor,
    targets: BTreeMap<usize, Target>,
    next_address: usize,
    connections: Slab<Connection>,
    /// Whether some port cannot be watched.
    has_silent_ports: bool,
    /// The initial busy polling of threads with ports.
    busy_poll: BusyPoll,
    /// Buffer for reads.
    input: Vec<u8>,
    next_tick: Duration,
    ports: RunPorts,
    /// The file in which flow entries are saved, if any.
    state: Option<StateFile>,
    /// When its changes are synchronized.
    state_sync: StateSync,
    /// Tasks from other threads.
    tasks: Tasks,
}

/// Stops a [`Runner`], from any thread.
#[derive(Clone, Debug)]
pub struct StopHandle(Arc<OwnedFd>);

impl StopHandle {
    /// Makes [`Runner::run`] return soon.
    pub fn stop(&self) {
        // Fails only if the counter is at its limit, and so readable already.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

/// A connection to a controller, active or passive.
struct Connection {
    stream: Stream,
    id: ConnectionId,
    peer: String,
    /// The number among the runner's targets, if the switch has connected.
    target: Option<usize>,
    since: Duration,
    /// The events that it is watched for.
    interest: epoll::EventFlags,
}

/// The source of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Stop,
    Port,
    /// Other threads have packets for controllers.
    Packets,
    /// Connections wait to be accepted, or TLS handshakes continue.
    Acceptor,
    /// Network interfaces have changed.
    Links,
    /// Other threads have tasks.
    Tasks,
    Target(usize),
    Connection(usize),
}

impl Source {
    fn to_data(self) -> epoll::EventData {
        let (kind, index) = match self {
            Self::Stop => (0, 0),
            Self::Port => (1, 0),
            Self::Acceptor => (2, 0),
            Self::Target(index) => (3, index),
            Self::Connection(index) => (4, index),
            Self::Packets => (5, 0),
            Self::Links => (6, 0),
            Self::Tasks => (7, 0),
        };
        epoll::EventData::new_u64(kind << 32 | index as u64)
    }

    fn from_data(data: u64) -> Self {
        let index = data as u32 as usize;
        match data >> 32 {
            0 => Self::Stop,
            1 => Self::Port,
            2 => Self::Acceptor,
            3 => Self::Target(index),
            5 => Self::Packets,
            6 => Self::Links,
            7 => Self::Tasks,
            _ => Self::Connection(index),
        }
    }
}

impl Runner {
    /// Creates a runner for a switch that has its ports. Listens at the passive addresses at once, and will connect to
    /// the others.
    ///
    /// # Errors
    /// [`RunError`] if listening at an address fails, or a host's name is unknown.
    pub fn new(switch: Switch, controllers: &[Address]) -> Result<Self, RunError> {
        let (passive, active): (Vec<_>, Vec<_>) =
            controllers.iter().partition(|address| address.is_passive());
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(RunError::io("make an event"))?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC);
        let ports = RunPorts::new(&switch);
        let mut runner = Self {
            switch,
            workers: Vec::new(),
            packets: None,
            links: watch_links(),
            epoll: epoll.map_err(RunError::io("make an epoll"))?,
            stop: Arc::new(stop),
            started: Instant::now(),
            run_started: Duration::ZERO,
            listeners: BTreeMap::new(),
            acceptor: Acceptor::new().map_err(RunError::io("make an epoll"))?,
            targets: BTreeMap::new(),
            next_address: 0,
            connections: Slab::new(),
            has_silent_ports: false,
            busy_poll: BusyPoll::default(),
            input: vec![0; READ_BYTES],
            next_tick: Duration::ZERO,
            ports,
            state: None,
            state_sync: StateSync::default(),
            tasks: Tasks::new().map_err(RunError::io("make an event"))?,
        };
        for address in passive {
            let inserted = runner.insert_listener(Listener::bind(address)?);
            inserted.map_err(RunError::io("watch its listener"))?;
        }
        for address in active {
            runner.insert_target(look_up(address)?);
        }
        Ok(runner)
    }

    /// Uses TLS at `ssl:` and `pssl:` with these files, which are read again when they change; new connections use the
    /// new files.
    ///
    /// # Errors
    /// [`RunError::Tls`] if a file cannot be used.
    pub fn with_tls(mut self, config: TlsConfig) -> Result<Self, RunError> {
        let speaks = self.acceptor.speak_tls(Tls::load(config)?);
        speaks.map_err(RunError::io("make an epoll"))?;
        Ok(self)
    }

    /// Counts times from `started`, which is also the time that ports were added and entries restored with. Must be
    /// called before [`Runner::with_threads`].
    pub fn with_clock(mut self, started: Instant) -> Self {
        self.started = started;
        self
    }

    /// Saves flow entries, groups and meters in this file, and the port numbers of names: after changes and at the end.
    pub fn with_state(self, file: StateFile) -> Self {
        self.with_state_synced(file, StateSync::Interval)
    }

    /// Saves like [`Runner::with_state`], and synchronizes as `sync` specifies.
    pub fn with_state_synced(mut self, file: StateFile, sync: StateSync) -> Self {
        self.state_sync = sync;
        let mut numbers = self.ports.numbers.lock();
        for (name, number) in file.port_numbers() {
            numbers.entry(name).or_insert(number);
        }
        drop(numbers);
        self.state = Some(file);
        self
    }

    /// Lets these threads forward packets, if any.
    ///
    /// # Errors
    /// [`RunError::Io`] if the system refuses a resource that they need.
    pub fn with_threads(mut self, threads: &Threads) -> Result<Self, RunError> {
        let count = threads.count.min(self.switch.max_threads());
        if count == 0 {
            return Ok(self);
        }
        let spread = self.switch.spread(count);
        let spread = spread.map_err(RunError::io("make events"))?;
        self.packets = Some(spread.packets);
        let stop = self.stop_handle();
        let mut cores = threads.cores.iter().copied().cycle();
        for part in spread.parts {
            self.ports.note_worker(&part);
            let worker = Worker::new(part, cores.next(), &stop, self.started)?;
            self.workers.push(worker);
        }
        Ok(self)
    }

    /// Sets how long threads poll their ports before they sleep, while frames arrive so frequently that this is worth
    /// it (busy polling). Zero switches it off. The default is 50 us, or zero if there is one processor.
    pub fn with_busy_poll(mut self, limit: Duration) -> Self {
        self.busy_poll = BusyPoll::new(limit);
        self
    }

    /// Returns the addresses at which it listens, with the ports that the system chose.
    pub fn listen_addresses(&self) -> impl Iterator<Item = &Address> {
        let listeners = self.acceptor.listeners();
        listeners.map(|(_, listener)| listener.address())
    }

    /// Returns a handle to inspect and change the switch, from any thread.
    pub fn remote(&self) -> Remote {
        Remote::new(&self.tasks, Arc::clone(&self.switch.shared))
    }

    /// Returns a handle that stops the runner.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(Arc::clone(&self.stop))
    }

    /// Serves until it is stopped, then closes the connections.
    ///
    /// # Errors
    /// [`RunError`] if the runner or one of its threads cannot continue.
    ///
    /// # Panics
    /// If one of its threads does.
    pub fn run(mut self) -> Result<(), RunError> {
        self.check_tls()?;
        self.watch_all()
            .map_err(RunError::io("watch its ports and sockets"))?;
        let mut workers = std::mem::take(&mut self.workers);
        for worker in &mut workers {
            worker.set_busy_poll(self.busy_poll.clone());
        }
        let saving = self.saver().map(Saver::start).transpose()?;
        let crew = Crew::start(workers, self.stop_handle())?;
        let served = self.serve();
        self.close_all();
        let joined = crew.join();
        let saved = saving.map_or(Ok(()), Saving::finish);
        joined.and(served).and(saved)
    }

    fn saver(&mut self) -> Option<Saver> {
        let file = self.state.take()?;
        Some(Saver::new(
            file,
            self.state_sync,
            Arc::clone(&self.switch.shared),
            Arc::clone(&self.ports.numbers),
            self.started,
            self.tasks.waker(),
        ))
    }

    fn check_tls(&self) -> Result<(), RunError> {
        let active = self.targets.values().map(|target| &target.address);
        let mut all = self.listen_addresses().chain(active);
        all.try_for_each(|address| self.check_speaks(address))
    }

    /// Checks that TLS is configured if an address needs it.
    fn check_speaks(&self, address: &Address) -> Result<(), RunError> {
        match address.is_tls() && !self.acceptor.speaks_tls() {
            true => Err(NoTlsConfig(address.clone()).into()),
            false => Ok(()),
        }
    }

    fn serve(&mut self) -> Result<(), RunError> {
        self.run_started = self.now();
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let is_busy = self.take_packets();
            if self.now() >= self.next_tick {
                self.tick();
            }
            self.send_output();
            let has_more = self.switch.poll_output(self.now());
            let timeout = self.timeout(is_busy || has_more);
            wait(&self.epoll, &mut events, timeout).map_err(RunError::io("wait for events"))?;
            let mut has_tasks = false;
            for event in &events {
                match Source::from_data(event.data.u64()) {
                    Source::Stop => return Ok(()),
                    // Handled last, as they may remove the objects of other events.
                    Source::Tasks => has_tasks = true,
                    // All ports are polled in each iteration.
                    Source::Port => {}
                    Source::Packets => self.packets.iter().for_each(|packets| packets.silence()),
                    Source::Acceptor => self.accept(),
                    Source::Links => self.take_links(),
                    Source::Target(index) => self.finish_connect(index),
                    Source::Connection(key) => self.read(key),
                }
            }
            if has_tasks {
                self.carry_out_tasks();
            }
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn watch_all(&mut self) -> Result<(), Errno> {
        let input = epoll::EventFlags::IN;
        epoll::add(&self.epoll, &*self.stop, Source::Stop.to_data(), input)?;
        if let Some(packets) = &self.packets {
            epoll::add(
                &self.epoll,
                packets.bell(),
                Source::Packets.to_data(),
                input,
            )?;
        }
        let acceptor = Source::Acceptor.to_data();
        epoll::add(&self.epoll, &self.acceptor, acceptor, input)?;
        if let Some(links) = &self.links {
            epoll::add(&self.epoll, links, Source::Links.to_data(), input)?;
        }
        epoll::add(
            &self.epoll,
            self.tasks.bell(),
            Source::Tasks.to_data(),
            input,
        )?;
        self.watch_ports()
    }

    /// Watches the ports, or those that were reopened.
    fn watch_ports(&mut self) -> Result<(), Errno> {
        let ports = self.switch.ports().map(|(_, port)| port);
        self.has_silent_ports = watch_ports(&self.epoll, ports, Source::Port.to_data())?;
        Ok(())
    }

    /// Receives frames by ports, or packets for controllers from the threads that have the ports; returns whether there
    /// may be more.
    fn take_packets(&mut self) -> bool {
        if let Some(packets) = &self.packets {
            let mut waiting = Vec::new();
            packets.exchange(&mut waiting);
            self.switch
                .hand_over(waiting.into_iter(), self.started.elapsed());
            return !packets.may_wait();
        }
        self.poll_ports()
    }

    /// Receives bursts from each port, with busy polling for the first if that is worth it; returns whether there may
    /// be more.
    fn poll_ports(&mut self) -> bool {
        let mut bursts = 0;
        loop {
            let polled = self.switch.poll_ports_once(self.now());
            let now = self.now();
            let keeps_polling = self.busy_poll.keeps_polling(polled.has_input, now);
            self.switch
                .flush_ports(self.busy_poll.hold(keeps_polling), now);
            bursts += usize::from(polled.has_input);
            if polled.may_have_more && bursts < BURSTS {
                continue;
            }
            // The packet-ins of a burst are sent to controllers at once.
            if polled.has_input || !keeps_polling {
                return polled.may_have_more || keeps_polling;
            }
        }
    }

    /// Handles the system's reports of links.
    fn take_links(&mut self) {
        let Some(links) = &mut self.links else {
            return;
        };
        match links.changes() {
            Ok(changes) => changes
                .iter()
                .for_each(|change| self.switch.handle_link(change.index, change.has_link)),
            Err(error) => {
                tracing::warn!(%error, "cannot watch links any longer; polling them every {TICK:?}");
                self.links = None;
            }
        }
    }

    fn timeout(&self, is_busy: bool) -> Duration {
        match (is_busy, self.has_silent_ports || self.switch.has_unsent()) {
            (true, _) => Duration::ZERO,
            (false, true) => POLL_INTERVAL,
            (false, false) => self.next_tick.saturating_sub(self.now()),
        }
    }

    /// Handles the passage of time: the switch's time-outs, and connection attempts.
    fn tick(&mut self) {
        let now = self.now();
        self.next_tick = now + TICK;
        let ended = self.switch.handle_timeout(now);
        if self.switch.take_reopened() {
            if let Err(error) = self.watch_ports() {
                tracing::warn!(%error, "cannot watch a reopened port");
            }
        }
        for (id, reason) in ended {
            let found = self
                .connections
                .iter()
                .find(|(_, connection)| connection.id == id);
            if let Some((key, _)) = found {
                self.close(key, &reason.to_string());
            }
        }
        // Handshakes' time-outs are longer than a tick.
        self.accept();
        if self.switch.is_behind(now) {
            self.next_tick = now;
        }
        self.try_targets();
    }

    /// Gives up connection attempts without an answer, and starts those that are due.
    fn try_targets(&mut self) {
        let now = self.now();
        let numbers: Vec<_> = self.targets.keys().copied().collect();
        for index in numbers {
            if self.targets[&index].is_overdue(now) {
                self.retry_later(index, "it does not answer");
            }
            if self.targets[&index].is_due(now) {
                self.connect(index);
            }
        }
    }

    fn connect(&mut self, index: usize) {
        let now = self.now();
        let Some(target) = self.targets.get_mut(&index) else {
            return;
        };
        let connecting = target.connect(now);
        let data = Source::Target(index).to_data();
        let watched = connecting.and_then(|socket| {
            let flags = epoll::EventFlags::OUT;
            Ok(epoll::add(&self.epoll, socket, data, flags)?)
        });
        if let Err(error) = watched {
            self.retry_later(index, &error.to_string());
        }
    }

    fn finish_connect(&mut self, index: usize) {
        let now = self.now();
        let Some(target) = self.targets.get_mut(&index) else {
            return;
        };
        match target.finish(now) {
            Ok(socket) => {
                let peer = target.address.to_string();
                let is_tls = target.address.is_tls();
                // The socket was watched as the target's, and is watched as a connection's from now on.
                let _ = epoll::delete(&self.epoll, &socket);
                if !is_tls {
                    return self.adopt(socket.into(), peer, Some(index));
                }
                let begun = self.acceptor.connect(socket, peer, index, Instant::now());
                begun.into_iter().for_each(|one| self.handle_accepted(one));
            }
            Err(error) => self.retry_later(index, &error.to_string()),
        }
    }

    fn retry_later(&mut self, index: usize, reason: &str) {
        let now = self.now();
        let Some(target) = self.targets.get_mut(&index) else {
            return;
        };
        target.note_failure(reason);
        let delay = target.fail(now);
        let retry_in_ms = delay.as_millis() as u64;
        urtica_log::info!(about: index, controller = %target.address, reason, retry_in_ms, "cannot connect to the controller; retrying");
    }

    /// Handles the connections that are ready.
    fn accept(&mut self) {
        for accepted in self.acceptor.poll(Instant::now()) {
            self.handle_accepted(accepted);
        }
    }

    fn handle_accepted(&mut self, accepted: Accepted) {
        match accepted {
            Accepted::Connection {
                tag: Some(index), ..
            }
            | Accepted::Refused {
                tag: Some(index), ..
            } if !self.targets.contains_key(&index) => {}
            Accepted::Connection { stream, peer, tag } => self.adopt(stream, peer, tag),
            Accepted::Refused { peer, tag, reason } => self.note_refusal(&peer, tag, &reason),
            Accepted::Paused(error) => {
                urtica_log::warn!(about: "accepting", %error, "cannot accept connections from controllers");
            }
            Accepted::Notice(notice) if notice.is_warning() => tracing::warn!("TLS: {notice}"),
            Accepted::Notice(notice) => tracing::info!("TLS: {notice}"),
        }
    }

    fn note_refusal(&mut self, peer: &str, target: Option<usize>, reason: &TlsError) {
        match target {
            Some(index) => {
                if reason.is_warning() {
                    tracing::warn!("TLS: {reason}");
                }
                self.retry_later(index, &reason.to_string());
            }
            None if reason.is_noise() => {
                urtica_log::debug!(about: urtica_log::without_port(peer), controller = peer, %reason, "connection closed before its TLS handshake");
            }
            None => {
                urtica_log::warn!(about: urtica_log::without_port(peer), controller = peer, %reason, "connection refused");
            }
        }
    }

    /// Adds a new connection, to which the switch sends a hello.
    fn adopt(&mut self, stream: Stream, peer: String, target: Option<usize>) {
        let certificate = stream.certificate().map(Certificate::to_string);
        urtica_log::info!(about: urtica_log::without_port(&peer), controller = peer, certificate, "connected");
        let has_input = stream.has_input();
        let since = self.now();
        let id = self.switch.connect(peer.clone(), since);
        let key = self.connections.insert(Connection {
            stream,
            id,
            peer,
            target,
            since,
            interest: epoll::EventFlags::IN,
        });
        let connection = &self.connections[key];
        let data = Source::Connection(key).to_data();
        match epoll::add(&self.epoll, &connection.stream, data, epoll::EventFlags::IN) {
            Ok(()) if has_input => self.read(key),
            Ok(()) => {}
            Err(error) => self.close(key, &error.to_string()),
        }
    }

    /// Reads from a controller. An event for writing is left to [`Runner::send_output`].
    fn read(&mut self, key: usize) {
        let is_read = |one: &&mut Connection| one.interest.contains(epoll::EventFlags::IN);
        let Some(connection) = self.connections.get_mut(key).filter(is_read) else {
            return;
        };
        let received = connection.stream.read(&mut self.input);
        let (id, now) = (connection.id, self.started.elapsed());
        let outcome = match received {
            Ok(0) => Err("the controller closed the connection".to_owned()),
            Ok(len) => {
                let handled = self.switch.handle_input(id, &self.input[..len], now);
                handled.map_err(|error| error.to_string())
            }
            Err(error) if is_try_again(&error) => Ok(()),
            Err(error) => Err(format!("the connection failed: {error}")),
        };
        if let Err(reason) = outcome {
            self.close(key, &reason);
        }
    }

    /// Sends all controllers their output.
    fn send_output(&mut self) {
        let mut failed = Vec::new();
        for (key, connection) in &mut self.connections {
            let sent = send_some(&mut self.switch, connection)
                .and_then(|()| watch(&self.epoll, &mut self.switch, key, connection));
            if let Err(error) = sent {
                failed.push((key, format!("the connection failed: {error}")));
            }
        }
        for (key, reason) in failed {
            self.close(key, &reason);
        }
    }

    fn close(&mut self, key: usize, reason: &str) {
        let mut connection = self.connections.remove(key);
        // The last output, such as an OFPT_ERROR, if the socket accepts it.
        let _ = send_some(&mut self.switch, &mut connection);
        let now = self.now();
        self.switch.disconnect(connection.id, now);
        urtica_log::info!(about: urtica_log::without_port(&connection.peer), controller = connection.peer, reason, "disconnected");
        if let Some(index) = connection.target {
            self.retry_later(index, reason);
        }
    }

    fn close_all(&mut self) {
        let keys: Vec<_> = self.connections.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.connections[key].target = None;
            self.close(key, "the switch stops");
        }
    }
}

/// Watches these ports, unless they are watched already. Returns whether some cannot be watched.
fn watch_ports<'a>(
    epoll: &OwnedFd,
    ports: impl Iterator<Item = &'a dyn PortIo>,
    data: epoll::EventData,
) -> Result<bool, Errno> {
    let mut has_silent = false;
    for port in ports {
        let Some(fd) = port.as_fd() else {
            has_silent = true;
            continue;
        };
        match epoll::add(epoll, fd, data, epoll::EventFlags::IN) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(has_silent)
}

/// Waits for events, at most until the time-out.
fn wait(epoll: &OwnedFd, events: &mut Vec<epoll::Event>, timeout: Duration) -> Result<(), Errno> {
    let timeout = Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: timeout.subsec_nanos().into(),
    };
    events.clear();
    let room = rustix::buffer::spare_capacity(events);
    match epoll::wait(epoll, room, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes the system report links. If it does not, they are polled at each tick.
fn watch_links() -> Option<LinkWatch> {
    let watch = LinkWatch::open();
    if let Err(error) = &watch {
        tracing::warn!(%error, "cannot watch links; polling them every {TICK:?}");
    }
    watch.ok()
}

fn look_up(address: &Address) -> Result<Target, RunError> {
    Target::new(address).map_err(|error| RunError::LookUp {
        address: address.clone(),
        error,
    })
}

/// Sends as much of a controller's output as the socket accepts.
fn send_some(switch: &mut Switch, connection: &mut Connection) -> io::Result<()> {
    connection.stream.flush()?;
    let Some(output) = switch.output(connection.id) else {
        return Ok(());
    };
    let mut sent = 0;
    let end = loop {
        if sent == output.len() {
            break Ok(());
        }
        match connection.stream.write(&output[sent..]) {
            Ok(more) => sent += more,
            Err(error) if is_try_again(&error) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    output.drain(..sent);
    end
}

/// Watches for writability if output is left, and for input if the switch wants it.
fn watch(
    epoll: &OwnedFd,
    switch: &mut Switch,
    key: usize,
    connection: &mut Connection,
) -> io::Result<()> {
    let id = connection.id;
    let has_output = switch.output(id).is_some_and(|output| !output.is_empty());
    let is_waiting = has_output || connection.stream.has_unsent();
    let mut interest = epoll::EventFlags::empty();
    interest.set(epoll::EventFlags::IN, switch.wants_input(id));
    interest.set(epoll::EventFlags::OUT, is_waiting);
    if connection.interest == interest {
        return Ok(());
    }
    connection.interest = interest;
    let data = Source::Connection(key).to_data();
    Ok(epoll::modify(epoll, &connection.stream, data, interest)?)
}

#[cfg(test)]
mod shared_ports;

#[cfg(test)]
mod tests;
