//! Tests that queues which entries choose for later tables, groups and action sets are compiled.

use crate::carried_sets::change_and_send;
use crate::support::changes;
use crate::support::choices::Choices;
use crate::support::differential::{Comparison, ComparisonConfig};
use urtica_wire::{
    Action, Field, FlowMod, FlowModCommand, GroupMod, GroupModCommand, Instruction, Match,
    OxmField, PortNo,
};

/// A UDP packet over IPv4 from 10.0.0.1, with this TTL.
fn packet(ttl: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 1, 8, 0];
    frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, ttl, 17, 0, 0]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 0, 81, 0, 20, 0, 0]);
    frame.resize(60, 0);
    frame
}

/// All types of groups, including one that changes packets and one that leads to another group.
const GROUPS: [&str; 5] = [
    "group_id=1,type=all,bucket=actions=output:2,bucket=actions=in_port,bucket=actions=FLOOD",
    "group_id=2,type=all,bucket=actions=push_vlan:0x8100,output:1,bucket=actions=output:3,\
     bucket=actions=controller,bucket=actions=output:4",
    "group_id=3,type=indirect,bucket=actions=output:4",
    "group_id=4,type=all,bucket=actions=group:2,bucket=actions=dec_ttl,group:3,bucket=actions=group:1",
    "group_id=5,type=select,bucket=weight:1,actions=in_port,bucket=weight:1,actions=output:2",
];

fn comparison(entries: &[&str]) -> Comparison {
    let mut comparison = Comparison::new(ComparisonConfig::default());
    comparison.set_queue(2, 1);
    for text in GROUPS {
        let group_mod = GroupMod::parse(GroupModCommand::Add, text).expect(text);
        comparison.group_mod(&group_mod);
    }
    entries.iter().for_each(|text| add(&mut comparison, text));
    comparison
}

fn add(comparison: &mut Comparison, text: &str) {
    let flow_mod = FlowMod::parse(FlowModCommand::Add, text).expect(text);
    comparison.flow_mod(&flow_mod).expect(text);
}

/// Sends a packet from each of three ports; returns the number left to the plain form.
#[track_caller]
fn punted(comparison: &mut Comparison) -> u64 {
    let before = comparison.punted;
    let frames: Vec<_> = (1..=3).map(|port| (PortNo(port), packet(64))).collect();
    comparison.send(&frames);
    comparison.compare_counters();
    (comparison.punted - before) / comparison.subjects.len() as u64
}

#[track_caller]
fn assert_compiled(entries: &[&str]) {
    assert_eq!(punted(&mut comparison(entries)), 0, "{entries:?}");
}

#[test]
fn later_tables_use_the_queue_of_earlier_ones() {
    let first = [
        "actions=set_queue:7,goto_table:1",
        "actions=output:4,set_queue:6,output:3,set_queue:65535,goto_table:1",
        "actions=set_queue:7,set_queue:0,goto_table:1",
        "actions=set_queue:7,pop_vlan,write_metadata:5,goto_table:1",
        "actions=set_queue:7,write_actions(output:2),goto_table:1",
        "actions=set_queue:7,write_actions(set_queue:8,output:FLOOD),goto_table:1",
        "actions=set_queue:7,write_actions(set_queue:0,output:in_port),goto_table:1",
        "actions=write_actions(group:2),set_queue:7,goto_table:1",
    ];
    let second = [
        "table=1,actions=drop",
        "table=1,actions=output:2",
        "table=1,actions=in_port",
        "table=1,actions=output:2,output:3",
        "table=1,actions=FLOOD,controller:20,normal,output:4",
        "table=1,actions=output:2,set_queue:0,output:3,set_queue:9,output:4",
        "table=1,actions=set_queue:0,output:3",
        "table=1,actions=set_queue:9,output:3,push_vlan:0x8100,output:4",
        "table=1,actions=output:3,push_vlan:0x8100,set_queue:0,output:4",
        "table=1,ip,actions=output:3,dec_ttl,in_port,FLOOD",
        "table=1,actions=write_actions(output:3)",
        "table=1,actions=set_queue:3,write_actions(output:3)",
        "table=1,actions=output:2,set_queue:0,write_actions(output:3)",
        "table=1,actions=clear_actions,write_actions(set_queue:4,output:3)",
        "table=1,actions=write_actions(group:4)",
        "table=1,actions=goto_table:2",
        "table=1,actions=output:3,goto_table:2",
        "table=1,actions=output:3,set_queue:0,goto_table:2",
        "table=1,actions=set_queue:0,output:3,set_queue:2,write_actions(output:4),goto_table:2",
    ];
    let third = "table=2,actions=output:2,write_actions(set_field:02:00:00:00:00:07->eth_dst)";
    for before in first {
        for behind in second {
            assert_compiled(&[before, behind, third]);
        }
    }
}

#[test]
fn groups_use_the_queue_of_a_packet() {
    for id in 1..=5 {
        let group = format!("group:{id}");
        assert_compiled(&[&format!("actions=set_queue:7,{group}")]);
        assert_compiled(&[&format!(
            "actions=output:2,set_queue:7,output:3,set_queue:8,{group}"
        )]);
        assert_compiled(&[&format!("actions=write_actions(set_queue:7,{group})")]);
        let first = "actions=set_queue:7,goto_table:1";
        assert_compiled(&[first, &format!("table=1,actions={group}")]);
        assert_compiled(&[
            first,
            &format!("table=1,actions=output:2,set_queue:0,{group}"),
        ]);
        let written = format!("table=1,actions=write_actions(set_queue:9,{group})");
        assert_compiled(&[first, &written]);
    }
}

#[test]
fn the_plain_form_continues_with_the_queue() {
    let first = "actions=set_queue:7,goto_table:1";
    let plain = [
        "table=1,actions=group:1,output:2",
        "table=1,actions=push_mpls:0x8847,output:2",
        "table=1,actions=set_queue:65536,output:2",
        "table=1,tun_id=0,actions=output:3",
        "table=1,actions=write_actions(push_mpls:0x8847),goto_table:2",
    ];
    for entry in plain {
        let mut comparison = comparison(&[first, entry, "table=2,actions=output:2"]);
        assert_eq!(punted(&mut comparison), 3, "{entry}");
    }
}

/// A packet with a TTL that is too low uses the plain form, from the table on that would decrement it.
#[test]
fn a_low_ttl_uses_the_plain_form_with_the_queue() {
    let mut comparison = comparison(&[
        "actions=set_queue:7,output:2,goto_table:1",
        "table=1,ip,actions=output:3,dec_ttl,write_actions(output:4,dec_ttl)",
    ]);
    comparison.send(&[1, 2, 3].map(|ttl| (PortNo(1), packet(ttl))));
    comparison.compare_counters();
    assert_eq!(comparison.punted, 2 * comparison.subjects.len() as u64);
}

/// Tables compiled without queues are compiled again for them when the first one is passed on.
#[test]
fn queues_are_passed_on_and_no_longer_under_traffic() {
    let mut comparison = comparison(&["actions=goto_table:1", "table=1,actions=output:2"]);
    assert_eq!(punted(&mut comparison), 0);
    let changes = [
        "priority=9,in_port=1,actions=set_queue:1,goto_table:1",
        "table=1,priority=9,in_port=1,actions=output:3,goto_table:2",
        "table=2,actions=group:5",
        "table=1,priority=9,in_port=1,actions=set_queue:0,goto_table:2",
        "priority=9,in_port=1,actions=goto_table:1",
    ];
    for text in changes {
        add(&mut comparison, text);
        assert_eq!(punted(&mut comparison), 0, "{text}");
    }
    comparison.recompile();
    assert_eq!(punted(&mut comparison), 0);
}

/// Queues anywhere among actions that are mostly compiled.
fn with_queues(choices: &mut Choices) -> Vec<Action<'static>> {
    let mut actions = changes::bucket_actions(choices);
    for _ in 0..choices.below(3) {
        let at = choices.below(actions.len() + 1);
        actions.insert(at, changes::set_queue(choices));
    }
    if choices.is_in(30) {
        let at = choices.below(actions.len() + 1);
        actions.insert(at, Action::output(choices.port()));
    }
    actions
}

/// An entry of one of four tables, usually with a next table.
fn any_entry(choices: &mut Choices) -> FlowMod<'static> {
    let table_id = choices.below(4) as u8;
    let fields = match choices.below(3) {
        0 => vec![],
        1 => vec![Field::exact(OxmField::InPort, 1 + choices.below(3) as u128)],
        _ => vec![Field::exact(
            OxmField::EthType,
            choices.pick(&[0x0800, 0x86dd]),
        )],
    };
    let mut list = Vec::new();
    if table_id < 3 && choices.is_in(80) {
        list.push(Instruction::GotoTable(table_id + 1));
    }
    if choices.is_in(70) {
        list.push(Instruction::apply(with_queues(choices)));
    }
    if choices.is_in(40) {
        list.push(Instruction::WriteActions(with_queues(choices).into()));
    }
    if choices.is_in(10) {
        list.push(Instruction::ClearActions);
    }
    FlowMod {
        command: changes::command(choices),
        table_id,
        priority: choices.below(6) as u16,
        match_: Match::from(fields),
        instructions: list.into(),
        ..FlowMod::default()
    }
}

#[test]
fn any_carried_queues_agree_with_the_plain_form() {
    let (mut compared, mut punted) = (0, 0);
    for seed in 0..40 {
        let mut choices = Choices::from_seed(seed);
        let mut comparison = comparison(&[]);
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
