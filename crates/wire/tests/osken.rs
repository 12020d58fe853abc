//! Test vectors of os-ken: every message that it wrote, or that it read and a person wrote, is decoded here and encoded to
//! its bytes again. `tools/vectors` creates the files and documents how.

mod support;

use std::collections::BTreeSet;
use support::{encoded, rebuilt, vectors};
use urtica_wire::{Header, Message, Version};

fn check(name: &str, bytes: &[u8], version: Version) -> Header {
    let (header, message) =
        Message::decode(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(header.version, version.to_wire(), "{name}");
    assert_eq!(encoded(&message, version, header.xid), bytes, "{name}");
    let rebuilt = rebuilt(&message);
    assert_eq!(rebuilt, message, "{name}");
    assert_eq!(
        encoded(&rebuilt, version, header.xid),
        bytes,
        "{name}, element by element"
    );
    header
}

/// Checks every message of a file, and that it has all message types up to the highest.
fn check_all(file: &str, version: Version, highest_type: u8) {
    let types: BTreeSet<u8> = vectors(file)
        .iter()
        .map(|(name, bytes)| check(name, bytes, version).message_type)
        .collect();
    assert_eq!(types, (0..=highest_type).collect());
}

#[test]
fn oskens_messages_of_1_0_both_ways() {
    check_all("of10.jsonl", Version::Of10, 21);
}

#[test]
fn oskens_messages_of_1_3_both_ways() {
    check_all("of13.jsonl", Version::Of13, 29);
}
