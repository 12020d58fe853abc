//! Helpers for the codecs' tests: golden bytes and their value, compared in both directions.

use crate::{DecodeError, Element, EncodeError, Message, Reader, Structure, Version};
use std::fmt::Debug;

/// Returns the bytes for the hex digits in `text`; white space is ignored.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    let byte = |pair: &[u32]| (pair[0] * 16 + pair[1]) as u8;
    digits.chunks(2).map(byte).collect()
}

/// Checks that `bytes` decode to `element`, and that it encodes to them.
#[track_caller]
pub(crate) fn element<'a, T>(version: Version, bytes: &'a [u8], element: &T)
where
    T: Element<'a> + PartialEq + Debug,
{
    assert_eq!(decode_element(version, bytes).as_ref(), Ok(element));
    assert_eq!(written(version, element), bytes);
}

/// Checks that `bytes` decode to `message`, and that it encodes to them.
#[track_caller]
pub(crate) fn message<'a>(bytes: &'a [u8], message: &Message<'a>) {
    let (header, decoded) = Message::decode(bytes).expect("the golden bytes decode");
    assert_eq!(&decoded, message);
    let version = Version::from_wire(header.version).expect("a supported version");
    for message in [message, &decoded] {
        let mut out = Vec::new();
        let result = message.encode(version, header.xid, &mut out);
        result.expect("the golden message encodes");
        assert_eq!(out, bytes);
    }
}

/// Decodes one element that uses all of `bytes`.
pub(crate) fn decode_element<'a, T: Element<'a>>(
    version: Version,
    bytes: &'a [u8],
) -> Result<T, DecodeError> {
    let mut reader = Reader::new(bytes, Structure::Message);
    let element = T::decode(version, &mut reader)?;
    reader.finish()?;
    Ok(element)
}

/// Encodes an element without an error.
#[track_caller]
pub(crate) fn written<'a>(version: Version, element: &impl Element<'a>) -> Vec<u8> {
    let mut out = Vec::new();
    let result = element.encode(version, &mut out);
    result.expect("the golden element encodes");
    out
}

/// Returns the error of decoding `bytes` as a message.
#[track_caller]
pub(crate) fn decode_error(bytes: &[u8]) -> DecodeError {
    Message::decode(bytes).expect_err("these bytes are no message")
}

/// Returns the error of encoding `element`.
#[track_caller]
pub(crate) fn refused<'a>(version: Version, element: &impl Element<'a>) -> EncodeError {
    let result = element.encode(version, &mut Vec::new());
    result.expect_err("the version cannot express this")
}

/// Returns the error of encoding `message`.
#[track_caller]
pub(crate) fn refused_message(version: Version, message: &Message) -> EncodeError {
    let result = message.encode(version, 1, &mut Vec::new());
    result.expect_err("the version cannot express this")
}
