//! Switches that come, change and go, as programs beside the handlers learn of them.

use crate::SwitchInfo;
use std::sync::Arc;
use urtica_wire::PortStatus;

/// What happened to a switch: see [`Network::events`](crate::Network::events).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NetworkEvent {
    /// It is connected, its ports are known, and its handlers' [`switch_up`](crate::SwitchHandler::switch_up) has been
    /// called.
    Up(Arc<SwitchInfo>),
    /// One of its ports came, went, or changed. The switch's ports say so already.
    Port(Arc<SwitchInfo>, PortStatus),
    /// It has gone, or another connection has taken its place.
    Down(Arc<SwitchInfo>),
    /// So many events were lost, since they were not taken in time: what was learnt from events is to be learnt anew from
    /// [`Network::switches`](crate::Network::switches).
    Missed(u64),
}
