//! Leaving off before the time is over.

use crate::support::*;
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use urtica_net::NetError;

/// Far more than any test takes.
const LONG: Duration = Duration::from_secs(100_000);

#[test]
fn time_stands_still_while_it_is_interrupted_and_goes_on_after() {
    let mut net = learning_net("single,2");
    let is_interrupted = Rc::new(Cell::new(false));
    let asked = Rc::clone(&is_interrupted);
    net.interrupt_when(move || asked.get());
    is_interrupted.set(true);
    net.run_for(LONG);
    assert!(net.now() < LONG);
    assert!(!net.run_until(|_| false, LONG));
    assert!(matches!(net.ping_all(), Err(NetError::Interrupted(_))));
    is_interrupted.set(false);
    assert!(net.ping_all().unwrap().is_complete());
}

#[test]
fn a_wait_for_the_clock_on_the_wall_is_interrupted() {
    let mut net = learning_net("single,2");
    net.follow_the_clock();
    let started = Instant::now();
    net.interrupt_when(move || started.elapsed() > Duration::from_millis(30));
    net.run_for(LONG);
    assert!(net.is_interrupted());
}
