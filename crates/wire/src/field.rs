//! The fields of matches and set-field actions, in one table for codecs, text forms and pipelines.

use crate::{MacAddr, PortNo};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Defines [`OxmField`] and its table from one list. Columns: variant, the specification's name, width in bits, whether it
/// may be masked. Masks are those of 1.3.5 table 12, and in addition of ports and of the target of neighbour discovery, as in
/// Open vSwitch, since rules with ranges of ports need them.
macro_rules! oxm_fields {
    ($($(#[$meta:meta])* $variant:ident = $number:literal, $name:literal, $bits:literal, $maskable:literal;)+) => {
        /// A field of class OFPXMC_OPENFLOW_BASIC (1.3.5 section 7.2.3.7), by its number on the wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum OxmField {
            $($(#[$meta])* $variant = $number,)+
        }

        impl OxmField {
            /// Every field, by number.
            pub const ALL: &'static [OxmField] = &[$(OxmField::$variant,)+];

            /// Returns the field with this number, if it exists.
            #[inline]
            pub fn from_wire(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// Returns the specification's name, as in `eth_dst`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Returns the names of the field in an [`EncodeError`].
            pub(crate) const fn phrases(self) -> FieldPhrases {
                match self {
                    $(Self::$variant => FieldPhrases {
                        in_match: concat!("the match field ", $name),
                        mask: concat!("this mask on the match field ", $name),
                        alone: concat!("the match field ", $name, " without its prerequisites"),
                        twice: concat!("the match field ", $name, " twice"),
                        set: concat!("the action set_field of ", $name),
                    },)+
                }
            }

            /// Returns the width of a value in bits.
            #[inline]
            pub const fn bits(self) -> u32 {
                match self { $(Self::$variant => $bits,)+ }
            }

            /// Returns `true` if a match may mask it, as in the specification (1.3.5 table 12). TCP, UDP and SCTP ports and
            /// `ipv6_nd_target` may also be masked, as in Open vSwitch.
            #[inline]
            pub const fn maskable(self) -> bool {
                match self { $(Self::$variant => $maskable,)+ }
            }
        }
    };
}

/// The names of a field's uses that a version may be unable to express.
pub(crate) struct FieldPhrases {
    /// Matching it.
    pub in_match: &'static str,
    /// Matching it with its mask.
    pub mask: &'static str,
    /// Matching it without its prerequisites.
    pub alone: &'static str,
    /// Matching it twice.
    pub twice: &'static str,
    /// Setting it.
    pub set: &'static str,
}

oxm_fields! {
    /// The port that received the packet.
    InPort = 0, "in_port", 32, false;
    /// The physical port below a logical port.
    InPhyPort = 1, "in_phy_port", 32, false;
    /// Data that tables pass to later ones.
    Metadata = 2, "metadata", 64, true;
    /// Ethernet destination.
    EthDst = 3, "eth_dst", 48, true;
    /// Ethernet source.
    EthSrc = 4, "eth_src", 48, true;
    /// Ethernet type, after all VLAN tags.
    EthType = 5, "eth_type", 16, false;
    /// VLAN id of the outermost tag, with bit 12 (OFPVID_PRESENT) set if there is a tag.
    VlanVid = 6, "vlan_vid", 13, true;
    /// VLAN priority of the outermost tag.
    VlanPcp = 7, "vlan_pcp", 3, false;
    /// IP differentiated services code point.
    IpDscp = 8, "ip_dscp", 6, false;
    /// IP explicit congestion notification.
    IpEcn = 9, "ip_ecn", 2, false;
    /// IP protocol.
    IpProto = 10, "ip_proto", 8, false;
    /// IPv4 source.
    Ipv4Src = 11, "ipv4_src", 32, true;
    /// IPv4 destination.
    Ipv4Dst = 12, "ipv4_dst", 32, true;
    /// TCP source port.
    TcpSrc = 13, "tcp_src", 16, true;
    /// TCP destination port.
    TcpDst = 14, "tcp_dst", 16, true;
    /// UDP source port.
    UdpSrc = 15, "udp_src", 16, true;
    /// UDP destination port.
    UdpDst = 16, "udp_dst", 16, true;
    /// SCTP source port.
    SctpSrc = 17, "sctp_src", 16, true;
    /// SCTP destination port.
    SctpDst = 18, "sctp_dst", 16, true;
    /// ICMP type.
    Icmpv4Type = 19, "icmpv4_type", 8, false;
    /// ICMP code.
    Icmpv4Code = 20, "icmpv4_code", 8, false;
    /// ARP operation.
    ArpOp = 21, "arp_op", 16, false;
    /// ARP sender's IPv4 address.
    ArpSpa = 22, "arp_spa", 32, true;
    /// ARP target's IPv4 address.
    ArpTpa = 23, "arp_tpa", 32, true;
    /// ARP sender's Ethernet address.
    ArpSha = 24, "arp_sha", 48, true;
    /// ARP target's Ethernet address.
    ArpTha = 25, "arp_tha", 48, true;
    /// IPv6 source.
    Ipv6Src = 26, "ipv6_src", 128, true;
    /// IPv6 destination.
    Ipv6Dst = 27, "ipv6_dst", 128, true;
    /// IPv6 flow label.
    Ipv6Flabel = 28, "ipv6_flabel", 20, true;
    /// ICMPv6 type.
    Icmpv6Type = 29, "icmpv6_type", 8, false;
    /// ICMPv6 code.
    Icmpv6Code = 30, "icmpv6_code", 8, false;
    /// Target of a neighbour solicitation or advertisement.
    Ipv6NdTarget = 31, "ipv6_nd_target", 128, true;
    /// Source link-layer address option of a neighbour solicitation.
    Ipv6NdSll = 32, "ipv6_nd_sll", 48, false;
    /// Target link-layer address option of a neighbour advertisement.
    Ipv6NdTll = 33, "ipv6_nd_tll", 48, false;
    /// Label of the outermost MPLS header.
    MplsLabel = 34, "mpls_label", 20, false;
    /// Traffic class of the outermost MPLS header.
    MplsTc = 35, "mpls_tc", 3, false;
    /// Bottom-of-stack bit of the outermost MPLS header.
    MplsBos = 36, "mpls_bos", 1, false;
    /// Service instance id of provider backbone bridging.
    PbbIsid = 37, "pbb_isid", 24, true;
    /// Metadata of a logical port, such as a tunnel's key.
    TunnelId = 38, "tunnel_id", 64, true;
    /// The IPv6 extension headers in the packet (`OFPIEH_*`).
    Ipv6Exthdr = 39, "ipv6_exthdr", 9, true;
}

impl OxmField {
    /// Returns the size of a value on the wire in bytes. The labels, of 20 bits, have four.
    #[inline]
    pub const fn bytes(self) -> usize {
        match self.bits() {
            20 => 4,
            bits => bits.div_ceil(8) as usize,
        }
    }

    /// Returns the mask of all bits of the field.
    #[inline]
    pub const fn full_mask(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }
}

/// A value of a field that can be converted to the number in a [`Field`].
pub(crate) trait FieldBits {
    /// Returns the value, right-aligned.
    fn bits(self) -> u128;
}

macro_rules! field_bits {
    ($($type:ty: $value:ident => $bits:expr;)+) => {
        $(impl FieldBits for $type {
            #[inline]
            fn bits(self) -> u128 {
                let $value = self;
                $bits.into()
            }
        })+
    };
}

field_bits! {
    u8: number => number;
    u16: number => number;
    u32: number => number;
    u64: number => number;
    PortNo: port => port.0;
    MacAddr: address => address.to_u64();
    Ipv4Addr: address => address.to_bits();
    Ipv6Addr: address => address.to_bits();
}

/// A field of a match, or the field that an action sets, with its value and mask.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field<'a> {
    /// A field of the specification. The value has no bits outside the mask.
    Basic {
        /// The field.
        field: OxmField,
        /// The value, right-aligned.
        value: u128,
        /// The bits to compare or set; [`OxmField::full_mask`] for all.
        mask: u128,
    },
    /// A field of another class, or an unknown one.
    Raw(RawField<'a>),
}

/// An OXM TLV that is not interpreted: experimenter fields and other classes (1.3.5 section 7.2.3.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawField<'a> {
    /// `oxm_class`.
    pub class: u16,
    /// `oxm_field`, seven bits.
    pub field: u8,
    /// `oxm_hasmask`.
    pub has_mask: bool,
    /// The bytes after the four bytes of the TLV's header: the experimenter id, if any, value and mask.
    pub body: &'a [u8],
}

impl<'a> Field<'a> {
    /// Creates a field with exactly this value. Bits of `value` beyond the field's width are dropped.
    #[inline]
    pub fn exact(field: OxmField, value: u128) -> Self {
        Self::masked(field, value, field.full_mask())
    }

    /// Creates a field in which only the bits in `mask` are compared.
    #[inline]
    pub fn masked(field: OxmField, value: u128, mask: u128) -> Self {
        let mask = mask & field.full_mask();
        Self::Basic {
            field,
            value: value & mask,
            mask,
        }
    }

    /// Returns the field of the specification; `None` for a raw one.
    #[inline]
    pub fn oxm_field(&self) -> Option<OxmField> {
        match self {
            Self::Basic { field, .. } => Some(*field),
            Self::Raw(_) => None,
        }
    }
}

/// Writes the specification's name and numbers: `eth_dst=0x1/0xff`. [`crate::text`] has the syntax of `ovs-ofctl`.
impl fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Basic { field, value, mask } if *mask == field.full_mask() => {
                write!(f, "{}={value:#x}", field.name())
            }
            Self::Basic { field, value, mask } => {
                write!(f, "{}={value:#x}/{mask:#x}", field.name())
            }
            Self::Raw(raw) => raw.fmt(f),
        }
    }
}
