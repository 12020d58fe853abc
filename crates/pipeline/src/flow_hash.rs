//! The hash by which select groups spread flows over their buckets.

use crate::Packet;
use urtica_wire::{OxmField, mix};

/// The identity of a flow, as pairs of words: addresses of all layers, tags and labels, but no fields that differ between
/// packets of one flow. Missing fields are 0. Most packets have two or four pairs that are not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowWords {
    /// The destination address below `vlan_vid`, and the source address below the Ethernet type.
    pub ethernet: [u64; 2],
    /// The transport ports with the protocol above them, and the addresses of IPv4 or ARP.
    pub ports_and_ipv4: [u64; 2],
    /// The source address of IPv6.
    pub ipv6_src: [u64; 2],
    /// The destination address of IPv6.
    pub ipv6_dst: [u64; 2],
    /// The Ethernet addresses in ARP.
    pub arp: [u64; 2],
    /// The IPv6 or MPLS label or the PBB service, and the tunnel.
    pub labels: [u64; 2],
    /// The target of neighbour discovery.
    pub nd_target: [u64; 2],
}

impl FlowWords {
    /// Returns the words of a packet.
    pub fn of(packet: &Packet) -> Self {
        Self::from_fields(|field| packet.field(field).unwrap_or(0))
    }

    /// Creates the words of a packet whose fields `field` returns; missing ones must be 0.
    pub fn from_fields(field: impl Fn(OxmField) -> u128) -> Self {
        use OxmField::*;
        // A packet has at most one of the fields at the same position.
        let any =
            |fields: [OxmField; 3]| fields.map(&field).iter().fold(0, |all, one| all | one) as u64;
        let low = |name| field(name) as u64;
        let halves = |name| {
            let value = field(name);
            [(value >> 64) as u64, value as u64]
        };
        Self {
            ethernet: [
                low(EthDst) | low(VlanVid) << 48,
                low(EthSrc) | low(EthType) << 48,
            ],
            ports_and_ipv4: [
                any([TcpSrc, UdpSrc, SctpSrc]) << 16
                    | any([TcpDst, UdpDst, SctpDst])
                    | low(IpProto) << 32,
                (low(Ipv4Src) | low(ArpSpa)) << 32 | low(Ipv4Dst) | low(ArpTpa),
            ],
            ipv6_src: halves(Ipv6Src),
            ipv6_dst: halves(Ipv6Dst),
            arp: [low(ArpSha), low(ArpTha)],
            labels: [any([Ipv6Flabel, MplsLabel, PbbIsid]), low(TunnelId)],
            nd_target: halves(Ipv6NdTarget),
        }
    }

    /// Returns a hash that is equal for all packets of a flow and in every run, and evenly distributed over flows.
    #[inline]
    pub fn hash(&self) -> u64 {
        let sum = folded(0, self.ethernet)
            .wrapping_add(folded(1, self.ports_and_ipv4))
            .wrapping_add(folded(2, self.ipv6_src))
            .wrapping_add(folded(3, self.ipv6_dst))
            .wrapping_add(folded(4, self.arp))
            .wrapping_add(folded(5, self.labels))
            .wrapping_add(folded(6, self.nd_target));
        mix(sum)
    }
}

/// Pseudo-random numbers, two for each pair of words: each is derived from the previous one.
const KEYS: [[u64; 2]; 7] = keys();

const fn keys() -> [[u64; 2]; 7] {
    let mut keys = [[0; 2]; 7];
    let (mut pair, mut key) = (0, 0);
    while pair < keys.len() {
        key = mix(key);
        keys[pair][0] = key;
        key = mix(key);
        keys[pair][1] = key;
        pair += 1;
    }
    keys
}

/// Folds the product of both words, each combined with its key, by combining its halves. The pairs are independent, so the
/// processor can overlap them. Returns 0 if both words are 0.
#[inline]
fn folded(pair: usize, words: [u64; 2]) -> u64 {
    if words == [0, 0] {
        return 0;
    }
    let [one, other] = [words[0] ^ KEYS[pair][0], words[1] ^ KEYS[pair][1]];
    let product = u128::from(one) * u128::from(other);
    (product >> 64) as u64 ^ product as u64
}
