//! Meters: the meter mod (1.3.5 section 7.3.4.4) and their statistics (7.3.5.12 to 7.3.5.14).

use crate::{
    DecodeError, EncodeError, ErrorCode, List, MeterBand, MeterConfig, MeterFeatures, MeterFlags,
    MeterMod, MeterStats, Put, Reader, Structure, Version,
};

const OFPMBT_DROP: u16 = 1;
const OFPMBT_DSCP_REMARK: u16 = 2;
const OFPMBT_EXPERIMENTER: u16 = 0xffff;

/// The size of every band, and the minimum size of an experimenter's.
const BAND_SIZE: usize = 16;
/// The size of `ofp_meter_stats` without bands.
const STATS_MIN_SIZE: usize = 40;
/// The size of `ofp_meter_config` without bands.
const CONFIG_MIN_SIZE: usize = 8;

pub(crate) fn decode_mod<'a>(reader: &mut Reader<'a>) -> Result<MeterMod<'a>, DecodeError> {
    Ok(MeterMod {
        command: reader.u16()?.into(),
        flags: MeterFlags::from_bits_retain(reader.u16()?),
        meter_id: reader.u32()?,
        bands: List::decode(Version::Of13, reader)?,
    })
}

pub(crate) fn decode_band<'a>(reader: &mut Reader<'a>) -> Result<MeterBand<'a>, DecodeError> {
    let mut body = reader.sized(2, BAND_SIZE, Structure::MeterBand)?;
    let band_type = body.u16()?;
    body.skip(2)?;
    let rate = body.u32()?;
    let burst_size = body.u32()?;
    let (band, padding) = match band_type {
        OFPMBT_DROP => (MeterBand::Drop { rate, burst_size }, 4),
        OFPMBT_DSCP_REMARK => {
            let prec_level = body.u8()?;
            let band = MeterBand::DscpRemark {
                rate,
                burst_size,
                prec_level,
            };
            (band, 3)
        }
        OFPMBT_EXPERIMENTER => {
            let band = MeterBand::Experimenter {
                rate,
                burst_size,
                experimenter: body.u32()?,
                data: body.rest(),
            };
            (band, 0)
        }
        other => return Err(unknown_type(other)),
    };
    body.skip(padding)?;
    body.finish()?;
    Ok(band)
}

fn unknown_type(band_type: u16) -> DecodeError {
    DecodeError::BadValue {
        what: "type of the meter band",
        value: band_type.into(),
        expected: "one of OFPMBT_*",
        code: ErrorCode::MeterModFailedBadBand,
    }
}

pub(crate) fn decode_stats<'a>(reader: &mut Reader<'a>) -> Result<MeterStats<'a>, DecodeError> {
    let mut body = reader.sized(4, STATS_MIN_SIZE, Structure::MeterStats)?;
    let meter_id = body.u32()?;
    body.skip(8)?;
    Ok(MeterStats {
        meter_id,
        flow_count: body.u32()?,
        packet_in_count: body.u64()?,
        byte_in_count: body.u64()?,
        duration_sec: body.u32()?,
        duration_nsec: body.u32()?,
        bands: List::decode(Version::Of13, &mut body)?,
    })
}

pub(crate) fn decode_config<'a>(reader: &mut Reader<'a>) -> Result<MeterConfig<'a>, DecodeError> {
    let mut body = reader.sized(0, CONFIG_MIN_SIZE, Structure::MeterConfig)?;
    body.skip(2)?;
    Ok(MeterConfig {
        flags: MeterFlags::from_bits_retain(body.u16()?),
        meter_id: body.u32()?,
        bands: List::decode(Version::Of13, &mut body)?,
    })
}

pub(crate) fn decode_features(reader: &mut Reader) -> Result<MeterFeatures, DecodeError> {
    let features = MeterFeatures {
        max_meter: reader.u32()?,
        band_types: reader.u32()?,
        capabilities: reader.u32()?,
        max_bands: reader.u8()?,
        max_color: reader.u8()?,
    };
    reader.skip(2)?;
    Ok(features)
}

pub(crate) fn encode_mod(meter_mod: &MeterMod, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.put_u16(meter_mod.command.into());
    out.put_u16(meter_mod.flags.bits());
    out.put_u32(meter_mod.meter_id);
    meter_mod.bands.encode(Version::Of13, out)
}

pub(crate) fn encode_band(band: &MeterBand, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    match *band {
        MeterBand::Drop { rate, burst_size } => {
            put_band_header(OFPMBT_DROP, rate, burst_size, out);
            out.put_zeros(4);
        }
        MeterBand::DscpRemark {
            rate,
            burst_size,
            prec_level,
        } => {
            put_band_header(OFPMBT_DSCP_REMARK, rate, burst_size, out);
            out.put_u8(prec_level);
            out.put_zeros(3);
        }
        MeterBand::Experimenter {
            rate,
            burst_size,
            experimenter,
            data,
        } => {
            put_band_header(OFPMBT_EXPERIMENTER, rate, burst_size, out);
            out.put_u32(experimenter);
            out.put(data);
        }
    }
    out.set_length(start + 2, start, "meter band")
}

fn put_band_header(band_type: u16, rate: u32, burst_size: u32, out: &mut Vec<u8>) {
    out.put_u16(band_type);
    out.put_u16(0);
    out.put_u32(rate);
    out.put_u32(burst_size);
}

pub(crate) fn encode_stats(stats: &MeterStats, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    out.put_u32(stats.meter_id);
    out.put_zeros(8);
    out.put_u32(stats.flow_count);
    out.put_u64(stats.packet_in_count);
    out.put_u64(stats.byte_in_count);
    out.put_u32(stats.duration_sec);
    out.put_u32(stats.duration_nsec);
    stats.bands.encode(Version::Of13, out)?;
    out.set_length(start + 4, start, "meter stats")
}

pub(crate) fn encode_config(config: &MeterConfig, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    out.put_u16(0);
    out.put_u16(config.flags.bits());
    out.put_u32(config.meter_id);
    config.bands.encode(Version::Of13, out)?;
    out.set_length(start, start, "meter configuration")
}

pub(crate) fn encode_features(features: &MeterFeatures, out: &mut Vec<u8>) {
    out.put_u32(features.max_meter);
    out.put_u32(features.band_types);
    out.put_u32(features.capabilities);
    out.put(&[features.max_bands, features.max_color]);
    out.put_zeros(2);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of13::golden::{decode_element, element, frame, hex, message};
    use crate::{
        BucketCounter, Message, MeterModCommand, MultipartFlags, MultipartReply, MultipartReplyBody,
    };

    const DROP: &str = "0001 0010 000003e8 00000064 00000000";

    fn drop_band() -> MeterBand<'static> {
        MeterBand::Drop {
            rate: 1000,
            burst_size: 100,
        }
    }

    #[track_caller]
    fn code(bytes: &str) -> ErrorCode {
        decode_element::<MeterBand>(&hex(bytes)).unwrap_err().code()
    }

    #[test]
    fn every_band_both_ways() {
        element(&hex(DROP), drop_band());
        let remark = MeterBand::DscpRemark {
            rate: 1000,
            burst_size: 100,
            prec_level: 2,
        };
        element(&hex("0002 0010 000003e8 00000064 02 000000"), remark);
        let experimenter = MeterBand::Experimenter {
            rate: 1000,
            burst_size: 100,
            experimenter: 9,
            data: &[1, 2, 3],
        };
        element(
            &hex("ffff 0013 000003e8 00000064 00000009 010203"),
            experimenter,
        );
    }

    #[test]
    fn bad_bands_are_errors() {
        for length in ["0000", "000c", "0011"] {
            let bytes = format!("0001 {length} {}", &DROP[9..]);
            assert_eq!(code(&bytes), ErrorCode::BadRequestBadLen, "{length}");
        }
        let unknown = "0003 0010 000003e8 00000064 00000000";
        assert_eq!(code(unknown), ErrorCode::MeterModFailedBadBand);
    }

    #[test]
    fn meter_mods_both_ways() {
        let meter_mod = MeterMod {
            command: MeterModCommand::Add,
            flags: MeterFlags::KBPS | MeterFlags::BURST,
            meter_id: 3,
            bands: vec![drop_band()].into(),
        };
        let bytes = frame(29, &format!("0000 0005 00000003 {DROP}"));
        message(&bytes, &Message::MeterMod(meter_mod));
    }

    #[test]
    fn stats_both_ways() {
        let stats = MeterStats {
            meter_id: 1,
            flow_count: 2,
            packet_in_count: 3,
            byte_in_count: 4,
            duration_sec: 5,
            duration_nsec: 6,
            bands: vec![BucketCounter {
                packet_count: 7,
                byte_count: 8,
            }]
            .into(),
        };
        let bytes = hex(
            "00000001 0038 000000000000 00000002 0000000000000003 0000000000000004
                         00000005 00000006 0000000000000007 0000000000000008",
        );
        element(&bytes, stats);
    }

    #[test]
    fn configurations_both_ways() {
        let config = MeterConfig {
            flags: MeterFlags::PKTPS,
            meter_id: 3,
            bands: vec![drop_band()].into(),
        };
        element(&hex(&format!("0018 0002 00000003 {DROP}")), config);
    }

    #[test]
    fn features_both_ways() {
        let reply = MultipartReply {
            flags: MultipartFlags::empty(),
            body: MultipartReplyBody::MeterFeatures(MeterFeatures {
                max_meter: 1,
                band_types: 6,
                capabilities: 0xf,
                max_bands: 4,
                max_color: 5,
            }),
        };
        let bytes = frame(
            19,
            "000b 0000 00000000 00000001 00000006 0000000f 04 05 0000",
        );
        message(&bytes, &Message::MultipartReply(reply));
    }
}
