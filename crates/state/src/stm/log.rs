//! What a transaction has read and is about to write, and how it becomes visible at once.
//!
//! **How.** Everything read is as of one moment, at first `now` on the clock. A word that is newer moves that moment on
//! to when it was read, if all that was read before still holds ([`Log::read`]); so a transaction never sees half of
//! another one, not even if it is in vain. What is not newer than `now` has not changed since, and held at that later
//! moment, too. With few reads they are looked at again for each newer word, and the clock, which all threads share, is
//! left alone; with more, the clock is raised, and `now` moves on. Writes stay here until [`Log::commit`] locks their words, looks once more at all that was read, and
//! writes.
//!
//! **Cost.** Nothing is allocated once the vectors have grown: a log is used again and again. A read looks through at most
//! a few writes, or into a hash map where there are more.
//!
//! **Thread-safety.** A log belongs to one thread, which is pinned (`crossbeam_epoch`) from before its first read until
//! after [`Log::clear`]: so the cores that it refers to are there.

use super::core::{Core, Handle};
use super::versioned::{Clock, Raw, Stamp};
use super::{Cause, Limits};
use crate::sync::FEW;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem;
use std::ptr::NonNull;

/// How much a log may keep for the next transaction.
const KEPT: usize = 4096;

/// The log of one transaction after the other.
#[derive(Default)]
pub(crate) struct Log {
    /// What has at most this version belongs together.
    now: u64,
    operations_left: u64,
    /// Why the transaction cannot end well, once that is known.
    doom: Option<Cause>,
    reads: Vec<Read>,
    writes: Vec<Write>,
    /// A bit for each write, by its core's address: what is not here was not written.
    written: u64,
    /// Where the writes are, when there are more than a few.
    index: HashMap<NonNull<Core>, usize, BuildHasherDefault<AddressHasher>>,
    /// What writes before [`Log::branch`] were before they were overwritten after it.
    undo: Vec<(usize, Raw)>,
    /// Writes below this are of a time before the last branch.
    branch: usize,
}

struct Read {
    core: NonNull<Core>,
    version: u64,
}

struct Write {
    core: NonNull<Core>,
    /// The new value; from the commit on, the old one.
    raw: Raw,
    /// As it was when the word was locked.
    stamp: Option<Stamp>,
}

/// Where a log can be rolled back to.
pub(crate) struct Branch {
    writes: usize,
    undo: usize,
    outer: usize,
}

impl Log {
    /// Starts a transaction, with an empty log.
    #[inline]
    pub fn begin(&mut self, clock: &Clock, limits: &Limits) {
        self.now = clock.now();
        self.operations_left = limits.operations;
    }

    /// The value of a variable as this transaction sees it.
    #[inline]
    pub fn read(&mut self, clock: &Clock, core: NonNull<Core>) -> Result<Raw, Cause> {
        self.count_operation()?;
        if let Some(at) = self.find_write(core) {
            return Ok(self.writes[at].raw);
        }
        // SAFETY: the caller has a handle.
        let (mut version, mut raw) = unsafe { core.as_ref() }.versioned.read();
        while version > self.now {
            if self.reads.len() < FEW {
                self.check_reads()?;
                break;
            }
            self.move_on(clock, version)?;
            // SAFETY: as above.
            (version, raw) = unsafe { core.as_ref() }.versioned.read();
        }
        self.reads.push(Read { core, version });
        Ok(raw)
    }

    /// Moves `now` on to this version at least.
    #[cold]
    fn move_on(&mut self, clock: &Clock, version: u64) -> Result<(), Cause> {
        let now = clock.raise(version);
        self.check_reads()?;
        self.now = now;
        Ok(())
    }

    /// Looks whether all that was read still holds.
    #[inline]
    fn check_reads(&mut self) -> Result<(), Cause> {
        match self.reads.iter().all(Read::holds) {
            true => Ok(()),
            false => Err(self.doom(Cause::Conflict)),
        }
    }

    /// Notes a new value for a variable.
    #[inline]
    pub fn write(&mut self, core: NonNull<Core>, raw: Raw) -> Result<(), Cause> {
        let counted = self.count_operation();
        if let Err(cause) = counted {
            // SAFETY: the caller has a handle, and gave the value away.
            unsafe { drop_raw(core, raw) };
            return Err(cause);
        }
        match self.find_write(core) {
            Some(at) => self.overwrite(at, raw),
            None => self.add_write(core, raw),
        }
        Ok(())
    }

    fn overwrite(&mut self, at: usize, raw: Raw) {
        let old = mem::replace(&mut self.writes[at].raw, raw);
        if at < self.branch {
            self.undo.push((at, old));
        } else {
            // SAFETY: we are pinned, and own what is not yet written.
            unsafe { drop_raw(self.writes[at].core, old) };
        }
    }

    #[inline]
    fn add_write(&mut self, core: NonNull<Core>, raw: Raw) {
        if self.writes.len() >= FEW {
            self.index_writes();
            self.index.insert(core, self.writes.len());
        }
        self.written |= bit(core);
        self.writes.push(Write {
            core,
            raw,
            stamp: None,
        });
    }

    /// Puts the first few writes into the index, too.
    fn index_writes(&mut self) {
        if self.writes.len() == FEW {
            let writes = self.writes.iter().enumerate();
            self.index
                .extend(writes.map(|(at, write)| (write.core, at)));
        }
    }

    #[inline]
    fn find_write(&self, core: NonNull<Core>) -> Option<usize> {
        if self.written & bit(core) == 0 {
            return None;
        }
        if self.writes.len() > FEW {
            return self.index.get(&core).copied();
        }
        self.writes.iter().position(|write| write.core == core)
    }

    #[inline]
    fn count_operation(&mut self) -> Result<(), Cause> {
        if let Some(doom) = self.doom {
            return Err(doom);
        }
        match self.operations_left.checked_sub(1) {
            Some(left) => self.operations_left = left,
            None => return Err(self.doom(Cause::TooLong)),
        }
        Ok(())
    }

    fn doom(&mut self, cause: Cause) -> Cause {
        self.doom = Some(cause);
        cause
    }

    /// Why the transaction cannot end well, if that is known.
    pub fn doomed(&self) -> Option<Cause> {
        self.doom
    }

    /// From here on, writes can be taken back.
    pub fn branch(&mut self) -> Branch {
        Branch {
            writes: self.writes.len(),
            undo: self.undo.len(),
            outer: mem::replace(&mut self.branch, self.writes.len()),
        }
    }

    /// Keeps what was written since.
    pub fn keep(&mut self, branch: Branch) {
        self.branch = branch.outer;
    }

    /// Takes back what was written since. What was read stays: whoever waits, waits for that as well.
    pub fn roll_back(&mut self, branch: Branch) {
        while self.undo.len() > branch.undo {
            if let Some((at, old)) = self.undo.pop() {
                let new = mem::replace(&mut self.writes[at].raw, old);
                // SAFETY: we are pinned, and own what is not yet written.
                unsafe { drop_raw(self.writes[at].core, new) };
            }
        }
        while self.writes.len() > branch.writes {
            if let Some(write) = self.writes.pop() {
                self.index.remove(&write.core);
                // SAFETY: as above.
                unsafe { drop_raw(write.core, write.raw) };
            }
        }
        if self.writes.len() <= FEW {
            self.index.clear();
        }
        self.branch = branch.outer;
    }

    /// Whether anything is to be written.
    #[inline]
    pub fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Makes all writes visible at once, or none: then something that was read has changed, or another commit was in the
    /// way.
    pub fn commit(&mut self, clock: &Clock) -> Result<(), Cause> {
        if let Some(doom) = self.doom {
            return Err(doom);
        }
        if self.writes.is_empty() {
            return Ok(());
        }
        let version = self.lock_all(clock)?;
        if !self
            .reads
            .iter()
            .all(|read| read.holds() || self.holds_locked(read))
        {
            self.unlock(self.writes.len());
            return Err(Cause::Conflict);
        }
        for write in &mut self.writes {
            // SAFETY: we are pinned.
            let versioned = &unsafe { write.core.as_ref() }.versioned;
            write.raw = versioned.replace_and_unlock(write.raw, version);
        }
        Ok(())
    }

    /// Locks all words that are to be written and returns the version that they will have.
    #[inline]
    fn lock_all(&mut self, clock: &Clock) -> Result<u64, Cause> {
        let mut newest = 0;
        for at in 0..self.writes.len() {
            let write = &mut self.writes[at];
            // SAFETY: we are pinned.
            let stamp = unsafe { write.core.as_ref() }.versioned.try_lock();
            let Some(stamp) = stamp else {
                self.unlock(at);
                return Err(Cause::Conflict);
            };
            write.stamp = Some(stamp);
            newest = newest.max(stamp.version());
        }
        Ok(newest.max(clock.now()) + 1)
    }

    #[cold]
    fn unlock(&mut self, count: usize) {
        for write in &mut self.writes[..count] {
            if let Some(stamp) = write.stamp.take() {
                // SAFETY: we are pinned.
                unsafe { write.core.as_ref() }.versioned.unlock(stamp);
            }
        }
    }

    /// Whether what was read still holds, where we have locked the word ourselves.
    #[inline]
    fn holds_locked(&self, read: &Read) -> bool {
        let stamp = self
            .find_write(read.core)
            .and_then(|at| self.writes[at].stamp);
        stamp.is_some_and(|stamp| stamp.version() == read.version)
    }

    /// After a commit: calls `each` with the variables that were written, their old values, and whether somebody waits
    /// for them; the values are the callee's.
    pub fn drain_written(&mut self, mut each: impl FnMut(&Core, Raw, bool)) {
        for (at, old) in self.undo.drain(..) {
            // SAFETY: we are pinned, and own what was never visible.
            unsafe { drop_raw(self.writes[at].core, old) };
        }
        for write in self.writes.drain(..) {
            // SAFETY: we are pinned.
            let core = unsafe { write.core.as_ref() };
            each(core, write.raw, write.stamp.is_some_and(Stamp::is_awaited));
        }
    }

    /// Shares in all variables that were read, to wait for them. Those that nobody else has will not change.
    pub fn read_handles(&self) -> impl Iterator<Item = (Handle, u64)> {
        self.reads.iter().filter_map(|read| {
            // SAFETY: we have been pinned since before the reads.
            let handle = unsafe { Handle::of(read.core) };
            handle.map(|handle| (handle, read.version))
        })
    }

    /// Whether nothing was read.
    pub fn has_read_nothing(&self) -> bool {
        self.reads.is_empty()
    }

    /// Drops what was not committed, and makes the log ready for the next transaction.
    #[inline]
    pub fn clear(&mut self) {
        self.roll_back(Branch {
            writes: 0,
            undo: 0,
            outer: 0,
        });
        self.reads.clear();
        self.written = 0;
        self.doom = None;
        if self.reads.capacity() > KEPT || self.writes.capacity() > KEPT {
            *self = Self::default();
        }
    }
}

impl Read {
    /// Whether the variable has not changed since, and no commit holds it.
    #[inline]
    fn holds(&self) -> bool {
        // SAFETY: the log's thread is pinned.
        let stamp = unsafe { self.core.as_ref() }.versioned.stamp();
        !stamp.is_locked() && stamp.version() == self.version
    }
}

/// Drops a value that nobody else has seen.
///
/// # Safety
/// The caller is pinned or has a handle, and owns the value, which is of the core's type.
unsafe fn drop_raw(core: NonNull<Core>, raw: Raw) {
    // SAFETY: the core is there.
    if let Some(drop_raw) = unsafe { core.as_ref() }.drop_raw {
        // SAFETY: the value is the core's type's, and ours.
        unsafe { drop_raw(raw) };
    }
}

/// One of 64 bits, by address; cores lie 64 bytes apart at least.
#[inline]
fn bit(core: NonNull<Core>) -> u64 {
    1 << ((core.addr().get() >> 6) % 64)
}

/// Spreads addresses, which nobody can choose, for the index.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(usize::from(byte));
        }
    }

    fn write_usize(&mut self, address: usize) {
        self.0 = (self.0 ^ address as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(26);
    }
}
