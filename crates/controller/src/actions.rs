//! Lists of actions, as programs write them.

use urtica_wire::{Action, BufferId, List, Message, PacketOut, PortNo};

/// The actions of [`Switch::forward`](crate::Switch::forward), [`Switch::install`](crate::Switch::install) and their
/// siblings: a list, executed in order, which drops the packet if empty; or a [`PortNo`], short for one output.
///
/// ```
/// # use urtica_controller::{IDLE_5S, Switch};
/// # use urtica_wire::{Action, Match, PacketIn, PortNo};
/// fn packet_in(switch: &mut Switch, packet: &PacketIn) {
///     match packet.in_port() {
///         PortNo(1) => switch.forward(packet, PortNo(2)),
///         _ => {
///             let untagged = [Action::PopVlan, Action::output(PortNo(1))];
///             switch.forward_with_rule(packet, Match::exact(packet), &untagged, IDLE_5S);
///         }
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Actions<'a> {
    /// One output action.
    Output(PortNo),
    /// Actions that are executed in order.
    List(&'a [Action<'a>]),
}

impl Actions<'_> {
    /// Calls `use_list` with the actions as a list.
    pub(crate) fn with_list<R>(self, use_list: impl FnOnce(&[Action]) -> R) -> R {
        match self {
            Self::Output(port) => use_list(&[Action::output(port)]),
            Self::List(actions) => use_list(actions),
        }
    }
}

impl From<PortNo> for Actions<'_> {
    #[inline(always)] // so that it is known which of the two it is
    fn from(port: PortNo) -> Self {
        Self::Output(port)
    }
}

impl<'a> From<&'a [Action<'a>]> for Actions<'a> {
    fn from(actions: &'a [Action<'a>]) -> Self {
        Self::List(actions)
    }
}

impl<'a, const N: usize> From<&'a [Action<'a>; N]> for Actions<'a> {
    fn from(actions: &'a [Action<'a>; N]) -> Self {
        Self::List(actions)
    }
}

impl<'a> From<&'a Vec<Action<'a>>> for Actions<'a> {
    fn from(actions: &'a Vec<Action<'a>>) -> Self {
        Self::List(actions)
    }
}

/// Encodes a packet-out of a packet that the controller made.
pub(crate) fn with_packet_out<R>(
    data: &[u8],
    actions: Actions,
    send: impl FnOnce(&Message) -> R,
) -> R {
    actions.with_list(|actions| {
        send(&Message::PacketOut(PacketOut {
            buffer_id: BufferId::NONE,
            in_port: PortNo::CONTROLLER,
            actions: List::from(actions),
            data,
        }))
    })
}
