//! How values are kept in a word: small plain ones as they are, all others behind a pointer.
//!
//! **Cost.** Integers, floats, `bool` and `char` cost nothing to keep; a write of another type takes an allocation,
//! a read one more cache line and a `clone`.

use super::versioned::Raw;
use std::any::TypeId;
use std::ptr;

/// Whether values of the type are kept in the word itself: no bytes in them are without a value, nothing is to be
/// dropped, and `clone` only copies.
#[inline]
pub(crate) fn is_inline<T: 'static>() -> bool {
    macro_rules! is_one_of {
        ($($plain:ty)*) => { $(TypeId::of::<T>() == TypeId::of::<$plain>())||* };
    }
    size_of::<T>() <= size_of::<Raw>()
        && is_one_of!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 bool char)
}

/// Puts a value into raw form. Whoever has that owns the value.
#[inline]
pub(crate) fn into_raw<T: 'static>(value: T) -> Raw {
    if !is_inline::<T>() {
        return Box::into_raw(Box::new(value)).cast();
    }
    let mut bits = 0_usize;
    // SAFETY: the type has no more bytes than `bits`, and all have values; it needs no drop.
    unsafe { (&raw mut bits).cast::<T>().write_unaligned(value) };
    ptr::without_provenance_mut(bits)
}

/// What `look` finds in a value in raw form.
///
/// # Safety
/// `raw` came from [`into_raw`] with the same type, and the value is not dropped meanwhile.
#[inline]
pub(crate) unsafe fn with<T: 'static, R>(raw: Raw, look: impl FnOnce(&T) -> R) -> R {
    if !is_inline::<T>() {
        // SAFETY: it came from a Box of that type, which is still there.
        return look(unsafe { &*raw.cast::<T>() });
    }
    let bits = raw.addr();
    // SAFETY: the bytes are those of a value of this type, which is copied and needs no drop.
    look(&unsafe { (&raw const bits).cast::<T>().read_unaligned() })
}

/// What drops a value in raw form, if that takes anything. Not to be called twice for a value.
pub(crate) fn drop_raw<T: 'static>() -> Option<unsafe fn(Raw)> {
    unsafe fn drop_box<T>(raw: Raw) {
        // SAFETY: the caller owns it, and it came from `into_raw` with the same type.
        drop(unsafe { Box::from_raw(raw.cast::<T>()) });
    }
    (!is_inline::<T>()).then_some(drop_box::<T>)
}
