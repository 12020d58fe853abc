//! Tests that action sets which tables pass on are compiled.

use crate::support::changes;
use crate::support::choices::Choices;
use crate::support::differential::{BACKENDS, Comparison, ComparisonConfig};
use crate::support::frames;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use urtica_pipeline::{
    BURST, Backend, Burst, CompileConfig, Compiled, Pipeline, PipelineConfig, Verdict,
};
use urtica_wire::{
    Field, FlowMod, FlowModCommand, GroupMod, GroupModCommand, Instruction, MacAddr, Match,
    OxmField, Port, PortNo,
};

/// A UDP packet over IPv4 with this TTL, untagged or in VLAN 5.
fn packet(ttl: u8, is_tagged: bool) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 1];
    if is_tagged {
        frame.extend([0x81, 0, 0x20, 5]);
    }
    frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, ttl, 17, 0, 0]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 0, 81, 0, 20, 0x12, 0x34]);
    frame.resize(64, 0);
    frame
}

fn add(comparison: &mut Comparison, text: &str) {
    let flow_mod = FlowMod::parse(FlowModCommand::Add, text).expect(text);
    comparison.flow_mod(&flow_mod).expect(text);
}

fn group(comparison: &mut Comparison, command: GroupModCommand, text: &str) {
    comparison.group_mod(&GroupMod::parse(command, text).expect(text));
}

/// Sends four packets; returns the number left to the plain form.
fn punted(comparison: &mut Comparison) -> u64 {
    let frames = [(64, false), (64, true), (1, false), (2, true)];
    let frames = frames.map(|(ttl, is_tagged)| (PortNo(1), packet(ttl, is_tagged)));
    let before = comparison.punted;
    comparison.send(&frames);
    comparison.compare_counters();
    (comparison.punted - before) / comparison.subjects.len() as u64
}

/// Returns how many of four packets are left to the plain form with these entries.
#[track_caller]
fn punted_by(entries: &[&str]) -> u64 {
    let mut comparison = Comparison::new(ComparisonConfig::default());
    for id in [1, 2] {
        let text = format!(
            "group_id={id},type=all,bucket=actions=output:{id},bucket=actions=push_vlan:0x8100,output:3"
        );
        group(&mut comparison, GroupModCommand::Add, &text);
    }
    group(
        &mut comparison,
        GroupModCommand::Add,
        "group_id=3,type=indirect,bucket=actions=set_nw_ttl:3,output:2",
    );
    for text in entries {
        add(&mut comparison, text);
    }
    punted(&mut comparison)
}

#[test]
fn sets_are_carried_merged_and_cleared() {
    let first = "actions=write_actions(set_field:02:00:00:00:00:07->eth_dst,set_field:02:00:00:00:00:08->eth_src,output:2),goto_table:1";
    let second = [
        "table=1,actions=drop",
        "table=1,actions=output:3",
        "table=1,actions=output:3,output:4",
        "table=1,actions=controller,output:4,in_port",
        "table=1,actions=set_field:02:00:00:00:00:01->eth_dst",
        "table=1,actions=clear_actions",
        "table=1,actions=clear_actions,write_actions(output:4)",
        "table=1,actions=write_actions(output:4)",
        "table=1,actions=write_actions(output:in_port,pop_vlan,push_vlan:0x88a8,set_field:4103->vlan_vid)",
        "table=1,cookie=3,ip,actions=write_actions(controller:20)",
        "table=1,priority=0,actions=write_actions(controller)",
        "table=1,actions=write_actions(NORMAL)",
        "table=1,actions=write_actions(FLOOD,set_field:02:00:00:00:00:09->eth_dst)",
        "table=1,actions=write_actions(set_queue:7)",
        "table=1,actions=write_actions(set_queue:7,output:in_port)",
        "table=1,actions=write_actions(group:1)",
        "table=1,actions=output:4,write_actions(group:2,output:3)",
        "table=1,udp,udp_dst=81,actions=set_field:82->udp_dst,write_actions(set_field:9->udp_src,set_field:10.9.9.9->ip_dst)",
        "table=1,actions=goto_table:2",
        "table=1,actions=clear_actions,goto_table:2",
        "table=1,actions=output:4,write_actions(output:3,set_field:02:00:00:00:00:09->eth_dst),write_metadata:5,goto_table:2",
        "table=1,in_port=2,actions=drop",
    ];
    let third = [
        "table=2,actions=drop",
        "table=2,actions=write_actions(push_vlan:0x8100,set_field:5->vlan_pcp)",
        "table=2,metadata=5,actions=clear_actions,write_actions(output:4)",
    ];
    for entry in second {
        for last in third {
            // Misses are left to the plain form, since the controller may want to see them.
            let misses = [entry, last].iter().any(|text| text.contains("in_port=2"))
                || entry.contains("goto")
                    && last.contains("metadata")
                    && !entry.contains("metadata");
            let expected = if misses { 4 } else { 0 };
            assert_eq!(punted_by(&[first, entry, last]), expected, "{entry} {last}");
        }
    }
}

#[test]
fn a_packets_set_is_passed_to_the_plain_form() {
    let first = "actions=write_actions(set_field:02:00:00:00:00:07->eth_dst,pop_vlan,push_vlan:0x88a8,dec_ttl,set_field:4099->vlan_vid,\
                 set_field:1->vlan_pcp,set_field:02:00:00:00:00:08->eth_src,set_queue:6,output:2),goto_table:1";
    let over_udp = "udp,actions=write_actions(set_field:10.1.1.1->ip_src,set_field:10.1.1.2->ip_dst,set_field:7->udp_src,\
                    set_field:8->udp_dst,group:2),goto_table:1";
    let plain = [
        "table=1,actions=push_mpls:0x8847,goto_table:2",
        "table=1,tun_id=0,actions=output:3",
        "table=1,actions=write_actions(group:3)",
        "table=1,actions=write_actions(push_mpls:0x8847)",
        "table=1,actions=group:1",
    ];
    for entry in plain {
        for first in [first, over_udp] {
            let behind = "table=2,actions=write_actions(output:4)";
            assert_eq!(punted_by(&[first, entry, behind]), 4, "{entry}");
        }
    }
}

#[test]
fn a_set_that_needs_more_than_a_packet_has_uses_the_plain_form() {
    let first = "ip,actions=write_actions(dec_ttl,output:2),goto_table:1";
    assert_eq!(punted_by(&[first, "table=1,actions=drop"]), 1);
    assert_eq!(punted_by(&[first, "table=1,ip,actions=dec_ttl"]), 2);
    assert_eq!(punted_by(&[first, "table=1,ip,actions=clear_actions"]), 0);
    assert_eq!(punted_by(&[first, "table=1,ip,actions=output:3"]), 1);
    let pushes = "actions=push_vlan:0x8100,".to_owned() + &"push_vlan:0x8100,".repeat(15);
    let first = pushes + "write_actions(push_vlan:0x8100,output:2),goto_table:1";
    assert_eq!(punted_by(&[&first, "table=1,actions=drop"]), 4);
}

/// Tables compiled without sets are compiled again for them when the first set appears.
#[test]
fn sets_are_added_and_removed_under_traffic() {
    let mut comparison = Comparison::new(ComparisonConfig::default());
    group(
        &mut comparison,
        GroupModCommand::Add,
        "group_id=1,type=select,bucket=weight:1,actions=output:2,bucket=weight:1,actions=output:3",
    );
    add(&mut comparison, "actions=goto_table:1");
    for number in 0..40 {
        let text =
            format!("table=1,priority=5,dl_dst=02:00:00:00:00:{number:02x},actions=goto_table:2");
        add(&mut comparison, &text);
    }
    for number in 0..40 {
        let text = format!(
            "table=2,priority={number},ip,nw_dst=10.0.0.0/{},actions=output:3",
            number % 32 + 1
        );
        add(&mut comparison, &text);
    }
    add(&mut comparison, "table=2,priority=0,actions=drop");
    assert_eq!(punted(&mut comparison), 0);
    let changes = [
        "priority=9,dl_vlan=5,actions=write_actions(output:2,set_field:02:00:00:00:00:07->eth_src),goto_table:1",
        "actions=write_actions(output:4),goto_table:2",
        "table=1,priority=7,udp,actions=write_actions(group:1),goto_table:3",
        "table=3,actions=output:4",
        "table=3,actions=write_actions(output:2)",
    ];
    for text in changes {
        add(&mut comparison, text);
        assert_eq!(punted(&mut comparison), 0, "{text}");
    }
    group(
        &mut comparison,
        GroupModCommand::Modify,
        "group_id=1,type=all,bucket=actions=output:2,bucket=actions=pop_vlan,output:3",
    );
    assert_eq!(punted(&mut comparison), 0);
    group(&mut comparison, GroupModCommand::Delete, "group_id=1");
    add(
        &mut comparison,
        "table=1,priority=7,udp,actions=write_actions(output:3),goto_table:3",
    );
    assert_eq!(punted(&mut comparison), 0);
    comparison.recompile();
    assert_eq!(punted(&mut comparison), 0);
    let delete = FlowMod::parse(FlowModCommand::Delete, "table=0").expect("a flow mod");
    comparison.flow_mod(&delete).expect("the flow mod is right");
    add(&mut comparison, "actions=goto_table:1");
    assert_eq!(punted(&mut comparison), 0);
}

/// An entry of any table, with actions of any kind, most of which are compiled.
fn any_entry(choices: &mut Choices) -> FlowMod<'static> {
    let table_id = choices.below(4) as u8;
    let mut fields = match choices.below(4) {
        0 => vec![],
        1 => vec![Field::exact(OxmField::InPort, 1 + choices.below(3) as u128)],
        2 => vec![Field::exact(OxmField::EthDst, frames::mac(choices).into())],
        _ => vec![Field::exact(
            OxmField::EthType,
            choices.pick(&[0x0800, 0x86dd]),
        )],
    };
    if choices.is_in(20) {
        fields.push(Field::exact(OxmField::VlanVid, 0));
    }
    let mut list = Vec::new();
    let goes_on = table_id < 3 && choices.is_in(80);
    if goes_on {
        let next = table_id + 1 + choices.below(2) as u8;
        list.push(Instruction::GotoTable(next.min(3)));
    }
    if choices.is_in(40) {
        list.push(Instruction::apply(changes::bucket_actions(choices)));
    }
    if choices.is_in(50) {
        list.push(Instruction::WriteActions(
            changes::bucket_actions(choices).into(),
        ));
    }
    if choices.is_in(15) {
        list.push(Instruction::ClearActions);
    }
    if choices.is_in(10) {
        let metadata = choices.below(8) as u64;
        list.push(Instruction::WriteMetadata { metadata, mask: 7 });
    }
    FlowMod {
        command: changes::command(choices),
        table_id,
        priority: choices.below(6) as u16,
        cookie: choices.below(4) as u64,
        match_: Match::from(fields),
        instructions: list.into(),
        ..FlowMod::default()
    }
}

/// Makes random changes to entries and groups, with packets between them.
pub fn change_and_send(
    comparison: &mut Comparison,
    choices: &mut Choices,
    any_entry: impl Fn(&mut Choices) -> FlowMod<'static>,
) {
    for _ in 0..60 {
        for _ in 0..1 + choices.below(6) {
            // A refused flow mod changes nothing in any pipeline.
            let _ = comparison.flow_mod(&any_entry(choices));
        }
        if choices.is_in(20) {
            comparison.group_mod(&changes::group_mod(choices));
        }
        let port = |choices: &mut Choices| PortNo(1 + choices.below(3) as u32);
        let burst: Vec<_> = (0..16)
            .map(|_| (port(choices), frames::frame(choices)))
            .collect();
        comparison.send(&burst);
    }
}

#[test]
fn any_carried_sets_agree_with_the_plain_form() {
    let (mut compared, mut punted) = (0, 0);
    for seed in 0..40 {
        let mut choices = Choices::from_seed(seed);
        let mut comparison = Comparison::new(ComparisonConfig::default());
        comparison.set_misses_punt(seed % 2 == 0);
        change_and_send(&mut comparison, &mut choices, any_entry);
        comparison.compare_counters();
        compared += comparison.compared;
        punted += comparison.punted;
    }
    assert!(
        punted < compared * 3 / 4,
        "{punted} of {compared} were left to the plain form"
    );
}

/// Number of versions, each of which sends packets to another port and marks them with its number.
const VERSIONS: u64 = 300;

fn version(number: u64) -> FlowMod<'static> {
    let port = number % 2 + 1;
    // The first has no set.
    let text = match number {
        0 => "actions=set_field:02:00:00:00:00:01->eth_dst,output:1".to_owned(),
        _ => format!(
            "actions=write_actions(set_field:02:00:00:00:00:0{port}->eth_dst,output:{port}),goto_table:1"
        ),
    };
    FlowMod::parse(FlowModCommand::Add, &text).expect("a flow mod")
}

fn read(compiled: &Arc<Compiled>, stop: &AtomicBool) {
    let mut reader = compiled.reader();
    let mut burst = Burst::new();
    while !stop.load(SeqCst) {
        burst.clear();
        (0..BURST).for_each(|_| assert!(burst.push(PortNo(3), &packet(9, false))));
        reader.process(&mut burst, Duration::from_secs(1));
        for frame in burst.iter() {
            let port = u32::from(frame.bytes()[5]);
            assert_eq!(frame.verdict(), Verdict::Output(PortNo(port)));
        }
        std::thread::yield_now();
    }
}

fn change_beside_readers(backend: Backend) {
    let mut pipeline = Pipeline::new(PipelineConfig::default());
    for number in 1..=3 {
        let mac = MacAddr::from_u64(number.into());
        pipeline.set_port(Port::new(PortNo(number), mac, "port"));
    }
    let change = |pipeline: &mut Pipeline, flow_mod: &FlowMod| {
        let changed = pipeline.flow_mod(flow_mod, Duration::from_secs(1), &mut Vec::new());
        changed.expect("the flow mod is right");
    };
    for number in 0..20 {
        let text = format!("table=1,priority=5,dl_dst=02:00:00:00:01:{number:02x},actions=drop");
        let flow_mod = FlowMod::parse(FlowModCommand::Add, &text).expect("a flow mod");
        change(&mut pipeline, &flow_mod);
    }
    let last = FlowMod::parse(FlowModCommand::Add, "table=1,priority=0,actions=drop");
    change(&mut pipeline, &last.expect("a flow mod"));
    change(&mut pipeline, &version(0));
    let config = CompileConfig {
        backend,
        is_shared: true,
        ..CompileConfig::default()
    };
    let compiled = pipeline.compile(config).expect("there is memory");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers = [(); 2].map(|()| scope.spawn(|| read(&compiled, &stop)));
        for number in 1..=VERSIONS {
            change(&mut pipeline, &version(number));
            std::thread::yield_now();
        }
        stop.store(true, SeqCst);
        for reader in readers {
            reader.join().expect("a reader saw what it should");
        }
    });
}

#[test]
fn concurrent_packets_carry_the_old_or_the_new_set() {
    BACKENDS.iter().copied().for_each(change_beside_readers);
}
