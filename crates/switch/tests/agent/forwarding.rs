//! Comparison of the ways to process packets: they have equal results, in the same order, with equal counters.

use crate::support::{Bench, body, config, frame, hw_addr, multipart};
use proptest::prelude::*;
use std::time::Duration;
use urtica_pipeline::Backend;
use urtica_switch::{ConnectionId, Forwarding, SwitchConfig};
use urtica_wire::{
    Action, BufferId, FlowMod, FlowStatsRequest, Instruction, List, Match, Message,
    MultipartReplyBody, MultipartRequestBody, OxmField, PortConfig, PortFeatures, PortMod, PortNo,
    Version,
};

/// The plain form is the reference model.
fn ways() -> [Forwarding; 3] {
    [
        Forwarding::Plain,
        Forwarding::Compiled(Backend::Interpreter),
        Forwarding::default(),
    ]
}

/// A switch with ports 1 to 4 and a controller, which forwards in this way.
fn bench(forwarding: Forwarding, version: Version) -> (Bench, ConnectionId) {
    let mut bench = Bench::new(SwitchConfig {
        forwarding,
        ..config()
    });
    (1..=4).for_each(|number| bench.add_port(number));
    let controller = bench.connect(version);
    (bench, controller)
}

/// Adds an entry with these actions for host `dst`.
fn add(bench: &mut Bench, controller: ConnectionId, dst: u8, actions: &[Action]) {
    let instructions = [Instruction::ApplyActions(List::from(actions))];
    let entry = FlowMod {
        priority: 10,
        match_: Match::any().with_exact(OxmField::EthDst, crate::support::mac(dst).to_u64()),
        instructions: List::from(&instructions),
        ..FlowMod::default()
    };
    bench.tell_quietly(controller, &Message::FlowMod(entry));
}

/// Adds entries: host 2 is behind port 2, 3 behind 3, 4 behind 4, and so on.
fn add_all(bench: &mut Bench, controller: ConnectionId) {
    for dst in 1..=4 {
        add(
            bench,
            controller,
            dst,
            &[Action::output(PortNo(dst.into()))],
        );
    }
    add(bench, controller, 5, &[Action::output(PortNo::IN_PORT)]);
    add(
        bench,
        controller,
        6,
        &[Action::PopVlan, Action::output(PortNo(2))],
    );
    add(bench, controller, 7, &[Action::output(PortNo::NORMAL)]);
    add(
        bench,
        controller,
        8,
        &[Action::output(PortNo(3)), Action::output(PortNo(2))],
    );
    add(bench, controller, 9, &[Action::output(PortNo::CONTROLLER)]);
    add(
        bench,
        controller,
        10,
        &[Action::PopVlan, Action::DecNwTtl, Action::output(PortNo(4))],
    );
    add(bench, controller, 11, &[]);
}

fn configure(bench: &mut Bench, controller: ConnectionId, number: u32, config: PortConfig) {
    let port_mod = PortMod {
        port_no: PortNo(number),
        hw_addr: hw_addr(number),
        config,
        mask: PortConfig::PORT_DOWN | PortConfig::NO_FWD | PortConfig::NO_RECV,
        advertise: PortFeatures::empty(),
    };
    bench.tell(controller, &Message::PortMod(port_mod));
    bench.take(controller);
}

/// Everything observable about a switch: frames sent, messages to the controller, and counters.
#[derive(Debug, PartialEq)]
struct Outcome {
    sent: Vec<Vec<Vec<u8>>>,
    heard: Vec<String>,
    counted: Vec<String>,
}

fn outcome(bench: &mut Bench, controller: ConnectionId) -> Outcome {
    let heard = bench.take(controller);
    let mut counted = Vec::new();
    for question in [
        MultipartRequestBody::PortStats(PortNo::ANY),
        MultipartRequestBody::Flow(FlowStatsRequest::default()),
        MultipartRequestBody::Table,
    ] {
        let answer = bench.ask(controller, &multipart(question));
        counted.push(format!("{:?}", answer.message()));
    }
    Outcome {
        sent: (1..=4).map(|number| bench.sent_by(number)).collect(),
        heard: heard
            .iter()
            .map(|sent| format!("{:?}", sent.message()))
            .collect(),
        counted,
    }
}

/// A frame for host `dst`, which may be tagged, an IPv4 packet, long, or short.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let lengths = prop_oneof![8 => 60..200_usize, 1 => 1900..2000_usize, 1 => 0..60_usize];
    (
        1..=13_u8,
        any::<bool>(),
        any::<bool>(),
        0..4_u8,
        lengths,
        any::<u8>(),
    )
        .prop_map(|(dst, is_tagged, is_fragment, ttl, length, mark)| {
            let mut bytes = frame(mark % 16, dst);
            if is_tagged {
                bytes.splice(12..12, [0x81, 0x00, 0x00, 0x07]);
            }
            let at = if is_tagged { 18 } else { 14 };
            let fragment = if is_fragment { 0x20 } else { 0 };
            let header = [
                0x45, 0, 0, 46, 0, mark, fragment, 0, ttl, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
            ];
            bytes[at..at + 20].copy_from_slice(&header);
            bytes.resize(length, mark);
            bytes
        })
}

proptest! {
    #[test]
    fn all_forms_treat_frames_equally(
        bursts in prop::collection::vec(
            prop::collection::vec((1..=4_u32, any_frame()), 0..60), 1..4),
        configs in prop::collection::vec(0..8_u32, 4),
        drops_fragments: bool,
        version in prop_oneof![Just(Version::Of10), Just(Version::Of13)],
    ) {
        let outcomes = ways().map(|way| {
            let (mut bench, controller) = bench(way, Version::Of13);
            add_all(&mut bench, controller);
            // Another controller, of 1.0, receives misses.
            let other = bench.connect(version);
            let mut outcomes = Vec::new();
            for (number, burst) in bursts.iter().enumerate() {
                for (port, frame) in burst {
                    bench.link(*port).to_switch.push_back(frame.clone());
                }
                while bench.switch.poll_ports(bench.now) {}
                bench.pass(Duration::from_millis(1));
                outcomes.push((outcome(&mut bench, controller), bench.take(other).len()));
                if number == 0 {
                    for (port, &bits) in (1..).zip(&configs) {
                        configure(&mut bench, controller, port, some_bits(bits));
                    }
                    set_fragments(&mut bench, controller, drops_fragments);
                    bench.take(other);
                }
            }
            outcomes
        });
        prop_assert_eq!(&outcomes[0], &outcomes[1]);
        prop_assert_eq!(&outcomes[0], &outcomes[2]);
    }
}

/// A port configuration, usually without any bits set.
fn some_bits(number: u32) -> PortConfig {
    match number {
        0 => PortConfig::PORT_DOWN,
        1 => PortConfig::NO_FWD,
        2 => PortConfig::NO_RECV,
        _ => PortConfig::empty(),
    }
}

fn set_fragments(bench: &mut Bench, controller: ConnectionId, is_dropped: bool) {
    let mut flags = urtica_wire::ConfigFlags::empty();
    flags.set(urtica_wire::ConfigFlags::FRAG_DROP, is_dropped);
    let config = urtica_wire::SwitchConfig {
        flags,
        miss_send_len: 128,
    };
    bench.tell_quietly(controller, &Message::SetConfig(config));
}

/// A frame of `length` bytes for host `dst`, with a byte that identifies it.
fn marked(dst: u8, length: usize, mark: u8) -> Vec<u8> {
    let mut bytes = frame(1, dst);
    bytes.resize(length, 0);
    bytes[20] = mark;
    bytes
}

#[test]
fn frames_of_one_port_stay_in_order_across_forms() {
    for way in ways() {
        let (mut bench, controller) = bench(way, Version::Of13);
        add_all(&mut bench, controller);
        // Alternately compiled, too long for a burst, and left to the plain form.
        let frames: Vec<_> = (0..90)
            .map(|mark| match mark % 3 {
                0 => marked(2, 100, mark),
                1 => marked(2, 9000, mark),
                _ => marked(8, 100, mark),
            })
            .collect();
        bench.link(1).to_switch.extend(frames.iter().cloned());
        while bench.switch.poll_ports(bench.now) {}
        assert_eq!(bench.sent_by(2), frames, "{way:?}");
    }
}

#[test]
fn frames_shortened_by_a_popped_tag_are_padded() {
    for way in ways() {
        let (mut bench, controller) = bench(way, Version::Of13);
        add_all(&mut bench, controller);
        let mut tagged = frame(1, 6);
        tagged.splice(12..12, [0x81, 0x00, 0x00, 0x07]);
        bench.receive(1, &tagged[..60]);
        assert_eq!(bench.sent_by(2), [frame(1, 6)], "{way:?}");
    }
}

#[test]
fn packets_of_the_plain_form_are_counted() {
    for way in ways() {
        let (mut bench, controller) = bench(way, Version::Of13);
        add(&mut bench, controller, 2, &[Action::output(PortNo(2))]);
        add(&mut bench, controller, 7, &[Action::output(PortNo::NORMAL)]);
        bench.receive(1, &frame(1, 2));
        bench.receive(1, &frame(1, 7));
        let expected = if way == Forwarding::Plain { 2 } else { 1 };
        assert_eq!(bench.switch.plain_packets(), expected, "{way:?}");
    }
}

#[test]
fn changing_the_form_keeps_entries() {
    let (mut bench, controller) = bench(Forwarding::Plain, Version::Of13);
    add(&mut bench, controller, 2, &[Action::output(PortNo(2))]);
    for (number, way) in (1..).zip([ways(), ways()].concat()) {
        bench.switch.set_forwarding(way);
        add(&mut bench, controller, 20, &[Action::output(PortNo(3))]);
        let plain_before = bench.switch.plain_packets();
        bench.link(1).to_switch.extend([frame(1, 2), frame(1, 20)]);
        bench.switch.poll_ports(bench.now);
        assert_eq!(bench.senders(), [2, 3], "{way:?}");
        let plain = bench.switch.plain_packets() - plain_before;
        assert_eq!(
            plain,
            if way == Forwarding::Plain { 2 } else { 0 },
            "{way:?}"
        );
        let answer = bench.ask(controller, &multipart(MultipartRequestBody::Table));
        let MultipartReplyBody::Table(rows) = body(&answer) else {
            panic!("expected tables");
        };
        let matched = rows.iter().next().unwrap().matched_count;
        assert_eq!(matched, 2 * number, "{way:?}");
    }
}

#[test]
fn ports_may_be_switched_off_and_on() {
    for way in ways() {
        let (mut bench, controller) = bench(way, Version::Of13);
        add_all(&mut bench, controller);
        for (bits, sends) in [
            (PortConfig::PORT_DOWN, false),
            (PortConfig::empty(), true),
            (PortConfig::NO_FWD, false),
            (PortConfig::NO_RECV, true),
        ] {
            configure(&mut bench, controller, 2, bits);
            bench.receive(1, &frame(1, 2));
            assert_eq!(!bench.sent_by(2).is_empty(), sends, "{way:?}, {bits:?}");
        }
    }
}

#[test]
fn removed_ports_receive_no_frames() {
    for way in ways() {
        let (mut bench, controller) = bench(way, Version::Of13);
        add_all(&mut bench, controller);
        bench.switch.remove_port(PortNo(2), bench.now);
        bench.link(1).to_switch.extend([frame(1, 2), frame(1, 3)]);
        bench.switch.poll_ports(bench.now);
        assert_eq!(bench.senders(), [3], "{way:?}");
    }
}

#[test]
fn misses_are_sent_to_controllers_that_want_them() {
    for way in ways() {
        let (mut bench, controller) = bench(way, Version::Of13);
        bench.receive(1, &frame(1, 2));
        assert!(
            bench.take(controller).is_empty(),
            "1.3 has table-miss entries"
        );
        let of10 = bench.connect(Version::Of10);
        bench.receive(1, &frame(1, 2));
        assert_eq!(bench.take(of10).len(), 1, "{way:?}");
        bench.switch.disconnect(of10, bench.now);
        bench.receive(1, &frame(1, 2));
        let answer = bench.ask(controller, &multipart(MultipartRequestBody::Table));
        let MultipartReplyBody::Table(rows) = body(&answer) else {
            panic!("expected tables");
        };
        let first = rows.iter().next().unwrap();
        assert_eq!((first.lookup_count, first.matched_count), (3, 0), "{way:?}");
    }
}

#[test]
fn kept_packets_are_whole() {
    let (mut bench, controller) = bench(Forwarding::default(), Version::Of13);
    let mut to_controller = Action::output(PortNo::CONTROLLER);
    if let Action::Output { max_len, .. } = &mut to_controller {
        *max_len = 20;
    }
    add(&mut bench, controller, 9, &[to_controller]);
    let whole = marked(9, 1000, 7);
    bench.receive(1, &whole);
    let sent = bench.take_one(controller);
    let Message::PacketIn(packet_in) = sent.message() else {
        panic!("expected a packet-in, not {sent:?}");
    };
    assert_eq!(packet_in.data.len(), 20);
    assert_ne!(packet_in.buffer_id, BufferId::NONE);
    let actions = [Action::output(PortNo(2))];
    let out = urtica_wire::PacketOut {
        buffer_id: packet_in.buffer_id,
        in_port: PortNo(1),
        actions: List::from(&actions),
        data: &[],
    };
    bench.tell_quietly(controller, &Message::PacketOut(out));
    assert_eq!(bench.sent_by(2), [whole]);
}
