//! The prefixes of one side of the rules.

use super::PythonRandom;
use super::rule::Prefix;
use super::statistics::PrefixCounts;
use std::collections::HashSet;

/// The longest prefix.
const LENGTH_MAX: u8 = 32;

/// The length from which the number of prefixes depends on the set's size.
const SCALED_FROM: u8 = 8;

/// The maximum number of draws for a prefix that is new, and inside or outside other prefixes as required.
const ATTEMPTS: u32 = 64;

/// Distinct prefixes by length.
pub struct Pool {
    by_length: Vec<Shelf>,
}

/// The prefixes of one length.
#[derive(Clone, Debug, Default)]
struct Shelf {
    prefixes: Vec<Prefix>,
    /// The number of draws so far.
    drawn: usize,
}

impl Pool {
    /// Creates a pool with `scale` times the counted prefixes of each length, if that many exist; short lengths are not
    /// scaled. The counted share lies inside other prefixes.
    pub fn new(counts: &PrefixCounts, scale: f64, random: &mut PythonRandom) -> Self {
        let scaled = |&(length, count): &(u8, u32)| {
            let scale = if length < SCALED_FROM { 1.0 } else { scale };
            let count = (f64::from(count) * scale).round().max(1.0) as u64;
            (length, count.min(1 << length))
        };
        let wanted: Vec<_> = counts.by_length.iter().map(scaled).collect();
        let total: u64 = wanted.iter().map(|(_, count)| count).sum();
        let mut filling = Filling {
            outside: ((1.0 - counts.inside) * total as f64).round() as u64,
            ..Filling::default()
        };
        let mut by_length = vec![Shelf::default(); usize::from(LENGTH_MAX) + 1];
        for (length, count) in wanted {
            by_length[usize::from(length)].prefixes = filling.fill(length, count, random);
        }
        Self { by_length }
    }

    /// Draws a prefix of this length: first each once, then at random.
    pub fn draw(&mut self, length: u8, random: &mut PythonRandom) -> Prefix {
        let shelf = &mut self.by_length[usize::from(length)];
        let next = shelf.prefixes.get(shelf.drawn).copied();
        shelf.drawn += 1;
        match next {
            Some(prefix) => prefix,
            None if shelf.prefixes.is_empty() => Prefix::random(length, random),
            None => random.choice(&shelf.prefixes),
        }
    }
}

/// A pool that is filled from the shortest prefixes on.
#[derive(Default)]
struct Filling {
    /// The number of remaining prefixes that must be outside of all others.
    outside: u64,
    /// All prefixes so far of at least one bit.
    made: Vec<Prefix>,
    seen: HashSet<Prefix>,
}

impl Filling {
    /// Draws `count` prefixes of one length, or fewer if most are already used.
    fn fill(&mut self, length: u8, count: u64, random: &mut PythonRandom) -> Vec<Prefix> {
        let mut prefixes = Vec::new();
        let parents = self.made.len();
        for _ in 0..count {
            let is_outside = self.outside > 0 || parents == 0;
            let mut attempts = 0..ATTEMPTS;
            let found = attempts.find_map(|_| match is_outside {
                true => self.outside_of_all(length, random),
                false => self.inside_another(parents, length, random),
            });
            // If no prefix is left inside or outside, accept any unused one.
            let mut attempts = 0..ATTEMPTS;
            let found = found
                .or_else(|| attempts.find_map(|_| self.unseen(Prefix::random(length, random))));
            let Some(prefix) = found else { continue };
            self.outside = self.outside.saturating_sub(u64::from(is_outside));
            self.seen.insert(prefix);
            prefixes.push(prefix);
            if length > 0 {
                self.made.push(prefix);
            }
        }
        prefixes
    }

    fn outside_of_all(&self, length: u8, random: &mut PythonRandom) -> Option<Prefix> {
        let prefix = Prefix::random(length, random);
        let mut around = (1..length).map(|shorter| prefix.shortened(shorter));
        let is_inside = around.any(|around| self.seen.contains(&around));
        self.unseen(prefix).filter(|_| !is_inside)
    }

    fn inside_another(
        &self,
        parents: usize,
        length: u8,
        random: &mut PythonRandom,
    ) -> Option<Prefix> {
        let parent = random.choice(&self.made[..parents]);
        self.unseen(parent.lengthened(length, random))
    }

    fn unseen(&self, prefix: Prefix) -> Option<Prefix> {
        (!self.seen.contains(&prefix)).then_some(prefix)
    }
}
