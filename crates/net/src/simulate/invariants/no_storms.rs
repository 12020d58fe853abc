//! Frames do not multiply.
//!
//! A flooded frame crosses each link once. So never many more copies are in flight, and no host receives more copies than the
//! scenario permits during faults, or more than one after recovery.

use super::{Faced, Invariant};
use crate::names::Names;
use crate::simulate::Scenario;
use crate::simulate::faults::LONGEST_SILENCE;
use crate::watch::{Event, Violation, Watcher};
use crate::{End, HostId, Net, Tag};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

const SENTENCE: &str = "frames do not multiply";

/// The maximum number of copies per link in flight.
const COPIES_PER_LINK: usize = 4;

/// Counts copies.
pub(super) struct NoStorms(Rc<RefCell<Copies>>);

struct Copies {
    frames: BTreeMap<Tag, Frame>,
    names: Names,
    lifetime: Duration,
    most_under_way: usize,
    most_delivered: u32,
    /// The time from which a host receives at most one copy.
    recovered_at: Option<Duration>,
}

/// The copies of a frame.
struct Frame {
    since: Duration,
    under_way: usize,
    delivered: BTreeMap<HostId, u32>,
}

impl NoStorms {
    pub fn new(scenario: &Scenario) -> Self {
        Self(Rc::new(RefCell::new(Copies {
            frames: BTreeMap::new(),
            names: Names::default(),
            lifetime: scenario.restored_within + LONGEST_SILENCE,
            most_under_way: 0,
            most_delivered: scenario.copies,
            recovered_at: None,
        })))
    }
}

impl Invariant for NoStorms {
    fn sentence(&self) -> &'static str {
        SENTENCE
    }

    fn attach(&mut self, net: &mut Net) {
        let mut copies = self.0.borrow_mut();
        copies.names = Names::of(net);
        copies.most_under_way = COPIES_PER_LINK * net.links().len();
        net.watch(Rc::clone(&self.0));
    }

    fn after_recovery(&mut self, net: &mut Net, _faced: &Faced) -> Result<(), String> {
        self.0.borrow_mut().recovered_at = Some(net.now());
        Ok(())
    }
}

impl Watcher for Copies {
    fn see(&mut self, now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        match *event {
            Event::Sent(_, end, frame) => self.send(now, end, frame),
            Event::Arrived(_, End::Host(host), frame) => self.deliver(host, frame),
            Event::Arrived(_, _, frame) | Event::Lost(_, _, frame) => {
                self.end(frame);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Copies {
    fn send(&mut self, now: Duration, from: End, frame: &[u8]) -> Result<(), Violation> {
        let Some(tag) = Tag::of(frame) else {
            return Ok(());
        };
        if matches!(from, End::Host(_)) {
            self.begin(now, tag);
        }
        let Some(frame) = self.frames.get_mut(&tag) else {
            return Ok(());
        };
        frame.under_way += 1;
        match frame.under_way > self.most_under_way {
            true => Err(Violation::of(
                SENTENCE,
                format!("{} copies of {tag} are under way", frame.under_way),
            )),
            false => Ok(()),
        }
    }

    fn begin(&mut self, now: Duration, tag: Tag) {
        while let Some(oldest) = self.frames.first_entry() {
            if oldest.get().since + self.lifetime >= now {
                break;
            }
            oldest.remove();
        }
        let frame = Frame {
            since: now,
            under_way: 0,
            delivered: BTreeMap::new(),
        };
        self.frames.insert(tag, frame);
    }

    fn deliver(&mut self, host: HostId, bytes: &[u8]) -> Result<(), Violation> {
        self.end(bytes);
        let Some(tag) = Tag::of(bytes) else {
            return Ok(());
        };
        let Some(frame) = self.frames.get_mut(&tag) else {
            return Ok(());
        };
        let copies = frame.delivered.entry(host).or_default();
        *copies += 1;
        let has_recovered = self.recovered_at.is_some_and(|from| frame.since >= from);
        let most = if has_recovered {
            1
        } else {
            self.most_delivered
        };
        match *copies > most {
            true => Err(Violation::of(
                SENTENCE,
                format!(
                    "{} has received copy {copies} of {tag}",
                    self.names.host(host)
                ),
            )),
            false => Ok(()),
        }
    }

    /// Notes that a copy is no longer in flight.
    fn end(&mut self, frame: &[u8]) {
        let frame = Tag::of(frame).and_then(|tag| self.frames.get_mut(&tag));
        if let Some(frame) = frame {
            frame.under_way = frame.under_way.saturating_sub(1);
        }
    }
}
