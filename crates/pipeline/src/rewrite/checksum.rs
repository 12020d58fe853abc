//! Incremental updates of checksums (RFC 1624): correct ones stay correct, and wrong ones stay wrong, so that the receiver
//! still detects errors that occurred before the switch.

use crate::Packet;
use crate::fields::BitRange;
use crate::layout::{IpVersion, Layout, Part, Transport, Upper};
use std::ops::Range;
use urtica_wire::OxmField;
use urtica_wire::packet::{checksum, sctp};

/// An internet checksum in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    at: usize,
    zero: Zero,
}

/// The meaning of 0, one of the two zeros in ones' complement; the other is 0xffff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Zero {
    /// An ordinary value. The covered bytes are never all zero, so the other zero does not occur.
    Plain,
    /// UDP without a checksum. A sum of 0 is written as 0xffff (RFC 768).
    Missing,
    /// ICMP, up to `end`: an ordinary value, but the covered bytes may be all zero, whose checksum is 0xffff. The incremental
    /// update cannot detect this (RFC 1624 section 3).
    OfZeros { end: usize },
}

impl Sum {
    /// Creates a checksum over bytes that are never all zero, such as a header with a version or a protocol.
    pub const fn plain(at: usize) -> Self {
        Self {
            at,
            zero: Zero::Plain,
        }
    }

    /// Updates the checksum after words that it covers have changed.
    pub fn update(self, frame: &mut [u8], old: &[u8], new: &[u8]) {
        let sum = u16::from_be_bytes([frame[self.at], frame[self.at + 1]]);
        if sum == 0 && self.zero == Zero::Missing {
            return;
        }
        let updated = match checksum::update(sum, old, new) {
            0 if self.is_zero_all_ones(frame) => 0xffff,
            updated => updated,
        };
        frame[self.at..self.at + 2].copy_from_slice(&updated.to_be_bytes());
    }

    fn is_zero_all_ones(self, frame: &[u8]) -> bool {
        match self.zero {
            Zero::Plain => false,
            Zero::Missing => true,
            Zero::OfZeros { end } => {
                let (type_and_code, behind) =
                    (&frame[self.at - 2..self.at], &frame[self.at + 2..end]);
                type_and_code.iter().chain(behind).all(|&byte| byte == 0)
            }
        }
    }
}

impl Layout {
    /// Returns the checksums that cover a field.
    pub(super) fn sums_over(&self, field: OxmField) -> [Option<Sum>; 2] {
        match field {
            OxmField::IpDscp | OxmField::IpEcn | OxmField::IpProto => [self.ipv4_sum(), None],
            OxmField::Ipv4Src | OxmField::Ipv4Dst | OxmField::Ipv6Src => {
                [self.ipv4_sum(), self.pseudo_header_sum()]
            }
            OxmField::Ipv6Dst if self.has_stops() => [None, None],
            OxmField::Ipv6Dst => [None, self.pseudo_header_sum()],
            OxmField::TcpSrc
            | OxmField::TcpDst
            | OxmField::UdpSrc
            | OxmField::UdpDst
            | OxmField::Icmpv4Type
            | OxmField::Icmpv4Code
            | OxmField::Icmpv6Type
            | OxmField::Icmpv6Code
            | OxmField::Ipv6NdTarget
            | OxmField::Ipv6NdSll
            | OxmField::Ipv6NdTll => [self.transport_sum(), None],
            _ => [None, None],
        }
    }

    /// Returns the checksum that covers the pseudo header, with addresses and protocol, in addition to its own bytes.
    pub(super) fn pseudo_header_sum(&self) -> Option<Sum> {
        match self.upper()?.transport? {
            Transport::Icmpv4 => None,
            _ => self.transport_sum(),
        }
    }

    fn ipv4_sum(&self) -> Option<Sum> {
        let ip = self.ip()?;
        (ip.version == IpVersion::V4).then(|| Sum::plain(ip.at + 10))
    }

    fn transport_sum(&self) -> Option<Sum> {
        let upper = self.upper()?;
        let (offset, zero) = match upper.transport? {
            Transport::Tcp => (16, Zero::Plain),
            Transport::Udp => (6, Zero::Missing),
            Transport::Icmpv4 => (2, Zero::OfZeros { end: upper.end }),
            Transport::Icmpv6(_) => (2, Zero::Plain),
            // SCTP has a CRC, which does not cover addresses.
            Transport::Sctp => return None,
        };
        Some(Sum {
            at: upper.at + offset,
            zero,
        })
    }

    /// Returns `true` if checksums cover another destination than the one in the IPv6 header (RFC 8200 section 8.1).
    fn has_stops(&self) -> bool {
        let version = self.ip().map(|ip| ip.version);
        matches!(
            version,
            Some(IpVersion::V6 {
                has_stops: true,
                ..
            })
        )
    }
}

impl Packet {
    /// Sets the bits at `place`, and updates the checksums over them.
    pub(super) fn rewrite(&mut self, place: BitRange, value: u128, sums: [Option<Sum>; 2]) {
        let frame = self.settled_frame_mut();
        let words = place.words();
        let (old, len) = copied(frame, words.clone());
        place.write(frame, value);
        let (new, _) = copied(frame, words);
        for sum in sums.into_iter().flatten() {
            sum.update(frame, &old[..len], &new[..len]);
        }
    }

    /// Sets an SCTP port, and updates the CRC if the packet is complete.
    pub(super) fn rewrite_sctp(&mut self, place: BitRange, value: u128) {
        let Some(upper) = self.layout().upper().copied() else {
            return;
        };
        let before = sctp_crc(self.frame(), &upper);
        self.rewrite(place, value, [None, None]);
        let after = sctp_crc(self.frame(), &upper);
        if let (Some(before), Some(after)) = (before, after) {
            let at = upper.at + SCTP_CHECKSUM.start;
            let difference = (before ^ after).to_le_bytes();
            for (byte, flipped) in self.settled_frame_mut()[at..].iter_mut().zip(difference) {
                *byte ^= flipped;
            }
        }
    }
}

const SCTP_CHECKSUM: Range<usize> = 8..12;

/// Returns the correct CRC of an SCTP packet, if it is complete.
fn sctp_crc(frame: &[u8], upper: &Upper) -> Option<u32> {
    if upper.part != Part::Whole {
        return None;
    }
    let packet = &frame[upper.at..upper.end];
    let (before, behind) = (&packet[..SCTP_CHECKSUM.start], &packet[sctp::HEADER_LEN..]);
    Some(checksum::crc32c(&[before, &[0; 4], behind]))
}

/// Copies at most 16 bytes of a frame; returns them and their number.
fn copied(frame: &[u8], range: Range<usize>) -> ([u8; 16], usize) {
    let mut bytes = [0; 16];
    let len = range.len();
    bytes[..len].copy_from_slice(&frame[range]);
    (bytes, len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::testing::*;
    use OxmField::{Icmpv4Type, Ipv4Src, Ipv6Dst, Ipv6Src, SctpDst, TcpSrc, UdpSrc};

    #[test]
    fn addresses_are_in_two_checksums() {
        let after = TCP_OVER_IPV4
            .replace("6614 0a000001", "6410 0b000105")
            .replace("97e0", "95dc");
        assert_applied(TCP_OVER_IPV4, set(Ipv4Src, 0x0b00_0105), &after);
    }

    #[test]
    fn icmp_does_not_cover_addresses() {
        let after = ICMPV4_ECHO.replace("6625 0a000001", "6421 0b000105");
        assert_applied(ICMPV4_ECHO, set(Ipv4Src, 0x0b00_0105), &after);
    }

    #[test]
    fn invalid_checksums_keep_their_error() {
        let before = TCP_OVER_IPV4.replace("97e0", "97e1");
        let after = before.replace("c000", "c001").replace("97e1", "97e0");
        assert_applied(&before, set(TcpSrc, 0xc001), &after);
    }

    #[test]
    fn udp_without_a_checksum_stays_without() {
        let before = UDP_OVER_IPV4.replace("01a4", "0000");
        let after = before.replace("c000", "c001");
        assert_applied(&before, set(UdpSrc, 0xc001), &after);
    }

    #[test]
    fn a_sum_of_zero_is_written_as_ones_in_udp() {
        let after = UDP_OVER_IPV4
            .replace("c000", "c1a4")
            .replace("01a4", "ffff");
        assert_applied(UDP_OVER_IPV4, set(UdpSrc, 0xc1a4), &after);
    }

    #[test]
    fn addresses_of_later_fragments_are_in_one_checksum() {
        let later = |rest: &str| UDP_OVER_IPV4.replace("0000 0000 40 11 6615 0a000001", rest);
        let before = later("0000 0001 40 11 6614 0a000001");
        let after = later("0000 0001 40 11 6410 0b000105");
        assert_applied(&before, set(Ipv4Src, 0x0b00_0105), &after);
    }

    #[test]
    fn addresses_of_first_fragments_are_in_two_checksums() {
        let first = |rest: &str| UDP_OVER_IPV4.replace("0000 0000 40 11 6615 0a000001", rest);
        let before = first("0000 2000 40 11 4615 0a000001");
        let after = first("0000 2000 40 11 4411 0b000105").replace("01a4", "ff9f");
        assert_applied(&before, set(Ipv4Src, 0x0b00_0105), &after);
    }

    /// Creates a UDP packet after a routing header with `segments_left`.
    fn routed(segments_left: u8, dst: &str, checksum: &str) -> String {
        format!(
            "020000000002 020000000001 86dd
             60000000 0010 2b 40 fe800000000000000000000000000001 {dst}
             11 00 04 {segments_left:02x} 00000000
             c000 0035 0008 {checksum}"
        )
    }

    #[test]
    fn destinations_before_the_last_stop_are_in_no_checksum() {
        let (dst, new) = ("fe80 0000 0000 0000 0000 0000 0000 0002", 0xfe80 << 112 | 3);
        let after = "fe80 0000 0000 0000 0000 0000 0000 0003";
        let before = routed(1, dst, "42a3");
        assert_applied(&before, set(Ipv6Dst, new), &routed(1, after, "42a3"));
        let at_the_end = routed(0, dst, "42a3");
        assert_applied(&at_the_end, set(Ipv6Dst, new), &routed(0, after, "42a2"));
    }

    #[test]
    fn sources_are_in_the_checksum_with_any_stops() {
        let dst = "fe80 0000 0000 0000 0000 0000 0000 0002";
        let after = routed(1, dst, "42a2").replacen("0001", "0002", 2);
        let after = after.replacen("020000000002 020000000002", "020000000002 020000000001", 1);
        assert_applied(
            &routed(1, dst, "42a3"),
            set(Ipv6Src, 0xfe80 << 112 | 2),
            &after,
        );
    }

    #[test]
    fn sctp_keeps_its_crc() {
        let mut right = packet(SCTP_OVER_IPV4);
        assert!(right.apply(&set(SctpDst, 1)));
        let view = sctp::SctpView::new(&right.frame()[34..]).expect("an SCTP packet");
        assert!(view.is_checksum_valid());

        let mut wrong = packet(&SCTP_OVER_IPV4.replace("4154cbb6", "4154cbb7"));
        assert!(wrong.apply(&set(SctpDst, 1)));
        let differing = right
            .frame()
            .iter()
            .zip(wrong.frame())
            .filter(|(a, b)| a != b);
        assert_eq!(
            differing.collect::<Vec<_>>(),
            [(&right.frame()[45], &wrong.frame()[45])]
        );
    }

    #[test]
    fn a_part_of_an_sctp_packet_keeps_the_crc_of_the_whole() {
        let first = |text: &str| text.replace("0000 0000 40", "0000 2000 40");
        let after = SCTP_OVER_IPV4.replace("8e3c", "0001");
        assert_applied(&first(SCTP_OVER_IPV4), set(SctpDst, 1), &first(&after));
    }

    #[test]
    fn zeros_have_the_checksum_of_zeros() {
        let icmp = |start: &str| {
            format!(
                "020000000002 020000000001 0800
                 4500 001c 0000 0000 40 01 66df 0a000001 0a000002
                 {start} 0000 0000"
            )
        };
        assert_applied(&icmp("08 00 f7ff"), set(Icmpv4Type, 0), &icmp("00 00 ffff"));
    }
}
