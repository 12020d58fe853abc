//! Draws by weight.

use super::python_random::PythonRandom;

/// Items drawn in proportion to their weights.
#[derive(Clone, Debug)]
pub struct Weighted<T> {
    items: Vec<T>,
    /// For each item, the sum of its weight and all weights before it.
    ends: Vec<u32>,
}

impl<T: Copy> Weighted<T> {
    /// Creates a set of items with their weights, whose sum fits into 32 bits.
    pub fn new(weighted: impl Iterator<Item = (T, u32)>) -> Self {
        let (mut items, mut ends, mut end) = (Vec::new(), Vec::new(), 0);
        for (item, weight) in weighted {
            end += weight;
            items.push(item);
            ends.push(end);
        }
        Self { items, ends }
    }

    /// Returns the sum of all weights.
    pub fn total(&self) -> u32 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Draws an item.
    ///
    /// # Panics
    /// If there are no items.
    pub fn draw(&self, random: &mut PythonRandom) -> T {
        let drawn = random.below(self.total());
        self.items[self.ends.partition_point(|&end| end <= drawn)]
    }
}
