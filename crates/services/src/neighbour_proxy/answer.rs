//! Frames sent on behalf of hosts: replies and announcements, as the host itself would send them.

use crate::hosts::Host;
use crate::hosts::frame::Frame;
use crate::hosts::probe::{write_ethernet, write_neighbour_discovery};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use urtica_wire::MacAddr;
use urtica_wire::packet::icmpv6::{self, nd_flags};
use urtica_wire::packet::{Arp, Nd, Vlan, ether_type, ethernet};

/// The all-nodes multicast address (RFC 4291 section 2.7.1), for replies to a host that checks whether an address is free, and
/// so has no address yet.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The multicast MAC address of [`ALL_NODES`] (RFC 2464 section 7).
const ALL_NODES_MAC: MacAddr = MacAddr::new([0x33, 0x33, 0, 0, 0, 1]);

/// Returns `owner`'s reply to `question` from `sender`, which states that it has `target`. It has the request's VLAN tag.
pub(super) fn answer(
    question: &Frame,
    sender: Option<IpAddr>,
    target: IpAddr,
    owner: &Host,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(96);
    match (target, sender) {
        (IpAddr::V4(target), sender) => {
            write_ethernet(
                &mut out,
                question.eth_src,
                owner.mac,
                question.tag,
                ether_type::ARP,
            );
            let sender = match sender {
                Some(IpAddr::V4(sender)) => sender,
                _ => Ipv4Addr::UNSPECIFIED,
            };
            let request = Arp::request(question.eth_src, sender, target);
            request.reply(owner.mac).write(&mut out);
        }
        (IpAddr::V6(target), sender) => {
            let (to, to_mac, solicited) = match sender {
                Some(IpAddr::V6(sender)) => (sender, question.eth_src, nd_flags::SOLICITED),
                _ => (ALL_NODES, ALL_NODES_MAC, 0),
            };
            write_ethernet(&mut out, to_mac, owner.mac, question.tag, ether_type::IPV6);
            write_advertisement(&mut out, owner, target, to, solicited);
        }
    }
    ethernet::pad_frame(&mut out, 0);
    out
}

/// Returns `owner`'s announcement of `address`: a gratuitous ARP (RFC 5227 section 2.3), or an unsolicited neighbour
/// advertisement (RFC 4861 section 7.2.6).
pub(super) fn announcement(owner: &Host, address: IpAddr) -> Vec<u8> {
    let mut out = Vec::with_capacity(96);
    let (dst, ether_type) = match address {
        IpAddr::V4(_) => (MacAddr::BROADCAST, ether_type::ARP),
        IpAddr::V6(_) => (ALL_NODES_MAC, ether_type::IPV6),
    };
    let tag = owner.vlan.map(|vid| Vlan {
        pcp: 0,
        cfi: false,
        vid,
        ether_type,
    });
    write_ethernet(&mut out, dst, owner.mac, tag, ether_type);
    match address {
        IpAddr::V4(address) => Arp::request(owner.mac, address, address).write(&mut out),
        IpAddr::V6(address) => write_advertisement(&mut out, owner, address, ALL_NODES, 0),
    }
    ethernet::pad_frame(&mut out, 0);
    out
}

fn write_advertisement(
    out: &mut Vec<u8>,
    owner: &Host,
    target: Ipv6Addr,
    to: Ipv6Addr,
    solicited: u8,
) {
    let router = if owner.is_router { nd_flags::ROUTER } else { 0 };
    let advertisement = Nd {
        flags: router | solicited | nd_flags::OVERRIDE,
        target,
        sll: None,
        tll: Some(owner.mac),
    };
    let icmp_type = icmpv6::NEIGHBOR_ADVERTISEMENT;
    write_neighbour_discovery(out, target, to, icmp_type, &advertisement);
}
