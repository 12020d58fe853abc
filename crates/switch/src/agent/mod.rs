//! The switch's side of the OpenFlow channel: everything that controllers ask for, and everything that they are told
//! unasked.
//!
//! ```text
//! bytes ─► session ─► requests ─┬─ flow_mod, packet_out, port_mod, role, multipart … ─► pipeline, ports
//!            hello, echo,       └─ reply or OFPT_ERROR ─► the session's output
//!            malformed
//! packets that the pipeline hands up ─► packet_in ─► the outputs of those sessions whose role and filter want them
//! ```
//! Messages are carried out one after the other as they come in, each wholly before the next, but for replies that may be long
//! (`long_reply`): these are written part by part, and a barrier waits for their end. So does all that follows a change to many
//! entries (`long_change`). A multipart request also waits for the end of other controllers' changes, so that it sees no half of one.

mod controller;
mod error;
mod flow_mod;
mod long_change;
mod long_reply;
mod multipart;
mod packet_in;
mod packet_out;
mod partial_requests;
mod port;
mod reply;
mod requests;
mod role;
mod session;
mod session_error;
mod stats;
mod table_features;
mod turn;

use crate::buffers::Buffers;
use crate::state_file::Durability;
use long_change::LongChange;
use packet_in::RateLimit;
use session::Session;
pub use session_error::SessionError;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;
pub(crate) use turn::Others;
use turn::Turn;
use urtica_pipeline::{Pipeline, RemovedEntry};
use urtica_wire::{ConfigFlags, ControllerRole, Message, Port, PortReason, PortStatus, Version};

/// Names a controller's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(u64);

/// What the channel's side of the switch knows.
#[derive(Debug)]
pub(crate) struct Agent {
    versions: Vec<Version>,
    sessions: BTreeMap<ConnectionId, Session>,
    connections: u64,
    buffers: Buffers,
    rate_limit: RateLimit,
    /// The election that the newest master or slave was told by; none before the first (1.3.5 section 6.3.6).
    generation_id: Option<u64>,
    /// How fragments are handled: one setting for the whole switch.
    fragments: ConfigFlags,
    /// The version of the last flow mod, whose meaning entries have.
    pub entries_version: Option<Version>,
    packet_ins_dropped: u64,
    /// How far changes were on the disk when that was last asked.
    pub durability: Durability,
    /// What may still be done in the turn of the controller whose it is.
    pub turn: Turn,
    /// What is left of changes whose controllers have gone.
    left_changes: VecDeque<LongChange>,
    /// Whose turn it was last to go on with what had to wait.
    last_turn: ConnectionId,
    /// Connections that have to end for what they had said before it was their turn, and why.
    ended: Vec<(ConnectionId, SessionError)>,
}

impl Agent {
    /// An agent without connections.
    pub fn new(mut versions: Vec<Version>, n_buffers: u32, packet_ins_per_second: u32) -> Self {
        versions.sort_unstable();
        Self {
            versions,
            sessions: BTreeMap::new(),
            connections: 0,
            buffers: Buffers::new(n_buffers),
            rate_limit: RateLimit::new(packet_ins_per_second),
            generation_id: None,
            fragments: ConfigFlags::empty(),
            entries_version: None,
            packet_ins_dropped: 0,
            durability: Durability::default(),
            turn: Turn::new(),
            left_changes: VecDeque::new(),
            last_turn: ConnectionId(0),
            ended: Vec::new(),
        }
    }

    /// Opens a connection.
    pub fn connect(&mut self, peer: String, now: Duration) -> ConnectionId {
        let id = ConnectionId(self.connections);
        self.connections += 1;
        let session = Session::start(&self.versions, peer, now);
        self.sessions.insert(id, session);
        id
    }

    /// Forgets a connection.
    pub fn disconnect(&mut self, id: ConnectionId) {
        let session = self.sessions.remove(&id);
        self.left_changes
            .extend(session.and_then(|session| session.change));
    }

    /// Whether a change to many entries is under way.
    pub fn is_changing(&self) -> bool {
        let mut sessions = self.sessions.values();
        !self.left_changes.is_empty() || sessions.any(|session| session.change.is_some())
    }

    /// What all controllers but this one are at.
    pub fn others(&self, id: ConnectionId) -> Others {
        let others = || self.sessions.iter().filter(|&(&other, _)| other != id);
        let mut changing = others();
        Others {
            are_changing: !self.left_changes.is_empty()
                || changing.any(|(_, session)| session.change.is_some()),
            wait_to_read: others().any(|(_, session)| session.waits_to_read()),
            durability: self.durability,
        }
    }

    /// How many connections there are.
    pub fn connection_count(&self) -> usize {
        self.sessions.len()
    }

    /// Whether a controller is connected: one whose hello was answered.
    pub fn is_connected(&self) -> bool {
        self.sessions
            .values()
            .any(|session| session.version().is_some())
    }

    /// Whether a controller is to be told of packets that no entry matches: 1.0's are, 1.3's have table-miss entries.
    pub fn wants_table_misses(&self) -> bool {
        self.sessions.values().any(Session::wants_table_misses)
    }

    /// A controller's version, once its hello was answered, and its role.
    pub fn describe(&self, id: ConnectionId) -> Option<(Version, ControllerRole)> {
        let session = self.sessions.get(&id)?;
        Some((session.version()?, session.controller.role))
    }

    /// Whether fragments are to be dropped.
    pub fn drops_fragments(&self) -> bool {
        self.fragments == ConfigFlags::FRAG_DROP
    }

    /// Whether fields that fragments hide are matched as 0.
    pub fn matches_hidden(&self) -> bool {
        self.fragments == ConfigFlags::FRAG_NX_MATCH
    }

    /// Whether ports of fragments are matched as 0, as 1.0 does.
    pub fn zeroes_ports(&self) -> bool {
        self.fragments.is_empty() && self.entries_version == Some(Version::Of10)
    }

    /// How many packet-ins were not sent because there were too many.
    pub fn packet_ins_dropped(&self) -> u64 {
        self.packet_ins_dropped
    }

    pub fn session(&self, id: ConnectionId) -> Option<&Session> {
        self.sessions.get(&id)
    }

    pub fn session_mut(&mut self, id: ConnectionId) -> Option<&mut Session> {
        self.sessions.get_mut(&id)
    }

    /// Begins a controller's turn: from now on as much may be done for it as in any.
    pub fn begin_turn(&mut self) {
        self.turn = Turn::new();
    }

    /// Whose turn it is to go on with a reply, or with messages that waited; they take turns.
    pub fn next_turn(&mut self) -> Option<ConnectionId> {
        let behind = (Bound::Excluded(self.last_turn), Bound::Unbounded);
        let sessions = self.sessions.range(behind).chain(&self.sessions);
        let mut ready = sessions.filter(|&(&id, session)| session.can_go_on(self.others(id)));
        let (&next, _) = ready.next()?;
        self.last_turn = next;
        Some(next)
    }

    /// Writes the next part of the reply that a controller waits for, if there is room.
    pub fn go_on_with_reply(&mut self, id: ConnectionId, pipeline: &Pipeline, now: Duration) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.go_on_with_reply(pipeline, now, &mut self.turn);
        }
    }

    /// Notes that a connection has to end, and why.
    pub fn end(&mut self, id: ConnectionId, reason: SessionError) {
        self.ended.push((id, reason));
    }

    /// The connections that were noted so since the last time.
    pub fn take_ended(&mut self) -> Vec<(ConnectionId, SessionError)> {
        std::mem::take(&mut self.ended)
    }

    /// Asks silent controllers whether they are there; returns which connections have to end.
    pub fn handle_timeout(&mut self, now: Duration) -> Vec<(ConnectionId, SessionError)> {
        let ended = |(&id, session): (&ConnectionId, &mut Session)| {
            let error = session.handle_timeout(now).err()?;
            Some((id, error))
        };
        self.sessions.iter_mut().filter_map(ended).collect()
    }

    /// Tells controllers what happened to a port.
    pub fn send_port_status(&mut self, reason: PortReason, port: &Port) {
        for (version, session) in connected(&mut self.sessions) {
            if session.controller.wants_port_status(reason) {
                let port = port::for_version(version, port);
                let status = PortStatus { reason, port };
                session.send(&Message::PortStatus(status));
            }
        }
    }

    /// Tells controllers of entries that are gone.
    pub fn send_flow_removed(&mut self, removed: &[RemovedEntry], now: Duration) {
        for entry in removed {
            for (version, session) in connected(&mut self.sessions) {
                if session.controller.wants_flow_removed(entry.reason) {
                    let message = flow_mod::flow_removed(version, entry, now);
                    session.send(&Message::FlowRemoved(message));
                }
            }
        }
    }
}

/// The sessions that have agreed on a version.
fn connected(
    sessions: &mut BTreeMap<ConnectionId, Session>,
) -> impl Iterator<Item = (Version, &mut Session)> {
    sessions
        .values_mut()
        .filter_map(|session| Some((session.version()?, session)))
}
