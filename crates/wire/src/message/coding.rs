//! Decoding and encoding messages, in either version.

use super::Message;
use crate::flow_mod::straight;
use crate::message_type::{OFPT_FLOW_MOD, OFPT_HELLO, OFPT_PACKET_IN};
use crate::{
    DecodeError, EncodeError, Header, Hello, HelloElement, List, Put, Reader, Structure, Version,
    of10, of13,
};

impl<'a> Message<'a> {
    /// Decodes and checks one whole message, as returned by [`crate::split_frame`].
    ///
    /// A hello may have any version except 0, since peers start with the newest that they support. The version is in the header.
    ///
    /// # Errors
    /// [`DecodeError`] if the version or type in the header is unknown, if its length is not that of `frame`, or if the content
    /// violates the specification.
    #[inline]
    pub fn decode(frame: &'a [u8]) -> Result<(Header, Self), DecodeError> {
        let mut reader = Reader::new(frame, Structure::Message);
        let header = Header::read(&mut reader)?;
        if usize::from(header.length) != frame.len() {
            return Err(DecodeError::Length {
                what: Structure::Header,
                length: header.length.into(),
                expected: "the number of bytes that the message has",
            });
        }
        let version = match Version::from_wire(header.version) {
            Ok(version) => version,
            Err(_) if header.version != 0 && header.message_type == OFPT_HELLO => {
                let hello = Hello::decode_lenient(Version::Of13, &mut reader);
                return Ok((header, Message::Hello(hello)));
            }
            Err(error) => return Err(error),
        };
        let message = match (version, header.message_type) {
            // Most messages that a controller reads are packet-ins, so they have a branch instead of the table of types. Each
            // version constructs its own in place, since a common path would copy it (measured: 17 and 62 cycles).
            (Version::Of10, OFPT_PACKET_IN) => {
                let mut body = Reader::new(reader.rest(), Structure::packet_in(Version::Of10));
                return of10::packet_in::decode(&mut body)
                    .map(|packet_in| (header, Message::PacketIn(packet_in)));
            }
            (Version::Of13, OFPT_PACKET_IN) => {
                let mut body = Reader::new(reader.rest(), Structure::packet_in(Version::Of13));
                return of13::packet_in::decode(&mut body)
                    .map(|packet_in| (header, Message::PacketIn(packet_in)));
            }
            (version, OFPT_FLOW_MOD) => return Self::decode_flow_mod(version, header, &mut reader),
            (Version::Of10, message_type) => of10::message::decode(message_type, &mut reader),
            (Version::Of13, message_type) => of13::message::decode(message_type, &mut reader),
        }?;
        Ok((header, message))
    }

    /// Decodes a flow mod, the message that a switch reads most often. This is separate from others, so that it is moved once.
    #[inline(never)]
    fn decode_flow_mod(
        version: Version,
        header: Header,
        reader: &mut Reader<'a>,
    ) -> Result<(Header, Self), DecodeError> {
        let structure = Structure::Body {
            version,
            message_type: OFPT_FLOW_MOD,
        };
        let mut body = Reader::new(reader.rest(), structure);
        let flow_mod = match version {
            Version::Of10 => of10::flow_mod::decode(&mut body)?,
            Version::Of13 => of13::flow_mod::decode(&mut body)?,
        };
        body.finish()?;
        Ok((header, Self::FlowMod(flow_mod)))
    }

    /// Appends the message, with its header, to `out`.
    ///
    /// # Errors
    /// [`EncodeError`] if `version` cannot express it or it is too long; then `out` is unchanged.
    pub fn encode(&self, version: Version, xid: u32, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            Self::FlowMod(flow_mod) if straight::write(flow_mod, version, xid, out) => Ok(()),
            _ => self.encode_general(version, xid, out),
        }
    }

    /// Appends a message other than a flow mod of the frequent form.
    #[inline(never)]
    pub(crate) fn encode_general(
        &self,
        version: Version,
        xid: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let start = out.len();
        let result = self.encode_from(start, version, xid, out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    fn encode_from(
        &self,
        start: usize,
        version: Version,
        xid: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let message_type = self.message_type(version)?;
        let header = Header {
            version: version.to_wire(),
            message_type,
            length: 0,
            xid,
        };
        header.write(out);
        match version {
            Version::Of10 => of10::message::encode(self, out)?,
            Version::Of13 => of13::message::encode(self, out)?,
        }
        out.set_length(start + 2, start, "message")
    }

    /// Returns the message's type on the wire (`OFPT_*`).
    ///
    /// # Errors
    /// [`EncodeError::Unsupported`] if `version` has no such message.
    pub fn message_type(&self, version: Version) -> Result<u8, EncodeError> {
        match version {
            Version::Of10 => of10::message::message_type(self),
            Version::Of13 => of13::message::message_type(self),
        }
    }
}

impl Hello<'_> {
    /// Appends a hello that offers these versions, in the header of the highest.
    ///
    /// For 1.0 it has no bitmap, which peers with that version need not understand, since the version is in the header.
    ///
    /// # Panics
    /// If no version is offered.
    pub fn write(versions: &[Version], xid: u32, out: &mut Vec<u8>) {
        let highest = *versions.iter().max().expect("at least one version");
        let bits = versions
            .iter()
            .fold(0_u32, |bits, version| bits | 1 << version.to_wire());
        let bitmap = bits.to_be_bytes();
        let elements = [HelloElement::VersionBitmap(&bitmap)];
        let elements = match highest {
            Version::Of10 => List::default(),
            Version::Of13 => List::from(&elements),
        };
        let written = Message::Hello(Hello { elements }).encode(highest, xid, out);
        written.expect("both versions have hellos, and this one is short");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HelloElement, List};

    fn hello(version: u8, body: &[u8]) -> Vec<u8> {
        let length = (Header::SIZE + body.len()) as u8;
        [&[version, OFPT_HELLO, 0, length, 0, 0, 0, 1], body].concat()
    }

    #[test]
    fn reads_hellos_of_every_version_except_0() {
        const BITMAP: [u8; 8] = [0, 1, 0, 8, 0, 0, 0, 0x52];
        for version in 1..=u8::MAX {
            let bytes = hello(version, &BITMAP);
            let (header, message) = Message::decode(&bytes).expect("a hello");
            assert_eq!(header.version, version);
            let elements = [HelloElement::VersionBitmap(&BITMAP[4..])];
            let expected = Hello {
                elements: List::from(&elements),
            };
            assert_eq!(message, Message::Hello(expected), "version {version}");
        }
        let error = Message::decode(&hello(0, &BITMAP)).expect_err("version 0 does not exist");
        assert_eq!(error, DecodeError::UnknownVersion(0));
    }

    #[test]
    fn hellos_of_foreign_versions_may_hold_anything() {
        let bytes = hello(2, b"anything");
        let (_, message) = Message::decode(&bytes).expect("a hello");
        assert_eq!(message, Message::Hello(Hello::default()));
    }

    #[test]
    fn other_messages_of_foreign_versions_are_refused() {
        let mut bytes = hello(6, &[]);
        bytes[1] = 2;
        let error = Message::decode(&bytes).expect_err("an echo request of OpenFlow 1.5");
        assert_eq!(error, DecodeError::UnknownVersion(6));
    }
}
