//! A controller to which the switch connects and reconnects: `tcp:`, `ssl:` and `unix:`.

use super::backoff::Backoff;
use super::status::ControllerState;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io;
use std::time::Duration;
use urtica_socket::Address;
use urtica_socket::look_up;

/// Maximum time for a host to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The age from which an ended connection does not count as a failure, so that the next attempt follows soon.
const LONG_ENOUGH: Duration = Duration::from_secs(8);

/// A controller to which a switch connects, and the state of the connection. It moves no bytes; its owner watches the sockets.
pub struct Target {
    /// The controller's address.
    pub address: Address,
    /// All addresses of the host, tried one after the other.
    addresses: Vec<SockAddr>,
    /// Index of the address to try next.
    next_address: usize,
    backoff: Backoff,
    state: State,
    /// Why the last attempt failed.
    last_failure: Option<String>,
}

enum State {
    Waiting { until: Duration },
    Connecting { socket: Socket, until: Duration },
    Connected { since: Duration },
}

impl Target {
    /// Resolves the host's name. This is the only place where it is resolved, since that may need much time.
    ///
    /// # Errors
    /// If the name has no address.
    pub fn new(address: &Address) -> io::Result<Self> {
        Ok(Self {
            address: address.clone(),
            addresses: look_up(address)?,
            next_address: 0,
            backoff: Backoff::default(),
            state: State::Waiting {
                until: Duration::ZERO,
            },
            last_failure: None,
        })
    }

    /// Returns whether an attempt is due.
    pub fn is_due(&self, now: Duration) -> bool {
        matches!(self.state, State::Waiting { until } if now >= until)
    }

    /// Returns whether the host has not answered in time.
    pub fn is_overdue(&self, now: Duration) -> bool {
        matches!(self.state, State::Connecting { until, .. } if now >= until)
    }

    /// Returns the socket that becomes writable when the current attempt has succeeded or failed.
    pub fn connecting(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Connecting { socket, .. } => Some(socket.as_fd()),
            _ => None,
        }
    }

    /// Starts to connect. The socket becomes writable when the attempt has succeeded or failed.
    ///
    /// # Errors
    /// If the system refuses immediately; the caller must call [`Target::fail`].
    pub fn connect(&mut self, now: Duration) -> io::Result<BorrowedFd<'_>> {
        let place = &self.addresses[self.next_address];
        self.next_address = (self.next_address + 1) % self.addresses.len();
        let socket = begin_to_connect(place)?;
        let until = now + CONNECT_TIMEOUT;
        self.state = State::Connecting { socket, until };
        match &self.state {
            State::Connecting { socket, .. } => Ok(socket.as_fd()),
            _ => unreachable!("it was just set"),
        }
    }

    /// Returns the socket, after the attempt has succeeded or failed.
    ///
    /// # Errors
    /// If the attempt failed; the caller must call [`Target::fail`].
    pub fn finish(&mut self, now: Duration) -> io::Result<OwnedFd> {
        let connected = State::Connected { since: now };
        let State::Connecting { socket, .. } = std::mem::replace(&mut self.state, connected) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        match socket.take_error()? {
            Some(error) => Err(error),
            None => Ok(socket.into()),
        }
    }

    /// Returns the state for users.
    pub(super) fn status(&self, now: Duration) -> ControllerState {
        match &self.state {
            State::Connecting { .. } => ControllerState::Connecting,
            State::Connected { .. } => ControllerState::Connected,
            State::Waiting { until } => ControllerState::Waiting {
                retry_in: until.saturating_sub(now),
                last_failure: self.last_failure.clone(),
            },
        }
    }

    /// Notes why an attempt failed, for users.
    pub(super) fn note_failure(&mut self, reason: &str) {
        self.last_failure = Some(reason.to_owned());
    }

    /// Handles a failed attempt or a closed connection. Returns how long to wait, which is zero while there are other addresses
    /// to try.
    pub fn fail(&mut self, now: Duration) -> Duration {
        let was_connected = matches!(self.state, State::Connected { .. });
        if matches!(self.state, State::Connected { since } if now >= since + LONG_ENOUGH) {
            self.backoff.reset();
        }
        let delay = match self.next_address {
            next if next > 0 && !was_connected => Duration::ZERO,
            _ => self.backoff.next_delay(),
        };
        self.state = State::Waiting { until: now + delay };
        delay
    }
}

fn begin_to_connect(place: &SockAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::from(i32::from(place.family())), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    if !place.is_unix() {
        socket.set_tcp_nodelay(true)?;
    }
    match socket.connect(place) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const NOW: Duration = Duration::from_secs(100);

    fn target(address: &str) -> Target {
        Target::new(&address.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_listening_controller_is_reached() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut target = target(&format!("tcp:127.0.0.1:{port}"));
        assert!(target.is_due(Duration::ZERO));
        target.connect(NOW).unwrap();
        assert!(!target.is_due(NOW));
        listener.accept().unwrap();
        target.finish(NOW).unwrap();
        assert!(!target.is_due(NOW + LONG_ENOUGH) && !target.is_overdue(NOW + LONG_ENOUGH));
    }

    #[test]
    fn failures_delay_ever_longer() {
        let mut target = target("unix:/nonexistent/of.sock");
        assert!(target.connect(NOW).is_err());
        let first = target.fail(NOW);
        assert!(!target.is_due(NOW) && target.is_due(NOW + first));
        assert!(target.fail(NOW) > first.mul_f64(1.2));
    }

    #[test]
    fn a_long_connection_is_no_failure() {
        let mut target = target("unix:/nonexistent/of.sock");
        for _ in 0..5 {
            target.fail(NOW);
        }
        target.state = State::Connected { since: NOW };
        assert!(target.fail(NOW + LONG_ENOUGH) < Duration::from_secs(2));
    }

    #[test]
    fn other_addresses_of_a_name_are_tried_at_once() {
        let mut target = target("unix:/nonexistent/of.sock");
        target.addresses.push(target.addresses[0].clone());
        assert!(target.connect(NOW).is_err());
        assert_eq!(target.fail(NOW), Duration::ZERO);
        assert!(target.connect(NOW).is_err());
        assert!(target.fail(NOW) > Duration::ZERO);
    }

    #[test]
    fn an_attempt_without_an_answer_times_out() {
        let mut target = target("tcp:127.0.0.1:9");
        target.state = State::Connecting {
            socket: Socket::new(Domain::IPV4, Type::STREAM, None).unwrap(),
            until: NOW,
        };
        assert!(target.is_overdue(NOW) && !target.is_overdue(NOW - CONNECT_TIMEOUT));
    }
}
