//! Tests of switches that send their last requests and close their side while their program is replaced: the next program
//! answers all requests, and then the connection ends.

use crate::kernel::{AUTO, KERNEL, room};
use crate::room::*;
use crate::switch::*;
use rustix::process::Signal;
use std::net::Shutdown;
use urtica_wire::Version;

const COUNTS: [u64; 3] = [1, 50, 400];

/// Sends the switch's last packets, and closes its side.
fn half_close(switch: &mut FakeSwitch, packets: u64) {
    switch.send_packets(packets);
    switch.socket.shutdown(Shutdown::Write).unwrap();
    // From now on the switch cannot answer requests.
    switch.is_cut = true;
}

fn join(room: &Room, program: &Program, version: Version) -> FakeSwitch {
    let mut switch = FakeSwitch::join(program.port().unwrap(), version, 1);
    if room.has_kernel_half() {
        program.answer_until_kept(&mut switch);
    }
    switch.send_packets(3);
    switch.settle();
    switch
}

fn check_answered(switch: &mut FakeSwitch) {
    switch.settle();
    while switch.take_frame() {}
    assert_eq!(switch.flooded, switch.sent, "each packet, and no other");
}

/// Sends a switch's last packets while no program runs.
fn close_without_program(room: &Room) {
    for version in Version::ALL {
        for count in COUNTS {
            let program = room.start("first.log", &[]);
            let mut switch = join(room, &program, version);
            // Every 30th packet needs a program.
            switch.others = Some(30);
            program.kill();
            half_close(&mut switch, count);
            let next = room.start("next.log", &[]);
            check_answered(&mut switch);
            assert!(next.log().contains("taken=1 closed=0"), "{}", next.log());
            next.interrupt(room);
        }
    }
}

/// Ends the program right after a switch's last packets.
fn close_before_the_end(room: &Room) {
    for (round, signal) in [Signal::KILL, Signal::TERM]
        .into_iter()
        .cycle()
        .take(8)
        .enumerate()
    {
        let program = room.start("first.log", &[]);
        let mut switch = join(room, &program, Version::ALL[round / 2 % 2]);
        switch.others = Some(30);
        half_close(&mut switch, COUNTS[round / 3]);
        program.signal(signal);
        program.wait_for_end();
        let next = room.start("next.log", &[]);
        check_answered(&mut switch);
        assert!(!next.log().contains("cannot be used"), "{}", next.log());
        next.interrupt(room);
    }
}

#[test]
fn last_packets_without_a_program_are_answered() {
    close_without_program(&Room::new());
    close_without_program(&Room::new().managed());
}

#[test]
fn last_packets_without_a_program_are_answered_with_a_kernel_half() {
    for program in [KERNEL, AUTO] {
        let Some(room) = room(program) else { return };
        close_without_program(&room);
        close_without_program(&room.managed());
    }
}

#[test]
fn last_packets_to_a_program_that_ends_are_answered() {
    close_before_the_end(&Room::new());
    for program in [KERNEL, AUTO] {
        let Some(room) = room(program) else { return };
        close_before_the_end(&room);
    }
}

/// The running program answers the last packets.
#[test]
fn last_packets_to_a_held_program_are_answered() {
    let rooms = [Some(Room::new()), room(KERNEL), room(AUTO)];
    for room in rooms.into_iter().flatten() {
        let program = room.start("first.log", &[]);
        for round in 0..30 {
            let mut switch = join(&room, &program, Version::ALL[round % 2]);
            switch.others = Some(30);
            half_close(&mut switch, COUNTS[round % 3]);
            check_answered(&mut switch);
        }
        assert!(!program.log().contains("WARN"), "{}", program.log());
        program.interrupt(&room);
    }
}
