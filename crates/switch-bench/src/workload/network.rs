//! The network in the entries and packets of gateways and services: the numbers of its parts, and their addresses.

use urtica_wire::MacAddr;

/// The number of customer edges, with one VLAN each.
pub const EDGES: u32 = 10;

/// The number of users of each edge.
pub const USERS: u32 = 20;

/// The number of services.
pub const SERVICES: u32 = 100;

/// The number of subscribers of the mobile gateway.
pub const SUBSCRIBERS: u32 = 500;

/// The number of base stations of the mobile gateway.
pub const STATIONS: u32 = 20;

/// The UDP port that a subscriber's dedicated bearer carries; all other packets use the default bearer.
pub const BEARER_PORT: u16 = 5004;

/// 198.51.0.0: service s is 198.51.0.s.
pub const SERVICE_NET: u32 = 0xc633_0000;

/// 10.0.0.0: user u has 10.0.0.(u + 1) behind every customer edge.
pub const USER_NET: u32 = 0x0a00_0000;

/// 5.0.0.0: user u of customer edge c is 5.0.c.(u + 1) outside.
const PUBLIC_NET: u32 = 0x0500_0000;

/// 100.64.0.0: subscriber s of the mobile gateway is 100.64.0.0 + s + 1.
const SUBSCRIBER_NET: u32 = 0x6440_0000;

/// Returns a host's Ethernet address.
pub fn l2_host(index: u32) -> MacAddr {
    let [_, high, middle, low] = (0x01_0000 + index).to_be_bytes();
    MacAddr::new([2, 0, 0, high, middle, low])
}

/// Returns a user's address in the network.
pub fn public_address(edge: u32, user: u32) -> u32 {
    PUBLIC_NET + edge * 256 + user + 1
}

/// Returns a subscriber's address.
pub fn subscriber_address(subscriber: u32) -> u32 {
    SUBSCRIBER_NET + subscriber + 1
}
