//! Removed flow entries.

use crate::FlowEntry;
use std::sync::Arc;
use std::time::Duration;
use urtica_wire::{FlowModFlags, FlowRemoved, FlowRemovedReason};

/// A removed flow entry.
#[derive(Clone, Debug)]
pub struct RemovedEntry {
    /// The entry, with its counters.
    pub entry: Arc<FlowEntry>,
    /// Why it was removed.
    pub reason: FlowRemovedReason,
}

impl RemovedEntry {
    /// Converts it to a flow-removed message.
    pub fn to_wire(&self, now: Duration) -> FlowRemoved<'static> {
        self.entry.to_removed(self.reason, now)
    }
}

/// Appends the removed entries whose flags request a notification.
pub(crate) fn announce(
    gone: impl IntoIterator<Item = RemovedEntry>,
    removed: &mut Vec<RemovedEntry>,
) {
    let asks = |gone: &RemovedEntry| gone.entry.flags.contains(FlowModFlags::SEND_FLOW_REM);
    removed.extend(gone.into_iter().filter(asks));
}
