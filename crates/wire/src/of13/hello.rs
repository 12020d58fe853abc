//! Symmetric messages with a body: hello (1.3.5 section 7.5.1), error (7.4.4), experimenter (7.5.4).

use super::unsupported;
use crate::{
    DecodeError, EncodeError, ErrorCode, ErrorMessage, Experimenter, Hello, HelloElement, List,
    Put, Reader, Structure, Version,
};

/// OFPHET_VERSIONBITMAP.
const OFPHET_VERSIONBITMAP: u16 = 1;
/// The size of type and length.
const ELEMENT_HEADER_SIZE: usize = 4;

pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Result<Hello<'a>, DecodeError> {
    Ok(Hello {
        elements: List::decode(Version::Of13, reader)?,
    })
}

/// Decodes an element. The padding after the last element is optional, since some peers omit it.
pub(crate) fn decode_element<'a>(reader: &mut Reader<'a>) -> Result<HelloElement<'a>, DecodeError> {
    let mut body = reader.sized(2, ELEMENT_HEADER_SIZE, Structure::HelloElement)?;
    let padding = body.remaining().next_multiple_of(8) - body.remaining();
    reader.skip(padding.min(reader.remaining()))?;
    let element_type = body.u16()?;
    body.skip(2)?;
    let data = body.rest();
    match element_type {
        OFPHET_VERSIONBITMAP if data.len() % 4 == 0 => Ok(HelloElement::VersionBitmap(data)),
        OFPHET_VERSIONBITMAP => Err(DecodeError::Length {
            what: Structure::VersionBitmap,
            length: data.len(),
            expected: "a multiple of 4",
        }),
        element_type => Ok(HelloElement::Other { element_type, data }),
    }
}

pub(crate) fn decode_error<'a>(reader: &mut Reader<'a>) -> Result<ErrorMessage<'a>, DecodeError> {
    let error_type = reader.u16()?;
    let code = reader.u16()?;
    Ok(ErrorMessage {
        code: ErrorCode::from_wire(Version::Of13, error_type, code),
        data: reader.rest(),
    })
}

pub(crate) fn decode_experimenter<'a>(
    reader: &mut Reader<'a>,
) -> Result<Experimenter<'a>, DecodeError> {
    Ok(Experimenter {
        experimenter: reader.u32()?,
        data: reader.rest(),
    })
}

pub(crate) fn encode(hello: &Hello, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    hello.elements.encode(Version::Of13, out)
}

pub(crate) fn encode_element(element: &HelloElement, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let (element_type, data) = match *element {
        HelloElement::VersionBitmap(bitmap) => (OFPHET_VERSIONBITMAP, bitmap),
        HelloElement::Other { element_type, data } => (element_type, data),
    };
    let start = out.len();
    out.put_u16(element_type);
    out.put_u16(0);
    out.put(data);
    out.set_length(start + 2, start, "hello element")?;
    out.pad_to_8(start);
    Ok(())
}

pub(crate) fn encode_error(error: &ErrorMessage, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let numbers = error.code.to_wire(Version::Of13);
    let (error_type, code) = numbers.ok_or_else(|| unsupported(error.code.name()))?;
    out.put_u16(error_type);
    out.put_u16(code);
    out.put(error.data);
    Ok(())
}

pub(crate) fn encode_experimenter(experimenter: &Experimenter, out: &mut Vec<u8>) {
    out.put_u32(experimenter.experimenter);
    out.put(experimenter.data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;
    use crate::of13::golden::{self, frame, message, refused_message};

    #[test]
    fn hellos_both_ways() {
        message(&frame(0, ""), &Message::Hello(Hello::default()));
        let hello = Hello {
            elements: vec![
                HelloElement::VersionBitmap(&[0, 0, 0, 0x12]),
                HelloElement::Other {
                    element_type: 9,
                    data: &[1, 2, 3, 4, 5],
                },
            ]
            .into(),
        };
        let bytes = frame(0, "0001 0008 00000012 0009 0009 0102030405 00000000000000");
        message(&bytes, &Message::Hello(hello));
    }

    #[test]
    fn the_last_padding_may_be_missing() {
        let bytes = frame(0, "0001 000c 00000012 00000000");
        let (_, decoded) = Message::decode(&bytes).unwrap();
        let Message::Hello(hello) = decoded else {
            panic!("{decoded:?}");
        };
        assert!(hello.elements.iter().all(|element| element.includes(4)));
        assert_eq!(hello.elements.len(), 1);
    }

    #[test]
    fn bad_hellos_are_errors() {
        for body in [
            "0001 0000 00000012",
            "0001 0006 0000 0000",
            "0001 0010 00000012",
        ] {
            let error = golden::decode_error(&frame(0, body));
            assert!(matches!(error, DecodeError::Length { .. }), "{body}");
        }
    }

    #[test]
    fn errors_both_ways() {
        let error = ErrorMessage {
            code: ErrorCode::BadMatchBadPrereq,
            data: &[4, 14],
        };
        message(&frame(1, "0004 0009 040e"), &Message::Error(error));
        let experimenter = ErrorMessage {
            code: ErrorCode::Other {
                error_type: 0xffff,
                code: 1,
            },
            data: &[0, 0, 0x23, 0x20],
        };
        message(
            &frame(1, "ffff 0001 00002320"),
            &Message::Error(experimenter),
        );
        let only_1_0 = ErrorMessage {
            code: ErrorCode::FlowModFailedUnsupported,
            data: &[],
        };
        assert_eq!(
            refused_message(&Message::Error(only_1_0)),
            unsupported("OFPFMFC_UNSUPPORTED")
        );
    }

    #[test]
    fn experimenters_both_ways() {
        let experimenter = Experimenter {
            experimenter: 0x2320,
            data: &[0, 0, 0, 1, 0xaa],
        };
        message(
            &frame(4, "00002320 00000001 aa"),
            &Message::Experimenter(experimenter),
        );
    }
}
