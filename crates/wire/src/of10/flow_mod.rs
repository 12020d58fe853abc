//! Flow mod, `ofp_flow_mod` (section 5.3.3), and flow removed, `ofp_flow_removed` (5.4.3).

use super::{lacks, matching, port, unsupported};
use crate::{
    BufferId, DecodeError, EncodeError, ErrorCode, FlowMod, FlowModCommand, FlowModFlags,
    FlowRemoved, GROUP_ANY, List, Put, Reader, TABLE_ALL, Version,
};

/// OFPFF_EMERG, which is [`FlowModFlags::EMERG`] in the numbering of 1.3.
const OFPFF_EMERG: u16 = 1 << 2;
/// Bits that 1.0 does not define, but that have a meaning in the version-neutral numbering.
const COLLIDING: FlowModFlags = FlowModFlags::NO_PKT_COUNTS
    .union(FlowModFlags::NO_BYT_COUNTS)
    .union(FlowModFlags::EMERG);

pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Result<FlowMod<'a>, DecodeError> {
    Ok(FlowMod {
        match_: matching::decode(reader)?,
        cookie: reader.u64()?,
        cookie_mask: 0,
        table_id: 0,
        command: decode_command(reader.u16()?)?,
        idle_timeout: reader.u16()?,
        hard_timeout: reader.u16()?,
        priority: reader.u16()?,
        buffer_id: BufferId(reader.u32()?),
        out_port: port::decode_number(reader.u16()?),
        out_group: GROUP_ANY,
        flags: decode_flags(reader.u16()?)?,
        instructions: List::decode(Version::Of10, reader)?,
    })
}

pub(super) fn encode(flow_mod: &FlowMod, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    lacks("the cookie_mask of a flow mod", flow_mod.cookie_mask, 0)?;
    lacks(
        "the table_id of a flow mod",
        flow_mod.table_id,
        neutral_table(flow_mod),
    )?;
    lacks("the out_group of a flow mod", flow_mod.out_group, GROUP_ANY)?;
    matching::encode(&flow_mod.match_, out)?;
    out.put_u64(flow_mod.cookie);
    out.put_u16(u8::from(flow_mod.command).into());
    out.put_u16(flow_mod.idle_timeout);
    out.put_u16(flow_mod.hard_timeout);
    out.put_u16(flow_mod.priority);
    out.put_u32(flow_mod.buffer_id.0);
    out.put_u16(port::encode_number(
        flow_mod.out_port,
        "out_port of a flow mod",
    )?);
    out.put_u16(encode_flags(flow_mod.flags)?);
    flow_mod.instructions.encode(Version::Of10, out)
}

/// Returns the table of a flow mod that 1.0 can express without naming it. All commands except add apply to all tables there.
fn neutral_table(flow_mod: &FlowMod) -> u8 {
    match (flow_mod.command, flow_mod.table_id) {
        (FlowModCommand::Add, _) | (_, 0) => 0,
        _ => TABLE_ALL,
    }
}

/// Decodes the command. 1.0 has 16 bits for it, of which it uses three.
fn decode_command(command: u16) -> Result<FlowModCommand, DecodeError> {
    match u8::try_from(command) {
        Ok(command) => Ok(command.into()),
        Err(_) => Err(DecodeError::BadValue {
            what: "command of the flow mod",
            value: command.into(),
            expected: "0 (OFPFC_ADD) to 4 (OFPFC_DELETE_STRICT)",
            code: ErrorCode::FlowModFailedBadCommand,
        }),
    }
}

fn decode_flags(bits: u16) -> Result<FlowModFlags, DecodeError> {
    let flags = FlowModFlags::from_bits_retain(bits & !OFPFF_EMERG);
    if flags.intersects(COLLIDING) {
        return Err(DecodeError::BadValue {
            what: "flags of the flow mod",
            value: bits.into(),
            expected: "none but OFPFF_SEND_FLOW_REM, OFPFF_CHECK_OVERLAP and OFPFF_EMERG",
            code: ErrorCode::FlowModFailedUnsupported,
        });
    }
    if bits & OFPFF_EMERG == 0 {
        Ok(flags)
    } else {
        Ok(flags | FlowModFlags::EMERG)
    }
}

fn encode_flags(flags: FlowModFlags) -> Result<u16, EncodeError> {
    let lacking = [
        (FlowModFlags::RESET_COUNTS, "the flag OFPFF_RESET_COUNTS"),
        (FlowModFlags::NO_PKT_COUNTS, "the flag OFPFF_NO_PKT_COUNTS"),
        (FlowModFlags::NO_BYT_COUNTS, "the flag OFPFF_NO_BYT_COUNTS"),
    ];
    for (flag, what) in lacking {
        if flags.contains(flag) {
            return Err(unsupported(what));
        }
    }
    let bits = flags.difference(FlowModFlags::EMERG).bits();
    if flags.contains(FlowModFlags::EMERG) {
        Ok(bits | OFPFF_EMERG)
    } else {
        Ok(bits)
    }
}

pub(super) fn decode_removed<'a>(reader: &mut Reader<'a>) -> Result<FlowRemoved<'a>, DecodeError> {
    let match_ = matching::decode(reader)?;
    let cookie = reader.u64()?;
    let priority = reader.u16()?;
    let reason = reader.u8()?.into();
    reader.skip(1)?;
    let duration_sec = reader.u32()?;
    let duration_nsec = reader.u32()?;
    let idle_timeout = reader.u16()?;
    reader.skip(2)?;
    Ok(FlowRemoved {
        cookie,
        priority,
        reason,
        table_id: 0,
        duration_sec,
        duration_nsec,
        idle_timeout,
        hard_timeout: 0,
        packet_count: reader.u64()?,
        byte_count: reader.u64()?,
        match_,
    })
}

pub(super) fn encode_removed(removed: &FlowRemoved, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    lacks("the table_id of a flow removed", removed.table_id, 0)?;
    lacks(
        "the hard_timeout of a flow removed",
        removed.hard_timeout,
        0,
    )?;
    matching::encode(&removed.match_, out)?;
    out.put_u64(removed.cookie);
    out.put_u16(removed.priority);
    out.put(&[removed.reason.into(), 0]);
    out.put_u32(removed.duration_sec);
    out.put_u32(removed.duration_nsec);
    out.put_u16(removed.idle_timeout);
    out.put_zeros(2);
    out.put_u64(removed.packet_count);
    out.put_u64(removed.byte_count);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of10::golden;
    use crate::{Action, FlowRemovedReason, Instruction, Match, Message, PortNo};

    const FLOW_MOD: [u8; 80] = [
        0x01, 14, 0, 80, 1, 2, 3, 4, // header
        0x00, 0x3f, 0xff, 0xfe, // wildcards: all but in_port
        0x00, 0x07, // in_port
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // dl_src, dl_dst
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // to tp_dst
        0x00, 0x00, 0x00, 0x00, 0xde, 0xad, 0xbe, 0xef, // cookie
        0x00, 0x02, // command OFPFC_MODIFY_STRICT
        0x00, 0x05, // idle_timeout
        0x00, 0x3c, // hard_timeout
        0x12, 0x34, // priority
        0x00, 0x00, 0x01, 0x02, // buffer_id
        0xff, 0xff, // out_port OFPP_NONE
        0x00, 0x05, // flags OFPFF_SEND_FLOW_REM, OFPFF_EMERG
        0x00, 0x00, 0x00, 0x08, 0x00, 0x02, 0x00, 0x00, // output 2
    ];

    fn flow_mod() -> FlowMod<'static> {
        FlowMod {
            cookie: 0xdead_beef,
            command: FlowModCommand::ModifyStrict,
            idle_timeout: 5,
            hard_timeout: 60,
            priority: 0x1234,
            buffer_id: BufferId(0x102),
            flags: FlowModFlags::SEND_FLOW_REM | FlowModFlags::EMERG,
            match_: Match::any().in_port(PortNo(7)),
            instructions: List::from(vec![Instruction::apply(vec![Action::output(PortNo(2))])]),
            ..FlowMod::default()
        }
    }

    #[test]
    fn flow_mod_both_ways() {
        golden::message(&FLOW_MOD, &Message::FlowMod(flow_mod()));
    }

    #[test]
    fn no_actions_are_no_instruction() {
        let mut bytes = FLOW_MOD[..72].to_vec();
        bytes[3] = 72;
        let dropping = FlowMod {
            instructions: List::default(),
            ..flow_mod()
        };
        golden::message(&bytes, &Message::FlowMod(dropping));
    }

    #[test]
    fn all_but_an_add_may_name_all_tables() {
        let encoded = |command, table_id| {
            let flow_mod = FlowMod {
                command,
                table_id,
                ..flow_mod()
            };
            let mut out = Vec::new();
            let written = Message::FlowMod(flow_mod).encode(Version::Of10, 1, &mut out);
            written.map(|()| out)
        };
        for command in [
            FlowModCommand::Modify,
            FlowModCommand::ModifyStrict,
            FlowModCommand::Delete,
            FlowModCommand::DeleteStrict,
        ] {
            assert!(encoded(command, TABLE_ALL).is_ok(), "{command:?}");
            assert_eq!(encoded(command, TABLE_ALL), encoded(command, 0));
            assert!(encoded(command, 1).is_err(), "{command:?}");
        }
        assert!(encoded(FlowModCommand::Add, TABLE_ALL).is_err());
    }

    #[test]
    fn flow_removed_both_ways() {
        let bytes = [
            0x01, 11, 0, 88, 1, 2, 3, 4, // header
            0x00, 0x3f, 0xff, 0xfe, // wildcards: all but in_port
            0x00, 0x07, // in_port
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // dl_src, dl_dst
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // to tp_dst
            0x00, 0x00, 0x00, 0x00, 0xde, 0xad, 0xbe, 0xef, // cookie
            0x12, 0x34, 0x01, 0x00, // priority, reason OFPRR_HARD_TIMEOUT, padding
            0x00, 0x00, 0x00, 0x3c, // duration_sec
            0x00, 0x00, 0x01, 0xf4, // duration_nsec
            0x00, 0x05, 0x00, 0x00, // idle_timeout, padding
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x09, // packet_count
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x1c, // byte_count
        ];
        let removed = FlowRemoved {
            cookie: 0xdead_beef,
            priority: 0x1234,
            reason: FlowRemovedReason::HardTimeout,
            table_id: 0,
            duration_sec: 60,
            duration_nsec: 500,
            idle_timeout: 5,
            hard_timeout: 0,
            packet_count: 9,
            byte_count: 540,
            match_: Match::any().in_port(PortNo(7)),
        };
        golden::message(&bytes, &Message::FlowRemoved(removed));
    }

    #[test]
    fn bad_values_are_errors() {
        let cases = [
            (56, 1, ErrorCode::FlowModFailedBadCommand),
            (71, 0x08, ErrorCode::FlowModFailedUnsupported),
            (70, 0x80, ErrorCode::FlowModFailedUnsupported),
            (75, 0, ErrorCode::BadActionBadLen),
            (75, 16, ErrorCode::BadActionBadLen),
        ];
        for (at, value, code) in cases {
            let mut bytes = FLOW_MOD;
            bytes[at] = value;
            let error = Message::decode(&bytes).expect_err("a bad value");
            assert_eq!(error.code(), code, "{value} at {at}: {error}");
        }
    }

    #[test]
    fn refuses_parts_of_1_3_only() {
        let refused = |change: fn(&mut FlowMod)| {
            let mut flow_mod = flow_mod();
            change(&mut flow_mod);
            golden::refused_message(&Message::FlowMod(flow_mod))
        };
        assert_eq!(
            refused(|flow_mod| flow_mod.table_id = 1),
            "OpenFlow 1.0 cannot express the table_id of a flow mod"
        );
        assert_eq!(
            refused(|flow_mod| flow_mod.cookie_mask = 1),
            "OpenFlow 1.0 cannot express the cookie_mask of a flow mod"
        );
        assert_eq!(
            refused(|flow_mod| flow_mod.out_group = 1),
            "OpenFlow 1.0 cannot express the out_group of a flow mod"
        );
        assert_eq!(
            refused(|flow_mod| flow_mod.flags = FlowModFlags::RESET_COUNTS),
            "OpenFlow 1.0 cannot express the flag OFPFF_RESET_COUNTS"
        );
    }
}
