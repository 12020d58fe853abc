//! Programs whose connections a service manager keeps (`--hold=systemd`): no holder runs.

use crate::kernel::{AUTO, KERNEL, check_taken_over, room};
use crate::room::*;
use crate::switch::*;
use rustix::process::Signal;
use std::process::{Command, Stdio};
use urtica_wire::Version;

#[test]
fn a_program_that_is_killed_at_any_moment_loses_nothing() {
    let room = Room::new().managed();
    under_load(&room, |mut program, progress| {
        for round in 0..15_u64 {
            if round % 4 != 0 {
                progress(round * 37 % 200);
            }
            program.kill();
            program = room.start(&format!("after-{round}.log"), &[]);
            check_taken_over(&program);
        }
        program
    });
}

/// Replaces the program like `systemctl restart`.
#[test]
fn a_service_that_is_restarted_keeps_its_connections() {
    let room = Room::new().managed();
    under_load(&room, |mut program, progress| {
        for round in 0..4 {
            program.signal(Signal::TERM);
            assert!(program.wait().success(), "{}", program.log());
            program = room.start(&format!("after-{round}.log"), &[]);
            check_taken_over(&program);
            progress(500);
        }
        program
    });
}

/// Returns the number of take-overs; set HOLD_ROUNDS for more, to find rare faults.
fn rounds() -> u32 {
    let rounds = std::env::var("HOLD_ROUNDS").ok();
    rounds.map_or(3, |rounds| rounds.parse().expect("a number"))
}

/// The kernel answers while no program runs.
#[test]
fn a_kernel_half_continues() {
    for program in [KERNEL, AUTO] {
        let Some(room) = room(program) else { return };
        let room = room.managed();
        under_load(&room, |mut program, progress| {
            for round in 0..rounds() {
                program.signal(Signal::TERM);
                assert!(program.wait().success(), "{}", program.log());
                if round == 0 {
                    progress(1000);
                }
                program = room.start(&format!("after-{round}.log"), &[]);
                check_taken_over(&program);
                let log = program.log();
                assert!(log.contains("include 4 of an earlier program"), "{log}");
                progress(500);
                program.kill();
                program = room.start(&format!("after-kill-{round}.log"), &[]);
                check_taken_over(&program);
                progress(500);
            }
            program
        });
    }
}

/// The state of disconnected switches is not kept.
#[test]
fn stored_state_is_removed_with_its_connection() {
    let room = Room::new().managed();
    let program = room.start("first.log", &[]);
    let join = |id| FakeSwitch::join(program.port().unwrap(), Version::Of13, id);
    let stays = join(1);
    let before = room.stored();
    for _ in 0..3 {
        let switch = join(2);
        eventually("it is stored", || room.stored() > before);
        drop(switch);
        eventually("it is not stored any more", || room.stored() == before);
    }
    drop(stays);
    eventually("listeners alone are stored", || room.stored() == 1);
    program.interrupt(&room);
}

#[test]
fn a_missing_service_manager_is_logged_once() {
    let mut child = Command::new(URTICA)
        .args([
            "run",
            "hub",
            "--listen",
            "ptcp:0:127.0.0.1",
            "--hold=systemd",
        ])
        .env_remove("NOTIFY_SOCKET")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut lines = std::io::BufRead::lines(log).map_while(Result::ok);
    let line = lines.find(|line| line.contains("connections will close when this program ends"));
    let line = line.expect("it warns");
    assert!(line.contains("NOTIFY_SOCKET is not set"), "{line}");
    child.kill().unwrap();
    child.wait().unwrap();
}
