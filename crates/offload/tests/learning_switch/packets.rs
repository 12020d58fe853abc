//! Packets and other messages of a switch, drawn from a seed.

use rand_mt::Mt64;
use urtica_wire::{BufferId, Match, Message, PacketIn, PacketInReason, PortNo, Version};

/// A packet that a switch sends to the controller.
#[derive(Clone, Debug)]
pub struct Packet {
    pub buffer_id: u32,
    pub in_port: u32,
    pub frame: Vec<u8>,
}

impl Packet {
    /// Returns a UDP datagram between the hosts with these numbers. Host N is behind port N.
    pub fn udp(src: u8, dst: u8) -> Self {
        let mut frame = vec![0; 64];
        frame[5] = dst;
        frame[11] = src;
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[17] = 50;
        frame[23] = 17;
        frame[39] = 30;
        Self {
            buffer_id: 7,
            in_port: src.into(),
            frame,
        }
    }

    pub fn encode(&self, version: Version, xid: u32, out: &mut Vec<u8>) {
        // The general encoder refuses ports that 1.0 does not have, so they are inserted afterwards.
        let packet = PacketIn {
            buffer_id: BufferId(self.buffer_id),
            total_len: self.frame.len() as u16,
            reason: PacketInReason::NoMatch,
            table_id: 0,
            cookie: u64::MAX,
            in_port: PortNo(1),
            match_: Match::any().in_port(PortNo(1)),
            data: &self.frame,
        };
        let start = out.len();
        Message::PacketIn(packet).encode(version, xid, out).unwrap();
        match version {
            Version::Of10 => {
                out[start + 14..start + 16].copy_from_slice(&(self.in_port as u16).to_be_bytes())
            }
            Version::Of13 => {
                out[start + 32..start + 36].copy_from_slice(&self.in_port.to_be_bytes())
            }
        }
    }
}

/// Returns packet-ins that the kernel answers, of `bytes` bytes in total, which must be at least 106.
pub fn segment_of(bytes: usize, version: Version) -> Vec<u8> {
    let mut packet = Packet::udp(1, 2);
    let mut message = Vec::new();
    packet.encode(version, 1, &mut message);
    let mut segment = message.repeat((bytes / message.len()).max(1) - 1);
    let last_bytes = bytes - segment.len();
    let header_bytes = message.len() - packet.frame.len();
    packet.frame.resize(last_bytes - header_bytes, 0);
    packet.encode(version, 1, &mut segment);
    segment
}

/// Draws pseudo-random numbers and messages.
pub struct Draw(Mt64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(Mt64::new(seed))
    }

    pub fn below(&mut self, bound: u32) -> u32 {
        (self.0.next_u64() % u64::from(bound)) as u32
    }

    fn one_in(&mut self, count: u32) -> bool {
        self.below(count) == 0
    }

    /// Draws a packet that the kernel answers.
    pub fn plain_packet(&mut self) -> Packet {
        let (src, dst) = (self.below(40) as u8 + 1, self.below(40) as u8 + 1);
        Packet {
            in_port: u32::from(src) % 6 + 1,
            ..Packet::udp(src, dst)
        }
    }

    /// Draws a packet of any kind.
    fn packet(&mut self) -> Packet {
        let mut packet = self.plain_packet();
        let frame = &mut packet.frame;
        frame.resize(60 + self.below(80) as usize, 0xa5);
        // Hosts with colliding hashes, which displace each other.
        frame[6] = self.below(3) as u8 * 2;
        frame[10] = self.below(20) as u8;
        frame[0] = if self.one_in(3) { frame[6] } else { 0 };
        frame[4] = self.below(20) as u8;
        let protocol = [1, 6, 17, 17, 17, 47, 58, 132][self.below(8) as usize];
        frame[23] = protocol;
        frame[46] = [0x50, 0x50, 0x60, 0x40, 0xf0][self.below(5) as usize];
        let port = self.below(65536);
        packet.frame[34..36].copy_from_slice(&(port as u16).to_be_bytes());
        self.spoil(&mut packet);
        if self.one_in(3) {
            packet.buffer_id = u32::MAX;
        }
        packet
    }

    /// Makes the packet unusual, now and then.
    fn spoil(&mut self, packet: &mut Packet) {
        let frame = &mut packet.frame;
        match self.below(40) {
            0 => frame[..6].copy_from_slice(&[0xff; 6]),
            1 => frame[..6].copy_from_slice(&[0x33, 0x33, 0, 0, 0, 1]),
            2 => frame[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 0xe]),
            3 => frame[12..14].copy_from_slice(&[8, 6]),
            4 => frame[12..14].copy_from_slice(&[0x81, 0]),
            5 => frame[12..14].copy_from_slice(&[0x86, 0xdd]),
            6 => frame[14] = 0x46,
            7 => frame[20] = 0x20,
            8 => frame[21] = 1,
            9 => frame[16..18].copy_from_slice(&[0, 19]),
            10 => frame[16..18].copy_from_slice(&[0, 24]),
            11 => frame[38..40].copy_from_slice(&[0, 7]),
            12 => frame[6..12].copy_from_slice(&[0; 6]),
            13 => frame[6] |= 1,
            14 => frame[15] = 0xff,
            15 => frame[20] = 0x40,
            16 => {
                let length = self.below(48) as usize;
                frame.truncate(length);
            }
            17 => frame.resize(1514, 0x5a),
            18 => frame.resize(2100, 0x5a),
            _ => {}
        }
    }

    /// Returns `messages` messages, mostly packet-ins.
    pub fn stream(&mut self, version: Version, messages: u32) -> Vec<u8> {
        let mut stream = Vec::new();
        let is_pure = self.one_in(2);
        for xid in 0..messages {
            match if is_pure { 0 } else { self.below(25) } {
                1 => self.other(version, xid, &mut stream),
                _ if is_pure && !self.one_in(20) => {
                    let mut packet = self.plain_packet();
                    packet.buffer_id = if self.one_in(2) { u32::MAX } else { xid };
                    packet.encode(version, xid, &mut stream);
                }
                _ => self.packet().encode(version, xid, &mut stream),
            }
        }
        stream
    }

    /// Appends a message that is not a well-formed packet-in.
    fn other(&mut self, version: Version, xid: u32, stream: &mut Vec<u8>) {
        let start = stream.len();
        match self.below(5) {
            0 => Message::EchoRequest(b"are you there?")
                .encode(version, xid, stream)
                .unwrap(),
            1 => Message::BarrierReply.encode(version, xid, stream).unwrap(),
            2 => Message::EchoReply(&[1; 3000])
                .encode(version, xid, stream)
                .unwrap(),
            // A packet-in that is too short to be one.
            3 => stream.extend([version.to_wire(), 10, 0, 12, 0, 0, 0, xid as u8, 0, 0, 0, 0]),
            // Of another version.
            _ => {
                self.plain_packet().encode(version, xid, stream);
                stream[start] = 5;
            }
        }
    }

    /// Cuts a stream into pieces.
    pub fn cut<'s>(&mut self, stream: &'s [u8]) -> Vec<&'s [u8]> {
        let mut pieces = Vec::new();
        let mut rest = stream;
        let longest = [5, 100, 1000, 8000, 30000][self.below(5) as usize];
        while !rest.is_empty() {
            let length = (self.below(longest) as usize + 1).min(rest.len());
            let (piece, after) = rest.split_at(length);
            pieces.push(piece);
            rest = after;
        }
        pieces
    }
}
