//! Messages of hosts and switches, some of them drawn from a seed.

use rand_mt::Mt64;
use std::net::{Ipv4Addr, Ipv6Addr};
use urtica_wire::packet::{
    Arp, Ethernet, Icmpv6, Ipv6, Nd, Vlan, arp, ether_type, ethernet, icmpv6, ip_proto, lldp,
};
use urtica_wire::{BufferId, MacAddr, Match, Message, PacketIn, PacketInReason, PortNo, Version};

/// The address from which [`urtica_services::Hosts`] probes by default.
const OUR_MAC: MacAddr = MacAddr::new(*b"\x02urtic");

/// A packet that a switch sends to the controller.
#[derive(Clone, Debug)]
pub struct Packet {
    pub in_port: u32,
    pub buffer_id: u32,
    pub frame: Vec<u8>,
}

pub fn mac(host: u8) -> MacAddr {
    MacAddr::new([2, 0, 0, 0, 0, host])
}

pub fn ipv4(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host)
}

pub fn ipv6(host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host.into())
}

/// Returns the port of a host.
pub fn port_of(host: u8) -> u32 {
    u32::from(host) % 4 + 1
}

fn from(host: u8, frame: Vec<u8>) -> Packet {
    Packet {
        in_port: port_of(host),
        buffer_id: u32::MAX,
        frame,
    }
}

fn write_ethernet(dst: MacAddr, src: MacAddr, ether_type: u16, tag: Option<u16>) -> Vec<u8> {
    let mut frame = Vec::new();
    let first = tag.map_or(ether_type, |_| ether_type::VLAN);
    let header = Ethernet {
        dst,
        src,
        ether_type: first,
    };
    header.write(&mut frame);
    if let Some(tci) = tag {
        let tag = Vlan {
            pcp: (tci >> 13) as u8,
            cfi: tci >> 12 & 1 != 0,
            vid: tci & 0xfff,
            ether_type,
        };
        tag.write(&mut frame);
    }
    frame
}

fn write_arp(dst: MacAddr, src: MacAddr, arp: Arp, tag: Option<u16>) -> Vec<u8> {
    let mut frame = write_ethernet(dst, src, ether_type::ARP, tag);
    arp.write(&mut frame);
    ethernet::pad_frame(&mut frame, 0);
    frame
}

/// Returns a host's announcement of its address to all hosts.
pub fn announcement(host: u8) -> Packet {
    let arp = Arp::request(mac(host), ipv4(host), ipv4(host));
    from(host, write_arp(MacAddr::BROADCAST, mac(host), arp, None))
}

/// Returns a host's request for another's address.
pub fn request(host: u8, target: u8) -> Packet {
    let arp = Arp::request(mac(host), ipv4(host), ipv4(target));
    from(host, write_arp(MacAddr::BROADCAST, mac(host), arp, None))
}

/// Returns a packet that no service answers.
pub fn datagram(host: u8, target: u8) -> Packet {
    let mut frame = write_ethernet(mac(target), mac(host), ether_type::IPV4, None);
    frame.resize(64, 0xa5);
    from(host, frame)
}

/// Returns a frame in the form of our probes, with an authenticator of another's.
pub fn forged_probe(digits: &str) -> Vec<u8> {
    let mut frame = write_ethernet(lldp::NEAREST_BRIDGE, mac(99), ether_type::LLDP, None);
    frame.extend([0x02, 22, 7]);
    frame.extend(b"dpid:00000000000000ab");
    frame.extend([0x04, digits.len() as u8 + 1, 7]);
    frame.extend(digits.as_bytes());
    frame.extend([0x06, 2, 0, 120, 0xfe, 28, 2, b'u', b'r', 1]);
    frame.extend([9; 24]);
    frame.extend([0, 0]);
    frame
}

fn foreign_lldp() -> Vec<u8> {
    let mut frame = write_ethernet(lldp::NEAREST_BRIDGE, mac(99), ether_type::LLDP, None);
    frame.extend([
        0x02, 7, 4, 2, 0, 0, 0, 0, 9, 0x04, 3, 7, b'1', b'2', 0x06, 2, 0, 120, 0, 0,
    ]);
    ethernet::pad_frame(&mut frame, 0);
    frame
}

/// A neighbour solicitation, which is valid by default.
#[derive(Clone, Copy)]
struct Solicitation {
    host: u8,
    target: Ipv6Addr,
    src: Ipv6Addr,
    dst: Ipv6Addr,
    sll: Option<MacAddr>,
    hop_limit: u8,
    tag: Option<u16>,
}

impl Solicitation {
    fn new(host: u8, target: u8) -> Self {
        let [.., a, b, c] = ipv6(target).octets();
        let group = Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c]);
        Self {
            host,
            target: ipv6(target),
            src: ipv6(host),
            dst: group,
            sll: Some(mac(host)),
            hop_limit: 255,
            tag: None,
        }
    }

    fn frame(&self, icmp_type: u8) -> Vec<u8> {
        let [.., a, b, c, d] = self.dst.octets();
        let group = MacAddr::new([0x33, 0x33, a, b, c, d]);
        let mut frame = write_ethernet(group, mac(self.host), ether_type::IPV6, self.tag);
        let nd = Nd {
            flags: 0,
            target: self.target,
            sll: self.sll,
            tll: None,
        };
        let ip = Ipv6 {
            hop_limit: self.hop_limit,
            ..Ipv6::new(self.src, self.dst, ip_proto::ICMPV6)
        };
        let (mut body, mut message) = (Vec::new(), Vec::new());
        nd.write(&mut body);
        let icmp = Icmpv6 {
            icmp_type,
            icmp_code: 0,
        };
        icmp.write(&mut message, &ip.pseudo_header(), &body);
        ip.write(&mut frame, &message).unwrap();
        frame
    }
}

/// Returns the packet-in of a packet.
pub fn encode(version: Version, packet: &Packet) -> Vec<u8> {
    let message = Message::PacketIn(PacketIn {
        buffer_id: BufferId(packet.buffer_id),
        total_len: packet.frame.len() as u16,
        reason: PacketInReason::NoMatch,
        table_id: 0,
        cookie: u64::MAX,
        in_port: PortNo(packet.in_port),
        match_: Match::any().in_port(PortNo(packet.in_port)),
        data: &packet.frame,
    });
    let mut bytes = Vec::new();
    message.encode(version, 77, &mut bytes).unwrap();
    bytes
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

    /// Draws a host that is known from the start.
    fn known(&mut self) -> u8 {
        self.below(8) as u8 + 1
    }

    /// Draws a host that may become known.
    fn host(&mut self) -> u8 {
        match self.one_in(4) {
            true => self.below(30) as u8 + 9,
            false => self.known(),
        }
    }

    fn tag(&mut self) -> Option<u16> {
        match self.below(10) {
            0 => Some(5),
            1 => Some(0x6000),
            2 => Some(0xa005),
            _ => None,
        }
    }

    fn arp(&mut self) -> Packet {
        let (host, target) = (self.host(), self.known());
        let mut arp = Arp::request(mac(host), ipv4(host), ipv4(target));
        let (mut dst, src, tag) = (MacAddr::BROADCAST, mac(host), self.tag());
        match self.below(24) {
            0 => arp.spa = Ipv4Addr::UNSPECIFIED,
            1 => arp.spa = ipv4(self.below(12) as u8),
            2 => arp.tpa = ipv4(self.below(50) as u8 + 100),
            3 => arp.tpa = arp.spa,
            4 => dst = mac(target),
            5 => dst = OUR_MAC,
            6 => arp.sha = mac(200),
            7 => arp.spa = Ipv4Addr::new(224, 0, 0, 5),
            8 => arp.spa = Ipv4Addr::new(127, 0, 0, 1),
            9 => arp.spa = Ipv4Addr::BROADCAST,
            10 => arp.op = 3,
            11 => dst = MacAddr::new([1, 0x80, 0xc2, 0, 0, 3]),
            12 | 13 => {
                arp = Arp::request(OUR_MAC, Ipv4Addr::UNSPECIFIED, ipv4(host)).reply(mac(host));
                dst = OUR_MAC;
            }
            14 => {
                arp = Arp::request(mac(target), ipv4(target), ipv4(host)).reply(mac(host));
                dst = mac(target);
            }
            _ => {}
        }
        debug_assert!(arp.op != arp::REPLY || arp.sha == mac(host));
        from(host, write_arp(dst, src, arp, tag))
    }

    fn solicitation(&mut self) -> Packet {
        let (host, target) = (self.host(), self.known());
        let right = Solicitation::new(host, target);
        let mut solicitation = Solicitation {
            tag: self.tag(),
            ..right
        };
        let mut icmp_type = icmpv6::NEIGHBOR_SOLICITATION;
        match self.below(20) {
            0 => solicitation.sll = None,
            1 => (solicitation.src, solicitation.sll) = (Ipv6Addr::UNSPECIFIED, None),
            2 => solicitation.src = Ipv6Addr::UNSPECIFIED,
            3 => solicitation.sll = Some(mac(200)),
            4 => solicitation.hop_limit = 64,
            5 => solicitation.dst = ipv6(target),
            6 => {
                (solicitation.src, solicitation.sll) = (Ipv6Addr::UNSPECIFIED, None);
                solicitation.dst = ipv6(target);
            }
            7 => solicitation.src = Ipv6Addr::LOCALHOST,
            8 => solicitation.target = ipv6(99),
            9 => solicitation.target = solicitation.dst,
            10 => icmp_type = icmpv6::NEIGHBOR_ADVERTISEMENT,
            11 => solicitation.src = ipv6(self.below(12) as u8),
            _ => {}
        }
        from(host, solicitation.frame(icmp_type))
    }

    /// Makes a packet invalid, now and then.
    fn spoil(&mut self, packet: &mut Packet) {
        let bytes = packet.frame.len() as u32;
        match self.below(60) {
            0 => packet.frame.truncate(self.below(bytes) as usize),
            1 => packet.frame[self.below(bytes) as usize] ^= 1 << self.below(8),
            2 => packet
                .frame
                .resize(bytes as usize + self.below(300) as usize, 0),
            3 => packet.in_port = 77,
            4 => packet.in_port = self.below(4) + 1,
            5 => packet.buffer_id = 3,
            6 => packet.frame[6..12].copy_from_slice(&[0; 6]),
            7 => packet.frame[6..12].copy_from_slice(&OUR_MAC.octets()),
            8 => packet.frame[12..14].copy_from_slice(&[0x88, 0xa8]),
            9 => packet.frame[0..6].copy_from_slice(&[1, 0, 0x5e, 0, 0, 1]),
            _ => {}
        }
    }

    fn packet(&mut self) -> Packet {
        let mut packet = match self.below(16) {
            0 => datagram(self.known(), self.known()),
            1..8 => self.arp(),
            8..15 => self.solicitation(),
            _ if self.one_in(4) => from(9, foreign_lldp()),
            _ => {
                let digits = ["7", "123456789", "0", "1234567890", "12x", ""];
                from(9, forged_probe(digits[self.below(6) as usize]))
            }
        };
        self.spoil(&mut packet);
        packet
    }

    /// Draws a packet of a flow, mostly between known hosts, or a request.
    pub fn flow(&mut self) -> Packet {
        let (host, target) = (self.host(), self.host());
        let mut packet = datagram(host, target);
        let bytes = [60, 64, 200, 1514][self.below(4) as usize];
        packet.frame.resize(bytes, 0x5a);
        match self.below(24) {
            0 => return self.arp(),
            1 => packet.in_port = self.below(6) + 1,
            2 => packet.buffer_id = 3,
            3 => packet.frame[0..6].copy_from_slice(&[0xff; 6]),
            4 => packet.frame[0..6].copy_from_slice(&OUR_MAC.octets()),
            5 => packet.frame[12..14].copy_from_slice(&[0x86, 0xdd]),
            6 => packet.frame[12..18].copy_from_slice(&[0x81, 0, 0x60, 0, 8, 0]),
            7 => packet.frame[12..18].copy_from_slice(&[0x81, 0, 0, 5, 8, 0]),
            8 => packet.frame.truncate(20),
            9 => packet.frame[0..6].copy_from_slice(&mac(host).octets()),
            _ => {}
        }
        packet
    }

    /// Draws a message that is settled without the program if its host has not moved.
    pub fn plain_message(&mut self, version: Version) -> Vec<u8> {
        let (host, target) = (self.known(), self.known());
        if self.one_in(10) {
            let mut bytes = Vec::new();
            Message::EchoRequest(b"plain")
                .encode(version, self.below(99) + 1, &mut bytes)
                .unwrap();
            return bytes;
        }
        let packet = match self.below(3) {
            _ if host == target => announcement(host),
            0 => from(
                host,
                Solicitation::new(host, target).frame(icmpv6::NEIGHBOR_SOLICITATION),
            ),
            _ => request(host, target),
        };
        encode(version, &packet)
    }

    /// Draws a message.
    pub fn message(&mut self, version: Version) -> Vec<u8> {
        let mut bytes = Vec::new();
        let data = [0x5a; 40];
        let data = &data[..self.below(41) as usize];
        match self.below(20) {
            0 => Message::EchoRequest(data).encode(version, self.below(99) + 1, &mut bytes),
            1 => {
                let sender = [0, 1 << 24, 3 << 24][self.below(3) as usize];
                Message::EchoReply(data).encode(version, sender + 5, &mut bytes)
            }
            2 => Message::BarrierReply.encode(version, 0xff00_0001, &mut bytes),
            _ => {
                bytes = encode(version, &self.packet());
                Ok(())
            }
        }
        .unwrap();
        bytes
    }

    /// Splits a stream at random positions, some of which are adjacent.
    pub fn cut<'s>(&mut self, mut stream: &'s [u8]) -> Vec<&'s [u8]> {
        let mut pieces = Vec::new();
        while !stream.is_empty() {
            let most = [3, 100, 2000, 9000][self.below(4) as usize];
            let length = (self.below(most) as usize + 1).min(stream.len());
            let (piece, rest) = stream.split_at(length);
            pieces.push(piece);
            stream = rest;
        }
        pieces
    }
}
