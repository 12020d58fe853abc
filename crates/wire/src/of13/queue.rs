//! Queues: configuration (1.3.5 sections 7.2.2 and 7.3.6) and statistics (7.3.5.8).

use super::unsupported;
use crate::{
    DecodeError, EncodeError, List, PacketQueue, PortNo, Put, QueueConfig, QueueProperty,
    QueueStats, Reader, Structure, Version,
};

const OFPQT_MIN_RATE: u16 = 1;
const OFPQT_MAX_RATE: u16 = 2;
const OFPQT_EXPERIMENTER: u16 = 0xffff;

/// The size of `ofp_packet_queue` without properties.
const QUEUE_MIN_SIZE: usize = 16;
/// The size of `ofp_queue_prop_header`.
const PROPERTY_MIN_SIZE: usize = 8;

pub(crate) fn decode_config_request(reader: &mut Reader) -> Result<PortNo, DecodeError> {
    let port = PortNo(reader.u32()?);
    reader.skip(4)?;
    Ok(port)
}

pub(crate) fn decode_config<'a>(reader: &mut Reader<'a>) -> Result<QueueConfig<'a>, DecodeError> {
    Ok(QueueConfig {
        port: decode_config_request(reader)?,
        queues: List::decode(Version::Of13, reader)?,
    })
}

pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Result<PacketQueue<'a>, DecodeError> {
    let mut body = reader.sized(8, QUEUE_MIN_SIZE, Structure::Queue)?;
    let queue_id = body.u32()?;
    let port = PortNo(body.u32()?);
    body.skip(8)?;
    Ok(PacketQueue {
        queue_id,
        port,
        properties: List::decode(Version::Of13, &mut body)?,
    })
}

pub(crate) fn decode_property<'a>(
    reader: &mut Reader<'a>,
) -> Result<QueueProperty<'a>, DecodeError> {
    let mut body = reader.sized(2, PROPERTY_MIN_SIZE, Structure::QueueProperty)?;
    let property = body.u16()?;
    body.skip(6)?;
    let decoded = match property {
        OFPQT_MIN_RATE => QueueProperty::MinRate(decode_rate(&mut body)?),
        OFPQT_MAX_RATE => QueueProperty::MaxRate(decode_rate(&mut body)?),
        OFPQT_EXPERIMENTER => decode_experimenter(&mut body)?,
        property => QueueProperty::Other {
            property,
            data: body.rest(),
        },
    };
    body.finish()?;
    Ok(decoded)
}

fn decode_rate(body: &mut Reader) -> Result<u16, DecodeError> {
    let rate = body.u16()?;
    body.skip(6)?;
    Ok(rate)
}

fn decode_experimenter<'a>(body: &mut Reader<'a>) -> Result<QueueProperty<'a>, DecodeError> {
    let experimenter = body.u32()?;
    body.skip(4)?;
    Ok(QueueProperty::Experimenter {
        experimenter,
        data: body.rest(),
    })
}

pub(crate) fn decode_stats(reader: &mut Reader) -> Result<QueueStats, DecodeError> {
    Ok(QueueStats {
        port_no: PortNo(reader.u32()?),
        queue_id: reader.u32()?,
        tx_bytes: reader.u64()?,
        tx_packets: reader.u64()?,
        tx_errors: reader.u64()?,
        duration_sec: reader.u32()?,
        duration_nsec: reader.u32()?,
    })
}

pub(crate) fn encode_config_request(port: PortNo, out: &mut Vec<u8>) {
    out.put_u32(port.0);
    out.put_zeros(4);
}

pub(crate) fn encode_config(config: &QueueConfig, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    encode_config_request(config.port, out);
    config.queues.encode(Version::Of13, out)
}

pub(crate) fn encode(queue: &PacketQueue, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    out.put_u32(queue.queue_id);
    out.put_u32(queue.port.0);
    out.put_zeros(8);
    queue.properties.encode(Version::Of13, out)?;
    out.set_length(start + 8, start, "queue")
}

pub(crate) fn encode_property(
    property: &QueueProperty,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let start = out.len();
    out.put_u16(property_type(property)?);
    out.put_zeros(6);
    match *property {
        QueueProperty::MinRate(rate) | QueueProperty::MaxRate(rate) => {
            out.put_u16(rate);
            out.put_zeros(6);
        }
        QueueProperty::Experimenter { experimenter, data } => {
            out.put_u32(experimenter);
            out.put_zeros(4);
            out.put(data);
        }
        QueueProperty::Other { data, .. } => out.put(data),
        QueueProperty::None => {}
    }
    out.set_length(start + 2, start, "queue property")
}

fn property_type(property: &QueueProperty) -> Result<u16, EncodeError> {
    match *property {
        QueueProperty::None => Err(unsupported("OFPQT_NONE")),
        QueueProperty::MinRate(_) => Ok(OFPQT_MIN_RATE),
        QueueProperty::MaxRate(_) => Ok(OFPQT_MAX_RATE),
        QueueProperty::Experimenter { .. } => Ok(OFPQT_EXPERIMENTER),
        // These numbers are other properties in 1.0.
        QueueProperty::Other {
            property: OFPQT_MIN_RATE | OFPQT_MAX_RATE | OFPQT_EXPERIMENTER,
            ..
        } => Err(unsupported("a queue property with the number of another")),
        QueueProperty::Other { property, .. } => Ok(property),
    }
}

pub(crate) fn encode_stats(stats: &QueueStats, out: &mut Vec<u8>) {
    out.put_u32(stats.port_no.0);
    out.put_u32(stats.queue_id);
    out.put_u64(stats.tx_bytes);
    out.put_u64(stats.tx_packets);
    out.put_u64(stats.tx_errors);
    out.put_u32(stats.duration_sec);
    out.put_u32(stats.duration_nsec);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;
    use crate::of13::golden::{decode_element, element, frame, hex, message, refused};

    #[test]
    fn every_property_both_ways() {
        element(
            &hex("0001 0010 00000000 0064 000000000000"),
            QueueProperty::MinRate(100),
        );
        element(
            &hex("0002 0010 00000000 01f4 000000000000"),
            QueueProperty::MaxRate(500),
        );
        element(
            &hex("ffff 0012 00000000 00002320 00000000 0102"),
            QueueProperty::Experimenter {
                experimenter: 0x2320,
                data: &[1, 2],
            },
        );
        element(
            &hex("0009 000a 00000000 0102"),
            QueueProperty::Other {
                property: 9,
                data: &[1, 2],
            },
        );
    }

    #[test]
    fn refuses_parts_of_1_0_only() {
        assert_eq!(refused(QueueProperty::None), unsupported("OFPQT_NONE"));
        let other = QueueProperty::Other {
            property: OFPQT_MAX_RATE,
            data: &[],
        };
        assert_eq!(
            refused(other),
            unsupported("a queue property with the number of another")
        );
    }

    #[test]
    fn bad_properties_are_errors() {
        for bytes in [
            "0001 0000 00000000 0064 000000000000",
            "0001 0008 00000000",
            "0001 0018 00000000 0064 000000000000",
            "0001 0011 00000000 0064 000000000000 00",
            "ffff 000c 00000000 00002320",
        ] {
            assert!(
                decode_element::<QueueProperty>(&hex(bytes)).is_err(),
                "{bytes}"
            );
        }
    }

    #[test]
    fn configuration_both_ways() {
        message(
            &frame(22, "00000003 00000000"),
            &Message::QueueGetConfigRequest(PortNo(3)),
        );
        let queue = PacketQueue {
            queue_id: 1,
            port: PortNo(3),
            properties: vec![QueueProperty::MinRate(100)].into(),
        };
        let config = QueueConfig {
            port: PortNo(3),
            queues: vec![queue].into(),
        };
        let bytes = frame(
            23,
            "00000003 00000000
             00000001 00000003 0020 000000000000 0001 0010 00000000 0064 000000000000",
        );
        message(&bytes, &Message::QueueGetConfigReply(config));
    }

    #[test]
    fn stats_both_ways() {
        let stats = QueueStats {
            port_no: PortNo(1),
            queue_id: 2,
            tx_bytes: 3,
            tx_packets: 4,
            tx_errors: 5,
            duration_sec: 6,
            duration_nsec: 7,
        };
        let bytes = hex(
            "00000001 00000002 0000000000000003 0000000000000004 0000000000000005
                         00000006 00000007",
        );
        element(&bytes, stats);
    }
}
