//! How other threads look into a running switch, and change it.
//!
//! **How.** Ports and controllers belong to the runner's thread: what is wanted of them is sent there, and carried out between two
//! iterations. Flow entries, tables and meters are read on the caller's thread, flow entries some at a time, so that neither
//! packets nor controllers wait for who reads them.

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

/// At how many flow entries is looked before others may change them.
const LOOKS: usize = 512;

/// After how long it is looked again whether a change has come to its end.
const CHANGE_WAIT: Duration = Duration::from_millis(1);

/// Something to do.
type Task = Box<dyn FnOnce(&mut Runner) + Send>;

/// What is to be done, and where it comes from.
pub(super) struct Tasks {
    sender: Sender<Task>,
    receiver: Receiver<Task>,
    bell: Arc<OwnedFd>,
}

/// Looks into a running switch and changes it, from any thread.
#[derive(Clone)]
pub struct Remote {
    tasks: Sender<Task>,
    bell: Arc<OwnedFd>,
    shared: Arc<Shared>,
}

impl Tasks {
    /// None yet.
    ///
    /// # Errors
    /// The system's, if it gives no eventfd.
    pub fn new() -> Result<Self, Errno> {
        let (sender, receiver) = mpsc::channel();
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            sender,
            receiver,
            bell: Arc::new(bell),
        })
    }

    /// Wakes the runner's thread, from any thread.
    pub fn waker(&self) -> Box<dyn Fn() + Send> {
        let bell = Arc::clone(&self.bell);
        Box::new(move || {
            // Fails only where the count is at its limit, and so readable already.
            let _ = rustix::io::write(&*bell, &1_u64.to_ne_bytes());
        })
    }

    /// What becomes readable when there are some.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Runner {
    /// Does what other threads want done.
    pub(super) fn carry_out_tasks(&mut self) {
        // Fails only where it is silent.
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

    /// Ports, controllers and what was dropped.
    ///
    /// # Errors
    /// [`RemoteError::Ended`], [`RemoteError::NoAnswer`].
    pub fn status(&self) -> Result<SwitchStatus, RemoteError> {
        let mut status = self.ask(|runner| runner.status())?;
        count_in_pipeline(&mut status.drops, &self.shared.pipeline());
        Ok(status)
    }

    /// What each table that has entries, or was asked for a packet, has counted; `max_entries` is filled in.
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

    /// What each table was compiled to; `None` where tables are not compiled.
    ///
    /// Cost: a look at each entry, during which no entry changes.
    pub fn explain(&self) -> Option<Explanation> {
        self.shared.pipeline().explain(false)
    }

    /// The flow entries that a request asks for, as they are now, some at a time ([`FlowWalk`]). It waits for the end of a
    /// controller's change that is made in steps.
    ///
    /// # Errors
    /// [`RemoteError::Request`] where the match or table is wrong, and where the switch does not answer.
    pub fn flows(&self, request: &FlowStatsRequest) -> Result<Flows, RemoteError> {
        let now = self.ask(|runner| runner.now())?;
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

    /// Adds a port that was opened, with this number, or with the one that its name has had, or with one that none has had.
    /// Controllers are told. Returns the number.
    ///
    /// # Errors
    /// [`RemoteError`] where the name or number is taken.
    pub fn add_port(
        &self,
        number: Option<PortNo>,
        port: Box<dyn PortIo>,
    ) -> Result<PortNo, RemoteError> {
        self.ask(move |runner| runner.add_port(number, port))?
    }

    /// Takes away the port with this number or name, and waits until it is closed. Controllers are told; entries that name it stay.
    /// Returns its number.
    ///
    /// # Errors
    /// [`RemoteError::NoPort`], and where the switch does not answer.
    pub fn remove_port(&self, port: &str) -> Result<PortNo, RemoteError> {
        let port = port.to_owned();
        let (port_no, is_closed) = self.ask(move |runner| runner.remove_port(&port))??;
        match is_closed.recv_timeout(PATIENCE) {
            Err(RecvTimeoutError::Timeout) => Err(RemoteError::NoAnswer),
            _ => Ok(port_no),
        }
    }

    /// Changes the queues of the port with this number or name, while packets pass: see [`Switch::change_queues`](crate::Switch::change_queues).
    /// Returns its number.
    ///
    /// # Errors
    /// [`RemoteError::Queue`], and where the switch does not answer.
    pub fn change_queues(
        &self,
        port: &str,
        change: impl FnOnce(PortNo, &mut PortQueues) -> Result<(), QueueError> + Send + 'static,
    ) -> Result<PortNo, RemoteError> {
        let port = port.to_owned();
        self.ask(move |runner| runner.change_queues(&port, change))?
    }

    /// Adds a controller: connects to an active address, which is looked up first; listens at a passive one.
    ///
    /// # Errors
    /// [`RemoteError`] where the address cannot be used, or is among the controllers.
    pub fn add_controller(&self, address: &Address) -> Result<(), RemoteError> {
        match NewAddress::open(address)? {
            NewAddress::Listener(listener) => self.ask(|runner| runner.add_listener(listener))?,
            NewAddress::Target(target) => self.ask(|runner| runner.add_target(target))?,
        }
    }

    /// Removes a controller, by its address as [`Remote::status`] tells it; the connections that came of it are closed.
    ///
    /// # Errors
    /// [`RemoteError::NoController`], and where the switch does not answer.
    pub fn remove_controller(&self, address: &Address) -> Result<(), RemoteError> {
        let address = address.clone();
        self.ask(move |runner| runner.remove_controller(&address))?
    }

    /// Has the runner's thread do something, and waits for what comes of it.
    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Runner) -> T + Send + 'static,
    ) -> Result<T, RemoteError> {
        let (answer, answered) = mpsc::channel();
        let task = move |runner: &mut Runner| {
            // Whoever asked may have lost patience.
            let _ = answer.send(question(runner));
        };
        let sent = self.tasks.send(Box::new(task));
        sent.map_err(|_| RemoteError::Ended)?;
        // Fails only where the count is at its limit, and so readable already.
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
        answered
            .recv_timeout(PATIENCE)
            .map_err(|error| match error {
                RecvTimeoutError::Timeout => RemoteError::NoAnswer,
                RecvTimeoutError::Disconnected => RemoteError::Ended,
            })
    }
}

/// Flow entries, some at a time.
pub struct Flows {
    walk: FlowWalk,
    shared: Arc<Shared>,
    now: Duration,
}

impl Iterator for Flows {
    /// Maybe none, although there are more. An error is the last.
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
