//! What all parts of a network share: time, agenda, the seed, and who looks on.

use crate::agenda::Agenda;
use crate::frame::Spare;
use crate::watch::{Event, Watcher};
use crate::{Draw, HostId, LinkId, SwitchId};
use std::time::Duration;

/// Whom bytes of a control channel are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToSwitch,
    ToController,
}

/// What can be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Frames come out of a link, at its first or its second end.
    Link(LinkId, u8),
    /// A switch takes in what has come.
    Poll(SwitchId),
    /// A switch is given the time, if it is still in this life.
    Tick(SwitchId, u16),
    /// A switch notices which of its ports have links, if it is still in this life.
    Carrier(SwitchId, u16),
    /// A host has something to do.
    Host(HostId),
    /// Something comes out of a control channel.
    Channel(SwitchId, Way),
    /// A switch tries to connect.
    Connect(SwitchId),
    /// The controller goes on with what has come to it.
    Controller,
    /// The controller is given the time.
    ControllerTick,
}

/// Why a network has stopped: a watcher has seen what must not be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {at:?}: {sentence}")]
pub struct Broken {
    /// When it was seen.
    pub at: Duration,
    /// What the watcher says.
    pub sentence: String,
}

/// Time, agenda, seed, watchers, and buffers.
pub(crate) struct Kernel {
    pub now_ns: u64,
    pub agenda: Agenda<Due>,
    /// What all streams of draws follow from.
    seed: u64,
    pub spare: Spare,
    watchers: Vec<Box<dyn Watcher>>,
    pub broken: Option<Broken>,
}

impl Kernel {
    /// At time 0.
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

    /// The draws of a part of the network, by its kind and name.
    pub fn draw_of(&self, kind: &str, name: &str) -> Draw {
        Draw::of(self.seed, &format!("{kind} {name}"))
    }

    /// The time since the network began.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns)
    }

    /// Puts something on the agenda.
    pub fn put(&mut self, at_ns: u64, due: Due) {
        self.agenda.put(at_ns, due);
    }

    /// Puts something on the agenda that is due after this long.
    pub fn put_in(&mut self, delay: Duration, due: Due) {
        self.put(self.now_ns + to_ns(delay), due);
    }

    /// Adds a watcher.
    pub fn watch(&mut self, watcher: Box<dyn Watcher>) {
        self.watchers.push(watcher);
    }

    /// Tells those who look on.
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
            if let Err(sentence) = watcher.see(now, event) {
                if self.broken.is_none() {
                    self.broken = Some(Broken { at: now, sentence });
                }
            }
        }
    }
}

/// In nanoseconds; what is longer than 584 years is as long as that.
pub(crate) fn to_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
