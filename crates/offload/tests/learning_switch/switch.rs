//! A switch as a controller sees it, on a socket or in memory.

use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use urtica_controller::{
    ConnectionError, ConnectionId, Controller, Embedded, Running, SessionConfig,
};
use urtica_offload::{Kernel, LearningSwitch, Mode};
use urtica_wire::{
    Capabilities, DatapathId, Features, Header, List, MacAddr, Message, MultipartFlags,
    MultipartReply, MultipartReplyBody, Port, PortNo, Version,
};

/// Maximum duration of any step on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

const MULTIPART_REQUEST: u8 = 18;

/// Starts a controller that runs the learning switch in the kernel.
pub fn offloaded(kernel: &Kernel, mode: Mode, places: usize) -> Running {
    start(
        LearningSwitch::new(kernel.clone())
            .mode(mode)
            .places(places),
    )
}

/// Starts a controller with one shard.
pub fn start(program: impl urtica_controller::Program + 'static) -> Running {
    controller(program)
        .listen("ptcp:0:127.0.0.1".parse().unwrap())
        .shards(1)
        .start()
        .unwrap()
}

fn controller(program: impl urtica_controller::Program + 'static) -> Controller {
    silent_controller().program(program)
}

/// Creates a controller that sends no echo requests, so that tests control all messages.
pub fn silent_controller() -> Controller {
    let mut session = SessionConfig::default();
    session.echo_interval = Duration::from_secs(3000);
    session.dead_interval = Duration::from_secs(6000);
    let controller = Controller::new().session(session);
    controller.kernel_half_after(Duration::ZERO, 0)
}

/// The messages between a switch and its controller.
pub trait Channel {
    fn send(&mut self, bytes: &[u8]);

    /// Receives at least one more byte.
    fn receive(&mut self) -> Vec<u8>;
}

impl Channel for TcpStream {
    fn send(&mut self, bytes: &[u8]) {
        self.write_all(bytes).unwrap();
    }

    fn receive(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; 65536];
        let count = self.read(&mut bytes).expect("something comes in time");
        assert!(count > 0, "the controller has closed the connection");
        bytes.truncate(count);
        bytes
    }
}

/// A controller in memory, and its one switch.
pub struct InMemory {
    controller: Embedded,
    connection: ConnectionId,
}

impl InMemory {
    pub fn new(program: impl urtica_controller::Program + 'static) -> Self {
        Self::of(controller(program))
    }

    pub fn of(controller: Controller) -> Self {
        let mut controller = controller.embed().unwrap();
        let connection = controller.connect("a switch".into(), Duration::ZERO);
        Self {
            controller,
            connection,
        }
    }

    /// Sends bytes that may end the connection.
    pub fn handle(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        let now = Duration::ZERO;
        self.controller.handle_input(self.connection, bytes, now)
    }

    /// Returns all output.
    pub fn take(&mut self) -> Vec<u8> {
        self.controller.poll(Duration::ZERO);
        let output = self.controller.output(self.connection);
        output.map(std::mem::take).unwrap_or_default()
    }
}

impl Channel for InMemory {
    fn send(&mut self, bytes: &[u8]) {
        self.handle(bytes).unwrap();
    }

    fn receive(&mut self) -> Vec<u8> {
        let bytes = self.take();
        assert!(!bytes.is_empty(), "the controller has something to say");
        bytes
    }
}

/// Connects a switch over loopback.
pub fn connect(controller: &Running) -> TcpStream {
    prepare(TcpStream::connect(address(controller)).unwrap())
}

/// Connects a switch whose kernel has space for this number of unread bytes.
pub fn connect_with_room(controller: &Running, bytes: usize) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    // Set before connecting, because an offered window does not shrink.
    socket.set_recv_buffer_size(bytes).unwrap();
    socket.connect(&address(controller).into()).unwrap();
    prepare(socket.into())
}

fn address(controller: &Running) -> SocketAddr {
    let address = controller.addresses()[0].to_string();
    let address = address.strip_prefix("ptcp:").unwrap();
    let (port, host) = address.split_once(':').unwrap();
    SocketAddr::new(host.parse().unwrap(), port.parse().unwrap())
}

fn prepare(socket: TcpStream) -> TcpStream {
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Joins as a switch of this version. Returns when the controller has sent the messages that it sends to every switch.
pub fn join(channel: &mut impl Channel, version: Version, id: u64) {
    join_with_ports(channel, version, id, 0);
}

/// Joins with ports 1 to `count`.
pub fn join_with_ports(channel: &mut impl Channel, version: Version, id: u64, count: u32) {
    let ports: Vec<_> = (1..=count).map(port).collect();
    let of = |wanted| match version == wanted {
        true => ports.clone(),
        false => Vec::new(),
    };
    let wire = version.to_wire();
    channel.send(&[wire, 0, 0, 8, 0, 0, 0, 1]);
    let features = Message::FeaturesReply(Features {
        datapath_id: DatapathId(id),
        n_buffers: 256,
        n_tables: 1,
        auxiliary_id: 0,
        capabilities: Capabilities::empty(),
        actions: 0,
        ports: List::from(of(Version::Of10)),
    });
    let mut said = Vec::new();
    wait_for(channel, &mut said, |header| header.message_type == 5);
    let mut reply = Vec::new();
    features.encode(version, 2, &mut reply).unwrap();
    channel.send(&reply);
    if version == Version::Of13 {
        let request = wait_for(channel, &mut said, |header| {
            header.message_type == MULTIPART_REQUEST
        });
        let ports = Message::MultipartReply(MultipartReply {
            flags: MultipartFlags::empty(),
            body: MultipartReplyBody::PortDesc(List::from(of(Version::Of13))),
        });
        let mut reply = Vec::new();
        ports.encode(version, request.xid, &mut reply).unwrap();
        channel.send(&reply);
    }
    settle(channel, &mut said, version);
}

/// Returns a port that is up.
pub fn port(number: u32) -> Port {
    let address = MacAddr::from_u64(0x0600_0000_0000 + u64::from(number));
    Port::new(PortNo(number), address, "")
}

/// The xid of the echo requests of [`settle`].
pub const SETTLE_XID: u32 = 0x5e77_1e00;

/// Sends an echo request and waits for its reply, so that all earlier messages have been handled.
pub fn settle(channel: &mut impl Channel, said: &mut Vec<u8>, version: Version) {
    let mut echo = Vec::new();
    Message::EchoRequest(&[])
        .encode(version, SETTLE_XID, &mut echo)
        .unwrap();
    channel.send(&echo);
    wait_for(channel, said, |header| {
        header.message_type == 3 && header.xid == SETTLE_XID
    });
}

/// Receives until a matching message has arrived; all messages are appended to `said`.
fn wait_for(
    channel: &mut impl Channel,
    said: &mut Vec<u8>,
    is_it: impl Fn(&Header) -> bool,
) -> Header {
    loop {
        if let Some(header) = headers(said).find(&is_it) {
            return header;
        }
        said.extend(channel.receive());
    }
}

/// Returns the headers of the complete messages in `bytes`.
pub fn headers(bytes: &[u8]) -> impl Iterator<Item = Header> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let header = Header::peek(rest)?;
        rest = rest.get(usize::from(header.length)..)?;
        Some(header)
    })
}
