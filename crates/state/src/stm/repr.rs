//! Representation of values in a word: small plain values are inline, all others behind a pointer.
//!
//! **Cost.** Integers, floats, `bool` and `char` have no extra cost. For any other type, a write allocates memory, and a read
//! accesses one more cache line and clones the value.

use super::versioned::Raw;
use std::any::TypeId;
use std::ptr;

/// Returns `true` if values of the type are kept in the word itself: all their bytes are initialised, they need no drop,
/// and `clone` only copies.
#[inline]
pub(crate) fn is_inline<T: 'static>() -> bool {
    macro_rules! is_one_of {
        ($($plain:ty)*) => { $(TypeId::of::<T>() == TypeId::of::<$plain>())||* };
    }
    size_of::<T>() <= size_of::<Raw>()
        && is_one_of!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 bool char)
}

/// Converts a value into raw form. The holder of the raw form owns the value.
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

/// Calls `look` with a reference to a value in raw form, and returns its result.
///
/// # Safety
/// `raw` was returned by [`into_raw`] for this type, and the value is not dropped during the call.
#[inline]
pub(crate) unsafe fn with<T: 'static, R>(raw: Raw, look: impl FnOnce(&T) -> R) -> R {
    if !is_inline::<T>() {
        // SAFETY: it was made from a Box of this type, which still exists.
        return look(unsafe { &*raw.cast::<T>() });
    }
    let bits = raw.addr();
    // SAFETY: the bytes are those of a value of this type, which is copied and needs no drop.
    look(&unsafe { (&raw const bits).cast::<T>().read_unaligned() })
}

/// Returns the function that drops a value in raw form; `None` if the type needs no drop. It may be called only once for a
/// value.
pub(crate) fn drop_raw<T: 'static>() -> Option<unsafe fn(Raw)> {
    unsafe fn drop_box<T>(raw: Raw) {
        // SAFETY: the caller owns it, and `into_raw` made it for this type.
        drop(unsafe { Box::from_raw(raw.cast::<T>()) });
    }
    (!is_inline::<T>()).then_some(drop_box::<T>)
}
