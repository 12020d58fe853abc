//! Bugs to plant into a controller, to verify that runs find them.
//!
//! **How.** Each is a [`Program`] added to the controller before the others: it hides messages from them, or acts in
//! addition to them. So no program contains a bug, and a bug can be planted into any set of programs.

use std::fmt;
use std::str::FromStr;
use urtica_controller::{EntryOptions, Program, Stage, Switch, SwitchHandler, SwitchInfo};
use urtica_wire::{
    Action, MacAddr, Match, PacketIn, PortConfig, PortNo, PortReason, PortState, PortStatus,
};

/// A bug to plant: pass it to [`Controller::program`](urtica_controller::Controller::program) before all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlantedBug {
    /// Programs are not notified that a port is down. They use a lastingly cut link until its probes are missed, 17.5
    /// seconds later, and hosts stay unreachable for longer than the limit if the cut was late. Few seeds have such a cut.
    IgnorePortDown,
    /// Broadcast and multicast frames of hosts are output to all ports, instead of along the spanning tree: they circulate
    /// in loops.
    FloodEverywhere,
    /// Senders are counted, each by a harmless entry without a time-out, which stays.
    ForgottenEntries,
}

/// The error for an unknown name of a bug.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no bug '{name}' to plant; expected one of: {}", names().join(", "))]
pub struct NoSuchBug {
    /// The given name.
    pub name: String,
}

impl PlantedBug {
    /// All bugs.
    pub const ALL: [Self; 3] = [
        Self::IgnorePortDown,
        Self::FloodEverywhere,
        Self::ForgottenEntries,
    ];

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::IgnorePortDown => "ignore-port-down",
            Self::FloodEverywhere => "flood-everywhere",
            Self::ForgottenEntries => "forgotten-entries",
        }
    }

    /// Returns a line of description.
    pub fn about(self) -> &'static str {
        match self {
            Self::IgnorePortDown => "ports that go down are not reported: cut links stay in use",
            Self::FloodEverywhere => {
                "broadcasts are output to all ports, not along the spanning tree"
            }
            Self::ForgottenEntries => "an entry for each sender, without a time-out",
        }
    }
}

fn names() -> Vec<&'static str> {
    PlantedBug::ALL.map(PlantedBug::name).to_vec()
}

impl fmt::Display for PlantedBug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PlantedBug {
    type Err = NoSuchBug;

    fn from_str(name: &str) -> Result<Self, NoSuchBug> {
        let found = Self::ALL.into_iter().find(|bug| bug.name() == name);
        found.ok_or_else(|| NoSuchBug {
            name: name.to_owned(),
        })
    }
}

impl Program for PlantedBug {
    fn handler(&self, _info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(*self)
    }

    /// Before the services, to hide messages from them.
    fn stage(&self) -> Stage {
        Stage::Observe
    }
}

impl SwitchHandler for PlantedBug {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        match self {
            Self::FloodEverywhere if packet.eth_dst() == MacAddr::BROADCAST => {
                switch.forward(packet, PortNo::ALL);
                switch.consume();
            }
            Self::ForgottenEntries => count_sender(switch, packet),
            _ => {}
        }
    }

    fn port_status(&mut self, switch: &mut Switch, status: &PortStatus) {
        if *self == Self::IgnorePortDown && is_down(status) {
            switch.consume();
        }
    }
}

/// Installs an entry that counts a sender's packets and sends them to the controller, as without it; all other entries have
/// precedence.
fn count_sender(switch: &mut Switch, packet: &PacketIn) {
    let sender = Match::any().eth_src(packet.eth_src());
    let last = EntryOptions::PERMANENT.priority(1);
    // If the table is full, it has enough of them.
    let _ = switch.install(sender, &[Action::controller()], last);
}

fn is_down(status: &PortStatus) -> bool {
    status.reason == PortReason::Delete
        || status.port.config.contains(PortConfig::PORT_DOWN)
        || status.port.state.contains(PortState::LINK_DOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_names_and_lists_them_for_unknown_ones() {
        for bug in PlantedBug::ALL {
            assert_eq!(bug.to_string().parse(), Ok(bug));
            assert!(!bug.about().is_empty());
        }
        assert_eq!(
            "moths".parse::<PlantedBug>().unwrap_err().to_string(),
            "there is no bug 'moths' to plant; expected one of: ignore-port-down, flood-everywhere, forgotten-entries"
        );
    }
}
