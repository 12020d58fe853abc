//! Multipart messages (1.3.5 section 7.3.5). Requests and replies are in the files of their subjects.

use super::{flow_mod, group, meter};
use crate::{
    DecodeError, Desc, EncodeError, ErrorCode, ExperimenterMultipart, List, MultipartFlags,
    MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody, PortNo, Put,
    Reader, Version,
};

const OFPMP_DESC: u16 = 0;
const OFPMP_FLOW: u16 = 1;
const OFPMP_AGGREGATE: u16 = 2;
const OFPMP_TABLE: u16 = 3;
const OFPMP_PORT_STATS: u16 = 4;
const OFPMP_QUEUE: u16 = 5;
const OFPMP_GROUP: u16 = 6;
const OFPMP_GROUP_DESC: u16 = 7;
const OFPMP_GROUP_FEATURES: u16 = 8;
const OFPMP_METER: u16 = 9;
const OFPMP_METER_CONFIG: u16 = 10;
const OFPMP_METER_FEATURES: u16 = 11;
const OFPMP_TABLE_FEATURES: u16 = 12;
const OFPMP_PORT_DESC: u16 = 13;
const OFPMP_EXPERIMENTER: u16 = 0xffff;

pub(crate) fn decode_request<'a>(
    reader: &mut Reader<'a>,
) -> Result<MultipartRequest<'a>, DecodeError> {
    let (multipart_type, flags) = decode_header(reader)?;
    let body = decode_request_body(multipart_type, reader)?;
    Ok(MultipartRequest { flags, body })
}

fn decode_header(reader: &mut Reader) -> Result<(u16, MultipartFlags), DecodeError> {
    let multipart_type = reader.u16()?;
    let flags = MultipartFlags::from_bits_retain(reader.u16()?);
    reader.skip(4)?;
    Ok((multipart_type, flags))
}

fn decode_request_body<'a>(
    multipart_type: u16,
    reader: &mut Reader<'a>,
) -> Result<MultipartRequestBody<'a>, DecodeError> {
    use MultipartRequestBody as Body;
    Ok(match multipart_type {
        OFPMP_DESC => Body::Desc,
        OFPMP_FLOW => Body::Flow(flow_mod::decode_stats_request(reader)?),
        OFPMP_AGGREGATE => Body::Aggregate(flow_mod::decode_stats_request(reader)?),
        OFPMP_TABLE => Body::Table,
        OFPMP_PORT_STATS => Body::PortStats(PortNo(decode_padded_id(reader)?)),
        OFPMP_QUEUE => Body::Queue {
            port: PortNo(reader.u32()?),
            queue_id: reader.u32()?,
        },
        OFPMP_GROUP => Body::Group(decode_padded_id(reader)?),
        OFPMP_GROUP_DESC => Body::GroupDesc,
        OFPMP_GROUP_FEATURES => Body::GroupFeatures,
        OFPMP_METER => Body::Meter(decode_padded_id(reader)?),
        OFPMP_METER_CONFIG => Body::MeterConfig(decode_padded_id(reader)?),
        OFPMP_METER_FEATURES => Body::MeterFeatures,
        OFPMP_TABLE_FEATURES => Body::TableFeatures(List::decode(Version::Of13, reader)?),
        OFPMP_PORT_DESC => Body::PortDesc,
        OFPMP_EXPERIMENTER => Body::Experimenter(decode_experimenter(reader)?),
        other => return Err(unknown_type(other)),
    })
}

/// Decodes the body of a request for one item by number.
fn decode_padded_id(reader: &mut Reader) -> Result<u32, DecodeError> {
    let id = reader.u32()?;
    reader.skip(4)?;
    Ok(id)
}

pub(crate) fn decode_reply<'a>(reader: &mut Reader<'a>) -> Result<MultipartReply<'a>, DecodeError> {
    let (multipart_type, flags) = decode_header(reader)?;
    let body = decode_reply_body(multipart_type, reader)?;
    Ok(MultipartReply { flags, body })
}

fn decode_reply_body<'a>(
    multipart_type: u16,
    reader: &mut Reader<'a>,
) -> Result<MultipartReplyBody<'a>, DecodeError> {
    use MultipartReplyBody as Body;
    Ok(match multipart_type {
        OFPMP_DESC => Body::Desc(Desc::decode(reader)?),
        OFPMP_FLOW => Body::Flow(List::decode(Version::Of13, reader)?),
        OFPMP_AGGREGATE => Body::Aggregate(flow_mod::decode_aggregate(reader)?),
        OFPMP_TABLE => Body::Table(List::decode(Version::Of13, reader)?),
        OFPMP_PORT_STATS => Body::PortStats(List::decode(Version::Of13, reader)?),
        OFPMP_QUEUE => Body::Queue(List::decode(Version::Of13, reader)?),
        OFPMP_GROUP => Body::Group(List::decode(Version::Of13, reader)?),
        OFPMP_GROUP_DESC => Body::GroupDesc(List::decode(Version::Of13, reader)?),
        OFPMP_GROUP_FEATURES => Body::GroupFeatures(group::decode_features(reader)?),
        OFPMP_METER => Body::Meter(List::decode(Version::Of13, reader)?),
        OFPMP_METER_CONFIG => Body::MeterConfig(List::decode(Version::Of13, reader)?),
        OFPMP_METER_FEATURES => Body::MeterFeatures(meter::decode_features(reader)?),
        OFPMP_TABLE_FEATURES => Body::TableFeatures(List::decode(Version::Of13, reader)?),
        OFPMP_PORT_DESC => Body::PortDesc(List::decode(Version::Of13, reader)?),
        OFPMP_EXPERIMENTER => Body::Experimenter(decode_experimenter(reader)?),
        other => return Err(unknown_type(other)),
    })
}

fn decode_experimenter<'a>(
    reader: &mut Reader<'a>,
) -> Result<ExperimenterMultipart<'a>, DecodeError> {
    Ok(ExperimenterMultipart {
        experimenter: reader.u32()?,
        data: reader.rest(),
    })
}

fn unknown_type(multipart_type: u16) -> DecodeError {
    DecodeError::BadValue {
        what: "multipart type",
        value: multipart_type.into(),
        expected: "one of OFPMP_*",
        code: ErrorCode::BadRequestBadMultipart,
    }
}

pub(crate) fn encode_request(
    request: &MultipartRequest,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    encode_header(request_type(&request.body), request.flags, out);
    use MultipartRequestBody as Body;
    match &request.body {
        Body::Desc
        | Body::Table
        | Body::GroupDesc
        | Body::GroupFeatures
        | Body::MeterFeatures
        | Body::PortDesc => {}
        Body::Flow(wanted) | Body::Aggregate(wanted) => {
            flow_mod::encode_stats_request(wanted, out)?
        }
        Body::PortStats(PortNo(id)) | Body::Group(id) | Body::Meter(id) | Body::MeterConfig(id) => {
            out.put_u32(*id);
            out.put_zeros(4);
        }
        Body::Queue { port, queue_id } => {
            out.put_u32(port.0);
            out.put_u32(*queue_id);
        }
        Body::TableFeatures(tables) => tables.encode(Version::Of13, out)?,
        Body::Experimenter(experimenter) => encode_experimenter(experimenter, out),
    }
    Ok(())
}

fn request_type(body: &MultipartRequestBody) -> u16 {
    use MultipartRequestBody as Body;
    match body {
        Body::Desc => OFPMP_DESC,
        Body::Flow(_) => OFPMP_FLOW,
        Body::Aggregate(_) => OFPMP_AGGREGATE,
        Body::Table => OFPMP_TABLE,
        Body::PortStats(_) => OFPMP_PORT_STATS,
        Body::Queue { .. } => OFPMP_QUEUE,
        Body::Group(_) => OFPMP_GROUP,
        Body::GroupDesc => OFPMP_GROUP_DESC,
        Body::GroupFeatures => OFPMP_GROUP_FEATURES,
        Body::Meter(_) => OFPMP_METER,
        Body::MeterConfig(_) => OFPMP_METER_CONFIG,
        Body::MeterFeatures => OFPMP_METER_FEATURES,
        Body::TableFeatures(_) => OFPMP_TABLE_FEATURES,
        Body::PortDesc => OFPMP_PORT_DESC,
        Body::Experimenter(_) => OFPMP_EXPERIMENTER,
    }
}

fn encode_header(multipart_type: u16, flags: MultipartFlags, out: &mut Vec<u8>) {
    out.put_u16(multipart_type);
    out.put_u16(flags.bits());
    out.put_zeros(4);
}

pub(crate) fn encode_reply(reply: &MultipartReply, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    encode_header(reply_type(&reply.body), reply.flags, out);
    use MultipartReplyBody as Body;
    match &reply.body {
        Body::Desc(desc) => desc.encode(out),
        Body::Flow(entries) => entries.encode(Version::Of13, out)?,
        Body::Aggregate(aggregate) => flow_mod::encode_aggregate(aggregate, out),
        Body::Table(tables) => tables.encode(Version::Of13, out)?,
        Body::PortStats(ports) => ports.encode(Version::Of13, out)?,
        Body::Queue(queues) => queues.encode(Version::Of13, out)?,
        Body::Group(groups) => groups.encode(Version::Of13, out)?,
        Body::GroupDesc(groups) => groups.encode(Version::Of13, out)?,
        Body::GroupFeatures(features) => group::encode_features(features, out),
        Body::Meter(meters) => meters.encode(Version::Of13, out)?,
        Body::MeterConfig(meters) => meters.encode(Version::Of13, out)?,
        Body::MeterFeatures(features) => meter::encode_features(features, out),
        Body::TableFeatures(tables) => tables.encode(Version::Of13, out)?,
        Body::PortDesc(ports) => ports.encode(Version::Of13, out)?,
        Body::Experimenter(experimenter) => encode_experimenter(experimenter, out),
    }
    Ok(())
}

fn reply_type(body: &MultipartReplyBody) -> u16 {
    use MultipartReplyBody as Body;
    match body {
        Body::Desc(_) => OFPMP_DESC,
        Body::Flow(_) => OFPMP_FLOW,
        Body::Aggregate(_) => OFPMP_AGGREGATE,
        Body::Table(_) => OFPMP_TABLE,
        Body::PortStats(_) => OFPMP_PORT_STATS,
        Body::Queue(_) => OFPMP_QUEUE,
        Body::Group(_) => OFPMP_GROUP,
        Body::GroupDesc(_) => OFPMP_GROUP_DESC,
        Body::GroupFeatures(_) => OFPMP_GROUP_FEATURES,
        Body::Meter(_) => OFPMP_METER,
        Body::MeterConfig(_) => OFPMP_METER_CONFIG,
        Body::MeterFeatures(_) => OFPMP_METER_FEATURES,
        Body::TableFeatures(_) => OFPMP_TABLE_FEATURES,
        Body::PortDesc(_) => OFPMP_PORT_DESC,
        Body::Experimenter(_) => OFPMP_EXPERIMENTER,
    }
}

fn encode_experimenter(experimenter: &ExperimenterMultipart, out: &mut Vec<u8>) {
    out.put_u32(experimenter.experimenter);
    out.put(experimenter.data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of13::golden::{decode_error, frame, message};
    use crate::port::FixedName;
    use crate::{GROUP_ALL, METER_ALL, Message, QUEUE_ALL};

    #[track_caller]
    fn request(bytes: &str, body: MultipartRequestBody) {
        let flags = MultipartFlags::empty();
        message(
            &frame(18, bytes),
            &Message::MultipartRequest(MultipartRequest { flags, body }),
        );
    }

    #[track_caller]
    fn reply(bytes: &str, flags: MultipartFlags, body: MultipartReplyBody) {
        message(
            &frame(19, bytes),
            &Message::MultipartReply(MultipartReply { flags, body }),
        );
    }

    #[test]
    fn requests_both_ways() {
        use MultipartRequestBody as Body;
        request("0000 0000 00000000", Body::Desc);
        request("0003 0000 00000000", Body::Table);
        request(
            "0004 0000 00000000 ffffffff 00000000",
            Body::PortStats(PortNo::ANY),
        );
        request(
            "0005 0000 00000000 00000001 ffffffff",
            Body::Queue {
                port: PortNo(1),
                queue_id: QUEUE_ALL,
            },
        );
        request(
            "0006 0000 00000000 fffffffc 00000000",
            Body::Group(GROUP_ALL),
        );
        request("0007 0000 00000000", Body::GroupDesc);
        request("0008 0000 00000000", Body::GroupFeatures);
        request(
            "0009 0000 00000000 ffffffff 00000000",
            Body::Meter(METER_ALL),
        );
        request("000a 0000 00000000 00000003 00000000", Body::MeterConfig(3));
        request("000b 0000 00000000", Body::MeterFeatures);
        request("000c 0000 00000000", Body::TableFeatures(List::default()));
        request("000d 0000 00000000", Body::PortDesc);
        request(
            "ffff 0000 00000000 00002320 00000001 aa",
            Body::Experimenter(ExperimenterMultipart {
                experimenter: 0x2320,
                data: &[0, 0, 0, 1, 0xaa],
            }),
        );
    }

    #[test]
    fn more_flag_both_ways() {
        reply(
            "000d 0001 00000000",
            MultipartFlags::MORE,
            MultipartReplyBody::PortDesc(List::default()),
        );
    }

    #[test]
    fn description_both_ways() {
        let field = |byte: &str, size: usize| format!("{byte}{}", "00".repeat(size - 1));
        let bytes = format!(
            "0000 0000 00000000 {} {} {} {} {}",
            field("61", 256),
            field("62", 256),
            field("63", 256),
            field("64", 32),
            field("65", 256)
        );
        let desc = Desc {
            mfr_desc: const { &FixedName::truncated("a") }.as_ref(),
            hw_desc: const { &FixedName::truncated("b") }.as_ref(),
            sw_desc: const { &FixedName::truncated("c") }.as_ref(),
            serial_num: const { &FixedName::truncated("d") }.as_ref(),
            dp_desc: const { &FixedName::truncated("e") }.as_ref(),
        };
        reply(
            &bytes,
            MultipartFlags::empty(),
            MultipartReplyBody::Desc(desc),
        );
    }

    #[test]
    fn bad_multiparts_are_errors() {
        let unknown = frame(18, "000e 0000 00000000");
        assert_eq!(
            decode_error(&unknown).code(),
            ErrorCode::BadRequestBadMultipart
        );
        let long = frame(18, "0000 0000 00000000 00");
        assert_eq!(decode_error(&long).code(), ErrorCode::BadRequestBadLen);
        let short = frame(18, "0004 0000 00000000 00000001");
        assert_eq!(decode_error(&short).code(), ErrorCode::BadRequestBadLen);
        let half_a_row = frame(19, "0003 0000 00000000 01 000000 00000002");
        assert_eq!(
            decode_error(&half_a_row).code(),
            ErrorCode::BadRequestBadLen
        );
    }
}
