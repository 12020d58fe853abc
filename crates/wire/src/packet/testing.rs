//! Helpers for the tests of the protocol files.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::MacAddr;

/// Generates random bytes, and damaged valid packets, since random bytes seldom pass the first check.
pub(super) fn hostile(golden: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![bytes(128), damaged(golden)]
}

/// Generates `golden`, truncated at any length and with a few bytes overwritten.
fn damaged(golden: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
    let edits = vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (0..=golden.len(), edits).prop_map(move |(len, edits)| {
        let mut bytes = golden[..len].to_vec();
        for (place, value) in edits {
            if len > 0 {
                bytes[place.index(len)] = value;
            }
        }
        bytes
    })
}

/// Generates up to `max` bytes.
pub(super) fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..=max)
}

/// Generates up to `max` pieces of `unit` bytes, as options without padding.
pub(super) fn aligned_bytes(unit: usize, max: usize) -> impl Strategy<Value = Vec<u8>> {
    (0..=max).prop_flat_map(move |count| vec(any::<u8>(), count * unit))
}

/// Generates MAC addresses.
pub(super) fn mac() -> impl Strategy<Value = MacAddr> {
    any::<[u8; 6]>().prop_map(MacAddr::new)
}
