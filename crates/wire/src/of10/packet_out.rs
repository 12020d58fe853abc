//! Packet-out, `ofp_packet_out` (section 5.3.6).

use super::{action, port};
use crate::{BufferId, DecodeError, EncodeError, PacketOut, Put, Reader, Structure, Version};

pub(super) fn decode<'a>(reader: &mut Reader<'a>) -> Result<PacketOut<'a>, DecodeError> {
    let buffer_id = BufferId(reader.u32()?);
    let in_port = port::decode_number(reader.u16()?);
    let actions_len = usize::from(reader.u16()?);
    let mut actions = reader.nested(actions_len, Structure::PacketOutActions)?;
    Ok(PacketOut {
        buffer_id,
        in_port,
        actions: action::decode_all(&mut actions)?,
        data: reader.rest(),
    })
}

pub(super) fn encode(packet_out: &PacketOut, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let in_port = port::encode_number(packet_out.in_port, "in_port of a packet-out")?;
    out.put_u32(packet_out.buffer_id.0);
    out.put_u16(in_port);
    let length_at = out.len();
    out.put_u16(0);
    packet_out.actions.encode(Version::Of10, out)?;
    out.set_length(length_at, length_at + 2, "packet-out's actions")?;
    out.put(packet_out.data);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of10::golden;
    use crate::{Action, List, Message, PortNo};

    const PACKET_OUT: [u8; 28] = [
        0x01, 13, 0, 28, 1, 2, 3, 4, // header
        0xff, 0xff, 0xff, 0xff, // buffer_id
        0xff, 0xff, // in_port OFPP_NONE
        0x00, 0x08, // actions_len
        0x00, 0x00, 0x00, 0x08, 0xff, 0xfb, 0x00, 0x00, // output FLOOD
        0xca, 0xfe, 0xba, 0xbe, // data
    ];

    #[test]
    fn packet_out_both_ways() {
        let actions = [Action::output(PortNo::FLOOD)];
        let packet_out = PacketOut {
            buffer_id: BufferId::NONE,
            in_port: PortNo::ANY,
            actions: List::from(&actions),
            data: &[0xca, 0xfe, 0xba, 0xbe],
        };
        golden::message(&PACKET_OUT, &Message::PacketOut(packet_out));
    }

    #[test]
    fn wrong_action_lengths_are_errors() {
        for length in [4, 7, 13, 16, 0xff] {
            let mut bytes = PACKET_OUT;
            bytes[15] = length;
            assert!(Message::decode(&bytes).is_err(), "actions_len {length}");
        }
    }
}
