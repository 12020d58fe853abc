//! Values that fit into a word.

/// A small value that a [`Table`](crate::Table) keeps in a word of 64 bits.
///
/// Implement the two conversions for your own types:
///
/// ```
/// use urtica_state::{Table, Word};
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Attachment { switch: u32, port: u32 }
///
/// impl Word for Attachment {
///     fn to_word(self) -> u64 {
///         u64::from(self.switch) << 32 | u64::from(self.port)
///     }
///     fn from_word(word: u64) -> Self {
///         Self { switch: (word >> 32) as u32, port: word as u32 }
///     }
/// }
///
/// let hosts: Table<u64, Attachment> = Table::new();
/// hosts.insert(0x0200_0000_0001, Attachment { switch: 3, port: 1 })?;
/// assert_eq!(hosts.get(0x0200_0000_0001), Some(Attachment { switch: 3, port: 1 }));
/// # Ok::<(), urtica_state::TableError>(())
/// ```
pub trait Word: Copy {
    /// Returns the value as a word; different values have different words. The greatest word, `u64::MAX`, is reserved by
    /// the table: a value that converts to it cannot be inserted.
    fn to_word(self) -> u64;

    /// Returns the value that [`Word::to_word`] converted to this word.
    fn from_word(word: u64) -> Self;

    /// The hash function for keys: the slot, in a table of `2^64` slots, at which the search for this word starts.
    ///
    /// By default, 64 words that differ only in the last six bits have 64 adjacent slots, and a hash spreads these groups. So a
    /// run of addresses is read like an array, and the processor prefetches it. Override this function if your keys differ in
    /// other bits.
    #[inline]
    fn first_slot(word: u64) -> u64 {
        neighbourly(word >> NEIGHBOURS_BITS, word)
    }
}

/// The number of low bits in which neighbours differ.
const NEIGHBOURS_BITS: u32 = 6;

/// Returns a slot in the neighbourhood that belongs to `family`. Members of a family whose `member` numbers differ in the last
/// six bits have different slots.
#[inline]
pub fn neighbourly(family: u64, member: u64) -> u64 {
    let product = u128::from(family) * 0x9e37_79b9_7f4a_7c15;
    let spread = product as u64 ^ (product >> 64) as u64;
    spread ^ (member & ((1 << NEIGHBOURS_BITS) - 1))
}

macro_rules! words {
    ($($number:ty)*) => { $(
        impl Word for $number {
            #[inline]
            fn to_word(self) -> u64 {
                u64::from(self)
            }

            #[inline]
            fn from_word(word: u64) -> Self {
                word as $number
            }
        }
    )* };
}

words!(u8 u16 u32 u64);
