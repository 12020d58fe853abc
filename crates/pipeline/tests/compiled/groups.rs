//! Tests that entries with groups are compiled, and that groups can change under traffic.

use crate::support::differential::{BACKENDS, Comparison, ComparisonConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use urtica_pipeline::{
    BURST, Backend, Burst, CompileConfig, Compiled, Pipeline, PipelineConfig, Verdict,
};
use urtica_wire::{
    FlowMod, FlowModCommand, GroupMod, GroupModCommand, MacAddr, Port, PortConfig, PortNo,
};

fn add(comparison: &mut Comparison, text: &str) {
    let flow_mod = FlowMod::parse(FlowModCommand::Add, text).expect(text);
    comparison.flow_mod(&flow_mod).expect(text);
}

#[track_caller]
fn group(comparison: &mut Comparison, command: GroupModCommand, text: &str) {
    let group_mod = GroupMod::parse(command, text).expect(text);
    comparison.group_mod(&group_mod);
}

/// A frame of one flow: alternately IPv4, IPv6 and ARP, tagged or not, with several transports.
fn frame(flow: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, flow];
    if flow % 4 == 3 {
        frame.extend([0x81, 0, 0x20, flow]);
    }
    let (proto, ports) = match flow % 5 {
        0 => (17, [0, flow, 0, 81, 0, 20, 0x12, 0x34]),
        1 => (6, [0, 80, 1, flow, 0, 0, 0, 0]),
        2 => (132, [7, flow, 0, 80, 0, 0, 0, 0]),
        3 => (1, [8, 0, 0, 0, 0, 0, 0, flow]),
        _ => (58, [135, 0, 0, 0, 0, 0, 0, 0]),
    };
    match flow % 7 {
        0..4 => {
            frame.extend([8, 0, 0x45, 0, 0, 44, 0, 0, 0, 0, 64, proto, 0x66, 0xc0]);
            frame.extend([10, 0, 0, flow, 10, 0, 1, 2]);
            frame.extend(ports);
        }
        4 | 5 => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, flow, 0, 24, proto, 64]);
            frame.extend([1; 16]);
            frame.extend([flow; 16]);
            frame.extend(ports);
            frame.extend([9, flow]);
        }
        _ => {
            frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
            frame.extend([2, 0, 0, 0, 1, flow, 10, 0, 0, flow, 0, 0, 0, 0, 0, 0]);
            frame.extend([10, 0, 0, flow / 7]);
        }
    }
    frame.resize(90, 0);
    frame
}

/// Sends bursts of many flows.
#[track_caller]
fn send(comparison: &mut Comparison) {
    for first in (0..210).step_by(30) {
        let frames = (first..first + 30).map(|flow| (PortNo(1), frame(flow)));
        comparison.send(&frames.collect::<Vec<_>>());
    }
    comparison.compare_counters();
}

const SELECT: &str = "group_id=1,type=select,\
    bucket=weight:1,watch_port:2,actions=set_field:02:00:00:00:00:09->eth_dst,output:2,\
    bucket=weight:2,watch_port:3,actions=set_field:10.9.9.9->ip_dst,set_field:7->udp_dst,output:3,\
    bucket=weight:3,watch_port:4,actions=push_vlan:0x8100,set_field:4101->vlan_vid,output:4,\
    bucket=weight:0,watch_port:1,actions=output:in_port";

const FAILOVER: &str = "group_id=2,type=ff,\
    bucket=watch_port:2,actions=output:2,bucket=watch_port:3,actions=dec_ttl,output:3";

const INDIRECT: &str = "group_id=3,type=indirect,bucket=actions=set_field:5->vlan_pcp,group:1";

/// Groups that send a packet several times.
const COPYING: [&str; 5] = [
    "group_id=1,type=all,bucket=actions=output:2,bucket=actions=output:1,bucket=actions=output:3,bucket=actions=output:in_port",
    "group_id=1,type=all,bucket=actions=dec_ttl,push_vlan:0x8100,output:2,bucket=actions=output:3,\
     bucket=actions=set_field:10.9.9.9->ip_src,pop_vlan,output:in_port,bucket=actions=FLOOD,\
     bucket=actions=set_field:02:00:00:00:00:07->eth_dst,controller,bucket=actions=output:4",
    "group_id=4,type=all,bucket=actions=output:3,bucket=actions=controller:30,bucket=actions=push_vlan:0x88a8,ALL,bucket=",
    "group_id=1,type=all,bucket=actions=group:4,bucket=actions=pop_vlan,group:4",
    "group_id=1,type=select,bucket=weight:1,actions=FLOOD,bucket=weight:1,actions=set_field:9->udp_src,group:4,bucket=weight:2,actions=normal",
];

#[test]
fn groups_are_compiled_and_change_under_traffic() {
    use GroupModCommand::{Add, Delete, Modify};
    let mut comparison = Comparison::new(ComparisonConfig::default());
    for text in [SELECT, FAILOVER, INDIRECT] {
        group(&mut comparison, Add, text);
    }
    group(
        &mut comparison,
        Add,
        "group_id=4,type=all,bucket=actions=output:in_port",
    );
    group(&mut comparison, Add, "group_id=5,type=select");
    add(&mut comparison, "priority=9,arp,actions=group:2");
    add(
        &mut comparison,
        "priority=8,udp,actions=dec_ttl,write_actions(group:3,output:2)",
    );
    add(&mut comparison, "priority=7,ipv6,icmp6,actions=group:5");
    add(
        &mut comparison,
        "priority=6,dl_vlan=7,actions=pop_vlan,group:4",
    );
    add(&mut comparison, "priority=1,actions=goto_table:1");
    add(
        &mut comparison,
        "table=1,actions=set_field:02:00:00:00:00:08->eth_src,group:1",
    );
    send(&mut comparison);
    for config in [PortConfig::PORT_DOWN, PortConfig::empty()] {
        comparison.set_port(2, config);
        send(&mut comparison);
        comparison.set_port(4, config);
        send(&mut comparison);
    }
    comparison.recompile();
    send(&mut comparison);
    group(
        &mut comparison,
        Modify,
        "group_id=2,type=ff,bucket=watch_group:1,actions=group:1",
    );
    send(&mut comparison);
    for port in 2..=4 {
        comparison.set_port(port, PortConfig::PORT_DOWN);
        send(&mut comparison);
    }
    (2..=4).for_each(|port| comparison.set_port(port, PortConfig::empty()));
    group(
        &mut comparison,
        Modify,
        "group_id=1,type=indirect,bucket=actions=output:3",
    );
    send(&mut comparison);
    for text in COPYING {
        group(&mut comparison, Modify, text);
        send(&mut comparison);
    }
    assert_eq!(comparison.punted, 0, "all of it is carried out compiled");
    group(
        &mut comparison,
        Modify,
        "group_id=1,type=indirect,bucket=actions=set_queue:1,output:2",
    );
    send(&mut comparison);
    assert_ne!(comparison.punted, 0);
    group(&mut comparison, Delete, "group_id=2");
    send(&mut comparison);
    group(&mut comparison, Add, FAILOVER);
    add(&mut comparison, "priority=9,arp,actions=group:2");
    send(&mut comparison);
    group(&mut comparison, Delete, "group_id=all");
    send(&mut comparison);
}

/// The maximum number of buckets per packet applies to all groups in several tables together, in both forms.
#[test]
fn buckets_of_a_packet_are_bounded_over_all_tables() {
    let mut comparison = Comparison::new(ComparisonConfig::default());
    let buckets = ",bucket=actions=group:1".repeat(60);
    let first = "group_id=1,type=all".to_owned() + &",bucket=actions=output:2".repeat(60);
    group(&mut comparison, GroupModCommand::Add, &first);
    let second = format!("group_id=2,type=all{buckets}");
    group(&mut comparison, GroupModCommand::Add, &second);
    for text in [
        "actions=group:2,output:3,goto_table:1",
        "table=1,actions=output:4,group:1,group:2,goto_table:2",
        "table=2,actions=write_actions(group:1),goto_table:3",
        "table=3,actions=group:2",
        "in_port=2,priority=9,actions=write_actions(group:1),goto_table:2",
        "in_port=3,priority=9,actions=output:2,group:1",
    ] {
        add(&mut comparison, text);
    }
    for port in 1..=3 {
        comparison.send(&[(PortNo(port), frame(0)), (PortNo(port), frame(3))]);
    }
    comparison.compare_counters();
    let counted = comparison.plain.groups().get(1).expect("the group");
    let counted = counted.buckets[0].counted().packet_count;
    assert!(counted > 4096 / 60, "{counted}");
}

#[test]
fn a_group_that_needs_more_than_a_packet_has_uses_the_plain_form() {
    let mut comparison = Comparison::new(ComparisonConfig::default());
    let text = "group_id=1,type=indirect,bucket=actions=dec_ttl,output:2";
    group(&mut comparison, GroupModCommand::Add, text);
    add(&mut comparison, "ip,actions=dec_ttl,group:1");
    let frames = (1..=3).map(|ttl| {
        let mut frame = frame(0);
        frame[22] = ttl;
        (PortNo(1), frame)
    });
    comparison.send(&frames.collect::<Vec<_>>());
    comparison.compare_counters();
    assert_eq!(comparison.punted / comparison.subjects.len() as u64, 2);
}

/// Number of versions of the group, each of which sends packets to another port and marks them with its number.
const VERSIONS: u64 = 300;

fn version(command: GroupModCommand, number: u64) -> GroupMod<'static> {
    let port = number % 2 + 1;
    let text = format!(
        "group_id=1,type=indirect,bucket=actions=set_field:02:00:00:00:00:0{port}->eth_dst,output:{port}"
    );
    GroupMod::parse(command, &text).expect("a group")
}

/// Sends packets through the group until stopped. Returns their number.
fn read(compiled: &Arc<Compiled>, stop: &AtomicBool) -> u64 {
    let mut reader = compiled.reader();
    let mut burst = Burst::new();
    let mut seen = 0;
    while !stop.load(SeqCst) {
        burst.clear();
        (0..BURST).for_each(|flow| assert!(burst.push(PortNo(3), &frame(flow as u8))));
        reader.process(&mut burst, Duration::from_secs(1));
        for frame in burst.iter() {
            let port = u32::from(frame.bytes()[5]);
            assert_eq!(frame.verdict(), Verdict::Output(PortNo(port)));
            seen += 1;
        }
        std::thread::yield_now();
    }
    seen
}

fn change_beside_readers(backend: Backend) {
    let mut pipeline = Pipeline::new(PipelineConfig::default());
    for number in 1..=3 {
        let mac = MacAddr::from_u64(number.into());
        pipeline.set_port(Port::new(PortNo(number), mac, "port"));
    }
    let now = Duration::from_secs(1);
    let change = |pipeline: &mut Pipeline, group_mod: &GroupMod| {
        let changed = pipeline.group_mod(group_mod, now, &mut Vec::new());
        changed.expect("the group mod is right");
    };
    change(&mut pipeline, &version(GroupModCommand::Add, 0));
    let text = "group_id=2,type=indirect,bucket=actions=group:1";
    let first = GroupMod::parse(GroupModCommand::Add, text).expect(text);
    change(&mut pipeline, &first);
    let config = CompileConfig {
        backend,
        is_shared: true,
        ..CompileConfig::default()
    };
    let compiled = pipeline.compile(config).expect("there is memory");
    let flow_mod = FlowMod::parse(FlowModCommand::Add, "actions=group:2").expect("a flow");
    let added = pipeline.flow_mod(&flow_mod, now, &mut Vec::new());
    added.expect("the flow mod is right");
    let stop = AtomicBool::new(false);
    let packets: u64 = std::thread::scope(|scope| {
        let readers = [(); 2].map(|()| scope.spawn(|| read(&compiled, &stop)));
        for number in 1..=VERSIONS {
            change(&mut pipeline, &version(GroupModCommand::Modify, number));
            std::thread::yield_now();
        }
        stop.store(true, SeqCst);
        let seen = readers.map(|reader| reader.join().expect("a reader saw what it should"));
        seen.iter().sum()
    });
    let first = pipeline.groups().get(2).expect("the group stays");
    let bucket = first.buckets[0].counted();
    assert_eq!(first.counted().packet_count, packets, "its counters stay");
    assert_eq!(bucket.packet_count, packets);
    assert_eq!(bucket.byte_count, 90 * packets);
}

#[test]
fn concurrent_packets_use_the_old_or_the_new_group() {
    BACKENDS.iter().copied().for_each(change_beside_readers);
}
