//! A thread that only forwards packets.
//!
//! **What.** A loop over its ports, and over frames that other threads send to these ports. It sleeps while there are neither.
//!
//! **Thread-safety.** See the module `shared`. The thread locks the pipeline only for frames in the plain form.

use super::busy_poll::BusyPoll;
use super::{BURSTS, EVENTS, POLL_INTERVAL, RunError, StopHandle, TICK, watch_ports};
use crate::PortIo;
use crate::forwarder::Polled;
use crate::parcel::Parcel;
use crate::port_table::SwitchPort;
use crate::spread::{Part, PortChange};
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use urtica_socket::{EventFlags, Poller};
use urtica_wire::PortNo;

const STOP: u64 = 0;
const PORT: u64 = 1;
const BELL: u64 = 2;
const CHANGES: u64 = 3;

/// A thread that has not started yet.
pub(super) struct Worker {
    part: Part,
    poller: Poller,
    started: Instant,
    /// The processor to which it is bound, if any.
    core: Option<usize>,
    /// Whether some port cannot be watched.
    has_silent_ports: bool,
    busy_poll: BusyPoll,
    /// The other threads' frames that were sent last, for reuse.
    parcels: Vec<Parcel>,
    next_look: Duration,
}

/// Running threads. When one ends, for any reason, all are stopped.
pub(super) struct Crew {
    threads: Vec<JoinHandle<Result<(), RunError>>>,
    stop: StopHandle,
}

impl Worker {
    /// Creates a thread for these ports, which ends when `stop` is readable. `started` is the start of the switch's time.
    ///
    /// # Errors
    /// [`RunError::Io`] if a port cannot be watched.
    pub fn new(
        part: Part,
        core: Option<usize>,
        stop: &StopHandle,
        started: Instant,
    ) -> Result<Self, RunError> {
        let mut worker = Self {
            part,
            poller: Poller::new().map_err(RunError::io("create an epoll instance"))?,
            started,
            core,
            has_silent_ports: false,
            busy_poll: BusyPoll::default(),
            parcels: Vec::new(),
            next_look: Duration::ZERO,
        };
        let watched = worker.watch_all(stop);
        watched.map_err(RunError::io("watch its ports"))?;
        Ok(worker)
    }

    /// Returns the ports in this thread's table.
    #[cfg(test)]
    pub fn ports(&self) -> &crate::port_table::PortTable {
        &self.part.forwarder.ports
    }

    /// Sets the busy polling of the thread.
    pub fn set_busy_poll(&mut self, busy_poll: BusyPoll) {
        self.busy_poll = busy_poll;
    }

    fn watch_all(&mut self, stop: &StopHandle) -> io::Result<()> {
        let poller = &self.poller;
        poller.add(&*stop.0, STOP, EventFlags::IN)?;
        poller.add(self.part.inbox.bell(), BELL, EventFlags::IN)?;
        poller.add(self.part.changes.bell(), CHANGES, EventFlags::IN)?;
        let ports = self.part.forwarder.ports.iter();
        let ports = ports.filter_map(SwitchPort::io);
        self.has_silent_ports = watch_ports(poller, ports, PORT)?;
        Ok(())
    }

    /// Checks links, and watches the ports that were reopened.
    fn check_links(&mut self) -> io::Result<()> {
        if self.part.forwarder.check_links() {
            let ports = self.part.forwarder.ports.iter();
            let ports = ports.filter_map(SwitchPort::io);
            watch_ports(&self.poller, ports, PORT)?;
        }
        Ok(())
    }

    fn run(mut self) -> Result<(), RunError> {
        self.bind()?;
        self.change_ports();
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let is_busy = self.poll();
            if self.now() >= self.next_look {
                self.next_look = self.now() + TICK;
                self.check_links()
                    .map_err(RunError::io("watch its ports"))?;
            }
            let timeout = self.timeout(is_busy);
            let waited = self.poller.wait(&mut events, Some(timeout));
            waited.map_err(RunError::io("wait for events"))?;
            for event in &events {
                match event.data.u64() {
                    STOP => return Ok(()),
                    BELL => self.part.inbox.silence(),
                    CHANGES => self.change_ports(),
                    // All ports are polled in each iteration.
                    _ => {}
                }
            }
        }
    }

    /// Applies changes of ports, until the bell will ring for further ones.
    fn change_ports(&mut self) {
        self.part.changes.silence();
        while !self.part.changes.may_wait() {
            let mut changes = Vec::new();
            self.part.changes.exchange(&mut changes);
            for change in changes {
                match change {
                    PortChange::Add(port) => self.add_port(port),
                    PortChange::Queues { port_no, queues } => {
                        self.part.forwarder.ports.set_queues(port_no, queues);
                    }
                    PortChange::Remove { port_no, .. } => self.remove_port(port_no),
                }
            }
        }
    }

    fn add_port(&mut self, port: SwitchPort) {
        match port.io().map(PortIo::as_fd) {
            None => {}
            Some(None) => self.has_silent_ports = true,
            Some(Some(fd)) => {
                if let Err(error) = self.poller.add(fd, PORT, EventFlags::IN) {
                    let port_no = port.port_no;
                    tracing::warn!(%port_no, %error, "cannot watch the port; polling it every {POLL_INTERVAL:?}");
                    self.has_silent_ports = true;
                }
            }
        }
        self.part.forwarder.ports.insert(port);
    }

    fn remove_port(&mut self, port_no: PortNo) {
        let ports = &mut self.part.forwarder.ports;
        let Some(port) = ports.remove(port_no) else {
            return;
        };
        if let Some(fd) = port.io().and_then(PortIo::as_fd) {
            self.poller.delete(fd);
        }
        let mut left = ports.iter().filter_map(SwitchPort::io);
        self.has_silent_ports = left.any(|io| io.as_fd().is_none());
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn bind(&self) -> Result<(), RunError> {
        let Some(core) = self.core else {
            return Ok(());
        };
        let mut cores = CpuSet::new();
        let bound = match core < CpuSet::MAX_CPU {
            true => {
                cores.set(core);
                sched_setaffinity(None, &cores)
            }
            false => Err(Errno::INVAL),
        };
        bound.map_err(|error| RunError::Core {
            core,
            error: error.into(),
        })
    }

    /// Receives frames from ports and from other threads, with busy polling if that is worthwhile. Returns whether there may be
    /// more.
    fn poll(&mut self) -> bool {
        let mut bursts = 0;
        loop {
            let polled = self.poll_once();
            let now = self.now();
            let keeps_polling = self.busy_poll.keeps_polling(polled.has_input, now);
            let hold = self.busy_poll.hold(keeps_polling);
            self.part.forwarder.flush(hold, now);
            let keeps_polling = keeps_polling || polled.may_have_more;
            bursts += usize::from(polled.has_input);
            if !keeps_polling || bursts == BURSTS {
                return keeps_polling;
            }
        }
    }

    fn poll_once(&mut self) -> Polled {
        let now = self.now();
        let Part {
            forwarder,
            inbox,
            uplink,
            ..
        } = &mut self.part;
        inbox.exchange(&mut self.parcels);
        self.parcels
            .iter()
            .for_each(|parcel| forwarder.deliver(parcel));
        let mut polled = forwarder.poll_ports(uplink, now);
        polled.has_input |= !self.parcels.is_empty();
        polled
    }

    fn timeout(&self, is_busy: bool) -> Duration {
        match (
            is_busy || !self.part.inbox.may_wait(),
            self.has_silent_ports || self.part.forwarder.ports.has_unsent(),
        ) {
            (true, _) => Duration::ZERO,
            (false, true) => POLL_INTERVAL,
            (false, false) => self.next_look.saturating_sub(self.now()),
        }
    }
}

impl Crew {
    /// Starts a thread for each worker.
    ///
    /// # Errors
    /// [`RunError::Io`] if the system cannot create a thread; threads that have started are stopped.
    pub fn start(workers: Vec<Worker>, stop: StopHandle) -> Result<Self, RunError> {
        let mut crew = Self {
            threads: Vec::new(),
            stop,
        };
        for (number, worker) in (1..).zip(workers) {
            let end = StopAtEnd(crew.stop.clone());
            let thread = std::thread::Builder::new().name(format!("worker {number}"));
            let spawned = thread.spawn(move || {
                let _end = end;
                worker.run()
            });
            match spawned {
                Ok(thread) => crew.threads.push(thread),
                Err(error) => {
                    let refused = RunError::io("start a thread")(error);
                    return crew.join().and(Err(refused));
                }
            }
        }
        Ok(crew)
    }

    /// Stops all threads and waits until they have ended.
    ///
    /// # Errors
    /// The first failure of a thread.
    ///
    /// # Panics
    /// If one of them has panicked.
    pub fn join(self) -> Result<(), RunError> {
        self.stop.stop();
        let mut result = Ok(());
        for thread in self.threads {
            match thread.join() {
                Ok(ended) => result = result.and(ended),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        result
    }
}

/// Stops all threads on drop, which is when one of them ends.
struct StopAtEnd(StopHandle);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}
