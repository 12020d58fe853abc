//! Several controllers of one switch: roles, and each one's asynchronous configuration. 1.3 only.

use crate::codec::wire_enum;

wire_enum! {
    /// A controller's role towards a switch (`ofp_controller_role`).
    ControllerRole: u32 {
        /// Keeps the current role, which the reply contains.
        NoChange = 0,
        /// Full access, shared with other controllers.
        Equal = 1,
        /// Full access; all other masters become slaves.
        Master = 2,
        /// Read-only access.
        Slave = 3,
    }
}

/// The body of a role request or reply (1.3.5 section 7.3.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// The role.
    pub role: ControllerRole,
    /// The number of the election, so that old masters can be refused.
    pub generation_id: u64,
}

/// The asynchronous messages that a controller receives (1.3.5 section 7.3.10), as bitmaps of `1 << reason`: at index 0 for a
/// master or equal, at index 1 for a slave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncConfig {
    /// Packet-ins, by [`crate::PacketInReason`].
    pub packet_in_mask: [u32; 2],
    /// Port-status messages, by [`crate::PortReason`].
    pub port_status_mask: [u32; 2],
    /// Flow-removed messages, by [`crate::FlowRemovedReason`].
    pub flow_removed_mask: [u32; 2],
}
