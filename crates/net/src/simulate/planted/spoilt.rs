//! The handlers of the planted bugs.

use super::PlantedBug;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use urtica_controller::{EntryOptions, Switch, SwitchHandler};
use urtica_wire::packet::{Headers, arp, ether_type, icmpv6, ip_proto};
use urtica_wire::{
    Action, BufferId, DatapathId, MacAddr, Match, Message, PacketIn, PacketOut, PortConfig, PortNo,
    PortReason, PortState, PortStatus,
};

/// The destination port of datagrams between hosts.
const DATAGRAMS: u16 = 5_001;

/// The number of addresses that a host may request before it is dropped, and the time for which it is dropped.
const REQUESTS: usize = 128;
const DROPPED_S: u16 = 60;

/// The number of packets per second that all hosts share.
const PACKETS_PER_S: u32 = 200;

/// The size of the table that all hosts share.
const HOSTS: usize = 4_096;

/// State that the handlers of all switches share.
#[derive(Default)]
pub(super) struct Shared {
    /// The last claim to each address.
    claims: BTreeMap<IpAddr, MacAddr>,
    /// The current second, and the number of its packets.
    packets: (u32, u32),
    /// The ports where hosts were heard first.
    hosts: BTreeMap<MacAddr, (DatapathId, PortNo)>,
}

/// The handler of a switch.
pub(super) struct Spoilt {
    bug: PlantedBug,
    shared: Arc<Mutex<Shared>>,
    /// The addresses that each host has requested.
    requested: BTreeMap<MacAddr, BTreeSet<Ipv4Addr>>,
}

impl Spoilt {
    pub fn new(bug: PlantedBug, shared: Arc<Mutex<Shared>>) -> Self {
        Self {
            bug,
            shared,
            requested: BTreeMap::new(),
        }
    }
}

impl SwitchHandler for Spoilt {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        match self.bug {
            PlantedBug::FloodEverywhere if packet.eth_dst() == MacAddr::BROADCAST => {
                switch.forward(packet, PortNo::ALL);
                switch.consume();
            }
            PlantedBug::FloodEverywhere | PlantedBug::IgnorePortDown => {}
            PlantedBug::ForgottenEntries => count_sender(switch, packet),
            PlantedBug::DropReserved => drop_reserved(switch, packet),
            PlantedBug::BelieveReplies => self.believe(switch, packet),
            PlantedBug::BlameProvoked => self.blame(switch, packet),
            PlantedBug::SharedBudget => self.spend(switch, packet),
            PlantedBug::SharedTable => self.look_up(switch, packet),
        }
    }

    fn port_status(&mut self, switch: &mut Switch, status: &PortStatus) {
        if !is_down(status) {
            return;
        }
        if self.bug == PlantedBug::IgnorePortDown {
            switch.consume();
        }
        let port = (switch.datapath_id(), status.port.port_no);
        self.shared.lock().hosts.retain(|_, place| *place != port);
    }
}

impl Spoilt {
    /// Sends packets to the host that claimed their destination last.
    fn believe(&self, switch: &mut Switch, packet: &PacketIn) {
        let headers = Headers::parse(packet.data);
        let mut shared = self.shared.lock();
        if let Some((address, mac)) = claim(&headers) {
            shared.claims.insert(address, mac);
            return;
        }
        let believed = headers.ip_dst.and_then(|dst| shared.claims.get(&dst));
        let believed = believed.filter(|mac| **mac != packet.eth_dst());
        if let Some(mac) = believed.filter(|_| !packet.eth_dst().is_multicast()) {
            let mut frame = packet.data.to_vec();
            frame[..6].copy_from_slice(&mac.octets());
            let message = Message::PacketOut(PacketOut {
                buffer_id: BufferId::NONE,
                in_port: packet.in_port,
                actions: vec![Action::output(PortNo::FLOOD)].into(),
                data: &frame,
            });
            // If this fails, the packet is lost.
            let _ = switch.send(&message);
            switch.consume();
        }
    }

    /// Drops a host that has requested many addresses.
    fn blame(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let Some(asked) = Headers::parse(packet.data).arp else {
            return;
        };
        if asked.op != arp::REQUEST || asked.spa == asked.tpa {
            return;
        }
        let requested = self.requested.entry(packet.eth_src()).or_default();
        if requested.insert(asked.tpa) && requested.len() == REQUESTS {
            let options = EntryOptions {
                hard_timeout: DROPPED_S,
                ..EntryOptions::PERMANENT.priority(0xff00)
            };
            let _ = switch.install(Match::any().eth_src(packet.eth_src()), &[], options);
        }
    }

    /// Ignores packets beyond the budget.
    fn spend(&self, switch: &mut Switch, packet: &PacketIn) {
        let counted = [ether_type::ARP, ether_type::IPV4, ether_type::IPV6];
        let is_counted = Headers::parse(packet.data)
            .eth_type
            .is_some_and(|eth_type| counted.contains(&eth_type));
        if !is_counted {
            return;
        }
        let mut shared = self.shared.lock();
        let (second, count) = &mut shared.packets;
        if *second != switch.now_s() {
            (*second, *count) = (switch.now_s(), 0);
        }
        *count += 1;
        if *count > PACKETS_PER_S {
            switch.consume();
        }
    }

    /// Floods packets to hosts that are not in the table.
    fn look_up(&self, switch: &mut Switch, packet: &PacketIn) {
        let hosts = &mut self.shared.lock().hosts;
        if hosts.len() < HOSTS {
            let place = (switch.datapath_id(), packet.in_port());
            hosts.entry(packet.eth_src()).or_insert(place);
        }
        let dst = packet.eth_dst();
        if hosts.len() >= HOSTS && !dst.is_multicast() && !hosts.contains_key(&dst) {
            switch.forward(packet, PortNo::FLOOD);
            switch.consume();
        }
    }
}

/// Installs an entry that counts a sender's packets and sends them to the controller, which would receive them anyway. All
/// other entries have precedence.
fn count_sender(switch: &mut Switch, packet: &PacketIn) {
    let sender = Match::any().eth_src(packet.eth_src());
    let last = EntryOptions::PERMANENT.priority(1);
    // If the table is full, it has enough of these entries.
    let _ = switch.install(sender, &[Action::controller()], last);
}

/// Hides datagrams to another subnet.
fn drop_reserved(switch: &mut Switch, packet: &PacketIn) {
    let headers = Headers::parse(packet.data);
    let is_datagram =
        (headers.ip_proto, headers.dst_port) == (Some(ip_proto::UDP), Some(DATAGRAMS));
    let subnet = |address: Option<IpAddr>| match address {
        Some(IpAddr::V4(address)) => Some(address.to_bits() >> 8),
        _ => None,
    };
    if is_datagram && subnet(headers.ip_src) != subnet(headers.ip_dst) {
        switch.consume();
    }
}

/// Returns the address that a reply maps to a MAC address.
fn claim(headers: &Headers) -> Option<(IpAddr, MacAddr)> {
    if let Some(arp) = headers.arp {
        return (arp.op == arp::REPLY).then(|| (arp.spa.into(), arp.sha));
    }
    let is_advertisement = headers.icmp_type == Some(icmpv6::NEIGHBOR_ADVERTISEMENT);
    let target = headers.nd_target.filter(|_| is_advertisement)?;
    Some((target.into(), headers.nd_tll?))
}

fn is_down(status: &PortStatus) -> bool {
    status.reason == PortReason::Delete
        || status.port.config.contains(PortConfig::PORT_DOWN)
        || status.port.state.contains(PortState::LINK_DOWN)
}
