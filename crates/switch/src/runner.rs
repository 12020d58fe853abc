//! A switch on real ports, connections and time: one thread that waits for whichever has something.
//!
//! **What.** An epoll loop over the ports' descriptors, the controllers' sockets and the listeners. It moves bytes; all that they
//! mean is decided by [`Switch`].
//!
//! **Order.** Ports first, some bursts of each in turn while they are busy, then whatever controllers sent: neither can starve the
//! other. What comes of both leaves once a turn, so that a burst's packet-ins are one write.
//!
//! **Back-pressure.** A controller is not read from while [`Switch::wants_input`] says so.
//!
//! **Thread-safety.** Everything belongs to the thread that calls [`Runner::run`]; only a [`StopHandle`] may live elsewhere.

mod backoff;
mod target;

use crate::{ConnectionId, Switch};
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use slab::Slab;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use target::Target;
use urtica_socket::{ListenError, Listener};
use urtica_wire::Address;

/// How many bursts of each port are taken in before controllers have their turn.
const BURSTS: usize = 8;

/// How often the switch is told the time.
const TICK: Duration = Duration::from_millis(100);

/// How often ports are asked that have nothing to watch.
const ASK: Duration = Duration::from_millis(1);

/// The most that is read from one controller in one turn.
const READ_BYTES: usize = 64 << 10;

/// How many descriptors one wait can report.
const EVENTS: usize = 64;

/// Why a switch could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A passive address cannot be listened at.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A controller's name cannot be looked up.
    #[error("cannot find the controller {address}: {error}; expected a host that there is")]
    LookUp {
        /// Which.
        address: Address,
        /// Why not.
        error: io::Error,
    },
    /// The system refused something.
    #[error("the switch cannot {what}: {error}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        error: io::Error,
    },
}

impl RunError {
    fn io<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Io {
            what,
            error: error.into(),
        }
    }
}

/// Runs a switch.
pub struct Runner {
    switch: Switch,
    epoll: OwnedFd,
    stop: Arc<OwnedFd>,
    started: Instant,
    listeners: Vec<Listener>,
    targets: Vec<Target>,
    connections: Slab<Connection>,
    /// Whether some port has nothing to watch.
    has_silent_ports: bool,
    /// Where reads go.
    input: Vec<u8>,
    next_tick: Duration,
}

/// Ends a [`Runner`], from any thread.
#[derive(Clone, Debug)]
pub struct StopHandle(Arc<OwnedFd>);

impl StopHandle {
    /// Has [`Runner::run`] return soon.
    pub fn stop(&self) {
        // Fails only where the count is at its limit, and so readable already.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

/// A connection to a controller, whoever began it.
struct Connection {
    socket: OwnedFd,
    id: ConnectionId,
    peer: String,
    /// The place in the runner's targets, if we connected.
    target: Option<usize>,
    /// What it is watched for.
    interest: epoll::EventFlags,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Stop,
    Port,
    Listener(usize),
    Target(usize),
    Connection(usize),
}

impl Source {
    fn to_data(self) -> epoll::EventData {
        let (kind, index) = match self {
            Self::Stop => (0, 0),
            Self::Port => (1, 0),
            Self::Listener(index) => (2, index),
            Self::Target(index) => (3, index),
            Self::Connection(index) => (4, index),
        };
        epoll::EventData::new_u64(kind << 32 | index as u64)
    }

    fn from_data(data: u64) -> Self {
        let index = data as u32 as usize;
        match data >> 32 {
            0 => Self::Stop,
            1 => Self::Port,
            2 => Self::Listener(index),
            3 => Self::Target(index),
            _ => Self::Connection(index),
        }
    }
}

impl Runner {
    /// A runner for a switch that has its ports. Listens at the passive ones of these addresses at once, and will connect to the
    /// others.
    ///
    /// # Errors
    /// [`RunError`]: where an address cannot be listened at, or a host's name is unknown.
    pub fn new(switch: Switch, controllers: &[Address]) -> Result<Self, RunError> {
        let (passive, active): (Vec<_>, Vec<_>) =
            controllers.iter().partition(|address| address.is_passive());
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(RunError::io("make an event"))?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC);
        Ok(Self {
            switch,
            epoll: epoll.map_err(RunError::io("make an epoll"))?,
            stop: Arc::new(stop),
            started: Instant::now(),
            listeners: passive
                .into_iter()
                .map(Listener::bind)
                .collect::<Result<_, _>>()?,
            targets: active.into_iter().map(look_up).collect::<Result<_, _>>()?,
            connections: Slab::new(),
            has_silent_ports: false,
            input: vec![0; READ_BYTES],
            next_tick: Duration::ZERO,
        })
    }

    /// Where it listens, with the ports that the system chose.
    pub fn listen_addresses(&self) -> impl Iterator<Item = &Address> {
        self.listeners.iter().map(Listener::address)
    }

    /// What ends it.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(Arc::clone(&self.stop))
    }

    /// Serves until it is stopped, then closes the connections.
    ///
    /// # Errors
    /// [`RunError::Io`] where it cannot wait for events.
    pub fn run(mut self) -> Result<(), RunError> {
        self.watch_all()
            .map_err(RunError::io("watch its ports and sockets"))?;
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let is_busy = self.poll_ports();
            if self.now() >= self.next_tick {
                self.tick();
            }
            self.send_output();
            self.wait(&mut events, is_busy)
                .map_err(RunError::io("wait for events"))?;
            for event in &events {
                match Source::from_data(event.data.u64()) {
                    Source::Stop => {
                        self.close_all();
                        return Ok(());
                    }
                    // All ports are asked in each turn.
                    Source::Port => {}
                    Source::Listener(index) => self.accept(index),
                    Source::Target(index) => self.finish_connect(index),
                    Source::Connection(key) => self.read(key),
                }
            }
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn watch_all(&mut self) -> Result<(), Errno> {
        let input = epoll::EventFlags::IN;
        epoll::add(&self.epoll, &*self.stop, Source::Stop.to_data(), input)?;
        for (index, listener) in self.listeners.iter().enumerate() {
            let source = Source::Listener(index);
            epoll::add(&self.epoll, listener, source.to_data(), input)?;
        }
        for (_, port) in self.switch.ports() {
            match port.as_fd() {
                Some(fd) => epoll::add(&self.epoll, fd, Source::Port.to_data(), input)?,
                None => self.has_silent_ports = true,
            }
        }
        Ok(())
    }

    /// Takes in what has come by ports; whether there may be more.
    fn poll_ports(&mut self) -> bool {
        (0..BURSTS).all(|_| {
            let now = self.now();
            self.switch.poll_ports(now)
        })
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>, is_busy: bool) -> Result<(), Errno> {
        let timeout = match (is_busy, self.has_silent_ports) {
            (true, _) => Duration::ZERO,
            (false, true) => ASK,
            (false, false) => self.next_tick.saturating_sub(self.now()),
        };
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        events.clear();
        let room = rustix::buffer::spare_capacity(events);
        match epoll::wait(&self.epoll, room, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Time has passed: the switch is told, and controllers are tried.
    fn tick(&mut self) {
        let now = self.now();
        self.next_tick = now + TICK;
        for (id, reason) in self.switch.handle_timeout(now) {
            let found = self
                .connections
                .iter()
                .find(|(_, connection)| connection.id == id);
            if let Some((key, _)) = found {
                self.close(key, &reason);
            }
        }
        for index in 0..self.targets.len() {
            if self.targets[index].is_overdue(now) {
                self.retry_later(index, "it does not answer");
            }
            if self.targets[index].is_due(now) {
                self.connect(index);
            }
        }
    }

    fn connect(&mut self, index: usize) {
        let now = self.now();
        let connecting = self.targets[index].connect(now);
        let data = Source::Target(index).to_data();
        let watched = connecting.and_then(|socket| {
            let flags = epoll::EventFlags::OUT;
            Ok(epoll::add(&self.epoll, socket, data, flags)?)
        });
        if let Err(error) = watched {
            self.retry_later(index, &error.to_string());
        }
    }

    fn finish_connect(&mut self, index: usize) {
        let now = self.now();
        let target = &mut self.targets[index];
        match target.finish(now) {
            Ok(socket) => {
                let peer = target.address.to_string();
                // It is watched as the target's until now, and as a connection from now on.
                let _ = epoll::delete(&self.epoll, &socket);
                self.adopt(socket, peer, Some(index));
            }
            Err(error) => self.retry_later(index, &error.to_string()),
        }
    }

    fn retry_later(&mut self, index: usize, reason: &str) {
        let now = self.now();
        let target = &mut self.targets[index];
        let delay = target.fail(now);
        let retry_in_ms = delay.as_millis() as u64;
        tracing::info!(controller = %target.address, reason, retry_in_ms, "no connection to the controller");
    }

    fn accept(&mut self, index: usize) {
        match self.listeners[index].accept() {
            Ok((socket, peer)) => self.adopt(socket, peer, None),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => tracing::warn!(%error, "a controller's connection was not accepted"),
        }
    }

    /// A connection has been made: the switch says hello.
    fn adopt(&mut self, socket: OwnedFd, peer: String, target: Option<usize>) {
        tracing::info!(controller = peer, "connected");
        let id = self.switch.connect(peer.clone(), self.now());
        let key = self.connections.insert(Connection {
            socket,
            id,
            peer,
            target,
            interest: epoll::EventFlags::IN,
        });
        let connection = &self.connections[key];
        let data = Source::Connection(key).to_data();
        if let Err(error) = epoll::add(&self.epoll, &connection.socket, data, epoll::EventFlags::IN)
        {
            self.close(key, &error.to_string());
        }
    }

    /// A controller has sent something, or takes again what it is sent, which [`Runner::send_output`] sees to.
    fn read(&mut self, key: usize) {
        let is_read = |one: &&Connection| one.interest.contains(epoll::EventFlags::IN);
        let Some(connection) = self.connections.get(key).filter(is_read) else {
            return;
        };
        let received = recv(&connection.socket, &mut self.input[..], RecvFlags::empty());
        let (id, now) = (connection.id, self.started.elapsed());
        let outcome = match received {
            Ok((0, _)) => Err("the controller closed the connection".to_owned()),
            Ok((len, _)) => self.switch.handle_input(id, &self.input[..len], now),
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(format!("the connection failed: {error}")),
        };
        if let Err(reason) = outcome {
            self.close(key, &reason);
        }
    }

    /// Sends all controllers what there is for them.
    fn send_output(&mut self) {
        let mut failed = Vec::new();
        for (key, connection) in &mut self.connections {
            let sent = send_some(&mut self.switch, connection)
                .and_then(|()| watch(&self.epoll, &mut self.switch, key, connection));
            if let Err(error) = sent {
                failed.push((key, format!("the connection failed: {error}")));
            }
        }
        for (key, reason) in failed {
            self.close(key, &reason);
        }
    }

    fn close(&mut self, key: usize, reason: &str) {
        let mut connection = self.connections.remove(key);
        // The last words, such as an OFPT_ERROR, where the socket takes them.
        let _ = send_some(&mut self.switch, &mut connection);
        let now = self.now();
        self.switch.disconnect(connection.id, now);
        tracing::info!(controller = connection.peer, reason, "disconnected");
        if let Some(index) = connection.target {
            self.retry_later(index, reason);
        }
    }

    fn close_all(mut self) {
        let keys: Vec<_> = self.connections.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.connections[key].target = None;
            self.close(key, "the switch stops");
        }
    }
}

fn look_up(address: &Address) -> Result<Target, RunError> {
    Target::new(address).map_err(|error| RunError::LookUp {
        address: address.clone(),
        error,
    })
}

/// Sends as much as the socket takes of what there is for a controller.
fn send_some(switch: &mut Switch, connection: &mut Connection) -> Result<(), Errno> {
    let Some(output) = switch.output(connection.id) else {
        return Ok(());
    };
    let mut sent = 0;
    let end = loop {
        if sent == output.len() {
            break Ok(());
        }
        match send(&connection.socket, &output[sent..], SendFlags::NOSIGNAL) {
            Ok(more) => sent += more,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    output.drain(..sent);
    end
}

/// Watches for the controller to take more where something is left, and to say something where the switch wants to hear it.
fn watch(
    epoll: &OwnedFd,
    switch: &mut Switch,
    key: usize,
    connection: &mut Connection,
) -> Result<(), Errno> {
    let id = connection.id;
    let is_waiting = switch.output(id).is_some_and(|output| !output.is_empty());
    let mut interest = epoll::EventFlags::empty();
    interest.set(epoll::EventFlags::IN, switch.wants_input(id));
    interest.set(epoll::EventFlags::OUT, is_waiting);
    if connection.interest == interest {
        return Ok(());
    }
    connection.interest = interest;
    epoll::modify(
        epoll,
        &connection.socket,
        Source::Connection(key).to_data(),
        interest,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SwitchConfig;
    use crate::port::testing::{frame, receive};
    use crate::port::{PortIo, memory};
    use rustix::event::{PollFd, PollFlags, poll};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread::JoinHandle;
    use urtica_wire::{MacAddr, PortNo};

    /// The first byte of OpenFlow 1.3's messages, and the type of the first.
    const HELLO: [u8; 2] = [4, 0];

    /// A runner at work; it is stopped when dropped, which tells of its panics.
    struct Running {
        stop: StopHandle,
        thread: Option<JoinHandle<Result<(), RunError>>>,
    }

    impl Drop for Running {
        fn drop(&mut self) {
            self.stop.stop();
            let ended = self.thread.take().map(JoinHandle::join);
            if !std::thread::panicking() {
                ended.unwrap().expect("no panic").expect("an orderly end");
            }
        }
    }

    fn start(switch: Switch, controllers: &[Address]) -> (Running, Vec<Address>) {
        let runner = Runner::new(switch, controllers).unwrap();
        let addresses = runner.listen_addresses().cloned().collect();
        let stop = runner.stop_handle();
        let thread = Some(std::thread::spawn(|| runner.run()));
        (Running { stop, thread }, addresses)
    }

    fn switch(fail_mode: crate::FailMode) -> Switch {
        Switch::new(SwitchConfig {
            fail_mode,
            ..SwitchConfig::default()
        })
    }

    fn expect_hello(stream: &mut TcpStream) {
        let mut start = [0; 2];
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        stream.read_exact(&mut start).unwrap();
        assert_eq!(start, HELLO);
    }

    /// Gives up after a while, so that a runner that has died is told of.
    fn accept(listener: &TcpListener) -> TcpStream {
        let patience = Timespec {
            tv_sec: 5,
            tv_nsec: 0,
        };
        let mut ready = [PollFd::new(listener, PollFlags::IN)];
        let count = poll(&mut ready, Some(&patience)).unwrap();
        assert_eq!(count, 1, "expected the runner to connect");
        listener.accept().unwrap().0
    }

    #[test]
    fn sources_survive_epoll() {
        for source in [
            Source::Stop,
            Source::Port,
            Source::Listener(1),
            Source::Target(2),
            Source::Connection(3),
        ] {
            assert_eq!(Source::from_data(source.to_data().u64()), source);
        }
    }

    #[test]
    fn controllers_may_come() {
        let (_running, addresses) = start(
            switch(crate::FailMode::Secure),
            &["ptcp:0:127.0.0.1".parse().unwrap()],
        );
        let mut stream = TcpStream::connect(addresses[0].listen_addr().unwrap()).unwrap();
        expect_hello(&mut stream);
    }

    #[test]
    fn controllers_are_connected_to_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let address = format!("tcp:127.0.0.1:{port}").parse().unwrap();
        let (_running, _) = start(switch(crate::FailMode::Secure), &[address]);
        let mut first = accept(&listener);
        expect_hello(&mut first);
        // Not OpenFlow: the switch hangs up.
        first.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut second = accept(&listener);
        expect_hello(&mut second);
    }

    #[test]
    fn frames_pass_while_no_controller_is_there() {
        let mut switch = switch(crate::FailMode::Standalone);
        let mut hosts = Vec::new();
        for number in 1..=2 {
            let mac = MacAddr::new([2, 0, 0, 0, 1, number]);
            let (port, host) = memory::pair(("port", mac), ("host", mac), 64);
            switch.add_port(PortNo(number.into()), Box::new(port), Duration::ZERO);
            hosts.push(host);
        }
        let (_running, _) = start(switch, &[]);
        hosts[0].send(&frame(100, 7));
        hosts[0].flush();
        assert_eq!(receive(&mut hosts[1], 1), [frame(100, 7)]);
    }

    #[test]
    fn refusals_say_what_was_expected() {
        let refuse = |address: &str| {
            let address = address.parse().unwrap();
            let switch = switch(crate::FailMode::Secure);
            Runner::new(switch, &[address]).err().unwrap().to_string()
        };
        let held = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = held.local_addr().unwrap().port();
        let in_use = refuse(&format!("ptcp:{port}:127.0.0.1"));
        assert!(in_use.contains("the address is in use"), "{in_use}");
        assert!(refuse("tcp:no.such.host.invalid").contains("cannot find the controller"));
    }
}
