//! References to groups and meters, for their statistics and for deletion.
//!
//! **Cost.** A reference needs about 25 bytes; adding or removing one costs the logarithm of their number. Unreferenced items
//! need no memory. References are counted as they change, so a count needs no iteration.

use crate::classifier::Rank;
use std::collections::{BTreeMap, BTreeSet};

/// References from referrers of type `P` to numbered items.
#[derive(Debug)]
pub(crate) struct References<P> {
    /// Pairs of a referenced item and its referrer.
    pairs: BTreeSet<(u32, P)>,
    /// The number of references to each item.
    counts: BTreeMap<u32, u32>,
}

impl<P> Default for References<P> {
    fn default() -> Self {
        Self {
            pairs: BTreeSet::new(),
            counts: BTreeMap::new(),
        }
    }
}

/// A referrer: an item that can refer to others.
pub(crate) trait Referrer: Ord + Copy {
    /// The least and the greatest possible value.
    const ALL: [Self; 2];
}

impl Referrer for Rank {
    const ALL: [Self; 2] = [Self::FIRST, Self::LAST];
}

impl Referrer for u32 {
    const ALL: [Self; 2] = [Self::MIN, Self::MAX];
}

impl<P: Referrer> References<P> {
    /// Adds references from `by` to these items. Repeated ones have no effect.
    pub fn add(&mut self, by: P, numbers: impl Iterator<Item = u32>) {
        for number in numbers {
            if self.pairs.insert((number, by)) {
                *self.counts.entry(number).or_default() += 1;
            }
        }
    }

    /// Removes the references from `by` to these items.
    pub fn remove(&mut self, by: P, numbers: impl Iterator<Item = u32>) {
        for number in numbers {
            if self.pairs.remove(&(number, by)) {
                self.count_down(number);
            }
        }
    }

    /// Returns the number of references to this item.
    pub fn count(&self, number: u32) -> u32 {
        self.counts.get(&number).copied().unwrap_or(0)
    }

    /// Returns the referrers of this item, or of all items, in order; `None` if there are more than `max` references.
    pub fn few(&self, number: Option<u32>, max: usize) -> Option<Vec<P>> {
        match number {
            Some(number) if self.count(number) as usize <= max => Some(self.to(number).collect()),
            None if self.pairs.len() <= max => {
                let all: BTreeSet<_> = self.pairs.iter().map(|&(_, by)| by).collect();
                Some(all.into_iter().collect())
            }
            _ => None,
        }
    }

    /// Returns the referrers of this item, in order.
    pub fn to(&self, number: u32) -> impl Iterator<Item = P> {
        let [first, last] = P::ALL;
        let pairs = self.pairs.range((number, first)..=(number, last));
        pairs.map(|&(_, by)| by)
    }

    fn count_down(&mut self, number: u32) {
        if let Some(count) = self.counts.get_mut(&number) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&number);
            }
        }
    }
}
