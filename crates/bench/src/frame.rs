//! The frames in packet-ins, and the values of their fields.
//!
//! Except for addresses, all frames of a kind have the same bytes, so the values of match fields can be looked up.

use crate::identity::{IN_PORT, Identity};

/// The kinds of frame in a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameKind {
    /// cbench's frame: IPv4 with a reserved protocol.
    Cbench,
    /// TCP over IPv4, to port 80.
    Tcp,
    /// UDP over IPv4, to port 53.
    Udp,
    /// An ARP reply.
    Arp,
    /// UDP over IPv6.
    Ipv6,
    /// UDP over IPv4, with a VLAN tag.
    Vlan,
}

/// The length of the two Ethernet addresses, which differ between frames.
pub const ADDRESSES_LEN: usize = 12;

/// The IPv4 source address, also in ARP.
pub const IPV4_SRC: u32 = 0xc0a8_0028;
/// The IPv4 destination address, also in ARP.
pub const IPV4_DST: u32 = 0xc0a8_0128;
/// The VLAN of tagged frames, and its priority.
pub const VLAN_VID: u16 = 5;
/// See [`VLAN_VID`].
pub const VLAN_PCP: u8 = 3;

const IPV6_SRC: u128 = 0x2001_0db8_0000_0000_0000_0000_0000_0001;
const IPV6_DST: u128 = 0x2001_0db8_0000_0000_0000_0000_0000_0002;
const IPV6_FLOW_LABEL: u32 = 0x1_2345;
/// The type of service: DSCP 10, ECN 2.
const TOS: u8 = 0x2a;
const SRC_PORT: u16 = 49_152;
const ARP_REPLY: u16 = 2;

const ETH_TYPE_IPV4: u16 = 0x0800;
const ETH_TYPE_ARP: u16 = 0x0806;
const ETH_TYPE_IPV6: u16 = 0x86dd;
const ETH_TYPE_VLAN: u16 = 0x8100;
const PROTO_TCP: u8 = 6;
const PROTO_UDP: u8 = 17;
/// The protocol in cbench's frames, which is reserved.
const PROTO_CBENCH: u8 = 0xff;

/// The offset of the sender's Ethernet address in an ARP frame.
const ARP_SHA_AT: usize = 22;
/// The offset of the target's Ethernet address.
const ARP_THA_AT: usize = 32;

const CBENCH_FROM_ETH_TYPE: [u8; 52] = [
    0x08, 0x00, 0x45, 0x00, 0x00, 0x32, 0x00, 0x00, 0x00, 0x00, 0x40, 0xff, 0xf7, 0x2c, 0xc0, 0xa8,
    0x00, 0x28, 0xc0, 0xa8, 0x01, 0x28, 0x7a, 0x18, 0x58, 0x6b, 0x11, 0x08, 0x97, 0xf5, 0x19, 0xe2,
    0x65, 0x7e, 0x07, 0xcc, 0x31, 0xc3, 0x11, 0xc7, 0xc4, 0x0c, 0x8b, 0x95, 0x51, 0x51, 0x33, 0x54,
    0x51, 0xd5, 0x00, 0x36,
];

impl FrameKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Cbench,
        Self::Tcp,
        Self::Udp,
        Self::Arp,
        Self::Ipv6,
        Self::Vlan,
    ];

    /// Returns its name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cbench => "cbench",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Arp => "arp",
            Self::Ipv6 => "ipv6",
            Self::Vlan => "vlan",
        }
    }

    /// Returns a frame of `len` bytes, with zeros for the parts that differ between frames: the addresses of Ethernet and ARP.
    pub fn image(self, len: usize) -> Vec<u8> {
        let payload_len = len - 14;
        let mut frame = vec![0; ADDRESSES_LEN];
        match self {
            Self::Cbench => frame.extend(CBENCH_FROM_ETH_TYPE),
            Self::Tcp => {
                frame.extend(ETH_TYPE_IPV4.to_be_bytes());
                frame.extend(ipv4(PROTO_TCP, payload_len));
                frame.extend(SRC_PORT.to_be_bytes());
                frame.extend(self.dst_port().to_be_bytes());
                // Sequence and acknowledgement numbers, a header of 20 bytes, SYN, window, no checksum, no urgent data.
                frame.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0]);
            }
            Self::Udp => {
                frame.extend(ETH_TYPE_IPV4.to_be_bytes());
                frame.extend(ipv4(PROTO_UDP, payload_len));
                frame.extend(self.udp(payload_len - 20));
            }
            Self::Arp => {
                frame.extend(ETH_TYPE_ARP.to_be_bytes());
                frame.extend([0, 1, 8, 0, 6, 4]);
                frame.extend(ARP_REPLY.to_be_bytes());
                frame.extend([0; 6]);
                frame.extend(IPV4_SRC.to_be_bytes());
                frame.extend([0; 6]);
                frame.extend(IPV4_DST.to_be_bytes());
            }
            Self::Ipv6 => {
                frame.extend(ETH_TYPE_IPV6.to_be_bytes());
                let first = 6 << 28 | u32::from(TOS) << 20 | IPV6_FLOW_LABEL;
                frame.extend(first.to_be_bytes());
                frame.extend(((payload_len - 40) as u16).to_be_bytes());
                frame.extend([PROTO_UDP, 64]);
                frame.extend(IPV6_SRC.to_be_bytes());
                frame.extend(IPV6_DST.to_be_bytes());
                frame.extend(self.udp(payload_len - 40));
            }
            Self::Vlan => {
                frame.extend(ETH_TYPE_VLAN.to_be_bytes());
                frame.extend((u16::from(VLAN_PCP) << 13 | VLAN_VID).to_be_bytes());
                frame.extend(ETH_TYPE_IPV4.to_be_bytes());
                frame.extend(ipv4(PROTO_UDP, payload_len - 4));
                frame.extend(self.udp(payload_len - 24));
            }
        }
        frame.resize(len, 0);
        frame
    }

    /// Returns a UDP header: ports, length, and no checksum.
    fn udp(self, len: usize) -> Vec<u8> {
        [SRC_PORT, self.dst_port(), len as u16, 0]
            .iter()
            .flat_map(|field| field.to_be_bytes())
            .collect()
    }

    /// Returns the EtherType; in a tagged frame, the one after the tag.
    pub fn eth_type(self) -> u16 {
        match self {
            Self::Arp => ETH_TYPE_ARP,
            Self::Ipv6 => ETH_TYPE_IPV6,
            _ => ETH_TYPE_IPV4,
        }
    }

    /// Returns the VLAN and the priority, if the frame is tagged.
    pub fn vlan(self) -> Option<(u16, u8)> {
        (self == Self::Vlan).then_some((VLAN_VID, VLAN_PCP))
    }

    /// Returns IPv4's type of service or IPv6's traffic class.
    pub fn tos(self) -> Option<u8> {
        match self {
            Self::Cbench => Some(0),
            Self::Arp => None,
            _ => Some(TOS),
        }
    }

    /// Returns IP's protocol.
    pub fn ip_proto(self) -> Option<u8> {
        match self {
            Self::Cbench => Some(PROTO_CBENCH),
            Self::Tcp => Some(PROTO_TCP),
            Self::Arp => None,
            Self::Udp | Self::Ipv6 | Self::Vlan => Some(PROTO_UDP),
        }
    }

    /// Returns the ports of TCP or UDP.
    pub fn ports(self) -> Option<(u16, u16)> {
        matches!(self.ip_proto(), Some(PROTO_TCP | PROTO_UDP)).then(|| (SRC_PORT, self.dst_port()))
    }

    fn dst_port(self) -> u16 {
        if self == Self::Tcp { 80 } else { 53 }
    }
}

/// Returns an IPv4 header for a packet of `len` bytes.
fn ipv4(proto: u8, len: usize) -> Vec<u8> {
    let [len_high, len_low] = (len as u16).to_be_bytes();
    let mut header = vec![0x45, TOS, len_high, len_low, 0, 0, 0, 0, 64, proto, 0, 0];
    header.extend(IPV4_SRC.to_be_bytes());
    header.extend(IPV4_DST.to_be_bytes());
    let words = header.chunks_exact(2);
    let sum: u32 = words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

/// A frame in a switch's packet-in.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Its kind.
    pub kind: FrameKind,
    /// Its source address.
    pub eth_src: [u8; 6],
    /// Its destination address.
    pub eth_dst: [u8; 6],
}

/// The value of a field in network order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    bytes: [u8; 16],
    len: usize,
}

impl Value {
    fn new(bytes: &[u8]) -> Self {
        let mut padded = [0; 16];
        padded[..bytes.len()].copy_from_slice(bytes);
        Self {
            bytes: padded,
            len: bytes.len(),
        }
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The numbers of OXM fields (1.3.5: 7.2.3.7).
pub mod oxm {
    #![allow(missing_docs, reason = "the specification's names, which say all")]
    pub const IN_PORT: u8 = 0;
    pub const IN_PHY_PORT: u8 = 1;
    pub const METADATA: u8 = 2;
    pub const ETH_DST: u8 = 3;
    pub const ETH_SRC: u8 = 4;
    pub const ETH_TYPE: u8 = 5;
    pub const VLAN_VID: u8 = 6;
    pub const VLAN_PCP: u8 = 7;
    pub const IP_DSCP: u8 = 8;
    pub const IP_ECN: u8 = 9;
    pub const IP_PROTO: u8 = 10;
    pub const IPV4_SRC: u8 = 11;
    pub const IPV4_DST: u8 = 12;
    pub const TCP_SRC: u8 = 13;
    pub const TCP_DST: u8 = 14;
    pub const UDP_SRC: u8 = 15;
    pub const UDP_DST: u8 = 16;
    pub const ARP_OP: u8 = 21;
    pub const ARP_SPA: u8 = 22;
    pub const ARP_TPA: u8 = 23;
    pub const ARP_SHA: u8 = 24;
    pub const ARP_THA: u8 = 25;
    pub const IPV6_SRC: u8 = 26;
    pub const IPV6_DST: u8 = 27;
    pub const IPV6_FLABEL: u8 = 28;
    pub const TUNNEL_ID: u8 = 38;
}

impl Packet {
    /// Creates the frame from the switch's source address with this number.
    pub fn new(kind: FrameKind, identity: Identity, source: u32) -> Self {
        Self {
            kind,
            eth_src: identity.source_bytes(source),
            eth_dst: identity.destination(),
        }
    }

    /// Returns the value of an OXM field; `None` if the frame does not have it.
    pub fn field(&self, field: u8) -> Option<Value> {
        let kind = self.kind;
        let is_arp = kind == FrameKind::Arp;
        let is_ipv4 = kind.eth_type() == ETH_TYPE_IPV4;
        let is_ipv6 = kind.eth_type() == ETH_TYPE_IPV6;
        let port_of = |proto: u8, is_src: bool| {
            let (src, dst) = kind.ports().filter(|_| kind.ip_proto() == Some(proto))?;
            Some(if is_src { src } else { dst }.to_be_bytes())
        };
        let short = |bytes: Option<[u8; 2]>| bytes.map(|bytes| Value::new(&bytes));
        let byte = |byte: Option<u8>| byte.map(|byte| Value::new(&[byte]));
        let address = |has: bool, ip: u32| has.then(|| Value::new(&ip.to_be_bytes()));
        let long_address = |ip: u128| is_ipv6.then(|| Value::new(&ip.to_be_bytes()));
        match field {
            oxm::IN_PORT | oxm::IN_PHY_PORT => address(true, IN_PORT),
            // The values for a packet that has passed no table and no tunnel.
            oxm::METADATA | oxm::TUNNEL_ID => Some(Value::new(&[0; 8])),
            oxm::ETH_DST => Some(Value::new(&self.eth_dst)),
            oxm::ETH_SRC => Some(Value::new(&self.eth_src)),
            oxm::ETH_TYPE => short(Some(kind.eth_type().to_be_bytes())),
            // The VLAN id with OFPVID_PRESENT, or OFPVID_NONE.
            oxm::VLAN_VID => short(Some(
                kind.vlan().map_or(0, |(vid, _)| 0x1000 | vid).to_be_bytes(),
            )),
            oxm::VLAN_PCP => byte(kind.vlan().map(|(_, pcp)| pcp)),
            oxm::IP_DSCP => byte(kind.tos().map(|tos| tos >> 2)),
            oxm::IP_ECN => byte(kind.tos().map(|tos| tos & 3)),
            oxm::IP_PROTO => byte(kind.ip_proto()),
            oxm::IPV4_SRC => address(is_ipv4, IPV4_SRC),
            oxm::IPV4_DST => address(is_ipv4, IPV4_DST),
            oxm::TCP_SRC => short(port_of(PROTO_TCP, true)),
            oxm::TCP_DST => short(port_of(PROTO_TCP, false)),
            oxm::UDP_SRC => short(port_of(PROTO_UDP, true)),
            oxm::UDP_DST => short(port_of(PROTO_UDP, false)),
            oxm::ARP_OP => short(is_arp.then_some(ARP_REPLY.to_be_bytes())),
            oxm::ARP_SPA => address(is_arp, IPV4_SRC),
            oxm::ARP_TPA => address(is_arp, IPV4_DST),
            oxm::ARP_SHA => is_arp.then(|| Value::new(&self.eth_src)),
            oxm::ARP_THA => is_arp.then(|| Value::new(&self.eth_dst)),
            oxm::IPV6_SRC => long_address(IPV6_SRC),
            oxm::IPV6_DST => long_address(IPV6_DST),
            oxm::IPV6_FLABEL => address(is_ipv6, IPV6_FLOW_LABEL),
            _ => None,
        }
    }

    /// Returns the protocol and the addresses that have the same names in 1.0's match for IPv4 and ARP: `nw_proto`, `nw_src`,
    /// `nw_dst`.
    pub fn network_10(&self) -> Option<(u8, u32, u32)> {
        match self.kind {
            FrameKind::Arp => Some((ARP_REPLY as u8, IPV4_SRC, IPV4_DST)),
            FrameKind::Ipv6 => None,
            kind => Some((kind.ip_proto()?, IPV4_SRC, IPV4_DST)),
        }
    }

    /// Returns `true` if these bytes are this frame, as the load sends it with this length.
    pub fn is(&self, bytes: &[u8], len: usize) -> bool {
        if bytes.len() != len {
            return false;
        }
        let mut expected = self.kind.image(len);
        self.write_addresses(&mut expected);
        bytes == expected
    }

    /// Writes the parts that differ between frames into an image.
    pub fn write_addresses(&self, frame: &mut [u8]) {
        frame[..6].copy_from_slice(&self.eth_dst);
        frame[6..12].copy_from_slice(&self.eth_src);
        if self.kind == FrameKind::Arp {
            frame[ARP_SHA_AT..ARP_SHA_AT + 6].copy_from_slice(&self.eth_src);
            frame[ARP_THA_AT..ARP_THA_AT + 6].copy_from_slice(&self.eth_dst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_wire::{Match, OxmField, PortNo};

    /// The wire crate, which the benchmark itself does not use, decodes each frame and finds the same values.
    #[test]
    fn fields_agree_with_the_wire_crate() {
        for kind in FrameKind::ALL {
            let identity = Identity::new(7);
            let packet = Packet {
                kind,
                eth_src: identity.source_bytes(0x01_0203),
                eth_dst: identity.destination(),
            };
            let mut frame = kind.image(80);
            packet.write_addresses(&mut frame);
            assert!(
                packet.is(&frame, 80) && !packet.is(&frame[1..], 80),
                "{kind:?}"
            );
            let exact = Match::exact_frame(PortNo(IN_PORT), &frame);
            let named = OxmField::ALL.iter().filter_map(|&field| {
                let (value, _) = exact.get(field)?;
                Some((field, value))
            });
            let mut count = 0;
            for (field, value) in named {
                let ours = packet
                    .field(field as u8)
                    .map(|value| value.bytes().to_vec());
                let theirs = ours
                    .as_ref()
                    .map(|ours| value.to_be_bytes()[16 - ours.len()..].to_vec());
                assert_eq!((ours.is_some(), ours), (true, theirs), "{kind:?} {field:?}");
                count += 1;
            }
            assert!(count >= 6, "{kind:?}: {count}");
        }
    }

    #[test]
    fn missing_fields_have_no_value() {
        let packet = Packet {
            kind: FrameKind::Udp,
            eth_src: [0; 6],
            eth_dst: [0; 6],
        };
        for field in [
            oxm::TCP_DST,
            oxm::ARP_SPA,
            oxm::IPV6_SRC,
            oxm::VLAN_PCP,
            39,
            99,
        ] {
            assert_eq!(packet.field(field), None, "{field}");
        }
        assert_eq!(packet.field(oxm::VLAN_VID).unwrap().bytes(), [0, 0]);
    }
}
