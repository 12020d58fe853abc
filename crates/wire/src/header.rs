//! The eight-byte header of every message.

use crate::{DecodeError, Put, Reader, Structure, Version};

impl Version {
    /// Returns the version with this byte in the header.
    ///
    /// # Errors
    /// [`DecodeError::UnknownVersion`].
    #[inline]
    pub fn from_wire(version: u8) -> Result<Self, DecodeError> {
        match version {
            0x01 => Ok(Self::Of10),
            0x04 => Ok(Self::Of13),
            other => Err(DecodeError::UnknownVersion(other)),
        }
    }
}

/// `ofp_header` (1.3.5 section 7.1, 1.0 section 5.1). The version is a plain byte, since a hello may have any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The wire version.
    pub version: u8,
    /// The message type, whose meaning depends on the version.
    pub message_type: u8,
    /// The length of the whole message in bytes, including this header.
    pub length: u16,
    /// The transaction id.
    pub xid: u32,
}

impl Header {
    /// The size of a header in bytes.
    pub const SIZE: usize = 8;

    /// Returns the header at the start of `bytes`; `None` if fewer than eight have arrived.
    #[inline]
    pub fn peek(bytes: &[u8]) -> Option<Self> {
        Self::read(&mut Reader::new(bytes, Structure::Header)).ok()
    }

    /// Reads the header of a message.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if there are fewer than eight bytes.
    #[inline]
    pub(crate) fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        let &[version, message_type, l0, l1, x0, x1, x2, x3] = reader.array_ref()?;
        Ok(Self {
            version,
            message_type,
            length: u16::from_be_bytes([l0, l1]),
            xid: u32::from_be_bytes([x0, x1, x2, x3]),
        })
    }

    /// Appends the header to `out`.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        let [l0, l1] = self.length.to_be_bytes();
        let [x0, x1, x2, x3] = self.xid.to_be_bytes();
        out.put(&[self.version, self.message_type, l0, l1, x0, x1, x2, x3]);
    }
}

/// Splits `bytes` into the first whole message and the rest.
///
/// `Ok(None)` means that more bytes are needed.
///
/// # Errors
/// [`DecodeError::Length`] if the header's length is below eight, since the rest cannot be parsed then.
#[inline]
#[expect(
    clippy::type_complexity,
    reason = "the pair of split_at, of which there may be none yet"
)]
pub fn split_frame(bytes: &[u8]) -> Result<Option<(&[u8], &[u8])>, DecodeError> {
    let Some(header) = Header::peek(bytes) else {
        return Ok(None);
    };
    let length = usize::from(header.length);
    if length < Header::SIZE {
        return Err(DecodeError::Length {
            what: Structure::Header,
            length,
            expected: "at least 8, the size of the header itself",
        });
    }
    Ok(bytes.split_at_checked(length))
}
