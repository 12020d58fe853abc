//! A running transaction.

use super::cause::Cause;
use super::core::Handle;
use super::gate::GATE;
use super::log::{Branch, Log};
use super::reclaim::retire;
use super::versioned::{Clock, Raw};
use super::waiting::Waiting;
use crate::sync::AtomicU64;
use crate::wait::Waiter;
use crossbeam_epoch::Guard;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::task::Waker;

/// The clock of all variables.
static CLOCK: Clock = Clock(AtomicU64::new(0));

thread_local! {
    /// Set while a transaction runs in this thread.
    static IS_RUNNING: Cell<bool> = const { Cell::new(false) };
    /// The log of the last transaction, reused by the next.
    static SPARE_LOG: Cell<Option<Box<Log>>> = const { Cell::new(None) };
    /// Set while a [`Series`] runs in this thread.
    static IN_SERIES: Cell<bool> = const { Cell::new(false) };
    /// The guard that keeps the thread pinned between the transactions of a series.
    static PINNED: Cell<Option<Guard>> = const { Cell::new(None) };
}

/// Returns `true` inside a transaction, where code must have no side effects except on [`TVar`](crate::TVar)s, because the
/// transaction may be run again or be aborted.
pub fn in_transaction() -> bool {
    IS_RUNNING.get()
}

/// While this value lives, each transaction of its thread except the first saves an atomic exchange: for loops with a
/// transaction in each iteration, such as a controller's loop over packet-ins. A series without transactions costs almost
/// nothing.
///
/// **Memory.** Values that any thread overwrites during the series are dropped only after it has ended, so keep it short.
///
/// ```
/// use urtica_state::{Series, TVar, atomically};
///
/// let numbers = [TVar::new(1), TVar::new(2)];
/// let _series = Series::new();
/// for number in &numbers {
///     atomically(|tx| number.modify(tx, |number| number + 1));
/// }
/// assert_eq!((numbers[0].load(), numbers[1].load()), (2, 3));
/// ```
#[must_use = "the series lasts as long as this value"]
pub struct Series {
    /// A nested series ends with the outermost one.
    is_outermost: bool,
    /// It belongs to the thread.
    _not_send: PhantomData<*mut ()>,
}

impl Series {
    /// Starts a series in this thread.
    #[expect(clippy::new_without_default, reason = "it is not a value but a time")]
    #[inline]
    pub fn new() -> Self {
        Self {
            is_outermost: !IN_SERIES.replace(true),
            _not_send: PhantomData,
        }
    }
}

impl Drop for Series {
    #[inline]
    fn drop(&mut self) {
        if self.is_outermost {
            IN_SERIES.set(false);
            // If the thread is ending, it is no longer pinned anyway.
            drop(PINNED.try_with(Cell::take));
        }
    }
}

impl fmt::Debug for Series {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Series").finish_non_exhaustive()
    }
}

/// The reason why a transaction cannot commit: return this with `?`.
///
/// It called [`retry`] or [`check`], a value that it read has changed, or it has exceeded its [`Limits`](crate::Limits). Only
/// [`Transaction::or_else`] should catch the first of these: if other code does, the transaction continues. The other two are
/// returned again by each further read and write, and at the end.
#[derive(Debug)]
#[must_use = "pass it on with `?`"]
pub struct Abort(pub(crate) Cause);

impl fmt::Display for Abort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            Cause::Retry => {
                "the transaction called retry: it waits until a value that it has read changes"
            }
            Cause::Conflict => "a value that the transaction has read was changed while it ran",
            Cause::TooLong => "the transaction made more reads and writes than its limit allows",
        })
    }
}

impl std::error::Error for Abort {}

/// Abandons the attempt until a value that it has read changes, or in favour of the other branch of [`Transaction::or_else`].
///
/// # Errors
/// Always.
pub fn retry<T>() -> Result<T, Abort> {
    Err(Abort(Cause::Retry))
}

/// Continues if the condition holds; otherwise retries like [`retry`]: `check(current >= amount)?`.
///
/// # Errors
/// If the condition does not hold.
#[inline]
pub fn check(condition: bool) -> Result<(), Abort> {
    if condition { Ok(()) } else { retry() }
}

/// A running transaction. [`atomically`](crate::atomically) and its siblings pass it to their closure, which can pass it to any
/// function that reads or writes variables.
///
/// **Thread-safety.** It belongs to the thread that runs it.
pub struct Transaction {
    log: ManuallyDrop<Box<Log>>,
    /// Always `Some`, until it is dropped.
    pinned: Option<Guard>,
}

impl Transaction {
    /// # Panics
    /// In a transaction.
    #[inline]
    pub(crate) fn begin(max_operations: u64) -> Self {
        assert!(
            !IS_RUNNING.replace(true),
            "a transaction was started inside another: pass the `&mut Transaction` to the functions that take part, \
             and start one around them all"
        );
        let spare = SPARE_LOG.try_with(Cell::take).ok().flatten();
        let mut log = ManuallyDrop::new(spare.unwrap_or_default());
        let pinned = PINNED.try_with(Cell::take).ok().flatten();
        let pinned = Some(pinned.unwrap_or_else(crossbeam_epoch::pin));
        // SAFETY: `pinned` stays with the log until `drop` has cleared it, and the log's next user also starts here.
        unsafe { log.begin(&CLOCK, max_operations) };
        Self { log, pinned }
    }

    /// Runs `first`; if that calls [`retry`], rolls back its writes and runs `second`.
    ///
    /// If `second` retries too, the transaction waits for a change of any value that either has read (McNettle's `orElse`).
    ///
    /// # Errors
    /// Those of `second`, and those of `first` except `retry`.
    pub fn or_else<T>(
        &mut self,
        first: impl FnOnce(&mut Self) -> Result<T, Abort>,
        second: impl FnOnce(&mut Self) -> Result<T, Abort>,
    ) -> Result<T, Abort> {
        let branch: Branch = self.log.branch();
        match first(self) {
            Err(Abort(Cause::Retry)) => {
                self.log.roll_back(branch);
                second(self)
            }
            result => {
                self.log.keep(branch);
                result
            }
        }
    }

    #[inline]
    pub(crate) fn read(&mut self, variable: &Handle) -> Result<Raw, Abort> {
        self.log.read(&CLOCK, variable).map_err(Abort)
    }

    /// # Safety
    /// The value is of the variable's type, and belongs to the transaction from now on.
    #[inline]
    pub(crate) unsafe fn write(&mut self, variable: &Handle, raw: Raw) -> Result<(), Abort> {
        // SAFETY: the log has the same requirements as this function.
        unsafe { self.log.write(variable, raw) }.map_err(Abort)
    }

    /// Makes all writes visible, or none. Wakes the transactions that wait for these changes.
    #[inline]
    pub(crate) fn commit(self, is_exclusive: bool) -> Result<(), Cause> {
        // The reads form a consistent snapshot: a transaction without writes is done.
        match self.log.has_writes() {
            true => self.commit_writes(is_exclusive),
            false => self.log.doomed().map_or(Ok(()), Err),
        }
    }

    #[inline(never)]
    fn commit_writes(mut self, is_exclusive: bool) -> Result<(), Cause> {
        if !is_exclusive {
            GATE.pass();
        }
        self.log.commit(&CLOCK)?;
        if self.log.has_writes() {
            let woken = self.publish();
            drop(self);
            woken.iter().for_each(|waiter| waiter.wake());
        }
        Ok(())
    }

    /// Retires the old values, and returns the waiters for the changes.
    #[inline(never)]
    fn publish(&mut self) -> Vec<Arc<Waiter>> {
        let mut woken = Vec::new();
        self.log.drain_written(|core, old, is_awaited| {
            if let Some(drop_raw) = core.drop_raw {
                // SAFETY: the value is of the core's type, which `TVar::new` requires to be Send. The commit has replaced it,
                // so only transactions that are running now may still read it, and only this call retires it.
                unsafe { retire(move || drop_raw(old)) };
            }
            if is_awaited {
                woken.append(&mut core.waiters.take());
            }
        });
        woken
    }

    /// Returns the reason why the transaction cannot commit, if known.
    pub(crate) fn doomed(&self) -> Option<Cause> {
        self.log.doomed()
    }

    /// Ends the attempt in order to wait for changes of its reads; `None` if one has changed already.
    pub(crate) fn wait(self, waker: &Waker) -> Option<Waiting> {
        assert!(
            !self.log.has_read_nothing(),
            "a transaction calls `retry` without having read anything: it would wait for ever; read the variables that \
             it depends on before"
        );
        Waiting::new(&self.log, waker)
    }
}

impl Drop for Transaction {
    #[inline]
    fn drop(&mut self) {
        self.log.clear();
        // SAFETY: this is `drop`, after which the field is not used; and it is not taken anywhere else.
        let log = unsafe { ManuallyDrop::take(&mut self.log) };
        IS_RUNNING.set(false);
        // If the thread is ending, the log is dropped.
        let _ = SPARE_LOG.try_with(|spare| spare.set(Some(log)));
        if IN_SERIES.get() {
            let _ = PINNED.try_with(|pinned| pinned.set(self.pinned.take()));
        }
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Transaction")
            .finish_non_exhaustive()
    }
}
