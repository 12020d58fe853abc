//! Tests that entries with meters are compiled, and that meters can change under traffic.

use crate::support::differential::{BACKENDS, Comparison, ComparisonConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use urtica_pipeline::{
    BURST, Backend, Burst, CompileConfig, Compiled, Pipeline, PipelineConfig, Verdict,
};
use urtica_wire::{FlowMod, FlowModCommand, MacAddr, MeterMod, MeterModCommand, Port, PortNo};

fn add(comparison: &mut Comparison, text: &str) {
    let flow_mod = FlowMod::parse(FlowModCommand::Add, text).expect(text);
    comparison.flow_mod(&flow_mod).expect(text);
}

fn meter(comparison: &mut Comparison, command: MeterModCommand, text: &str) {
    let meter_mod = MeterMod::parse(command, text).expect(text);
    comparison.meter_mod(&meter_mod);
}

/// A UDP packet over IPv4 with DSCP AF11 and a checksum.
fn ipv4() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 1, 8, 0];
    frame.extend([0x45, 10 << 2 | 1, 0, 40, 0, 0, 0, 0, 64, 17, 0x66, 0x97]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 0, 81, 0, 20, 0, 0]);
    frame.resize(60, 0);
    frame
}

/// A UDP packet over IPv6 with DSCP AF21.
fn ipv6() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 1, 0x86, 0xdd];
    frame.extend([0x64, 0x8f, 0xab, 0xcd, 0, 8, 17, 64]);
    frame.extend([1; 32]);
    frame.extend([0, 80, 0, 81, 0, 8, 0, 0]);
    frame
}

/// An ARP request, which has no DSCP.
fn arp() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 1, 8, 6];
    frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    frame.resize(60, 0);
    frame
}

/// Sends bursts, some time apart.
#[track_caller]
fn send(comparison: &mut Comparison) {
    for _ in 0..4 {
        let frames = (0..30).map(|number| {
            let frame = [ipv4(), ipv6(), arp()][number % 3].clone();
            (PortNo(1), frame)
        });
        comparison.send(&frames.collect::<Vec<_>>());
        comparison.wait(Duration::from_millis(150));
    }
    comparison.compare_counters();
}

/// The meter sees the frames of a burst in order, whichever form processes them.
#[test]
fn frames_of_both_forms_pass_a_meter_in_order() {
    let mut comparison = Comparison::new(ComparisonConfig::default());
    let text = "meter=1,pktps,burst,bands=type=drop,rate=50,burst_size=9";
    meter(&mut comparison, MeterModCommand::Add, text);
    let entries = [
        "priority=9,arp,actions=meter:1,set_field:1->arp_op,output:2",
        "priority=8,ipv6,actions=goto_table:1",
        "priority=1,actions=meter:1,output:3",
        "table=1,actions=meter:1,set_nw_ttl:3,output:4",
    ];
    entries.iter().for_each(|text| add(&mut comparison, text));
    let mut three_tags = ipv4();
    three_tags.splice(12..12, [0x81, 0, 0, 1].repeat(3));
    let kinds = [ipv4(), three_tags, arp(), ipv6(), ipv4()];
    for first in 0..kinds.len() {
        for step in 1..4 {
            let frames = (0..30).map(|number: usize| {
                let frame = kinds[(first + number * step / 2) % kinds.len()].clone();
                (PortNo(1), frame)
            });
            comparison.send(&frames.collect::<Vec<_>>());
            comparison.compare_counters();
            comparison.wait(Duration::from_millis(150));
        }
    }
    assert_ne!(comparison.punted, comparison.compared);
}

#[test]
fn meters_are_compiled_and_change_under_traffic() {
    use MeterModCommand::{Add, Delete, Modify};
    let mut comparison = Comparison::new(ComparisonConfig::default());
    meter(
        &mut comparison,
        Add,
        "meter=1,pktps,burst,bands=type=drop,rate=50,burst_size=20",
    );
    meter(
        &mut comparison,
        Add,
        "meter=2,kbps,burst,bands=type=dscp_remark,rate=20,burst_size=5,prec_level=1,type=drop,rate=60,burst_size=10",
    );
    add(
        &mut comparison,
        "priority=10,ip,actions=meter:1,set_field:02:00:00:00:00:09->eth_dst,dec_ttl,goto_table:1",
    );
    add(&mut comparison, "priority=1,actions=goto_table:1");
    add(
        &mut comparison,
        "table=1,priority=0,actions=meter:2,output:2",
    );
    send(&mut comparison);
    meter(
        &mut comparison,
        Modify,
        "meter=1,pktps,burst,bands=type=drop,rate=5,burst_size=3",
    );
    send(&mut comparison);
    meter(
        &mut comparison,
        Modify,
        "meter=2,kbps,bands=type=dscp_remark,rate=1,prec_level=2",
    );
    send(&mut comparison);
    comparison.recompile();
    send(&mut comparison);
    assert_eq!(comparison.punted, 0, "all of it is carried out compiled");
    meter(&mut comparison, Delete, "meter=1");
    send(&mut comparison);
    meter(&mut comparison, Add, "meter=1,pktps,bands=type=drop,rate=7");
    add(&mut comparison, "priority=10,ip,actions=meter:1,output:3");
    send(&mut comparison);
    meter(&mut comparison, Delete, "meter=all");
    send(&mut comparison);
}

/// Number of versions of the meter. Each passes one packet, and marks the others with its number.
const VERSIONS: u64 = 300;

fn version(command: MeterModCommand, number: u64) -> MeterMod<'static> {
    let text = format!(
        "meter=1,pktps,burst,bands=type=dscp_remark,rate=1,burst_size=1,prec_level={}",
        number % 2 + 1
    );
    MeterMod::parse(command, &text).expect("a meter")
}

/// Returns the DSCP of a packet that this version has remarked: AF11 becomes AF12 or AF13.
fn dscp(version: u64) -> u8 {
    10 + 2 * (version % 2 + 1) as u8
}

/// Sends packets through the meter until stopped. Returns their number, and the number of those not remarked.
fn read(compiled: &Arc<Compiled>, stop: &AtomicBool, versions: [&AtomicU64; 2]) -> [u64; 2] {
    let [started, finished] = versions;
    let mut reader = compiled.reader();
    let mut burst = Burst::new();
    let mut seen = [0; 2];
    while !stop.load(SeqCst) {
        burst.clear();
        (0..BURST).for_each(|_| assert!(burst.push(PortNo(1), &ipv4())));
        let earliest = finished.load(SeqCst);
        reader.process(&mut burst, Duration::from_secs(1));
        let latest = started.load(SeqCst);
        for frame in burst.iter() {
            assert_eq!(frame.verdict(), Verdict::Output(PortNo(2)));
            let found = frame.bytes()[15] >> 2;
            let is_remarked = found != 10;
            assert!(!is_remarked || (earliest..=latest).any(|version| found == dscp(version)));
            seen[0] += 1;
            seen[1] += u64::from(!is_remarked);
        }
        std::thread::yield_now();
    }
    seen
}

fn change_beside_readers(backend: Backend) {
    let mut pipeline = Pipeline::new(PipelineConfig::default());
    for number in 1..=2 {
        let mac = MacAddr::from_u64(number.into());
        pipeline.set_port(Port::new(PortNo(number), mac, "port"));
    }
    let (now, removed) = (Duration::from_secs(1), &mut Vec::new());
    let mut change = |pipeline: &mut Pipeline, meter_mod: &MeterMod| {
        let changed = pipeline.meter_mod(meter_mod, now, removed);
        changed.expect("the meter mod is right");
    };
    change(&mut pipeline, &version(MeterModCommand::Add, 0));
    let config = CompileConfig {
        backend,
        is_shared: true,
        ..CompileConfig::default()
    };
    let compiled = pipeline.compile(config).expect("there is memory");
    let flow_mod = FlowMod::parse(FlowModCommand::Add, "actions=meter:1,output:2").expect("a flow");
    let added = pipeline.flow_mod(&flow_mod, now, &mut Vec::new());
    added.expect("the flow mod is right");
    let stop = AtomicBool::new(false);
    let [started, finished] = [AtomicU64::new(0), AtomicU64::new(0)];
    let [packets, passed] = std::thread::scope(|scope| {
        let reader = || read(&compiled, &stop, [&started, &finished]);
        let readers = [scope.spawn(reader), scope.spawn(reader)];
        for number in 1..=VERSIONS {
            started.store(number, SeqCst);
            change(&mut pipeline, &version(MeterModCommand::Modify, number));
            finished.store(number, SeqCst);
            std::thread::yield_now();
        }
        stop.store(true, SeqCst);
        let seen = readers.map(|reader| reader.join().expect("a reader saw what it should"));
        [0, 1].map(|at| seen.iter().map(|seen| seen[at]).sum())
    });
    assert!(passed <= VERSIONS + 1, "{passed} in {VERSIONS} versions");
    let entry = pipeline.tables()[0].entries().next().expect("an entry");
    assert_eq!(entry.counted().packets, packets);
}

#[test]
fn concurrent_packets_pass_the_old_or_the_new_meter() {
    BACKENDS.iter().copied().for_each(change_beside_readers);
}
