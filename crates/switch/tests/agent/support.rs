//! A switch with links whose other ends belong to tests, its controllers, and a clock that tests advance.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use urtica_pipeline::PipelineConfig;
use urtica_switch::{ConnectionId, PortIo, Switch, SwitchConfig};
use urtica_wire::{
    DatapathId, ErrorCode, FixedName, Header, MacAddr, Message, MultipartFlags, MultipartReplyBody,
    MultipartRequest, MultipartRequestBody, Port, PortConfig, PortFeatures, PortNo, PortState,
    Version, split_frame,
};

/// A hello with both versions in its bitmap.
pub const HELLO: [u8; 16] = [4, 0, 0, 16, 0, 0, 0, 7, 0, 1, 0, 8, 0, 0, 0, 0x12];

/// The state that the test's and the switch's ends of a link share.
#[derive(Default)]
pub struct Link {
    pub to_switch: VecDeque<Vec<u8>>,
    pub from_switch: Vec<Vec<u8>>,
    pub is_cut: bool,
    pub is_full: bool,
    /// Frames that were lost because the queue was full.
    pub dropped: u64,
    pub is_broken: bool,
}

struct LinkEnd {
    number: u32,
    link: Arc<Mutex<Link>>,
}

impl LinkEnd {
    fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap()
    }
}

impl PortIo for LinkEnd {
    fn name(&self) -> &str {
        "link"
    }

    fn hw_addr(&self) -> MacAddr {
        hw_addr(self.number)
    }

    fn is_up(&self) -> bool {
        !self.link().is_cut
    }

    fn link_index(&self) -> Option<u32> {
        Some(link_index(self.number))
    }

    fn speed_kbps(&self) -> u32 {
        10_000_000
    }

    fn receive(&mut self, max: usize, handle: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        let mut link = self.link();
        if link.is_broken {
            return Err(io::Error::other("broken"));
        }
        let count = max.min(link.to_switch.len());
        for frame in link.to_switch.drain(..count) {
            handle(&frame);
        }
        Ok(count)
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        let mut link = self.link();
        if !link.is_full {
            link.from_switch.push(frame.to_vec());
        }
        !link.is_full
    }

    fn flush(&mut self) {}

    fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.link().dropped)
    }

    fn as_fd(&self) -> Option<rustix::fd::BorrowedFd<'_>> {
        None
    }
}

/// Returns the system's number of a port's network interface.
pub fn link_index(number: u32) -> u32 {
    number.wrapping_add(70)
}

pub fn hw_addr(number: u32) -> MacAddr {
    MacAddr::from_u64(0x0200_0000_ff00 + u64::from(number))
}

/// The configuration of a switch with four tables and eight buffers.
pub fn config() -> SwitchConfig {
    SwitchConfig {
        datapath_id: DatapathId(0xd1),
        n_buffers: 8,
        pipeline: PipelineConfig {
            n_tables: 4,
            max_entries: 1000,
            max_groups: 10,
            max_meters: 10,
        },
        ..SwitchConfig::default()
    }
}

/// A message that the switch sent.
#[derive(Debug)]
pub struct Sent {
    pub header: Header,
    frame: Vec<u8>,
}

impl Sent {
    pub fn message(&self) -> Message<'_> {
        Message::decode(&self.frame).unwrap().1
    }
}

pub struct Bench {
    pub switch: Switch,
    pub now: Duration,
    links: BTreeMap<PortNo, Arc<Mutex<Link>>>,
    versions: BTreeMap<ConnectionId, Version>,
    xid: u32,
}

impl Bench {
    pub fn new(config: SwitchConfig) -> Self {
        Self {
            switch: Switch::new(config),
            now: Duration::from_secs(1000),
            links: BTreeMap::new(),
            versions: BTreeMap::new(),
            xid: 0x100,
        }
    }

    /// Creates a switch with ports 1 to `ports`.
    pub fn with_ports(ports: u32) -> Self {
        let mut bench = Self::new(config());
        for number in 1..=ports {
            bench.add_port(number);
        }
        bench
    }

    /// Creates a switch with ports 1 to 3, and a controller of this version.
    pub fn with_controller(version: Version) -> (Self, ConnectionId) {
        let mut bench = Self::with_ports(3);
        let controller = bench.connect(version);
        (bench, controller)
    }

    pub fn add_port(&mut self, number: u32) {
        let link = Arc::<Mutex<Link>>::default();
        let end = LinkEnd {
            number,
            link: Arc::clone(&link),
        };
        self.links.insert(PortNo(number), link);
        self.switch
            .add_port(PortNo(number), Box::new(end), self.now);
    }

    pub fn link(&self, number: u32) -> MutexGuard<'_, Link> {
        self.links[&PortNo(number)].lock().unwrap()
    }

    /// Puts a frame on a link, and makes the switch process it.
    pub fn receive(&mut self, number: u32, frame: &[u8]) {
        self.link(number).to_switch.push_back(frame.to_vec());
        self.switch.poll_ports(self.now);
    }

    /// Returns the frames sent by a port since the last call.
    pub fn sent_by(&mut self, number: u32) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.link(number).from_switch)
    }

    /// Returns the ports that have sent frames since the last call.
    pub fn senders(&mut self) -> Vec<u32> {
        let numbers: Vec<_> = self.links.keys().map(|port_no| port_no.0).collect();
        let mut senders = Vec::new();
        for number in numbers {
            if !self.sent_by(number).is_empty() {
                senders.push(number);
            }
        }
        senders
    }

    /// Connects a controller that sends no hello.
    pub fn connect_silently(&mut self) -> ConnectionId {
        self.switch.connect("tcp:192.0.2.1:6653".into(), self.now)
    }

    /// Connects a controller and sends its hello; discards the output.
    pub fn connect(&mut self, version: Version) -> ConnectionId {
        let controller = self.connect_silently();
        let hello = [version.to_wire(), 0, 0, 8, 0, 0, 0, 7];
        self.input(controller, &hello).unwrap();
        self.take(controller);
        self.versions.insert(controller, version);
        controller
    }

    pub fn input(&mut self, controller: ConnectionId, bytes: &[u8]) -> Result<(), String> {
        let handled = self.switch.handle_input(controller, bytes, self.now);
        handled.map_err(|error| error.to_string())
    }

    /// Returns the messages sent to a controller since the last call.
    pub fn take(&mut self, controller: ConnectionId) -> Vec<Sent> {
        let out = std::mem::take(self.switch.output(controller).unwrap());
        let mut rest = out.as_slice();
        let mut sent = Vec::new();
        while let Some((frame, after)) = split_frame(rest).unwrap() {
            sent.push(Sent {
                header: Header::peek(frame).unwrap(),
                frame: frame.to_vec(),
            });
            rest = after;
        }
        assert!(rest.is_empty(), "half a message was sent");
        sent
    }

    /// Returns the only message sent to a controller since the last call.
    pub fn take_one(&mut self, controller: ConnectionId) -> Sent {
        let mut sent = self.take(controller);
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.remove(0)
    }

    /// Sends a message that does not end the connection; returns its bytes.
    pub fn tell(&mut self, controller: ConnectionId, message: &Message) -> Vec<u8> {
        self.xid += 1;
        let frame = encode(self.versions[&controller], self.xid, message);
        self.input(controller, &frame).unwrap();
        frame
    }

    /// Sends a message, and asserts that it is not answered.
    pub fn tell_quietly(&mut self, controller: ConnectionId, message: &Message) {
        self.tell(controller, message);
        let sent = self.take(controller);
        assert!(
            sent.is_empty(),
            "expected no answer to {message:?}, not {:?}",
            sent[0].message()
        );
    }

    /// Sends a message, and returns the only answer.
    pub fn ask(&mut self, controller: ConnectionId, message: &Message) -> Sent {
        self.tell(controller, message);
        let answer = self.take_one(controller);
        assert_eq!(answer.header.xid, self.xid);
        answer
    }

    /// Sends a message, and returns the error that refuses and quotes it.
    pub fn refused(&mut self, controller: ConnectionId, message: &Message) -> ErrorCode {
        let frame = self.tell(controller, message);
        self.refusal(controller, &frame)
    }

    /// Returns the error that was sent about a message.
    pub fn refusal(&mut self, controller: ConnectionId, frame: &[u8]) -> ErrorCode {
        let answer = self.take_one(controller);
        assert_eq!(answer.header.xid, Header::peek(frame).unwrap().xid);
        match answer.message() {
            Message::Error(error) => {
                assert_eq!(error.data, &frame[..frame.len().min(64)]);
                error.code
            }
            other => panic!("expected an error, not {other:?}"),
        }
    }

    /// Advances the clock; returns the connections that must end.
    pub fn pass(&mut self, time: Duration) -> Vec<(ConnectionId, String)> {
        self.now += time;
        let ended = self.switch.handle_timeout(self.now).into_iter();
        ended.map(|(id, reason)| (id, reason.to_string())).collect()
    }
}

pub fn encode(version: Version, xid: u32, message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(version, xid, &mut bytes).unwrap();
    bytes
}

/// Returns a complete multipart request.
pub fn multipart(body: MultipartRequestBody<'_>) -> Message<'_> {
    Message::MultipartRequest(MultipartRequest {
        flags: MultipartFlags::empty(),
        body,
    })
}

/// Returns the body of a multipart reply.
pub fn body(sent: &Sent) -> MultipartReplyBody<'_> {
    match sent.message() {
        Message::MultipartReply(reply) => reply.body,
        other => panic!("expected a multipart reply, not {other:?}"),
    }
}

/// Returns the description of port `number` of a bench.
pub fn port(version: Version, number: u32) -> Port {
    let is_13 = version == Version::Of13;
    let speed = if is_13 { 10_000_000 } else { 0 };
    Port {
        port_no: PortNo(number),
        hw_addr: hw_addr(number),
        name: FixedName::truncated("link"),
        config: PortConfig::empty(),
        state: match is_13 {
            true => PortState::LIVE,
            false => PortState::empty(),
        },
        curr: PortFeatures::FD_10GB,
        advertised: PortFeatures::empty(),
        supported: PortFeatures::empty(),
        peer: PortFeatures::empty(),
        curr_speed: speed,
        max_speed: speed,
    }
}

/// Returns a frame from host `src` to host `dst`; 0xff stands for all hosts.
pub fn frame(src: u8, dst: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&mac(dst).octets());
    frame[6..12].copy_from_slice(&mac(src).octets());
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame
}

pub fn mac(host: u8) -> MacAddr {
    match host {
        0xff => MacAddr::BROADCAST,
        host => MacAddr::new([2, 0, 0, 0, 0, host]),
    }
}
