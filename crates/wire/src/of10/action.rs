//! Actions (section 5.2.4), and action lists as the equivalent instructions.
//!
//! 1.0's actions on header fields are [`Action::SetField`]: `set_dl_src` and `set_dl_dst` set `eth_src` and `eth_dst`;
//! `set_nw_src` and `set_nw_dst` set `ipv4_src` and `ipv4_dst`; `set_nw_tos` sets `ip_dscp`. Three kinds of `SetField` are
//! written as the equivalent 1.0 action, for packets for which 1.3 allows them, and read back as that action: `tcp_src` and
//! `udp_src` as [`Action::SetTpSrc`], `tcp_dst` and `udp_dst` as [`Action::SetTpDst`], and `vlan_vid` and `vlan_pcp` as
//! [`Action::SetVlanVid`] and [`Action::SetVlanPcp`].

use super::{fits, lacks, port, unsupported};
use crate::{
    Action, DecodeError, EncodeError, ErrorCode, Field, Instruction, List, OxmField, Put, Reader,
    Structure, VLAN_PRESENT, Version,
};

/// Action types (`ofp_action_type`).
const OFPAT_OUTPUT: u16 = 0;
const OFPAT_SET_VLAN_VID: u16 = 1;
const OFPAT_SET_VLAN_PCP: u16 = 2;
const OFPAT_STRIP_VLAN: u16 = 3;
const OFPAT_SET_DL_SRC: u16 = 4;
const OFPAT_SET_DL_DST: u16 = 5;
const OFPAT_SET_NW_SRC: u16 = 6;
const OFPAT_SET_NW_DST: u16 = 7;
const OFPAT_SET_NW_TOS: u16 = 8;
const OFPAT_SET_TP_SRC: u16 = 9;
const OFPAT_SET_TP_DST: u16 = 10;
const OFPAT_ENQUEUE: u16 = 11;
const OFPAT_VENDOR: u16 = 0xffff;

/// The size of the smallest action.
const MIN_SIZE: usize = 8;

const VLAN_VID_BITS: u32 = 12;
const VLAN_PCP_BITS: u32 = 3;

pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Result<Action<'a>, DecodeError> {
    let mut body = reader.sized_by_8(2, MIN_SIZE, Structure::Action)?;
    let action_type = body.u16()?;
    body.skip(2)?;
    let action = decode_body(action_type, &mut body)?;
    body.finish()?;
    Ok(action)
}

fn decode_body<'a>(action_type: u16, body: &mut Reader<'a>) -> Result<Action<'a>, DecodeError> {
    let action = match action_type {
        OFPAT_OUTPUT => Action::Output {
            port: port::decode_number(body.u16()?),
            max_len: body.u16()?,
        },
        OFPAT_SET_VLAN_VID => Action::SetVlanVid(checked(body.u16()?, VLAN_VID_BITS)?),
        OFPAT_SET_VLAN_PCP => Action::SetVlanPcp(checked(body.u8()?.into(), VLAN_PCP_BITS)? as u8),
        OFPAT_STRIP_VLAN => Action::PopVlan,
        OFPAT_SET_DL_SRC => set_field(OxmField::EthSrc, mac(body)?),
        OFPAT_SET_DL_DST => set_field(OxmField::EthDst, mac(body)?),
        OFPAT_SET_NW_SRC => set_field(OxmField::Ipv4Src, body.u32()?),
        OFPAT_SET_NW_DST => set_field(OxmField::Ipv4Dst, body.u32()?),
        OFPAT_SET_NW_TOS => set_field(OxmField::IpDscp, body.u8()? >> 2),
        OFPAT_SET_TP_SRC => Action::SetTpSrc(body.u16()?),
        OFPAT_SET_TP_DST => Action::SetTpDst(body.u16()?),
        OFPAT_ENQUEUE => decode_enqueue(body)?,
        OFPAT_VENDOR => Action::Experimenter {
            experimenter: body.u32()?,
            data: body.rest(),
        },
        unknown => return Err(unknown_type(unknown)),
    };
    body.skip(padding(action_type))?;
    Ok(action)
}

/// Returns the number of bytes after the last field of an action of this type.
fn padding(action_type: u16) -> usize {
    match action_type {
        OFPAT_SET_VLAN_VID | OFPAT_SET_TP_SRC | OFPAT_SET_TP_DST => 2,
        OFPAT_SET_VLAN_PCP | OFPAT_SET_NW_TOS => 3,
        OFPAT_STRIP_VLAN => 4,
        OFPAT_SET_DL_SRC | OFPAT_SET_DL_DST => 6,
        _ => 0,
    }
}

fn decode_enqueue<'a>(body: &mut Reader<'a>) -> Result<Action<'a>, DecodeError> {
    let port = port::decode_number(body.u16()?);
    body.skip(6)?;
    let queue_id = body.u32()?;
    Ok(Action::Enqueue { port, queue_id })
}

fn set_field<'a>(field: OxmField, value: impl Into<u128>) -> Action<'a> {
    Action::SetField(Field::exact(field, value.into()))
}

fn mac(body: &mut Reader) -> Result<u64, DecodeError> {
    Ok(u64::from(body.u16()?) << 32 | u64::from(body.u32()?))
}

/// Checks that a VLAN id or priority fits into the tag.
fn checked(value: u16, bits: u32) -> Result<u16, DecodeError> {
    if value >> bits == 0 {
        return Ok(value);
    }
    Err(DecodeError::BadValue {
        what: "value of an action on the VLAN tag",
        value: value.into(),
        expected: "at most 0xfff for an id, at most 7 for a priority",
        code: ErrorCode::BadActionBadArgument,
    })
}

fn unknown_type(action_type: u16) -> DecodeError {
    DecodeError::BadValue {
        what: "action type",
        value: action_type.into(),
        expected: "0 (OFPAT_OUTPUT) to 11 (OFPAT_ENQUEUE), or 0xffff (OFPAT_VENDOR)",
        code: ErrorCode::BadActionBadType,
    }
}

/// Reads the remaining bytes as one action list.
pub(crate) fn decode_all<'a>(reader: &mut Reader<'a>) -> Result<List<'a, Action<'a>>, DecodeError> {
    List::decode(Version::Of10, reader)
}

pub(crate) fn encode(action: &Action, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match *action {
        Action::Output { port, max_len } => {
            let port = port::encode_number(port, "port of the action output")?;
            put(OFPAT_OUTPUT, port, max_len, out);
        }
        Action::SetVlanVid(vid) => put_vlan_vid(vid, out)?,
        Action::SetVlanPcp(pcp) => put_vlan_pcp(pcp, out)?,
        Action::PopVlan => put(OFPAT_STRIP_VLAN, 0, 0, out),
        Action::SetField(field) => encode_set_field(field, out)?,
        Action::SetTpSrc(port) => put(OFPAT_SET_TP_SRC, port, 0, out),
        Action::SetTpDst(port) => put(OFPAT_SET_TP_DST, port, 0, out),
        Action::Enqueue { port, queue_id } => {
            put_header(OFPAT_ENQUEUE, 16, out);
            out.put_u16(port::encode_number(port, "port of the action enqueue")?);
            out.put_zeros(6);
            out.put_u32(queue_id);
        }
        Action::Experimenter { experimenter, data } => put_vendor(experimenter, data, out)?,
        _ => return Err(unsupported(name_of_lacking(action))),
    }
    Ok(())
}

fn encode_set_field(field: Field, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let Field::Basic { field, value, mask } = field else {
        return Err(unsupported(
            "the action set_field of an experimenter's field",
        ));
    };
    lacks("the action set_field with a mask", mask, field.full_mask())?;
    // Casts lose nothing: a field's value is never wider than the field.
    match field {
        OxmField::EthSrc => put_mac(OFPAT_SET_DL_SRC, value, out),
        OxmField::EthDst => put_mac(OFPAT_SET_DL_DST, value, out),
        OxmField::Ipv4Src => put_u32(OFPAT_SET_NW_SRC, value as u32, out),
        OxmField::Ipv4Dst => put_u32(OFPAT_SET_NW_DST, value as u32, out),
        OxmField::IpDscp => put_u8(OFPAT_SET_NW_TOS, (value as u8) << 2, out),
        OxmField::TcpSrc | OxmField::UdpSrc => put(OFPAT_SET_TP_SRC, value as u16, 0, out),
        OxmField::TcpDst | OxmField::UdpDst => put(OFPAT_SET_TP_DST, value as u16, 0, out),
        OxmField::VlanVid if value as u16 & VLAN_PRESENT == 0 => {
            return Err(unsupported(
                "the action set_field of vlan_vid without OFPVID_PRESENT",
            ));
        }
        OxmField::VlanVid => put_vlan_vid(value as u16 & !VLAN_PRESENT, out)?,
        OxmField::VlanPcp => put_vlan_pcp(value as u8, out)?,
        other => return Err(unsupported(other.phrases().set)),
    }
    Ok(())
}

fn put_header(action_type: u16, length: u16, out: &mut Vec<u8>) {
    out.put_u16(action_type);
    out.put_u16(length);
}

fn put(action_type: u16, first: u16, second: u16, out: &mut Vec<u8>) {
    put_header(action_type, 8, out);
    out.put_u16(first);
    out.put_u16(second);
}

fn put_u8(action_type: u16, value: u8, out: &mut Vec<u8>) {
    put_header(action_type, 8, out);
    out.put(&[value, 0, 0, 0]);
}

fn put_u32(action_type: u16, value: u32, out: &mut Vec<u8>) {
    put_header(action_type, 8, out);
    out.put_u32(value);
}

fn put_mac(action_type: u16, value: u128, out: &mut Vec<u8>) {
    let [_, _, address @ ..] = (value as u64).to_be_bytes();
    put_header(action_type, 16, out);
    out.put(&address);
    out.put_zeros(6);
}

fn put_vlan_vid(vid: u16, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    fits("VLAN id to be set", vid.into(), VLAN_VID_BITS)?;
    put(OFPAT_SET_VLAN_VID, vid, 0, out);
    Ok(())
}

fn put_vlan_pcp(pcp: u8, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    fits("VLAN priority to be set", pcp.into(), VLAN_PCP_BITS)?;
    put_u8(OFPAT_SET_VLAN_PCP, pcp, out);
    Ok(())
}

fn put_vendor(vendor: u32, data: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if data.len() % 8 != 0 {
        return Err(unsupported(
            "a vendor action whose length is not a multiple of 8",
        ));
    }
    let start = out.len();
    put_header(OFPAT_VENDOR, 0, out);
    out.put_u32(vendor);
    out.put(data);
    out.set_length(start + 2, start, "vendor action")
}

/// Returns the name of an action that 1.0 does not have, for errors.
fn name_of_lacking(action: &Action) -> &'static str {
    match action {
        Action::CopyTtlOut => "the action copy_ttl_out",
        Action::CopyTtlIn => "the action copy_ttl_in",
        Action::SetMplsTtl(_) => "the action set_mpls_ttl",
        Action::DecMplsTtl => "the action dec_mpls_ttl",
        Action::PushVlan(_) => "the action push_vlan",
        Action::PushMpls(_) => "the action push_mpls",
        Action::PopMpls(_) => "the action pop_mpls",
        Action::SetQueue(_) => "the action set_queue",
        Action::Group(_) => "the action group",
        Action::SetNwTtl(_) => "the action set_nw_ttl",
        Action::DecNwTtl => "the action dec_nw_ttl",
        Action::PushPbb(_) => "the action push_pbb",
        Action::PopPbb => "the action pop_pbb",
        _ => "this action",
    }
}

/// Writes the instruction's actions, since 1.0's entries only have an action list. Several consecutive `ApplyActions` make
/// one list with an equal effect.
pub(crate) fn encode_instruction(
    instruction: &Instruction,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    match instruction {
        Instruction::ApplyActions(actions) => actions.encode(Version::Of10, out),
        Instruction::GotoTable(_) => Err(unsupported("the instruction goto_table")),
        Instruction::WriteMetadata { .. } => Err(unsupported("the instruction write_metadata")),
        Instruction::WriteActions(_) => Err(unsupported("the instruction write_actions")),
        Instruction::ClearActions => Err(unsupported("the instruction clear_actions")),
        Instruction::Meter(_) => Err(unsupported("the instruction meter")),
        Instruction::Experimenter { .. } => Err(unsupported("the instruction experimenter")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of10::golden;
    use crate::{MacAddr, PortNo};

    fn set(field: OxmField, value: u64) -> Action<'static> {
        set_field(field, value)
    }

    #[test]
    fn each_action_both_ways() {
        let cases: [(&[u8], Action); 14] = [
            (
                &[0, 0, 0, 8, 0, 7, 0, 0x80],
                Action::Output {
                    port: PortNo(7),
                    max_len: 128,
                },
            ),
            (&[0, 0, 0, 8, 0xff, 0xfd, 0xff, 0xff], Action::controller()),
            (&[0, 1, 0, 8, 0x0f, 0xfe, 0, 0], Action::SetVlanVid(0xffe)),
            (&[0, 2, 0, 8, 5, 0, 0, 0], Action::SetVlanPcp(5)),
            (&[0, 3, 0, 8, 0, 0, 0, 0], Action::PopVlan),
            (
                &[0, 4, 0, 16, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0],
                set(OxmField::EthSrc, MacAddr::new([2, 3, 4, 5, 6, 7]).to_u64()),
            ),
            (
                &[0, 5, 0, 16, 2, 3, 4, 5, 6, 8, 0, 0, 0, 0, 0, 0],
                set(OxmField::EthDst, MacAddr::new([2, 3, 4, 5, 6, 8]).to_u64()),
            ),
            (
                &[0, 6, 0, 8, 10, 0, 0, 1],
                set(OxmField::Ipv4Src, 0x0a00_0001),
            ),
            (
                &[0, 7, 0, 8, 10, 0, 0, 2],
                set(OxmField::Ipv4Dst, 0x0a00_0002),
            ),
            (&[0, 8, 0, 8, 0xb8, 0, 0, 0], set(OxmField::IpDscp, 46)),
            (&[0, 9, 0, 8, 0x12, 0x34, 0, 0], Action::SetTpSrc(0x1234)),
            (&[0, 10, 0, 8, 0x00, 0x50, 0, 0], Action::SetTpDst(80)),
            (
                &[0, 11, 0, 16, 0xff, 0xf8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9],
                Action::Enqueue {
                    port: PortNo::IN_PORT,
                    queue_id: 9,
                },
            ),
            (
                &[0xff, 0xff, 0, 16, 0, 0, 0x23, 0x20, 1, 2, 3, 4, 5, 6, 7, 8],
                Action::Experimenter {
                    experimenter: 0x2320,
                    data: &[1, 2, 3, 4, 5, 6, 7, 8],
                },
            ),
        ];
        for (bytes, action) in cases {
            golden::element(bytes, &action);
        }
    }

    #[test]
    fn some_set_fields_have_an_older_name() {
        let vid = u64::from(VLAN_PRESENT | 100);
        let cases = [
            (set(OxmField::TcpSrc, 80), Action::SetTpSrc(80)),
            (set(OxmField::UdpSrc, 80), Action::SetTpSrc(80)),
            (set(OxmField::TcpDst, 53), Action::SetTpDst(53)),
            (set(OxmField::UdpDst, 53), Action::SetTpDst(53)),
            (set(OxmField::VlanVid, vid), Action::SetVlanVid(100)),
            (set(OxmField::VlanPcp, 3), Action::SetVlanPcp(3)),
        ];
        for (action, older) in cases {
            let bytes = golden::written(&action);
            assert_eq!(
                decode(&mut Reader::new(&bytes, Structure::Message)),
                Ok(older)
            );
        }
    }

    #[test]
    fn wrong_lengths_are_errors() {
        let cases: [&[u8]; 8] = [
            &[0, 0, 0],
            &[0, 0, 0, 0, 0, 7, 0, 0],
            &[0, 0, 0, 4, 0, 7, 0, 0],
            &[0, 0, 0, 9, 0, 7, 0, 0, 0],
            &[0, 0, 0, 16, 0, 7, 0, 0],
            &[0, 0, 0, 16, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0, 4, 0, 8, 2, 3, 4, 5],
            &[0xff, 0xff, 0, 4, 0, 0, 0, 0],
        ];
        for bytes in cases {
            let error =
                decode(&mut Reader::new(bytes, Structure::Message)).expect_err("wrong length");
            assert_eq!(
                error.code(),
                ErrorCode::BadActionBadLen,
                "{bytes:?}: {error}"
            );
        }
    }

    #[test]
    fn bad_values_are_errors() {
        let cases = [
            ([0, 12, 0, 8, 0, 0, 0, 0], ErrorCode::BadActionBadType),
            ([0, 1, 0, 8, 0x10, 0, 0, 0], ErrorCode::BadActionBadArgument),
            ([0, 2, 0, 8, 8, 0, 0, 0], ErrorCode::BadActionBadArgument),
        ];
        for (bytes, code) in cases {
            let error =
                decode(&mut Reader::new(&bytes, Structure::Message)).expect_err("bad value");
            assert_eq!(error.code(), code, "{bytes:?}: {error}");
        }
    }

    #[test]
    fn refuses_parts_of_1_3_only() {
        let cases = [
            (Action::Group(1), "the action group"),
            (Action::PushVlan(0x8100), "the action push_vlan"),
            (set(OxmField::ArpSpa, 1), "the action set_field of arp_spa"),
            (
                set(OxmField::VlanVid, 100),
                "the action set_field of vlan_vid without OFPVID_PRESENT",
            ),
            (
                Action::SetField(Field::masked(OxmField::EthSrc, 1, 1)),
                "the action set_field with a mask",
            ),
            (
                Action::Experimenter {
                    experimenter: 1,
                    data: &[0; 4],
                },
                "a vendor action whose length is not a multiple of 8",
            ),
        ];
        for (action, what) in cases {
            let expected = format!("OpenFlow 1.0 cannot express {what}");
            assert_eq!(golden::refused(&action), expected);
        }
        assert_eq!(
            golden::refused(&Instruction::GotoTable(1)),
            "OpenFlow 1.0 cannot express the instruction goto_table"
        );
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        for action in [
            Action::SetVlanVid(0x1000),
            Action::SetVlanPcp(8),
            Action::output(PortNo(0x1_0000)),
        ] {
            assert!(golden::refused(&action).contains("bits for it"));
        }
    }

    #[test]
    fn instructions_are_one_action_list() {
        let first = [Action::PopVlan];
        let second = [Action::output(PortNo(1))];
        let instructions = [Instruction::apply(&first), Instruction::apply(&second)];
        let mut out = Vec::new();
        let list = List::from(&instructions);
        list.encode(Version::Of10, &mut out).expect("two lists");
        let bytes = [0, 3, 0, 8, 0, 0, 0, 0, 0, 0, 0, 8, 0, 1, 0, 0];
        assert_eq!(out, bytes);
        let both = vec![Action::PopVlan, Action::output(PortNo(1))];
        golden::element(&bytes, &Instruction::apply(both));
    }
}
