//! Parsing all headers of a frame in one pass.

use std::net::{IpAddr, Ipv6Addr};

use super::{
    Arp, ArpView, EthernetView, Icmpv4View, Icmpv6View, Ipv4View, Ipv6View, Mpls, MplsView,
    PbbView, SctpView, TcpView, UdpView, VlanTags, VlanView, ether_type, ethernet, ip_proto,
};
use crate::MacAddr;

/// The headers of an Ethernet frame, up to the first that cannot be read.
///
/// Parsing is lenient, like a switch's flow key: truncated, malformed or absent fields are `None`, and so is everything after
/// them. It stops at an MPLS or PBB header, as OpenFlow matches do. Checksums are not checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers<'a> {
    /// The sender's MAC address.
    pub eth_src: Option<MacAddr>,
    /// The receiver's MAC address.
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
    /// The source address in IPv4 or IPv6.
    pub ip_src: Option<IpAddr>,
    /// The destination address in IPv4 or IPv6.
    pub ip_dst: Option<IpAddr>,
    /// The protocol over IPv4, or over IPv6 after its extension headers.
    pub ip_proto: Option<u8>,
    /// The differentiated services code point.
    pub ip_dscp: Option<u8>,
    /// The congestion notification bits.
    pub ip_ecn: Option<u8>,
    /// The flow label of IPv6.
    pub ipv6_flabel: Option<u32>,
    /// The source port in TCP, UDP or SCTP.
    pub src_port: Option<u16>,
    /// The destination port in TCP, UDP or SCTP.
    pub dst_port: Option<u16>,
    /// The type of an ICMPv4 or ICMPv6 message.
    pub icmp_type: Option<u8>,
    /// The code of that message, which refines the type.
    pub icmp_code: Option<u8>,
    /// The target of a neighbour solicitation or advertisement.
    pub nd_target: Option<Ipv6Addr>,
    /// The sender's MAC address in a neighbour message.
    pub nd_sll: Option<MacAddr>,
    /// The target's MAC address in a neighbour message.
    pub nd_tll: Option<MacAddr>,
    /// The bytes after the last parsed header.
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
    /// Returns the VLAN of the frame, from its outermost tag of 802.1Q or 802.1ad. `None` without a tag, or with a priority tag,
    /// whose id is 0 (IEEE 802.1Q section 9.6): such a frame counts as untagged.
    #[inline]
    pub fn vlan_id(&self) -> Option<u16> {
        self.vlan.map(|tag| tag.vid).filter(|&vid| vid != 0)
    }

    /// Parses the headers of `frame`, which starts with its Ethernet header.
    #[inline]
    pub fn parse(frame: &'a [u8]) -> Self {
        let mut headers = Self {
            payload: frame,
            ..Self::default()
        };
        headers.read_ethernet();
        headers
    }

    // Each step reads its header from `payload`, and leaves the rest there.

    fn read_ethernet(&mut self) {
        let Ok(ethernet) = EthernetView::new(self.payload) else {
            return;
        };
        self.eth_src = Some(ethernet.src());
        self.eth_dst = Some(ethernet.dst());
        self.payload = ethernet.payload();
        self.read_tags(ethernet.ether_type());
    }

    fn read_tags(&mut self, type_or_length: u16) {
        let mut tags = VlanTags::new(type_or_length, self.payload);
        for (announced_by, tag) in &mut tags {
            self.keep_tag(VlanTag::new(announced_by, &tag));
        }
        self.payload = tags.rest();
        if tags.is_cut_off() {
            return;
        }
        let (eth_type, payload) = ethernet::resolve_ether_type(tags.type_or_length(), self.payload);
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
mod tests;
