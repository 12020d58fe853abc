//! os-ken's opinion of the wire format: every message that it made, or that was made by hand and that it read, decodes
//! here and encodes to the same bytes. `tools/vectors` makes the files and says how.

mod support;

use std::collections::BTreeSet;
use support::{encoded, rebuilt};
use urtica_wire::{Header, Message, Version};

struct Vector {
    name: String,
    bytes: Vec<u8>,
}

/// All messages of `tests/vectors/<file>`, one JSON object a line.
fn vectors(file: &str) -> Vec<Vector> {
    let path = format!("{}/tests/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let lines = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    lines.lines().map(vector).collect()
}

fn vector(line: &str) -> Vector {
    let value: serde_json::Value = serde_json::from_str(line).expect("a line is a JSON object");
    let text = |key: &str| value[key].as_str().expect("a string").to_owned();
    Vector {
        name: text("name"),
        bytes: bytes(&text("hex")),
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex digits");
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn check(vector: &Vector, version: Version) -> Header {
    let name = &vector.name;
    let (header, message) =
        Message::decode(&vector.bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(header.version, version.to_wire(), "{name}");
    assert_eq!(
        encoded(&message, version, header.xid),
        vector.bytes,
        "{name}"
    );
    let rebuilt = rebuilt(&message);
    assert_eq!(rebuilt, message, "{name}");
    assert_eq!(
        encoded(&rebuilt, version, header.xid),
        vector.bytes,
        "{name}, element by element"
    );
    header
}

/// Checks every message of a file, and that it has all message types up to the highest.
fn check_all(file: &str, version: Version, highest_type: u8) {
    let types: BTreeSet<u8> = vectors(file)
        .iter()
        .map(|vector| check(vector, version).message_type)
        .collect();
    assert_eq!(types, (0..=highest_type).collect());
}

#[test]
fn of10() {
    check_all("of10.jsonl", Version::Of10, 21);
}

#[test]
fn of13() {
    check_all("of13.jsonl", Version::Of13, 29);
}
