//! A frame's headers, as bits that one instruction can compare.

use bitflags::bitflags;

bitflags! {
    /// The headers of a [`Frame`](super::frame::Frame), up to the depth to which it was parsed.
    ///
    /// A bit means that the previous header announces this one, and that all fields of this header can be read.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub(crate) struct Kinds: u32 {
        /// At least one VLAN tag.
        const VLAN = 1;
        /// IPv4.
        const IPV4 = 1 << 1;
        /// IPv6.
        const IPV6 = 1 << 2;
        /// ARP for IPv4 over Ethernet.
        const ARP = 1 << 3;
        /// TCP.
        const TCP = 1 << 4;
        /// UDP.
        const UDP = 1 << 5;
        /// SCTP.
        const SCTP = 1 << 6;
        /// ICMP over IPv4.
        const ICMPV4 = 1 << 7;
        /// ICMPv6 over IPv6.
        const ICMPV6 = 1 << 8;
        /// Not a header: earlier tables have written an action set, [`Frame::action_set`](super::frame::Frame::action_set).
        const ACTION_SET = 1 << 9;
        /// Not a header: earlier tables have chosen a queue, [`Frame::queue_id`](super::frame::Frame::queue_id).
        const QUEUE = 1 << 10;
        /// Not a header: the state that tables pass on.
        const CARRIED = Self::ACTION_SET.bits() | Self::QUEUE.bits();
    }
}

impl Kinds {
    /// Returns whether a frame can have these headers together with others.
    pub fn go_with(self, other: Self) -> bool {
        let network = Self::IPV4 | Self::IPV6 | Self::ARP;
        let transport = Self::TCP | Self::UDP | Self::SCTP | Self::ICMPV4 | Self::ICMPV6;
        [network, transport].into_iter().all(|level| {
            let (one, other) = (self & level, other & level);
            one.is_empty() || other.is_empty() || one == other
        })
    }
}

/// The depth to which the installed pipeline needs frames parsed (ESWITCH, section 3.1: parser templates).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum Depth {
    /// The Ethernet addresses, whose offsets are fixed.
    #[default]
    Ethernet,
    /// The network header: IP or ARP.
    Type,
    /// The header of IP or ARP.
    Network,
    /// The transport header: TCP, UDP, SCTP or ICMP.
    Transport,
}
