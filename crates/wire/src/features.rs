//! The features that a switch reports when it connects.

use crate::{DatapathId, List, Port};
use bitflags::bitflags;

bitflags! {
    /// `ofp_capabilities`, with the bits of both versions, which do not collide.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Capabilities: u32 {
        /// Flow statistics.
        const FLOW_STATS = 1 << 0;
        /// Table statistics.
        const TABLE_STATS = 1 << 1;
        /// Port statistics.
        const PORT_STATS = 1 << 2;
        /// Group statistics (1.3); 802.1D spanning tree (1.0).
        const GROUP_STATS = 1 << 3;
        /// The switch can reassemble IP fragments.
        const IP_REASM = 1 << 5;
        /// Queue statistics.
        const QUEUE_STATS = 1 << 6;
        /// 1.0 only: matches IP addresses in ARP packets.
        const ARP_MATCH_IP = 1 << 7;
        /// 1.3 only: blocks looping ports.
        const PORT_BLOCKED = 1 << 8;
        /// Undefined bits are kept.
        const _ = !0;
    }
}

/// The body of a features reply, `ofp_switch_features` (1.3.5 section 7.3.1, 1.0 section 5.3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features<'a> {
    /// The datapath's identity.
    pub datapath_id: DatapathId,
    /// The number of packets that the switch can buffer.
    pub n_buffers: u32,
    /// The number of tables.
    pub n_tables: u8,
    /// The number of the auxiliary connection; 0 for the main one, and in 1.0.
    pub auxiliary_id: u8,
    /// The capabilities.
    pub capabilities: Capabilities,
    /// 1.0 only: the bitmap of supported actions (`1 << OFPAT_*`); 0 in 1.3.
    pub actions: u32,
    /// 1.0 only: the ports. In 1.3 they are in the port description.
    pub ports: List<'a, Port>,
}
