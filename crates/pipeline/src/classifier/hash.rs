//! Hashes of numbers, with seeds that differ in each process.

use crate::EntryMatch;
use std::hash::{BuildHasher, RandomState};

/// The random seeds of hashes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeds {
    low: u64,
    high: u64,
}

impl Default for Seeds {
    /// Creates seeds from the standard library's, which come from the operating system.
    fn default() -> Self {
        let source = RandomState::new();
        Self {
            low: source.hash_one("low"),
            high: source.hash_one("high"),
        }
    }
}

impl Seeds {
    /// Returns seeds with which all 64-bit numbers have the same hash.
    #[cfg(test)]
    pub fn colliding() -> Self {
        Self { low: 0, high: 0 }
    }

    /// Hashes by folded multiplication: the upper half of the product, which depends on the lower bits of both factors, is
    /// combined with the lower half.
    #[inline]
    pub fn hash(self, number: u128) -> u64 {
        let low = number as u64 ^ self.low;
        let high = (number >> 64) as u64 ^ self.high;
        let product = u128::from(low) * u128::from(high);
        product as u64 ^ (product >> 64) as u64
    }

    /// Returns a hash of the previous hash and a number.
    #[inline]
    pub fn hash_on(self, before: u64, number: u128) -> u64 {
        self.hash(number ^ u128::from(before))
    }

    /// Returns a hash of a match's fields and masks, without its values.
    pub fn hash_masks(self, match_: &EntryMatch) -> u64 {
        let fields = match_.fields().iter();
        fields.fold(0, |hash: u64, &(field, _, mask)| {
            self.hash_on(hash.wrapping_add(field as u64), mask)
        })
    }
}
