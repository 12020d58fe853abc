//! Bugs to plant into a controller, in order to verify that runs find them.
//!
//! **How.** Each bug is a [`Program`] added to the controller before the others: it hides messages from them, or acts in
//! addition to them. So no program contains a bug, and a bug can be planted into any set of programs.

mod spoilt;

use parking_lot::Mutex;
use spoilt::{Shared, Spoilt};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use urtica_controller::{Program, Stage, SwitchHandler, SwitchInfo};

/// A bug to plant: see [`PlantedBug::plant`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlantedBug {
    /// Programs are not notified that a port is down. They use a link that is cut for good until its probes are missed, 17.5
    /// seconds later. If the cut was late, hosts stay unreachable for longer than the limit. Few seeds have such a cut.
    IgnorePortDown,
    /// Broadcast and multicast frames of hosts are output to all ports instead of along the spanning tree, so they circulate in
    /// loops.
    FloodEverywhere,
    /// Senders are counted, each by a harmless entry without a time-out, which is never removed.
    ForgottenEntries,
    /// Datagrams from one subnet to another, which have a demand, are dropped without notice.
    DropReserved,
    /// Packets for an address are sent to the host that claimed it last, by an ARP reply or a neighbour advertisement.
    BelieveReplies,
    /// A host that requests many addresses is dropped for a minute, even if others have provoked it.
    BlameProvoked,
    /// All hosts together have one budget of packets that are handled per second.
    SharedBudget,
    /// All hosts share one table, in which ports have no shares. Packets to hosts for which it has no space are flooded.
    SharedTable,
}

/// The error for an unknown name of a bug.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no bug '{name}' to plant; expected one of: {}", names().join(", "))]
pub struct NoSuchBug {
    /// The unknown name.
    pub name: String,
}

impl PlantedBug {
    /// All bugs.
    pub const ALL: [Self; 8] = [
        Self::IgnorePortDown,
        Self::FloodEverywhere,
        Self::ForgottenEntries,
        Self::DropReserved,
        Self::BelieveReplies,
        Self::BlameProvoked,
        Self::SharedBudget,
        Self::SharedTable,
    ];

    /// Creates the program with this bug: pass it to [`Controller::program`](urtica_controller::Controller::program) before
    /// all others.
    pub fn plant(self) -> impl Program + use<> {
        Plant {
            bug: self,
            shared: Arc::default(),
        }
    }

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::IgnorePortDown => "ignore-port-down",
            Self::FloodEverywhere => "flood-everywhere",
            Self::ForgottenEntries => "forgotten-entries",
            Self::DropReserved => "drop-reserved",
            Self::BelieveReplies => "believe-replies",
            Self::BlameProvoked => "blame-provoked",
            Self::SharedBudget => "shared-budget",
            Self::SharedTable => "shared-table",
        }
    }

    /// Returns a description of one line.
    pub fn about(self) -> &'static str {
        match self {
            Self::IgnorePortDown => "ports that go down are not reported: cut links stay in use",
            Self::FloodEverywhere => {
                "broadcasts are output to all ports, not along the spanning tree"
            }
            Self::ForgottenEntries => "an entry for each sender, without a time-out",
            Self::DropReserved => "datagrams to another subnet are dropped without a reason",
            Self::BelieveReplies => "the last host to claim an address receives its packets",
            Self::BlameProvoked => {
                "a host that requests many addresses is dropped, even if provoked"
            }
            Self::SharedBudget => "all hosts share one budget of packets a second",
            Self::SharedTable => "all hosts share one table, in which no port has a share",
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

/// The program with a bug.
struct Plant {
    bug: PlantedBug,
    shared: Arc<Mutex<Shared>>,
}

impl Program for Plant {
    fn handler(&self, _info: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(Spoilt::new(self.bug, Arc::clone(&self.shared)))
    }

    /// Before the services, in order to hide messages from them.
    fn stage(&self) -> Stage {
        Stage::Observe
    }
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
            "there is no bug 'moths' to plant; expected one of: ignore-port-down, flood-everywhere, forgotten-entries, \
             drop-reserved, believe-replies, blame-provoked, shared-budget, shared-table"
        );
    }
}
