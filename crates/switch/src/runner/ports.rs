//! Adding and removing ports while a switch runs.
//!
//! **Numbers.** Flow entries refer to ports by number, and stay when a port is removed. So a number belongs to the name that
//! had it first: a port that is added again under its name gets it again, and a port with another name never gets it unless
//! the number is specified.
//!
//! **Threads.** Each forwarding thread has a table of all ports, and receives changes of it ([`PortChange`]). A new port
//! belongs to the thread with the fewest ports.

use super::{RemoteError, Runner, Source};
use crate::mailbox::Mailbox;
use crate::parcel::Inbox;
use crate::port_queues::QueueChange;
use crate::port_table::SwitchPort;
use crate::spread::{Part, PortChange};
use crate::{PortIo, PortQueues, QueueError, Switch};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use urtica_socket::EventFlags;
use urtica_wire::{PortNo, PortReason};

/// Maximum number of names whose numbers are kept.
const MAX_NAMES: usize = 1 << 16;

/// The state of ports that forwarding does not need.
pub(super) struct RunPorts {
    /// The number that each name has or had. Another thread reads the numbers to save them.
    pub numbers: Arc<Mutex<BTreeMap<String, PortNo>>>,
    workers: Vec<WorkerPorts>,
}

/// The ports of one forwarding thread.
struct WorkerPorts {
    inbox: Arc<Inbox>,
    changes: Arc<Mailbox<PortChange>>,
    own: BTreeSet<PortNo>,
}

impl RunPorts {
    /// Creates the state for a switch that has not been spread over threads.
    pub fn new(switch: &Switch) -> Self {
        // The LOCAL port's number belongs to no name: another run may have an ordinary port with its name.
        let ports = switch.ports().filter(|(no, _)| *no != PortNo::LOCAL);
        let numbers = ports.map(|(no, io)| (io.name().to_owned(), no)).collect();
        Self {
            numbers: Arc::new(Mutex::new(numbers)),
            workers: Vec::new(),
        }
    }

    /// Notes the initial ports of a thread.
    pub fn note_worker(&mut self, part: &Part) {
        let own = part.forwarder.ports.iter();
        let own = own.filter(|port| port.io().is_some());
        self.workers.push(WorkerPorts {
            inbox: Arc::clone(&part.inbox),
            changes: Arc::clone(&part.changes),
            own: own.map(|port| port.port_no).collect(),
        });
    }

    /// Returns the number for a port with this name, if the caller does not specify one.
    ///
    /// # Errors
    /// [`RemoteError::TooManyNames`] if ports have had too many names.
    fn number_for(
        &self,
        name: &str,
        is_taken: impl Fn(PortNo) -> bool,
    ) -> Result<PortNo, RemoteError> {
        let numbers = self.numbers.lock();
        match numbers.get(name) {
            Some(&number) if !is_taken(number) => return Ok(number),
            None if numbers.len() >= MAX_NAMES => return Err(RemoteError::TooManyNames),
            _ => {}
        }
        let used: BTreeSet<_> = numbers.values().copied().collect();
        let mut free = (1..).map(PortNo);
        let free = free.find(|number| !used.contains(number) && !is_taken(*number));
        free.ok_or(RemoteError::TooManyNames)
    }
}

impl Runner {
    /// Adds a port with this number, or with one that no other name has had. Controllers are notified.
    ///
    /// # Errors
    /// [`RemoteError`] if another port has the name or number.
    pub(super) fn add_port(
        &mut self,
        number: Option<PortNo>,
        io: Box<dyn PortIo>,
    ) -> Result<PortNo, RemoteError> {
        let port_no = self.choose_number(number, io.name())?;
        if let Some(fd) = io.as_fd().filter(|_| self.ports.workers.is_empty()) {
            let watched = self.poller.add(fd, Source::Port.key(), EventFlags::IN);
            watched.map_err(super::RunError::io("watch the port"))?;
        }
        tracing::info!(port = %port_no, name = io.name(), hw_addr = %io.hw_addr(), "port added");
        let name = io.name().to_owned();
        self.ports.numbers.lock().insert(name, port_no);
        match self.ports.workers.is_empty() {
            true => {
                self.has_silent_ports |= io.as_fd().is_none();
                self.switch.add_port(port_no, io, self.now());
            }
            false => self.add_port_to_workers(port_no, io),
        }
        Ok(port_no)
    }

    fn choose_number(&self, number: Option<PortNo>, name: &str) -> Result<PortNo, RemoteError> {
        let pipeline = self.switch.shared.pipeline();
        let mut ports = pipeline.ports();
        if let Some(port) = ports.find(|port| port.name.to_string() == name) {
            return Err(RemoteError::NameTaken(name.to_owned(), port.port_no));
        }
        match number {
            Some(number) if number.0 == 0 || number.is_reserved() => {
                Err(RemoteError::BadNumber(number))
            }
            Some(number) if pipeline.port(number).is_some() => {
                Err(RemoteError::NumberTaken(number))
            }
            Some(number) => Ok(number),
            None => {
                let is_taken = |number| pipeline.port(number).is_some();
                self.ports.number_for(name, is_taken)
            }
        }
    }

    fn add_port_to_workers(&mut self, port_no: PortNo, io: Box<dyn PortIo>) {
        let workers = &mut self.ports.workers;
        let fewest = (0..workers.len()).min_by_key(|&at| workers[at].own.len());
        let owner = fewest.unwrap_or(0);
        workers[owner].own.insert(port_no);
        let inboxes: Vec<_> = workers.iter().map(|one| Arc::clone(&one.inbox)).collect();
        let now = self.started.elapsed();
        let (port, description) = SwitchPort::new(port_no, io, now);
        let port = self.switch.with_its_queues(port, &description, now);
        let all = self.switch.deal(port, owner, &inboxes);
        for (worker, port) in self.ports.workers.iter().zip(all) {
            worker.tell(PortChange::Add(port));
        }
        self.switch.set_port(PortReason::Add, description);
    }

    /// Removes the port with this number or name. Controllers are notified. The returned receiver is disconnected when all
    /// threads have removed the port, and it is closed.
    ///
    /// # Errors
    /// [`RemoteError::NoPort`], and [`RemoteError::LocalStays`].
    pub(super) fn remove_port(
        &mut self,
        port: &str,
    ) -> Result<(PortNo, Receiver<()>), RemoteError> {
        let port_no = self.find_port(port)?;
        if port_no == PortNo::LOCAL {
            return Err(RemoteError::LocalStays);
        }
        if let Some(fd) = self.own_port(port_no).and_then(PortIo::as_fd) {
            self.poller.delete(fd);
        }
        let now = self.now();
        drop(self.switch.remove_port(port_no, now));
        self.has_silent_ports = self.switch.ports().any(|(_, io)| io.as_fd().is_none());
        let (done, is_done) = channel();
        for worker in &mut self.ports.workers {
            worker.own.remove(&port_no);
            worker.tell(PortChange::Remove {
                port_no,
                _done: done.clone(),
            });
        }
        tracing::info!(port = %port_no, "port removed");
        Ok((port_no, is_done))
    }

    /// Changes the queues of a port: see [`Switch::change_queues`].
    ///
    /// # Errors
    /// [`RemoteError::Queue`].
    pub(super) fn change_queues(
        &mut self,
        port: &str,
        change: impl FnOnce(PortNo, &mut PortQueues) -> Result<(), QueueError>,
    ) -> Result<PortNo, RemoteError> {
        let now = self.now();
        let (port_no, change) = self.switch.change_own_queues(port, change, now)?;
        if let Some(QueueChange { port_no, queues }) = change {
            let ports = &mut self.switch.forwarder.ports;
            ports.set_queues(port_no, queues.clone());
            for worker in &self.ports.workers {
                let queues = queues.clone();
                worker.tell(PortChange::Queues { port_no, queues });
            }
        }
        Ok(port_no)
    }

    fn find_port(&self, port: &str) -> Result<PortNo, RemoteError> {
        let pipeline = self.switch.shared.pipeline();
        let by_number = port.parse().ok().and_then(|no| pipeline.port(no));
        let mut ports = pipeline.ports();
        let found = by_number.or_else(|| ports.find(|one| one.name.to_string() == port));
        let found = found.map(|found| found.port_no);
        found.ok_or_else(|| RemoteError::NoPort(port.to_owned()))
    }

    /// Returns the port's back end, if it belongs to this thread.
    fn own_port(&self, port_no: PortNo) -> Option<&dyn PortIo> {
        let mut ports = self.switch.ports();
        ports.find(|&(no, _)| no == port_no).map(|(_, io)| io)
    }
}

impl WorkerPorts {
    fn tell(&self, change: PortChange) {
        // The mailbox is only full if the thread has ended, and with it the switch.
        let _ = self.changes.put(change, 1);
    }
}
