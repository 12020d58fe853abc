//! The order in which programs see a message, and the tables that their entries go to.
//!
//! **Why tables.** A filter sees what comes to the controller, but a flow entry that a forwarding program adds works without
//! the controller. So where a program filters, the entries of programs after it are in a table of their own, which
//! packets reach only through an entry of the filter's table that lets them pass:
//!
//! ```text
//!            table 0                      table 1
//! packet ──► Observe and Filter ──goto──► Forward ──► port
//!              │ no entry                   │ no entry
//!              └──────► controller ◄────────┘
//! ```
//! **Switches that cannot do this.** OpenFlow 1.0 and switches with one table have no table for it. There, entries of
//! forwarding programs are refused, by the encoder or by the switch, and each packet comes to the controller, where the
//! filter sees it: slow, but safe.

/// The order in which programs see a message: by stage, and within a stage as they were added.
///
/// It also decides which tables a program's entries go to. Where no program filters, all use the same. Where one does,
/// those of [`Observe`](Self::Observe) and [`Filter`](Self::Filter) go to table 0 and those of
/// [`Forward`](Self::Forward) to table 1, which packets reach through [`Switch::let_pass`](crate::Switch::let_pass)
/// alone. Both have a table-miss entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Stage {
    /// Observes, and consumes what is its own: discovery, host tracking.
    Observe,
    /// Decides what may pass: a firewall.
    Filter,
    /// Decides where packets go.
    Forward,
}

/// Which tables the programs of a controller use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tables {
    /// No program filters: all share them.
    Shared,
    /// Programs up to the filters have table 0, those after them table 1.
    ByStage,
}

impl Tables {
    /// Those of a controller whose programs have these stages.
    pub fn of(mut stages: impl Iterator<Item = Stage>) -> Self {
        match stages.any(|stage| stage == Stage::Filter) {
            true => Self::ByStage,
            false => Self::Shared,
        }
    }

    /// How many tables have a table-miss entry.
    pub fn count(self) -> u8 {
        match self {
            Self::Shared => 1,
            Self::ByStage => 2,
        }
    }

    /// The own table of programs of a stage; `None` where all share one.
    pub fn own_table(self, stage: Stage) -> Option<u8> {
        match (self, stage) {
            (Self::Shared, _) => None,
            (Self::ByStage, Stage::Observe | Stage::Filter) => Some(0),
            (Self::ByStage, Stage::Forward) => Some(1),
        }
    }
}
