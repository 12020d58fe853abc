//! Tests of properties of arbitrary bytes, and of all messages in both versions.
//!
//! They start from os-ken's valid messages, which are changed byte by byte, mostly in lengths and types.

mod support;

use proptest::prelude::*;
use proptest::sample::Index;
use std::sync::LazyLock;
use support::{encoded, rebuilt, vectors};
use urtica_wire::{Header, Message, PacketIn, Version, split_frame};

static VALID: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    ["of10.jsonl", "of13.jsonl"]
        .into_iter()
        .flat_map(vectors)
        .map(|(_, bytes)| bytes)
        .collect()
});

fn valid() -> impl Strategy<Value = Vec<u8>> {
    any::<Index>().prop_map(|index| index.get(&VALID).clone())
}

/// A valid message with some bytes changed, possibly truncated or extended. The length in its header is correct, since a
/// message with another is refused before its body is decoded.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<Index>(), interesting_byte());
    let changes = prop::collection::vec(change, 1..6);
    let resize = prop_oneof![4 => Just(0_isize), 1 => -24_isize..24];
    (valid(), changes, resize).prop_map(|(mut bytes, changes, resize)| {
        let length = bytes.len().saturating_add_signed(resize).max(Header::SIZE);
        bytes.resize(length, 0);
        for (index, value) in changes {
            *index.get_mut(&mut bytes) = value;
        }
        with_true_length(bytes)
    })
}

/// A byte that is more likely than others to be an invalid length or type.
fn interesting_byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        3 => 0_u8..32,
        2 => prop::sample::select(vec![0x20, 0x30, 0x40, 0x7f, 0x80, 0xf8, 0xfe, 0xff]),
        1 => any::<u8>(),
    ]
}

fn with_true_length(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// Any body after a header that leads to a decoder.
fn framed() -> impl Strategy<Value = Vec<u8>> {
    let version = prop::sample::select(vec![1_u8, 4]);
    let body = prop::collection::vec(interesting_byte(), 0..256);
    (version, 0_u8..32, body).prop_map(|(version, message_type, body)| {
        let mut bytes = vec![version, message_type, 0, 0, 0, 0, 0, 1];
        bytes.extend(body);
        with_true_length(bytes)
    })
}

/// Asserts that a decoded message is encoded and decoded as an equal one, both in its own form and element by element.
fn check(bytes: &[u8]) {
    let Ok((header, message)) = Message::decode(bytes) else {
        return;
    };
    // A hello may have an unsupported version; it is then encoded in a supported one.
    let version = Version::from_wire(header.version).unwrap_or(Version::Of13);
    for written in [&message, &rebuilt(&message)] {
        let again = encoded(written, version, header.xid);
        let (_, decoded) = Message::decode(&again).expect("what we write, we read");
        assert_eq!(decoded, message);
    }
}

/// Asserts that a message is either refused in the other version or decoded again, without a panic.
fn check_other_version(bytes: &[u8]) {
    let Ok((header, message)) = Message::decode(bytes) else {
        return;
    };
    for version in Version::ALL {
        let mut out = Vec::new();
        if message.encode(version, header.xid, &mut out).is_ok() {
            Message::decode(&out).expect("what we write, we read");
        } else {
            assert!(out.is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn any_bytes_are_refused_or_read_back(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        check(&bytes);
        for version in Version::ALL {
            let _ = PacketIn::decode(version, &bytes);
        }
    }

    #[test]
    fn any_body_is_refused_or_reads_back(bytes in framed()) {
        check(&bytes);
    }

    #[test]
    fn mutated_messages_are_refused_or_read_back(bytes in mutated()) {
        check(&bytes);
        check_other_version(&bytes);
    }

    #[test]
    fn truncated_messages_are_refused_or_read_back(bytes in valid(), index in any::<Index>()) {
        let length = Header::SIZE + index.index(bytes.len() - Header::SIZE + 1);
        check(&with_true_length(bytes[..length].to_vec()));
    }

    /// A stream is split into its messages one by one, and the incomplete rest remains.
    #[test]
    fn streams_are_split_into_messages(messages in prop::collection::vec(valid(), 0..8), index in any::<Index>()) {
        let stream = messages.concat();
        let cut = index.index(stream.len() + 1);
        let mut rest = &stream[..cut];
        let mut whole = messages.iter();
        while let Some((frame, tail)) = split_frame(rest).unwrap() {
            prop_assert_eq!(frame, whole.next().unwrap().as_slice());
            rest = tail;
        }
        prop_assert!(whole.next().is_none_or(|next| next.starts_with(rest) && next.len() > rest.len()));
    }
}

#[test]
fn messages_are_refused_or_read_back_in_the_other_version() {
    for bytes in VALID.iter() {
        check_other_version(bytes);
    }
}
