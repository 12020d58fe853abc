//! The switch configuration, `ofp_switch_config` (1.3.5 section 7.3.2).

use crate::{ConfigFlags, DecodeError, Put, Reader, SwitchConfig};

pub(crate) fn decode(reader: &mut Reader) -> Result<SwitchConfig, DecodeError> {
    Ok(SwitchConfig {
        flags: ConfigFlags::from_bits_retain(reader.u16()?),
        miss_send_len: reader.u16()?,
    })
}

pub(crate) fn encode(config: &SwitchConfig, out: &mut Vec<u8>) {
    out.put_u16(config.flags.bits());
    out.put_u16(config.miss_send_len);
}

#[cfg(test)]
mod tests {
    use crate::of13::golden::{frame, message};
    use crate::{ConfigFlags, Message, SwitchConfig};

    #[test]
    fn get_and_set_both_ways() {
        let config = SwitchConfig {
            flags: ConfigFlags::FRAG_REASM,
            miss_send_len: 128,
        };
        message(&frame(8, "0002 0080"), &Message::GetConfigReply(config));
        message(&frame(9, "0002 0080"), &Message::SetConfig(config));
    }
}
