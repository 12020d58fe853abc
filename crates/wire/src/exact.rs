//! Straight-line writers for the two messages that answer packet-ins.
//!
//! A learning controller sends one of these per packet-in, so their cost is the controller's. Each builds the whole
//! message in an array on the stack and appends it once; no list is walked and nothing is allocated. The general
//! encoder ([`Message::encode`]) is the judge: tests hold every message written here against it, byte for byte.

use crate::packet::Headers;
use crate::{
    Action, BufferId, EncodeError, ExactMatch, Field, FlowMod, FlowModFlags, Instruction, List,
    MacAddr, Match, Message, OxmField, PacketOut, PortNo, VLAN_PRESENT, Version, Write,
};
use std::net::IpAddr;

const ETH_TYPE_IPV4: [u8; 2] = [0x08, 0x00];
const IP_PROTO_TCP: u8 = 6;
const IP_PROTO_UDP: u8 = 17;

/// An add of an entry for packets like this one, which sends them out of one port.
#[derive(Clone, Copy, Debug)]
pub struct ExactFlowMod<'a> {
    /// Which packets.
    pub match_: ExactMatch<'a>,
    /// Where they go.
    pub port: PortNo,
    /// The packet that the switch keeps, to be sent on at once.
    pub buffer_id: BufferId,
    /// The entry's cookie.
    pub cookie: u64,
    /// Seconds without a packet after which the entry goes; 0 for never.
    pub idle_timeout: u16,
    /// Seconds after which the entry goes in any case; 0 for never.
    pub hard_timeout: u16,
    /// Higher numbers match first.
    pub priority: u16,
    /// Options.
    pub flags: FlowModFlags,
}

impl ExactFlowMod<'_> {
    /// Appends the message to `out`.
    ///
    /// Untagged, unfragmented IPv4 with TCP or UDP is written straight; all else by the general encoder.
    ///
    /// # Errors
    /// [`EncodeError`] where a port or flag does not fit into `version`; `out` is then as it was.
    #[inline]
    pub fn write(&self, version: Version, xid: u32, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match (PlainIpv4::of(self.match_.frame), version) {
            (Some(packet), Version::Of10) if self.fits_of10() => out.put(&self.of10(xid, packet)),
            (Some(packet), Version::Of13) if !self.flags.contains(FlowModFlags::EMERG) => {
                out.put(&self.of13(xid, packet))
            }
            _ => return self.write_general(version, xid, out),
        }
        Ok(())
    }

    /// Whether ports fit into 16 bits and flags have the same bits in both versions.
    #[inline]
    fn fits_of10(&self) -> bool {
        const SAME_BITS: FlowModFlags =
            FlowModFlags::SEND_FLOW_REM.union(FlowModFlags::CHECK_OVERLAP);
        of10_port(self.port).is_some()
            && of10_port(self.match_.in_port).is_some()
            && SAME_BITS.contains(self.flags)
    }

    #[cold]
    fn write_general(
        &self,
        version: Version,
        xid: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let actions = [Action::output(self.port)];
        let instructions = [Instruction::apply(&actions)];
        let flow_mod = FlowMod {
            cookie: self.cookie,
            idle_timeout: self.idle_timeout,
            hard_timeout: self.hard_timeout,
            priority: self.priority,
            buffer_id: self.buffer_id,
            flags: self.flags,
            match_: Match::from(self.match_.fields_in(version)),
            instructions: List::from(&instructions),
            ..FlowMod::default()
        };
        Message::FlowMod(flow_mod).encode(version, xid, out)
    }

    /// `ofp_flow_mod` of 1.0 (section 5.3.3) with one output action: 80 bytes.
    #[inline]
    fn of10(&self, xid: u32, packet: PlainIpv4) -> [u8; 80] {
        let frame = packet.frame;
        let mut message = [0; 80];
        message[0..4].copy_from_slice(&[0x01, 14, 0, 80]);
        message[4..8].copy_from_slice(&xid.to_be_bytes());
        // Wildcards: dl_vlan_pcp alone, which an untagged packet does not have.
        message[8..12].copy_from_slice(&0x0010_0000_u32.to_be_bytes());
        message[12..14].copy_from_slice(&(self.match_.in_port.0 as u16).to_be_bytes());
        message[14..20].copy_from_slice(&frame[6..12]);
        message[20..26].copy_from_slice(&frame[0..6]);
        message[26..28].copy_from_slice(&[0xff, 0xff]);
        message[30..32].copy_from_slice(&ETH_TYPE_IPV4);
        message[32] = frame[15] & 0xfc;
        message[33] = frame[23];
        message[36..44].copy_from_slice(&frame[26..34]);
        message[44..48].copy_from_slice(&frame[34..38]);
        message[48..56].copy_from_slice(&self.cookie.to_be_bytes());
        message[58..60].copy_from_slice(&self.idle_timeout.to_be_bytes());
        message[60..62].copy_from_slice(&self.hard_timeout.to_be_bytes());
        message[62..64].copy_from_slice(&self.priority.to_be_bytes());
        message[64..68].copy_from_slice(&self.buffer_id.0.to_be_bytes());
        message[68..70].copy_from_slice(&[0xff, 0xff]);
        message[70..72].copy_from_slice(&self.flags.bits().to_be_bytes());
        message[72..76].copy_from_slice(&[0, 0, 0, 8]);
        message[76..78].copy_from_slice(&(self.port.0 as u16).to_be_bytes());
        message
    }

    /// `ofp_flow_mod` of 1.3 (section 7.3.4.1) with one apply-actions instruction of one output: 160 bytes.
    #[inline]
    fn of13(&self, xid: u32, packet: PlainIpv4) -> [u8; 160] {
        let frame = packet.frame;
        let mut message = OF13_TEMPLATE;
        message[4..8].copy_from_slice(&xid.to_be_bytes());
        message[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        message[26..28].copy_from_slice(&self.idle_timeout.to_be_bytes());
        message[28..30].copy_from_slice(&self.hard_timeout.to_be_bytes());
        message[30..32].copy_from_slice(&self.priority.to_be_bytes());
        message[32..36].copy_from_slice(&self.buffer_id.0.to_be_bytes());
        message[44..46].copy_from_slice(&self.flags.bits().to_be_bytes());
        message[56..60].copy_from_slice(&self.match_.in_port.0.to_be_bytes());
        message[64..70].copy_from_slice(&frame[0..6]);
        message[74..80].copy_from_slice(&frame[6..12]);
        message[96] = frame[15] >> 2;
        message[101] = frame[23];
        message[106..110].copy_from_slice(&frame[26..30]);
        message[114..118].copy_from_slice(&frame[30..34]);
        let tp_src = if frame[23] == IP_PROTO_TCP {
            OxmField::TcpSrc
        } else {
            OxmField::UdpSrc
        } as u8;
        message[120] = tp_src << 1;
        message[122..124].copy_from_slice(&frame[34..36]);
        message[126] = (tp_src + 1) << 1;
        message[128..130].copy_from_slice(&frame[36..38]);
        message[148..152].copy_from_slice(&self.port.0.to_be_bytes());
        message
    }
}

impl<'a> ExactMatch<'a> {
    /// The packet's fields, in the order of their numbers, in which each comes after its prerequisites.
    ///
    /// What the packet-in did not carry is left out, and so are ECN bits, which change within a flow. An untagged
    /// packet has `vlan_vid` 0, which is a match on there being no tag.
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

    /// The packet's fields that `version` can match: 1.0 knows neither IPv6 nor SCTP.
    pub fn fields_in(&self, version: Version) -> Vec<Field<'a>> {
        let mut fields = self.fields();
        if version == Version::Of10 {
            let ipv6 = fields.contains(&Field::exact(OxmField::EthType, 0x86dd));
            fields.retain(|field| field.oxm_field().is_some_and(|field| in_of10(field, ipv6)));
        }
        fields
    }
}

/// The two fields of the layer above IP, by its protocol.
fn upper_layer_fields(ip_proto: u8) -> Option<(OxmField, OxmField)> {
    match ip_proto {
        1 => Some((OxmField::Icmpv4Type, OxmField::Icmpv4Code)),
        IP_PROTO_TCP => Some((OxmField::TcpSrc, OxmField::TcpDst)),
        IP_PROTO_UDP => Some((OxmField::UdpSrc, OxmField::UdpDst)),
        58 => Some((OxmField::Icmpv6Type, OxmField::Icmpv6Code)),
        132 => Some((OxmField::SctpSrc, OxmField::SctpDst)),
        _ => None,
    }
}

/// Whether 1.0 matches the field; of IPv6 packets it sees the Ethernet header alone.
fn in_of10(field: OxmField, ipv6: bool) -> bool {
    match field {
        OxmField::InPort | OxmField::EthDst | OxmField::EthSrc | OxmField::EthType => true,
        OxmField::VlanVid | OxmField::VlanPcp => true,
        OxmField::SctpSrc | OxmField::SctpDst | OxmField::Ipv6Src | OxmField::Ipv6Dst => false,
        OxmField::Icmpv6Type | OxmField::Icmpv6Code => false,
        _ => !ipv6,
    }
}

/// What is the same in every message of [`ExactFlowMod::of13`]; zeros where a value is filled in.
#[rustfmt::skip]
const OF13_TEMPLATE: [u8; 160] = [
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
    0x80, 0, 0, 2,                                0, 0,                 // 118 tcp_src or udp_src
    0x80, 0, 0, 2,                                0, 0,                 // 124 tcp_dst or udp_dst
    0, 0, 0, 0, 0, 0,                                                   // 130 pad of the match
    0, 4,  0, 24,  0, 0, 0, 0,                                          // 136 apply-actions
    0, 0,  0, 16,  0, 0, 0, 0,  0, 0,  0, 0, 0, 0, 0, 0,                // 144 output: port, max_len
];

/// An untagged, unfragmented IPv4 packet without options that carries TCP or UDP: what the straight-line writers take.
#[derive(Clone, Copy)]
struct PlainIpv4<'a> {
    /// Ethernet, IPv4, and both ports.
    frame: &'a [u8; 38],
}

impl<'a> PlainIpv4<'a> {
    #[inline]
    fn of(frame: &'a [u8]) -> Option<Self> {
        let frame = frame.first_chunk::<38>()?;
        let ipv4 = [frame[12], frame[13], frame[14]] == [0x08, 0x00, 0x45];
        let fragment = (frame[20] & 0x3f) | frame[21];
        let plain = ipv4 && fragment == 0 && matches!(frame[23], IP_PROTO_TCP | IP_PROTO_UDP);
        plain.then_some(Self { frame })
    }
}

/// A port of 1.0: reserved ports keep their low 16 bits.
#[inline]
fn of10_port(port: PortNo) -> Option<u16> {
    (port.0 <= 0xff00 || port >= PortNo::IN_PORT).then_some(port.0 as u16)
}

/// A packet-out that sends a packet out of one port.
#[derive(Clone, Copy, Debug)]
pub struct OutputPacket<'a> {
    /// The packet that the switch keeps, or [`BufferId::NONE`].
    pub buffer_id: BufferId,
    /// The port that the packet came in by.
    pub in_port: PortNo,
    /// Where it goes.
    pub port: PortNo,
    /// The packet, where the switch does not keep it.
    pub data: &'a [u8],
}

impl OutputPacket<'_> {
    /// Appends the message to `out`.
    ///
    /// # Errors
    /// [`EncodeError`] where a port does not fit into `version` or the packet is too long; `out` is then as it was.
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

    /// `ofp_packet_out` of 1.0 (section 5.3.6) up to the data; `None` where a port or the length does not fit.
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

    /// `ofp_packet_out` of 1.3 (section 7.3.7) up to the data; `None` where the length does not fit.
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
