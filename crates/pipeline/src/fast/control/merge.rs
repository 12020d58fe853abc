//! Sharing hash tables, for tables with too many sets of bits to probe them one by one (TupleMerge: Daly, Bruschi,
//! Linguaglossa, Pontarelli, Rossi, Tollet, Torng and Yourtchenko, IEEE/ACM Transactions on Networking 27, 2019).
//!
//! **What.** [`merge`] assigns each entry to a *tuple*: a hash table by bits that all of its entries have, while each may have
//! further bits. Entries with equal keys form a chain, which is searched linearly.
//!
//! **How.** Greedy: the first [`Shape`] is the one that fits the most entries with at most [`CHAIN_MAX`] in a chain; the next
//! fits the most remaining entries, and so on. Candidates are the entries' shapes, with prefixes shortened and fields
//! omitted. After [`GREEDY_MAX`] tuples, the remaining entries get a tuple for each of their shapes.
//!
//! **Cost.** Choosing shapes needs some milliseconds per tuple, regardless of the number of entries, since it uses a sample.
//! Assigning entries needs a hash per entry and tuple.

use super::match_key::Key;
use super::planned::Planned;
use crate::EntryMatch;
use crate::fast::datapath::key::Word;
use crate::fast::datapath::kinds::Kinds;
use crate::fast::memory::hash_table::hash;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use urtica_wire::OxmField;

/// The maximum number of entries in a chain that have more bits than the shape.
pub(super) const CHAIN_MAX: usize = 8;

/// The number of tuples after which only entries with equal masks share a tuple.
const GREEDY_MAX: usize = 64;

/// The number of masks from which shapes are derived; the most common ones are used.
const GROUPS_MAX: usize = 24;

/// The number of sampled entries for comparing all shapes, and then the best ones.
const SAMPLES: (usize, usize) = (128, 2048);
const FINALISTS: usize = 8;

/// The numbers of bits to multiples of which prefixes are shortened.
const STEPS: [u32; 4] = [1, 4, 8, 16];

/// The bits of a tuple's keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub require: Kinds,
    /// Fields and masks, except for those that only identify the kind of a header.
    fields: Vec<(OxmField, u128)>,
}

/// Entries that share a hash table: their numbers, in order.
#[derive(Debug)]
pub(super) struct Tuple {
    pub shape: Shape,
    pub entries: Vec<usize>,
}

/// Returns the tuples of ordered entries, none of which matches everything.
pub(super) fn merge(entries: &[&Planned]) -> Vec<Tuple> {
    let groups = Groups::new(entries);
    let mut left: Vec<_> = (0..entries.len()).collect();
    let mut tuples = Vec::new();
    while !left.is_empty() && tuples.len() < GREEDY_MAX {
        let shape = groups.best_shape(&left);
        let placed = groups.place(&shape, &mut left);
        tuples.push(Tuple {
            shape,
            entries: placed,
        });
    }
    tuples.extend(groups.one_by_one(&left));
    tuples
}

impl Shape {
    /// Returns the shape with all bits of an entry.
    pub fn of(match_: &EntryMatch, key: &Key) -> Self {
        let fields = match_.fields().iter();
        let fields = fields.filter(|&&(field, ..)| !key.is_header(field));
        Self {
            require: key.mask.require,
            fields: fields.map(|&(field, _, mask)| (field, mask)).collect(),
        }
    }

    /// Returns `true` if entries of another shape have all of these bits.
    pub fn is_within(&self, other: &Self) -> bool {
        let mut fields = self.fields.iter();
        other.require.contains(self.require)
            && fields.all(|&(field, mask)| {
                let mut theirs = other.fields.iter();
                theirs.any(|&(other, their_mask)| other == field && mask & !their_mask == 0)
            })
    }

    /// Returns an entry's value of these bits, all of which its match must have.
    pub fn key(&self, match_: &EntryMatch) -> Option<Key> {
        let fields: Vec<_> = self.values(match_).collect();
        let mut key = Key::of(&fields, self.require)?;
        if key.mask.words.is_empty() {
            key.mask.words.push(Word::NOTHING);
            key.values.push(0);
        }
        Some(key)
    }

    /// Returns the fields with an entry's values and the masks.
    fn values(&self, match_: &EntryMatch) -> impl Iterator<Item = (OxmField, u128, u128)> {
        self.fields.iter().map(|&(field, mask)| {
            let value = match_.get(field).map_or(0, |(value, _)| value);
            (field, value & mask, mask)
        })
    }

    /// Returns a hash that is equal for entries with equal keys, and nearly always different for others.
    fn hash(&self, match_: &EntryMatch) -> u64 {
        self.values(match_)
            .fold(0x9e37_79b9, |before, (_, value, _)| {
                hash(
                    &[value as u64, (value >> 64) as u64],
                    before,
                    0x2545_f491_4f6c_dd1d,
                )
            })
    }

    /// Returns the shape with prefixes shortened, and without some fields.
    fn relaxed(&self, step: u32, leaves_out: &[OxmField], leaves_out_transport: bool) -> Self {
        let is_left_out = |field: OxmField| {
            leaves_out.contains(&field) || leaves_out_transport && is_of_transport(field)
        };
        let fields = self
            .fields
            .iter()
            .filter(|&&(field, _)| !is_left_out(field));
        let fields = fields.map(|&(field, mask)| (field, shortened(field, mask, step)));
        Self {
            require: match leaves_out_transport {
                true => self.require & (Kinds::VLAN | Kinds::IPV4 | Kinds::IPV6 | Kinds::ARP),
                false => self.require,
            },
            fields: fields.filter(|&(_, mask)| mask != 0).collect(),
        }
    }

    /// Returns shapes whose bits entries of this one have, starting with the shape itself.
    fn variants(&self) -> impl Iterator<Item = Self> {
        use OxmField::*;
        const SOURCES: &[OxmField] = &[Ipv4Src, Ipv6Src, EthSrc, ArpSpa];
        const DESTINATIONS: &[OxmField] = &[Ipv4Dst, Ipv6Dst, EthDst, ArpTpa];
        STEPS.into_iter().flat_map(move |step| {
            [&[], SOURCES, DESTINATIONS]
                .into_iter()
                .flat_map(move |leaves_out| {
                    let transport = [false, true].into_iter();
                    transport.map(move |without| self.relaxed(step, leaves_out, without))
                })
        })
    }
}

fn is_of_transport(field: OxmField) -> bool {
    use OxmField::*;
    matches!(
        field,
        IpProto
            | TcpSrc
            | TcpDst
            | UdpSrc
            | UdpDst
            | SctpSrc
            | SctpDst
            | Icmpv4Type
            | Icmpv4Code
            | Icmpv6Type
            | Icmpv6Code
    )
}

/// Returns the mask of a shorter prefix; the mask of a whole field stays.
fn shortened(field: OxmField, mask: u128, step: u32) -> u128 {
    let full = field.full_mask();
    if step == 1 || mask == full {
        return mask;
    }
    let bits = field.bits();
    let len = (mask << (128 - bits)).leading_ones() / step * step;
    full & !(full >> len)
}

/// Entries, grouped by shape.
struct Groups<'a> {
    entries: &'a [&'a Planned],
    shapes: Vec<Shape>,
    /// The index of each entry's shape.
    group_of: Vec<usize>,
}

impl<'a> Groups<'a> {
    fn new(entries: &'a [&'a Planned]) -> Self {
        let mut numbers = HashMap::new();
        let mut shapes = Vec::new();
        let group_of = entries.iter().map(|planned| {
            let shape = Shape::of(&planned.entry.match_, &planned.key);
            *numbers.entry(shape.clone()).or_insert_with(|| {
                shapes.push(shape);
                shapes.len() - 1
            })
        });
        Self {
            group_of: group_of.collect(),
            entries,
            shapes,
        }
    }

    /// Returns the shape that fits the most remaining entries.
    fn best_shape(&self, left: &[usize]) -> Shape {
        let candidates = self.candidates(left);
        let finalists = self.ranked(candidates, left, SAMPLES.0);
        let finalists = finalists.into_iter().take(FINALISTS).collect();
        let mut ranked = self.ranked(finalists, left, SAMPLES.1).into_iter();
        ranked
            .next()
            .expect("there are entries, so there are shapes")
    }

    /// Returns shapes to choose from, derived from the most common ones.
    fn candidates(&self, left: &[usize]) -> Vec<Shape> {
        let mut counts = vec![0_usize; self.shapes.len()];
        left.iter()
            .for_each(|&index| counts[self.group_of[index]] += 1);
        let mut order: Vec<_> = (0..counts.len())
            .filter(|&group| counts[group] > 0)
            .collect();
        let rank = |&group: &usize| (Reverse(counts[group]), group);
        if order.len() > GROUPS_MAX {
            order.select_nth_unstable_by_key(GROUPS_MAX, rank);
            order.truncate(GROUPS_MAX);
        }
        order.sort_unstable_by_key(rank);
        let mut known = HashSet::new();
        let variants = order
            .into_iter()
            .flat_map(|group| self.shapes[group].variants());
        variants
            .filter(|shape| known.insert(shape.clone()))
            .collect()
    }

    /// Returns the shapes from the best to the worst, judged by a sample of entries.
    fn ranked(&self, shapes: Vec<Shape>, left: &[usize], samples: usize) -> Vec<Shape> {
        let stride = left.len().div_ceil(samples);
        let sample: Vec<_> = left.iter().step_by(stride).copied().collect();
        let chain_max = (CHAIN_MAX / stride).max(1);
        let mut scored: Vec<_> = shapes
            .into_iter()
            .map(|shape| (self.score(&shape, &sample, chain_max), shape))
            .collect();
        scored.sort_by_key(|&(score, _)| Reverse(score));
        scored.into_iter().map(|(_, shape)| shape).collect()
    }

    /// Returns how well a shape fits entries. One at the end of a chain counts half as much as one at the start.
    fn score(&self, shape: &Shape, sample: &[usize], chain_max: usize) -> usize {
        let fits = |&&index: &&usize| shape.is_within(&self.shapes[self.group_of[index]]);
        let fitting = sample.iter().filter(fits);
        let keys = fitting.map(|&index| shape.hash(&self.entries[index].entry.match_));
        let mut keys: Vec<_> = keys.collect();
        keys.sort_unstable();
        let chains = keys.chunk_by(|one, other| one == other);
        let lengths = chains.map(|chain| chain.len().min(chain_max));
        lengths
            .map(|len| 2 * chain_max * len - len * (len - 1) / 2)
            .sum()
    }

    /// Moves the entries that fit into a tuple of this shape out of `left`, and returns them.
    fn place(&self, shape: &Shape, left: &mut Vec<usize>) -> Vec<usize> {
        let fits = self.fits(shape);
        let mut chains: HashMap<u64, usize> = HashMap::new();
        let mut placed = Vec::new();
        left.retain(|&index| {
            let fit = fits[self.group_of[index]];
            if fit == Fit::Not {
                return true;
            }
            let chain = chains
                .entry(shape.hash(&self.entries[index].entry.match_))
                .or_default();
            // A search stops at the first entry without further bits.
            if *chain == CHAIN_MAX && fit == Fit::Partly {
                return true;
            }
            *chain += usize::from(fit == Fit::Partly);
            placed.push(index);
            false
        });
        placed
    }

    /// Returns how the entries of each group fit a shape.
    fn fits(&self, shape: &Shape) -> Vec<Fit> {
        let shapes = self.shapes.iter();
        let fit = |other: &Shape| match shape.is_within(other) {
            false => Fit::Not,
            true if shape == other => Fit::Whole,
            true => Fit::Partly,
        };
        shapes.map(fit).collect()
    }

    /// Returns a tuple for each shape.
    fn one_by_one(&self, left: &[usize]) -> Vec<Tuple> {
        let mut tuples: Vec<Tuple> = Vec::new();
        let mut of_group = HashMap::new();
        for &index in left {
            let group = self.group_of[index];
            let number = *of_group.entry(group).or_insert_with(|| {
                tuples.push(Tuple {
                    shape: self.shapes[group].clone(),
                    entries: Vec::new(),
                });
                tuples.len() - 1
            });
            tuples[number].entries.push(index);
        }
        tuples
    }
}

/// How entries fit a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// They lack some of the shape's bits.
    Not,
    /// They have all bits of the shape, and more.
    Partly,
    /// They have exactly the bits of the shape.
    Whole,
}
