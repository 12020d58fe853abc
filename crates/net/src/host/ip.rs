//! A host's IP layer: its addresses, ARP (RFC 826) and neighbour discovery (RFC 4861).
//!
//! Every other host is treated as a neighbour. A resolved address is used for [`BELIEVED`]. At most [`WAITING`] packets wait
//! for an unresolved address, which is requested [`ATTEMPTS`] times.

use super::outbox::Outbox;
use crate::frame::Frame;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use urtica_wire::MacAddr;
use urtica_wire::packet::checksum::PseudoHeader;
use urtica_wire::packet::icmpv6::{NEIGHBOR_ADVERTISEMENT, NEIGHBOR_SOLICITATION, nd_flags};
use urtica_wire::packet::{
    Arp, ArpView, Ethernet, Icmpv6, Ipv4, Ipv6, Nd, NdView, Vlan, arp, ether_type, ip_proto,
};

/// The time for which a resolved address is used before it is requested again.
const BELIEVED: Duration = Duration::from_secs(60);

/// The time to wait for a reply.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The number of requests for an address before packets for it are dropped.
const ATTEMPTS: u32 = 3;

/// The maximum number of packets that wait for an address.
const WAITING: usize = 16;

/// The addresses of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Station {
    pub mac: MacAddr,
    pub ipv4: Ipv4Addr,
    pub ipv6: Ipv6Addr,
    /// Its VLAN, if its frames are tagged.
    pub vlan: Option<u16>,
}

/// A host's network layer.
pub(crate) struct Ip {
    pub station: Station,
    neighbours: Neighbours,
}

/// The neighbour cache. Each address family has its own map, because large networks have many IPv4 addresses, which are small.
#[derive(Default)]
struct Neighbours {
    ipv4: BTreeMap<Ipv4Addr, Neighbour>,
    ipv6: BTreeMap<Ipv6Addr, Neighbour>,
}

impl Neighbours {
    fn get_mut(&mut self, address: IpAddr) -> Option<&mut Neighbour> {
        match address {
            IpAddr::V4(address) => self.ipv4.get_mut(&address),
            IpAddr::V6(address) => self.ipv6.get_mut(&address),
        }
    }

    fn insert(&mut self, address: IpAddr, neighbour: Neighbour) -> Option<Neighbour> {
        match address {
            IpAddr::V4(address) => self.ipv4.insert(address, neighbour),
            IpAddr::V6(address) => self.ipv6.insert(address, neighbour),
        }
    }

    fn values(&self) -> impl Iterator<Item = &Neighbour> {
        self.ipv4.values().chain(self.ipv6.values())
    }

    fn into_all(self) -> impl Iterator<Item = (IpAddr, Neighbour)> {
        let ipv4 = self.ipv4.into_iter();
        let ipv6 = self.ipv6.into_iter();
        let ipv4 = ipv4.map(|(address, neighbour)| (IpAddr::V4(address), neighbour));
        ipv4.chain(ipv6.map(|(address, neighbour)| (IpAddr::V6(address), neighbour)))
    }
}

/// The state of an address.
enum Neighbour {
    Asked {
        attempts: u32,
        next: Duration,
        /// The waiting packets: protocol and payload.
        waiting: Vec<(u8, Vec<u8>)>,
    },
    Found {
        mac: MacAddr,
        until: Duration,
    },
}

impl Station {
    /// Creates a host with these addresses, and the IPv6 link-local address derived from the first (RFC 4291 appendix A).
    pub fn new(mac: MacAddr, ipv4: Ipv4Addr) -> Self {
        let [a, b, c, d, e, f] = mac.octets();
        let id = [a ^ 2, b, c, 0xff, 0xfe, d, e, f];
        let mut ipv6 = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0).octets();
        ipv6[8..].copy_from_slice(&id);
        Self {
            mac,
            ipv4,
            ipv6: ipv6.into(),
            vlan: None,
        }
    }

    /// Writes the Ethernet header of a frame.
    fn begin(&self, frame: &mut Frame, dst: MacAddr, ether_type: u16) {
        let header = Ethernet {
            dst,
            src: self.mac,
            ether_type: match self.vlan {
                Some(_) => ether_type::VLAN,
                None => ether_type,
            },
        };
        header.write(frame);
        if let Some(vid) = self.vlan {
            let tag = Vlan {
                pcp: 0,
                cfi: false,
                vid,
                ether_type,
            };
            tag.write(frame);
        }
    }

    fn send_arp(&self, dst: MacAddr, arp: &Arp, out: &mut Outbox) {
        out.send(|frame| {
            self.begin(frame, dst, ether_type::ARP);
            arp.write(frame);
        });
    }

    fn send_ip(&self, dst: (MacAddr, IpAddr), proto: u8, payload: &[u8], out: &mut Outbox) {
        // If the payload is too long for IP, this fails, and the frame ends after its header.
        out.send(|frame| match dst {
            (mac, IpAddr::V4(ipv4)) => {
                self.begin(frame, mac, ether_type::IPV4);
                let _ = Ipv4::new(self.ipv4, ipv4, proto).write(frame, payload);
            }
            (mac, IpAddr::V6(ipv6)) => {
                self.begin(frame, mac, ether_type::IPV6);
                let _ = Ipv6::new(self.ipv6, ipv6, proto).write(frame, payload);
            }
        });
    }

    /// Sends a neighbour discovery message.
    fn send_nd(&self, dst: (MacAddr, Ipv6Addr), icmp_type: u8, nd: &Nd, out: &mut Outbox) {
        let (src, (mac, dst)) = (self.ipv6, dst);
        let (mut body, mut icmp) = (Vec::new(), Vec::new());
        nd.write(&mut body);
        let header = Icmpv6 {
            icmp_type,
            icmp_code: 0,
        };
        header.write(&mut icmp, &PseudoHeader::V6 { src, dst }, &body);
        let ip = Ipv6 {
            // Receivers ignore messages that a router may have forwarded (RFC 4861 section 7.1.2).
            hop_limit: 255,
            ..Ipv6::new(src, dst, ip_proto::ICMPV6)
        };
        out.send(|frame| {
            self.begin(frame, mac, ether_type::IPV6);
            let _ = ip.write(frame, &icmp);
        });
    }
}

impl Ip {
    /// Creates a host with an empty neighbour cache.
    pub fn new(station: Station) -> Self {
        Self {
            station,
            neighbours: Neighbours::default(),
        }
    }

    /// Sends a packet at once, or when the address is resolved.
    pub fn send(
        &mut self,
        dst: IpAddr,
        proto: u8,
        payload: &[u8],
        now: Duration,
        out: &mut Outbox,
    ) {
        match self.neighbours.get_mut(dst) {
            Some(Neighbour::Found { mac, until }) if *until > now => {
                self.station.send_ip((*mac, dst), proto, payload, out);
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

    /// Announces the host to all neighbours (RFC 5227 section 2.3).
    pub fn announce(&self, out: &mut Outbox) {
        let Station { mac, ipv4, .. } = self.station;
        let announcement = Arp::request(mac, ipv4, ipv4);
        self.station
            .send_arp(MacAddr::BROADCAST, &announcement, out);
    }

    /// Handles an ARP packet: replies to it, and learns from it. Returns `true` if it was well-formed.
    pub fn handle_arp(&mut self, bytes: &[u8], now: Duration, out: &mut Outbox) -> bool {
        let Ok(packet) = ArpView::new(bytes) else {
            return false;
        };
        let is_for_us = packet.tpa() == self.station.ipv4;
        if is_for_us || self.neighbours.ipv4.contains_key(&packet.spa()) {
            self.learn(packet.spa().into(), packet.sha(), now, out);
        }
        if is_for_us && packet.op() == arp::REQUEST && packet.spa() != self.station.ipv4 {
            let reply = packet.to_header().reply(self.station.mac);
            self.station.send_arp(packet.sha(), &reply, out);
        }
        true
    }

    /// Handles a neighbour discovery message: replies if it solicits our address, and learns from it.
    pub fn handle_nd(
        &mut self,
        src: (MacAddr, Ipv6Addr),
        icmp_type: u8,
        nd: &NdView<'_>,
        now: Duration,
        out: &mut Outbox,
    ) {
        if icmp_type == NEIGHBOR_ADVERTISEMENT {
            if let Some(mac) = nd.tll() {
                if self.neighbours.ipv6.contains_key(&nd.target()) {
                    self.learn(nd.target().into(), mac, now, out);
                }
            }
        } else if nd.target() == self.station.ipv6 {
            if let Some(mac) = nd.sll() {
                self.learn(src.1.into(), mac, now, out);
            }
            let advertisement = Nd {
                flags: nd_flags::SOLICITED | nd_flags::OVERRIDE,
                target: self.station.ipv6,
                sll: None,
                tll: Some(self.station.mac),
            };
            self.station
                .send_nd(src, NEIGHBOR_ADVERTISEMENT, &advertisement, out);
        }
    }

    /// Repeats requests for unresolved addresses, or gives up.
    pub fn handle_timeout(&mut self, now: Duration, out: &mut Outbox) {
        for (address, neighbour) in std::mem::take(&mut self.neighbours).into_all() {
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

    /// Returns the time of the next time-out.
    pub fn next_timeout(&self) -> Option<Duration> {
        let next = |neighbour: &Neighbour| match neighbour {
            Neighbour::Asked { next, .. } => Some(*next),
            Neighbour::Found { .. } => None,
        };
        self.neighbours.values().filter_map(next).min()
    }

    fn ask(
        &mut self,
        address: IpAddr,
        attempts: u32,
        waiting: Vec<(u8, Vec<u8>)>,
        now: Duration,
        out: &mut Outbox,
    ) {
        let Station { mac, ipv4, .. } = self.station;
        match address {
            IpAddr::V4(address) => {
                let request = Arp::request(mac, ipv4, address);
                self.station.send_arp(MacAddr::BROADCAST, &request, out);
            }
            IpAddr::V6(target) => {
                let solicitation = Nd {
                    flags: 0,
                    target,
                    sll: Some(mac),
                    tll: None,
                };
                let group = solicited_nodes(target);
                self.station
                    .send_nd(group, NEIGHBOR_SOLICITATION, &solicitation, out);
            }
        }
        let asked = Neighbour::Asked {
            attempts,
            next: now + ANSWER_WITHIN,
            waiting,
        };
        self.neighbours.insert(address, asked);
    }

    fn learn(&mut self, address: IpAddr, mac: MacAddr, now: Duration, out: &mut Outbox) {
        let found = Neighbour::Found {
            mac,
            until: now + BELIEVED,
        };
        if let Some(Neighbour::Asked { waiting, .. }) = self.neighbours.insert(address, found) {
            for (proto, payload) in waiting {
                self.station.send_ip((mac, address), proto, &payload, out);
            }
        }
    }
}

/// Returns the solicited-node multicast addresses of this address (RFC 4291 section 2.7.1, RFC 2464 section 7).
fn solicited_nodes(target: Ipv6Addr) -> (MacAddr, Ipv6Addr) {
    let [.., a, b, c] = target.octets();
    let [high, low] = [u16::from_be_bytes([0xff, a]), u16::from_be_bytes([b, c])];
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, high, low);
    (MacAddr::new([0x33, 0x33, 0xff, a, b, c]), group)
}
