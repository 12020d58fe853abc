//! State that control programs share: transactional variables, concurrent tables, snapshots.
//!
//! A control program's handlers run on many cores. The state of one switch needs no synchronisation; the rest is shared between
//! switches: host locations, the bandwidth left on links, the topology (McNettle section 4). This crate has one structure for
//! each of these needs. It is a separate crate because it is independent of switches and networks: programs, services and tests
//! all use it, and it is model-checked alone, in all interleavings of its threads.
//!
//! | structure | for | reading | changing |
//! | --- | --- | --- | --- |
//! | [`TVar`] and [`atomically`] | several values that change together | one cache line, and a check of its version; no lock | one atomic exchange per variable; after a conflict it runs again |
//! | [`Table`] | small keys and values, looked up for each packet | one cache line; no lock | a lock that few others share; none if nothing changes |
//! | [`Snapshot`] | one large value that is replaced as a whole | an `Arc` of it; no lock | makes a new one; readers never wait |
//! | `Mutex`, of the standard library | values that few threads change as often as they read them | waits for others | waits for others |
//!
//! All may be used from any number of threads. In one thread they are deterministic: they read no clock and use no random
//! order.
//!
//! # Bandwidth on demand
//! McNettle's Figure 6: a path is reserved on all of its links or on none.
//!
//! ```
//! use urtica_state::{Abort, TVar, Transaction, atomically, check};
//!
//! fn reserve_link(link: &TVar<u64>, amount: u64, tx: &mut Transaction) -> Result<(), Abort> {
//!     let current = link.read(tx)?;
//!     check(current >= amount)?;
//!     link.write(tx, current - amount)
//! }
//!
//! fn reserve_path(path: &[TVar<u64>], amount: u64, tx: &mut Transaction) -> Result<bool, Abort> {
//!     let reserve = |tx: &mut _| path.iter().try_for_each(|link| reserve_link(link, amount, tx));
//!     tx.or_else(|tx| reserve(tx).map(|()| true), |_| Ok(false))
//! }
//!
//! let path = [TVar::new(10), TVar::new(5)];
//! assert!(atomically(|tx| reserve_path(&path, 4, tx)));
//! assert!(!atomically(|tx| reserve_path(&path, 4, tx)));
//! assert_eq!((path[0].load(), path[1].load()), (6, 1));
//! ```
//!
//! Without `or_else`, `check` waits until each link has enough bandwidth, as [`retry`] does: [`atomically`] blocks the thread,
//! [`atomically_async`] the task. A handler must not wait: it calls [`try_atomically`], which returns the reason if the
//! transaction was not carried out.
//!
//! A transaction runs again after a conflict, so its only side effects must be on variables. Return the work to do from it, and
//! send messages and change tables and snapshots afterwards. Changing a [`Table`] or publishing a [`Snapshot`] inside a
//! transaction panics; reading either is allowed. Other code with side effects can check [`in_transaction`] and refuse.
//!
//! # Unsafe code
//! Transactions and tables use `unsafe`, with a proof next to each use: values of any type in one machine word, and reads
//! without locks or reference counts, whose memory is reclaimed by epochs. Loom checks the algorithms
//! (`tests/state_model.rs`).

#[cfg(doctest)]
mod invariance;
mod snapshot;
mod stm;
mod table;
mod wait;
mod word;

pub use snapshot::Snapshot;
pub use stm::{
    Abort, Limits, Refused, Series, TVar, Transaction, atomically, atomically_async, check,
    in_transaction, retry, try_atomically,
};
pub use table::{Table, TableError};
pub use word::{Word, neighbourly};

/// Requests the processor to fetch the cache line of a value that will be read soon. It has no other effect; on processors
/// without such an instruction, it does nothing.
#[inline(always)]
pub fn prefetch<T>(at: &T) {
    sync::prefetch(std::ptr::from_ref(at));
}

/// Synchronisation primitives and sizes; the models replace them with their own.
mod sync {
    pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
    pub use std::sync::{Mutex, MutexGuard};
    pub use std::thread::yield_now;

    /// The largest write set that is searched linearly, and the largest read set that is revalidated read by read.
    pub const FEW: usize = 16;

    /// The number of locks over which a table's changes are spread.
    pub const STRIPES: usize = 64;

    /// The number of cache lines in a table's neighbourhood.
    pub const NEIGHBOURHOOD: usize = 16;

    /// Prefetches a cache line that will be read soon.
    #[inline(always)]
    pub fn prefetch<T>(at: *const T) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch is a hint: it has no visible effect and never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = at;
    }

    /// Prefetches a cache line for writing, which removes it from other cores' caches. Several prefetches overlap, whereas
    /// atomic exchanges would wait one after another.
    #[inline(always)]
    pub fn prefetch_to_write<T>(at: *const T) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: this is also only a prefetch: it neither changes memory nor faults.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags));
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = at;
    }

    /// The number of spins after which a waiting thread yields.
    const SPINS_BEFORE_YIELD: u32 = 32;

    /// Spins once while another thread finishes a short operation.
    #[cold]
    pub fn spin(spins: &mut u32) {
        *spins += 1;
        match *spins % SPINS_BEFORE_YIELD {
            0 => yield_now(),
            _ => std::hint::spin_loop(),
        }
    }
}
