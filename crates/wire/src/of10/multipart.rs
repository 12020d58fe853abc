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

/// `ofp_flow_stats_request` and `ofp_aggregate_stats_request`, which have the same layout.
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
mod tests {
    use super::*;
    use crate::of10::golden;
    use crate::{Action, Instruction, Match, Message, PortNo, QUEUE_ALL};

    /// `ofp_match` with in_port 7.
    const MATCH: [u8; 40] = [
        0x00, 0x3f, 0xff, 0xfe, 0x00, 0x07, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, // to dl_vlan
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // to tp_dst
    ];

    fn match_() -> Match<'static> {
        Match::any().in_port(PortNo(7))
    }

    /// A message of this type (16 request, 17 reply), OFPSF_REPLY_MORE set, with these parts as its body.
    fn framed(message_type: u8, stats_type: u8, parts: &[&[u8]]) -> Vec<u8> {
        let body = parts.concat();
        let [high, low] = (12 + body.len() as u16).to_be_bytes();
        let header = [
            0x01,
            message_type,
            high,
            low,
            1,
            2,
            3,
            4,
            0,
            stats_type,
            0,
            1,
        ];
        [&header, body.as_slice()].concat()
    }

    #[track_caller]
    fn request(stats_type: u8, parts: &[&[u8]], body: MultipartRequestBody) {
        let flags = MultipartFlags::MORE;
        let request = MultipartRequest { flags, body };
        golden::message(
            &framed(16, stats_type, parts),
            &Message::MultipartRequest(request),
        );
    }

    #[track_caller]
    fn reply(stats_type: u8, parts: &[&[u8]], body: MultipartReplyBody) {
        let flags = MultipartFlags::MORE;
        let reply = MultipartReply { flags, body };
        golden::message(
            &framed(17, stats_type, parts),
            &Message::MultipartReply(reply),
        );
    }

    #[test]
    fn requests_without_a_body_both_ways() {
        request(0, &[], MultipartRequestBody::Desc);
        request(3, &[], MultipartRequestBody::Table);
    }

    #[test]
    fn flow_and_aggregate_requests_both_ways() {
        let tail = [0xff, 0x00, 0x00, 0x02]; // table_id, padding, out_port
        let flows = FlowStatsRequest {
            out_port: PortNo(2),
            match_: match_(),
            ..FlowStatsRequest::default()
        };
        let parts: [&[u8]; 2] = [&MATCH, &tail];
        request(1, &parts, MultipartRequestBody::Flow(flows.clone()));
        request(2, &parts, MultipartRequestBody::Aggregate(flows));
    }

    #[test]
    fn port_and_queue_requests_both_ways() {
        let all_ports = [0xff, 0xff, 0, 0, 0, 0, 0, 0];
        request(
            4,
            &[&all_ports],
            MultipartRequestBody::PortStats(PortNo::ANY),
        );
        let all_queues = [0xff, 0xfc, 0, 0, 0xff, 0xff, 0xff, 0xff];
        let queues = MultipartRequestBody::Queue {
            port: PortNo::ALL,
            queue_id: QUEUE_ALL,
        };
        request(5, &[&all_queues], queues);
    }

    #[test]
    fn vendor_both_ways() {
        let vendor = ExperimenterMultipart {
            experimenter: 0x2320,
            data: &[5, 6, 7],
        };
        let bytes: [&[u8]; 2] = [&[0, 0, 0x23, 0x20], &[5, 6, 7]];
        for (message_type, stats) in [
            (
                16,
                Message::MultipartRequest(MultipartRequest {
                    flags: MultipartFlags::MORE,
                    body: MultipartRequestBody::Experimenter(vendor),
                }),
            ),
            (
                17,
                Message::MultipartReply(MultipartReply {
                    flags: MultipartFlags::MORE,
                    body: MultipartReplyBody::Experimenter(vendor),
                }),
            ),
        ] {
            let mut frame = framed(message_type, 0xff, &bytes);
            frame[8] = 0xff;
            golden::message(&frame, &stats);
        }
    }

    #[test]
    fn desc_reply_both_ways() {
        let padded = |text: &str, length: usize| {
            let mut bytes = text.as_bytes().to_vec();
            bytes.resize(length, 0);
            bytes
        };
        let desc = Desc {
            mfr_desc: const { &FixedName::truncated("maker") }.as_ref(),
            hw_desc: const { &FixedName::truncated("hardware") }.as_ref(),
            sw_desc: const { &FixedName::truncated("software") }.as_ref(),
            serial_num: const { &FixedName::truncated("serial") }.as_ref(),
            dp_desc: const { &FixedName::truncated("datapath") }.as_ref(),
        };
        let parts = [
            padded("maker", 256),
            padded("hardware", 256),
            padded("software", 256),
            padded("serial", 32),
            padded("datapath", 256),
        ];
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        reply(0, &parts, MultipartReplyBody::Desc(desc));
    }

    const FLOW_STATS_TAIL: [u8; 52] = [
        0x00, 0x00, 0x00, 0x3c, // duration_sec
        0x00, 0x00, 0x01, 0xf4, // duration_nsec
        0x12, 0x34, // priority
        0x00, 0x05, // idle_timeout
        0x00, 0x0a, // hard_timeout
        0, 0, 0, 0, 0, 0, // padding
        0x00, 0x00, 0x00, 0x00, 0xde, 0xad, 0xbe, 0xef, // cookie
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x09, // packet_count
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x1c, // byte_count
        0x00, 0x00, 0x00, 0x08, 0x00, 0x02, 0x00, 0x00, // output 2
    ];

    fn flow_stats() -> FlowStats<'static> {
        FlowStats {
            table_id: 3,
            duration_sec: 60,
            duration_nsec: 500,
            priority: 0x1234,
            idle_timeout: 5,
            hard_timeout: 10,
            flags: FlowModFlags::empty(),
            cookie: 0xdead_beef,
            packet_count: 9,
            byte_count: 540,
            match_: match_(),
            instructions: List::from(vec![Instruction::apply(vec![Action::output(PortNo(2))])]),
        }
    }

    #[test]
    fn flow_reply_both_ways() {
        let with_actions: [&[u8]; 3] = [&[0, 96, 3, 0], &MATCH, &FLOW_STATS_TAIL];
        let without: [&[u8]; 3] = [&[0, 88, 3, 0], &MATCH, &FLOW_STATS_TAIL[..44]];
        let dropping = FlowStats {
            instructions: List::default(),
            ..flow_stats()
        };
        let flows = List::from(vec![flow_stats(), dropping]);
        reply(
            1,
            &[with_actions, without].concat(),
            MultipartReplyBody::Flow(flows),
        );
    }

    #[test]
    fn wrong_flow_stats_lengths_are_errors() {
        for length in [0, 1, 2, 87, 89, 95, 97, 255] {
            let parts: [&[u8]; 3] = [&[0, length, 3, 0], &MATCH, &FLOW_STATS_TAIL];
            let frame = framed(17, 1, &parts);
            assert!(Message::decode(&frame).is_err(), "length {length}");
        }
    }

    #[test]
    fn aggregate_reply_both_ways() {
        let bytes = [
            0, 0, 0, 0, 0, 0, 0, 9, // packet_count
            0, 0, 0, 0, 0, 0, 2, 28, // byte_count
            0, 0, 0, 4, 0, 0, 0, 0, // flow_count, padding
        ];
        let stats = AggregateStats {
            packet_count: 9,
            byte_count: 540,
            flow_count: 4,
        };
        reply(2, &[&bytes], MultipartReplyBody::Aggregate(stats));
    }

    #[test]
    fn table_reply_both_ways() {
        let head = [4, 0, 0, 0]; // table_id, padding
        let mut name = [0; 32];
        name[..4].copy_from_slice(b"main");
        let tail = [
            0x00, 0x3f, 0xff, 0xff, // wildcards
            0x00, 0x01, 0x00, 0x00, // max_entries
            0x00, 0x00, 0x00, 0x05, // active_count
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x06, // lookup_count
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, // matched_count
        ];
        let stats = TableStats {
            table_id: 4,
            name: FixedName::truncated("main"),
            wildcards: 0x003f_ffff,
            max_entries: 0x1_0000,
            active_count: 5,
            lookup_count: 6,
            matched_count: 7,
        };
        let tables = MultipartReplyBody::Table(List::from(vec![stats]));
        reply(3, &[&head, &name, &tail], tables);
    }

    #[test]
    fn port_reply_both_ways() {
        let mut bytes = vec![0xff, 0xfe, 0, 0, 0, 0, 0, 0];
        bytes.extend((1..=12_u8).flat_map(|counter| [0, 0, 0, 0, 0, 0, 0, counter]));
        let stats = PortStats {
            port_no: PortNo::LOCAL,
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
            duration_sec: 0,
            duration_nsec: 0,
        };
        let ports = MultipartReplyBody::PortStats(List::from(vec![stats]));
        reply(4, &[&bytes], ports);
    }

    #[test]
    fn queue_reply_both_ways() {
        let bytes = [
            0, 7, 0, 0, 0, 0, 0, 5, // port_no, padding, queue_id
            0, 0, 0, 0, 0, 0, 0, 1, // tx_bytes
            0, 0, 0, 0, 0, 0, 0, 2, // tx_packets
            0, 0, 0, 0, 0, 0, 0, 3, // tx_errors
        ];
        let stats = QueueStats {
            port_no: PortNo(7),
            queue_id: 5,
            tx_bytes: 1,
            tx_packets: 2,
            tx_errors: 3,
            duration_sec: 0,
            duration_nsec: 0,
        };
        let queues = MultipartReplyBody::Queue(List::from(vec![stats]));
        reply(5, &[&bytes], queues);
    }

    #[test]
    fn an_unknown_type_is_an_error() {
        for message_type in [16, 17] {
            let error = Message::decode(&framed(message_type, 6, &[])).expect_err("unknown type");
            assert_eq!(error.code(), ErrorCode::BadRequestBadMultipart);
        }
    }

    #[test]
    fn what_only_1_3_has_is_refused() {
        let refused = |body| {
            let flags = MultipartFlags::empty();
            golden::refused_message(&Message::MultipartRequest(MultipartRequest { flags, body }))
        };
        assert_eq!(
            refused(MultipartRequestBody::PortDesc),
            "OpenFlow 1.0 cannot express the multipart request OFPMP_PORT_DESC"
        );
        let by_cookie = FlowStatsRequest {
            cookie_mask: 1,
            ..FlowStatsRequest::default()
        };
        assert_eq!(
            refused(MultipartRequestBody::Flow(by_cookie)),
            "OpenFlow 1.0 cannot express the cookie_mask of a flow stats request"
        );
        let flagged = FlowStats {
            flags: FlowModFlags::SEND_FLOW_REM,
            ..flow_stats()
        };
        assert_eq!(
            golden::refused(&flagged),
            "OpenFlow 1.0 cannot express the flags of a flow stats entry"
        );
    }
}
