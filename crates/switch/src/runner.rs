//! A switch with real ports, connections and time: one thread that waits for events, or several.
//!
//! **What.** An epoll loop over the ports' descriptors, the controllers' sockets and the listeners. It only moves bytes;
//! [`Switch`] interprets them. With [`Runner::with_threads`], ports are distributed to separate threads (the modules `worker`
//! and `spread`), and this thread serves only the controllers.
//!
//! **Order.** Ports are first, with several bursts in a row while they are busy; then the controllers' messages. So neither can
//! starve the other. The output of both is sent once per iteration, so that a burst's packet-ins need one write.
//!
//! **Back-pressure.** A controller is not read from while [`Switch::wants_input`] returns `false`.
//!
//! **TLS.** Connections during their handshake are handled separately, by the [`Acceptor`], which serves a few of them per
//! iteration, since each needs a millisecond of computing. They are passed to the switch when they are ready.
//!
//! **Changes from outside.** A [`Remote`] makes the runner's thread add and remove ports and controllers, between two
//! iterations.
//!
//! **Thread-safety.** Everything belongs to the thread that calls [`Runner::run`], except for the workers' state; a
//! [`StopHandle`] or [`Remote`] may be used by any thread.

mod addresses;
mod backoff;
mod busy_poll;
mod controllers;
mod error;
mod ports;
mod remote;
mod remote_error;
mod saver;
mod source;
mod status;
mod target;
mod threads;
mod worker;

use crate::mailbox::Mailbox;
use crate::port::link_watch::LinkWatch;
use crate::uplink::ControllerPacket;
use crate::{PortIo, StateFile, Switch};
use addresses::look_up;
use busy_poll::BusyPoll;
use controllers::Controllers;
pub use error::RunError;
use ports::RunPorts;
use remote::Tasks;
pub use remote::{Flows, Remote};
pub use remote_error::RemoteError;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
pub use saver::StateSync;
use saver::{Saver, Saving};
use source::Source;
pub use status::{
    ConnectionStatus, ControllerState, ControllerStatus, DropCounts, PortStatus, SwitchStatus,
};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
pub use target::Target;
pub use threads::Threads;
use urtica_socket::{Address, EventFlags, Listener, Poller, Tls, TlsConfig};
use worker::{Crew, Worker};

/// Number of bursts received from each port before controllers are read.
const BURSTS: usize = 8;

/// Interval of the switch's timeouts.
const TICK: Duration = Duration::from_millis(100);

/// Polling interval for ports that cannot be watched, or that have frames for which they lacked space.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Maximum number of events that one wait can report.
const EVENTS: usize = 64;

/// Runs a switch.
pub struct Runner {
    switch: Switch,
    /// Threads that will forward packets. Without any, the runner's own thread forwards.
    workers: Vec<Worker>,
    /// Packets from these threads for controllers.
    packets: Option<Arc<Mailbox<ControllerPacket>>>,
    /// The system's reports of links, if available.
    links: Option<LinkWatch>,
    poller: Arc<Poller>,
    stop: Arc<OwnedFd>,
    started: Instant,
    /// When the runner started.
    run_started: Duration,
    controllers: Controllers,
    /// Whether some port cannot be watched.
    has_silent_ports: bool,
    /// The initial state of busy polling for threads with ports.
    busy_poll: BusyPoll,
    next_tick: Duration,
    ports: RunPorts,
    /// The file in which flow entries are saved, if any.
    state: Option<StateFile>,
    /// When changes to it are synchronized.
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
        // This fails only if the counter is at its limit, and so already readable.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

impl Runner {
    /// Creates a runner for a switch that already has its ports. Listens at the passive addresses immediately, and will connect
    /// to the others.
    ///
    /// # Errors
    /// [`RunError`] if listening at an address fails, or a host's name cannot be resolved.
    pub fn new(switch: Switch, controllers: &[Address]) -> Result<Self, RunError> {
        let (passive, active): (Vec<_>, Vec<_>) =
            controllers.iter().partition(|address| address.is_passive());
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(RunError::io("create an event"))?;
        let poller = Arc::new(Poller::new().map_err(RunError::io("create an epoll instance"))?);
        let controllers = Controllers::new(Arc::clone(&poller))?;
        let ports = RunPorts::new(&switch);
        let mut runner = Self {
            switch,
            workers: Vec::new(),
            packets: None,
            links: watch_links(),
            poller,
            stop: Arc::new(stop),
            started: Instant::now(),
            run_started: Duration::ZERO,
            controllers,
            has_silent_ports: false,
            busy_poll: BusyPoll::default(),
            next_tick: Duration::ZERO,
            ports,
            state: None,
            state_sync: StateSync::default(),
            tasks: Tasks::new().map_err(RunError::io("create an event"))?,
        };
        for address in passive {
            let inserted = runner.controllers.insert_listener(Listener::bind(address)?);
            inserted.map_err(RunError::io("watch its listener"))?;
        }
        for address in active {
            runner.controllers.insert_target(look_up(address)?);
        }
        Ok(runner)
    }

    /// Uses TLS at `ssl:` and `pssl:` addresses with these files. When the files change, they are read again, and used for new
    /// connections.
    ///
    /// # Errors
    /// [`RunError::Tls`] if a file cannot be used.
    pub fn with_tls(mut self, config: TlsConfig) -> Result<Self, RunError> {
        let speaks = self.controllers.acceptor.speak_tls(Tls::load(config)?);
        speaks.map_err(RunError::io("create an epoll instance"))?;
        Ok(self)
    }

    /// Counts times from `started`, which must also be the time base for added ports and restored entries. Must be called before
    /// [`Runner::with_threads`].
    pub fn with_clock(mut self, started: Instant) -> Self {
        self.started = started;
        self
    }

    /// Saves flow entries, groups, meters, and the numbers of port names in this file, after changes and at the end.
    pub fn with_state(self, file: StateFile) -> Self {
        self.with_state_synced(file, StateSync::Interval)
    }

    /// Like [`Runner::with_state`], but synchronizes as `sync` specifies.
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

    /// Makes these threads forward packets, if there are any.
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

    /// Sets how long threads poll their ports before they sleep, when frames arrive so frequently that this is worthwhile (busy
    /// polling). Zero disables it. The default is 50 us, or zero if there is one processor.
    pub fn with_busy_poll(mut self, limit: Duration) -> Self {
        self.busy_poll = BusyPoll::new(limit);
        self
    }

    /// Returns the addresses at which it listens, with the ports that the system chose.
    pub fn listen_addresses(&self) -> impl Iterator<Item = &Address> {
        self.controllers.listen_addresses()
    }

    /// Returns a handle to inspect and change the switch, from any thread.
    pub fn remote(&self) -> Remote {
        Remote::new(&self.tasks, Arc::clone(&self.switch.shared))
    }

    /// Returns a handle that stops the runner.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(Arc::clone(&self.stop))
    }

    /// Serves until stopped, and then closes the connections.
    ///
    /// # Errors
    /// [`RunError`] if the runner or one of its threads cannot continue.
    ///
    /// # Panics
    /// If one of its threads panics.
    pub fn run(mut self) -> Result<(), RunError> {
        self.controllers.check_tls()?;
        self.watch_all()
            .map_err(RunError::io("watch its ports and sockets"))?;
        let mut workers = std::mem::take(&mut self.workers);
        for worker in &mut workers {
            worker.set_busy_poll(self.busy_poll.clone());
        }
        let saving = self.saver().map(Saver::start).transpose()?;
        let crew = Crew::start(workers, self.stop_handle())?;
        let served = self.serve();
        let now = self.now();
        self.controllers.close_all(&mut self.switch, now);
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

    fn serve(&mut self) -> Result<(), RunError> {
        self.run_started = self.now();
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let is_busy = self.take_packets();
            if self.now() >= self.next_tick {
                self.tick();
            }
            self.controllers
                .send_output(&mut self.switch, self.started.elapsed());
            let has_more = self.switch.poll_output(self.now());
            let timeout = self.timeout(is_busy || has_more);
            let waited = self.poller.wait(&mut events, Some(timeout));
            waited.map_err(RunError::io("wait for events"))?;
            let mut has_tasks = false;
            for event in &events {
                let now = self.now();
                match Source::from_key(event.data.u64()) {
                    Source::Stop => return Ok(()),
                    // Handled last, since they may remove the objects of other events.
                    Source::Tasks => has_tasks = true,
                    // All ports are polled in each iteration.
                    Source::Port => {}
                    Source::Packets => self.packets.iter().for_each(|packets| packets.silence()),
                    Source::Acceptor => self.controllers.accept(&mut self.switch, now),
                    Source::Links => self.take_links(),
                    Source::Target(index) => {
                        self.controllers
                            .finish_connect(index, &mut self.switch, now);
                    }
                    Source::Connection(key) => self.controllers.read(key, &mut self.switch, now),
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

    fn add_target(&mut self, target: Target) -> Result<(), RemoteError> {
        self.controllers.add_target(target)?;
        // The first attempt follows immediately.
        self.next_tick = self.now();
        Ok(())
    }

    fn remove_controller(&mut self, address: &Address) -> Result<(), RemoteError> {
        let now = self.now();
        self.controllers.remove(address, &mut self.switch, now)
    }

    fn watch_all(&mut self) -> io::Result<()> {
        self.watch(&*self.stop, Source::Stop)?;
        if let Some(packets) = &self.packets {
            self.watch(packets.bell(), Source::Packets)?;
        }
        self.watch(&self.controllers.acceptor, Source::Acceptor)?;
        if let Some(links) = &self.links {
            self.watch(links, Source::Links)?;
        }
        self.watch(self.tasks.bell(), Source::Tasks)?;
        self.watch_ports()
    }

    fn watch(&self, descriptor: impl AsFd, source: Source) -> io::Result<()> {
        self.poller.add(descriptor, source.key(), EventFlags::IN)
    }

    /// Watches the ports, or only those that were reopened.
    fn watch_ports(&mut self) -> io::Result<()> {
        let ports = self.switch.ports().map(|(_, port)| port);
        self.has_silent_ports = watch_ports(&self.poller, ports, Source::Port.key())?;
        Ok(())
    }

    /// Receives frames from ports, or packets for controllers from the threads that have the ports. Returns whether there may be
    /// more.
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

    /// Receives bursts from each port, with busy polling for the first if that is worthwhile. Returns whether there may be more.
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
            // The packet-ins of a burst are sent to controllers immediately.
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

    /// Handles the passage of time: the switch's timeouts, and connection attempts.
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
            let reason = reason.to_string();
            self.controllers.end(id, &reason, &mut self.switch, now);
        }
        // The timeouts of handshakes are longer than a tick.
        self.controllers.accept(&mut self.switch, now);
        if self.switch.is_behind(now) {
            self.next_tick = now;
        }
        self.controllers.try_targets(now);
    }
}

/// Watches these ports, unless they are already watched. Returns whether some cannot be watched.
fn watch_ports<'a>(
    poller: &Poller,
    ports: impl Iterator<Item = &'a dyn PortIo>,
    key: u64,
) -> io::Result<bool> {
    let mut has_silent = false;
    for port in ports {
        let Some(fd) = port.as_fd() else {
            has_silent = true;
            continue;
        };
        match poller.add(fd, key, EventFlags::IN) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(has_silent)
}

/// Makes the system report links. If it does not, they are polled at each tick.
fn watch_links() -> Option<LinkWatch> {
    let watch = LinkWatch::open();
    if let Err(error) = &watch {
        tracing::warn!(%error, "cannot watch links; polling them every {TICK:?}");
    }
    watch.ok()
}

#[cfg(test)]
mod shared_ports;

#[cfg(test)]
mod tests;
