//! The frames that check whether a host is present.

use super::frame::{ND_HOP_LIMIT, solicited_node};
use super::table::HostProbe;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use urtica_wire::MacAddr;
use urtica_wire::packet::{
    Arp, Ethernet, Icmpv6, Ipv6, Nd, Vlan, ether_type, ethernet, icmpv6, ip_proto,
};

/// Returns a unicast request to one host for an address that it should have. In IPv4 this is an ARP probe (RFC 5227 section
/// 2.1.1), since we have no address ourselves; in IPv6 we use the link-local address of our MAC address.
pub(super) fn frame(probe: &HostProbe, our_mac: MacAddr) -> Vec<u8> {
    let mut out = Vec::with_capacity(96);
    let ether_type = match probe.address {
        IpAddr::V4(_) => ether_type::ARP,
        IpAddr::V6(_) => ether_type::IPV6,
    };
    let tag = probe.vlan.map(|vid| Vlan {
        pcp: 0,
        cfi: false,
        vid,
        ether_type,
    });
    write_ethernet(&mut out, probe.mac, our_mac, tag, ether_type);
    match probe.address {
        IpAddr::V4(address) => {
            Arp::request(our_mac, Ipv4Addr::UNSPECIFIED, address).write(&mut out)
        }
        IpAddr::V6(address) => write_solicitation(&mut out, our_mac, address),
    }
    ethernet::pad_frame(&mut out, 0);
    out
}

/// Writes the Ethernet header, with `tag` before `ether_type` if any.
pub(crate) fn write_ethernet(
    out: &mut Vec<u8>,
    dst: MacAddr,
    src: MacAddr,
    tag: Option<Vlan>,
    ether_type: u16,
) {
    Ethernet {
        dst,
        src,
        ether_type: tag.map_or(ether_type, |_| ether_type::VLAN),
    }
    .write(out);
    if let Some(tag) = tag {
        Vlan { ether_type, ..tag }.write(out);
    }
}

fn write_solicitation(out: &mut Vec<u8>, our_mac: MacAddr, target: Ipv6Addr) {
    let solicitation = Nd {
        flags: 0,
        target,
        sll: Some(our_mac),
        tll: None,
    };
    let (src, dst) = (link_local(our_mac), solicited_node(target));
    write_neighbour_discovery(out, src, dst, icmpv6::NEIGHBOR_SOLICITATION, &solicitation);
}

/// Writes the IPv6 packet of a neighbour solicitation or advertisement.
pub(crate) fn write_neighbour_discovery(
    out: &mut Vec<u8>,
    src: Ipv6Addr,
    dst: Ipv6Addr,
    icmp_type: u8,
    nd: &Nd,
) {
    let ip = Ipv6 {
        hop_limit: ND_HOP_LIMIT,
        ..Ipv6::new(src, dst, ip_proto::ICMPV6)
    };
    let (mut body, mut message) = (Vec::new(), Vec::new());
    nd.write(&mut body);
    let icmp = Icmpv6 {
        icmp_type,
        icmp_code: 0,
    };
    icmp.write(&mut message, &ip.pseudo_header(), &body);
    ip.write(out, &message)
        .expect("a neighbour message is shorter than an IPv6 packet may be");
}

/// Returns the link-local address of a MAC address (RFC 4291 appendix A).
fn link_local(mac: MacAddr) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.octets();
    Ipv6Addr::from([
        0xfe,
        0x80,
        0,
        0,
        0,
        0,
        0,
        0,
        a ^ 2,
        b,
        c,
        0xff,
        0xfe,
        d,
        e,
        f,
    ])
}
