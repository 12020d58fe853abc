//! Switches that connect again and again, in every mode of `urtica run --offload`, leave nothing behind: no descriptor, no map,
//! no entry in a map, no memory.
//!
//! Needs root and a kernel that accepts the programs; otherwise each test prints a line, and with CI=true it fails. The tests
//! count resources of the whole process, so they run one after another, in their own binary.

mod held;
mod usage;

#[path = "../hostile/faults.rs"]
#[allow(dead_code, reason = "the tests of hostile peers use it")]
mod faults;
#[allow(dead_code, reason = "the tests of hostile peers use all of it")]
#[path = "../hostile/modes.rs"]
mod modes;
#[allow(dead_code, reason = "the learning switch's tests use all of it")]
#[path = "../learning_switch/packets.rs"]
mod packets;
#[allow(dead_code, reason = "the tests of hostile peers use all of it")]
#[path = "../hostile/peers.rs"]
mod peers;
#[allow(dead_code, reason = "the router's tests use all of it")]
#[path = "../l3/plan.rs"]
mod plan;
#[allow(dead_code, reason = "the learning switch's tests use all of it")]
#[path = "../learning_switch/switch.rs"]
mod switch;

use modes::{FORMS, Form};
use peers::{Peer, wait_for_switches};
use socket2::SockRef;
use std::net::Shutdown;
use std::sync::Mutex;
use std::time::Duration;
use urtica_controller::Running;
use urtica_wire::Version;
use usage::Usage;

/// Held by the running test.
static ALONE: Mutex<()> = Mutex::new(());

/// Reconnects before the first count, in which pools and buffers reach their final sizes.
const WARM_UP: u64 = 200;

/// The maximum number of kernel halves: the number that is created at first, so that it stays constant.
const SESSIONS: u32 = 8;

/// Makes a switch connect this number of times, and leave in each way alternately.
fn reconnect(controller: &Running, form: Form, count: u64) {
    for number in 0..count {
        let version = Version::ALL[number as usize % 2];
        let mut peer = Peer::join(controller, form, version, 2 + number % 3);
        peer.send(&peer.requests(3));
        match number % 4 {
            // With answers unread.
            0 => {}
            1 => {
                assert_eq!(peer.finish(), 3, "{form}");
            }
            // With the start of a message.
            2 => {
                let request = peer.requests(1);
                peer.send(&request[..request.len() - 1]);
                peer.socket.shutdown(Shutdown::Write).unwrap();
            }
            _ => {
                assert!(peer.wait_for_answers(3), "{form}");
                let linger = Some(Duration::ZERO);
                SockRef::from(&peer.socket).set_linger(linger).unwrap();
            }
        }
    }
    wait_for_switches(controller, 0);
}

/// Checks that the process has as many resources after this many reconnects as after the first ones.
fn check(controller: &Running, form: Form, count: u64) {
    reconnect(controller, form, WARM_UP);
    let before = Usage::settled();
    if ["auto", "kernel", "driven"].contains(&form.mode) {
        let peer = Peer::earned(controller, form, Version::Of13, 1);
        assert_ne!(Usage::settled(), before, "{form}: a switch is counted");
        drop(peer);
    }
    reconnect(controller, form, count);
    before.wait_until_again(&form.to_string());
}

fn check_forms(forms: impl IntoIterator<Item = Form>, count: u64) {
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    for form in forms {
        let Some(controller) = form.start_as(SESSIONS, |controller| controller) else {
            return;
        };
        check(&controller, form, count);
        controller.stop().unwrap();
    }
}

#[test]
fn two_thousand_reconnects_leave_nothing() {
    check_forms(FORMS, 2_000 / FORMS.len() as u64);
}

#[test]
#[ignore = "takes long: make nightly"]
fn a_hundred_thousand_reconnects_leave_nothing() {
    check_forms(FORMS, 100_000 / FORMS.len() as u64);
}
