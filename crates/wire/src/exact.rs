//! Straight-line writers for the two messages with which a controller answers packet-ins.
//!
//! A learning controller sends one of these per packet-in, so their cost is most of the controller's. Each writer appends a
//! template of the whole message and fills it in, without iterating lists and without allocating. Frames with plain IPv4 are
//! written directly, others by `any_frame.rs`. The general encoder ([`Message::encode`]) is the reference model: differential
//! tests and the fuzz target `exact_flow_mod` compare every message written here with it, byte for byte.

mod any_frame;
mod layers;

use crate::packet::{Headers, Icmpv4View, Ipv4View, TcpView, UdpView, ip_proto};
use crate::{
    Action, BufferId, EncodeError, EntryOptions, ExactMatch, Field, FlowMod, FlowModFlags,
    Instruction, List, MacAddr, Match, Message, OxmField, PacketOut, PortNo, Put, VLAN_PRESENT,
    Version,
};
use std::net::IpAddr;

/// A flow mod that adds an entry for packets like this one, with one output action.
#[derive(Clone, Copy, Debug)]
pub struct ExactFlowMod<'a> {
    /// The packets to match.
    pub match_: ExactMatch<'a>,
    /// The port to send to.
    pub port: PortNo,
    /// The buffered packet that the new entry should forward.
    pub buffer_id: BufferId,
    /// The entry's timeouts and other options.
    pub options: EntryOptions,
    /// The table of the new entry; 0 in 1.0, whose messages have no table id.
    pub table_id: u8,
}

impl ExactFlowMod<'_> {
    /// Appends the message to `out`.
    ///
    /// # Errors
    /// [`EncodeError`] if a port, flag or table does not fit into `version`; `out` is then unchanged.
    #[inline]
    pub fn write(self, version: Version, xid: u32, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self.write_straight(version, xid, out) {
            true => Ok(()),
            false => self.write_aside(version, xid, out),
        }
    }

    /// Appends a message without straight-line form. This is separate from the code for most messages.
    #[inline(never)]
    fn write_aside(self, version: Version, xid: u32, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self.write_any_frame(version, xid, out) {
            true => Ok(()),
            false => self.write_general(version, xid, out),
        }
    }

    /// Appends the message to `out` if it has a straight-line form, and returns `true` if so. It has one for untagged,
    /// unfragmented IPv4, and in 1.3 only if TCP's and UDP's ports are the only upper-layer fields.
    #[inline(always)]
    pub fn write_straight(self, version: Version, xid: u32, out: &mut Vec<u8>) -> bool {
        match version {
            Version::Of10 if self.fits_of10() => match PlainIpv4::of(self.match_.frame) {
                Some(packet) if packet.upper == Upper::Nothing => {
                    self.of10(xid, packet.frame, None, out);
                }
                Some(packet) => self.of10(xid, packet.frame, Some(packet.of10_ports()), out),
                None => return false,
            },
            Version::Of13 if self.fits_of13() => match PlainIpv4::of(self.match_.frame) {
                Some(packet) if packet.upper != Upper::Icmp => self.of13(xid, packet, out),
                _ => return false,
            },
            _ => return false,
        }
        true
    }

    /// Returns `true` if the table is 0, no port is reserved, and the flags have the same bits in both versions.
    #[inline]
    fn fits_of10(&self) -> bool {
        const SAME_BITS: FlowModFlags =
            FlowModFlags::SEND_FLOW_REM.union(FlowModFlags::CHECK_OVERLAP);
        // One comparison for both ports: no number below this is reserved.
        const ORDINARY: u32 = 0x8000;
        self.table_id == 0
            && (self.port.0 | self.match_.in_port.0) < ORDINARY
            && SAME_BITS.contains(self.options.flags)
    }

    #[inline]
    fn fits_of13(&self) -> bool {
        !self.options.flags.contains(FlowModFlags::EMERG)
    }

    /// Writes the message with the general encoder.
    #[cold]
    fn write_general(
        self,
        version: Version,
        xid: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let actions = [Action::output(self.port)];
        let instructions = [Instruction::apply(&actions)];
        let flow_mod = FlowMod {
            table_id: self.table_id,
            buffer_id: self.buffer_id,
            match_: Match::from(self.match_.fields_in(version)),
            instructions: List::from(&instructions),
            ..self.options.flow_mod()
        };
        Message::FlowMod(flow_mod).encode(version, xid, out)
    }

    /// Appends `ofp_flow_mod` of 1.0 (section 5.3.3) with one output action: 80 bytes.
    #[inline(always)] // with and without ports
    fn of10(&self, xid: u32, frame: &[u8; 38], ports: Option<[u8; 4]>, out: &mut Vec<u8>) {
        let message = append(out, &OF10_FLOW_MOD);
        self.fill_of10(xid, frame.first_chunk().expect("it is longer"), message);
        message[32] = frame[15] & 0xfc;
        message[33] = frame[23];
        message[36..44].copy_from_slice(&frame[26..34]);
        if let Some(ports) = ports {
            message[8..12].copy_from_slice(&WILDCARDS_WITH_PORTS);
            message[44..48].copy_from_slice(&ports);
        }
    }

    /// Fills in all fields except those of a tag and of upper layers.
    #[inline(always)]
    fn fill_of10(&self, xid: u32, ethernet: &[u8; 14], message: &mut [u8; 80]) {
        let options = &self.options;
        message[4..8].copy_from_slice(&xid.to_be_bytes());
        message[12..14].copy_from_slice(&(self.match_.in_port.0 as u16).to_be_bytes());
        // dl_src, then dl_dst, in two stores of eight bytes; the next store overwrites the excess.
        message[14..22].copy_from_slice(&ethernet[6..14]);
        message[20..28].copy_from_slice(&ethernet[0..8]);
        message[26..28].copy_from_slice(&[0xff, 0xff]);
        message[48..56].copy_from_slice(&options.cookie.to_be_bytes());
        message[58..60].copy_from_slice(&options.idle_timeout.to_be_bytes());
        message[60..62].copy_from_slice(&options.hard_timeout.to_be_bytes());
        message[62..64].copy_from_slice(&options.priority.to_be_bytes());
        message[64..68].copy_from_slice(&self.buffer_id.0.to_be_bytes());
        message[70..72].copy_from_slice(&options.flags.bits().to_be_bytes());
        message[76..78].copy_from_slice(&(self.port.0 as u16).to_be_bytes());
    }

    /// Appends `ofp_flow_mod` of 1.3 (section 7.3.4.1) with one apply-actions instruction with one output: the common part,
    /// then 42 bytes with ports or 26 without.
    #[inline(always)]
    fn of13(&self, xid: u32, packet: PlainIpv4, out: &mut Vec<u8>) {
        let frame = packet.frame;
        let ports = packet.upper == Upper::Ports;
        let head = append(out, &OF13_HEAD);
        self.fill_of13(xid, frame.first_chunk().expect("it is longer"), head);
        head[2..4].copy_from_slice(&(if ports { 160_u16 } else { 144 }).to_be_bytes());
        head[50..52].copy_from_slice(&(if ports { 82_u16 } else { 70 }).to_be_bytes());
        head[96] = frame[15] >> 2;
        head[101] = frame[23];
        head[106..110].copy_from_slice(&frame[26..30]);
        head[114..118].copy_from_slice(&frame[30..34]);
        if ports {
            let tp_src = if frame[23] == ip_proto::TCP {
                OxmField::TcpSrc
            } else {
                OxmField::UdpSrc
            } as u8;
            let tail = append(out, &OF13_TAIL_PORTS);
            tail[2] = tp_src << 1;
            tail[4..6].copy_from_slice(&frame[34..36]);
            tail[8] = (tp_src + 1) << 1;
            tail[10..12].copy_from_slice(&frame[36..38]);
            tail[30..34].copy_from_slice(&self.port.0.to_be_bytes());
        } else {
            let tail = append(out, &OF13_TAIL);
            tail[14..18].copy_from_slice(&self.port.0.to_be_bytes());
        }
    }

    /// Fills in all fields up to the addresses, except lengths.
    #[inline(always)]
    fn fill_of13<const N: usize>(&self, xid: u32, ethernet: &[u8; 14], head: &mut [u8; N]) {
        let options = &self.options;
        head[4..8].copy_from_slice(&xid.to_be_bytes());
        head[8..16].copy_from_slice(&options.cookie.to_be_bytes());
        head[24] = self.table_id;
        head[26..28].copy_from_slice(&options.idle_timeout.to_be_bytes());
        head[28..30].copy_from_slice(&options.hard_timeout.to_be_bytes());
        head[30..32].copy_from_slice(&options.priority.to_be_bytes());
        head[32..36].copy_from_slice(&self.buffer_id.0.to_be_bytes());
        head[44..46].copy_from_slice(&options.flags.bits().to_be_bytes());
        head[56..60].copy_from_slice(&self.match_.in_port.0.to_be_bytes());
        head[64..70].copy_from_slice(&ethernet[0..6]);
        head[74..80].copy_from_slice(&ethernet[6..12]);
    }
}

/// Appends a template, and returns a reference to the copy to be filled in.
///
/// There is one function for each length, so that the copy becomes a few stores. If it were inlined into a program's large
/// loop over packet-ins, the compiler would call `memcpy`, which costs 30 more instructions.
#[inline(never)]
fn append<'o, const N: usize>(out: &'o mut Vec<u8>, template: &[u8; N]) -> &'o mut [u8; N] {
    if out.capacity() - out.len() < N {
        return grow_and_append(out, template);
    }
    out.extend_from_slice(template);
    out.last_chunk_mut()
        .expect("N bytes were appended just now")
}

/// Separate, and called last, so that `append` need not save registers.
#[cold]
#[inline(never)]
fn grow_and_append<'o, const N: usize>(
    out: &'o mut Vec<u8>,
    template: &[u8; N],
) -> &'o mut [u8; N] {
    out.reserve(N);
    append(out, template)
}

impl<'a> ExactMatch<'a> {
    /// Returns the packet's fields in the order of their numbers, in which each follows its prerequisites.
    ///
    /// Fields that the packet-in does not contain are omitted, and so are the ECN bits, which change within a flow. An untagged
    /// packet has `vlan_vid` 0, which matches packets without a tag.
    pub fn fields(&self) -> Vec<Field<'a>> {
        let headers = Headers::parse(self.frame);
        let mut fields = Vec::with_capacity(16);
        let mut add = |field, value: Option<u128>| {
            fields.extend(value.map(|value| Field::exact(field, value)))
        };
        let mac = |address: Option<MacAddr>| address.map(|address| address.to_u64().into());
        add(OxmField::InPort, Some(self.in_port.0.into()));
        add(OxmField::EthDst, mac(headers.eth_dst));
        add(OxmField::EthSrc, mac(headers.eth_src));
        add(OxmField::EthType, headers.eth_type.map(u128::from));
        add(
            OxmField::VlanVid,
            Some(
                headers
                    .vlan
                    .map_or(0, |tag| (tag.vid | VLAN_PRESENT).into()),
            ),
        );
        add(OxmField::VlanPcp, headers.vlan.map(|tag| tag.pcp.into()));
        add(OxmField::IpDscp, headers.ip_dscp.map(u128::from));
        add(OxmField::IpProto, headers.ip_proto.map(u128::from));
        match (headers.ip_src, headers.ip_dst) {
            (Some(IpAddr::V4(src)), Some(IpAddr::V4(dst))) => {
                add(OxmField::Ipv4Src, Some(src.to_bits().into()));
                add(OxmField::Ipv4Dst, Some(dst.to_bits().into()));
            }
            (Some(IpAddr::V6(src)), Some(IpAddr::V6(dst))) => {
                add(OxmField::Ipv6Src, Some(src.to_bits()));
                add(OxmField::Ipv6Dst, Some(dst.to_bits()));
            }
            _ => {}
        }
        if let Some((src, dst)) = headers.ip_proto.and_then(upper_layer_fields) {
            add(
                src,
                headers
                    .src_port
                    .or(headers.icmp_type.map(u16::from))
                    .map(u128::from),
            );
            add(
                dst,
                headers
                    .dst_port
                    .or(headers.icmp_code.map(u16::from))
                    .map(u128::from),
            );
        }
        if let Some(arp) = headers.arp {
            add(OxmField::ArpOp, Some(arp.op.into()));
            add(OxmField::ArpSpa, Some(arp.spa.to_bits().into()));
            add(OxmField::ArpTpa, Some(arp.tpa.to_bits().into()));
        }
        fields
    }

    /// Returns the packet's fields that `version` can match: 1.0 supports neither IPv6 nor SCTP.
    pub fn fields_in(&self, version: Version) -> Vec<Field<'a>> {
        let mut fields = self.fields();
        if version == Version::Of10 {
            let ipv6 = fields.contains(&Field::exact(OxmField::EthType, 0x86dd));
            fields.retain(|field| in_of10(field, ipv6));
        }
        fields
    }
}

/// Returns the two fields of the layer above IP, by its protocol.
fn upper_layer_fields(ip_proto: u8) -> Option<(OxmField, OxmField)> {
    match ip_proto {
        ip_proto::ICMPV4 => Some((OxmField::Icmpv4Type, OxmField::Icmpv4Code)),
        ip_proto::TCP => Some((OxmField::TcpSrc, OxmField::TcpDst)),
        ip_proto::UDP => Some((OxmField::UdpSrc, OxmField::UdpDst)),
        ip_proto::ICMPV6 => Some((OxmField::Icmpv6Type, OxmField::Icmpv6Code)),
        ip_proto::SCTP => Some((OxmField::SctpSrc, OxmField::SctpDst)),
        _ => None,
    }
}

/// Returns `true` if 1.0 can match the field. 1.0 only sees the Ethernet header of IPv6 packets, and eight bits of an ARP
/// operation; larger operations, which no host should send, are omitted.
fn in_of10(field: &Field, ipv6: bool) -> bool {
    let Field::Basic { field, value, .. } = *field else {
        return false;
    };
    match field {
        OxmField::InPort | OxmField::EthDst | OxmField::EthSrc | OxmField::EthType => true,
        OxmField::VlanVid | OxmField::VlanPcp => true,
        OxmField::SctpSrc | OxmField::SctpDst | OxmField::Ipv6Src | OxmField::Ipv6Dst => false,
        OxmField::Icmpv6Type | OxmField::Icmpv6Code => false,
        OxmField::ArpOp => value <= 0xff,
        _ => !ipv6,
    }
}

/// dl_vlan_pcp, which an untagged packet does not have.
const WILDCARDS_WITH_PORTS: [u8; 4] = [0, 0x10, 0, 0];

/// The template for [`ExactFlowMod::of10`], with zeros for the values. The wildcards are dl_vlan_pcp, tp_src and tp_dst, as
/// for a packet without ports.
#[rustfmt::skip]
const OF10_FLOW_MOD: [u8; 80] = [
    0x01, 14, 0, 80,  0, 0, 0, 0,                                       //   0 header: version, type, length, xid
    0, 0x10, 0, 0xc0,  0, 0,  0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0,      //   8 wildcards, in_port, dl_src, dl_dst
    0xff, 0xff,  0,  0,  0x08, 0x00,  0,  0,  0, 0,                     //  26 dl_vlan: none, pcp, dl_type, tos, proto
    0, 0, 0, 0,  0, 0, 0, 0,  0, 0,  0, 0,                              //  36 nw_src, nw_dst, tp_src, tp_dst
    0, 0, 0, 0, 0, 0, 0, 0,  0, 0,  0, 0,  0, 0,  0, 0,                 //  48 cookie, command, timeouts, priority
    0, 0, 0, 0,  0xff, 0xff,  0, 0,                                     //  64 buffer_id, out_port, flags
    0, 0,  0, 8,  0, 0,  0, 0,                                          //  72 output: port, max_len
];

/// The start of the template for [`ExactFlowMod::of13`], with zeros for the values.
#[rustfmt::skip]
const OF13_HEAD: [u8; 118] = [
    0x04, 14, 0, 160,  0, 0, 0, 0,                                      //   0 header: version, type, length, xid
    0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0,                    //   8 cookie, cookie_mask
    0, 0,  0, 0,  0, 0,  0, 0,  0, 0, 0, 0,                             //  24 table, command, timeouts, priority, buffer_id
    0xff, 0xff, 0xff, 0xff,  0xff, 0xff, 0xff, 0xff,  0, 0,  0, 0,      //  36 out_port, out_group, flags, pad
    0, 1,  0, 82,                                                       //  48 match: type OXM, length
    0x80, 0, (OxmField::InPort as u8) << 1, 4,    0, 0, 0, 0,           //  52
    0x80, 0, (OxmField::EthDst as u8) << 1, 6,    0, 0, 0, 0, 0, 0,     //  60
    0x80, 0, (OxmField::EthSrc as u8) << 1, 6,    0, 0, 0, 0, 0, 0,     //  70
    0x80, 0, (OxmField::EthType as u8) << 1, 2,   0x08, 0x00,           //  80
    0x80, 0, (OxmField::VlanVid as u8) << 1, 2,   0, 0,                 //  86 no tag
    0x80, 0, (OxmField::IpDscp as u8) << 1, 1,    0,                    //  92
    0x80, 0, (OxmField::IpProto as u8) << 1, 1,   0,                    //  97
    0x80, 0, (OxmField::Ipv4Src as u8) << 1, 4,   0, 0, 0, 0,           // 102
    0x80, 0, (OxmField::Ipv4Dst as u8) << 1, 4,   0, 0, 0, 0,           // 110
];

/// The end of a message with ports.
#[rustfmt::skip]
const OF13_TAIL_PORTS: [u8; 42] = [
    0x80, 0, 0, 2,  0, 0,                                               //   0 tcp_src or udp_src
    0x80, 0, 0, 2,  0, 0,                                               //   6 tcp_dst or udp_dst
    0, 0, 0, 0, 0, 0,                                                   //  12 pad of the match
    0, 4,  0, 24,  0, 0, 0, 0,                                          //  18 apply-actions
    0, 0,  0, 16,  0, 0, 0, 0,  0, 0,  0, 0, 0, 0, 0, 0,                //  26 output: port, max_len
];

/// The end of a message without ports.
#[rustfmt::skip]
const OF13_TAIL: [u8; 26] = [
    0, 0,                                                               //   0 pad of the match
    0, 4,  0, 24,  0, 0, 0, 0,                                          //   2 apply-actions
    0, 0,  0, 16,  0, 0, 0, 0,  0, 0,  0, 0, 0, 0, 0, 0,                //  10 output: port, max_len
];

/// An untagged, unfragmented IPv4 packet without options, for the straight-line writers.
#[derive(Clone, Copy)]
struct PlainIpv4<'a> {
    /// Ethernet, IPv4, and the first four bytes of the IPv4 payload.
    frame: &'a [u8; 38],
    upper: Upper,
}

/// The match fields of an IPv4 packet above IPv4.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Upper {
    /// The ports of TCP or UDP.
    Ports,
    /// ICMP's type and code, which are separate fields in 1.3.
    Icmp,
    /// No fields.
    Nothing,
}

impl Upper {
    /// Returns the fields; `None` for packets with other fields, or with a truncated upper header.
    #[inline]
    fn of(frame: &[u8]) -> Option<Self> {
        let ip = Ipv4View::new(&frame[14..]).ok()?;
        let payload = ip.payload();
        match ip.proto() {
            ip_proto::TCP => TcpView::new(payload).is_ok().then_some(Self::Ports),
            ip_proto::UDP => UdpView::new(payload).is_ok().then_some(Self::Ports),
            ip_proto::ICMPV4 => Icmpv4View::new(payload).is_ok().then_some(Self::Icmp),
            _ => None,
        }
    }
}

impl<'a> PlainIpv4<'a> {
    /// Checks only the relevant bytes; the views of [`crate::packet`] would also check the rest.
    #[inline(always)] // so that what is found decides by a jump what is written
    fn of(frame: &'a [u8]) -> Option<Self> {
        // EtherType, then version 4 and a header of five words, in one comparison.
        const IPV4_WITHOUT_OPTIONS: [u8; 4] = [0x08, 0x00, 0x45, 0];
        const ALL_BUT_TOS: [u8; 4] = [0xff, 0xff, 0xff, 0];
        // The mask of the four bytes that start with flags and fragment offset.
        const MORE_FRAGMENTS_OR_OFFSET: [u8; 4] = [0x3f, 0xff, 0, 0];
        let start = frame.first_chunk::<38>()?;
        let word = |at: usize| {
            u32::from_ne_bytes([start[at], start[at + 1], start[at + 2], start[at + 3]])
        };
        let total_len = u16::from_be_bytes([start[16], start[17]]);
        if word(12) & u32::from_ne_bytes(ALL_BUT_TOS) != u32::from_ne_bytes(IPV4_WITHOUT_OPTIONS) {
            return None;
        }
        if total_len < 20 || word(20) & u32::from_ne_bytes(MORE_FRAGMENTS_OR_OFFSET) != 0 {
            return None;
        }
        let upper = match start[23] {
            ip_proto::TCP
            | ip_proto::UDP
            | ip_proto::ICMPV4
            | ip_proto::ICMPV6
            | ip_proto::SCTP => Upper::of(frame)?,
            _ => Upper::Nothing,
        };
        Some(Self {
            frame: start,
            upper,
        })
    }

    /// Returns tp_src and tp_dst: ports, or ICMP's type and code.
    #[inline]
    fn of10_ports(&self) -> [u8; 4] {
        let [.., a, b, c, d] = *self.frame;
        if self.upper == Upper::Icmp {
            [0, a, 0, b]
        } else {
            [a, b, c, d]
        }
    }
}

/// Returns a port in 1.0: reserved ports keep their low 16 bits.
#[inline]
fn of10_port(port: PortNo) -> Option<u16> {
    (port.0 <= 0xff00 || port >= PortNo::IN_PORT).then_some(port.0 as u16)
}

/// A packet-out that sends a packet out of one port.
#[derive(Clone, Copy, Debug)]
pub struct OutputPacket<'a> {
    /// The packet that the switch has buffered, or [`BufferId::NONE`].
    pub buffer_id: BufferId,
    /// The port that received the packet.
    pub in_port: PortNo,
    /// The port to send to.
    pub port: PortNo,
    /// The packet, if the switch has not buffered it.
    pub data: &'a [u8],
}

impl OutputPacket<'_> {
    /// Appends the message to `out`.
    ///
    /// # Errors
    /// [`EncodeError`] if a port does not fit into `version` or the packet is too long; `out` is then unchanged.
    #[inline]
    pub fn write(&self, version: Version, xid: u32, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let head = match version {
            Version::Of10 => self.of10(xid),
            Version::Of13 => self.of13(xid),
        };
        match head {
            Some((head, length)) => {
                out.put(&head[..length]);
                out.put(self.data);
                Ok(())
            }
            None => self.write_general(version, xid, out),
        }
    }

    #[cold]
    fn write_general(
        &self,
        version: Version,
        xid: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let actions = [Action::output(self.port)];
        let packet_out = PacketOut {
            buffer_id: self.buffer_id,
            in_port: self.in_port,
            actions: List::from(&actions),
            data: self.data,
        };
        Message::PacketOut(packet_out).encode(version, xid, out)
    }

    /// Returns `ofp_packet_out` of 1.0 (section 5.3.6) up to the data; `None` if a port or the length does not fit.
    #[inline]
    fn of10(&self, xid: u32) -> Option<([u8; 40], usize)> {
        const LENGTH: usize = 24;
        let mut head = [0; 40];
        head[0..2].copy_from_slice(&[0x01, 13]);
        head[2..4].copy_from_slice(&u16::try_from(LENGTH + self.data.len()).ok()?.to_be_bytes());
        head[4..8].copy_from_slice(&xid.to_be_bytes());
        head[8..12].copy_from_slice(&self.buffer_id.0.to_be_bytes());
        head[12..14].copy_from_slice(&of10_port(self.in_port)?.to_be_bytes());
        head[14..16].copy_from_slice(&8_u16.to_be_bytes());
        head[18..20].copy_from_slice(&8_u16.to_be_bytes());
        head[20..22].copy_from_slice(&of10_port(self.port)?.to_be_bytes());
        Some((head, LENGTH))
    }

    /// Returns `ofp_packet_out` of 1.3 (section 7.3.7) up to the data; `None` if the length does not fit.
    #[inline]
    fn of13(&self, xid: u32) -> Option<([u8; 40], usize)> {
        const LENGTH: usize = 40;
        let mut head = [0; 40];
        head[0..2].copy_from_slice(&[0x04, 13]);
        head[2..4].copy_from_slice(&u16::try_from(LENGTH + self.data.len()).ok()?.to_be_bytes());
        head[4..8].copy_from_slice(&xid.to_be_bytes());
        head[8..12].copy_from_slice(&self.buffer_id.0.to_be_bytes());
        head[12..16].copy_from_slice(&self.in_port.0.to_be_bytes());
        head[16..18].copy_from_slice(&16_u16.to_be_bytes());
        head[26..28].copy_from_slice(&16_u16.to_be_bytes());
        head[28..32].copy_from_slice(&self.port.0.to_be_bytes());
        Some((head, LENGTH))
    }
}

#[cfg(test)]
mod tests;
