//! A transaction's read set and write set, and how its writes become visible at once.
//!
//! **How.** Everything read is as of one moment, at first `now` on the clock. A word that is newer moves that moment on
//! to when it was read, if all that was read before is unchanged ([`Log::read`]); so a transaction never sees half of
//! another one, not even if it is aborted. What is not newer than `now` has not changed since, and held at that later
//! moment, too. With few reads they are validated again for each newer word, and the clock, which all threads share, is
//! left alone; with more, the clock is raised, and `now` moves on. Writes stay here until [`Log::commit`] locks their words,
//! validates once more all that was read, and writes. Where a variable was written right after it was read, locking it
//! validates the read; where all were, there is nothing else to validate.
//!
//! **Cost.** Nothing is allocated once the vectors have grown: a log is used again and again. A read looks through at most
//! a few writes, or into a hash map where there are more. In a transaction without writes the reads are validated by
//! each read that finds a newer word, but not at the end.
//!
//! **Thread-safety.** A log belongs to one thread, which is pinned (`crossbeam_epoch`) from [`Log::begin`] to [`Log::clear`]. A
//! core is noted while there is a handle of it, and is not freed before all threads that were pinned then are unpinned: so the
//! cores that the log refers to are there. This is what "pinned since `begin`" stands for below.

use super::cause::Cause;
use super::core::{Core, Handle};
use super::versioned::{Clock, Raw, Stamp, Versioned};
use crate::sync::{FEW, prefetch_to_write};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem;
use std::ptr::NonNull;

/// How much capacity a log may keep for the next transaction.
const KEPT: usize = 4096;

/// After how many words that are newer than the clock it is raised: so seldom that the others hardly notice.
const MANY: u32 = 1024;

/// The log of one transaction after the other.
#[derive(Default)]
pub(crate) struct Log {
    /// What has at most this version belongs together.
    now: u64,
    /// 0 once the transaction cannot commit.
    operations_left: u64,
    /// Why the transaction cannot commit, once that is known.
    doom: Option<Cause>,
    /// How many words newer than `now` were read since the clock was raised.
    newer: u32,
    reads: Vec<Read>,
    writes: Vec<Write>,
    /// A bit for each write, by its core's address: what is not here was not written.
    written: u64,
    /// Where the writes are, when there are more than a few.
    index: HashMap<NonNull<Core>, usize, BuildHasherDefault<AddressHasher>>,
    /// The values of writes from before [`Log::branch`] that were overwritten after it.
    undo: Vec<(usize, Raw)>,
    /// Writes below this index are from before the last branch.
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
    /// Where in `reads` the variable was read right before, or beyond them: no two writes have the same.
    read: usize,
    /// As it was when the word was locked, from when it is.
    stamp: Stamp,
}

/// A savepoint of a log.
pub(crate) struct Branch {
    writes: usize,
    undo: usize,
    outer: usize,
}

impl Log {
    /// Starts a transaction, with an empty log, of at most so many reads and writes.
    ///
    /// # Safety
    /// The calling thread is pinned, and stays so until after [`Log::clear`], or until the log is dropped. After that the log is
    /// not used before it begins anew.
    #[inline]
    pub unsafe fn begin(&mut self, clock: &Clock, max_operations: u64) {
        self.now = clock.now();
        self.operations_left = max_operations;
    }

    /// The value of a variable as this transaction sees it.
    #[inline(always)]
    pub fn read(&mut self, clock: &Clock, variable: &Handle) -> Result<Raw, Cause> {
        let core = variable.as_ptr();
        match variable.core().versioned.try_read() {
            Some((version, raw)) if self.can_note_read(core, version) => {
                self.operations_left -= 1;
                self.reads.push(Read { core, version });
                Ok(raw)
            }
            // SAFETY: `variable` is a handle of the core.
            _ => unsafe { self.read_with_care(clock, core) },
        }
    }

    /// Whether to read this version takes no more than to note it.
    #[inline(always)]
    fn can_note_read(&self, core: NonNull<Core>, version: u64) -> bool {
        version <= self.now
            && self.operations_left > 0
            && self.written & bit(core) == 0
            && self.reads.len() < self.reads.capacity()
    }

    /// Reads a variable where there may be more to it than to note what is there.
    ///
    /// # Safety
    /// There is a handle of the core during the call.
    #[inline(never)]
    unsafe fn read_with_care(&mut self, clock: &Clock, core: NonNull<Core>) -> Result<Raw, Cause> {
        self.count_operation()?;
        if let Some(at) = self.find_write(core) {
            return Ok(self.writes[at].raw);
        }
        // SAFETY: the core is there as long as a handle of it, and the caller sees to one.
        let versioned = &unsafe { core.as_ref() }.versioned;
        let (mut version, mut raw) = versioned.read();
        if version > self.now {
            (version, raw) = self.catch_up(clock, versioned, (version, raw))?;
        }
        self.reads.push(Read { core, version });
        Ok(raw)
    }

    /// Makes sure that a newer word belongs to what was read before: this one, or what there is when the clock is raised.
    #[inline]
    fn catch_up(
        &mut self,
        clock: &Clock,
        versioned: &Versioned,
        mut newer: (u64, Raw),
    ) -> Result<(u64, Raw), Cause> {
        if self.reads.len() < FEW {
            self.check_reads()?;
            self.note_newer(clock, newer.0);
            return Ok(newer);
        }
        while newer.0 > self.now {
            let now = clock.raise(newer.0);
            self.check_reads()?;
            self.now = now;
            newer = versioned.read();
        }
        Ok(newer)
    }

    /// Raises the clock after many newer words, for the transactions that come: where little is written, words would be
    /// newer for ever.
    #[inline]
    fn note_newer(&mut self, clock: &Clock, version: u64) {
        self.newer += 1;
        if self.newer == MANY {
            self.newer = 0;
            clock.raise(version);
        }
    }

    /// Validates all reads.
    #[inline]
    fn check_reads(&mut self) -> Result<(), Cause> {
        // SAFETY: we are pinned since `begin`, and reads are noted after it.
        let holds = |read: &Read| unsafe { read.holds() };
        match self.reads.iter().all(holds) {
            true => Ok(()),
            false => Err(self.doom(Cause::Conflict)),
        }
    }

    /// Notes a new value for a variable.
    ///
    /// # Safety
    /// The value is of the variable's type, and the log's from now on.
    #[inline]
    pub unsafe fn write(&mut self, variable: &Handle, raw: Raw) -> Result<(), Cause> {
        let core = variable.as_ptr();
        let counted = self.count_operation();
        if let Err(cause) = counted {
            // SAFETY: the core is there, as `variable` is a handle of it; the value is ours, by this function's contract.
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
            // SAFETY: we are pinned since `begin`; the value came by `write`, and was never visible to others.
            unsafe { drop_raw(self.writes[at].core, old) };
        }
    }

    #[inline]
    fn add_write(&mut self, core: NonNull<Core>, raw: Raw) {
        if self.writes.len() >= FEW {
            self.index_write(core);
        }
        prefetch_to_write(core.as_ptr());
        self.written |= bit(core);
        let read = match self.reads.last() {
            Some(last) if last.core == core => self.reads.len() - 1,
            _ => usize::MAX,
        };
        self.writes.push(Write {
            core,
            raw,
            read,
            stamp: Stamp::default(),
        });
    }

    /// Puts the next write into the index, and the first few before.
    #[inline(never)]
    fn index_write(&mut self, core: NonNull<Core>) {
        if self.writes.len() == FEW {
            let writes = self.writes.iter().enumerate();
            self.index
                .extend(writes.map(|(at, write)| (write.core, at)));
        }
        self.index.insert(core, self.writes.len());
    }

    #[inline]
    fn find_write(&self, core: NonNull<Core>) -> Option<usize> {
        match self.written & bit(core) {
            0 => None,
            _ => self.search_writes(core),
        }
    }

    #[inline(never)]
    fn search_writes(&self, core: NonNull<Core>) -> Option<usize> {
        if self.writes.len() > FEW {
            return self.index.get(&core).copied();
        }
        self.writes.iter().position(|write| write.core == core)
    }

    #[inline]
    fn count_operation(&mut self) -> Result<(), Cause> {
        match self.operations_left.checked_sub(1) {
            Some(left) => self.operations_left = left,
            None => return Err(self.doom(Cause::TooLong)),
        }
        Ok(())
    }

    /// Records why the transaction cannot commit, unless there is a reason already, and returns the reason.
    #[cold]
    fn doom(&mut self, cause: Cause) -> Cause {
        self.operations_left = 0;
        *self.doom.get_or_insert(cause)
    }

    /// Why the transaction cannot commit, if that is known.
    pub fn doomed(&self) -> Option<Cause> {
        self.doom
    }

    /// A savepoint: writes from here on can be rolled back.
    pub fn branch(&mut self) -> Branch {
        Branch {
            writes: self.writes.len(),
            undo: self.undo.len(),
            outer: mem::replace(&mut self.branch, self.writes.len()),
        }
    }

    /// Releases a savepoint, keeping what was written since.
    pub fn keep(&mut self, branch: Branch) {
        self.branch = branch.outer;
    }

    /// Rolls back what was written since. Reads stay: whoever waits, waits for changes of them as well.
    pub fn roll_back(&mut self, branch: Branch) {
        while self.undo.len() > branch.undo {
            if let Some((at, old)) = self.undo.pop() {
                let new = mem::replace(&mut self.writes[at].raw, old);
                // SAFETY: we are pinned since `begin`; the value came by `write`, and was never visible to others.
                unsafe { drop_raw(self.writes[at].core, new) };
            }
        }
        while self.writes.len() > branch.writes {
            if let Some(write) = self.writes.pop() {
                self.index.remove(&write.core);
                // SAFETY: as above; `write` is in the log no more, so that nothing drops its value again.
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

    /// Makes all writes visible at once, or none: then something that was read has changed, or another commit holds a lock. Where
    /// old values are to be dropped or somebody waits, the writes stay for [`Log::drain_written`].
    pub fn commit(&mut self, clock: &Clock) -> Result<(), Cause> {
        if let Some(doom) = self.doom {
            return Err(doom);
        }
        if self.writes.is_empty() {
            return Ok(());
        }
        let version = self.lock_all(clock)?;
        let mut is_done = self.undo.is_empty();
        for write in &mut self.writes {
            // SAFETY: we are pinned since `begin`, and the write was noted after it.
            let core = unsafe { write.core.as_ref() };
            write.raw = core.versioned.replace_and_unlock(write.raw, version);
            is_done &= core.drop_raw.is_none() && !write.stamp.is_awaited();
        }
        if is_done {
            self.forget_writes();
        }
        Ok(())
    }

    /// Clears the write set after a commit that leaves nothing to be done.
    #[inline]
    fn forget_writes(&mut self) {
        let few = self.writes.len() <= FEW;
        self.writes.clear();
        if few {
            // They are in no index: there is nothing else to clear.
            self.written = 0;
        }
    }

    /// Locks all words that are to be written and returns the version that they will have; locks none where a read is not
    /// valid.
    #[inline]
    fn lock_all(&mut self, clock: &Clock) -> Result<u64, Cause> {
        let (mut newest, mut checked) = (0, 0);
        for at in 0..self.writes.len() {
            let write = &mut self.writes[at];
            // SAFETY: we are pinned since `begin`, and the write was noted after it.
            let Some(stamp) = (unsafe { write.core.as_ref() }).versioned.try_lock() else {
                return Err(self.unlock(at));
            };
            write.stamp = stamp;
            newest = newest.max(stamp.version());
            if let Some(read) = self.reads.get(write.read) {
                if read.version != stamp.version() {
                    return Err(self.unlock(at + 1));
                }
                checked += 1;
            }
        }
        let version = newest.max(clock.now()) + 1;
        // SAFETY: we are pinned since `begin`, and reads are noted after it.
        let holds = |read: &Read| unsafe { read.holds() } || self.holds_locked(read);
        if checked < self.reads.len() && !self.reads.iter().all(holds) {
            return Err(self.unlock(self.writes.len()));
        }
        Ok(version)
    }

    /// Unlocks the first few words that are to be written, as there is a conflict.
    #[cold]
    fn unlock(&mut self, count: usize) -> Cause {
        for write in &self.writes[..count] {
            // SAFETY: we are pinned since `begin`, and the write was noted after it.
            unsafe { write.core.as_ref() }.versioned.unlock(write.stamp);
        }
        Cause::Conflict
    }

    /// Whether a read of a word that this commit has locked is valid.
    fn holds_locked(&self, read: &Read) -> bool {
        self.find_write(read.core)
            .is_some_and(|at| self.writes[at].stamp.version() == read.version)
    }

    /// After a commit: calls `each` with the variables that were written, their old values, and whether somebody waits
    /// for them; the values are the callee's.
    pub fn drain_written(&mut self, mut each: impl FnMut(&Core, Raw, bool)) {
        for (at, old) in self.undo.drain(..) {
            // SAFETY: we are pinned since `begin`; the value came by `write`, and was overwritten before it was ever visible.
            unsafe { drop_raw(self.writes[at].core, old) };
        }
        for write in self.writes.drain(..) {
            // SAFETY: we are pinned since `begin`, and the write was noted after it.
            let core = unsafe { write.core.as_ref() };
            each(core, write.raw, write.stamp.is_awaited());
        }
    }

    /// Handles of all variables that were read, to wait for them. Those without other handles will not change.
    pub fn read_handles(&self) -> impl Iterator<Item = (Handle, u64)> {
        self.reads.iter().filter_map(|read| {
            // SAFETY: we are pinned since `begin`, and the read was noted after it.
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
        if self.written != 0 || self.doom.is_some() {
            self.clear_writes();
        }
        self.reads.clear();
        if self.reads.capacity() > KEPT {
            self.reads = Vec::new();
        }
    }

    fn clear_writes(&mut self) {
        self.roll_back(Branch {
            writes: 0,
            undo: 0,
            outer: 0,
        });
        self.written = 0;
        self.doom = None;
        if self.writes.capacity() > KEPT {
            *self = Self::default();
        }
    }
}

impl Read {
    /// Whether the variable has not changed since, and no commit holds it.
    ///
    /// # Safety
    /// The calling thread has been pinned since before the read.
    #[inline]
    unsafe fn holds(&self) -> bool {
        // SAFETY: there was a handle of the core when it was read, and the caller has been pinned since: it is not freed.
        let stamp = unsafe { self.core.as_ref() }.versioned.stamp();
        !stamp.is_locked() && stamp.version() == self.version
    }
}

/// Drops a value that nobody else has seen.
///
/// # Safety
/// There is a handle of the core, or the calling thread has been pinned since there was one. The caller owns the value, which is
/// of the core's type.
unsafe fn drop_raw(core: NonNull<Core>, raw: Raw) {
    // SAFETY: a core is freed when there is no handle and no thread that was pinned while there was one.
    if let Some(drop_raw) = unsafe { core.as_ref() }.drop_raw {
        // SAFETY: `drop_raw` is that of the value's type, and whoever owns the value may drop it once.
        unsafe { drop_raw(raw) };
    }
}

/// One of 64 bits, by address; cores lie 64 bytes apart at least.
#[inline]
fn bit(core: NonNull<Core>) -> u64 {
    1 << ((core.addr().get() >> 6) % 64)
}

/// Hashes addresses for the index. No defence against collisions is needed: nobody can choose addresses.
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
