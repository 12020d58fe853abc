//! Matches, which are version-neutral, with OXM's names and semantics.

mod fields;
pub(crate) mod inline;

use crate::field::FieldBits;
use crate::{
    EtherType, Field, IpProtocol, Ipv4Prefix, Ipv6Prefix, List, MacAddr, OxmField, PortNo,
};
use inline::InlineFields;
use std::fmt;

/// The size of 1.0's `ofp_match` in bytes.
pub(crate) const OF10_SIZE: usize = 40;

/// A set of fields that a packet must have. An empty match matches every packet.
///
/// There are methods for common fields; other fields and masks use [`Match::with_exact`] and [`Match::with_masked`]. 1.3
/// switches refuse a field whose prerequisite is not in the match (1.3.5 table 12): `tcp_dst` needs `ip_proto`, which needs
/// `eth_type`.
///
/// ```
/// use urtica_wire::{EtherType, IpProtocol, Ipv4Prefix, Match};
///
/// let servers: Ipv4Prefix = "10.1.0.0/16".parse()?;
/// let web = Match::any()
///     .eth_type(EtherType::IPV4)
///     .ip_proto(IpProtocol::TCP)
///     .ipv4_dst(servers)
///     .tcp_dst(80);
/// assert_eq!(web.to_string(), "tcp,nw_dst=10.1.0.0/16,tp_dst=80");
/// # Ok::<(), urtica_wire::PrefixError>(())
/// ```
///
/// A match that was read from the wire borrows the bytes and decodes them lazily. One that was built by the methods below
/// stores its fields in 1.3's encoding, without an allocation up to 92 bytes. [`Match::exact`] borrows the packet, in the
/// form that [`ExactFlowMod`] requires.
///
/// [`ExactFlowMod`]: crate::ExactFlowMod
///
/// Fields of 1.0's fixed match are converted to OXM fields by its EtherType and IP protocol: `nw_src` of an ARP packet is
/// `arp_spa`, `tp_src` of ICMP is `icmpv4_type`. Fields without their prerequisites are dropped, as 1.0 section 3.4 requires.
#[derive(Clone)]
pub struct Match<'a>(pub(crate) Repr<'a>);

#[derive(Clone)]
pub(crate) enum Repr<'a> {
    /// `ofp_match` of 1.0.
    Of10(&'a [u8; OF10_SIZE]),
    /// The only field in a packet-in of 1.0.
    InPort(PortNo),
    /// Fields that a program set.
    Inline(InlineFields),
    /// Fields read from the wire (1.3), or given as a list.
    Fields(List<'a, Field<'a>>),
    /// All fields of a packet.
    Exact(ExactMatch<'a>),
}

/// "A match on every header field" of a packet (McNettle Figure 4, `exactMatch`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactMatch<'a> {
    /// The port that received the packet.
    pub in_port: PortNo,
    /// The packet's bytes in the packet-in, starting with the Ethernet header.
    pub frame: &'a [u8],
}

impl<'a> Match<'a> {
    /// Creates a match on every packet.
    #[inline]
    pub fn any() -> Self {
        const ANY: Match = Match(Repr::Inline(InlineFields::EMPTY));
        ANY
    }

    /// Creates a match on packets with this packet's port and header fields.
    #[inline]
    pub fn exact_frame(in_port: PortNo, frame: &'a [u8]) -> Self {
        Self(Repr::Exact(ExactMatch { in_port, frame }))
    }

    /// Creates a match from the 40 bytes of 1.0's `ofp_match` (section 5.2.3).
    pub(crate) fn of10(bytes: &'a [u8; OF10_SIZE]) -> Self {
        Self(Repr::Of10(bytes))
    }

    /// Creates a match on packets received by one port, like [`Match::in_port`] but without an allocation.
    #[inline]
    pub(crate) fn only_in_port(port: PortNo) -> Self {
        Self(Repr::InPort(port))
    }

    /// Creates a match from a checked list of OXM fields.
    pub(crate) fn oxm(fields: List<'a, Field<'a>>) -> Self {
        Self(Repr::Fields(fields))
    }

    /// Returns the packet of an exact match, or the match itself if it is another one.
    ///
    /// # Errors
    /// The match itself, by value, so that no exact match is left to be dropped.
    #[inline]
    pub fn into_exact(self) -> Result<ExactMatch<'a>, Self> {
        match self.0 {
            Repr::Exact(exact) => Ok(exact),
            other => Err(Self(other)),
        }
    }

    /// Returns the value and mask of a field; `None` if the match does not have it.
    pub fn get(&self, wanted: OxmField) -> Option<(u128, u128)> {
        self.fields().find_map(|field| match field {
            Field::Basic { field, value, mask } if field == wanted => Some((value, mask)),
            _ => None,
        })
    }
}

impl<'a> Match<'a> {
    /// Adds a field, which replaces an earlier value.
    pub fn with(self, added: Field<'a>) -> Self {
        let mut changed = self;
        let is_stored = match &mut changed.0 {
            Repr::Inline(fields) => push(fields, &added),
            _ => false,
        };
        if !is_stored {
            changed = changed.with_in_list(added);
        }
        changed
    }

    /// Removes a field, if present.
    pub fn without(self, removed: OxmField) -> Self {
        let kept = |field: &Field| field.oxm_field() != Some(removed);
        Self::of_fields(self.fields().filter(kept).collect())
    }

    /// Adds a field that must equal `value` in all bits.
    #[inline]
    pub fn with_exact(self, field: OxmField, value: impl Into<u128>) -> Self {
        let (mut changed, value) = (self, value.into());
        let is_stored = match &mut changed.0 {
            Repr::Inline(fields) => fields.push_exact(field, value),
            _ => false,
        };
        if !is_stored {
            changed = changed.with_in_list(Field::exact(field, value));
        }
        changed
    }

    /// Adds a field in which only the bits in `mask` are compared.
    #[inline]
    pub fn with_masked(
        self,
        field: OxmField,
        value: impl Into<u128>,
        mask: impl Into<u128>,
    ) -> Self {
        let (mut changed, value, mask) = (self, value.into(), mask.into());
        let is_stored = match &mut changed.0 {
            Repr::Inline(fields) => fields.push_masked(field, value, mask),
            _ => false,
        };
        if !is_stored {
            changed = changed.with_in_list(Field::masked(field, value, mask));
        }
        changed
    }

    /// Adds a field that cannot be appended to the inline ones. By value, since with a reference the compiler could not remove
    /// the moves between methods.
    #[cold]
    #[inline(never)]
    fn with_in_list(self, added: Field<'a>) -> Self {
        let same =
            |field: &Field| field.oxm_field().is_some() && field.oxm_field() == added.oxm_field();
        let mut fields: Vec<_> = self.fields().filter(|field| !same(field)).collect();
        fields.push(added);
        Self::of_fields(fields)
    }

    /// Creates a match of fields, which are inline if possible.
    fn of_fields(fields: Vec<Field<'a>>) -> Self {
        let mut inline = InlineFields::EMPTY;
        match fields.iter().all(|field| push(&mut inline, field)) {
            true => Self(Repr::Inline(inline)),
            false => Self::from(fields),
        }
    }
}

/// Adds a field to inline ones, and returns `true`, if that is possible. An invalid field is not added, since the encoder
/// must refuse it.
fn push(fields: &mut InlineFields, added: &Field) -> bool {
    match *added {
        Field::Basic { field, value, mask }
            if value & !mask == 0 && mask & !field.full_mask() == 0 =>
        {
            fields.push_masked(field, value, mask)
        }
        _ => false,
    }
}

/// Defines methods that match a field. Columns: the method, its argument's type, the field.
macro_rules! field_methods {
    ($($(#[$meta:meta])* $name:ident($value:ty) => $field:ident;)+) => {
        impl Match<'_> {
            $(
                #[doc = concat!("Adds [`OxmField::", stringify!($field), "`].")]
                $(#[$meta])*
                #[inline]
                pub fn $name(self, value: $value) -> Self {
                    self.with_exact(OxmField::$field, value.bits())
                }
            )+
        }
    };
}

field_methods! {
    in_port(PortNo) => InPort;
    eth_dst(MacAddr) => EthDst;
    eth_src(MacAddr) => EthSrc;
    /// The packet must also have a VLAN tag.
    vlan_pcp(u8) => VlanPcp;
    ip_dscp(u8) => IpDscp;
    ip_ecn(u8) => IpEcn;
    tcp_src(u16) => TcpSrc;
    tcp_dst(u16) => TcpDst;
    udp_src(u16) => UdpSrc;
    udp_dst(u16) => UdpDst;
    sctp_src(u16) => SctpSrc;
    sctp_dst(u16) => SctpDst;
    icmpv4_type(u8) => Icmpv4Type;
    icmpv4_code(u8) => Icmpv4Code;
    icmpv6_type(u8) => Icmpv6Type;
    icmpv6_code(u8) => Icmpv6Code;
    /// 1 is a request, 2 is a reply.
    arp_op(u16) => ArpOp;
    arp_sha(MacAddr) => ArpSha;
    arp_tha(MacAddr) => ArpTha;
    mpls_label(u32) => MplsLabel;
    tunnel_id(u64) => TunnelId;
}

/// Defines methods that match an address or a prefix of one. Columns: the method, its argument's type, the field.
macro_rules! prefix_methods {
    ($($name:ident($prefix:ty) => $field:ident;)+) => {
        impl Match<'_> {
            $(
                #[doc = concat!("Adds [`OxmField::", stringify!($field), "`]: an address, or a prefix.")]
                ///
                /// A prefix of length 0, such as `0.0.0.0/0`, matches every address: it only removes an earlier value.
                #[inline]
                pub fn $name(self, addresses: impl Into<$prefix>) -> Self {
                    let prefix = addresses.into();
                    self.with_prefix(OxmField::$field, prefix.address().bits(), prefix.mask().bits())
                }
            )+
        }
    };
}

prefix_methods! {
    ipv4_src(Ipv4Prefix) => Ipv4Src;
    ipv4_dst(Ipv4Prefix) => Ipv4Dst;
    ipv6_src(Ipv6Prefix) => Ipv6Src;
    ipv6_dst(Ipv6Prefix) => Ipv6Dst;
    arp_spa(Ipv4Prefix) => ArpSpa;
    arp_tpa(Ipv4Prefix) => ArpTpa;
}

impl Match<'_> {
    /// Matches `eth_type`, by name or number.
    #[inline]
    pub fn eth_type(self, eth_type: impl Into<EtherType>) -> Self {
        self.with_exact(OxmField::EthType, eth_type.into().0)
    }

    /// Matches `ip_proto`, by name or number.
    #[inline]
    pub fn ip_proto(self, ip_proto: impl Into<IpProtocol>) -> Self {
        self.with_exact(OxmField::IpProto, ip_proto.into().0)
    }

    /// Matches `vlan_vid`: packets whose outermost tag has this VLAN id (12 bits).
    #[inline]
    pub fn vlan_vid(self, vlan_id: u16) -> Self {
        self.with_exact(OxmField::VlanVid, vlan_id | VLAN_PRESENT)
    }

    /// Matches `vlan_vid`: packets without a VLAN tag (OFPVID_NONE).
    #[inline]
    pub fn untagged(self) -> Self {
        self.with_exact(OxmField::VlanVid, 0_u16)
    }

    #[inline]
    fn with_prefix(self, field: OxmField, value: u128, mask: u128) -> Self {
        if mask == 0 {
            return self.without(field);
        }
        self.with_masked(field, value, mask)
    }
}

/// The bit of `vlan_vid` that is set if the packet has a VLAN tag (OFPVID_PRESENT).
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

/// Matches are equal if they have the same fields, in any order.
impl PartialEq for Match<'_> {
    fn eq(&self, other: &Self) -> bool {
        let within = |a: &Self, b: &Self| {
            a.fields()
                .all(|field| b.fields().any(|other| other == field))
        };
        within(self, other) && within(other, self)
    }
}

impl Eq for Match<'_> {}

impl fmt::Debug for Match<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.fields()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn methods_equal_their_text() {
        let ipv4 = || Match::any().eth_type(EtherType::IPV4);
        let arp = || Match::any().eth_type(EtherType::ARP);
        let mac = MacAddr::new([2, 0, 0, 0, 0, 1]);
        let network: Ipv4Prefix = "10.1.0.0/16".parse().unwrap();
        let host = Ipv4Addr::new(10, 0, 0, 1);
        for (match_, expected) in [
            (
                Match::any().vlan_vid(5).vlan_pcp(3),
                "dl_vlan=5,dl_vlan_pcp=3",
            ),
            (Match::any().untagged(), "vlan_tci=0x0000/0x1fff"),
            (
                ipv4().ipv4_src(network).ipv4_dst(host),
                "ip,nw_src=10.1.0.0/16,nw_dst=10.0.0.1",
            ),
            (
                ipv4().ip_proto(IpProtocol::SCTP).sctp_dst(7),
                "sctp,tp_dst=7",
            ),
            (
                ipv4()
                    .ip_proto(IpProtocol::ICMP)
                    .icmpv4_type(8)
                    .icmpv4_code(0),
                "icmp,icmp_type=8,icmp_code=0",
            ),
            (
                arp().arp_op(1).arp_tpa(network),
                "arp,arp_tpa=10.1.0.0/16,arp_op=1",
            ),
            (
                arp().arp_spa(host).arp_sha(mac),
                "arp,arp_spa=10.0.0.1,arp_sha=02:00:00:00:00:01",
            ),
            (
                Match::any()
                    .eth_type(EtherType::IPV6)
                    .ipv6_dst(Ipv6Addr::LOCALHOST),
                "ipv6,ipv6_dst=::1",
            ),
        ] {
            assert_eq!(match_, expected.parse().expect(expected), "{match_}");
        }
    }

    #[test]
    fn a_prefix_without_bits_matches_every_address() {
        let all: Ipv4Prefix = "0.0.0.0/0".parse().unwrap();
        let ipv4 = Match::any().eth_type(EtherType::IPV4);
        assert_eq!(ipv4.clone().ipv4_dst(all), ipv4);
        let host = ipv4.clone().ipv4_dst(Ipv4Addr::LOCALHOST);
        assert_eq!(host.ipv4_dst(all), ipv4);
    }
}
