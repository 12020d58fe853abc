//! The applications that can answer in the kernel.

use crate::l3_tables::Tables;
use crate::places::Table;
use crate::services::Part;
use crate::session::LAYOUT;

/// An application that can answer in the kernel.
#[derive(Clone, Copy)]
pub(crate) enum Application {
    LearningSwitch,
    L3,
    /// The services, with tables for this number of hosts.
    Services {
        hosts: u32,
    },
}

impl Application {
    /// The applications whose maps a holder can keep.
    pub const HELD: [Self; 3] = [Self::LearningSwitch, Self::L3, Self::Services { hosts: 0 }];

    /// Returns the size of the application's part of a session, its `struct application`.
    pub fn bytes(self) -> usize {
        match self {
            Self::LearningSwitch => size_of::<Table>(),
            Self::L3 => size_of::<Tables>(),
            Self::Services { .. } => size_of::<Part>(),
        }
    }

    /// Returns the name under which a holder keeps its maps and sessions. It differs for each layout of them.
    pub fn form(self) -> String {
        let name = match self {
            Self::LearningSwitch => "l2",
            Self::L3 => "l3",
            Self::Services { .. } => "services",
        };
        format!("{name}.{LAYOUT}")
    }

    /// Returns the names of the tables that the program reads and writes, in addition to the maps of all applications.
    pub fn tables(self) -> &'static [&'static str] {
        match self {
            Self::LearningSwitch | Self::L3 => &[],
            Self::Services { .. } => &[
                "settings",
                "counts",
                "host_ports",
                "hosts",
                "heard",
                "addresses",
                "expected",
                "confirmed",
                "next_hops",
            ],
        }
    }
}
