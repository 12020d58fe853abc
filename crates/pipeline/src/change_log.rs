//! A log of changes to entries, groups and meters, for a journal.

use crate::{FlowEntry, Group, Meter};
use parking_lot::Mutex;
use std::sync::Arc;

/// A change of one entry, group or meter.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StateChange {
    /// An entry was added, or replaced the one with the same table, priority and match.
    Flow(Arc<FlowEntry>),
    /// An entry was removed, for any reason.
    FlowRemoved(Arc<FlowEntry>),
    /// A group was added or replaced; `None` if it was removed.
    Group(u32, Option<Arc<Group>>),
    /// A meter was added or replaced; `None` if it was removed.
    Meter(u32, Option<Arc<Meter>>),
}

/// The changes since the last call of `take`, shared by the tables and their pipeline.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangeLog(Option<Arc<Mutex<Vec<StateChange>>>>);

impl ChangeLog {
    /// Creates a log that records changes.
    pub fn started() -> Self {
        Self(Some(Arc::default()))
    }

    /// Returns the changes since the last call.
    pub fn take(&self) -> Vec<StateChange> {
        let log = self.0.as_ref();
        log.map(|log| std::mem::take(&mut *log.lock()))
            .unwrap_or_default()
    }

    /// Appends a change, if the log records changes.
    pub fn note(&self, change: impl FnOnce() -> StateChange) {
        if let Some(log) = &self.0 {
            log.lock().push(change());
        }
    }
}
