//! Packets that a firewall denies do not arrive.

use super::Invariant;
use crate::names::Names;
use crate::simulate::{Denied, Scenario};
use crate::watch::{Event, Violation, Watcher};
use crate::{End, Net};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

const SENTENCE: &str = "no denied packet arrives";

/// Checks every frame that reaches a host.
pub(super) struct Isolation(Option<Denied>);

struct Guard {
    denied: Denied,
    names: Names,
}

impl Isolation {
    pub fn new(scenario: &Scenario) -> Self {
        Self(scenario.denied)
    }
}

impl Invariant for Isolation {
    fn sentence(&self) -> &'static str {
        SENTENCE
    }

    fn attach(&mut self, net: &mut Net) {
        if let Some(denied) = self.0 {
            let names = Names::of(net);
            net.watch(Rc::new(RefCell::new(Guard { denied, names })));
        }
    }
}

impl Watcher for Guard {
    fn see(&mut self, _now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        match *event {
            Event::Arrived(_, end @ End::Host(_), frame) if (self.denied)(frame) => {
                Err(Violation::of(
                    SENTENCE,
                    format!(
                        "{} has received one of {} bytes",
                        self.names.end(end),
                        frame.len()
                    ),
                ))
            }
            _ => Ok(()),
        }
    }
}
