//! All messages of 1.3 (1.3.5 section 7.1), by type.

use super::{
    config, features, flow_mod, group, hello, meter, multipart, packet_in, packet_out, port, queue,
    role, table,
};
use crate::message_type::OF13_TYPES;
use crate::{DecodeError, EncodeError, Message, Reader, Structure, Version};

const OFPT_HELLO: u8 = 0;
const OFPT_ERROR: u8 = 1;
const OFPT_ECHO_REQUEST: u8 = 2;
const OFPT_ECHO_REPLY: u8 = 3;
const OFPT_EXPERIMENTER: u8 = 4;
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
const OFPT_GROUP_MOD: u8 = 15;
const OFPT_PORT_MOD: u8 = 16;
const OFPT_TABLE_MOD: u8 = 17;
const OFPT_MULTIPART_REQUEST: u8 = 18;
const OFPT_MULTIPART_REPLY: u8 = 19;
const OFPT_BARRIER_REQUEST: u8 = 20;
const OFPT_BARRIER_REPLY: u8 = 21;
const OFPT_QUEUE_GET_CONFIG_REQUEST: u8 = 22;
const OFPT_QUEUE_GET_CONFIG_REPLY: u8 = 23;
const OFPT_ROLE_REQUEST: u8 = 24;
const OFPT_ROLE_REPLY: u8 = 25;
const OFPT_GET_ASYNC_REQUEST: u8 = 26;
const OFPT_GET_ASYNC_REPLY: u8 = 27;
const OFPT_SET_ASYNC: u8 = 28;
const OFPT_METER_MOD: u8 = 29;

/// Reads the body of a message, the rest of `reader`.
pub(crate) fn decode<'a>(
    message_type: u8,
    reader: &mut Reader<'a>,
) -> Result<Message<'a>, DecodeError> {
    if usize::from(message_type) >= OF13_TYPES {
        return Err(DecodeError::UnknownType {
            version: Version::Of13,
            message_type,
        });
    }
    let structure = Structure::Body {
        version: Version::Of13,
        message_type,
    };
    let mut body = Reader::new(reader.rest(), structure);
    let message = decode_body(message_type, &mut body)?;
    body.finish()?;
    Ok(message)
}

fn decode_body<'a>(message_type: u8, body: &mut Reader<'a>) -> Result<Message<'a>, DecodeError> {
    Ok(match message_type {
        OFPT_HELLO => Message::Hello(hello::decode(body)?),
        OFPT_ERROR => Message::Error(hello::decode_error(body)?),
        OFPT_ECHO_REQUEST => Message::EchoRequest(body.rest()),
        OFPT_ECHO_REPLY => Message::EchoReply(body.rest()),
        OFPT_EXPERIMENTER => Message::Experimenter(hello::decode_experimenter(body)?),
        OFPT_FEATURES_REQUEST => Message::FeaturesRequest,
        OFPT_FEATURES_REPLY => Message::FeaturesReply(features::decode(body)?),
        OFPT_GET_CONFIG_REQUEST => Message::GetConfigRequest,
        OFPT_GET_CONFIG_REPLY => Message::GetConfigReply(config::decode(body)?),
        OFPT_SET_CONFIG => Message::SetConfig(config::decode(body)?),
        OFPT_PACKET_IN => Message::PacketIn(packet_in::decode(body)?),
        OFPT_FLOW_REMOVED => Message::FlowRemoved(flow_mod::decode_removed(body)?),
        OFPT_PORT_STATUS => Message::PortStatus(port::decode_status(body)?),
        OFPT_PACKET_OUT => Message::PacketOut(packet_out::decode(body)?),
        OFPT_FLOW_MOD => Message::FlowMod(flow_mod::decode(body)?),
        OFPT_GROUP_MOD => Message::GroupMod(group::decode_mod(body)?),
        OFPT_PORT_MOD => Message::PortMod(port::decode_mod(body)?),
        OFPT_TABLE_MOD => Message::TableMod(table::decode_mod(body)?),
        OFPT_MULTIPART_REQUEST => Message::MultipartRequest(multipart::decode_request(body)?),
        OFPT_MULTIPART_REPLY => Message::MultipartReply(multipart::decode_reply(body)?),
        OFPT_BARRIER_REQUEST => Message::BarrierRequest,
        OFPT_BARRIER_REPLY => Message::BarrierReply,
        OFPT_QUEUE_GET_CONFIG_REQUEST => {
            Message::QueueGetConfigRequest(queue::decode_config_request(body)?)
        }
        OFPT_QUEUE_GET_CONFIG_REPLY => Message::QueueGetConfigReply(queue::decode_config(body)?),
        OFPT_ROLE_REQUEST => Message::RoleRequest(role::decode(body)?),
        OFPT_ROLE_REPLY => Message::RoleReply(role::decode(body)?),
        OFPT_GET_ASYNC_REQUEST => Message::GetAsyncRequest,
        OFPT_GET_ASYNC_REPLY => Message::GetAsyncReply(role::decode_async(body)?),
        OFPT_SET_ASYNC => Message::SetAsync(role::decode_async(body)?),
        OFPT_METER_MOD => Message::MeterMod(meter::decode_mod(body)?),
        message_type => {
            return Err(DecodeError::UnknownType {
                version: Version::Of13,
                message_type,
            });
        }
    })
}

/// Appends the body of a message to `out`.
pub(crate) fn encode(message: &Message, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match message {
        Message::FeaturesRequest
        | Message::GetConfigRequest
        | Message::BarrierRequest
        | Message::BarrierReply
        | Message::GetAsyncRequest => {}
        Message::Hello(hello) => hello::encode(hello, out)?,
        Message::Error(error) => hello::encode_error(error, out)?,
        Message::EchoRequest(data) | Message::EchoReply(data) => out.extend_from_slice(data),
        Message::Experimenter(experimenter) => hello::encode_experimenter(experimenter, out),
        Message::FeaturesReply(features) => features::encode(features, out)?,
        Message::GetConfigReply(config) | Message::SetConfig(config) => config::encode(config, out),
        Message::PacketIn(packet_in) => packet_in::encode(packet_in, out)?,
        Message::FlowRemoved(removed) => flow_mod::encode_removed(removed, out)?,
        Message::PortStatus(status) => port::encode_status(status, out),
        Message::PacketOut(packet_out) => packet_out::encode(packet_out, out)?,
        Message::FlowMod(flow_mod) => flow_mod::encode(flow_mod, out)?,
        Message::GroupMod(group_mod) => group::encode_mod(group_mod, out)?,
        Message::PortMod(port_mod) => port::encode_mod(port_mod, out)?,
        Message::TableMod(table_mod) => table::encode_mod(table_mod, out),
        Message::MultipartRequest(request) => multipart::encode_request(request, out)?,
        Message::MultipartReply(reply) => multipart::encode_reply(reply, out)?,
        Message::QueueGetConfigRequest(port) => queue::encode_config_request(*port, out),
        Message::QueueGetConfigReply(config) => queue::encode_config(config, out)?,
        Message::RoleRequest(role) | Message::RoleReply(role) => role::encode(role, out),
        Message::GetAsyncReply(config) | Message::SetAsync(config) => {
            role::encode_async(config, out)
        }
        Message::MeterMod(meter_mod) => meter::encode_mod(meter_mod, out)?,
    }
    Ok(())
}

/// Returns the message's type. 1.3 has a type for every message, so unlike for 1.0 this does not fail.
pub(crate) fn message_type(message: &Message) -> Result<u8, EncodeError> {
    Ok(match message {
        Message::Hello(_) => OFPT_HELLO,
        Message::Error(_) => OFPT_ERROR,
        Message::EchoRequest(_) => OFPT_ECHO_REQUEST,
        Message::EchoReply(_) => OFPT_ECHO_REPLY,
        Message::Experimenter(_) => OFPT_EXPERIMENTER,
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
        Message::GroupMod(_) => OFPT_GROUP_MOD,
        Message::PortMod(_) => OFPT_PORT_MOD,
        Message::TableMod(_) => OFPT_TABLE_MOD,
        Message::MultipartRequest(_) => OFPT_MULTIPART_REQUEST,
        Message::MultipartReply(_) => OFPT_MULTIPART_REPLY,
        Message::BarrierRequest => OFPT_BARRIER_REQUEST,
        Message::BarrierReply => OFPT_BARRIER_REPLY,
        Message::QueueGetConfigRequest(_) => OFPT_QUEUE_GET_CONFIG_REQUEST,
        Message::QueueGetConfigReply(_) => OFPT_QUEUE_GET_CONFIG_REPLY,
        Message::RoleRequest(_) => OFPT_ROLE_REQUEST,
        Message::RoleReply(_) => OFPT_ROLE_REPLY,
        Message::GetAsyncRequest => OFPT_GET_ASYNC_REQUEST,
        Message::GetAsyncReply(_) => OFPT_GET_ASYNC_REPLY,
        Message::SetAsync(_) => OFPT_SET_ASYNC,
        Message::MeterMod(_) => OFPT_METER_MOD,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of13::golden::{decode_error, frame, message, refused_message};
    use crate::{ErrorCode, Header, PacketOut};

    #[test]
    fn messages_without_a_body_both_ways() {
        for (message_type, expected) in [
            (OFPT_FEATURES_REQUEST, Message::FeaturesRequest),
            (OFPT_GET_CONFIG_REQUEST, Message::GetConfigRequest),
            (OFPT_BARRIER_REQUEST, Message::BarrierRequest),
            (OFPT_BARRIER_REPLY, Message::BarrierReply),
            (OFPT_GET_ASYNC_REQUEST, Message::GetAsyncRequest),
        ] {
            message(&frame(message_type, ""), &expected);
            let long = frame(message_type, "00");
            assert_eq!(decode_error(&long).code(), ErrorCode::BadRequestBadLen);
        }
    }

    #[test]
    fn echoes_both_ways() {
        message(&frame(2, "0102"), &Message::EchoRequest(&[1, 2]));
        message(&frame(3, ""), &Message::EchoReply(&[]));
    }

    #[test]
    fn reads_headers() {
        let bytes = [0x04, 20, 0, 8, 0xde, 0xad, 0xbe, 0xef];
        let (header, _) = Message::decode(&bytes).unwrap();
        let expected = Header {
            version: 4,
            message_type: 20,
            length: 8,
            xid: 0xdead_beef,
        };
        assert_eq!(header, expected);
    }

    #[test]
    fn unknown_types_are_errors() {
        let error = decode_error(&frame(30, ""));
        assert_eq!(error.code(), ErrorCode::BadRequestBadType);
        assert_eq!(
            error.to_string(),
            "message type 30 does not exist in OpenFlow 1.3"
        );
    }

    #[test]
    fn a_message_that_is_too_long_leaves_no_trace() {
        let too_long = Message::PacketOut(PacketOut {
            buffer_id: crate::BufferId::NONE,
            in_port: crate::PortNo::CONTROLLER,
            actions: crate::List::default(),
            data: &[0; 65536],
        });
        assert!(matches!(
            refused_message(&too_long),
            EncodeError::TooLong { .. }
        ));
        let mut out = vec![1, 2, 3];
        assert!(too_long.encode(Version::Of13, 0, &mut out).is_err());
        assert_eq!(out, [1, 2, 3]);
    }
}
