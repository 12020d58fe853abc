//! Symmetric messages with a body: hello, error, experimenter.

use crate::{Element, ErrorCode, Header, List, Reader, Structure, Version};

/// A hello (1.3.5 section 7.5.1). Elements were introduced in 1.3.1; they are also read in hellos of 1.0 and of unsupported
/// versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello<'a> {
    /// The elements; only the version bitmap is defined.
    pub elements: List<'a, HelloElement<'a>>,
}

impl<'a> Hello<'a> {
    /// Reads the elements up to the first invalid bytes, and ignores the rest: "Implementations must be prepared to receive a
    /// hello message that includes a body, ignoring its contents" (1.0 section 5.5.1).
    pub(crate) fn decode_lenient(version: Version, body: &mut Reader<'a>) -> Self {
        let (bytes, what) = (body.rest(), body.what());
        let mut reader = Reader::new(bytes, what);
        let mut whole = 0;
        while reader.remaining() > 0 && HelloElement::decode(version, &mut reader).is_ok() {
            whole = bytes.len() - reader.remaining();
        }
        let elements = List::decode(version, &mut Reader::new(&bytes[..whole], what));
        Self {
            elements: elements.unwrap_or_default(),
        }
    }
}

impl Hello<'_> {
    /// Returns the highest version that `ours` have in common with the sender of the hello in `frame` (1.3.5 section 6.3.1):
    /// by its bitmap if it has one, otherwise the lower of both sides' highest versions.
    pub fn negotiate(frame: &[u8], ours: &[Version]) -> Option<Version> {
        let theirs = Header::peek(frame)?.version;
        let body = frame.get(Header::SIZE..).unwrap_or_default();
        let hello =
            Hello::decode_lenient(Version::Of13, &mut Reader::new(body, Structure::Message));
        let mut elements = hello.elements.iter();
        let bitmap = elements.find(|element| matches!(element, HelloElement::VersionBitmap(_)));
        let highest = ours.iter().max()?.to_wire();
        let common = |version: &Version| match &bitmap {
            Some(bitmap) => bitmap.includes(version.to_wire()),
            None => version.to_wire() == theirs.min(highest),
        };
        ours.iter().copied().filter(common).max()
    }
}

/// An element of a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelloElement<'a> {
    /// The versions that the peer supports: 32-bit words, bit n of word 0 for wire version n (OFPHET_VERSIONBITMAP).
    VersionBitmap(&'a [u8]),
    /// An unknown element.
    Other {
        /// Its type.
        element_type: u16,
        /// The bytes after type and length.
        data: &'a [u8],
    },
}

impl HelloElement<'_> {
    /// Returns `true` if this is a bitmap that includes `version`.
    pub fn includes(&self, version: u8) -> bool {
        let Self::VersionBitmap(bitmap) = self else {
            return false;
        };
        let word = bitmap.chunks_exact(4).nth(usize::from(version) / 32);
        word.is_some_and(|word| {
            u32::from_be_bytes([word[0], word[1], word[2], word[3]]) & (1 << (version % 32)) != 0
        })
    }
}

/// An error message (1.3.5 section 7.4.4, 1.0 section 5.4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorMessage<'a> {
    /// The error.
    pub code: ErrorCode,
    /// At least 64 bytes of the message that caused it, or all of it; for a failed hello, a text; for an experimenter's error,
    /// the id and data.
    pub data: &'a [u8],
}

impl ErrorMessage<'_> {
    /// Returns the code in `frame`, an OFPT_ERROR instead of a hello. The code has the same offset in all versions, and errors
    /// about hellos have the same numbers, so this also works for unsupported versions. A message that is too short for a code
    /// is OFPHFC_INCOMPATIBLE.
    pub fn hello_error_code(frame: &[u8]) -> ErrorCode {
        let body = frame.get(Header::SIZE..).unwrap_or_default();
        let mut reader = Reader::new(body, Structure::Message);
        match (reader.u16(), reader.u16()) {
            (Ok(error_type), Ok(code)) => ErrorCode::from_wire(Version::Of13, error_type, code),
            _ => ErrorCode::HelloFailedIncompatible,
        }
    }
}

/// An experimenter message (1.3.5 section 7.5.4; 1.0 section 5.5.4 calls it vendor).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experimenter<'a> {
    /// The experimenter's id.
    pub experimenter: u32,
    /// The bytes after the experimenter id. In 1.3, the first four are the type that the experimenter assigns.
    pub data: &'a [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of 1.0, an unknown element, a bitmap with 1.3 only, and trailing bytes.
    #[test]
    fn bytes_that_are_no_element_do_not_hide_the_bitmap() {
        let hello = [
            1, 0, 0, 24, 0, 0, 0, 0, 0xff, 0xff, 0, 6, 1, 2, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0x10,
        ];
        for stray in ["", "a", "abc", "\0\0\0\0", "\0\u{1}\0\u{40}", "abcdefgh"] {
            let frame = [&hello, stray.as_bytes()].concat();
            let version = Hello::negotiate(&frame, &Version::ALL);
            assert_eq!(version, Some(Version::Of13), "{stray:?}");
        }
        let bytes = Reader::new(b"abc", Structure::Message).rest();
        let none =
            Hello::decode_lenient(Version::Of10, &mut Reader::new(bytes, Structure::Message));
        assert_eq!(none, Hello::default());
    }

    #[test]
    fn the_code_of_a_refused_hello_is_found_in_any_version() {
        // OpenFlow 1.5, OFPT_ERROR, OFPET_HELLO_FAILED, OFPHFC_EPERM.
        let frame = [0x06, 1, 0, 12, 0, 0, 0, 1, 0, 0, 0, 1];
        let code = ErrorMessage::hello_error_code(&frame);
        assert_eq!(code, ErrorCode::HelloFailedEperm);
        for short in 0..frame.len() {
            let code = ErrorMessage::hello_error_code(&frame[..short]);
            assert_eq!(code, ErrorCode::HelloFailedIncompatible, "{short}");
        }
    }
}
