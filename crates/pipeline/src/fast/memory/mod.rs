//! Memory that packets read while it changes: the control side writes, the datapath reads, and neither waits.
//!
//! - `arena`: blocks with short numbers, for flow records and the nodes of tries; `zeroed`: large arrays.
//! - `hash_table`: from a key to a block; `lpm`: from an address to the block of its longest prefix.
//! - `epoch`: when removed blocks can be freed.

pub(crate) mod arena;
pub(crate) mod epoch;
pub(crate) mod hash_table;
pub(crate) mod lpm;
pub(crate) mod zeroed;

/// The primitives of `epoch`, which its model replaces.
mod sync {
    pub use std::sync::atomic::{AtomicU64, fence};
    pub use std::sync::{Mutex, MutexGuard};
}
