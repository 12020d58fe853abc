//! Made-up hosts at one port do not keep the programs from learning hosts elsewhere.
//!
//! Packets to unknown hosts are flooded. So after a run with hostile hosts, all other hosts ping each other twice, and in the
//! second round no host receives a packet for another one.

use super::{Faced, Invariant};
use crate::names::Names;
use crate::simulate::Scenario;
use crate::watch::{Event, Violation, Watcher};
use crate::{End, HostId, Net};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use urtica_wire::MacAddr;
use urtica_wire::packet::EthernetView;

const SENTENCE: &str = "packets between known hosts reach no other host";

/// Checks for flooded packets.
pub(super) struct KnownHosts {
    is_promised: bool,
    floods: Rc<RefCell<Floods>>,
}

#[derive(Default)]
struct Floods {
    is_looking: bool,
    names: Names,
    /// The hosts that were not hostile.
    macs: BTreeMap<MacAddr, HostId>,
}

impl KnownHosts {
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            is_promised: scenario.keeps_hosts,
            floods: Rc::default(),
        }
    }
}

impl Invariant for KnownHosts {
    fn sentence(&self) -> &'static str {
        SENTENCE
    }

    fn attach(&mut self, net: &mut Net) {
        if self.is_promised {
            self.floods.borrow_mut().names = Names::of(net);
            net.watch(Rc::clone(&self.floods));
        }
    }

    fn after_recovery(&mut self, net: &mut Net, faced: &Faced) -> Result<(), String> {
        if !self.is_promised || faced.offenders.is_empty() || faced.has_accidents {
            return Ok(());
        }
        let mut pairs = faced.connected_pairs(net);
        pairs.retain(|pair| !faced.is_offended_by(*pair));
        let own_macs = pairs
            .iter()
            .filter_map(|&(from, _)| Some((net.host_addresses(from).ok()?.0, from)));
        self.floods.borrow_mut().macs = own_macs.collect();
        for is_looking in [false, true] {
            self.floods.borrow_mut().is_looking = is_looking;
            net.ping_pairs(&pairs).map_err(|error| error.to_string())?;
        }
        self.floods.borrow_mut().is_looking = false;
        Ok(())
    }
}

impl Watcher for Floods {
    fn see(&mut self, _now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        let Event::Arrived(_, End::Host(host), frame) = *event else {
            return Ok(());
        };
        let header = EthernetView::new(frame).ok().filter(|_| self.is_looking);
        let owner = header.and_then(|header| self.macs.get(&header.dst()));
        match owner {
            Some(owner) if *owner != host => Err(Violation::of(
                SENTENCE,
                format!(
                    "{} has received a packet for {}, which has pinged all others",
                    self.names.host(host),
                    self.names.host(*owner)
                ),
            )),
            _ => Ok(()),
        }
    }
}
