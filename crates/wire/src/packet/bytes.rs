//! Reading fields from named ranges of bytes. The ranges are constants of this crate, never read from a packet, so that the
//! compiler can remove the bounds checks for the views' headers of fixed size.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use super::PacketError;
use crate::MacAddr;

/// Splits a header of `N` bytes off the front.
#[inline]
pub(super) fn split_header<'a, const N: usize>(
    layer: &'static str,
    bytes: &'a [u8],
) -> Result<(&'a [u8; N], &'a [u8]), PacketError> {
    bytes.split_first_chunk().ok_or(PacketError::Truncated {
        layer,
        needed: N,
        available: bytes.len(),
    })
}

/// Splits `len` bytes off the front.
#[inline]
pub(super) fn split_at<'a>(
    layer: &'static str,
    bytes: &'a [u8],
    len: usize,
) -> Result<(&'a [u8], &'a [u8]), PacketError> {
    bytes.split_at_checked(len).ok_or(PacketError::Truncated {
        layer,
        needed: len,
        available: bytes.len(),
    })
}

/// Returns the first `len` bytes, or all bytes if there are fewer.
#[inline]
pub(super) fn at_most(bytes: &[u8], len: usize) -> &[u8] {
    &bytes[..len.min(bytes.len())]
}

/// Returns the `N` bytes of a field.
#[inline]
pub(super) fn array_at<const N: usize>(bytes: &[u8], field: Range<usize>) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[field]);
    array
}

/// Returns a 16-bit field.
#[inline]
pub(super) fn u16_at(bytes: &[u8], field: Range<usize>) -> u16 {
    u16::from_be_bytes(array_at(bytes, field))
}

/// Returns a 32-bit field.
#[inline]
pub(super) fn u32_at(bytes: &[u8], field: Range<usize>) -> u32 {
    u32::from_be_bytes(array_at(bytes, field))
}

/// Returns a MAC address.
#[inline]
pub(super) fn mac_at(bytes: &[u8], field: Range<usize>) -> MacAddr {
    MacAddr::new(array_at(bytes, field))
}

/// Returns an IPv4 address.
#[inline]
pub(super) fn ipv4_at(bytes: &[u8], field: Range<usize>) -> Ipv4Addr {
    Ipv4Addr::from(array_at::<4>(bytes, field))
}

/// Returns an IPv6 address.
#[inline]
pub(super) fn ipv6_at(bytes: &[u8], field: Range<usize>) -> Ipv6Addr {
    Ipv6Addr::from(array_at::<16>(bytes, field))
}

/// Overwrites a 16-bit field of the header that starts at `start`, such as a length or checksum that is only known
/// afterwards.
#[inline]
pub(super) fn patch_u16(out: &mut [u8], start: usize, field: Range<usize>, value: u16) {
    out[start..][field].copy_from_slice(&value.to_be_bytes());
}

/// Appends zero bytes until the length since `start` is a multiple of `unit`.
#[inline]
pub(super) fn pad_to_multiple(out: &mut Vec<u8>, start: usize, unit: usize) {
    let len = (out.len() - start).next_multiple_of(unit);
    out.resize(start + len, 0);
}
