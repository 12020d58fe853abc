//! Settings that cannot work are rejected at the start, with a message.

use crate::support::*;
use std::time::Duration;
use urtica_controller::{Controller, SessionConfig, SwitchInfo};

/// Returns the error of a controller, and checks that starting and embedding it fail with one error.
fn refusal(controller: impl Fn() -> Controller) -> String {
    let started = controller()
        .start()
        .err()
        .expect("it is refused")
        .to_string();
    let embedded = controller()
        .embed()
        .err()
        .expect("it is refused")
        .to_string();
    assert_eq!(started, embedded);
    started
}

#[test]
fn sessions_need_a_version_and_time() {
    type Change = fn(&mut SessionConfig);
    let cases: [(Change, &str); 4] = [
        (
            |session| session.versions.clear(),
            "SessionConfig::versions is empty: expected OpenFlow 1.0, 1.3 or both",
        ),
        (
            |session| session.handshake_timeout = Duration::ZERO,
            "SessionConfig::handshake_timeout is 0: expected a time longer than that",
        ),
        (
            |session| session.echo_interval = Duration::ZERO,
            "SessionConfig::echo_interval is 0: expected a time longer than that",
        ),
        (
            |session| {
                session.echo_interval = Duration::from_secs(1);
                session.dead_interval = Duration::from_secs(1);
            },
            "SessionConfig::dead_interval is 1s: expected more than echo_interval, 1s, or a quiet switch is considered dead \
             before an echo request is sent",
        ),
    ];
    for (change, expected) in cases {
        let mut session = SessionConfig::default();
        change(&mut session);
        let refused = refusal(|| {
            let controller = controller(1).session(session.clone());
            controller.program(|_: &SwitchInfo| Quiet)
        });
        assert_eq!(refused, expected);
    }
}

#[test]
fn number_of_shards_is_bounded() {
    for shards in [0, 1025] {
        let refused = refusal(|| controller(shards).program(|_: &SwitchInfo| Quiet));
        assert_eq!(refused, format!("expected 1 to 1024 shards, not {shards}"));
    }
}

/// Background programs without handlers are started once, by any kind of controller, and do not count as a program.
#[test]
fn background_programs_need_no_handler() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use urtica_controller::ProgramId;
    let polled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&polled);
    let controller = Controller::new()
        .program(|_: &SwitchInfo| Quiet)
        .background(move |background| {
            assert_eq!(background.network().program(), ProgramId::OUTSIDE);
            assert_eq!(background.counters().panics(), 0);
            background.spawn("counter", async move {
                count.fetch_add(1, Ordering::Relaxed);
            });
        });
    let mut embedded = controller.embed().unwrap();
    embedded.poll(Duration::ZERO);
    assert_eq!(polled.load(Ordering::Relaxed), 1);
    let alone = Controller::new().background(|_| {}).embed();
    assert!(alone.is_err(), "there is no program");
}
