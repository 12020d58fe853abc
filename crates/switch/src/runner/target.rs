//! A controller that the switch connects to, again and again: `tcp:`, `ssl:` and `unix:`.

use super::backoff::Backoff;
use super::status::ControllerState;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io;
use std::time::Duration;
use urtica_socket::Address;
use urtica_socket::look_up;

/// How long a host may take to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that lived this long was no failure, so that the next attempt after it comes soon.
const LONG_ENOUGH: Duration = Duration::from_secs(8);

/// A controller that a switch connects to, and how far it is with that. It moves no bytes: whoever drives it watches the
/// sockets.
pub struct Target {
    /// Where it is to be found.
    pub address: Address,
    /// All that the host's name stands for, tried one after the other.
    places: Vec<SockAddr>,
    /// Which of them is tried next.
    next_place: usize,
    backoff: Backoff,
    state: State,
    /// Why it did not work the last time.
    last_failure: Option<String>,
}

enum State {
    Waiting { until: Duration },
    Connecting { socket: Socket, until: Duration },
    Connected { since: Duration },
}

impl Target {
    /// Looks up the host's name. It is looked up only here, since that may take long.
    ///
    /// # Errors
    /// Where the name stands for nothing.
    pub fn new(address: &Address) -> io::Result<Self> {
        Ok(Self {
            address: address.clone(),
            places: look_up(address)?,
            next_place: 0,
            backoff: Backoff::default(),
            state: State::Waiting {
                until: Duration::ZERO,
            },
            last_failure: None,
        })
    }

    /// Whether it is time to try.
    pub fn is_due(&self, now: Duration) -> bool {
        matches!(self.state, State::Waiting { until } if now >= until)
    }

    /// Whether the host has taken too long to answer.
    pub fn is_overdue(&self, now: Duration) -> bool {
        matches!(self.state, State::Connecting { until, .. } if now >= until)
    }

    /// The socket that is to become writable, while it is not decided whether it is connected.
    pub fn connecting(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Connecting { socket, .. } => Some(socket.as_fd()),
            _ => None,
        }
    }

    /// Begins to connect; the socket becomes writable when that is decided.
    ///
    /// # Errors
    /// Where the system refuses at once; [`Target::fail`] is to be told.
    pub fn connect(&mut self, now: Duration) -> io::Result<BorrowedFd<'_>> {
        let place = &self.places[self.next_place];
        self.next_place = (self.next_place + 1) % self.places.len();
        let socket = begin_to_connect(place)?;
        let until = now + CONNECT_TIMEOUT;
        self.state = State::Connecting { socket, until };
        match &self.state {
            State::Connecting { socket, .. } => Ok(socket.as_fd()),
            _ => unreachable!("it was just set"),
        }
    }

    /// The socket, now that it is decided whether it is connected.
    ///
    /// # Errors
    /// Where it is not; [`Target::fail`] is to be told.
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

    /// How far it is, for people.
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

    /// Notes why it did not work, for people.
    pub(super) fn note_failure(&mut self, reason: &str) {
        self.last_failure = Some(reason.to_owned());
    }

    /// It did not work, or does not work any more. Returns how long to wait: not at all while there are other places to try.
    pub fn fail(&mut self, now: Duration) -> Duration {
        let was_connected = matches!(self.state, State::Connected { .. });
        if matches!(self.state, State::Connected { since } if now >= since + LONG_ENOUGH) {
            self.backoff.reset();
        }
        let delay = match self.next_place {
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
    fn a_long_life_is_no_failure() {
        let mut target = target("unix:/nonexistent/of.sock");
        for _ in 0..5 {
            target.fail(NOW);
        }
        target.state = State::Connected { since: NOW };
        assert!(target.fail(NOW + LONG_ENOUGH) < Duration::from_secs(2));
    }

    #[test]
    fn other_places_of_a_name_are_tried_at_once() {
        let mut target = target("unix:/nonexistent/of.sock");
        target.places.push(target.places[0].clone());
        assert!(target.connect(NOW).is_err());
        assert_eq!(target.fail(NOW), Duration::ZERO);
        assert!(target.connect(NOW).is_err());
        assert!(target.fail(NOW) > Duration::ZERO);
    }

    #[test]
    fn a_host_that_does_not_answer_is_given_up() {
        let mut target = target("tcp:127.0.0.1:9");
        target.state = State::Connecting {
            socket: Socket::new(Domain::IPV4, Type::STREAM, None).unwrap(),
            until: NOW,
        };
        assert!(target.is_overdue(NOW) && !target.is_overdue(NOW - CONNECT_TIMEOUT));
    }
}
