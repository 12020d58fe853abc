//! Relays one switch's connection to the controller and back.

use super::recorder::Recorder;
use crate::transcript::{Side, Transcript};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use socket2::SockRef;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use urtica_socket::{Address, ConnectError, DEFAULT_PORT, Stream, Tls, TlsError, is_try_again};

/// The time limit for the controller to accept a connection, and again for its TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of bytes that wait for a side. If it is reached, reading from the other side pauses, so that TCP's
/// window slows that side down.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// The size of a read.
const READ_BYTES: usize = 256 << 10;

/// The time limit for sending the waiting bytes to a side after the other side has closed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The first of the ports that the recording uses for peers on Unix sockets.
const DYNAMIC_PORT: u16 = 49152;

/// The target of connections.
#[derive(Clone)]
pub struct Target {
    pub address: Address,
    pub tls: Option<Tls>,
    /// Whether its TLS files differ from the files for switches.
    pub has_own_files: bool,
}

/// The input of a connection's thread.
pub struct Relay {
    /// The connection's number.
    pub number: u32,
    /// The switch's name.
    pub peer: String,
    pub target: Target,
    /// Becomes readable when the program must stop.
    pub stop: Arc<UnixStream>,
    pub recorder: Recorder,
}

/// A side of the connection, and the bytes that wait for it.
struct Half {
    stream: Stream,
    waiting: Vec<u8>,
}

/// Why a switch's connection could not be relayed.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("cannot connect to the controller at {address}: {error}")]
    Connect { address: Address, error: io::Error },
    #[error("no TLS connection with the controller at {address}: {error}")]
    Tls { address: Address, error: TlsError },
}

impl Relay {
    /// Relays until either side closes the connection.
    pub fn run(self, switch: Stream) {
        let peer = &self.peer;
        let controller = match self.target.connect() {
            Ok(controller) => controller,
            Err(reason) => {
                urtica_log::warn!(about: "controller", peer, %reason, "connection closed");
                return;
            }
        };
        let places = self.places(&switch, &controller);
        let transcript = Transcript::new(places.0, places.1, self.number);
        tracing::info!(peer, recorded_as = %places.0, "connection relayed");
        let mut connection = Connection {
            switch: Half::new(switch),
            controller: Half::new(controller),
            transcript,
            recorder: &self.recorder,
            buffer: vec![0; READ_BYTES],
        };
        let ended_by = connection.relay(&self.stop);
        let by = match ended_by {
            Some(Side::Switch) => "the switch",
            Some(Side::Controller) => "the controller",
            None => "the capture",
        };
        tracing::info!(peer, by, "connection closed");
    }

    /// Returns the ends for the recording, which shows a connection without a relay, with the controller at OpenFlow's port so
    /// that Wireshark recognises it.
    fn places(&self, switch: &Stream, controller: &Stream) -> (SocketAddr, SocketAddr) {
        let of = |stream: &Stream| SockRef::from(stream).peer_addr().ok()?.as_socket();
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let unnamed = DYNAMIC_PORT + (self.number % u32::from(u16::MAX - DYNAMIC_PORT)) as u16;
        let switch = of(switch).unwrap_or_else(|| local(unnamed));
        let mut controller = of(controller).unwrap_or_else(|| local(DEFAULT_PORT));
        controller.set_port(DEFAULT_PORT);
        (switch, controller)
    }
}

impl Target {
    /// Opens a non-blocking connection to the controller.
    fn connect(&self) -> Result<Stream, Refusal> {
        let connected = Stream::connect(&self.address, self.tls.as_ref(), CONNECT_TIMEOUT);
        connected.map_err(|error| {
            let address = self.address.clone();
            match error {
                ConnectError::Socket(error) => Refusal::Connect { address, error },
                ConnectError::Tls(error) => Refusal::Tls { address, error },
                other => Refusal::Connect {
                    address,
                    error: io::Error::other(other),
                },
            }
        })
    }
}

/// Both sides, and the recording.
struct Connection<'a> {
    switch: Half,
    controller: Half,
    transcript: Transcript,
    recorder: &'a Recorder,
    buffer: Vec<u8>,
}

impl Connection<'_> {
    /// Relays bytes until one side ends, and returns that side; `None` if the program must stop.
    fn relay(&mut self, stop: &UnixStream) -> Option<Side> {
        self.recorder.record(self.transcript.open());
        let mut ended = self.move_all();
        while ended.is_none() {
            match self.wait(stop) {
                Ok(false) => ended = self.move_all(),
                Ok(true) => break,
                Err(error) => {
                    urtica_log::error!(about: "waiting", %error, "connection closed");
                    break;
                }
            }
        }
        if let Some(side) = ended {
            self.half(side.peer()).drain();
        }
        let by = ended.unwrap_or(Side::Controller);
        self.recorder.record(self.transcript.close(by));
        ended
    }

    fn half(&mut self, side: Side) -> &mut Half {
        match side {
            Side::Switch => &mut self.switch,
            Side::Controller => &mut self.controller,
        }
    }

    /// Waits until bytes can be moved; returns `true` if the program must stop.
    fn wait(&self, stop: &UnixStream) -> io::Result<bool> {
        let mut fds = vec![PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
        for (half, peer) in [
            (&self.switch, &self.controller),
            (&self.controller, &self.switch),
        ] {
            // Leave out a side without interest, since poll(2) would report its end repeatedly.
            let interest = half.interest(peer);
            if !interest.is_empty() {
                fds.push(PollFd::new(&half.stream, interest));
            }
        }
        match poll(&mut fds, None) {
            Ok(_) => Ok(!fds[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves all available bytes; returns the side that has ended.
    fn move_all(&mut self) -> Option<Side> {
        for side in [Side::Switch, Side::Controller] {
            if self.half(side).flush().is_err() {
                return Some(side);
            }
        }
        for side in [Side::Switch, Side::Controller] {
            if let Err(Gone(side)) = self.move_from(side) {
                return Some(side);
            }
        }
        None
    }

    /// Reads from a side while it has bytes and the other side accepts them.
    fn move_from(&mut self, side: Side) -> Result<(), Gone> {
        while self.half(side.peer()).has_room() {
            let mut buffer = std::mem::take(&mut self.buffer);
            let read = self.half(side).stream.read(&mut buffer);
            let moved = match read {
                Ok(0) => Err(Gone(side)),
                Ok(count) => {
                    let bytes = &buffer[..count];
                    self.recorder.record(self.transcript.data(side, bytes));
                    let peer = self.half(side.peer());
                    peer.waiting.extend_from_slice(bytes);
                    peer.flush().map_err(|_| Gone(side.peer())).map(|()| true)
                }
                Err(error) if is_try_again(&error) => Ok(false),
                Err(_) => Err(Gone(side)),
            };
            self.buffer = buffer;
            if !moved? {
                break;
            }
        }
        Ok(())
    }
}

/// This side has ended the connection.
struct Gone(Side);

impl Half {
    fn new(stream: Stream) -> Self {
        Self {
            stream,
            waiting: Vec::new(),
        }
    }

    fn has_room(&self) -> bool {
        self.waiting.len() < WAITING_BYTES_MAX
    }

    fn has_output(&self) -> bool {
        !self.waiting.is_empty() || self.stream.has_unsent()
    }

    /// Returns the events to wait for on this side, whose bytes the peer receives.
    fn interest(&self, peer: &Self) -> PollFlags {
        let mut interest = PollFlags::empty();
        interest.set(PollFlags::IN, peer.has_room());
        interest.set(PollFlags::OUT, self.has_output());
        interest
    }

    /// Sends as much as the side accepts.
    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()?;
        let mut sent = 0;
        while sent < self.waiting.len() {
            match self.stream.write(&self.waiting[sent..]) {
                Ok(count) => sent += count,
                Err(error) if is_try_again(&error) => break,
                Err(error) => return Err(error),
            }
        }
        self.waiting.drain(..sent);
        Ok(())
    }

    /// Sends all waiting bytes while the side accepts them, up to a timeout.
    fn drain(&mut self) {
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        while self.flush().is_ok() && self.has_output() {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            };
            let mut fds = [PollFd::new(&self.stream, PollFlags::OUT)];
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) => return,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}
