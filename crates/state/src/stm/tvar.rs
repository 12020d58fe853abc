//! Transactional variables.

use super::core::{Core, Handle};
use super::repr;
use super::transaction::{Abort, Transaction};
use crate::sync::prefetch;
use std::fmt;
use std::marker::PhantomData;

/// A variable that transactions read and write (McNettle section 4).
///
/// A clone is another handle of the same variable. Two variables never share a cache line.
///
/// **Cost.** A read takes no lock and writes no shared memory, but waits while a commit writes this very variable. Integers,
/// floats, `bool` and `char` are stored in the variable, and values of other types behind a pointer, so a write allocates. Keep
/// large values in an `Arc`, since each read clones, or read them by reference: [`TVar::read_with`].
///
/// **Memory.** An overwritten value is dropped when no transaction can read it any longer: some time later and on any thread,
/// possibly during a transaction there. So its `drop` must not start a transaction.
pub struct TVar<T> {
    handle: Handle,
    /// Invariant in the type: a value written through one handle is read through the others.
    values: PhantomData<fn(T) -> T>,
}

impl<T: Clone + Send + Sync + 'static> TVar<T> {
    /// Creates a variable with its first value.
    pub fn new(value: T) -> Self {
        let core = Core::new(repr::into_raw(value), repr::drop_raw::<T>());
        Self {
            handle: Handle::new(core),
            values: PhantomData,
        }
    }

    /// Returns the value in this transaction: the one that it has written, or the committed one.
    ///
    /// # Errors
    /// [`Abort`] if the transaction cannot commit: return it with `?`.
    #[inline]
    pub fn read(&self, transaction: &mut Transaction) -> Result<T, Abort> {
        self.read_with(transaction, T::clone)
    }

    /// Calls `look` with a reference to the value that [`TVar::read`] would clone.
    ///
    /// # Errors
    /// Like [`TVar::read`].
    #[inline]
    pub fn read_with<R>(
        &self,
        transaction: &mut Transaction,
        look: impl FnOnce(&T) -> R,
    ) -> Result<R, Abort> {
        let raw = transaction.read(&self.handle)?;
        // SAFETY: it is of this type, and is neither dropped while the transaction runs nor overwritten in it, as we hold
        // the transaction exclusively.
        Ok(unsafe { repr::with(raw, look) })
    }

    /// Sets the value. Others see it after the transaction has committed.
    ///
    /// # Errors
    /// Like [`TVar::read`].
    #[inline]
    pub fn write(&self, transaction: &mut Transaction, value: T) -> Result<(), Abort> {
        // SAFETY: a core behind a handle of a `TVar<T>` holds values of T, and ownership of this one is passed on.
        unsafe { transaction.write(&self.handle, repr::into_raw(value)) }
    }

    /// Sets the value to the result of `change`.
    ///
    /// # Errors
    /// Like [`TVar::read`].
    #[inline]
    pub fn modify(
        &self,
        transaction: &mut Transaction,
        change: impl FnOnce(T) -> T,
    ) -> Result<(), Abort> {
        let value = self.read(transaction)?;
        self.write(transaction, change(value))
    }

    /// A prefetch hint: fetches the value from memory for a read that follows soon.
    ///
    /// Several prefetches wait for memory at the same time; reads would wait one after another.
    #[inline]
    pub fn prefetch(&self) {
        if !repr::is_inline::<T>() {
            prefetch(self.handle.core().versioned.raw_hint().cast::<T>());
        } else {
            prefetch(self.handle.as_ptr().as_ptr());
        }
    }

    /// Returns the last committed value, outside of any transaction.
    ///
    /// Two loads may see different states; all reads of one transaction see the same state.
    #[inline]
    pub fn load(&self) -> T {
        self.load_with(T::clone)
    }

    /// Calls `look` with a reference to the value that [`TVar::load`] would clone.
    #[inline]
    pub fn load_with<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        let versioned = &self.handle.core().versioned;
        if repr::is_inline::<T>() {
            // SAFETY: it is of this type, and needs no drop.
            return unsafe { repr::with(versioned.read().1, look) };
        }
        let _pinned = crossbeam_epoch::pin();
        // SAFETY: it is of this type, and not dropped while we are pinned.
        unsafe { repr::with(versioned.read().1, look) }
    }
}

impl<T> Clone for TVar<T> {
    fn clone(&self) -> Self {
        Self {
            handle: self.handle.clone(),
            values: PhantomData,
        }
    }
}

impl<T: Clone + Default + Send + Sync + 'static> Default for TVar<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: Clone + fmt::Debug + Send + Sync + 'static> fmt::Debug for TVar<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("TVar").field(&self.load()).finish()
    }
}
