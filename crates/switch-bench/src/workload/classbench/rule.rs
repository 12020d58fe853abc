//! A rule, a packet's header that it may match, and its flow entries.

use super::PythonRandom;
use crate::workload::OUT_PORT;
use std::net::Ipv4Addr;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// An IPv4 prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    pub address: u32,
    pub length: u8,
}

impl Prefix {
    /// Draws any prefix of this length.
    pub fn random(length: u8, random: &mut PythonRandom) -> Self {
        Self {
            address: random.bits(32),
            length: 32,
        }
        .shortened(length)
    }

    /// Returns the prefix of this length that contains this one.
    pub fn shortened(self, length: u8) -> Self {
        Self {
            address: self.address & mask(length),
            length,
        }
    }

    /// Draws a prefix of this length inside it.
    pub fn lengthened(self, length: u8, random: &mut PythonRandom) -> Self {
        let address = self.address | random.bits(32) & !mask(self.length);
        Self {
            address: address & mask(length),
            length,
        }
    }

    fn contains(self, address: u32) -> bool {
        address & mask(self.length) == self.address
    }

    fn overlaps(self, other: Self) -> bool {
        let shorter = mask(self.length.min(other.length));
        (self.address ^ other.address) & shorter == 0
    }

    /// Returns `FIELD=ADDRESS/LENGTH`; `None` if it contains every address.
    fn field(self, name: &str) -> Option<String> {
        let address = Ipv4Addr::from(self.address);
        match self.length {
            0 => None,
            32 => Some(format!("{name}={address}")),
            length => Some(format!("{name}={address}/{length}")),
        }
    }
}

/// Returns the mask of a prefix of this length.
fn mask(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

/// A range of ports, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortRange {
    low: u16,
    high: u16,
}

impl PortRange {
    /// All ports.
    pub const ANY: Self = Self::new(0, u16::MAX);

    /// Creates the range from `low` to `high`.
    pub const fn new(low: u16, high: u16) -> Self {
        Self { low, high }
    }

    fn contains(self, port: u16) -> bool {
        (self.low..=self.high).contains(&port)
    }

    fn overlaps(self, other: Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// Returns the number of ports.
    fn width(self) -> u32 {
        u32::from(self.high - self.low) + 1
    }

    /// Returns the fewest masked values that cover exactly this range: from the lowest port on, the largest aligned
    /// block that fits.
    pub fn prefixes(self) -> Vec<(u16, u16)> {
        let (mut next, end) = (u32::from(self.low), u32::from(self.high) + 1);
        let mut prefixes = Vec::new();
        while next < end {
            let aligned = if next == 0 {
                1 << 16
            } else {
                next & next.wrapping_neg()
            };
            let fitting = 1 << (end - next).ilog2();
            let size = u32::min(aligned, fitting);
            prefixes.push((next as u16, !(size - 1) as u16));
            next += size;
        }
        prefixes
    }

    /// Returns `FIELD=PORT/MASK` for each of its prefixes; `None` if it contains every port.
    fn fields(self, name: &str) -> Vec<Option<String>> {
        let field = |(port, mask): (u16, u16)| match mask {
            0 => None,
            u16::MAX => Some(format!("{name}={port}")),
            mask => Some(format!("{name}={port:#06x}/{mask:#06x}")),
        };
        self.prefixes().into_iter().map(field).collect()
    }
}

/// The protocols that a rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocols {
    Any,
    /// Any protocol with ports for which OpenFlow 1.0 and 1.3 have fields.
    TcpAndUdp,
    One(u8),
}

impl Protocols {
    /// Returns the protocols nearest to those of a published rule; `has_ports` if the rule specifies ports.
    pub fn of(protocol: Option<u8>, has_ports: bool) -> Self {
        match (protocol, has_ports) {
            (None, false) => Self::Any,
            (None, true) => Self::TcpAndUdp,
            (Some(protocol @ (TCP | UDP)), _) | (Some(protocol), false) => Self::One(protocol),
            (Some(protocol), true) if protocol % 2 == 0 => Self::One(TCP),
            (Some(_), true) => Self::One(UDP),
        }
    }

    fn contains(self, protocol: u8) -> bool {
        match self {
            Self::Any => true,
            Self::TcpAndUdp => matches!(protocol, TCP | UDP),
            Self::One(own) => own == protocol,
        }
    }

    fn overlaps(self, other: Self) -> bool {
        match (self, other) {
            (Self::One(one), other) | (other, Self::One(one)) => other.contains(one),
            _ => true,
        }
    }

    fn fields(self) -> Vec<String> {
        let field = |protocol| match protocol {
            1 => "icmp".to_owned(),
            TCP => "tcp".to_owned(),
            UDP => "udp".to_owned(),
            other => format!("ip,nw_proto={other}"),
        };
        match self {
            Self::Any => vec!["ip".to_owned()],
            Self::TcpAndUdp => vec![field(TCP), field(UDP)],
            Self::One(protocol) => vec![field(protocol)],
        }
    }

    /// Draws a protocol; if all are possible, one with ports.
    fn draw(self, random: &mut PythonRandom) -> u8 {
        match self {
            Self::One(protocol) => protocol,
            Self::Any | Self::TcpAndUdp => random.choice(&[TCP, UDP]),
        }
    }
}

/// The fields of a packet that rules match. Both ports are 0 for a protocol without ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Header {
    pub ipv4_src: u32,
    pub ipv4_dst: u32,
    pub protocol: u8,
    pub src_port: u16,
    pub dst_port: u16,
}

impl Header {
    /// Returns the header of an untagged IPv4 frame without options; `None` for any other frame.
    pub fn of(frame: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
        let address = |at: usize| Some(u32::from_be_bytes(*frame.get(at..)?.first_chunk()?));
        if word(12)? != 0x0800 || frame.get(14)? != &0x45 {
            return None;
        }
        let protocol = *frame.get(23)?;
        let has_ports = matches!(protocol, TCP | UDP);
        let port = |at| match has_ports {
            true => word(at),
            false => Some(0),
        };
        Some(Self {
            ipv4_src: address(26)?,
            ipv4_dst: address(30)?,
            protocol,
            src_port: port(34)?,
            dst_port: port(36)?,
        })
    }
}

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    pub src: Prefix,
    pub dst: Prefix,
    pub src_ports: PortRange,
    pub dst_ports: PortRange,
    pub protocols: Protocols,
}

impl Rule {
    /// Returns `true` if the rule matches a packet.
    pub fn matches(&self, header: &Header) -> bool {
        self.src.contains(header.ipv4_src)
            && self.dst.contains(header.ipv4_dst)
            && self.src_ports.contains(header.src_port)
            && self.dst_ports.contains(header.dst_port)
            && self.protocols.contains(header.protocol)
    }

    /// Returns `true` if a packet can match both rules.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.src.overlaps(other.src)
            && self.dst.overlaps(other.dst)
            && self.src_ports.overlaps(other.src_ports)
            && self.dst_ports.overlaps(other.dst_ports)
            && self.protocols.overlaps(other.protocols)
    }

    /// Returns the binary logarithm of the number of headers that it matches.
    pub fn scope(&self) -> f64 {
        let addresses = 64 - u32::from(self.src.length) - u32::from(self.dst.length);
        let ports = [self.src_ports, self.dst_ports].map(|ports| f64::from(ports.width()).log2());
        let protocols = match self.protocols {
            Protocols::Any => 8.0,
            Protocols::TcpAndUdp => 1.0,
            Protocols::One(_) => 0.0,
        };
        f64::from(addresses) + ports[0] + ports[1] + protocols
    }

    /// Draws a packet that matches.
    pub fn packet(&self, random: &mut PythonRandom) -> Header {
        let protocol = self.protocols.draw(random);
        let has_ports = matches!(protocol, TCP | UDP);
        let mut port = |ports: PortRange| match has_ports {
            true => ports.low + random.below(ports.width()) as u16,
            false => 0,
        };
        let (src_port, dst_port) = (port(self.src_ports), port(self.dst_ports));
        Header {
            ipv4_src: self.src.lengthened(32, random).address,
            ipv4_dst: self.dst.lengthened(32, random).address,
            protocol,
            src_port,
            dst_port,
        }
    }

    /// Returns the flow entries: one for each protocol and prefix of ports.
    pub fn entries(&self, cookie: u64, priority: u32) -> Vec<String> {
        let addresses = [self.src.field("nw_src"), self.dst.field("nw_dst")];
        let mut entries = Vec::new();
        for protocol in self.protocols.fields() {
            for src_port in self.src_ports.fields("tp_src") {
                for dst_port in self.dst_ports.fields("tp_dst") {
                    let fields = [&addresses[0], &addresses[1], &src_port, &dst_port];
                    let fields = fields.into_iter().flatten();
                    let fields: String = fields.map(|field| format!(",{field}")).collect();
                    entries.push(format!(
                        "cookie={cookie:#x},table=0,priority={priority},{protocol}{fields},actions=output:{OUT_PORT}"
                    ));
                }
            }
        }
        entries
    }
}
