//! Events of switches that connect, change or disconnect, for background programs.

use crate::{ProgramPanic, SwitchInfo};
use std::sync::Arc;
use urtica_wire::{ErrorCode, PortStatus};

/// A change of a switch: see [`Network::events`](crate::Network::events).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NetworkEvent {
    /// The switch is connected, its ports are known, and its handlers' [`switch_up`](crate::SwitchHandler::switch_up) has
    /// been called, unless our role permits only reading.
    Up(Arc<SwitchInfo>),
    /// A port of the switch was added, deleted, or modified. [`SwitchInfo::ports`] contains the change already.
    Port(Arc<SwitchInfo>, PortStatus),
    /// Our role at the switch has changed to [`SwitchInfo::role`]: on request, or because another controller has become the
    /// primary. While it is [`Role::Secondary`](crate::Role::Secondary), messages that would change the switch are not sent.
    Role(Arc<SwitchInfo>),
    /// The switch has refused a message with this code, the `count`th that it has refused. As in the log, only refusals with
    /// a power of two as count are reported, so that a switch that refuses everything does not flood subscribers.
    Refused(Arc<SwitchInfo>, ErrorCode, u64),
    /// A program has panicked.
    Panicked(Arc<ProgramPanic>),
    /// The switch has disconnected, or another connection has replaced it.
    Down(Arc<SwitchInfo>),
    /// This number of events was lost because the subscriber was too far behind: it must rebuild its view of the network from
    /// [`Network::switches`](crate::Network::switches).
    Missed(u64),
}
