//! The names of fields and protocols in text, and the forms of fields' values.

use super::value::Form;
use crate::OxmField;

/// A field's row in the table below.
pub(super) struct Name {
    pub(super) field: OxmField,
    /// Open vSwitch's name in a match.
    pub(super) dump: &'static str,
    /// Open vSwitch's name in `set_field`.
    pub(super) set: &'static str,
    pub(super) form: Form,
}

const fn row(field: OxmField, dump: &'static str, set: &'static str, form: Form) -> Name {
    Name {
        field,
        dump,
        set,
        form,
    }
}

/// Every field, in the order in which `ovs-ofctl` writes the fields of a match.
pub(super) const NAMES: &[Name] = &{
    use Form::*;
    use OxmField::*;
    [
        row(TunnelId, "tun_id", "tun_id", Hex(1)),
        row(Metadata, "metadata", "metadata", Hex(1)),
        row(InPort, "in_port", "in_port", Port),
        row(InPhyPort, "in_phy_port", "in_phy_port", Port),
        row(VlanVid, "vlan_vid", "vlan_vid", Decimal),
        row(VlanPcp, "vlan_pcp", "vlan_pcp", Decimal),
        row(EthSrc, "dl_src", "eth_src", Mac),
        row(EthDst, "dl_dst", "eth_dst", Mac),
        row(EthType, "dl_type", "eth_type", Hex(4)),
        row(Ipv6Src, "ipv6_src", "ipv6_src", Form::Ipv6),
        row(Ipv6Dst, "ipv6_dst", "ipv6_dst", Form::Ipv6),
        row(Ipv4Src, "nw_src", "ip_src", Form::Ipv4),
        row(Ipv4Dst, "nw_dst", "ip_dst", Form::Ipv4),
        row(ArpSpa, "arp_spa", "arp_spa", Form::Ipv4),
        row(ArpTpa, "arp_tpa", "arp_tpa", Form::Ipv4),
        row(Ipv6Flabel, "ipv6_label", "ipv6_label", Hex(5)),
        row(Ipv6Exthdr, "ipv6_exthdr", "ipv6_exthdr", Hex(1)),
        row(IpProto, "nw_proto", "ip_proto", Decimal),
        row(ArpOp, "arp_op", "arp_op", Decimal),
        row(ArpSha, "arp_sha", "arp_sha", Mac),
        row(ArpTha, "arp_tha", "arp_tha", Mac),
        row(IpDscp, "ip_dscp", "ip_dscp", Decimal),
        row(IpEcn, "nw_ecn", "nw_ecn", Decimal),
        row(MplsLabel, "mpls_label", "mpls_label", Decimal),
        row(MplsTc, "mpls_tc", "mpls_tc", Decimal),
        row(MplsBos, "mpls_bos", "mpls_bos", Decimal),
        row(PbbIsid, "pbb_isid", "pbb_isid", Decimal),
        row(Icmpv4Type, "icmpv4_type", "icmp_type", Decimal),
        row(Icmpv4Code, "icmpv4_code", "icmp_code", Decimal),
        row(Icmpv6Type, "icmpv6_type", "icmpv6_type", Decimal),
        row(Icmpv6Code, "icmpv6_code", "icmpv6_code", Decimal),
        row(Ipv6NdTarget, "nd_target", "nd_target", Form::Ipv6),
        row(Ipv6NdSll, "nd_sll", "nd_sll", Mac),
        row(Ipv6NdTll, "nd_tll", "nd_tll", Mac),
        row(TcpSrc, "tcp_src", "tcp_src", Decimal),
        row(TcpDst, "tcp_dst", "tcp_dst", Decimal),
        row(UdpSrc, "udp_src", "udp_src", Decimal),
        row(UdpDst, "udp_dst", "udp_dst", Decimal),
        row(SctpSrc, "sctp_src", "sctp_src", Decimal),
        row(SctpDst, "sctp_dst", "sctp_dst", Decimal),
    ]
};

/// Returns the row of `field`, and its position in the order of a match.
pub(super) fn place_and_name(field: OxmField) -> (usize, &'static Name) {
    let place = NAMES.iter().position(|name| name.field == field);
    // Every field has a row, as a test checks.
    let place = place.unwrap_or(0);
    (place, &NAMES[place])
}

/// Returns the row of the field `text`, by Open vSwitch's or the specification's name.
pub(super) fn by_name(text: &str) -> Option<&'static Name> {
    let by = |called: fn(&Name) -> &'static str| NAMES.iter().find(|name| called(name) == text);
    by(|name| name.set)
        .or_else(|| by(|name| name.field.name()))
        .or_else(|| by(|name| name.dump))
}

/// Ethernet types with names.
pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
pub(super) const ARP: u16 = 0x0806;
pub(super) const RARP: u16 = 0x8035;

/// A word for an Ethernet type, or for an Ethernet type with an IP protocol.
pub(super) struct Protocol {
    pub(super) name: &'static str,
    pub(super) eth_type: u16,
    pub(super) ip_proto: Option<u8>,
}

const fn protocol(name: &'static str, eth_type: u16, ip_proto: Option<u8>) -> Protocol {
    Protocol {
        name,
        eth_type,
        ip_proto,
    }
}

/// All such words: specific ones before general ones, and aliases, which are only parsed, last.
pub(super) const PROTOCOLS: &[Protocol] = &[
    protocol("icmp", IPV4, Some(1)),
    protocol("tcp", IPV4, Some(6)),
    protocol("udp", IPV4, Some(17)),
    protocol("sctp", IPV4, Some(132)),
    protocol("icmp6", IPV6, Some(58)),
    protocol("tcp6", IPV6, Some(6)),
    protocol("udp6", IPV6, Some(17)),
    protocol("sctp6", IPV6, Some(132)),
    protocol("ip", IPV4, None),
    protocol("ipv6", IPV6, None),
    protocol("arp", ARP, None),
    protocol("rarp", RARP, None),
    protocol("mpls", 0x8847, None),
    protocol("mplsm", 0x8848, None),
    protocol("ipv4", IPV4, None),
    protocol("ip4", IPV4, None),
    protocol("ip6", IPV6, None),
];

/// The ports of a transport protocol, or ICMP's type and code, which share 1.0's fields.
pub(super) struct Transport {
    /// The Ethernet type over which it applies, or any.
    eth_type: Option<u16>,
    ip_proto: u8,
    /// Source port or type, destination port or code.
    pub(super) fields: [OxmField; 2],
    /// Their names in a match.
    pub(super) names: [&'static str; 2],
}

const PORTS: [&str; 2] = ["tp_src", "tp_dst"];
const TYPE_AND_CODE: [&str; 2] = ["icmp_type", "icmp_code"];

const fn transport(
    eth_type: Option<u16>,
    ip_proto: u8,
    fields: [OxmField; 2],
    names: [&'static str; 2],
) -> Transport {
    Transport {
        eth_type,
        ip_proto,
        fields,
        names,
    }
}

const TRANSPORTS: &[Transport] = &{
    use OxmField::*;
    [
        transport(None, 6, [TcpSrc, TcpDst], PORTS),
        transport(None, 17, [UdpSrc, UdpDst], PORTS),
        transport(None, 132, [SctpSrc, SctpDst], PORTS),
        transport(Some(IPV4), 1, [Icmpv4Type, Icmpv4Code], TYPE_AND_CODE),
        transport(Some(IPV6), 58, [Icmpv6Type, Icmpv6Code], TYPE_AND_CODE),
    ]
};

/// The protocol of a match, on which ambiguous names depend.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context {
    pub(super) eth_type: Option<u16>,
    pub(super) ip_proto: Option<u8>,
}

impl Context {
    pub(super) fn is_ip(self) -> bool {
        matches!(self.eth_type, Some(IPV4 | IPV6))
    }

    pub(super) fn is_arp(self) -> bool {
        matches!(self.eth_type, Some(ARP | RARP))
    }

    /// Returns the meaning of `tp_src` and similar names here.
    pub(super) fn transport(self) -> Option<&'static Transport> {
        TRANSPORTS.iter().find(|transport| {
            Some(transport.ip_proto) == self.ip_proto
                && (transport.eth_type.is_none() || transport.eth_type == self.eth_type)
        })
    }

    /// Returns the name of a field of the transport protocol here.
    fn transport_name(self, field: OxmField) -> Option<&'static str> {
        let transport = self.transport()?;
        let side = transport.fields.iter().position(|&at| at == field)?;
        Some(transport.names[side])
    }

    /// Returns the name of `name.field` here, which reads back as that field.
    pub(super) fn name_of(self, name: &Name) -> &'static str {
        if let Some(name) = self.transport_name(name.field) {
            return name;
        }
        match name.field {
            OxmField::Ipv4Src | OxmField::Ipv4Dst if self.eth_type != Some(IPV4) => name.set,
            OxmField::IpProto if !self.is_ip() => name.set,
            _ => name.dump,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_one_row() {
        for &field in OxmField::ALL {
            let rows = NAMES.iter().filter(|name| name.field == field).count();
            assert_eq!(rows, 1, "{}", field.name());
            assert_eq!(place_and_name(field).1.field, field);
        }
    }

    #[test]
    fn the_specifications_names_mean_their_fields() {
        for &field in OxmField::ALL {
            assert_eq!(by_name(field.name()).map(|name| name.field), Some(field));
        }
    }

    #[test]
    fn the_names_of_set_field_are_unique() {
        for name in NAMES {
            assert_eq!(by_name(name.set).map(|found| found.field), Some(name.field));
        }
    }
}
