//! The description of a switch.

use crate::{Ports, Role};
use urtica_wire::{Capabilities, DatapathId, Features, Port, PortNo, Version};

/// The description of a switch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SwitchInfo {
    /// Its datapath id.
    pub datapath_id: DatapathId,
    /// The negotiated version.
    pub version: Version,
    /// The address of its connection, for display.
    pub peer: String,
    /// The number of packets that it can buffer.
    pub n_buffers: u32,
    /// The number of its tables.
    pub n_tables: u8,
    /// Its capabilities.
    pub capabilities: Capabilities,
    /// Its ports. Empty until a 1.3 switch has described them.
    pub ports: Ports,
    /// Our role at it.
    pub role: Role,
}

impl SwitchInfo {
    pub(crate) fn new(version: Version, peer: String, features: &Features) -> Self {
        Self {
            datapath_id: features.datapath_id,
            version,
            peer,
            n_buffers: features.n_buffers,
            n_tables: features.n_tables,
            capabilities: features.capabilities,
            ports: features.ports.iter().collect(),
            role: Role::Equal,
        }
    }

    /// Returns the port with this number.
    pub fn port(&self, port_no: PortNo) -> Option<&Port> {
        self.ports.get(port_no)
    }
}
