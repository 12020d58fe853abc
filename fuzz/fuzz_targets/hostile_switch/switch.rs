//! The hostile switch's end of its connection.

use crate::net::Net;
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use urtica_controller::ConnectionId;
use urtica_wire::{
    BufferId, Capabilities, DatapathId, ErrorCode, ErrorMessage, Features, FlowRemoved,
    FlowRemovedReason, FlowStats, List, MacAddr, Match, Message, MultipartFlags, MultipartReply,
    MultipartReplyBody, PacketIn, PacketInReason, Port, PortNo, PortReason, PortState, PortStatus,
    Version, split_frame,
};

/// Its datapath ids begin here: of two switches with one id the newer is used, so that it could put out the others.
const FIRST_ID: u64 = 100;

/// How many of the controller's questions it remembers.
const REMEMBERED: usize = 16;

/// What it says in one message.
#[derive(Arbitrary, Debug)]
pub enum Said {
    Hello {
        version: u8,
        body: Bytes,
    },
    Features {
        xid: Xid,
        id: u8,
        n_tables: u8,
        auxiliary_id: u8,
        ports: Numbers,
    },
    PortDescription {
        xid: Xid,
        more: bool,
        ports: Numbers,
    },
    PortStatus {
        reason: u8,
        port: Number,
        is_up: bool,
    },
    PacketIn {
        in_port: Number,
        kept: Option<u32>,
        total_len: u16,
        cookie: u64,
        frame: Frame,
    },
    Error {
        xid: Xid,
        error_type: u8,
        code: u8,
        data: Bytes,
    },
    FlowStats {
        xid: Xid,
        more: bool,
        count: u8,
        cookie: u64,
        priority: u16,
    },
    FlowRemoved {
        cookie: u64,
        priority: u16,
        reason: u8,
        table_id: u8,
        in_port: Option<Number>,
    },
    EchoRequest(Bytes),
    EchoReply {
        xid: Xid,
    },
    BarrierReply {
        xid: Xid,
    },
    /// A header that is right, and any body.
    Body {
        xid: Xid,
        message_type: u8,
        body: Bytes,
    },
    Bytes(Bytes),
}

/// What it calls the message that it answers.
#[derive(Arbitrary, Debug)]
pub enum Xid {
    /// One of the latest that it was asked.
    Asked(u8),
    Any(u32),
}

#[derive(Arbitrary, Debug)]
pub enum Number {
    Small(u8),
    Any(u32),
}

/// Consecutive port numbers.
#[derive(Arbitrary, Debug)]
pub struct Numbers {
    first: Number,
    count: u16,
}

/// Addresses are few, some of them those of hosts at other switches.
#[derive(Arbitrary, Debug)]
pub enum Frame {
    /// The latest probe that it was to send out.
    Probe,
    /// That, changed in a byte.
    ChangedProbe {
        at: u8,
        to: u8,
    },
    Arp {
        is_reply: bool,
        src: u8,
        dst: u8,
        sender: u8,
        target: u8,
    },
    Ip {
        src: u8,
        dst: u8,
        is_newest: bool,
        payload: Bytes,
    },
    Bytes(Bytes),
}

/// At most 255 of them: one message leaves some of the input for the next.
#[derive(Debug)]
pub struct Bytes(Vec<u8>);

impl<'a> Arbitrary<'a> for Bytes {
    fn arbitrary(input: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let len = usize::from(input.arbitrary::<u8>()?).min(input.len());
        Ok(Self(input.bytes(len)?.to_vec()))
    }
}

#[derive(Default)]
pub struct HostileSwitch {
    connection: Option<ConnectionId>,
    is_newest: bool,
    /// Whether it takes what it is sent.
    pub reads: bool,
    /// How many bytes it has said.
    pub said: u64,
    unread: Vec<u8>,
    asked: Vec<u32>,
    probe: Vec<u8>,
}

impl HostileSwitch {
    pub fn is(&self, connection: ConnectionId) -> bool {
        self.connection == Some(connection)
    }

    pub fn connect(&mut self, net: &mut Net, is_newest: bool) {
        if let Some(connection) = self.connection.take() {
            net.controller.disconnect(connection, net.now);
        }
        self.connection = Some(net.controller.connect("hostile".into(), net.now));
        self.is_newest = is_newest;
        self.unread.clear();
        self.asked.clear();
        // What a connection itself costs.
        self.said += 1024;
    }

    /// Hello, features and ports, as a switch should say them.
    pub fn join(&mut self, net: &mut Net, is_newest: bool, id: u8, ports: u8) {
        self.connect(net, is_newest);
        let hello = [self.version().to_wire(), 0, 0, 8, 0, 0, 0, 0];
        self.say(net, &hello);
        self.take(net, usize::MAX);
        let numbers = || Numbers {
            first: Number::Small(1),
            count: ports.into(),
        };
        let features = self.put(&Said::Features {
            xid: Xid::Asked(0),
            id,
            n_tables: 1,
            auxiliary_id: 0,
            ports: numbers(),
        });
        self.say(net, &features);
        self.take(net, usize::MAX);
        for asked in 0..self.asked.len() as u8 {
            let described = self.put(&Said::PortDescription {
                xid: Xid::Asked(asked),
                more: false,
                ports: numbers(),
            });
            self.say(net, &described);
        }
    }

    pub fn say(&mut self, net: &mut Net, bytes: &[u8]) {
        let Some(connection) = self.connection else {
            return;
        };
        self.said += bytes.len() as u64;
        if net
            .controller
            .handle_input(connection, bytes, net.now)
            .is_err()
        {
            net.controller.disconnect(connection, net.now);
            self.connection = None;
        }
    }

    pub fn take_if_it_reads(&mut self, net: &mut Net) {
        if self.reads {
            self.take(net, usize::MAX);
            net.settle();
        }
    }

    /// Takes so many bytes of what waits for it, and remembers what is asked and which probes are to be sent out.
    pub fn take(&mut self, net: &mut Net, bytes: usize) {
        let output = self
            .connection
            .and_then(|connection| net.controller.output(connection));
        let Some(output) = output else {
            return;
        };
        self.unread.extend(output.drain(..bytes.min(output.len())));
        let unread = std::mem::take(&mut self.unread);
        let mut rest = &unread[..];
        while let Some((frame, after)) = split_frame(rest).expect("what is sent is well formed") {
            let (header, message) = Message::decode(frame).expect("what is sent can be read");
            self.hear(header.xid, &message);
            rest = after;
        }
        self.unread = rest.to_vec();
    }

    fn hear(&mut self, xid: u32, message: &Message) {
        match message {
            Message::FeaturesRequest | Message::MultipartRequest(_) | Message::BarrierRequest => {
                self.asked.insert(0, xid);
                self.asked.truncate(REMEMBERED);
            }
            Message::PacketOut(out) if out.data.get(12..14) == Some(&[0x88, 0xcc]) => {
                self.probe = out.data.to_vec();
            }
            _ => {}
        }
    }

    fn version(&self) -> Version {
        match self.is_newest {
            true => Version::Of13,
            false => Version::Of10,
        }
    }

    fn xid(&self, xid: &Xid) -> u32 {
        match xid {
            Xid::Asked(number) => {
                let number = usize::from(*number) % self.asked.len().max(1);
                self.asked.get(number).copied().unwrap_or(0)
            }
            Xid::Any(xid) => *xid,
        }
    }

    /// The bytes of a message; none where its version has no such message.
    pub fn put(&self, said: &Said) -> Vec<u8> {
        match said {
            Said::Hello { version, body } => raw(*version, 0, 0, &body.0),
            Said::Features {
                xid,
                id,
                n_tables,
                auxiliary_id,
                ports,
            } => {
                let features = Features {
                    datapath_id: DatapathId(FIRST_ID + u64::from(*id % 4)),
                    n_buffers: 0,
                    n_tables: *n_tables,
                    auxiliary_id: *auxiliary_id,
                    capabilities: Capabilities::empty(),
                    actions: 0,
                    ports: match self.version() {
                        Version::Of10 => ports.ports().into(),
                        Version::Of13 => List::default(),
                    },
                };
                self.encode(self.xid(xid), &Message::FeaturesReply(features))
            }
            Said::PortDescription { xid, more, ports } => {
                let body = MultipartReplyBody::PortDesc(ports.ports().into());
                self.reply(xid, *more, body)
            }
            Said::PortStatus {
                reason,
                port,
                is_up,
            } => {
                let mut port = described(port.get());
                port.state.set(PortState::LINK_DOWN, !is_up);
                let reason = match reason % 3 {
                    0 => PortReason::Add,
                    1 => PortReason::Delete,
                    _ => PortReason::Modify,
                };
                self.encode(0, &Message::PortStatus(PortStatus { reason, port }))
            }
            Said::PacketIn {
                in_port,
                kept,
                total_len,
                cookie,
                frame,
            } => {
                let in_port = PortNo(in_port.get());
                let data = self.frame(frame);
                let packet = PacketIn {
                    buffer_id: kept.map_or(BufferId::NONE, BufferId),
                    total_len: (*total_len).max(data.len() as u16),
                    reason: PacketInReason::NoMatch,
                    table_id: 0,
                    cookie: *cookie,
                    in_port,
                    match_: Match::any().in_port(in_port),
                    data: &data,
                };
                self.encode(0, &Message::PacketIn(packet))
            }
            Said::Error {
                xid,
                error_type,
                code,
                data,
            } => {
                let code = ErrorCode::from_wire(
                    self.version(),
                    u16::from(*error_type % 16),
                    u16::from(*code % 16),
                );
                self.encode(
                    self.xid(xid),
                    &Message::Error(ErrorMessage {
                        code,
                        data: &data.0,
                    }),
                )
            }
            Said::FlowStats {
                xid,
                more,
                count,
                cookie,
                priority,
            } => {
                let entry = FlowStats {
                    table_id: 0,
                    duration_sec: 0,
                    duration_nsec: 0,
                    priority: *priority,
                    idle_timeout: 0,
                    hard_timeout: 0,
                    flags: Default::default(),
                    cookie: *cookie,
                    packet_count: 0,
                    byte_count: 0,
                    match_: Match::any(),
                    instructions: List::default(),
                };
                let entries = (0..*count).map(|_| entry.clone()).collect();
                self.reply(xid, *more, MultipartReplyBody::Flow(entries))
            }
            Said::FlowRemoved {
                cookie,
                priority,
                reason,
                table_id,
                in_port,
            } => {
                let match_ = match in_port {
                    Some(number) => Match::any().in_port(PortNo(number.get())),
                    None => Match::any(),
                };
                let removed = FlowRemoved {
                    cookie: *cookie,
                    priority: *priority,
                    reason: match reason % 2 {
                        0 => FlowRemovedReason::IdleTimeout,
                        _ => FlowRemovedReason::Delete,
                    },
                    table_id: *table_id,
                    duration_sec: 1,
                    duration_nsec: 0,
                    idle_timeout: 1,
                    hard_timeout: 0,
                    packet_count: 0,
                    byte_count: 0,
                    match_,
                };
                self.encode(0, &Message::FlowRemoved(removed))
            }
            Said::EchoRequest(data) => self.encode(1, &Message::EchoRequest(&data.0)),
            Said::EchoReply { xid } => self.encode(self.xid(xid), &Message::EchoReply(&[])),
            Said::BarrierReply { xid } => self.encode(self.xid(xid), &Message::BarrierReply),
            Said::Body {
                xid,
                message_type,
                body,
            } => raw(
                self.version().to_wire(),
                *message_type % 32,
                self.xid(xid),
                &body.0,
            ),
            Said::Bytes(bytes) => bytes.0.clone(),
        }
    }

    fn reply(&self, xid: &Xid, more: bool, body: MultipartReplyBody) -> Vec<u8> {
        let flags = match more {
            true => MultipartFlags::MORE,
            false => MultipartFlags::empty(),
        };
        let reply = Message::MultipartReply(MultipartReply { flags, body });
        self.encode(self.xid(xid), &reply)
    }

    fn encode(&self, xid: u32, message: &Message) -> Vec<u8> {
        let mut bytes = Vec::new();
        match message.encode(self.version(), xid, &mut bytes) {
            Ok(()) => bytes,
            Err(_) => Vec::new(),
        }
    }

    fn frame(&self, frame: &Frame) -> Vec<u8> {
        match frame {
            Frame::Probe => self.probe.clone(),
            Frame::ChangedProbe { at, to } => {
                let mut probe = self.probe.clone();
                let at = usize::from(*at) % probe.len().max(1);
                if let Some(byte) = probe.get_mut(at) {
                    *byte = *to;
                }
                probe
            }
            Frame::Arp {
                is_reply,
                src,
                dst,
                sender,
                target,
            } => {
                let mut bytes = ethernet(*src, *dst, [0x08, 0x06]);
                bytes.extend([0, 1, 8, 0, 6, 4, 0, 1 + u8::from(*is_reply)]);
                bytes.extend(mac(*src));
                bytes.extend([10, 0, 0, sender % 8]);
                bytes.extend(mac(*dst));
                bytes.extend([10, 0, 0, target % 8]);
                bytes
            }
            Frame::Ip {
                src,
                dst,
                is_newest,
                payload,
            } => {
                let ether_type = match is_newest {
                    true => [0x86, 0xdd],
                    false => [0x08, 0x00],
                };
                let mut bytes = ethernet(*src, *dst, ether_type);
                bytes.extend(&payload.0);
                bytes
            }
            Frame::Bytes(bytes) => bytes.0.clone(),
        }
    }
}

impl Number {
    fn get(&self) -> u32 {
        match self {
            Self::Small(number) => (*number).into(),
            Self::Any(number) => *number,
        }
    }
}

impl Numbers {
    /// As many as one message has room for.
    fn ports(&self) -> Vec<Port> {
        let numbers = 0..u32::from(self.count % 1000);
        let numbers = numbers.map(|number| self.first.get().wrapping_add(number));
        numbers.map(described).collect()
    }
}

fn described(number: u32) -> Port {
    let mac = MacAddr::from_u64(0x0a00_0000_0000 + u64::from(number));
    Port::new(PortNo(number), mac, "port")
}

fn raw(version: u8, message_type: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![version, message_type];
    bytes.extend((8 + body.len() as u16).to_be_bytes());
    bytes.extend(xid.to_be_bytes());
    bytes.extend(body);
    bytes
}

fn ethernet(src: u8, dst: u8, ether_type: [u8; 2]) -> Vec<u8> {
    [&mac(dst)[..], &mac(src)[..], &ether_type[..]].concat()
}

/// All that begins with 2 is a host's; 255 stands for all.
fn mac(number: u8) -> [u8; 6] {
    match number {
        255 => [255; 6],
        _ => [2, 0, 0, 0, 0, number % 8],
    }
}
