//! References to groups and meters, for their statistics and for deletion.
//!
//! **Cost.** A reference takes some 25 bytes, and adding or removing it the logarithm of their number; unreferenced items
//! take no memory. References are counted, so counting needs no iteration.

use crate::classifier::Rank;
use std::collections::{BTreeMap, BTreeSet};

/// References to numbered items by `P`.
#[derive(Debug)]
pub(crate) struct References<P> {
    /// Pairs of referenced item and referrer.
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

/// An item that can refer to others.
pub(crate) trait Referrer: Ord + Copy {
    /// The first and the last there can be.
    const ALL: [Self; 2];
}

impl Referrer for Rank {
    const ALL: [Self; 2] = [Self::FIRST, Self::LAST];
}

impl Referrer for u32 {
    const ALL: [Self; 2] = [Self::MIN, Self::MAX];
}

impl<P: Referrer> References<P> {
    /// Notes that `by` refers to each of these; more than once is as good as once.
    pub fn add(&mut self, by: P, numbers: impl Iterator<Item = u32>) {
        for number in numbers {
            if self.pairs.insert((number, by)) {
                *self.counts.entry(number).or_default() += 1;
            }
        }
    }

    /// Removes the references of `by` to these.
    pub fn remove(&mut self, by: P, numbers: impl Iterator<Item = u32>) {
        for number in numbers {
            if self.pairs.remove(&(number, by)) {
                self.count_down(number);
            }
        }
    }

    /// Returns the number of references to this.
    pub fn count(&self, number: u32) -> u32 {
        self.counts.get(&number).copied().unwrap_or(0)
    }

    /// Returns the referrers of this item, or of any, in order, if there are at most `max` references.
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
