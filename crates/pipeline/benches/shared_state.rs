//! The cost of meters and groups in compiled tables, in nanoseconds per packet, compared with a packet without them.
//!
//! `cargo bench -p urtica-pipeline --bench shared_state` sends bursts of IPv4 packets through one entry. The fastest of
//! many rounds counts, so that other load on the machine has little effect. Packets that the compiled form leaves to the
//! plain form are processed there, at the cost that they have in a switch.

use std::time::{Duration, Instant};
use urtica_pipeline::{
    BURST, Burst, CompileConfig, Packet, PacketInCause, Pipeline, PipelineConfig, Sink, Verdict,
};
use urtica_wire::{
    FlowMod, FlowModCommand, GroupMod, GroupModCommand, MacAddr, MeterMod, MeterModCommand, Port,
    PortNo,
};

/// Number of rounds, and number of bursts per round.
const ROUNDS: usize = 200;
const BURSTS: usize = 100;

const CASES: [(&str, &str); 5] = [
    ("output", "ip,actions=output:2"),
    ("meter, output", "ip,actions=meter:1,output:2"),
    ("indirect group", "ip,actions=group:1"),
    ("select group of 4 buckets", "ip,actions=group:2"),
    ("fast-failover group", "ip,actions=group:3"),
];

const GROUPS: [&str; 3] = [
    "group_id=1,type=indirect,bucket=actions=output:2",
    "group_id=2,type=select,bucket=weight:1,actions=output:2,bucket=weight:1,actions=output:3,\
     bucket=weight:1,actions=output:4,bucket=weight:1,actions=output:5",
    "group_id=3,type=ff,bucket=watch_port:2,actions=output:2,bucket=watch_port:3,actions=output:3",
];

struct Nowhere;

impl Sink for Nowhere {
    fn transmit(&mut self, _port: PortNo, _packet: &Packet) {}

    fn packet_in(&mut self, _packet: &Packet, _cause: PacketInCause) {}

    fn normal(&mut self, _packet: &Packet) {}
}

fn pipeline() -> Pipeline {
    let mut pipeline = Pipeline::new(PipelineConfig::default());
    for number in 1..=5 {
        let mac = MacAddr::from_u64(number.into());
        pipeline.set_port(Port::new(PortNo(number), mac, "port"));
    }
    let (now, removed) = (Duration::ZERO, &mut Vec::new());
    for text in GROUPS {
        let group = GroupMod::parse(GroupModCommand::Add, text).expect(text);
        pipeline.group_mod(&group, now, removed).expect(text);
    }
    let text = "meter=1,pktps,bands=type=drop,rate=4000000000";
    let meter = MeterMod::parse(MeterModCommand::Add, text).expect(text);
    pipeline.meter_mod(&meter, now, removed).expect(text);
    pipeline
}

/// Returns a UDP packet whose source port identifies its flow.
fn packet(flow: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 1, 8, 0];
    frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0x66, 0xc0]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 7, flow, 0, 81, 0, 20, 0, 0]);
    frame.resize(60, 0);
    frame
}

/// Returns the nanoseconds per packet, and whether the compiled form processed all packets.
fn measure(flow: &str, is_shared: bool) -> (f64, bool) {
    let mut pipeline = pipeline();
    let config = CompileConfig {
        is_shared,
        ..CompileConfig::default()
    };
    let compiled = pipeline.compile(config).expect("there is memory");
    let flow_mod = FlowMod::parse(FlowModCommand::Add, flow).expect(flow);
    let added = pipeline.flow_mod(&flow_mod, Duration::ZERO, &mut Vec::new());
    added.expect(flow);
    let mut reader = compiled.reader();
    let mut burst = Burst::new();
    let frames: Vec<_> = (0..BURST as u8).map(packet).collect();
    let (mut best, mut is_compiled) = (Duration::MAX, true);
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..BURSTS {
            burst.clear();
            for frame in &frames {
                assert!(burst.push(PortNo(1), frame), "a burst has room");
            }
            let now = begin.elapsed();
            reader.process(&mut burst, now);
            for frame in burst
                .iter()
                .filter(|frame| frame.verdict() == Verdict::Punt)
            {
                is_compiled = false;
                pipeline.resume(frame, now, &mut Nowhere);
            }
        }
        best = best.min(start.elapsed());
    }
    let packets = (BURSTS * BURST) as f64;
    (best.as_secs_f64() * 1e9 / packets, is_compiled)
}

fn main() {
    for is_shared in [false, true] {
        let threads = if is_shared {
            "several threads"
        } else {
            "one thread"
        };
        println!("{threads:<28} {:>8} {:>8}", "ns", "ratio");
        let (base, _) = measure(CASES[0].1, is_shared);
        for (name, flow) in CASES {
            let (ns, is_compiled) = measure(flow, is_shared);
            let form = if is_compiled { "" } else { "  plain form" };
            println!("{name:<28} {ns:>8.1} {:>8.2}{form}", ns / base);
        }
    }
}
