//! Writers for any kind of frame.
//!
//! The headers are parsed once, each field is written at its position, and missing fields are omitted. This needs more time
//! than the writers in [`super`], which know the form of the whole message, but still a small part of the general encoder's.

use super::layers::{Layers, Network, Upper};
use super::{ExactFlowMod, OF10_FLOW_MOD, append};
use crate::of10::MATCH_SIZE;
use crate::of10::matching::{
    OFPFW_DL_VLAN_PCP, OFPFW_NW_DST_MASK, OFPFW_NW_PROTO, OFPFW_NW_SRC_MASK, OFPFW_NW_TOS,
    OFPFW_TP_DST, OFPFW_TP_SRC, VLAN_VID_MASK,
};
use crate::{OxmField, VLAN_PRESENT, Version};

/// The offset of the priority in a VLAN tag, in bits.
const PCP_SHIFT: u32 = 13;

impl ExactFlowMod<'_> {
    /// Appends the message to `out` if its frame extends beyond the Ethernet header and VLAN tags, and
    /// [`ExactFlowMod::write_straight`] supports its ports and flags. Returns whether it was appended.
    #[inline(never)] // out of the way of frames that are written straight
    pub(super) fn write_any_frame(&self, version: Version, xid: u32, out: &mut Vec<u8>) -> bool {
        match version {
            Version::Of10 if self.fits_of10() => self.any_frame_of10(xid, out),
            Version::Of13 if self.fits_of13() => self.any_frame_of13(xid, out),
            _ => false,
        }
    }

    #[inline(always)]
    fn any_frame_of10(&self, xid: u32, out: &mut Vec<u8>) -> bool {
        let Some(layers) = Layers::of(self.match_.frame) else {
            return false;
        };
        let message = append(out, &OF10_FLOW_MOD);
        self.fill_of10(xid, layers.ethernet, message);
        let match_ = message[8..].first_chunk_mut().expect("it is within");
        fill_of10_match(&layers, match_);
        true
    }

    #[inline(always)]
    fn any_frame_of13(&self, xid: u32, out: &mut Vec<u8>) -> bool {
        let Some(layers) = Layers::of(self.match_.frame) else {
            return false;
        };
        let start = out.len();
        let message = append(out, &OF13_LONGEST);
        self.fill_of13(xid, layers.ethernet, message);
        let mut writer = Writer {
            bytes: &mut *message,
            at: AFTER_VLAN_VID,
        };
        writer.put_layers(&layers);
        let match_len = writer.at - MATCH_AT;
        // The padding is already zero.
        writer.at = writer.at.next_multiple_of(8);
        let output = writer.put(&OF13_OUTPUT);
        output[12..16].copy_from_slice(&self.port.0.to_be_bytes());
        let len = writer.at;
        message[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        message[MATCH_AT + 2..MATCH_AT + 4].copy_from_slice(&(match_len as u16).to_be_bytes());
        out.truncate(start + len);
        true
    }
}

/// Fills in all fields of an `ofp_match` of zeros, except port and addresses.
#[inline(always)]
fn fill_of10_match(layers: &Layers, match_: &mut [u8; MATCH_SIZE]) {
    const PORTS: u32 = OFPFW_TP_SRC | OFPFW_TP_DST;
    const ADDRESSES: u32 = OFPFW_NW_SRC_MASK | OFPFW_NW_DST_MASK;
    let mut wildcards = OFPFW_DL_VLAN_PCP;
    if let Some(tci) = layers.vlan_tci {
        wildcards = 0;
        match_[18..20].copy_from_slice(&(tci & VLAN_VID_MASK).to_be_bytes());
        match_[20] = (tci >> PCP_SHIFT) as u8;
    }
    match_[22..24].copy_from_slice(&layers.eth_type.to_be_bytes());
    match &layers.network {
        Network::Ipv4(ip, upper) => {
            match_[24] = ip.dscp() << 2;
            match_[25] = ip.proto();
            match_[28..32].copy_from_slice(&ip.src().octets());
            match_[32..36].copy_from_slice(&ip.dst().octets());
            match *upper {
                Upper::Ports(OxmField::SctpSrc, ..) | Upper::Other => wildcards |= PORTS,
                Upper::Ports(_, src, dst) => {
                    match_[36..38].copy_from_slice(&src.to_be_bytes());
                    match_[38..40].copy_from_slice(&dst.to_be_bytes());
                }
                Upper::Icmp(_, icmp_type, code) => {
                    match_[36..40].copy_from_slice(&[0, icmp_type, 0, code]);
                }
            }
        }
        Network::Arp(arp) => {
            wildcards |= OFPFW_NW_TOS | PORTS;
            match u8::try_from(arp.op()) {
                Ok(op) => match_[25] = op,
                // 1.0 has eight bits for it, so a larger value is omitted.
                Err(_) => wildcards |= OFPFW_NW_PROTO,
            }
            match_[28..32].copy_from_slice(&arp.spa().octets());
            match_[32..36].copy_from_slice(&arp.tpa().octets());
        }
        // 1.0 matches only the Ethernet header of an IPv6 packet.
        Network::Ipv6(..) | Network::Other => {
            wildcards |= OFPFW_NW_TOS | OFPFW_NW_PROTO | ADDRESSES | PORTS;
        }
    }
    match_[0..4].copy_from_slice(&wildcards.to_be_bytes());
}

/// A writer of consecutive TLVs of 1.3 into zeros.
struct Writer<'o> {
    bytes: &'o mut [u8; LONGEST],
    at: usize,
}

impl Writer<'_> {
    /// Writes a template, and returns the copy to be filled in.
    #[inline(always)]
    fn put<const N: usize>(&mut self, template: &[u8; N]) -> &mut [u8; N] {
        let place = self.bytes[self.at..].first_chunk_mut();
        let place = place.expect("there is room for all fields that a frame can have");
        *place = *template;
        self.at += N;
        place
    }

    /// Writes the fields from `vlan_pcp` on, and fills in the values of earlier fields, which are already in place.
    #[inline(always)]
    fn put_layers(&mut self, layers: &Layers) {
        self.bytes[ETH_TYPE_AT..ETH_TYPE_AT + 2].copy_from_slice(&layers.eth_type.to_be_bytes());
        if let Some(tci) = layers.vlan_tci {
            let vid = tci & VLAN_VID_MASK | VLAN_PRESENT;
            self.bytes[AFTER_VLAN_VID - 2..AFTER_VLAN_VID].copy_from_slice(&vid.to_be_bytes());
            self.put(&VLAN_PCP)[4] = (tci >> PCP_SHIFT) as u8;
        }
        match &layers.network {
            Network::Ipv4(ip, upper) => {
                self.put(&IP_DSCP)[4] = ip.dscp();
                self.put(&IP_PROTO)[4] = ip.proto();
                let addresses = self.put(&IPV4_ADDRESSES);
                addresses[4..8].copy_from_slice(&ip.src().octets());
                addresses[12..16].copy_from_slice(&ip.dst().octets());
                self.put_upper(*upper);
            }
            Network::Ipv6(ip, proto, upper) => {
                self.put(&IP_DSCP)[4] = ip.dscp();
                if let Some(proto) = *proto {
                    self.put(&IP_PROTO)[4] = proto;
                }
                let addresses = self.put(&IPV6_ADDRESSES);
                addresses[4..20].copy_from_slice(&ip.src().octets());
                addresses[24..40].copy_from_slice(&ip.dst().octets());
                self.put_upper(*upper);
            }
            Network::Arp(arp) => {
                let fields = self.put(&ARP);
                fields[4..6].copy_from_slice(&arp.op().to_be_bytes());
                fields[10..14].copy_from_slice(&arp.spa().octets());
                fields[18..22].copy_from_slice(&arp.tpa().octets());
            }
            Network::Other => {}
        }
    }

    #[inline(always)]
    fn put_upper(&mut self, upper: Upper) {
        match upper {
            Upper::Ports(field, src, dst) => {
                let ports = self.put(&PORTS);
                ports[2] = (field as u8) << 1;
                ports[4..6].copy_from_slice(&src.to_be_bytes());
                ports[8] = (field as u8 + 1) << 1;
                ports[10..12].copy_from_slice(&dst.to_be_bytes());
            }
            Upper::Icmp(field, icmp_type, code) => {
                let fields = self.put(&ICMP);
                fields[2] = (field as u8) << 1;
                fields[4] = icmp_type;
                fields[7] = (field as u8 + 1) << 1;
                fields[9] = code;
            }
            Upper::Other => {}
        }
    }
}

/// The size of a message with all fields that one frame can have, for IPv6 with a VLAN tag and ports, in bytes.
const LONGEST: usize = 184;

const MATCH_AT: usize = 48;

/// The offset of `eth_type`'s value.
const ETH_TYPE_AT: usize = 84;

/// The end of the TLV of `vlan_vid`, the last one that every match has.
const AFTER_VLAN_VID: usize = 92;

/// The common start of every message, and zeros.
const OF13_LONGEST: [u8; LONGEST] = {
    let mut message = [0; LONGEST];
    let mut at = 0;
    while at < AFTER_VLAN_VID {
        message[at] = super::OF13_HEAD[at];
        at += 1;
    }
    message
};

/// The common end of every message: apply-actions with one output action.
#[rustfmt::skip]
const OF13_OUTPUT: [u8; 24] = [
    0, 4,  0, 24,  0, 0, 0, 0,
    0, 0,  0, 16,  0, 0, 0, 0,  0, 0,  0, 0, 0, 0, 0, 0,
];

const VLAN_PCP: [u8; 5] = [0x80, 0, (OxmField::VlanPcp as u8) << 1, 1, 0];
const IP_DSCP: [u8; 5] = [0x80, 0, (OxmField::IpDscp as u8) << 1, 1, 0];
const IP_PROTO: [u8; 5] = [0x80, 0, (OxmField::IpProto as u8) << 1, 1, 0];

#[rustfmt::skip]
const IPV4_ADDRESSES: [u8; 16] = [
    0x80, 0, (OxmField::Ipv4Src as u8) << 1, 4,   0, 0, 0, 0,
    0x80, 0, (OxmField::Ipv4Dst as u8) << 1, 4,   0, 0, 0, 0,
];

#[rustfmt::skip]
const IPV6_ADDRESSES: [u8; 40] = [
    0x80, 0, (OxmField::Ipv6Src as u8) << 1, 16,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0x80, 0, (OxmField::Ipv6Dst as u8) << 1, 16,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

#[rustfmt::skip]
const ARP: [u8; 22] = [
    0x80, 0, (OxmField::ArpOp as u8) << 1, 2,     0, 0,
    0x80, 0, (OxmField::ArpSpa as u8) << 1, 4,    0, 0, 0, 0,
    0x80, 0, (OxmField::ArpTpa as u8) << 1, 4,    0, 0, 0, 0,
];

/// The TLVs of `tcp_src` and `tcp_dst`, or of the corresponding fields, with zeros for the values.
const PORTS: [u8; 12] = [0x80, 0, 0, 2, 0, 0, 0x80, 0, 0, 2, 0, 0];

/// The TLVs of `icmpv4_type` and `icmpv4_code`, or of `icmpv6_type` and `icmpv6_code`, with zeros for the values.
const ICMP: [u8; 10] = [0x80, 0, 0, 1, 0, 0x80, 0, 0, 1, 0];
