//! All headers of a frame in one go.

use std::net::{IpAddr, Ipv6Addr};

use super::{
    Arp, ArpView, EthernetView, Icmpv4View, Icmpv6View, Ipv4View, Ipv6View, Mpls, MplsView,
    PbbView, SctpView, TcpView, UdpView, VlanView, ether_type, ethernet, ip_proto,
};
use crate::MacAddr;

/// What the headers of one Ethernet frame say, as far as they can be read.
///
/// Lenient as a switch's flow key is: what is truncated, malformed or absent is `None`, and so is
/// everything behind it. Reading stops at an MPLS or PBB header, as OpenFlow matches do; checksums
/// are not checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers<'a> {
    /// Where the frame comes from.
    pub eth_src: Option<MacAddr>,
    /// Where the frame goes.
    pub eth_dst: Option<MacAddr>,
    /// The EtherType after all VLAN tags; [`ether_type::NONE`] in an 802.3 frame without one.
    pub eth_type: Option<u16>,
    /// The outermost VLAN tag.
    pub vlan: Option<VlanTag>,
    /// The VLAN tag after the outermost.
    pub inner_vlan: Option<VlanTag>,
    /// The outermost MPLS label stack entry.
    pub mpls: Option<Mpls>,
    /// The service instance of a PBB frame.
    pub pbb_isid: Option<u32>,
    /// Whether a PBB frame uses the customer's addresses.
    pub pbb_uca: Option<bool>,
    /// The ARP packet.
    pub arp: Option<Arp>,
    /// The sender in IPv4 or IPv6.
    pub ip_src: Option<IpAddr>,
    /// The receiver in IPv4 or IPv6.
    pub ip_dst: Option<IpAddr>,
    /// The protocol over IPv4, or over IPv6 after its extension headers.
    pub ip_proto: Option<u8>,
    /// The differentiated services code point.
    pub ip_dscp: Option<u8>,
    /// The congestion bits.
    pub ip_ecn: Option<u8>,
    /// The flow label of IPv6.
    pub ipv6_flabel: Option<u32>,
    /// The sender's port in TCP, UDP or SCTP.
    pub src_port: Option<u16>,
    /// The receiver's port in TCP, UDP or SCTP.
    pub dst_port: Option<u16>,
    /// The type of an ICMPv4 or ICMPv6 message.
    pub icmp_type: Option<u8>,
    /// The variant of the type.
    pub icmp_code: Option<u8>,
    /// The target of a neighbour solicitation or advertisement.
    pub nd_target: Option<Ipv6Addr>,
    /// The sender's MAC address in a neighbour message.
    pub nd_sll: Option<MacAddr>,
    /// The target's MAC address in a neighbour message.
    pub nd_tll: Option<MacAddr>,
    /// What follows the last header that could be read.
    pub payload: &'a [u8],
}

/// A VLAN tag and the EtherType that announced it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// The EtherType: [`ether_type::VLAN`] or [`ether_type::SERVICE_VLAN`].
    pub tpid: u16,
    /// The priority, 0 to 7.
    pub pcp: u8,
    /// The canonical format (or drop eligible) indicator.
    pub cfi: bool,
    /// The VLAN id, 0 to 4095.
    pub vid: u16,
}

impl VlanTag {
    #[inline]
    fn new(tpid: u16, tag: &VlanView<'_>) -> Self {
        Self {
            tpid,
            pcp: tag.pcp(),
            cfi: tag.cfi(),
            vid: tag.vid(),
        }
    }
}

impl<'a> Headers<'a> {
    /// The VLAN that the frame belongs to, by its outermost tag, be it 802.1Q's or 802.1ad's. `None` without a tag, or with
    /// one that tells a priority alone, whose id is 0 (IEEE 802.1Q section 9.6): such a frame belongs where untagged ones do.
    #[inline]
    pub fn vlan_id(&self) -> Option<u16> {
        self.vlan.map(|tag| tag.vid).filter(|&vid| vid != 0)
    }

    /// Reads the headers of `frame`, which begins with its Ethernet header.
    #[inline]
    pub fn parse(frame: &'a [u8]) -> Self {
        let mut headers = Self {
            payload: frame,
            ..Self::default()
        };
        headers.read_ethernet();
        headers
    }

    // Each step takes `payload` as the bytes of its header and leaves it at what follows.

    fn read_ethernet(&mut self) {
        let Ok(ethernet) = EthernetView::new(self.payload) else {
            return;
        };
        self.eth_src = Some(ethernet.src());
        self.eth_dst = Some(ethernet.dst());
        self.payload = ethernet.payload();
        self.read_tags(ethernet.ether_type());
    }

    fn read_tags(&mut self, mut type_or_length: u16) {
        while matches!(type_or_length, ether_type::VLAN | ether_type::SERVICE_VLAN) {
            let Ok(tag) = VlanView::new(self.payload) else {
                return;
            };
            self.keep_tag(VlanTag::new(type_or_length, &tag));
            self.payload = tag.payload();
            type_or_length = tag.ether_type();
        }
        let (eth_type, payload) = ethernet::resolve_ether_type(type_or_length, self.payload);
        self.eth_type = Some(eth_type);
        self.payload = payload;
        self.read_network(eth_type);
    }

    fn keep_tag(&mut self, tag: VlanTag) {
        if self.vlan.is_none() {
            self.vlan = Some(tag);
        } else if self.inner_vlan.is_none() {
            self.inner_vlan = Some(tag);
        }
    }

    fn read_network(&mut self, eth_type: u16) {
        match eth_type {
            ether_type::IPV4 => self.read_ipv4(),
            ether_type::IPV6 => self.read_ipv6(),
            ether_type::ARP => self.read_arp(),
            ether_type::MPLS | ether_type::MPLS_MULTICAST => self.read_mpls(),
            ether_type::PBB => self.read_pbb(),
            _ => {}
        }
    }

    fn read_arp(&mut self) {
        let Ok(arp) = ArpView::new(self.payload) else {
            return;
        };
        self.arp = Some(arp.to_header());
        self.payload = arp.payload();
    }

    fn read_mpls(&mut self) {
        let Ok(entry) = MplsView::new(self.payload) else {
            return;
        };
        self.mpls = Some(entry.to_header());
        self.payload = entry.payload();
    }

    fn read_pbb(&mut self) {
        let Ok(tag) = PbbView::new(self.payload) else {
            return;
        };
        self.pbb_isid = Some(tag.isid());
        self.pbb_uca = Some(tag.uca());
        self.payload = tag.payload();
    }

    fn read_ipv4(&mut self) {
        let Ok(ip) = Ipv4View::new(self.payload) else {
            return;
        };
        self.ip_src = Some(ip.src().into());
        self.ip_dst = Some(ip.dst().into());
        self.ip_dscp = Some(ip.dscp());
        self.ip_ecn = Some(ip.ecn());
        self.ip_proto = Some(ip.proto());
        self.payload = ip.payload();
        if ip.fragment_offset() == 0 {
            self.read_transport_over_ipv4(ip.proto());
        }
    }

    fn read_ipv6(&mut self) {
        let Ok(ip) = Ipv6View::new(self.payload) else {
            return;
        };
        self.ip_src = Some(ip.src().into());
        self.ip_dst = Some(ip.dst().into());
        self.ip_dscp = Some(ip.dscp());
        self.ip_ecn = Some(ip.ecn());
        self.ipv6_flabel = Some(ip.flow_label());
        self.payload = ip.payload();
        let Ok(upper) = ip.upper_layer() else { return };
        self.ip_proto = Some(upper.proto);
        self.payload = upper.payload;
        if !upper.is_later_fragment {
            self.read_transport_over_ipv6(upper.proto);
        }
    }

    fn read_transport_over_ipv4(&mut self, proto: u8) {
        match proto {
            ip_proto::ICMPV4 => self.read_icmpv4(),
            _ => self.read_ports(proto),
        }
    }

    fn read_transport_over_ipv6(&mut self, proto: u8) {
        match proto {
            ip_proto::ICMPV6 => self.read_icmpv6(),
            _ => self.read_ports(proto),
        }
    }

    fn read_ports(&mut self, proto: u8) {
        let bytes = self.payload;
        let read = match proto {
            ip_proto::TCP => {
                TcpView::new(bytes).map(|tcp| (tcp.src_port(), tcp.dst_port(), tcp.payload()))
            }
            ip_proto::UDP => {
                UdpView::new(bytes).map(|udp| (udp.src_port(), udp.dst_port(), udp.payload()))
            }
            ip_proto::SCTP => {
                SctpView::new(bytes).map(|sctp| (sctp.src_port(), sctp.dst_port(), sctp.payload()))
            }
            _ => return,
        };
        let Ok((src_port, dst_port, payload)) = read else {
            return;
        };
        self.src_port = Some(src_port);
        self.dst_port = Some(dst_port);
        self.payload = payload;
    }

    fn read_icmpv4(&mut self) {
        let Ok(icmp) = Icmpv4View::new(self.payload) else {
            return;
        };
        self.icmp_type = Some(icmp.icmp_type());
        self.icmp_code = Some(icmp.icmp_code());
        self.payload = icmp.payload();
    }

    fn read_icmpv6(&mut self) {
        let Ok(icmp) = Icmpv6View::new(self.payload) else {
            return;
        };
        self.icmp_type = Some(icmp.icmp_type());
        self.icmp_code = Some(icmp.icmp_code());
        self.payload = icmp.payload();
        let Ok(Some(nd)) = icmp.nd() else { return };
        self.nd_target = Some(nd.target());
        self.nd_sll = nd.sll();
        self.nd_tll = nd.tll();
        self.payload = nd.payload();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::super::{
        Ethernet, Icmpv4, Icmpv6, Ipv4, Ipv6, Nd, Pbb, PseudoHeader, Sctp, Tcp, Udp, Vlan, icmpv4,
        icmpv6, ipv6_ext, testing,
    };
    use super::*;

    /// A TCP segment over IPv4, in a customer VLAN inside a service VLAN.
    const GOLDEN: [u8; 63] = [
        0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x88,
        0xa8, // Ethernet
        0x60, 0x0a, 0x81, 0x00, // service VLAN 10, PCP 3
        0x10, 0x14, 0x08, 0x00, // customer VLAN 20, CFI
        0x45, 0xb9, 0x00, 0x29, 0x00, 0x00, 0x40, 0x00, // IPv4: DSCP 46, ECN 1, 41 bytes
        0x40, 0x06, 0x26, 0x14, 0x0a, 0x00, 0x00, 0x01, 0x0a, 0x00, 0x00,
        0x02, // TCP, addresses
        0xc0, 0x00, 0x19, 0xfd, 0x00, 0x00, 0x00,
        0x01, // ports 49152 and 6653, sequence number
        0x00, 0x00, 0x00, 0x00, 0x50, 0x02, 0x72, 0x10, // SYN
        0x25, 0xd0, 0x00, 0x00, // checksum, urgent pointer
        0x2a, // payload
    ];

    const SRC: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 1]);
    const DST: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 2]);
    const SRC_V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const DST_V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const SRC_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const DST_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

    /// What every frame below has in common.
    fn ethernet(eth_type: u16) -> Headers<'static> {
        Headers {
            eth_src: Some(SRC),
            eth_dst: Some(DST),
            eth_type: Some(eth_type),
            ..Headers::default()
        }
    }

    fn over_ipv4(proto: u8) -> Headers<'static> {
        Headers {
            ip_src: Some(SRC_V4.into()),
            ip_dst: Some(DST_V4.into()),
            ip_proto: Some(proto),
            ip_dscp: Some(0),
            ip_ecn: Some(0),
            ..ethernet(ether_type::IPV4)
        }
    }

    fn over_ipv6(proto: u8) -> Headers<'static> {
        Headers {
            ip_src: Some(SRC_V6.into()),
            ip_dst: Some(DST_V6.into()),
            ip_proto: Some(proto),
            ip_dscp: Some(0),
            ip_ecn: Some(0),
            ipv6_flabel: Some(0),
            ..ethernet(ether_type::IPV6)
        }
    }

    fn frame(ether_type: u16, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Ethernet {
            dst: DST,
            src: SRC,
            ether_type,
        }
        .write(&mut out);
        out.extend_from_slice(payload);
        out
    }

    fn ipv4_frame(header: &Ipv4, payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        header.write(&mut packet, payload).unwrap();
        frame(ether_type::IPV4, &packet)
    }

    fn ipv6_frame(next_header: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        Ipv6::new(SRC_V6, DST_V6, next_header)
            .write(&mut packet, payload)
            .unwrap();
        frame(ether_type::IPV6, &packet)
    }

    #[test]
    fn reads_golden_bytes() {
        let expected = Headers {
            vlan: Some(VlanTag {
                tpid: ether_type::SERVICE_VLAN,
                pcp: 3,
                cfi: false,
                vid: 10,
            }),
            inner_vlan: Some(VlanTag {
                tpid: ether_type::VLAN,
                pcp: 0,
                cfi: true,
                vid: 20,
            }),
            ip_dscp: Some(46),
            ip_ecn: Some(1),
            src_port: Some(49_152),
            dst_port: Some(6653),
            payload: &[0x2a],
            ..over_ipv4(ip_proto::TCP)
        };
        assert_eq!(Headers::parse(&GOLDEN), expected);
    }

    #[test]
    fn what_is_cut_off_is_none() {
        let full = Headers::parse(&GOLDEN);
        assert_eq!(
            Headers::parse(&GOLDEN[..13]),
            Headers {
                payload: &GOLDEN[..13],
                ..Headers::default()
            }
        );
        let after_tag = Headers::parse(&GOLDEN[..18]);
        assert_eq!(
            (after_tag.vlan, after_tag.inner_vlan, after_tag.eth_type),
            (full.vlan, None, None)
        );
        let within_ip = Headers::parse(&GOLDEN[..41]);
        assert_eq!(
            (within_ip.eth_type, within_ip.ip_src),
            (full.eth_type, None)
        );
        let within_tcp = Headers::parse(&GOLDEN[..50]);
        assert_eq!(
            (within_tcp.ip_proto, within_tcp.src_port),
            (full.ip_proto, None)
        );
        assert_eq!(
            Headers::parse(&GOLDEN[..62]),
            Headers {
                payload: &[],
                ..full
            }
        );
    }

    #[test]
    fn reads_the_tags_of_a_frame_with_one() {
        let mut tagged = Vec::new();
        Vlan {
            pcp: 7,
            cfi: false,
            vid: 100,
            ether_type: 0x9000,
        }
        .write(&mut tagged);
        let expected = Headers {
            vlan: Some(VlanTag {
                tpid: ether_type::VLAN,
                pcp: 7,
                cfi: false,
                vid: 100,
            }),
            ..ethernet(0x9000)
        };
        assert_eq!(Headers::parse(&frame(ether_type::VLAN, &tagged)), expected);
    }

    #[test]
    fn reads_arp() {
        let arp = Arp::request(SRC, SRC_V4, DST_V4);
        let mut packet = Vec::new();
        arp.write(&mut packet);
        let expected = Headers {
            arp: Some(arp),
            ..ethernet(ether_type::ARP)
        };
        assert_eq!(Headers::parse(&frame(ether_type::ARP, &packet)), expected);
    }

    #[test]
    fn stops_after_the_outermost_label_and_the_backbone_tag() {
        let label = Mpls {
            label: 1000,
            tc: 5,
            bos: true,
            ttl: 64,
        };
        let mut packet = Vec::new();
        label.write(&mut packet);
        packet.push(0x45);
        let expected = Headers {
            mpls: Some(label),
            payload: &[0x45],
            ..ethernet(ether_type::MPLS)
        };
        assert_eq!(Headers::parse(&frame(ether_type::MPLS, &packet)), expected);

        let mut packet = Vec::new();
        Pbb {
            pcp: 0,
            dei: false,
            uca: true,
            isid: 77,
        }
        .write(&mut packet);
        packet.extend_from_slice(&GOLDEN);
        let expected = Headers {
            pbb_isid: Some(77),
            pbb_uca: Some(true),
            payload: &GOLDEN,
            ..ethernet(ether_type::PBB)
        };
        assert_eq!(Headers::parse(&frame(ether_type::PBB, &packet)), expected);
    }

    #[test]
    fn reads_802_3_frames() {
        let expected = Headers {
            payload: &[0x42, 0x42, 0x03],
            ..ethernet(ether_type::NONE)
        };
        assert_eq!(Headers::parse(&frame(3, &[0x42, 0x42, 0x03])), expected);
    }

    #[test]
    fn reads_the_ports_of_every_transport() {
        let addresses = PseudoHeader::V4 {
            src: SRC_V4,
            dst: DST_V4,
        };
        let ports = |proto| Headers {
            src_port: Some(1),
            dst_port: Some(2),
            ..over_ipv4(proto)
        };
        let mut tcp = Vec::new();
        Tcp {
            src_port: 1,
            dst_port: 2,
            ..Tcp::default()
        }
        .write(&mut tcp, &addresses, &[])
        .unwrap();
        let mut udp = Vec::new();
        Udp {
            src_port: 1,
            dst_port: 2,
        }
        .write(&mut udp, &addresses, &[])
        .unwrap();
        let mut sctp = Vec::new();
        Sctp {
            src_port: 1,
            dst_port: 2,
            verification_tag: 3,
        }
        .write(&mut sctp, &[]);
        for (proto, bytes) in [
            (ip_proto::TCP, tcp),
            (ip_proto::UDP, udp),
            (ip_proto::SCTP, sctp),
        ] {
            let frame = ipv4_frame(&Ipv4::new(SRC_V4, DST_V4, proto), &bytes);
            assert_eq!(Headers::parse(&frame), ports(proto));
        }
    }

    #[test]
    fn reads_icmp_only_over_its_own_ip() {
        let mut message = Vec::new();
        Icmpv4 {
            icmp_type: icmpv4::ECHO_REQUEST,
            icmp_code: 3,
            rest: [0; 4],
        }
        .write(&mut message, &[]);
        let frame = ipv4_frame(&Ipv4::new(SRC_V4, DST_V4, ip_proto::ICMPV4), &message);
        let expected = Headers {
            icmp_type: Some(8),
            icmp_code: Some(3),
            ..over_ipv4(ip_proto::ICMPV4)
        };
        assert_eq!(Headers::parse(&frame), expected);

        let frame = ipv6_frame(ip_proto::ICMPV4, &message);
        assert_eq!(
            Headers::parse(&frame),
            Headers {
                payload: &message,
                ..over_ipv6(ip_proto::ICMPV4)
            }
        );
    }

    #[test]
    fn reads_neighbour_messages_behind_extension_headers() {
        let addresses = PseudoHeader::V6 {
            src: SRC_V6,
            dst: DST_V6,
        };
        let (mut body, mut packet) = (Vec::new(), Vec::new());
        Nd {
            flags: 0,
            target: DST_V6,
            sll: Some(SRC),
            tll: None,
        }
        .write(&mut body);
        ipv6_ext::Options {
            next_header: ip_proto::ICMPV6,
            options: vec![1, 4, 0, 0, 0, 0],
        }
        .write(&mut packet)
        .unwrap();
        Icmpv6 {
            icmp_type: icmpv6::NEIGHBOR_SOLICITATION,
            icmp_code: 0,
        }
        .write(&mut packet, &addresses, &body);
        let expected = Headers {
            icmp_type: Some(135),
            icmp_code: Some(0),
            nd_target: Some(DST_V6),
            nd_sll: Some(SRC),
            payload: &body[20..],
            ..over_ipv6(ip_proto::ICMPV6)
        };
        assert_eq!(
            Headers::parse(&ipv6_frame(ip_proto::HOP_BY_HOP, &packet)),
            expected
        );
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let later = Ipv4 {
            fragment_offset: 1,
            ..Ipv4::new(SRC_V4, DST_V4, ip_proto::UDP)
        };
        let bytes = [0, 1, 0, 2, 0, 8, 0, 0];
        let frame = ipv4_frame(&later, &bytes);
        assert_eq!(
            Headers::parse(&frame),
            Headers {
                payload: &bytes,
                ..over_ipv4(ip_proto::UDP)
            }
        );

        let mut packet = Vec::new();
        ipv6_ext::Fragment {
            next_header: ip_proto::UDP,
            offset: 1,
            more_fragments: false,
            identification: 0,
        }
        .write(&mut packet);
        packet.extend_from_slice(&bytes);
        let frame = ipv6_frame(ip_proto::FRAGMENT, &packet);
        assert_eq!(
            Headers::parse(&frame),
            Headers {
                payload: &bytes,
                ..over_ipv6(ip_proto::UDP)
            }
        );
    }

    proptest! {
        #[test]
        fn parsing_never_panics(bytes in testing::hostile(&GOLDEN)) {
            Headers::parse(&bytes);
        }

        #[test]
        fn parsing_any_payload_never_panics(payload in testing::bytes(128), protocol in 0usize..6) {
            let ether_type = [
                ether_type::IPV4, ether_type::IPV6, ether_type::ARP,
                ether_type::MPLS, ether_type::PBB, ether_type::VLAN,
            ][protocol];
            let headers = frame(ether_type, &payload);
            prop_assert_eq!(Headers::parse(&headers).eth_src, Some(SRC));
        }
    }
}
