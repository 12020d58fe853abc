//! EtherTypes and IP protocol numbers, with names.

use crate::packet::{ether_type, ip_proto};
use std::fmt;

/// Defines a number with names. Columns: constant, number, printed name.
macro_rules! named_numbers {
    ($(#[$meta:meta])* $type:ident($repr:ty), $unnamed:literal; $($constant:ident = $number:expr, $name:literal;)+) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(pub $repr);

        impl $type {
            $(
                #[doc = concat!($name, ".")]
                pub const $constant: Self = Self($number);
            )+
        }

        impl From<$repr> for $type {
            #[inline]
            fn from(number: $repr) -> Self {
                Self(number)
            }
        }

        impl From<$type> for $repr {
            #[inline]
            fn from(named: $type) -> Self {
                named.0
            }
        }

        /// Writes the name, or the number if it has no name here.
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Self::$constant => f.pad($name),)+
                    Self(number) => f.pad(&format!($unnamed, number)),
                }
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

named_numbers! {
    /// The type of an Ethernet frame's payload (IEEE 802 numbers). Any number is valid: `EtherType(0x88b5)`.
    ///
    /// ```
    /// use urtica_wire::{EtherType, Match};
    ///
    /// let match_ = Match::any().eth_type(EtherType::ARP);
    /// assert_eq!(match_, Match::any().eth_type(0x0806));
    /// assert_eq!(EtherType::ARP.to_string(), "ARP");
    /// assert_eq!(EtherType(0x88b5).to_string(), "0x88b5");
    /// ```
    EtherType(u16), "{:#06x}";
    IPV4 = ether_type::IPV4, "IPv4";
    ARP = ether_type::ARP, "ARP";
    VLAN = ether_type::VLAN, "VLAN";
    IPV6 = ether_type::IPV6, "IPv6";
    MPLS = ether_type::MPLS, "MPLS";
    MPLS_MULTICAST = ether_type::MPLS_MULTICAST, "MPLS multicast";
    SERVICE_VLAN = ether_type::SERVICE_VLAN, "service VLAN";
    PBB = ether_type::PBB, "PBB";
    LLDP = ether_type::LLDP, "LLDP";
}

named_numbers! {
    /// The type of an IP packet's payload (IANA protocol numbers). Any number is valid: `IpProtocol(47)`.
    ///
    /// ```
    /// use urtica_wire::{EtherType, IpProtocol, Match};
    ///
    /// let match_ = Match::any().eth_type(EtherType::IPV4).ip_proto(IpProtocol::TCP);
    /// assert_eq!(match_, Match::any().eth_type(0x0800).ip_proto(6));
    /// assert_eq!(IpProtocol::TCP.to_string(), "TCP");
    /// assert_eq!(IpProtocol(47).to_string(), "47");
    /// ```
    IpProtocol(u8), "{}";
    ICMP = ip_proto::ICMPV4, "ICMP";
    TCP = ip_proto::TCP, "TCP";
    UDP = ip_proto::UDP, "UDP";
    ESP = ip_proto::ESP, "ESP";
    AH = ip_proto::AUTHENTICATION, "AH";
    ICMPV6 = ip_proto::ICMPV6, "ICMPv6";
    SCTP = ip_proto::SCTP, "SCTP";
}
