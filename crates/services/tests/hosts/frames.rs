//! Frames that hosts send.

use std::net::{Ipv4Addr, Ipv6Addr};
use urtica_wire::MacAddr;
use urtica_wire::packet::icmpv6::{self, NEIGHBOR_ADVERTISEMENT, NEIGHBOR_SOLICITATION};
use urtica_wire::packet::{
    Arp, Ethernet, Icmpv6, Icmpv6View, Ipv6, Ipv6View, Nd, Vlan, ether_type, ethernet, ip_proto,
};

pub fn mac(number: u8) -> MacAddr {
    MacAddr::new([2, 0, 0, 0, 0, number])
}

pub fn ip(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number)
}

pub fn ip6(number: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, number.into())
}

/// Returns an ARP packet in a frame with this tag.
pub fn arp(src: u8, dst: MacAddr, vlan: Option<u16>, arp: Arp) -> Vec<u8> {
    let mut frame = ethernet(src, dst, vlan, ether_type::ARP);
    arp.write(&mut frame);
    ethernet::pad_frame(&mut frame, 0);
    frame
}

fn ethernet(src: u8, dst: MacAddr, vlan: Option<u16>, of: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    let ether_type = vlan.map_or(of, |_| ether_type::VLAN);
    let src = mac(src);
    Ethernet {
        dst,
        src,
        ether_type,
    }
    .write(&mut frame);
    if let Some(vid) = vlan {
        let tag = Vlan {
            pcp: 5,
            cfi: false,
            vid,
            ether_type: of,
        };
        tag.write(&mut frame);
    }
    frame
}

/// Returns a broadcast from host `src`, which has the address with its number, that requests the address of `target`.
pub fn arp_request(src: u8, target: u8, vlan: Option<u16>) -> Vec<u8> {
    let request = Arp::request(mac(src), ip(src), ip(target));
    arp(src, MacAddr::BROADCAST, vlan, request)
}

/// Returns the answer of host `src` to a request from `to`.
pub fn arp_reply(src: u8, to: MacAddr) -> Vec<u8> {
    let request = Arp::request(to, Ipv4Addr::UNSPECIFIED, ip(src));
    arp(src, to, None, request.reply(mac(src)))
}

pub struct NdFrame {
    pub src: u8,
    pub dst_mac: MacAddr,
    pub from: Ipv6Addr,
    pub to: Ipv6Addr,
    pub hop_limit: u8,
    pub icmp_type: u8,
    pub nd: Nd,
}

impl NdFrame {
    /// Returns a multicast from host `src` that requests the address of `target`.
    pub fn solicitation(src: u8, target: u8) -> Self {
        Self {
            src,
            dst_mac: MacAddr::new([0x33, 0x33, 0xff, 0, 0, target]),
            from: ip6(src),
            to: Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, target.into()),
            hop_limit: 255,
            icmp_type: NEIGHBOR_SOLICITATION,
            nd: Nd {
                flags: 0,
                target: ip6(target),
                sll: Some(mac(src)),
                tll: None,
            },
        }
    }

    /// Returns a check by host `src` whether the address of `target` is free (RFC 4862 section 5.4).
    pub fn detection(src: u8, target: u8) -> Self {
        let mut frame = Self::solicitation(src, target);
        frame.from = Ipv6Addr::UNSPECIFIED;
        frame.nd.sll = None;
        frame
    }

    /// Returns host `src`'s announcement of its address to all hosts.
    pub fn advertisement(src: u8, flags: u8) -> Self {
        Self {
            dst_mac: MacAddr::new([0x33, 0x33, 0, 0, 0, 1]),
            to: Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
            icmp_type: NEIGHBOR_ADVERTISEMENT,
            nd: Nd {
                flags,
                target: ip6(src),
                sll: None,
                tll: Some(mac(src)),
            },
            ..Self::solicitation(src, src)
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut frame = ethernet(self.src, self.dst_mac, None, ether_type::IPV6);
        let ip = Ipv6 {
            hop_limit: self.hop_limit,
            ..Ipv6::new(self.from, self.to, ip_proto::ICMPV6)
        };
        let (mut body, mut message) = (Vec::new(), Vec::new());
        self.nd.write(&mut body);
        let icmp = Icmpv6 {
            icmp_type: self.icmp_type,
            icmp_code: 0,
        };
        icmp.write(&mut message, &ip.pseudo_header(), &body);
        ip.write(&mut frame, &message).unwrap();
        frame
    }
}

/// Reads the advertisement in an untagged frame, whose hop limit and checksum must be valid. Returns source, destination and
/// content.
pub fn read_advertisement(frame: &[u8]) -> (Ipv6Addr, Ipv6Addr, Nd) {
    let ip = Ipv6View::new(&frame[14..]).unwrap();
    let icmp = Icmpv6View::new(ip.payload()).unwrap();
    assert_eq!(ip.hop_limit(), 255);
    assert!(icmp.is_checksum_valid(&ip.pseudo_header()));
    assert_eq!(icmp.icmp_type(), icmpv6::NEIGHBOR_ADVERTISEMENT);
    (ip.src(), ip.dst(), icmp.nd().unwrap().unwrap().to_header())
}
