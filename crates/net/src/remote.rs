//! Switches' connections to an external controller, over TCP or a Unix socket.
//!
//! **What.** Does the work of the switch's own runner, which is to reconnect and to move bytes, for all switches of a network
//! on its one thread. It is polled between two events of the network.
//!
//! **Limits.** Each poll lists all sockets, so this is for dozens of switches, not for thousands.

use crate::SwitchId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::time::Duration;
use urtica_socket::Address;
use urtica_switch::{ConnectionId, Switch, Target};

/// The maximum number of bytes read from one socket at a time.
const READ_BYTES: usize = 64 << 10;

/// All switches' connections.
pub(crate) struct Remotes {
    remotes: Vec<Remote>,
    input: Vec<u8>,
}

/// One switch's connection.
struct Remote {
    target: Target,
    connection: Option<Connection>,
}

struct Connection {
    socket: OwnedFd,
    id: ConnectionId,
}

/// A socket's readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// The connection attempt has an outcome.
    Decided(SwitchId),
    /// It can be read from.
    Readable(SwitchId),
    /// It can be written to.
    Writable(SwitchId),
}

impl Remotes {
    /// Creates unconnected entries for `switches` switches.
    ///
    /// # Errors
    /// If the address cannot be resolved.
    pub fn new(address: &Address, switches: usize) -> io::Result<Self> {
        let remote = || {
            Ok(Remote {
                target: Target::new(address)?,
                connection: None,
            })
        };
        Ok(Self {
            remotes: (0..switches).map(|_| remote()).collect::<io::Result<_>>()?,
            input: vec![0; READ_BYTES],
        })
    }

    /// Starts due connection attempts, and gives up attempts that take too long. Must be called only for a switch that is on.
    pub fn tick(&mut self, switch: SwitchId, now: Duration) {
        let target = &mut self.remotes[switch.place()].target;
        if target.is_overdue(now) {
            target.fail(now);
        }
        if target.is_due(now) && target.connect(now).is_err() {
            target.fail(now);
        }
    }

    /// Waits until sockets are ready, or the time-out; returns the ready ones.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn wait(
        &self,
        timeout: Duration,
        mut wants: impl FnMut(SwitchId, ConnectionId) -> Wants,
    ) -> io::Result<Vec<Ready>> {
        let mut watched = Vec::new();
        let mut sockets = Vec::new();
        for (switch, remote) in (0..).map(SwitchId).zip(&self.remotes) {
            if let Some(connection) = &remote.connection {
                let wants = wants(switch, connection.id);
                watched.push(Watched::Connection(switch));
                sockets.push(PollFd::new(&connection.socket, wants.flags()));
            } else if let Some(socket) = remote.target.connecting() {
                watched.push(Watched::Connecting(switch));
                sockets.push(PollFd::from_borrowed_fd(socket, PollFlags::OUT));
            }
        }
        let timeout = Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        match poll(&mut sockets, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = watched.into_iter().zip(&sockets);
        Ok(ready
            .flat_map(|(watched, socket)| watched.ready(socket.revents()))
            .collect())
    }

    /// Handles the outcome of a connection attempt, and notifies the switch.
    pub fn finish(&mut self, switch: SwitchId, device: &mut Switch, now: Duration) {
        let remote = &mut self.remotes[switch.place()];
        match remote.target.finish(now) {
            Ok(socket) => {
                let peer = remote.target.address.to_string();
                let id = device.connect(peer, now);
                remote.connection = Some(Connection { socket, id });
            }
            Err(_) => drop(remote.target.fail(now)),
        }
    }

    /// Reads once for a switch.
    pub fn read(&mut self, switch: SwitchId, device: &mut Switch, now: Duration) {
        let Some(connection) = &self.remotes[switch.place()].connection else {
            return;
        };
        let received = recv(&connection.socket, &mut self.input[..], RecvFlags::empty());
        let outcome = match received {
            Ok((0, _)) => Err("the controller closed the connection".to_owned()),
            Ok((length, _)) => {
                let handled = device.handle_input(connection.id, &self.input[..length], now);
                handled.map_err(|error| error.to_string())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(format!("the connection failed: {error}")),
        };
        if let Err(reason) = outcome {
            self.close(switch, device, &reason, now);
        }
    }

    /// Sends as much of a switch's output as the socket accepts.
    pub fn write(&mut self, switch: SwitchId, device: &mut Switch, now: Duration) {
        let Some(connection) = &self.remotes[switch.place()].connection else {
            return;
        };
        loop {
            if let Err(error) = send_some(device, connection) {
                let reason = format!("the connection failed: {error}");
                return self.close(switch, device, &reason, now);
            }
            if !device.poll_output(now) {
                return;
            }
        }
    }

    /// Closes a switch's connection, if it has one; it reconnects later.
    pub fn close(&mut self, switch: SwitchId, device: &mut Switch, reason: &str, now: Duration) {
        let remote = &mut self.remotes[switch.place()];
        let Some(connection) = remote.connection.take() else {
            return;
        };
        // Sends the last message, such as an OFPT_ERROR, if the socket accepts it.
        let _ = send_some(device, &connection);
        device.disconnect(connection.id, now);
        remote.target.fail(now);
        urtica_log::info!(about: switch.place(), controller = %remote.target.address, ?switch, reason, "disconnected");
    }
}

/// The events for which a connection is polled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wants {
    pub input: bool,
    pub room: bool,
}

impl Wants {
    /// Only the connection's end.
    pub const NOTHING: Self = Self {
        input: false,
        room: false,
    };

    fn flags(self) -> PollFlags {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, self.input);
        flags.set(PollFlags::OUT, self.room);
        flags
    }
}

#[derive(Clone, Copy)]
enum Watched {
    Connecting(SwitchId),
    Connection(SwitchId),
}

impl Watched {
    fn ready(self, flags: PollFlags) -> impl Iterator<Item = Ready> {
        let has_ended = flags.intersects(PollFlags::ERR | PollFlags::HUP);
        let (one, other) = match self {
            Self::Connecting(switch) => {
                let is_decided = has_ended || flags.contains(PollFlags::OUT);
                (is_decided.then_some(Ready::Decided(switch)), None)
            }
            Self::Connection(switch) => {
                // A closed connection is read, because that returns the reason.
                let is_readable = has_ended || flags.contains(PollFlags::IN);
                let is_writable = flags.contains(PollFlags::OUT);
                (
                    is_readable.then_some(Ready::Readable(switch)),
                    is_writable.then_some(Ready::Writable(switch)),
                )
            }
        };
        one.into_iter().chain(other)
    }
}

fn send_some(device: &mut Switch, connection: &Connection) -> Result<(), Errno> {
    let Some(output) = device.output(connection.id) else {
        return Ok(());
    };
    let mut sent = 0;
    let end = loop {
        if sent == output.len() {
            break Ok(());
        }
        match send(
            connection.socket.as_fd(),
            &output[sent..],
            SendFlags::NOSIGNAL,
        ) {
            Ok(more) => sent += more,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    output.drain(..sent);
    end
}
