//! Runs transactions: until they commit, until they are refused, or as a future.

use super::cause::Cause;
use super::gate::{ExclusiveCommit, GATE};
use super::transaction::{Abort, Transaction};
use super::waiting::Waiting;
use crate::wait::thread_waker;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::{hint, thread};

/// The number of conflicts after which a transaction requests exclusive commit, so that others do not commit while it runs.
const CONFLICTS_BEFORE_EXCLUSIVE: u32 = 8;

/// The number of conflicts after which a transaction yields to other threads before the next attempt.
const CONFLICTS_BEFORE_YIELD: u32 = 3;

/// Limits of a transaction, beyond which it is refused.
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
    /// The maximum number of attempts of [`try_atomically`], if each ends with a conflict.
    pub attempts: u32,
    /// The maximum number of reads and writes in each attempt.
    pub operations: u64,
}

impl Limits {
    /// 64 attempts of a million (2^20) reads and writes.
    pub const DEFAULT: Self = Self {
        attempts: 64,
        operations: 1 << 20,
    };

    /// Sets the maximum number of attempts.
    pub const fn attempts(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// Sets the maximum number of reads and writes in each attempt.
    pub const fn operations(self, operations: u64) -> Self {
        Self { operations, ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The reason why [`try_atomically`] did not carry out a transaction. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// It called [`retry`](crate::retry).
    #[error(
        "the transaction called retry, as a condition does not hold yet; try again when that may have changed"
    )]
    Retry,
    /// In each attempt, other transactions changed values that it had read.
    #[error(
        "the transaction had a conflict in each of its {attempts} attempts; read fewer variables, or allow more attempts"
    )]
    Contention {
        /// The number of attempts made.
        attempts: u32,
    },
    /// It exceeded its limit of reads and writes.
    #[error(
        "the transaction made more than its limit of {operations} reads and writes; end its loop, split it, or raise Limits::operations"
    )]
    TooLong {
        /// The maximum number of reads and writes.
        operations: u64,
    },
}

/// Runs a transaction as if it ran alone, and returns its result.
///
/// It may run several times, so its only side effects must be on [`TVar`](crate::TVar)s. The bound `Fn` enforces a part of
/// this: values that need `&mut`, such as a switch, cannot be used inside.
///
/// ```compile_fail,E0596
/// let mut sent = Vec::new();
/// urtica_state::atomically(|_transaction| {
///     sent.push("a flow mod"); // cannot borrow `sent` as mutable: it would be sent once more with each attempt
///     Ok(())
/// });
/// ```
///
/// If it calls [`retry`](crate::retry), the thread sleeps until a variable that it has read changes. Never call this in a
/// handler: use [`try_atomically`] there.
///
/// **Progress.** No thread waits for a lock while it holds one, so deadlock is impossible. A transaction that had eight
/// conflicts gets exclusive commit: other commits wait until it has ended, for at most about 20 ms. So all transactions commit
/// eventually, unless one runs longer than that under contention.
///
/// # Panics
/// If called in a transaction; if the transaction calls `retry` without having read anything, since it would wait for ever; and
/// if it exceeds the number of reads and writes of [`Limits::DEFAULT`], since it seems to loop.
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

/// Runs a transaction like [`atomically`], but never waits for other threads to change a value.
///
/// It only waits for commits in progress, which last until their variables are written, and for a transaction with exclusive
/// commit: see [`atomically`].
/// exclusive commit: see [`atomically`].
///
/// # Errors
/// If the transaction calls [`retry`](crate::retry), or exceeds its limits. Then nothing is changed.
///
/// # Panics
/// If called in a transaction.
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

/// Runs a transaction as a future, for background programs: if it calls [`retry`](crate::retry), the task sleeps until a
/// variable that it has read changes.
///
/// Works with any executor. The transaction runs each time the future is polled, and takes effect once, when the future is
/// ready. Dropping the future earlier cancels it without effect.
///
/// # Panics
/// When polled, like [`atomically`].
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

/// The outcome of one attempt.
enum Outcome<T> {
    Done(T),
    Retry(Transaction),
    Conflict,
    TooLong,
}

/// Runs a transaction until it commits or calls `retry`.
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

/// Backs off to let others commit: longer each time, and after a few conflicts also by yielding the processor.
#[cold]
fn back_off(conflicts: u32) {
    if conflicts > CONFLICTS_BEFORE_YIELD {
        return thread::yield_now();
    }
    for _ in 0..8 << conflicts {
        hint::spin_loop();
    }
}
