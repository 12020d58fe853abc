//! The protocol without sockets: bytes in, bytes out.

use crate::in_memory::*;
use crate::support::*;
use proptest::prelude::*;
use std::time::Duration;
use urtica_controller::{Controller, IDLE_5S, Switch, SwitchHandler, SwitchInfo};
use urtica_wire::{DatapathId, ErrorCode, Experimenter, Match, Message, PacketIn, PortNo, Version};

/// Sends all packets out of port 2, with an entry.
struct ToTwo;

impl SwitchHandler for ToTwo {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        switch.forward_with_rule(packet, Match::exact(packet), PortNo(2), IDLE_5S);
    }
}

fn to_two() -> Bench {
    Bench::new(Controller::new().program(|_: &SwitchInfo| ToTwo))
}

#[test]
fn from_hello_to_flow_mod_byte_by_byte() {
    let mut bench = to_two();
    let switch = bench.connect();
    bench.input(switch, &said_by_hand());
    let greeting = hex("04 00 0010 00000001  0001 0008 00000012
         01 05 0008 00000002
         01 09 000c 00000003  0000 ffff");
    assert_eq!(bench.take_bytes(switch), greeting);
    assert!(bench.is_connected(1));
    bench.input(switch, &packet_in_by_hand());
    let flow_mod = hex("01 0e 0050 01000004
         00100000 0001 000000000001 000000000002 ffff 00 00 0800 00 11 0000
         00000001 00000002 0007 0009
         0100000000000000 0000 0005 0000 8000 00000007 ffff 0000
         0000 0008 0002 0000");
    assert_eq!(bench.take_bytes(switch), flow_mod);
}

#[test]
fn answers_do_not_depend_on_the_size_of_pieces() {
    let mut said = said_by_hand();
    (0..20).for_each(|_| said.extend(packet_in_by_hand()));
    let answers = |size: usize| {
        let mut bench = to_two();
        let switch = bench.connect();
        for piece in said.chunks(size) {
            bench.input(switch, piece);
            bench.poll();
        }
        bench.take_bytes(switch)
    };
    let whole = answers(said.len());
    assert_eq!(whole.len(), 16 + 8 + 12 + 20 * 80);
    for size in [1, 2, 7, 8, 63, 64, 65, 500] {
        assert_eq!(answers(size), whole, "pieces of {size}");
    }
}

#[test]
fn newer_of_two_connections_with_a_datapath_id_is_used() {
    let mut bench = to_two();
    let older = bench.join(Version::Of10, 1);
    let newer = bench.connect();
    bench.input(newer, &said_by_hand());
    let ended = bench.controller.poll(bench.now);
    let reason = "a newer connection has the same datapath id";
    assert_eq!(ended.len(), 1);
    assert_eq!(
        (ended[0].0, ended[0].1.to_string()),
        (older, reason.to_owned())
    );
    assert!(bench.is_connected(1));
    assert!(bench.controller.output(older).is_none());
    bench.take(newer);
    let network = bench.controller.network().clone();
    network
        .send(DatapathId(1), &Message::BarrierRequest)
        .unwrap();
    bench.poll();
    assert_eq!(bench.take(newer).len(), 1);
    // The end of the older connection does not affect the newer one.
    bench.controller.disconnect(older, bench.now);
    assert!(bench.is_connected(1));
}

/// Answers a packet with 60 kB, numbered.
struct Verbose(u32);

impl SwitchHandler for Verbose {
    fn packet_in(&mut self, switch: &mut Switch, _: &PacketIn) {
        let answer = Experimenter {
            experimenter: self.0,
            data: &[0; 60_000],
        };
        self.0 += 1;
        switch.send(&Message::Experimenter(answer)).unwrap();
    }
}

#[test]
fn switches_that_do_not_read_are_not_read_from() {
    const PACKETS: u32 = 50;
    let mut bench = Bench::new(Controller::new().program(|_: &SwitchInfo| Verbose(0)));
    let switch = bench.join(Version::Of10, 1);
    let counters = bench.controller.network().counters(DatapathId(1)).unwrap();
    for _ in 0..PACKETS {
        bench.packet_in(switch, Version::Of10);
    }
    assert!(!bench.controller.wants_input(switch));
    assert!(counters.packet_ins.get() < 10, "{counters:?}");
    assert_eq!(counters.stalls.get(), 1);
    let mut bytes = Vec::new();
    while bytes.len() < PACKETS as usize * 60_012 {
        let some = bench.take_bytes(switch);
        assert!(!some.is_empty() && some.len() <= 256 << 10);
        bytes.extend(some);
        if !bench.controller.wants_input(switch) {
            assert_eq!(bench.controller.next_timeout(), Some(bench.now), "at once");
        }
        bench.poll();
    }
    assert!(bench.controller.wants_input(switch));
    assert!(bench.take_bytes(switch).is_empty());
    for (number, answer) in (0_u32..).zip(bytes.chunks(60_012)) {
        assert_eq!(answer[8..12], number.to_be_bytes());
    }
    assert_eq!(counters.packet_ins.get(), u64::from(PACKETS));
}

/// Panics when it handles a packet.
struct Fragile(Recorder);

impl SwitchHandler for Fragile {
    fn packet_in(&mut self, switch: &mut Switch, _: &PacketIn) {
        panic!("switch {} has a packet", switch.datapath_id());
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        self.0.switch_down(info);
    }
}

#[test]
fn handler_panics_end_only_their_connection() {
    let ([recorder], record) = recorders(["p"]);
    let program = move |_: &SwitchInfo| Fragile(recorder.clone());
    let mut bench = Bench::new(Controller::new().program(program));
    let one = bench.join(Version::Of10, 1);
    let two = bench.join(Version::Of13, 2);
    let packet = encode(Version::Of10, 0, &Message::PacketIn(packet_in(&UDP)));
    let ended = bench.controller.handle_input(one, &packet, bench.now);
    assert_eq!(
        ended.unwrap_err().to_string(),
        "a handler panicked: switch 0000000000000001 has a packet"
    );
    assert_eq!(record.next(), "p: down 0000000000000001");
    assert!(!bench.is_connected(1) && bench.is_connected(2));
    let more = bench.controller.handle_input(one, &packet, bench.now);
    assert!(more.unwrap_err().to_string().contains("not open"));
    bench.take(two);
    let echo = Message::EchoRequest(b"still there?");
    bench.input(two, &encode(Version::Of13, 9, &echo));
    assert_eq!(bench.take(two).len(), 1);
    bench.controller.disconnect(two, bench.now);
    assert_eq!(record.next(), "p: down 0000000000000002");
}

#[test]
fn output_is_available_until_the_connection_is_closed() {
    let mut bench = to_two();
    let switch = bench.connect();
    // A bitmap with 1.1 only.
    let hello = hex("02 00 0010 00000007  0001 0008 00000004");
    let ended = bench.controller.handle_input(switch, &hello, bench.now);
    assert!(
        ended
            .unwrap_err()
            .to_string()
            .contains("ovs-vsctl set bridge")
    );
    let said = bench.take(switch);
    assert_eq!(said[1].error_code(), ErrorCode::HelloFailedIncompatible);
    assert!(!bench.controller.wants_input(switch));
    bench.controller.disconnect(switch, bench.now);
    assert!(bench.controller.output(switch).is_none());
}

#[test]
fn silent_connections_are_probed_and_ended() {
    let mut bench = to_two();
    let switch = bench.join(Version::Of10, 1);
    bench.take(switch);
    bench.now = Duration::from_secs(5);
    assert!(bench.controller.handle_timeout(bench.now).is_empty());
    let asked = bench.take(switch);
    assert!(matches!(asked[0].message(), Message::EchoRequest(_)));
    bench.now = Duration::from_secs(15);
    let ended = bench.controller.handle_timeout(bench.now);
    assert_eq!(ended.len(), 1);
    assert!(
        ended[0]
            .1
            .to_string()
            .starts_with("no message was received for 15s")
    );
    assert!(!bench.is_connected(1));
}

#[test]
fn time_is_monotonic() {
    struct Clock(Recorder);

    impl SwitchHandler for Clock {
        fn packet_in(&mut self, switch: &mut Switch, _: &PacketIn) {
            self.0.tell(switch.now_s());
        }
    }

    let ([recorder], record) = recorders(["now_s"]);
    let program = move |_: &SwitchInfo| Clock(recorder.clone());
    let mut bench = Bench::new(Controller::new().program(program));
    let switch = bench.join(Version::Of10, 1);
    let year = 365 * 24 * 60 * 60;
    let all_there_are = u32::MAX;
    for (now, expected) in [
        (7, 7),
        (3, 7),
        (8, 8),
        (100 * year, 100 * year as u32),
        (137 * year, all_there_are),
        (700 * year, all_there_are),
    ] {
        bench.now = Duration::from_secs(now);
        bench.packet_in(switch, Version::Of10);
        assert_eq!(record.next(), format!("now_s: {expected}"));
    }
    bench.now = Duration::MAX;
    bench.packet_in(switch, Version::Of10);
    assert_eq!(record.next(), format!("now_s: {all_there_are}"));
}

#[test]
fn handlers_are_notified_when_it_stops_or_is_dropped() {
    for is_dropped in [false, true] {
        let ([recorder], record) = recorders(["p"]);
        let program = move |_: &SwitchInfo| recorder.clone();
        let mut bench = Bench::new(Controller::new().program(program));
        let network = bench.controller.network().clone();
        for id in [2, 1] {
            bench.join(Version::Of13, id);
            assert_eq!(record.next(), "p: up, 3 ports");
        }
        let pending = network.barrier(DatapathId(1)).unwrap();
        if is_dropped {
            // Any thread may drop it.
            std::thread::spawn(move || drop(bench)).join().unwrap();
        } else {
            bench.controller.stop();
        }
        assert_eq!(record.next(), "p: down 0000000000000002");
        assert_eq!(record.next(), "p: down 0000000000000001");
        let left = pending.wait(DEADLINE).unwrap_err();
        assert_eq!(left, urtica_controller::RequestError::Disconnected);
        assert!(network.switches().is_empty());
    }
}

/// A test's use of one of its switches: sends `said` bytes, removes `taken` bytes of output, and may poll.
#[derive(Clone, Copy, Debug)]
struct Step {
    switch: usize,
    said: usize,
    taken: usize,
    polls: bool,
}

fn step() -> impl Strategy<Value = Step> {
    (0..3_usize, 0..400_usize, 0..400_000_usize, any::<bool>()).prop_map(
        |(switch, said, taken, polls)| Step {
            switch,
            said,
            taken,
            polls,
        },
    )
}

/// Returns the output for each of three switches that send all of `said`, first in these steps and then the rest at once.
fn conversation(said: &[u8], steps: &[Step]) -> [Vec<u8>; 3] {
    let mut bench = Bench::new(Controller::new().program(|_: &SwitchInfo| Verbose(0)));
    let switches = [1, 2, 3].map(|id| bench.join(Version::Of10, id));
    for switch in switches {
        bench.take(switch);
    }
    let mut rest = [said; 3];
    let mut heard: [Vec<u8>; 3] = Default::default();
    for step in steps {
        let (piece, after) = rest[step.switch].split_at(step.said.min(rest[step.switch].len()));
        rest[step.switch] = after;
        bench.input(switches[step.switch], piece);
        let output = bench.controller.output(switches[step.switch]).unwrap();
        heard[step.switch].extend(output.drain(..step.taken.min(output.len())));
        if step.polls {
            bench.poll();
        }
    }
    for (index, switch) in switches.into_iter().enumerate() {
        bench.input(switch, rest[index]);
        bench.poll();
        loop {
            let some = bench.take_bytes(switch);
            if some.is_empty() {
                break;
            }
            heard[index].extend(some);
            bench.poll();
        }
    }
    heard
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A switch's output does not depend on the segments of its input, or on the times of its reads.
    #[test]
    fn output_does_not_depend_on_pieces_and_pauses(
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let packet = encode(Version::Of10, 0, &Message::PacketIn(packet_in(&UDP)));
        let said = packet.repeat(20);
        let at_once = conversation(&said, &[]);
        prop_assert_eq!(at_once[0].len(), 20 * 60_012);
        prop_assert_eq!(conversation(&said, &steps), at_once);
    }
}
