//! A word of memory that transactions share, with its version and its lock, and the clock of versions.
//!
//! **What.** A [`Versioned`] has a *stamp*: the version of its word, and flags that show whether a commit holds it and whether
//! it has waiters. The [`Clock`] tells a transaction which versions are consistent with each other.
//!
//! **How.** A clock of versions as in TL2 (Dice, Shalev and Shavit, DISC 2006), in the variant that its authors call GV5: a
//! commit gives its words a version beyond the clock's, but does not write the clock. A reader that finds such a version
//! validates its earlier reads (Riegel, Felber and Fetzer's lazy snapshots, DISC 2006). If there are many, it first raises the
//! clock, to avoid validating again. So all threads read the clock, and rarely write it.
//!
//! **Why this is correct.** Let a transaction have read the clock as *now*. A word's value when it was read is its
//! value at *now*, if its version is at most *now*, unless a commit changes it later with a version of at most *now*.
//! No commit does: a commit locks its words, then reads the clock, and takes a greater version. All these accesses are
//! `SeqCst`, so that they have one order. Had the commit read a clock before *now*, it would have locked the word
//! before the clock was raised to *now*, and so before our read of the word, which would have found the lock.
//!
//! Versions of one word only grow, though two commits may have equal versions: a commit's version also exceeds its
//! words' versions.

use crate::sync::{AtomicPtr, AtomicU64, spin};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

/// A value in a word: the value itself, or a pointer to it.
pub(crate) type Raw = *mut ();

/// The number of attempts of a commit to lock a word that another commit holds.
const LOCK_ATTEMPTS: u32 = 64;

/// The version of the newest values that a transaction may combine. On its own cache lines.
#[repr(align(128))]
pub(crate) struct Clock(pub AtomicU64);

impl Clock {
    #[inline]
    pub fn now(&self) -> u64 {
        self.0.load(SeqCst)
    }

    /// Raises the clock to at least `version`, and returns its value.
    #[inline]
    pub fn raise(&self, version: u64) -> u64 {
        self.0.fetch_max(version, SeqCst).max(version)
    }
}

/// A word's version, and flags for its lock and waiters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

impl Stamp {
    const LOCKED: u64 = 1;
    const AWAITED: u64 = 2;
    const VERSION_SHIFT: u32 = 2;

    #[inline]
    pub fn version(self) -> u64 {
        self.0 >> Self::VERSION_SHIFT
    }

    /// Returns `true` while a commit holds the word.
    #[inline]
    pub fn is_locked(self) -> bool {
        self.0 & Self::LOCKED != 0
    }

    /// Returns `true` if versions and lock flags are equal.
    #[inline]
    pub fn is_like(self, other: Self) -> bool {
        (self.0 ^ other.0) & !Self::AWAITED == 0
    }

    /// Returns `true` if a transaction may be waiting for the word to change.
    #[inline]
    pub fn is_awaited(self) -> bool {
        self.0 & Self::AWAITED != 0
    }
}

/// A word and its stamp.
#[derive(Debug)]
pub(crate) struct Versioned {
    stamp: AtomicU64,
    raw: AtomicPtr<()>,
}

impl Versioned {
    pub fn new(raw: Raw) -> Self {
        Self {
            stamp: AtomicU64::new(0),
            raw: AtomicPtr::new(raw),
        }
    }

    #[inline]
    pub fn stamp(&self) -> Stamp {
        Stamp(self.stamp.load(SeqCst))
    }

    /// Returns the word and its version, consistently. Waits while a commit writes it.
    ///
    /// A commit stores the word with `Release` after it has locked the stamp: a reader that loads the new word with `Acquire`
    /// finds the stamp changed.
    #[inline]
    pub fn read(&self) -> (u64, Raw) {
        self.try_read().unwrap_or_else(|| self.read_later())
    }

    /// Like `read`, but returns `None` while a commit writes the word.
    #[inline]
    pub fn try_read(&self) -> Option<(u64, Raw)> {
        let before = self.stamp();
        let raw = self.raw.load(Acquire);
        let after = Stamp(self.stamp.load(Relaxed));
        let belong_together = !before.is_locked() && before.is_like(after);
        belong_together.then_some((before.version(), raw))
    }

    #[cold]
    fn read_later(&self) -> (u64, Raw) {
        let mut spins = 0;
        loop {
            spin(&mut spins);
            if let Some(read) = self.try_read() {
                return read;
            }
        }
    }

    /// Returns the current word or a recent one, without its version: a hint that must not be dereferenced.
    #[inline]
    pub fn raw_hint(&self) -> Raw {
        self.raw.load(Relaxed)
    }

    /// Locks the word for a commit, which must end soon, since others wait for it. Returns the stamp from before, or `None` if
    /// another commit holds the word for too long.
    #[inline]
    pub fn try_lock(&self) -> Option<Stamp> {
        let mut spins = 0;
        while spins < LOCK_ATTEMPTS {
            let stamp = self.stamp();
            if !stamp.is_locked() {
                let locked = stamp.0 | Stamp::LOCKED;
                let exchanged = (self.stamp).compare_exchange(stamp.0, locked, SeqCst, Relaxed);
                if exchanged.is_ok() {
                    return Some(stamp);
                }
            }
            spin(&mut spins);
        }
        None
    }

    /// Unlocks the word without changing it.
    #[inline]
    pub fn unlock(&self, stamp: Stamp) {
        self.stamp.store(stamp.0, Release);
    }

    /// Replaces the word, which the caller has locked, unlocks it, clears the mark of waiters, and returns the old word.
    #[inline]
    pub fn replace_and_unlock(&self, raw: Raw, version: u64) -> Raw {
        // No other thread writes it while it is locked.
        let old = self.raw.load(Relaxed);
        self.raw.store(raw, Release);
        self.stamp.store(version << Stamp::VERSION_SHIFT, Release);
        old
    }

    /// Marks the word, so that the next commit that changes it wakes its waiters. Returns `false` if it has changed since this
    /// version, or is about to.
    ///
    /// Both this function and locking exchange the stamp, and one of them is first: either the commit sees the mark, or this
    /// function sees the lock.
    pub fn mark_awaited(&self, version: u64) -> bool {
        let marked = version << Stamp::VERSION_SHIFT | Stamp::AWAITED;
        let unmarked = version << Stamp::VERSION_SHIFT;
        match (self.stamp).compare_exchange(unmarked, marked, SeqCst, Acquire) {
            Ok(_) => true,
            Err(found) => found == marked,
        }
    }

    /// Returns the word, with exclusive access.
    pub fn raw_mut(&mut self) -> Raw {
        self.raw.load(Relaxed)
    }
}
