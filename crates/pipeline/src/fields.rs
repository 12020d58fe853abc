//! The value of each match field in a packet (1.3.5 section 7.2.3.7).
//!
//! A field is a number of bits at a known [`BitRange`], so one function locates it for both reading and setting.
//! [`Packet::field`] handles the few fields that are not just bits of the frame.

use crate::Packet;
use crate::layout::{Ip, IpVersion, Layout, Network, Transport, Upper};
use std::ops::Range;
use urtica_wire::packet::ip_proto;
use urtica_wire::{OxmField, VLAN_PRESENT};

impl Packet {
    /// Returns the field's value, right-aligned; `None` if the packet does not have it, so that no entry with the field
    /// matches (1.3.5 section 5.3). `vlan_vid` of an untagged packet is 0 (OFPVID_NONE), not missing.
    pub fn field(&self, field: OxmField) -> Option<u128> {
        match field {
            OxmField::InPort => Some(self.in_port.0.into()),
            OxmField::InPhyPort => Some(self.in_phy_port.0.into()),
            OxmField::Metadata => Some(self.metadata.into()),
            OxmField::TunnelId => Some(self.tunnel_id.into()),
            OxmField::EthType => self.layout().eth_type.map(u128::from),
            OxmField::VlanVid => self.vlan_vid(),
            OxmField::Ipv6Exthdr => self.ipv6_exthdr(),
            _ => self.field_at_its_place(field),
        }
    }

    /// Returns `true` if the packet has the field, with this value in the bits of `mask`.
    pub fn matches(&self, field: OxmField, value: u128, mask: u128) -> bool {
        self.field(field).is_some_and(|own| own & mask == value)
    }

    fn field_at_its_place(&self, field: OxmField) -> Option<u128> {
        if self.has_zero_ports && self.layout().has_transport_field(field) {
            return Some(0);
        }
        match self.layout().place(field) {
            Some(place) => Some(place.read(self.frame())),
            None => (self.shows_hidden && self.layout().hides(field)).then_some(0),
        }
    }

    fn vlan_vid(&self) -> Option<u128> {
        let layout = self.layout();
        if layout.vlan.is_none() {
            return layout.has_ethernet.then_some(0);
        }
        let vid = self.field_at_its_place(OxmField::VlanVid)?;
        Some(vid | u128::from(VLAN_PRESENT))
    }

    fn ipv6_exthdr(&self) -> Option<u128> {
        match self.layout().ip()?.version {
            IpVersion::V4 => None,
            IpVersion::V6 { exthdr, .. } => Some(exthdr.into()),
        }
    }
}

/// A range of bits in a frame: `len` bytes at an offset are read as one big-endian number that contains the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BitRange {
    at: usize,
    len: usize,
    shift: u32,
    bits: u32,
}

impl BitRange {
    /// Creates the place of all bits in `len` bytes, at most 16.
    pub fn bytes(at: usize, len: usize) -> Self {
        Self::bits(at, len, 0, 8 * len as u32)
    }

    /// Creates the place of `bits` bits in `len` bytes, with `shift` lower bits after them.
    fn bits(at: usize, len: usize, shift: u32, bits: u32) -> Self {
        Self {
            at,
            len,
            shift,
            bits,
        }
    }

    /// Returns the value of the bits, right-aligned.
    pub fn read(&self, frame: &[u8]) -> u128 {
        (self.load(frame) >> self.shift) & self.mask()
    }

    /// Replaces the bits, and keeps the others.
    pub fn write(&self, frame: &mut [u8], value: u128) {
        let others = self.load(frame) & !(self.mask() << self.shift);
        let number = others | (value & self.mask()) << self.shift;
        let bytes = number.to_be_bytes();
        frame[self.at..self.at + self.len].copy_from_slice(&bytes[16 - self.len..]);
    }

    /// Returns the 16-bit words that contain the bits. Headers start at even offsets, so these are also the words that
    /// checksums add up.
    pub fn words(&self) -> Range<usize> {
        self.at & !1..(self.at + self.len).next_multiple_of(2)
    }

    fn load(&self, frame: &[u8]) -> u128 {
        let mut bytes = [0; 16];
        bytes[16 - self.len..].copy_from_slice(&frame[self.at..self.at + self.len]);
        u128::from_be_bytes(bytes)
    }

    fn mask(&self) -> u128 {
        u128::MAX >> (128 - self.bits)
    }
}

impl Layout {
    /// Returns the position of a field's bits; `None` if the frame does not have them.
    pub fn place(&self, field: OxmField) -> Option<BitRange> {
        match field {
            OxmField::EthDst => self.has_ethernet.then(|| BitRange::bytes(0, 6)),
            OxmField::EthSrc => self.has_ethernet.then(|| BitRange::bytes(6, 6)),
            OxmField::EthType => self.ether_type_at.map(|at| BitRange::bytes(at, 2)),
            OxmField::VlanVid => self.vlan.map(|at| BitRange::bits(at, 2, 0, 12)),
            OxmField::VlanPcp => self.vlan.map(|at| BitRange::bits(at, 2, 13, 3)),
            _ => self.network_place(field),
        }
    }

    /// Returns `true` if packets of this kind have the field, but this one is cut off, or a fragment without it.
    fn hides(&self, field: OxmField) -> bool {
        let Some(ip) = self.ip() else { return false };
        let Some(upper) = &ip.upper else {
            return field == OxmField::IpProto;
        };
        upper.transport.is_none() && self.has_transport_field(field)
    }

    /// Returns `true` if the transport protocol has a field, even if this frame does not contain it.
    fn has_transport_field(&self, field: OxmField) -> bool {
        let upper = self
            .ip()
            .and_then(|ip| Some((ip.upper.as_ref()?, ip.version)));
        upper.is_some_and(|(upper, version)| upper.transport_fields(version).contains(&field))
    }

    fn network_place(&self, field: OxmField) -> Option<BitRange> {
        match &self.network {
            Network::Other => None,
            Network::Arp(at) => arp_place(*at, field),
            Network::Mpls(at) => mpls_place(*at, field),
            Network::Pbb(at) => (field == OxmField::PbbIsid).then(|| BitRange::bytes(at + 1, 3)),
            Network::Ip(ip) => ip
                .place(field)
                .or_else(|| ip.upper.as_ref()?.transport_place(field)),
        }
    }
}

fn arp_place(at: usize, field: OxmField) -> Option<BitRange> {
    Some(match field {
        OxmField::ArpOp => BitRange::bytes(at + 6, 2),
        OxmField::ArpSha => BitRange::bytes(at + 8, 6),
        OxmField::ArpSpa => BitRange::bytes(at + 14, 4),
        OxmField::ArpTha => BitRange::bytes(at + 18, 6),
        OxmField::ArpTpa => BitRange::bytes(at + 24, 4),
        _ => return None,
    })
}

fn mpls_place(at: usize, field: OxmField) -> Option<BitRange> {
    Some(match field {
        OxmField::MplsLabel => BitRange::bits(at, 4, 12, 20),
        OxmField::MplsTc => BitRange::bits(at, 4, 9, 3),
        OxmField::MplsBos => BitRange::bits(at, 4, 8, 1),
        _ => return None,
    })
}

impl Ip {
    fn place(&self, field: OxmField) -> Option<BitRange> {
        let at = self.at;
        let is_v4 = self.version == IpVersion::V4;
        Some(match field {
            OxmField::IpProto => BitRange::bytes(self.upper.as_ref()?.proto_at, 1),
            OxmField::IpDscp if is_v4 => BitRange::bits(at + 1, 1, 2, 6),
            OxmField::IpEcn if is_v4 => BitRange::bits(at + 1, 1, 0, 2),
            OxmField::Ipv4Src if is_v4 => BitRange::bytes(at + 12, 4),
            OxmField::Ipv4Dst if is_v4 => BitRange::bytes(at + 16, 4),
            OxmField::IpDscp => BitRange::bits(at, 2, 6, 6),
            OxmField::IpEcn => BitRange::bits(at, 2, 4, 2),
            OxmField::Ipv6Flabel if !is_v4 => BitRange::bits(at, 4, 0, 20),
            OxmField::Ipv6Src if !is_v4 => BitRange::bytes(at + 8, 16),
            OxmField::Ipv6Dst if !is_v4 => BitRange::bytes(at + 24, 16),
            _ => return None,
        })
    }
}

impl Upper {
    /// Returns the fields of this protocol's transport header.
    fn transport_fields(&self, version: IpVersion) -> &'static [OxmField] {
        match (self.proto, version) {
            (ip_proto::TCP, _) => &[OxmField::TcpSrc, OxmField::TcpDst],
            (ip_proto::UDP, _) => &[OxmField::UdpSrc, OxmField::UdpDst],
            (ip_proto::SCTP, _) => &[OxmField::SctpSrc, OxmField::SctpDst],
            (ip_proto::ICMPV4, IpVersion::V4) => &[OxmField::Icmpv4Type, OxmField::Icmpv4Code],
            (ip_proto::ICMPV6, IpVersion::V6 { .. }) => {
                &[OxmField::Icmpv6Type, OxmField::Icmpv6Code]
            }
            _ => &[],
        }
    }

    fn transport_place(&self, field: OxmField) -> Option<BitRange> {
        let at = self.at;
        match (self.transport?, field) {
            (Transport::Tcp, OxmField::TcpSrc)
            | (Transport::Udp, OxmField::UdpSrc)
            | (Transport::Sctp, OxmField::SctpSrc) => Some(BitRange::bytes(at, 2)),
            (Transport::Tcp, OxmField::TcpDst)
            | (Transport::Udp, OxmField::UdpDst)
            | (Transport::Sctp, OxmField::SctpDst) => Some(BitRange::bytes(at + 2, 2)),
            (Transport::Icmpv4, OxmField::Icmpv4Type)
            | (Transport::Icmpv6(_), OxmField::Icmpv6Type) => Some(BitRange::bytes(at, 1)),
            (Transport::Icmpv4, OxmField::Icmpv4Code)
            | (Transport::Icmpv6(_), OxmField::Icmpv6Code) => Some(BitRange::bytes(at + 1, 1)),
            (Transport::Icmpv6(message), OxmField::Ipv6NdTarget) => {
                Some(BitRange::bytes(message?.target, 16))
            }
            (Transport::Icmpv6(message), OxmField::Ipv6NdSll) => {
                Some(BitRange::bytes(message?.sll?, 6))
            }
            (Transport::Icmpv6(message), OxmField::Ipv6NdTll) => {
                Some(BitRange::bytes(message?.tll?, 6))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::testing::*;
    use OxmField::*;

    /// Asserts that the packet has these fields with these values, and no others except the four that every packet has.
    #[track_caller]
    fn assert_fields(text: &str, expected: &[(OxmField, u128)]) {
        let packet = packet(text);
        let pipeline_fields = [InPort, InPhyPort, Metadata, TunnelId];
        let found: Vec<_> = OxmField::ALL
            .iter()
            .filter(|field| !pipeline_fields.contains(field))
            .filter_map(|&field| Some((field, packet.field(field)?)))
            .collect();
        assert_eq!(found, expected);
    }

    /// Returns the fields of the Ethernet header of all packets here, untagged unless `vlan_vid` differs.
    fn ethernet(eth_type: u128, vlan_vid: u128) -> Vec<(OxmField, u128)> {
        vec![
            (EthDst, 0x0200_0000_0002),
            (EthSrc, 0x0200_0000_0001),
            (EthType, eth_type),
            (VlanVid, vlan_vid),
        ]
    }

    fn over_ipv4(proto: u128, more: &[(OxmField, u128)]) -> Vec<(OxmField, u128)> {
        let ip = [
            (IpDscp, 46),
            (IpEcn, 1),
            (IpProto, proto),
            (Ipv4Src, 0x0a00_0001),
            (Ipv4Dst, 0x0a00_0002),
        ];
        [&ethernet(0x0800, 0), &ip[..], more].concat()
    }

    const IPV6_SRC: u128 = 0xfe80 << 112 | 1;
    const IPV6_DST: u128 = 0xfe80 << 112 | 2;

    fn over_ipv6(
        proto: u128,
        ports: &[(OxmField, u128)],
        icmp: &[(OxmField, u128)],
    ) -> Vec<(OxmField, u128)> {
        let ip = [(IpDscp, 46), (IpEcn, 1), (IpProto, proto)];
        let v6 = [
            (Ipv6Src, IPV6_SRC),
            (Ipv6Dst, IPV6_DST),
            (Ipv6Flabel, 0xabcde),
        ];
        let exthdr = [(Ipv6Exthdr, 0)];
        [&ethernet(0x86dd, 0), &ip[..], ports, &v6, icmp, &exthdr].concat()
    }

    #[test]
    fn fields_of_the_pipeline() {
        let mut packet = packet("");
        packet.in_port.0 = 0xffff_fffe;
        packet.in_phy_port.0 = 2;
        packet.metadata = u64::MAX;
        packet.tunnel_id = 4;
        assert_eq!(packet.field(InPort), Some(0xffff_fffe));
        assert_eq!(packet.field(InPhyPort), Some(2));
        assert_eq!(packet.field(Metadata), Some(u64::MAX.into()));
        assert_eq!(packet.field(TunnelId), Some(4));
    }

    #[test]
    fn arp() {
        let arp = [
            (ArpOp, 2),
            (ArpSpa, 0x0a00_0001),
            (ArpTpa, 0x0a00_0002),
            (ArpSha, 0x0200_0000_0001),
            (ArpTha, 0x0200_0000_0002),
        ];
        assert_fields(ARP_REPLY, &[&ethernet(0x0806, 0), &arp[..]].concat());
    }

    #[test]
    fn transports_over_ipv4() {
        let tcp = [(TcpSrc, 0xc000), (TcpDst, 6653)];
        assert_fields(TCP_OVER_IPV4, &over_ipv4(6, &tcp));
        let udp = [(UdpSrc, 0xc000), (UdpDst, 53)];
        assert_fields(UDP_OVER_IPV4, &over_ipv4(17, &udp));
        let sctp = [(SctpSrc, 0xc000), (SctpDst, 36412)];
        assert_fields(SCTP_OVER_IPV4, &over_ipv4(132, &sctp));
        let icmp = [(Icmpv4Type, 8), (Icmpv4Code, 0)];
        assert_fields(ICMPV4_ECHO, &over_ipv4(1, &icmp));
    }

    #[test]
    fn transports_over_ipv6() {
        let tcp = [(TcpSrc, 0xc000), (TcpDst, 6653)];
        assert_fields(TCP_OVER_IPV6, &over_ipv6(6, &tcp, &[]));
        let udp = [(UdpSrc, 0xc000), (UdpDst, 53)];
        assert_fields(UDP_OVER_IPV6, &over_ipv6(17, &udp, &[]));
    }

    #[test]
    fn neighbour_messages() {
        let of_type = |icmp_type| {
            [
                (Icmpv6Type, icmp_type),
                (Icmpv6Code, 0),
                (Ipv6NdTarget, IPV6_DST),
            ]
        };
        let sll = [&of_type(135)[..], &[(Ipv6NdSll, 0x0200_0000_0001)]].concat();
        assert_fields(NEIGHBOR_SOLICITATION, &over_ipv6(58, &[], &sll));
        let tll = [&of_type(136)[..], &[(Ipv6NdTll, 0x0200_0000_0002)]].concat();
        assert_fields(NEIGHBOR_ADVERTISEMENT, &over_ipv6(58, &[], &tll));
    }

    #[test]
    fn a_solicitation_has_no_target_link_layer_address() {
        let misplaced = NEIGHBOR_SOLICITATION.replace("01 01 0200", "02 01 0200");
        assert_eq!(packet(&misplaced).field(Ipv6NdSll), None);
        assert_eq!(packet(&misplaced).field(Ipv6NdTll), None);
        assert_eq!(packet(&misplaced).field(Ipv6NdTarget), Some(IPV6_DST));
    }

    #[test]
    fn the_outermost_tag_and_the_payload_of_all_tags() {
        let packet = packet(UDP_IN_TWO_VLANS);
        assert_eq!(packet.field(VlanVid), Some(0x100a));
        assert_eq!(packet.field(VlanPcp), Some(5));
        assert_eq!(packet.field(EthType), Some(0x0800));
        assert_eq!(packet.field(UdpDst), Some(53));
    }

    #[test]
    fn headers_after_mpls_and_pbb_are_missing() {
        let mpls = [(MplsLabel, 0xabcde), (MplsTc, 5), (MplsBos, 0)];
        assert_fields(
            UDP_UNDER_TWO_LABELS,
            &[&ethernet(0x8847, 0), &mpls[..]].concat(),
        );
        let pbb = [(PbbIsid, 0x00ab_cdef)];
        assert_fields(UDP_IN_PBB, &[&ethernet(0x88e7, 0), &pbb[..]].concat());
    }

    #[test]
    fn frames_of_802_3() {
        assert_fields(
            "020000000002 020000000001 0003 424203",
            &ethernet(0x05ff, 0),
        );
        let snap = "020000000002 020000000001 0024 aaaa03 000000 0806";
        let arp = &hex(ARP_REPLY)[14..];
        let mut frame = hex(snap);
        frame.extend_from_slice(arp);
        let packet = Packet::new(urtica_wire::PortNo(1), &frame);
        assert_eq!(packet.field(EthType), Some(0x0806));
        assert_eq!(packet.field(ArpSpa), Some(0x0a00_0001));
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let first = packet(&UDP_OVER_IPV4.replace("0000 0000 40", "0000 2000 40"));
        assert_eq!(first.field(UdpDst), Some(53));
        let later = packet(&UDP_OVER_IPV4.replace("0000 0000 40", "0000 0001 40"));
        assert_eq!(later.field(UdpDst), None);
        assert_eq!(later.field(IpProto), Some(17));
    }

    #[test]
    fn hidden_fields_of_a_fragment_are_0_if_configured() {
        let fields = |text: &str, fields: &[OxmField]| -> Vec<_> {
            let packet = packet(text).with_hidden_fields();
            fields.iter().map(|field| packet.field(*field)).collect()
        };
        let first = UDP_OVER_IPV4.replace("0000 0000 40", "0000 2000 40");
        let seen = [IpProto, UdpDst, TcpDst];
        assert_eq!(fields(&first, &seen), [Some(17), Some(53), None]);
        let later = UDP_OVER_IPV4.replace("0000 0000 40", "0000 0001 40");
        assert_eq!(fields(&later, &seen), [Some(17), Some(0), None]);
        // A fragment header, and destination options that continue in the next fragment.
        let cut = "020000000002 020000000001 86dd 60000000 0010 2c 40
             fd000000000000000000000000000001 fd000000000000000000000000000002
             3c000001 00000001 06ff000000000000";
        let seen = [IpProto, TcpDst, Ipv6Src];
        let source = 0xfd00_0000_0000_0000_0000_0000_0000_0001;
        assert_eq!(fields(cut, &seen), [Some(0), None, Some(source)]);
        assert_eq!(packet(cut).field(IpProto), None);
    }

    #[test]
    fn all_fragments_of_1_0_have_ports_0() {
        for place in ["2000", "2001", "0001"] {
            let text = UDP_OVER_IPV4.replace("0000 0000 40", &format!("0000 {place} 40"));
            let packet = packet(&text).as_fragment_of10();
            let seen = [UdpSrc, UdpDst, TcpDst, IpProto].map(|field| packet.field(field));
            assert_eq!(seen, [Some(0), Some(0), None, Some(17)], "{place}");
        }
    }

    #[test]
    fn truncated_headers_are_missing() {
        let whole = hex(UDP_IN_TWO_VLANS);
        let at =
            |len: usize, field| Packet::new(urtica_wire::PortNo(1), &whole[..len]).field(field);
        assert_eq!((at(13, EthDst), at(13, VlanVid)), (None, None));
        assert_eq!(
            (at(17, EthSrc), at(17, VlanVid)),
            (Some(0x0200_0000_0001), Some(0))
        );
        assert_eq!((at(18, VlanVid), at(18, EthType)), (Some(0x100a), None));
        assert_eq!((at(41, EthType), at(41, Ipv4Src)), (Some(0x0800), None));
        assert_eq!((at(49, IpProto), at(49, UdpSrc)), (Some(17), None));
        assert_eq!(at(50, UdpSrc), Some(0xc000));
    }

    #[test]
    fn matching_compares_the_bits_of_the_mask() {
        let packet = packet(TCP_OVER_IPV4);
        assert!(packet.matches(Ipv4Src, 0x0a00_0000, 0xff00_0000));
        assert!(!packet.matches(Ipv4Src, 0x0b00_0000, 0xff00_0000));
        assert!(
            !packet.matches(UdpSrc, 0, 0),
            "a field that is not there does not match"
        );
    }

    #[test]
    fn a_place_keeps_the_bits_around_it() {
        let mut bytes = [0xff; 5];
        let place = BitRange::bits(1, 3, 4, 12);
        place.write(&mut bytes, 0xf_0a5);
        assert_eq!(bytes, [0xff, 0xff, 0x0a, 0x5f, 0xff]);
        assert_eq!(place.read(&bytes), 0x0a5);
        assert_eq!(place.words(), 0..4);
    }
}
