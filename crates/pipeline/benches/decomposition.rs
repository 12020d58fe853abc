//! The benefit of cutting a table into sub-tables, in cycles of the time-stamp counter per packet.
//!
//! `cargo bench -p urtica-pipeline --bench decomposition` sends equal packets through equal entries twice: compiled
//! with cuts, and without. The two alternate, burst by burst over all packets, and the minimum of many rounds counts, so
//! that other load on the machine affects neither. The fixed cost of each packet is included: copying it into the
//! burst, and finding its headers. Each entry has a packet, in an order that no branch predictor knows, except
//! in the last rows. Packets that the compiled form leaves to the plain form are processed there. Under `cargo test` it
//! is short.

use std::hint::black_box;
use std::time::Duration;
use urtica_pipeline::{
    BURST, Burst, CompileConfig, Compiled, Packet, PacketInCause, Pipeline, PipelineConfig, Reader,
    Sink, Verdict,
};
use urtica_wire::{FlowMod, FlowModCommand, MacAddr, Port, PortNo};

/// Number of packets in a round: more than a branch predictor remembers.
const PACKETS: usize = 1 << 16;

/// Number of rounds of each compiled form, in a measurement and under `cargo test`.
const ROUNDS: usize = 40;
const ROUNDS_IN_TESTS: usize = 1;

/// A table, and the packets that are sent to it.
struct Case {
    name: String,
    entries: Vec<String>,
    packets: Vec<Frame>,
    /// The indices of the packets, in the order of sending.
    order: Vec<usize>,
}

/// The fields that differ between packets.
#[derive(Clone, Copy, Default)]
struct Frame {
    in_port: u32,
    source: u32,
    destination: u32,
    port: u16,
}

/// One compiled form of a pipeline.
struct Subject {
    pipeline: Pipeline,
    reader: Reader,
    burst: Burst,
}

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let rounds = if is_bench { ROUNDS } else { ROUNDS_IN_TESTS };
    println!(
        "{:<52} {:>7} {:>7}  cut into",
        "cycles for each packet", "whole", "cut"
    );
    for masks in [3, 8, 30, 100] {
        measure(&services(masks), rounds);
    }
    for lengths in [3, 8, 16] {
        measure(&routes(lengths), rounds);
    }
    for masks in [8, 30] {
        measure(&unlike(masks), rounds);
    }
    for masks in [8, 30] {
        measure(&first(masks), rounds);
    }
}

/// Returns 64 addresses, each with entries of four of `masks` masks of the source.
fn services(masks: u32) -> Case {
    let mut entries = Vec::new();
    let mut packets = Vec::new();
    for service in 0..64 {
        for number in 0..4 {
            let mask = (service * 4 + number) % masks;
            let (bits, port) = (8 + mask % 25, mask / 25);
            let destination = 10 << 24 | service;
            let source = scatter(service * 4 + number);
            let network = source & (u32::MAX << (32 - bits));
            let to = match port {
                0 => format!("ip,nw_dst={}", ip(destination)),
                1 => format!("tcp,nw_dst={},tp_dst=80", ip(destination)),
                2 => format!("tcp,nw_dst={},tp_src=7", ip(destination)),
                _ => format!("tcp,nw_dst={},tp_dst=80,tp_src=7", ip(destination)),
            };
            entries.push(format!(
                "priority={},{to},nw_src={}/{bits},actions=output:2",
                mask % 7,
                ip(network)
            ));
            packets.push(Frame {
                in_port: 1,
                source,
                destination,
                port: 80,
            });
        }
    }
    case(format!("64 services, {masks} masks"), entries, packets)
}

/// Returns prefixes of `lengths` lengths for each of eight ports, 200 each.
fn routes(lengths: u32) -> Case {
    let mut entries = Vec::new();
    let mut packets = Vec::new();
    for in_port in 1..9 {
        for number in 0..200 {
            let bits = 30 - number % lengths;
            let network = 10 << 24 | (number / lengths) << (32 - bits);
            entries.push(format!(
                "priority={bits},in_port={in_port},ip,nw_dst={}/{bits},actions=output:2",
                ip(network)
            ));
            packets.push(Frame {
                in_port,
                destination: network,
                ..Frame::default()
            });
        }
    }
    case(
        format!("routes of 8 ports, {lengths} lengths"),
        entries,
        packets,
    )
}

/// Returns entries of `masks` masks, each for its own bits of two addresses: no field distinguishes many.
fn unlike(masks: u32) -> Case {
    let mut entries = Vec::new();
    let mut packets = Vec::new();
    for number in 0..4 * masks {
        let mask = 0x8080_0101 | scatter(number % masks) & 0x00ff_ff00;
        let (source, destination) = (scatter(number), scatter(number + 999));
        entries.push(format!(
            "priority={},ip,nw_src={}/{},nw_dst={}/{},actions=output:2",
            number % 5,
            ip(source & mask),
            ip(mask),
            ip(destination & mask.rotate_left(number % masks)),
            ip(mask.rotate_left(number % masks)),
        ));
        packets.push(Frame {
            in_port: 1,
            source,
            destination,
            port: 80,
        });
    }
    case(
        format!("no field in common, {masks} masks"),
        entries,
        packets,
    )
}

/// Returns the services with packets that all match the first entries searched.
fn first(masks: u32) -> Case {
    let mut case = services(masks);
    case.name = format!("the same, all match first, {masks} masks");
    case.entries
        .push("priority=99,tcp,tp_src=7,actions=output:3".to_owned());
    case
}

fn case(name: String, entries: Vec<String>, packets: Vec<Frame>) -> Case {
    let pick = |round: usize| scatter(round as u32) as usize % packets.len();
    Case {
        name,
        entries,
        order: (0..PACKETS).map(pick).collect(),
        packets,
    }
}

fn measure(case: &Case, rounds: usize) {
    let frames: Vec<_> = case.packets.iter().map(|frame| frame.bytes()).collect();
    let mut subjects = [false, true].map(|decomposes| Subject::new(case, decomposes));
    let mut best = [u64::MAX; 2];
    for _ in 0..rounds {
        for (subject, best) in subjects.iter_mut().zip(&mut best) {
            *best = subject.round(case, &frames).min(*best);
        }
    }
    let [whole, cut] = best.map(|cycles| cycles as f64 / PACKETS as f64);
    let explained = subjects[1].pipeline.explain(false);
    let table = explained.and_then(|explained| explained.tables.into_iter().next());
    let cut_into = match table.and_then(|table| table.cut) {
        Some(explained) => format!("{} by {}", explained.values, explained.by),
        None => "not cut".to_owned(),
    };
    println!("{:<52} {whole:>7.0} {cut:>7.0}  {cut_into}", case.name);
}

impl Subject {
    fn new(case: &Case, decomposes: bool) -> Self {
        let mut pipeline = Pipeline::new(PipelineConfig::default());
        for number in 1..=8 {
            pipeline.set_port(Port::new(PortNo(number), MacAddr::ZERO, "port"));
        }
        for entry in &case.entries {
            let flow_mod = FlowMod::parse(FlowModCommand::Add, entry).expect(entry);
            let added = pipeline.flow_mod(&flow_mod, Duration::ZERO, &mut Vec::new());
            added.expect(entry);
        }
        let config = CompileConfig {
            decomposes,
            ..CompileConfig::default()
        };
        let compiled: std::sync::Arc<Compiled> = pipeline.compile(config).expect("memory");
        Self {
            reader: compiled.reader(),
            pipeline,
            burst: Burst::new(),
        }
    }

    /// Processes all packets once; returns the number of cycles.
    fn round(&mut self, case: &Case, frames: &[[u8; 60]]) -> u64 {
        let start = cycles();
        for numbers in case.order.chunks(BURST) {
            self.burst.clear();
            for &number in numbers {
                let in_port = PortNo(case.packets[number].in_port);
                self.burst.push(in_port, &frames[number]);
            }
            self.reader.process(&mut self.burst, Duration::ZERO);
            for frame in self.burst.iter() {
                if frame.verdict() == Verdict::Punt {
                    self.pipeline.resume(frame, Duration::ZERO, &mut Nowhere);
                }
                black_box(frame.verdict());
            }
        }
        cycles() - start
    }
}

/// A sink that discards packets.
struct Nowhere;

impl Sink for Nowhere {
    fn transmit(&mut self, _: PortNo, packet: &Packet) {
        black_box(packet);
    }

    fn packet_in(&mut self, packet: &Packet, _: PacketInCause) {
        black_box(packet);
    }

    fn normal(&mut self, packet: &Packet) {
        black_box(packet);
    }
}

impl Frame {
    /// Returns a TCP packet.
    fn bytes(self) -> [u8; 60] {
        let mut bytes = [0; 60];
        bytes[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6]);
        bytes[26..30].copy_from_slice(&self.source.to_be_bytes());
        bytes[30..34].copy_from_slice(&self.destination.to_be_bytes());
        bytes[34..36].copy_from_slice(&7_u16.to_be_bytes());
        bytes[36..38].copy_from_slice(&self.port.to_be_bytes());
        bytes[46] = 0x50;
        bytes
    }
}

/// Returns cycles of the time-stamp counter; nanoseconds if there is none.
fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the counter.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        let start = START.get_or_init(std::time::Instant::now);
        start.elapsed().as_nanos() as u64
    }
}

fn ip(address: u32) -> String {
    std::net::Ipv4Addr::from(address).to_string()
}

/// Scatters numbers in an unpredictable order.
fn scatter(number: u32) -> u32 {
    let product = u64::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (product >> 29) as u32 ^ product as u32
}
