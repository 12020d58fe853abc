//! Packet-outs, which send packets through a switch.

use crate::{Action, BufferId, List, PortNo};

/// A packet-out (1.3.5 section 7.3.7, 1.0 section 5.3.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOut<'a> {
    /// The buffered packet, if any; then `data` is empty.
    pub buffer_id: BufferId,
    /// The input port; [`PortNo::CONTROLLER`] or [`PortNo::ANY`] if the controller created the packet.
    pub in_port: PortNo,
    /// The actions; an empty list drops the packet.
    pub actions: List<'a, Action<'a>>,
    /// The packet, if `buffer_id` is [`BufferId::NONE`].
    pub data: &'a [u8],
}
