//! Routes: entries that are prefixes of one address, so that the longest matching prefix is always the right entry.

use super::cut::Cut;
use super::planned::Planned;
use crate::EntryMatch;
use crate::fast::datapath::key::{Base, Word};
use crate::fast::datapath::kinds::{Depth, Kinds};
use crate::fast::datapath::table::LpmPart;
use crate::fast::memory::lpm::{NODES_SPARE, Prefix};
use std::collections::{BTreeMap, HashSet};
use urtica_wire::OxmField;

/// An entry's match, if it is a prefix of one address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    /// `None` for a route that only requires a version of IP: a prefix of length 0 for any address.
    field: Option<OxmField>,
    require: Kinds,
    bits: u128,
    pub len: u32,
}

/// The common properties of a table's routes.
#[derive(Debug, Default)]
pub(super) struct RouteTable {
    field: Option<OxmField>,
    require: Kinds,
    /// The priority of each length, and the number of routes with it.
    lengths: BTreeMap<u32, (u16, usize)>,
}

/// The reason why a search for the longest prefix cannot include a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrefixObstacle {
    /// It is a prefix of another address.
    Address,
    /// Its priority differs from that of its length, or is not between those of the next lengths.
    Priority,
}

impl Route {
    /// Returns the prefix that a match is; `None` if it is not one.
    pub fn new(match_: &EntryMatch, require: Kinds) -> Option<Self> {
        Self::within(match_, require, &[])
    }

    /// Creates the route of an entry in a sub-table, whose packets all match the cuts.
    pub fn within(match_: &EntryMatch, require: Kinds, cuts: &[Cut]) -> Option<Self> {
        use OxmField::*;
        let mut fields = match_.fields().iter().filter(|(field, _, mask)| {
            *field != EthType && !cuts.iter().any(|cut| cut.implies(*field, *mask))
        });
        let (field, value, mask) = match fields.next() {
            Some(&(field, value, mask)) => (Some(field), value, mask),
            None => (None, 0, 0),
        };
        let is_alone = fields.next().is_none();
        let width = match field {
            Some(Ipv4Src | Ipv4Dst) => 32,
            Some(Ipv6Src | Ipv6Dst) => 128,
            None if require == Kinds::IPV4 || require == Kinds::IPV6 => 128,
            _ => return None,
        };
        let mask = mask << (128 - width);
        let is_prefix = mask.leading_ones() == mask.count_ones();
        (is_alone && is_prefix).then_some(Self {
            field,
            require,
            bits: value << (128 - width),
            len: mask.count_ones(),
        })
    }

    /// Converts it for the trie.
    pub fn prefix(&self) -> Prefix {
        Prefix::new(&self.bits.to_be_bytes(), self.len)
    }
}

impl RouteTable {
    /// Returns the common properties of these entries, if they are routes with different prefixes that a trie can search. They
    /// are all entries of a table, or of a sub-table after these cuts.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Planned>, cuts: &[Cut]) -> Option<Self> {
        let mut table = Self::default();
        let mut known = HashSet::new();
        for planned in entries {
            let require = planned.key.mask.require;
            let route = Route::within(&planned.entry.match_, require, cuts)?;
            // In a sub-table, two entries may have equal prefixes.
            let is_new = cuts.is_empty() || known.insert((route.bits, route.len));
            if !is_new || !table.add(&route, planned.rank.priority()) {
                return None;
            }
        }
        (table.field.is_some() && table.lengths.len() > 1).then_some(table)
    }

    /// Like `of`, if their trie needs at most two nodes per route, plus some. A trie of whole IPv6 addresses may need 14 per
    /// route.
    pub fn of_compact<'a>(
        entries: impl Iterator<Item = &'a Planned> + Clone,
        cuts: &[Cut],
    ) -> Option<Self> {
        let table = Self::of(entries.clone(), cuts)?;
        let nodes_max = NODES_SPARE + 2 * entries.clone().count();
        let mut nodes = HashSet::new();
        for planned in entries {
            let require = planned.key.mask.require;
            let route = Route::within(&planned.entry.match_, require, cuts)?;
            nodes.extend(route.prefix().nodes());
            if nodes.len() > nodes_max {
                return None;
            }
        }
        Some(table)
    }

    /// Adds a route; returns `false` if the longest prefix would then no longer have the highest priority.
    pub fn add(&mut self, route: &Route, priority: u16) -> bool {
        let fits = self.obstacle(route, priority).is_none();
        if fits {
            self.count(route, priority);
        }
        fits
    }

    /// Returns the reason why this route cannot be searched with the others, if any.
    pub fn obstacle(&self, route: &Route, priority: u16) -> Option<PrefixObstacle> {
        let is_first = self.lengths.is_empty();
        let is_like = self.field.is_none() || route.field.is_none() || self.field == route.field;
        if !(is_first || is_like && self.require == route.require) {
            return Some(PrefixObstacle::Address);
        }
        let shorter = self.lengths.range(..route.len).next_back();
        let longer = self.lengths.range(route.len + 1..).next();
        let is_in_order = shorter.is_none_or(|(_, &(other, _))| other < priority)
            && longer.is_none_or(|(_, &(other, _))| other > priority);
        let same = self.lengths.get(&route.len).map(|&(other, _)| other);
        let fits = is_in_order && same.is_none_or(|other| other == priority);
        (!fits).then_some(PrefixObstacle::Priority)
    }

    /// Adds a route that has no obstacle.
    pub fn count(&mut self, route: &Route, priority: u16) {
        self.lengths.entry(route.len).or_insert((priority, 0)).1 += 1;
        self.field = self.field.or(route.field);
        self.require = route.require;
    }

    /// Removes a route.
    pub fn remove(&mut self, route: &Route) {
        if let Some((_, count)) = self.lengths.get_mut(&route.len) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&route.len);
            }
        }
    }

    /// Returns the parameters of the search for machine code.
    pub fn part(&self, root_bits: u8, room: usize, is_far: bool) -> LpmPart {
        let (at, len) = match self.field {
            Some(OxmField::Ipv4Src) => (12, 4),
            Some(OxmField::Ipv6Src) => (8, 16),
            Some(OxmField::Ipv6Dst) => (24, 16),
            _ => (16, 4),
        };
        LpmPart {
            require: self.require,
            depth: Depth::Network,
            field: Word {
                base: Base::Network,
                at,
                mask: 0,
            },
            len,
            root_bits,
            room,
            is_far,
        }
    }

    /// Returns the size of its keys, in bytes.
    pub fn key_bytes(&self) -> usize {
        self.part(0, 0, false).len.into()
    }
}
