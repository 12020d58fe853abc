//! Ports, written only: ` 1(eth1): addr:50:54:00:00:00:02` and further lines.

use super::outline::write_foreign;
use crate::{Port, PortConfig, PortFeatures, PortMod, PortReason, PortState, PortStatus, Version};
use std::fmt::{self, Write};

const CONFIG: [(u32, &str); 7] = [
    (PortConfig::PORT_DOWN.bits(), "PORT_DOWN"),
    (PortConfig::NO_STP.bits(), "NO_STP"),
    (PortConfig::NO_RECV.bits(), "NO_RECV"),
    (PortConfig::NO_RECV_STP.bits(), "NO_RECV_STP"),
    (PortConfig::NO_FLOOD.bits(), "NO_FLOOD"),
    (PortConfig::NO_FWD.bits(), "NO_FWD"),
    (PortConfig::NO_PACKET_IN.bits(), "NO_PACKET_IN"),
];

const STATE: [(u32, &str); 3] = [
    (PortState::LINK_DOWN.bits(), "LINK_DOWN"),
    (PortState::BLOCKED.bits(), "BLOCKED"),
    (PortState::LIVE.bits(), "LIVE"),
];

/// 1.0's spanning tree states, by the two bits that encode them.
const STP_STATES: [&str; 4] = ["STP_LISTEN", "STP_LEARN", "STP_FORWARD", "STP_BLOCK"];

const FEATURES: [(u32, &str); 16] = [
    (PortFeatures::HD_10MB.bits(), "10MB-HD"),
    (PortFeatures::FD_10MB.bits(), "10MB-FD"),
    (PortFeatures::HD_100MB.bits(), "100MB-HD"),
    (PortFeatures::FD_100MB.bits(), "100MB-FD"),
    (PortFeatures::HD_1GB.bits(), "1GB-HD"),
    (PortFeatures::FD_1GB.bits(), "1GB-FD"),
    (PortFeatures::FD_10GB.bits(), "10GB-FD"),
    (PortFeatures::FD_40GB.bits(), "40GB-FD"),
    (PortFeatures::FD_100GB.bits(), "100GB-FD"),
    (PortFeatures::FD_1TB.bits(), "1TB-FD"),
    (PortFeatures::OTHER.bits(), "OTHER"),
    (PortFeatures::COPPER.bits(), "COPPER"),
    (PortFeatures::FIBER.bits(), "FIBER"),
    (PortFeatures::AUTONEG.bits(), "AUTO_NEG"),
    (PortFeatures::PAUSE.bits(), "AUTO_PAUSE"),
    (PortFeatures::PAUSE_ASYM.bits(), "AUTO_PAUSE_ASYM"),
];

/// Writes the names of set bits with spaces between them, bits without a name as one number, and `0` for no bits.
pub(super) fn write_bits(out: &mut dyn Write, bits: u32, names: &[(u32, &str)]) -> fmt::Result {
    let mut separator = "";
    for (_, name) in names.iter().filter(|(bit, _)| bits & bit != 0) {
        write!(out, "{separator}{name}")?;
        separator = " ";
    }
    let unnamed = names.iter().fold(bits, |bits, (bit, _)| bits & !bit);
    match unnamed {
        0 if separator.is_empty() => out.write_char('0'),
        0 => Ok(()),
        unnamed => write!(out, "{separator}{unnamed:#x}"),
    }
}

/// Writes a port's description over several lines.
pub(super) fn write_port(out: &mut dyn Write, port: &Port, version: Version) -> fmt::Result {
    write!(out, " {}(", port.port_no)?;
    write_foreign(out, &port.name.to_str_lossy())?;
    write!(out, "): addr:{}", port.hw_addr)?;
    out.write_str("\n     config:     ")?;
    write_bits(out, port.config.bits(), &CONFIG)?;
    out.write_str("\n     state:      ")?;
    write_state(out, port.state, version)?;
    let features = [
        ("current:    ", port.curr),
        ("advertised: ", port.advertised),
        ("supported:  ", port.supported),
        ("peer:       ", port.peer),
    ];
    for (name, bits) in features.iter().filter(|(_, bits)| !bits.is_empty()) {
        write!(out, "\n     {name}")?;
        write_bits(out, bits.bits(), &FEATURES)?;
    }
    let [now, max] = speeds_mbps(port, version);
    write!(out, "\n     speed: {now} Mbps now, {max} Mbps max")
}

fn write_state(out: &mut dyn Write, state: PortState, version: Version) -> fmt::Result {
    let stp_bits = PortState::STP_LOW | PortState::STP_HIGH;
    let stp = ((state & stp_bits).bits() >> PortState::STP_LOW.bits().trailing_zeros()) as usize;
    if version == Version::Of13 || stp == 0 {
        return write_bits(out, state.bits(), &STATE);
    }
    let rest = state.difference(stp_bits);
    if !rest.is_empty() {
        write_bits(out, rest.bits(), &STATE)?;
        out.write_char(' ')?;
    }
    out.write_str(STP_STATES[stp])
}

/// Returns the current and highest rate, which 1.3 reports, and which are derived from the features in 1.0.
fn speeds_mbps(port: &Port, version: Version) -> [u32; 2] {
    match version {
        Version::Of10 => [port.curr, port.supported].map(fastest_mbps),
        Version::Of13 => [port.curr_speed, port.max_speed].map(|kbps| kbps / 1000),
    }
}

/// The rates of the first ten features, two of them at 10, 100 and 1000 Mb/s.
const RATES_MBPS: [u32; 10] = [
    10, 10, 100, 100, 1000, 1000, 10_000, 40_000, 100_000, 1_000_000,
];

fn fastest_mbps(features: PortFeatures) -> u32 {
    let rates = RATES_MBPS.iter().zip(&FEATURES);
    let offered = rates.filter(|(_, (bit, _))| features.bits() & bit != 0);
    offered.map(|(rate, _)| *rate).max().unwrap_or(0)
}

/// Writes a port-status message.
pub(super) fn write_port_status(
    out: &mut dyn Write,
    status: &PortStatus,
    version: Version,
) -> fmt::Result {
    match status.reason {
        PortReason::Add => out.write_str(" ADD:")?,
        PortReason::Delete => out.write_str(" DEL:")?,
        PortReason::Modify => out.write_str(" MOD:")?,
        PortReason::Other(reason) => write!(out, " reason {reason}:")?,
    }
    write_port(out, &status.port, version)
}

/// Writes a change to a port over several lines.
pub(super) fn write_port_mod(out: &mut dyn Write, port: &PortMod) -> fmt::Result {
    write!(out, " port: {}: addr:{}", port.port_no, port.hw_addr)?;
    out.write_str("\n     config: ")?;
    write_bits(out, port.config.bits(), &CONFIG)?;
    out.write_str("\n     mask:   ")?;
    write_bits(out, port.mask.bits(), &CONFIG)?;
    out.write_str("\n     advertise: ")?;
    match port.advertise.bits() {
        0 => out.write_str("UNCHANGED"),
        bits => write_bits(out, bits, &FEATURES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_have_names_or_are_one_number() {
        let write = |bits| {
            let mut text = String::new();
            write_bits(&mut text, bits, &STATE).expect("writing to a string");
            text
        };
        assert_eq!(write(0), "0");
        assert_eq!(write(5), "LINK_DOWN LIVE");
        assert_eq!(write(0x101), "LINK_DOWN 0x100");
        assert_eq!(write(0x300), "0x300");
    }
}
