//! What a flow entry looks at: version-neutral, with OXM's names and semantics.

use crate::{Field, List, MacAddr, OxmField, PacketIn, PortNo, of10};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A set of fields that a packet must have. Without any it matches every packet.
///
/// Read from the wire it borrows the bytes and decodes lazily; built by the methods below it owns its fields;
/// [`Match::exact`] borrows the packet and is the form that the straight-line flow mod writer takes.
///
/// 1.0's fixed match becomes OXM fields by what its types and protocol say: `nw_src` of an ARP packet is `arp_spa`,
/// `tp_src` of ICMP is `icmpv4_type`. Fields whose prerequisite is missing are dropped, as 1.0 section 3.4 asks.
#[derive(Clone)]
pub struct Match<'a>(pub(crate) Repr<'a>);

#[derive(Clone)]
pub(crate) enum Repr<'a> {
    /// `ofp_match` of 1.0.
    Of10(&'a [u8; of10::MATCH_SIZE]),
    /// The one field that a packet-in of 1.0 tells.
    InPort(PortNo),
    /// Fields read from the wire (1.3) or given one by one.
    Fields(List<'a, Field<'a>>),
    /// Every field of the packet.
    Exact(ExactMatch<'a>),
}

/// "A match on every header field" of one packet (McNettle Figure 4, `exactMatch`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactMatch<'a> {
    /// The port that the packet came in by.
    pub in_port: PortNo,
    /// The packet, from its Ethernet header on, as far as the packet-in carries it.
    pub frame: &'a [u8],
}

impl<'a> Match<'a> {
    /// Matches every packet.
    pub fn any() -> Self {
        Self::from(Vec::new())
    }

    /// Matches packets with the same port and the same header fields as this one.
    #[inline]
    pub fn exact_frame(in_port: PortNo, frame: &'a [u8]) -> Self {
        Self(Repr::Exact(ExactMatch { in_port, frame }))
    }

    /// Reads the 40 bytes of 1.0's `ofp_match` (section 5.2.3).
    pub(crate) fn of10(bytes: &'a [u8; of10::MATCH_SIZE]) -> Self {
        Self(Repr::Of10(bytes))
    }

    /// Matches packets of one port: [`Match::in_port`] without an allocation.
    #[inline]
    pub(crate) fn only_in_port(port: PortNo) -> Self {
        Self(Repr::InPort(port))
    }

    /// Takes a checked list of OXM fields.
    pub(crate) fn oxm(fields: List<'a, Field<'a>>) -> Self {
        Self(Repr::Fields(fields))
    }

    /// Matches packets with the same port and the same header fields as this one (McNettle Figure 4, `exactMatch`).
    #[inline]
    pub fn exact(packet: &PacketIn<'a>) -> Self {
        Self::exact_frame(packet.in_port, packet.data)
    }

    /// The packet that this is an exact match of, or the match back where it is another.
    ///
    /// # Errors
    /// The match itself. By value, so that nothing is left of an exact match that would have to be dropped.
    #[inline]
    pub fn into_exact(self) -> Result<ExactMatch<'a>, Self> {
        match self.0 {
            Repr::Exact(exact) => Ok(exact),
            other => Err(Self(other)),
        }
    }

    /// The fields, in the order of the wire or in which they were added. Those of a match from the wire are read off it
    /// without allocating; only an exact match makes a list of them first.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> {
        let (mut of10, mut list, mut exact) = (None, None, None);
        match &self.0 {
            Repr::Of10(bytes) => of10 = Some(of10::matching::fields(bytes)),
            Repr::InPort(port) => of10 = Some(of10::matching::Fields::only_in_port(*port)),
            Repr::Fields(fields) => list = Some(fields.iter()),
            Repr::Exact(packet) => exact = Some(packet.fields()),
        }
        of10.into_iter()
            .flatten()
            .chain(list.into_iter().flatten())
            .chain(exact.into_iter().flatten())
    }

    /// The value and mask of a field, or `None` where the match does not look at it.
    pub fn get(&self, wanted: OxmField) -> Option<(u128, u128)> {
        self.fields().find_map(|field| match field {
            Field::Basic { field, value, mask } if field == wanted => Some((value, mask)),
            _ => None,
        })
    }
}

impl<'a> Match<'a> {
    /// Adds a field, in place of an earlier value for the same one.
    pub fn with(self, added: Field<'a>) -> Self {
        let same =
            |field: &Field| field.oxm_field().is_some() && field.oxm_field() == added.oxm_field();
        let mut fields: Vec<_> = self.fields().filter(|field| !same(field)).collect();
        fields.push(added);
        Self::from(fields)
    }

    /// Adds a field that must have all bits of `value`.
    pub fn with_exact(self, field: OxmField, value: impl Into<u128>) -> Self {
        self.with(Field::exact(field, value.into()))
    }

    /// Adds a field of which only the bits in `mask` count.
    pub fn with_masked(
        self,
        field: OxmField,
        value: impl Into<u128>,
        mask: impl Into<u128>,
    ) -> Self {
        self.with(Field::masked(field, value.into(), mask.into()))
    }
}

/// The commonest fields as methods: `Match::any().eth_type(0x0800).ipv4_dst(address)`. All others, and masks, go
/// through [`Match::with_exact`] and [`Match::with_masked`].
macro_rules! field_methods {
    ($($name:ident($kind:ty) => $field:ident, $convert:expr;)+) => {
        impl Match<'_> {
            $(
                #[doc = concat!("Adds `", stringify!($name), "`.")]
                pub fn $name(self, value: $kind) -> Self {
                    let convert: fn($kind) -> u128 = $convert;
                    self.with_exact(OxmField::$field, convert(value))
                }
            )+
        }
    };
}

field_methods! {
    in_port(PortNo) => InPort, |port| port.0.into();
    eth_dst(MacAddr) => EthDst, |address| address.to_u64().into();
    eth_src(MacAddr) => EthSrc, |address| address.to_u64().into();
    eth_type(u16) => EthType, u128::from;
    vlan_vid(u16) => VlanVid, |vid| u128::from(vid | VLAN_PRESENT);
    ip_proto(u8) => IpProto, u128::from;
    ipv4_src(Ipv4Addr) => Ipv4Src, |address| address.to_bits().into();
    ipv4_dst(Ipv4Addr) => Ipv4Dst, |address| address.to_bits().into();
    ipv6_src(Ipv6Addr) => Ipv6Src, Ipv6Addr::to_bits;
    ipv6_dst(Ipv6Addr) => Ipv6Dst, Ipv6Addr::to_bits;
    tcp_src(u16) => TcpSrc, u128::from;
    tcp_dst(u16) => TcpDst, u128::from;
    udp_src(u16) => UdpSrc, u128::from;
    udp_dst(u16) => UdpDst, u128::from;
}

/// Set in `vlan_vid` where the packet has a VLAN tag (OFPVID_PRESENT).
pub const VLAN_PRESENT: u16 = 0x1000;

impl Default for Match<'_> {
    fn default() -> Self {
        Self::any()
    }
}

impl<'a> From<Vec<Field<'a>>> for Match<'a> {
    fn from(fields: Vec<Field<'a>>) -> Self {
        Self(Repr::Fields(List::from(fields)))
    }
}

/// Equal when they hold the same fields, in whatever order.
impl PartialEq for Match<'_> {
    fn eq(&self, other: &Self) -> bool {
        let within =
            |a: &Self, b: &Self| a.fields().all(|field| b.fields().any(|twin| twin == field));
        within(self, other) && within(other, self)
    }
}

impl Eq for Match<'_> {}

impl fmt::Debug for Match<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.fields()).finish()
    }
}
