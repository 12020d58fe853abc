//! Tests of flow mods in both versions, and of notifications of removed entries.

use crate::support::{Bench, body, frame, mac, multipart};
use std::net::Ipv4Addr;
use std::time::Duration;
use urtica_switch::ConnectionId;
use urtica_wire::{
    Action, ControllerRole, ErrorCode, FlowMod, FlowModCommand, FlowModFlags, FlowRemovedReason,
    FlowStatsRequest, Instruction, List, Match, Message, MultipartReplyBody, MultipartRequestBody,
    OxmField, PortNo, Role, TABLE_ALL, Version,
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

/// Returns the ports to which a frame from port 1 to host 2 is sent.
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
fn a_modify_without_a_match_adds_only_in_1_0() {
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

/// A UDP packet from port 1 that has all header fields of 1.0, and a match of 1.0 on all of them.
fn exact_of10(pcp: u8) -> (Vec<u8>, Match<'static>) {
    let mut packet = frame(1, 2);
    packet[12..].fill(0);
    packet[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    packet[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    packet[34..40].copy_from_slice(&[3, 0xe8, 7, 0xd0, 0, 26]);
    let match_ = Match::any()
        .in_port(PortNo(1))
        .eth_src(mac(1))
        .eth_dst(mac(2))
        .untagged()
        .vlan_pcp(pcp)
        .eth_type(0x0800)
        .ip_dscp(0)
        .ip_proto(17)
        .ipv4_src(Ipv4Addr::new(10, 0, 0, 1))
        .ipv4_dst(Ipv4Addr::new(10, 0, 0, 2))
        .udp_src(1000)
        .udp_dst(2000);
    (packet, match_)
}

#[test]
fn of10_entries_without_wildcards_have_the_highest_priority() {
    let (packet, match_) = exact_of10(0);
    let exact = |command, priority| FlowMod {
        command,
        priority,
        match_: match_.clone(),
        instructions: output(2),
        ..FlowMod::default()
    };
    let (mut bench, controller) = Bench::with_controller(Version::Of10);
    let by_port = FlowMod {
        priority: 60_000,
        match_: Match::any().in_port(PortNo(1)),
        ..entry(FlowModCommand::Add, 3)
    };
    tell(&mut bench, controller, by_port);
    tell(&mut bench, controller, exact(FlowModCommand::Add, 0));
    bench.receive(1, &packet);
    assert_eq!(bench.senders(), [2]);
    // Its priority does not distinguish it from another.
    let delete = exact(FlowModCommand::DeleteStrict, 7);
    tell(&mut bench, controller, delete);
    bench.receive(1, &packet);
    assert_eq!(bench.senders(), [3]);
}

#[test]
fn the_priority_of_untagged_packets_is_sent_back_to_1_0() {
    for pcp in [None, Some(0), Some(5)] {
        let (_, exact) = exact_of10(pcp.unwrap_or_default());
        let match_ = match pcp {
            Some(_) => exact,
            None => exact.without(OxmField::VlanPcp),
        };
        let (mut bench, controller) = Bench::with_controller(Version::Of10);
        let add = FlowMod {
            match_: match_.clone(),
            flags: FlowModFlags::SEND_FLOW_REM,
            instructions: output(2),
            ..FlowMod::default()
        };
        tell(&mut bench, controller, add);
        let request = multipart(MultipartRequestBody::Flow(FlowStatsRequest::default()));
        let reply = bench.ask(controller, &request);
        let MultipartReplyBody::Flow(rows) = body(&reply) else {
            panic!("{reply:?}");
        };
        let told: Vec<_> = rows
            .iter()
            .map(|row| row.match_.pcp_of_untagged())
            .collect();
        assert_eq!(told, [pcp]);
        bench.tell(
            controller,
            &Message::FlowMod(FlowMod {
                command: FlowModCommand::Delete,
                ..FlowMod::default()
            }),
        );
        let sent = bench.take_one(controller);
        let Message::FlowRemoved(removed) = sent.message() else {
            panic!("{sent:?}");
        };
        assert_eq!(removed.match_.pcp_of_untagged(), pcp);
    }
}
