//! Entries of an earlier run of the controller.
//!
//! **Why they stay.** While no controller was connected, packets followed these entries. A controller that deletes them at
//! its start stops working traffic until all hosts and links have been found again. So they stay unless something
//! contradicts them, and become a flow's path as soon as both its hosts are known.
//!
//! **Contradictions.** An entry outputs to a port that is down, or to a switch that has no entry for the flow; entries form
//! a loop; the flow's destination is known to be at another port. While switches are still connecting (for [`ABSENCE`]
//! after the last reported entry), unknown facts are no contradictions.
//!
//! **Why they do not stay for ever.** The controller does not receive their flow's packets, so it cannot learn the port of
//! the source; if the source has moved, replies are still forwarded to its old port. So a flow's entries are deleted if its
//! source is unknown [`UNHEARD`] after the last of them was reported, provided that they lead all the way from the first
//! switch to a host port and all switches have had the time to connect; otherwise as soon as unknown facts are
//! contradictions. The flow's next packet is flooded, and reveals the source: no packet is lost. Few flows are deleted at
//! once ([`UNHEARD_AT_ONCE`]), so that few packets are flooded: one packet of a source makes it known for all its flows.
//!
//! Thread-safety: the owner's lock guards the record.

use super::Flow;
use super::absence::ABSENCE;
use super::entry::{Entries, Entry};
use super::known::Known;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use urtica_topology::{PortId, Topology};
use urtica_wire::DatapathId;

/// The time for which a flow's entries that lead all the way to a host port stay if its source is unknown: long enough for
/// a host that starts with an ARP request.
const UNHEARD: Duration = Duration::from_secs(2);

/// The number of flows with unknown sources that lose their entries at once, and the pause before the next ones.
pub(super) const UNHEARD_AT_ONCE: usize = 64;
const UNHEARD_PAUSE: Duration = Duration::from_millis(100);

/// The maximum number of entries kept per switch; further ones are deleted.
const MAX_PER_SWITCH: usize = 16_384;

/// The inherited entries by flow, from the switches' reports.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    by_flow: BTreeMap<Flow, Record>,
    on_switch: BTreeMap<DatapathId, BTreeSet<Flow>>,
    /// The time when the next flows with unknown sources may lose their entries; `None` before the first.
    next_unheard: Option<Instant>,
}

#[derive(Debug)]
struct Record {
    entries: Entries,
    /// The time of the last report of an entry.
    told: Instant,
}

impl Inherited {
    /// Adds an entry that a switch has reported. Returns `false` if the switch has too many.
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

    /// Removes and returns the entries of a flow, for which the caller is now responsible.
    pub fn take(&mut self, flow: &Flow) -> Option<Entries> {
        let record = self.by_flow.remove(flow)?;
        for at in record.entries.keys() {
            self.forget_on_switch(*at, flow);
        }
        Some(record.entries)
    }

    /// Removes and returns the flow's entry at a switch, which no longer has it.
    pub fn remove(&mut self, flow: &Flow, at: DatapathId) -> Option<Entry> {
        let record = self.by_flow.get_mut(flow)?;
        let entry = record.entries.remove(&at)?;
        if record.entries.is_empty() {
            self.by_flow.remove(flow);
        }
        self.forget_on_switch(at, flow);
        Some(entry)
    }

    /// Removes the entries at a switch, which reports them again, or will not return.
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

    /// Returns `true` if a flow has entries.
    pub fn contains(&self, flow: &Flow) -> bool {
        self.by_flow.contains_key(flow)
    }

    /// Iterates over the flows.
    pub fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.by_flow.keys()
    }

    /// Iterates over the switches that have reported entries.
    pub fn switches(&self) -> impl Iterator<Item = DatapathId> {
        self.on_switch.keys().copied()
    }

    /// Returns the time when entries must be checked again.
    pub fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let records = self.by_flow.values();
        let due = records.flat_map(|record| [record.told + UNHEARD, record.told + ABSENCE]);
        due.chain(self.next_unheard).filter(|due| now < *due).min()
    }

    /// Starts the pause after some flows have lost their entries because their source is unknown.
    pub fn pause_unheard(&mut self, now: Instant) {
        self.next_unheard = Some(now + UNHEARD_PAUSE);
    }

    /// Returns `true` if a flow's entries have hidden its unknown source for too long.
    pub fn hides_source(&self, flow: &Flow, known: &Known) -> bool {
        self.next_unheard.is_none_or(|next| next <= known.now)
            && self.by_flow.get(flow).is_some_and(|record| {
                record.is_settled(known)
                    || record.told + UNHEARD <= known.now && record.leads_all_the_way(known)
            })
    }

    /// Returns `true` if something contradicts a flow's entries. `to` is the port of the destination, if known.
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
    /// Iterates over the ports to which the entries output.
    fn hops(&self) -> impl Iterator<Item = PortId> + '_ {
        let entries = self.entries.iter();
        entries.map(|(&at, entry)| PortId::new(at, entry.out_port))
    }

    /// Returns `true` if the entries do not lead to this port.
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

    /// Returns `true` if unknown facts are contradictions.
    fn is_settled(&self, known: &Known) -> bool {
        self.told + ABSENCE <= known.now
    }

    /// Returns `true` if the first entry exists, and each is known to lead to the next, or to a host port.
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

    /// Returns `true` if something contradicts these entries (switch and port) after some [`ABSENCE`]s, in a ring of three
    /// switches whose second ports lead to the next switch and whose first ports lead to the previous one.
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

    /// Returns `true` if the entries have hidden their source for too long after this time. Third ports are host ports.
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
            // Paths start at the first switch.
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
    fn complete_paths_hide_their_source_briefly_and_others_while_switches_connect() {
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
    fn flows_with_unknown_sources_are_deleted_in_batches() {
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
    fn entries_that_miss_the_host_are_wrong() {
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
    fn unknown_facts_are_tolerated_for_a_while() {
        let begun = [(1, 2), (2, 2)];
        assert!(!is_wrong(&begun, &[1, 2], Some(port(3, 3)), 0));
        assert!(is_wrong(&begun, &[1, 2], Some(port(3, 3)), 1));
        assert!(is_wrong(&begun, &[1, 2], None, 1));
        // Neither the switch nor its links are connected.
        assert!(!is_wrong(&[(9, 1)], &[], None, 0));
        assert!(is_wrong(&[(9, 1)], &[], None, 1));
    }

    #[test]
    fn each_switch_has_a_maximum_of_entries() {
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
