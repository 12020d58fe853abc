//! Entries of an earlier run of the controller.
//!
//! **Why they stay.** While no controller was connected, packets followed these entries. A controller that starts by
//! deleting them stops working traffic until all hosts and links have been found again. So they stay if nothing contradicts
//! them, and become a flow's path as soon as both its hosts are known.
//!
//! **What contradicts them.** An entry outputs to a port that is down, or to a switch that has no entry for the flow;
//! entries form a loop; the flow's destination is known to be elsewhere. While switches are still connecting ([`ABSENCE`]
//! after one has reported an entry), unknown facts contradict nothing.
//!
//! **Why they do not stay for ever.** They keep the packets of their flow from coming here, so that nobody learns where its
//! source is; if that has moved, replies are still forwarded to its old place. So a flow's entries are deleted if its source
//! has not been heard [`UNHEARD`] after the last of them was reported, provided that they are known to lead all the way from
//! the first to a host port and all switches have had the time to connect; otherwise as soon as unknown facts may contradict
//! them. The flow's next packet is flooded, and shows where its source is: nothing is lost. Few flows are deleted at once
//! ([`UNHEARD_AT_ONCE`]), so that few packets are flooded: a source that has been heard is known for all its flows.
//!
//! Thread-safety: none of its own.

use super::Flow;
use super::absence::ABSENCE;
use super::entry::{Entries, Entry};
use super::known::Known;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use urtica_topology::{PortId, Topology};
use urtica_wire::DatapathId;

/// How long a flow's entries that lead all the way to a host port stay if its source is not heard: as long as a host may
/// need that starts with an ARP request.
const UNHEARD: Duration = Duration::from_secs(2);

/// Number of flows with unheard sources that lose their entries at once, and the pause before the next ones.
pub(super) const UNHEARD_AT_ONCE: usize = 64;
const UNHEARD_PAUSE: Duration = Duration::from_millis(100);

/// The maximum number of entries kept per switch; those beyond are deleted.
const MAX_PER_SWITCH: usize = 16_384;

/// The entries by flow, as the switches have reported them.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    by_flow: BTreeMap<Flow, Record>,
    on_switch: BTreeMap<DatapathId, BTreeSet<Flow>>,
    /// When the next flows with unheard sources may lose their entries, if some just have.
    next_unheard: Option<Instant>,
}

#[derive(Debug)]
struct Record {
    entries: Entries,
    /// When the last switch reported one.
    told: Instant,
}

impl Inherited {
    /// A switch has reported an entry. Returns whether there is room for it.
    pub fn insert(&mut self, flow: Flow, at: DatapathId, entry: Entry, now: Instant) -> bool {
        let flows = self.on_switch.entry(at).or_default();
        if flows.len() >= MAX_PER_SWITCH && !flows.contains(&flow) {
            return false;
        }
        flows.insert(flow);
        let record = self.by_flow.entry(flow).or_insert_with(|| Record {
            entries: Entries::new(),
            told: now,
        });
        record.entries.insert(at, entry);
        record.told = now;
        true
    }

    /// Takes out the entries of a flow, which are the caller's responsibility from now on.
    pub fn take(&mut self, flow: &Flow) -> Option<Entries> {
        let record = self.by_flow.remove(flow)?;
        for at in record.entries.keys() {
            self.forget_on_switch(*at, flow);
        }
        Some(record.entries)
    }

    /// A switch no longer has the flow's entry. Returns it.
    pub fn remove(&mut self, flow: &Flow, at: DatapathId) -> Option<Entry> {
        let record = self.by_flow.get_mut(flow)?;
        let entry = record.entries.remove(&at)?;
        if record.entries.is_empty() {
            self.by_flow.remove(flow);
        }
        self.forget_on_switch(at, flow);
        Some(entry)
    }

    /// A switch has joined and reports its entries again, or will not come back.
    pub fn forget_switch(&mut self, at: DatapathId) {
        for flow in self.on_switch.get(&at).cloned().unwrap_or_default() {
            self.remove(&flow, at);
        }
    }

    fn forget_on_switch(&mut self, at: DatapathId, flow: &Flow) {
        if let Some(flows) = self.on_switch.get_mut(&at) {
            flows.remove(flow);
            if flows.is_empty() {
                self.on_switch.remove(&at);
            }
        }
    }

    /// Whether a flow has entries.
    pub fn contains(&self, flow: &Flow) -> bool {
        self.by_flow.contains_key(flow)
    }

    /// The flows.
    pub fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.by_flow.keys()
    }

    /// The switches that have reported entries.
    pub fn switches(&self) -> impl Iterator<Item = DatapathId> {
        self.on_switch.keys().copied()
    }

    /// When one has to be checked again at the latest.
    pub fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let records = self.by_flow.values();
        let due = records.flat_map(|record| [record.told + UNHEARD, record.told + ABSENCE]);
        due.chain(self.next_unheard).filter(|due| now < *due).min()
    }

    /// Some flows lose their entries because their source has not been heard.
    pub fn pause_unheard(&mut self, now: Instant) {
        self.next_unheard = Some(now + UNHEARD_PAUSE);
    }

    /// Whether a flow's entries have kept its unheard source from being heard for long enough.
    pub fn hides_source(&self, flow: &Flow, known: &Known) -> bool {
        self.next_unheard.is_none_or(|next| next <= known.now)
            && self.by_flow.get(flow).is_some_and(|record| {
                record.is_settled(known)
                    || record.told + UNHEARD <= known.now && record.leads_all_the_way(known)
            })
    }

    /// Whether anything contradicts a flow's entries, whose destination is at `to`, if that is known.
    pub fn is_wrong(&self, flow: &Flow, to: Option<PortId>, known: &Known) -> bool {
        let Some(record) = self.by_flow.get(flow) else {
            return false;
        };
        let is_settled = record.is_settled(known);
        let is_elsewhere = to.is_some_and(|to| record.misses(to, is_settled, known));
        is_elsewhere
            || record.leads_in_a_circle(known.topology())
            || record
                .hops()
                .any(|leaves| record.leads_nowhere(leaves, is_settled, known))
    }
}

impl Record {
    /// The ports that the entries output to.
    fn hops(&self) -> impl Iterator<Item = PortId> + '_ {
        let entries = self.entries.iter();
        entries.map(|(&at, entry)| PortId::new(at, entry.out_port))
    }

    /// Whether the entries do not lead to this port.
    fn misses(&self, to: PortId, is_settled: bool, known: &Known) -> bool {
        match self.entries.get(&to.switch) {
            Some(entry) => entry.out_port != to.port_no,
            None => is_settled || known.reported.contains(&to.switch),
        }
    }

    fn leads_nowhere(&self, leaves: PortId, is_settled: bool, known: &Known) -> bool {
        if !known.may_be_up(leaves) {
            return true;
        }
        let at = leaves.switch;
        match known.topology().link_from(leaves) {
            Some(link) => {
                let next = link.to.switch;
                let may_tell = !is_settled && !known.reported.contains(&next);
                !self.entries.contains_key(&next) && !may_tell
            }
            None => is_settled && !known.sees_switch(at) && !known.believes_switch(at),
        }
    }

    /// Whether unknown facts contradict it.
    fn is_settled(&self, known: &Known) -> bool {
        self.told + ABSENCE <= known.now
    }

    /// Whether the first entry exists, and each is known to lead to the next, or to a host port.
    fn leads_all_the_way(&self, known: &Known) -> bool {
        let has_first = self.entries.values().any(|entry| entry.tells);
        // Until then, a link port may look like a host port.
        known.all_are_back
            && has_first
            && self
                .hops()
                .all(|leaves| match known.topology().link_from(leaves) {
                    Some(link) => self.entries.contains_key(&link.to.switch),
                    None => (known.is_host_port)(leaves),
                })
    }

    fn leads_in_a_circle(&self, topology: &Topology) -> bool {
        let next = |at: &DatapathId| {
            let leaves = PortId::new(*at, self.entries.get(at)?.out_port);
            let next = topology.link_from(leaves)?.to.switch;
            self.entries.contains_key(&next).then_some(next)
        };
        self.entries.keys().any(|&start| {
            let way = std::iter::successors(Some(start), next);
            way.take(self.entries.len() + 1).count() > self.entries.len()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::absence::Absences;
    use super::*;
    use urtica_controller::Controller;
    use urtica_topology::{DirectedLink, NextHops};
    use urtica_wire::{MacAddr, PortNo};

    fn flow(src: u64) -> Flow {
        Flow {
            tag: None,
            src: MacAddr::from_u64(src),
            dst: MacAddr::from_u64(0x99),
        }
    }

    fn port(switch: u64, port_no: u32) -> PortId {
        PortId::new(DatapathId(switch), PortNo(port_no))
    }

    fn entry(out_port: u32) -> Entry {
        Entry {
            out_port: PortNo(out_port),
            tells: false,
        }
    }

    /// Whether anything speaks against these entries, as switch and port, on a ring of three whose second ports lead to the
    /// next switch and whose first to the one before; after so many times of [`ABSENCE`].
    fn is_wrong(
        entries: &[(u64, u32)],
        reported: &[u64],
        to: Option<PortId>,
        absences: u32,
    ) -> bool {
        is_right(entries, reported, ABSENCE * absences, |inherited, known| {
            inherited.is_wrong(&flow(1), to, known)
        })
    }

    /// Whether they hide their source for too long after this time. Third ports are hosts'.
    fn hides_source(entries: &[(u64, u32)], after: Duration) -> bool {
        is_right(entries, &[1, 2, 3], after, |inherited, known| {
            inherited.hides_source(&flow(1), known)
        })
    }

    fn is_right(
        entries: &[(u64, u32)],
        reported: &[u64],
        after: Duration,
        is_right: impl FnOnce(&mut Inherited, &Known) -> bool,
    ) -> bool {
        let start = Instant::now();
        let mut inherited = Inherited::default();
        for (switch, out_port) in entries {
            // Paths begin at the first switch.
            let entry = Entry {
                tells: *switch == 1,
                ..entry(*out_port)
            };
            assert!(inherited.insert(flow(1), DatapathId(*switch), entry, start));
        }
        let around = [(1, 2), (2, 3), (3, 1)];
        let links = around.map(|(a, b)| DirectedLink::new(port(a, 2), port(b, 1)));
        let both_ways = links.iter().flat_map(|link| [*link, link.reversed()]);
        let topology = Topology::new([1, 2, 3].map(DatapathId), both_ways);
        let controller = Controller::new()
            .program(|_: &urtica_controller::SwitchInfo| crate::Hub)
            .embed()
            .unwrap();
        let known = Known {
            network: controller.network(),
            next_hops: &NextHops::new(topology.into()),
            reported: &reported.iter().copied().map(DatapathId).collect(),
            absences: &Absences::default(),
            is_host_port: &|port| port.port_no == PortNo(3),
            all_are_back: after >= UNHEARD,
            now: start + after,
        };
        is_right(&mut inherited, &known)
    }

    #[test]
    fn entries_that_lead_all_the_way_hide_their_source_for_a_moment_and_others_while_switches_connect()
     {
        let whole = [(1, 2), (2, 2), (3, 3)];
        for (entries, most) in [
            (&whole[..], UNHEARD),
            (&whole[..2], ABSENCE),
            (&whole[1..], ABSENCE),
        ] {
            assert!(!hides_source(entries, most - Duration::from_millis(1)));
            assert!(hides_source(entries, most));
        }
    }

    #[test]
    fn flows_whose_sources_are_not_heard_take_turns() {
        is_right(&[(3, 3)], &[], ABSENCE, |inherited, known| {
            inherited.pause_unheard(known.now - UNHEARD_PAUSE);
            assert!(inherited.hides_source(&flow(1), known));
            inherited.pause_unheard(known.now);
            assert!(!inherited.hides_source(&flow(1), known));
            let next = inherited.next_timeout(known.now);
            assert_eq!(next, Some(known.now + UNHEARD_PAUSE));
            true
        });
    }

    #[test]
    fn entries_that_lead_to_the_host_stay() {
        let whole = [(1, 2), (2, 2), (3, 3)];
        for absences in [0, 1] {
            assert!(!is_wrong(&whole, &[1, 2, 3], Some(port(3, 3)), absences));
            assert!(!is_wrong(&whole, &[1, 2, 3], None, absences));
        }
    }

    #[test]
    fn entries_that_lead_elsewhere_do_not() {
        let whole = [(1, 2), (2, 2), (3, 3)];
        assert!(is_wrong(&whole, &[], Some(port(3, 4)), 0), "another port");
        assert!(
            is_wrong(&whole[..2], &[3], Some(port(3, 3)), 0),
            "it ends too early"
        );
        assert!(
            is_wrong(&[(1, 2), (2, 2), (3, 2)], &[], None, 0),
            "a circle"
        );
        assert!(is_wrong(&[(1, 2), (2, 1)], &[], None, 0), "to and fro");
    }

    #[test]
    fn unknown_hosts_are_tolerated_for_a_while() {
        let begun = [(1, 2), (2, 2)];
        assert!(!is_wrong(&begun, &[1, 2], Some(port(3, 3)), 0));
        assert!(is_wrong(&begun, &[1, 2], Some(port(3, 3)), 1));
        assert!(is_wrong(&begun, &[1, 2], None, 1));
        // A switch that is not there, nor its links.
        assert!(!is_wrong(&[(9, 1)], &[], None, 0));
        assert!(is_wrong(&[(9, 1)], &[], None, 1));
    }

    #[test]
    fn switches_are_drawn_within_their_space() {
        let (mut inherited, now) = (Inherited::default(), Instant::now());
        let (liar, honest) = (DatapathId(1), DatapathId(2));
        let taken = (0..20_000).filter(|&src| inherited.insert(flow(src), liar, entry(1), now));
        assert_eq!(taken.count(), MAX_PER_SWITCH);
        assert!(
            inherited.insert(flow(0), liar, entry(2), now),
            "it is known"
        );
        assert!(inherited.insert(flow(30_000), honest, entry(1), now));
        inherited.forget_switch(liar);
        assert!(inherited.flows().eq([&flow(30_000)]));
        assert_eq!(inherited.take(&flow(30_000)).unwrap().len(), 1);
        assert!(inherited.by_flow.is_empty() && inherited.on_switch.is_empty());
    }
}
