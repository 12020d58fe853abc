//! OpenFlow connections in a pcap or pcapng capture.
//!
//! Each direction of a connection is put together from its TCP segments: those that come again are passed over, those
//! that come too early wait. A gap that a later segment does not fill is told, and printing goes on after it with the
//! next segment, which may or may not begin with a message.

use super::stream::MessageStream;
use super::{Error, Outcome};
use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use urtica::wire::packet::{
    EthernetView, Ipv4View, Ipv6View, TcpView, VlanView, ether_type, ip_proto,
};

/// How a pcapng file begins.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// How a pcap file begins: with micro- or nanoseconds, in either byte order.
const PCAP: [[u8; 4]; 4] = [
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
];

/// Whether these are the first bytes of a capture.
pub(super) fn is_capture(bytes: &[u8]) -> bool {
    bytes
        .first_chunk()
        .is_some_and(|magic| *magic == PCAPNG || PCAP.contains(magic))
}

/// Prints the messages of every TCP connection from or to one of `ports`.
pub(super) fn decode(
    bytes: &[u8],
    ports: &[u16],
    verbose: bool,
    out: &mut dyn Write,
) -> Result<Outcome, Error> {
    let mut connections = Connections {
        ports,
        verbose,
        directions: HashMap::new(),
        outcome: Outcome::AllRead,
    };
    if bytes.starts_with(&PCAPNG) {
        let mut reader = PcapNgReader::new(bytes)?;
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(packet) = block? {
                let (id, data) = (packet.interface_id as usize, packet.data.into_owned());
                if let Some(interface) = reader.interfaces().get(id) {
                    connections.packet(interface.linktype, &data, out)?;
                }
            }
        }
    } else {
        let mut reader = PcapReader::new(bytes)?;
        let link = reader.header().datalink;
        while let Some(packet) = reader.next_packet() {
            connections.packet(link, &packet?.data, out)?;
        }
    }
    connections.finish(out)
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Direction {
    from: SocketAddr,
    to: SocketAddr,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}: ", self.from, self.to)
    }
}

/// All connections that have been seen.
struct Connections<'p> {
    ports: &'p [u16],
    verbose: bool,
    directions: HashMap<Direction, Reassembly>,
    outcome: Outcome,
}

impl Connections<'_> {
    fn packet(&mut self, link: DataLink, data: &[u8], out: &mut dyn Write) -> Result<(), Error> {
        let Some((direction, segment)) = tcp_segment(link, data) else {
            return Ok(());
        };
        let ends = [direction.from.port(), direction.to.port()];
        if !ends.iter().any(|port| self.ports.contains(port)) {
            return Ok(());
        }
        let reassembly = self.directions.entry(direction).or_default();
        let prefix = direction.to_string();
        reassembly.segment(&segment);
        if let Some(lost) = reassembly.give_up_gap() {
            writeln!(out, "{prefix}{lost} bytes are missing from the capture")?;
            self.outcome = Outcome::SomeUnreadable;
        }
        let printed = reassembly.messages.print(out, &prefix, self.verbose)?;
        self.outcome = self.outcome.and(printed);
        Ok(())
    }

    fn finish(mut self, out: &mut dyn Write) -> Result<Outcome, Error> {
        let mut directions: Vec<_> = self.directions.into_iter().collect();
        directions.sort_by_key(|(direction, _)| *direction);
        for (direction, reassembly) in &mut directions {
            let prefix = direction.to_string();
            let printed = reassembly.messages.finish(out, &prefix)?;
            self.outcome = self.outcome.and(printed);
        }
        Ok(self.outcome)
    }
}

/// A TCP segment, as far as reassembly looks at it.
struct Segment<'a> {
    seq: u32,
    starts: bool,
    payload: &'a [u8],
}

/// How many bytes may wait for an earlier segment before that one is taken for lost.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// Puts one direction's segments in order.
#[derive(Default)]
struct Reassembly {
    messages: MessageStream,
    /// The sequence number of the next byte, once a first segment has come.
    next: Option<u32>,
    /// Segments that came before their turn, by their sequence number.
    waiting: BTreeMap<u32, Vec<u8>>,
    waiting_bytes: usize,
}

impl Reassembly {
    fn segment(&mut self, segment: &Segment<'_>) {
        if segment.starts {
            *self = Self {
                next: Some(segment.seq.wrapping_add(1)),
                ..Self::default()
            };
        }
        if segment.payload.is_empty() {
            return;
        }
        let next = *self.next.get_or_insert(segment.seq);
        let ahead = segment.seq.wrapping_sub(next);
        if ahead == 0 || is_behind(ahead) {
            self.take(ahead, segment.payload);
            self.take_waiting();
        } else {
            self.waiting_bytes += segment.payload.len();
            let again = self.waiting.insert(segment.seq, segment.payload.to_vec());
            self.waiting_bytes -= again.map_or(0, |earlier| earlier.len());
        }
    }

    /// Takes what is new of a segment that starts `ahead` of the next byte, which is not after it.
    fn take(&mut self, ahead: u32, payload: &[u8]) {
        let known = ahead.wrapping_neg() as usize;
        if let (Some(new), Some(next)) = (payload.get(known..), self.next) {
            self.messages.push(new);
            self.next = Some(next.wrapping_add(new.len() as u32));
        }
    }

    /// Takes every waiting segment whose turn has come.
    fn take_waiting(&mut self) {
        while let Some((ahead, seq)) = self.first_waiting() {
            if ahead != 0 && !is_behind(ahead) {
                return;
            }
            if let Some(payload) = self.waiting.remove(&seq) {
                self.waiting_bytes -= payload.len();
                self.take(ahead, &payload);
            }
        }
    }

    /// How far ahead of the next byte the nearest waiting segment starts, and its sequence number.
    fn first_waiting(&self) -> Option<(u32, u32)> {
        let next = self.next?;
        let waiting = self.waiting.keys();
        // Those that are behind by now count as nearest: their turn is over.
        let distances = waiting.map(|&seq| (seq.wrapping_sub(next), seq));
        distances.min_by_key(|&(ahead, _)| if is_behind(ahead) { 0 } else { ahead })
    }

    /// Passes over bytes that too many have been waiting for, and tells how many.
    fn give_up_gap(&mut self) -> Option<u32> {
        if self.waiting_bytes <= WAITING_BYTES_MAX {
            return None;
        }
        let (lost, seq) = self.first_waiting()?;
        self.messages.skip(lost as usize);
        self.next = Some(seq);
        self.take_waiting();
        Some(lost)
    }
}

/// Whether a difference of sequence numbers is negative (RFC 9293 section 3.4).
fn is_behind(difference: u32) -> bool {
    difference > u32::MAX / 2
}

/// The TCP segment in a packet, if there is one that can be read.
fn tcp_segment(link: DataLink, data: &[u8]) -> Option<(Direction, Segment<'_>)> {
    let ip = match link {
        DataLink::ETHERNET => ip_in_ethernet(data)?,
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => data,
        DataLink::NULL => data.get(4..)?,
        DataLink::LINUX_SLL => data.get(16..)?,
        DataLink::LINUX_SLL2 => data.get(20..)?,
        _ => return None,
    };
    let (src, dst, payload) = tcp_in_ip(ip)?;
    let tcp = TcpView::new(payload).ok()?;
    let direction = Direction {
        from: SocketAddr::new(src, tcp.src_port()),
        to: SocketAddr::new(dst, tcp.dst_port()),
    };
    let segment = Segment {
        seq: tcp.seq(),
        starts: tcp.flags() & SYN != 0,
        payload: tcp.payload(),
    };
    Some((direction, segment))
}

/// TCP's SYN flag.
const SYN: u16 = 0x002;

fn ip_in_ethernet(frame: &[u8]) -> Option<&[u8]> {
    let ethernet = EthernetView::new(frame).ok()?;
    let (mut ether_type, mut payload) = (ethernet.ether_type(), ethernet.payload());
    while matches!(ether_type, ether_type::VLAN | ether_type::SERVICE_VLAN) {
        let tag = VlanView::new(payload).ok()?;
        (ether_type, payload) = (tag.ether_type(), tag.payload());
    }
    matches!(ether_type, ether_type::IPV4 | ether_type::IPV6).then_some(payload)
}

/// Addresses and payload of an unfragmented IP packet that carries TCP.
fn tcp_in_ip(packet: &[u8]) -> Option<(IpAddr, IpAddr, &[u8])> {
    match packet.first()? >> 4 {
        4 => {
            let ip = Ipv4View::new(packet).ok()?;
            let whole = !ip.more_fragments() && ip.fragment_offset() == 0;
            let tcp = whole && ip.proto() == ip_proto::TCP;
            tcp.then(|| (ip.src().into(), ip.dst().into(), ip.payload()))
        }
        6 => {
            let ip = Ipv6View::new(packet).ok()?;
            let upper = ip.upper_layer().ok()?;
            let tcp = upper.proto == ip_proto::TCP && !upper.is_later_fragment;
            tcp.then(|| (ip.src().into(), ip.dst().into(), upper.payload))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::pcap::{PcapPacket, PcapWriter};
    use proptest::prelude::*;
    use std::time::Duration;

    fn bytes_of(segments: &[(u32, &[u8])]) -> Vec<u8> {
        let mut reassembly = Reassembly::default();
        for &(seq, payload) in segments {
            reassembly.segment(&Segment {
                seq,
                starts: false,
                payload,
            });
        }
        reassembly.messages.bytes().to_vec()
    }

    #[test]
    fn segments_are_put_in_order() {
        assert_eq!(
            bytes_of(&[(10, b"ab"), (14, b"ef"), (12, b"cd")]),
            b"abcdef"
        );
        assert_eq!(bytes_of(&[(10, b"ab"), (10, b"ab"), (11, b"bcd")]), b"abcd");
        assert_eq!(bytes_of(&[(u32::MAX, b"ab"), (1, b"cd")]), b"abcd");
    }

    #[test]
    fn a_connection_that_starts_again_starts_anew() {
        let mut reassembly = Reassembly::default();
        for (seq, starts, payload) in [
            (5, false, &b"old"[..]),
            (90, true, b""),
            (91, false, b"new"),
        ] {
            reassembly.segment(&Segment {
                seq,
                starts,
                payload,
            });
        }
        assert_eq!(reassembly.messages.bytes(), b"new");
    }

    /// A packet of a connection to a controller, in Ethernet, IPv4 and TCP.
    fn packet(seq: u32, payload: &[u8]) -> Vec<u8> {
        let mut tcp = [&43210u16.to_be_bytes()[..], &6653u16.to_be_bytes()].concat();
        tcp.extend(seq.to_be_bytes());
        tcp.extend([0, 0, 0, 1, 0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend(payload);
        let mut ip = vec![0x45, 0];
        ip.extend((20 + tcp.len() as u16).to_be_bytes());
        ip.extend([0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        [&[0; 12][..], &[0x08, 0x00], &ip, &tcp].concat()
    }

    #[test]
    fn messages_come_out_of_a_capture_whole() {
        let barriers = [1, 18, 0, 8, 0, 0, 0, 1, 1, 19, 0, 8, 0, 0, 0, 2];
        let cuts = [(100, 0..3), (108, 8..16), (103, 3..8)];
        let mut file = PcapWriter::new(Vec::new()).expect("a capture");
        for (seq, range) in cuts {
            let data = packet(seq, &barriers[range]);
            let packet = PcapPacket::new(Duration::ZERO, data.len() as u32, &data);
            file.write_packet(&packet).expect("writing to memory");
        }
        let file = file.into_writer();
        assert!(is_capture(&file));
        let mut out = Vec::new();
        let outcome = decode(&file, &[6653], false, &mut out).expect("a capture");
        assert_eq!(outcome, Outcome::AllRead);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "10.0.0.1:43210 > 10.0.0.2:6653: OFPT_BARRIER_REQUEST (xid=0x1):\n\
             10.0.0.1:43210 > 10.0.0.2:6653: OFPT_BARRIER_REPLY (xid=0x2):\n"
        );
        let mut out = Vec::new();
        decode(&file, &[6633], false, &mut out).expect("a capture");
        assert!(out.is_empty());
    }

    proptest! {
        #[test]
        fn any_order_gives_the_same_bytes(
            start: u32,
            cuts in proptest::collection::vec(1usize..9, 1..8),
            order in proptest::collection::vec(any::<u16>(), 8),
        ) {
            let total: usize = cuts.iter().sum();
            let all: Vec<u8> = (0..total).map(|byte| byte as u8).collect();
            let mut at = 0;
            let mut segments: Vec<_> = cuts.iter().map(|&length| {
                let segment = (start.wrapping_add(at as u32), &all[at..at + length]);
                at += length;
                segment
            }).collect();
            // The first one says where the stream starts.
            let mut keys = order.into_iter();
            segments[1..].sort_by_cached_key(|_| keys.next());
            prop_assert_eq!(bytes_of(&segments), all);
        }

        #[test]
        fn no_packet_panics(link in 0u32..300, data: Vec<u8>) {
            let _ = tcp_segment(DataLink::from(link), &data);
        }
    }
}
