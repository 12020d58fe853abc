//! Helpers for the tests of whole messages.

use urtica_wire::{
    Bucket, Element, FlowMod, FlowRemoved, FlowStats, FlowStatsRequest, GroupDesc, GroupMod,
    GroupStats, Hello, Instruction, List, Match, Message, MeterConfig, MeterMod, MeterStats,
    MultipartReply, MultipartReplyBody as Reply, MultipartRequest, MultipartRequestBody as Request,
    PacketIn, PacketOut, PacketQueue, QueueConfig, TableFeatures, Version,
};

/// Returns the messages in `tests/vectors/<file>`, which has one JSON object per line with name and bytes.
pub fn vectors(file: &str) -> Vec<(String, Vec<u8>)> {
    let path = format!("{}/tests/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let lines = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    lines.lines().map(vector).collect()
}

fn vector(line: &str) -> (String, Vec<u8>) {
    let value: serde_json::Value = serde_json::from_str(line).expect("a line is a JSON object");
    let text = |key: &str| value[key].as_str().expect("a string").to_owned();
    (text("name"), bytes(&text("hex")))
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex digits");
    (0..hex.len()).step_by(2).map(digit).collect()
}

/// Returns the message as bytes.
pub fn encoded(message: &Message, version: Version, xid: u32) -> Vec<u8> {
    let mut out = Vec::new();
    match message.encode(version, xid, &mut out) {
        Ok(()) => out,
        Err(error) => panic!("{error}: {message:?}"),
    }
}

/// Returns an equal message with every list rebuilt from values, down to the last action, so that it is encoded element by
/// element. A list from the wire would be copied unchanged.
pub fn rebuilt<'a>(message: &Message<'a>) -> Message<'a> {
    match message.clone() {
        Message::Hello(hello) => Message::Hello(Hello {
            elements: values(&hello.elements),
        }),
        Message::PacketIn(packet_in) => Message::PacketIn(PacketIn {
            match_: fields(&packet_in.match_),
            ..packet_in
        }),
        Message::FlowRemoved(removed) => Message::FlowRemoved(FlowRemoved {
            match_: fields(&removed.match_),
            ..removed
        }),
        Message::PacketOut(packet_out) => Message::PacketOut(PacketOut {
            actions: values(&packet_out.actions),
            ..packet_out
        }),
        Message::FlowMod(flow_mod) => Message::FlowMod(FlowMod {
            match_: fields(&flow_mod.match_),
            instructions: instructions(&flow_mod.instructions),
            ..flow_mod
        }),
        Message::GroupMod(group_mod) => Message::GroupMod(GroupMod {
            buckets: buckets(&group_mod.buckets),
            ..group_mod
        }),
        Message::MeterMod(meter_mod) => Message::MeterMod(MeterMod {
            bands: values(&meter_mod.bands),
            ..meter_mod
        }),
        Message::QueueGetConfigReply(config) => Message::QueueGetConfigReply(QueueConfig {
            queues: map(&config.queues, queue),
            ..config
        }),
        Message::MultipartRequest(request) => Message::MultipartRequest(MultipartRequest {
            body: request_body(request.body),
            ..request
        }),
        Message::MultipartReply(reply) => Message::MultipartReply(MultipartReply {
            body: reply_body(reply.body),
            ..reply
        }),
        other => other,
    }
}

fn map<'a, T: Element<'a>>(list: &List<'a, T>, rebuild: impl Fn(T) -> T) -> List<'a, T> {
    list.iter().map(rebuild).collect()
}

fn values<'a, T: Element<'a>>(list: &List<'a, T>) -> List<'a, T> {
    map(list, |value| value)
}

fn fields<'a>(match_: &Match<'a>) -> Match<'a> {
    Match::from(match_.fields().collect::<Vec<_>>())
}

fn instructions<'a>(list: &List<'a, Instruction<'a>>) -> List<'a, Instruction<'a>> {
    map(list, |instruction| match instruction {
        Instruction::WriteActions(actions) => Instruction::WriteActions(values(&actions)),
        Instruction::ApplyActions(actions) => Instruction::ApplyActions(values(&actions)),
        other => other,
    })
}

fn buckets<'a>(list: &List<'a, Bucket<'a>>) -> List<'a, Bucket<'a>> {
    map(list, |bucket| Bucket {
        actions: values(&bucket.actions),
        ..bucket
    })
}

fn queue(queue: PacketQueue) -> PacketQueue {
    PacketQueue {
        properties: values(&queue.properties),
        ..queue
    }
}

fn request_body(body: Request) -> Request {
    match body {
        Request::Flow(request) => Request::Flow(flow_request(request)),
        Request::Aggregate(request) => Request::Aggregate(flow_request(request)),
        Request::TableFeatures(tables) => Request::TableFeatures(map(&tables, table_features)),
        other => other,
    }
}

fn flow_request(request: FlowStatsRequest) -> FlowStatsRequest {
    FlowStatsRequest {
        match_: fields(&request.match_),
        ..request
    }
}

fn reply_body(body: Reply) -> Reply {
    match body {
        Reply::Flow(entries) => Reply::Flow(map(&entries, flow_stats)),
        Reply::Table(tables) => Reply::Table(values(&tables)),
        Reply::PortStats(ports) => Reply::PortStats(values(&ports)),
        Reply::Queue(queues) => Reply::Queue(values(&queues)),
        Reply::Group(groups) => Reply::Group(map(&groups, |group| GroupStats {
            buckets: values(&group.buckets),
            ..group
        })),
        Reply::GroupDesc(groups) => Reply::GroupDesc(map(&groups, |group| GroupDesc {
            buckets: buckets(&group.buckets),
            ..group
        })),
        Reply::Meter(meters) => Reply::Meter(map(&meters, |meter| MeterStats {
            bands: values(&meter.bands),
            ..meter
        })),
        Reply::MeterConfig(meters) => Reply::MeterConfig(map(&meters, |meter| MeterConfig {
            bands: values(&meter.bands),
            ..meter
        })),
        Reply::TableFeatures(tables) => Reply::TableFeatures(map(&tables, table_features)),
        Reply::PortDesc(ports) => Reply::PortDesc(values(&ports)),
        other => other,
    }
}

fn flow_stats(stats: FlowStats) -> FlowStats {
    FlowStats {
        match_: fields(&stats.match_),
        instructions: instructions(&stats.instructions),
        ..stats
    }
}

fn table_features(features: TableFeatures) -> TableFeatures {
    TableFeatures {
        properties: values(&features.properties),
        ..features
    }
}
