//! The order of a table's entries.

use std::ops::RangeInclusive;

/// An entry's rank in its table; smaller ranks are searched first. Entries are ordered by priority, highest first, and then
/// by age, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(u64);

impl Rank {
    /// The ranks before and after all others.
    pub const FIRST: Self = Self(0);
    pub const LAST: Self = Self(u64::MAX);

    /// The number of bits for the insertion number: enough for a million entries a second over nine years.
    const SEQUENCE_BITS: u32 = 48;
    const LAST_SEQUENCE: u64 = (1 << Self::SEQUENCE_BITS) - 1;

    /// Returns the rank of the entry that was added to a table as the `sequence`th.
    pub fn new(priority: u16, sequence: u64) -> Self {
        let before_it = u64::from(u16::MAX - priority);
        Self(before_it << Self::SEQUENCE_BITS | sequence & Self::LAST_SEQUENCE)
    }

    /// Returns the rank as a number; smaller ones are searched first.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// Returns the entry's priority.
    pub fn priority(self) -> u16 {
        u16::MAX - (self.0 >> Self::SEQUENCE_BITS) as u16
    }

    /// Returns the entry's insertion number in its table, from 0.
    pub fn sequence(self) -> u64 {
        self.0 & Self::LAST_SEQUENCE
    }

    /// Returns the ranks of all entries of a priority.
    pub fn all_of(priority: u16) -> RangeInclusive<Self> {
        Self::new(priority, 0)..=Self::new(priority, Self::LAST_SEQUENCE)
    }
}
