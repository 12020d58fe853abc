//! Frames of all kinds, complete or not: tags, fragments, options, extension headers, unusual lengths and types.

use proptest::collection::vec;
use proptest::prelude::*;

/// A frame, which may be truncated, and in which some bytes may have been changed.
pub fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let ends = prop_oneof![3 => Just(usize::MAX), 1 => 0..160_usize];
    let changes = prop_oneof![3 => Just(vec![]), 1 => vec((0..100_usize, any::<u8>()), 1..4)];
    (vec(any::<u8>(), 12), tags(), network(), changes, ends).prop_map(
        |(addresses, tags, network, changes, end)| {
            let mut frame = [addresses, tags, network].concat();
            for (at, byte) in changes {
                if let Some(place) = frame.get_mut(at) {
                    *place = byte;
                }
            }
            frame.truncate(end);
            frame
        },
    )
}

/// Zero to three VLAN tags.
fn tags() -> impl Strategy<Value = Vec<u8>> {
    let announced_by = prop_oneof![Just([0x81, 0x00]), Just([0x88, 0xa8])];
    let tag = (announced_by, any::<[u8; 2]>()).prop_map(|(of, tci)| [of, tci].concat());
    let count = prop_oneof![3 => Just(0_usize), 2 => Just(1), 1 => 2..4_usize];
    count
        .prop_flat_map(move |count| vec(tag.clone(), count))
        .prop_map(|tags| tags.concat())
}

/// The bytes after addresses and tags, from the EtherType on.
fn network() -> impl Strategy<Value = Vec<u8>> {
    let known = || prop_oneof![3 => ipv4(), 3 => ipv6(), 1 => arp()];
    let snap = known().prop_map(|packet| [&[0, 60, 0xaa, 0xaa, 3, 0, 0, 0], &packet[..]].concat());
    let mpls = vec(any::<u8>(), 0..40).prop_map(|bytes| [&[0x88, 0x47], &bytes[..]].concat());
    prop_oneof![8 => known(), 1 => snap, 1 => mpls, 1 => vec(any::<u8>(), 0..60)]
}

fn arp() -> impl Strategy<Value = Vec<u8>> {
    let op = prop_oneof![Just([0, 1]), Just([0, 2]), any::<[u8; 2]>()];
    (op, vec(any::<u8>(), 20..40))
        .prop_map(|(op, rest)| [&[0x08, 0x06, 0, 1, 8, 0, 6, 4], &op[..], &rest].concat())
}

fn ipv4() -> impl Strategy<Value = Vec<u8>> {
    let words = prop_oneof![5 => Just(5_u8), 1 => 4..16_u8];
    let total_len = prop_oneof![3 => Just(1000_u16), 1 => 0..80_u16];
    let fragment =
        prop_oneof![4 => Just(0_u16), 1 => Just(0x4000), 1 => Just(0x2000), 1 => any::<u16>()];
    let header = (words, any::<u8>(), total_len, fragment, any::<[u8; 8]>());
    (header, upper()).prop_map(
        |((words, tos, total_len, fragment, addresses), (proto, upper))| {
            let mut packet = vec![0x08, 0x00, 0x40 | words, tos];
            packet.extend(total_len.to_be_bytes());
            packet.extend([0, 0]);
            packet.extend(fragment.to_be_bytes());
            packet.extend([64, proto, 0, 0]);
            packet.extend(addresses);
            packet.resize(packet.len() + 4 * usize::from(words.saturating_sub(5)), 1);
            packet.extend(upper);
            packet
        },
    )
}

fn ipv6() -> impl Strategy<Value = Vec<u8>> {
    let payload_len = prop_oneof![3 => Just(1000_u16), 1 => 0..80_u16];
    let count = prop_oneof![3 => Just(0_usize), 1 => 1..4_usize, 1 => Just(17)];
    let extensions = count.prop_flat_map(|count| vec(extension(), count));
    let header = (any::<[u8; 4]>(), payload_len, any::<[u8; 32]>());
    (header, extensions, upper()).prop_map(
        |((first, payload_len, addresses), extensions, (proto, upper))| {
            let mut packet = vec![
                0x86,
                0xdd,
                0x60 | first[0] & 0xf,
                first[1],
                first[2],
                first[3],
            ];
            packet.extend(payload_len.to_be_bytes());
            let kinds = extensions.iter().map(|(kind, _)| *kind);
            let mut next_headers = kinds.chain([proto]);
            packet.extend(next_headers.next());
            packet.push(64);
            packet.extend(addresses);
            for ((_, header), next_header) in extensions.iter().zip(next_headers) {
                packet.push(next_header);
                packet.extend(header);
            }
            packet.extend(upper);
            packet
        },
    )
}

/// The kind of an extension header, and its bytes except the first.
fn extension() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let options = prop_oneof![Just(0_u8), Just(43), Just(60)]
        .prop_map(|kind| (kind, vec![0, 1, 4, 0, 0, 0, 0]));
    let offset = prop_oneof![Just([0, 1]), Just([0, 0]), any::<[u8; 2]>()];
    let fragment = offset.prop_map(|[high, low]| (44, vec![0, high, low, 0, 0, 0, 1]));
    let authentication = Just((51, [&[1][..], &[0; 10]].concat()));
    prop_oneof![2 => options, 1 => fragment, 1 => authentication]
}

/// A protocol over IP, and some bytes that start like its header.
fn upper() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let proto = prop_oneof![
        3 => Just(6_u8),
        2 => Just(17),
        2 => Just(1),
        2 => Just(58),
        1 => Just(132),
        1 => any::<u8>(),
    ];
    (proto, vec(any::<u8>(), 0..30)).prop_map(|(proto, mut bytes)| {
        if let (6, Some(offset)) = (proto, bytes.get_mut(12)) {
            *offset = 0x50 | *offset & 0xf;
        }
        if let (17, Some(length)) = (proto, bytes.get_mut(4..6)) {
            length.copy_from_slice(&[0, 20]);
        }
        (proto, bytes)
    })
}
