//! Misbehaving peers, in every mode of `urtica run --offload`: each mode treats them as the program alone does, and
//! their neighbours are still answered.
//!
//! Needs root and a kernel that accepts the programs; otherwise each test prints a line, and with CI=true it fails.

mod modes;
mod peers;

#[allow(dead_code, reason = "the learning switch's tests use all of it")]
#[path = "../learning_switch/packets.rs"]
mod packets;
#[allow(dead_code, reason = "the learning switch's tests use all of it")]
#[path = "../learning_switch/switch.rs"]
mod switch;

use modes::{MODES, Neighbour, controller};
use peers::{HOSTILE, Hostile, Outcome};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use switch::{connect, join};
use urtica_controller::Running;
use urtica_wire::Version;

/// The id of the switch that behaves.
const NEIGHBOUR: u64 = 1;

/// Runs this in each mode, with a neighbour that is answered before and after it.
fn in_every_mode(test: impl Fn(&'static str, &Running, &mut Neighbour)) {
    for mode in MODES {
        let Some(controller) = controller(mode) else {
            return;
        };
        let mut neighbour = Neighbour::join(&controller, NEIGHBOUR);
        neighbour.is_served(mode);
        test(mode, &controller, &mut neighbour);
        neighbour.is_served(mode);
        drop(neighbour);
        controller.stop().unwrap();
    }
}

/// The first mode, without a kernel half, gives the expected outcome.
#[test]
fn malformed_messages_are_answered_as_by_the_program_alone() {
    let expected = std::cell::RefCell::new(Vec::<Outcome>::new());
    in_every_mode(|mode, controller, neighbour| {
        let outcomes = HOSTILE.iter().zip(2..).map(|(hostile, id)| {
            let outcome = hostile.outcome(controller, id);
            neighbour.is_served(mode);
            outcome
        });
        let outcomes: Vec<_> = outcomes.collect();
        let mut expected = expected.borrow_mut();
        if expected.is_empty() {
            *expected = outcomes;
            return;
        }
        for ((hostile, outcome), expected) in HOSTILE.iter().zip(outcomes).zip(&*expected) {
            assert_eq!(outcome, *expected, "{mode}: {}", hostile.name());
        }
    });
}

/// Checks that each kind has the effect in its name, so that comparing modes is meaningful.
#[test]
fn some_peers_get_errors_and_some_lose_their_connection() {
    let Some(controller) = controller("none") else {
        return;
    };
    let outcomes = HOSTILE.iter().zip(2..);
    let outcomes: Vec<_> = outcomes
        .map(|(it, id)| it.outcome(&controller, id))
        .collect();
    assert!(
        outcomes
            .iter()
            .any(|it| it.is_closed && !it.errors.is_empty())
    );
    assert!(
        outcomes
            .iter()
            .any(|it| !it.is_closed && !it.errors.is_empty())
    );
    controller.stop().unwrap();
}

#[test]
fn peers_that_leave_in_the_middle_of_a_message_are_forgotten() {
    in_every_mode(|_, controller, _| {
        for (cut, id) in [1, 7, 8, 40].into_iter().zip(2..) {
            let mut socket = Hostile::earned(controller, id);
            peers::send_cut(&mut socket, cut);
            let _ = socket.shutdown(Shutdown::Write);
            peers::read_to_end(&mut socket);
        }
        peers::wait_until_alone(controller);
    });
}

#[test]
fn a_peer_that_never_reads_is_not_read_from() {
    in_every_mode(|mode, controller, neighbour| {
        let socket = Hostile::earned(controller, 2);
        peers::fill(&socket);
        neighbour.is_served(mode);
        drop(socket);
        peers::wait_until_alone(controller);
    });
}

/// Many connect at once, some as switches with ids that they have made up.
#[test]
fn a_storm_of_connections_leaves_no_state() {
    const PEERS: u64 = 100;
    in_every_mode(|mode, controller, neighbour| {
        let silent: Vec<_> = (0..PEERS).map(|_| connect(controller)).collect();
        let switches: Vec<_> = (2..2 + PEERS)
            .map(|id| {
                let mut socket = connect(controller);
                join(&mut socket, Version::ALL[id as usize % 2], id);
                socket
            })
            .collect();
        neighbour.is_served(mode);
        drop((silent, switches));
        peers::wait_until_alone(controller);
    });
}

/// One peer connects and disconnects for as long as its neighbour is served.
#[test]
fn a_peer_that_connects_and_leaves_in_a_loop() {
    in_every_mode(|mode, controller, neighbour| {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let churn = scope.spawn(|| {
                let mut rounds = 0;
                while !is_over.load(Relaxed) || rounds < 5 {
                    drop(Hostile::earned(controller, 2));
                    rounds += 1;
                }
            });
            for _ in 0..5 {
                neighbour.is_served(mode);
            }
            is_over.store(true, Relaxed);
            churn.join().unwrap();
        });
        peers::wait_until_alone(controller);
    });
}

/// The newer one has the id.
#[test]
fn of_two_peers_with_one_datapath_id_the_newer_is_used() {
    in_every_mode(|_, controller, _| {
        let mut older = Hostile::earned(controller, 2);
        let mut newer = Hostile::earned(controller, 2);
        peers::read_to_end(&mut older);
        peers::assert_served(&mut newer);
    });
}
