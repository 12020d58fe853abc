//! A packet that a controller sends through a switch.

use crate::{Action, BufferId, List, PortNo};

/// A packet-out (1.3.5 section 7.3.7, 1.0 section 5.3.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOut<'a> {
    /// A packet that the switch kept; `data` is then empty.
    pub buffer_id: BufferId,
    /// The port that the packet came in by; [`PortNo::CONTROLLER`] or [`PortNo::ANY`] where the controller made it.
    pub in_port: PortNo,
    /// What to do with it; none drops it.
    pub actions: List<'a, Action<'a>>,
    /// The packet, where `buffer_id` is [`BufferId::NONE`].
    pub data: &'a [u8],
}
