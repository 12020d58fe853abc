//! A field of a match, as a TLV (1.3.5 sections 7.2.3.2 to 7.2.3.8).
//!
//! Implementations differ; a TLV is decoded as follows:
//! - A mask of all ones means no mask, and is decoded and written as such.
//! - A field of class OFPXMC_OPENFLOW_BASIC with an unknown number is kept raw, as are all other classes. The switch decides
//!   whether to accept it (OFPBMC_BAD_FIELD), and also handles duplicates and missing prerequisites.

use super::unsupported;
use crate::{
    DecodeError, EncodeError, ErrorCode, Field, OxmField, Put, RawField, Reader, Structure, Version,
};

/// OFPXMC_OPENFLOW_BASIC.
pub(crate) const OFPXMC_OPENFLOW_BASIC: u16 = 0x8000;
/// OFPXMC_EXPERIMENTER: an experimenter id precedes value and mask.
pub(crate) const OFPXMC_EXPERIMENTER: u16 = 0xffff;

/// `oxm_hasmask`, in the byte that `oxm_field` shares with it.
const HAS_MASK: u8 = 1;

/// Returns `true` if the TLV at the front of `bytes` has a mask.
pub(crate) fn has_mask(bytes: &[u8]) -> bool {
    bytes.get(2).is_some_and(|byte| byte & HAS_MASK != 0)
}

pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Result<Field<'a>, DecodeError> {
    let mut header = reader.nested(4, Structure::MatchField)?;
    let class = header.u16()?;
    let field_and_mask = header.u8()?;
    let length = usize::from(header.u8()?);
    let body = reader.nested(length, Structure::MatchField)?;
    let raw = RawField {
        class,
        field: field_and_mask >> 1,
        has_mask: field_and_mask & HAS_MASK != 0,
        body: body.peek(),
    };
    match class {
        OFPXMC_OPENFLOW_BASIC => match OxmField::from_wire(raw.field) {
            Some(field) => decode_basic(field, raw.has_mask, body),
            None => Ok(Field::Raw(raw)),
        },
        OFPXMC_EXPERIMENTER if length < 4 => Err(wrong_length(length)),
        _ => Ok(Field::Raw(raw)),
    }
}

fn decode_basic<'a>(
    field: OxmField,
    has_mask: bool,
    mut body: Reader<'a>,
) -> Result<Field<'a>, DecodeError> {
    let width = field.bytes();
    let expected = if has_mask { 2 * width } else { width };
    if body.remaining() != expected {
        return Err(wrong_length(body.remaining()));
    }
    let value = big_endian(body.take(width)?);
    let mask = match has_mask {
        true => big_endian(body.take(width)?),
        false => field.full_mask(),
    };
    check(field, value, mask)?;
    Ok(Field::Basic { field, value, mask })
}

/// Checks the three rules of section 7.2.3.5, and the field's width.
fn check(field: OxmField, value: u128, mask: u128) -> Result<(), DecodeError> {
    let full = field.full_mask();
    let bad = |value: u128, expected, code| {
        Err(DecodeError::BadValue {
            what: field.name(),
            value: value as u64,
            expected,
            code,
        })
    };
    if mask & !full != 0 {
        return bad(
            mask,
            "a mask of the field's width",
            ErrorCode::BadMatchBadMask,
        );
    }
    if mask != full && !field.maskable() {
        return bad(
            mask,
            "no mask, or one of all ones",
            ErrorCode::BadMatchBadMask,
        );
    }
    if value & !full != 0 {
        return bad(
            value,
            "a value of the field's width",
            ErrorCode::BadMatchBadValue,
        );
    }
    if value & !mask != 0 {
        let expected = "a value without bits outside of its mask";
        return bad(value, expected, ErrorCode::BadMatchBadWildcards);
    }
    Ok(())
}

fn wrong_length(length: usize) -> DecodeError {
    DecodeError::Length {
        what: Structure::MatchField,
        length,
        expected: "the size of the field's value, and of its mask where it has one",
    }
}

fn big_endian(bytes: &[u8]) -> u128 {
    bytes
        .iter()
        .fold(0, |value, &byte| value << 8 | u128::from(byte))
}

pub(crate) fn encode(field: &Field, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match *field {
        Field::Basic { field, value, mask } => encode_basic(field, value, mask, out),
        Field::Raw(raw) => encode_raw(&raw, out),
    }
}

fn encode_basic(
    field: OxmField,
    value: u128,
    mask: u128,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let exact = mask == field.full_mask();
    if !exact && !field.maskable() {
        return Err(unsupported(field.phrases().mask));
    }
    let width = field.bytes();
    let length = if exact { width } else { 2 * width };
    put_header(
        OFPXMC_OPENFLOW_BASIC,
        field as u8,
        !exact,
        length as u8,
        out,
    );
    out.put(&(value & mask).to_be_bytes()[16 - width..]);
    if !exact {
        out.put(&mask.to_be_bytes()[16 - width..]);
    }
    Ok(())
}

fn encode_raw(raw: &RawField, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let length = u8::try_from(raw.body.len()).map_err(|_| EncodeError::OutOfRange {
        version: Version::Of13,
        what: "oxm_length",
        value: raw.body.len() as u64,
        bits: 8,
    })?;
    put_header(raw.class, raw.field, raw.has_mask, length, out);
    out.put(raw.body);
    Ok(())
}

fn put_header(class: u16, field: u8, has_mask: bool, length: u8, out: &mut Vec<u8>) {
    out.put_u16(class);
    out.put(&[field << 1 | u8::from(has_mask), length]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of13::golden::{decode_element, element, hex, refused};

    #[track_caller]
    fn code(bytes: &str) -> ErrorCode {
        decode_element::<Field>(&hex(bytes)).unwrap_err().code()
    }

    #[test]
    fn exact_fields_both_ways() {
        element(
            &hex("8000 00 04 00000001"),
            Field::exact(OxmField::InPort, 1),
        );
        element(
            &hex("8000 06 06 0a0b0c0d0e0f"),
            Field::exact(OxmField::EthDst, 0x0a0b_0c0d_0e0f),
        );
        element(
            &hex("8000 38 04 000fffff"),
            Field::exact(OxmField::Ipv6Flabel, 0xfffff),
        );
        element(
            &hex("8000 4a 03 123456"),
            Field::exact(OxmField::PbbIsid, 0x12_3456),
        );
        element(
            &hex("8000 0c 02 1064"),
            Field::exact(OxmField::VlanVid, 0x1064),
        );
        element(
            &hex("8000 34 10 20010db8000000000000000000000001"),
            Field::exact(OxmField::Ipv6Src, 0x2001_0db8_0000_0000_0000_0000_0000_0001),
        );
    }

    #[test]
    fn masked_fields_both_ways() {
        element(
            &hex("8000 17 08 0a000000 ff000000"),
            Field::masked(OxmField::Ipv4Src, 0x0a00_0000, 0xff00_0000),
        );
        element(
            &hex("8000 0d 04 1000 1000"),
            Field::masked(OxmField::VlanVid, 0x1000, 0x1000),
        );
    }

    #[test]
    fn every_field_both_ways() {
        for &field in OxmField::ALL {
            let value = Field::exact(field, u128::MAX);
            let mut out = Vec::new();
            encode(&value, &mut out).unwrap();
            assert_eq!(out.len(), 4 + field.bytes());
            assert_eq!(decode_element(&out), Ok(value));
        }
    }

    #[test]
    fn raw_fields_both_ways() {
        let packet_type = RawField {
            class: OFPXMC_OPENFLOW_BASIC,
            field: 44,
            has_mask: false,
            body: &[0, 1, 8, 0],
        };
        element(&hex("8000 58 04 00010800"), Field::Raw(packet_type));
        let experimenter = RawField {
            class: OFPXMC_EXPERIMENTER,
            field: 42,
            has_mask: true,
            body: &[0x4f, 0x4e, 0x46, 0, 1, 3],
        };
        element(&hex("ffff 55 06 4f4e4600 01 03"), Field::Raw(experimenter));
    }

    #[test]
    fn a_mask_of_all_ones_is_no_mask() {
        let bytes = hex("8000 17 08 0a000001 ffffffff");
        assert_eq!(
            decode_element(&bytes),
            Ok(Field::exact(OxmField::Ipv4Src, 0x0a00_0001))
        );
        let unmaskable = hex("8000 0b 04 0800 ffff");
        assert_eq!(
            decode_element(&unmaskable),
            Ok(Field::exact(OxmField::EthType, 0x0800))
        );
    }

    /// Fields that Open vSwitch allows to be masked, but not the specification.
    #[test]
    fn masked_ports_and_targets_both_ways() {
        let ports = Field::masked(OxmField::TcpDst, 0x1000, 0xf000);
        element(&hex("8000 1d 04 1000 f000"), ports);
        let target = Field::masked(OxmField::Ipv6NdTarget, 0xfe80 << 112, 0xffc0 << 112);
        let bytes = "8000 3f 20 fe800000000000000000000000000000 ffc00000000000000000000000000000";
        element(&hex(bytes), target);
    }

    #[test]
    fn bad_fields_are_errors() {
        assert_eq!(code("8000 00 03 000001"), ErrorCode::BadMatchBadLen);
        assert_eq!(code("8000 00 04 0000"), ErrorCode::BadMatchBadLen);
        assert_eq!(code("8000 17 04 0a000000"), ErrorCode::BadMatchBadLen);
        assert_eq!(code("ffff 00 03 000000"), ErrorCode::BadMatchBadLen);
        assert_eq!(code("8000 15 02 06 fe"), ErrorCode::BadMatchBadMask);
        assert_eq!(code("8000 0d 04 1000 f000"), ErrorCode::BadMatchBadMask);
        assert_eq!(code("8000 0c 02 ffff"), ErrorCode::BadMatchBadValue);
        assert_eq!(
            code("8000 17 08 0a000001 ff000000"),
            ErrorCode::BadMatchBadWildcards
        );
    }

    #[test]
    fn refuses_fields_without_a_tlv() {
        let masked = Field::masked(OxmField::IpProto, 6, 0xf);
        assert_eq!(
            refused(masked).to_string(),
            "OpenFlow 1.3 cannot express this mask on the match field ip_proto"
        );
        let long = RawField {
            class: 1,
            field: 0,
            has_mask: false,
            body: &[0; 256],
        };
        assert!(matches!(
            refused(Field::Raw(long)),
            EncodeError::OutOfRange { bits: 8, .. }
        ));
    }
}
