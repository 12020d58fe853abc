//! Ports of a network, and the links between them.

use std::fmt;
use urtica_wire::{DatapathId, PortNo};

/// A port, identified within its network: `0000000000000001:3`.
///
/// Ports are ordered by switch, then by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId {
    /// The switch that has the port.
    pub switch: DatapathId,
    /// The port's number at that switch.
    pub port_no: PortNo,
}

impl PortId {
    /// Creates the port with this number at this switch.
    pub const fn new(switch: DatapathId, port_no: PortNo) -> Self {
        Self { switch, port_no }
    }
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.switch, self.port_no)
    }
}

/// Like `Display`.
impl fmt::Debug for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A link in one direction: packets sent by `from` arrive at `to`.
///
/// A full-duplex link consists of two of these, one each way. They are ordered by `from`, then by `to`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirectedLink {
    /// The port that sends packets.
    pub from: PortId,
    /// The port that receives them.
    pub to: PortId,
}

impl DirectedLink {
    /// Creates the directed link between these ports.
    pub const fn new(from: PortId, to: PortId) -> Self {
        Self { from, to }
    }

    /// Returns the other direction of the full-duplex link.
    pub const fn reversed(self) -> Self {
        Self::new(self.to, self.from)
    }
}

impl fmt::Display for DirectedLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}

/// Like `Display`.
impl fmt::Debug for DirectedLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_links_print_as_they_are_named() {
        let from = PortId::new(DatapathId(1), PortNo(3));
        let to = PortId::new(DatapathId(0xab), PortNo(1));
        assert_eq!(from.to_string(), "0000000000000001:3");
        let link = DirectedLink::new(from, to);
        assert_eq!(
            format!("{:?}", link.reversed()),
            "00000000000000ab:1 -> 0000000000000001:3"
        );
        assert_eq!(link.reversed().reversed(), link);
    }
}
