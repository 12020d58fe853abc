//! Output ports (1.3.5 section 4.5), and packet-outs (section 7.3.7).

use crate::support::{Bed, IN, any_frame, port};
use urtica_wire::PacketInReason::{self, Action};
use urtica_wire::{ErrorCode, Port, PortConfig, PortNo, PortState};

#[track_caller]
fn ports_of(bed: &mut Bed, actions: &str) -> Vec<u32> {
    bed.add(&format!("actions={actions}"));
    bed.send(&any_frame()).ports()
}

#[test]
fn only_in_port_sends_packets_back() {
    let mut bed = Bed::new();
    assert_eq!(ports_of(&mut bed, "output:1,output:2"), [2]);
    assert_eq!(ports_of(&mut bed, "in_port"), [1]);
}

#[test]
fn all_and_flood_exclude_the_ingress_port() {
    let mut bed = Bed::new();
    bed.pipeline.set_port(Port {
        port_no: PortNo::LOCAL,
        ..port(9)
    });
    let local = PortNo::LOCAL.0;
    assert_eq!(ports_of(&mut bed, "all"), [2, 3, 4, local]);
    assert_eq!(ports_of(&mut bed, "local"), [local]);
    bed.set_port(3, PortConfig::NO_FLOOD, PortState::empty());
    assert_eq!(ports_of(&mut bed, "flood"), [2, 4, local]);
    assert_eq!(ports_of(&mut bed, "all"), [2, 3, 4, local]);
}

#[test]
fn ports_that_cannot_send_are_skipped() {
    let mut bed = Bed::new();
    bed.set_port(2, PortConfig::NO_FWD, PortState::empty());
    bed.set_port(3, PortConfig::PORT_DOWN, PortState::empty());
    assert_eq!(ports_of(&mut bed, "output:2,output:3,output:4"), [4]);
    assert_eq!(ports_of(&mut bed, "all"), [4]);
    bed.pipeline.remove_port(PortNo(4));
    assert!(bed.send(&any_frame()).is_dropped());
}

#[test]
fn normal_is_passed_to_the_switch() {
    let bed = Bed::with(&["actions=normal"]);
    assert_eq!(bed.send(&any_frame()).normal, 1);
}

#[test]
fn queues_apply_to_later_outputs() {
    let bed = Bed::with(&["actions=output:2,set_queue:7,output:3,set_queue:9,output:4,output:2"]);
    let out = bed.send(&any_frame());
    let queues: Vec<_> = out
        .sent
        .iter()
        .map(|(port, queue, _)| (port.0, *queue))
        .collect();
    assert_eq!(queues, [(2, 0), (3, 7), (4, 9), (2, 9)]);
}

#[test]
fn a_packet_out_executes_its_actions() {
    let bed = Bed::with(&["actions=4"]);
    let out = bed.packet_out(PortNo::CONTROLLER, &any_frame(), "output:2,controller:7");
    assert_eq!(out.ports(), [2]);
    let (cause, _) = &out.packet_ins[0];
    assert_eq!(cause.reason, Action);
    assert_eq!(
        (cause.table_id, cause.cookie, cause.max_len),
        (0, u64::MAX, 7)
    );
    assert!(bed.dump()[0].starts_with("0 packets"));
}

#[test]
fn a_packet_out_may_be_submitted_to_the_tables() {
    let bed = Bed::with(&["in_port=1,actions=controller,all"]);
    let out = bed.packet_out(IN, &any_frame(), "TABLE,output:2,controller");
    assert_eq!(out.ports(), [2, 3, 4, 2]);
    let cookies: Vec<_> = out
        .packet_ins
        .iter()
        .map(|(cause, _)| cause.cookie)
        .collect();
    assert_eq!(cookies, [0, u64::MAX]);
    assert!(bed.dump()[0].starts_with("1 packets"));
}

#[test]
fn a_packet_out_of_a_port_that_does_not_receive_is_submitted_to_the_tables() {
    let mut bed = Bed::with(&["actions=2"]);
    bed.set_port(IN.0, PortConfig::NO_RECV, PortState::empty());
    assert_eq!(bed.packet_out(IN, &any_frame(), "TABLE").ports(), [2]);
}

#[test]
fn unchecked_actions_of_a_packet_out_have_no_effect() {
    let bed = Bed::new();
    let mut sink = crate::support::Recorder::default();
    let actions = [
        urtica_wire::Action::Group(9),
        urtica_wire::Action::output(PortNo(77)),
        urtica_wire::Action::output(PortNo::ANY),
    ];
    let packet = urtica_pipeline::Packet::new(IN, &any_frame());
    bed.pipeline
        .packet_out(packet, &actions, bed.now, &mut sink);
    assert!(sink.is_dropped());
    assert_eq!(sink.reasons(), [] as [PacketInReason; 0]);
}

/// LOCAL is a standard port (1.3.5 section 4.1), so ALL and FLOOD (section 4.5) include it, as in Open vSwitch.
#[test]
fn local_port_is_an_ordinary_port() {
    let mut bed = Bed::with(&[]);
    assert_eq!(bed.refused("actions=LOCAL"), ErrorCode::BadActionBadOutPort);
    bed.set_port(PortNo::LOCAL.0, PortConfig::empty(), PortState::empty());
    let local = PortNo::LOCAL.0;
    for (actions, expected) in [
        ("LOCAL", vec![local]),
        ("ALL", vec![2, 3, 4, local]),
        ("FLOOD", vec![2, 3, 4, local]),
    ] {
        let out = bed.packet_out(IN, &any_frame(), actions);
        assert_eq!(out.ports(), expected, "{actions}");
        let out = bed.packet_out(PortNo::LOCAL, &any_frame(), actions);
        let others = match actions {
            "LOCAL" => vec![],
            _ => vec![1, 2, 3, 4],
        };
        assert_eq!(out.ports(), others, "{actions} from LOCAL");
    }
    let out = bed.packet_out(PortNo::LOCAL, &any_frame(), "IN_PORT");
    assert_eq!(out.ports(), [local]);
    bed.set_port(local, PortConfig::NO_FLOOD, PortState::empty());
    assert_eq!(bed.packet_out(IN, &any_frame(), "FLOOD").ports(), [2, 3, 4]);
    assert_eq!(
        bed.packet_out(IN, &any_frame(), "ALL").ports(),
        [2, 3, 4, local]
    );
    bed.set_port(local, PortConfig::NO_FWD, PortState::empty());
    assert_eq!(
        bed.packet_out(IN, &any_frame(), "ALL,LOCAL").ports(),
        [2, 3, 4]
    );
}
