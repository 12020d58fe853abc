//! Flow mod (1.3.5 section 7.3.4.1), flow-removed (7.4.2), and the statistics of flow entries (7.3.5.2, 7.3.5.3).

use super::{lacks, matching};
use crate::{
    AggregateStats, BufferId, DecodeError, EncodeError, ErrorCode, FlowMod, FlowModFlags,
    FlowRemoved, FlowStats, FlowStatsRequest, List, PortNo, Put, Reader, Structure, Version,
};

/// The size of `ofp_flow_stats` with an empty match.
const FLOW_STATS_MIN_SIZE: usize = 56;

pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Result<FlowMod<'a>, DecodeError> {
    let cookie = reader.u64()?;
    let cookie_mask = reader.u64()?;
    let table_id = reader.u8()?;
    let command = reader.u8()?.into();
    let idle_timeout = reader.u16()?;
    let hard_timeout = reader.u16()?;
    let priority = reader.u16()?;
    let buffer_id = BufferId(reader.u32()?);
    let out_port = PortNo(reader.u32()?);
    let out_group = reader.u32()?;
    let flags = decode_flags(reader)?;
    reader.skip(2)?;
    Ok(FlowMod {
        cookie,
        cookie_mask,
        table_id,
        command,
        idle_timeout,
        hard_timeout,
        priority,
        buffer_id,
        out_port,
        out_group,
        flags,
        match_: matching::decode(reader)?,
        instructions: List::decode(Version::Of13, reader)?,
    })
}

pub(crate) fn decode_removed<'a>(reader: &mut Reader<'a>) -> Result<FlowRemoved<'a>, DecodeError> {
    Ok(FlowRemoved {
        cookie: reader.u64()?,
        priority: reader.u16()?,
        reason: reader.u8()?.into(),
        table_id: reader.u8()?,
        duration_sec: reader.u32()?,
        duration_nsec: reader.u32()?,
        idle_timeout: reader.u16()?,
        hard_timeout: reader.u16()?,
        packet_count: reader.u64()?,
        byte_count: reader.u64()?,
        match_: matching::decode(reader)?,
    })
}

pub(crate) fn decode_stats_request<'a>(
    reader: &mut Reader<'a>,
) -> Result<FlowStatsRequest<'a>, DecodeError> {
    let table_id = reader.u8()?;
    reader.skip(3)?;
    let out_port = PortNo(reader.u32()?);
    let out_group = reader.u32()?;
    reader.skip(4)?;
    Ok(FlowStatsRequest {
        table_id,
        out_port,
        out_group,
        cookie: reader.u64()?,
        cookie_mask: reader.u64()?,
        match_: matching::decode(reader)?,
    })
}

pub(crate) fn decode_stats<'a>(reader: &mut Reader<'a>) -> Result<FlowStats<'a>, DecodeError> {
    let mut body = reader.sized_by_8(0, FLOW_STATS_MIN_SIZE, Structure::FlowStats)?;
    body.skip(2)?;
    let table_id = body.u8()?;
    body.skip(1)?;
    let duration_sec = body.u32()?;
    let duration_nsec = body.u32()?;
    let priority = body.u16()?;
    let idle_timeout = body.u16()?;
    let hard_timeout = body.u16()?;
    let flags = decode_flags(&mut body)?;
    body.skip(4)?;
    Ok(FlowStats {
        table_id,
        duration_sec,
        duration_nsec,
        priority,
        idle_timeout,
        hard_timeout,
        flags,
        cookie: body.u64()?,
        packet_count: body.u64()?,
        byte_count: body.u64()?,
        match_: matching::decode(&mut body)?,
        instructions: List::decode(Version::Of13, &mut body)?,
    })
}

pub(crate) fn decode_aggregate(reader: &mut Reader) -> Result<AggregateStats, DecodeError> {
    let aggregate = AggregateStats {
        packet_count: reader.u64()?,
        byte_count: reader.u64()?,
        flow_count: reader.u32()?,
    };
    reader.skip(4)?;
    Ok(aggregate)
}

/// Decodes flags. The bit that represents 1.0's EMERG is undefined in 1.3, so it is refused.
fn decode_flags(reader: &mut Reader) -> Result<FlowModFlags, DecodeError> {
    let flags = FlowModFlags::from_bits_retain(reader.u16()?);
    if !flags.contains(FlowModFlags::EMERG) {
        return Ok(flags);
    }
    Err(DecodeError::BadValue {
        what: "flags of the flow entry",
        value: flags.bits().into(),
        expected: "bits of ofp_flow_mod_flags",
        code: ErrorCode::FlowModFailedBadFlags,
    })
}

pub(crate) fn encode(flow_mod: &FlowMod, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.put_u64(flow_mod.cookie);
    out.put_u64(flow_mod.cookie_mask);
    out.put_u8(flow_mod.table_id);
    out.put_u8(flow_mod.command.into());
    out.put_u16(flow_mod.idle_timeout);
    out.put_u16(flow_mod.hard_timeout);
    out.put_u16(flow_mod.priority);
    out.put_u32(flow_mod.buffer_id.0);
    out.put_u32(flow_mod.out_port.0);
    out.put_u32(flow_mod.out_group);
    encode_flags(flow_mod.flags, out)?;
    out.put_zeros(2);
    matching::encode(&flow_mod.match_, out)?;
    flow_mod.instructions.encode(Version::Of13, out)
}

pub(crate) fn encode_removed(removed: &FlowRemoved, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.put_u64(removed.cookie);
    out.put_u16(removed.priority);
    out.put_u8(removed.reason.into());
    out.put_u8(removed.table_id);
    out.put_u32(removed.duration_sec);
    out.put_u32(removed.duration_nsec);
    out.put_u16(removed.idle_timeout);
    out.put_u16(removed.hard_timeout);
    out.put_u64(removed.packet_count);
    out.put_u64(removed.byte_count);
    matching::encode(&removed.match_, out)
}

pub(crate) fn encode_stats_request(
    request: &FlowStatsRequest,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    out.put_u8(request.table_id);
    out.put_zeros(3);
    out.put_u32(request.out_port.0);
    out.put_u32(request.out_group);
    out.put_zeros(4);
    out.put_u64(request.cookie);
    out.put_u64(request.cookie_mask);
    matching::encode(&request.match_, out)
}

pub(crate) fn encode_stats(stats: &FlowStats, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    out.put_u16(0);
    out.put_u8(stats.table_id);
    out.put_zeros(1);
    out.put_u32(stats.duration_sec);
    out.put_u32(stats.duration_nsec);
    out.put_u16(stats.priority);
    out.put_u16(stats.idle_timeout);
    out.put_u16(stats.hard_timeout);
    encode_flags(stats.flags, out)?;
    out.put_zeros(4);
    out.put_u64(stats.cookie);
    out.put_u64(stats.packet_count);
    out.put_u64(stats.byte_count);
    matching::encode(&stats.match_, out)?;
    stats.instructions.encode(Version::Of13, out)?;
    out.set_length(start, start, "flow stats entry")
}

pub(crate) fn encode_aggregate(aggregate: &AggregateStats, out: &mut Vec<u8>) {
    out.put_u64(aggregate.packet_count);
    out.put_u64(aggregate.byte_count);
    out.put_u32(aggregate.flow_count);
    out.put_zeros(4);
}

fn encode_flags(flags: FlowModFlags, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    lacks("OFPFF_EMERG", flags.contains(FlowModFlags::EMERG), false)?;
    out.put_u16(flags.bits());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::unsupported;
    use super::*;
    use crate::of13::golden::{
        decode_element, decode_error, element, frame, hex, message, refused_message,
    };
    use crate::{
        Action, FlowModCommand, FlowRemovedReason, Instruction, Match, Message, MultipartFlags,
        MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
    };

    #[test]
    fn add_both_ways() {
        let flow_mod = FlowMod {
            cookie: 1,
            cookie_mask: 2,
            table_id: 3,
            command: FlowModCommand::ModifyStrict,
            idle_timeout: 5,
            hard_timeout: 10,
            priority: 0x8000,
            buffer_id: BufferId::NONE,
            flags: FlowModFlags::SEND_FLOW_REM | FlowModFlags::NO_BYT_COUNTS,
            match_: Match::any().in_port(PortNo(1)),
            instructions: vec![
                Instruction::apply(vec![Action::output(PortNo(2))]),
                Instruction::GotoTable(4),
            ]
            .into(),
            ..FlowMod::default()
        };
        let bytes = frame(
            14,
            "0000000000000001 0000000000000002 03 02 0005 000a 8000 ffffffff ffffffff ffffffff 0011 0000
             0001 000c 80000004 00000001 00000000
             0004 0018 00000000 0000 0010 00000002 0000 000000000000
             0001 0008 04 000000",
        );
        message(&bytes, &Message::FlowMod(flow_mod));
    }

    #[test]
    fn delete_of_all_both_ways() {
        let flow_mod = FlowMod {
            table_id: crate::TABLE_ALL,
            command: FlowModCommand::Delete,
            priority: 0,
            ..FlowMod::default()
        };
        let bytes = frame(
            14,
            "0000000000000000 0000000000000000 ff 03 0000 0000 0000 ffffffff ffffffff ffffffff 0000 0000
             0001 0004 00000000",
        );
        message(&bytes, &Message::FlowMod(flow_mod));
    }

    #[test]
    fn refuses_emerg_of_1_0() {
        let flow_mod = FlowMod {
            flags: FlowModFlags::EMERG,
            ..FlowMod::default()
        };
        assert_eq!(
            refused_message(&Message::FlowMod(flow_mod)),
            unsupported("OFPFF_EMERG")
        );
        let bytes = frame(
            14,
            "0000000000000000 0000000000000000 00 00 0000 0000 8000 ffffffff ffffffff ffffffff 8000 0000
             0001 0004 00000000",
        );
        assert_eq!(
            decode_error(&bytes).code(),
            ErrorCode::FlowModFailedBadFlags
        );
    }

    #[test]
    fn removed_both_ways() {
        let removed = FlowRemoved {
            cookie: 1,
            priority: 2,
            reason: FlowRemovedReason::GroupDelete,
            table_id: 4,
            duration_sec: 5,
            duration_nsec: 6,
            idle_timeout: 7,
            hard_timeout: 8,
            packet_count: 9,
            byte_count: 10,
            match_: Match::any(),
        };
        let bytes = frame(
            11,
            "0000000000000001 0002 03 04 00000005 00000006 0007 0008 0000000000000009 000000000000000a
             0001 0004 00000000",
        );
        message(&bytes, &Message::FlowRemoved(removed));
    }

    #[test]
    fn stats_requests_both_ways() {
        let request = FlowStatsRequest {
            cookie: 1,
            cookie_mask: 3,
            ..FlowStatsRequest::default()
        };
        let body = "ff 000000 ffffffff ffffffff 00000000 0000000000000001 0000000000000003
                    0001 0004 00000000";
        let flow = MultipartRequest {
            flags: MultipartFlags::empty(),
            body: MultipartRequestBody::Flow(request.clone()),
        };
        message(
            &frame(18, &format!("0001 0000 00000000 {body}")),
            &Message::MultipartRequest(flow),
        );
        let aggregate = MultipartRequest {
            flags: MultipartFlags::empty(),
            body: MultipartRequestBody::Aggregate(request),
        };
        message(
            &frame(18, &format!("0002 0000 00000000 {body}")),
            &Message::MultipartRequest(aggregate),
        );
    }

    #[test]
    fn stats_both_ways() {
        let stats = FlowStats {
            table_id: 1,
            duration_sec: 2,
            duration_nsec: 3,
            priority: 4,
            idle_timeout: 5,
            hard_timeout: 6,
            flags: FlowModFlags::CHECK_OVERLAP,
            cookie: 7,
            packet_count: 8,
            byte_count: 9,
            match_: Match::any().eth_type(0x0800),
            instructions: vec![Instruction::ClearActions].into(),
        };
        let bytes = hex("0048 01 00 00000002 00000003 0004 0005 0006 0002 00000000
                         0000000000000007 0000000000000008 0000000000000009
                         0001 000a 80000a02 0800 000000000000 0005 0008 00000000");
        element(&bytes, stats);
    }

    #[test]
    fn wrong_stats_lengths_are_errors() {
        for length in ["0000", "0030", "0039", "0050"] {
            let bytes = hex(&format!("{length} {}", "00".repeat(62)));
            assert!(
                matches!(
                    decode_element::<FlowStats>(&bytes),
                    Err(DecodeError::Length { .. })
                ),
                "{length}"
            );
        }
    }

    #[test]
    fn aggregate_both_ways() {
        let reply = MultipartReply {
            flags: MultipartFlags::empty(),
            body: MultipartReplyBody::Aggregate(AggregateStats {
                packet_count: 1,
                byte_count: 2,
                flow_count: 3,
            }),
        };
        let bytes = frame(
            19,
            "0002 0000 00000000 0000000000000001 0000000000000002 00000003 00000000",
        );
        message(&bytes, &Message::MultipartReply(reply));
    }
}
