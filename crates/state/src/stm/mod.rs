//! Software transactional memory (McNettle section 4.4).
//!
//! **What.** [`TVar`]s hold values; [`atomically`] and its siblings run a function that reads and writes some of them as if it
//! ran alone (serialisability). Its reads form a consistent snapshot, even if the transaction is aborted later (opacity): no
//! transaction ever sees a part of another's writes.
//!
//! **How.** Optimistically: a transaction buffers its writes, and validates at the end that all its reads are unchanged.
//! From the bottom up:
//!
//! - `versioned`: a word with its version and lock, and the clock that versions come from, with the proof of correctness.
//! - `core`, `repr`: a variable without its type, and the representation of a type's values in a word; `reclaim`: when old
//!   values are dropped.
//! - `log`: a transaction's read set and write set; the commit.
//! - `waiting`: waiting for a change; `gate`: progress under frequent conflicts.
//! - `transaction`, `tvar`, `run`: the public interface.
//!
//! **Cost.** A transaction pins an epoch, reads each variable's cache line, and locks each written word with one atomic
//! exchange. It writes no other shared memory, and allocates nothing if values are kept inline. Starting and ending needs some
//! 120 instructions, and a [`Series`] saves an atomic exchange of it. A read needs 30 (80 if others write often), and a read
//! and a write need some 200 with their part of the commit. A variable that another core wrote last is transferred from it
//! twice, once for reading and once for writing.
//!
//! **Thread-safety.** Everything may be used from any thread. A single thread has no conflicts, and is deterministic except
//! for the time at which overwritten values are dropped.

mod cause;
mod core;
mod gate;
mod log;
mod reclaim;
mod repr;
mod run;
mod transaction;
mod tvar;
mod versioned;
mod waiting;

pub use run::{Limits, Refused, atomically, atomically_async, try_atomically};
pub use transaction::{Abort, Series, Transaction, check, in_transaction, retry};
pub use tvar::TVar;
