//! The cost of finding a packet's entry, and of filling a table.
//!
//! `cargo bench -p urtica-pipeline` measures; under `cargo test` each runs once. 4,096 packets are looked up one after
//! another. Their headers are found beforehand, since that happens once per packet, whatever the number of tables. The
//! entries found in a large table exceed the nearest cache, but not the last one: entries fetched from memory would
//! cost more. The plain search is included while it is feasible.

#![allow(missing_docs, reason = "criterion_group! makes a public function")]

use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, measurement::WallTime};
use criterion::{criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;
use urtica_pipeline::{FlowTable, Packet, Pipeline, PipelineConfig};
use urtica_wire::{
    Action, Field, FlowMod, FlowModCommand, Instruction, List, Match, OxmField, PortNo,
};

/// Maximum number of entries for which the plain search is measured.
const PLAIN_MAX: u64 = 1_000;

/// Number of packets that are looked up, one after another.
const PACKETS: u64 = 4_096;

/// IPv4 over Ethernet without payload; addresses are filled in.
#[rustfmt::skip]
const FRAME: [u8; 34] = [
    0, 0, 0, 0, 0, 0,  0x02, 0, 0, 0, 0, 1,  0x08, 0x00,
    0x45, 0, 0, 20,  0, 0, 0, 0,  64, 253, 0, 0,  10, 0, 0, 1,  0, 0, 0, 0,
];

fn find_exact(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("find among eth_dst entries");
    for count in [1, 1_000, 100_000] {
        let pipeline = pipeline((0..count).map(|number| add(1, eth_dst(number))));
        let packets = packets(|round| to_host(scatter(round) % count));
        find(&mut group, count, &pipeline.tables()[0], &packets);
    }
}

/// Longer prefixes have higher priorities, as in a table of routes, but a search still has to try most lengths.
fn find_prefix(criterion: &mut Criterion) {
    const COUNT: u64 = 10_000;
    let mut group = criterion.benchmark_group("find among IPv4 prefixes of 20 lengths");
    let pipeline = pipeline((0..COUNT).map(|number| {
        let len = prefix_len(number);
        add(len as u16, ipv4_prefix(prefix(number), len))
    }));
    let packets = packets(|round| to_address(prefix(scatter(round) % COUNT)));
    find(&mut group, COUNT, &pipeline.tables()[0], &packets);
}

fn find(group: &mut BenchmarkGroup<WallTime>, count: u64, table: &FlowTable, packets: &[Packet]) {
    assert!(
        packets.iter().all(|packet| table.find(packet).is_some()),
        "all are found"
    );
    let mut packets = packets.iter().cycle();
    group.bench_function(BenchmarkId::new("find", count), |bencher| {
        bencher.iter(|| table.find(black_box(packets.next()?)));
    });
    if count <= PLAIN_MAX {
        group.bench_function(BenchmarkId::new("find_plainly", count), |bencher| {
            bencher.iter(|| table.find_plainly(black_box(packets.next()?)));
        });
    }
}

fn load(criterion: &mut Criterion) {
    const COUNT: u64 = 100_000;
    let mut group = criterion.benchmark_group("flow_mod");
    let adds: Vec<_> = (0..COUNT).map(|number| add(1, eth_dst(number))).collect();
    group.throughput(Throughput::Elements(COUNT));
    group.sample_size(10);
    group.bench_function("add 100,000 eth_dst entries", |bencher| {
        bencher.iter_with_large_drop(|| carry_out(empty(), &adds));
    });
    group.bench_function("delete them one by one", |bencher| {
        let deletes = adds.iter().map(|add| FlowMod {
            command: FlowModCommand::Delete,
            ..add.clone()
        });
        let deletes: Vec<_> = deletes.collect();
        let full = || carry_out(empty(), &adds);
        bencher.iter_batched(full, |full| carry_out(full, &deletes), BATCH);
    });
    group.bench_function("delete them at once", |bencher| {
        let full = || carry_out(empty(), &adds);
        let delete = [FlowMod {
            command: FlowModCommand::Delete,
            ..FlowMod::default()
        }];
        bencher.iter_batched(full, |full| carry_out(full, &delete), BATCH);
    });
}

const BATCH: criterion::BatchSize = criterion::BatchSize::PerIteration;

/// Creates a pipeline with these flow mods.
fn pipeline(flow_mods: impl Iterator<Item = FlowMod<'static>>) -> Pipeline {
    flow_mods.fold(empty(), |pipeline, flow_mod| {
        carry_out(pipeline, &[flow_mod])
    })
}

fn empty() -> Pipeline {
    Pipeline::new(PipelineConfig::default())
}

fn carry_out(mut pipeline: Pipeline, flow_mods: &[FlowMod]) -> Pipeline {
    for flow_mod in flow_mods {
        let result = pipeline.flow_mod(flow_mod, Duration::ZERO, &mut Vec::new());
        result.expect("the flow mod is right");
    }
    pipeline
}

fn add(priority: u16, match_: Match<'static>) -> FlowMod<'static> {
    let instruction = Instruction::apply(vec![Action::output(PortNo::CONTROLLER)]);
    FlowMod {
        command: FlowModCommand::Add,
        priority,
        match_,
        instructions: List::from(vec![instruction]),
        ..FlowMod::default()
    }
}

fn eth_dst(number: u64) -> Match<'static> {
    Match::from(vec![Field::exact(OxmField::EthDst, host(number).into())])
}

fn ipv4_prefix(prefix: u32, len: u32) -> Match<'static> {
    let mask = u32::MAX << (32 - len);
    Match::from(vec![
        Field::exact(OxmField::EthType, 0x0800),
        Field::masked(OxmField::Ipv4Dst, (prefix & mask).into(), mask.into()),
    ])
}

/// Returns a host's address, which counts up.
fn host(number: u64) -> u64 {
    0x0200_0000_0000 + number
}

fn prefix(number: u64) -> u32 {
    (scatter(number) >> 8) as u32
}

/// Returns a prefix length from 9 to 28.
fn prefix_len(number: u64) -> u32 {
    9 + (number % 20) as u32
}

fn packets(packet: impl Fn(u64) -> Packet) -> Vec<Packet> {
    let packets: Vec<_> = (0..PACKETS).map(packet).collect();
    for packet in &packets {
        packet.field(OxmField::EthType);
    }
    packets
}

fn to_host(number: u64) -> Packet {
    let mut frame = FRAME;
    frame[..6].copy_from_slice(&host(number).to_be_bytes()[2..]);
    Packet::new(PortNo(1), &frame)
}

fn to_address(address: u32) -> Packet {
    let mut frame = FRAME;
    frame[30..].copy_from_slice(&address.to_be_bytes());
    Packet::new(PortNo(1), &frame)
}

/// Scatters numbers in an order that no prefetcher predicts.
fn scatter(number: u64) -> u64 {
    let product = u128::from(number + 1) * 0x9e37_79b9_7f4a_7c15_f39c;
    product as u64 ^ (product >> 64) as u64
}

criterion_group!(lookup, find_exact, find_prefix, load);
criterion_main!(lookup);
