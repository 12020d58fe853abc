//! Switches that miss messages, because they do not keep up or have refused some.
//!
//! **What.** Handlers and holders of the flows' lock cannot wait for a switch. If one is
//! [`Busy`](urtica_controller::RequestError::Busy), or refuses a message, it is noted here, and a background program compares
//! its entries with the expected ones: as soon as it accepts more, or a while after a refusal. Unsent messages need no memory.
//!
//! Thread-safety: may be used from any thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use urtica_controller::RequestError;
use urtica_state::Snapshot;
use urtica_wire::DatapathId;

/// The list of switches that miss messages. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Late(Arc<Snapshot<BTreeMap<DatapathId, Reason>>>);

/// The reason why a switch misses messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The switch does not keep up.
    Busy,
    /// The switch has refused a message, and may do so again.
    Refused,
}

impl Default for Late {
    fn default() -> Self {
        Self(Arc::new(Snapshot::new(BTreeMap::new())))
    }
}

impl Late {
    /// Notes the outcome of a message. A switch that has disconnected is sent all entries when it joins again.
    pub fn note(&self, switch: DatapathId, sent: Result<(), RequestError>) {
        match sent {
            Ok(()) => {}
            Err(RequestError::Busy(_)) => self.insert(switch, Reason::Busy),
            Err(error) => {
                urtica_log::debug!(about: switch, dp_id = %switch, %error, "cannot send an entry")
            }
        }
    }

    /// Notes that a switch has refused a message.
    pub fn note_refusal(&self, switch: DatapathId) {
        self.insert(switch, Reason::Refused);
    }

    fn insert(&self, switch: DatapathId, reason: Reason) {
        if !self.0.load().contains_key(&switch) {
            self.0.update(|late| {
                let mut late = late.clone();
                late.insert(switch, reason);
                late
            });
        }
    }

    /// Removes a switch, before the caller starts to send it all messages again.
    pub fn remove(&self, switch: DatapathId) {
        self.0.update(|late| {
            let mut late = late.clone();
            late.remove(&switch);
            late
        });
    }

    /// Returns the reason why a switch misses messages, if it does.
    pub fn reason(&self, switch: DatapathId) -> Option<Reason> {
        self.0.load().get(&switch).copied()
    }

    /// Returns the current list.
    pub fn load(&self) -> Arc<BTreeMap<DatapathId, Reason>> {
        self.0.load()
    }

    /// Waits until the version of the list is not `seen`, and returns it.
    pub async fn changed(&self, seen: u64) -> u64 {
        self.0.changed(seen).await
    }
}
