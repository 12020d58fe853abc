//! A hostile host does not load all other hosts.
//!
//! Each host's received frames from each other host are counted if they are not for it: packets to other hosts, and broadcast
//! ARP requests. The permitted burst is doubled: frames that were admitted before a switch reconnects may arrive later than
//! frames admitted after it, when the programs count from zero.

use super::Invariant;
use crate::names::Names;
use crate::simulate::{FloodBound, Scenario};
use crate::watch::{Event, Violation, Watcher};
use crate::{End, HostId, Net};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use urtica_wire::MacAddr;
use urtica_wire::packet::{Headers, ether_type};

const SENTENCE: &str = "the floods of a host are bounded";

/// Counts flooded frames.
pub(super) struct BoundedFloods(Rc<RefCell<Floods>>);

struct Floods {
    names: Names,
    macs: BTreeMap<HostId, MacAddr>,
    unknown: Option<FloodBound>,
    sweep: Option<FloodBound>,
    seen: BTreeMap<(HostId, MacAddr, Kind), Seen>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Unknown,
    Sweep,
}

struct Seen {
    since: Duration,
    count: u64,
}

impl BoundedFloods {
    pub fn new(scenario: &Scenario) -> Self {
        Self(Rc::new(RefCell::new(Floods {
            names: Names::default(),
            macs: BTreeMap::new(),
            unknown: scenario.unknown_flood,
            sweep: scenario.sweep,
            seen: BTreeMap::new(),
        })))
    }
}

impl Invariant for BoundedFloods {
    fn sentence(&self) -> &'static str {
        SENTENCE
    }

    fn attach(&mut self, net: &mut Net) {
        let mut floods = self.0.borrow_mut();
        if floods.unknown.is_none() && floods.sweep.is_none() {
            return;
        }
        floods.names = Names::of(net);
        let hosts = net.hosts();
        floods.macs = hosts
            .filter_map(|host| Some((host, net.host_addresses(host).ok()?.0)))
            .collect();
        net.watch(Rc::clone(&self.0));
    }
}

impl Watcher for Floods {
    fn see(&mut self, now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        match *event {
            Event::Arrived(_, End::Host(host), frame) => self.deliver(now, host, frame),
            Event::Disconnected(..) | Event::ControllerStopped | Event::Moved(..) => {
                self.seen.clear();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Floods {
    fn deliver(&mut self, now: Duration, host: HostId, frame: &[u8]) -> Result<(), Violation> {
        let headers = Headers::parse(frame);
        let (Some(src), Some(dst)) = (headers.eth_src, headers.eth_dst) else {
            return Ok(());
        };
        let is_arp = headers.eth_type == Some(ether_type::ARP);
        let (kind, bound) = match dst.is_multicast() {
            true if is_arp => (Kind::Sweep, self.sweep),
            false if self.macs.get(&host) != Some(&dst) => (Kind::Unknown, self.unknown),
            _ => return Ok(()),
        };
        let Some(bound) = bound else { return Ok(()) };
        let seen = self.seen.entry((host, src, kind)).or_insert(Seen {
            since: now,
            count: 0,
        });
        seen.count += 1;
        let elapsed_s = (now - seen.since).as_secs() + 1;
        let admitted = 2 * u64::from(bound.burst) + u64::from(bound.per_second) * elapsed_s;
        match seen.count > admitted {
            true => Err(Violation::of(
                SENTENCE,
                format!(
                    "{} has received {} frames of {src} that are not for it",
                    self.names.host(host),
                    seen.count
                ),
            )),
            false => Ok(()),
        }
    }
}
