//! A table in memory, which a test controls.

use super::{LinkProbe, ServiceOffload, SettledCounts};
use crate::Host;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;
use urtica_controller::ProgramId;
use urtica_topology::PortId;
use urtica_wire::{DatapathId, MacAddr};

type HostKey = (Option<u16>, MacAddr);

#[derive(Default)]
pub(crate) struct Fake(Mutex<State>);

#[derive(Default)]
struct State {
    probes: BTreeMap<PortId, (LinkProbe, Instant)>,
    hosts: BTreeMap<HostKey, PortId>,
    heard: BTreeMap<HostKey, (u64, Instant)>,
    owners: BTreeMap<(Option<u16>, IpAddr), MacAddr>,
}

impl Fake {
    /// Reports that a probe has arrived and confirmed its link.
    pub fn settle_probe(&self, at: PortId, probe: LinkProbe, now: Instant) {
        self.0.lock().probes.insert(at, (probe, now));
    }

    /// Reports that a host was heard at its port.
    pub fn settle_of(&self, host: MacAddr, now: Instant) {
        let mut state = self.0.lock();
        let heard = state.heard.entry((None, host)).or_insert((0, now));
        *heard = (heard.0 + 1, now);
    }

    /// Returns the locations of hosts.
    pub fn hosts(&self) -> Vec<(MacAddr, PortId)> {
        let state = self.0.lock();
        let hosts = state.hosts.iter();
        hosts.map(|(&(_, mac), &port)| (mac, port)).collect()
    }

    pub fn owners(&self) -> Vec<(IpAddr, MacAddr)> {
        let state = self.0.lock();
        let owners = state.owners.iter();
        owners.map(|(&(_, address), &mac)| (address, mac)).collect()
    }
}

impl ServiceOffload for Fake {
    fn expect_probe(&self, _: PortId, _: LinkProbe, _: &[u8]) {}

    fn forget_probe(&self, at: PortId) {
        self.0.lock().probes.remove(&at);
    }

    fn settled_probe(&self, at: PortId) -> Option<(LinkProbe, Instant)> {
        self.0.lock().probes.get(&at).copied()
    }

    fn set_host_ports(&self, _: &[PortId]) {}

    fn set_our_mac(&self, _: MacAddr) {}

    fn set_host(&self, host: &Host) {
        let mut state = self.0.lock();
        let attached = host.attached;
        state.hosts.insert((host.vlan, host.mac), attached);
        for address in host.addresses() {
            state.owners.insert((host.vlan, address), host.mac);
        }
    }

    fn remove_host(&self, vlan: Option<u16>, mac: MacAddr) {
        let mut state = self.0.lock();
        state.hosts.remove(&(vlan, mac));
        state.heard.remove(&(vlan, mac));
    }

    fn remove_address(&self, vlan: Option<u16>, address: IpAddr) {
        self.0.lock().owners.remove(&(vlan, address));
    }

    fn settled_of(&self, vlan: Option<u16>, mac: MacAddr) -> Option<(u64, Instant)> {
        self.0.lock().heard.get(&(vlan, mac)).copied()
    }

    fn answer_as(&self, _: ProgramId) {}

    fn set_next_hops(&self, _: &[(PortId, DatapathId)]) {}

    fn forward_as(&self, _: ProgramId) {}

    fn counts(&self) -> SettledCounts {
        SettledCounts::default()
    }
}
