//! Tests of the short requests in both versions, and of each of their errors.

use crate::support::{Bench, hw_addr, port};
use urtica_wire::{
    BufferId, CONTROLLER_NO_BUFFER, Capabilities, ConfigFlags, DatapathId, ErrorCode, ErrorMessage,
    Experimenter, FlowMod, GroupMod, GroupModCommand, GroupType, List, Match, Message, PacketIn,
    PacketInReason, PortConfig, PortFeatures, PortMod, PortNo, PortReason, PortStatus, QueueConfig,
    SwitchConfig, TABLE_ALL, TableMod, Version,
};

#[test]
fn features_of_1_3() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let answer = bench.ask(controller, &Message::FeaturesRequest);
    let Message::FeaturesReply(features) = answer.message() else {
        panic!("expected features");
    };
    assert_eq!(features.datapath_id, DatapathId(0xd1));
    assert_eq!((features.n_buffers, features.n_tables), (8, 4));
    let capabilities = Capabilities::GROUP_STATS | Capabilities::QUEUE_STATS;
    assert!(features.capabilities.contains(capabilities));
    assert!(features.ports.is_empty());
}

#[test]
fn features_of_1_0_have_ports() {
    let (mut bench, controller) = Bench::with_controller(Version::Of10);
    let answer = bench.ask(controller, &Message::FeaturesRequest);
    let Message::FeaturesReply(features) = answer.message() else {
        panic!("expected features");
    };
    assert_eq!(features.actions, 0xfff);
    let capabilities = Capabilities::ARP_MATCH_IP | Capabilities::QUEUE_STATS;
    assert!(features.capabilities.contains(capabilities));
    let expected = (1..=3).map(|number| port(Version::Of10, number));
    assert!(features.ports.iter().eq(expected));
}

fn config(flags: ConfigFlags, miss_send_len: u16) -> SwitchConfig {
    SwitchConfig {
        flags,
        miss_send_len,
    }
}

#[test]
fn the_configuration_is_kept() {
    for version in Version::ALL {
        let (mut bench, controller) = Bench::with_controller(version);
        let answer = bench.ask(controller, &Message::GetConfigRequest);
        let initial = config(ConfigFlags::empty(), 128);
        assert_eq!(answer.message(), Message::GetConfigReply(initial));

        let changed = config(ConfigFlags::FRAG_DROP, CONTROLLER_NO_BUFFER);
        bench.tell_quietly(controller, &Message::SetConfig(changed));
        let answer = bench.ask(controller, &Message::GetConfigRequest);
        assert_eq!(answer.message(), Message::GetConfigReply(changed));
    }
}

#[test]
fn each_controller_has_its_own_miss_send_len() {
    let (mut bench, first) = Bench::with_controller(Version::Of13);
    let second = bench.connect(Version::Of13);
    bench.tell_quietly(
        first,
        &Message::SetConfig(config(ConfigFlags::FRAG_DROP, 7)),
    );
    let answer = bench.ask(second, &Message::GetConfigRequest);
    let seen = config(ConfigFlags::FRAG_DROP, 128);
    assert_eq!(answer.message(), Message::GetConfigReply(seen));
}

#[test]
fn fragments_cannot_be_reassembled() {
    let asked = Message::SetConfig(config(ConfigFlags::FRAG_REASM, 1));
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    assert_eq!(
        bench.refused(controller, &asked),
        ErrorCode::SwitchConfigFailedBadFlags
    );
    let (mut bench, controller) = Bench::with_controller(Version::Of10);
    bench.tell_quietly(controller, &asked);
    let answer = bench.ask(controller, &Message::GetConfigRequest);
    let taken = config(ConfigFlags::empty(), 1);
    assert_eq!(answer.message(), Message::GetConfigReply(taken));
}

#[test]
fn barriers_are_answered() {
    for version in Version::ALL {
        let (mut bench, controller) = Bench::with_controller(version);
        let answer = bench.ask(controller, &Message::BarrierRequest);
        assert_eq!(answer.message(), Message::BarrierReply);
    }
}

#[test]
fn table_mods_change_nothing() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let table_mod = |table_id, config| Message::TableMod(TableMod { table_id, config });
    for table_id in [0, 3, TABLE_ALL] {
        bench.tell_quietly(controller, &table_mod(table_id, 3));
    }
    assert_eq!(
        bench.refused(controller, &table_mod(4, 0)),
        ErrorCode::TableModFailedBadTable
    );
    assert_eq!(
        bench.refused(controller, &table_mod(0, 4)),
        ErrorCode::TableModFailedBadConfig
    );
}

#[test]
fn ports_have_no_queues_by_default() {
    for version in Version::ALL {
        let (mut bench, controller) = Bench::with_controller(version);
        let answer = bench.ask(controller, &Message::QueueGetConfigRequest(PortNo(2)));
        let none = QueueConfig {
            port: PortNo(2),
            queues: List::default(),
        };
        assert_eq!(answer.message(), Message::QueueGetConfigReply(none));
        let unknown = Message::QueueGetConfigRequest(PortNo(9));
        assert_eq!(
            bench.refused(controller, &unknown),
            ErrorCode::QueueOpFailedBadPort
        );
    }
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let answer = bench.ask(controller, &Message::QueueGetConfigRequest(PortNo::ANY));
    let none = QueueConfig {
        port: PortNo::ANY,
        queues: List::default(),
    };
    assert_eq!(answer.message(), Message::QueueGetConfigReply(none));
}

#[test]
fn experimenters_are_unknown() {
    for version in Version::ALL {
        let (mut bench, controller) = Bench::with_controller(version);
        let message = Message::Experimenter(Experimenter {
            experimenter: 0x2320,
            data: &[0; 8],
        });
        assert_eq!(
            bench.refused(controller, &message),
            ErrorCode::BadRequestBadExperimenter
        );
    }
}

#[test]
fn messages_of_switches_are_refused() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let packet_in = Message::PacketIn(PacketIn {
        buffer_id: BufferId::NONE,
        total_len: 0,
        reason: PacketInReason::NoMatch,
        table_id: 0,
        cookie: 0,
        in_port: PortNo(1),
        match_: Match::any(),
        data: &[],
    });
    let status = Message::PortStatus(PortStatus {
        reason: PortReason::Add,
        port: port(Version::Of13, 1),
    });
    for message in [Message::BarrierReply, packet_in, status] {
        assert_eq!(
            bench.refused(controller, &message),
            ErrorCode::BadRequestBadType
        );
    }
}

#[test]
fn errors_and_hellos_are_not_answered() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let error = ErrorMessage {
        code: ErrorCode::BadRequestBadType,
        data: &[],
    };
    bench.tell_quietly(controller, &Message::Error(error));
    bench.tell_quietly(controller, &Message::Hello(urtica_wire::Hello::default()));
}

fn port_mod(number: u32, config: PortConfig, mask: PortConfig) -> PortMod {
    PortMod {
        port_no: PortNo(number),
        hw_addr: hw_addr(number),
        config,
        mask,
        advertise: PortFeatures::empty(),
    }
}

#[test]
fn a_port_mod_is_reported_to_all() {
    for version in Version::ALL {
        let (mut bench, first) = Bench::with_controller(version);
        let second = bench.connect(version);
        let down = port_mod(2, PortConfig::PORT_DOWN, PortConfig::PORT_DOWN);
        bench.tell(first, &Message::PortMod(down));
        for controller in [first, second] {
            let mut changed = port(version, 2);
            changed.config = PortConfig::PORT_DOWN;
            changed.state = urtica_wire::PortState::empty();
            let expected = PortStatus {
                reason: PortReason::Modify,
                port: changed,
            };
            let sent = bench.take_one(controller);
            assert_eq!(sent.message(), Message::PortStatus(expected));
        }
        // Repeating it changes nothing.
        bench.tell_quietly(first, &Message::PortMod(down));
    }
}

#[test]
fn a_port_mod_changes_only_masked_bits() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let both = PortConfig::NO_RECV | PortConfig::NO_FWD;
    bench.tell(controller, &Message::PortMod(port_mod(1, both, both)));
    let cleared = port_mod(1, PortConfig::empty(), PortConfig::NO_RECV);
    bench.tell(controller, &Message::PortMod(cleared));
    let sent = bench.take(controller);
    let Message::PortStatus(status) = sent[1].message() else {
        panic!("expected a port status");
    };
    assert_eq!(status.port.config, PortConfig::NO_FWD);
}

#[test]
fn bad_port_mods() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let none = PortConfig::empty();
    let wrong_address = PortMod {
        hw_addr: hw_addr(2),
        ..port_mod(1, none, none)
    };
    let advertise = PortMod {
        advertise: PortFeatures::FD_10MB,
        ..port_mod(1, none, none)
    };
    for (port_mod, code) in [
        (port_mod(9, none, none), ErrorCode::PortModFailedBadPort),
        (wrong_address, ErrorCode::PortModFailedBadHwAddr),
        (
            port_mod(1, none, PortConfig::from_bits_retain(1 << 20)),
            ErrorCode::PortModFailedBadConfig,
        ),
        (advertise, ErrorCode::PortModFailedBadAdvertise),
    ] {
        assert_eq!(bench.refused(controller, &Message::PortMod(port_mod)), code);
    }
}

#[test]
fn in_1_0_bits_that_cannot_be_changed_stay() {
    let (mut bench, controller) = Bench::with_controller(Version::Of10);
    let asked = PortConfig::NO_STP | PortConfig::NO_FLOOD;
    let asked = Message::PortMod(port_mod(1, asked, asked));
    bench.tell(controller, &asked);
    let sent = bench.take_one(controller);
    let Message::PortStatus(status) = sent.message() else {
        panic!("expected a port status");
    };
    assert_eq!(status.port.config, PortConfig::NO_FLOOD);
}

#[test]
fn requests_are_answered_in_their_order() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let flow_mod = FlowMod {
        table_id: 200,
        ..FlowMod::default()
    };
    bench.tell(controller, &Message::EchoRequest(&[]));
    bench.tell(controller, &Message::FlowMod(flow_mod));
    bench.tell(controller, &Message::BarrierRequest);
    let types: Vec<_> = bench
        .take(controller)
        .iter()
        .map(|sent| sent.header.message_type)
        .collect();
    assert_eq!(types, [3, 1, 21], "echo reply, error, barrier reply");
}

#[test]
fn a_group_mod_that_fails_is_an_error() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let group_mod = GroupMod {
        command: GroupModCommand::Modify,
        group_type: GroupType::All,
        group_id: 1,
        buckets: List::default(),
    };
    assert_eq!(
        bench.refused(controller, &Message::GroupMod(group_mod)),
        ErrorCode::GroupModFailedUnknownGroup
    );
}
