//! Parts that all codecs share: a bounds-checked reader, lists that are checked once and decoded lazily, and the macro for
//! enumerations on the wire.
//!
//! **Why lists are lazy.** A flow-stats reply may hold thousands of entries, each with a match and actions. A [`List`] read
//! from the wire consists of bytes of which every element has been checked; iterating it decodes element by element and
//! allocates nothing. A [`List`] can also hold values when a message is written, so there is one type per message instead of
//! a view and a builder.

use crate::{DecodeError, EncodeError, Structure, Version};
use std::fmt;
use std::marker::PhantomData;

/// Reads big-endian values from the front of a byte slice; errors name the structure that ends too early.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    what: Structure,
}

impl<'a> Reader<'a> {
    /// Creates a reader of `bytes`; errors name the structure `what`.
    #[inline]
    pub fn new(bytes: &'a [u8], what: Structure) -> Self {
        Self { bytes, what }
    }

    /// Returns the number of unread bytes.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// Returns `true` if all bytes have been read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the unread bytes, without reading them.
    #[inline]
    pub fn peek(&self) -> &'a [u8] {
        self.bytes
    }

    /// Checks that a structure has been read completely.
    ///
    /// # Errors
    /// [`DecodeError::TrailingBytes`] if bytes are left.
    #[inline]
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.bytes.len() {
            0 => Ok(()),
            count => Err(DecodeError::TrailingBytes {
                what: self.what,
                count,
            }),
        }
    }

    /// Returns the structure given in [`Reader::new`].
    #[inline]
    pub fn what(&self) -> Structure {
        self.what
    }

    /// Returns the next `count` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if fewer are left, as in every method below.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let Some((head, tail)) = self.bytes.split_at_checked(count) else {
            return Err(self.truncated(count));
        };
        self.bytes = tail;
        Ok(head)
    }

    #[cold]
    fn truncated(&self, needed: usize) -> DecodeError {
        DecodeError::Truncated {
            what: self.what,
            needed,
            available: self.bytes.len(),
        }
    }

    /// Returns a reader of the next `count` bytes, for the nested structure `what`.
    #[inline]
    pub fn nested(&mut self, count: usize, what: Structure) -> Result<Reader<'a>, DecodeError> {
        let mut nested = Reader::new(self.bytes, what);
        let bytes = nested.take(count)?;
        self.bytes = nested.bytes;
        Ok(Reader::new(bytes, what))
    }

    /// Returns the next structure, `what`, whose length, including the header, is in the two bytes at `at`.
    ///
    /// # Errors
    /// [`DecodeError::Length`] if the length is less than `minimum` or more than the rest. So a length of zero is refused, and
    /// a loop over such structures ends.
    #[inline]
    pub fn sized(
        &mut self,
        at: usize,
        minimum: usize,
        what: Structure,
    ) -> Result<Reader<'a>, DecodeError> {
        let mut header = Reader::new(self.bytes, what);
        header.skip(at)?;
        let length = usize::from(header.u16()?);
        if length < minimum || length > self.bytes.len() {
            return Err(DecodeError::Length {
                what,
                length,
                expected: "at least its fixed part and at most the bytes that are left",
            });
        }
        self.nested(length, what)
    }

    /// Like [`Reader::sized`], for structures that are followed by padding up to a multiple of eight, which their length does
    /// not include.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if the padding is missing.
    #[inline]
    pub fn sized_and_padded(
        &mut self,
        at: usize,
        minimum: usize,
        what: Structure,
    ) -> Result<Reader<'a>, DecodeError> {
        let structure = self.sized(at, minimum, what)?;
        let length = structure.remaining();
        self.nested(length.next_multiple_of(8) - length, what)?;
        Ok(structure)
    }

    /// Like [`Reader::sized`], for structures whose length must be a multiple of eight.
    ///
    /// # Errors
    /// [`DecodeError::Length`] also for any other length.
    #[inline]
    pub fn sized_by_8(
        &mut self,
        at: usize,
        minimum: usize,
        what: Structure,
    ) -> Result<Reader<'a>, DecodeError> {
        let structure = self.sized(at, minimum, what)?;
        let length = structure.remaining();
        if length % 8 == 0 {
            return Ok(structure);
        }
        Err(DecodeError::Length {
            what,
            length,
            expected: "a multiple of 8",
        })
    }

    /// Returns the next `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.array_ref().copied()
    }

    /// Returns a reference to the next `N` bytes.
    #[inline]
    pub fn array_ref<const N: usize>(&mut self) -> Result<&'a [u8; N], DecodeError> {
        let Some((head, tail)) = self.bytes.split_first_chunk() else {
            return Err(self.truncated(N));
        };
        self.bytes = tail;
        Ok(head)
    }

    /// Skips padding. Its content is ignored: the specification requires zeros, but some switches send other values.
    #[inline]
    pub fn skip(&mut self, count: usize) -> Result<(), DecodeError> {
        self.take(count).map(drop)
    }

    /// Returns the next byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    /// Returns the next two bytes.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// Returns the next four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Returns the next eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// Returns the rest.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }
}

/// Appends big-endian values and padding to an output buffer. Implemented for `Vec<u8>` only.
pub trait Put {
    /// Appends one byte.
    fn put_u8(&mut self, value: u8);
    /// Appends two bytes.
    fn put_u16(&mut self, value: u16);
    /// Appends four bytes.
    fn put_u32(&mut self, value: u32);
    /// Appends eight bytes.
    fn put_u64(&mut self, value: u64);
    /// Appends `bytes`.
    fn put(&mut self, bytes: &[u8]);
    /// Appends `count` zeros.
    fn put_zeros(&mut self, count: usize);
    /// Appends zeros until the number of bytes from `start` on is a multiple of eight.
    fn pad_to_8(&mut self, start: usize);
    /// Writes the number of bytes from `start` to the end into the two bytes at `at`.
    ///
    /// # Errors
    /// [`EncodeError::TooLong`], naming `what`, if the length does not fit into 16 bits.
    fn set_length(
        &mut self,
        at: usize,
        start: usize,
        what: &'static str,
    ) -> Result<(), EncodeError>;
}

impl Put for Vec<u8> {
    #[inline]
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    #[inline]
    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn put_zeros(&mut self, count: usize) {
        self.resize(self.len() + count, 0);
    }

    #[inline]
    fn pad_to_8(&mut self, start: usize) {
        let length = self.len() - start;
        self.put_zeros(length.next_multiple_of(8) - length);
    }

    #[inline]
    fn set_length(
        &mut self,
        at: usize,
        start: usize,
        what: &'static str,
    ) -> Result<(), EncodeError> {
        let length = self.len() - start;
        let length16 = u16::try_from(length).map_err(|_| EncodeError::TooLong { what, length })?;
        self[at..at + 2].copy_from_slice(&length16.to_be_bytes());
        Ok(())
    }
}

/// A structure in lists, such as an action, a bucket, a port or a row of statistics. It is read as an element of a
/// [`List`]. Types outside of this crate cannot implement this.
pub trait Element<'a>: Clone {
    /// Reads one element from the front of `reader`, which is not empty. Must read at least one byte.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are not such an element.
    #[doc(hidden)]
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError>;

    /// Appends the element to `out`.
    ///
    /// # Errors
    /// [`EncodeError`] if `version` cannot express it; the caller must then remove the appended bytes.
    fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError>;
}

/// A sequence of `T`: either checked bytes from the wire, which are decoded while iterating, or values, borrowed or owned.
///
/// Cost: checking is one pass over the bytes; iterating decodes again. Neither allocates.
#[derive(Clone)]
pub struct List<'a, T: Clone>(Repr<'a, T>);

#[derive(Clone)]
enum Repr<'a, T: Clone> {
    /// Bytes in which every element has been decoded once, so decoding again cannot fail.
    Wire {
        version: Version,
        bytes: &'a [u8],
    },
    Borrowed(&'a [T]),
    Owned(Vec<T>),
}

impl<'a, T: Element<'a>> List<'a, T> {
    /// Checks that `bytes` are a sequence of `T` in `version`.
    ///
    /// # Errors
    /// The first element's [`DecodeError`].
    pub fn from_wire(version: Version, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::decode(version, &mut Reader::new(bytes, Structure::Message))
    }

    /// Checks that the rest of `reader` is a sequence of `T`, and reads it.
    ///
    /// # Errors
    /// The first element's [`DecodeError`].
    pub(crate) fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut elements = *reader;
        while !elements.is_empty() {
            let before = elements.remaining();
            T::decode(version, &mut elements)?;
            debug_assert!(
                elements.remaining() < before,
                "an element must consume bytes"
            );
        }
        let bytes = reader.rest();
        Ok(Self(Repr::Wire { version, bytes }))
    }

    /// Creates a list from bytes that the caller has checked to be a sequence of `T`.
    #[inline]
    pub(crate) fn checked(version: Version, bytes: &'a [u8]) -> Self {
        Self(Repr::Wire { version, bytes })
    }

    /// Appends all elements to `out`.
    ///
    /// # Errors
    /// The first element's [`EncodeError`].
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let encode_all = |values: &[T], out: &mut Vec<u8>| {
            let mut values = values.iter();
            values.try_for_each(|value| value.encode(version, out))
        };
        match &self.0 {
            Repr::Wire {
                version: from,
                bytes,
            } if *from == version => out.put(bytes),
            Repr::Wire { .. } => {
                for element in self {
                    element.encode(version, out)?;
                }
            }
            Repr::Borrowed(values) => encode_all(values, out)?,
            Repr::Owned(values) => encode_all(values, out)?,
        }
        Ok(())
    }

    /// Returns an iterator over the elements, by value.
    pub fn iter(&self) -> Iter<'a, '_, T> {
        let source = match &self.0 {
            Repr::Wire { version, bytes } => Source::Wire {
                version: *version,
                reader: Reader::new(bytes, Structure::Message),
            },
            Repr::Borrowed(values) => Source::Values(values.iter()),
            Repr::Owned(values) => Source::Values(values.iter()),
        };
        Iter {
            source,
            lifetime: PhantomData,
        }
    }

    /// Returns the elements if they are values; `None` for a list from the wire.
    #[inline]
    pub(crate) fn values(&self) -> Option<&[T]> {
        match &self.0 {
            Repr::Wire { .. } => None,
            Repr::Borrowed(values) => Some(values),
            Repr::Owned(values) => Some(values),
        }
    }

    /// Returns the number of elements, which is counted for a list from the wire.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Returns `true` if the list is empty.
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Repr::Wire { bytes, .. } => bytes.is_empty(),
            Repr::Borrowed(values) => values.is_empty(),
            Repr::Owned(values) => values.is_empty(),
        }
    }
}

impl<T: Clone> Default for List<'_, T> {
    #[inline]
    fn default() -> Self {
        Self(Repr::Borrowed(&[]))
    }
}

impl<T: Clone> From<Vec<T>> for List<'_, T> {
    #[inline]
    fn from(values: Vec<T>) -> Self {
        Self(Repr::Owned(values))
    }
}

impl<'a, T: Clone> From<&'a [T]> for List<'a, T> {
    #[inline]
    fn from(values: &'a [T]) -> Self {
        Self(Repr::Borrowed(values))
    }
}

impl<'a, T: Clone, const N: usize> From<&'a [T; N]> for List<'a, T> {
    #[inline]
    fn from(values: &'a [T; N]) -> Self {
        Self::from(values.as_slice())
    }
}

impl<T: Clone> FromIterator<T> for List<'_, T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::from(values.into_iter().collect::<Vec<_>>())
    }
}

/// Lists are equal if their elements are, whether from the wire or not.
impl<'a, T: Element<'a> + PartialEq> PartialEq for List<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, T: Element<'a> + Eq> Eq for List<'a, T> {}

impl<'a, T: Element<'a> + fmt::Debug> fmt::Debug for List<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, 'l, T: Element<'a>> IntoIterator for &'l List<'a, T> {
    type Item = T;
    type IntoIter = Iter<'a, 'l, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The iterator of [`List::iter`].
pub struct Iter<'a, 'l, T> {
    source: Source<'a, 'l, T>,
    lifetime: PhantomData<&'a T>,
}

enum Source<'a, 'l, T> {
    Wire {
        version: Version,
        reader: Reader<'a>,
    },
    Values(std::slice::Iter<'l, T>),
}

impl<'a, T: Element<'a>> Iterator for Iter<'a, '_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match &mut self.source {
            Source::Wire { reader, .. } if reader.is_empty() => None,
            // `List::decode` has already decoded this element, so the error does not occur.
            Source::Wire { version, reader } => T::decode(*version, reader).ok(),
            Source::Values(values) => values.next().cloned(),
        }
    }
}

/// Defines an enumeration on the wire whose unknown values are kept as `Other`, so that a message from a newer or unusual
/// peer can be decoded, and answered with the right error.
macro_rules! wire_enum {
    ($(#[$meta:meta])* $name:ident: $repr:ty { $($(#[$vmeta:meta])* $variant:ident = $value:expr,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$vmeta])* $variant,)+
            /// A value that the specification does not define.
            Other($repr),
        }

        impl From<$repr> for $name {
            #[inline]
            fn from(value: $repr) -> Self {
                match value {
                    $($value => Self::$variant,)+
                    other => Self::Other(other),
                }
            }
        }

        impl From<$name> for $repr {
            #[inline]
            fn from(value: $name) -> $repr {
                match value {
                    $($name::$variant => $value,)+
                    $name::Other(other) => other,
                }
            }
        }
    };
}
pub(crate) use wire_enum;
