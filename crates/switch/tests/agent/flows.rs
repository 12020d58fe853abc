//! Flow mods in both versions' meanings, and notifications of removed entries.

use crate::support::{Bench, frame, mac};
use std::time::Duration;
use urtica_switch::ConnectionId;
use urtica_wire::{
    Action, ControllerRole, ErrorCode, FlowMod, FlowModCommand, FlowModFlags, FlowRemovedReason,
    Instruction, List, Match, Message, PortNo, Role, TABLE_ALL, Version,
};

fn output(port: u32) -> List<'static, Instruction<'static>> {
    List::from(vec![Instruction::apply(vec![Action::output(PortNo(port))])])
}

/// An entry for frames to host 2.
fn entry(command: FlowModCommand, port: u32) -> FlowMod<'static> {
    FlowMod {
        command,
        match_: Match::any().eth_dst(mac(2)),
        instructions: output(port),
        ..FlowMod::default()
    }
}

fn tell(bench: &mut Bench, controller: ConnectionId, flow_mod: FlowMod) {
    bench.tell_quietly(controller, &Message::FlowMod(flow_mod));
}

/// Where a frame from port 1 to host 2 comes out.
fn way(bench: &mut Bench) -> Vec<u32> {
    bench.receive(1, &frame(1, 2));
    bench.senders()
}

#[test]
fn entries_are_added_changed_and_deleted() {
    for version in Version::ALL {
        let (mut bench, controller) = Bench::with_controller(version);
        tell(&mut bench, controller, entry(FlowModCommand::Add, 2));
        assert_eq!(way(&mut bench), [2]);
        tell(&mut bench, controller, entry(FlowModCommand::Modify, 3));
        assert_eq!(way(&mut bench), [3]);
        let strict = entry(FlowModCommand::ModifyStrict, 2);
        tell(&mut bench, controller, strict);
        assert_eq!(way(&mut bench), [2]);
        let delete = FlowMod {
            table_id: if version == Version::Of13 {
                TABLE_ALL
            } else {
                0
            },
            instructions: List::default(),
            ..entry(FlowModCommand::Delete, 0)
        };
        tell(&mut bench, controller, delete);
        bench.take(controller);
        assert!(way(&mut bench).is_empty());
    }
}

#[test]
fn a_modify_that_finds_nothing_adds_in_1_0_alone() {
    for (version, expected) in [(Version::Of10, vec![2]), (Version::Of13, vec![])] {
        for command in [FlowModCommand::Modify, FlowModCommand::ModifyStrict] {
            let (mut bench, controller) = Bench::with_controller(version);
            tell(&mut bench, controller, entry(command, 2));
            assert_eq!(way(&mut bench), expected);
        }
    }
}

#[test]
fn emergency_entries_are_not_supported() {
    let (mut bench, controller) = Bench::with_controller(Version::Of10);
    let emergency = FlowMod {
        flags: FlowModFlags::EMERG,
        ..entry(FlowModCommand::Add, 2)
    };
    assert_eq!(
        bench.refused(controller, &Message::FlowMod(emergency)),
        ErrorCode::FlowModFailedUnsupported
    );
}

#[test]
fn a_flow_mod_that_fails_is_an_error_in_either_version() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let no_table = FlowMod {
        table_id: 4,
        ..entry(FlowModCommand::Add, 2)
    };
    assert_eq!(
        bench.refused(controller, &Message::FlowMod(no_table)),
        ErrorCode::FlowModFailedBadTableId
    );
    let (mut bench, controller) = Bench::with_controller(Version::Of10);
    let overlap = FlowMod {
        flags: FlowModFlags::CHECK_OVERLAP,
        match_: Match::any().in_port(PortNo(1)),
        ..entry(FlowModCommand::Add, 2)
    };
    tell(&mut bench, controller, entry(FlowModCommand::Add, 2));
    assert_eq!(
        bench.refused(controller, &Message::FlowMod(overlap)),
        ErrorCode::FlowModFailedOverlap
    );
}

fn watched(port: u32) -> FlowMod<'static> {
    FlowMod {
        flags: FlowModFlags::SEND_FLOW_REM,
        idle_timeout: 5,
        hard_timeout: 60,
        cookie: 0xabc,
        ..entry(FlowModCommand::Add, port)
    }
}

#[test]
fn entries_that_expire_are_reported() {
    for version in Version::ALL {
        let (mut bench, controller) = Bench::with_controller(version);
        tell(&mut bench, controller, watched(2));
        assert_eq!(way(&mut bench), [2]);
        bench.pass(Duration::from_millis(4500));
        assert!(bench.take(controller).is_empty());
        bench.pass(Duration::from_millis(1000));
        let sent = bench.take(controller);
        let removed = sent.iter().find_map(|sent| match sent.message() {
            Message::FlowRemoved(removed) => Some((
                removed.reason,
                removed.cookie,
                removed.packet_count,
                removed.byte_count,
                (removed.duration_sec, removed.duration_nsec),
                removed.idle_timeout,
                removed.match_ == watched(2).match_,
            )),
            _ => None,
        });
        let idle = FlowRemovedReason::IdleTimeout;
        let expected = (idle, 0xabc, 1, 60, (5, 500_000_000), 5, true);
        assert_eq!(removed, Some(expected));
        assert!(way(&mut bench).is_empty());
    }
}

#[test]
fn entries_that_are_deleted_are_reported_to_all_but_slaves() {
    let (mut bench, first) = Bench::with_controller(Version::Of13);
    let equal = bench.connect(Version::Of13);
    let of10 = bench.connect(Version::Of10);
    let slave = bench.connect(Version::Of13);
    let role = Role {
        role: ControllerRole::Slave,
        generation_id: 0,
    };
    bench.ask(slave, &Message::RoleRequest(role));
    tell(&mut bench, first, watched(2));
    let delete = entry(FlowModCommand::DeleteStrict, 0);
    bench.tell(first, &Message::FlowMod(delete));
    for controller in [first, equal, of10] {
        match bench.take_one(controller).message() {
            Message::FlowRemoved(removed) => assert_eq!(removed.reason, FlowRemovedReason::Delete),
            other => panic!("expected a flow removed, not {other:?}"),
        }
    }
    assert!(bench.take(slave).is_empty());
}

#[test]
fn a_frame_that_a_popped_tag_has_left_too_short_is_padded() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let actions = [Action::PopVlan, Action::output(PortNo(2))];
    let instructions = [Instruction::apply(&actions)];
    let untag = FlowMod {
        match_: Match::any().in_port(PortNo(1)),
        instructions: List::from(&instructions),
        ..FlowMod::default()
    };
    bench.tell_quietly(controller, &Message::FlowMod(untag));
    let mut tagged = frame(1, 2);
    tagged.truncate(14);
    tagged.splice(12..12, [0x81, 0, 0, 7]);
    tagged.resize(60, 0xaa);
    bench.receive(1, &tagged);
    let sent = bench.sent_by(2);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].len(), 60);
    assert!(sent[0].ends_with(&[0xaa, 0, 0, 0, 0]));
}
