//! Statistics (section 5.3.5), which 1.3 calls multipart messages.

use super::{lacks, matching, port, unsupported};
use crate::port::FixedName;
use crate::{
    AggregateStats, DecodeError, Desc, EncodeError, ErrorCode, ExperimenterMultipart, FlowModFlags,
    FlowStats, FlowStatsRequest, GROUP_ANY, List, MultipartFlags, MultipartReply,
    MultipartReplyBody, MultipartRequest, MultipartRequestBody, PortStats, Put, QueueStats, Reader,
    Structure, TableStats, Version,
};

/// Statistics types (`ofp_stats_types`).
const OFPST_DESC: u16 = 0;
const OFPST_FLOW: u16 = 1;
const OFPST_AGGREGATE: u16 = 2;
const OFPST_TABLE: u16 = 3;
const OFPST_PORT: u16 = 4;
const OFPST_QUEUE: u16 = 5;
const OFPST_VENDOR: u16 = 0xffff;

/// The size of `ofp_flow_stats` without actions.
const FLOW_STATS_MIN_SIZE: usize = 88;

pub(super) fn decode_request<'a>(
    reader: &mut Reader<'a>,
) -> Result<MultipartRequest<'a>, DecodeError> {
    let stats_type = reader.u16()?;
    let flags = MultipartFlags::from_bits_retain(reader.u16()?);
    let body = match stats_type {
        OFPST_DESC => MultipartRequestBody::Desc,
        OFPST_FLOW => MultipartRequestBody::Flow(decode_flow_request(reader)?),
        OFPST_AGGREGATE => MultipartRequestBody::Aggregate(decode_flow_request(reader)?),
        OFPST_TABLE => MultipartRequestBody::Table,
        OFPST_PORT => decode_port_request(reader)?,
        OFPST_QUEUE => decode_queue_request(reader)?,
        OFPST_VENDOR => MultipartRequestBody::Experimenter(decode_vendor(reader)?),
        unknown => return Err(unknown_type(unknown)),
    };
    Ok(MultipartRequest { flags, body })
}

pub(super) fn encode_request(
    request: &MultipartRequest,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    out.put_u16(request_type(&request.body)?);
    out.put_u16(request.flags.bits());
    match &request.body {
        MultipartRequestBody::Flow(flows) | MultipartRequestBody::Aggregate(flows) => {
            encode_flow_request(flows, out)
        }
        MultipartRequestBody::PortStats(port) => {
            out.put_u16(port::encode_number(
                *port,
                "port_no of a port stats request",
            )?);
            out.put_zeros(6);
            Ok(())
        }
        MultipartRequestBody::Queue { port, queue_id } => {
            out.put_u16(port::encode_number(
                *port,
                "port_no of a queue stats request",
            )?);
            out.put_zeros(2);
            out.put_u32(*queue_id);
            Ok(())
        }
        MultipartRequestBody::Experimenter(vendor) => {
            encode_vendor(vendor, out);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn request_type(body: &MultipartRequestBody) -> Result<u16, EncodeError> {
    match body {
        MultipartRequestBody::Desc => Ok(OFPST_DESC),
        MultipartRequestBody::Flow(_) => Ok(OFPST_FLOW),
        MultipartRequestBody::Aggregate(_) => Ok(OFPST_AGGREGATE),
        MultipartRequestBody::Table => Ok(OFPST_TABLE),
        MultipartRequestBody::PortStats(_) => Ok(OFPST_PORT),
        MultipartRequestBody::Queue { .. } => Ok(OFPST_QUEUE),
        MultipartRequestBody::Experimenter(_) => Ok(OFPST_VENDOR),
        MultipartRequestBody::Group(_) => Err(unsupported("the multipart request OFPMP_GROUP")),
        MultipartRequestBody::GroupDesc => {
            Err(unsupported("the multipart request OFPMP_GROUP_DESC"))
        }
        MultipartRequestBody::GroupFeatures => {
            Err(unsupported("the multipart request OFPMP_GROUP_FEATURES"))
        }
        MultipartRequestBody::Meter(_) => Err(unsupported("the multipart request OFPMP_METER")),
        MultipartRequestBody::MeterConfig(_) => {
            Err(unsupported("the multipart request OFPMP_METER_CONFIG"))
        }
        MultipartRequestBody::MeterFeatures => {
            Err(unsupported("the multipart request OFPMP_METER_FEATURES"))
        }
        MultipartRequestBody::TableFeatures(_) => {
            Err(unsupported("the multipart request OFPMP_TABLE_FEATURES"))
        }
        MultipartRequestBody::PortDesc => Err(unsupported("the multipart request OFPMP_PORT_DESC")),
    }
}

pub(super) fn decode_reply<'a>(reader: &mut Reader<'a>) -> Result<MultipartReply<'a>, DecodeError> {
    let stats_type = reader.u16()?;
    let flags = MultipartFlags::from_bits_retain(reader.u16()?);
    let body = match stats_type {
        OFPST_DESC => MultipartReplyBody::Desc(Desc::decode(reader)?),
        OFPST_FLOW => MultipartReplyBody::Flow(List::decode(Version::Of10, reader)?),
        OFPST_AGGREGATE => MultipartReplyBody::Aggregate(decode_aggregate(reader)?),
        OFPST_TABLE => MultipartReplyBody::Table(List::decode(Version::Of10, reader)?),
        OFPST_PORT => MultipartReplyBody::PortStats(List::decode(Version::Of10, reader)?),
        OFPST_QUEUE => MultipartReplyBody::Queue(List::decode(Version::Of10, reader)?),
        OFPST_VENDOR => MultipartReplyBody::Experimenter(decode_vendor(reader)?),
        unknown => return Err(unknown_type(unknown)),
    };
    Ok(MultipartReply { flags, body })
}

pub(super) fn encode_reply(reply: &MultipartReply, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.put_u16(reply_type(&reply.body)?);
    out.put_u16(reply.flags.bits());
    match &reply.body {
        MultipartReplyBody::Desc(desc) => desc.encode(out),
        MultipartReplyBody::Flow(flows) => flows.encode(Version::Of10, out)?,
        MultipartReplyBody::Aggregate(stats) => encode_aggregate(stats, out),
        MultipartReplyBody::Table(tables) => tables.encode(Version::Of10, out)?,
        MultipartReplyBody::PortStats(ports) => ports.encode(Version::Of10, out)?,
        MultipartReplyBody::Queue(queues) => queues.encode(Version::Of10, out)?,
        MultipartReplyBody::Experimenter(vendor) => encode_vendor(vendor, out),
        _ => {}
    }
    Ok(())
}

fn reply_type(body: &MultipartReplyBody) -> Result<u16, EncodeError> {
    match body {
        MultipartReplyBody::Desc(_) => Ok(OFPST_DESC),
        MultipartReplyBody::Flow(_) => Ok(OFPST_FLOW),
        MultipartReplyBody::Aggregate(_) => Ok(OFPST_AGGREGATE),
        MultipartReplyBody::Table(_) => Ok(OFPST_TABLE),
        MultipartReplyBody::PortStats(_) => Ok(OFPST_PORT),
        MultipartReplyBody::Queue(_) => Ok(OFPST_QUEUE),
        MultipartReplyBody::Experimenter(_) => Ok(OFPST_VENDOR),
        MultipartReplyBody::Group(_) => Err(unsupported("the multipart reply OFPMP_GROUP")),
        MultipartReplyBody::GroupDesc(_) => {
            Err(unsupported("the multipart reply OFPMP_GROUP_DESC"))
        }
        MultipartReplyBody::GroupFeatures(_) => {
            Err(unsupported("the multipart reply OFPMP_GROUP_FEATURES"))
        }
        MultipartReplyBody::Meter(_) => Err(unsupported("the multipart reply OFPMP_METER")),
        MultipartReplyBody::MeterConfig(_) => {
            Err(unsupported("the multipart reply OFPMP_METER_CONFIG"))
        }
        MultipartReplyBody::MeterFeatures(_) => {
            Err(unsupported("the multipart reply OFPMP_METER_FEATURES"))
        }
        MultipartReplyBody::TableFeatures(_) => {
            Err(unsupported("the multipart reply OFPMP_TABLE_FEATURES"))
        }
        MultipartReplyBody::PortDesc(_) => Err(unsupported("the multipart reply OFPMP_PORT_DESC")),
    }
}

fn unknown_type(stats_type: u16) -> DecodeError {
    DecodeError::BadValue {
        what: "type of the stats message",
        value: stats_type.into(),
        expected: "0 (OFPST_DESC) to 5 (OFPST_QUEUE), or 0xffff (OFPST_VENDOR)",
        code: ErrorCode::BadRequestBadMultipart,
    }
}

/// Decodes `ofp_flow_stats_request` and `ofp_aggregate_stats_request`, which have the same layout.
fn decode_flow_request<'a>(reader: &mut Reader<'a>) -> Result<FlowStatsRequest<'a>, DecodeError> {
    let match_ = matching::decode(reader)?;
    let table_id = reader.u8()?;
    reader.skip(1)?;
    Ok(FlowStatsRequest {
        table_id,
        out_port: port::decode_number(reader.u16()?),
        out_group: GROUP_ANY,
        cookie: 0,
        cookie_mask: 0,
        match_,
    })
}

fn encode_flow_request(request: &FlowStatsRequest, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    lacks(
        "the out_group of a flow stats request",
        request.out_group,
        GROUP_ANY,
    )?;
    lacks("the cookie of a flow stats request", request.cookie, 0)?;
    lacks(
        "the cookie_mask of a flow stats request",
        request.cookie_mask,
        0,
    )?;
    matching::encode(&request.match_, out)?;
    out.put(&[request.table_id, 0]);
    out.put_u16(port::encode_number(
        request.out_port,
        "out_port of a flow stats request",
    )?);
    Ok(())
}

fn decode_port_request<'a>(
    reader: &mut Reader<'a>,
) -> Result<MultipartRequestBody<'a>, DecodeError> {
    let port = port::decode_number(reader.u16()?);
    reader.skip(6)?;
    Ok(MultipartRequestBody::PortStats(port))
}

fn decode_queue_request<'a>(
    reader: &mut Reader<'a>,
) -> Result<MultipartRequestBody<'a>, DecodeError> {
    let port = port::decode_number(reader.u16()?);
    reader.skip(2)?;
    let queue_id = reader.u32()?;
    Ok(MultipartRequestBody::Queue { port, queue_id })
}

fn decode_vendor<'a>(reader: &mut Reader<'a>) -> Result<ExperimenterMultipart<'a>, DecodeError> {
    Ok(ExperimenterMultipart {
        experimenter: reader.u32()?,
        data: reader.rest(),
    })
}

fn encode_vendor(vendor: &ExperimenterMultipart, out: &mut Vec<u8>) {
    out.put_u32(vendor.experimenter);
    out.put(vendor.data);
}

fn decode_aggregate(reader: &mut Reader) -> Result<AggregateStats, DecodeError> {
    let stats = AggregateStats {
        packet_count: reader.u64()?,
        byte_count: reader.u64()?,
        flow_count: reader.u32()?,
    };
    reader.skip(4)?;
    Ok(stats)
}

fn encode_aggregate(stats: &AggregateStats, out: &mut Vec<u8>) {
    out.put_u64(stats.packet_count);
    out.put_u64(stats.byte_count);
    out.put_u32(stats.flow_count);
    out.put_zeros(4);
}

pub(crate) fn decode_flow_stats<'a>(reader: &mut Reader<'a>) -> Result<FlowStats<'a>, DecodeError> {
    let mut body = reader.sized_by_8(0, FLOW_STATS_MIN_SIZE, Structure::FlowStats)?;
    body.skip(2)?;
    let table_id = body.u8()?;
    body.skip(1)?;
    let match_ = matching::decode(&mut body)?;
    let duration_sec = body.u32()?;
    let duration_nsec = body.u32()?;
    let priority = body.u16()?;
    let idle_timeout = body.u16()?;
    let hard_timeout = body.u16()?;
    body.skip(6)?;
    Ok(FlowStats {
        table_id,
        duration_sec,
        duration_nsec,
        priority,
        idle_timeout,
        hard_timeout,
        flags: FlowModFlags::empty(),
        cookie: body.u64()?,
        packet_count: body.u64()?,
        byte_count: body.u64()?,
        match_,
        instructions: List::decode(Version::Of10, &mut body)?,
    })
}

pub(crate) fn encode_flow_stats(stats: &FlowStats, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    lacks(
        "the flags of a flow stats entry",
        stats.flags,
        FlowModFlags::empty(),
    )?;
    let start = out.len();
    out.put_u16(0);
    out.put(&[stats.table_id, 0]);
    matching::encode(&stats.match_, out)?;
    out.put_u32(stats.duration_sec);
    out.put_u32(stats.duration_nsec);
    out.put_u16(stats.priority);
    out.put_u16(stats.idle_timeout);
    out.put_u16(stats.hard_timeout);
    out.put_zeros(6);
    out.put_u64(stats.cookie);
    out.put_u64(stats.packet_count);
    out.put_u64(stats.byte_count);
    stats.instructions.encode(Version::Of10, out)?;
    out.set_length(start, start, "flow stats entry")
}

pub(crate) fn decode_table_stats(reader: &mut Reader) -> Result<TableStats, DecodeError> {
    let table_id = reader.u8()?;
    reader.skip(3)?;
    Ok(TableStats {
        table_id,
        name: FixedName(reader.array()?),
        wildcards: reader.u32()?,
        max_entries: reader.u32()?,
        active_count: reader.u32()?,
        lookup_count: reader.u64()?,
        matched_count: reader.u64()?,
    })
}

pub(crate) fn encode_table_stats(stats: &TableStats, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.put(&[stats.table_id, 0, 0, 0]);
    out.put(&stats.name.0);
    out.put_u32(stats.wildcards);
    out.put_u32(stats.max_entries);
    out.put_u32(stats.active_count);
    out.put_u64(stats.lookup_count);
    out.put_u64(stats.matched_count);
    Ok(())
}

pub(crate) fn decode_port_stats(reader: &mut Reader) -> Result<PortStats, DecodeError> {
    let port_no = port::decode_number(reader.u16()?);
    reader.skip(6)?;
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
        duration_sec: 0,
        duration_nsec: 0,
    })
}

pub(crate) fn encode_port_stats(stats: &PortStats, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    lacks("the duration_sec of port stats", stats.duration_sec, 0)?;
    lacks("the duration_nsec of port stats", stats.duration_nsec, 0)?;
    out.put_u16(port::encode_number(stats.port_no, "port_no of port stats")?);
    out.put_zeros(6);
    let counters = [
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
    ];
    for counter in counters {
        out.put_u64(counter);
    }
    Ok(())
}

pub(crate) fn decode_queue_stats(reader: &mut Reader) -> Result<QueueStats, DecodeError> {
    let port_no = port::decode_number(reader.u16()?);
    reader.skip(2)?;
    Ok(QueueStats {
        port_no,
        queue_id: reader.u32()?,
        tx_bytes: reader.u64()?,
        tx_packets: reader.u64()?,
        tx_errors: reader.u64()?,
        duration_sec: 0,
        duration_nsec: 0,
    })
}

pub(crate) fn encode_queue_stats(stats: &QueueStats, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    lacks("the duration_sec of queue stats", stats.duration_sec, 0)?;
    lacks("the duration_nsec of queue stats", stats.duration_nsec, 0)?;
    out.put_u16(port::encode_number(
        stats.port_no,
        "port_no of queue stats",
    )?);
    out.put_zeros(2);
    out.put_u32(stats.queue_id);
    out.put_u64(stats.tx_bytes);
    out.put_u64(stats.tx_packets);
    out.put_u64(stats.tx_errors);
    Ok(())
}

#[cfg(test)]
mod tests;
