//! Tests of changes to more entries than packets should wait for.

use crate::support::{Bench, config, encode};
use urtica_pipeline::PipelineConfig;
use urtica_switch::{ConnectionId, SwitchConfig};
use urtica_wire::{
    Action, Bucket, BufferId, FlowMod, FlowModCommand, FlowModFlags, GROUP_ANY, GroupMod,
    GroupModCommand, GroupType, Instruction, List, Match, Message, OxmField, PortNo, TABLE_ALL,
    Version,
};

/// Number of entries, which need several parts.
const ENTRIES: u64 = 3000;

/// A switch with [`ENTRIES`] entries that match frames of hosts, and a controller.
fn with_entries(version: Version) -> (Bench, ConnectionId) {
    let mut bench = Bench::new(SwitchConfig {
        pipeline: PipelineConfig {
            n_tables: 4,
            ..PipelineConfig::default()
        },
        ..config()
    });
    (1..=3).for_each(|number| bench.add_port(number));
    let controller = bench.connect(version);
    for host in 0..ENTRIES {
        bench.tell_quietly(controller, &Message::FlowMod(entry(host)));
    }
    (bench, controller)
}

fn entry(host: u64) -> FlowMod<'static> {
    let output = [Instruction::apply(vec![Action::output(PortNo(2))])];
    FlowMod {
        flags: FlowModFlags::SEND_FLOW_REM,
        match_: Match::any().with_exact(OxmField::EthDst, 0x0200_0000_0000 | host),
        instructions: List::from(output.to_vec()),
        ..FlowMod::default()
    }
}

fn delete_all() -> Message<'static> {
    Message::FlowMod(FlowMod {
        command: FlowModCommand::Delete,
        table_id: TABLE_ALL,
        out_port: PortNo::ANY,
        out_group: GROUP_ANY,
        ..FlowMod::default()
    })
}

/// Returns the types of all messages for a controller until no more follow, with 0 between turns.
fn parts(bench: &mut Bench, controller: ConnectionId) -> Vec<u8> {
    let mut types = Vec::new();
    loop {
        let sent = bench.take(controller);
        types.extend(sent.iter().map(|sent| sent.header.message_type));
        types.push(0);
        if !bench.switch.poll_output(bench.now) {
            return types;
        }
    }
}

#[test]
fn a_barrier_behind_a_long_change_is_answered_at_its_end() {
    for version in Version::ALL {
        let (mut bench, controller) = with_entries(version);
        let barrier = match version {
            Version::Of10 => 19,
            Version::Of13 => 21,
        };
        let mut both = encode(version, 1, &delete_all());
        both.extend(encode(version, 2, &Message::BarrierRequest));
        bench.input(controller, &both).unwrap();
        assert!(bench.switch.entry_count() > 0, "it takes several turns");
        assert!(!bench.switch.wants_input(controller));
        let types = parts(&mut bench, controller);
        assert_eq!(bench.switch.entry_count(), 0);
        let removed = types.iter().filter(|&&kind| kind == 11).count();
        assert_eq!(removed, ENTRIES as usize);
        let turns = types.iter().filter(|&&kind| kind == 0).count();
        assert!(turns > 10, "{turns} turns");
        let last = types.iter().rposition(|&kind| kind == 11);
        let answer = types.iter().position(|&kind| kind == barrier);
        assert!(answer > last && answer.is_some(), "{types:?}");
        assert!(bench.switch.wants_input(controller));
    }
}

/// This limits how long packets wait.
#[test]
fn a_turn_changes_no_more_than_some_entries() {
    let (mut bench, controller) = with_entries(Version::Of13);
    let mut before = bench.switch.entry_count();
    bench.tell(controller, &delete_all());
    while before > 0 {
        let left = bench.switch.entry_count();
        assert!(before - left <= 128, "{} at once", before - left);
        before = left;
        bench.switch.poll_output(bench.now);
    }
}

#[test]
fn other_controllers_are_served_during_a_change() {
    let (mut bench, controller) = with_entries(Version::Of13);
    let other = bench.connect(Version::Of13);
    bench.tell(controller, &delete_all());
    let answer = bench.ask(other, &Message::BarrierRequest);
    assert_eq!(answer.message(), Message::BarrierReply);
    let new = FlowMod {
        priority: 9,
        ..entry(ENTRIES)
    };
    bench.tell_quietly(other, &Message::FlowMod(new));
    assert!(bench.switch.entry_count() > 1);
    while bench.switch.poll_output(bench.now) {}
    assert_eq!(bench.switch.entry_count(), 1, "what came later stays");
}

#[test]
fn a_change_continues_after_its_controller_disconnects() {
    let (mut bench, controller) = with_entries(Version::Of13);
    bench.tell(controller, &delete_all());
    bench.switch.disconnect(controller, bench.now);
    assert!(bench.switch.entry_count() > 0);
    while bench.switch.poll_output(bench.now) {}
    assert_eq!(bench.switch.entry_count(), 0);
}

#[test]
fn a_change_continues_at_time_outs() {
    let (mut bench, controller) = with_entries(Version::Of13);
    bench.tell(controller, &delete_all());
    for _ in 0..ENTRIES {
        bench.pass(std::time::Duration::from_millis(1));
        bench.take(controller);
    }
    assert_eq!(bench.switch.entry_count(), 0);
}

#[test]
fn entries_using_a_group_are_deleted_in_parts() {
    let (mut bench, controller) = with_entries(Version::Of13);
    let output = [Action::output(PortNo(3))];
    let group = |command| {
        Message::GroupMod(GroupMod {
            command,
            group_type: GroupType::All,
            group_id: 1,
            buckets: List::from(vec![Bucket {
                weight: 0,
                watch_port: PortNo::ANY,
                watch_group: GROUP_ANY,
                actions: List::from(&output),
            }]),
        })
    };
    bench.tell_quietly(controller, &group(GroupModCommand::Add));
    let to_group = [Instruction::apply(vec![Action::Group(1)])];
    let modify = FlowMod {
        command: FlowModCommand::Modify,
        instructions: List::from(to_group.to_vec()),
        ..FlowMod::default()
    };
    bench.tell_quietly(controller, &Message::FlowMod(modify));
    bench.tell(controller, &group(GroupModCommand::Delete));
    assert_eq!(bench.switch.entry_count(), ENTRIES as usize);
    let types = parts(&mut bench, controller);
    assert_eq!(bench.switch.entry_count(), 0);
    let removed = types.iter().filter(|&&kind| kind == 11).count();
    assert_eq!(removed, ENTRIES as usize);
}

/// The buffered packet of a modify is sent through the tables after all of its changes.
#[test]
fn a_buffered_packet_waits_for_the_end() {
    let (mut bench, controller) = with_entries(Version::Of13);
    let to_controller = [Instruction::apply(vec![Action::Output {
        port: PortNo::CONTROLLER,
        max_len: 64,
    }])];
    let miss = FlowMod {
        priority: 0,
        flags: FlowModFlags::empty(),
        match_: Match::any(),
        instructions: List::from(to_controller.to_vec()),
        ..entry(0)
    };
    bench.tell_quietly(controller, &Message::FlowMod(miss));
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&[4, 0, 0, 0, 0, 1]);
    bench.receive(1, &frame);
    let packet_in = bench.take_one(controller);
    let Message::PacketIn(packet_in) = packet_in.message() else {
        panic!("expected a packet-in");
    };
    assert_ne!(packet_in.buffer_id, BufferId::NONE);
    let to_3 = [Instruction::apply(vec![Action::output(PortNo(3))])];
    let modify = FlowMod {
        command: FlowModCommand::Modify,
        buffer_id: packet_in.buffer_id,
        instructions: List::from(to_3.to_vec()),
        ..FlowMod::default()
    };
    bench.tell_quietly(controller, &Message::FlowMod(modify));
    assert!(bench.sent_by(3).is_empty());
    while bench.switch.poll_output(bench.now) {}
    assert_eq!(bench.sent_by(3), [frame]);
}
