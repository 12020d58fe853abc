//! A connection's bytes as TCP segments that were never sent, as Wireshark would have captured them without TLS.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use urtica_wire::packet::{Ipv4, Ipv6, PseudoHeader, Tcp, ip_proto, tcp::flags};

/// The maximum length of a segment, which keeps an IPv4 packet below its limit of 65,535 bytes.
const SEGMENT_BYTES: usize = 60_000;

/// Spreads the initial sequence numbers, so that a connection differs from an earlier one between these ports.
const SPREAD: u32 = 0x9e37_79b1;

/// The sender of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The switch, which opened the connection.
    Switch,
    /// The controller.
    Controller,
}

impl Side {
    /// Returns the other side.
    pub fn peer(self) -> Self {
        match self {
            Self::Switch => Self::Controller,
            Self::Controller => Self::Switch,
        }
    }
}

/// One connection, from its handshake on. Packets are IP without a link layer (LINKTYPE_RAW), with valid checksums.
pub struct Transcript {
    switch: End,
    controller: End,
}

/// The address of one side, and the sequence number of its next byte.
struct End {
    at: SocketAddr,
    next: u32,
}

impl Transcript {
    /// Creates the connection with this number between two addresses. If only one is an IPv6 address, both are written
    /// as IPv6.
    pub fn new(switch: SocketAddr, controller: SocketAddr, number: u32) -> Self {
        let (switch, controller) = match switch.is_ipv4() == controller.is_ipv4() {
            true => (switch, controller),
            false => (as_ipv6(switch), as_ipv6(controller)),
        };
        let first = number.wrapping_mul(SPREAD);
        let end = |at| End { at, next: first };
        Self {
            switch: end(switch),
            controller: end(controller),
        }
    }

    /// Returns the packets of TCP's three-way handshake.
    pub fn open(&mut self) -> Vec<Vec<u8>> {
        let syn = self.segment(Side::Switch, flags::SYN, &[]);
        self.switch.advance(1);
        let answer = self.segment(Side::Controller, flags::SYN | flags::ACK, &[]);
        self.controller.advance(1);
        let ack = self.segment(Side::Switch, flags::ACK, &[]);
        vec![syn, answer, ack]
    }

    /// Returns packets with bytes that one side has sent.
    pub fn data(&mut self, from: Side, bytes: &[u8]) -> Vec<Vec<u8>> {
        let pieces = bytes.chunks(SEGMENT_BYTES);
        let segments = pieces.map(|piece| {
            let segment = self.segment(from, flags::PSH | flags::ACK, piece);
            self.end_mut(from).advance(piece.len());
            segment
        });
        segments.collect()
    }

    /// Returns the packets that close the connection, starting with this side's.
    pub fn close(&mut self, from: Side) -> Vec<Vec<u8>> {
        let fin = self.segment(from, flags::FIN | flags::ACK, &[]);
        self.end_mut(from).advance(1);
        let answer = self.segment(from.peer(), flags::FIN | flags::ACK, &[]);
        self.end_mut(from.peer()).advance(1);
        vec![fin, answer, self.segment(from, flags::ACK, &[])]
    }

    fn end(&self, side: Side) -> &End {
        match side {
            Side::Switch => &self.switch,
            Side::Controller => &self.controller,
        }
    }

    fn end_mut(&mut self, side: Side) -> &mut End {
        match side {
            Side::Switch => &mut self.switch,
            Side::Controller => &mut self.controller,
        }
    }

    fn segment(&self, from: Side, flags: u16, payload: &[u8]) -> Vec<u8> {
        let (from, to) = (self.end(from), self.end(from.peer()));
        let is_acknowledging = flags & flags::ACK != 0;
        let tcp = Tcp {
            src_port: from.at.port(),
            dst_port: to.at.port(),
            seq: from.next,
            ack: if is_acknowledging { to.next } else { 0 },
            flags,
            window: u16::MAX,
            ..Tcp::default()
        };
        packet(&tcp, from.at.ip(), to.at.ip(), payload)
    }
}

impl End {
    fn advance(&mut self, bytes: usize) {
        self.next = self.next.wrapping_add(bytes as u32);
    }
}

fn as_ipv6(place: SocketAddr) -> SocketAddr {
    SocketAddr::new(to_ipv6(place.ip()).into(), place.port())
}

fn to_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

fn packet(tcp: &Tcp, src: IpAddr, dst: IpAddr, payload: &[u8]) -> Vec<u8> {
    let fits = "a segment is shorter than an IP packet may be";
    let mut packet = Vec::with_capacity(payload.len() + 60);
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let ip = Ipv4::new(src, dst, ip_proto::TCP);
            let segment = with_header(tcp, &ip.pseudo_header(), payload);
            ip.write(&mut packet, &segment).expect(fits);
        }
        _ => {
            let ip = Ipv6::new(to_ipv6(src), to_ipv6(dst), ip_proto::TCP);
            let segment = with_header(tcp, &ip.pseudo_header(), payload);
            ip.write(&mut packet, &segment).expect(fits);
        }
    }
    packet
}

fn with_header(tcp: &Tcp, pseudo_header: &PseudoHeader, payload: &[u8]) -> Vec<u8> {
    let mut segment = Vec::with_capacity(payload.len() + 20);
    let written = tcp.write(&mut segment, pseudo_header, payload);
    written.expect("a header without options fits");
    segment
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reassembly::{Piece, Reassembly};
    use crate::segment::{Direction, tcp_segment};
    use pcap_file::DataLink;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use urtica_wire::packet::{Ipv4View, Ipv6View, TcpView};

    const SWITCH: &str = "192.0.2.1:40000";
    const CONTROLLER: &str = "192.0.2.2:6653";

    fn transcript(switch: &str, controller: &str) -> Transcript {
        let place = |text: &str| text.parse().expect("a place");
        Transcript::new(place(switch), place(controller), 7)
    }

    /// Reassembles the packets by direction, as a reader of a capture does.
    fn reassembled(packets: &[Vec<u8>]) -> HashMap<Direction, Vec<u8>> {
        let mut directions: HashMap<Direction, (Reassembly, Vec<u8>)> = HashMap::new();
        for packet in packets {
            let (direction, segment) = tcp_segment(DataLink::RAW, packet).expect("TCP");
            let (reassembly, bytes) = directions.entry(direction).or_default();
            reassembly.take(&segment, &mut |piece| match piece {
                Piece::Bytes(new) => bytes.extend_from_slice(new),
                Piece::Lost(count) => panic!("{count} bytes are missing"),
            });
        }
        let directions = directions.into_iter();
        directions.map(|(key, (_, bytes))| (key, bytes)).collect()
    }

    fn assert_valid(packet: &[u8]) {
        let (tcp, pseudo_header) = match packet[0] >> 4 {
            4 => {
                let ip = Ipv4View::new(packet).expect("IPv4");
                assert!(ip.is_checksum_valid());
                (ip.payload(), ip.pseudo_header())
            }
            _ => {
                let ip = Ipv6View::new(packet).expect("IPv6");
                (ip.payload(), ip.pseudo_header())
            }
        };
        let tcp = TcpView::new(tcp).expect("TCP");
        assert!(tcp.is_checksum_valid(&pseudo_header));
    }

    proptest! {
        // Each case has up to a megabyte.
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn bytes_of_both_sides_are_read_back_unchanged(
            writes in proptest::collection::vec((any::<bool>(), 0usize..130_000), 1..8),
            is_ipv6: bool,
        ) {
            let (mut transcript, switch) = match is_ipv6 {
                true => (transcript("[2001:db8::1]:40000", CONTROLLER), "[2001:db8::1]:40000"),
                false => (transcript(SWITCH, CONTROLLER), SWITCH),
            };
            let mut packets = transcript.open();
            let mut expected = [Vec::new(), Vec::new()];
            for (index, (from_switch, length)) in writes.into_iter().enumerate() {
                let bytes = vec![index as u8; length];
                let side = if from_switch { Side::Switch } else { Side::Controller };
                packets.extend(transcript.data(side, &bytes));
                expected[usize::from(!from_switch)].extend(bytes);
            }
            packets.extend(transcript.close(Side::Controller));
            packets.iter().for_each(|packet| assert_valid(packet));
            let found = reassembled(&packets);
            prop_assert_eq!(found.len(), 2);
            for (direction, bytes) in found {
                let is_switch = direction.from == switch.parse().expect("a place");
                prop_assert_eq!(&bytes, &expected[usize::from(!is_switch)]);
            }
        }
    }

    #[test]
    fn connections_start_with_a_handshake_and_differ_in_sequence_numbers() {
        let mut one = transcript(SWITCH, CONTROLLER);
        let seen: Vec<_> = one.open().iter().map(|packet| flags_of(packet)).collect();
        assert_eq!(seen, [flags::SYN, flags::SYN | flags::ACK, flags::ACK]);
        let place = SWITCH.parse().expect("a place");
        let other = Transcript::new(place, place, 8);
        assert_ne!(one.switch.next.wrapping_sub(1), other.switch.next);
    }

    fn flags_of(packet: &[u8]) -> u16 {
        let ip = Ipv4View::new(packet).expect("IPv4");
        TcpView::new(ip.payload()).expect("TCP").flags()
    }
}
