//! The handler of one switch with routers.

use super::entries::entry;
use super::{RestRouter, Routed, frames};
use crate::ryu::membership::{Membership, replace_entries};
use std::sync::Arc;
use std::time::{Duration, Instant};
use urtica_controller::{EntryOptions, Switch, SwitchHandler, SwitchInfo};
use urtica_wire::packet::ether_type;
use urtica_wire::{Action, ErrorMessage, Match, Message, PacketIn, PortNo, Version};

/// The priority of the entry that sends ARP packets to the controller.
const ARP_PRIORITY: u16 = 1;

/// The interval at which waiting packets are checked.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The interval at which gateways are requested again.
const ASK_INTERVAL: Duration = Duration::from_secs(1_800);

/// The handler of one switch.
pub(super) struct RouterHandler {
    router: RestRouter,
    membership: Membership<Routed>,
    /// The current second, and the number of ICMP errors in it.
    pub(super) errors: (u32, u32),
    /// The time of the last requests for gateways.
    asked: Option<Instant>,
}

impl RouterHandler {
    pub fn new(router: &RestRouter) -> Self {
        Self {
            router: router.clone(),
            membership: Membership::new(&router.0),
            errors: (0, 0),
            asked: None,
        }
    }
}

impl SwitchHandler for RouterHandler {
    fn switch_up(&mut self, switch: &mut Switch) {
        let id = switch.datapath_id();
        self.membership.join(id, |routed| install(routed, switch));
        tracing::info!(dp_id = %id, "rest_router manages the switch");
    }

    fn tick_interval(&self) -> Option<Duration> {
        Some(LOOK_INTERVAL)
    }

    fn tick(&mut self, switch: &mut Switch) {
        let (id, now) = (switch.datapath_id(), switch.now());
        let asks = self.asked.is_none_or(|asked| now >= asked + ASK_INTERVAL);
        if asks {
            self.asked = Some(now);
        }
        let store = Arc::clone(&self.router.0);
        store.correct(id, |routed| {
            if asks {
                ask_gateways(routed, switch);
            }
            self.give_up(routed, switch, now);
        });
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        switch.consume();
        let store = Arc::clone(&self.router.0);
        let id = switch.datapath_id();
        if frames::is_routed(packet) {
            store.correct(id, |routed| self.take(routed, switch, packet));
        } else {
            switch.forward(packet, PortNo::NORMAL);
        }
    }

    fn error(&mut self, switch: &mut Switch, _xid: u32, error: &ErrorMessage) {
        let code = error.code;
        urtica_log::warn!(about: switch.datapath_id(), dp_id = %switch.datapath_id(), %code, "the switch refused an entry or a packet of rest_router");
    }

    fn role_changed(&mut self, switch: &mut Switch) {
        self.membership.role_changed(switch);
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        self.membership.leave(info.datapath_id);
    }
}

/// Sends a switch all entries, which replace those of an earlier connection, and requests the gateways.
fn install(routed: &mut Routed, switch: &mut Switch) {
    let (id, version) = (switch.datapath_id(), switch.info().version);
    routed.waiting.clear();
    // OpenFlow 1.0 cannot configure this, and does not decrement TTLs.
    if version != Version::Of10 {
        let _ = switch.send(&Message::SetAsync(crate::l3::ALL_AND_EXPIRED));
    }
    let options = EntryOptions::PERMANENT.priority(ARP_PRIORITY);
    let arp = Match::any().eth_type(ether_type::ARP);
    let mut all = vec![entry(arp, options, vec![Action::controller()])];
    for router in routed.vlans.values_mut() {
        router.forget_neighbours();
        all.extend(router.entries(version));
    }
    if let Err(error) = replace_entries(switch, all) {
        urtica_log::error!(about: id, dp_id = %id, %error, "rest_router cannot set up the switch");
    }
    ask_gateways(routed, switch);
}

/// Sends ARP requests for all gateways at all ports.
fn ask_gateways(routed: &Routed, switch: &mut Switch) {
    for (vlan_id, router) in &routed.vlans {
        for (own, gateway) in router.gateways() {
            let asking = frames::ask_all(switch.info(), *vlan_id, own.address, gateway, None);
            frames::send_frames(switch, asking);
        }
    }
}
