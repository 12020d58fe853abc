//! Packet-in, `ofp_packet_in` (section 5.4.1).

use super::{lacks, port, unsupported};
use crate::{BufferId, DecodeError, EncodeError, Field, Match, OxmField, PacketIn, Put, Reader};

/// The cookie of packet-ins without one, such as all those of 1.0.
const NO_COOKIE: u64 = u64::MAX;

/// Decodes the body. This is on a controller's hottest path, and has one bounds check and no allocation.
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

/// Refuses pipeline fields other than the port, which packet-ins of 1.0 cannot have.
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
mod tests;
