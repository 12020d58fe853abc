//! Cutting a table into sub-tables that can be searched faster than the whole (ESWITCH, SIGCOMM 2016, slide 12: flow table
//! decomposition).
//!
//! **What.** [`Cut::best`] returns the best cut of a table, if any: by the value of one field under one mask. Each value that
//! an entry has gets a sub-table; all other packets use the *rest*. [`Cut::side`] returns an entry's sub-tables, and
//! [`Way::of`] the search of a sub-table.
//!
//! **How.** Finding the best cuts is NP-hard, so the algorithm is greedy. It tries the most common masks of each field, and
//! estimates the average cost of a search with one packet for each entry of each sub-table. The cheapest cut is used if it
//! costs at most three quarters of the uncut table. Sub-tables may be cut once more in the same way.
//!
//! An entry with fewer bits of the field than the cut is in every sub-table in which it may match, and in the rest. It is not
//! copied: all sub-tables refer to its only flow record. The number of slots is at most twice the number of entries.
//!
//! **Cost.** Each entry is inspected for each of [`CANDIDATES_MAX`] cuts, in about 100 ns each.

use super::cut::{Cut, Side, is_everything};
use super::planned::Planned;
use super::route::RouteTable;
use crate::fast::datapath::key::KeyMask;
use crate::fast::datapath::table::MAX_PARTS;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use urtica_wire::OxmField;

/// The maximum number of entries for direct code: a hash costs as much as some comparisons.
pub(super) const DIRECT_MAX: usize = 6;

/// The minimum number of different sets of bits for a cut: with fewer, it is cheaper to probe each.
pub(super) const PARTS_MIN: usize = 3;

/// The maximum number of sub-tables of a cut.
pub(super) const SUB_TABLES_MAX: usize = 1024;

/// The maximum number of nested cuts, counted from the whole table.
const DEPTH_MAX: usize = 2;

/// The maximum number of sub-tables with direct code: each needs a page of code, and a jump that must be predicted.
const DIRECT_SUB_TABLES: usize = 32;

/// The minimum number of routes in a sub-table for a trie, whose root would otherwise be mostly empty.
const ROUTES_MIN: usize = 32;

/// The number of slots in sub-tables that is always allowed, even beyond two per entry.
const PLACES_MIN: usize = 256;

/// The maximum number of cuts to try, and of masks of one field.
const CANDIDATES_MAX: usize = 6;
const MASKS_MAX: usize = 2;

/// The costs of a search, in tenths of a probe of a hash table. Measured by `cargo bench --bench decomposition`, where a
/// probe needs 7 cycles.
mod costs {
    /// A probe.
    pub const PROBE: u64 = 10;
    /// Skipping a part, because the packet does not have its headers.
    pub const SKIP: u64 = 2;
    /// A search in a trie.
    pub const TRIE: u64 = 30;
    /// A comparison in direct code.
    pub const COMPARE: u64 = 2;
    /// A mispredicted jump: to the actions of one part or another, or to the code of one sub-table or another.
    pub const SURPRISE: u64 = 25;
    /// A probe of a merged tuple, with its preparation.
    pub const TUPLE: u64 = 20;
    /// Calling the search of merged tuples, and comparing some candidates.
    pub const MERGED: u64 = 60;
    /// Finding a sub-table. A misprediction is added if its code differs from that of the previous packet's sub-table.
    pub const LEAD: u64 = 25;
}

/// A cut is worthwhile if the cost is at most this share of the uncut table's: three quarters.
const PAYS: (u64, u64) = (3, 4);

/// How a sub-table is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    Direct,
    Lpm,
    Hash,
    Merged,
}

/// Returns the maximum number of slots in all sub-tables of a table with `entries` entries.
pub(super) fn places_max(entries: usize) -> usize {
    (2 * entries).max(PLACES_MIN)
}

impl Cut {
    /// Returns the best cut for these ordered entries, none of which matches everything. `before` are the earlier cuts that
    /// apply to all their packets, of `depth` cuts in total. `None` if no cut is worthwhile.
    pub fn best(entries: &[&Planned], before: &[Self], depth: usize) -> Option<Self> {
        if depth == DEPTH_MAX {
            return None;
        }
        let subject = Subject::new(entries);
        if subject.masks.len() < PARTS_MIN {
            return None;
        }
        let whole: Vec<_> = (0..entries.len()).collect();
        let uncut = subject.search(&whole, before, false).cost;
        let candidates = subject.candidates().into_iter();
        let costs = candidates
            .filter(|cut| !before.contains(cut))
            .filter_map(|cut| Some((subject.cost_cut(cut, before, depth)?, cut)));
        let (cost, cut) = costs.reduce(|best, next| match next.0.is_below(best.0) {
            true => next,
            false => best,
        })?;
        cost.pays(uncut).then_some(cut)
    }

    /// Returns the average costs of a search in the whole table and after the cut, in tenths of a probe of a hash table, for
    /// these ordered entries, none of which matches everything. `None` if the cut would not be made now.
    pub fn costs(&self, entries: &[&Planned]) -> Option<(u64, u64)> {
        let subject = Subject::new(entries);
        let whole: Vec<_> = (0..entries.len()).collect();
        let uncut = subject.search(&whole, &[], false).cost;
        let cut = subject.cost_cut(*self, &[], 0)?;
        Some((uncut.mean(), cut.mean()))
    }
}

impl Way {
    /// Returns how to search the ordered entries of a sub-table; `may_be_direct` is as in [`Way::may_be_direct`].
    pub fn of(entries: &[&Planned], cuts: &[Cut], may_be_direct: bool) -> Self {
        let subject = Subject::new(entries);
        let all: Vec<_> = (0..entries.len()).collect();
        subject.search(&all, cuts, may_be_direct).way
    }

    /// Returns `true` if `sub_tables` sub-tables may be direct code after `depth` cuts.
    pub fn may_be_direct(sub_tables: usize, depth: usize) -> bool {
        sub_tables <= DIRECT_SUB_TABLES && depth == 1
    }
}

/// Entries, grouped by their sets of bits.
struct Subject<'a> {
    entries: &'a [&'a Planned],
    /// The index of each entry's key mask.
    mask_of: Vec<usize>,
    masks: Vec<&'a KeyMask>,
}

/// The entries with one key mask within a sub-table.
struct Tuple {
    mask: usize,
    entries: u64,
    highest: u16,
    lowest: u16,
}

/// How a sub-table is searched, and the cost.
struct Search {
    way: Way,
    /// Identifies the code, which sub-tables with equal values share: the key masks for hash tables, the entries for direct code.
    code: Vec<usize>,
    cost: Cost,
}

/// The cost of searches, as a sum over a number of slots.
#[derive(Clone, Copy, Debug)]
struct Cost {
    sum: u64,
    places: u64,
}

impl<'a> Subject<'a> {
    fn new(entries: &'a [&'a Planned]) -> Self {
        let mut numbers = HashMap::new();
        let mut masks = Vec::new();
        let mask_of = entries.iter().map(|planned| {
            *numbers.entry(&planned.key.mask).or_insert_with(|| {
                masks.push(&planned.key.mask);
                masks.len() - 1
            })
        });
        Self {
            mask_of: mask_of.collect(),
            entries,
            masks,
        }
    }

    /// Returns the most common fields and masks of the entries.
    fn candidates(&self) -> Vec<Cut> {
        let mut fields: BTreeMap<OxmField, BTreeMap<u128, usize>> = BTreeMap::new();
        let matches = self.entries.iter().map(|planned| &planned.entry.match_);
        for &(field, _, mask) in matches.flat_map(|match_| match_.fields()) {
            *fields.entry(field).or_default().entry(mask).or_default() += 1;
        }
        let mut cuts = Vec::new();
        for (field, masks) in fields {
            // An entry with a longer mask also belongs to only one sub-table.
            let within = |mask: u128| {
                let longer = masks.iter().filter(move |(other, _)| mask & !**other == 0);
                longer.map(|(_, count)| count).sum::<usize>()
            };
            let mut masks: Vec<_> = masks.keys().map(|&mask| (within(mask), mask)).collect();
            masks.sort_unstable_by_key(|&(count, mask)| Reverse((count, mask.count_ones(), mask)));
            let best = masks.into_iter().take(MASKS_MAX);
            cuts.extend(best.filter_map(|(count, mask)| Some((count, Cut::new(field, mask)?))));
        }
        cuts.sort_by_key(|&(count, _)| Reverse(count));
        cuts.truncate(CANDIDATES_MAX);
        cuts.into_iter().map(|(_, cut)| cut).collect()
    }

    /// Returns the cost of the table after the cut; `None` if it makes too many slots or sub-tables, or only one.
    fn cost_cut(&self, cut: Cut, before: &[Cut], depth: usize) -> Option<Cost> {
        let (sub_tables, rest) = self.split(cut)?;
        let cuts = [before, &[cut]].concat();
        let may_be_direct = Way::may_be_direct(sub_tables.len(), depth + 1);
        let of_rest = self.search(&rest, before, may_be_direct).cost;
        let mut codes: BTreeMap<_, u64> = BTreeMap::new();
        let mut cost = of_rest;
        for sub_table in &sub_tables {
            let search = self.search(sub_table, &cuts, may_be_direct);
            *codes.entry((search.way, search.code)).or_default() += search.cost.places;
            cost = cost.and(search.cost);
        }
        Some(cost.plus(costs::LEAD).surprised(codes.into_values()))
    }

    /// Returns the entries of each sub-table, and of the rest.
    fn split(&self, cut: Cut) -> Option<(Vec<Vec<usize>>, Vec<usize>)> {
        let mut sub_tables: BTreeMap<u128, Vec<usize>> = BTreeMap::new();
        let mut several = Vec::new();
        for (index, planned) in self.entries.iter().enumerate() {
            match cut.side(&planned.entry.match_) {
                Side::One(value) => sub_tables.entry(value).or_default().push(index),
                side => several.push((index, side)),
            }
        }
        if !(2..=SUB_TABLES_MAX).contains(&(sub_tables.len() + usize::from(!several.is_empty()))) {
            return None;
        }
        let mut places = self.entries.len();
        for &(index, side) in &several {
            let into = sub_tables
                .iter_mut()
                .filter(|(value, _)| side.is_in(**value));
            for (_, sub_table) in into {
                sub_table.push(index);
                places += 1;
            }
            if places > places_max(self.entries.len()) {
                return None;
            }
        }
        let mut sub_tables: Vec<_> = sub_tables.into_values().collect();
        sub_tables
            .iter_mut()
            .for_each(|sub_table| sub_table.sort_unstable());
        let rest = several.into_iter().map(|(index, _)| index);
        Some((sub_tables, rest.collect()))
    }

    /// Returns how these ordered entries are searched as a sub-table.
    fn search(&self, sub_table: &[usize], cuts: &[Cut], may_be_direct: bool) -> Search {
        let everything = |index: &usize| {
            let planned = self.entries[*index];
            is_everything(&planned.entry.match_, &planned.key, cuts)
        };
        let reached = sub_table
            .iter()
            .position(everything)
            .unwrap_or(sub_table.len());
        let sub_table = &sub_table[..reached];
        let places = sub_table.len() as u64;
        let routes = || {
            let entries = sub_table.iter().map(|&index| self.entries[index]);
            RouteTable::of_compact(entries, cuts)
        };
        if sub_table.len() >= ROUTES_MIN && routes().is_some() {
            return Search {
                way: Way::Lpm,
                code: Vec::new(),
                cost: Cost::each(costs::TRIE, places),
            };
        }
        let tuples = self.tuples(sub_table);
        let hash = Cost {
            sum: self.probes(&tuples),
            places,
        };
        let compared = costs::SURPRISE + costs::COMPARE * (places + 1) / 2;
        let direct = Cost::each(compared, places);
        let may_be_direct = may_be_direct && sub_table.len() <= DIRECT_MAX;
        if sub_table.is_empty() || may_be_direct && direct.is_below(hash) {
            return Search {
                way: Way::Direct,
                code: sub_table.to_vec(),
                cost: direct,
            };
        }
        match tuples.len() > MAX_PARTS {
            true => Search {
                way: Way::Merged,
                code: Vec::new(),
                cost: hash,
            },
            false => Search {
                way: Way::Hash,
                code: tuples.iter().map(|tuple| tuple.mask).collect(),
                cost: hash,
            },
        }
    }

    /// Returns the cost of a tuple space search for all entries. A search ends at the part after which no entry can be better.
    fn probes(&self, tuples: &[Tuple]) -> u64 {
        use costs::*;
        let places: u64 = tuples.iter().map(|tuple| tuple.entries).sum();
        if tuples.len() > MAX_PARTS {
            return (MERGED + TUPLE * merged_tuples(tuples.len())) * places;
        }
        let is_final = |index: usize| {
            let next: Option<&Tuple> = tuples.get(index + 1);
            next.is_none_or(|next| next.highest < tuples[index].lowest)
        };
        let cost = |index: usize| {
            let end = (index..tuples.len()).find(|&index| is_final(index));
            let looked_at = &tuples[..=end.unwrap_or(index)];
            let require = self.masks[tuples[index].mask].require;
            let probes = looked_at.iter().map(|tuple| {
                let other = self.masks[tuple.mask].require;
                if require.go_with(other) { PROBE } else { SKIP }
            });
            probes.sum::<u64>() * tuples[index].entries
        };
        let surprise = if tuples.len() > 1 { SURPRISE } else { 0 };
        (0..tuples.len()).map(cost).sum::<u64>() + surprise * places
    }

    /// Returns the entries of a sub-table by key mask, in the order of the search.
    fn tuples(&self, sub_table: &[usize]) -> Vec<Tuple> {
        let mut tuples: BTreeMap<usize, Tuple> = BTreeMap::new();
        for &index in sub_table {
            let (mask, priority) = (self.mask_of[index], self.entries[index].rank.priority());
            let tuple = tuples.entry(mask).or_insert(Tuple {
                mask,
                entries: 0,
                highest: priority,
                lowest: priority,
            });
            tuple.entries += 1;
            tuple.lowest = tuple.lowest.min(priority);
        }
        let mut tuples: Vec<_> = tuples.into_values().collect();
        tuples.sort_by_key(|tuple| Reverse(tuple.highest));
        tuples
    }
}

/// Estimates the number of merged tuples, from the rule sets of ClassBench.
fn merged_tuples(tuples: usize) -> u64 {
    8 + tuples.isqrt() as u64
}

impl Cost {
    fn each(cost: u64, places: u64) -> Self {
        Self {
            sum: cost * places,
            places,
        }
    }

    /// Returns the sum of both.
    fn and(self, other: Self) -> Self {
        Self {
            sum: self.sum + other.sum,
            places: self.places + other.places,
        }
    }

    /// Adds the cost `more` for each slot.
    fn plus(self, more: u64) -> Self {
        Self {
            sum: self.sum + more * self.places,
            ..self
        }
    }

    /// Adds mispredicted jumps for consecutive packets with different code; `codes` are the numbers of slots of each code.
    fn surprised(self, codes: impl Iterator<Item = u64>) -> Self {
        let squares: u64 = codes.map(|places| places * places).sum();
        let unforeseen = self.places - (squares / self.places.max(1)).min(self.places);
        Self {
            sum: self.sum + costs::SURPRISE * unforeseen,
            ..self
        }
    }

    /// Returns `true` if this cost is lower.
    fn is_below(self, other: Self) -> bool {
        let [one, other] = self.compared(other);
        one < other
    }

    /// Returns whether this cost is sufficiently lower to justify a cut.
    fn pays(self, uncut: Self) -> bool {
        let [cut, uncut] = self.compared(uncut);
        cut * u128::from(PAYS.1) <= uncut * u128::from(PAYS.0)
    }

    fn mean(self) -> u64 {
        self.sum / self.places.max(1)
    }

    /// Returns both averages, scaled by one factor.
    fn compared(self, other: Self) -> [u128; 2] {
        let times = |one: u64, other: u64| u128::from(one) * u128::from(other);
        [times(self.sum, other.places), times(other.sum, self.places)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::control::match_key::Key;
    use crate::{Pipeline, PipelineConfig};
    use std::time::Duration;
    use urtica_wire::{FlowMod, FlowModCommand};

    /// Creates ordered entries from `ovs-ofctl`'s text.
    fn entries(lines: &[String]) -> Vec<Planned> {
        let mut pipeline = Pipeline::new(PipelineConfig::default());
        for line in lines {
            let flow_mod = FlowMod::parse(FlowModCommand::Add, line).expect(line);
            let added = pipeline.flow_mod(&flow_mod, Duration::ZERO, &mut Vec::new());
            added.expect(line);
        }
        let ranked = pipeline.tables()[0].ranked();
        let planned = ranked.map(|(rank, entry)| Planned {
            rank,
            entry: entry.clone(),
            key: Key::new(&entry.match_).expect("fields with places"),
        });
        planned.collect()
    }

    /// Returns the best cut of entries.
    fn best(lines: &[String]) -> Option<(OxmField, u128)> {
        let planned = entries(lines);
        let cut = Cut::best(&planned.iter().collect::<Vec<_>>(), &[], 0)?;
        Some((cut.field, cut.mask))
    }

    /// Sources of eight lengths for each port, different for each.
    fn lists_of_ports(ports: u32) -> Vec<String> {
        let entry = |number: u32| {
            let (port, len) = (number / 8, 1 + (number + number / 8 * 5) % 31);
            format!("priority={len},in_port={port},ip,nw_src=128.0.0.0/{len},actions=drop")
        };
        (0..8 * ports).map(entry).collect()
    }

    #[test]
    fn the_cut_uses_the_most_selective_field() {
        let mut lines = lists_of_ports(6);
        assert_eq!(best(&lines), Some((OxmField::InPort, 0xffff_ffff)));
        assert_eq!(best(&lines[..8]), None, "one port alone");
        // Entries that are in every sub-table do not justify more than two slots per entry.
        let all =
            (0..200).map(|number| format!("priority=9,arp,arp_tpa=10.0.0.{number},actions=drop"));
        lines.extend(all);
        assert_ne!(best(&lines), Some((OxmField::InPort, 0xffff_ffff)));
    }

    #[test]
    fn tables_with_few_sets_of_bits_are_not_cut() {
        let entry = |number| {
            format!(
                "in_port={},dl_dst={number:02x}:00:00:00:00:00,actions=drop",
                number % 4
            )
        };
        let lines: Vec<_> = (0..100).map(entry).collect();
        assert_eq!(best(&lines), None);
    }

    #[test]
    fn an_entry_is_in_all_sub_tables_it_may_match() {
        let cut = Cut::new(OxmField::Ipv4Dst, 0xffff_0000).expect("a field with a place");
        let side = |line: &str| {
            let planned = entries(&[line.to_owned()]);
            cut.side(&planned[0].entry.match_)
        };
        let network = 0x0a01_0000;
        assert_eq!(side("ip,nw_dst=10.1.2.3,actions=drop"), Side::One(network));
        assert_eq!(
            side("ip,nw_dst=10.1.0.0/16,actions=drop"),
            Side::One(network)
        );
        for (line, is_in) in [
            ("ip,nw_dst=10.0.0.0/8,actions=drop", true),
            ("ip,nw_dst=11.0.0.0/8,actions=drop", false),
            ("ip,nw_dst=0.0.7.0/0.0.255.0,actions=drop", true),
            ("ip,nw_src=11.0.0.0/8,actions=drop", true),
            ("arp,actions=drop", true),
        ] {
            assert!(matches!(side(line), Side::Several { .. }), "{line}");
            assert_eq!(side(line).is_in(network), is_in, "{line}");
        }
        assert_eq!(Cut::new(OxmField::EthType, 0xffff), None);
    }
}
