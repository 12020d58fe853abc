//! Packet-in, `ofp_packet_in` (section 5.4.1).

use super::{lacks, port, unsupported};
use crate::{BufferId, DecodeError, EncodeError, Field, Match, OxmField, PacketIn, Reader, Write};

/// The cookie where a packet-in tells none, as in all of 1.0.
const NO_COOKIE: u64 = u64::MAX;

/// Reads the body. On a controller's hottest path: one bounds check, no allocation.
#[inline]
pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Result<PacketIn<'a>, DecodeError> {
    let [b0, b1, b2, b3, l0, l1, p0, p1, reason, _padding] = reader.array()?;
    let in_port = port::decode_number(u16::from_be_bytes([p0, p1]));
    Ok(PacketIn {
        buffer_id: BufferId(u32::from_be_bytes([b0, b1, b2, b3])),
        total_len: u16::from_be_bytes([l0, l1]),
        reason: reason.into(),
        table_id: 0,
        cookie: NO_COOKIE,
        in_port,
        match_: Match::only_in_port(in_port),
        data: reader.rest(),
    })
}

pub(super) fn encode(packet_in: &PacketIn, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    lacks("the table_id of a packet-in", packet_in.table_id, 0)?;
    lacks("the cookie of a packet-in", packet_in.cookie, NO_COOKIE)?;
    check_match(packet_in)?;
    out.put_u32(packet_in.buffer_id.0);
    out.put_u16(packet_in.total_len);
    out.put_u16(port::encode_number(
        packet_in.in_port,
        "in_port of a packet-in",
    )?);
    out.put(&[packet_in.reason.into(), 0]);
    out.put(packet_in.data);
    Ok(())
}

/// The one pipeline field that 1.0 tells is the port.
fn check_match(packet_in: &PacketIn) -> Result<(), EncodeError> {
    let in_port = Field::exact(OxmField::InPort, packet_in.in_port.0.into());
    for field in packet_in.match_.fields() {
        match field.oxm_field() {
            Some(OxmField::InPort) => lacks("a second in_port of a packet-in", field, in_port)?,
            Some(other) => return Err(unsupported(other.phrases().in_match)),
            None => return Err(unsupported("a match field of an experimenter's class")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of10::golden;
    use crate::{Message, PacketInReason, PortNo};

    const PACKET_IN: [u8; 22] = [
        0x01, 10, 0, 22, 1, 2, 3, 4, // header
        0x00, 0x00, 0x01, 0x02, // buffer_id
        0x00, 0x52, // total_len
        0x00, 0x07, // in_port
        0x01, 0x00, // reason OFPR_ACTION, padding
        0xca, 0xfe, 0xba, 0xbe, // data
    ];

    fn packet_in() -> PacketIn<'static> {
        PacketIn {
            buffer_id: BufferId(0x102),
            total_len: 82,
            reason: PacketInReason::Action,
            table_id: 0,
            cookie: NO_COOKIE,
            in_port: PortNo(7),
            match_: Match::any().in_port(PortNo(7)),
            data: &[0xca, 0xfe, 0xba, 0xbe],
        }
    }

    #[test]
    fn packet_in_both_ways() {
        golden::message(&PACKET_IN, &Message::PacketIn(packet_in()));
    }

    #[test]
    fn too_short_is_an_error() {
        assert!(decode(&mut Reader::new(&PACKET_IN[8..17], "packet-in")).is_err());
    }

    #[test]
    fn what_only_1_3_has_is_refused() {
        let refused = |change: fn(&mut PacketIn)| {
            let mut packet_in = packet_in();
            change(&mut packet_in);
            golden::refused_message(&Message::PacketIn(packet_in))
        };
        assert_eq!(
            refused(|packet_in| packet_in.cookie = 1),
            "OpenFlow 1.0 cannot express the cookie of a packet-in"
        );
        assert_eq!(
            refused(|packet_in| packet_in.match_ = Match::any().eth_type(0x800)),
            "OpenFlow 1.0 cannot express the match field eth_type"
        );
        assert_eq!(
            refused(|packet_in| packet_in.match_ = Match::any().in_port(PortNo(8))),
            "OpenFlow 1.0 cannot express a second in_port of a packet-in"
        );
    }
}
