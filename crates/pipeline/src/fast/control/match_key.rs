//! Conversion of an entry's match to words for comparisons.
//!
//! Adjacent bytes share a word: both IPv4 addresses are one. A word is in memory order, so no packet data is swapped or
//! shifted.

use crate::EntryMatch;
use crate::fast::datapath::frame::Frame;
use crate::fast::datapath::key::{Base, KeyMask, MAX_WORDS, Word};
use crate::fast::datapath::kinds::{Depth, Kinds};
use std::mem::offset_of;
use urtica_wire::OxmField;
use urtica_wire::packet::ether_type;

/// A match in the compiled form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub mask: KeyMask,
    /// One value for each word of the mask, without bits outside the mask.
    pub values: Vec<u64>,
}

/// The position of a field, its size in bytes, and the number of bits after it in the last byte.
struct FieldPlace {
    base: Base,
    at: i16,
    len: usize,
    shift: u32,
    depth: Depth,
}

impl Key {
    /// Creates the match of an entry; `None` if it has a field that only the plain form supports.
    pub fn new(match_: &EntryMatch) -> Option<Self> {
        let mut require = Kinds::empty();
        for &(field, value, _) in match_.fields() {
            require |= required(field, value)?;
        }
        Self::of(match_.fields(), require)
    }

    /// Returns the key of one field, without the prerequisites that a match needs. `None` for fields whose location depends on
    /// the headers, or that only identify the kind of a header.
    pub fn of_field(field: OxmField, value: u128, mask: u128) -> Option<Self> {
        use OxmField::*;
        let require = match field {
            EthType | IpProto | IpDscp | IpEcn => return None,
            Ipv4Src | Ipv4Dst => Kinds::IPV4,
            Ipv6Src | Ipv6Dst | Ipv6Flabel => Kinds::IPV6,
            ArpOp | ArpSpa | ArpTpa | ArpSha | ArpTha => Kinds::ARP,
            _ => required(field, value)?,
        };
        Self::of(&[(field, value, mask)], require)
    }

    /// Returns the key of these fields, values and masks, and of the required headers.
    pub fn of(matched: &[(OxmField, u128, u128)], require: Kinds) -> Option<Self> {
        let mut fields = Vec::with_capacity(matched.len());
        let mut depth = depth_of(require);
        for &(field, value, mask) in matched {
            if is_implied(field, require) {
                continue;
            }
            let place = place(field, require)?;
            depth = depth.max(place.depth);
            fields.push((place, value, mask));
        }
        let covers = cover(fields);
        let mut words: Vec<_> = covers.iter().map(Cover::word).collect();
        let mut values: Vec<_> = covers
            .iter()
            .map(|cover| u64::from_ne_bytes(cover.values))
            .collect();
        if words.is_empty() && !require.is_empty() {
            words.push(Word::NOTHING);
            values.push(0);
        }
        (words.len() <= MAX_WORDS).then_some(Self {
            mask: KeyMask {
                require,
                words,
                depth,
            },
            values,
        })
    }

    /// Returns `true` if a field only requires that a header is present.
    pub fn is_header(&self, field: OxmField) -> bool {
        is_implied(field, self.mask.require)
    }
}

/// Returns the headers that a match on a field requires.
fn required(field: OxmField, value: u128) -> Option<Kinds> {
    use OxmField::*;
    Some(match field {
        EthType => announced_by(value),
        InPort | Metadata | EthDst | EthSrc | VlanVid => Kinds::empty(),
        IpDscp | IpEcn | IpProto | Ipv4Src | Ipv4Dst => Kinds::empty(),
        Ipv6Src | Ipv6Dst | Ipv6Flabel => Kinds::empty(),
        ArpOp | ArpSpa | ArpTpa | ArpSha | ArpTha => Kinds::empty(),
        VlanPcp => Kinds::VLAN,
        TcpSrc | TcpDst => Kinds::TCP,
        UdpSrc | UdpDst => Kinds::UDP,
        SctpSrc | SctpDst => Kinds::SCTP,
        Icmpv4Type | Icmpv4Code => Kinds::ICMPV4,
        Icmpv6Type | Icmpv6Code => Kinds::ICMPV6,
        _ => return None,
    })
}

/// Returns the header that an Ethernet type announces. Every match that needs the header has the type (1.3.5 table 12).
fn announced_by(eth_type: u128) -> Kinds {
    match u16::try_from(eth_type) {
        Ok(ether_type::IPV4) => Kinds::IPV4,
        Ok(ether_type::IPV6) => Kinds::IPV6,
        Ok(ether_type::ARP) => Kinds::ARP,
        _ => Kinds::empty(),
    }
}

/// Returns whether all frames with these headers have the only value of the field that a match with these headers can
/// require.
fn is_implied(field: OxmField, require: Kinds) -> bool {
    let network = Kinds::IPV4 | Kinds::IPV6 | Kinds::ARP;
    match field {
        OxmField::EthType => require.intersects(network),
        OxmField::IpProto => depth_of(require) == Depth::Transport,
        _ => false,
    }
}

fn depth_of(require: Kinds) -> Depth {
    let network = Kinds::IPV4 | Kinds::IPV6 | Kinds::ARP;
    match require {
        kinds if kinds.is_empty() => Depth::Ethernet,
        Kinds::VLAN => Depth::Type,
        kinds if (network | Kinds::VLAN).contains(kinds) => Depth::Network,
        _ => Depth::Transport,
    }
}

fn place(field: OxmField, require: Kinds) -> Option<FieldPlace> {
    use Depth::*;
    use OxmField::*;
    let is_v6 = require.contains(Kinds::IPV6);
    let bits = |base, depth, at, len, shift| FieldPlace {
        base,
        at,
        len,
        shift,
        depth,
    };
    let known = |at: usize, len, depth| bits(Base::Frame, depth, at as i16, len, 0);
    let data = |at, len| bits(Base::Data, Ethernet, at, len, 0);
    let network = |at, len, shift| bits(Base::Network, Network, at, len, shift);
    let transport = |at, len| bits(Base::Transport, Transport, at, len, 0);
    Some(match field {
        InPort => known(offset_of!(Frame, in_port), 4, Ethernet),
        Metadata => known(offset_of!(Frame, metadata), 8, Ethernet),
        VlanVid => known(offset_of!(Frame, vlan_vid), 2, Type),
        VlanPcp => known(offset_of!(Frame, vlan_pcp), 2, Type),
        EthDst => data(0, 6),
        EthSrc => data(6, 6),
        EthType => bits(Base::Network, Type, -2, 2, 0),
        ArpOp => network(6, 2, 0),
        ArpSha => network(8, 6, 0),
        ArpSpa => network(14, 4, 0),
        ArpTha => network(18, 6, 0),
        ArpTpa => network(24, 4, 0),
        IpDscp if is_v6 => network(0, 2, 6),
        IpEcn if is_v6 => network(0, 2, 4),
        IpProto if is_v6 => known(offset_of!(Frame, ip_proto), 1, Network),
        IpDscp => network(1, 1, 2),
        IpEcn => network(1, 1, 0),
        IpProto => network(9, 1, 0),
        Ipv4Src => network(12, 4, 0),
        Ipv4Dst => network(16, 4, 0),
        Ipv6Flabel => network(0, 4, 0),
        Ipv6Src => network(8, 16, 0),
        Ipv6Dst => network(24, 16, 0),
        TcpSrc | UdpSrc | SctpSrc => transport(0, 2),
        TcpDst | UdpDst | SctpDst => transport(2, 2),
        Icmpv4Type | Icmpv6Type => transport(0, 1),
        Icmpv4Code | Icmpv6Code => transport(1, 1),
        _ => return None,
    })
}

/// Eight bytes of a frame, and the fields in them.
struct Cover {
    base: Base,
    at: i16,
    values: [u8; 8],
    mask: [u8; 8],
}

/// Returns words that cover these fields. Each starts at the first byte that is not covered yet.
fn cover(mut fields: Vec<(FieldPlace, u128, u128)>) -> Vec<Cover> {
    fields.sort_unstable_by_key(|(place, ..)| (place.base, place.at));
    let mut covers: Vec<Cover> = Vec::with_capacity(2);
    for (place, value, mask) in fields {
        let (values, masks) = (place.bytes(value), place.bytes(mask));
        for index in (0..place.len).filter(|&index| masks[index] != 0) {
            let at = place.at + index as i16;
            let has_it = |cover: &Cover| cover.base == place.base && at - cover.at < 8;
            if !covers.last().is_some_and(has_it) {
                covers.push(Cover {
                    base: place.base,
                    at,
                    values: [0; 8],
                    mask: [0; 8],
                });
            }
            if let Some(cover) = covers.last_mut() {
                let offset = (at - cover.at) as usize;
                cover.values[offset] |= values[index];
                cover.mask[offset] |= masks[index];
            }
        }
    }
    covers
}

impl Cover {
    fn word(&self) -> Word {
        Word {
            base: self.base,
            at: self.at,
            mask: u64::from_ne_bytes(self.mask),
        }
    }
}

impl FieldPlace {
    /// Returns a value of the field as in memory, from the first byte on.
    fn bytes(&self, value: u128) -> [u8; 16] {
        let shifted = value << self.shift;
        match self.base {
            Base::Frame if cfg!(target_endian = "little") => shifted.to_le_bytes(),
            _ => (shifted << (128 - 8 * self.len)).to_be_bytes(),
        }
    }
}
