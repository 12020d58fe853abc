//! The choice of a flow's bucket in a select group, which 1.3.5 section 5.6.1 leaves to the switch.
//!
//! **What.** Each flow uses its preferred live bucket. A bucket gets flows in proportion to its weight. If it dies or is
//! removed, only its own flows move, to the others by their weights, and they return with it. If a bucket is added or gets
//! a higher weight, flows move only to it.
//!
//! **How.** Highest random weight (rendezvous hashing; Thaler and Ravishankar, IEEE/ACM Transactions on Networking
//! 6(1), 1998), with weights: for each bucket, a number u, uniformly distributed over (0, 1], is computed from the flow's
//! hash and the bucket's seed, and the flow prefers the bucket with the least -log2(u) / weight. These values are
//! exponentially distributed with the weight as rate, so the probability that a bucket has the least one is its share of
//! all weights.
//!
//! A bucket's seed depends on its actions, not on its position. The seeds of buckets with equal actions differ by order.
//!
//! **Exactness.** All arithmetic is on integers, so every form, machine and run makes the same choice. The logarithm is
//! interpolated between `STEPS` points. The relative error of the shares is at most a thousandth for unequal weights, and
//! zero for equal weights.
//!
//! **Cost.** One hash and two multiplications for each live bucket; with different weights, also a lookup in a table of 2 KiB
//! and two more multiplications. With equal weights, the greatest u wins.

use crate::Bucket;
use urtica_wire::{Action, Element, Version, mix};

/// The number of steps per doubling.
const STEPS: usize = 256;
/// The number of fractional bits of logarithms.
const FRACTION_BITS: u32 = 40;
/// The number of bits of an offset within a step.
const OFFSET_BITS: u32 = 24;

/// log2(1 + i / STEPS), from 0 to 1.
static LOG2: [u64; STEPS + 1] = log2_table();

/// A bucket of a select group, in any form.
pub(crate) trait Weighed {
    /// Returns the weight relative to other buckets. A bucket of weight 0 gets no flows.
    fn weight(&self) -> u16;

    /// Returns the seed of the hash: see [`seed`].
    fn seed(&self) -> u64;
}

impl Weighed for Bucket {
    fn weight(&self) -> u16 {
        self.weight
    }

    fn seed(&self) -> u64 {
        self.seed
    }
}

/// Returns the bucket that a flow prefers; `None` if all weights are 0.
#[inline]
pub(crate) fn select<'a, B: Weighed>(
    buckets: impl Iterator<Item = &'a B>,
    flow_hash: u64,
) -> Option<&'a B> {
    let weighed = buckets.filter(|bucket| bucket.weight() > 0);
    let drawn = weighed.map(|bucket| (mix(flow_hash ^ bucket.seed()), bucket));
    let best = drawn.reduce(|best, other| {
        let weights = [best.1.weight(), other.1.weight()];
        let is_preferred = match weights[0] == weights[1] {
            true => other.0 > best.0,
            // a / b < c / d without a division: the products need 47 + 16 bits, which fit.
            false => {
                let [best_weight, other_weight] = weights.map(u64::from);
                minus_log2(other.0) * best_weight < minus_log2(best.0) * other_weight
            }
        };
        if is_preferred { other } else { best }
    });
    best.map(|(_, bucket)| bucket)
}

/// Returns a bucket's seed, from its actions and the number of equal buckets before it.
pub(crate) fn seed(actions: &[Action], same_before: usize) -> u64 {
    let mut bytes = Vec::new();
    for action in actions {
        // All actions of a group can be encoded; another one would only be skipped.
        let _ = action.encode(Version::Of13, &mut bytes);
    }
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_be_bytes(word)
    });
    words.fold(mix(same_before as u64), |seed, word| mix(seed ^ word))
}

/// Returns -log2((number + 1) / 2^64), from 0 to 64, with `FRACTION_BITS` fractional bits.
fn minus_log2(number: u64) -> u64 {
    let Some(number) = number.checked_add(1) else {
        return 0;
    };
    let zeros = number.leading_zeros();
    // 1.xxx with 63 fractional bits.
    let mantissa = number << zeros;
    let step = (mantissa >> (63 - STEPS.ilog2())) as usize % STEPS;
    let offset = (mantissa << (1 + STEPS.ilog2())) >> (u64::BITS - OFFSET_BITS);
    let rise = LOG2[step + 1] - LOG2[step];
    let log2 = LOG2[step] + ((rise * offset) >> OFFSET_BITS);
    (u64::from(zeros + 1) << FRACTION_BITS) - log2
}

const fn log2_table() -> [u64; STEPS + 1] {
    let mut table = [0; STEPS + 1];
    let mut step = 0;
    while step < STEPS {
        table[step] = log2_of((1 << 63) + ((step as u64) << (63 - STEPS.ilog2())));
        step += 1;
    }
    table[STEPS] = 1 << FRACTION_BITS;
    table
}

/// Returns log2 of a number from 1 to 2 with 63 fractional bits. Each squaring yields the next bit.
const fn log2_of(mut mantissa: u64) -> u64 {
    let mut log2 = 0;
    let mut bit = 0;
    while bit < FRACTION_BITS {
        let square = (mantissa as u128 * mantissa as u128) >> 63;
        let has_doubled = square >> 64 != 0;
        log2 = log2 << 1 | has_doubled as u64;
        mantissa = (square >> has_doubled as u32) as u64;
        bit += 1;
    }
    log2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_accurate_and_monotonic() {
        let mut last = u64::MAX;
        for number in (0..1000)
            .map(|part| u64::MAX / 1000 * part)
            .chain([u64::MAX])
        {
            let found = minus_log2(number);
            let expected = 64.0 - ((number as f64) + 1.0).log2();
            let found_value = found as f64 / (1_u64 << FRACTION_BITS) as f64;
            assert!(
                (found_value - expected).abs() < 3e-6,
                "{number}: {found_value}, not {expected}"
            );
            assert!(found < last, "{number}");
            last = found;
        }
        assert_eq!(
            (minus_log2(u64::MAX), minus_log2(0)),
            (0, 64 << FRACTION_BITS)
        );
    }

    #[test]
    fn seeds_differ_by_action_and_by_order_among_equals() {
        let output = |port| [Action::output(urtica_wire::PortNo(port))];
        let seeds = [
            seed(&output(1), 0),
            seed(&output(2), 0),
            seed(&output(1), 1),
            seed(&[], 0),
        ];
        for (at, one) in seeds.iter().enumerate() {
            assert!(!seeds[at + 1..].contains(one));
        }
        assert_eq!(seeds[0], seed(&output(1), 0));
    }
}
