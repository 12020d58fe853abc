//! Looking on: whoever wants to see what happens in a network.
//!
//! Captures, the tracer, the hash over a whole run and the invariants of the
//! simulation are all [`Watcher`]s, and may be put on and left out as one likes. A network that nobody watches makes no events.

use crate::{End, LinkId, SwitchId};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Sees all that happens.
pub trait Watcher {
    /// Something has just happened.
    ///
    /// # Errors
    /// Where it must not have: a sentence. The network stops there.
    fn see(&mut self, now: Duration, event: &Event<'_>) -> Result<(), String>;
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A frame was sent into a link at this end.
    Sent(LinkId, End, &'a [u8]),
    /// A frame has come out of a link at this end.
    Arrived(LinkId, End, &'a [u8]),
    /// A frame was lost in a link, or at the end of it.
    Lost(LinkId, Loss, &'a [u8]),
    /// A link was cut.
    Cut(LinkId),
    /// A link was repaired.
    Repaired(LinkId),
    /// A host's link was taken out, and put into this port.
    Moved(LinkId, End),
    /// A switch was switched off.
    SwitchStopped(SwitchId),
    /// A switch was switched on, with empty tables.
    SwitchStarted(SwitchId),
    /// The controller is gone.
    ControllerStopped,
    /// A controller was started.
    ControllerStarted,
    /// A switch has begun a connection to the controller.
    Connected(SwitchId),
    /// A switch's connection to the controller has ended, and why.
    Disconnected(SwitchId, &'a str),
    /// Bytes of the control channel have come to a switch.
    ToSwitch(SwitchId, &'a [u8]),
    /// Bytes of the control channel have come to the controller.
    ToController(SwitchId, &'a [u8]),
}

/// Why a frame was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// The link loses some.
    Drawn,
    /// The link is cut, or an end of it switched off.
    Cut,
    /// More was sent than the link carries, and its queue was full.
    QueueFull,
    /// The switch at the end did not take in what had come before.
    SwitchBusy,
}

/// Somebody else wants to know, too, what a watcher has seen.
impl<W: Watcher + ?Sized> Watcher for Rc<RefCell<W>> {
    fn see(&mut self, now: Duration, event: &Event<'_>) -> Result<(), String> {
        self.borrow_mut().see(now, event)
    }
}
