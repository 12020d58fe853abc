//! `urtica run --hold`: programs that are killed, stopped and replaced while switches wait for answers. Each request is answered
//! once and in order, and no connection ends.

mod connection;
mod driven;
mod half_closed;
mod kernel;
mod managed;
mod manager;
mod older;
mod other_binary;
mod room;
mod router;
mod switch;
mod systemd;

use crate::room::*;
use crate::switch::*;
use rustix::process::Signal;
use std::fs;
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use urtica_wire::Version;

#[test]
fn a_program_that_is_killed_at_any_moment_loses_nothing() {
    let room = Room::new();
    under_load(&room, |mut program, progress| {
        for round in 0..20_u64 {
            // Kill at different moments: right after the start, under full load, and between.
            if round % 4 != 0 {
                progress(round * 37 % 200);
            }
            program.kill();
            program = room.start(&format!("after-{round}.log"), &[]);
            assert!(
                !program.log().contains("cannot be used"),
                "{}",
                program.log()
            );
        }
        program
    });
}

/// A program that is killed before it reads input, notes the replies, discards the input, or sends, loses no message
/// and sends none twice.
#[test]
fn a_program_that_is_killed_at_any_system_call_loses_nothing() {
    if !has_strace() {
        return;
    }
    let room = Room::new();
    under_load(&room, |program, _| {
        program.kill();
        for calls in ["recvfrom", "pwrite64,pwritev", "sendto"] {
            for nth in 1..=12 {
                let mut traced = room.start_traced(&format!("{calls}-{nth}.log"), calls, nth);
                assert_eq!(traced.wait().signal(), Some(9), "{}", traced.log());
            }
        }
        room.start("last.log", &[])
    });
}

#[test]
fn a_stopped_program_loses_no_messages() {
    let room = Room::new();
    under_load(&room, |program, _| {
        program.signal(Signal::STOP);
        thread::sleep(Duration::from_secs(1));
        program.signal(Signal::CONT);
        program
    });
}

#[test]
fn a_second_program_takes_over_and_the_first_one_ends() {
    let room = Room::new();
    under_load(&room, |mut first, progress| {
        let second = room.start("second.log", &[]);
        assert!(first.wait().success(), "{}", first.log());
        assert!(
            first.log().contains("another program takes over"),
            "{}",
            first.log()
        );
        assert!(
            second
                .log()
                .contains("took over the connections of an earlier program taken=4 closed=0"),
            "{}",
            second.log()
        );
        progress(1000);
        second
    });
}

#[test]
fn sigterm_leaves_the_connections_for_the_next_program() {
    let room = Room::new();
    under_load(&room, |mut first, _| {
        first.signal(Signal::TERM);
        assert!(first.wait().success(), "{}", first.log());
        room.start("second.log", &[])
    });
}

#[test]
fn the_next_program_answers_an_interrupted_message() {
    for version in Version::ALL {
        cut_messages(&Room::new(), version);
    }
}

/// The replies to the switch and the switch's own messages fill all queues: the program is killed with messages half sent.
#[test]
fn a_switch_that_does_not_read_gets_the_rest_from_the_next_program() {
    let room = Room::new();
    let mut program = room.start("first.log", &[]);
    let mut switch = FakeSwitch::join(program.port().unwrap(), Version::Of10, 1);
    // More than the buffers of loopback sockets hold.
    switch.frame_len = 1400;
    let packets: Vec<_> = (0..20_000).flat_map(|_| switch.packet()).collect();
    let mut socket = switch.socket.try_clone().unwrap();
    // The switch's replies to the program wait until all packets are sent.
    switch.is_cut = true;
    thread::scope(|scope| {
        scope.spawn(move || socket.write_all(&packets).unwrap());
        for round in 0..4 {
            thread::sleep(Duration::from_millis(150));
            program.kill();
            program = room.start(&format!("after-{round}.log"), &[]);
        }
        switch.settle();
        program.interrupt(&room);
    });
}

#[test]
fn connections_end_when_no_program_comes_back_in_time() {
    let room = Room::new();
    let program = room.start("first.log", &["--hold-seconds=1"]);
    let mut switch = FakeSwitch::join(program.port().unwrap(), Version::Of13, 1);
    switch.send_packets(1);
    switch.settle();
    program.kill();
    assert!(room.file().exists());
    while switch.take_frame() {}
    eventually("the holder has ended", || !room.file().exists());
}

#[test]
fn failing_to_hold_connections_is_logged_once() {
    let room = Room::new();
    fs::write(room.file(), "no socket").unwrap();
    let program = room.start("log", &[]);
    let warning = "connections will close when this program ends: cannot start a holder";
    assert!(program.log().contains(warning), "{}", program.log());
    let mut switch = FakeSwitch::join(program.port().unwrap(), Version::Of10, 1);
    switch.send_packets(10);
    switch.settle();
    program.kill();
    assert!(!switch.take_frame(), "the connection ends with its program");
}

/// A holder that systemd has started notifies it when programs may connect, and ends with the first program that exits
/// without a successor.
#[test]
fn a_separate_holder_reports_readiness() {
    let room = Room::new();
    let place = room.folder.path().join("systemd.sock");
    let systemd = UnixDatagram::bind(&place).unwrap();
    systemd.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut holder = Command::new(URTICA)
        .arg("hold")
        .arg(room.file())
        .env("NOTIFY_SOCKET", &place)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = [0; 64];
    let count = systemd.recv(&mut said).unwrap();
    assert_eq!(&said[..count], b"READY=1\n");
    room.start("first.log", &[]).interrupt(&room);
    assert!(holder.wait().unwrap().success());
}

#[test]
fn meaningless_settings_are_refused() {
    let run = |arguments: &[&str]| {
        let output = Command::new(URTICA).args(arguments).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let text = run(&["run", "l2", "--hold=/tmp/x", "--offload", "ring"]);
    assert!(
        text.contains("--hold does not work with --offload ring: a program that is killed loses"),
        "{text}"
    );
    let text = run(&["run", "l2", "--hold-seconds=3"]);
    assert!(text.contains("--hold"), "{text}");
    let text = run(&["hold", "/nowhere/at/all"]);
    assert!(text.contains("cannot hold at /nowhere/at/all"), "{text}");
    let text = run(&[
        "hold",
        Path::new(env!("CARGO_MANIFEST_DIR")).to_str().unwrap(),
    ]);
    assert!(text.contains("not a socket"), "{text}");
}
