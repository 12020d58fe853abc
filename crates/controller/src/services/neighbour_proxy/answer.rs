//! The answer to a question, as its target would give it.

use super::super::hosts::Host;
use super::super::hosts::frame::Frame;
use super::super::hosts::probe::{write_ethernet, write_neighbour_discovery};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use urtica_wire::MacAddr;
use urtica_wire::packet::icmpv6::{self, nd_flags};
use urtica_wire::packet::{Arp, Nd, ether_type, ethernet};

/// All nodes of a link (RFC 4291 section 2.7.1): who looks whether an address is free has none to be answered at.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The multicast MAC address of [`ALL_NODES`] (RFC 2464 section 7).
const ALL_NODES_MAC: MacAddr = MacAddr::new([0x33, 0x33, 0, 0, 0, 1]);

/// The frame by which `owner` would tell the sender of `question`, at `sender`, that it has `target`; with the
/// question's VLAN tag.
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
            let router = if owner.is_router { nd_flags::ROUTER } else { 0 };
            let advertisement = Nd {
                flags: router | solicited | nd_flags::OVERRIDE,
                target,
                sll: None,
                tll: Some(owner.mac),
            };
            let icmp_type = icmpv6::NEIGHBOR_ADVERTISEMENT;
            write_neighbour_discovery(&mut out, target, to, icmp_type, &advertisement);
        }
    }
    ethernet::pad_frame(&mut out, 0);
    out
}
