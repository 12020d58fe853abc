//! Random draws from a seed.
//!
//! **What.** Numbers, chances and choices from SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
//! generators", OOPSLA 2014), in integer arithmetic: a seed gives equal draws on every platform and in every version.
//!
//! **One stream per entity.** [`Draw::of`] requires a name in addition to the seed. An entity's draws from its own stream do
//! not depend on the other entities and their draws.
//!
//! **Cost.** A nanosecond or two per draw; 8 bytes of state, so that each link of a large network can have its own.

use std::ops::RangeInclusive;
use std::time::Duration;
use urtica_wire::{MIX_STEP, mix};

/// One stream of draws.
#[derive(Clone, Debug)]
pub struct Draw(u64);

impl Draw {
    /// Returns the stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the stream with this name under this seed. Streams with different names are independent.
    pub fn of(seed: u64, name: &str) -> Self {
        let key = mix(seed);
        let chunks = name.as_bytes().chunks(size_of::<u64>());
        let state = chunks.fold(key ^ name.len() as u64, |state, chunk| {
            let mut word = [0; size_of::<u64>()];
            word[..chunk.len()].copy_from_slice(chunk);
            mix(state ^ u64::from_le_bytes(word))
        });
        Self(mix(state))
    }

    /// Draws any number.
    pub fn number(&mut self) -> u64 {
        let number = mix(self.0);
        self.0 = self.0.wrapping_add(MIX_STEP);
        number
    }

    /// Draws a number below `bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The upper half of the product: nearly uniform for bounds far below 2^64.
        ((u128::from(self.number()) * u128::from(bound)) >> 64) as u64
    }

    /// Draws an index into a sequence of this length; 0 if it is empty.
    pub fn place(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Draws a number in the range; its start if it is empty.
    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let width = range.end().saturating_sub(*range.start());
        range.start() + self.below(width.saturating_add(1))
    }

    /// Draws a duration in the range, in nanoseconds.
    pub fn duration(&mut self, range: RangeInclusive<Duration>) -> Duration {
        let [start, end] = [range.start(), range.end()].map(|end| end.as_nanos() as u64);
        Duration::from_nanos(self.within(start..=end))
    }

    /// Returns `true` with this probability. Draws nothing if the probability is 0 or 1.
    pub fn happens(&mut self, probability: f64) -> bool {
        if probability <= 0.0 || probability >= 1.0 {
            return probability >= 1.0;
        }
        let unit = (self.number() >> 11) as f64 / (1_u64 << 53) as f64;
        unit < probability
    }

    /// Chooses one of these; `None` if the slice is empty.
    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.place(from.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_first_draws_of_a_seed_are_these() {
        // From splitmix64.c of Sebastiano Vigna.
        let mut draw = Draw::new(1_234_567);
        assert_eq!(draw.number(), 6_457_827_717_110_365_317);
        assert_eq!(draw.number(), 3_203_168_211_198_807_973);
        assert_eq!(draw.number(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn draws_stay_within_their_bounds_and_reach_them() {
        let mut draw = Draw::new(1);
        let mut seen = [false; 5];
        for _ in 0..1_000 {
            seen[draw.within(3..=7) as usize - 3] = true;
            assert!(draw.below(9) < 9);
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!((draw.below(0), draw.within(4..=4)), (0, 4));
        assert_eq!(draw.choose::<u8>(&[]), None);
    }

    #[test]
    fn happens_with_the_given_probability() {
        let mut draw = Draw::new(2);
        let often = (0..10_000).filter(|_| draw.happens(0.25)).count();
        assert!((2_300..2_700).contains(&often), "{often}");
        assert!(draw.happens(1.0) && !draw.happens(0.0));
    }

    #[test]
    fn each_name_has_its_own_stream() {
        let names = [
            "",
            "s1",
            "s2",
            "s1\0",
            "link s1:1",
            "link s1:10",
            "link s11:0",
        ];
        let draws = |seed| names.map(|name| Draw::of(seed, name).number());
        assert_eq!(draws(3), draws(3));
        let all: BTreeSet<_> = (0..100).flat_map(draws).collect();
        assert_eq!(all.len(), 100 * names.len());
    }

    /// The streams of neighbouring seeds and names are uncorrelated.
    #[test]
    fn first_draws_are_spread_evenly() {
        for vary in [
            (|number| Draw::of(number, "fault 1")) as fn(u64) -> Draw,
            |number| Draw::of(7, &format!("fault {number}")),
        ] {
            let mut counts = [0; 10];
            (0..10_000).for_each(|number| counts[vary(number).place(10)] += 1);
            assert!(
                counts.iter().all(|count| (850..1_150).contains(count)),
                "{counts:?}"
            );
        }
    }
}
