//! Memory that changes while packets read it: the control side writes, the datapath reads, and neither waits.
//!
//! - `arena`: blocks with small numbers, for flow records and the nodes of tries; `zeroed`: large arrays.
//! - `hash_table`: maps keys to blocks; `lpm`: maps addresses to the blocks of their longest prefixes.
//! - `epoch`: determines when removed blocks can be freed.

pub(crate) mod arena;
pub(crate) mod epoch;
pub(crate) mod hash_table;
pub(crate) mod lpm;
pub(crate) mod zeroed;

/// The synchronization primitives of `epoch`, which its model replaces.
mod sync {
    pub use std::sync::atomic::{AtomicU64, fence};
    pub use std::sync::{Mutex, MutexGuard};
}
