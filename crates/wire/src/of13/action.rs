//! Actions (1.3.5 section 7.2.5). The length of every action is a multiple of eight bytes.

use super::{lacks, oxm, unsupported};
use crate::{Action, DecodeError, EncodeError, ErrorCode, Field, PortNo, Put, Reader, Structure};

const OFPAT_OUTPUT: u16 = 0;
const OFPAT_COPY_TTL_OUT: u16 = 11;
const OFPAT_COPY_TTL_IN: u16 = 12;
const OFPAT_SET_MPLS_TTL: u16 = 15;
const OFPAT_DEC_MPLS_TTL: u16 = 16;
const OFPAT_PUSH_VLAN: u16 = 17;
const OFPAT_POP_VLAN: u16 = 18;
const OFPAT_PUSH_MPLS: u16 = 19;
const OFPAT_POP_MPLS: u16 = 20;
const OFPAT_SET_QUEUE: u16 = 21;
const OFPAT_GROUP: u16 = 22;
const OFPAT_SET_NW_TTL: u16 = 23;
const OFPAT_DEC_NW_TTL: u16 = 24;
const OFPAT_SET_FIELD: u16 = 25;
const OFPAT_PUSH_PBB: u16 = 26;
const OFPAT_POP_PBB: u16 = 27;
/// An experimenter's action. In lists of supported actions, the experimenter's id follows.
pub(crate) const OFPAT_EXPERIMENTER: u16 = 0xffff;

/// The size of the smallest action.
const MIN_SIZE: usize = 8;

pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Result<Action<'a>, DecodeError> {
    let mut body = reader.sized_by_8(2, MIN_SIZE, Structure::Action)?;
    let action_type = body.u16()?;
    body.skip(2)?;
    let (action, padding) = match action_type {
        OFPAT_OUTPUT => (decode_output(&mut body)?, 6),
        OFPAT_COPY_TTL_OUT => (Action::CopyTtlOut, 4),
        OFPAT_COPY_TTL_IN => (Action::CopyTtlIn, 4),
        OFPAT_SET_MPLS_TTL => (Action::SetMplsTtl(body.u8()?), 3),
        OFPAT_DEC_MPLS_TTL => (Action::DecMplsTtl, 4),
        OFPAT_PUSH_VLAN => (Action::PushVlan(body.u16()?), 2),
        OFPAT_POP_VLAN => (Action::PopVlan, 4),
        OFPAT_PUSH_MPLS => (Action::PushMpls(body.u16()?), 2),
        OFPAT_POP_MPLS => (Action::PopMpls(body.u16()?), 2),
        OFPAT_SET_QUEUE => (Action::SetQueue(body.u32()?), 0),
        OFPAT_GROUP => (Action::Group(body.u32()?), 0),
        OFPAT_SET_NW_TTL => (Action::SetNwTtl(body.u8()?), 3),
        OFPAT_DEC_NW_TTL => (Action::DecNwTtl, 4),
        OFPAT_SET_FIELD => decode_set_field(&mut body)?,
        OFPAT_PUSH_PBB => (Action::PushPbb(body.u16()?), 2),
        OFPAT_POP_PBB => (Action::PopPbb, 4),
        OFPAT_EXPERIMENTER => (decode_experimenter(&mut body)?, 0),
        other => return Err(unknown_type(other)),
    };
    body.skip(padding)?;
    body.finish()?;
    Ok(action)
}

fn decode_output<'a>(body: &mut Reader<'a>) -> Result<Action<'a>, DecodeError> {
    Ok(Action::Output {
        port: PortNo(body.u32()?),
        max_len: body.u16()?,
    })
}

/// Reads the field to set, and the padding after it.
fn decode_set_field<'a>(body: &mut Reader<'a>) -> Result<(Action<'a>, usize), DecodeError> {
    if oxm::has_mask(body.peek()) {
        return Err(DecodeError::BadValue {
            what: "oxm_hasmask of the set_field action",
            value: 1,
            expected: "0, as a field is set whole",
            code: ErrorCode::BadActionBadSetArgument,
        });
    }
    let before = body.remaining();
    let field = oxm::decode(body).map_err(as_set_field_error)?;
    let length = 4 + before - body.remaining();
    Ok((Action::SetField(field), length.next_multiple_of(8) - length))
}

/// Converts an error of the TLV to one with the code for actions.
fn as_set_field_error(error: DecodeError) -> DecodeError {
    match error {
        DecodeError::Length {
            length, expected, ..
        } => DecodeError::Length {
            what: Structure::SetField,
            length,
            expected,
        },
        DecodeError::Truncated {
            needed, available, ..
        } => DecodeError::Truncated {
            what: Structure::SetField,
            needed,
            available,
        },
        DecodeError::BadValue {
            what,
            value,
            expected,
            ..
        } => DecodeError::BadValue {
            what,
            value,
            expected,
            code: ErrorCode::BadActionBadSetArgument,
        },
        other => other,
    }
}

fn decode_experimenter<'a>(body: &mut Reader<'a>) -> Result<Action<'a>, DecodeError> {
    Ok(Action::Experimenter {
        experimenter: body.u32()?,
        data: body.rest(),
    })
}

fn unknown_type(action_type: u16) -> DecodeError {
    DecodeError::BadValue {
        what: "action type",
        value: action_type.into(),
        expected: "one of OFPAT_*",
        code: ErrorCode::BadActionBadType,
    }
}

/// Encodes an action. An experimenter's data is padded with zeros to a multiple of eight bytes.
pub(crate) fn encode(action: &Action, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    out.put_u16(action_type(action)?);
    out.put_u16(0);
    match *action {
        Action::Output { port, max_len } => {
            out.put_u32(port.0);
            out.put_u16(max_len);
        }
        Action::SetMplsTtl(ttl) | Action::SetNwTtl(ttl) => out.put_u8(ttl),
        Action::PushVlan(eth_type)
        | Action::PushMpls(eth_type)
        | Action::PopMpls(eth_type)
        | Action::PushPbb(eth_type) => out.put_u16(eth_type),
        Action::SetQueue(id) | Action::Group(id) => out.put_u32(id),
        Action::SetField(field) => encode_set_field(&field, out)?,
        Action::Experimenter { experimenter, data } => {
            out.put_u32(experimenter);
            out.put(data);
        }
        // All others consist of a type and a length; `action_type` has refused actions of 1.0.
        _ => out.put_u32(0),
    }
    out.pad_to_8(start);
    out.set_length(start + 2, start, "action")
}

fn encode_set_field(field: &Field, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let has_mask = match field {
        Field::Basic { field, mask, .. } => *mask != field.full_mask(),
        Field::Raw(raw) => raw.has_mask,
    };
    lacks("a mask in OFPAT_SET_FIELD", has_mask, false)?;
    oxm::encode(field, out)
}

fn action_type(action: &Action) -> Result<u16, EncodeError> {
    Ok(match action {
        Action::Output { .. } => OFPAT_OUTPUT,
        Action::CopyTtlOut => OFPAT_COPY_TTL_OUT,
        Action::CopyTtlIn => OFPAT_COPY_TTL_IN,
        Action::SetMplsTtl(_) => OFPAT_SET_MPLS_TTL,
        Action::DecMplsTtl => OFPAT_DEC_MPLS_TTL,
        Action::PushVlan(_) => OFPAT_PUSH_VLAN,
        Action::PopVlan => OFPAT_POP_VLAN,
        Action::PushMpls(_) => OFPAT_PUSH_MPLS,
        Action::PopMpls(_) => OFPAT_POP_MPLS,
        Action::SetQueue(_) => OFPAT_SET_QUEUE,
        Action::Group(_) => OFPAT_GROUP,
        Action::SetNwTtl(_) => OFPAT_SET_NW_TTL,
        Action::DecNwTtl => OFPAT_DEC_NW_TTL,
        Action::SetField(_) => OFPAT_SET_FIELD,
        Action::PushPbb(_) => OFPAT_PUSH_PBB,
        Action::PopPbb => OFPAT_POP_PBB,
        Action::Experimenter { .. } => OFPAT_EXPERIMENTER,
        Action::SetVlanVid(_) => return Err(unsupported("OFPAT_SET_VLAN_VID")),
        Action::SetVlanPcp(_) => return Err(unsupported("OFPAT_SET_VLAN_PCP")),
        Action::SetTpSrc(_) => return Err(unsupported("OFPAT_SET_TP_SRC")),
        Action::SetTpDst(_) => return Err(unsupported("OFPAT_SET_TP_DST")),
        Action::Enqueue { .. } => return Err(unsupported("OFPAT_ENQUEUE")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of13::golden::{decode_element, element, hex, refused};
    use crate::{OxmField, RawField};

    #[track_caller]
    fn code(bytes: &str) -> ErrorCode {
        decode_element::<Action>(&hex(bytes)).unwrap_err().code()
    }

    #[test]
    fn every_action_both_ways() {
        let output = Action::Output {
            port: PortNo(0x0102),
            max_len: 128,
        };
        element(&hex("0000 0010 00000102 0080 000000000000"), output);
        element(
            &hex("0000 0010 fffffffd ffff 000000000000"),
            Action::controller(),
        );
        element(&hex("000b 0008 00000000"), Action::CopyTtlOut);
        element(&hex("000c 0008 00000000"), Action::CopyTtlIn);
        element(&hex("000f 0008 40 000000"), Action::SetMplsTtl(64));
        element(&hex("0010 0008 00000000"), Action::DecMplsTtl);
        element(&hex("0011 0008 8100 0000"), Action::PushVlan(0x8100));
        element(&hex("0012 0008 00000000"), Action::PopVlan);
        element(&hex("0013 0008 8847 0000"), Action::PushMpls(0x8847));
        element(&hex("0014 0008 0800 0000"), Action::PopMpls(0x0800));
        element(&hex("0015 0008 00000003"), Action::SetQueue(3));
        element(&hex("0016 0008 00000004"), Action::Group(4));
        element(&hex("0017 0008 3f 000000"), Action::SetNwTtl(63));
        element(&hex("0018 0008 00000000"), Action::DecNwTtl);
        element(&hex("001a 0008 88e7 0000"), Action::PushPbb(0x88e7));
        element(&hex("001b 0008 00000000"), Action::PopPbb);
        let experimenter = Action::Experimenter {
            experimenter: 0x2320,
            data: &[0, 1, 2, 3, 4, 5, 6, 7],
        };
        element(&hex("ffff 0010 00002320 0001020304050607"), experimenter);
    }

    #[test]
    fn set_field_is_padded() {
        element(
            &hex("0019 0010 80000606 0a0b0c0d0e0f 0000"),
            Action::SetField(Field::exact(OxmField::EthDst, 0x0a0b_0c0d_0e0f)),
        );
        element(
            &hex("0019 0010 80000c02 1064 000000000000"),
            Action::SetField(Field::exact(OxmField::VlanVid, 0x1064)),
        );
        let raw = RawField {
            class: 0xffff,
            field: 1,
            has_mask: false,
            body: &[0, 0, 0, 9],
        };
        element(
            &hex("0019 0010 ffff0204 00000009 00000000"),
            Action::SetField(Field::Raw(raw)),
        );
    }

    #[test]
    fn wrong_lengths_are_errors() {
        for length in ["0000", "0004", "0007", "000c", "0018"] {
            let bytes = format!("0000 {length} 00000001 0000 000000000000");
            assert_eq!(code(&bytes), ErrorCode::BadActionBadLen, "{length}");
        }
        assert_eq!(code("0000 0008 00000001"), ErrorCode::BadActionBadLen);
        assert_eq!(
            code("0012 0010 00000000 0000000000000000"),
            ErrorCode::BadActionBadLen
        );
        assert_eq!(code("00"), ErrorCode::BadActionBadLen);
    }

    #[test]
    fn bad_set_fields_are_errors() {
        assert_eq!(
            code("0019 0010 80000604 0a0b0c0d 00000000"),
            ErrorCode::BadActionBadSetLen
        );
        assert_eq!(code("0019 0008 80000606"), ErrorCode::BadActionBadSetLen);
        assert_eq!(
            code("0019 0010 80001708 0a000000 ffffffff"),
            ErrorCode::BadActionBadSetArgument
        );
        assert_eq!(
            code("0019 0010 80000c02 ffff 000000000000"),
            ErrorCode::BadActionBadSetArgument
        );
        assert_eq!(
            code("0019 0018 80000c02 1064 000000000000 0000000000000000"),
            ErrorCode::BadActionBadLen
        );
    }

    #[test]
    fn unknown_types_are_errors() {
        assert_eq!(code("0001 0008 00000000"), ErrorCode::BadActionBadType);
    }

    #[test]
    fn refuses_parts_of_1_0_only() {
        let enqueue = Action::Enqueue {
            port: PortNo(1),
            queue_id: 2,
        };
        for (action, name) in [
            (Action::SetVlanVid(1), "OFPAT_SET_VLAN_VID"),
            (Action::SetVlanPcp(1), "OFPAT_SET_VLAN_PCP"),
            (Action::SetTpSrc(1), "OFPAT_SET_TP_SRC"),
            (Action::SetTpDst(1), "OFPAT_SET_TP_DST"),
            (enqueue, "OFPAT_ENQUEUE"),
            (
                Action::SetField(Field::masked(OxmField::Ipv4Src, 0, 0xff)),
                "a mask in OFPAT_SET_FIELD",
            ),
        ] {
            assert_eq!(refused(action), unsupported(name));
        }
    }
}
