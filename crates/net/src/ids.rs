//! Ids of the parts of a network.

use urtica_wire::PortNo;

/// A switch, by its index in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchId(pub(crate) u32);

/// A host, by its index in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub(crate) u32);

/// A full-duplex link. Links between switches have their index in the plan; the links of hosts follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u32);

/// The device at an end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// A switch's port.
    Switch(SwitchId, PortNo),
    /// A host.
    Host(HostId),
}

impl SwitchId {
    pub(crate) fn place(self) -> usize {
        self.0 as usize
    }
}

impl HostId {
    pub(crate) fn place(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    pub(crate) fn place(self) -> usize {
        self.0 as usize
    }
}
