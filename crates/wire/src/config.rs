//! The switch's configuration: fragments, and the bytes of packets for the controller.

use bitflags::bitflags;

bitflags! {
    /// `ofp_config_flags`. Without any of them, fragments are treated like other packets.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct ConfigFlags: u16 {
        /// Drop fragments.
        const FRAG_DROP = 1 << 0;
        /// Reassemble fragments.
        const FRAG_REASM = 1 << 1;
        /// Open vSwitch's extension (`OFPC_FRAG_NX_MATCH`), all bits of the mask: first fragments match with the ports that they
        /// contain, and fields that fragments hide match as 0.
        const FRAG_NX_MATCH = 0b11;
        /// 1.0 and early 1.x: send packets with an invalid TTL to the controller.
        const INVALID_TTL_TO_CONTROLLER = 1 << 2;
        /// Undefined bits are kept.
        const _ = !0;
    }
}

/// `ofp_switch_config` (1.3.5 section 7.3.2, 1.0 section 5.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// The handling of fragments.
    pub flags: ConfigFlags,
    /// The number of bytes of a packet sent to the controller on a table miss; [`crate::CONTROLLER_NO_BUFFER`] for all.
    pub miss_send_len: u16,
}
