//! The hash by which select groups spread flows over their buckets.

use crate::Packet;
use urtica_wire::OxmField;

/// What tells flows from each other: addresses of every layer, tags and labels. Nothing that differs between packets
/// of one flow.
const FLOW_FIELDS: [OxmField; 24] = [
    OxmField::EthDst,
    OxmField::EthSrc,
    OxmField::EthType,
    OxmField::VlanVid,
    OxmField::MplsLabel,
    OxmField::PbbIsid,
    OxmField::TunnelId,
    OxmField::IpProto,
    OxmField::Ipv4Src,
    OxmField::Ipv4Dst,
    OxmField::Ipv6Src,
    OxmField::Ipv6Dst,
    OxmField::Ipv6Flabel,
    OxmField::ArpSpa,
    OxmField::ArpTpa,
    OxmField::ArpSha,
    OxmField::ArpTha,
    OxmField::Ipv6NdTarget,
    OxmField::TcpSrc,
    OxmField::TcpDst,
    OxmField::UdpSrc,
    OxmField::UdpDst,
    OxmField::SctpSrc,
    OxmField::SctpDst,
];

/// A number that is the same for all packets of a flow, and spread evenly over flows. The same in every run.
pub(crate) fn flow_hash(packet: &Packet) -> u64 {
    FLOW_FIELDS.iter().fold(0, |hash, &field| {
        let value = packet.field(field).unwrap_or(0);
        mix(mix(hash ^ value as u64) ^ (value >> 64) as u64)
    })
}

/// A permutation of 64-bit numbers in which every bit of the input reaches every bit of the output (the finaliser of
/// splitmix64 after one step of its sequence).
pub(crate) fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_differ_in_one_bit_differ_in_about_half_of_the_hash() {
        for bit in 0..64 {
            let differing = (mix(12_345) ^ mix(12_345 ^ 1 << bit)).count_ones();
            assert!((16..=48).contains(&differing), "bit {bit}: {differing}");
        }
    }
}
