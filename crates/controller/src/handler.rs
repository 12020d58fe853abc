//! What a control program is: a handler per switch.

use crate::{Switch, SwitchInfo};
use urtica_wire::{ErrorMessage, FlowRemoved, Message, PacketIn, PortStatus};

/// One switch's part of a control program, with state of its own.
///
/// A switch belongs to one shard, so its handler runs on one thread at a time and its messages come in the order in
/// which the switch sent them: the handler's state needs no lock (McNettle section 4). Every method but the one that
/// makes it a program has a default that does nothing.
///
/// Several programs on one switch see each message in the order in which they were given; one that calls
/// [`Switch::consume`] keeps it from those after it.
///
/// A handler must not block: it would hold up every switch of its shard. One that panics loses its switch, whose
/// connection is closed; the controller and the other switches live on.
pub trait SwitchHandler: Send {
    /// The switch's ports are known and its table-miss entry is on its way: time to install what it always needs.
    ///
    /// Packet-ins may come before this: they are handed over from the moment on at which the switch said who it is.
    fn switch_up(&mut self, _switch: &mut Switch) {}

    /// A packet that no entry matched, or that an entry sent here.
    fn packet_in(&mut self, _switch: &mut Switch, _packet: &PacketIn) {}

    /// A flow entry is gone whose flow mod asked for word of it.
    fn flow_removed(&mut self, _switch: &mut Switch, _removed: &FlowRemoved) {}

    /// A port came, went, or changed. [`SwitchInfo::ports`] says so already.
    fn port_status(&mut self, _switch: &mut Switch, _status: &PortStatus) {}

    /// The switch refused something that this program sent: the message that was sent with `xid`.
    fn error(&mut self, _switch: &mut Switch, _xid: u32, _error: &ErrorMessage) {}

    /// Any other message: the reply to a question that this program sent with `xid`, or an experimenter's.
    fn message(&mut self, _switch: &mut Switch, _xid: u32, _message: &Message) {}

    /// The connection is gone. Nothing can be sent any more.
    fn switch_down(&mut self, _info: &SwitchInfo) {}
}

impl<H: SwitchHandler + ?Sized> SwitchHandler for Box<H> {
    fn switch_up(&mut self, switch: &mut Switch) {
        (**self).switch_up(switch);
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        (**self).packet_in(switch, packet);
    }

    fn flow_removed(&mut self, switch: &mut Switch, removed: &FlowRemoved) {
        (**self).flow_removed(switch, removed);
    }

    fn port_status(&mut self, switch: &mut Switch, status: &PortStatus) {
        (**self).port_status(switch, status);
    }

    fn error(&mut self, switch: &mut Switch, xid: u32, error: &ErrorMessage) {
        (**self).error(switch, xid, error);
    }

    fn message(&mut self, switch: &mut Switch, xid: u32, message: &Message) {
        (**self).message(switch, xid, message);
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        (**self).switch_down(info);
    }
}

/// A control program: makes a handler for each switch that joins.
///
/// Any function from a switch's description to a handler is one.
pub trait Program: Send + Sync {
    /// The handler for a switch that has just said who it is.
    fn handler(&self, info: &SwitchInfo) -> Box<dyn SwitchHandler>;
}

impl<F, H> Program for F
where
    F: Fn(&SwitchInfo) -> H + Send + Sync,
    H: SwitchHandler + 'static,
{
    fn handler(&self, info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(self(info))
    }
}
