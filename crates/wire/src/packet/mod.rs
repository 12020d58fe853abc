//! Packet headers, read in place and written.
//!
//! # What
//! One file per protocol, all of the same shape:
//! - `XxxView<'a>` reads a header in place. Its constructor `new` checks lengths and versions once; the accessors after that
//!   cannot fail, do not allocate, and return every field in host byte order. `payload` is the rest.
//! - `Xxx` is the same header as a plain struct. `write` appends it to a buffer, including lengths and checksums;
//!   `XxxView::to_header` converts a view to it.
//! - [`Headers`] reads all headers of a frame in one pass.
//!
//! # How
//! A view starts where its protocol starts: [`VlanView`], [`MplsView`] and [`PbbView`] therefore start *after* the EtherType
//! that announces them. Headers that do not depend on their payload have `write(out)`; headers with a length or a checksum
//! of their payload have `write(out, payload)`, and if their checksum covers addresses, also a parameter for a
//! [`PseudoHeader`].
//!
//! A packet-in often contains only the first bytes of a packet. So a *header* must be complete, but a payload that ends
//! before the length in its header is no error: `payload` returns the available bytes, without Ethernet padding.
//!
//! # Cost
//! A view is a few pointers. Fixed headers are stored as arrays, so that the compiler can remove the bounds checks of their
//! accessors.

pub mod arp;
mod bytes;
pub mod checksum;
mod error;
pub mod ethernet;
mod headers;
pub mod icmpv4;
pub mod icmpv6;
pub mod ipv4;
pub mod ipv6;
pub mod ipv6_ext;
pub mod lldp;
pub mod mpls;
pub mod pbb;
pub mod sctp;
pub mod tcp;
#[cfg(test)]
mod testing;
pub mod udp;
pub mod vlan;

pub use arp::{Arp, ArpView};
pub use checksum::PseudoHeader;
pub use error::PacketError;
pub use ethernet::{Ethernet, EthernetView};
pub use headers::{Headers, VlanTag};
pub use icmpv4::{Icmpv4, Icmpv4View};
pub use icmpv6::{Icmpv6, Icmpv6View, Nd, NdView};
pub use ipv4::{Ipv4, Ipv4View};
pub use ipv6::{Ipv6, Ipv6View};
pub use lldp::{Lldp, LldpView};
pub use mpls::{Mpls, MplsView};
pub use pbb::{Pbb, PbbView};
pub use sctp::{Sctp, SctpView};
pub use tcp::{Tcp, TcpView};
pub use udp::{Udp, UdpView};
pub use vlan::{Vlan, VlanTags, VlanView};

/// EtherTypes (IEEE 802 numbers) of the supported protocols.
pub mod ether_type {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// 802.1Q customer VLAN tag.
    pub const VLAN: u16 = 0x8100;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// MPLS with a downstream-assigned label (the usual one).
    pub const MPLS: u16 = 0x8847;
    /// MPLS with an upstream-assigned label (RFC 5332; once called multicast).
    pub const MPLS_MULTICAST: u16 = 0x8848;
    /// 802.1ad service VLAN tag; also the backbone tag of 802.1ah.
    pub const SERVICE_VLAN: u16 = 0x88a8;
    /// LLDP.
    pub const LLDP: u16 = 0x88cc;
    /// 802.1ah I-TAG.
    pub const PBB: u16 = 0x88e7;
    /// The value that OpenFlow 1.0 (section 3.4) matches for an 802.3 frame without an EtherType.
    pub const NONE: u16 = 0x05ff;
}

/// IP protocol numbers (IANA) of the supported protocols and extension headers.
pub mod ip_proto {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: u8 = 0;
    /// ICMP for IPv4.
    pub const ICMPV4: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// IPv6 routing header.
    pub const ROUTING: u8 = 43;
    /// IPv6 fragment header.
    pub const FRAGMENT: u8 = 44;
    /// Encapsulating security payload: the rest is encrypted.
    pub const ESP: u8 = 50;
    /// Authentication header.
    pub const AUTHENTICATION: u8 = 51;
    /// ICMP for IPv6.
    pub const ICMPV6: u8 = 58;
    /// IPv6: nothing follows.
    pub const NO_NEXT_HEADER: u8 = 59;
    /// IPv6 destination options.
    pub const DESTINATION_OPTIONS: u8 = 60;
    /// SCTP.
    pub const SCTP: u8 = 132;
}
