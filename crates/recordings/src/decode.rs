//! OpenFlow messages as text, from hex digits or a capture.

mod boundary;
mod connections;
mod outcome;
mod stream;

pub use connections::{CaptureError, Connections, print_capture};
pub use outcome::Outcome;

use std::fmt;
use std::io::{self, Write};
use stream::MessageStream;

/// Why a text is not a sequence of bytes in hex digits.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HexError {
    /// A byte of the text is neither a hex digit nor a blank.
    #[error("byte {at} of the input is {found}; expected hex digits and blanks, or a capture", found = Letter(*.found))]
    NotHex {
        /// The position in the text, from 0.
        at: usize,
        /// The byte.
        found: u8,
    },
    /// A digit is missing.
    #[error("the input has an odd number of hex digits; expected two for each byte")]
    OddDigits,
}

/// Prints every message that can be decoded, and a line for everything else.
///
/// # Errors
/// Errors of the output.
pub fn print_messages(bytes: &[u8], is_verbose: bool, out: &mut dyn Write) -> io::Result<Outcome> {
    let mut messages = MessageStream::new(String::new(), is_verbose);
    messages.push(bytes, out)?;
    messages.finish(out)?;
    Ok(messages.outcome())
}

/// Parses hex digits, with any blanks between them.
///
/// # Errors
/// [`HexError`].
pub fn parse_hex(text: &[u8]) -> Result<Vec<u8>, HexError> {
    let mut digits = Vec::with_capacity(text.len());
    for (at, &found) in text.iter().enumerate() {
        match char::from(found).to_digit(16) {
            Some(digit) => digits.push(digit as u8),
            None if found.is_ascii_whitespace() => {}
            None => return Err(HexError::NotHex { at, found }),
        }
    }
    let pairs = digits.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(HexError::OddDigits);
    }
    Ok(pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// An unexpected byte in a text.
struct Letter(u8);

impl fmt::Display for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_ascii_graphic() {
            write!(f, "'{}'", char::from(self.0))
        } else {
            write!(f, "{:#04x}", self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> (Outcome, String) {
        let bytes = parse_hex(text.as_bytes()).expect("hex digits");
        let mut out = Vec::new();
        let outcome = print_messages(&bytes, false, &mut out).expect("writing to memory");
        (outcome, String::from_utf8(out).expect("text"))
    }

    #[test]
    fn hex_may_be_split_anywhere() {
        let barrier = "OFPT_BARRIER_REQUEST (xid=0x1):\n";
        for text in [
            "0112000800000001",
            "01120008 00000001",
            "01 12 00 08\n0000 0001",
        ] {
            assert_eq!(printed(text), (Outcome::AllRead, barrier.to_owned()));
        }
    }

    #[test]
    fn a_hello_may_be_of_any_version() {
        let (outcome, printed) = printed("0600001000000001 0001000800000052");
        assert_eq!(outcome, Outcome::AllRead);
        let line = "OFPT_HELLO (OF1.5) (xid=0x1): version bitmap: 0x01, 0x04, 0x06\n";
        assert_eq!(printed, line);
    }

    #[test]
    fn messages_after_an_invalid_one_are_printed() {
        let (outcome, printed) = printed("01ff000800000001 0112000800000002");
        assert_eq!(outcome, Outcome::SomeUnreadable);
        assert_eq!(
            printed,
            "byte 0: message type 255 does not exist in OpenFlow 1.0 (8 bytes, xid=0x1)\n\
             OFPT_BARRIER_REQUEST (xid=0x2):\n"
        );
    }

    #[test]
    fn the_next_message_is_searched_after_an_implausible_header() {
        let (outcome, printed) = printed("0112000700000001 0112000800000002 0112000800000003");
        assert_eq!(outcome, Outcome::SomeUnreadable);
        assert_eq!(
            printed,
            "byte 0: the header gives its length as 7; expected at least 8, the size of the header itself\n\
             byte 0: skipping 8 bytes; the next message starts at byte 8\n\
             OFPT_BARRIER_REQUEST (xid=0x2):\n\
             OFPT_BARRIER_REQUEST (xid=0x3):\n"
        );
    }

    #[test]
    fn bytes_after_an_implausible_header_are_reported() {
        let (outcome, printed) = printed("0112000800000002 0112000700000001");
        assert_eq!(outcome, Outcome::SomeUnreadable);
        assert_eq!(
            printed,
            "OFPT_BARRIER_REQUEST (xid=0x2):\n\
             byte 8: the header gives its length as 7; expected at least 8, the size of the header itself\n\
             byte 8: skipping 8 bytes; no message was found in them\n"
        );
    }

    #[test]
    fn an_incomplete_message_is_reported() {
        let (outcome, printed) = printed("011200100000000100");
        assert_eq!(outcome, Outcome::SomeUnreadable);
        assert_eq!(
            printed,
            "byte 0: the message ends after 9 bytes; expected 16, as its header says\n"
        );
    }

    #[test]
    fn other_text_is_refused_with_a_message() {
        assert_eq!(parse_hex(b"0"), Err(HexError::OddDigits));
        let error = parse_hex(b"01 x").expect_err("not hex").to_string();
        assert_eq!(
            error,
            "byte 3 of the input is 'x'; expected hex digits and blanks, or a capture"
        );
        let error = parse_hex(b"\0").expect_err("not hex").to_string();
        assert!(error.contains("is 0x00;"), "{error}");
    }
}
