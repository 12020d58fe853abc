//! The registry of connected switches, for handlers, background programs, and other code of the process.

mod registry;
mod sending;

use crate::backlog::Backlog;
use crate::broadcast::{Broadcast, Events};
use crate::events::NetworkEvent;
use crate::flooding::FloodPorts;
use crate::kernel_half::KernelHalfTotals;
use crate::mailbox::{Command, Mailbox, Token};
use crate::panic_log::PanicLog;
use crate::permanent::PermanentEntries;
use crate::request::{Asker, DEADLINE, ReplySender, has_reply};
use crate::role::{RoleRequest, WantedRoles};
use crate::stage::Tables;
use crate::unsent::Unsent;
use crate::xid::Origin;
use crate::{
    BusyTimes, PacketInTimes, PendingReply, ProgramId, ProgramPanic, RequestError, ShardCounters,
    Stage, SwitchCounters, SwitchInfo, WaitingBytes,
};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use urtica_state::Snapshot;
use urtica_wire::{DatapathId, Message, PortNo};

/// The connected switches: provides information about them, and sends to them from any thread.
///
/// Cheap to clone. A message is sent through the mailbox of the shard that owns the switch, never directly through its
/// socket, so messages of different threads are not mixed. Cost: one read lock and one push.
///
/// **Meaning of `Ok(())`.** The message will be written to the switch's connection, unless that closes first:
/// [`NetworkEvent::Down`] reports it. At most 4 MiB are queued for a switch, and the messages sent together with them. If
/// more wait, senders get [`RequestError::Busy`] at once. To send more, wait with [`Network::ready`] or
/// [`Network::when_ready`].
///
/// **Thread-safety.** The registry's lock precedes a mailbox's in the lock order. Senders hold it for reading while they
/// push, and a switch changes shards under the write lock, so that no message reaches a shard that has handed over its
/// switch. Events are sent under the lock, so that their order is that of the changes: events of switches that connect and
/// disconnect under the write lock; events of ports, which may be frequent, under the read lock and another lock that follows
/// it in the order.
///
/// **Tables.** If a program filters, flow mods apply to the table of the sender's [`Stage`]: that of the program whose
/// [`start`](crate::Program::start) received this network, and [`Stage::Forward`] for all other senders, which can select
/// another with [`Network::for_stage`].
// Its methods for programs and for connections are in separate files.
#[derive(Clone)]
pub struct Network {
    shared: Arc<NetworkState>,
    stage: Stage,
    /// The sender, which is part of the xid of each message.
    origin: Origin,
    /// The time in which switches must reply.
    deadline: Duration,
    /// Keeps messages instead of sending them, for a preview.
    unsent: Option<Arc<Unsent>>,
}

struct NetworkState {
    shards: Vec<Shard>,
    switches: RwLock<HashMap<DatapathId, Entry>>,
    /// Held while a switch's ports change and the event is sent.
    changes: Mutex<()>,
    events: Arc<Broadcast<NetworkEvent>>,
    panics: Arc<PanicLog>,
    /// Locked alone.
    roles: Arc<WantedRoles>,
    tables: Tables,
    /// The durations of packet-ins in each program. Locked alone.
    times: Mutex<Vec<Arc<PacketInTimes>>>,
    /// The service that chooses the ports for flooded packets, if any, and its program.
    flood_ports: Snapshot<Option<(Origin, Arc<dyn FloodPorts>)>>,
    kernel_halves: Arc<KernelHalfTotals>,
    /// Whether a service chooses ports: cheaper to read than `flood_ports`, which costs an atomic addition.
    has_flood_ports: AtomicBool,
}

pub(crate) struct Shard {
    pub mailbox: Mailbox,
    pub counters: ShardCounters,
    pub busy_times: BusyTimes,
}

/// The registry's data about a switch.
pub(crate) struct Entry {
    pub shard: usize,
    pub token: Token,
    /// The switch's description when it joined.
    pub joined: Arc<SwitchInfo>,
    /// The current description.
    pub info: Mutex<Arc<SwitchInfo>>,
    pub counters: Arc<SwitchCounters>,
    pub backlog: Arc<Backlog>,
    /// The programs' permanent entries, if the switch speaks 1.0. Locked while the registry is, or alone.
    pub permanent: Arc<Mutex<PermanentEntries>>,
    /// Whether its ports are known.
    pub is_up: bool,
    /// Whether our role permits changing the switch.
    pub may_write: AtomicBool,
    /// Whether a raw program gets its frames.
    pub is_raw: bool,
}

impl Entry {
    fn info(&self) -> Arc<SwitchInfo> {
        Arc::clone(&self.info.lock())
    }
}

impl Network {
    pub(crate) fn new(shards: usize, tables: Tables) -> std::io::Result<Self> {
        let shard = |_| {
            Ok(Shard {
                mailbox: Mailbox::new()?,
                counters: ShardCounters::default(),
                busy_times: BusyTimes::default(),
            })
        };
        let shards = (0..shards).map(shard).collect::<std::io::Result<_>>()?;
        let events = Arc::new(Broadcast::new(NetworkEvent::Missed));
        let shared = NetworkState {
            shards,
            switches: RwLock::default(),
            changes: Mutex::default(),
            panics: Arc::new(PanicLog::new(Arc::clone(&events))),
            events,
            roles: Arc::default(),
            tables,
            times: Mutex::default(),
            flood_ports: Snapshot::new(None),
            kernel_halves: Arc::default(),
            has_flood_ports: AtomicBool::new(false),
        };
        Ok(Self {
            shared: Arc::new(shared),
            stage: Stage::Forward,
            origin: Origin::SESSION,
            deadline: DEADLINE,
            unsent: None,
        })
    }

    /// Returns this network for entries of this stage, whose programs may have their own table: see [`Stage`].
    pub fn for_stage(&self, stage: Stage) -> Self {
        Self {
            stage,
            ..self.clone()
        }
    }

    /// Returns this network for the program with this index, to which errors are reported.
    pub(crate) fn for_program(&self, index: usize) -> Self {
        Self {
            origin: Origin::program(index),
            ..self.clone()
        }
    }

    /// Returns this network for a program that is only previewed.
    pub(crate) fn for_trial(&self, unsent: &Arc<Unsent>) -> Self {
        Self {
            unsent: Some(Arc::clone(unsent)),
            ..self.clone()
        }
    }

    /// Returns this network with another deadline for replies; the default is 60 s. It counts from the time when the request
    /// is handed to the switch's connection, where it queues behind earlier output. The request ends with
    /// [`RequestError::Timeout`] within a second after the deadline.
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self {
            deadline,
            ..self.clone()
        }
    }

    /// Returns the ids of the connected switches, in ascending order.
    pub fn switches(&self) -> Vec<DatapathId> {
        let mut ids: Vec<_> = self.read().keys().copied().collect();
        ids.sort();
        ids
    }

    /// Returns the description of a switch, while it is connected.
    pub fn info(&self, datapath_id: DatapathId) -> Option<Arc<SwitchInfo>> {
        self.read().get(&datapath_id).map(Entry::info)
    }

    /// Returns the counters of a switch, while it is connected.
    pub fn counters(&self, datapath_id: DatapathId) -> Option<Arc<SwitchCounters>> {
        self.read()
            .get(&datapath_id)
            .map(|entry| entry.counters.clone())
    }

    /// Returns the counters of each shard.
    pub fn shard_counters(&self) -> impl Iterator<Item = &ShardCounters> {
        self.shared.shards.iter().map(|shard| &shard.counters)
    }

    /// Returns the number of switches that have a kernel half, and the memory that it needs.
    pub fn kernel_half_totals(&self) -> &Arc<KernelHalfTotals> {
        &self.shared.kernel_halves
    }

    /// Returns the busy times of each shard.
    pub fn busy_times(&self) -> impl Iterator<Item = &BusyTimes> {
        self.shared.shards.iter().map(|shard| &shard.busy_times)
    }

    /// Returns the durations of packet-ins in each running program, in the order in which programs see messages, if the
    /// controller [times](crate::Controller::time_packet_ins) them. A program that replaces another starts at zero.
    pub fn packet_in_times(&self) -> Vec<Arc<PacketInTimes>> {
        self.shared.times.lock().clone()
    }

    /// Returns the last 64 panics of programs, oldest first.
    pub fn panics(&self) -> Vec<Arc<ProgramPanic>> {
        self.shared.panics.last()
    }

    pub(crate) fn panic_log(&self) -> &Arc<PanicLog> {
        &self.shared.panics
    }

    /// Sets the times of the running programs.
    pub(crate) fn show_times(&self, times: Vec<Arc<PacketInTimes>>) {
        *self.shared.times.lock() = times;
    }

    /// Returns the number of commands that wait for each shard: messages from outside of handlers, connections to adopt, and
    /// similar.
    pub fn mailbox_lengths(&self) -> impl Iterator<Item = usize> {
        self.shared.shards.iter().map(|shard| shard.mailbox.len())
    }

    /// Returns the bytes that waited on a switch's connection up to a quarter of a second ago, while it is connected.
    pub fn waiting_bytes(&self, datapath_id: DatapathId) -> Option<WaitingBytes> {
        self.read()
            .get(&datapath_id)
            .map(|entry| entry.backlog.waiting())
    }

    /// Returns the number of bytes from outside of handlers that wait to be written to a switch, while it is connected: from
    /// 4 MiB on senders get [`RequestError::Busy`].
    pub fn queued_bytes(&self, datapath_id: DatapathId) -> Option<usize> {
        self.read()
            .get(&datapath_id)
            .map(|entry| entry.backlog.bytes())
    }

    /// Subscribes to events of switches, for a background program. It starts with an [`Up`](NetworkEvent::Up) for each
    /// switch that is up, in the order of their ids.
    pub fn events(&self) -> Events<NetworkEvent> {
        // The locks prevent events, so that none is received twice or missed.
        let switches = self.read();
        let _unchanged = self.shared.changes.lock();
        let up = switches.values().filter(|entry| entry.is_up);
        let mut up: Vec<_> = up.map(Entry::info).collect();
        up.sort_by_key(|info| info.datapath_id);
        let before: VecDeque<_> = up.into_iter().map(NetworkEvent::Up).collect();
        self.shared.events.subscribe_after(before)
    }

    /// Returns the program that this network belongs to, which owns the entries installed through it.
    pub fn program(&self) -> ProgramId {
        self.origin.into()
    }

    /// Sends messages consecutively, followed by a barrier request. Resolves once the switch has processed all of them: to
    /// its barrier reply, or to [`RequestError::Refused`] with the first error that it sent about one of them.
    ///
    /// All have one xid, so that an error about any of them is routed back. None may be a request with a reply.
    ///
    /// # Errors
    /// Like [`Network::send`]; on an error nothing is sent.
    pub fn confirm(
        &self,
        datapath_id: DatapathId,
        messages: &[Message],
    ) -> Result<PendingReply, RequestError> {
        let (sender, receiver) = oneshot::channel();
        let mut messages = messages.to_vec();
        messages.push(Message::BarrierRequest);
        self.push(datapath_id, &messages, Some(self.asker(sender)))?;
        Ok(PendingReply(receiver))
    }

    /// Sends a request, such as a multipart or role request, and returns its reply as a future.
    ///
    /// # Errors
    /// Like [`Network::send`], and [`RequestError::NoReply`].
    pub fn request(
        &self,
        datapath_id: DatapathId,
        message: &Message,
    ) -> Result<PendingReply, RequestError> {
        if !has_reply(message) {
            return Err(RequestError::NoReply);
        }
        let (sender, receiver) = oneshot::channel();
        let message = std::slice::from_ref(message);
        self.push(datapath_id, message, Some(self.asker(sender)))?;
        Ok(PendingReply(receiver))
    }

    fn asker(&self, sender: ReplySender) -> Asker {
        Asker {
            sender,
            deadline: self.deadline,
        }
    }

    /// Resolves once the switch has processed all messages sent to it earlier.
    ///
    /// # Errors
    /// Like [`Network::send`].
    pub fn barrier(&self, datapath_id: DatapathId) -> Result<PendingReply, RequestError> {
        self.request(datapath_id, &Message::BarrierRequest)
    }

    /// Requests a role at a switch, now and whenever it connects. Resolves to its reply, once it has granted the role.
    ///
    /// Until then the role does not change. While it is [`Role::Secondary`](crate::Role::Secondary), messages that would
    /// change the switch are an error ([`RequestError::Secondary`]), and handlers' messages of this kind are not sent. When
    /// another role follows, handlers' [`switch_up`](crate::SwitchHandler::switch_up) is called, as when a switch connects.
    /// [`NetworkEvent::Role`] reports each change.
    ///
    /// A request without a generation is repeated if another controller has used a newer one since; a request with a stale
    /// generation ends with OFPRRFC_STALE. OpenFlow 1.0 has no roles: there Nicira's extension is used, which has no
    /// generations.
    ///
    /// ```
    /// # use urtica_controller::{Network, RequestError, Role};
    /// # use urtica_wire::DatapathId;
    /// async fn take_over(network: &Network, id: DatapathId) -> Result<(), RequestError> {
    ///     network.set_role(id, Role::Primary)?.await.map(drop)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`RequestError::UnknownSwitch`], although the role will be requested once the switch connects, and
    /// [`RequestError::InTransaction`]. The reply is [`RequestError::Refused`] if the switch does not grant the role,
    /// [`RequestError::WrongReply`] if it grants another one, [`RequestError::Timeout`] if it does not answer,
    /// [`RequestError::Busy`] if too many role requests wait.
    pub fn set_role(
        &self,
        datapath_id: DatapathId,
        role: impl Into<RoleRequest>,
    ) -> Result<PendingReply, RequestError> {
        if urtica_state::in_transaction() {
            return Err(RequestError::InTransaction);
        }
        let request = role.into();
        self.shared.roles.set(datapath_id, request);
        let switches = self.read();
        let entry = switches
            .get(&datapath_id)
            .ok_or(RequestError::UnknownSwitch(datapath_id))?;
        Ok(self.ask_for_role(entry, request))
    }

    /// Requests a role at all switches, including switches that connect later: see [`Network::set_role`]. Returns the reply
    /// of each connected switch, in the order of their ids.
    ///
    /// # Errors
    /// [`RequestError::InTransaction`]; then nothing is requested.
    pub fn set_role_of_all(
        &self,
        role: impl Into<RoleRequest>,
    ) -> Result<Vec<(DatapathId, PendingReply)>, RequestError> {
        if urtica_state::in_transaction() {
            return Err(RequestError::InTransaction);
        }
        let request = role.into();
        self.shared.roles.set_all(request);
        let switches = self.read();
        let mut replies: Vec<_> = switches
            .iter()
            .map(|(id, entry)| (*id, self.ask_for_role(entry, request)))
            .collect();
        replies.sort_by_key(|(id, _)| *id);
        Ok(replies)
    }

    /// Requests a role; the reply is [`RequestError::Disconnected`] if the switch's shard has ended.
    fn ask_for_role(&self, entry: &Entry, request: RoleRequest) -> PendingReply {
        let (sender, receiver) = oneshot::channel();
        let command = Command::AskForRole {
            token: entry.token,
            request,
            asker: self.asker(sender),
        };
        let _ = self.shard(entry.shard).mailbox.push(command);
        PendingReply(receiver)
    }

    /// Returns the roles requested while the controller runs.
    pub(crate) fn wanted_roles(&self) -> &Arc<WantedRoles> {
        &self.shared.roles
    }

    /// Waits until a switch accepts more: returns at once if less than 4 MiB wait for it, otherwise when less than half of
    /// that waits. Another sender may have filled the queue again: see [`Network::when_ready`].
    ///
    /// Not for handlers, which must not wait; a handler with much output for another switch should use a [background
    /// program](crate::Background).
    ///
    /// # Errors
    /// [`RequestError::UnknownSwitch`], and [`RequestError::Disconnected`] if the switch disconnects during the wait. Earlier
    /// messages to it may then be lost, and must be sent again once it has reconnected.
    pub async fn ready(&self, datapath_id: DatapathId) -> Result<(), RequestError> {
        let entry = |switches: &HashMap<_, Entry>| {
            let entry = switches.get(&datapath_id)?;
            Some(Arc::clone(&entry.backlog))
        };
        let backlog = entry(&self.read()).ok_or(RequestError::UnknownSwitch(datapath_id))?;
        match backlog.ready().await {
            true => Ok(()),
            false => Err(RequestError::Disconnected),
        }
    }

    /// Calls `send`, which may be any of the calls above, again whenever the switch is [`Network::ready`], until it no longer
    /// returns [`RequestError::Busy`]: for sending more than a switch can process at once.
    ///
    /// ```
    /// # use urtica_controller::{EntryOptions, Network, RequestError};
    /// # use urtica_wire::{Action, DatapathId, Match, PortNo};
    /// async fn fill(network: &Network, id: DatapathId) -> Result<(), RequestError> {
    ///     for port in 1..=60_000 {
    ///         let match_ = Match::any().in_port(PortNo(port));
    ///         let install = || network.install(id, match_.clone(), &[], EntryOptions::PERMANENT);
    ///         network.when_ready(id, install).await?;
    ///     }
    ///     // All are installed when the reply arrives.
    ///     network.when_ready(id, || network.barrier(id)).await?.await.map(drop)
    /// }
    /// ```
    ///
    /// # Errors
    /// The errors of `send`, except [`RequestError::Busy`], and the errors of [`Network::ready`].
    pub async fn when_ready<T>(
        &self,
        datapath_id: DatapathId,
        mut send: impl FnMut() -> Result<T, RequestError>,
    ) -> Result<T, RequestError> {
        loop {
            match send() {
                Err(RequestError::Busy(_)) => self.ready(datapath_id).await?,
                sent => return sent,
            }
        }
    }

    /// Makes packet-outs to FLOOD use the ports that `ports` chooses, until the program that this network belongs to is
    /// removed. Returns `false`, and changes nothing, if another program has called this.
    pub fn flood_by(&self, ports: Arc<dyn FloodPorts>) -> bool {
        if self.unsent.is_some() {
            return true;
        }
        let _alone = self.shared.changes.lock();
        let is_free = self.shared.flood_ports.load().is_none();
        if is_free {
            self.shared.flood_ports.publish(Some((self.origin, ports)));
            self.shared.has_flood_ports.store(true, Ordering::Release);
        }
        is_free
    }

    /// Handles the end of a program: if it chose the ports, flooding is left to the switches again.
    pub(crate) fn forget_flood_ports(&self, program: Origin) {
        let _alone = self.shared.changes.lock();
        let current = self.shared.flood_ports.load();
        if matches!(&*current, Some((owner, _)) if *owner == program) {
            self.shared.flood_ports.publish(None);
            self.shared.has_flood_ports.store(false, Ordering::Release);
        }
    }

    /// Returns the ports to which packets from this port are flooded; `None` if the switch decides.
    pub(crate) fn flood_ports(&self, switch: DatapathId, in_port: PortNo) -> Option<Vec<PortNo>> {
        if !self.shared.has_flood_ports.load(Ordering::Acquire) {
            return None;
        }
        let flood_ports = self.shared.flood_ports.load();
        let (_, ports) = flood_ports.as_ref().as_ref()?;
        Some(ports.flood_ports(switch, in_port))
    }

    /// Returns the record of programs' permanent entries in a switch, while it is connected.
    pub(crate) fn permanent_entries(
        &self,
        datapath_id: DatapathId,
    ) -> Option<Arc<Mutex<PermanentEntries>>> {
        if self.unsent.is_some() {
            return None;
        }
        let switches = self.read();
        let entry = switches.get(&datapath_id)?;
        Some(Arc::clone(&entry.permanent))
    }

    pub(crate) fn tables(&self) -> Tables {
        self.shared.tables
    }

    pub(crate) fn shard(&self, index: usize) -> &Shard {
        &self.shared.shards[index]
    }

    pub(crate) fn shards(&self) -> &[Shard] {
        &self.shared.shards
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<DatapathId, Entry>> {
        self.shared.switches.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<DatapathId, Entry>> {
        self.shared.switches.write()
    }
}
