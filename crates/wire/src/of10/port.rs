//! Ports: their numbers, `ofp_phy_port` (section 5.2.1), port status (5.4.3) and port mod (5.3.3).

use super::{lacks, unsupported};
use crate::port::FixedName;
use crate::{
    DecodeError, EncodeError, MacAddr, Port, PortConfig, PortFeatures, PortMod, PortNo, PortState,
    PortStatus, Put, Reader, Version,
};

/// The lowest of 1.0's reserved numbers (OFPP_IN_PORT). They are 1.3's numbers truncated to 16 bits; OFPP_NONE is 1.3's
/// OFPP_ANY.
const FIRST_RESERVED: u16 = 0xfff8;

/// Returns the port with this number in 1.0. Numbers below the reserved ones are unchanged.
#[inline]
pub(crate) fn decode_number(number: u16) -> PortNo {
    match number {
        FIRST_RESERVED.. => PortNo(0xffff_0000 | u32::from(number)),
        _ => PortNo(number.into()),
    }
}

/// Returns the port's number in 1.0; `what` names the field for which it is.
///
/// # Errors
/// [`EncodeError::OutOfRange`] if the number needs more than 16 bits, or is that of a reserved port in 16 bits.
#[inline]
pub(crate) fn encode_number(port: PortNo, what: &'static str) -> Result<u16, EncodeError> {
    let number = port.0 as u16;
    if decode_number(number) == port {
        return Ok(number);
    }
    Err(EncodeError::OutOfRange {
        version: Version::Of10,
        what,
        value: port.0.into(),
        bits: u16::BITS,
    })
}

/// The last bit (OFPPF_10GB_FD) up to which both versions have the same feature numbers.
const COMMON_FEATURES: u32 = 0x7f;
/// 1.3 has inserted OFPPF_40GB_FD, OFPPF_100GB_FD, OFPPF_1TB_FD and OFPPF_OTHER before OFPPF_COPPER.
const FEATURES_SHIFT: u32 = 4;

fn decode_features(bits: u32) -> PortFeatures {
    let moved = (bits & !COMMON_FEATURES) << FEATURES_SHIFT;
    PortFeatures::from_bits_retain(bits & COMMON_FEATURES | moved)
}

fn encode_features(features: PortFeatures) -> Result<u32, EncodeError> {
    let lacking = [
        (PortFeatures::FD_40GB, "the port feature OFPPF_40GB_FD"),
        (PortFeatures::FD_100GB, "the port feature OFPPF_100GB_FD"),
        (PortFeatures::FD_1TB, "the port feature OFPPF_1TB_FD"),
        (PortFeatures::OTHER, "the port feature OFPPF_OTHER"),
    ];
    for (feature, what) in lacking {
        lacks(what, features.contains(feature), false)?;
    }
    let moved = features.bits() >> FEATURES_SHIFT & !COMMON_FEATURES;
    Ok(features.bits() & COMMON_FEATURES | moved)
}

/// Decodes the state. Bits that 1.0 does not define must not become states that only 1.3 has.
fn decode_state(bits: u32) -> PortState {
    PortState::from_bits_retain(bits) - (PortState::BLOCKED | PortState::LIVE)
}

fn encode_state(state: PortState) -> Result<u32, EncodeError> {
    if state.contains(PortState::BLOCKED) {
        return Err(unsupported("the port state OFPPS_BLOCKED"));
    }
    if state.contains(PortState::LIVE) {
        return Err(unsupported("the port state OFPPS_LIVE"));
    }
    Ok(state.bits())
}

pub(crate) fn decode(reader: &mut Reader) -> Result<Port, DecodeError> {
    Ok(Port {
        port_no: decode_number(reader.u16()?),
        hw_addr: MacAddr::new(reader.array()?),
        name: FixedName(reader.array()?),
        config: PortConfig::from_bits_retain(reader.u32()?),
        state: decode_state(reader.u32()?),
        curr: decode_features(reader.u32()?),
        advertised: decode_features(reader.u32()?),
        supported: decode_features(reader.u32()?),
        peer: decode_features(reader.u32()?),
        curr_speed: 0,
        max_speed: 0,
    })
}

pub(crate) fn encode(port: &Port, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    lacks("the port's curr_speed", port.curr_speed, 0)?;
    lacks("the port's max_speed", port.max_speed, 0)?;
    out.put_u16(encode_number(port.port_no, "port_no of a port")?);
    out.put(&port.hw_addr.octets());
    out.put(&port.name.0);
    out.put_u32(port.config.bits());
    out.put_u32(encode_state(port.state)?);
    for features in [port.curr, port.advertised, port.supported, port.peer] {
        out.put_u32(encode_features(features)?);
    }
    Ok(())
}

pub(super) fn decode_status(reader: &mut Reader) -> Result<PortStatus, DecodeError> {
    let reason = reader.u8()?.into();
    reader.skip(7)?;
    let port = decode(reader)?;
    Ok(PortStatus { reason, port })
}

pub(super) fn encode_status(status: &PortStatus, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.put_u8(status.reason.into());
    out.put_zeros(7);
    encode(&status.port, out)
}

pub(super) fn decode_mod(reader: &mut Reader) -> Result<PortMod, DecodeError> {
    let port_mod = PortMod {
        port_no: decode_number(reader.u16()?),
        hw_addr: MacAddr::new(reader.array()?),
        config: PortConfig::from_bits_retain(reader.u32()?),
        mask: PortConfig::from_bits_retain(reader.u32()?),
        advertise: decode_features(reader.u32()?),
    };
    reader.skip(4)?;
    Ok(port_mod)
}

pub(super) fn encode_mod(port_mod: &PortMod, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.put_u16(encode_number(port_mod.port_no, "port_no of a port mod")?);
    out.put(&port_mod.hw_addr.octets());
    out.put_u32(port_mod.config.bits());
    out.put_u32(port_mod.mask.bits());
    out.put_u32(encode_features(port_mod.advertise)?);
    out.put_zeros(4);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of10::golden;
    use crate::{Message, PortReason};

    const PORT: [u8; 48] = [
        0xff, 0xfe, // port_no OFPP_LOCAL
        0x02, 0x00, 0x00, 0x00, 0x00, 0x0a, // hw_addr
        b'e', b't', b'h', b'1', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // name
        0x00, 0x00, 0x00, 0x11, // config OFPPC_PORT_DOWN, OFPPC_NO_FLOOD
        0x00, 0x00, 0x03, 0x01, // state OFPPS_LINK_DOWN, OFPPS_STP_BLOCK
        0x00, 0x00, 0x00, 0xc0, // curr OFPPF_10GB_FD, OFPPF_COPPER
        0x00, 0x00, 0x01, 0x00, // advertised OFPPF_FIBER
        0x00, 0x00, 0x0c, 0x01, // supported OFPPF_10MB_HD, OFPPF_PAUSE, OFPPF_PAUSE_ASYM
        0x00, 0x00, 0x02, 0x20, // peer OFPPF_1GB_FD, OFPPF_AUTONEG
    ];

    fn port() -> Port {
        Port {
            port_no: PortNo::LOCAL,
            hw_addr: MacAddr::new([2, 0, 0, 0, 0, 10]),
            name: FixedName::truncated("eth1"),
            config: PortConfig::PORT_DOWN | PortConfig::NO_FLOOD,
            state: PortState::LINK_DOWN | PortState::STP_LOW | PortState::STP_HIGH,
            curr: PortFeatures::FD_10GB | PortFeatures::COPPER,
            advertised: PortFeatures::FIBER,
            supported: PortFeatures::HD_10MB | PortFeatures::PAUSE | PortFeatures::PAUSE_ASYM,
            peer: PortFeatures::FD_1GB | PortFeatures::AUTONEG,
            curr_speed: 0,
            max_speed: 0,
        }
    }

    #[test]
    fn port_both_ways() {
        golden::element(&PORT, &port());
    }

    #[test]
    fn port_status_both_ways() {
        let mut bytes = vec![0x01, 12, 0, 64, 1, 2, 3, 4, 0x02, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend(PORT);
        let status = PortStatus {
            reason: PortReason::Modify,
            port: port(),
        };
        golden::message(&bytes, &Message::PortStatus(status));
    }

    #[test]
    fn port_mod_both_ways() {
        let bytes = [
            0x01, 15, 0, 32, 1, 2, 3, 4, // header
            0x00, 0x07, // port_no
            0x02, 0x00, 0x00, 0x00, 0x00, 0x0b, // hw_addr
            0x00, 0x00, 0x00, 0x20, // config OFPPC_NO_FWD
            0x00, 0x00, 0x00, 0x60, // mask OFPPC_NO_FWD, OFPPC_NO_PACKET_IN
            0x00, 0x00, 0x00, 0x84, // advertise OFPPF_100MB_HD, OFPPF_COPPER
            0x00, 0x00, 0x00, 0x00, // padding
        ];
        let port_mod = PortMod {
            port_no: PortNo(7),
            hw_addr: MacAddr::new([2, 0, 0, 0, 0, 11]),
            config: PortConfig::NO_FWD,
            mask: PortConfig::NO_FWD | PortConfig::NO_PACKET_IN,
            advertise: PortFeatures::HD_100MB | PortFeatures::COPPER,
        };
        golden::message(&bytes, &Message::PortMod(port_mod));
    }

    #[test]
    fn every_number_survives() {
        for number in 0..=u16::MAX {
            assert_eq!(encode_number(decode_number(number), "port"), Ok(number));
        }
    }

    #[test]
    fn reserved_numbers_are_those_of_1_3() {
        assert_eq!(decode_number(0xffff), PortNo::ANY);
        assert_eq!(decode_number(0xfffd), PortNo::CONTROLLER);
        assert_eq!(decode_number(0xfff8), PortNo::IN_PORT);
        assert_eq!(decode_number(0xff00), PortNo(0xff00));
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        for number in [0xfff8, 0xffff, 0x1_0000, 0xffff_ff00, 0xffff_fff7] {
            let error = encode_number(PortNo(number), "out_port").expect_err("does not fit");
            assert!(error.to_string().starts_with("the out_port is 0x"));
        }
    }

    #[test]
    fn refuses_parts_of_1_3_only() {
        let refused = |change: fn(&mut Port)| {
            let mut port = port();
            change(&mut port);
            golden::refused(&port)
        };
        assert_eq!(
            refused(|port| port.curr |= PortFeatures::FD_40GB),
            "OpenFlow 1.0 cannot express the port feature OFPPF_40GB_FD"
        );
        assert_eq!(
            refused(|port| port.state |= PortState::LIVE),
            "OpenFlow 1.0 cannot express the port state OFPPS_LIVE"
        );
        assert_eq!(
            refused(|port| port.max_speed = 1),
            "OpenFlow 1.0 cannot express the port's max_speed"
        );
    }
}
