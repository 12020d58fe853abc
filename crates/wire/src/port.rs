//! The ports of a switch.

use crate::codec::wire_enum;
use crate::{MacAddr, PortNo};
use bitflags::bitflags;
use std::borrow::Cow;
use std::fmt;

bitflags! {
    /// `ofp_port_config`, the administrative configuration, with the bits of both versions, which do not collide.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct PortConfig: u32 {
        /// The port is administratively down.
        const PORT_DOWN = 1 << 0;
        /// 1.0 only: no 802.1D spanning tree on this port.
        const NO_STP = 1 << 1;
        /// Drop received packets.
        const NO_RECV = 1 << 2;
        /// 1.0 only: drop received 802.1D packets.
        const NO_RECV_STP = 1 << 3;
        /// 1.0 only: exclude the port from flooding.
        const NO_FLOOD = 1 << 4;
        /// Drop outgoing packets.
        const NO_FWD = 1 << 5;
        /// Send no packet-ins for packets of this port.
        const NO_PACKET_IN = 1 << 6;
        /// Undefined bits are kept.
        const _ = !0;
    }
}

bitflags! {
    /// `ofp_port_state`, the operational state, with the bits of both versions, which do not collide.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct PortState: u32 {
        /// No physical link.
        const LINK_DOWN = 1 << 0;
        /// 1.3 only: blocked by a protocol outside of OpenFlow.
        const BLOCKED = 1 << 1;
        /// 1.3 only: live for fast failover groups.
        const LIVE = 1 << 2;
        /// 1.0 only: spanning tree state, low bit (listen 0, learn 1, forward 2, block 3).
        const STP_LOW = 1 << 8;
        /// 1.0 only: spanning tree state, high bit.
        const STP_HIGH = 1 << 9;
        /// Undefined bits are kept.
        const _ = !0;
    }
}

bitflags! {
    /// `ofp_port_features`, numbered as in 1.3.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct PortFeatures: u32 {
        /// 10 Mb/s half duplex.
        const HD_10MB = 1 << 0;
        /// 10 Mb/s full duplex.
        const FD_10MB = 1 << 1;
        /// 100 Mb/s half duplex.
        const HD_100MB = 1 << 2;
        /// 100 Mb/s full duplex.
        const FD_100MB = 1 << 3;
        /// 1 Gb/s half duplex.
        const HD_1GB = 1 << 4;
        /// 1 Gb/s full duplex.
        const FD_1GB = 1 << 5;
        /// 10 Gb/s full duplex.
        const FD_10GB = 1 << 6;
        /// 40 Gb/s full duplex. 1.3 only.
        const FD_40GB = 1 << 7;
        /// 100 Gb/s full duplex. 1.3 only.
        const FD_100GB = 1 << 8;
        /// 1 Tb/s full duplex. 1.3 only.
        const FD_1TB = 1 << 9;
        /// Another rate. 1.3 only.
        const OTHER = 1 << 10;
        /// Copper.
        const COPPER = 1 << 11;
        /// Fibre.
        const FIBER = 1 << 12;
        /// Auto-negotiation.
        const AUTONEG = 1 << 13;
        /// Pause.
        const PAUSE = 1 << 14;
        /// Asymmetric pause.
        const PAUSE_ASYM = 1 << 15;
        /// Undefined bits are kept.
        const _ = !0;
    }
}

/// A name in a field of fixed size, padded with zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FixedName<const N: usize>(pub [u8; N]);

impl<const N: usize> FixedName<N> {
    /// Returns the bytes before the first zero, which should be text, but may be invalid.
    pub fn to_str_lossy(&self) -> Cow<'_, str> {
        self.as_ref().to_str_lossy()
    }

    /// Borrows the name.
    pub const fn as_ref(&self) -> FixedNameRef<'_, N> {
        FixedNameRef(&self.0)
    }

    /// Creates a name from `text`, truncated to leave one zero at the end.
    pub const fn truncated(text: &str) -> Self {
        let text = text.as_bytes();
        let mut length = if text.len() < N { text.len() } else { N - 1 };
        // A character that does not fit is omitted; all its bytes after the first are 0b10xx_xxxx.
        while length < text.len() && text[length] & 0xc0 == 0x80 {
            length -= 1;
        }
        let mut name = [0; N];
        let mut at = 0;
        while at < length {
            name[at] = text[at];
            at += 1;
        }
        Self(name)
    }
}

impl<const N: usize> fmt::Display for FixedName<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_str_lossy())
    }
}

impl<const N: usize> fmt::Debug for FixedName<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_str_lossy())
    }
}

/// A long name that is borrowed from a message, and otherwise like [`FixedName`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FixedNameRef<'a, const N: usize>(pub &'a [u8; N]);

impl<'a, const N: usize> FixedNameRef<'a, N> {
    /// Returns the bytes before the first zero, which should be text, but may be invalid.
    pub fn to_str_lossy(self) -> Cow<'a, str> {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(N);
        String::from_utf8_lossy(&self.0[..end])
    }
}

impl<const N: usize> fmt::Display for FixedNameRef<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_str_lossy())
    }
}

impl<const N: usize> fmt::Debug for FixedNameRef<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_str_lossy())
    }
}

/// The description of a port (1.3.5 section 7.2.1, 1.0 section 5.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its number.
    pub port_no: PortNo,
    /// Its Ethernet address.
    pub hw_addr: MacAddr,
    /// Its name.
    pub name: FixedName<16>,
    /// The configuration.
    pub config: PortConfig,
    /// The current state.
    pub state: PortState,
    /// The features in use.
    pub curr: PortFeatures,
    /// The features offered to the peer.
    pub advertised: PortFeatures,
    /// The supported features.
    pub supported: PortFeatures,
    /// The features offered by the peer.
    pub peer: PortFeatures,
    /// The current rate in kb/s; 0 in 1.0.
    pub curr_speed: u32,
    /// The highest rate in kb/s; 0 in 1.0.
    pub max_speed: u32,
}

impl Port {
    /// Creates a port that is up, with this number, address and name, which is truncated if it is too long.
    pub fn new(port_no: PortNo, hw_addr: MacAddr, name: &str) -> Self {
        Self {
            port_no,
            hw_addr,
            name: FixedName::truncated(name),
            config: PortConfig::empty(),
            state: PortState::empty(),
            curr: PortFeatures::empty(),
            advertised: PortFeatures::empty(),
            supported: PortFeatures::empty(),
            peer: PortFeatures::empty(),
            curr_speed: 0,
            max_speed: 0,
        }
    }

    /// Returns the current rate in bit/s, from `curr_speed`, or else from the features in use; `None` if neither has a rate.
    pub fn speed_bps(&self) -> Option<u64> {
        const BY_FEATURE: [(PortFeatures, u64); 7] = [
            (PortFeatures::FD_1TB, 1_000_000_000_000),
            (PortFeatures::FD_100GB, 100_000_000_000),
            (PortFeatures::FD_40GB, 40_000_000_000),
            (PortFeatures::FD_10GB, 10_000_000_000),
            (
                PortFeatures::FD_1GB.union(PortFeatures::HD_1GB),
                1_000_000_000,
            ),
            (
                PortFeatures::FD_100MB.union(PortFeatures::HD_100MB),
                100_000_000,
            ),
            (
                PortFeatures::FD_10MB.union(PortFeatures::HD_10MB),
                10_000_000,
            ),
        ];
        if self.curr_speed > 0 {
            return Some(u64::from(self.curr_speed) * 1_000);
        }
        let mut named = BY_FEATURE.iter();
        let named = named.find(|(feature, _)| self.curr.intersects(*feature));
        named.map(|(_, bps)| *bps)
    }
}

wire_enum! {
    /// The reason for a port-status message (`ofp_port_reason`).
    PortReason: u8 {
        /// The port was added.
        Add = 0,
        /// The port was removed.
        Delete = 1,
        /// An attribute of the port has changed.
        Modify = 2,
    }
}

/// The message that a port was added, removed or changed (1.3.5 section 7.4.3, 1.0 section 5.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortStatus {
    /// The kind of change.
    pub reason: PortReason,
    /// The current description of the port.
    pub port: Port,
}

/// A message that changes a port's behaviour (1.3.5 section 7.3.4.3, 1.0 section 5.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMod {
    /// The number of the port.
    pub port_no: PortNo,
    /// Its Ethernet address, to check that it is the intended port.
    pub hw_addr: MacAddr,
    /// The new values of the bits in `mask`.
    pub config: PortConfig,
    /// The bits to change.
    pub mask: PortConfig,
    /// The features to offer to the peer; empty for no change.
    pub advertise: PortFeatures,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_current_one_or_that_of_the_features() {
        let port = |curr_speed, curr| Port {
            curr_speed,
            curr,
            ..Port::new(PortNo(1), MacAddr::default(), "eth0")
        };
        for (curr_speed, curr, bps) in [
            (25_000_000, PortFeatures::OTHER, Some(25_000_000_000)),
            (
                0,
                PortFeatures::FD_10GB | PortFeatures::COPPER,
                Some(10_000_000_000),
            ),
            (0, PortFeatures::HD_100MB, Some(100_000_000)),
            (0, PortFeatures::FIBER, None),
        ] {
            assert_eq!(port(curr_speed, curr).speed_bps(), bps);
        }
    }

    #[test]
    fn names_are_cut_between_characters_and_end_in_a_zero() {
        for (text, kept) in [
            ("", ""),
            ("eth", "eth"),
            ("eth10", "eth"),
            ("etß", "et"),
            ("ßß", "ß"),
        ] {
            let name = FixedName::<4>::truncated(text);
            assert_eq!(name.to_str_lossy(), kept);
            assert_eq!(name.0[3], 0, "{text}");
        }
    }
}
