//! What is known of a switch.

use crate::{Ports, Role};
use urtica_wire::{Capabilities, DatapathId, Features, Port, PortNo, Version};

/// What is known of a switch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SwitchInfo {
    /// Its identity.
    pub datapath_id: DatapathId,
    /// The version that it and we speak.
    pub version: Version,
    /// Where its connection comes from, as people read it.
    pub peer: String,
    /// How many packets it can keep for us.
    pub n_buffers: u32,
    /// How many tables it has.
    pub n_tables: u8,
    /// What it can do.
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

    /// The port with this number.
    pub fn port(&self, port_no: PortNo) -> Option<&Port> {
        self.ports.get(port_no)
    }
}
