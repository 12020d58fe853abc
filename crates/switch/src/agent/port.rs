//! Port descriptions for controllers, and port mods.

use super::requests::Request;
use crate::Switch;
use crate::port_table::set_liveness;
use urtica_wire::{
    ErrorCode, Port, PortConfig, PortFeatures, PortMod, PortReason, PortState, Version,
};

/// Bits that 1.3 can configure.
const CONFIG_13: PortConfig = PortConfig::PORT_DOWN
    .union(PortConfig::NO_RECV)
    .union(PortConfig::NO_FWD)
    .union(PortConfig::NO_PACKET_IN);
/// Bits that 1.0 can configure. It also has bits for the spanning tree, which this switch does not have.
const CONFIG_10: PortConfig = CONFIG_13.union(PortConfig::NO_FLOOD);
/// The rates that only 1.3 has.
const FEATURES_13: PortFeatures = PortFeatures::FD_40GB
    .union(PortFeatures::FD_100GB)
    .union(PortFeatures::FD_1TB)
    .union(PortFeatures::OTHER);

/// Returns a port's description without the values that a version lacks.
pub(super) fn for_version(version: Version, port: &Port) -> Port {
    match version {
        Version::Of13 => Port {
            config: port.config & CONFIG_13,
            ..*port
        },
        Version::Of10 => Port {
            config: port.config & CONFIG_10,
            state: port.state & PortState::LINK_DOWN,
            curr: port.curr - FEATURES_13,
            advertised: port.advertised - FEATURES_13,
            supported: port.supported - FEATURES_13,
            peer: port.peer - FEATURES_13,
            curr_speed: 0,
            max_speed: 0,
            ..*port
        },
    }
}

impl Switch {
    /// Returns all ports' descriptions.
    pub(super) fn port_descriptions(&self, version: Version) -> Vec<Port> {
        let pipeline = self.shared.pipeline();
        let ports = pipeline.ports();
        ports.map(|port| for_version(version, port)).collect()
    }

    pub(super) fn handle_port_mod(
        &mut self,
        request: Request,
        port_mod: &PortMod,
    ) -> Result<(), ErrorCode> {
        let before = self.shared.pipeline().port(port_mod.port_no).copied();
        let before = before.ok_or(ErrorCode::PortModFailedBadPort)?;
        if before.hw_addr != port_mod.hw_addr {
            return Err(ErrorCode::PortModFailedBadHwAddr);
        }
        let mask = configurable(request.version, port_mod)?;
        if request.version == Version::Of13 {
            check_advertise(&before, port_mod.advertise)?;
        }
        let mut port = before;
        port.config = (port.config - mask) | (port_mod.config & mask);
        set_liveness(&mut port);
        if port != before {
            self.set_port(PortReason::Modify, port);
        }
        Ok(())
    }
}

/// Returns the bits to change. 1.0 has no error for bits that cannot be changed: they stay unchanged, as the port-status
/// message shows.
fn configurable(version: Version, port_mod: &PortMod) -> Result<PortConfig, ErrorCode> {
    match version {
        Version::Of10 => Ok(port_mod.mask & CONFIG_10),
        Version::Of13 if CONFIG_13.contains(port_mod.mask) => Ok(port_mod.mask),
        Version::Of13 => Err(ErrorCode::PortModFailedBadConfig),
    }
}

/// Refuses to change the advertised features, which back ends determine; zero requests no change.
fn check_advertise(port: &Port, advertise: PortFeatures) -> Result<(), ErrorCode> {
    if advertise.is_empty() || advertise == port.advertised {
        return Ok(());
    }
    Err(ErrorCode::PortModFailedBadAdvertise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use urtica_wire::{MacAddr, Message, PortNo, PortStatus};

    /// A port with every bit set can be described in both versions.
    #[test]
    fn both_versions_can_describe_every_port() {
        let port = Port {
            config: PortConfig::all(),
            state: PortState::all(),
            curr: PortFeatures::all(),
            advertised: PortFeatures::all(),
            supported: PortFeatures::all(),
            peer: PortFeatures::all(),
            curr_speed: 40_000_000,
            max_speed: 100_000_000,
            ..Port::new(PortNo(1), MacAddr::from_u64(1), "fast")
        };
        for version in Version::ALL {
            let message = Message::PortStatus(PortStatus {
                reason: PortReason::Add,
                port: for_version(version, &port),
            });
            let mut out = Vec::new();
            let written = message.encode(version, 1, &mut out);
            assert!(written.is_ok(), "{version:?}: {written:?}");
        }
    }
}
