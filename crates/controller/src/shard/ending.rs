//! Closed connections, which may still have messages on their way to the sockets.
//!
//! A switch may send its last requests and close its side at once: it has disconnected, but our answers must still reach it.
//! Dropping the connection would lose answers that a kernel half has not written, or the switch has not read. The kernel half
//! needs microseconds, or milliseconds on a busy machine, and does not report when it is done, so each connection is checked
//! again, at growing intervals.

use super::{EVENTS, STOPPED, Shard, TICK};
use crate::batch::BatchContext;
use crate::connection::{Close, Connection, Interest};
use std::io;
use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};

/// The maximum time that a closed connection waits, since a switch may read nothing.
const LIMIT: Duration = Duration::from_secs(5);

/// The minimum interval between two checks.
const INTERVAL: Duration = Duration::from_millis(1);

/// A shard's closed connections with unsent answers.
#[derive(Default)]
pub(super) struct Ending(Vec<Closed>);

struct Closed {
    connection: Box<Connection>,
    /// Whether everything must be sent, since the switch closed the connection.
    sends_all: bool,
    since: Instant,
    next_check: Instant,
}

impl Closed {
    /// Returns whether the connection has ended; ends it if its time is over.
    fn has_ended(&mut self, now: Instant, batch: &BatchContext) -> bool {
        if now < self.next_check {
            return false;
        }
        if self.connection.finish(self.sends_all, batch) {
            return true;
        }
        let waited = now.saturating_duration_since(self.since);
        self.next_check = now + INTERVAL.max(waited / 4);
        if waited >= LIMIT {
            self.connection.abandon();
        }
        waited >= LIMIT
    }
}

impl Ending {
    /// Closes a connection, whose answers may still be unsent.
    pub fn close(
        &mut self,
        mut connection: Box<Connection>,
        close: &Close,
        batch: &mut BatchContext,
    ) {
        let sends_all = matches!(close, Close::ByPeer);
        connection.close(close, batch);
        if !connection.finish(sends_all, batch) {
            let since = Instant::now();
            self.0.push(Closed {
                connection,
                sends_all,
                since,
                next_check: since + INTERVAL,
            });
        }
    }

    /// Checks the connections that are due.
    pub fn check(&mut self, now: Instant, batch: &BatchContext) {
        self.0.retain_mut(|closed| !closed.has_ended(now, batch));
    }

    /// Returns the time of the next check, or `or` if that is earlier.
    pub fn next_check(&self, or: Instant) -> Instant {
        let checks = self.0.iter().map(|closed| closed.next_check);
        checks.fold(or, Instant::min)
    }

    /// Waits until all have ended, for `limit` at most; then ends the rest.
    pub fn wait_for_all(&mut self, limit: Duration, batch: &BatchContext) {
        let start = Instant::now();
        while !self.0.is_empty() && start.elapsed() < limit {
            let now = Instant::now();
            thread::sleep(self.next_check(now + LIMIT).saturating_duration_since(now));
            self.check(Instant::now(), batch);
        }
        let rest = self.0.drain(..);
        rest.for_each(|mut closed| closed.connection.abandon());
    }

    /// Leaves held connections to the next program, which ends them, and drops the others.
    pub fn leave_all(&mut self) {
        self.0
            .drain(..)
            .for_each(|mut closed| closed.connection.leave_closed());
    }
}

impl Shard {
    /// Closes the connections that their peers have closed, after sending their handlers' messages from the mailbox.
    pub(super) fn close_left(&mut self) -> ControlFlow<()> {
        if self.left.is_empty() {
            return ControlFlow::Continue(());
        }
        let stop = self.handle_commands();
        for token in std::mem::take(&mut self.left) {
            if let Some(&key) = self.by_token.get(&token) {
                self.close(key, &Close::ByPeer);
            }
        }
        stop
    }

    /// Closes each connection once its output is empty, and all at the time-out.
    pub(super) fn drain(&mut self, timeout: Duration) -> io::Result<()> {
        // `None` if the deadline is beyond the range of `Instant`.
        let deadline = Instant::now().checked_add(timeout);
        let mut events = Vec::with_capacity(EVENTS);
        self.poller.delete(self.mailbox().wakeup());
        self.stop_where(|connection| !connection.is_waiting());
        for key in self.keys() {
            // No more input is read.
            self.watch(key, Interest::OUTPUT);
        }
        while !self.connections.is_empty() && deadline.is_none_or(|until| self.batch.now < until) {
            self.next_tick = self.batch.now + TICK;
            self.wait(&mut events)?;
            for event in &events {
                self.send_last(event.data.u64() as usize);
            }
            self.stop_where(|connection| !connection.is_waiting());
        }
        Ok(())
    }

    /// Closes or leaves all connections, including connections just handed over by other shards. No more will arrive.
    pub(super) fn close_all(&mut self, drain_timeout: Duration) {
        if self.is_leaving {
            for key in self.keys() {
                self.detach(key).leave(&mut self.batch);
            }
        }
        self.stop_where(|_| true);
        self.batch.network.end_shard(self.batch.shard);
        let (ending, batch) = (&mut self.ending, &mut self.batch);
        for mut connection in self.queues[batch.shard].take_all() {
            match self.is_leaving {
                true => connection.leave(batch),
                false => ending.close(connection, &STOPPED, batch),
            }
        }
        match self.is_leaving {
            true => ending.leave_all(),
            false => ending.wait_for_all(drain_timeout, batch),
        }
    }

    fn send_last(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        if let Err(close) = connection.flush_backlog(&self.batch) {
            self.close(key, &close);
        }
    }

    fn stop_where(&mut self, is_done: impl Fn(&Connection) -> bool) {
        for key in self.keys() {
            if is_done(&self.connections[key]) {
                self.close(key, &STOPPED);
            }
        }
    }
}
