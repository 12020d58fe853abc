//! One controller's role, and its filter of asynchronous messages (1.3.5 sections 6.3.6, 7.3.10).

use urtica_wire::{AsyncConfig, ControllerRole, FlowRemovedReason, PacketInReason, PortReason};

/// Default number of bytes of a packet that are sent to a controller (OFP_DEFAULT_MISS_SEND_LEN).
const DEFAULT_MISS_SEND_LEN: u16 = 128;

/// All reasons that the specification defines for a port-status or flow-removed message.
const ALL_PORT_STATUS: u32 = 0b111;
const ALL_FLOW_REMOVED: u32 = 0b1111;

/// A controller's permissions, and the asynchronous messages that it receives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControllerState {
    pub role: ControllerRole,
    pub asynchronous: AsyncConfig,
    /// Number of bytes that it receives of packets sent to it without an entry's action.
    pub miss_send_len: u16,
}

impl Default for ControllerState {
    /// Returns an EQUAL that receives all asynchronous messages except packet-ins for invalid TTLs. As a SLAVE it would receive
    /// only port-status messages.
    fn default() -> Self {
        let packet_ins = bit(PacketInReason::NoMatch.into()) | bit(PacketInReason::Action.into());
        Self {
            role: ControllerRole::Equal,
            asynchronous: AsyncConfig {
                packet_in_mask: [packet_ins, 0],
                port_status_mask: [ALL_PORT_STATUS; 2],
                flow_removed_mask: [ALL_FLOW_REMOVED, 0],
            },
            miss_send_len: DEFAULT_MISS_SEND_LEN,
        }
    }
}

/// Returns the bit of a reason in a mask, or 0 if the reason is too large for a mask.
fn bit(reason: u8) -> u32 {
    1_u32.checked_shl(reason.into()).unwrap_or(0)
}

impl ControllerState {
    /// Returns `true` for a slave, which may only read.
    pub fn is_slave(&self) -> bool {
        self.role == ControllerRole::Slave
    }

    pub fn wants_packet_in(&self, reason: PacketInReason) -> bool {
        self.wants(&self.asynchronous.packet_in_mask, reason.into())
    }

    pub fn wants_port_status(&self, reason: PortReason) -> bool {
        self.wants(&self.asynchronous.port_status_mask, reason.into())
    }

    pub fn wants_flow_removed(&self, reason: FlowRemovedReason) -> bool {
        self.wants(&self.asynchronous.flow_removed_mask, reason.into())
    }

    /// Returns whether a message is wanted. `masks` are those for a master or equal, and for a slave.
    fn wants(&self, masks: &[u32; 2], reason: u8) -> bool {
        masks[usize::from(self.is_slave())] & bit(reason) != 0
    }
}
