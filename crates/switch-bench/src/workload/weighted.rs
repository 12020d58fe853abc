//! Draws by weight.

use super::python_random::PythonRandom;

/// Things that are drawn in proportion to their weights.
#[derive(Clone, Debug)]
pub struct Weighted<T> {
    items: Vec<T>,
    /// The weights of each and all before it, together.
    ends: Vec<u32>,
}

impl<T: Copy> Weighted<T> {
    /// Of things with their weights, which fit 32 bits together.
    pub fn new(weighted: impl Iterator<Item = (T, u32)>) -> Self {
        let (mut items, mut ends, mut end) = (Vec::new(), Vec::new(), 0);
        for (item, weight) in weighted {
            end += weight;
            items.push(item);
            ends.push(end);
        }
        Self { items, ends }
    }

    /// All weights together.
    pub fn total(&self) -> u32 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Draws a thing.
    ///
    /// # Panics
    /// If there are no things.
    pub fn draw(&self, random: &mut PythonRandom) -> T {
        let drawn = random.below(self.total());
        self.items[self.ends.partition_point(|&end| end <= drawn)]
    }
}
