//! Tests of packet-ins, their buffers and limits, and of packet-outs.

use crate::support::{Bench, config, frame};
use std::time::Duration;
use urtica_switch::{ConnectionId, SwitchConfig};
use urtica_wire::{
    Action, BufferId, CONTROLLER_NO_BUFFER, ConfigFlags, ErrorCode, Field, FlowMod, FlowModCommand,
    FlowModFlags, Instruction, List, Match, Message, OxmField, PacketInReason, PacketOut,
    PortConfig, PortFeatures, PortMod, PortNo, RawField, Version,
};

fn to_controller(max_len: u16) -> Action<'static> {
    Action::Output {
        port: PortNo::CONTROLLER,
        max_len,
    }
}

fn apply(action: Action<'static>) -> List<'static, Instruction<'static>> {
    List::from(vec![Instruction::apply(vec![action])])
}

/// Connects a 1.3 controller whose table-miss entry sends it `max_len` bytes of every packet.
fn with_table_miss(max_len: u16) -> (Bench, ConnectionId) {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    add_table_miss(&mut bench, controller, max_len);
    (bench, controller)
}

fn add_table_miss(bench: &mut Bench, controller: ConnectionId, max_len: u16) {
    let table_miss = FlowMod {
        cookie: 0xc,
        priority: 0,
        instructions: apply(to_controller(max_len)),
        ..FlowMod::default()
    };
    bench.tell_quietly(controller, &Message::FlowMod(table_miss));
}

/// The fields of a packet-in that tests check.
#[derive(Debug, PartialEq)]
struct PacketIn {
    buffer_id: BufferId,
    total_len: u16,
    reason: PacketInReason,
    cookie: u64,
    in_port: u32,
    data: Vec<u8>,
}

fn take_packet_ins(bench: &mut Bench, controller: ConnectionId) -> Vec<PacketIn> {
    let sent = bench.take(controller);
    sent.iter()
        .map(|sent| match sent.message() {
            Message::PacketIn(packet_in) => PacketIn {
                buffer_id: packet_in.buffer_id,
                total_len: packet_in.total_len,
                reason: packet_in.reason,
                cookie: packet_in.cookie,
                in_port: packet_in.in_port().0,
                data: packet_in.data.to_vec(),
            },
            other => panic!("expected a packet-in, not {other:?}"),
        })
        .collect()
}

fn take_packet_in(bench: &mut Bench, controller: ConnectionId) -> PacketIn {
    let mut all = take_packet_ins(bench, controller);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn packet_out<'a>(buffer_id: BufferId, actions: &'a [Action<'a>], data: &'a [u8]) -> Message<'a> {
    Message::PacketOut(PacketOut {
        buffer_id,
        in_port: PortNo::CONTROLLER,
        actions: List::from(actions),
        data,
    })
}

#[test]
fn packet_ins_without_a_buffer_have_whole_packets() {
    let (mut bench, controller) = with_table_miss(CONTROLLER_NO_BUFFER);
    bench.receive(2, &frame(1, 2));
    let expected = PacketIn {
        buffer_id: BufferId::NONE,
        total_len: 60,
        reason: PacketInReason::NoMatch,
        cookie: 0xc,
        in_port: 2,
        data: frame(1, 2),
    };
    assert_eq!(take_packet_in(&mut bench, controller), expected);
}

/// Fields that are not in the packet's bytes are in the match (1.3.5 section 7.4.1); in 1.0, this is only the port.
#[test]
fn packet_ins_have_the_pipeline_fields() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    for flow in [
        "actions=write_metadata:0x5,goto_table:1",
        "table=1,actions=controller",
    ] {
        let flow_mod = FlowMod::parse(FlowModCommand::Add, flow).expect(flow);
        bench.tell_quietly(controller, &Message::FlowMod(flow_mod));
    }
    let of_10 = bench.connect(Version::Of10);
    bench.receive(2, &frame(1, 2));
    let metadata = Match::any()
        .in_port(PortNo(2))
        .with_exact(OxmField::Metadata, 5_u64);
    for (controller, match_) in [
        (controller, metadata),
        (of_10, Match::any().in_port(PortNo(2))),
    ] {
        let sent = bench.take_one(controller);
        let Message::PacketIn(packet_in) = sent.message() else {
            panic!("expected a packet-in, not {sent:?}");
        };
        assert_eq!(packet_in.match_, match_);
    }
}

#[test]
fn a_buffered_packet_is_cut_and_used_once() {
    let (mut bench, controller) = with_table_miss(20);
    bench.receive(2, &frame(1, 2));
    let packet_in = take_packet_in(&mut bench, controller);
    assert!(packet_in.buffer_id.is_some());
    assert_eq!((packet_in.total_len, packet_in.data.len()), (60, 20));

    let actions = [Action::output(PortNo(3))];
    let out = packet_out(packet_in.buffer_id, &actions, &[]);
    bench.tell_quietly(controller, &out);
    assert_eq!(bench.sent_by(3), [frame(1, 2)]);
    assert_eq!(
        bench.refused(controller, &out),
        ErrorCode::BadRequestBufferEmpty
    );
    let unknown = packet_out(BufferId(77), &actions, &[]);
    assert_eq!(
        bench.refused(controller, &unknown),
        ErrorCode::BadRequestBufferUnknown
    );
    assert!(bench.senders().is_empty());
}

#[test]
fn packet_ins_have_whole_packets_if_all_buffers_are_used() {
    let (mut bench, controller) = with_table_miss(20);
    for _ in 0..9 {
        bench.receive(2, &frame(1, 2));
    }
    let packet_ins = take_packet_ins(&mut bench, controller);
    assert!(packet_ins[..8].iter().all(|one| one.buffer_id.is_some()));
    assert_eq!(packet_ins[8].buffer_id, BufferId::NONE);
    assert_eq!(packet_ins[8].data, frame(1, 2));
}

#[test]
fn two_controllers_share_a_buffer() {
    let (mut bench, first) = with_table_miss(20);
    let second = bench.connect(Version::Of13);
    bench.receive(2, &frame(1, 2));
    let told = take_packet_in(&mut bench, first);
    assert_eq!(take_packet_in(&mut bench, second), told);
}

#[test]
fn a_flow_mod_sends_its_buffer_through_the_tables() {
    let (mut bench, controller) = with_table_miss(20);
    bench.receive(2, &frame(1, 2));
    let buffer_id = take_packet_in(&mut bench, controller).buffer_id;
    let flow_mod = Message::FlowMod(FlowMod {
        buffer_id,
        instructions: apply(Action::output(PortNo(3))),
        ..FlowMod::default()
    });
    bench.tell_quietly(controller, &flow_mod);
    assert_eq!(bench.sent_by(3), [frame(1, 2)]);
    // The entry was changed nevertheless.
    assert_eq!(
        bench.refused(controller, &flow_mod),
        ErrorCode::BadRequestBufferEmpty
    );
    bench.receive(1, &frame(1, 2));
    assert_eq!(bench.senders(), [3]);
}

#[test]
fn a_miss_goes_to_controllers_of_1_0_alone() {
    let (mut bench, of10) = Bench::with_controller(Version::Of10);
    let of13 = bench.connect(Version::Of13);
    bench.receive(2, &[frame(1, 2), vec![0; 140]].concat());
    let packet_in = take_packet_in(&mut bench, of10);
    assert!(packet_in.buffer_id.is_some());
    assert_eq!((packet_in.total_len, packet_in.data.len()), (200, 128));
    assert_eq!(packet_in.reason, PacketInReason::NoMatch);
    assert_eq!(packet_in.in_port, 2);
    assert!(bench.take(of13).is_empty());

    let config = urtica_wire::SwitchConfig {
        flags: ConfigFlags::empty(),
        miss_send_len: 14,
    };
    bench.tell_quietly(of10, &Message::SetConfig(config));
    bench.receive(2, &frame(1, 2));
    assert_eq!(take_packet_in(&mut bench, of10).data, frame(1, 2)[..14]);
}

#[test]
fn controllers_of_1_0_receive_packets_of_entries_too() {
    let (mut bench, of10) = Bench::with_controller(Version::Of10);
    let entry = FlowMod {
        instructions: apply(to_controller(30)),
        ..FlowMod::default()
    };
    bench.tell_quietly(of10, &Message::FlowMod(entry));
    bench.receive(1, &frame(1, 2));
    let packet_in = take_packet_in(&mut bench, of10);
    assert_eq!(packet_in.reason, PacketInReason::Action);
    assert_eq!(packet_in.data.len(), 30);
}

/// "Packets on that port that generate a table miss should never trigger a packet-in message" (1.3.5 section 7.2.1; 1.0
/// section 5.2.1 agrees). Packets that an ordinary entry sends to the controller are no misses.
#[test]
fn ports_can_be_configured_to_send_no_misses() {
    for version in Version::ALL {
        let (mut bench, controller) = match version {
            Version::Of10 => Bench::with_controller(version),
            Version::Of13 => with_table_miss(CONTROLLER_NO_BUFFER),
        };
        silence(&mut bench, controller);
        bench.receive(2, &frame(1, 2));
        assert!(bench.take(controller).is_empty());
        let entry = FlowMod {
            priority: 1,
            instructions: apply(to_controller(CONTROLLER_NO_BUFFER)),
            ..FlowMod::default()
        };
        bench.tell_quietly(controller, &Message::FlowMod(entry));
        bench.receive(2, &frame(1, 2));
        let packet_in = take_packet_in(&mut bench, controller);
        assert_eq!(packet_in.reason, PacketInReason::Action);
    }
}

/// Sets OFPPC_NO_PACKET_IN for port 2.
fn silence(bench: &mut Bench, controller: ConnectionId) {
    let port_mod = PortMod {
        port_no: PortNo(2),
        hw_addr: crate::support::hw_addr(2),
        config: PortConfig::NO_PACKET_IN,
        mask: PortConfig::NO_PACKET_IN,
        advertise: PortFeatures::empty(),
    };
    bench.tell(controller, &Message::PortMod(port_mod));
    bench.take(controller);
}

#[test]
fn packet_ins_are_limited() {
    let mut bench = Bench::new(SwitchConfig {
        packet_ins_per_second: 100,
        ..config()
    });
    bench.add_port(1);
    let controller = bench.connect(Version::Of13);
    add_table_miss(&mut bench, controller, CONTROLLER_NO_BUFFER);
    for _ in 0..30 {
        bench.receive(1, &frame(1, 2));
    }
    assert_eq!(bench.take(controller).len(), 10);
    assert_eq!(bench.switch.packet_ins_dropped(), 20);
}

#[test]
fn a_controller_that_does_not_read_is_sent_no_more_packets() {
    let (mut bench, slow) = with_table_miss(CONTROLLER_NO_BUFFER);
    let quick = bench.connect(Version::Of13);
    for _ in 0..1000 {
        bench.receive(1, &[0x22; 1500]);
        assert_eq!(bench.take(quick).len(), 1);
    }
    let backlog = bench.switch.output(slow).unwrap().len();
    assert!(backlog < 300_000, "{backlog} bytes");
    assert!(bench.switch.packet_ins_dropped() > 500);
    assert!(bench.switch.wants_input(slow));
}

#[test]
fn fragments_are_dropped_if_configured() {
    let (mut bench, controller) = with_table_miss(CONTROLLER_NO_BUFFER);
    let mut fragment = frame(1, 2);
    fragment[14..34].copy_from_slice(&[
        0x45, 0, 0, 46, 0, 1, 0x20, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    bench.receive(1, &fragment);
    assert_eq!(bench.take(controller).len(), 1);
    let config = urtica_wire::SwitchConfig {
        flags: ConfigFlags::FRAG_DROP,
        miss_send_len: 128,
    };
    bench.tell_quietly(controller, &Message::SetConfig(config));
    bench.receive(1, &fragment);
    assert!(bench.take(controller).is_empty());
}

#[test]
fn hidden_fields_of_fragments_match_0_if_configured() {
    for (flags, version) in [
        (ConfigFlags::empty(), Version::Of13),
        (ConfigFlags::FRAG_NX_MATCH, Version::Of13),
        (ConfigFlags::FRAG_NX_MATCH, Version::Of10),
    ] {
        let (mut bench, controller) = Bench::with_controller(version);
        let config = urtica_wire::SwitchConfig {
            flags,
            miss_send_len: 128,
        };
        bench.tell_quietly(controller, &Message::SetConfig(config));
        for (port, out) in [(0, 2), (53, 3)] {
            let of_port = urtica_wire::Match::any()
                .eth_type(0x0800)
                .ip_proto(17)
                .udp_dst(port);
            let entry = FlowMod {
                match_: of_port,
                instructions: apply(Action::output(PortNo(out))),
                ..FlowMod::default()
            };
            bench.tell_quietly(controller, &Message::FlowMod(entry));
        }
        let mut fragment = frame(1, 2);
        for (position, hidden_as_0) in [(0x20, [3]), (0, [2])] {
            fragment[14..38].copy_from_slice(&[
                0x45,
                0,
                0,
                46,
                0,
                1,
                position,
                u8::from(position == 0),
                64,
                17,
                0,
                0,
                10,
                0,
                0,
                1,
                10,
                0,
                0,
                2,
                0,
                7,
                0,
                53,
            ]);
            bench.receive(1, &fragment);
            let is_matched = !flags.is_empty() || hidden_as_0 == [3];
            let expected = if is_matched { &hidden_as_0[..] } else { &[] };
            assert_eq!(bench.senders(), expected, "{flags:?} in {version}");
        }
    }
}

#[test]
fn ports_of_fragments_are_0_for_entries_of_1_0() {
    for (version, expected) in [(Version::Of10, [3, 3, 3]), (Version::Of13, [2, 4, 4])] {
        let (mut bench, controller) = Bench::with_controller(version);
        bench.add_port(4);
        bench.take(controller);
        let udp = urtica_wire::Match::any().eth_type(0x0800).ip_proto(17);
        let by_port = |port| udp.clone().udp_dst(port);
        for (priority, match_, out) in
            [(2, by_port(53), 2), (2, by_port(0), 3), (1, udp.clone(), 4)]
        {
            let entry = FlowMod {
                priority,
                match_,
                instructions: apply(Action::output(PortNo(out))),
                ..FlowMod::default()
            };
            bench.tell_quietly(controller, &Message::FlowMod(entry));
        }
        let mut packet = frame(1, 2);
        packet[12..38].copy_from_slice(&[
            8, 0, 0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 3, 0xe8, 0,
            53,
        ]);
        bench.receive(1, &packet);
        assert_eq!(bench.senders(), [2], "no fragment in {version}");
        // The first one, one from the middle, and the last one.
        for (place, out) in [[0x20, 0], [0x20, 1], [0, 1]].into_iter().zip(expected) {
            packet[20..22].copy_from_slice(&place);
            bench.receive(1, &packet);
            assert_eq!(bench.senders(), [out], "{place:?} in {version}");
        }
    }
}

#[test]
fn without_a_controller_entries_still_apply() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let entry = FlowMod {
        instructions: apply(Action::output(PortNo(3))),
        ..FlowMod::default()
    };
    bench.tell_quietly(controller, &Message::FlowMod(entry));
    bench.switch.disconnect(controller, bench.now);
    bench.receive(1, &frame(1, 2));
    assert_eq!(bench.senders(), [3]);
}

#[test]
fn packet_outs_of_both_versions() {
    for version in Version::ALL {
        let (mut bench, controller) = Bench::with_controller(version);
        let data = frame(1, 2);
        let flood = [Action::output(PortNo::FLOOD)];
        for (in_port, senders) in [
            (PortNo::ANY, vec![1, 2, 3]),
            (PortNo::CONTROLLER, vec![1, 2, 3]),
            (PortNo(2), vec![1, 3]),
        ] {
            let out = Message::PacketOut(PacketOut {
                buffer_id: BufferId::NONE,
                in_port,
                actions: List::from(&flood),
                data: &data,
            });
            bench.tell_quietly(controller, &out);
            assert_eq!(bench.senders(), senders, "from {in_port}");
        }
        bench.tell_quietly(controller, &packet_out(BufferId::NONE, &[], &data));
        assert!(bench.senders().is_empty(), "no action drops");
    }
}

#[test]
fn a_packet_out_may_go_through_the_tables_and_learn() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let entry = FlowMod {
        instructions: apply(Action::output(PortNo::NORMAL)),
        ..FlowMod::default()
    };
    bench.tell_quietly(controller, &Message::FlowMod(entry));
    bench.receive(2, &frame(2, 0xff));
    assert_eq!(bench.senders(), [1, 3]);
    let table = [Action::output(PortNo::TABLE)];
    let data = frame(1, 2);
    bench.tell_quietly(controller, &packet_out(BufferId::NONE, &table, &data));
    assert_eq!(bench.senders(), [2]);
}

#[test]
fn bad_packet_outs() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let data = frame(1, 2);
    let raw = Field::Raw(RawField {
        class: 1,
        field: 0,
        has_mask: false,
        body: &[0],
    });
    for (action, code) in [
        (Action::output(PortNo(9)), ErrorCode::BadActionBadOutPort),
        (Action::output(PortNo(0)), ErrorCode::BadActionBadOutPort),
        (Action::output(PortNo::ANY), ErrorCode::BadActionBadOutPort),
        (Action::Group(1), ErrorCode::BadActionBadOutGroup),
        (Action::PushVlan(0x800), ErrorCode::BadActionBadArgument),
        (Action::PushMpls(0x800), ErrorCode::BadActionBadArgument),
        (Action::PushPbb(0x800), ErrorCode::BadActionBadArgument),
        (
            Action::SetField(Field::exact(OxmField::InPort, 1)),
            ErrorCode::BadActionBadSetType,
        ),
        (Action::SetField(raw), ErrorCode::BadActionBadSetType),
        (
            Action::Experimenter {
                experimenter: 1,
                data: &[],
            },
            ErrorCode::BadActionBadExperimenter,
        ),
    ] {
        let actions = [Action::output(PortNo(1)), action];
        let out = packet_out(BufferId::NONE, &actions, &data);
        assert_eq!(bench.refused(controller, &out), code, "{action:?}");
    }
    assert!(bench.senders().is_empty(), "nothing was carried out");

    let output = [Action::output(PortNo(1))];
    let short = packet_out(BufferId::NONE, &output, &data[..13]);
    assert_eq!(
        bench.refused(controller, &short),
        ErrorCode::BadRequestBadPacket
    );
    let bad_port = Message::PacketOut(PacketOut {
        buffer_id: BufferId::NONE,
        in_port: PortNo(9),
        actions: List::from(&output),
        data: &data,
    });
    assert_eq!(
        bench.refused(controller, &bad_port),
        ErrorCode::BadRequestBadPort
    );
}

#[test]
fn of10_enqueue_is_refused_without_queues() {
    let (mut bench, controller) = Bench::with_controller(Version::Of10);
    let actions = [Action::Enqueue {
        port: PortNo(1),
        queue_id: 1,
    }];
    let data = frame(1, 2);
    let out = packet_out(BufferId::NONE, &actions, &data);
    assert_eq!(
        bench.refused(controller, &out),
        ErrorCode::BadActionBadQueue
    );
    assert!(bench.senders().is_empty());
}

#[test]
fn an_entry_of_1_0_that_matches_all_is_no_table_miss() {
    let (mut bench, controller) = Bench::with_controller(Version::Of10);
    add_entry_for_all(&mut bench, controller);
    bench.receive(1, &frame(1, 2));
    let packet_in = take_packet_in(&mut bench, controller);
    assert_eq!(packet_in.reason, PacketInReason::Action);
    assert_eq!(packet_in.data.len(), 20);
}

fn add_entry_for_all(bench: &mut Bench, controller: ConnectionId) {
    let for_all = FlowMod {
        priority: 0,
        instructions: apply(to_controller(20)),
        ..FlowMod::default()
    };
    bench.tell_quietly(controller, &Message::FlowMod(for_all));
}

#[test]
fn asynchronous_messages_have_xid_0() {
    for version in Version::ALL {
        let (mut bench, controller) = Bench::with_controller(version);
        bench.add_port(4);
        bench.add_port(5);
        let watched = FlowMod {
            flags: FlowModFlags::SEND_FLOW_REM,
            hard_timeout: 1,
            priority: 0,
            instructions: apply(to_controller(20)),
            ..FlowMod::default()
        };
        bench.tell(controller, &Message::FlowMod(watched));
        bench.receive(1, &frame(1, 2));
        bench.pass(Duration::from_secs(2));
        let sent = bench.take(controller);
        let xids: Vec<_> = sent.iter().map(|sent| sent.header.xid).collect();
        // Two port-status messages, a packet-in and a flow-removed.
        assert_eq!(xids, [0; 4], "{version}");
    }
}

#[test]
fn messages_of_switches_are_refused_by_their_type() {
    let of_switches: [(Version, &[u8]); 2] = [
        (Version::Of10, &[6, 8, 10, 11, 12, 17, 19, 21]),
        (Version::Of13, &[6, 8, 10, 11, 12, 19, 21, 23, 25, 27]),
    ];
    for (version, types) in of_switches {
        let (mut bench, controller) = Bench::with_controller(version);
        for &message_type in types {
            for length in [8, 9, 38] {
                let mut message = vec![0; length];
                message[..8].copy_from_slice(&[
                    version.to_wire(),
                    message_type,
                    0,
                    length as u8,
                    0,
                    0,
                    0,
                    9,
                ]);
                bench.input(controller, &message).unwrap();
                let refusal = bench.refusal(controller, &message);
                assert_eq!(refusal, ErrorCode::BadRequestBadType, "type {message_type}");
            }
        }
    }
}
