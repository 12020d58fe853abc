//! Decoding packet-ins, in either version.

use super::PacketIn;
use crate::{DecodeError, Reader, Structure, Version, of10, of13};

impl<'a> PacketIn<'a> {
    /// Decodes the body of a packet-in, after the message's header.
    ///
    /// # Errors
    /// [`DecodeError`] if it is truncated, or its match (1.3) is invalid.
    #[inline]
    pub fn decode(version: Version, body: &'a [u8]) -> Result<Self, DecodeError> {
        let reader = |version| Reader::new(body, Structure::packet_in(version));
        match version {
            Version::Of10 => of10::packet_in::decode(&mut reader(Version::Of10)),
            Version::Of13 => of13::packet_in::decode(&mut reader(Version::Of13)),
        }
    }
}
