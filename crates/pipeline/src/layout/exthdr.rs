//! IPv6 extension headers for the pseudo field `ipv6_exthdr` (1.3.5 section 7.2.3.7).

use urtica_wire::packet::ipv6_ext::ExtensionView;
use urtica_wire::packet::{Ipv6View, ip_proto, ipv6};

/// `OFPIEH_NONEXT`: a "no next header" is present.
const NONEXT: u16 = 1 << 0;
/// `OFPIEH_ESP`: encrypted payload is present.
const ESP: u16 = 1 << 1;
/// `OFPIEH_AUTH`: an authentication header is present.
const AUTH: u16 = 1 << 2;
/// `OFPIEH_DEST`: one or more destination options headers are present.
const DEST: u16 = 1 << 3;
/// `OFPIEH_FRAG`: a fragment header is present.
const FRAG: u16 = 1 << 4;
/// `OFPIEH_ROUTER`: a routing header is present.
const ROUTER: u16 = 1 << 5;
/// `OFPIEH_HOP`: the first extension header is one of hop-by-hop options.
const HOP: u16 = 1 << 6;
/// `OFPIEH_UNREP`: a header is present more often than expected, which is once (destination options: twice).
const UNREP: u16 = 1 << 7;
/// `OFPIEH_UNSEQ`: the headers are not in the order preferred by RFC 8200, section 4.1.
const UNSEQ: u16 = 1 << 8;

/// The chain of extension headers of one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExtensionHeaders {
    /// `OFPIEH_*` of the headers that could be parsed.
    pub exthdr: u16,
    /// Whether a routing header names further stops.
    pub has_stops: bool,
    /// The upper layer after the chain; `None` if the end of the chain cannot be found.
    pub upper: Option<UpperPlace>,
}

/// The upper layer after a chain of extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UpperPlace {
    pub proto: u8,
    /// Offset of the protocol number, from the IPv6 header's start.
    pub proto_at: usize,
    /// The number of bytes after the chain.
    pub len: usize,
    pub fragment_offset: u16,
    pub more_fragments: bool,
}

impl ExtensionHeaders {
    pub fn read(ip: &Ipv6View) -> Self {
        let mut headers = Self::default();
        let mut seen = Seen::default();
        let mut upper = UpperPlace {
            proto: ip.next_header(),
            proto_at: 6,
            len: ip.payload().len(),
            fragment_offset: 0,
            more_fragments: false,
        };
        for extension in ip.extensions() {
            let Ok(extension) = extension else {
                headers.exthdr = seen.bits;
                return headers;
            };
            seen.add(extension.kind());
            headers.has_stops |= has_stops(&extension);
            upper.advance(ip, &extension);
        }
        if upper.fragment_offset == 0 {
            seen.add_end(upper.proto);
        }
        headers.exthdr = seen.bits;
        headers.upper = Some(upper);
        headers
    }
}

impl UpperPlace {
    /// Advances to the header after `extension`.
    fn advance(&mut self, ip: &Ipv6View, extension: &ExtensionView) {
        // The first byte of every extension header is the next one's protocol.
        self.proto_at = ipv6::HEADER_LEN + ip.payload().len() - self.len;
        self.proto = extension.next_header();
        self.len = extension.payload().len();
        if let ExtensionView::Fragment(fragment) = extension {
            self.fragment_offset |= fragment.offset();
            self.more_fragments |= fragment.more_fragments();
        }
    }
}

fn has_stops(extension: &ExtensionView) -> bool {
    matches!(extension, ExtensionView::Routing(routing) if routing.segments_left() > 0)
}

/// The headers seen so far, and the last one's position in the preferred order.
#[derive(Default)]
struct Seen {
    bits: u16,
    /// The position of the last header in the preferred order; 0 before the first.
    rank: u8,
    destination_options: u8,
}

impl Seen {
    fn add(&mut self, kind: u8) {
        match kind {
            ip_proto::HOP_BY_HOP => self.add_hop_by_hop(),
            ip_proto::DESTINATION_OPTIONS => self.add_destination_options(),
            ip_proto::ROUTING => self.add_ranked(ROUTER, 3),
            ip_proto::FRAGMENT => self.add_ranked(FRAG, 4),
            ip_proto::AUTHENTICATION => self.add_ranked(AUTH, 5),
            _ => {}
        }
    }

    fn add_end(&mut self, proto: u8) {
        match proto {
            ip_proto::ESP => self.add_ranked(ESP, 6),
            ip_proto::NO_NEXT_HEADER => self.bits |= NONEXT,
            _ => {}
        }
    }

    /// Adds hop-by-hop options, which count only as the first header.
    fn add_hop_by_hop(&mut self) {
        match self.rank {
            0 => self.add_ranked(HOP, 1),
            _ if self.bits & HOP != 0 => self.bits |= UNREP | UNSEQ,
            _ => self.bits |= UNSEQ,
        }
    }

    /// Adds destination options, which may occur twice: before a routing header, and as the last header.
    fn add_destination_options(&mut self) {
        self.destination_options += 1;
        if self.destination_options > 2 {
            self.bits |= UNREP;
        }
        self.bits |= DEST;
        self.rank = if self.rank < 2 { 2 } else { 7 };
    }

    fn add_ranked(&mut self, bit: u16, rank: u8) {
        if self.bits & bit != 0 {
            self.bits |= UNREP;
        }
        if rank < self.rank {
            self.bits |= UNSEQ;
        }
        self.bits |= bit;
        self.rank = self.rank.max(rank);
    }
}

#[cfg(test)]
mod tests {
    use crate::packet::testing::packet;
    use urtica_wire::OxmField::{IpProto, Ipv6Exthdr, UdpDst};

    /// Creates a packet with extension headers of these kinds, eight bytes each; the last kind is the upper-layer protocol.
    fn chain(kinds: &[u8]) -> String {
        let mut bytes = String::new();
        for next in &kinds[1..] {
            bytes += &format!("{next:02x} 00 0000 00000000");
        }
        let len = 8 * kinds.len();
        let first = kinds[0];
        format!(
            "020000000002 020000000001 86dd 60000000 {len:04x} {first:02x} 40
             fe800000000000000000000000000001 fe800000000000000000000000000002
             {bytes} c000 0035 0008 0000"
        )
    }

    #[track_caller]
    fn assert_exthdr(kinds: &[u8], expected: u128) {
        let packet = packet(&chain(kinds));
        assert_eq!(packet.field(Ipv6Exthdr), Some(expected), "{kinds:?}");
        let last = kinds[kinds.len() - 1];
        assert_eq!(packet.field(IpProto), Some(last.into()), "{kinds:?}");
    }

    const HOP: u8 = 0;
    const ROUTER: u8 = 43;
    const FRAG: u8 = 44;
    const ESP: u8 = 50;
    const NONEXT: u8 = 59;
    const DEST: u8 = 60;
    const UDP: u8 = 17;

    #[test]
    fn kinds_have_distinct_bits() {
        assert_exthdr(&[UDP], 0);
        assert_exthdr(&[NONEXT], 1);
        assert_exthdr(&[ESP], 2);
        assert_exthdr(&[DEST, UDP], 8);
        assert_exthdr(&[FRAG, UDP], 16);
        assert_exthdr(&[ROUTER, UDP], 32);
        assert_exthdr(&[HOP, UDP], 64);
        assert_exthdr(&[HOP, DEST, ROUTER, FRAG, ESP], 64 | 8 | 32 | 16 | 2);
    }

    #[test]
    fn an_authentication_header_has_separate_length_units() {
        let text = chain(&[51, UDP, UDP]).replacen("11 00 0000 00000000", "11 02 0000 00000000", 1);
        let packet = packet(&text);
        assert_eq!(packet.field(Ipv6Exthdr), Some(4));
        assert_eq!(packet.field(UdpDst), Some(53));
    }

    #[test]
    fn repeats_and_unusual_orders_are_reported() {
        assert_exthdr(&[DEST, ROUTER, DEST, UDP], 8 | 32);
        assert_exthdr(&[DEST, DEST, UDP], 8);
        assert_exthdr(&[DEST, DEST, DEST, UDP], 8 | 128);
        assert_exthdr(&[ROUTER, ROUTER, UDP], 32 | 128);
        assert_exthdr(&[FRAG, ROUTER, UDP], 16 | 32 | 256);
        assert_exthdr(&[HOP, HOP, UDP], 64 | 128 | 256);
        assert_exthdr(&[ROUTER, HOP, UDP], 32 | 256);
        assert_exthdr(&[ROUTER, DEST, FRAG, UDP], 32 | 8 | 16 | 256);
    }

    #[test]
    fn a_later_fragment_ends_the_chain() {
        let text = chain(&[FRAG, ESP, UDP]).replacen("32 00 0000", "32 00 0008", 1);
        let packet = packet(&text);
        assert_eq!(packet.field(Ipv6Exthdr), Some(16));
        assert_eq!(packet.field(IpProto), Some(50));
    }

    #[test]
    fn a_truncated_chain_ends_without_a_protocol() {
        let mut text = chain(&[HOP, ROUTER, UDP]);
        text = text.replacen("11 00 0000", "11 ff 0000", 1);
        let packet = packet(&text);
        assert_eq!(packet.field(Ipv6Exthdr), Some(64));
        assert_eq!((packet.field(IpProto), packet.field(UdpDst)), (None, None));
    }
}
