//! Tests of held connections with a kernel half, which keeps answering while no program runs.

use crate::room::*;
use crate::switch::*;
use rustix::process::Signal;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::Duration;
use urtica_wire::Version;

pub const KERNEL: &[&str] = &["l2", "--offload", "kernel"];
pub const AUTO: &[&str] = &["l2", "--offload", "auto"];
const WITHOUT: &[&str] = &["l2", "--offload", "none"];

/// Creates a room for this program. If kernel halves cannot be tested here, prints a line, or fails with CI=true.
pub fn room(program: &'static [&'static str]) -> Option<Room> {
    let room = Room::running(program);
    holds_kernel_halves(&room, &[]).then_some(room)
}

/// Checks that the program takes all connections over without a warning.
pub fn check_taken_over(program: &Program) {
    let log = program.log();
    assert!(!log.contains("cannot be used"), "{log}");
    assert!(!log.contains("WARN"), "{log}");
    assert!(log.contains("taken=4 closed=0"), "{log}");
}

#[test]
fn a_program_that_is_killed_at_any_moment_loses_nothing() {
    for program in [KERNEL, AUTO] {
        let Some(room) = room(program) else { return };
        under_load(&room, |mut program, progress| {
            for round in 0..20_u64 {
                if round % 4 != 0 {
                    progress(round * 370 % 2000);
                }
                program.kill();
                program = room.start(&format!("after-{round}.log"), &[]);
                check_taken_over(&program);
            }
            program
        });
    }
}

/// The program is killed before it reads input, notes or discards it, sends, or queries the kernel for the last
/// program's progress.
#[test]
fn a_program_that_is_killed_at_any_system_call_loses_nothing() {
    let Some(room) = room(KERNEL) else { return };
    if !has_strace() {
        return;
    }
    under_load(&room, |mut program, progress| {
        let moments = [
            ("recvfrom", [1, 3, 5]),
            ("pwrite64,pwritev", [1, 3, 6]),
            ("sendto", [1, 2, 3]),
            ("ioctl", [1, 4, 9]),
        ];
        for (calls, times) in moments {
            for nth in times {
                program.kill();
                let mut traced = room.start_traced(&format!("{calls}-{nth}.log"), calls, nth);
                assert_eq!(traced.wait().signal(), Some(9), "{}", traced.log());
                program = room.start(&format!("after-{calls}-{nth}.log"), &[]);
                check_taken_over(&program);
                progress(1000);
            }
        }
        program
    });
}

/// The kernel answers while the program is stopped. Switches that the program itself is answering at that moment would wait
/// for it, so the kernel first gets time to take over all switches.
#[test]
fn a_program_that_is_stopped_loses_nothing_and_answers() {
    let Some(room) = room(KERNEL) else { return };
    under_load(&room, |program, progress| {
        progress(10_000);
        program.signal(Signal::STOP);
        thread::sleep(Duration::from_secs(1));
        progress(1000);
        program.signal(Signal::CONT);
        program
    });
}

/// The kernel answers while no program runs.
#[test]
fn sigterm_leaves_the_connections_and_the_kernel_half() {
    let Some(room) = room(KERNEL) else { return };
    under_load(&room, |mut first, progress| {
        first.signal(Signal::TERM);
        assert!(first.wait().success(), "{}", first.log());
        progress(1000);
        let second = room.start("second.log", &[]);
        check_taken_over(&second);
        let log = second.log();
        assert!(log.contains("include 4 of an earlier program"), "{log}");
        assert!(!log.contains("answered_in_kernel=0 "), "{log}");
        progress(1000);
        second
    });
}

#[test]
fn a_second_program_takes_over_and_the_first_one_ends() {
    let Some(room) = room(AUTO) else { return };
    under_load(&room, |mut first, progress| {
        let second = room.start("second.log", &[]);
        assert!(first.wait().success(), "{}", first.log());
        check_taken_over(&second);
        progress(1000);
        second
    });
}

/// From then on the program and its successor answer alone.
#[test]
fn programs_without_a_kernel_half_release_it_without_loss() {
    let Some(mut room) = room(KERNEL) else { return };
    under_load_in(&mut room, |room, program, progress| {
        program.kill();
        room.with(WITHOUT);
        let without = room.start("without.log", &[]);
        check_taken_over(&without);
        let log = without.log();
        assert!(log.contains("releasing them"), "{log}");
        progress(10_000);
        without.kill();
        let next = room.start("next.log", &[]);
        check_taken_over(&next);
        progress(1000);
        next
    });
}

#[test]
fn the_next_program_answers_an_interrupted_message() {
    let Some(room) = room(KERNEL) else { return };
    for version in Version::ALL {
        cut_messages(&room, version);
    }
}

/// The rest of the message arrives while no program runs.
#[test]
fn messages_begun_in_the_kernel_are_answered_there() {
    let Some(room) = room(KERNEL) else { return };
    let mut program = room.start("first.log", &[]);
    let mut switch = FakeSwitch::join(program.port().unwrap(), Version::Of13, 1);
    program.answer_until_kept(&mut switch);
    let mut attempts = 0..20;
    loop {
        // After its first answer the program knows the ports; then it hands the connection over.
        for _ in 0..20 {
            switch.send_packets(5);
            switch.settle();
        }
        program.kill();
        switch.send_packets(1);
        if switch.hears_something(Duration::from_secs(2)) {
            break;
        }
        // If the program was the owner at that moment, try again.
        let attempt = attempts
            .next()
            .expect("now and then the kernel is the owner");
        program = room.start(&format!("attempt-{attempt}.log"), &[]);
    }
    switch.settle();
    for cut in [1, 7, 8, 30, 100] {
        let packet = switch.packet();
        switch.socket.write_all(&packet[..cut]).unwrap();
        switch.socket.write_all(&packet[cut..]).unwrap();
        switch.settle();
    }
    // Packets that only a program can answer wait for it.
    switch.others = Some(1);
    switch.send_packets(3);
    let program = room.start("second.log", &[]);
    switch.settle();
    program.interrupt(&room);
}

#[test]
fn connections_end_when_no_program_comes_back_in_time() {
    let Some(room) = room(KERNEL) else { return };
    let program = room.start("first.log", &["--hold-seconds=1"]);
    let mut switch = FakeSwitch::join(program.port().unwrap(), Version::Of13, 1);
    switch.send_packets(1);
    switch.settle();
    program.kill();
    while switch.take_frame() {}
    eventually("the holder has ended", || !room.file().exists());
}
