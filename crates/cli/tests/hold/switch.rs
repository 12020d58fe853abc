//! A minimal switch, which checks that each packet is answered once and in order.

use crate::room::DEADLINE;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use urtica_wire::{
    BufferId, Capabilities, DatapathId, Features, Header, List, MacAddr, Match, Message,
    MultipartFlags, MultipartReply, MultipartReplyBody, PacketIn, PacketInReason, Port, PortNo,
    Version, split_frame,
};

/// The number of a switch's outstanding requests.
const OUTSTANDING: u64 = 64;

/// A switch with one port and numbered packets.
pub struct FakeSwitch {
    pub socket: TcpStream,
    pub version: Version,
    id: u64,
    received: Vec<u8>,
    /// The number of the last packet sent, and of the last packet flooded.
    pub sent: u64,
    pub flooded: u64,
    /// The length of its packets.
    pub frame_len: usize,
    /// Whether its messages are sent in two parts, cut at any byte.
    pub is_segmented: bool,
    /// The interval of packets that no kernel half answers.
    pub others: Option<u64>,
    /// Whether only the start of a message has been sent, so that replies wait for the rest.
    pub is_cut: bool,
    pub replies: Vec<u8>,
    /// The counter in the program's last xid.
    last_xid: Option<u32>,
    /// The senders in the xids of packet-outs.
    pub senders: BTreeSet<u8>,
}

impl FakeSwitch {
    /// Connects, and waits until the program floods the switch's packets.
    pub fn join(port: u16, version: Version, id: u64) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut switch = Self::over(socket, version, id);
        let hello = [version.to_wire(), 0, 0, 8, 0, 0, 0, 0];
        switch.socket.write_all(&hello).unwrap();
        while !switch.has_joined() {
            assert!(switch.take_frame(), "the connection ended");
        }
        switch
    }

    /// Returns a switch that has joined by this connection, and has received this xid last.
    pub fn joined(socket: TcpStream, version: Version, last_xid: u32) -> Self {
        Self {
            last_xid: Some(last_xid),
            ..Self::over(socket, version, 0)
        }
    }

    fn over(socket: TcpStream, version: Version, id: u64) -> Self {
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Self {
            socket,
            version,
            id,
            received: Vec::new(),
            sent: 0,
            flooded: 0,
            frame_len: 60,
            is_segmented: false,
            others: None,
            is_cut: false,
            replies: Vec::new(),
            last_xid: None,
            senders: BTreeSet::new(),
        }
    }

    /// Returns `true` once the program has requested the switch's features: from the reply on, packets are flooded.
    fn has_joined(&self) -> bool {
        self.id == 0
    }

    pub fn packet(&mut self) -> Vec<u8> {
        self.sent += 1;
        let mut frame = vec![0; self.frame_len];
        // Broadcast, which a kernel half always answers.
        frame[..6].fill(0xff);
        if self.others.is_some_and(|others| self.sent % others == 0) {
            frame[0] = 0x02;
        }
        frame[14..22].copy_from_slice(&self.sent.to_be_bytes());
        let packet = PacketIn {
            buffer_id: BufferId::NONE,
            total_len: self.frame_len as u16,
            reason: PacketInReason::NoMatch,
            table_id: 0,
            cookie: u64::MAX,
            in_port: PortNo(1),
            match_: Match::any().in_port(PortNo(1)),
            data: &frame,
        };
        encode(self.version, 0, &Message::PacketIn(packet))
    }

    pub fn send_packets(&mut self, count: u64) {
        let packets: Vec<_> = (0..count).flat_map(|_| self.packet()).collect();
        let cut = match self.is_segmented {
            true => self.sent as usize * 31 % (packets.len() + 1),
            false => 0,
        };
        let (first, rest) = packets.split_at(cut);
        self.socket.write_all(first).unwrap();
        self.socket.write_all(rest).unwrap();
    }

    /// Reads until all packets have been flooded.
    pub fn settle(&mut self) {
        while self.flooded < self.sent {
            assert!(self.take_frame(), "the connection ended");
        }
    }

    /// Returns `true` if any bytes arrive in time.
    pub fn hears_something(&mut self, patience: Duration) -> bool {
        self.socket.set_read_timeout(Some(patience)).unwrap();
        let heard = self.socket.peek(&mut [0]).is_ok_and(|count| count > 0);
        self.socket.set_read_timeout(Some(DEADLINE)).unwrap();
        heard
    }

    /// Handles the next message; returns `false` at the end of the connection.
    pub fn take_frame(&mut self) -> bool {
        loop {
            if let Some((frame, rest)) = split_frame(&self.received).unwrap() {
                let (frame, rest) = (frame.to_vec(), rest.to_vec());
                self.received = rest;
                self.handle(&frame);
                return true;
            }
            let mut buffer = [0; 16 << 10];
            match self.socket.read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                // A reset is an end, too: the peer closed the connection with unread messages.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return false,
                Err(error) => panic!("nothing comes: {error}"),
            }
        }
    }

    fn handle(&mut self, frame: &[u8]) {
        let xid = Header::peek(frame).unwrap().xid;
        let (_, message) = Message::decode(frame).unwrap();
        if !matches!(message, Message::Hello(_) | Message::EchoReply(_)) {
            let counter = xid & 0xff_ffff;
            let expected = self.last_xid.map_or(counter, |last| last + 1);
            assert_eq!(counter, expected, "xids go on");
            self.last_xid = Some(counter);
        }
        let reply = match message {
            Message::PacketOut(packet_out) => {
                let number = u64::from_be_bytes(packet_out.data[14..22].try_into().unwrap());
                assert_eq!(number, self.flooded + 1, "each packet, once and in order");
                self.flooded = number;
                self.senders.insert((xid >> 24) as u8);
                return;
            }
            Message::FeaturesRequest => features(self.version, std::mem::take(&mut self.id)),
            Message::MultipartRequest(_) => {
                let body = MultipartReplyBody::PortDesc(List::from(vec![port()]));
                let flags = MultipartFlags::empty();
                Message::MultipartReply(MultipartReply { flags, body })
            }
            Message::EchoRequest(data) => Message::EchoReply(data),
            Message::Hello(_) | Message::SetConfig(_) | Message::FlowMod(_) => return,
            other => panic!("{other:?}"),
        };
        self.replies.extend(encode(self.version, xid, &reply));
        if !self.is_cut {
            self.socket.write_all(&self.replies).unwrap();
            self.replies.clear();
        }
    }

    /// Keeps requests outstanding until `stop` is set, and counts the answers.
    pub fn load(mut self, stop: &AtomicBool, answered: &AtomicU64) -> Self {
        self.send_packets(OUTSTANDING);
        while !stop.load(Ordering::Relaxed) {
            let before = self.flooded;
            assert!(self.take_frame(), "the connection ended");
            answered.fetch_add(self.flooded - before, Ordering::Relaxed);
            self.send_packets(self.flooded - before);
        }
        self.settle();
        self
    }
}

fn encode(version: Version, xid: u32, message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(version, xid, &mut bytes).unwrap();
    bytes
}

fn port() -> Port {
    Port::new(PortNo(1), MacAddr::from_u64(0x0200_0000_0001), "eth1")
}

fn features(version: Version, id: u64) -> Message<'static> {
    let ports = match version {
        Version::Of10 => vec![port()],
        Version::Of13 => vec![],
    };
    Message::FeaturesReply(Features {
        datapath_id: DatapathId(id),
        n_buffers: 0,
        n_tables: 1,
        auxiliary_id: 0,
        capabilities: Capabilities::empty(),
        actions: 0,
        ports: List::from(ports),
    })
}
