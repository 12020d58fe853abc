//! Role (1.3.5 section 7.3.9) and asynchronous configuration (7.3.10).

use crate::{AsyncConfig, DecodeError, Put, Reader, Role};

pub(crate) fn decode(reader: &mut Reader) -> Result<Role, DecodeError> {
    let role = reader.u32()?.into();
    reader.skip(4)?;
    Ok(Role {
        role,
        generation_id: reader.u64()?,
    })
}

pub(crate) fn decode_async(reader: &mut Reader) -> Result<AsyncConfig, DecodeError> {
    Ok(AsyncConfig {
        packet_in_mask: [reader.u32()?, reader.u32()?],
        port_status_mask: [reader.u32()?, reader.u32()?],
        flow_removed_mask: [reader.u32()?, reader.u32()?],
    })
}

pub(crate) fn encode(role: &Role, out: &mut Vec<u8>) {
    out.put_u32(role.role.into());
    out.put_zeros(4);
    out.put_u64(role.generation_id);
}

pub(crate) fn encode_async(config: &AsyncConfig, out: &mut Vec<u8>) {
    let masks = [
        config.packet_in_mask,
        config.port_status_mask,
        config.flow_removed_mask,
    ];
    for mask in masks.as_flattened() {
        out.put_u32(*mask);
    }
}

#[cfg(test)]
mod tests {
    use crate::of13::golden::{frame, message};
    use crate::{AsyncConfig, ControllerRole, Message, Role};

    #[test]
    fn roles_both_ways() {
        let role = Role {
            role: ControllerRole::Master,
            generation_id: 9,
        };
        let body = "00000002 00000000 0000000000000009";
        message(&frame(24, body), &Message::RoleRequest(role));
        message(&frame(25, body), &Message::RoleReply(role));
    }

    #[test]
    fn asynchronous_configuration_both_ways() {
        let config = AsyncConfig {
            packet_in_mask: [7, 0],
            port_status_mask: [7, 6],
            flow_removed_mask: [15, 1],
        };
        let body = "00000007 00000000 00000007 00000006 0000000f 00000001";
        message(&frame(26, ""), &Message::GetAsyncRequest);
        message(&frame(27, body), &Message::GetAsyncReply(config));
        message(&frame(28, body), &Message::SetAsync(config));
    }
}
