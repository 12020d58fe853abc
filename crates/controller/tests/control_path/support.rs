//! Switches controlled by a test, programs that record events, and waiting for conditions.

use socket2::{Domain, SockAddr, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use urtica_controller::Address;
use urtica_controller::{
    Background, Controller, Program, Running, Switch, SwitchHandler, SwitchInfo,
};
use urtica_wire::{
    BufferId, Capabilities, DatapathId, ErrorCode, ErrorMessage, Features, FlowRemoved, Header,
    List, MacAddr, Match, Message, MultipartFlags, MultipartReply, MultipartReplyBody, PacketIn,
    PacketInReason, Port, PortNo, PortStatus, Version, split_frame,
};

/// Longer than any step needs, even on a busy machine: a test that waits this long has failed.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// Returns a controller without programs, at a port that the system chooses.
pub fn controller(shards: usize) -> Controller {
    Controller::new()
        .listen("ptcp:0:127.0.0.1".parse().unwrap())
        .shards(shards)
        .pin(false)
}

/// Waits until `condition` holds.
///
/// # Panics
/// If it does not hold in time.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "expected: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Wakes the waiting thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A minimal executor.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park_timeout(DEADLINE),
        }
    }
}

/// Connects to the controller's first address.
pub fn connect(running: &Running) -> Socket {
    connect_to(&running.addresses()[0])
}

/// Connects to one of the controller's addresses.
pub fn connect_to(address: &Address) -> Socket {
    let target = match address {
        Address::PassiveTcp { host, port } | Address::PassiveSsl { host, port } => {
            SocketAddr::new(host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), *port).into()
        }
        Address::PassiveUnix(path) => SockAddr::unix(path).unwrap(),
        other => panic!("nobody listens at {other}"),
    };
    let domain = Domain::from(i32::from(target.family()));
    let socket = Socket::new(domain, Type::STREAM, None).unwrap();
    socket.connect(&target).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    socket
}

/// A whole message.
#[derive(Debug)]
pub struct Frame(pub Vec<u8>);

impl Frame {
    pub fn header(&self) -> Header {
        Header::peek(&self.0).unwrap()
    }

    pub fn message(&self) -> Message<'_> {
        Message::decode(&self.0).unwrap().1
    }

    /// Returns the error code of this message, which must be an error.
    pub fn error_code(&self) -> ErrorCode {
        match self.message() {
            Message::Error(error) => error.code,
            other => panic!("expected an error, not {other:?}"),
        }
    }
}

/// The number of messages that a 1.0 switch has sent when it has joined: hello, features reply, and a final echo request.
pub const WORDS_TO_JOIN: u64 = 3;

/// The switch's end of a connection.
pub struct FakeSwitch {
    pub socket: Socket,
    pub version: Version,
    received: Vec<u8>,
}

impl FakeSwitch {
    /// Connects a switch with ports 1 to 3, which joins; a 1.3 switch describes its ports.
    pub fn join(running: &Running, version: Version, id: u64) -> Self {
        let mut switch = Self::start(connect(running), version, id);
        if version == Version::Of13 {
            switch.describe_ports(&[1, 2, 3]);
        }
        switch.wait_until_heard();
        switch
    }

    /// Sends hello and features reply, and reads the controller's messages up to the port description request.
    pub fn start(socket: Socket, version: Version, id: u64) -> Self {
        let mut switch = Self::over(socket, version);
        switch.send_bytes(&[version.to_wire(), 0, 0, 8, 0, 0, 0, 0]);
        assert!(matches!(switch.receive().message(), Message::Hello(_)));
        let request = switch.receive();
        assert_eq!(request.message(), Message::FeaturesRequest);
        switch.send(request.header().xid, &features(version, id));
        assert!(matches!(switch.receive().message(), Message::SetConfig(_)));
        switch
    }

    /// Returns a switch that has sent nothing.
    pub fn over(socket: Socket, version: Version) -> Self {
        Self {
            socket,
            version,
            received: Vec::new(),
        }
    }

    /// Answers the port description request, which must be next, and receives the table-miss entry.
    pub fn describe_ports(&mut self, ports: &[u32]) {
        let request = self.receive();
        assert!(matches!(request.message(), Message::MultipartRequest(_)));
        self.send(
            request.header().xid,
            &port_desc(MultipartFlags::empty(), ports),
        );
        assert!(matches!(self.receive().message(), Message::FlowMod(_)));
    }

    pub fn send(&mut self, xid: u32, message: &Message) {
        let bytes = encode(self.version, xid, message);
        self.send_bytes(&bytes);
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    /// Returns the next message, answering probes before it.
    pub fn receive(&mut self) -> Frame {
        self.try_receive()
            .expect("a message, not the end of the connection")
    }

    /// Returns the next message, answering probes before it; `None` if the controller has closed the connection.
    pub fn try_receive(&mut self) -> Option<Frame> {
        let start = Instant::now();
        loop {
            assert!(start.elapsed() < DEADLINE, "nothing but probes came");
            let frame = self.read_frame()?;
            match frame.message() {
                Message::EchoRequest(data) => {
                    let reply = encode(self.version, frame.header().xid, &Message::EchoReply(data));
                    // The controller may have closed the connection.
                    let _ = self.socket.write_all(&reply);
                }
                _ => return Some(frame),
            }
        }
    }

    /// Returns the next message, even if it is a probe; `None` if the controller has closed the connection.
    pub fn read_frame(&mut self) -> Option<Frame> {
        let mut buffer = [0; 16 << 10];
        loop {
            if let Some((frame, rest)) = split_frame(&self.received).unwrap() {
                let frame = Frame(frame.to_vec());
                self.received = rest.to_vec();
                return Some(frame);
            }
            match self.socket.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => {
                    panic!("a message or the end of the connection was expected: {error}")
                }
            }
        }
    }

    /// Reads until the controller closes the connection; returns the messages.
    pub fn read_to_end(&mut self) -> Vec<Frame> {
        std::iter::from_fn(|| self.read_frame()).collect()
    }

    /// Waits until the controller has handled all messages so far. Messages received while waiting can still be received.
    fn wait_until_heard(&mut self) {
        self.send(0x78, &Message::EchoRequest(b"heard?"));
        let mut others = Vec::new();
        loop {
            let frame = self.receive();
            if frame.message() == Message::EchoReply(b"heard?") {
                break;
            }
            others.extend(frame.0);
        }
        self.received.splice(..0, others);
    }

    /// Checks that the controller still answers. No other message may be on its way.
    pub fn assert_served(&mut self) {
        self.send(0x77, &Message::EchoRequest(b"still there?"));
        let reply = self.receive();
        assert_eq!(reply.header().xid, 0x77);
        assert_eq!(reply.message(), Message::EchoReply(b"still there?"));
    }
}

pub fn encode(version: Version, xid: u32, message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(version, xid, &mut bytes).unwrap();
    bytes
}

pub fn features(version: Version, id: u64) -> Message<'static> {
    let ports = match version {
        Version::Of10 => (1..=3).map(port).collect(),
        Version::Of13 => List::default(),
    };
    Message::FeaturesReply(Features {
        datapath_id: DatapathId(id),
        n_buffers: 256,
        n_tables: 1,
        auxiliary_id: 0,
        capabilities: Capabilities::empty(),
        actions: 0,
        ports,
    })
}

pub fn port(number: u32) -> Port {
    Port::new(
        PortNo(number),
        MacAddr::from_u64(0x0200_0000_0000 + u64::from(number)),
        &format!("eth{number}"),
    )
}

pub fn port_desc(flags: MultipartFlags, ports: &[u32]) -> Message<'static> {
    let body = MultipartReplyBody::PortDesc(ports.iter().copied().map(port).collect());
    Message::MultipartReply(MultipartReply { flags, body })
}

/// An untagged UDP packet, from the Ethernet header to the ports.
pub const UDP: [u8; 46] = {
    let mut frame = [0; 46];
    frame[5] = 2;
    frame[11] = 1;
    frame[12] = 0x08;
    frame[14] = 0x45;
    frame[17] = 32;
    frame[22] = 64;
    frame[23] = 17;
    frame[29] = 1;
    frame[33] = 2;
    frame[35] = 7;
    frame[37] = 9;
    frame[39] = 12;
    frame
};

/// Returns a whole, unbuffered packet that arrived at port 1.
pub fn packet_in(data: &[u8]) -> PacketIn<'_> {
    PacketIn {
        buffer_id: BufferId::NONE,
        total_len: data.len() as u16,
        reason: PacketInReason::NoMatch,
        table_id: 0,
        cookie: u64::MAX,
        in_port: PortNo(1),
        match_: Match::any().in_port(PortNo(1)),
        data,
    }
}

pub fn error(code: ErrorCode) -> Message<'static> {
    Message::Error(ErrorMessage { code, data: &[] })
}

/// Floods every packet, so that each packet-in has an answer.
pub struct Hub;

impl SwitchHandler for Hub {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        switch.forward(packet, PortNo::FLOOD);
    }
}

/// Does nothing.
pub struct Quiet;

impl SwitchHandler for Quiet {}

/// A program that spawns background programs, and whose handlers do nothing.
pub struct Beside<F>(pub F);

impl<F: Fn(&Background) + Send + Sync> Program for Beside<F> {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(Quiet)
    }

    fn start(&self, background: &Background) {
        (self.0)(background);
    }
}

/// Returns a controller, to be embedded, whose only program is [`Beside`].
pub fn beside(start: impl Fn(&Background) + Send + Sync + 'static) -> Controller {
    Controller::new().program(Beside(start))
}

/// Returns the warnings and errors that this thread logs during `work`: texts and fields.
pub fn logged(work: impl FnOnce()) -> Vec<String> {
    let log = Arc::new(Log::default());
    tracing::subscriber::with_default(Arc::clone(&log), work);
    std::mem::take(&mut *log.0.lock().unwrap())
}

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata) -> bool {
        metadata.is_event() && *metadata.level() <= tracing::Level::WARN
    }

    fn event(&self, event: &tracing::Event) {
        let mut line = String::new();
        event.record(
            &mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
                line += &format!("{field}={value:?} ");
            },
        );
        self.0.lock().unwrap().push(line);
    }

    fn new_span(&self, _: &tracing::span::Attributes) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// The events that a [`Recorder`] has recorded, in order.
pub struct Record(Receiver<String>);

impl Record {
    /// Waits for the next event.
    pub fn next(&self) -> String {
        self.0.recv_timeout(DEADLINE).expect("something happens")
    }

    /// Returns `true` if no other event has been recorded so far.
    pub fn is_empty(&self) -> bool {
        self.0.try_recv().is_err()
    }
}

/// Records the events of a program's handlers.
#[derive(Clone)]
pub struct Recorder {
    name: &'static str,
    sender: Sender<String>,
}

/// Creates recorders with these names, for several programs that share a record.
pub fn recorders<const N: usize>(names: [&'static str; N]) -> ([Recorder; N], Record) {
    let (sender, receiver) = mpsc::channel();
    let recorder = |name| Recorder {
        name,
        sender: sender.clone(),
    };
    (names.map(recorder), Record(receiver))
}

impl Recorder {
    pub fn tell(&self, what: impl std::fmt::Display) {
        // The test may have ended.
        let _ = self.sender.send(format!("{}: {what}", self.name));
    }
}

impl SwitchHandler for Recorder {
    fn switch_up(&mut self, switch: &mut Switch) {
        self.tell(format_args!("up, {} ports", switch.info().ports.len()));
    }

    fn packet_in(&mut self, _: &mut Switch, packet: &PacketIn) {
        self.tell(format_args!(
            "packet of {} from {}",
            packet.data.len(),
            packet.in_port
        ));
    }

    fn flow_removed(&mut self, _: &mut Switch, removed: &FlowRemoved) {
        self.tell(format_args!("flow {:#x} removed", removed.cookie));
    }

    fn port_status(&mut self, switch: &mut Switch, status: &PortStatus) {
        let ports: Vec<_> = switch
            .info()
            .ports
            .iter()
            .map(|port| port.port_no.0)
            .collect();
        self.tell(format_args!(
            "port {} {:?}, now {ports:?}",
            status.port.port_no, status.reason
        ));
    }

    fn error(&mut self, _: &mut Switch, xid: u32, error: &ErrorMessage) {
        self.tell(format_args!(
            "error {} to {:#x}",
            error.code,
            xid & 0x00ff_ffff
        ));
    }

    fn refused(&mut self, switch: &mut Switch, error: &ErrorMessage) {
        let dp_id = switch.datapath_id();
        self.tell(format_args!("{} refused by {dp_id}", error.code));
    }

    fn message(&mut self, _: &mut Switch, _: u32, message: &Message) {
        self.tell(format_args!("{message:?}"));
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        self.tell(format_args!("down {}", info.datapath_id));
    }
}
