//! Software transactional memory (McNettle section 4.4).
//!
//! **What.** [`TVar`]s hold values; [`atomically`] and its siblings run a function that reads and writes some of them, as
//! if it ran alone (serialisability). What it reads is a consistent snapshot, even if the transaction is aborted later
//! (opacity): no transaction ever sees half of another's writes.
//!
//! **How.** Optimistically: a transaction buffers its writes, and validates at the end that all that it has read is
//! unchanged. From the bottom up:
//!
//! - `versioned`: a word with its version and lock, and the clock that versions come from, with the proof of correctness.
//! - `core`, `repr`: a variable without its type, and how values of a type are kept in a word; `reclaim`: when old values are
//!   dropped.
//! - `log`: a transaction's read set and write set; the commit.
//! - `waiting`: how it waits for a change; `gate`: how it makes progress where there are many conflicts.
//! - `transaction`, `tvar`, `run`: the public interface.
//!
//! **Cost.** A transaction pins an epoch, reads each variable's cache line, and locks what it writes, one atomic exchange
//! each. It writes nothing shared but that, and allocates nothing where values are kept inline. To begin and to end takes
//! some 120 instructions, of which a [`Series`] saves an atomic exchange; a read 30 (80 where others write much), a read and
//! a write some 200 with their part of the commit. A variable that another core wrote last comes from there twice, once to
//! be read and once to be written.
//!
//! **Thread-safety.** All of it may be used from any thread. In one thread alone there are no conflicts, and everything is
//! deterministic, but for when overwritten values are dropped.

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
