//! A transaction's read set and write set, and the commit that makes its writes visible at once.
//!
//! **How.** All reads are consistent as of one moment, which is initially `now` on the clock. Reading a newer word advances
//! that moment to the time of the read, if all earlier reads are unchanged ([`Log::read`]). So a transaction never sees half of
//! another one, even if it is aborted. A word that is not newer than `now` has not changed since, so it is also consistent at
//! the later moment. A small read set is validated again for each newer word, without accessing the clock, which all threads
//! share; for a large one the clock is raised, and `now` advances. Writes stay in the log until [`Log::commit`] locks their
//! words, validates all reads once more, and writes. If a variable is written right after it was read, locking it validates the
//! read; if this holds for all reads, no other validation is needed.
//!
//! **Cost.** No memory is allocated once the vectors have grown, because a log is reused. A read searches at most a few writes,
//! or a hash map if the write set is larger. In a transaction without writes, each read that finds a newer word validates the
//! reads; the end does not.
//!
//! **Thread-safety.** A log belongs to one thread, which is pinned (`crossbeam_epoch`) from [`Log::begin`] to [`Log::clear`]. A
//! core has a handle when it is noted, and is freed only after all threads that were pinned at that time are unpinned. So all
//! cores that the log refers to are alive. This is the meaning of "pinned since `begin`" below.

use super::cause::Cause;
use super::core::{Core, Handle};
use super::versioned::{Clock, Raw, Stamp, Versioned};
use crate::sync::{FEW, prefetch_to_write};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem;
use std::ptr::NonNull;

/// The capacity that a log may keep for the next transaction.
const KEPT: usize = 4096;

/// The number of words newer than the clock after which the clock is raised: large enough that other threads hardly notice.
const MANY: u32 = 1024;

/// The log of a transaction, reused for the next one.
#[derive(Default)]
pub(crate) struct Log {
    /// Values with at most this version are consistent.
    now: u64,
    /// 0 once the transaction cannot commit.
    operations_left: u64,
    /// The reason why the transaction cannot commit, once known.
    doom: Option<Cause>,
    /// The number of words newer than `now` that were read since the clock was raised.
    newer: u32,
    reads: Vec<Read>,
    writes: Vec<Write>,
    /// A Bloom filter of the writes, by their cores' addresses: a core whose bit is not set was not written.
    written: u64,
    /// The indices of the writes, if there are more than a few.
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
    /// The index in `reads` of the read right before this write, or an index beyond them; unique to each write.
    read: usize,
    /// The word's stamp from before it was locked.
    stamp: Stamp,
}

/// A savepoint of a log.
pub(crate) struct Branch {
    writes: usize,
    undo: usize,
    outer: usize,
}

impl Log {
    /// Starts a transaction with an empty log, of at most `max_operations` reads and writes.
    ///
    /// # Safety
    /// The calling thread is pinned, and stays so until after [`Log::clear`], or until the log is dropped. After that the
    /// log is not used before the next `begin`.
    #[inline]
    pub unsafe fn begin(&mut self, clock: &Clock, max_operations: u64) {
        self.now = clock.now();
        self.operations_left = max_operations;
    }

    /// Returns the value of a variable as this transaction sees it.
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

    /// Returns `true` if reading this version only requires noting it.
    #[inline(always)]
    fn can_note_read(&self, core: NonNull<Core>, version: u64) -> bool {
        version <= self.now
            && self.operations_left > 0
            && self.written & bit(core) == 0
            && self.reads.len() < self.reads.capacity()
    }

    /// Reads a variable if more than noting the read may be necessary.
    ///
    /// # Safety
    /// The core has a handle during the call.
    #[inline(never)]
    unsafe fn read_with_care(&mut self, clock: &Clock, core: NonNull<Core>) -> Result<Raw, Cause> {
        self.count_operation()?;
        if let Some(at) = self.find_write(core) {
            return Ok(self.writes[at].raw);
        }
        // SAFETY: the core lives as long as it has a handle, which the caller guarantees.
        let versioned = &unsafe { core.as_ref() }.versioned;
        let (mut version, mut raw) = versioned.read();
        if version > self.now {
            (version, raw) = self.catch_up(clock, versioned, (version, raw))?;
        }
        self.reads.push(Read { core, version });
        Ok(raw)
    }

    /// Makes a newer word consistent with the earlier reads: this word, or the one found after raising the clock.
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

    /// Raises the clock after many newer words, for later transactions. If writes are rare, words would otherwise stay newer
    /// for ever.
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
    /// The value is of the variable's type, and belongs to the log from now on.
    #[inline]
    pub unsafe fn write(&mut self, variable: &Handle, raw: Raw) -> Result<(), Cause> {
        let core = variable.as_ptr();
        let counted = self.count_operation();
        if let Err(cause) = counted {
            // SAFETY: the core lives, as `variable` is a handle of it; the value belongs to this function by its contract.
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
            // SAFETY: we are pinned since `begin`; the value was passed to `write`, and was never visible to others.
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

    /// Adds the latest write to the index, and also the first few if they are not in it yet.
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

    /// Records the reason why the transaction cannot commit, unless it already has one, and returns the reason.
    #[cold]
    fn doom(&mut self, cause: Cause) -> Cause {
        self.operations_left = 0;
        *self.doom.get_or_insert(cause)
    }

    /// Returns the reason why the transaction cannot commit, if known.
    pub fn doomed(&self) -> Option<Cause> {
        self.doom
    }

    /// Creates a savepoint: later writes can be rolled back.
    pub fn branch(&mut self) -> Branch {
        Branch {
            writes: self.writes.len(),
            undo: self.undo.len(),
            outer: mem::replace(&mut self.branch, self.writes.len()),
        }
    }

    /// Releases a savepoint, keeping the writes since.
    pub fn keep(&mut self, branch: Branch) {
        self.branch = branch.outer;
    }

    /// Rolls back the writes since the savepoint. Reads stay, because a waiting transaction also waits for changes of them.
    pub fn roll_back(&mut self, branch: Branch) {
        while self.undo.len() > branch.undo {
            if let Some((at, old)) = self.undo.pop() {
                let new = mem::replace(&mut self.writes[at].raw, old);
                // SAFETY: we are pinned since `begin`; the value was passed to `write`, and was never visible to others.
                unsafe { drop_raw(self.writes[at].core, new) };
            }
        }
        while self.writes.len() > branch.writes {
            if let Some(write) = self.writes.pop() {
                self.index.remove(&write.core);
                // SAFETY: as above; `write` is no longer in the log, so its value is not dropped again.
                unsafe { drop_raw(write.core, write.raw) };
            }
        }
        if self.writes.len() <= FEW {
            self.index.clear();
        }
        self.branch = branch.outer;
    }

    /// Returns `true` if the write set is not empty.
    #[inline]
    pub fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Makes all writes visible at once, or none if a value read has changed or another commit holds a lock. The writes stay
    /// for [`Log::drain_written`] if old values must be dropped or waiters woken.
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

    /// Clears the write set after a commit that needs no further work.
    #[inline]
    fn forget_writes(&mut self) {
        let few = self.writes.len() <= FEW;
        self.writes.clear();
        if few {
            // The writes are not in the index, so nothing else needs to be cleared.
            self.written = 0;
        }
    }

    /// Locks all words of the write set and returns their new version; locks none if a read is no longer valid.
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

    /// Unlocks the first `count` words of the write set, after a conflict.
    #[cold]
    fn unlock(&mut self, count: usize) -> Cause {
        for write in &self.writes[..count] {
            // SAFETY: we are pinned since `begin`, and the write was noted after it.
            unsafe { write.core.as_ref() }.versioned.unlock(write.stamp);
        }
        Cause::Conflict
    }

    /// Returns `true` if a read of a word that this commit has locked is valid.
    fn holds_locked(&self, read: &Read) -> bool {
        self.find_write(read.core)
            .is_some_and(|at| self.writes[at].stamp.version() == read.version)
    }

    /// Must be called after a commit. Calls `each` with each written variable, its old value, which then belongs to the callee,
    /// and whether the variable has waiters.
    pub fn drain_written(&mut self, mut each: impl FnMut(&Core, Raw, bool)) {
        for (at, old) in self.undo.drain(..) {
            // SAFETY: we are pinned since `begin`; the value was passed to `write`, and was overwritten before it was visible.
            unsafe { drop_raw(self.writes[at].core, old) };
        }
        for write in self.writes.drain(..) {
            // SAFETY: we are pinned since `begin`, and the write was noted after it.
            let core = unsafe { write.core.as_ref() };
            each(core, write.raw, write.stamp.is_awaited());
        }
    }

    /// Returns handles of all variables that were read, in order to wait for them. A variable without other handles cannot
    /// change.
    pub fn read_handles(&self) -> impl Iterator<Item = (Handle, u64)> {
        self.reads.iter().filter_map(|read| {
            // SAFETY: we are pinned since `begin`, and the read was noted after it.
            let handle = unsafe { Handle::of(read.core) };
            handle.map(|handle| (handle, read.version))
        })
    }

    /// Returns `true` if the read set is empty.
    pub fn has_read_nothing(&self) -> bool {
        self.reads.is_empty()
    }

    /// Drops uncommitted values, and prepares the log for the next transaction.
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
    /// Returns `true` if the variable has not changed since the read, and no commit holds it.
    ///
    /// # Safety
    /// The calling thread has been pinned since before the read.
    #[inline]
    unsafe fn holds(&self) -> bool {
        // SAFETY: the core had a handle when it was read, and the caller has been pinned since: it is not freed.
        let stamp = unsafe { self.core.as_ref() }.versioned.stamp();
        !stamp.is_locked() && stamp.version() == self.version
    }
}

/// Drops a value that no other thread can have seen.
///
/// # Safety
/// The core has a handle, or the calling thread has been pinned since it had one. The caller owns the value, which is of
/// the core's type.
unsafe fn drop_raw(core: NonNull<Core>, raw: Raw) {
    // SAFETY: a core is freed only when it has no handle and no thread is left that was pinned while it had one.
    if let Some(drop_raw) = unsafe { core.as_ref() }.drop_raw {
        // SAFETY: `drop_raw` is for the value's type, and the value's owner may drop it once.
        unsafe { drop_raw(raw) };
    }
}

/// Maps a core to one of 64 bits, by address; cores are at least 64 bytes apart.
#[inline]
fn bit(core: NonNull<Core>) -> u64 {
    1 << ((core.addr().get() >> 6) % 64)
}

/// Hashes addresses for the index. It needs no defence against collisions: attackers cannot choose addresses.
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
