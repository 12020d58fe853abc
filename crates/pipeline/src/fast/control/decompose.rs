//! Cutting a table into pieces, each of which is searched in a better way than the whole (ESWITCH, SIGCOMM 2016, slide
//! 12: flow table decomposition).
//!
//! **What.** [`Cut::best`] says by what a table should be cut, if at all: by the value that packets have in one field,
//! under one mask. There is a piece for each value that some entry asks for, and the *rest* for all other packets.
//! [`Cut::side`] says to which pieces an entry belongs, [`Way::of`] how a piece is searched.
//!
//! **How.** Which cuts are best is NP-hard; so this is greedy. Masks that entries have in a field are tried, those first
//! that most entries have; each is given what a packet's search would cost on average, were there a packet for each
//! entry of each piece. The cheapest wins, if it costs three quarters of the uncut table at most. Pieces are cut again
//! in the same way, once.
//!
//! An entry that looks at less of the field than the cut does goes into every piece that it may match in, and into the
//! rest. It is not copied: pieces find the one cell of each entry. There are at most twice as many places as entries.
//!
//! **Cost.** A look at each entry for each of [`CANDIDATES_MAX`] cuts, some 100 ns each.

use super::cut::{Cut, Side, is_everything};
use super::planned::Planned;
use super::route::RouteTable;
use crate::fast::datapath::key::KeyShape;
use crate::fast::datapath::table::MAX_PARTS;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use urtica_wire::OxmField;

/// Tables with so many entries, or fewer, are compared one by one: a hash costs as much as some comparisons.
pub(super) const DIRECT_MAX: usize = 6;

/// A table whose entries look at fewer different sets of bits is not cut: a probe of each costs less.
pub(super) const PARTS_MIN: usize = 3;

/// How many pieces a cut may make.
pub(super) const PIECES_MAX: usize = 1024;

/// How often a piece may be cut, counted from the whole table.
const DEPTH_MAX: usize = 2;

/// Cuts into more pieces have none of direct code: each is a page of code, and a jump that the processor has to foresee.
const DIRECT_PIECES: usize = 32;

/// A piece of fewer routes is no trie: its root would be mostly empty.
const ROUTES_MIN: usize = 32;

/// Tables of few entries may have so many places in pieces, also where that is more than two for each entry.
const PLACES_MIN: usize = 256;

/// How many cuts are tried, and how many masks of one field.
const CANDIDATES_MAX: usize = 6;
const MASKS_MAX: usize = 2;

/// What a search costs, in tenths of the probe of one hash table. Measured by `cargo bench --bench pieces`, where a probe
/// takes 7 cycles.
mod costs {
    /// A probe.
    pub const PROBE: u64 = 10;
    /// A part that asks for headers which the packet has not.
    pub const SKIP: u64 = 2;
    /// A trie.
    pub const TRIE: u64 = 30;
    /// One comparison of direct code.
    pub const COMPARE: u64 = 2;
    /// A jump that the processor does not foresee: to the actions of one part or another, to one piece's code or another's.
    pub const SURPRISE: u64 = 25;
    /// The way to a piece; where that has other code than the one before, there is a surprise as well.
    pub const LEAD: u64 = 25;
}

/// What is out of reach: more parts than a body has.
const TOO_MANY: u64 = 10_000;

/// What is left of the cost, at most, where a cut pays: three quarters.
const PAYS: (u64, u64) = (3, 4);

/// How a piece is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    Direct,
    Lpm,
    Hash,
}

/// How many places of entries the pieces of a table with so many entries may have, all together.
pub(super) fn places_max(entries: usize) -> usize {
    (2 * entries).max(PLACES_MIN)
}

impl Cut {
    /// The best one for these entries, in their order, none of which matches everything. `before` are the cuts that tell
    /// something of all their packets; there have been `depth`. `None` where no cut pays.
    pub fn best(entries: &[&Planned], before: &[Self], depth: usize) -> Option<Self> {
        if depth == DEPTH_MAX {
            return None;
        }
        let subject = Subject::new(entries);
        if subject.shapes.len() < PARTS_MIN {
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

    /// What an average search costs in the whole and once it is cut, in tenths of a probe of a hash table, for these entries
    /// in their order, none of which matches everything; `None` in the place of the whole where that has too many sets of
    /// bits to be searched at all. `None` where the cut would not be made any more.
    pub fn costs(&self, entries: &[&Planned]) -> Option<(Option<u64>, u64)> {
        let subject = Subject::new(entries);
        let whole: Vec<_> = (0..entries.len()).collect();
        let uncut = subject.search(&whole, &[], false).cost;
        let cut = subject.cost_cut(*self, &[], 0)?;
        let is_searched = subject.shapes.len() <= MAX_PARTS;
        Some((is_searched.then(|| uncut.mean()), cut.mean()))
    }
}

impl Way {
    /// The way for the entries of a piece, in their order; `may_be_direct` as [`Way::may_be_direct`] says.
    pub fn of(entries: &[&Planned], cuts: &[Cut], may_be_direct: bool) -> Self {
        let subject = Subject::new(entries);
        let all: Vec<_> = (0..entries.len()).collect();
        subject.search(&all, cuts, may_be_direct).way
    }

    /// Whether pieces may be direct code, where there are so many, and so many cuts have led to them.
    pub fn may_be_direct(pieces: usize, depth: usize) -> bool {
        pieces <= DIRECT_PIECES && depth == 1
    }
}

/// Entries, and which look at the same bits.
struct Subject<'a> {
    entries: &'a [&'a Planned],
    /// The number of each entry's shape.
    shape_of: Vec<usize>,
    shapes: Vec<&'a KeyShape>,
}

/// Entries of one shape within a piece.
struct Tuple {
    shape: usize,
    entries: u64,
    highest: u16,
    lowest: u16,
}

/// How a piece is searched, and what that costs.
struct Search {
    way: Way,
    /// The same where the same code searches two pieces: for hash tables the shapes, for direct code the entries.
    code: Vec<usize>,
    cost: Cost,
}

/// What a search costs: the sum over so many places of entries.
#[derive(Clone, Copy, Debug)]
struct Cost {
    sum: u64,
    places: u64,
}

impl<'a> Subject<'a> {
    fn new(entries: &'a [&'a Planned]) -> Self {
        let mut numbers = HashMap::new();
        let mut shapes = Vec::new();
        let shape_of = entries.iter().map(|planned| {
            *numbers.entry(&planned.key.shape).or_insert_with(|| {
                shapes.push(&planned.key.shape);
                shapes.len() - 1
            })
        });
        Self {
            shape_of: shape_of.collect(),
            entries,
            shapes,
        }
    }

    /// The fields and masks that most entries look at; of a field, those with the most entries.
    fn candidates(&self) -> Vec<Cut> {
        let mut fields: BTreeMap<OxmField, BTreeMap<u128, usize>> = BTreeMap::new();
        let matches = self.entries.iter().map(|planned| &planned.entry.match_);
        for &(field, _, mask) in matches.flat_map(|match_| match_.fields()) {
            *fields.entry(field).or_default().entry(mask).or_default() += 1;
        }
        let mut cuts = Vec::new();
        for (field, masks) in fields {
            // An entry with a longer mask belongs to one piece as well.
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

    /// What the table costs once it is cut; `None` where the cut makes too many places or pieces, or only one.
    fn cost_cut(&self, cut: Cut, before: &[Cut], depth: usize) -> Option<Cost> {
        let (pieces, rest) = self.split(cut)?;
        let cuts = [before, &[cut]].concat();
        let may_be_direct = Way::may_be_direct(pieces.len(), depth + 1);
        let of_rest = self.search(&rest, before, may_be_direct).cost;
        let mut codes: BTreeMap<_, u64> = BTreeMap::new();
        let mut cost = of_rest;
        for piece in &pieces {
            let search = self.search(piece, &cuts, may_be_direct);
            *codes.entry((search.way, search.code)).or_default() += search.cost.places;
            cost = cost.and(search.cost);
        }
        Some(cost.plus(costs::LEAD).surprised(codes.into_values()))
    }

    /// The entries of each piece, and of the rest.
    fn split(&self, cut: Cut) -> Option<(Vec<Vec<usize>>, Vec<usize>)> {
        let mut pieces: BTreeMap<u128, Vec<usize>> = BTreeMap::new();
        let mut several = Vec::new();
        for (index, planned) in self.entries.iter().enumerate() {
            match cut.side(&planned.entry.match_) {
                Side::One(value) => pieces.entry(value).or_default().push(index),
                side => several.push((index, side)),
            }
        }
        if !(2..=PIECES_MAX).contains(&(pieces.len() + usize::from(!several.is_empty()))) {
            return None;
        }
        let mut places = self.entries.len();
        for &(index, side) in &several {
            let into = pieces.iter_mut().filter(|(value, _)| side.is_in(**value));
            for (_, piece) in into {
                piece.push(index);
                places += 1;
            }
            if places > places_max(self.entries.len()) {
                return None;
            }
        }
        let mut pieces: Vec<_> = pieces.into_values().collect();
        pieces.iter_mut().for_each(|piece| piece.sort_unstable());
        let rest = several.into_iter().map(|(index, _)| index);
        Some((pieces, rest.collect()))
    }

    /// How some of the entries are searched, in their order, if they are a piece.
    fn search(&self, piece: &[usize], cuts: &[Cut], may_be_direct: bool) -> Search {
        let everything = |index: &usize| {
            let planned = self.entries[*index];
            is_everything(&planned.entry.match_, &planned.key, cuts)
        };
        let reached = piece.iter().position(everything).unwrap_or(piece.len());
        let piece = &piece[..reached];
        let places = piece.len() as u64;
        let routes = || RouteTable::of(piece.iter().map(|&index| self.entries[index]), cuts);
        if piece.len() >= ROUTES_MIN && routes().is_some() {
            return Search {
                way: Way::Lpm,
                code: Vec::new(),
                cost: Cost::each(costs::TRIE, places),
            };
        }
        let tuples = self.tuples(piece);
        let hash = Cost {
            sum: self.probes(&tuples),
            places,
        };
        let compared = costs::SURPRISE + costs::COMPARE * (places + 1) / 2;
        let direct = Cost::each(compared, places);
        let may_be_direct = may_be_direct && piece.len() <= DIRECT_MAX;
        match piece.is_empty() || may_be_direct && direct.is_below(hash) {
            true => Search {
                way: Way::Direct,
                code: piece.to_vec(),
                cost: direct,
            },
            false => Search {
                way: Way::Hash,
                code: tuples.iter().map(|tuple| tuple.shape).collect(),
                cost: hash,
            },
        }
    }

    /// What a tuple space search costs, all entries together: as far as the part from which no later one can have a
    /// better entry.
    fn probes(&self, tuples: &[Tuple]) -> u64 {
        use costs::*;
        let places: u64 = tuples.iter().map(|tuple| tuple.entries).sum();
        if tuples.len() > MAX_PARTS {
            return TOO_MANY * places;
        }
        let is_final = |index: usize| {
            let next: Option<&Tuple> = tuples.get(index + 1);
            next.is_none_or(|next| next.highest < tuples[index].lowest)
        };
        let cost = |index: usize| {
            let end = (index..tuples.len()).find(|&index| is_final(index));
            let looked_at = &tuples[..=end.unwrap_or(index)];
            let require = self.shapes[tuples[index].shape].require;
            let probes = looked_at.iter().map(|tuple| {
                let other = self.shapes[tuple.shape].require;
                if require.go_with(other) { PROBE } else { SKIP }
            });
            probes.sum::<u64>() * tuples[index].entries
        };
        let surprise = if tuples.len() > 1 { SURPRISE } else { 0 };
        (0..tuples.len()).map(cost).sum::<u64>() + surprise * places
    }

    /// The entries of a piece by shape, in the order in which they are searched.
    fn tuples(&self, piece: &[usize]) -> Vec<Tuple> {
        let mut tuples: BTreeMap<usize, Tuple> = BTreeMap::new();
        for &index in piece {
            let (shape, priority) = (self.shape_of[index], self.entries[index].rank.priority());
            let tuple = tuples.entry(shape).or_insert(Tuple {
                shape,
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

impl Cost {
    fn each(cost: u64, places: u64) -> Self {
        Self {
            sum: cost * places,
            places,
        }
    }

    /// Both together.
    fn and(self, other: Self) -> Self {
        Self {
            sum: self.sum + other.sum,
            places: self.places + other.places,
        }
    }

    /// So much more for each place.
    fn plus(self, more: u64) -> Self {
        Self {
            sum: self.sum + more * self.places,
            ..self
        }
    }

    /// With a jump that is not foreseen where two packets that follow each other are searched for by different code; so
    /// many places has each piece of code.
    fn surprised(self, codes: impl Iterator<Item = u64>) -> Self {
        let squares: u64 = codes.map(|places| places * places).sum();
        let unforeseen = self.places - (squares / self.places.max(1)).min(self.places);
        Self {
            sum: self.sum + costs::SURPRISE * unforeseen,
            ..self
        }
    }

    /// Whether a search costs less.
    fn is_below(self, other: Self) -> bool {
        let [one, other] = self.compared(other);
        one < other
    }

    /// Whether so much less that it is worth a cut.
    fn pays(self, uncut: Self) -> bool {
        let [cut, uncut] = self.compared(uncut);
        cut * u128::from(PAYS.1) <= uncut * u128::from(PAYS.0)
    }

    fn mean(self) -> u64 {
        self.sum / self.places.max(1)
    }

    /// Both averages, times the same number.
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

    /// Entries from `ovs-ofctl`'s text, in their order.
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

    /// By what entries are cut.
    fn best(lines: &[String]) -> Option<(OxmField, u128)> {
        let planned = entries(lines);
        let cut = Cut::best(&planned.iter().collect::<Vec<_>>(), &[], 0)?;
        Some((cut.field, cut.mask))
    }

    /// Sources of eight lengths for each port, others for each.
    fn lists_of_ports(ports: u32) -> Vec<String> {
        let entry = |number: u32| {
            let (port, len) = (number / 8, 1 + (number + number / 8 * 5) % 31);
            format!("priority={len},in_port={port},ip,nw_src=128.0.0.0/{len},actions=drop")
        };
        (0..8 * ports).map(entry).collect()
    }

    #[test]
    fn the_field_that_tells_most_apart_is_cut_by() {
        let mut lines = lists_of_ports(6);
        assert_eq!(best(&lines), Some((OxmField::InPort, 0xffff_ffff)));
        assert_eq!(best(&lines[..8]), None, "one port alone");
        // What belongs into every piece is worth no more places than two for each entry.
        let all =
            (0..200).map(|number| format!("priority=9,arp,arp_tpa=10.0.0.{number},actions=drop"));
        lines.extend(all);
        assert_ne!(best(&lines), Some((OxmField::InPort, 0xffff_ffff)));
    }

    #[test]
    fn what_looks_at_few_sets_of_bits_is_not_cut() {
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
    fn an_entry_is_in_the_pieces_whose_packets_may_match() {
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
