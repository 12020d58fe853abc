//! Golden bytes: literal hex, checked in both directions.

use crate::{DecodeError, Element, EncodeError, Header, Message, Reader, Version, Write};
use std::fmt::Debug;

/// The bytes that `text` spells; white space is for the reader.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits
        .chunks(2)
        .map(|pair| (pair[0] * 16 + pair[1]) as u8)
        .collect()
}

/// `bytes` are `value`, and the other way round.
#[track_caller]
pub(crate) fn element<'a, T: Element<'a> + PartialEq + Debug>(bytes: &'a [u8], value: T) {
    assert_eq!(decode_element::<T>(bytes).as_ref(), Ok(&value));
    let mut out = Vec::new();
    value.encode(Version::Of13, &mut out).unwrap();
    assert_eq!(out, bytes);
}

/// One element that takes all of `bytes`.
pub(crate) fn decode_element<'a, T: Element<'a>>(bytes: &'a [u8]) -> Result<T, DecodeError> {
    let mut reader = Reader::new(bytes, "test");
    let value = T::decode(Version::Of13, &mut reader)?;
    reader.finish()?;
    Ok(value)
}

/// The error of writing `value`.
#[track_caller]
pub(crate) fn refused<'a, T: Element<'a>>(value: T) -> EncodeError {
    value.encode(Version::Of13, &mut Vec::new()).unwrap_err()
}

/// A whole message with transaction id 7: its header, then `body`.
pub(crate) fn frame(message_type: u8, body: &str) -> Vec<u8> {
    let body = hex(body);
    let header = Header {
        version: 4,
        message_type,
        length: (Header::SIZE + body.len()) as u16,
        xid: 7,
    };
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    bytes.put(&body);
    bytes
}

/// `bytes`, from [`frame`], are `message`, and the other way round.
#[track_caller]
pub(crate) fn message(bytes: &[u8], message: &Message) {
    let (_, decoded) = Message::decode(bytes).unwrap();
    assert_eq!(&decoded, message);
    let mut out = Vec::new();
    message.encode(Version::Of13, 7, &mut out).unwrap();
    assert_eq!(out, bytes);
}

/// The error of reading `bytes` as a message.
#[track_caller]
pub(crate) fn decode_error(bytes: &[u8]) -> DecodeError {
    Message::decode(bytes).unwrap_err()
}

/// The error of writing `message`.
#[track_caller]
pub(crate) fn encode_error(message: &Message) -> EncodeError {
    message
        .encode(Version::Of13, 7, &mut Vec::new())
        .unwrap_err()
}
