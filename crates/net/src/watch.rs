//! Observation of the events in a network.
//!
//! Captures, the tracer, the hash over a whole run and the invariants of the simulation are all [`Watcher`]s, and can be added
//! when needed. A network without watchers creates no events.

use crate::{End, LinkId, SwitchId};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

/// Observes all events.
pub trait Watcher {
    /// Handles an event that has just happened.
    ///
    /// # Errors
    /// [`Violation`] if the event violates a rule. The network then stops.
    fn see(&mut self, now: Duration, event: &Event<'_>) -> Result<(), Violation>;
}

/// The violation of a rule, such as an invariant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Violation {
    rule: Option<&'static str>,
    details: String,
}

impl Violation {
    /// Creates an error with these details: the violator and the violation.
    pub fn new(details: impl Into<String>) -> Self {
        Self {
            rule: None,
            details: details.into(),
        }
    }

    /// Creates an error that names the rule.
    pub fn of(rule: &'static str, details: impl Into<String>) -> Self {
        Self {
            rule: Some(rule),
            details: details.into(),
        }
    }

    /// Returns the rule, if it is named.
    pub fn rule(&self) -> Option<&'static str> {
        self.rule
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rule {
            Some(rule) => write!(f, "{rule}: {}", self.details),
            None => f.write_str(&self.details),
        }
    }
}

/// An event in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A frame was sent into a link at this end.
    Sent(LinkId, End, &'a [u8]),
    /// A frame has left a link at this end.
    Arrived(LinkId, End, &'a [u8]),
    /// A frame was lost in a link, or at the receiving end.
    Lost(LinkId, Loss, &'a [u8]),
    /// A link was cut.
    Cut(LinkId),
    /// A link was repaired.
    Repaired(LinkId),
    /// A host's link was disconnected, and connected to this port.
    Moved(LinkId, End),
    /// A switch was switched off.
    SwitchStopped(SwitchId),
    /// A switch was switched on, with empty tables.
    SwitchStarted(SwitchId),
    /// The controller was stopped.
    ControllerStopped,
    /// A controller was started.
    ControllerStarted,
    /// A switch has started a connection to the controller.
    Connected(SwitchId),
    /// A switch's connection to the controller has closed, with the reason.
    Disconnected(SwitchId, &'a str),
    /// Bytes of the control channel have arrived at a switch.
    ToSwitch(SwitchId, &'a [u8]),
    /// Bytes of the control channel have arrived at the controller.
    ToController(SwitchId, &'a [u8]),
}

/// The reason that a frame was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Loss {
    /// The link lost it at random.
    Drawn,
    /// The link is cut, or one of its ends is off.
    Cut,
    /// More frames were sent than the link can transmit, and its queue was full.
    QueueFull,
    /// The switch at the end had not processed earlier frames yet.
    SwitchBusy,
}

/// Shares a watcher, so that its results can be read while it is in use.
impl<W: Watcher + ?Sized> Watcher for Rc<RefCell<W>> {
    fn see(&mut self, now: Duration, event: &Event<'_>) -> Result<(), Violation> {
        self.borrow_mut().see(now, event)
    }
}
