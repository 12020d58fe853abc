//! No frame loops.
//!
//! A frame that passes a switch's port a second time loops. That may happen until the controller has notified all switches of a
//! fault, unless the programs guarantee that it never does. But no frame loops for longer than the network has time to recover,
//! and after recovery no frame loops at all.

use super::{Faced, Invariant};
use crate::names::Names;
use crate::simulate::Scenario;
use crate::simulate::faults::LONGEST_SILENCE;
use crate::watch::{Event, Violation, Watcher};
use crate::{End, Net, SwitchId, Tag};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use urtica_wire::PortNo;

const SENTENCE: &str = "no frame loops";

/// Checks the trails of frames.
pub(super) struct NoLoops(Rc<RefCell<Trails>>);

struct Trails {
    trails: BTreeMap<Tag, Trail>,
    /// The maximum time that a frame is in flight: it may wait in a stalled channel.
    lifetime: Duration,
    names: Names,
    /// The time from which no new frame may loop.
    forbidden_from: Option<Duration>,
}

/// The ports that a frame has passed.
struct Trail {
    since: Duration,
    ports: Vec<(SwitchId, PortNo)>,
}

impl NoLoops {
    pub fn new(scenario: &Scenario) -> Self {
        Self(Rc::new(RefCell::new(Trails {
            trails: BTreeMap::new(),
            lifetime: scenario.restored_within + LONGEST_SILENCE,
            names: Names::default(),
            forbidden_from: scenario.never_loops.then_some(Duration::ZERO),
        })))
    }
}

impl Invariant for NoLoops {
    fn sentence(&self) -> &'static str {
        SENTENCE
    }

    fn attach(&mut self, net: &mut Net) {
        self.0.borrow_mut().names = Names::of(net);
        net.watch(Rc::clone(&self.0));
    }

    fn after_recovery(&mut self, net: &mut Net, _faced: &Faced) -> Result<(), String> {
        self.0.borrow_mut().forbidden_from.get_or_insert(net.now());
        Ok(())
    }
}

impl Watcher for Trails {
    fn see(&mut self, now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        match *event {
            Event::Sent(_, End::Host(_), frame) => self.begin(now, frame),
            Event::Arrived(_, End::Switch(switch, port_no), frame) => {
                return self.go_on(now, (switch, port_no), frame);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Trails {
    fn begin(&mut self, now: Duration, frame: &[u8]) {
        while let Some(oldest) = self.trails.first_entry() {
            if oldest.get().since + self.lifetime >= now {
                break;
            }
            oldest.remove();
        }
        let trail = Trail {
            since: now,
            ports: Vec::new(),
        };
        self.trails.extend(Tag::of(frame).map(|tag| (tag, trail)));
    }

    fn go_on(
        &mut self,
        now: Duration,
        port: (SwitchId, PortNo),
        frame: &[u8],
    ) -> Result<(), Violation> {
        let Some(tag) = Tag::of(frame) else {
            return Ok(());
        };
        let trail = self.trails.get_mut(&tag);
        let Some(trail) = trail.filter(|trail| now <= trail.since + self.lifetime) else {
            return Err(Violation::of(
                SENTENCE,
                format!("{tag} is under way {:?} after it was sent", self.lifetime),
            ));
        };
        if !trail.ports.contains(&port) {
            trail.ports.push(port);
            return Ok(());
        }
        match self.forbidden_from {
            Some(from) if trail.since >= from => Err(Violation::of(
                SENTENCE,
                format!(
                    "{tag} has reached {} a second time",
                    self.names.end(End::Switch(port.0, port.1))
                ),
            )),
            _ => Ok(()),
        }
    }
}
