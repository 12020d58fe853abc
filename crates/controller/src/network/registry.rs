//! The registry of connected switches, as connections update it.

use super::{Entry, Network};
use crate::SwitchInfo;
use crate::events::NetworkEvent;
use crate::mailbox::{Command, Token};
use std::collections::hash_map;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use urtica_wire::{DatapathId, ErrorCode, PortStatus};

impl Network {
    /// Registers a switch. If another connection has its id, the newer one is used, and the older one is closed and returned:
    /// a switch that reconnects is more likely than two switches with one id, and its old connection may stay half open for a
    /// long time.
    pub(crate) fn register(&self, entry: Entry) -> Option<Entry> {
        let mut switches = self.write();
        let older = switches.insert(entry.joined.datapath_id, entry)?;
        self.send_down_event(&older);
        let close = Command::Close {
            token: older.token,
            reason: "a newer connection has the same datapath id",
        };
        // Fails only if that shard has ended, and the connection with it.
        let _ = self.shard(older.shard).mailbox.push(close);
        Some(older)
    }

    /// Makes shard `to` adopt a connection of shard `from`, and moves all its waiting commands to the other mailbox. Returns
    /// `false`, and changes nothing, if `to` has ended.
    pub(crate) fn hand_over(
        &self,
        token: Token,
        datapath_id: Option<DatapathId>,
        from: usize,
        to: usize,
    ) -> bool {
        let mut switches = self.write();
        let mut commands = vec![Command::Adopt];
        commands.extend(self.shard(from).mailbox.take_for(token));
        if let Err(mut commands) = self.shard(to).mailbox.push_moved(commands) {
            commands.remove(0);
            // Fails only if `from` has ended as well; then its commands are not needed.
            let _ = self.shard(from).mailbox.push_moved(commands);
            return false;
        }
        let entry = datapath_id.and_then(|id| switches.get_mut(&id));
        if let Some(entry) = entry.filter(|entry| entry.token == token) {
            entry.shard = to;
        }
        true
    }

    /// Returns the shard and the token of a switch's main connection.
    pub(crate) fn main_connection(&self, datapath_id: DatapathId) -> Option<(usize, Token)> {
        let switches = self.read();
        let entry = switches.get(&datapath_id)?;
        Some((entry.shard, entry.token))
    }

    /// Removes a switch, unless a newer connection has replaced it.
    pub(crate) fn deregister(&self, datapath_id: DatapathId, token: Token) {
        if let hash_map::Entry::Occupied(entry) = self.write().entry(datapath_id) {
            if entry.get().token == token {
                self.send_down_event(&entry.remove());
            }
        }
    }

    /// Handles the end of a shard: closes its mailbox, drops its commands, and removes the switches that the shard has not
    /// closed.
    pub(crate) fn end_shard(&self, index: usize) {
        let mut switches = self.write();
        switches.retain(|_, entry| {
            let is_served = entry.shard != index;
            if !is_served {
                self.send_down_event(entry);
            }
            is_served
        });
        drop(self.shard(index).mailbox.close());
    }

    fn send_down_event(&self, entry: &Entry) {
        if entry.is_up {
            self.shared.events.send(NetworkEvent::Down(entry.info()));
        }
    }

    /// Announces a switch. Its ports are known, and `switch_up` of its handlers has been called if our role permits changes.
    pub(crate) fn announce(&self, datapath_id: DatapathId, token: Token) {
        let mut switches = self.write();
        let entry = switches.get_mut(&datapath_id);
        if let Some(entry) = entry.filter(|entry| entry.token == token) {
            entry.is_up = true;
            self.shared.events.send(NetworkEvent::Up(entry.info()));
        }
    }

    /// Replaces the description of a switch, and sends events of changed ports.
    pub(crate) fn update_info(&self, token: Token, info: &Arc<SwitchInfo>, ports: &[PortStatus]) {
        let switches = self.read();
        let entry = switches.get(&info.datapath_id);
        let Some(entry) = entry.filter(|entry| entry.token == token) else {
            return;
        };
        let _change = self.shared.changes.lock();
        *entry.info.lock() = Arc::clone(info);
        if entry.is_up {
            for status in ports {
                let event = NetworkEvent::Port(info.clone(), *status);
                self.shared.events.send(event);
            }
        }
    }

    /// Reports that a switch has refused a message, if it has been announced.
    pub(crate) fn report_refusal(
        &self,
        token: Token,
        switch: DatapathId,
        code: ErrorCode,
        count: u64,
    ) {
        let switches = self.read();
        let entry = switches.get(&switch);
        if let Some(entry) = entry.filter(|entry| entry.token == token && entry.is_up) {
            let event = NetworkEvent::Refused(entry.info(), code, count);
            self.shared.events.send(event);
        }
    }

    /// Replaces the description of a switch at which our role has changed.
    pub(crate) fn update_role(&self, token: Token, info: &Arc<SwitchInfo>) {
        let switches = self.read();
        let entry = switches.get(&info.datapath_id);
        let Some(entry) = entry.filter(|entry| entry.token == token) else {
            return;
        };
        let _change = self.shared.changes.lock();
        let may_write = info.role.may_write();
        entry.may_write.store(may_write, Ordering::Relaxed);
        *entry.info.lock() = Arc::clone(info);
        if entry.is_up {
            self.shared
                .events
                .send(NetworkEvent::Role(Arc::clone(info)));
        }
    }
}
