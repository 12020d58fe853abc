//! The packet-out (1.3.5 section 7.3.7).

use crate::{BufferId, DecodeError, EncodeError, List, PacketOut, PortNo, Put, Reader, Version};

pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Result<PacketOut<'a>, DecodeError> {
    let buffer_id = BufferId(reader.u32()?);
    let in_port = PortNo(reader.u32()?);
    let actions_len = reader.u16()?;
    reader.skip(6)?;
    let mut actions = reader.nested(actions_len.into(), reader.what())?;
    Ok(PacketOut {
        buffer_id,
        in_port,
        actions: List::decode(Version::Of13, &mut actions)?,
        data: reader.rest(),
    })
}

pub(crate) fn encode(packet_out: &PacketOut, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.put_u32(packet_out.buffer_id.0);
    out.put_u32(packet_out.in_port.0);
    let actions_len = out.len();
    out.put_zeros(8);
    let actions = out.len();
    packet_out.actions.encode(Version::Of13, out)?;
    out.set_length(actions_len, actions, "packet-out's action list")?;
    out.put(packet_out.data);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of13::golden::{decode_error, frame, message};
    use crate::{Action, ErrorCode, Message};

    #[test]
    fn with_and_without_data_both_ways() {
        let flood = [Action::output(PortNo::FLOOD)];
        let packet_out = PacketOut {
            buffer_id: BufferId::NONE,
            in_port: PortNo(5),
            actions: List::from(&flood),
            data: &[0xaa, 0xbb],
        };
        let bytes = frame(
            13,
            "ffffffff 00000005 0010 000000000000 0000 0010 fffffffb 0000 000000000000 aabb",
        );
        message(&bytes, &Message::PacketOut(packet_out));

        let dropped = PacketOut {
            buffer_id: BufferId(1),
            in_port: PortNo::CONTROLLER,
            actions: List::default(),
            data: &[],
        };
        let bytes = frame(13, "00000001 fffffffd 0000 000000000000");
        message(&bytes, &Message::PacketOut(dropped));
    }

    #[test]
    fn actions_beyond_the_message_are_errors() {
        let bytes = frame(13, "ffffffff 00000005 0010 000000000000 0016 0008 00000001");
        assert_eq!(decode_error(&bytes).code(), ErrorCode::BadRequestBadLen);
        let bytes = frame(13, "ffffffff 00000005 0004 000000000000 0016 0008 00000001");
        assert_eq!(decode_error(&bytes).code(), ErrorCode::BadActionBadLen);
    }
}
