//! `ofp_match` (1.3.5 section 7.2.3.1): a list of OXM TLVs, padded to a multiple of eight bytes. Its length does not include
//! the padding.

use super::oxm;
use crate::matching::Repr;
use crate::{
    DecodeError, EncodeError, ErrorCode, Field, List, Match, Put, Reader, Structure, Version,
};

/// OFPMT_OXM, the only type that is not deprecated.
const OFPMT_OXM: u16 = 1;
/// The size of type and length.
const HEADER_SIZE: usize = 4;

pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Result<Match<'a>, DecodeError> {
    let fields = decode_fields(reader)?;
    Ok(Match::oxm(List::checked(Version::Of13, fields)))
}

/// Reads a match, and returns the checked bytes of its fields.
pub(crate) fn decode_fields<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let mut body = reader.sized_and_padded(2, HEADER_SIZE, Structure::Match)?;
    let match_type = body.u16()?;
    if match_type != OFPMT_OXM {
        return Err(DecodeError::BadValue {
            what: "type of the match",
            value: match_type.into(),
            expected: "1 (OFPMT_OXM)",
            code: ErrorCode::BadMatchBadType,
        });
    }
    body.skip(2)?;
    let fields = body.peek();
    List::<Field>::decode(Version::Of13, &mut body)?;
    Ok(fields)
}

pub(crate) fn encode(match_: &Match, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    encode_with(out, |out| encode_fields(match_, out))
}

/// Encodes a match whose fields `encode_fields` appends.
pub(crate) fn encode_with(
    out: &mut Vec<u8>,
    encode_fields: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = out.len();
    out.put_u16(OFPMT_OXM);
    out.put_u16(0);
    encode_fields(out)?;
    out.set_length(start + 2, start, "match")?;
    out.pad_to_8(start);
    Ok(())
}

pub(crate) fn encode_fields(match_: &Match, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match &match_.0 {
        Repr::Inline(fields) => out.put(fields.as_bytes()),
        Repr::Fields(fields) => fields.encode(Version::Of13, out)?,
        _ => {
            for field in match_.fields() {
                oxm::encode(&field, out)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of13::golden::hex;
    use crate::{OxmField, PortNo};

    fn check(bytes: &str, match_: Match) {
        let bytes = hex(bytes);
        let mut reader = Reader::new(&bytes, Structure::Message);
        assert_eq!(decode(&mut reader).as_ref(), Ok(&match_));
        assert!(reader.is_empty());
        let mut out = Vec::new();
        encode(&match_, &mut out).unwrap();
        assert_eq!(out, bytes);
    }

    fn code(bytes: &str) -> ErrorCode {
        let bytes = hex(bytes);
        decode(&mut Reader::new(&bytes, Structure::Message))
            .unwrap_err()
            .code()
    }

    #[test]
    fn padding_is_beyond_the_length() {
        check("0001 0004 00000000", Match::any());
        check(
            "0001 000c 80000004 00000001 00000000",
            Match::any().in_port(PortNo(1)),
        );
        check(
            "0001 0017 80000004 00000001 80000a02 0800 80001401 06 00",
            Match::any().in_port(PortNo(1)).eth_type(0x0800).ip_proto(6),
        );
    }

    #[test]
    fn fields_keep_their_order() {
        let bytes = hex("0001 000f 80001401 06 80000a02 0800 00");
        let match_ = decode(&mut Reader::new(&bytes, Structure::Message)).unwrap();
        let fields: Vec<_> = match_
            .fields()
            .filter_map(|field| field.oxm_field())
            .collect();
        assert_eq!(fields, [OxmField::IpProto, OxmField::EthType]);
    }

    #[test]
    fn bad_matches_are_errors() {
        assert_eq!(code("0000 0004 00000000"), ErrorCode::BadMatchBadType);
        assert_eq!(code("0001 0000 00000000"), ErrorCode::BadMatchBadLen);
        assert_eq!(code("0001 0003 00000000"), ErrorCode::BadMatchBadLen);
        assert_eq!(code("0001 0020 00000000"), ErrorCode::BadMatchBadLen);
        assert_eq!(code("0001 0006 80000000"), ErrorCode::BadMatchBadLen);
        assert_eq!(
            code("0001 000c 80000005 00000001 00000000"),
            ErrorCode::BadMatchBadLen
        );
    }
}
