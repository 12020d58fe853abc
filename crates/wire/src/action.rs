//! Actions, which send or change a packet.

use crate::field::FieldBits;
use crate::{Field, MacAddr, OxmField, PortNo, VLAN_PRESENT};
use std::net::{Ipv4Addr, Ipv6Addr};

/// An action of a list or set (1.3.5 section 7.2.5, 1.0 section 5.2.4).
///
/// 1.0's `set_dl_*`, `set_nw_*` and `strip_vlan` are [`Action::SetField`] and [`Action::PopVlan`]. Actions without an
/// equivalent in 1.3 have their own variant, marked "1.0 only".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Sends the packet out of a port.
    Output {
        /// The port to send to.
        port: PortNo,
        /// The maximum number of bytes sent to the controller, if that is the port; [`crate::CONTROLLER_NO_BUFFER`] for all.
        max_len: u16,
    },
    /// Copies the TTL outwards.
    CopyTtlOut,
    /// Copies the TTL inwards.
    CopyTtlIn,
    /// Sets the MPLS TTL.
    SetMplsTtl(u8),
    /// Decrements the MPLS TTL.
    DecMplsTtl,
    /// Pushes a VLAN tag of this Ethernet type (0x8100 or 0x88a8).
    PushVlan(u16),
    /// Pops the outermost VLAN tag.
    PopVlan,
    /// Pushes an MPLS header of this Ethernet type (0x8847 or 0x8848).
    PushMpls(u16),
    /// Pops the outermost MPLS header; the payload is of this Ethernet type.
    PopMpls(u16),
    /// Sets the queue for later outputs.
    SetQueue(u32),
    /// Sends the packet to a group.
    Group(u32),
    /// Sets the IP TTL.
    SetNwTtl(u8),
    /// Decrements the IP TTL.
    DecNwTtl,
    /// Sets a header field.
    SetField(Field<'a>),
    /// Pushes a PBB service tag of this Ethernet type (0x88e7).
    PushPbb(u16),
    /// Pops the outermost PBB service tag.
    PopPbb,
    /// 1.0 only: sets the VLAN id (12 bits), adding a tag if there is none.
    SetVlanVid(u16),
    /// 1.0 only: sets the VLAN priority (3 bits), adding a tag if there is none.
    SetVlanPcp(u8),
    /// 1.0 only: sets the source port of TCP or UDP, or the ICMP type, depending on the packet.
    SetTpSrc(u16),
    /// 1.0 only: sets the destination port of TCP or UDP, or the ICMP code, depending on the packet.
    SetTpDst(u16),
    /// 1.0 only: sends the packet out of a port through one of its queues.
    Enqueue {
        /// The port.
        port: PortNo,
        /// The queue of that port.
        queue_id: u32,
    },
    /// An experimenter's action (1.0: a vendor's).
    Experimenter {
        /// The experimenter's id.
        experimenter: u32,
        /// The bytes after the experimenter id, up to the action's length. With the eight bytes before them, they make a
        /// multiple of eight.
        data: &'a [u8],
    },
}

/// Defines constructors of set-field actions. Columns: the constructor, its argument's type, the field.
macro_rules! set_field_constructors {
    ($($(#[$meta:meta])* $name:ident($value:ty) => $field:ident;)+) => {
        /// Set-field actions, each with the type of its field's values. Bits of a number beyond the field's width are
        /// dropped.
        ///
        /// ```
        /// use std::net::Ipv4Addr;
        /// use urtica_wire::{Action, MacAddr, PortNo};
        ///
        /// let to_server = [
        ///     Action::set_eth_dst(MacAddr::new([2, 0, 0, 0, 0, 9])),
        ///     Action::set_ipv4_dst(Ipv4Addr::new(10, 0, 0, 9)),
        ///     Action::output(PortNo(3)),
        /// ];
        /// assert_eq!(to_server[1].to_string(), "set_field:10.0.0.9->ip_dst");
        /// ```
        ///
        /// A value of another type does not compile:
        ///
        /// ```compile_fail
        /// # use urtica_wire::{Action, MacAddr};
        /// let wrong = Action::set_ipv4_dst(MacAddr::BROADCAST);
        /// ```
        impl Action<'_> {
            $(
                #[doc = concat!("Sets [`OxmField::", stringify!($field), "`].")]
                $(#[$meta])*
                #[inline]
                pub fn $name(value: $value) -> Self {
                    Self::SetField(Field::exact(OxmField::$field, value.bits()))
                }
            )+

            /// Sets the VLAN id (12 bits) of the outermost tag. 1.3 requires one: push it first.
            #[inline]
            pub fn set_vlan_vid(vlan_id: u16) -> Self {
                Self::SetField(Field::exact(OxmField::VlanVid, (vlan_id | VLAN_PRESENT).bits()))
            }
        }
    };
}

set_field_constructors! {
    set_eth_dst(MacAddr) => EthDst;
    set_eth_src(MacAddr) => EthSrc;
    /// 3 bits, of the outermost tag.
    set_vlan_pcp(u8) => VlanPcp;
    /// 6 bits.
    set_ip_dscp(u8) => IpDscp;
    /// 2 bits.
    set_ip_ecn(u8) => IpEcn;
    set_ipv4_src(Ipv4Addr) => Ipv4Src;
    set_ipv4_dst(Ipv4Addr) => Ipv4Dst;
    set_ipv6_src(Ipv6Addr) => Ipv6Src;
    set_ipv6_dst(Ipv6Addr) => Ipv6Dst;
    /// 20 bits.
    set_ipv6_flabel(u32) => Ipv6Flabel;
    set_tcp_src(u16) => TcpSrc;
    set_tcp_dst(u16) => TcpDst;
    set_udp_src(u16) => UdpSrc;
    set_udp_dst(u16) => UdpDst;
    set_sctp_src(u16) => SctpSrc;
    set_sctp_dst(u16) => SctpDst;
    set_icmpv4_type(u8) => Icmpv4Type;
    set_icmpv4_code(u8) => Icmpv4Code;
    set_icmpv6_type(u8) => Icmpv6Type;
    set_icmpv6_code(u8) => Icmpv6Code;
    /// 1 is a request, 2 a reply.
    set_arp_op(u16) => ArpOp;
    set_arp_spa(Ipv4Addr) => ArpSpa;
    set_arp_tpa(Ipv4Addr) => ArpTpa;
    set_arp_sha(MacAddr) => ArpSha;
    set_arp_tha(MacAddr) => ArpTha;
    /// 20 bits, of the outermost MPLS header.
    set_mpls_label(u32) => MplsLabel;
    /// 3 bits, of the outermost MPLS header.
    set_mpls_tc(u8) => MplsTc;
    /// 24 bits.
    set_pbb_isid(u32) => PbbIsid;
    set_tunnel_id(u64) => TunnelId;
}

impl Action<'_> {
    /// Creates an output to a port, without a buffered copy for the controller.
    pub const fn output(port: PortNo) -> Self {
        Self::Output { port, max_len: 0 }
    }

    /// Creates an output of whole packets to the controller.
    pub const fn controller() -> Self {
        Self::Output {
            port: PortNo::CONTROLLER,
            max_len: crate::CONTROLLER_NO_BUFFER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::{element, hex};
    use crate::{Element, Version};

    #[test]
    fn set_field_constructors_are_the_bytes_of_the_specification() {
        for (action, bytes) in [
            (
                Action::set_ipv4_dst(Ipv4Addr::new(10, 0, 0, 9)),
                "0019 0010 80001804 0a000009 00000000",
            ),
            (
                Action::set_eth_src(MacAddr::new([2, 0, 0, 0, 0, 9])),
                "0019 0010 80000806 020000000009 0000",
            ),
            (
                Action::set_vlan_vid(5),
                "0019 0010 80000c02 1005 000000000000",
            ),
            (
                Action::set_ip_dscp(46),
                "0019 0010 80001001 2e 00000000000000",
            ),
            (
                Action::set_mpls_label(0x12345),
                "0019 0010 80004404 00012345 00000000",
            ),
            (
                Action::set_tunnel_id(7),
                "0019 0010 80004c08 0000000000000007",
            ),
        ] {
            element(Version::Of13, &hex(bytes), &action);
        }
    }

    #[test]
    fn bits_beyond_the_field_are_dropped() {
        assert_eq!(Action::set_vlan_pcp(0xff), Action::set_vlan_pcp(7));
    }

    #[test]
    fn errors_name_what_1_0_lacks() {
        let refused = |action: Action| {
            let error = action.encode(Version::Of10, &mut Vec::new()).unwrap_err();
            error.to_string()
        };
        assert_eq!(
            refused(Action::set_ipv6_dst(Ipv6Addr::LOCALHOST)),
            "OpenFlow 1.0 cannot express the action set_field of ipv6_dst"
        );
    }
}
