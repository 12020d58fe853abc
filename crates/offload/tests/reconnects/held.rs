//! Reconnects with a holder, on a thread instead of in a process, and with programs that replace each other.

use crate::modes::{App, Form};
use crate::usage::Usage;
use crate::{ALONE, SESSIONS, check, reconnect};
use std::thread;
use std::time::Duration;
use urtica_controller::hold::{Holder, attach};
use urtica_controller::{Controller, Running};
use urtica_offload::{Halves, Kernel, LearningSwitch, Mode};

const FORM: Form = Form {
    app: App::L2,
    mode: "kernel",
};

/// Starts the learning switch with a kernel half that a holder keeps.
fn start(folder: &tempfile::TempDir) -> Running {
    let path = folder.path().join("hold.sock");
    let mut held = attach(&path, Duration::from_secs(600)).unwrap();
    let mut halves = Halves::of(&mut held).mode(Mode::Kernel);
    let kernel = halves.start(&held.link).unwrap();
    let kernel = kernel.max_switches(SESSIONS);
    let controller = Controller::new().kernel_half_after(Duration::ZERO, 0);
    let controller = controller.listen("ptcp:0:127.0.0.1".parse().unwrap());
    let controller = controller
        .shards(1)
        .pin(false)
        .held_halves(halves)
        .hold(held);
    let program = LearningSwitch::new(kernel).mode(Mode::Kernel);
    controller.program(program).start().unwrap()
}

#[test]
fn reconnects_to_held_programs_leave_nothing() {
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Err(reason) = Kernel::start() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{reason}");
        println!("skipped: the kernel half cannot be tested here: {reason}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let holder = Holder::bind(&folder.path().join("hold.sock")).unwrap();
    let holder = thread::spawn(move || holder.run());
    let mut controller = start(&folder);
    check(&controller, FORM, 300);
    let before = Usage::settled();
    for _ in 0..5 {
        controller.leave().unwrap();
        controller = start(&folder);
        reconnect(&controller, FORM, 20);
    }
    before.wait_until_again("programs that replace each other");
    controller.stop().unwrap();
    holder.join().unwrap().unwrap();
}
