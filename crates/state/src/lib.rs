//! State that control programs share: transactional variables, concurrent tables, snapshots.
//!
//! A control program's handlers run on many cores, a switch's own state needs no synchronisation, and what is left is
//! what switches share: where hosts are, what links have to spare, the topology (McNettle section 4). This crate has one structure
//! for each such need. It stands apart because it knows nothing of switches and networks: programs, services and tests
//! use it alike, and it is tried on its own, in all orders in which threads can meet.
//!
//! | structure | for | reading | changing |
//! | --- | --- | --- | --- |
//! | [`TVar`] and [`atomically`] | several values that change together | one cache line and a look at its version; no lock | one atomic exchange a variable; who meets a conflict runs again |
//! | [`Table`] | small keys and values, looked up for each packet | one cache line; no lock | a lock that few others share; nothing, if nothing changes |
//! | [`Snapshot`] | one large value that is replaced as a whole | a share of it; no lock | makes a new one; nobody waits |
//! | `Mutex`, of the standard library | what is changed as often as it is read, by few | waits for others | waits for others |
//!
//! All may be used from any number of threads. In one thread they are deterministic: no clock is read, and no order
//! depends on chance.
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
//! Without `or_else`, `check` waits until a link has enough, as [`retry`] does: [`atomically`] in a thread, [`atomically_async`] in a task. A
//! handler must not wait: it calls [`try_atomically`], which says why nothing was done.
//!
//! What a transaction does is done again when others were in its way. So it must have no effects but on variables: send
//! messages after it, and change tables and snapshots, by its result. A [`Table`] that would change, and a [`Snapshot`] that is
//! published, panic inside a transaction; reading either is fine. What else has effects can ask [`in_transaction`] and
//! refuse.

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

/// What all is made of, and how much of it; for which the models have other ones.
mod sync {
    pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
    pub use std::sync::{Mutex, MutexGuard};
    pub use std::thread::yield_now;

    /// How many writes of a transaction are searched, and reads looked at again, one by one.
    pub const FEW: usize = 16;

    /// How many locks the changes of a table are spread over.
    pub const STRIPES: usize = 64;

    /// How many cache lines of a table are a neighbourhood.
    pub const NEIGHBOURHOOD: usize = 16;

    /// Has a cache line fetched that will be read soon.
    #[inline(always)]
    pub fn prefetch<T>(at: *const T) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch is a hint: it reads nothing that the program sees and never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = at;
    }

    /// The same for one that will be written, and is taken from other cores meanwhile: several at once, while atomic
    /// exchanges wait for one after the other.
    #[inline(always)]
    pub fn prefetch_to_write<T>(at: *const T) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: as above.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags));
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = at;
    }

    /// After how many turns whoever waits lets other threads run.
    const TURNS_BEFORE_YIELD: u32 = 32;

    /// One turn of waiting for another thread, which will not be long.
    #[cold]
    pub fn spin(turns: &mut u32) {
        *turns += 1;
        match *turns % TURNS_BEFORE_YIELD {
            0 => yield_now(),
            _ => std::hint::spin_loop(),
        }
    }
}
