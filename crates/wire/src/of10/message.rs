//! All message types (section 5.1), and the messages with short bodies: hello (5.5.1), error (5.4.4), echo (5.5.2),
//! vendor (5.5.4) and configuration (5.3.2).

use super::{features, flow_mod, multipart, packet_in, packet_out, port, queue, unsupported};
use crate::message_type::OF10_TYPES;
use crate::{
    ConfigFlags, DecodeError, EncodeError, ErrorCode, ErrorMessage, Experimenter, Hello, Message,
    Put, Reader, Structure, SwitchConfig, Version,
};

/// Message types (`ofp_type`).
const OFPT_HELLO: u8 = 0;
const OFPT_ERROR: u8 = 1;
const OFPT_ECHO_REQUEST: u8 = 2;
const OFPT_ECHO_REPLY: u8 = 3;
const OFPT_VENDOR: u8 = 4;
const OFPT_FEATURES_REQUEST: u8 = 5;
const OFPT_FEATURES_REPLY: u8 = 6;
const OFPT_GET_CONFIG_REQUEST: u8 = 7;
const OFPT_GET_CONFIG_REPLY: u8 = 8;
const OFPT_SET_CONFIG: u8 = 9;
const OFPT_PACKET_IN: u8 = 10;
const OFPT_FLOW_REMOVED: u8 = 11;
const OFPT_PORT_STATUS: u8 = 12;
const OFPT_PACKET_OUT: u8 = 13;
const OFPT_FLOW_MOD: u8 = 14;
const OFPT_PORT_MOD: u8 = 15;
const OFPT_STATS_REQUEST: u8 = 16;
const OFPT_STATS_REPLY: u8 = 17;
const OFPT_BARRIER_REQUEST: u8 = 18;
const OFPT_BARRIER_REPLY: u8 = 19;
const OFPT_QUEUE_GET_CONFIG_REQUEST: u8 = 20;
const OFPT_QUEUE_GET_CONFIG_REPLY: u8 = 21;

/// Decodes the whole body of a message with this type.
pub(crate) fn decode<'a>(
    message_type: u8,
    reader: &mut Reader<'a>,
) -> Result<Message<'a>, DecodeError> {
    if usize::from(message_type) >= OF10_TYPES {
        return Err(unknown_type(message_type));
    }
    let structure = Structure::Body {
        version: Version::Of10,
        message_type,
    };
    let mut body = Reader::new(reader.rest(), structure);
    let message = decode_body(message_type, &mut body)?;
    body.finish()?;
    Ok(message)
}

fn unknown_type(message_type: u8) -> DecodeError {
    DecodeError::UnknownType {
        version: Version::Of10,
        message_type,
    }
}

fn decode_body<'a>(message_type: u8, body: &mut Reader<'a>) -> Result<Message<'a>, DecodeError> {
    Ok(match message_type {
        OFPT_PACKET_IN => Message::PacketIn(packet_in::decode(body)?),
        OFPT_HELLO => Message::Hello(Hello::decode_lenient(Version::Of10, body)),
        OFPT_ERROR => Message::Error(decode_error(body)?),
        OFPT_ECHO_REQUEST => Message::EchoRequest(body.rest()),
        OFPT_ECHO_REPLY => Message::EchoReply(body.rest()),
        OFPT_VENDOR => Message::Experimenter(decode_vendor(body)?),
        OFPT_FEATURES_REQUEST => Message::FeaturesRequest,
        OFPT_FEATURES_REPLY => Message::FeaturesReply(features::decode(body)?),
        OFPT_GET_CONFIG_REQUEST => Message::GetConfigRequest,
        OFPT_GET_CONFIG_REPLY => Message::GetConfigReply(decode_config(body)?),
        OFPT_SET_CONFIG => Message::SetConfig(decode_config(body)?),
        OFPT_FLOW_REMOVED => Message::FlowRemoved(flow_mod::decode_removed(body)?),
        OFPT_PORT_STATUS => Message::PortStatus(port::decode_status(body)?),
        OFPT_PACKET_OUT => Message::PacketOut(packet_out::decode(body)?),
        OFPT_FLOW_MOD => Message::FlowMod(flow_mod::decode(body)?),
        OFPT_PORT_MOD => Message::PortMod(port::decode_mod(body)?),
        OFPT_STATS_REQUEST => Message::MultipartRequest(multipart::decode_request(body)?),
        OFPT_STATS_REPLY => Message::MultipartReply(multipart::decode_reply(body)?),
        OFPT_BARRIER_REQUEST => Message::BarrierRequest,
        OFPT_BARRIER_REPLY => Message::BarrierReply,
        OFPT_QUEUE_GET_CONFIG_REQUEST => {
            Message::QueueGetConfigRequest(queue::decode_request(body)?)
        }
        OFPT_QUEUE_GET_CONFIG_REPLY => Message::QueueGetConfigReply(queue::decode_config(body)?),
        unknown => return Err(unknown_type(unknown)),
    })
}

/// Appends the body.
pub(crate) fn encode(message: &Message, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match message {
        Message::Hello(hello) => hello.elements.encode(Version::Of10, out)?,
        Message::Error(error) => encode_error(error, out)?,
        Message::EchoRequest(data) | Message::EchoReply(data) => out.put(data),
        Message::Experimenter(vendor) => encode_vendor(vendor, out),
        Message::FeaturesReply(reply) => features::encode(reply, out)?,
        Message::GetConfigReply(config) | Message::SetConfig(config) => encode_config(config, out),
        Message::PacketIn(packet_in) => packet_in::encode(packet_in, out)?,
        Message::FlowRemoved(removed) => flow_mod::encode_removed(removed, out)?,
        Message::PortStatus(status) => port::encode_status(status, out)?,
        Message::PacketOut(packet_out) => packet_out::encode(packet_out, out)?,
        Message::FlowMod(flow_mod) => flow_mod::encode(flow_mod, out)?,
        Message::PortMod(port_mod) => port::encode_mod(port_mod, out)?,
        Message::MultipartRequest(request) => multipart::encode_request(request, out)?,
        Message::MultipartReply(reply) => multipart::encode_reply(reply, out)?,
        Message::QueueGetConfigRequest(port) => queue::encode_request(*port, out)?,
        Message::QueueGetConfigReply(config) => queue::encode_config(config, out)?,
        // All others have no body, or `message_type` has refused them.
        _ => {}
    }
    Ok(())
}

/// Returns the message's type (`OFPT_*`).
pub(crate) fn message_type(message: &Message) -> Result<u8, EncodeError> {
    Ok(match message {
        Message::Hello(_) => OFPT_HELLO,
        Message::Error(_) => OFPT_ERROR,
        Message::EchoRequest(_) => OFPT_ECHO_REQUEST,
        Message::EchoReply(_) => OFPT_ECHO_REPLY,
        Message::Experimenter(_) => OFPT_VENDOR,
        Message::FeaturesRequest => OFPT_FEATURES_REQUEST,
        Message::FeaturesReply(_) => OFPT_FEATURES_REPLY,
        Message::GetConfigRequest => OFPT_GET_CONFIG_REQUEST,
        Message::GetConfigReply(_) => OFPT_GET_CONFIG_REPLY,
        Message::SetConfig(_) => OFPT_SET_CONFIG,
        Message::PacketIn(_) => OFPT_PACKET_IN,
        Message::FlowRemoved(_) => OFPT_FLOW_REMOVED,
        Message::PortStatus(_) => OFPT_PORT_STATUS,
        Message::PacketOut(_) => OFPT_PACKET_OUT,
        Message::FlowMod(_) => OFPT_FLOW_MOD,
        Message::PortMod(_) => OFPT_PORT_MOD,
        Message::MultipartRequest(_) => OFPT_STATS_REQUEST,
        Message::MultipartReply(_) => OFPT_STATS_REPLY,
        Message::BarrierRequest => OFPT_BARRIER_REQUEST,
        Message::BarrierReply => OFPT_BARRIER_REPLY,
        Message::QueueGetConfigRequest(_) => OFPT_QUEUE_GET_CONFIG_REQUEST,
        Message::QueueGetConfigReply(_) => OFPT_QUEUE_GET_CONFIG_REPLY,
        Message::GroupMod(_) => return Err(unsupported("the message OFPT_GROUP_MOD")),
        Message::TableMod(_) => return Err(unsupported("the message OFPT_TABLE_MOD")),
        Message::MeterMod(_) => return Err(unsupported("the message OFPT_METER_MOD")),
        Message::RoleRequest(_) => return Err(unsupported("the message OFPT_ROLE_REQUEST")),
        Message::RoleReply(_) => return Err(unsupported("the message OFPT_ROLE_REPLY")),
        Message::GetAsyncRequest => return Err(unsupported("the message OFPT_GET_ASYNC_REQUEST")),
        Message::GetAsyncReply(_) => return Err(unsupported("the message OFPT_GET_ASYNC_REPLY")),
        Message::SetAsync(_) => return Err(unsupported("the message OFPT_SET_ASYNC")),
    })
}

fn decode_error<'a>(body: &mut Reader<'a>) -> Result<ErrorMessage<'a>, DecodeError> {
    let error_type = body.u16()?;
    let code = body.u16()?;
    Ok(ErrorMessage {
        code: ErrorCode::from_wire(Version::Of10, error_type, code),
        data: body.rest(),
    })
}

fn encode_error(error: &ErrorMessage, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let Some((error_type, code)) = error.code.to_wire(Version::Of10) else {
        return Err(unsupported(error.code.name()));
    };
    out.put_u16(error_type);
    out.put_u16(code);
    out.put(error.data);
    Ok(())
}

fn decode_vendor<'a>(body: &mut Reader<'a>) -> Result<Experimenter<'a>, DecodeError> {
    Ok(Experimenter {
        experimenter: body.u32()?,
        data: body.rest(),
    })
}

fn encode_vendor(vendor: &Experimenter, out: &mut Vec<u8>) {
    out.put_u32(vendor.experimenter);
    out.put(vendor.data);
}

fn decode_config(body: &mut Reader) -> Result<SwitchConfig, DecodeError> {
    Ok(SwitchConfig {
        flags: ConfigFlags::from_bits_retain(body.u16()?),
        miss_send_len: body.u16()?,
    })
}

fn encode_config(config: &SwitchConfig, out: &mut Vec<u8>) {
    out.put_u16(config.flags.bits());
    out.put_u16(config.miss_send_len);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of10::golden;
    use crate::{AsyncConfig, HelloElement, List};
    use proptest::prelude::*;

    #[test]
    fn messages_without_a_body_both_ways() {
        let cases = [
            (0, Message::Hello(Hello::default())),
            (5, Message::FeaturesRequest),
            (7, Message::GetConfigRequest),
            (18, Message::BarrierRequest),
            (19, Message::BarrierReply),
        ];
        for (message_type, message) in cases {
            golden::message(&[0x01, message_type, 0, 8, 1, 2, 3, 4], &message);
        }
    }

    #[test]
    fn hello_with_elements_both_ways() {
        let bytes = [
            0x01, 0, 0, 16, 1, 2, 3, 4, // header
            0x00, 0x01, 0x00, 0x08, // OFPHET_VERSIONBITMAP, length
            0x00, 0x00, 0x00, 0x12, // versions 1 and 4
        ];
        let elements = [HelloElement::VersionBitmap(&[0, 0, 0, 0x12])];
        let hello = Hello {
            elements: List::from(&elements),
        };
        golden::message(&bytes, &Message::Hello(hello));
    }

    #[test]
    fn hello_with_anything_else_is_a_hello() {
        let bytes = [0x01, 0, 0, 11, 1, 2, 3, 4, 0xff, 0xff, 0xff];
        let (_, message) = Message::decode(&bytes).expect("a hello");
        assert_eq!(message, Message::Hello(Hello::default()));
    }

    #[test]
    fn error_both_ways() {
        let bytes = [
            0x01, 1, 0, 16, 1, 2, 3, 4, // header
            0x00, 0x03, 0x00, 0x02, // OFPET_FLOW_MOD_FAILED, OFPFMFC_EPERM
            0x01, 0x0e, 0x00, 0x48, // data
        ];
        let error = ErrorMessage {
            code: ErrorCode::FlowModFailedEperm,
            data: &[0x01, 0x0e, 0x00, 0x48],
        };
        golden::message(&bytes, &Message::Error(error));
    }

    #[test]
    fn every_error_code_both_ways() {
        for &code in ErrorCode::ALL {
            let Some((error_type, number)) = code.to_wire(Version::Of10) else {
                let error = Message::Error(ErrorMessage { code, data: &[] });
                assert!(golden::refused_message(&error).ends_with(code.name()));
                continue;
            };
            let (error_type, number) = (error_type as u8, number as u8);
            let bytes = [0x01, 1, 0, 12, 1, 2, 3, 4, 0, error_type, 0, number];
            golden::message(&bytes, &Message::Error(ErrorMessage { code, data: &[] }));
        }
    }

    #[test]
    fn echo_both_ways() {
        let bytes = [0x01, 2, 0, 11, 1, 2, 3, 4, 5, 6, 7];
        golden::message(&bytes, &Message::EchoRequest(&[5, 6, 7]));
        let bytes = [0x01, 3, 0, 11, 1, 2, 3, 4, 5, 6, 7];
        golden::message(&bytes, &Message::EchoReply(&[5, 6, 7]));
    }

    #[test]
    fn vendor_both_ways() {
        let bytes = [0x01, 4, 0, 15, 1, 2, 3, 4, 0x00, 0x00, 0x23, 0x20, 5, 6, 7];
        let vendor = Experimenter {
            experimenter: 0x2320,
            data: &[5, 6, 7],
        };
        golden::message(&bytes, &Message::Experimenter(vendor));
    }

    #[test]
    fn configuration_both_ways() {
        let config = SwitchConfig {
            flags: ConfigFlags::FRAG_REASM,
            miss_send_len: 128,
        };
        let bytes = [0x01, 8, 0, 12, 1, 2, 3, 4, 0x00, 0x02, 0x00, 0x80];
        golden::message(&bytes, &Message::GetConfigReply(config));
        let bytes = [0x01, 9, 0, 12, 1, 2, 3, 4, 0x00, 0x02, 0x00, 0x80];
        golden::message(&bytes, &Message::SetConfig(config));
    }

    #[test]
    fn bytes_after_the_last_field_are_an_error() {
        for message_type in [5, 7, 18, 19] {
            let bytes = [0x01, message_type, 0, 9, 1, 2, 3, 4, 0];
            let error = Message::decode(&bytes).expect_err("too long");
            assert_eq!(error.code(), ErrorCode::BadRequestBadLen);
        }
    }

    #[test]
    fn unknown_types_are_an_error() {
        let error = Message::decode(&[0x01, 22, 0, 8, 1, 2, 3, 4]).expect_err("unknown");
        assert_eq!(
            error.to_string(),
            "message type 22 does not exist in OpenFlow 1.0"
        );
    }

    #[test]
    fn refusing_parts_of_1_3_leaves_no_bytes() {
        let mut out = vec![0xaa];
        let message = Message::SetAsync(AsyncConfig {
            packet_in_mask: [1, 2],
            port_status_mask: [3, 4],
            flow_removed_mask: [5, 6],
        });
        let error = message
            .encode(Version::Of10, 1, &mut out)
            .expect_err("refused");
        assert_eq!(
            error.to_string(),
            "OpenFlow 1.0 cannot express the message OFPT_SET_ASYNC"
        );
        assert_eq!(out, [0xaa]);
    }

    /// Generates frames of any type with any body, and the correct length field.
    fn any_frame() -> impl Strategy<Value = Vec<u8>> {
        let small_bytes = prop_oneof![Just(0_u8), 0..16_u8, any::<u8>()];
        let body = prop::collection::vec(small_bytes, 0..160);
        (0..24_u8, body).prop_map(|(message_type, body)| {
            let mut frame = vec![0x01, message_type, 0, (8 + body.len()) as u8, 1, 2, 3, 4];
            frame.extend(body);
            frame
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn any_bytes_are_a_message_or_an_error(frame in any_frame()) {
            let Ok((header, message)) = Message::decode(&frame) else {
                return Ok(());
            };
            let mut out = Vec::new();
            message.encode(Version::Of10, header.xid, &mut out).expect("what was read can be written");
            let (_, again) = Message::decode(&out).expect("what was written can be read");
            prop_assert_eq!(format!("{message:?}"), format!("{again:?}"));
        }
    }
}
