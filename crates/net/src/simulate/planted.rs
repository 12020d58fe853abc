//! Mistakes to plant into a controller, to see that runs find them.
//!
//! **How.** Each is a [`Program`] that goes into the controller before the others: it keeps from them what they would have to
//! know, or does beside them what nobody should. So no program has a mistake built in, and any set of programs can be spoilt.

use std::fmt;
use std::str::FromStr;
use urtica_controller::{EntryOptions, Program, Stage, Switch, SwitchHandler, SwitchInfo};
use urtica_wire::{
    Action, MacAddr, Match, PacketIn, PortConfig, PortNo, PortReason, PortState, PortStatus,
};

/// A mistake to plant: give it to [`Controller::program`](urtica_controller::Controller::program) before all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// Nobody hears that a port is down. A link that is cut for good is believed in until its probes are missed, 17.5 seconds
    /// later, and hosts stay unreached for longer than the bound where the cut came late. Few seeds have such a cut.
    IgnorePortDown,
    /// What hosts send to everybody leaves by all ports, and not along the spanning tree: in loops it circulates.
    FloodEverywhere,
    /// Senders are counted, each by an entry that does no harm, and that nobody gave a time-out: it stays.
    ForgottenEntries,
}

/// The name is not that of a mistake to plant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no bug '{name}' to plant; expected one of: {}", names().join(", "))]
pub struct NoSuchBug {
    /// The name that was given.
    pub name: String,
}

impl PlantedBug {
    /// All there are.
    pub const ALL: [Self; 3] = [
        Self::IgnorePortDown,
        Self::FloodEverywhere,
        Self::ForgottenEntries,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::IgnorePortDown => "ignore-port-down",
            Self::FloodEverywhere => "flood-everywhere",
            Self::ForgottenEntries => "forgotten-entries",
        }
    }

    /// A line about it.
    pub fn about(self) -> &'static str {
        match self {
            Self::IgnorePortDown => {
                "nobody hears that a port is down: links that are cut are believed in"
            }
            Self::FloodEverywhere => {
                "what is for everybody leaves by all ports, not along the spanning tree"
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

    /// What is to be kept from services is seen before them.
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

/// Sends on what it counts to the controller, as without it, and lets all other entries go before.
fn count_sender(switch: &mut Switch, packet: &PacketIn) {
    let sender = Match::any().eth_src(packet.eth_src());
    let last = EntryOptions::PERMANENT.priority(1);
    // A switch that has no room for it has enough of them.
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
    fn names_are_read_back_and_unknown_ones_are_told_which_there_are() {
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
