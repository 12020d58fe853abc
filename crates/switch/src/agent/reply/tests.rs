//! Tests of replies that need more than one message.

use super::*;
use urtica_wire::{FixedName, List, TableStats, split_frame};

fn rows(count: u32) -> Vec<TableStats> {
    let row = |number| TableStats {
        table_id: 0,
        name: FixedName([0; 32]),
        wildcards: 0,
        max_entries: 0,
        active_count: number,
        lookup_count: 0,
        matched_count: 0,
    };
    (0..count).map(row).collect()
}

/// Returns the rows of all messages, and the number of messages.
fn read(version: Version, mut bytes: &[u8]) -> (Vec<TableStats>, usize) {
    let (mut all, mut messages) = (Vec::new(), 0);
    while let Some((frame, rest)) = split_frame(bytes).unwrap() {
        let (header, message) = Message::decode(frame).unwrap();
        assert_eq!((header.version, header.xid), (version.to_wire(), 9));
        let Message::MultipartReply(reply) = message else {
            panic!("expected a multipart reply, not {message:?}");
        };
        let MultipartReplyBody::Table(rows) = reply.body else {
            panic!("expected tables, not {:?}", reply.body);
        };
        all.extend(rows.iter());
        messages += 1;
        bytes = rest;
        assert_eq!(
            reply.flags.contains(MultipartFlags::MORE),
            !bytes.is_empty()
        );
    }
    (all, messages)
}

#[test]
fn rows_are_spread_over_messages() {
    for version in Version::ALL {
        for (count, messages) in [(0, 1), (1, 1), (1000, 1), (10_000, 4)] {
            let messages = match (version, count) {
                (Version::Of10, 10_000) => 10,
                _ => messages,
            };
            let mut out = Vec::new();
            let empty = MultipartReplyBody::Table(List::default());
            write_rows(version, 9, empty, rows(count), &mut out).unwrap();
            assert_eq!(read(version, &out), (rows(count), messages));
        }
    }
}

#[test]
fn rows_that_a_version_lacks_are_left_out() {
    let mut mixed = rows(3);
    mixed[1].name = FixedName::truncated("of 1.0");
    let mut out = Vec::new();
    let empty = MultipartReplyBody::Table(List::default());
    write_rows(Version::Of13, 9, empty, mixed, &mut out).unwrap();
    let (told, _) = read(Version::Of13, &out);
    assert_eq!(told.len(), 2);
}

#[test]
fn a_reply_that_a_version_lacks_is_an_error() {
    let mut out = vec![1];
    let empty = MultipartReplyBody::PortDesc(List::default());
    let none: [TableStats; 0] = [];
    assert!(write_rows(Version::Of10, 9, empty, none, &mut out).is_err());
    assert_eq!(out, [1]);
}
