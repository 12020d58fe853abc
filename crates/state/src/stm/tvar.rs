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
/// floats, `bool` and `char` lie in the variable; values of other types behind a pointer, so that a write allocates. Keep
/// large values in an `Arc`, as each read clones, or look at them where they are: [`TVar::read_with`].
///
/// **Memory.** An overwritten value is dropped when no transaction can read it any more, some time later and on any
/// thread, possibly during a transaction there: its `drop` must not start one.
pub struct TVar<T> {
    handle: Handle,
    /// Of this type and no subtype or supertype: what is written through one handle is read through the others.
    values: PhantomData<fn(T) -> T>,
}

impl<T: Clone + Send + Sync + 'static> TVar<T> {
    /// A variable with its first value.
    pub fn new(value: T) -> Self {
        let core = Core::new(repr::into_raw(value), repr::drop_raw::<T>());
        Self {
            handle: Handle::new(core),
            values: PhantomData,
        }
    }

    /// The value in this transaction: what it has written itself, or else what was committed.
    ///
    /// # Errors
    /// [`Abort`] where the transaction cannot commit: pass the error on with `?`.
    #[inline]
    pub fn read(&self, transaction: &mut Transaction) -> Result<T, Abort> {
        self.read_with(transaction, T::clone)
    }

    /// Calls `look` with a reference to the value, where [`TVar::read`] would clone it.
    ///
    /// # Errors
    /// As [`TVar::read`].
    #[inline]
    pub fn read_with<R>(
        &self,
        transaction: &mut Transaction,
        look: impl FnOnce(&T) -> R,
    ) -> Result<R, Abort> {
        let raw = transaction.read(&self.handle)?;
        // SAFETY: it is of this type, and not dropped while the transaction runs; nor overwritten in it, as the
        // transaction is ours meanwhile.
        Ok(unsafe { repr::with(raw, look) })
    }

    /// Sets the value; others see it once the transaction has committed.
    ///
    /// # Errors
    /// As [`TVar::read`].
    #[inline]
    pub fn write(&self, transaction: &mut Transaction, value: T) -> Result<(), Abort> {
        // SAFETY: what a handle of a `TVar<T>` leads to holds values of T, and this one is given away.
        unsafe { transaction.write(&self.handle, repr::into_raw(value)) }
    }

    /// Sets the value to what `change` makes of it.
    ///
    /// # Errors
    /// As [`TVar::read`].
    #[inline]
    pub fn modify(
        &self,
        transaction: &mut Transaction,
        change: impl FnOnce(T) -> T,
    ) -> Result<(), Abort> {
        let value = self.read(transaction)?;
        self.write(transaction, change(value))
    }

    /// A prefetch hint: has the value fetched from memory for a read that comes soon.
    ///
    /// Several of these wait for memory at the same time, where the reads would wait one after the other.
    #[inline]
    pub fn prefetch(&self) {
        if !repr::is_inline::<T>() {
            prefetch(self.handle.core().versioned.raw_hint().cast::<T>());
        } else {
            prefetch(self.handle.as_ptr().as_ptr());
        }
    }

    /// The value that was committed last, outside of any transaction.
    ///
    /// Two loads may see different states; the reads of a transaction see one.
    #[inline]
    pub fn load(&self) -> T {
        self.load_with(T::clone)
    }

    /// Calls `look` with a reference to the value that [`TVar::load`] would clone.
    #[inline]
    pub fn load_with<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        let versioned = &self.handle.core().versioned;
        if repr::is_inline::<T>() {
            // SAFETY: it is of this type, and nothing is ever to be dropped.
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
