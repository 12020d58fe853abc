//! The durations of packet-ins in each program.

use crate::support::*;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use urtica_controller::{
    Named, Network, PacketInTimes, ProgramSlot, Running, Switch, SwitchHandler, SwitchInfo,
};
use urtica_wire::{Message, PacketIn, Version};

/// The time that it needs for each packet-in.
const SLOW: Duration = Duration::from_millis(20);

struct Slow;

impl SwitchHandler for Slow {
    fn packet_in(&mut self, _: &mut Switch, _: &PacketIn) {
        thread::sleep(SLOW);
    }
}

/// Consumes packet-ins.
struct Greedy;

impl SwitchHandler for Greedy {
    fn packet_in(&mut self, switch: &mut Switch, _: &PacketIn) {
        switch.consume();
    }
}

fn count(times: &PacketInTimes) -> u64 {
    times.iter().map(|(_, count)| count).sum()
}

/// Returns the names and counts of the programs.
fn counts(network: &Network) -> Vec<(Option<String>, u64)> {
    let times = network.packet_in_times();
    let row = |times: &Arc<PacketInTimes>| (times.name().map(str::to_owned), count(times));
    times.iter().map(row).collect()
}

/// Makes a switch send `number` packet-ins at once.
fn send_packet_ins(switch: &mut FakeSwitch, number: usize) {
    let one = encode(Version::Of10, 0, &Message::PacketIn(packet_in(&UDP)));
    switch.send_bytes(&one.repeat(number));
}

/// Waits until the programs have these names and counts.
fn expect_counts<const N: usize>(running: &Running, expected: [(Option<&str>, u64); N]) {
    let expected = expected.map(|(name, count)| (name.map(str::to_owned), count));
    eventually(&format!("{expected:?}"), || {
        counts(running.network()) == expected
    });
}

#[test]
fn each_packet_in_of_a_program_alone_counts_with_its_name() {
    let controller = controller(1).time_packet_ins(true);
    let hub = Named::new("hub", |_: &SwitchInfo| Hub);
    let running = controller.program(hub).start().unwrap();
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    send_packet_ins(&mut switch, 100);
    expect_counts(&running, [(Some("hub"), 100)]);
    let times = running.network().packet_in_times();
    eventually("a sum", || times[0].sum() > Duration::ZERO);
}

#[test]
fn slow_programs_have_longer_times() {
    let controller = controller(1).time_packet_ins(true);
    let controller = controller.program(|_: &SwitchInfo| Quiet);
    let running = controller.program(|_: &SwitchInfo| Slow).start().unwrap();
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    send_packet_ins(&mut switch, 3);
    expect_counts(&running, [(None, 3), (None, 3)]);
    let times = running.network().packet_in_times();
    // The last packet-in of a read counts for all of it. It waited for the earlier ones, and once more in the second program.
    eventually("the second takes longer", || {
        times[1].sum() >= times[0].sum() + 3 * SLOW
    });
}

#[test]
fn consumed_messages_count_for_no_later_program() {
    let controller = controller(1).time_packet_ins(true);
    let controller = controller.program(|_: &SwitchInfo| Greedy);
    let running = controller.program(|_: &SwitchInfo| Hub).start().unwrap();
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    send_packet_ins(&mut switch, 10);
    expect_counts(&running, [(None, 10), (None, 0)]);
}

#[test]
fn counts_of_replacing_programs_start_at_zero() {
    let controller = controller(1).time_packet_ins(true);
    let running = controller.program(|_: &SwitchInfo| Hub).start().unwrap();
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    send_packet_ins(&mut switch, 5);
    expect_counts(&running, [(None, 5)]);
    let next = Named::new("next", |_: &SwitchInfo| Quiet);
    let slot = ProgramSlot::Replace(running.program_ids()[0], Arc::new(next));
    running.set_programs(&[slot]).unwrap();
    expect_counts(&running, [(Some("next"), 0)]);
}

#[test]
fn programs_are_timed_only_on_request() {
    let controller = controller(1).program(|_: &SwitchInfo| Hub);
    let running = controller.start().unwrap();
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    send_packet_ins(&mut switch, 10);
    // All have been answered then.
    for _ in 0..10 {
        assert!(matches!(switch.receive().message(), Message::PacketOut(_)));
    }
    assert_eq!(counts(running.network()), [(None, 0)]);
}
