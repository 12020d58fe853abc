//! All connected switches, as seen from anywhere: handlers, background programs, the northbound.

use crate::connection::Connection;
use crate::mailbox::{Command, Mailbox, Token};
use crate::request::{ReplySender, has_reply};
use crate::{PendingReply, RequestError, ShardCounters, SwitchCounters, SwitchInfo};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use urtica_wire::{DatapathId, Message};

/// The connected switches, and the way to them.
///
/// Cheap to clone. Sending goes through the mailbox of the shard that owns the switch, never through its socket, so
/// messages of different threads do not mix. Cost: one read lock and one push.
///
/// Thread-safety: the lock of the registry is taken before that of a mailbox, never the other way round. Senders hold it
/// for reading while they push, and a switch changes shards under it, so that no message comes to a shard that has given
/// its switch away.
#[derive(Clone)]
pub struct Network(Arc<Shared>);

struct Shared {
    shards: Vec<Shard>,
    switches: RwLock<HashMap<DatapathId, Entry>>,
}

pub(crate) struct Shard {
    pub mailbox: Mailbox,
    pub counters: ShardCounters,
}

/// What the registry knows of a switch.
pub(crate) struct Entry {
    pub shard: usize,
    pub token: Token,
    pub info: Arc<SwitchInfo>,
    pub counters: Arc<SwitchCounters>,
}

impl Network {
    pub(crate) fn new(shards: usize) -> std::io::Result<Self> {
        let shard = |_| {
            Ok(Shard {
                mailbox: Mailbox::new()?,
                counters: ShardCounters::default(),
            })
        };
        let shards = (0..shards).map(shard).collect::<std::io::Result<_>>()?;
        Ok(Self(Arc::new(Shared {
            shards,
            switches: RwLock::default(),
        })))
    }

    /// The ids of the connected switches, in order.
    pub fn switches(&self) -> Vec<DatapathId> {
        let mut ids: Vec<_> = self.read().keys().copied().collect();
        ids.sort();
        ids
    }

    /// What is known of a switch, while it is connected.
    pub fn info(&self, datapath_id: DatapathId) -> Option<Arc<SwitchInfo>> {
        self.read()
            .get(&datapath_id)
            .map(|entry| entry.info.clone())
    }

    /// What is counted for a switch, while it is connected.
    pub fn counters(&self, datapath_id: DatapathId) -> Option<Arc<SwitchCounters>> {
        self.read()
            .get(&datapath_id)
            .map(|entry| entry.counters.clone())
    }

    /// What is counted for each shard.
    pub fn shard_counters(&self) -> impl Iterator<Item = &ShardCounters> {
        self.0.shards.iter().map(|shard| &shard.counters)
    }

    /// Sends a message to a switch. It leaves when the switch's shard gets to it; messages of one sender keep their
    /// order. Where the switch refuses it, the log says so; to learn of it, ask with [`Network::request`].
    ///
    /// # Errors
    /// [`RequestError::UnknownSwitch`], [`RequestError::Encode`], [`RequestError::Busy`].
    pub fn send(&self, datapath_id: DatapathId, message: &Message) -> Result<(), RequestError> {
        self.push(datapath_id, message, None)
    }

    /// Asks a switch something: a multipart request, a barrier, a role.
    ///
    /// # Errors
    /// As [`Network::send`], and [`RequestError::NoReply`].
    pub fn request(
        &self,
        datapath_id: DatapathId,
        message: &Message,
    ) -> Result<PendingReply, RequestError> {
        if !has_reply(message) {
            return Err(RequestError::NoReply);
        }
        let (sender, receiver) = oneshot::channel();
        self.push(datapath_id, message, Some(sender))?;
        Ok(PendingReply(receiver))
    }

    /// Resolves once the switch has dealt with everything that was sent to it before.
    ///
    /// # Errors
    /// As [`Network::send`].
    pub fn barrier(&self, datapath_id: DatapathId) -> Result<PendingReply, RequestError> {
        self.request(datapath_id, &Message::BarrierRequest)
    }

    fn push(
        &self,
        datapath_id: DatapathId,
        message: &Message,
        reply: Option<ReplySender>,
    ) -> Result<(), RequestError> {
        let switches = self.read();
        let entry = switches
            .get(&datapath_id)
            .ok_or(RequestError::UnknownSwitch(datapath_id))?;
        let mut bytes = Vec::new();
        message.encode(entry.info.version, 0, &mut bytes)?;
        let command = Command::Send {
            token: entry.token,
            bytes,
            reply,
        };
        self.shard(entry.shard)
            .mailbox
            .push(command)
            .map_err(|_| RequestError::Busy(datapath_id))
    }

    /// Enters a switch. Where another connection has its id, the newer wins, and the older one, which is returned, is
    /// closed: a switch that reconnects is more likely than two with one id, and its old connection may stay half open
    /// for long.
    pub(crate) fn register(&self, entry: Entry) -> Option<Entry> {
        let mut switches = self.write();
        let older = switches.insert(entry.info.datapath_id, entry)?;
        let close = Command::Close {
            token: older.token,
            reason: "a newer connection has the same datapath id",
        };
        // Refused only where that shard has ended, and the connection with it.
        let _ = self.shard(older.shard).mailbox.push(close);
        Some(older)
    }

    /// Gives a connection to another shard, with all that waits for it in the mailbox of the one that had it.
    pub(crate) fn hand_over(&self, connection: Box<Connection>, from: usize, to: usize) {
        let mut switches = self.write();
        let (token, datapath_id) = (connection.token, connection.datapath_id());
        let mut commands = vec![Command::Adopt(connection)];
        commands.extend(self.shard(from).mailbox.take_for(token));
        if let Err(commands) = self.shard(to).mailbox.push_moved(commands) {
            // That shard has ended. This one will be told to soon; until then it keeps the connection.
            let _ = self.shard(from).mailbox.push_moved(commands);
            return;
        }
        let entry = datapath_id.and_then(|id| switches.get_mut(&id));
        if let Some(entry) = entry.filter(|entry| entry.token == token) {
            entry.shard = to;
        }
    }

    /// Removes a switch, unless a newer connection has taken its place.
    pub(crate) fn deregister(&self, datapath_id: DatapathId, token: Token) {
        let mut switches = self.write();
        if switches
            .get(&datapath_id)
            .is_some_and(|entry| entry.token == token)
        {
            switches.remove(&datapath_id);
        }
    }

    /// Tells what is known of a switch now.
    pub(crate) fn update_info(&self, token: Token, info: &Arc<SwitchInfo>) {
        if let Some(entry) = self
            .write()
            .get_mut(&info.datapath_id)
            .filter(|entry| entry.token == token)
        {
            entry.info = info.clone();
        }
    }

    pub(crate) fn shard(&self, index: usize) -> &Shard {
        &self.0.shards[index]
    }

    pub(crate) fn shards(&self) -> &[Shard] {
        &self.0.shards
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, HashMap<DatapathId, Entry>> {
        self.0
            .switches
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<DatapathId, Entry>> {
        self.0
            .switches
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
