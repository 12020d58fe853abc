//! The connections to controllers: those that the switch initiates, and those that it accepts.
//!
//! This module only moves bytes; the [`Switch`] that each call gets interprets them.

use super::source::Source;
use super::{RunError, Target};
use crate::{ConnectionId, Switch};
use slab::Slab;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use urtica_socket::{
    Accepted, Acceptor, Certificate, EventFlags, ListenerId, Poller, Stream, TlsError, is_try_again,
};

/// Maximum number of bytes read from one controller per iteration.
const READ_BYTES: usize = 64 << 10;

/// The controllers to which a switch connects, the addresses at which it listens, and the connections.
pub(super) struct Controllers {
    poller: Arc<Poller>,
    /// The listeners. Their numbers, like those of `targets`, are not reused, so that an event for a removed one is ignored.
    pub listeners: BTreeMap<usize, ListenerId>,
    pub acceptor: Acceptor,
    pub targets: BTreeMap<usize, Target>,
    next_number: usize,
    pub connections: Slab<Connection>,
    /// Buffer for reads.
    input: Vec<u8>,
}

/// A connection to a controller, active or passive.
pub(super) struct Connection {
    pub stream: Stream,
    pub id: ConnectionId,
    pub peer: String,
    /// The number of the target, if the switch has initiated the connection.
    pub target: Option<usize>,
    pub since: Duration,
    /// The events for which its socket is watched.
    interest: EventFlags,
}

impl Controllers {
    /// Creates the state without controllers; this poller will watch their sockets.
    pub fn new(poller: Arc<Poller>) -> Result<Self, RunError> {
        Ok(Self {
            poller,
            listeners: BTreeMap::new(),
            acceptor: Acceptor::new().map_err(RunError::io("create an epoll instance"))?,
            targets: BTreeMap::new(),
            next_number: 0,
            connections: Slab::new(),
            input: vec![0; READ_BYTES],
        })
    }

    /// Returns an unused number for a listener or a target.
    pub fn take_number(&mut self) -> usize {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    /// Abandons connection attempts that were not answered, and starts those that are due.
    pub fn try_targets(&mut self, now: Duration) {
        let numbers: Vec<_> = self.targets.keys().copied().collect();
        for index in numbers {
            if self.targets[&index].is_overdue(now) {
                self.retry_later(index, "it does not answer", now);
            }
            if self.targets[&index].is_due(now) {
                self.connect(index, now);
            }
        }
    }

    fn connect(&mut self, index: usize, now: Duration) {
        let Some(target) = self.targets.get_mut(&index) else {
            return;
        };
        let connecting = target.connect(now);
        let key = Source::Target(index).key();
        let watched = connecting.and_then(|socket| self.poller.add(socket, key, EventFlags::OUT));
        if let Err(error) = watched {
            self.retry_later(index, &error.to_string(), now);
        }
    }

    /// Continues when a controller has accepted or refused a connection.
    pub fn finish_connect(&mut self, index: usize, switch: &mut Switch, now: Duration) {
        let Some(target) = self.targets.get_mut(&index) else {
            return;
        };
        match target.finish(now) {
            Ok(socket) => {
                let peer = target.address.to_string();
                let is_tls = target.address.is_tls();
                // The socket was watched for the target, and is watched for the connection from now on.
                self.poller.delete(&socket);
                if !is_tls {
                    return self.adopt(socket.into(), peer, Some(index), switch, now);
                }
                let begun = self.acceptor.connect(socket, peer, index, Instant::now());
                begun
                    .into_iter()
                    .for_each(|one| self.handle_accepted(one, switch, now));
            }
            Err(error) => self.retry_later(index, &error.to_string(), now),
        }
    }

    fn retry_later(&mut self, index: usize, reason: &str, now: Duration) {
        let Some(target) = self.targets.get_mut(&index) else {
            return;
        };
        target.note_failure(reason);
        let delay = target.fail(now);
        let retry_in_ms = delay.as_millis() as u64;
        urtica_log::info!(about: index, controller = %target.address, reason, retry_in_ms, "cannot connect to the controller; retrying");
    }

    /// Handles the connections that are ready.
    pub fn accept(&mut self, switch: &mut Switch, now: Duration) {
        for accepted in self.acceptor.poll(Instant::now()) {
            self.handle_accepted(accepted, switch, now);
        }
    }

    fn handle_accepted(&mut self, accepted: Accepted, switch: &mut Switch, now: Duration) {
        match accepted {
            Accepted::Connection {
                tag: Some(index), ..
            }
            | Accepted::Refused {
                tag: Some(index), ..
            } if !self.targets.contains_key(&index) => {}
            Accepted::Connection { stream, peer, tag } => {
                self.adopt(stream, peer, tag, switch, now);
            }
            Accepted::Refused { peer, tag, reason } => {
                self.note_refusal(&peer, tag, &reason, now);
            }
            Accepted::Paused(error) => {
                urtica_log::warn!(about: "accepting", %error, "cannot accept connections from controllers");
            }
            Accepted::Notice(notice) if notice.is_warning() => tracing::warn!("TLS: {notice}"),
            Accepted::Notice(notice) => tracing::info!("TLS: {notice}"),
        }
    }

    fn note_refusal(
        &mut self,
        peer: &str,
        target: Option<usize>,
        reason: &TlsError,
        now: Duration,
    ) {
        match target {
            Some(index) => {
                if reason.is_warning() {
                    tracing::warn!("TLS: {reason}");
                }
                self.retry_later(index, &reason.to_string(), now);
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
    fn adopt(
        &mut self,
        stream: Stream,
        peer: String,
        target: Option<usize>,
        switch: &mut Switch,
        now: Duration,
    ) {
        let certificate = stream.certificate().map(Certificate::to_string);
        urtica_log::info!(about: urtica_log::without_port(&peer), controller = peer, certificate, "connected");
        let has_input = stream.has_input();
        let id = switch.connect(peer.clone(), now);
        let key = self.connections.insert(Connection {
            stream,
            id,
            peer,
            target,
            since: now,
            interest: EventFlags::IN,
        });
        let connection = &self.connections[key];
        let source = Source::Connection(key);
        match self
            .poller
            .add(&connection.stream, source.key(), connection.interest)
        {
            Ok(()) if has_input => self.read(key, switch, now),
            Ok(()) => {}
            Err(error) => self.close(key, &error.to_string(), switch, now),
        }
    }

    /// Reads from a controller. Events for writing are left to [`Controllers::send_output`].
    pub fn read(&mut self, key: usize, switch: &mut Switch, now: Duration) {
        let is_read = |one: &&mut Connection| one.interest.contains(EventFlags::IN);
        let Some(connection) = self.connections.get_mut(key).filter(is_read) else {
            return;
        };
        let received = connection.stream.read(&mut self.input);
        let id = connection.id;
        let outcome = match received {
            Ok(0) => Err("the controller closed the connection".to_owned()),
            Ok(len) => {
                let handled = switch.handle_input(id, &self.input[..len], now);
                handled.map_err(|error| error.to_string())
            }
            Err(error) if is_try_again(&error) => Ok(()),
            Err(error) => Err(format!("the connection failed: {error}")),
        };
        if let Err(reason) = outcome {
            self.close(key, &reason, switch, now);
        }
    }

    /// Sends their output to all controllers.
    pub fn send_output(&mut self, switch: &mut Switch, now: Duration) {
        let mut failed = Vec::new();
        for (key, connection) in &mut self.connections {
            let sent = send_some(switch, connection)
                .and_then(|()| watch(&self.poller, switch, key, connection));
            if let Err(error) = sent {
                failed.push((key, format!("the connection failed: {error}")));
            }
        }
        for (key, reason) in failed {
            self.close(key, &reason, switch, now);
        }
    }

    /// Closes the connection with this id.
    pub fn end(&mut self, id: ConnectionId, reason: &str, switch: &mut Switch, now: Duration) {
        let mut connections = self.connections.iter();
        let found = connections.find(|(_, connection)| connection.id == id);
        if let Some((key, _)) = found {
            self.close(key, reason, switch, now);
        }
    }

    pub(super) fn close(&mut self, key: usize, reason: &str, switch: &mut Switch, now: Duration) {
        let mut connection = self.connections.remove(key);
        // This sends the last output, such as an OFPT_ERROR, if the socket accepts it.
        let _ = send_some(switch, &mut connection);
        switch.disconnect(connection.id, now);
        urtica_log::info!(about: urtica_log::without_port(&connection.peer), controller = connection.peer, reason, "disconnected");
        if let Some(index) = connection.target {
            self.retry_later(index, reason, now);
        }
    }

    /// Closes all connections, without reconnecting.
    pub fn close_all(&mut self, switch: &mut Switch, now: Duration) {
        let keys: Vec<_> = self.connections.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.connections[key].target = None;
            self.close(key, "the switch stops", switch, now);
        }
    }
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
    poller: &Poller,
    switch: &mut Switch,
    key: usize,
    connection: &mut Connection,
) -> io::Result<()> {
    let id = connection.id;
    let has_output = switch.output(id).is_some_and(|output| !output.is_empty());
    let is_waiting = has_output || connection.stream.has_unsent();
    let mut interest = EventFlags::empty();
    interest.set(EventFlags::IN, switch.wants_input(id));
    interest.set(EventFlags::OUT, is_waiting);
    if connection.interest == interest {
        return Ok(());
    }
    connection.interest = interest;
    poller.modify(&connection.stream, Source::Connection(key).key(), interest)
}
