//! A host's addresses, and how it finds its neighbours: ARP (RFC 826) and, as far as answers go, neighbour discovery (RFC 4861).
//!
//! Every other host is taken for a neighbour. An address that was found is believed for [`BELIEVED`]; packets for one that is not known
//! wait, the last [`WAITING`] of them, while it is asked for [`ATTEMPTS`] times.

use super::outbox::Outbox;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use urtica_wire::MacAddr;
use urtica_wire::packet::checksum::PseudoHeader;
use urtica_wire::packet::icmpv6::{NEIGHBOR_ADVERTISEMENT, nd_flags};
use urtica_wire::packet::{
    Arp, ArpView, Ethernet, Icmpv6, Icmpv6View, Ipv4, Ipv6, Ipv6View, Nd, arp, ether_type, ip_proto,
};

/// How long an address that was found is used before it is asked for again.
const BELIEVED: Duration = Duration::from_secs(60);

/// How long an answer is waited for.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// How often an address is asked for before packets for it are given up.
const ATTEMPTS: u32 = 3;

/// How many packets wait for an address.
const WAITING: usize = 16;

/// The host that has these addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Station {
    pub mac: MacAddr,
    pub ipv4: Ipv4Addr,
    pub ipv6: Ipv6Addr,
}

/// A host's network layer.
pub(crate) struct Ip {
    pub station: Station,
    neighbours: BTreeMap<Ipv4Addr, Neighbour>,
}

/// What is known of an address.
enum Neighbour {
    Asked {
        attempts: u32,
        next: Duration,
        /// What waits to be sent there: the protocol, and the payload.
        waiting: Vec<(u8, Vec<u8>)>,
    },
    Found {
        mac: MacAddr,
        until: Duration,
    },
}

impl Station {
    /// A host with these addresses, and the IPv6 address that follows from the first (RFC 4291 appendix A).
    pub fn new(mac: MacAddr, ipv4: Ipv4Addr) -> Self {
        let [a, b, c, d, e, f] = mac.octets();
        let id = [a ^ 2, b, c, 0xff, 0xfe, d, e, f];
        let mut ipv6 = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0).octets();
        ipv6[8..].copy_from_slice(&id);
        Self {
            mac,
            ipv4,
            ipv6: ipv6.into(),
        }
    }

    fn ethernet(&self, dst: MacAddr, ether_type: u16) -> Ethernet {
        Ethernet {
            dst,
            src: self.mac,
            ether_type,
        }
    }

    fn send_arp(&self, dst: MacAddr, arp: &Arp, out: &mut Outbox) {
        out.send(|frame| {
            self.ethernet(dst, ether_type::ARP).write(frame);
            arp.write(frame);
        });
    }

    fn send_ipv4(&self, dst: (MacAddr, Ipv4Addr), proto: u8, payload: &[u8], out: &mut Outbox) {
        let (mac, ipv4) = dst;
        out.send(|frame| {
            self.ethernet(mac, ether_type::IPV4).write(frame);
            let header = Ipv4::new(self.ipv4, ipv4, proto);
            // Refused, and then the frame ends here, where the payload is longer than IPv4 can tell.
            let _ = header.write(frame, payload);
        });
    }
}

impl Ip {
    /// A host that knows nobody.
    pub fn new(station: Station) -> Self {
        Self {
            station,
            neighbours: BTreeMap::new(),
        }
    }

    /// Sends a packet, at once or when the address has been found.
    pub fn send(
        &mut self,
        dst: Ipv4Addr,
        proto: u8,
        payload: &[u8],
        now: Duration,
        out: &mut Outbox,
    ) {
        match self.neighbours.get_mut(&dst) {
            Some(Neighbour::Found { mac, until }) if *until > now => {
                self.station.send_ipv4((*mac, dst), proto, payload, out);
            }
            Some(Neighbour::Asked { waiting, .. }) => {
                if waiting.len() == WAITING {
                    waiting.remove(0);
                }
                waiting.push((proto, payload.to_vec()));
            }
            _ => self.ask(dst, 1, vec![(proto, payload.to_vec())], now, out),
        }
    }

    /// Tells all neighbours of itself (RFC 5227 section 2.3).
    pub fn announce(&self, out: &mut Outbox) {
        let Station { mac, ipv4, .. } = self.station;
        let announcement = Arp::request(mac, ipv4, ipv4);
        self.station
            .send_arp(MacAddr::BROADCAST, &announcement, out);
    }

    /// Takes in an ARP packet: answers it, and learns from it. Whether it was well-formed.
    pub fn handle_arp(&mut self, bytes: &[u8], now: Duration, out: &mut Outbox) -> bool {
        let Ok(packet) = ArpView::new(bytes) else {
            return false;
        };
        let is_for_us = packet.tpa() == self.station.ipv4;
        if is_for_us || self.neighbours.contains_key(&packet.spa()) {
            self.learn(packet.spa(), packet.sha(), now, out);
        }
        if is_for_us && packet.op() == arp::REQUEST && packet.spa() != self.station.ipv4 {
            let reply = packet.to_header().reply(self.station.mac);
            self.station.send_arp(packet.sha(), &reply, out);
        }
        true
    }

    /// Takes in an IPv6 packet: answers it where it asks for our address. Whether it was well-formed.
    pub fn handle_ipv6(&self, src: MacAddr, bytes: &[u8], out: &mut Outbox) -> bool {
        let Ok(ipv6) = Ipv6View::new(bytes) else {
            return false;
        };
        let Ok(icmp) = Icmpv6View::new(ipv6.payload()) else {
            return true;
        };
        if ipv6.next_header() == ip_proto::ICMPV6
            && let Ok(Some(nd)) = icmp.nd()
            && nd.target() == self.station.ipv6
            && icmp.icmp_type() != NEIGHBOR_ADVERTISEMENT
        {
            self.advertise(src, ipv6.src(), out);
        }
        true
    }

    /// Asks again for addresses that were not told, or gives them up.
    pub fn handle_timeout(&mut self, now: Duration, out: &mut Outbox) {
        for (address, neighbour) in std::mem::take(&mut self.neighbours) {
            match neighbour {
                Neighbour::Asked { attempts, next, .. } if next <= now && attempts == ATTEMPTS => {}
                Neighbour::Asked {
                    attempts,
                    next,
                    waiting,
                } if next <= now => self.ask(address, attempts + 1, waiting, now, out),
                other => drop(self.neighbours.insert(address, other)),
            }
        }
    }

    /// When there is something to do.
    pub fn next_timeout(&self) -> Option<Duration> {
        let next = |neighbour: &Neighbour| match neighbour {
            Neighbour::Asked { next, .. } => Some(*next),
            Neighbour::Found { .. } => None,
        };
        self.neighbours.values().filter_map(next).min()
    }

    fn ask(
        &mut self,
        address: Ipv4Addr,
        attempts: u32,
        waiting: Vec<(u8, Vec<u8>)>,
        now: Duration,
        out: &mut Outbox,
    ) {
        let request = Arp::request(self.station.mac, self.station.ipv4, address);
        self.station.send_arp(MacAddr::BROADCAST, &request, out);
        let asked = Neighbour::Asked {
            attempts,
            next: now + ANSWER_WITHIN,
            waiting,
        };
        self.neighbours.insert(address, asked);
    }

    fn learn(&mut self, address: Ipv4Addr, mac: MacAddr, now: Duration, out: &mut Outbox) {
        let found = Neighbour::Found {
            mac,
            until: now + BELIEVED,
        };
        if let Some(Neighbour::Asked { waiting, .. }) = self.neighbours.insert(address, found) {
            for (proto, payload) in waiting {
                self.station.send_ipv4((mac, address), proto, &payload, out);
            }
        }
    }

    /// Tells who asked, in IPv6, who we are.
    fn advertise(&self, dst_mac: MacAddr, dst: Ipv6Addr, out: &mut Outbox) {
        let Station { mac, ipv6, .. } = self.station;
        let mut body = Vec::new();
        let advertisement = Nd {
            flags: nd_flags::SOLICITED | nd_flags::OVERRIDE,
            target: ipv6,
            sll: None,
            tll: Some(mac),
        };
        advertisement.write(&mut body);
        let mut icmp = Vec::new();
        let header = Icmpv6 {
            icmp_type: NEIGHBOR_ADVERTISEMENT,
            icmp_code: 0,
        };
        header.write(&mut icmp, &PseudoHeader::V6 { src: ipv6, dst }, &body);
        let ip = Ipv6 {
            // Neighbours believe nothing that a router may have passed on (RFC 4861 section 7.1.2).
            hop_limit: 255,
            ..Ipv6::new(ipv6, dst, ip_proto::ICMPV6)
        };
        out.send(|frame| {
            self.station
                .ethernet(dst_mac, ether_type::IPV6)
                .write(frame);
            let _ = ip.write(frame, &icmp);
        });
    }
}
