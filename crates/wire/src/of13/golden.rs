//! The shared helpers of the tests, for this version.

use crate::golden;
use crate::{DecodeError, Element, EncodeError, Header, Message, Put, Version};
use std::fmt::Debug;

pub(super) use crate::golden::{decode_error, hex, message};

/// Creates a whole message with this type and the body in hex digits.
pub(super) fn frame(message_type: u8, body: &str) -> Vec<u8> {
    let body = hex(body);
    let header = Header {
        version: Version::Of13.to_wire(),
        message_type,
        length: (Header::SIZE + body.len()) as u16,
        xid: 7,
    };
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    bytes.put(&body);
    bytes
}

/// Checks that `bytes` decode to `element`, and that it encodes to them.
#[track_caller]
pub(super) fn element<'a, T>(bytes: &'a [u8], element: T)
where
    T: Element<'a> + PartialEq + Debug,
{
    golden::element(Version::Of13, bytes, &element);
}

/// Decodes one element that uses all of `bytes`.
pub(super) fn decode_element<'a, T: Element<'a>>(bytes: &'a [u8]) -> Result<T, DecodeError> {
    golden::decode_element(Version::Of13, bytes)
}

/// Returns the error of encoding `element`.
#[track_caller]
pub(super) fn refused<'a>(element: impl Element<'a>) -> EncodeError {
    golden::refused(Version::Of13, &element)
}

/// Returns the error of encoding `message`.
#[track_caller]
pub(super) fn refused_message(message: &Message) -> EncodeError {
    golden::refused_message(Version::Of13, message)
}
