//! What is drawn from a seed.
//!
//! **What.** Numbers, chances and choices from MT19937-64, an algorithm that is written down and does not change, with integer
//! arithmetic: the same seed gives the same draws on every platform and in every version.
//!
//! **Cost.** A few nanoseconds for a draw; 2.5 KB of state.

use rand_mt::Mt64;
use std::ops::RangeInclusive;
use std::time::Duration;

/// One stream of draws.
pub struct Draw(Mt64);

impl Draw {
    /// The draws of this seed.
    pub fn new(seed: u64) -> Self {
        Self(Mt64::new(seed))
    }

    /// Another stream, whose draws do not move those of this one.
    pub fn fork(&mut self) -> Self {
        Self::new(self.number())
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`; 0 where the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The upper half of the product: as good as even for bounds far below 2^64.
        ((u128::from(self.number()) * u128::from(bound)) >> 64) as u64
    }

    /// The place of something in a sequence of this length; 0 where it is empty.
    pub fn place(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A number in the range; its start where it is empty.
    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let width = range.end().saturating_sub(*range.start());
        range.start() + self.below(width.saturating_add(1))
    }

    /// A time in the range, by nanoseconds.
    pub fn duration(&mut self, range: RangeInclusive<Duration>) -> Duration {
        let [start, end] = [range.start(), range.end()].map(|end| end.as_nanos() as u64);
        Duration::from_nanos(self.within(start..=end))
    }

    /// Whether something happens that does so with this probability. Where it never or always does, nothing is drawn.
    pub fn happens(&mut self, probability: f64) -> bool {
        if probability <= 0.0 || probability >= 1.0 {
            return probability >= 1.0;
        }
        let unit = (self.number() >> 11) as f64 / (1_u64 << 53) as f64;
        unit < probability
    }

    /// One of these; `None` where there are none.
    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.place(from.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_draws_of_a_seed_are_these() {
        // From mt19937-64.out of the algorithm's authors, with init_genrand64(5489).
        let mut draw = Draw::new(5489);
        assert_eq!(draw.number(), 14_514_284_786_278_117_030);
        assert_eq!(draw.number(), 4_620_546_740_167_642_908);
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
    fn what_has_a_probability_happens_about_as_often() {
        let mut draw = Draw::new(2);
        let often = (0..10_000).filter(|_| draw.happens(0.25)).count();
        assert!((2_300..2_700).contains(&often), "{often}");
        assert!(draw.happens(1.0) && !draw.happens(0.0));
    }

    #[test]
    fn a_fork_is_a_stream_of_its_own() {
        let (mut one, mut other) = (Draw::new(3), Draw::new(3));
        let mut fork = one.fork();
        other.fork();
        assert_ne!(fork.number(), one.number());
        other.number();
        assert_eq!(one.number(), other.number());
    }
}
