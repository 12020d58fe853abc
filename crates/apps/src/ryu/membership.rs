//! The time from a switch's join until it leaves, for all of these programs.

use super::store::Store;
use std::sync::Arc;
use urtica_controller::Switch;
use urtica_wire::{DatapathId, EncodeError, Match, Message};

/// The membership of a handler's switch among the switches that requests can select.
pub(super) struct Membership<S> {
    store: Arc<Store<S>>,
    /// The number of the connection, while it is a member.
    connection: Option<u64>,
}

impl<S: Default> Membership<S> {
    /// Creates the membership of a switch that has not joined.
    pub fn new(store: &Arc<Store<S>>) -> Self {
        Self {
            store: Arc::clone(store),
            connection: None,
        }
    }

    /// Joins. `install` sends the switch its stored state, before any request can change it.
    pub fn join(&mut self, id: DatapathId, install: impl FnOnce(&mut S)) {
        self.connection = Some(self.store.join(id, install));
    }

    /// Leaves if this controller may no longer write to the switch.
    pub fn role_changed(&mut self, switch: &Switch) {
        if !switch.info().role.may_write() {
            self.leave(switch.datapath_id());
        }
    }

    /// Leaves, unless it has left already.
    pub fn leave(&mut self, id: DatapathId) {
        if let Some(connection) = self.connection.take() {
            self.store.leave(id, connection);
        }
    }
}

/// Replaces all entries of this program in a switch: deletes them, and sends `messages`.
///
/// # Errors
/// Like [`Switch::send`]; later messages are not sent.
pub(super) fn replace_entries(
    switch: &mut Switch,
    messages: impl IntoIterator<Item = Message<'static>>,
) -> Result<(), EncodeError> {
    switch.delete(Match::any())?;
    for message in messages {
        switch.send(&message)?;
    }
    Ok(())
}
