//! The switch's side of the OpenFlow channel: controllers' requests, and asynchronous messages.
//!
//! ```text
//! bytes ─► session ─► requests ─┬─ flow_mod, packet_out, port_mod, role, multipart … ─► pipeline, ports
//!            hello, echo,       └─ reply or OFPT_ERROR ─► the session's output
//!            malformed
//! packets that the pipeline hands up ─► packet_in ─► the outputs of the sessions whose role and filter want them
//! ```
//! Messages are handled in order of arrival, each completely before the next, except for replies that may be long
//! (`long_reply`): these are written in parts, and a barrier waits for their end. All messages after a change to many entries
//! (`long_change`) wait for its end. A multipart request also waits for the end of other controllers' changes, so that it
//! does not see half of a change.

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

/// Identifies a connection to a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(u64);

/// The state of the switch's side of the channel.
#[derive(Debug)]
pub(crate) struct Agent {
    versions: Vec<Version>,
    sessions: BTreeMap<ConnectionId, Session>,
    connections: u64,
    buffers: Buffers,
    rate_limit: RateLimit,
    /// Generation id of the latest request for the role of master or slave; `None` before the first (1.3.5 section 6.3.6).
    generation_id: Option<u64>,
    /// The handling of fragments: one setting for the whole switch.
    fragments: ConfigFlags,
    /// The version of the last flow mod, which determines the meaning of entries.
    pub entries_version: Option<Version>,
    packet_ins_dropped: u64,
    /// The changes that were durable at the last check.
    pub durability: Durability,
    /// The remaining allowance of the current controller's turn.
    pub turn: Turn,
    /// The rest of changes whose controllers have disconnected.
    abandoned_changes: VecDeque<LongChange>,
    /// The connection whose waiting work was last continued.
    last_turn: ConnectionId,
    /// Connections that must end because of messages that had waited, and the reasons.
    ended: Vec<(ConnectionId, SessionError)>,
}

impl Agent {
    /// Creates an agent without connections.
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
            abandoned_changes: VecDeque::new(),
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

    /// Removes a connection.
    pub fn disconnect(&mut self, id: ConnectionId) {
        let session = self.sessions.remove(&id);
        self.abandoned_changes
            .extend(session.and_then(|session| session.change));
    }

    /// Returns whether a change to many entries is in progress.
    pub fn is_changing(&self) -> bool {
        let mut sessions = self.sessions.values();
        !self.abandoned_changes.is_empty() || sessions.any(|session| session.change.is_some())
    }

    /// Returns the work of all controllers but this one.
    pub fn others(&self, id: ConnectionId) -> Others {
        let others = || self.sessions.iter().filter(|&(&other, _)| other != id);
        let mut changing = others();
        Others {
            are_changing: !self.abandoned_changes.is_empty()
                || changing.any(|(_, session)| session.change.is_some()),
            wait_to_read: others().any(|(_, session)| session.waits_to_read()),
            durability: self.durability,
        }
    }

    /// Returns the number of connections.
    pub fn connection_count(&self) -> usize {
        self.sessions.len()
    }

    /// Returns whether a controller is connected: one whose hello was answered.
    pub fn is_connected(&self) -> bool {
        self.sessions
            .values()
            .any(|session| session.version().is_some())
    }

    /// Returns whether a controller wants packets that match no entry: those of 1.0 do, those of 1.3 have table-miss entries.
    pub fn wants_table_misses(&self) -> bool {
        self.sessions.values().any(Session::wants_table_misses)
    }

    /// Returns a controller's version, once its hello was answered, and its role.
    pub fn describe(&self, id: ConnectionId) -> Option<(Version, ControllerRole)> {
        let session = self.sessions.get(&id)?;
        Some((session.version()?, session.controller.role))
    }

    /// Returns whether fragments are dropped.
    pub fn drops_fragments(&self) -> bool {
        self.fragments == ConfigFlags::FRAG_DROP
    }

    /// Returns whether fields that fragments hide are matched as 0.
    pub fn matches_hidden(&self) -> bool {
        self.fragments == ConfigFlags::FRAG_NX_MATCH
    }

    /// Returns whether ports of fragments are matched as 0, as in 1.0.
    pub fn zeroes_ports(&self) -> bool {
        self.fragments.is_empty() && self.entries_version == Some(Version::Of10)
    }

    /// Returns the number of packet-ins that were dropped because of the rate limit or unread output.
    pub fn packet_ins_dropped(&self) -> u64 {
        self.packet_ins_dropped
    }

    pub fn session(&self, id: ConnectionId) -> Option<&Session> {
        self.sessions.get(&id)
    }

    pub fn session_mut(&mut self, id: ConnectionId) -> Option<&mut Session> {
        self.sessions.get_mut(&id)
    }

    /// Starts a controller's turn, with the full allowance.
    pub fn begin_turn(&mut self) {
        self.turn = Turn::new();
    }

    /// Returns the next connection with a reply to continue or messages that waited, round-robin.
    pub fn next_turn(&mut self) -> Option<ConnectionId> {
        let behind = (Bound::Excluded(self.last_turn), Bound::Unbounded);
        let sessions = self.sessions.range(behind).chain(&self.sessions);
        let mut ready = sessions.filter(|&(&id, session)| session.can_continue(self.others(id)));
        let (&next, _) = ready.next()?;
        self.last_turn = next;
        Some(next)
    }

    /// Writes the next part of the reply that a controller waits for, if its output has space.
    pub fn continue_reply(&mut self, id: ConnectionId, pipeline: &Pipeline, now: Duration) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.continue_reply(pipeline, now, &mut self.turn);
        }
    }

    /// Notes that a connection must end, and why.
    pub fn end(&mut self, id: ConnectionId, reason: SessionError) {
        self.ended.push((id, reason));
    }

    /// Returns the connections noted by `end` since the last call.
    pub fn take_ended(&mut self) -> Vec<(ConnectionId, SessionError)> {
        std::mem::take(&mut self.ended)
    }

    /// Sends echo requests to silent controllers; returns the connections that must end.
    pub fn handle_timeout(&mut self, now: Duration) -> Vec<(ConnectionId, SessionError)> {
        let ended = |(&id, session): (&ConnectionId, &mut Session)| {
            let error = session.handle_timeout(now).err()?;
            Some((id, error))
        };
        self.sessions.iter_mut().filter_map(ended).collect()
    }

    /// Sends a port-status message to the controllers that want it.
    pub fn send_port_status(&mut self, reason: PortReason, port: &Port) {
        for (version, session) in connected(&mut self.sessions) {
            if session.controller.wants_port_status(reason) {
                let port = port::for_version(version, port);
                let status = PortStatus { reason, port };
                session.send(&Message::PortStatus(status));
            }
        }
    }

    /// Sends flow-removed messages to the controllers that want them.
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

/// Returns the sessions that have agreed on a version.
fn connected(
    sessions: &mut BTreeMap<ConnectionId, Session>,
) -> impl Iterator<Item = (Version, &mut Session)> {
    sessions
        .values_mut()
        .filter_map(|session| Some((session.version()?, session)))
}
