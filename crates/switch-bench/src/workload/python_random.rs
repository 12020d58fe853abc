//! The parts of Python's `random.Random` that workloads use, with equal numbers for equal seeds.
//!
//! The generator (MT19937) and the hash of its seed are crates. The rules for seeds from text and for draws from 32-bit
//! numbers are those of CPython 3.2 and later (`Lib/random.py`, `Modules/_randommodule.c`), which calls them `seed`
//! version 2, `getrandbits`, `_randbelow_with_getrandbits`, `randint`, `choice` and `shuffle`.

use rand_mt::Mt;
use sha2::{Digest, Sha512};

/// A generator.
pub struct PythonRandom(Mt);

impl PythonRandom {
    /// `random.Random(seed)`, for a non-empty text.
    pub fn new(seed: &str) -> Self {
        let mut number = seed.as_bytes().to_vec();
        number.extend(Sha512::digest(seed));
        // The bytes are one big-endian number; the generator's key is its 32-bit words from the lowest on.
        let key = number.rchunks(4).map(|word| {
            let bytes = word.iter();
            bytes.fold(0, |value, &byte| value << 8 | u32::from(byte))
        });
        Self(Mt::new_with_key(key))
    }

    /// `getrandbits(count)`, for 1 to 32 bits.
    pub fn bits(&mut self, count: u32) -> u32 {
        self.0.next_u32() >> (32 - count)
    }

    /// `randrange(bound)`: a number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        let count = 32 - bound.leading_zeros();
        loop {
            let drawn = self.bits(count);
            if drawn < bound {
                return drawn;
            }
        }
    }

    /// `randint(low, high)`: both ends are included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }

    /// `choice(items)`, for at least one item.
    pub fn choice<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u32) as usize]
    }

    /// `shuffle(items)`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u32 + 1) as usize;
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Prints the numbers that `python3` draws for each seed, by the calls of [`draws`] in their order.
    const PROGRAM: &str = "
import random, sys
for seed in sys.argv[1:]:
    r = random.Random(seed)
    items = list(range(1000))
    r.shuffle(items)
    drawn = [r.getrandbits(k) for k in range(1, 33)]
    drawn += [r.randrange(n) for n in (1, 2, 3, 16, 20, 100, 10000, 65537, 2**31, 2**32 - 1)]
    drawn += [r.randint(0x0B000000, 0xDEFFFFFF), r.randint(1024, 65535), r.choice(items)]
    print(*items, *drawn)
";

    fn draws(seed: &str) -> Vec<u32> {
        let mut random = PythonRandom::new(seed);
        let mut items: Vec<u32> = (0..1000).collect();
        random.shuffle(&mut items);
        let mut drawn = items.clone();
        drawn.extend((1..=32).map(|count| random.bits(count)));
        let bounds = [1, 2, 3, 16, 20, 100, 10_000, 65_537, 1 << 31, u32::MAX];
        drawn.extend(bounds.map(|bound| random.below(bound)));
        drawn.push(random.between(0x0b00_0000, 0xdeff_ffff));
        drawn.push(random.between(1024, 65_535));
        drawn.push(random.choice(&items));
        drawn
    }

    #[test]
    fn draws_the_numbers_of_python() {
        // Seeds of every length modulo four, and with letters beyond ASCII.
        let seeds = ["a", "ab", "abc", "abcd", "ovs-bench 1/l3-1000", "ü/京"];
        let output = match Command::new("python3")
            .args(["-c", PROGRAM])
            .args(seeds)
            .output()
        {
            Ok(output) => output,
            Err(error) => {
                let is_required = std::env::var("CI").is_ok_and(|value| value == "true");
                assert!(!is_required, "python3 cannot be run: {error}");
                eprintln!("skipped: python3 cannot be run ({error})");
                return;
            }
        };
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), seeds.len());
        for (seed, line) in seeds.into_iter().zip(text.lines()) {
            let python: Vec<u32> = line.split(' ').map(|word| word.parse().unwrap()).collect();
            assert_eq!(draws(seed), python, "seed {seed}");
        }
    }
}
