//! Frames of all kinds whose flow mods have different forms.

/// The length of each frame in bytes.
pub const LEN: usize = 96;

/// The destination of all packets.
pub const DESTINATION: [u8; 6] = [0x80, 0, 0, 0, 0, 1];

const BROADCAST: [u8; 6] = [0xff; 6];

/// Returns the address of a host, which counts up from the front, like cbench's.
pub fn source(number: u32) -> [u8; 6] {
    let [low, mid, high, _] = number.to_le_bytes();
    [0, low, mid, high, 0, 1]
}

/// Returns a broadcast, from which the program learns a host.
pub fn from(source: [u8; 6]) -> Vec<u8> {
    [&BROADCAST[..], &source, &[0x08, 0x00]].concat()
}

/// Returns the name and a frame of each kind.
pub fn kinds() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("cbench's IPv4", frame(&ip(0xff, &[]))),
        ("TCP", frame(&ip(6, &TCP))),
        ("UDP", frame(&ip(17, &UDP))),
        ("ICMP", frame(&ip(1, &[8, 0, 0, 0, 0, 0, 0, 0]))),
        ("SCTP", frame(&ip(132, &SCTP))),
        ("fragment", frame(&fragment())),
        ("IPv4 with options", frame(&options())),
        ("ARP", frame(&ARP)),
        ("IPv6, UDP", frame(&ipv6(17, &UDP))),
        ("IPv6, TCP", frame(&ipv6(6, &TCP))),
        ("IPv6, ICMPv6", frame(&ipv6(58, &[128, 0, 0, 0]))),
        ("IPv6, no next header", frame(&ipv6(59, &[]))),
        (
            "IPv6, hop-by-hop, UDP",
            frame(&ipv6(0, &hop_by_hop(17, &UDP))),
        ),
        ("VLAN, UDP", frame(&tagged(0x8100, &ip(17, &UDP)))),
        (
            "VLAN, ICMP",
            frame(&tagged(0x8100, &ip(1, &[8, 0, 0, 0, 0, 0, 0, 0]))),
        ),
        ("VLAN, ARP", frame(&tagged(0x8100, &ARP))),
        ("VLAN, IPv6, UDP", frame(&tagged(0x8100, &ipv6(17, &UDP)))),
        (
            "two VLAN tags, UDP",
            frame(&tagged(0x88a8, &tagged(0x8100, &ip(17, &UDP)))),
        ),
        ("MPLS", frame(&[0x88, 0x47, 0, 1, 0x01, 64])),
        ("an unknown EtherType", frame(&[0x88, 0xb5])),
        ("802.3 with SNAP, UDP", frame(&snap(&ip(17, &UDP)))),
    ]
}

const TCP: [u8; 20] = [
    0xc0, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0,
];
const UDP: [u8; 8] = [0xc0, 0, 0, 53, 0, 8, 0, 0];
const SCTP: [u8; 12] = [0xc0, 0, 0, 53, 0, 0, 0, 1, 0, 0, 0, 0];

#[rustfmt::skip]
const ARP: [u8; 30] = [
    0x08, 0x06,  0, 1,  8, 0,  6, 4,  0, 2,
    0, 0, 0, 0, 0, 1,  192, 168, 0, 40,  0x80, 0, 0, 0, 0, 1,  192, 168, 1, 40,
];

/// Returns a frame with these bytes after its addresses, EtherType first.
fn frame(from_eth_type: &[u8]) -> Vec<u8> {
    let mut frame = [&DESTINATION[..], &source(0), from_eth_type].concat();
    frame.resize(LEN, 0);
    frame
}

fn tagged(announced_by: u16, from_eth_type: &[u8]) -> Vec<u8> {
    [&announced_by.to_be_bytes()[..], &[0x60, 5], from_eth_type].concat()
}

fn snap(from_eth_type: &[u8]) -> Vec<u8> {
    [&[0, 60, 0xaa, 0xaa, 3, 0, 0, 0], from_eth_type].concat()
}

fn ip(proto: u8, payload: &[u8]) -> Vec<u8> {
    let len = 20 + payload.len() as u8;
    #[rustfmt::skip]
    let header = [
        0x08, 0x00,  0x45, 0x2a, 0, len,  0, 0, 0, 0,  64, proto, 0, 0,  192, 168, 0, 40,  192, 168, 1, 40,
    ];
    [&header[..], payload].concat()
}

/// Returns a later fragment of a UDP datagram.
fn fragment() -> Vec<u8> {
    let mut packet = ip(17, &UDP);
    packet[9] = 1;
    packet
}

/// Returns UDP after four IPv4 options without effect.
fn options() -> Vec<u8> {
    let mut packet = ip(17, &[]);
    packet[2] = 0x46;
    packet[5] = 32;
    [&packet[..], &[1; 4], &UDP].concat()
}

fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x86, 0xdd, 0x62, 0xa1, 0x23, 0x45];
    packet.extend([0, payload.len() as u8, next_header, 64]);
    for last in [1, 2] {
        packet.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(payload);
    packet
}

fn hop_by_hop(next_header: u8, payload: &[u8]) -> Vec<u8> {
    [&[next_header, 0, 1, 4, 0, 0, 0, 0], payload].concat()
}
