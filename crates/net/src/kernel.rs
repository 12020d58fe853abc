//! The parts that all devices of a network share: time, the event queue, the seed, and watchers.

use crate::agenda::Agenda;
use crate::frame::Spare;
use crate::watch::{Event, Violation, Watcher};
use crate::{Draw, HostId, LinkId, SwitchId};
use std::time::Duration;

/// The direction of bytes on a control channel, by their receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToSwitch,
    ToController,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Frames arrive at the first or the second end of a link.
    Link(LinkId, u8),
    /// A switch processes the frames that have arrived.
    Poll(SwitchId),
    /// A switch's tick, if it has not been restarted since.
    Tick(SwitchId, u16),
    /// A switch notices which of its ports have links, if it has not been restarted since.
    Carrier(SwitchId, u16),
    /// A host's timer expires.
    Host(HostId),
    /// A segment arrives on a control channel.
    Channel(SwitchId, Way),
    /// A switch tries to connect.
    Connect(SwitchId),
    /// The controller processes its input.
    Controller,
    /// The controller's tick.
    ControllerTick,
}

/// A violation for which a watcher has stopped the network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {at:?}: {violation}")]
pub struct Broken {
    /// The time of the violation.
    pub at: Duration,
    /// The watcher's error.
    pub violation: Violation,
}

/// Time, event queue, seed, watchers, and buffers.
pub(crate) struct Kernel {
    pub now_ns: u64,
    pub agenda: Agenda<Due>,
    /// The seed of all streams of draws.
    seed: u64,
    pub spare: Spare,
    watchers: Vec<Box<dyn Watcher>>,
    pub broken: Option<Broken>,
}

impl Kernel {
    /// Creates the state at time 0.
    pub fn new(seed: u64) -> Self {
        Self {
            now_ns: 0,
            agenda: Agenda::new(),
            seed,
            spare: Spare::default(),
            watchers: Vec::new(),
            broken: None,
        }
    }

    /// Returns the stream of draws for a part of the network, by its kind and name.
    pub fn draw_of(&self, kind: &str, name: &str) -> Draw {
        Draw::of(self.seed, &format!("{kind} {name}"))
    }

    /// Returns the time since the network was built.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns)
    }

    /// Schedules an event at a time.
    pub fn put(&mut self, at_ns: u64, due: Due) {
        self.agenda.put(at_ns, due);
    }

    /// Schedules an event after a delay.
    pub fn put_in(&mut self, delay: Duration, due: Due) {
        self.put(self.now_ns + to_ns(delay), due);
    }

    /// Adds a watcher.
    pub fn watch(&mut self, watcher: Box<dyn Watcher>) {
        self.watchers.push(watcher);
    }

    /// Notifies the watchers.
    #[inline]
    pub fn tell(&mut self, event: Event<'_>) {
        if !self.watchers.is_empty() {
            self.tell_all(&event);
        }
    }

    #[cold]
    fn tell_all(&mut self, event: &Event<'_>) {
        let now = self.now();
        for watcher in &mut self.watchers {
            if let Err(violation) = watcher.see(now, event) {
                if self.broken.is_none() {
                    self.broken = Some(Broken { at: now, violation });
                }
            }
        }
    }
}

/// Converts to nanoseconds; saturates at 584 years.
pub(crate) fn to_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
