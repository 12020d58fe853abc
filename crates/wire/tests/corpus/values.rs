//! The values that the examples of both versions share.

use std::net::Ipv4Addr;
use urtica_wire::{
    AggregateStats, Desc, FixedName, MacAddr, Match, OxmField, Port, PortConfig, PortFeatures,
    PortNo, PortState, PortStats,
};

/// An unknown experimenter, so that its data stays opaque.
pub const EXPERIMENTER: u32 = 0x00ab_cdef;
pub const OPAQUE: &[u8] = &[1, 2, 3, 4, 5, 6, 7, 8];

/// Ethernet, IPv4, UDP, four bytes.
pub const FRAME: &[u8] = &[
    0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x08,
    0x00, // Ethernet
    0x45, 0x00, 0x00, 0x20, 0x12, 0x34, 0x40, 0x00, 0x40, 0x11, 0xab,
    0xcd, // IPv4, to the checksum
    0x0a, 0x01, 0x02, 0x03, 0x0a, 0x04, 0x05, 0x06, // its addresses
    0x04, 0xd2, 0x16, 0x2e, 0x00, 0x0c, 0x00, 0x00, // UDP
    0xca, 0xfe, 0xba, 0xbe,
];

pub const COOKIE: u64 = 0x1122_3344_5566_7788;
pub const COOKIE_MASK: u64 = 0x0f0f_0f0f_0f0f_0f0f;
pub const PRIORITY: u16 = 0x8001;
pub const IDLE_TIMEOUT_SEC: u16 = 5;
pub const HARD_TIMEOUT_SEC: u16 = 60;
pub const DURATION_SEC: u32 = 90;
pub const DURATION_NSEC: u32 = 123_456_789;
pub const PACKETS: u64 = 1001;
pub const BYTES: u64 = 64064;

/// Returns a learning switch's exact match, with fields that both versions have.
pub fn tcp_match() -> Match<'static> {
    Match::any()
        .in_port(PortNo(1))
        .eth_dst(MacAddr::new([2, 0, 0, 0, 0, 2]))
        .eth_src(MacAddr::new([2, 0, 0, 0, 0, 1]))
        .vlan_vid(100)
        .with_exact(OxmField::VlanPcp, 5_u8)
        .eth_type(0x0800)
        .with_exact(OxmField::IpDscp, 8_u8)
        .ip_proto(6)
        .ipv4_src(Ipv4Addr::new(10, 1, 2, 3))
        .ipv4_dst(Ipv4Addr::new(10, 4, 5, 6))
        .tcp_src(1234)
        .tcp_dst(80)
}

/// A port that both versions can describe.
pub fn port(port_no: PortNo, name: &str) -> Port {
    Port {
        port_no,
        hw_addr: MacAddr::new([2, 0, 0, 0, 0, 0x0a]),
        name: FixedName::truncated(name),
        config: PortConfig::PORT_DOWN | PortConfig::NO_FWD,
        state: PortState::LINK_DOWN,
        curr: PortFeatures::FD_10GB | PortFeatures::COPPER,
        advertised: PortFeatures::FD_1GB | PortFeatures::AUTONEG,
        supported: PortFeatures::HD_10MB | PortFeatures::FIBER | PortFeatures::PAUSE,
        peer: PortFeatures::FD_100MB | PortFeatures::PAUSE_ASYM,
        curr_speed: 0,
        max_speed: 0,
    }
}

pub fn desc() -> Desc<'static> {
    Desc {
        mfr_desc: const { &FixedName::truncated("Maker") }.as_ref(),
        hw_desc: const { &FixedName::truncated("Hardware") }.as_ref(),
        sw_desc: const { &FixedName::truncated("Software") }.as_ref(),
        serial_num: const { &FixedName::truncated("Serial") }.as_ref(),
        dp_desc: const { &FixedName::truncated("Datapath") }.as_ref(),
    }
}

pub fn aggregate() -> AggregateStats {
    AggregateStats {
        packet_count: PACKETS,
        byte_count: BYTES,
        flow_count: 17,
    }
}

/// The counters of a port, which count up from `first`.
pub fn port_stats(port_no: PortNo, first: u64) -> PortStats {
    PortStats {
        port_no,
        rx_packets: first,
        tx_packets: first + 1,
        rx_bytes: first + 2,
        tx_bytes: first + 3,
        rx_dropped: first + 4,
        tx_dropped: first + 5,
        rx_errors: first + 6,
        tx_errors: first + 7,
        rx_frame_err: first + 8,
        rx_over_err: first + 9,
        rx_crc_err: first + 10,
        collisions: first + 11,
        duration_sec: 0,
        duration_nsec: 0,
    }
}
