//! What every codec shares: a bounds-checked reader, lists that are checked once and decoded lazily, and the macro
//! for the enumerations of the wire.
//!
//! **Why lists are lazy.** A flow-stats reply may hold thousands of entries, each with a match and actions. A
//! [`List`] read from the wire is bytes of which every element has been checked; iterating it decodes
//! element by element and allocates nothing. The same type carries values when a message is being written, so there
//! is one type per message, not a view and a builder.

use crate::{DecodeError, EncodeError, Structure, Version};
use std::fmt;
use std::marker::PhantomData;

/// Reads big-endian values off the front of a byte slice, and names the structure that ends too early.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    what: Structure,
}

impl<'a> Reader<'a> {
    /// A reader of `bytes`; `what` is the structure that errors are about.
    #[inline]
    pub fn new(bytes: &'a [u8], what: Structure) -> Self {
        Self { bytes, what }
    }

    /// The bytes not yet read.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// Whether everything was read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What is left, without reading it.
    #[inline]
    pub fn peek(&self) -> &'a [u8] {
        self.bytes
    }

    /// Ends a structure: all of it must have been read.
    ///
    /// # Errors
    /// [`DecodeError::TrailingBytes`] where something is left.
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

    /// The structure given in [`Reader::new`].
    #[inline]
    pub fn what(&self) -> Structure {
        self.what
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] where fewer are left; this holds for every method below.
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

    /// The next `count` bytes as a reader of their own, for the nested structure `what`.
    #[inline]
    pub fn nested(&mut self, count: usize, what: Structure) -> Result<Reader<'a>, DecodeError> {
        let mut nested = Reader::new(self.bytes, what);
        let bytes = nested.take(count)?;
        self.bytes = nested.bytes;
        Ok(Reader::new(bytes, what))
    }

    /// The next structure, `what`, which has its own length, header included, in the two bytes at `at`.
    ///
    /// # Errors
    /// [`DecodeError::Length`] where that is less than `minimum` or more than what is left. A length of zero is thus
    /// refused, and a loop over such structures ends.
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

    /// Like [`Reader::sized`], for structures with padding after them that their length does not count and that fills
    /// them up to a multiple of eight.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] where the padding is not there.
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
    /// [`DecodeError::Length`] for any other length too.
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

    /// The next `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.array_ref().copied()
    }

    /// The next `N` bytes as an array, where they are.
    #[inline]
    pub fn array_ref<const N: usize>(&mut self) -> Result<&'a [u8; N], DecodeError> {
        let Some((head, tail)) = self.bytes.split_first_chunk() else {
            return Err(self.truncated(N));
        };
        self.bytes = tail;
        Ok(head)
    }

    /// Skips padding. Its content is ignored: the specification asks for zeros, and some switches send others.
    #[inline]
    pub fn skip(&mut self, count: usize) -> Result<(), DecodeError> {
        self.take(count).map(drop)
    }

    /// The next byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    /// The next two bytes.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// The next four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// The next eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// Everything that is left.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }
}

/// Appends big-endian values and padding to an output buffer. Implemented for `Vec<u8>`, the one buffer that we write.
pub trait Put {
    /// Appends one byte.
    fn put_u8(&mut self, value: u8);
    /// Appends two bytes.
    fn put_u16(&mut self, value: u16);
    /// Appends four bytes.
    fn put_u32(&mut self, value: u32);
    /// Appends eight bytes.
    fn put_u64(&mut self, value: u64);
    /// Appends `bytes` as they are.
    fn put(&mut self, bytes: &[u8]);
    /// Appends `count` zeros.
    fn put_zeros(&mut self, count: usize);
    /// Appends zeros until the bytes from `start` on are a multiple of eight.
    fn pad_to_8(&mut self, start: usize);
    /// Writes into the two bytes at `at` how many bytes there are from `start` to the end.
    ///
    /// # Errors
    /// [`EncodeError::TooLong`], naming `what`, where the length does not fit into 16 bits.
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

/// A structure that stands in lists: an action, a bucket, a port, a row of statistics. It is read as an element of a
/// [`List`], and no type outside of this crate can be one.
pub trait Element<'a>: Clone {
    /// Reads one element off the front of `reader`, which is not empty. Must read at least one byte.
    ///
    /// # Errors
    /// [`DecodeError`] where the bytes are not such an element.
    #[doc(hidden)]
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError>;

    /// Appends the element to `out`.
    ///
    /// # Errors
    /// [`EncodeError`] where `version` cannot express it; what was appended until then is the caller's to remove.
    fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError>;
}

/// A sequence of `T`: checked bytes of the wire that are decoded while iterating, or values, borrowed or owned.
///
/// Cost: checking is one pass over the bytes; iterating decodes again. Neither allocates.
#[derive(Clone)]
pub struct List<'a, T: Clone>(Repr<'a, T>);

#[derive(Clone)]
enum Repr<'a, T: Clone> {
    /// Every element in `bytes` was decoded once, so decoding again cannot fail.
    Wire {
        version: Version,
        bytes: &'a [u8],
    },
    Borrowed(&'a [T]),
    Owned(Vec<T>),
}

impl<'a, T: Element<'a>> List<'a, T> {
    /// Checks that `bytes` are a sequence of `T`, as `version` writes it.
    ///
    /// # Errors
    /// The first element's [`DecodeError`].
    pub fn from_wire(version: Version, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::decode(version, &mut Reader::new(bytes, Structure::Message))
    }

    /// Checks that all that `reader` has left is a sequence of `T`, and takes it.
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

    /// Takes bytes that the caller has checked to be a sequence of `T`.
    #[inline]
    pub(crate) fn checked(version: Version, bytes: &'a [u8]) -> Self {
        Self(Repr::Wire { version, bytes })
    }

    /// Appends all elements to `out`.
    ///
    /// # Errors
    /// The first element's [`EncodeError`].
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match &self.0 {
            Repr::Wire {
                version: from,
                bytes,
            } if *from == version => out.put(bytes),
            _ => {
                for element in self {
                    element.encode(version, out)?;
                }
            }
        }
        Ok(())
    }

    /// The elements, each by value.
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

    /// How many elements there are. Counts them, where the list came from the wire.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Repr::Wire { bytes, .. } => bytes.is_empty(),
            Repr::Borrowed(values) => values.is_empty(),
            Repr::Owned(values) => values.is_empty(),
        }
    }
}

impl<T: Clone> Default for List<'_, T> {
    fn default() -> Self {
        Self(Repr::Borrowed(&[]))
    }
}

impl<T: Clone> From<Vec<T>> for List<'_, T> {
    fn from(values: Vec<T>) -> Self {
        Self(Repr::Owned(values))
    }
}

impl<'a, T: Clone> From<&'a [T]> for List<'a, T> {
    fn from(values: &'a [T]) -> Self {
        Self(Repr::Borrowed(values))
    }
}

impl<'a, T: Clone, const N: usize> From<&'a [T; N]> for List<'a, T> {
    fn from(values: &'a [T; N]) -> Self {
        Self::from(values.as_slice())
    }
}

impl<T: Clone> FromIterator<T> for List<'_, T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::from(values.into_iter().collect::<Vec<_>>())
    }
}

/// Two lists are equal when their elements are, wherever they come from.
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
            // `List::decode` decoded this very element once, so the error does not occur.
            Source::Wire { version, reader } => T::decode(*version, reader).ok(),
            Source::Values(values) => values.next().cloned(),
        }
    }
}

/// Defines an enumeration of the wire whose unknown values are kept as `Other`, so that a message from a newer or
/// unusual peer can be decoded, and answered with the right error.
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
