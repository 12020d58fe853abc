//! A flow: the packets between two hosts.

use urtica_wire::packet::Headers;
use urtica_wire::{MacAddr, Match, OxmField, PacketIn, VLAN_PRESENT};

/// The packets from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flow {
    /// The VLAN id of the outermost tag, which entries match: 0 in a priority tag.
    pub(super) tag: Option<u16>,
    pub src: MacAddr,
    pub dst: MacAddr,
}

impl Flow {
    pub(super) fn of(packet: &PacketIn) -> Self {
        Self {
            tag: Headers::parse(packet.data).vlan.map(|tag| tag.vid),
            src: packet.eth_src(),
            dst: packet.eth_dst(),
        }
    }

    /// Returns the flow of one of our entries.
    pub fn of_entry(match_: &Match) -> Option<Self> {
        let value = |field| match_.get(field).map(|(value, _)| value as u64);
        let vlan_vid = value(OxmField::VlanVid)? as u16;
        Some(Self {
            tag: (vlan_vid & VLAN_PRESENT != 0).then_some(vlan_vid & !VLAN_PRESENT),
            src: MacAddr::from_u64(value(OxmField::EthSrc)?),
            dst: MacAddr::from_u64(value(OxmField::EthDst)?),
        })
    }

    pub fn match_(&self) -> Match<'static> {
        let vlan_vid = self.tag.map_or(0, |vid| vid | VLAN_PRESENT);
        Match::any()
            .eth_src(self.src)
            .eth_dst(self.dst)
            .with_exact(OxmField::VlanVid, vlan_vid)
    }

    /// Returns the VLAN of the hosts. Packets with a priority tag are in the VLAN of untagged ones.
    pub fn vlan(&self) -> Option<u16> {
        self.tag.filter(|&vid| vid != 0)
    }

    /// Returns the hash by which flows spread over paths. [`NextHops::path`] mixes it.
    pub fn hash(&self) -> u64 {
        let vlan = u64::from(self.tag.unwrap_or(0));
        self.src.to_u64().rotate_left(16) ^ self.dst.to_u64() ^ vlan << 48
    }

    /// Returns the flow in the reverse direction.
    pub(super) fn reversed(&self) -> Self {
        Self {
            src: self.dst,
            dst: self.src,
            ..*self
        }
    }

    pub(super) fn has(&self, vlan: Option<u16>, host: MacAddr) -> bool {
        self.vlan() == vlan && (self.src == host || self.dst == host)
    }
}
