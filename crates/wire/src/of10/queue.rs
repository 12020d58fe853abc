//! Queues: `ofp_packet_queue` and its properties (section 5.2.2), and their configuration (5.3.4).

use super::{port, unsupported};
use crate::{
    DecodeError, EncodeError, List, PacketQueue, PortNo, Put, QueueConfig, QueueProperty, Reader,
    Structure, Version,
};

/// Property types (`ofp_queue_properties`).
const OFPQT_NONE: u16 = 0;
const OFPQT_MIN_RATE: u16 = 1;

/// The size of `ofp_packet_queue` without properties.
const QUEUE_MIN_SIZE: usize = 8;
/// The size of `ofp_queue_prop_header`.
const PROPERTY_MIN_SIZE: usize = 8;

pub(super) fn decode_request(reader: &mut Reader) -> Result<PortNo, DecodeError> {
    let port = port::decode_number(reader.u16()?);
    reader.skip(2)?;
    Ok(port)
}

pub(super) fn encode_request(port: PortNo, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.put_u16(port::encode_number(port, "port of a queue request")?);
    out.put_zeros(2);
    Ok(())
}

pub(super) fn decode_config<'a>(reader: &mut Reader<'a>) -> Result<QueueConfig<'a>, DecodeError> {
    let port = port::decode_number(reader.u16()?);
    reader.skip(6)?;
    let queues = List::decode(Version::Of10, reader)?;
    Ok(QueueConfig { port, queues })
}

pub(super) fn encode_config(config: &QueueConfig, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.put_u16(port::encode_number(config.port, "port of a queue reply")?);
    out.put_zeros(6);
    config.queues.encode(Version::Of10, out)
}

pub(crate) fn decode<'a>(reader: &mut Reader<'a>) -> Result<PacketQueue<'a>, DecodeError> {
    let mut body = reader.sized_by_8(4, QUEUE_MIN_SIZE, Structure::Queue)?;
    let queue_id = body.u32()?;
    body.skip(4)?;
    Ok(PacketQueue {
        queue_id,
        port: PortNo::ANY,
        properties: List::decode(Version::Of10, &mut body)?,
    })
}

pub(crate) fn encode(queue: &PacketQueue, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if queue.port != PortNo::ANY {
        return Err(unsupported("the port of a queue in a list"));
    }
    let start = out.len();
    out.put_u32(queue.queue_id);
    out.put_zeros(4);
    queue.properties.encode(Version::Of10, out)?;
    out.set_length(start + 4, start, "queue")
}

pub(crate) fn decode_property<'a>(
    reader: &mut Reader<'a>,
) -> Result<QueueProperty<'a>, DecodeError> {
    let mut body = reader.sized_by_8(2, PROPERTY_MIN_SIZE, Structure::QueueProperty)?;
    let property = body.u16()?;
    body.skip(6)?;
    let decoded = match property {
        OFPQT_NONE => QueueProperty::None,
        OFPQT_MIN_RATE => decode_min_rate(&mut body)?,
        _ => QueueProperty::Other {
            property,
            data: body.rest(),
        },
    };
    body.finish()?;
    Ok(decoded)
}

fn decode_min_rate<'a>(body: &mut Reader<'a>) -> Result<QueueProperty<'a>, DecodeError> {
    let rate = body.u16()?;
    body.skip(6)?;
    Ok(QueueProperty::MinRate(rate))
}

pub(crate) fn encode_property(
    property: &QueueProperty,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    match property {
        QueueProperty::None => encode_tlv(OFPQT_NONE, &[], out),
        QueueProperty::MinRate(rate) => {
            let [high, low] = rate.to_be_bytes();
            encode_tlv(OFPQT_MIN_RATE, &[high, low, 0, 0, 0, 0, 0, 0], out)
        }
        // These numbers are other properties in 1.3.
        QueueProperty::Other {
            property: OFPQT_NONE | OFPQT_MIN_RATE,
            ..
        } => Err(unsupported("a queue property with the number of another")),
        QueueProperty::Other { property, data } => encode_tlv(*property, data, out),
        QueueProperty::MaxRate(_) => Err(unsupported("the queue property OFPQT_MAX_RATE")),
        QueueProperty::Experimenter { .. } => {
            Err(unsupported("the queue property OFPQT_EXPERIMENTER"))
        }
    }
}

fn encode_tlv(property: u16, body: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if body.len() % 8 != 0 {
        return Err(unsupported(
            "a queue property whose length is not a multiple of 8",
        ));
    }
    let start = out.len();
    out.put_u16(property);
    out.put_zeros(6);
    out.put(body);
    out.set_length(start + 2, start, "queue property")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;
    use crate::of10::golden;

    const QUEUE: [u8; 48] = [
        0x00, 0x00, 0x00, 0x05, // queue_id
        0x00, 0x30, 0, 0, // len, padding
        0x00, 0x00, 0x00, 0x08, 0, 0, 0, 0, // OFPQT_NONE
        0x00, 0x01, 0x00, 0x10, 0, 0, 0, 0, // OFPQT_MIN_RATE
        0x01, 0xf4, 0, 0, 0, 0, 0, 0, // 500, padding
        0x00, 0x09, 0x00, 0x10, 0, 0, 0, 0, // a property that we do not know
        1, 2, 3, 4, 5, 6, 7, 8, // its content
    ];

    fn queue() -> PacketQueue<'static> {
        const PROPERTIES: [QueueProperty; 3] = [
            QueueProperty::None,
            QueueProperty::MinRate(500),
            QueueProperty::Other {
                property: 9,
                data: &[1, 2, 3, 4, 5, 6, 7, 8],
            },
        ];
        PacketQueue {
            queue_id: 5,
            port: PortNo::ANY,
            properties: List::from(&PROPERTIES),
        }
    }

    #[test]
    fn queue_both_ways() {
        golden::element(&QUEUE, &queue());
    }

    #[test]
    fn request_both_ways() {
        let bytes = [0x01, 20, 0, 12, 1, 2, 3, 4, 0x00, 0x07, 0, 0];
        golden::message(&bytes, &Message::QueueGetConfigRequest(PortNo(7)));
    }

    #[test]
    fn reply_both_ways() {
        let mut bytes = vec![0x01, 21, 0, 64, 1, 2, 3, 4, 0x00, 0x07, 0, 0, 0, 0, 0, 0];
        bytes.extend(QUEUE);
        let config = QueueConfig {
            port: PortNo(7),
            queues: List::from(vec![queue()]),
        };
        golden::message(&bytes, &Message::QueueGetConfigReply(config));
    }

    #[test]
    fn wrong_lengths_are_errors() {
        for (at, length) in [
            (5, 0),
            (5, 7),
            (5, 12),
            (5, 56),
            (11, 0),
            (11, 16),
            (19, 12),
        ] {
            let mut bytes = QUEUE;
            bytes[at] = length;
            let result = decode(&mut Reader::new(&bytes, Structure::Message));
            assert!(result.is_err(), "length {length} at {at}: {result:?}");
        }
    }

    #[test]
    fn refuses_parts_of_1_3_only() {
        assert_eq!(
            golden::refused(&QueueProperty::MaxRate(1)),
            "OpenFlow 1.0 cannot express the queue property OFPQT_MAX_RATE"
        );
        for property in [OFPQT_NONE, OFPQT_MIN_RATE] {
            let other = QueueProperty::Other {
                property,
                data: &[0; 56],
            };
            assert_eq!(
                golden::refused(&other),
                "OpenFlow 1.0 cannot express a queue property with the number of another"
            );
        }
        let queue = PacketQueue {
            port: PortNo(1),
            ..queue()
        };
        assert_eq!(
            golden::refused(&queue),
            "OpenFlow 1.0 cannot express the port of a queue in a list"
        );
    }
}
