//! Interruption of a running network.

use crate::support::*;
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use urtica_net::NetError;

/// Longer than any test.
const LONG: Duration = Duration::from_secs(100_000);

#[test]
fn time_stops_during_an_interruption_and_continues_after() {
    let mut net = learning_net("single,2");
    let is_interrupted = Rc::new(Cell::new(false));
    let asked = Rc::clone(&is_interrupted);
    net.interrupt_when(move || asked.get());
    is_interrupted.set(true);
    net.run_for(LONG);
    assert!(net.now() < LONG);
    assert!(!net.run_until(|_| false, LONG));
    let report = net.ping_all().unwrap();
    assert!(report.is_interrupted && !report.is_complete());
    assert_eq!(
        (report.pairs, report.sent),
        (2, 1),
        "until the interruption"
    );
    assert!(report.to_string().starts_with("Interrupted: "), "{report}");
    let host = net.host("h1").unwrap();
    assert!(matches!(
        net.ping(host, host),
        Err(NetError::Interrupted(_))
    ));
    is_interrupted.set(false);
    assert!(net.ping_all().unwrap().is_complete());
}

#[test]
fn a_wait_for_real_time_is_interrupted() {
    let mut net = learning_net("single,2");
    net.follow_the_clock();
    let started = Instant::now();
    net.interrupt_when(move || started.elapsed() > Duration::from_millis(30));
    net.run_for(LONG);
    assert!(net.is_interrupted());
}
