//! Multipart replies of many rows, cut into messages that are not too long.

use urtica_wire::{
    Element, EncodeError, Message, MultipartFlags, MultipartReply, MultipartReplyBody, Version,
    Write,
};

/// The longest message.
const MAX_MESSAGE_BYTES: usize = u16::MAX as usize;
/// Where the flags are, in both versions' messages.
const FLAGS_AT: usize = 10;

/// Appends a reply with these rows to `out`, in as many messages as it takes, all but the last with
/// OFPMPF_REPLY_MORE. `empty` is the reply's body without rows. Rows that the version cannot express are left out: a
/// controller of 1.0 cannot be told of what it has no words for.
///
/// # Errors
/// [`EncodeError`] where the version does not have such a reply; nothing was appended then.
pub(super) fn write_rows<'a, T: Element<'a>>(
    version: Version,
    xid: u32,
    empty: MultipartReplyBody<'static>,
    rows: impl IntoIterator<Item = T>,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let empty = Message::MultipartReply(MultipartReply {
        flags: MultipartFlags::empty(),
        body: empty,
    });
    let mut start = out.len();
    empty.encode(version, xid, out)?;
    for row in rows {
        let end = out.len();
        if let Err(error) = row.encode(version, out) {
            urtica_log::debug!(about: "rows", %error, "a row is left out of a multipart reply");
            out.truncate(end);
            continue;
        }
        if out.len() - start > MAX_MESSAGE_BYTES {
            let row = out.split_off(end);
            set_more(out, start);
            close(out, start)?;
            start = out.len();
            empty.encode(version, xid, out)?;
            out.put(&row);
        }
    }
    close(out, start)
}

fn set_more(out: &mut [u8], start: usize) {
    let flags = MultipartFlags::MORE.bits().to_be_bytes();
    out[start + FLAGS_AT..start + FLAGS_AT + flags.len()].copy_from_slice(&flags);
}

fn close(out: &mut Vec<u8>, start: usize) -> Result<(), EncodeError> {
    out.set_length(start + 2, start, "multipart reply")
}

#[cfg(test)]
mod tests {
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

    /// The rows of all messages, and how many of these there are.
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
}
