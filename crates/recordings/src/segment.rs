//! TCP segments in captured packets.

use pcap_file::DataLink;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use urtica_wire::packet::{
    EthernetView, Ipv4View, Ipv6View, TcpView, VlanTags, ether_type, ip_proto, tcp::flags,
};

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Direction {
    /// The sender.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
}

impl Direction {
    /// Returns the other direction.
    pub fn reversed(self) -> Self {
        Self {
            from: self.to,
            to: self.from,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}: ", self.from, self.to)
    }
}

/// The fields of a TCP segment that reassembly needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The sequence number of its first byte, or of the SYN before it.
    pub seq: u32,
    /// Whether it starts a connection.
    pub starts: bool,
    /// The acknowledgement number, if valid.
    pub ack: Option<u32>,
    /// Its captured payload.
    pub payload: &'a [u8],
    /// Number of its bytes that were not captured.
    pub cut: u32,
}

/// Returns the TCP segment in a packet, if it can be parsed.
pub fn tcp_segment(link: DataLink, data: &[u8]) -> Option<(Direction, Segment<'_>)> {
    let ip = match link {
        DataLink::ETHERNET => ip_in_ethernet(data)?,
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => data,
        DataLink::NULL | DataLink::LOOP => data.get(4..)?,
        DataLink::LINUX_SLL => data.get(16..)?,
        DataLink::LINUX_SLL2 => data.get(20..)?,
        _ => return None,
    };
    let packet = tcp_in_ip(ip)?;
    let tcp = TcpView::new(packet.payload).ok()?;
    let direction = Direction {
        from: SocketAddr::new(packet.src, tcp.src_port()),
        to: SocketAddr::new(packet.dst, tcp.dst_port()),
    };
    let is_set = |flag| tcp.flags() & flag != 0;
    let segment = Segment {
        seq: tcp.seq(),
        starts: is_set(flags::SYN),
        // The acknowledgement number of a reset may be anything.
        ack: (is_set(flags::ACK) && !is_set(flags::RST)).then(|| tcp.ack()),
        payload: tcp.payload(),
        cut: packet.cut,
    };
    Some((direction, segment))
}

fn ip_in_ethernet(frame: &[u8]) -> Option<&[u8]> {
    let ethernet = EthernetView::new(frame).ok()?;
    let mut tags = VlanTags::new(ethernet.ether_type(), ethernet.payload());
    tags.by_ref().for_each(drop);
    let is_ip = matches!(tags.type_or_length(), ether_type::IPV4 | ether_type::IPV6);
    is_ip.then(|| tags.rest())
}

/// The payload of an IP packet.
struct Carried<'a> {
    src: IpAddr,
    dst: IpAddr,
    payload: &'a [u8],
    /// Number of the packet's bytes that were not captured.
    cut: u32,
}

/// Returns the payload of an unfragmented IP packet with TCP.
fn tcp_in_ip(packet: &[u8]) -> Option<Carried<'_>> {
    match packet.first()? >> 4 {
        4 => {
            let ip = Ipv4View::new(packet).ok()?;
            let whole = !ip.more_fragments() && ip.fragment_offset() == 0;
            (whole && ip.proto() == ip_proto::TCP).then(|| Carried {
                src: ip.src().into(),
                dst: ip.dst().into(),
                payload: ip.payload(),
                cut: missing(ip.total_len().into(), packet.len()),
            })
        }
        6 => {
            let ip = Ipv6View::new(packet).ok()?;
            let upper = ip.upper_layer().ok()?;
            (upper.proto == ip_proto::TCP && !upper.is_later_fragment).then(|| Carried {
                src: ip.src().into(),
                dst: ip.dst().into(),
                payload: upper.payload,
                cut: missing(ip.payload_len().into(), ip.payload().len()),
            })
        }
        _ => None,
    }
}

fn missing(expected: usize, there: usize) -> u32 {
    expected.saturating_sub(there) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_packet_panics(link in 0u32..300, data: Vec<u8>) {
            let _ = tcp_segment(DataLink::from(link), &data);
        }
    }
}
