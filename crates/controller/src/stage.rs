//! The order in which programs see a message, and the tables of their entries.
//!
//! **Why tables.** A filter sees packets that are sent to the controller, but a forwarding program's flow entry forwards
//! packets without the controller. So if a program filters, the entries of programs after it are in a separate table, which
//! packets reach only through an entry of the filter's table that lets them pass:
//!
//! ```text
//!            table 0                      table 1
//! packet ──► Observe and Filter ──goto──► Forward ──► port
//!              │ no entry                   │ no entry
//!              └──────► controller ◄────────┘
//! ```
//! **Switches without such tables.** OpenFlow 1.0 and switches with one table do not support this. There, the encoder or the
//! switch refuses entries of forwarding programs, and each packet is sent to the controller, where the filter sees it: slow,
//! but safe.

/// The order in which programs see a message: by stage, and within a stage in the order in which they were added.
///
/// It also determines the tables of a program's entries. If no program filters, all use one table. Otherwise the entries of
/// [`Observe`](Self::Observe) and [`Filter`](Self::Filter) are in table 0 and those of [`Forward`](Self::Forward) in table
/// 1, which packets reach only through [`Switch::let_pass`](crate::Switch::let_pass). Both have a table-miss entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Stage {
    /// Observes, and consumes messages for itself: discovery, host tracking.
    Observe,
    /// Determines which packets may pass: a firewall.
    Filter,
    /// Forwards packets.
    Forward,
}

/// The tables that the programs of a controller use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tables {
    /// No program filters, and all share table 0.
    Shared,
    /// Programs up to the filters have table 0, programs after them table 1.
    ByStage,
}

impl Tables {
    /// Returns the tables of a controller whose programs have these stages.
    pub fn of(mut stages: impl Iterator<Item = Stage>) -> Self {
        match stages.any(|stage| stage == Stage::Filter) {
            true => Self::ByStage,
            false => Self::Shared,
        }
    }

    /// Returns the number of tables that have a table-miss entry.
    pub fn count(self) -> u8 {
        match self {
            Self::Shared => 1,
            Self::ByStage => 2,
        }
    }

    /// Returns the table of a stage's programs; `None` if all share one.
    pub fn own_table(self, stage: Stage) -> Option<u8> {
        match (self, stage) {
            (Self::Shared, _) => None,
            (Self::ByStage, Stage::Observe | Stage::Filter) => Some(0),
            (Self::ByStage, Stage::Forward) => Some(1),
        }
    }
}
