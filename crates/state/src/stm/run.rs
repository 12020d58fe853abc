//! Running transactions: until they commit, until they cannot, or as a future.

use super::cause::Cause;
use super::gate::{ExclusiveCommit, GATE};
use super::transaction::{Abort, Transaction};
use super::waiting::Waiting;
use crate::wait::thread_waker;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::{hint, thread};

/// After how many conflicts a transaction asks for exclusive commit: others do not commit meanwhile.
const CONFLICTS_BEFORE_EXCLUSIVE: u32 = 8;

/// After how many conflicts it yields to other threads before it tries again.
const CONFLICTS_BEFORE_YIELD: u32 = 3;

/// How much a transaction may do before it is refused.
///
/// ```
/// use urtica_state::Limits;
///
/// const FEW: Limits = Limits::DEFAULT.attempts(3).operations(1000);
/// assert_eq!((FEW.attempts, FEW.operations), (3, 1000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How many times [`try_atomically`] runs it, as long as each attempt ends with a conflict.
    pub attempts: u32,
    /// How many reads and writes it may make in each attempt.
    pub operations: u64,
}

impl Limits {
    /// 64 attempts of a million (2^20) reads and writes.
    pub const DEFAULT: Self = Self {
        attempts: 64,
        operations: 1 << 20,
    };

    /// The same with so many attempts.
    pub const fn attempts(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// The same with so many reads and writes in each attempt.
    pub const fn operations(self, operations: u64) -> Self {
        Self { operations, ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why [`try_atomically`] did not carry out a transaction: nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// It called [`retry`](crate::retry).
    #[error(
        "the transaction called retry, as what it needs is not there; try again when that may have changed"
    )]
    Retry,
    /// In each attempt others changed what it had read.
    #[error(
        "the transaction had a conflict in each of its {attempts} attempts; read fewer variables, or allow more attempts"
    )]
    Contention {
        /// How many times it was run.
        attempts: u32,
    },
    /// It made more reads and writes than it may.
    #[error(
        "the transaction made more than its limit of {operations} reads and writes; end its loop, split it, or raise Limits::operations"
    )]
    TooLong {
        /// How many it may make.
        operations: u64,
    },
}

/// Runs a transaction as if it ran alone, and returns its result.
///
/// It may be run several times, and must have no side effects but on [`TVar`](crate::TVar)s. The bound `Fn` enforces that
/// in part: what needs `&mut`, a switch for instance, cannot be used inside.
///
/// ```compile_fail,E0596
/// let mut sent = Vec::new();
/// urtica_state::atomically(|_transaction| {
///     sent.push("a flow mod"); // cannot borrow `sent` as mutable: it would be sent once more with each attempt
///     Ok(())
/// });
/// ```
///
/// Where it calls [`retry`](crate::retry), the thread sleeps until a variable that it has read changes. Never call
/// this in a handler: use [`try_atomically`] there.
///
/// **Progress.** Nobody waits for a lock while holding one, so there is no deadlock. A transaction that had eight conflicts
/// gets exclusive commit: others hold their commits back until it has ended, but not longer than about 20 ms. So all
/// commit in the end, unless one takes longer than that under contention.
///
/// # Panics
/// In a transaction; where the transaction calls `retry` without having read anything, since it would wait for ever; and
/// after more reads and writes than [`Limits::DEFAULT`] allows, since it seems to loop.
pub fn atomically<T>(transaction: impl Fn(&mut Transaction) -> Result<T, Abort>) -> T {
    loop {
        match run(&transaction) {
            Ok(value) => return value,
            Err(retried) => {
                if let Some(waiting) = retried.wait(&thread_waker()) {
                    waiting.sleep();
                }
            }
        }
    }
}

/// Runs a transaction as [`atomically`] does, but never waits for others to change something.
///
/// It waits only for commits that are under way, which take no longer than to write their variables, and for a transaction
/// with exclusive commit: see [`atomically`].
///
/// # Errors
/// Where the transaction calls [`retry`](crate::retry), or goes beyond its limits. Nothing is changed then.
///
/// # Panics
/// In a transaction.
pub fn try_atomically<T>(
    limits: Limits,
    transaction: impl Fn(&mut Transaction) -> Result<T, Abort>,
) -> Result<T, Refused> {
    let first = match limits.attempts {
        0 => Outcome::Conflict,
        _ => attempt(&transaction, &limits, false),
    };
    match first {
        Outcome::Done(value) => Ok(value),
        Outcome::Retry(_) => Err(Refused::Retry),
        Outcome::TooLong => Err(too_long(&limits)),
        Outcome::Conflict => try_again(&limits, &transaction),
    }
}

/// Runs a transaction again after its first conflict.
#[cold]
#[inline(never)]
fn try_again<T>(
    limits: &Limits,
    transaction: &impl Fn(&mut Transaction) -> Result<T, Abort>,
) -> Result<T, Refused> {
    let mut exclusive = None;
    for conflicts in 1..limits.attempts {
        back_off(conflicts);
        if conflicts >= CONFLICTS_BEFORE_EXCLUSIVE && exclusive.is_none() {
            exclusive = GATE.try_close();
        }
        match attempt(transaction, limits, exclusive.is_some()) {
            Outcome::Done(value) => return Ok(value),
            Outcome::Retry(_) => return Err(Refused::Retry),
            Outcome::TooLong => return Err(too_long(limits)),
            Outcome::Conflict => {}
        }
    }
    Err(Refused::Contention {
        attempts: limits.attempts,
    })
}

/// A transaction as a future, for background programs: where it calls [`retry`](crate::retry), the task sleeps until a
/// variable that it has read changes.
///
/// Any executor will do. It runs whenever it is polled, and takes effect once, when it is ready. Dropping it before that ends
/// it without effect.
///
/// # Panics
/// When polled, as [`atomically`].
pub fn atomically_async<T, F>(transaction: F) -> impl Future<Output = T> + Send
where
    F: Fn(&mut Transaction) -> Result<T, Abort> + Send,
{
    Atomically {
        transaction,
        waiting: None,
    }
}

struct Atomically<F> {
    transaction: F,
    waiting: Option<Waiting>,
}

// No field is structurally pinned.
impl<F> Unpin for Atomically<F> {}

impl<T, F: Fn(&mut Transaction) -> Result<T, Abort>> Future for Atomically<F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if let Some(waiting) = &self.waiting {
            if !waiting.is_over_or_wakes(context.waker()) {
                return Poll::Pending;
            }
        }
        self.waiting = None;
        while self.waiting.is_none() {
            match run(&self.transaction) {
                Ok(value) => return Poll::Ready(value),
                Err(retried) => self.waiting = retried.wait(context.waker()),
            }
        }
        Poll::Pending
    }
}

/// How one attempt ended.
enum Outcome<T> {
    Done(T),
    Retry(Transaction),
    Conflict,
    TooLong,
}

/// Runs a transaction until it is done, or calls `retry`.
#[inline]
fn run<T>(transaction: &impl Fn(&mut Transaction) -> Result<T, Abort>) -> Result<T, Transaction> {
    match attempt(transaction, &Limits::DEFAULT, false) {
        Outcome::Done(value) => Ok(value),
        Outcome::Retry(retried) => Err(retried),
        Outcome::TooLong => panic!("{}", too_long(&Limits::DEFAULT)),
        Outcome::Conflict => run_again(transaction),
    }
}

/// Runs a transaction again after its first conflict.
#[cold]
#[inline(never)]
fn run_again<T>(
    transaction: &impl Fn(&mut Transaction) -> Result<T, Abort>,
) -> Result<T, Transaction> {
    let mut exclusive: Option<ExclusiveCommit> = None;
    let mut conflicts = 0;
    loop {
        conflicts += 1;
        back_off(conflicts);
        if conflicts >= CONFLICTS_BEFORE_EXCLUSIVE {
            exclusive.get_or_insert_with(|| GATE.close());
        }
        match attempt(transaction, &Limits::DEFAULT, exclusive.is_some()) {
            Outcome::Done(value) => return Ok(value),
            Outcome::Retry(retried) => return Err(retried),
            Outcome::TooLong => panic!("{}", too_long(&Limits::DEFAULT)),
            Outcome::Conflict => {}
        }
    }
}

#[inline(always)] // a tenth of a short transaction's time
fn attempt<T>(
    transaction: &impl Fn(&mut Transaction) -> Result<T, Abort>,
    limits: &Limits,
    is_exclusive: bool,
) -> Outcome<T> {
    let mut running = Transaction::begin(limits.operations);
    let result = transaction(&mut running);
    let cause = match (result, running.doomed()) {
        (Ok(value), None) => match running.commit(is_exclusive) {
            Ok(()) => return Outcome::Done(value),
            Err(cause) => cause,
        },
        (Err(Abort(Cause::Retry)), None) => return Outcome::Retry(running),
        (Err(Abort(cause)), None) | (_, Some(cause)) => cause,
    };
    match cause {
        Cause::TooLong => Outcome::TooLong,
        Cause::Conflict | Cause::Retry => Outcome::Conflict,
    }
}

fn too_long(limits: &Limits) -> Refused {
    Refused::TooLong {
        operations: limits.operations,
    }
}

/// Backs off, to give others time to commit: longer each time, and after a few conflicts by yielding the processor.
#[cold]
fn back_off(conflicts: u32) {
    if conflicts > CONFLICTS_BEFORE_YIELD {
        return thread::yield_now();
    }
    for _ in 0..8 << conflicts {
        hint::spin_loop();
    }
}
