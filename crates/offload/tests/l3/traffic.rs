//! Traffic of a router's hosts, drawn from a seed.

use crate::packets::Draw;
use crate::pair::packet_in;
use crate::plan::{
    HOSTS, frame, gateway_ip, gateway_mac, gateway_of, handed, header, ip_of, mac_of, port_of,
    question, question_for_gateway,
};
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use urtica_wire::packet::{Arp, Icmpv4, Ipv4, ether_type, ip_proto};
use urtica_wire::{MacAddr, Message, Version};

/// Generates traffic.
pub struct Traffic {
    pub draw: Draw,
    /// The hosts between which packets are sent.
    hosts: RangeInclusive<u8>,
    /// Number of ICMP errors that may still be caused, since their rate is limited.
    errors: u32,
    /// The number of the last packet, so that each differs from the one before it.
    number: u16,
}

impl Traffic {
    /// Generates traffic of all hosts.
    pub fn new(seed: u64) -> Self {
        Self::of(1..=HOSTS, seed)
    }

    /// Generates traffic of these hosts.
    pub fn of(hosts: RangeInclusive<u8>, seed: u64) -> Self {
        Self {
            draw: Draw::new(seed),
            hosts,
            errors: 90,
            number: 0,
        }
    }

    /// Draws a host's number.
    pub fn host(&mut self) -> u8 {
        let (first, last) = (*self.hosts.start(), *self.hosts.end());
        first + self.draw.below(u32::from(last - first) + 1) as u8
    }

    /// Returns `messages` messages, mostly packet-ins. In a pure stream, the kernel can answer nearly all of them.
    pub fn stream(&mut self, version: Version, messages: u32) -> Vec<u8> {
        let mut stream = Vec::new();
        let is_pure = self.draw.below(2) == 0;
        for xid in 0..messages {
            match self.draw.below(if is_pure { 400 } else { 25 }) {
                0 => Message::EchoRequest(b"are you there?")
                    .encode(version, xid, &mut stream)
                    .unwrap(),
                1 => Message::BarrierReply
                    .encode(version, xid, &mut stream)
                    .unwrap(),
                2 => self.malformed(version, xid, &mut stream),
                3..=12 => self.other(version, xid, &mut stream),
                _ => self.plain(version, xid, &mut stream),
            }
        }
        stream
    }

    /// Appends a message that is refused, or that is unlike those of most switches.
    fn malformed(&mut self, version: Version, xid: u32, stream: &mut Vec<u8>) {
        let start = stream.len();
        match self.draw.below(4) {
            // A packet-in that is too short to be one.
            0 => stream.extend([version.to_wire(), 10, 0, 12, 0, 0, 0, xid as u8, 0, 0, 0, 0]),
            // Of another version.
            1 => {
                self.plain(version, xid, stream);
                stream[start] = 5;
            }
            // A port that does not exist or is reserved.
            2 => {
                self.plain(version, xid, stream);
                let port_at = match version {
                    Version::Of10 => 14,
                    Version::Of13 => 34,
                };
                let port = [9_u16, 0x8001, 0xfffe, 0xffff][self.draw.below(4) as usize];
                stream[start + port_at..start + port_at + 2].copy_from_slice(&port.to_be_bytes());
            }
            // A match that starts with another field, or claims to be longer.
            _ => {
                self.plain(version, xid, stream);
                let at = match version {
                    Version::Of10 => 12,
                    Version::Of13 => 24 + self.draw.below(8) as usize,
                };
                stream[start + at] ^= 1;
            }
        }
    }

    /// Appends a message that the kernel answers once it knows the hosts.
    pub fn plain(&mut self, version: Version, xid: u32, stream: &mut Vec<u8>) {
        let src = self.host();
        let frame = match self.draw.below(6) {
            0 => question_for_gateway(src),
            _ => {
                let (header, payload) = self.datagram(src);
                handed(src, &header, &payload)
            }
        };
        packet_in(port_of(src), frame).encode(version, xid, stream);
    }

    /// Draws a packet from a host to another host, or to a host behind the router in the first subnet.
    fn datagram(&mut self, src: u8) -> (Ipv4, Vec<u8>) {
        let dst = match self.draw.below(8) {
            // Host 1 is a router.
            0 if self.hosts.contains(&1) => Ipv4Addr::new(192, 168, 0, self.draw.below(5) as u8),
            _ => ip_of(self.host()),
        };
        self.number = self.number.wrapping_add(1);
        let header = Ipv4 {
            identification: self.number,
            ttl: self.draw.below(254) as u8 + 2,
            dscp: self.draw.below(64) as u8,
            ecn: self.draw.below(4) as u8,
            dont_fragment: self.draw.below(2) == 0,
            proto: [1, 6, 17, 47, 132][self.draw.below(5) as usize],
            ..header(src, dst)
        };
        let length = match self.draw.below(10) {
            0 => self.draw.below(1500),
            _ => self.draw.below(100),
        };
        let payload = (0..length).map(|_| self.draw.below(256) as u8).collect();
        (header, payload)
    }

    /// Appends an unusual packet-in.
    fn other(&mut self, version: Version, xid: u32, stream: &mut Vec<u8>) {
        let src = self.host();
        let frame = match self.draw.below(4) {
            0 => self.other_question(src),
            1 => self.other_frame(src),
            _ => self.other_packet(src),
        };
        let mut packet = packet_in(port_of(src), frame);
        if self.draw.below(4) == 0 {
            packet.buffer_id = xid;
            let length = self.draw.below(packet.frame.len() as u32 + 1) as usize;
            if self.draw.below(3) == 0 {
                // The switch keeps the missing part.
                packet.frame.truncate(length);
            }
        }
        packet.encode(version, xid, stream);
    }

    fn other_question(&mut self, src: u8) -> Vec<u8> {
        let mut arp = Arp::request(mac_of(src), ip_of(src), gateway_ip(ip_of(src).octets()[2]));
        let (mut eth_src, mut eth_dst) = (mac_of(src), MacAddr::BROADCAST);
        match self.draw.below(12) {
            0 => arp.tpa = gateway_ip(self.draw.below(3) as u8 + 1),
            1 => arp.tpa = arp.spa,
            2 => arp.op = self.draw.below(12) as u16,
            3 => eth_dst = gateway_of(src),
            4 => eth_dst = mac_of(self.host()),
            5 => arp.spa = Ipv4Addr::UNSPECIFIED,
            6 => arp.sha = MacAddr::new([2, 0, 0, 0, 9, src]),
            7 => eth_src = MacAddr::new([2, 0, 0, 9, 0, src]),
            8 => arp.tha = mac_of(self.host()),
            // Another address of this host, which has up to three.
            9 => arp.spa = Ipv4Addr::new(10, 0, 3, 100 + src + 40 * self.draw.below(3) as u8),
            10 => return question(src, Ipv4Addr::new(10, 0, 1, 200)),
            _ => {
                let mut bytes = question_for_gateway(src);
                bytes[14 + self.draw.below(8) as usize] ^= 1;
                return bytes;
            }
        }
        let mut request = Vec::new();
        arp.write(&mut request);
        frame(eth_src, eth_dst, ether_type::ARP, &request)
    }

    fn other_frame(&mut self, src: u8) -> Vec<u8> {
        let (header, payload) = self.datagram(src);
        let mut bytes = handed(src, &header, &payload);
        match self.draw.below(8) {
            0 => bytes[12..14].copy_from_slice(&[0x81, 0]),
            1 => bytes[12..14].copy_from_slice(&[0x86, 0xdd]),
            2 => bytes[..6].copy_from_slice(&mac_of(self.host()).octets()),
            3 => bytes[..6].copy_from_slice(&gateway_mac(self.draw.below(4) as u8).octets()),
            4 => bytes[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 0xe]),
            // An unknown sender at this address.
            5 => bytes[6..12].copy_from_slice(&[2, 0, 0, 8, 0, src]),
            6 => bytes.resize(bytes.len() + self.draw.below(80) as usize, 0xa5),
            _ => bytes.resize(2100, 0x5a),
        }
        bytes
    }

    fn other_packet(&mut self, src: u8) -> Vec<u8> {
        let (mut header, payload) = self.datagram(src);
        match self.draw.below(9) {
            0 => header.options = vec![0x94, 4, 0, 0],
            1 => header.more_fragments = true,
            2 => header.fragment_offset = self.draw.below(100) as u16,
            3 => return self.echo_request(src),
            4 if self.may_fail() => header.ttl = self.draw.below(2) as u8,
            5 if self.may_fail() => header.dst = Ipv4Addr::new(8, 8, 8, 8),
            6 => {
                let mut bytes = handed(src, &header, &payload);
                let at = 14 + self.draw.below(20) as usize;
                bytes[at] ^= 1 << self.draw.below(8);
                return bytes;
            }
            7 => {
                // The reserved flag is set, and the checksum is correct.
                let mut bytes = handed(src, &header, &payload);
                bytes[20] |= 0x80;
                let sum = u16::from_be_bytes([bytes[24], bytes[25]]);
                let sum = match sum.checked_sub(0x8000) {
                    Some(sum) => sum,
                    None => sum + 0x7fff,
                };
                bytes[24..26].copy_from_slice(&sum.to_be_bytes());
                return bytes;
            }
            _ => header.dst = ip_of(src),
        }
        handed(src, &header, &payload)
    }

    fn may_fail(&mut self) -> bool {
        self.errors = self.errors.saturating_sub(1);
        self.errors > 0
    }

    /// Returns a ping of a gateway.
    fn echo_request(&mut self, src: u8) -> Vec<u8> {
        let echo = Icmpv4 {
            icmp_type: 8,
            icmp_code: 0,
            rest: [0, 1, 0, 1],
        };
        let mut request = Vec::new();
        echo.write(&mut request, b"echo");
        let header = Ipv4 {
            proto: ip_proto::ICMPV4,
            ..header(src, gateway_ip(self.draw.below(3) as u8 + 1))
        };
        handed(src, &header, &request)
    }
}
