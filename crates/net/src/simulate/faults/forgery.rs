//! Claims to the address of another host, in each form that hosts accept.

use super::tagged::send_tagged;
use crate::{Draw, HostId, Net, NetError};
use std::fmt;
use std::net::Ipv6Addr;
use urtica_wire::packet::checksum::PseudoHeader;
use urtica_wire::packet::icmpv6::{NEIGHBOR_ADVERTISEMENT, nd_flags};
use urtica_wire::packet::{Arp, Icmpv6, Ipv6, Nd, arp, ether_type, ip_proto};
use urtica_wire::{MacAddr, Version};

/// The group of all IPv6 hosts (RFC 4291 section 2.7.1), and its MAC address (RFC 2464 section 7).
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_NODES_MAC: MacAddr = MacAddr::new([0x33, 0x33, 0, 0, 0, 1]);

/// The form of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simulate) enum Forgery {
    /// An ARP reply to one host.
    Reply,
    /// An ARP reply to all hosts.
    Broadcast,
    /// A neighbour advertisement to one host.
    Advertisement,
    /// A neighbour advertisement to all hosts.
    Multicast,
}

impl Forgery {
    /// Draws a form that this network's hosts accept and its programs can recognise. OpenFlow 1.0 cannot match neighbour
    /// discovery, so an advertisement to one host follows the entries of its flow there.
    pub fn draw(draw: &mut Draw, net: &Net) -> Self {
        let forms: &[Self] = match (net.pings_use_ipv6(), net.speaks(Version::Of13)) {
            (false, _) => &[Self::Reply, Self::Broadcast],
            (true, true) => &[Self::Advertisement, Self::Multicast],
            (true, false) => &[Self::Multicast],
        };
        draw.choose(forms).copied().unwrap_or(Self::Reply)
    }

    /// Returns the form in which the owner announces its address.
    pub fn of_owner(self) -> Self {
        match self {
            Self::Reply | Self::Broadcast => Self::Broadcast,
            Self::Advertisement | Self::Multicast => Self::Multicast,
        }
    }

    pub fn is_for_all(self) -> bool {
        matches!(self, Self::Broadcast | Self::Multicast)
    }

    /// Sends the claim of a host to the address of `owner`.
    pub fn send(
        self,
        net: &mut Net,
        liar: HostId,
        victim: HostId,
        owner: HostId,
    ) -> Result<(), NetError> {
        match self {
            Self::Reply | Self::Broadcast => self.send_arp(net, liar, victim, owner),
            Self::Advertisement | Self::Multicast => self.send_nd(net, liar, victim, owner),
        }
    }

    fn send_arp(
        self,
        net: &mut Net,
        liar: HostId,
        victim: HostId,
        owner: HostId,
    ) -> Result<(), NetError> {
        let [(sha, _), (_, spa), (tha, tpa)] = [
            net.host_addresses(liar)?,
            net.host_addresses(owner)?,
            net.host_addresses(victim)?,
        ];
        let reply = Arp {
            op: arp::REPLY,
            sha,
            spa,
            tha,
            tpa,
        };
        let dst = match self.is_for_all() {
            true => MacAddr::BROADCAST,
            false => tha,
        };
        send_tagged(net, liar, dst, sha, ether_type::ARP, |frame| {
            reply.write(frame);
        })
    }

    fn send_nd(
        self,
        net: &mut Net,
        liar: HostId,
        victim: HostId,
        owner: HostId,
    ) -> Result<(), NetError> {
        let (mac, _) = net.host_addresses(liar)?;
        let (target, src) = (net.host_ipv6(owner)?, net.host_ipv6(liar)?);
        let (dst_mac, dst) = match self.is_for_all() {
            true => (ALL_NODES_MAC, ALL_NODES),
            false => (net.host_addresses(victim)?.0, net.host_ipv6(victim)?),
        };
        let (mut body, mut icmp) = (Vec::new(), Vec::new());
        let advertisement = Nd {
            flags: nd_flags::OVERRIDE,
            target,
            sll: None,
            tll: Some(mac),
        };
        advertisement.write(&mut body);
        let header = Icmpv6 {
            icmp_type: NEIGHBOR_ADVERTISEMENT,
            icmp_code: 0,
        };
        header.write(&mut icmp, &PseudoHeader::V6 { src, dst }, &body);
        let ip = Ipv6 {
            hop_limit: 255,
            ..Ipv6::new(src, dst, ip_proto::ICMPV6)
        };
        send_tagged(net, liar, dst_mac, mac, ether_type::IPV6, |frame| {
            // Cannot fail: the message is short.
            let _ = ip.write(frame, &icmp);
        })
    }
}

impl fmt::Display for Forgery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reply | Self::Broadcast => "an ARP reply",
            Self::Advertisement | Self::Multicast => "a neighbour advertisement",
        })
    }
}
