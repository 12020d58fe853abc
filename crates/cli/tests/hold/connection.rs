//! The connection of a switch that joins and answers requests, for tests of kernel halves that know hosts.

use crate::room::DEADLINE;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use urtica_wire::{
    BufferId, Capabilities, DatapathId, Features, Header, List, MacAddr, Match, Message,
    MultipartFlags, MultipartReply, MultipartReplyBody, MultipartRequestBody, PacketIn,
    PacketInReason, Port, PortNo, Version, split_frame,
};

/// A switch's connection.
pub struct Connection {
    socket: TcpStream,
    version: Version,
    id: u8,
    /// The number of its ports, from port 1 on.
    ports: u32,
    received: Vec<u8>,
    has_joined: bool,
}

impl Connection {
    /// Connects, and joins as a switch with this id and number of ports.
    pub fn join(port: u16, version: Version, id: u8, ports: u32) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        socket.set_nodelay(true).unwrap();
        let mut connection = Self {
            socket,
            version,
            id,
            ports,
            received: Vec::new(),
            has_joined: false,
        };
        connection.wait_at_most(DEADLINE);
        connection.write(&[version.to_wire(), 0, 0, 8, 0, 0, 0, 0]);
        while !connection.has_joined {
            let message = connection.receive().expect("it joins");
            connection.answer(&message);
        }
        connection
    }

    /// Sets the timeout of [`receive`](Self::receive).
    pub fn wait_at_most(&self, time: Duration) {
        self.socket.set_read_timeout(Some(time)).unwrap();
    }

    /// Sends a packet-in for a frame that arrives at a port.
    pub fn packet_in(&mut self, port: u32, frame: &[u8]) {
        let in_port = PortNo(port);
        let packet = PacketIn {
            buffer_id: BufferId::NONE,
            total_len: frame.len() as u16,
            reason: PacketInReason::NoMatch,
            table_id: 0,
            cookie: u64::MAX,
            in_port,
            match_: Match::any().in_port(in_port),
            data: frame,
        };
        self.send(0, &Message::PacketIn(packet));
    }

    /// Sends a message.
    pub fn send(&mut self, xid: u32, message: &Message) {
        let mut bytes = Vec::new();
        message.encode(self.version, xid, &mut bytes).unwrap();
        self.write(&bytes);
    }

    fn write(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("it stays connected");
    }

    /// Returns the next message; `None` if none arrives in time.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some((frame, rest)) = split_frame(&self.received).unwrap() {
                let (frame, rest) = (frame.to_vec(), rest.to_vec());
                self.received = rest;
                return Some(frame);
            }
            let mut buffer = [0; 16 << 10];
            match self.socket.read(&mut buffer) {
                Ok(0) => panic!("the connection has ended"),
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Answers a request, as a switch without flow entries; ignores other messages.
    pub fn answer(&mut self, message: &[u8]) {
        let xid = Header::peek(message).unwrap().xid;
        let reply = match Message::decode(message).unwrap().1 {
            Message::FeaturesRequest => {
                self.has_joined |= self.version == Version::Of10;
                self.features()
            }
            Message::MultipartRequest(request) => {
                let is_for_ports = matches!(request.body, MultipartRequestBody::PortDesc);
                self.has_joined |= is_for_ports;
                let body = match is_for_ports {
                    true => MultipartReplyBody::PortDesc(self.port_list()),
                    false => MultipartReplyBody::Flow(List::default()),
                };
                let flags = MultipartFlags::empty();
                Message::MultipartReply(MultipartReply { flags, body })
            }
            Message::EchoRequest(data) => return self.send(xid, &Message::EchoReply(data)),
            Message::BarrierRequest => Message::BarrierReply,
            _ => return,
        };
        self.send(xid, &reply);
    }

    fn features(&self) -> Message<'static> {
        Message::FeaturesReply(Features {
            datapath_id: DatapathId(self.id.into()),
            n_buffers: 0,
            n_tables: 1,
            auxiliary_id: 0,
            capabilities: Capabilities::empty(),
            actions: 0,
            ports: match self.version {
                Version::Of10 => self.port_list(),
                Version::Of13 => List::default(),
            },
        })
    }

    fn port_list(&self) -> List<'static, Port> {
        let port = |number: u32| {
            let mac = MacAddr::from_u64(0x0600_0000_0000 + u64::from(number));
            Port::new(PortNo(number), mac, &format!("eth{number}"))
        };
        List::from((1..=self.ports).map(port).collect::<Vec<_>>())
    }
}
