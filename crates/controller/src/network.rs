//! All connected switches, as seen from anywhere: handlers, background programs, the northbound.

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
#[derive(Clone)]
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
    /// order.
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
        let entry = self
            .entry(datapath_id)
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

    /// Enters a switch, or its new whereabouts. Where another connection has its id, the newer wins: a switch that
    /// reconnects is more likely than two with one id, and its old connection may stay half open for long.
    pub(crate) fn register(&self, entry: Entry) -> Option<Entry> {
        let datapath_id = entry.info.datapath_id;
        let token = entry.token;
        let older = self.write().insert(datapath_id, entry);
        older.filter(|older| older.token != token)
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

    /// The shard that has a connection now, where it has joined.
    pub(crate) fn shard_of(&self, token: Token) -> Option<usize> {
        self.read()
            .values()
            .find(|entry| entry.token == token)
            .map(|entry| entry.shard)
    }

    pub(crate) fn shard(&self, index: usize) -> &Shard {
        &self.0.shards[index]
    }

    pub(crate) fn shards(&self) -> &[Shard] {
        &self.0.shards
    }

    fn entry(&self, datapath_id: DatapathId) -> Option<Entry> {
        self.read().get(&datapath_id).cloned()
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
