//! Virtual hosts: they resolve addresses, ping, and send flows.
//!
//! **What.** Frames and times are input, frames are output; no thread, no clock. A host answers ARP requests, neighbour
//! solicitations and echo requests, acknowledges streams, and counts its input. Each protocol has its own file, with this
//! interface: `start`, `report`, `handle` for input, `handle_timeout` and `next_timeout` for timers.
//!
//! **Limits.** Hosts have no routes: each treats all others as neighbours.

mod flow;
mod ip;
mod outbox;
mod ping;
mod tcp;
mod udp;

pub use flow::FlowReport;
pub(crate) use outbox::Outbox;
pub(crate) use ping::ANSWER_WITHIN;
pub use ping::PingReport;
pub use udp::Datagrams;

use crate::frame::Tag;
use ip::{Ip, Station};
use ping::Pings;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use tcp::Tcps;
use udp::Udps;
use urtica_wire::MacAddr;
use urtica_wire::packet::{
    EthernetView, Icmpv6View, Ipv4View, Ipv6View, VlanTags, ether_type, ip_proto,
};

/// The number of tags that a host remembers to detect duplicates. A duplicate soon follows the first copy.
const REMEMBERED: u64 = 256;

/// The first source port of flows.
const FIRST_PORT: u16 = 49_152;

/// Counts of the frames that a host has received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Frames received.
    pub received: u64,
    /// Frames for another host, which were flooded.
    pub for_others: u64,
    /// Duplicates of earlier frames.
    pub duplicates: u64,
    /// Frames addressed to this host that it could not parse or did not expect.
    pub unexpected: u64,
}

/// One host.
pub(crate) struct Host {
    pub name: String,
    ip: Ip,
    pings: Pings,
    udps: Udps,
    tcps: Tcps,
    ports: u16,
    pub counters: HostCounters,
    /// The tags of received frames, indexed by their low bits. The value is the other bits plus one; 0 means no tag. Empty
    /// until the first frame.
    seen: Vec<u32>,
}

/// Identifies a flow of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowKind {
    Datagrams,
    Stream,
}

impl Host {
    /// Creates a host with this name and these addresses.
    pub fn new(name: &str, mac: MacAddr, ipv4: Ipv4Addr) -> Self {
        Self {
            name: name.to_owned(),
            ip: Ip::new(Station::new(mac, ipv4)),
            pings: Pings::default(),
            udps: Udps::default(),
            tcps: Tcps::default(),
            ports: 0,
            counters: HostCounters::default(),
            seen: Vec::new(),
        }
    }

    pub fn mac(&self) -> MacAddr {
        self.ip.station.mac
    }

    pub fn ipv4(&self) -> Ipv4Addr {
        self.ip.station.ipv4
    }

    pub fn ipv6(&self) -> Ipv6Addr {
        self.ip.station.ipv6
    }

    /// Returns the host's VLAN, if its frames are tagged.
    pub fn vlan(&self) -> Option<u16> {
        self.ip.station.vlan
    }

    /// Puts the host into a VLAN: its frames are tagged from then on, and it ignores frames of others.
    pub fn set_vlan(&mut self, vlan: Option<u16>) {
        self.ip.station.vlan = vlan;
    }

    /// Announces the host, so that it is known before it is looked up.
    pub fn announce(&self, out: &mut Outbox) {
        self.ip.announce(out);
    }

    /// Starts to ping; returns the identifier.
    pub fn start_ping(
        &mut self,
        dst: IpAddr,
        count: u32,
        interval: Duration,
        now: Duration,
    ) -> u16 {
        self.pings.start(dst, count, interval, now)
    }

    /// Returns the host's pings.
    pub fn pings(&mut self) -> &mut Pings {
        &mut self.pings
    }

    /// Starts to send datagrams; returns the source port.
    pub fn start_datagrams(&mut self, dst: Ipv4Addr, flow: Datagrams, now: Duration) -> u16 {
        let port = self.next_port();
        self.udps.start(port, dst, flow, now);
        port
    }

    /// Starts to send a stream; returns the source port.
    pub fn start_stream(&mut self, dst: Ipv4Addr, bytes: u64, now: Duration) -> u16 {
        let port = self.next_port();
        self.tcps.start(port, dst, bytes, now);
        port
    }

    /// Returns the streams that it sends: source port, destination, and number of bytes.
    pub fn streams(&self) -> impl Iterator<Item = (u16, Ipv4Addr, u64)> {
        self.tcps.sent()
    }

    /// Stops all pings and flows that it sends.
    pub fn stop_flows(&mut self) {
        self.pings = Pings::default();
        self.udps.stop();
        self.tcps.stop();
    }

    /// Adds the sender's results of the flow from a port.
    pub fn report_sent(&self, kind: FlowKind, port: u16, report: &mut FlowReport) {
        match kind {
            FlowKind::Datagrams => self.udps.report_sent(port, report),
            FlowKind::Stream => self.tcps.report_sent(port, report),
        }
    }

    /// Adds the receiver's results of the flow from another host's port.
    pub fn report_heard(&self, kind: FlowKind, src: (Ipv4Addr, u16), report: &mut FlowReport) {
        match kind {
            FlowKind::Datagrams => self.udps.report_heard(src, report),
            FlowKind::Stream => self.tcps.report_heard(src, report),
        }
    }

    /// Handles a frame.
    pub fn handle(&mut self, frame: &[u8], now: Duration, out: &mut Outbox) {
        self.counters.received += 1;
        self.remember(frame);
        let Ok(ethernet) = EthernetView::new(frame) else {
            self.counters.unexpected += 1;
            return;
        };
        if ethernet.dst() != self.mac() && !ethernet.dst().is_multicast() {
            self.counters.for_others += 1;
            return;
        }
        let (vlan, ether_type, payload) = untagged(&ethernet);
        if vlan != self.vlan() {
            return;
        }
        let is_expected = match ether_type {
            ether_type::IPV4 => self.handle_ipv4(payload, now, out),
            ether_type::ARP => self.ip.handle_arp(payload, now, out),
            ether_type::IPV6 => self.handle_ipv6(ethernet.src(), payload, now, out),
            // Multicast frames are between switches and controllers.
            _ => ethernet.dst().is_multicast(),
        };
        self.counters.unexpected += u64::from(!is_expected);
    }

    /// Handles all due time-outs.
    pub fn handle_timeout(&mut self, now: Duration, out: &mut Outbox) {
        self.ip.handle_timeout(now, out);
        self.pings.handle_timeout(&mut self.ip, now, out);
        self.udps.handle_timeout(&mut self.ip, now, out);
        self.tcps.handle_timeout(&mut self.ip, now, out);
    }

    /// Returns the time of the next time-out.
    pub fn next_timeout(&self) -> Option<Duration> {
        let timeouts = [
            self.ip.next_timeout(),
            self.pings.next_timeout(),
            self.udps.next_timeout(),
            self.tcps.next_timeout(),
        ];
        timeouts.into_iter().flatten().min()
    }

    fn next_port(&mut self) -> u16 {
        let port = FIRST_PORT + self.ports;
        self.ports = (self.ports + 1) % (u16::MAX - FIRST_PORT);
        port
    }

    fn handle_ipv4(&mut self, bytes: &[u8], now: Duration, out: &mut Outbox) -> bool {
        let Ok(packet) = Ipv4View::new(bytes) else {
            return false;
        };
        if packet.dst() != self.ipv4() {
            return packet.dst().is_multicast() || packet.dst().is_broadcast();
        }
        let (src, payload) = (packet.src(), packet.payload());
        match packet.proto() {
            ip_proto::UDP => self.udps.handle(src, payload),
            ip_proto::TCP => self.tcps.handle(src, payload, &mut self.ip, now, out),
            ip_proto::ICMPV4 => self
                .pings
                .handle(src.into(), payload, &mut self.ip, now, out),
            _ => false,
        }
    }

    fn handle_ipv6(
        &mut self,
        src_mac: MacAddr,
        bytes: &[u8],
        now: Duration,
        out: &mut Outbox,
    ) -> bool {
        let Ok(packet) = Ipv6View::new(bytes) else {
            return false;
        };
        let (src, payload) = (packet.src(), packet.payload());
        let Ok(icmp) = Icmpv6View::new(payload) else {
            return true;
        };
        if packet.next_header() != ip_proto::ICMPV6 {
            return packet.dst() != self.ipv6();
        }
        match icmp.nd() {
            Ok(Some(nd)) => {
                let src = (src_mac, src);
                self.ip.handle_nd(src, icmp.icmp_type(), &nd, now, out);
                true
            }
            Ok(None) if packet.dst() == self.ipv6() => {
                self.pings
                    .handle(src.into(), payload, &mut self.ip, now, out)
            }
            _ => packet.dst().is_multicast(),
        }
    }

    /// Counts the frame if it is a duplicate.
    fn remember(&mut self, frame: &[u8]) {
        let Some(tag) = Tag::of(frame) else {
            return;
        };
        self.seen.resize(REMEMBERED as usize, 0);
        let place = &mut self.seen[(tag.0 % REMEMBERED) as usize];
        let rest = (tag.0 / REMEMBERED % u64::from(u32::MAX)) as u32 + 1;
        let is_second = std::mem::replace(place, rest) == rest;
        self.counters.duplicates += u64::from(is_second);
    }
}

/// Returns a frame's VLAN, EtherType and payload. A tag with VLAN 0 is a priority tag (IEEE 802.1Q).
fn untagged<'a>(ethernet: &EthernetView<'a>) -> (Option<u16>, u16, &'a [u8]) {
    let mut tags = VlanTags::new(ethernet.ether_type(), ethernet.payload());
    let tag = match ethernet.ether_type() {
        ether_type::VLAN => tags.next(),
        _ => None,
    };
    let vlan = tag.map(|(_, tag)| tag.vid()).filter(|vid| *vid != 0);
    (vlan, tags.type_or_length(), tags.rest())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;
    use urtica_wire::packet::checksum::PseudoHeader;
    use urtica_wire::packet::{Arp, ArpView, Ethernet, Icmpv6, Ipv6, Nd, arp, icmpv6};

    const NOW: Duration = Duration::from_secs(5);
    const OTHER: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 9]);
    const OTHER_IPV4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);

    fn host() -> Host {
        Host::new(
            "h1",
            MacAddr::new([2, 0, 0, 0, 0, 1]),
            Ipv4Addr::new(10, 0, 0, 1),
        )
    }

    fn frame(dst: MacAddr, ether_type: u16, write: impl FnOnce(&mut Frame)) -> Frame {
        let mut frame = Frame::new();
        let header = Ethernet {
            dst,
            src: OTHER,
            ether_type,
        };
        header.write(&mut frame);
        write(&mut frame);
        frame
    }

    /// Returns the frames that a host sends in reply.
    fn replies(host: &mut Host, frame: &[u8]) -> Vec<Frame> {
        let mut out = Outbox::default();
        host.handle(frame, NOW, &mut out);
        out.take()
    }

    fn arp_of(frame: &[u8]) -> Arp {
        let ethernet = EthernetView::new(frame).unwrap();
        assert_eq!(ethernet.ether_type(), ether_type::ARP);
        ArpView::new(ethernet.payload()).unwrap().to_header()
    }

    #[test]
    fn replies_to_arp_requests_for_our_address() {
        let mut host = host();
        let ask = |tpa| {
            let request = Arp::request(OTHER, OTHER_IPV4, tpa);
            frame(MacAddr::BROADCAST, ether_type::ARP, |frame| {
                request.write(frame)
            })
        };
        let replied = replies(&mut host, &ask(Ipv4Addr::new(10, 0, 0, 1)));
        let reply = arp_of(&replied[0]);
        assert_eq!(
            (reply.op, reply.spa, reply.sha),
            (arp::REPLY, host.ipv4(), host.mac())
        );
        assert_eq!((reply.tpa, reply.tha), (OTHER_IPV4, OTHER));
        assert_eq!(
            replies(&mut host, &ask(Ipv4Addr::new(10, 0, 0, 2))),
            [] as [Frame; 0]
        );
    }

    #[test]
    fn an_announcement_names_the_host_twice() {
        let mut out = Outbox::default();
        host().announce(&mut out);
        let announced = arp_of(&out.take()[0]);
        assert_eq!(
            (announced.op, announced.spa, announced.tpa),
            (arp::REQUEST, host().ipv4(), host().ipv4())
        );
    }

    #[test]
    fn neighbour_solicitations_are_answered() {
        let asker = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 9);
        let target = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, 1);
        let solicit = |target| {
            let (mut body, mut icmp) = (Vec::new(), Vec::new());
            let nd = Nd {
                flags: 0,
                target,
                sll: Some(OTHER),
                tll: None,
            };
            nd.write(&mut body);
            let header = Icmpv6 {
                icmp_type: icmpv6::NEIGHBOR_SOLICITATION,
                icmp_code: 0,
            };
            let pseudo_header = PseudoHeader::V6 {
                src: asker,
                dst: target,
            };
            header.write(&mut icmp, &pseudo_header, &body);
            let ip = Ipv6::new(asker, target, ip_proto::ICMPV6);
            let multicast = MacAddr::new([0x33, 0x33, 0xff, 0, 0, 1]);
            frame(multicast, ether_type::IPV6, |frame| {
                ip.write(frame, &icmp).unwrap()
            })
        };
        let mut host = host();
        let replied = replies(&mut host, &solicit(target));
        let ethernet = EthernetView::new(&replied[0]).unwrap();
        let ip = Ipv6View::new(ethernet.payload()).unwrap();
        let icmp = Icmpv6View::new(ip.payload()).unwrap();
        let pseudo_header = PseudoHeader::V6 {
            src: ip.src(),
            dst: ip.dst(),
        };
        assert!(icmp.is_checksum_valid(&pseudo_header));
        let nd = icmp.nd().unwrap().unwrap();
        assert_eq!(
            (icmp.icmp_type(), nd.target()),
            (icmpv6::NEIGHBOR_ADVERTISEMENT, target)
        );
        assert_eq!(
            (nd.tll(), ip.dst(), ethernet.dst()),
            (Some(host.mac()), asker, OTHER)
        );
        assert_eq!(replies(&mut host, &solicit(asker)), [] as [Frame; 0]);
    }

    #[test]
    fn packets_wait_for_an_address_and_are_dropped() {
        let mut host = host();
        let mut out = Outbox::default();
        host.start_ping(OTHER_IPV4.into(), 1, Duration::from_secs(1), Duration::ZERO);
        let mut asked = 0;
        while let Some(next) = host.next_timeout() {
            host.handle_timeout(next, &mut out);
            asked += out
                .take()
                .iter()
                .filter(|frame| arp_of(frame).op == arp::REQUEST)
                .count();
        }
        assert_eq!(asked, 3);
        assert!(host.pings().is_done(0, NOW) && host.pings().report(0).unwrap().lost() == 1);
    }

    #[test]
    fn counts_duplicates_foreign_and_malformed_frames() {
        let mut host = host();
        let mut tagged = frame(OTHER, ether_type::IPV4, |_| {});
        crate::frame::seal(&mut tagged, Tag(7));
        replies(&mut host, &tagged);
        replies(&mut host, &tagged);
        let cut_off = frame(host.mac(), ether_type::IPV4, |_| {});
        replies(&mut host, &cut_off);
        replies(&mut host, &[1, 2, 3]);
        let expected = HostCounters {
            received: 4,
            for_others: 2,
            duplicates: 1,
            unexpected: 2,
        };
        assert_eq!(host.counters, expected);
    }
}
