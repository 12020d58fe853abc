//! Switches that come, change and go, as programs beside the handlers learn of them.

use crate::SwitchInfo;
use std::sync::Arc;
use urtica_wire::PortStatus;

/// What happened to a switch: see [`Network::events`](crate::Network::events).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NetworkEvent {
    /// It is connected, its ports are known, and its handlers' [`switch_up`](crate::SwitchHandler::switch_up) has been
    /// called, unless our role lets us only look.
    Up(Arc<SwitchInfo>),
    /// One of its ports was added, deleted, or modified. [`SwitchInfo::ports`] shows it already.
    Port(Arc<SwitchInfo>, PortStatus),
    /// Our role at it has changed, to [`SwitchInfo::role`]: it was asked for, or another controller has become the primary. While it
    /// is [`Role::Secondary`](crate::Role::Secondary), what would change the switch is not sent.
    Role(Arc<SwitchInfo>),
    /// It has disconnected, or another connection has taken its place.
    Down(Arc<SwitchInfo>),
    /// So many events were lost because the subscriber was too far behind: its view of the network is to be rebuilt from
    /// [`Network::switches`](crate::Network::switches).
    Missed(u64),
}
