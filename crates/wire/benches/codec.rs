//! The cost of reading and writing, message by message.
//!
//! `cargo bench -p urtica-wire` measures; under `cargo test` each runs once. All data is in the caches and every
//! branch is predicted, so these figures are lower bounds; `urtica bench` measures the cost of a message in a loaded
//! controller.

#![allow(missing_docs, reason = "criterion_group! makes a public function")]

use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use std::hint::black_box;
use urtica_wire::packet::Headers;
use urtica_wire::{
    Action, BufferId, Capabilities, DatapathId, EntryOptions, ExactFlowMod, ExactMatch, Features,
    FlowMod, FlowModFlags, FlowStats, Header, Instruction, List, Match, Message, MultipartFlags,
    MultipartReply, MultipartReplyBody, PacketIn, PacketInReason, PacketOut, PortNo, Version,
};

/// A minimal TCP packet, as benchmarks of controllers send.
#[rustfmt::skip]
const TCP: [u8; 60] = [
    0x00, 0x00, 0x00, 0x00, 0x00, 0x02,  0x00, 0x00, 0x00, 0x00, 0x00, 0x01,  0x08, 0x00, // Ethernet
    0x45, 0x00, 0x00, 0x2e, 0x00, 0x00, 0x40, 0x00, 0x40, 0x06, 0x00, 0x00, // IPv4
    10, 0, 0, 1,  10, 0, 0, 2,
    0x04, 0xd2, 0x00, 0x50, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0, // TCP
    0, 0, 0, 0, 0, 0,
];

/// A neighbour solicitation after a VLAN tag and a hop-by-hop header: the longest path through the parser.
#[rustfmt::skip]
const SOLICITATION: [u8; 98] = [
    0x33, 0x33, 0xff, 0x00, 0x00, 0x02,  0x00, 0x00, 0x00, 0x00, 0x00, 0x01, // Ethernet
    0x81, 0x00, 0x00, 0x07,  0x86, 0xdd, // 802.1Q
    0x60, 0x00, 0x00, 0x00, 0x00, 0x28, 0x00, 0xff, // IPv6
    0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
    0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 2,
    0x3a, 0x00, 0x01, 0x04, 0, 0, 0, 0, // hop-by-hop options: padding
    0x87, 0x00, 0, 0, 0, 0, 0, 0, // ICMPv6
    0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
    0x01, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, // source link-layer address
];

fn decode_packet_in(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("PacketIn::decode");
    for version in Version::ALL {
        let frame = encoded(&packet_in(), version);
        group.throughput(Throughput::Bytes(frame.len() as u64));
        group.bench_function(version.to_string(), |bencher| {
            bencher.iter(|| {
                let body = &black_box(frame.as_slice())[Header::SIZE..];
                PacketIn::decode(version, body).map(|packet| (packet.eth_src(), packet.in_port()))
            });
        });
    }
}

fn decode_message(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("Message::decode");
    let messages = [
        ("echo request", Message::EchoRequest(&[])),
        ("packet-in", packet_in()),
        ("packet-out", packet_out()),
        ("flow mod", flow_mod()),
        ("features reply", features_reply()),
        ("100 flow stats", flow_stats(100)),
    ];
    for (name, message) in &messages {
        for version in Version::ALL {
            decode_one(&mut group, name, message, version);
        }
    }
}

fn decode_one(
    group: &mut BenchmarkGroup<WallTime>,
    name: &str,
    message: &Message,
    version: Version,
) {
    let frame = encoded(message, version);
    group.throughput(Throughput::Bytes(frame.len() as u64));
    group.bench_function(format!("{name}, {version}"), |bencher| {
        bencher.iter(|| Message::decode(black_box(&frame)).is_ok());
    });
}

/// Compares the straight-line writer with the general encoder for an entry.
fn write_exact_flow_mod(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("exact flow mod");
    let mut out = Vec::with_capacity(1024);
    let exact = exact_flow_mod();
    let general = flow_mod();
    for version in Version::ALL {
        assert_eq!(
            exact_bytes(&exact, version),
            encoded(&general, version),
            "both write the same entry"
        );
        group.bench_function(format!("ExactFlowMod::write, {version}"), |bencher| {
            bencher.iter(|| {
                out.clear();
                black_box(&exact).write(version, 1, &mut out)
            });
        });
        group.bench_function(format!("Message::encode, {version}"), |bencher| {
            bencher.iter(|| {
                out.clear();
                black_box(&general).encode(version, 1, &mut out)
            });
        });
    }
}

fn parse_headers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("Headers::parse");
    let packets: [(&str, &[u8]); 2] = [("TCP", &TCP), ("neighbour solicitation", &SOLICITATION)];
    for (name, packet) in packets {
        group.bench_function(name, |bencher| {
            bencher.iter(|| Headers::parse(black_box(packet)));
        });
    }
}

fn packet_in() -> Message<'static> {
    Message::PacketIn(PacketIn {
        buffer_id: BufferId(7),
        total_len: TCP.len() as u16,
        reason: PacketInReason::NoMatch,
        table_id: 0,
        cookie: u64::MAX,
        in_port: PortNo(1),
        match_: Match::any().in_port(PortNo(1)),
        data: &TCP,
    })
}

fn packet_out() -> Message<'static> {
    Message::PacketOut(PacketOut {
        buffer_id: BufferId(7),
        in_port: PortNo(1),
        actions: List::from(vec![Action::output(PortNo::FLOOD)]),
        data: &[],
    })
}

fn exact_flow_mod() -> ExactFlowMod<'static> {
    ExactFlowMod {
        match_: ExactMatch {
            in_port: PortNo(1),
            frame: &TCP,
        },
        port: PortNo(2),
        buffer_id: BufferId(7),
        options: EntryOptions::idle(5),
        table_id: 0,
    }
}

fn flow_mod() -> Message<'static> {
    let exact = exact_flow_mod();
    Message::FlowMod(FlowMod {
        buffer_id: exact.buffer_id,
        match_: Match::from(exact.match_.fields()),
        instructions: output(exact.port),
        ..exact.options.flow_mod()
    })
}

fn features_reply() -> Message<'static> {
    Message::FeaturesReply(Features {
        datapath_id: DatapathId(1),
        n_buffers: 256,
        n_tables: 1,
        auxiliary_id: 0,
        capabilities: Capabilities::FLOW_STATS,
        actions: 0,
        ports: List::default(),
    })
}

fn flow_stats(count: u16) -> Message<'static> {
    let entries: Vec<_> = (0..count).map(flow_entry).collect();
    Message::MultipartReply(MultipartReply {
        flags: MultipartFlags::empty(),
        body: MultipartReplyBody::Flow(List::from(entries)),
    })
}

fn flow_entry(priority: u16) -> FlowStats<'static> {
    FlowStats {
        table_id: 0,
        duration_sec: 1,
        duration_nsec: 0,
        priority,
        idle_timeout: 5,
        hard_timeout: 0,
        flags: FlowModFlags::empty(),
        cookie: 0,
        packet_count: 1,
        byte_count: 60,
        match_: Match::from(exact_flow_mod().match_.fields()),
        instructions: output(PortNo(2)),
    }
}

fn output(port: PortNo) -> List<'static, Instruction<'static>> {
    List::from(vec![Instruction::apply(vec![Action::output(port)])])
}

fn encoded(message: &Message, version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    let result = message.encode(version, 1, &mut out);
    result.expect("both versions have these messages");
    out
}

fn exact_bytes(flow_mod: &ExactFlowMod, version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    let result = flow_mod.write(version, 1, &mut out);
    result.expect("both versions have such entries");
    out
}

criterion_group!(
    codec,
    decode_packet_in,
    decode_message,
    write_exact_flow_mod,
    parse_headers
);
criterion_main!(codec);
