//! Switches that could not be told something, since they do not keep up with what they are sent.
//!
//! **What.** Handlers and whoever holds the lock of the flows cannot wait for a switch. So what is
//! [`Busy`](urtica_controller::RequestError::Busy) is noted here, and a background program compares the switch with what
//! it should have as soon as it can take more. That needs no memory of what was not sent.
//!
//! Thread-safety: may be used from any thread.

use std::collections::BTreeSet;
use std::sync::Arc;
use urtica_controller::RequestError;
use urtica_state::Snapshot;
use urtica_wire::DatapathId;

/// The switches that have not been told all. A clone is the same list.
#[derive(Clone, Debug)]
pub(super) struct Late(Arc<Snapshot<BTreeSet<DatapathId>>>);

impl Default for Late {
    fn default() -> Self {
        Self(Arc::new(Snapshot::new(BTreeSet::new())))
    }
}

impl Late {
    /// Notes what became of a message. A switch that has left is told all when it joins again.
    pub fn note(&self, switch: DatapathId, sent: Result<(), RequestError>) {
        match sent {
            Ok(()) => {}
            Err(RequestError::Busy(_)) => self.insert(switch),
            Err(error) => {
                urtica_log::debug!(about: switch, dp_id = %switch, %error, "an entry was not sent")
            }
        }
    }

    fn insert(&self, switch: DatapathId) {
        if !self.0.load().contains(&switch) {
            self.0
                .update(|late| late.iter().copied().chain([switch]).collect());
        }
    }

    /// A switch is told all from now on.
    pub fn remove(&self, switch: DatapathId) {
        self.0
            .update(|late| late.iter().copied().filter(|at| *at != switch).collect());
    }

    /// All of them.
    pub fn load(&self) -> Arc<BTreeSet<DatapathId>> {
        self.0.load()
    }

    /// Waits until the list is another than that of version `seen`, and returns its version.
    pub async fn changed(&self, seen: u64) -> u64 {
        self.0.changed(seen).await
    }
}
