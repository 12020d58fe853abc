//! Inspecting and changing a running switch from other threads.
//!
//! **How.** Ports and controllers belong to the runner's thread: requests for them are sent to it, and handled between two
//! iterations. Flow entries, tables and meters are read by the caller's thread, flow entries in steps, so that neither
//! packets nor controllers wait for the reader.

use super::addresses::NewAddress;
use super::remote_error::{PATIENCE, RemoteError};
use super::status::count_in_pipeline;
use super::{Runner, SwitchStatus};
use crate::shared::Shared;
use crate::{PortIo, PortQueues, QueueError};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use urtica_pipeline::{Explanation, FlowEntry, FlowWalk};
use urtica_socket::Address;
use urtica_wire::{FlowStats, FlowStatsRequest, PortNo, TableStats};

/// Number of flow entries visited before others may change entries.
const LOOKS: usize = 512;

/// Interval of checks whether a change has ended.
const CHANGE_WAIT: Duration = Duration::from_millis(1);

/// A task for the runner's thread.
type Task = Box<dyn FnOnce(&mut Runner) + Send>;

/// The queue of tasks.
pub(super) struct Tasks {
    sender: Sender<Task>,
    receiver: Receiver<Task>,
    bell: Arc<OwnedFd>,
}

/// A handle to inspect and change a running switch, from any thread.
#[derive(Clone)]
pub struct Remote {
    tasks: Sender<Task>,
    bell: Arc<OwnedFd>,
    shared: Arc<Shared>,
}

impl Tasks {
    /// Creates an empty queue.
    ///
    /// # Errors
    /// The system's, if it cannot create an eventfd.
    pub fn new() -> Result<Self, Errno> {
        let (sender, receiver) = mpsc::channel();
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            sender,
            receiver,
            bell: Arc::new(bell),
        })
    }

    /// Returns a function that wakes the runner's thread, from any thread.
    pub fn waker(&self) -> Box<dyn Fn() + Send> {
        let bell = Arc::clone(&self.bell);
        Box::new(move || {
            // This fails only if the counter is at its limit, and so already readable.
            let _ = rustix::io::write(&*bell, &1_u64.to_ne_bytes());
        })
    }

    /// Returns the descriptor that becomes readable when there are tasks.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Runner {
    /// Executes the tasks of other threads.
    pub(super) fn carry_out_tasks(&mut self) {
        // This fails only if it is already silent.
        let _ = rustix::io::read(self.tasks.bell(), &mut [0_u8; 8]);
        while let Ok(task) = self.tasks.receiver.try_recv() {
            task(self);
        }
    }
}

impl Remote {
    pub(super) fn new(tasks: &Tasks, shared: Arc<Shared>) -> Self {
        Self {
            tasks: tasks.sender.clone(),
            bell: Arc::clone(&tasks.bell),
            shared,
        }
    }

    /// Returns ports, controllers and counts of dropped packets.
    ///
    /// # Errors
    /// [`RemoteError::Ended`], [`RemoteError::NoAnswer`].
    pub fn status(&self) -> Result<SwitchStatus, RemoteError> {
        let mut status = self.call(|runner| runner.status())?;
        count_in_pipeline(&mut status.drops, &self.shared.pipeline());
        Ok(status)
    }

    /// Returns the counters of each table that has entries, or has looked up a packet; `max_entries` is set.
    pub fn tables(&self) -> Vec<TableStats> {
        let pipeline = self.shared.pipeline();
        let max_entries = pipeline.config().max_entries;
        let tables = pipeline.table_stats();
        let used = tables.filter(|table| table.active_count > 0 || table.lookup_count > 0);
        used.map(|table| TableStats {
            max_entries,
            ..table
        })
        .collect()
    }

    /// Describes the compiled form of each table; `None` if tables are not compiled.
    ///
    /// Cost: visits each entry, and delays changes during that time.
    pub fn explain(&self) -> Option<Explanation> {
        self.shared.pipeline().explain(false)
    }

    /// Returns the flow entries that a request selects, in steps ([`FlowWalk`]). If a controller's change is being made in
    /// steps, waits for its end.
    ///
    /// # Errors
    /// [`RemoteError::Request`] if the match or table is invalid, and errors if the switch does not answer.
    pub fn flows(&self, request: &FlowStatsRequest) -> Result<Flows, RemoteError> {
        let now = self.call(|runner| runner.now())?;
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let pipeline = self.shared.pipeline();
            if !pipeline.is_changing() {
                let walk = pipeline.walk_flows(request).map_err(RemoteError::Request)?;
                let shared = Arc::clone(&self.shared);
                return Ok(Flows { walk, shared, now });
            }
            drop(pipeline);
            std::thread::sleep(CHANGE_WAIT);
        }
        Err(RemoteError::NoAnswer)
    }

    /// Adds an opened port, with this number, or the number that its name has had, or an unused one. Controllers are notified.
    /// Returns the number.
    ///
    /// # Errors
    /// [`RemoteError`] if another port has the name or number.
    pub fn add_port(
        &self,
        number: Option<PortNo>,
        port: Box<dyn PortIo>,
    ) -> Result<PortNo, RemoteError> {
        self.call(move |runner| runner.add_port(number, port))?
    }

    /// Removes the port with this number or name, and waits until it is closed. Controllers are notified; entries that refer to
    /// the port stay. Returns its number.
    ///
    /// # Errors
    /// [`RemoteError::NoPort`], and errors if the switch does not answer.
    pub fn remove_port(&self, port: &str) -> Result<PortNo, RemoteError> {
        let port = port.to_owned();
        let (port_no, is_closed) = self.call(move |runner| runner.remove_port(&port))??;
        match is_closed.recv_timeout(PATIENCE) {
            Err(RecvTimeoutError::Timeout) => Err(RemoteError::NoAnswer),
            _ => Ok(port_no),
        }
    }

    /// Changes the queues of the port with this number or name, while packets pass: see
    /// [`Switch::change_queues`](crate::Switch::change_queues).
    /// Returns its number.
    ///
    /// # Errors
    /// [`RemoteError::Queue`], and errors if the switch does not answer.
    pub fn change_queues(
        &self,
        port: &str,
        change: impl FnOnce(PortNo, &mut PortQueues) -> Result<(), QueueError> + Send + 'static,
    ) -> Result<PortNo, RemoteError> {
        let port = port.to_owned();
        self.call(move |runner| runner.change_queues(&port, change))?
    }

    /// Adds a controller: connects to an active address, which is first resolved, or listens at a passive one.
    ///
    /// # Errors
    /// [`RemoteError`] if the address cannot be used, or was already added.
    pub fn add_controller(&self, address: &Address) -> Result<(), RemoteError> {
        match NewAddress::open(address)? {
            NewAddress::Listener(listener) => {
                self.call(|runner| runner.controllers.add_listener(listener))?
            }
            NewAddress::Target(target) => self.call(|runner| runner.add_target(target))?,
        }
    }

    /// Removes a controller, by its address as in [`Remote::status`], and closes the resulting connections.
    ///
    /// # Errors
    /// [`RemoteError::NoController`], and errors if the switch does not answer.
    pub fn remove_controller(&self, address: &Address) -> Result<(), RemoteError> {
        let address = address.clone();
        self.call(move |runner| runner.remove_controller(&address))?
    }

    /// Runs `question` on the runner's thread, and waits for the result.
    fn call<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Runner) -> T + Send + 'static,
    ) -> Result<T, RemoteError> {
        let (answer, answered) = mpsc::channel();
        let task = move |runner: &mut Runner| {
            // The caller may no longer be waiting.
            let _ = answer.send(question(runner));
        };
        let sent = self.tasks.send(Box::new(task));
        sent.map_err(|_| RemoteError::Ended)?;
        // This fails only if the counter is at its limit, and so already readable.
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
        answered
            .recv_timeout(PATIENCE)
            .map_err(|error| match error {
                RecvTimeoutError::Timeout => RemoteError::NoAnswer,
                RecvTimeoutError::Disconnected => RemoteError::Ended,
            })
    }
}

/// An iterator over flow entries, in steps.
pub struct Flows {
    walk: FlowWalk,
    shared: Arc<Shared>,
    now: Duration,
}

impl Iterator for Flows {
    /// The entries of one step, possibly none although more follow. An error is the last item.
    type Item = Result<Vec<FlowStats<'static>>, RemoteError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.walk.is_over() {
            return None;
        }
        let pipeline = self.shared.pipeline();
        let found = self.walk.go_on(&pipeline, &mut LOOKS.clone());
        drop(pipeline);
        let rows = |found: Vec<Arc<FlowEntry>>| {
            let rows = found.iter().map(|entry| entry.to_stats(self.now));
            rows.collect()
        };
        Some(found.map(rows).map_err(RemoteError::ViewLost))
    }
}

#[cfg(test)]
mod tests;
