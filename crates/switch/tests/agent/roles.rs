//! Tests of several controllers: roles, elections, and the messages that each receives (1.3.5 sections 6.3.6, 7.3.9, 7.3.10).

use crate::support::{Bench, config, frame};
use proptest::prelude::*;
use urtica_switch::ConnectionId;
use urtica_wire::{
    Action, AsyncConfig, BufferId, ConfigFlags, ControllerRole, ErrorCode, Experimenter, FlowMod,
    GroupMod, GroupModCommand, GroupType, Instruction, List, Message, MeterFlags, MeterMod,
    MeterModCommand, NICIRA, NiciraMessage, PacketInReason, PacketOut, PortConfig, PortFeatures,
    PortMod, PortNo, PortReason, Role, SwitchConfig, TableMod, Version,
};

fn role(role: ControllerRole, generation_id: u64) -> Message<'static> {
    Message::RoleRequest(Role {
        role,
        generation_id,
    })
}

fn ask(bench: &mut Bench, controller: ConnectionId, asked: &Message) -> Role {
    match bench.ask(controller, asked).message() {
        Message::RoleReply(role) => role,
        other => panic!("expected a role, not {other:?}"),
    }
}

fn current(bench: &mut Bench, controller: ConnectionId) -> ControllerRole {
    ask(bench, controller, &role(ControllerRole::NoChange, 0)).role
}

#[test]
fn controllers_start_as_equals_before_any_election() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let told = ask(&mut bench, controller, &role(ControllerRole::NoChange, 5));
    let expected = Role {
        role: ControllerRole::Equal,
        generation_id: u64::MAX,
    };
    assert_eq!(told, expected);
}

#[test]
fn a_new_master_makes_the_old_one_a_slave() {
    let (mut bench, first) = Bench::with_controller(Version::Of13);
    let second = bench.connect(Version::Of13);
    let third = bench.connect(Version::Of13);
    ask(&mut bench, first, &role(ControllerRole::Master, 1));
    let told = ask(&mut bench, second, &role(ControllerRole::Master, 2));
    assert_eq!((told.role, told.generation_id), (ControllerRole::Master, 2));
    assert_eq!(current(&mut bench, first), ControllerRole::Slave);
    assert_eq!(current(&mut bench, second), ControllerRole::Master);
    assert_eq!(current(&mut bench, third), ControllerRole::Equal);
}

#[test]
fn old_elections_are_stale() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    ask(&mut bench, controller, &role(ControllerRole::Slave, 10));
    for (asked, generation_id) in [
        (ControllerRole::Master, 9),
        (ControllerRole::Slave, 9),
        (ControllerRole::Master, 10_u64.wrapping_sub(1 << 62)),
    ] {
        assert_eq!(
            bench.refused(controller, &role(asked, generation_id)),
            ErrorCode::RoleRequestFailedStale
        );
    }
    assert_eq!(current(&mut bench, controller), ControllerRole::Slave);
    ask(&mut bench, controller, &role(ControllerRole::Equal, 3));
    ask(&mut bench, controller, &role(ControllerRole::Master, 10));
}

#[test]
fn elections_wrap_around() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    ask(
        &mut bench,
        controller,
        &role(ControllerRole::Master, u64::MAX),
    );
    let told = ask(&mut bench, controller, &role(ControllerRole::Master, 0));
    assert_eq!(told.generation_id, 0);
}

#[test]
fn unknown_roles_are_refused() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    assert_eq!(
        bench.refused(controller, &role(ControllerRole::Other(4), 0)),
        ErrorCode::RoleRequestFailedBadRole
    );
}

#[test]
fn slaves_may_not_write() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    ask(&mut bench, controller, &role(ControllerRole::Slave, 0));
    let writes = [
        Message::FlowMod(FlowMod::default()),
        Message::PacketOut(PacketOut {
            buffer_id: BufferId::NONE,
            in_port: PortNo::CONTROLLER,
            actions: List::from(vec![Action::output(PortNo(1))]),
            data: &frame(1, 2),
        }),
        Message::GroupMod(GroupMod {
            command: GroupModCommand::Add,
            group_type: GroupType::All,
            group_id: 1,
            buckets: List::default(),
        }),
        Message::MeterMod(MeterMod {
            command: MeterModCommand::Add,
            flags: MeterFlags::KBPS,
            meter_id: 1,
            bands: List::default(),
        }),
        Message::PortMod(PortMod {
            port_no: PortNo(1),
            hw_addr: crate::support::hw_addr(1),
            config: PortConfig::empty(),
            mask: PortConfig::empty(),
            advertise: PortFeatures::empty(),
        }),
        Message::TableMod(TableMod {
            table_id: 0,
            config: 0,
        }),
    ];
    for write in writes {
        assert_eq!(
            bench.refused(controller, &write),
            ErrorCode::BadRequestIsSlave
        );
    }
    bench.ask(controller, &Message::BarrierRequest);
    assert!(bench.senders().is_empty());
}

#[test]
fn slaves_configure_only_themselves() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    ask(&mut bench, controller, &role(ControllerRole::Slave, 0));
    let config = SwitchConfig {
        flags: ConfigFlags::FRAG_DROP,
        miss_send_len: 9,
    };
    bench.tell_quietly(controller, &Message::SetConfig(config));
    let answer = bench.ask(controller, &Message::GetConfigRequest);
    let taken = SwitchConfig {
        flags: ConfigFlags::empty(),
        miss_send_len: 9,
    };
    assert_eq!(answer.message(), Message::GetConfigReply(taken));
}

fn asynchronous(bench: &mut Bench, controller: ConnectionId) -> AsyncConfig {
    match bench.ask(controller, &Message::GetAsyncRequest).message() {
        Message::GetAsyncReply(config) => config,
        other => panic!("expected an asynchronous configuration, not {other:?}"),
    }
}

#[test]
fn slaves_receive_only_port_status_by_default() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let expected = AsyncConfig {
        packet_in_mask: [0b011, 0],
        port_status_mask: [0b111, 0b111],
        flow_removed_mask: [0b1111, 0],
    };
    assert_eq!(asynchronous(&mut bench, controller), expected);
}

#[test]
fn the_asynchronous_configuration_applies_by_role() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let add = 1 << u8::from(PortReason::Add);
    let wanted = AsyncConfig {
        packet_in_mask: [0, 0],
        port_status_mask: [0, add],
        flow_removed_mask: [0, 0],
    };
    bench.tell_quietly(controller, &Message::SetAsync(wanted));
    assert_eq!(asynchronous(&mut bench, controller), wanted);

    bench.add_port(4);
    assert!(bench.take(controller).is_empty());
    ask(&mut bench, controller, &role(ControllerRole::Slave, 0));
    bench.add_port(5);
    assert_eq!(bench.take(controller).len(), 1);
    bench.switch.remove_port(PortNo(5), bench.now);
    assert!(bench.take(controller).is_empty());
}

#[test]
fn roles_do_not_exist_in_1_0() {
    let mut bench = Bench::new(config());
    let controller = bench.connect(Version::Of10);
    let role_request = [
        1, 24, 0, 24, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    bench.input(controller, &role_request).unwrap();
    assert_eq!(
        bench.refusal(controller, &role_request),
        ErrorCode::BadRequestBadType
    );
}

#[test]
fn packets_are_sent_to_controllers_that_want_them() {
    let (mut bench, master) = Bench::with_controller(Version::Of13);
    let [equal, slave, listener] = [(); 3].map(|()| bench.connect(Version::Of13));
    ask(&mut bench, master, &role(ControllerRole::Master, 1));
    for controller in [slave, listener] {
        ask(&mut bench, controller, &role(ControllerRole::Slave, 1));
    }
    let as_slave = AsyncConfig {
        packet_in_mask: [0, 1 << u8::from(PacketInReason::NoMatch)],
        port_status_mask: [0, 0],
        flow_removed_mask: [0, 0],
    };
    bench.tell_quietly(listener, &Message::SetAsync(as_slave));

    let to_controller = |priority| {
        let actions = vec![Action::controller()];
        Message::FlowMod(FlowMod {
            priority,
            instructions: List::from(vec![Instruction::apply(actions)]),
            ..FlowMod::default()
        })
    };
    bench.tell_quietly(master, &to_controller(0));
    bench.receive(1, &frame(1, 2));
    let told = [master, equal, slave, listener].map(|one| bench.take(one).len());
    assert_eq!(told, [1, 1, 0, 1], "the table-miss entry");

    bench.tell_quietly(master, &to_controller(1));
    bench.receive(1, &frame(1, 2));
    let told = [master, equal, slave, listener].map(|one| bench.take(one).len());
    assert_eq!(told, [1, 1, 0, 0], "another entry");
}

proptest! {
    /// An election is older if its distance to the newest known one is negative when interpreted as a signed number (1.3.5
    /// section 6.3.6).
    #[test]
    fn elections_are_compared_by_signed_distance(newest: u64, distance: i64) {
        let (mut bench, controller) = Bench::with_controller(Version::Of13);
        ask(&mut bench, controller, &role(ControllerRole::Slave, newest));
        let asked = newest.wrapping_add(distance as u64);
        let answer = bench.ask(controller, &role(ControllerRole::Master, asked));
        match answer.message() {
            Message::RoleReply(given) => {
                prop_assert!(distance >= 0);
                prop_assert_eq!(given.generation_id, asked);
            }
            Message::Error(error) => {
                prop_assert!(distance < 0);
                prop_assert_eq!(error.code, ErrorCode::RoleRequestFailedStale);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Sends one of Nicira's vendor messages.
fn tell_nicira(bench: &mut Bench, controller: ConnectionId, message: &NiciraMessage) {
    let mut frame = Vec::new();
    message.write(Version::Of10, 0x55, &mut frame).unwrap();
    bench.input(controller, &frame).unwrap();
}

/// Makes the switch assign this role to a 1.0 controller.
fn give_nicira(bench: &mut Bench, controller: ConnectionId, role: ControllerRole) {
    tell_nicira(bench, controller, &NiciraMessage::RoleRequest(role));
    let reply = bench.take_one(controller);
    assert_eq!(reply.header.xid, 0x55);
    let Message::Experimenter(vendor) = reply.message() else {
        panic!("expected a vendor message, not {reply:?}");
    };
    let given = NiciraMessage::decode(&vendor).unwrap();
    assert_eq!(given, Some(NiciraMessage::RoleReply(role)));
}

/// Returns whether a controller receives packets that match no entry.
fn receives_misses(bench: &mut Bench, controller: ConnectionId) -> bool {
    bench.receive(1, &frame(1, 2));
    !bench.take(controller).is_empty()
}

#[test]
fn controllers_of_1_0_have_niciras_roles() {
    let (mut bench, first) = Bench::with_controller(Version::Of10);
    let second = bench.connect(Version::Of10);
    give_nicira(&mut bench, first, ControllerRole::Master);
    give_nicira(&mut bench, second, ControllerRole::Master);
    assert!(!receives_misses(&mut bench, first), "it is a slave now");
    bench.take(second);
    assert!(receives_misses(&mut bench, second));
    bench.tell(first, &Message::FlowMod(FlowMod::default()));
    let refusal = bench.take_one(first);
    let Message::Error(error) = refusal.message() else {
        panic!("expected an error, not {refusal:?}");
    };
    assert!(error.is_slave(), "{error:?}");
    give_nicira(&mut bench, first, ControllerRole::Equal);
    assert!(receives_misses(&mut bench, first));
    bench.tell_quietly(first, &Message::FlowMod(FlowMod::default()));
}

#[test]
fn slaves_of_1_0_receive_requested_messages() {
    let (mut bench, controller) = Bench::with_controller(Version::Of10);
    let config = AsyncConfig {
        packet_in_mask: [0, 0b111],
        port_status_mask: [0, 0],
        flow_removed_mask: [0, 0],
    };
    tell_nicira(&mut bench, controller, &NiciraMessage::SetAsync(config));
    assert!(!receives_misses(&mut bench, controller));
    give_nicira(&mut bench, controller, ControllerRole::Slave);
    assert!(receives_misses(&mut bench, controller));
}

#[test]
fn malformed_vendor_messages_are_refused() {
    let (mut bench, controller) = Bench::with_controller(Version::Of10);
    let cases = [
        (&[0, 0, 0, 10, 0, 0, 0][..], ErrorCode::BadRequestBadLen),
        (&[0, 0, 0, 10, 0, 0, 0, 3], ErrorCode::BadRequestEperm),
        (&[0, 0, 0, 99], ErrorCode::BadRequestBadExperimenter),
        (
            &[0, 0, 0, 11, 0, 0, 0, 1],
            ErrorCode::BadRequestBadExperimenter,
        ),
    ];
    for (data, code) in cases {
        let vendor = Experimenter {
            experimenter: NICIRA,
            data,
        };
        assert_eq!(
            bench.refused(controller, &Message::Experimenter(vendor)),
            code,
            "{data:?}"
        );
    }
}
