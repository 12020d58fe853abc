//! Spoofed ARP replies and neighbour advertisements do not reach hosts.

use super::Invariant;
use crate::names::Names;
use crate::simulate::Scenario;
use crate::watch::{Event, Violation, Watcher};
use crate::{End, Net};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use urtica_wire::MacAddr;
use urtica_wire::packet::{Headers, icmpv6};

const SENTENCE: &str = "no host receives another host's address as that of a third";

/// Checks every message that reaches a host and maps an address to a MAC address.
pub(super) struct TrueAddresses {
    is_promised: bool,
}

#[derive(Default)]
struct Owners {
    names: Names,
    /// The owners of addresses, with their VLANs.
    owners: BTreeMap<IpAddr, (MacAddr, Option<u16>)>,
    /// All hosts. A router may answer for other hosts.
    macs: BTreeSet<MacAddr>,
}

impl TrueAddresses {
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            is_promised: scenario.drops_spoofed_replies,
        }
    }
}

impl Invariant for TrueAddresses {
    fn sentence(&self) -> &'static str {
        SENTENCE
    }

    fn attach(&mut self, net: &mut Net) {
        if !self.is_promised {
            return;
        }
        let mut owners = Owners {
            names: Names::of(net),
            ..Owners::default()
        };
        for host in net.hosts() {
            let addresses = net.host_addresses(host).ok().zip(net.host_ipv6(host).ok());
            if let Some(((mac, ipv4), ipv6)) = addresses {
                let owner = (mac, net.vlan(host).ok().flatten());
                owners.owners.insert(ipv4.into(), owner);
                owners.owners.insert(ipv6.into(), owner);
                owners.macs.insert(mac);
            }
        }
        net.watch(Rc::new(RefCell::new(owners)));
    }
}

impl Watcher for Owners {
    fn see(&mut self, _now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        let Event::Arrived(_, end @ End::Host(_), frame) = *event else {
            return Ok(());
        };
        let headers = Headers::parse(frame);
        let Some((address, mac)) = claim(&headers) else {
            return Ok(());
        };
        let vlan = headers.vlan_id();
        match self.owners.get(&address) {
            Some(&(owner, of_vlan))
                if owner != mac && of_vlan == vlan && self.macs.contains(&mac) =>
            {
                Err(Violation::of(
                    SENTENCE,
                    format!(
                        "{} has received that {address} is at {mac}, not at {owner}",
                        self.names.end(end)
                    ),
                ))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the address that a frame maps to a MAC address, by ARP or by a neighbour advertisement.
fn claim(headers: &Headers) -> Option<(IpAddr, MacAddr)> {
    if let Some(arp) = headers.arp {
        return Some((arp.spa.into(), arp.sha));
    }
    let is_advertisement = headers.icmp_type == Some(icmpv6::NEIGHBOR_ADVERTISEMENT);
    let target = headers.nd_target.filter(|_| is_advertisement)?;
    Some((target.into(), headers.nd_tll?))
}
