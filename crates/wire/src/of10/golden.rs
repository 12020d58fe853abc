//! What the tests of this folder share: bytes and the value that they stand for, compared in both directions.

use crate::{Element, Message, Reader, Version};
use std::fmt::Debug;

/// Checks that `bytes` reads as `element` and `element` writes as `bytes`.
#[track_caller]
pub(super) fn element<'a, T>(bytes: &'a [u8], element: &T)
where
    T: Element<'a> + PartialEq + Debug,
{
    let mut reader = Reader::new(bytes, "golden bytes");
    assert_eq!(T::decode(Version::Of10, &mut reader).as_ref(), Ok(element));
    assert_eq!(reader.remaining(), 0, "bytes that were not read");
    assert_eq!(written(element), bytes);
}

/// The same for a whole message, whose transaction id must be 0x01020304.
#[track_caller]
pub(super) fn message<'a>(bytes: &'a [u8], message: &Message<'a>) {
    let (header, decoded) = Message::decode(bytes).expect("the golden bytes decode");
    assert_eq!(&decoded, message);
    assert_eq!(header.xid, 0x0102_0304);
    for message in [message, &decoded] {
        let mut out = Vec::new();
        message
            .encode(Version::Of10, header.xid, &mut out)
            .expect("the golden message encodes");
        assert_eq!(out, bytes);
    }
}

/// The bytes of an element that can be written.
#[track_caller]
pub(super) fn written<'a>(element: &impl Element<'a>) -> Vec<u8> {
    let mut out = Vec::new();
    element
        .encode(Version::Of10, &mut out)
        .expect("the golden value encodes");
    out
}

/// What the error says when `element` is written.
#[track_caller]
pub(super) fn refused<'a>(element: &impl Element<'a>) -> String {
    element
        .encode(Version::Of10, &mut Vec::new())
        .expect_err("1.0 cannot express this")
        .to_string()
}

/// What the error says when `message` is written.
#[track_caller]
pub(super) fn refused_message(message: &Message) -> String {
    message
        .encode(Version::Of10, 1, &mut Vec::new())
        .expect_err("1.0 cannot express this")
        .to_string()
}
