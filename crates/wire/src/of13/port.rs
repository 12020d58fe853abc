//! Ports: description (1.3.5 section 7.2.1), port mod (7.3.4.3), port-status (7.4.3), and statistics (7.3.5.6).
//!
//! Decoding a description keeps undefined bits. A port mod may only have bits that 1.3 defines, since it requests a change.

use super::lacks;
use crate::port::FixedName;
use crate::{
    DecodeError, EncodeError, ErrorCode, MacAddr, Port, PortConfig, PortFeatures, PortMod, PortNo,
    PortState, PortStats, PortStatus, Put, Reader,
};

/// Bits of `ofp_port_config` that only 1.0 has.
const ONLY_1_0: PortConfig = PortConfig::NO_STP
    .union(PortConfig::NO_RECV_STP)
    .union(PortConfig::NO_FLOOD);

pub(crate) fn decode(reader: &mut Reader) -> Result<Port, DecodeError> {
    let port_no = PortNo(reader.u32()?);
    reader.skip(4)?;
    let hw_addr = MacAddr::new(reader.array()?);
    reader.skip(2)?;
    Ok(Port {
        port_no,
        hw_addr,
        name: FixedName(reader.array()?),
        config: PortConfig::from_bits_retain(reader.u32()?),
        state: PortState::from_bits_retain(reader.u32()?),
        curr: decode_features(reader)?,
        advertised: decode_features(reader)?,
        supported: decode_features(reader)?,
        peer: decode_features(reader)?,
        curr_speed: reader.u32()?,
        max_speed: reader.u32()?,
    })
}

fn decode_features(reader: &mut Reader) -> Result<PortFeatures, DecodeError> {
    reader.u32().map(PortFeatures::from_bits_retain)
}

pub(crate) fn decode_status(reader: &mut Reader) -> Result<PortStatus, DecodeError> {
    let reason = reader.u8()?.into();
    reader.skip(7)?;
    Ok(PortStatus {
        reason,
        port: decode(reader)?,
    })
}

pub(crate) fn decode_mod(reader: &mut Reader) -> Result<PortMod, DecodeError> {
    let port_no = PortNo(reader.u32()?);
    reader.skip(4)?;
    let hw_addr = MacAddr::new(reader.array()?);
    reader.skip(2)?;
    let port_mod = PortMod {
        port_no,
        hw_addr,
        config: decode_config(reader)?,
        mask: decode_config(reader)?,
        advertise: decode_features(reader)?,
    };
    reader.skip(4)?;
    Ok(port_mod)
}

fn decode_config(reader: &mut Reader) -> Result<PortConfig, DecodeError> {
    let config = PortConfig::from_bits_retain(reader.u32()?);
    if !config.intersects(ONLY_1_0) {
        return Ok(config);
    }
    Err(DecodeError::BadValue {
        what: "configuration in the port mod",
        value: config.bits().into(),
        expected: "bits of ofp_port_config",
        code: ErrorCode::PortModFailedBadConfig,
    })
}

pub(crate) fn decode_stats(reader: &mut Reader) -> Result<PortStats, DecodeError> {
    let port_no = PortNo(reader.u32()?);
    reader.skip(4)?;
    Ok(PortStats {
        port_no,
        rx_packets: reader.u64()?,
        tx_packets: reader.u64()?,
        rx_bytes: reader.u64()?,
        tx_bytes: reader.u64()?,
        rx_dropped: reader.u64()?,
        tx_dropped: reader.u64()?,
        rx_errors: reader.u64()?,
        tx_errors: reader.u64()?,
        rx_frame_err: reader.u64()?,
        rx_over_err: reader.u64()?,
        rx_crc_err: reader.u64()?,
        collisions: reader.u64()?,
        duration_sec: reader.u32()?,
        duration_nsec: reader.u32()?,
    })
}

pub(crate) fn encode(port: &Port, out: &mut Vec<u8>) {
    out.put_u32(port.port_no.0);
    out.put_zeros(4);
    out.put(&port.hw_addr.octets());
    out.put_zeros(2);
    out.put(&port.name.0);
    out.put_u32(port.config.bits());
    out.put_u32(port.state.bits());
    for features in [port.curr, port.advertised, port.supported, port.peer] {
        out.put_u32(features.bits());
    }
    out.put_u32(port.curr_speed);
    out.put_u32(port.max_speed);
}

pub(crate) fn encode_status(status: &PortStatus, out: &mut Vec<u8>) {
    out.put_u8(status.reason.into());
    out.put_zeros(7);
    encode(&status.port, out);
}

pub(crate) fn encode_mod(port_mod: &PortMod, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let config = port_mod.config | port_mod.mask;
    lacks("OFPPC_NO_STP", config.contains(PortConfig::NO_STP), false)?;
    lacks(
        "OFPPC_NO_RECV_STP",
        config.contains(PortConfig::NO_RECV_STP),
        false,
    )?;
    lacks(
        "OFPPC_NO_FLOOD",
        config.contains(PortConfig::NO_FLOOD),
        false,
    )?;
    out.put_u32(port_mod.port_no.0);
    out.put_zeros(4);
    out.put(&port_mod.hw_addr.octets());
    out.put_zeros(2);
    out.put_u32(port_mod.config.bits());
    out.put_u32(port_mod.mask.bits());
    out.put_u32(port_mod.advertise.bits());
    out.put_zeros(4);
    Ok(())
}

pub(crate) fn encode_stats(stats: &PortStats, out: &mut Vec<u8>) {
    out.put_u32(stats.port_no.0);
    out.put_zeros(4);
    for counter in [
        stats.rx_packets,
        stats.tx_packets,
        stats.rx_bytes,
        stats.tx_bytes,
        stats.rx_dropped,
        stats.tx_dropped,
        stats.rx_errors,
        stats.tx_errors,
        stats.rx_frame_err,
        stats.rx_over_err,
        stats.rx_crc_err,
        stats.collisions,
    ] {
        out.put_u64(counter);
    }
    out.put_u32(stats.duration_sec);
    out.put_u32(stats.duration_nsec);
}

#[cfg(test)]
mod tests {
    use super::super::unsupported;
    use super::*;
    use crate::of13::golden::{decode_error, element, frame, hex, message, refused_message};
    use crate::{Message, PortReason};

    const PORT: &str = "00000001 00000000 020000000001 0000 7331 2d65746831 000000000000000000
        00000001 00000004 00000820 00000001 00000002 00000003 000f4240 00989680";

    fn port() -> Port {
        Port {
            port_no: PortNo(1),
            hw_addr: MacAddr::new([2, 0, 0, 0, 0, 1]),
            name: FixedName::truncated("s1-eth1"),
            config: PortConfig::PORT_DOWN,
            state: PortState::LIVE,
            curr: PortFeatures::FD_1GB | PortFeatures::COPPER,
            advertised: PortFeatures::HD_10MB,
            supported: PortFeatures::FD_10MB,
            peer: PortFeatures::HD_10MB | PortFeatures::FD_10MB,
            curr_speed: 1_000_000,
            max_speed: 10_000_000,
        }
    }

    fn port_mod() -> PortMod {
        PortMod {
            port_no: PortNo(1),
            hw_addr: MacAddr::new([2, 0, 0, 0, 0, 1]),
            config: PortConfig::PORT_DOWN,
            mask: PortConfig::PORT_DOWN | PortConfig::NO_PACKET_IN,
            advertise: PortFeatures::FD_1GB,
        }
    }

    #[test]
    fn descriptions_both_ways() {
        element(&hex(PORT), port());
    }

    #[test]
    fn status_both_ways() {
        let status = PortStatus {
            reason: PortReason::Modify,
            port: port(),
        };
        let bytes = frame(12, &format!("02 00000000000000 {PORT}"));
        message(&bytes, &Message::PortStatus(status));
    }

    #[test]
    fn port_mods_both_ways() {
        let bytes = frame(
            16,
            "00000001 00000000 020000000001 0000 00000001 00000041 00000020 00000000",
        );
        message(&bytes, &Message::PortMod(port_mod()));
    }

    #[test]
    fn refuses_no_flood_of_1_0() {
        let no_flood = PortMod {
            mask: PortConfig::NO_FLOOD,
            ..port_mod()
        };
        assert_eq!(
            refused_message(&Message::PortMod(no_flood)),
            unsupported("OFPPC_NO_FLOOD")
        );
        let bytes = frame(
            16,
            "00000001 00000000 020000000001 0000 00000000 00000010 00000020 00000000",
        );
        assert_eq!(
            decode_error(&bytes).code(),
            ErrorCode::PortModFailedBadConfig
        );
    }

    #[test]
    fn stats_both_ways() {
        let stats = PortStats {
            port_no: PortNo(1),
            rx_packets: 1,
            tx_packets: 2,
            rx_bytes: 3,
            tx_bytes: 4,
            rx_dropped: 5,
            tx_dropped: 6,
            rx_errors: 7,
            tx_errors: 8,
            rx_frame_err: 9,
            rx_over_err: 10,
            rx_crc_err: 11,
            collisions: 12,
            duration_sec: 13,
            duration_nsec: 14,
        };
        let bytes = hex("00000001 00000000
                         0000000000000001 0000000000000002 0000000000000003 0000000000000004
                         0000000000000005 0000000000000006 0000000000000007 0000000000000008
                         0000000000000009 000000000000000a 000000000000000b 000000000000000c
                         0000000d 0000000e");
        element(&bytes, stats);
    }
}
