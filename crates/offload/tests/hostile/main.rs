//! Misbehaving peers, in every mode of `urtica run --offload`, with each program that has a part in the kernel in that mode.
//! Each mode treats them like the program alone, and still answers their neighbours.
//!
//! Needs root and a kernel that accepts the programs; otherwise each test prints a line, and with CI=true it fails.

mod faults;
mod given_up;
mod half_closed;
mod modes;
mod peers;
mod simulated;

#[allow(dead_code, reason = "the learning switch's tests use all of it")]
#[path = "../learning_switch/packets.rs"]
mod packets;
#[allow(dead_code, reason = "the router's tests use all of it")]
#[path = "../l3/plan.rs"]
mod plan;
#[allow(dead_code, reason = "the learning switch's tests use all of it")]
#[path = "../learning_switch/switch.rs"]
mod switch;

use faults::Fault;
use modes::{App, FORMS, Form};
use peers::{Outcome, Peer, wait_for_switches};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use switch::{connect, join};
use urtica_controller::Running;
use urtica_wire::{DatapathId, Version};

/// The id of the switch that behaves well.
const NEIGHBOUR: u64 = 1;

/// A controller of a form, and one of its switches, which behaves well.
struct Scene {
    form: Form,
    controller: Running,
    neighbour: Peer,
}

impl Scene {
    /// Returns a switch with this id that has been served, by the kernel if it answers.
    fn earned(&self, version: Version, id: u64) -> Peer {
        Peer::earned(&self.controller, self.form, version, id)
    }

    /// Checks that the neighbour is still answered.
    fn check_neighbour(&mut self) {
        for _ in 0..20 {
            assert!(self.neighbour.is_served(), "{}", self.form);
        }
    }
}

/// Runs a test in each form, with a neighbour that is answered before and after it.
fn in_every_form(test: impl Fn(&mut Scene)) {
    for form in FORMS {
        let Some(controller) = form.start() else {
            return;
        };
        let neighbour = Peer::join(&controller, form, Version::Of13, NEIGHBOUR);
        let mut scene = Scene {
            form,
            controller,
            neighbour,
        };
        scene.check_neighbour();
        test(&mut scene);
        scene.check_neighbour();
        drop(scene.neighbour);
        scene.controller.stop().unwrap();
    }
}

/// The expected outcomes are those of each program's first mode, which has no part in the kernel.
#[test]
fn malformed_messages_are_answered_as_by_the_program_alone() {
    let faults = Fault::all();
    let expected = std::cell::RefCell::new(Vec::<Outcome>::new());
    in_every_form(|scene| {
        let mut outcomes = Vec::new();
        for version in Version::ALL {
            for is_apart in [false, true] {
                for (fault, id) in faults.iter().zip(2..) {
                    let mut peer = scene.earned(version, id);
                    outcomes.push(peer.outcome(fault, is_apart));
                }
                scene.check_neighbour();
            }
        }
        let mut expected = expected.borrow_mut();
        if scene.form.mode == "none" {
            *expected = outcomes;
            return;
        }
        for ((number, outcome), expected) in outcomes.iter().enumerate().zip(&*expected) {
            let fault = &faults[number % faults.len()].name;
            assert_eq!(outcome, expected, "{}: {fault} ({number})", scene.form);
        }
    });
}

/// Faults have effects, so comparing modes is meaningful.
#[test]
fn some_peers_get_errors_and_some_lose_their_connection() {
    let Some(controller) = FORMS[0].start() else {
        return;
    };
    let outcomes = Fault::all().into_iter().zip(2..).map(|(fault, id)| {
        let mut peer = Peer::earned(&controller, FORMS[0], Version::Of13, id);
        peer.outcome(&fault, false)
    });
    let outcomes: Vec<_> = outcomes.collect();
    for is_closed in [false, true] {
        let has_error = |it: &&Outcome| it.is_closed == is_closed && !it.errors.is_empty();
        assert!(outcomes.iter().find(has_error).is_some(), "{is_closed}");
    }
    controller.stop().unwrap();
}

#[test]
fn peers_that_leave_in_the_middle_of_a_message_are_forgotten() {
    in_every_form(|scene| {
        for version in Version::ALL {
            for (cut, id) in [1, 7, 8, 40].into_iter().zip(2..) {
                let mut peer = scene.earned(version, id);
                let requests = peer.requests(2);
                let whole = requests.len() / 2;
                let end = requests.len().min(whole + cut);
                peer.send(&requests[..end - 1]);
                assert_eq!(peer.finish(), 1, "{}: {cut}", scene.form);
            }
        }
        wait_for_switches(&scene.controller, 1);
    });
}

/// When the peer reads, it receives an answer to each request.
#[test]
fn a_peer_that_never_reads_is_not_read_from() {
    in_every_form(|scene| {
        let mut peer = scene.earned(Version::Of13, 2);
        let (requests, rest) = peer.fill();
        let mut leaves = scene.earned(Version::Of10, 3);
        let _ = leaves.fill();
        scene.check_neighbour();
        if scene.form.app != App::L3 {
            let mut socket = peer.socket.try_clone().unwrap();
            thread::scope(|scope| {
                scope.spawn(move || std::io::Write::write_all(&mut socket, &rest).unwrap());
                assert!(peer.wait_for_answers(requests), "{}", scene.form);
            });
        }
        let waiting = scene.controller.network().waiting_bytes(DatapathId(2));
        assert!(waiting.unwrap().replies < 8 << 20, "{}", scene.form);
        drop((peer, leaves));
        wait_for_switches(&scene.controller, 1);
    });
}

/// Many peers connect at once, some as switches with made-up ids.
#[test]
fn a_storm_of_connections_leaves_no_state() {
    const PEERS: u64 = 100;
    in_every_form(|scene| {
        let silent: Vec<_> = (0..PEERS).map(|_| connect(&scene.controller)).collect();
        let switches: Vec<_> = (2..2 + PEERS)
            .map(|id| {
                let mut socket = connect(&scene.controller);
                join(&mut socket, Version::ALL[id as usize % 2], id);
                socket
            })
            .collect();
        scene.check_neighbour();
        drop((silent, switches));
        wait_for_switches(&scene.controller, 1);
    });
}

/// A peer connects and disconnects while its neighbour is served.
#[test]
fn a_peer_that_connects_and_leaves_in_a_loop() {
    in_every_form(|scene| {
        let is_over = AtomicBool::new(false);
        let (controller, form) = (&scene.controller, scene.form);
        thread::scope(|scope| {
            let churn = scope.spawn(|| {
                let mut rounds = 0;
                while !is_over.load(Relaxed) || rounds < 5 {
                    drop(Peer::earned(controller, form, Version::Of13, 2));
                    rounds += 1;
                }
            });
            for _ in 0..100 {
                scene.neighbour.assert_served();
            }
            is_over.store(true, Relaxed);
            churn.join().unwrap();
        });
        wait_for_switches(&scene.controller, 1);
    });
}

/// The id belongs to the newer peer.
#[test]
fn of_two_peers_with_one_datapath_id_the_newer_is_used() {
    in_every_form(|scene| {
        let mut older = scene.earned(Version::Of13, 2);
        let mut newer = scene.earned(Version::Of13, 2);
        older.read_to_end();
        newer.assert_served();
    });
}
