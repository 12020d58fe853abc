//! Packets for a host's address do not arrive at another host of its VLAN.

use super::Invariant;
use crate::names::Names;
use crate::simulate::Scenario;
use crate::watch::{Event, Violation, Watcher};
use crate::{End, HostId, Net};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use urtica_wire::MacAddr;
use urtica_wire::packet::Headers;

const SENTENCE: &str = "no host receives packets sent to another host's address";

/// Checks every IP packet that reaches a host.
pub(super) struct RightfulReceivers {
    is_promised: bool,
}

struct Receivers {
    names: Names,
    /// The owner of each address, and its VLAN: hosts of other VLANs may have the same address.
    owners: BTreeMap<IpAddr, (HostId, Option<u16>)>,
    macs: BTreeMap<HostId, MacAddr>,
}

impl RightfulReceivers {
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            is_promised: scenario.drops_spoofed_replies,
        }
    }
}

impl Invariant for RightfulReceivers {
    fn sentence(&self) -> &'static str {
        SENTENCE
    }

    fn attach(&mut self, net: &mut Net) {
        if !self.is_promised {
            return;
        }
        let mut receivers = Receivers {
            names: Names::of(net),
            owners: BTreeMap::new(),
            macs: BTreeMap::new(),
        };
        for host in net.hosts() {
            let addresses = net.host_addresses(host).ok().zip(net.host_ipv6(host).ok());
            if let Some(((mac, ipv4), ipv6)) = addresses {
                receivers.macs.insert(host, mac);
                let owner = (host, net.vlan(host).ok().flatten());
                receivers.owners.insert(ipv4.into(), owner);
                receivers.owners.insert(ipv6.into(), owner);
            }
        }
        net.watch(Rc::new(RefCell::new(receivers)));
    }
}

impl Watcher for Receivers {
    fn see(&mut self, _now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        let Event::Arrived(_, End::Host(host), frame) = *event else {
            return Ok(());
        };
        let headers = Headers::parse(frame);
        // A receiver ignores a flooded packet for another host.
        if headers.eth_dst.as_ref() != self.macs.get(&host) {
            return Ok(());
        }
        let owner = headers.ip_dst.and_then(|dst| self.owners.get(&dst));
        match owner {
            Some(&(owner, vlan)) if owner != host && vlan == headers.vlan_id() => {
                Err(Violation::of(
                    SENTENCE,
                    format!(
                        "{} has received a packet for the address of {}",
                        self.names.host(host),
                        self.names.host(owner)
                    ),
                ))
            }
            _ => Ok(()),
        }
    }
}
