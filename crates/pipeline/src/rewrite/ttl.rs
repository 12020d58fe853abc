//! Setting, decrementing and copying the TTLs of MPLS and IP (1.3.5 section 5.12, 7.2.5).

use super::checksum::Sum;
use crate::Packet;
use crate::fields::BitRange;
use crate::layout::{IpVersion, Network, Part};
use urtica_wire::packet::{Ipv4View, Ipv6View, mpls};

/// The protocol numbers of IPv4 and IPv6 in IP (RFC 2003, RFC 2473).
const IP_IN_IP: [u8; 2] = [4, 41];

/// A header with a TTL, by its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TtlHeader {
    Mpls(usize),
    Ipv4(usize),
    Ipv6(usize),
}

impl TtlHeader {
    fn place(self) -> BitRange {
        match self {
            Self::Mpls(at) => BitRange::bytes(at + 3, 1),
            Self::Ipv4(at) => BitRange::bytes(at + 8, 1),
            Self::Ipv6(at) => BitRange::bytes(at + 7, 1),
        }
    }

    /// Returns the checksum that covers the TTL.
    fn sum(self) -> Option<Sum> {
        match self {
            Self::Ipv4(at) => Some(Sum::plain(at + 10)),
            Self::Mpls(_) | Self::Ipv6(_) => None,
        }
    }

    /// Returns the IP header at `at`, if it is plausible, since no protocol number before it announces IP.
    fn find_ip(frame: &[u8], at: usize) -> Option<Self> {
        let bytes = frame.get(at..)?;
        if Ipv4View::new(bytes).is_ok() {
            return Some(Self::Ipv4(at));
        }
        Ipv6View::new(bytes).is_ok().then_some(Self::Ipv6(at))
    }
}

impl Packet {
    pub(super) fn set_mpls_ttl(&mut self, ttl: u8) {
        if let Some(header) = self.mpls_header() {
            self.set_ttl(header, ttl);
        }
    }

    pub(super) fn set_nw_ttl(&mut self, ttl: u8) {
        if let Some(header) = self.ip_header() {
            self.set_ttl(header, ttl);
        }
    }

    /// Returns the TTL of the IP header, if that can be parsed.
    pub(super) fn nw_ttl(&self) -> Option<u8> {
        self.ip_header().map(|header| self.ttl(header))
    }

    /// Decrements the TTL of MPLS. Returns `true` if the packet may continue.
    pub(super) fn dec_mpls_ttl(&mut self) -> bool {
        self.mpls_header().is_none_or(|header| self.dec_ttl(header))
    }

    /// Decrements the TTL of IP. Returns `true` if the packet may continue.
    pub(super) fn dec_nw_ttl(&mut self) -> bool {
        self.ip_header().is_none_or(|header| self.dec_ttl(header))
    }

    /// Copies the TTL from the next-to-outermost to the outermost header with a TTL.
    pub(super) fn copy_ttl_out(&mut self) {
        if let Some((outer, inner)) = self.outermost_headers() {
            self.set_ttl(outer, self.ttl(inner));
        }
    }

    /// Copies the TTL from the outermost to the next-to-outermost header with a TTL.
    pub(super) fn copy_ttl_in(&mut self) {
        if let Some((outer, inner)) = self.outermost_headers() {
            self.set_ttl(inner, self.ttl(outer));
        }
    }

    fn ttl(&self, header: TtlHeader) -> u8 {
        header.place().read(self.frame()) as u8
    }

    fn set_ttl(&mut self, header: TtlHeader, ttl: u8) {
        self.rewrite(header.place(), ttl.into(), [header.sum(), None]);
    }

    /// Decrements a TTL. An invalid one stays unchanged, so that the controller sees it.
    fn dec_ttl(&mut self, header: TtlHeader) -> bool {
        match self.ttl(header) {
            0 | 1 => false,
            ttl => {
                self.set_ttl(header, ttl - 1);
                true
            }
        }
    }

    fn mpls_header(&self) -> Option<TtlHeader> {
        match self.layout().network {
            Network::Mpls(at) => Some(TtlHeader::Mpls(at)),
            _ => None,
        }
    }

    fn ip_header(&self) -> Option<TtlHeader> {
        let ip = self.layout().ip()?;
        Some(match ip.version {
            IpVersion::V4 => TtlHeader::Ipv4(ip.at),
            IpVersion::V6 { .. } => TtlHeader::Ipv6(ip.at),
        })
    }

    /// Returns the outermost header with a TTL and the one after it, if there are two.
    fn outermost_headers(&self) -> Option<(TtlHeader, TtlHeader)> {
        if let Some(outer @ TtlHeader::Mpls(at)) = self.mpls_header() {
            return Some((outer, self.behind_mpls(at)?));
        }
        Some((self.ip_header()?, self.behind_ip()?))
    }

    /// Returns the header after the MPLS header at `at`: another one, or IP by its version (RFC 4928), as there is no type.
    fn behind_mpls(&self, at: usize) -> Option<TtlHeader> {
        let frame = self.frame();
        let next = at + mpls::HEADER_LEN;
        let is_bottom = frame[at + 2] & 1 == 1;
        if is_bottom {
            return TtlHeader::find_ip(frame, next);
        }
        (frame.len() >= next + mpls::HEADER_LEN).then_some(TtlHeader::Mpls(next))
    }

    /// Returns the header of IP in IP.
    fn behind_ip(&self) -> Option<TtlHeader> {
        let upper = self.layout().upper()?;
        if !IP_IN_IP.contains(&upper.proto) || upper.part == Part::Later {
            return None;
        }
        TtlHeader::find_ip(&self.frame()[..upper.end], upper.at)
    }
}

#[cfg(test)]
mod tests {
    use crate::packet::testing::*;
    use urtica_wire::Action;

    /// An IPv4 header of this TTL and checksum, and the start of a TCP header.
    fn ipv4(ttl_and_checksum: &str) -> String {
        let (ttl, checksum) = ttl_and_checksum.split_once(' ').expect("two words");
        format!(
            "020000000002 020000000001 0800
             4500 001c 0000 0000 {ttl} 06 {checksum} 0a000001 0a000002 c00019fd 00000001"
        )
    }

    fn ipv6(hop_limit: &str) -> String {
        TCP_OVER_IPV6.replace("06 40", &format!("06 {hop_limit}"))
    }

    fn mpls(headers: &str) -> String {
        format!("020000000002 020000000001 8847 {headers}")
    }

    /// Checks that the packet is not processed further, and is unchanged.
    #[track_caller]
    fn assert_refused(text: &str, action: Action) {
        let mut packet = packet(text);
        assert!(!packet.apply(&action), "{action:?} makes an invalid TTL");
        assert_eq!(packet.frame(), hex(text));
    }

    #[test]
    fn of_ipv4() {
        assert_applied(&ipv4("40 66da"), Action::DecNwTtl, &ipv4("3f 67da"));
        assert_applied(&ipv4("40 66da"), Action::SetNwTtl(1), &ipv4("01 a5da"));
        assert_applied(&ipv4("02 a4da"), Action::DecNwTtl, &ipv4("01 a5da"));
        assert_refused(&ipv4("01 a5da"), Action::DecNwTtl);
        assert_refused(&ipv4("00 a6da"), Action::DecNwTtl);
    }

    #[test]
    fn of_ipv6() {
        assert_applied(&ipv6("40"), Action::DecNwTtl, &ipv6("3f"));
        assert_applied(&ipv6("40"), Action::SetNwTtl(255), &ipv6("ff"));
        assert_refused(&ipv6("01"), Action::DecNwTtl);
        assert_refused(&ipv6("00"), Action::DecNwTtl);
    }

    #[test]
    fn of_mpls() {
        assert_applied(&mpls("abcdeb40"), Action::DecMplsTtl, &mpls("abcdeb3f"));
        assert_applied(&mpls("abcdeb40"), Action::SetMplsTtl(0), &mpls("abcdeb00"));
        assert_refused(&mpls("abcdeb01"), Action::DecMplsTtl);
        assert_refused(&mpls("abcdeb00"), Action::DecMplsTtl);
    }

    #[test]
    fn packets_without_a_ttl_are_processed() {
        for action in [
            Action::DecNwTtl,
            Action::DecMplsTtl,
            Action::SetNwTtl(1),
            Action::SetMplsTtl(1),
            Action::CopyTtlIn,
            Action::CopyTtlOut,
        ] {
            assert_applied(ARP_REPLY, action, ARP_REPLY);
        }
        assert_applied(TCP_OVER_IPV4, Action::DecMplsTtl, TCP_OVER_IPV4);
        assert_applied(UDP_UNDER_TWO_LABELS, Action::DecNwTtl, UDP_UNDER_TWO_LABELS);
        assert_applied(TCP_OVER_IPV4, Action::CopyTtlIn, TCP_OVER_IPV4);
    }

    #[test]
    fn copied_from_mpls_to_mpls() {
        let before = mpls("0001003f 0001013e");
        assert_applied(&before, Action::CopyTtlIn, &mpls("0001003f 0001013f"));
        assert_applied(&before, Action::CopyTtlOut, &mpls("0001003e 0001013e"));
        assert_applied(
            &mpls("0001003f 000101"),
            Action::CopyTtlIn,
            &mpls("0001003f 000101"),
        );
    }

    #[test]
    fn copied_between_mpls_and_ip() {
        let under = |label: &str, ip: &str| mpls(&format!("{label} {}", &ip.trim()[30..]));
        let before = under("0001013f", &ipv4("40 66da"));
        let copied_in = under("0001013f", &ipv4("3f 67da"));
        assert_applied(&before, Action::CopyTtlIn, &copied_in);
        let copied_out = under("00010140", &ipv4("40 66da"));
        assert_applied(&before, Action::CopyTtlOut, &copied_out);
        let over_ipv6 = under("0001013f", &ipv6("40"));
        assert_applied(
            &over_ipv6,
            Action::CopyTtlIn,
            &under("0001013f", &ipv6("3f")),
        );
        let pseudo_wire = mpls("0001013f 00000000 00000000");
        assert_applied(&pseudo_wire, Action::CopyTtlIn, &pseudo_wire);
    }

    #[test]
    fn copied_between_ip_and_ip() {
        let tunnel = |outer: &str, inner: &str| {
            format!(
                "020000000002 020000000001 0800
                 4500 0028 0000 0000 {outer} 0a000001 0a000002
                 4500 0014 0000 0000 {inner} 0a000001 0a000002"
            )
        };
        let before = tunnel("40 04 66d0", "20 06 86e2");
        assert_applied(
            &before,
            Action::CopyTtlOut,
            &tunnel("20 04 86d0", "20 06 86e2"),
        );
        assert_applied(
            &before,
            Action::CopyTtlIn,
            &tunnel("40 04 66d0", "40 06 66e2"),
        );
    }
}
