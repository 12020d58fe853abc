//! Spoofed ARP messages do not reach hosts.

use super::Invariant;
use crate::names::Names;
use crate::simulate::Scenario;
use crate::watch::{Event, Violation, Watcher};
use crate::{End, Net};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;
use urtica_wire::MacAddr;
use urtica_wire::packet::Headers;

const SENTENCE: &str = "no host is told that another one's address is a third one's";

/// Checks every ARP message that reaches a host.
pub(super) struct TrueAddresses {
    is_promised: bool,
}

struct Owners {
    names: Names,
    macs: BTreeMap<Ipv4Addr, MacAddr>,
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
        let addresses = net.hosts().filter_map(|host| net.host_addresses(host).ok());
        let owners = Owners {
            names: Names::of(net),
            macs: addresses.map(|(mac, ipv4)| (ipv4, mac)).collect(),
        };
        net.watch(Rc::new(RefCell::new(owners)));
    }
}

impl Watcher for Owners {
    fn see(&mut self, _now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        let Event::Arrived(_, end @ End::Host(_), frame) = *event else {
            return Ok(());
        };
        let Some(arp) = Headers::parse(frame).arp else {
            return Ok(());
        };
        match self.macs.get(&arp.spa) {
            Some(owner) if *owner != arp.sha => Err(Violation::of(
                SENTENCE,
                format!(
                    "{} has received that {} is at {}, not at {owner}",
                    self.names.end(end),
                    arp.spa,
                    arp.sha
                ),
            )),
            _ => Ok(()),
        }
    }
}
