//! Sources of random choices: bytes from a fuzzer or a property test, which can be shrunk, or a seed.

use urtica_wire::{MIX_STEP, PortNo, mix};

/// The ports of the compared pipelines.
pub const SWITCH_PORTS: [PortNo; 5] = [PortNo(1), PortNo(2), PortNo(3), PortNo(4), PortNo::LOCAL];

/// A source of random decisions.
pub struct Choices<'a> {
    bytes: &'a [u8],
    /// The seed for decisions beyond the bytes. Without a seed, these are always the first possibility.
    seed: Option<u64>,
}

impl<'a> Choices<'a> {
    /// Creates choices that are determined by these bytes.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes, seed: None }
    }

    /// Creates an endless source of choices that are determined by a seed.
    pub fn from_seed(seed: u64) -> Self {
        Self {
            bytes: &[],
            seed: Some(seed),
        }
    }

    /// Returns whether no choices are left.
    pub fn is_over(&self) -> bool {
        self.bytes.is_empty() && self.seed.is_none()
    }

    pub fn byte(&mut self) -> u8 {
        if let Some((&first, rest)) = self.bytes.split_first() {
            self.bytes = rest;
            return first;
        }
        let Some(seed) = &mut self.seed else { return 0 };
        let number = mix(*seed);
        *seed = seed.wrapping_add(MIX_STEP);
        (number >> 56) as u8
    }

    /// Returns a number of this size in bytes.
    pub fn number(&mut self, bytes: usize) -> u128 {
        (0..bytes).fold(0, |number, _| number << 8 | u128::from(self.byte()))
    }

    /// Returns a number below `count`, which may be at most 65,536.
    pub fn below(&mut self, count: usize) -> usize {
        let bytes = if count <= 256 { 1 } else { 2 };
        self.number(bytes) as usize % count
    }

    /// Returns `true` with this probability in percent.
    pub fn is_in(&mut self, percent: usize) -> bool {
        // Shrinking tends to the first possibility.
        self.below(100) >= 100 - percent
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Returns one of [`SWITCH_PORTS`].
    pub fn port(&mut self) -> PortNo {
        self.pick(&SWITCH_PORTS)
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }
}
