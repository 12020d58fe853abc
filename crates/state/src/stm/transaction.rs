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
    /// Whether a transaction runs in this thread.
    static IS_RUNNING: Cell<bool> = const { Cell::new(false) };
    /// The log of the last transaction, for the next.
    static SPARE_LOG: Cell<Option<Box<Log>>> = const { Cell::new(None) };
    /// Whether a [`Series`] runs in this thread.
    static IN_SERIES: Cell<bool> = const { Cell::new(false) };
    /// What keeps the thread pinned between the transactions of a series.
    static PINNED: Cell<Option<Guard>> = const { Cell::new(None) };
}

/// Whether the calling code runs inside a transaction, where it must have no side effects but on [`TVar`](crate::TVar)s:
/// the transaction may be run again, or be aborted.
pub fn in_transaction() -> bool {
    IS_RUNNING.get()
}

/// While this value lives, each transaction of its thread after the first saves an atomic exchange: for loops with one in each
/// iteration, such as a controller's over packet-ins. It costs nearly nothing where there is none.
///
/// **Memory.** What any thread overwrites after its first transaction is dropped when the series has ended: keep it short.
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
    /// A nested one ends with the outermost.
    is_outermost: bool,
    /// It belongs to the thread.
    _not_send: PhantomData<*mut ()>,
}

impl Series {
    /// Begins one in this thread.
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
            // Where the thread ends, it is not pinned any more either.
            drop(PINNED.try_with(Cell::take));
        }
    }
}

impl fmt::Debug for Series {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Series").finish_non_exhaustive()
    }
}

/// The transaction cannot commit: pass this on with `?`.
///
/// Either it called [`retry`] or [`check`], or what it read has changed meanwhile, or it has done more than its
/// [`Limits`](crate::Limits) allow. Only [`Transaction::or_else`] is to catch the first: where other code does, the transaction
/// goes on. The others are returned again by each further read and write, and at the end.
#[derive(Debug)]
#[must_use = "pass it on with `?`"]
pub struct Abort(pub(crate) Cause);

impl fmt::Display for Abort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            Cause::Retry => {
                "the transaction called retry: it waits until something that it has read changes"
            }
            Cause::Conflict => "something that the transaction has read was changed meanwhile",
            Cause::TooLong => "the transaction made more reads and writes than its limit allows",
        })
    }
}

impl std::error::Error for Abort {}

/// Gives the transaction up until something that it has read changes, or for the other branch of
/// [`Transaction::or_else`].
///
/// # Errors
/// Always.
pub fn retry<T>() -> Result<T, Abort> {
    Err(Abort(Cause::Retry))
}

/// Goes on where the condition holds, and else gives up as [`retry`] does: `check(current >= amount)?`.
///
/// # Errors
/// Where the condition does not hold.
#[inline]
pub fn check(condition: bool) -> Result<(), Abort> {
    if condition { Ok(()) } else { retry() }
}

/// A running transaction. Code that gets it from [`atomically`](crate::atomically) or its siblings can pass it on to any
/// function that is to take part.
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
            "a transaction was started inside another: hand the `&mut Transaction` on to the functions that take part, \
             and start one around them all"
        );
        let spare = SPARE_LOG.try_with(Cell::take).ok().flatten();
        let mut log = ManuallyDrop::new(spare.unwrap_or_default());
        let pinned = PINNED.try_with(Cell::take).ok().flatten();
        let pinned = Some(pinned.unwrap_or_else(crossbeam_epoch::pin));
        // SAFETY: `pinned` stays with the log until `drop` has cleared it, and what gets the log next begins here.
        unsafe { log.begin(&CLOCK, max_operations) };
        Self { log, pinned }
    }

    /// Runs `first`; if that calls [`retry`], rolls back what it has written and runs `second`.
    ///
    /// If that retries, too, the transaction waits for a change of anything that either has read. (McNettle's `orElse`.)
    ///
    /// # Errors
    /// Those of `second`, and those of `first` but for `retry`.
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
    /// The value is of the variable's type, and the transaction's from now on.
    #[inline]
    pub(crate) unsafe fn write(&mut self, variable: &Handle, raw: Raw) -> Result<(), Abort> {
        // SAFETY: the log asks for what this function asks for.
        unsafe { self.log.write(variable, raw) }.map_err(Abort)
    }

    /// Makes all that was written visible, or nothing. Wakes those who wait for changes of it.
    #[inline]
    pub(crate) fn commit(self, is_exclusive: bool) -> Result<(), Cause> {
        // What was read is a consistent snapshot: a transaction without writes is done.
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

    /// Retires the old values, and returns those who wait for changes.
    #[inline(never)]
    fn publish(&mut self) -> Vec<Arc<Waiter>> {
        let mut woken = Vec::new();
        self.log.drain_written(|core, old, is_awaited| {
            if let Some(drop_raw) = core.drop_raw {
                // SAFETY: the value is of the core's type, which `TVar::new` has asked to be Send. The commit has put another in its
                // place, so that only transactions which run now may still look at it, and it is given away here alone.
                unsafe { retire(move || drop_raw(old)) };
            }
            if is_awaited {
                woken.append(&mut core.waiters.take());
            }
        });
        woken
    }

    /// Why it cannot commit, if that is known.
    pub(crate) fn doomed(&self) -> Option<Cause> {
        self.log.doomed()
    }

    /// Ends it, to wait for what it has read; nothing if that has changed already.
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
        // SAFETY: this is `drop`, after which nobody uses the field; and it is not taken out anywhere else.
        let log = unsafe { ManuallyDrop::take(&mut self.log) };
        IS_RUNNING.set(false);
        // Where the thread ends, the log ends as well.
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
