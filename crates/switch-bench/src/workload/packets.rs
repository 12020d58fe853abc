//! Packets: IPv4 in Ethernet frames of 60 bytes, or 64 with the frame check sequence.

use super::classbench::Header;
use super::network::{
    BEARER_PORT, EDGES, SERVICE_NET, SERVICES, SUBSCRIBERS, USER_NET, USERS, l2_host,
    public_address, subscriber_address,
};
use super::python_random::PythonRandom;
use super::routes::{PROBE_ROUTE, routes};
use urtica_wire::MacAddr;

/// The length of every frame in bytes.
pub const FRAME_SIZE: usize = 60;

/// A frame.
pub type Frame = [u8; FRAME_SIZE];

/// The Ethernet addresses of routed packets: the gateway's, and the senders'.
const GATEWAY_MAC: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 1]);
const SENDER_MAC: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 2]);

const ETH_TYPE_IPV4: u16 = 0x0800;
const ETH_TYPE_VLAN: u16 = 0x8100;
const TTL: u8 = 64;
const HTTP: u16 = 80;
const IPV4_SIZE: usize = 20;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Sends flow i to host i modulo `hosts`.
pub fn l2(hosts: u32) -> impl FnMut(&mut PythonRandom) -> Frame {
    let mut flow = 0;
    move |random| {
        let packet = Packet {
            eth_dst: l2_host(flow % hosts),
            eth_src: GATEWAY_MAC,
            ipv4_src: USER_NET | random.bits(20),
            ipv4_dst: 0x1400_0000 + flow,
            ..Packet::udp(client_port(random), HTTP)
        };
        flow += 1;
        packet.frame()
    }
}

/// Sends to any route.
pub fn l3() -> impl FnMut(&mut PythonRandom) -> Frame {
    let routes = routes();
    move |random| {
        let ipv4_src = USER_NET | random.bits(24);
        let ipv4_dst = random.choice(&routes).address(random);
        let ports = Packet::udp(client_port(random), HTTP);
        let packet = Packet {
            ipv4_src,
            ipv4_dst,
            ..ports
        };
        packet.frame()
    }
}

/// Sends to any service.
pub fn lb(random: &mut PythonRandom) -> Frame {
    let ipv4_src = random.between(0x0100_0000, 0xdfff_ffff);
    let ipv4_dst = SERVICE_NET + random.below(SERVICES);
    let packet = Packet {
        ipv4_src,
        ipv4_dst,
        protocol: TCP,
        ..Packet::udp(client_port(random), HTTP)
    };
    packet.frame()
}

/// Sends from any user to any route.
pub fn gateway() -> impl FnMut(&mut PythonRandom) -> Frame {
    let routes = routes();
    move |random| {
        let ipv4_src = USER_NET + 1 + random.below(USERS);
        let vlan_vid = 1 + random.below(EDGES);
        let ipv4_dst = random.choice(&routes).address(random);
        let packet = Packet {
            vlan_vid: Some(vlan_vid as u16),
            ipv4_src,
            ipv4_dst,
            ..Packet::udp(client_port(random), HTTP)
        };
        packet.frame()
    }
}

/// Sends from any route to any user.
pub fn gateway_down() -> impl FnMut(&mut PythonRandom) -> Frame {
    let routes = routes();
    move |random| {
        let ipv4_src = random.choice(&routes).address(random);
        let edge = random.below(EDGES);
        let ipv4_dst = public_address(edge, random.below(USERS));
        let packet = Packet {
            ipv4_src,
            ipv4_dst,
            ..Packet::udp(HTTP, client_port(random))
        };
        packet.frame()
    }
}

/// Sends from any route to any subscriber, half of the packets for the dedicated bearer.
pub fn mobile() -> impl FnMut(&mut PythonRandom) -> Frame {
    let routes = routes();
    move |random| {
        let ipv4_src = random.choice(&routes).address(random);
        let ipv4_dst = subscriber_address(random.below(SUBSCRIBERS));
        let src_port = random.choice(&[HTTP, BEARER_PORT]);
        let packet = Packet {
            ipv4_src,
            ipv4_dst,
            ..Packet::udp(src_port, client_port(random))
        };
        packet.frame()
    }
}

/// Returns a packet with this header.
pub fn with_header(header: &Header) -> Frame {
    let packet = Packet {
        ipv4_src: header.ipv4_src,
        ipv4_dst: header.ipv4_dst,
        protocol: header.protocol,
        ..Packet::udp(header.src_port, header.dst_port)
    };
    packet.frame()
}

/// Returns a packet of `l3` that uses [`PROBE_ROUTE`].
pub fn l3_probe() -> Frame {
    let packet = Packet {
        ipv4_src: USER_NET + 1,
        ipv4_dst: PROBE_ROUTE.prefix,
        ..Packet::udp(1024, HTTP)
    };
    packet.frame()
}

/// Returns a packet of `gateway` that uses [`PROBE_ROUTE`].
pub fn gateway_probe() -> Frame {
    let packet = Packet {
        vlan_vid: Some(1),
        ipv4_src: USER_NET + 1,
        ipv4_dst: PROBE_ROUTE.prefix,
        ..Packet::udp(1024, HTTP)
    };
    packet.frame()
}

fn client_port(random: &mut PythonRandom) -> u16 {
    random.between(1024, 65_535) as u16
}

/// The fields in which packets differ.
struct Packet {
    eth_dst: MacAddr,
    eth_src: MacAddr,
    vlan_vid: Option<u16>,
    ipv4_src: u32,
    ipv4_dst: u32,
    /// TCP with an ACK, UDP, or a protocol without ports, with a payload of zeros.
    protocol: u8,
    src_port: u16,
    dst_port: u16,
}

impl Packet {
    /// Returns a UDP packet to the gateway, with no addresses yet.
    fn udp(src_port: u16, dst_port: u16) -> Self {
        Self {
            eth_dst: GATEWAY_MAC,
            eth_src: SENDER_MAC,
            vlan_vid: None,
            ipv4_src: 0,
            ipv4_dst: 0,
            protocol: UDP,
            src_port,
            dst_port,
        }
    }

    fn frame(&self) -> Frame {
        let mut bytes = Vec::with_capacity(FRAME_SIZE);
        bytes.extend(self.eth_dst.octets());
        bytes.extend(self.eth_src.octets());
        if let Some(vlan_vid) = self.vlan_vid {
            bytes.extend(ETH_TYPE_VLAN.to_be_bytes());
            bytes.extend(vlan_vid.to_be_bytes());
        }
        bytes.extend(ETH_TYPE_IPV4.to_be_bytes());
        let total_length = FRAME_SIZE - bytes.len();
        bytes.extend(self.ipv4_header(total_length as u16));
        bytes.extend(self.src_port.to_be_bytes());
        bytes.extend(self.dst_port.to_be_bytes());
        match self.protocol {
            // Sequence numbers 0, no options, ACK, window 1024. The checksum stays 0.
            TCP => bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0x04, 0x00]),
            // A checksum of 0 means no checksum.
            UDP => bytes.extend(((total_length - IPV4_SIZE) as u16).to_be_bytes()),
            _ => {}
        }
        let mut frame = [0; FRAME_SIZE];
        frame[..bytes.len()].copy_from_slice(&bytes);
        frame
    }

    fn ipv4_header(&self, total_length: u16) -> [u8; IPV4_SIZE] {
        let mut header = [0; IPV4_SIZE];
        header[0] = 0x45;
        header[2..4].copy_from_slice(&total_length.to_be_bytes());
        header[8] = TTL;
        header[9] = self.protocol;
        header[12..16].copy_from_slice(&self.ipv4_src.to_be_bytes());
        header[16..20].copy_from_slice(&self.ipv4_dst.to_be_bytes());
        let checksum = internet_checksum(&header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        header
    }
}

/// Returns RFC 1071's checksum of a header with 0 in the checksum field.
fn internet_checksum(header: &[u8; IPV4_SIZE]) -> u16 {
    let sum: u32 = header
        .chunks_exact(2)
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}
