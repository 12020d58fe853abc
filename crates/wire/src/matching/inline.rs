//! The fields of a match that a program builds, stored in 1.3's encoding: consecutive OXM TLVs.
//!
//! A program sets a field once and sends the match once, so a field is converted and checked when it is set, and writing it
//! copies bytes. Only fields that every encoder accepts are stored: without a mask, or with a mask that they may have, and
//! without duplicates. Any other match is a list of fields, and so is one that is longer than the buffer.

use crate::{Field, OxmField};

/// The size of the buffer in bytes. All fields of an IPv4 packet with ports fit, without masks (83 bytes). With the header of
/// `ofp_match`, four bytes, it is a multiple of eight.
pub(crate) const CAPACITY: usize = 92;

/// The number of zeros after the longest TLVs, so that [`InlineFields::tlv_at`] need not determine a TLV's size.
const SLACK: usize = 8;

/// The size of a TLV's header in bytes.
const HEADER_SIZE: usize = 4;

/// `oxm_hasmask`, in the byte that `oxm_field` shares with it.
const HAS_MASK: u8 = 1;

/// OXM TLVs of class OFPXMC_OPENFLOW_BASIC.
#[derive(Clone, Copy)]
pub(crate) struct InlineFields {
    /// The set of fields: a bit for each field's number.
    present: u64,
    /// The size of the TLVs in bytes.
    len: u32,
    /// The TLVs, then zeros.
    bytes: [u8; CAPACITY + SLACK],
}

impl InlineFields {
    pub(crate) const EMPTY: Self = Self {
        present: 0,
        len: 0,
        bytes: [0; CAPACITY + SLACK],
    };

    /// Adds a field without a mask, and returns `true`, if it is not present yet and there is space. Bits of `value` beyond the
    /// field's width are dropped.
    #[inline(always)] // most callers name the field, whose size is then a constant
    pub(crate) fn push_exact(&mut self, field: OxmField, value: u128) -> bool {
        let width = field.bytes();
        let Some(body) = self.push_header(field, 0, width) else {
            return false;
        };
        put_number(&mut body[..width], value & field.full_mask());
        true
    }

    /// Adds a field in which only the bits in `mask` are compared, and returns `true`, if it may have this mask, is not present
    /// yet and there is space. A mask of all bits is no mask. Bits of `value` outside the mask are dropped.
    #[inline(always)] // most callers name the field, whose size is then a constant
    pub(crate) fn push_masked(&mut self, field: OxmField, value: u128, mask: u128) -> bool {
        let mask = mask & field.full_mask();
        if mask == field.full_mask() {
            return self.push_exact(field, value);
        }
        let width = field.bytes();
        if !field.maskable() {
            return false;
        }
        let Some(body) = self.push_header(field, HAS_MASK, 2 * width) else {
            return false;
        };
        put_number(&mut body[..width], value & mask);
        put_number(&mut body[width..2 * width], mask);
        true
    }

    /// Adds the header of a field that is not present yet, if there is space, and returns the `length` bytes after it.
    #[inline(always)]
    fn push_header(&mut self, field: OxmField, has_mask: u8, length: usize) -> Option<&mut [u8]> {
        let start = self.len as usize;
        let end = start + HEADER_SIZE + length;
        let bit = 1 << field as u8;
        if self.present & bit != 0 || end > CAPACITY {
            return None;
        }
        self.present |= bit;
        self.len = end as u32;
        let tlv = &mut self.bytes[start..end];
        let header = [0x80, 0x00, (field as u8) << 1 | has_mask, length as u8];
        tlv[..HEADER_SIZE].copy_from_slice(&header);
        Some(&mut tlv[HEADER_SIZE..])
    }

    /// Returns the set of fields: a bit for each field's number.
    pub(crate) fn present(&self) -> u64 {
        self.present
    }

    /// Returns the TLVs.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }

    /// Returns the size of the TLVs in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns the TLVs with zeros after them. Copying a constant size needs a few moves, but copying only the TLVs is a call.
    #[inline]
    pub(crate) fn padded(&self) -> &[u8; CAPACITY] {
        self.bytes.first_chunk().expect("there are some more")
    }

    /// Returns the first twelve bytes of a TLV and the bytes after it: header and value, and the mask if both are short.
    #[inline]
    pub(crate) fn tlv_at(&self, at: usize) -> Option<&[u8; 12]> {
        self.bytes.get(at..at + 12)?.first_chunk()
    }

    /// Returns the fields, in the order in which they were added.
    pub(crate) fn iter(&self) -> Iter<'_> {
        Iter {
            bytes: self.as_bytes(),
        }
    }
}

/// Writes the low bytes of `value`, big-endian.
#[inline(always)]
fn put_number(bytes: &mut [u8], value: u128) {
    let number = value.to_be_bytes();
    bytes.copy_from_slice(&number[number.len() - bytes.len()..]);
}

/// The iterator of [`InlineFields::iter`].
pub(crate) struct Iter<'l> {
    bytes: &'l [u8],
}

impl Iter<'_> {
    /// Returns the next field, which borrows nothing, so that it suits any lifetime of the caller's fields.
    pub(crate) fn next_field<'a>(&mut self) -> Option<Field<'a>> {
        let [_, _, field_and_mask, length, ref rest @ ..] = *self.bytes else {
            return None;
        };
        let field = OxmField::from_wire(field_and_mask >> 1)?;
        let (body, rest) = rest.split_at_checked(length.into())?;
        self.bytes = rest;
        let (value, mask) = match field_and_mask & HAS_MASK {
            0 => (number(body), field.full_mask()),
            _ => {
                let (value, mask) = body.split_at(body.len() / 2);
                (number(value), number(mask))
            }
        };
        Some(Field::Basic { field, value, mask })
    }
}

fn number(bytes: &[u8]) -> u128 {
    bytes
        .iter()
        .fold(0, |value, &byte| value << 8 | u128::from(byte))
}
