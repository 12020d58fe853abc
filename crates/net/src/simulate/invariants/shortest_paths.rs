//! Paths are as short as possible once the network has been quiescent and hosts are known again.
//!
//! Not before, because entries of an earlier controller may still lead along longer paths, and stay as long as they are used.

use super::Invariant;
use crate::names::Names;
use crate::simulate::Scenario;
use crate::simulate::reality::{connected_pairs, distances};
use crate::watch::{Event, Violation, Watcher};
use crate::{End, HostId, Net, Tag};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Counts the switches that frames for one host pass.
pub(super) struct ShortestPaths {
    is_promised: bool,
    hops: Rc<RefCell<Hops>>,
}

#[derive(Default)]
struct Hops {
    is_counting: bool,
    /// The number of switches that a frame has passed, and the frame's sender.
    passed: BTreeMap<Tag, (HostId, usize)>,
    /// The longest path from one host to another.
    longest: BTreeMap<(HostId, HostId), usize>,
}

impl ShortestPaths {
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            is_promised: scenario.shortest_paths,
            hops: Rc::default(),
        }
    }
}

impl Invariant for ShortestPaths {
    fn sentence(&self) -> &'static str {
        "paths after a quiescent period are no longer than the shortest"
    }

    fn attach(&mut self, net: &mut Net) {
        if self.is_promised {
            net.watch(Rc::clone(&self.hops));
        }
    }

    fn when_quiescent(&mut self, net: &mut Net) -> Result<(), String> {
        if !self.is_promised {
            return Ok(());
        }
        let pairs = connected_pairs(net);
        // The first frames may still be flooded, or forwarded by the controller.
        for is_counting in [false, true] {
            self.hops.borrow_mut().is_counting = is_counting;
            net.ping_pairs(&pairs).map_err(|error| error.to_string())?;
        }
        self.hops.borrow_mut().is_counting = false;
        let (names, distances) = (Names::of(net), distances(net));
        let hops = self.hops.borrow();
        let too_long = hops.longest.iter().find(|(pair, hops)| {
            let shortest = distances.get(pair);
            shortest.is_none_or(|shortest| *hops > shortest)
        });
        match too_long {
            None => Ok(()),
            Some((&(from, to), hops)) => Err(format!(
                "a frame from {} to {} has passed {hops} switches; expected {}",
                names.host(from),
                names.host(to),
                distances.get(&(from, to)).copied().unwrap_or_default()
            )),
        }
    }
}

impl Watcher for Hops {
    fn see(&mut self, _now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        if !self.is_counting {
            return Ok(());
        }
        match *event {
            Event::Sent(_, End::Host(from), frame) if is_for_one(frame) => {
                self.passed
                    .extend(Tag::of(frame).map(|tag| (tag, (from, 0))));
            }
            Event::Arrived(_, End::Switch(..), frame) => {
                if let Some((_, passed)) = Tag::of(frame).and_then(|tag| self.passed.get_mut(&tag))
                {
                    *passed += 1;
                }
            }
            Event::Arrived(_, End::Host(to), frame) => {
                if let Some((from, passed)) =
                    Tag::of(frame).and_then(|tag| self.passed.remove(&tag))
                {
                    let longest = self.longest.entry((from, to)).or_default();
                    *longest = passed.max(*longest);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Returns `true` for a unicast frame.
fn is_for_one(frame: &[u8]) -> bool {
    frame.first().is_some_and(|first| first & 1 == 0)
}
