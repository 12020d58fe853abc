//! The packet-in (1.3.5 section 7.4.1), the message that a controller reads most often.
//!
//! Switches put `in_port` first into the match, usually as the only field. That match is recognized by its first eight bytes;
//! any other is decoded field by field.

use super::{matching, oxm};
use crate::matching::Repr;
use crate::{
    BufferId, DecodeError, EncodeError, Field, List, Match, OxmField, PacketIn, PortNo, Put,
    Reader, Version,
};

/// A match with only `in_port`, before the value: OFPMT_OXM, length 12; OFPXMC_OPENFLOW_BASIC, field 0, length 4.
const IN_PORT_ALONE: [u8; 8] = [0x00, 0x01, 0x00, 0x0c, 0x80, 0x00, 0x00, 0x04];
/// The size of the fields before the match.
const FIXED_SIZE: usize = 16;
/// The padding between match and data, which aligns the IP header to four bytes.
const DATA_PADDING: usize = 2;

/// Decodes the body. This is on a controller's hottest path: it does not allocate, and the two ways to decode a match are
/// joined with plain values in registers, since a [`Match`] of each would be copied through memory (measured: 8 and 21
/// cycles).
#[inline]
pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Result<PacketIn<'a>, DecodeError> {
    let [b0, b1, b2, b3, l0, l1, reason, table_id, cookie @ ..] =
        *reader.array_ref::<FIXED_SIZE>()?;
    let (in_port, fields) = match reader.peek().first_chunk() {
        Some(head) if head.starts_with(&IN_PORT_ALONE) => in_port_alone(head, reader)?,
        _ => any_match(reader)?,
    };
    reader.skip(DATA_PADDING)?;
    Ok(PacketIn {
        buffer_id: BufferId(u32::from_be_bytes([b0, b1, b2, b3])),
        total_len: u16::from_be_bytes([l0, l1]),
        reason: reason.into(),
        table_id,
        cookie: u64::from_be_bytes(cookie),
        in_port,
        match_: Match::oxm(List::checked(Version::Of13, fields)),
        data: reader.rest(),
    })
}

/// Reads a match with only `in_port`; returns the port, and the match's fields.
#[inline]
fn in_port_alone<'a>(
    head: &'a [u8; 16],
    reader: &mut Reader<'a>,
) -> Result<(PortNo, &'a [u8]), DecodeError> {
    reader.skip(head.len())?;
    let in_port = PortNo(u32::from_be_bytes([head[8], head[9], head[10], head[11]]));
    Ok((in_port, &head[4..12]))
}

/// Reads a match; returns the port, if it has one, and the match's checked fields.
#[cold]
fn any_match<'a>(reader: &mut Reader<'a>) -> Result<(PortNo, &'a [u8]), DecodeError> {
    let bytes = matching::decode_fields(reader)?;
    let fields = List::checked(Version::Of13, bytes);
    let in_port = fields.iter().find_map(as_in_port);
    Ok((in_port.unwrap_or(PortNo::ANY), bytes))
}

fn as_in_port(field: Field) -> Option<PortNo> {
    match field {
        Field::Basic {
            field: OxmField::InPort,
            value,
            ..
        } => Some(PortNo(value as u32)),
        _ => None,
    }
}

/// Encodes the body. A port that is not in the match is added as its first field.
pub(crate) fn encode(packet_in: &PacketIn, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.put_u32(packet_in.buffer_id.0);
    out.put_u16(packet_in.total_len);
    out.put_u8(packet_in.reason.into());
    out.put_u8(packet_in.table_id);
    out.put_u64(packet_in.cookie);
    matching::encode_with(out, |out| {
        if packet_in.in_port != PortNo::ANY && !names_in_port(&packet_in.match_) {
            let in_port = Field::exact(OxmField::InPort, packet_in.in_port.0.into());
            oxm::encode(&in_port, out)?;
        }
        matching::encode_fields(&packet_in.match_, out)
    })?;
    out.put_zeros(DATA_PADDING);
    out.put(packet_in.data);
    Ok(())
}

fn names_in_port(match_: &Match) -> bool {
    match &match_.0 {
        Repr::Exact(_) | Repr::InPort(_) => true,
        _ => match_.get(OxmField::InPort).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of13::golden::{decode_error, frame, hex, message};
    use crate::{ErrorCode, Message, PacketInReason, Structure};

    fn example(match_: Match<'_>) -> PacketIn<'_> {
        PacketIn {
            buffer_id: BufferId(0x100),
            total_len: 60,
            reason: PacketInReason::Action,
            table_id: 3,
            cookie: 0xdead_beef,
            in_port: PortNo(5),
            match_,
            data: &[0xaa, 0xbb, 0xcc],
        }
    }

    #[test]
    fn match_of_in_port_alone_both_ways() {
        let bytes = frame(
            10,
            "00000100 003c 01 03 00000000deadbeef
             0001 000c 80000004 00000005 00000000 0000 aabbcc",
        );
        let expected = example(Match::any().in_port(PortNo(5)));
        message(&bytes, &Message::PacketIn(expected));
    }

    #[test]
    fn match_of_other_fields_both_ways() {
        let match_ = Match::any()
            .with_exact(OxmField::TunnelId, 9_u64)
            .in_port(PortNo(5));
        let bytes = frame(
            10,
            "00000100 003c 01 03 00000000deadbeef
             0001 0018 80004c08 0000000000000009 80000004 00000005 0000 aabbcc",
        );
        message(&bytes, &Message::PacketIn(example(match_)));
    }

    #[test]
    fn match_without_in_port_both_ways() {
        let expected = PacketIn {
            in_port: PortNo::ANY,
            ..example(Match::any())
        };
        let bytes = frame(
            10,
            "00000100 003c 01 03 00000000deadbeef 0001 0004 00000000 0000 aabbcc",
        );
        message(&bytes, &Message::PacketIn(expected));
    }

    #[test]
    fn a_port_that_the_match_lacks_is_written() {
        let mut out = Vec::new();
        encode(&example(Match::any()), &mut out).unwrap();
        let decoded = decode(&mut Reader::new(&out, Structure::Message)).unwrap();
        assert_eq!(decoded, example(Match::any().in_port(PortNo(5))));
    }

    #[test]
    fn both_paths_agree() {
        let match_ = hex("0001 000c 80000004 00000005 00000000");
        let mut fast = Reader::new(&match_, Structure::Message);
        let mut slow = fast;
        let head = match_.first_chunk().unwrap();
        assert_eq!(in_port_alone(head, &mut fast), any_match(&mut slow));
        assert!(fast.is_empty() && slow.is_empty());
    }

    #[test]
    fn bad_packet_ins_are_errors() {
        let head = "00000100 003c 01 03 00000000deadbeef";
        let no_padding = frame(10, &format!("{head} 0001 000c 80000004 00000005"));
        assert_eq!(decode_error(&no_padding).code(), ErrorCode::BadMatchBadLen);
        let no_data_padding = frame(10, &format!("{head} 0001 0004 00000000 00"));
        assert_eq!(
            decode_error(&no_data_padding).code(),
            ErrorCode::BadRequestBadLen
        );
        let overrun = frame(10, &format!("{head} 0001 0020 80000004 00000005 00000000"));
        assert_eq!(decode_error(&overrun).code(), ErrorCode::BadMatchBadLen);
    }
}
