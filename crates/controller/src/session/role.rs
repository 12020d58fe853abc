//! The role of a session's controller at its switch: requests for it, and notices of its loss.
//!
//! ```text
//!            ┌───────── stale, unless the caller named the generation ─────────┐
//!            ▼                                                                 │
//! ask ──► Generation: OFPCR_ROLE_NOCHANGE ──reply──► Request: role and id ─────┴─► settled: granted or refused
//!            (1.3, if no generation is named)           └─► lost: OFPBRC_IS_SLAVE, or a reply with another role
//! ```
//! OpenFlow 1.3 does not notify a controller of the loss of its role until it writes. So a primary checks its role each
//! [`SessionConfig::echo_interval`](super::SessionConfig::echo_interval). Nicira's extension for 1.0 has no generations and
//! no query: there a controller learns of the loss when a message is refused.

use super::{Event, Phase, Session, Subject};
use crate::SwitchInfo;
use crate::role::{Role, RoleRequest};
use std::collections::VecDeque;
use std::time::Instant;
use urtica_wire::{
    ControllerRole, DatapathId, ErrorCode, Header, Message, NiciraMessage, Role as WireRole,
    Version,
};

/// The maximum number of requests with generations derived from the switch's, if other controllers request a role
/// concurrently.
const ATTEMPTS: u8 = 8;

/// A change of the role, or the outcome of a request: see [`Session::poll_role`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RoleReport {
    /// The role has changed.
    Changed {
        /// The previous role.
        from: Role,
        /// The new role.
        to: Role,
    },
    /// The switch has granted the role that [`Session::ask_for_role`] requested.
    Granted(Role),
    /// The switch has not granted the requested role.
    Refused(RoleRefusal),
}

/// The reason why a switch did not grant a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RoleRefusal {
    /// It refused the request.
    #[error("the switch refused with {0}")]
    Error(ErrorCode),
    /// It granted another role.
    #[error("the switch granted a role other than the requested one")]
    Other,
    /// It did not answer in time.
    #[error("the switch did not answer in time")]
    Timeout,
}

impl RoleRefusal {
    /// Returns whether the switch has seen a newer generation.
    pub fn is_stale(&self) -> bool {
        *self == Self::Error(ErrorCode::RoleRequestFailedStale)
    }
}

/// A session's role.
#[derive(Debug, Default)]
pub(super) struct RoleState {
    /// The role that the switch has granted.
    current: Role,
    /// Whether this is an auxiliary connection's session, which shares the main connection's role and requests none.
    is_shared: bool,
    /// The last requested role.
    requested: RoleRequest,
    asked: Option<PendingRole>,
    /// The xid of the query that checks the role.
    check_xid: Option<u32>,
    last_check: Option<Instant>,
    reports: VecDeque<RoleReport>,
}

/// A pending request.
#[derive(Debug)]
struct PendingRole {
    request: RoleRequest,
    step: Step,
    xid: u32,
    since: Instant,
    attempts: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Queries the newest generation.
    Generation,
    /// Requests the role.
    Request,
}

/// The content of a message about roles.
enum Said {
    /// The switch reports this role in this generation.
    Role(ControllerRole, u64),
    Refused(ErrorCode),
}

impl Said {
    fn of(message: &Message) -> Option<Self> {
        match message {
            Message::RoleReply(role) => Some(Self::Role(role.role, role.generation_id)),
            Message::Error(error) => Some(Self::Refused(error.code)),
            Message::Experimenter(vendor) => match NiciraMessage::decode(vendor) {
                Ok(Some(NiciraMessage::RoleReply(role))) => Some(Self::Role(role, 0)),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Session {
    /// Returns our role at the switch.
    pub fn role(&self) -> Role {
        self.role.current
    }

    /// Returns the next change of the role, or outcome of a request. Must be called after each call that handles input or
    /// time, until it returns `None`.
    pub fn poll_role(&mut self) -> Option<RoleReport> {
        self.role.reports.pop_front()
    }

    /// Returns `true` if a request is pending.
    pub fn is_asking_for_role(&self) -> bool {
        self.role.asked.is_some()
    }

    /// Requests a role from a switch that has joined. [`Session::poll_role`] reports the outcome; an earlier pending request
    /// is cancelled.
    pub fn ask_for_role(
        &mut self,
        now: Instant,
        request: impl Into<RoleRequest>,
        out: &mut Vec<u8>,
    ) {
        if let Some(version) = self.version() {
            self.begin_request(version, now, request.into(), 1, out);
        }
    }

    pub(super) fn begin_request(
        &mut self,
        version: Version,
        now: Instant,
        request: RoleRequest,
        attempts: u8,
        out: &mut Vec<u8>,
    ) {
        let has_generations = version != Version::Of10 && request.role != Role::Equal;
        let (step, xid) = match request.generation_id {
            None if has_generations => {
                let unchanged = ControllerRole::NoChange;
                (
                    Step::Generation,
                    self.write_role(version, unchanged, 0, out),
                )
            }
            id => (
                Step::Request,
                self.write_role(version, request.role.to_wire(), id.unwrap_or(0), out),
            ),
        };
        self.role.requested = request;
        self.role.asked = Some(PendingRole {
            request,
            step,
            xid,
            since: now,
            attempts,
        });
    }

    fn write_role(
        &mut self,
        version: Version,
        role: ControllerRole,
        generation_id: u64,
        out: &mut Vec<u8>,
    ) -> u32 {
        match version {
            Version::Of10 => self.write_nicira(&NiciraMessage::RoleRequest(role), out),
            Version::Of13 => {
                let role = WireRole {
                    role,
                    generation_id,
                };
                self.write(version, &Message::RoleRequest(role), out)
            }
        }
    }

    /// Requests the asynchronous messages of the settings, if the settings select any.
    pub(super) fn write_async_config(&mut self, version: Version, out: &mut Vec<u8>) {
        let Some(config) = self.config.async_config else {
            return;
        };
        match version {
            Version::Of10 => self.write_nicira(&NiciraMessage::SetAsync(config), out),
            Version::Of13 => self.write(version, &Message::SetAsync(config), out),
        };
    }

    /// Notes a message's information about the role. Returns whether it answers one of the session's own requests.
    pub(super) fn note_role(
        &mut self,
        version: Version,
        (header, message): (Header, &Message),
        out: &mut Vec<u8>,
    ) -> bool {
        if let Message::Error(error) = message {
            if error.is_slave() {
                self.change_role(Role::Secondary, out);
            }
        }
        let Some(said) = Said::of(message) else {
            return false;
        };
        let asked_xid = self.role.asked.as_ref().map(|asked| asked.xid);
        if asked_xid == Some(header.xid) {
            self.handle_answer(version, said, out);
            return true;
        }
        let is_check = self.role.check_xid == Some(header.xid);
        if is_check {
            self.role.check_xid = None;
        }
        // The reply to a program's own request changes the role as well.
        if let Said::Role(role, _) = said {
            if let Some(role) = Role::from_wire(role) {
                self.change_role(role, out);
            }
        }
        is_check
    }

    fn handle_answer(&mut self, version: Version, said: Said, out: &mut Vec<u8>) {
        let Some(asked) = self.role.asked.take() else {
            return;
        };
        match (asked.step, said) {
            (Step::Generation, Said::Role(_, newest)) => {
                self.ask_in_generation(version, asked, newest, out);
            }
            (Step::Request, Said::Role(role, _)) => {
                let given = Role::from_wire(role);
                if let Some(role) = given {
                    self.change_role(role, out);
                }
                self.report(match given == Some(asked.request.role) {
                    true => RoleReport::Granted(asked.request.role),
                    false => RoleReport::Refused(RoleRefusal::Other),
                });
            }
            // Another controller has used a newer generation since.
            (Step::Request, Said::Refused(ErrorCode::RoleRequestFailedStale))
                if asked.request.generation_id.is_none() && asked.attempts < ATTEMPTS =>
            {
                let attempts = asked.attempts + 1;
                self.begin_request(version, asked.since, asked.request, attempts, out);
            }
            (_, Said::Refused(code)) => {
                self.report(RoleReport::Refused(RoleRefusal::Error(code)));
            }
        }
    }

    /// Requests a role: a primary uses the next generation, a secondary the switch's.
    fn ask_in_generation(
        &mut self,
        version: Version,
        asked: PendingRole,
        newest: u64,
        out: &mut Vec<u8>,
    ) {
        let role = asked.request.role;
        let generation_id = match role {
            Role::Secondary => newest,
            Role::Equal | Role::Primary => newest.wrapping_add(1),
        };
        let xid = self.write_role(version, role.to_wire(), generation_id, out);
        self.role.asked = Some(PendingRole {
            step: Step::Request,
            xid,
            ..asked
        });
    }

    /// Sets the role, and reports the change.
    pub(super) fn change_role(&mut self, to: Role, out: &mut Vec<u8>) {
        let from = std::mem::replace(&mut self.role.current, to);
        if from == to {
            return;
        }
        self.report(RoleReport::Changed { from, to });
        let Some(version) = self.version() else {
            return;
        };
        self.phase = self.phase_of_role(version);
        if from.may_write() != to.may_write() {
            self.table_misses = Default::default();
            if to.may_write() && version != Version::Of10 {
                self.write_table_misses(version, 0..self.n_tables, out);
            }
        }
    }

    /// Returns the phase of a switch that has joined.
    pub(super) fn phase_of_role(&self, version: Version) -> Phase {
        match self.role.current.may_write() && !self.is_raw() {
            true => Phase::Up(version),
            false => Phase::ReadOnly(version),
        }
    }

    fn report(&mut self, report: RoleReport) {
        self.role.reports.push_back(report);
    }

    /// Returns the wanted role at a switch that connects.
    pub(super) fn wanted_role(&self, switch: DatapathId) -> RoleRequest {
        let wanted = self.config.roles.get(switch);
        wanted.unwrap_or(self.config.role.into())
    }

    /// Returns whether a role other than the initial one may be requested.
    pub(super) fn may_ask_for_role(&self) -> bool {
        self.config.role != Role::Equal || self.config.roles.is_any()
    }

    /// Returns the last requested role.
    pub(crate) fn requested_role(&self) -> RoleRequest {
        self.role.requested
    }

    /// Requests the role that is settled before the switch joins, and keeps the switch's description until then.
    pub(super) fn begin_joining(
        &mut self,
        version: Version,
        now: Instant,
        (info, request): (SwitchInfo, RoleRequest),
        out: &mut Vec<u8>,
    ) {
        self.phase = Phase::Role(version);
        self.joining = Some(info);
        self.begin_request(version, now, request, 1, out);
    }

    /// Handles a message of a switch that has not answered the role request, and so has not joined.
    pub(super) fn handle_joining<'a>(
        &mut self,
        version: Version,
        now: Instant,
        frame: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Event<'a> {
        let (header, message) = match self.decode(version, frame, out) {
            Ok(decoded) => decoded,
            Err(error) => return Event::Malformed(error),
        };
        self.note_role(version, (header, &message), out);
        match (message, &mut self.joining) {
            (Message::EchoRequest(data), _) => {
                self.write_with_xid(version, header.xid, &Message::EchoReply(data), out);
            }
            (Message::PortStatus(status), Some(info)) => drop(info.ports.update(&status)),
            _ => {}
        }
        match self.take_first_outcome() {
            None => Event::Nothing,
            Some(outcome) => self.end_joining(version, now, outcome, out),
        }
    }

    fn end_joining<'a>(
        &mut self,
        version: Version,
        now: Instant,
        outcome: Result<(), RoleRefusal>,
        out: &mut Vec<u8>,
    ) -> Event<'a> {
        let request = self.role.requested;
        if let Err(refusal) = outcome {
            let (peer, role) = (&self.peer, request.role);
            urtica_log::warn!(about: Subject::of_peer(peer), peer, %role, %refusal, "the switch did not grant the requested role");
            if refusal.is_stale() && request.role != Role::Secondary {
                // A controller of a later election is connected, and as an equal this one would disturb it.
                self.begin_request(version, now, Role::Secondary.into(), 1, out);
                return Event::Nothing;
            }
            if request.role == Role::Secondary {
                // A switch without roles does not keep a secondary from writing, but this controller does.
                self.role.current = Role::Secondary;
            }
        }
        match self.joining.take() {
            Some(info) => Event::Joined(self.join(version, info, out)),
            None => Event::Nothing,
        }
    }

    /// Returns the outcome of the role request of a joining switch; `None` until it is known.
    fn take_first_outcome(&mut self) -> Option<Result<(), RoleRefusal>> {
        while let Some(report) = self.role.reports.pop_front() {
            match report {
                RoleReport::Changed { .. } => {}
                RoleReport::Granted(_) => return Some(Ok(())),
                RoleReport::Refused(refusal) => return Some(Err(refusal)),
            }
        }
        None
    }

    /// Makes this the session of an auxiliary connection.
    pub(super) fn share_role(&mut self) {
        self.role.is_shared = true;
    }

    /// Sets the role to that of the main connection, which reports it.
    pub(crate) fn follow_role(&mut self, role: Role) {
        if self.role.current == role {
            return;
        }
        self.role.current = role;
        self.table_misses = Default::default();
        if let Some(version) = self.version() {
            self.phase = self.phase_of_role(version);
        }
    }

    /// Sets the role of a session that continues; the earlier program's role is not reported.
    pub(super) fn resume_role(&mut self, role: Role) {
        self.role.current = role;
    }

    /// Ends a request that was not answered in time, and makes a primary check its role.
    pub(super) fn handle_role_timeout(
        &mut self,
        version: Version,
        now: Instant,
        out: &mut Vec<u8>,
    ) {
        let limit = self.config.handshake_timeout;
        if let Some(asked) = &self.role.asked {
            if now.duration_since(asked.since) >= limit {
                self.role.asked = None;
                self.report(RoleReport::Refused(RoleRefusal::Timeout));
            }
            return;
        }
        let is_primary = self.role.current == Role::Primary && !self.role.is_shared;
        if version == Version::Of10 || !is_primary {
            self.role.last_check = None;
            return;
        }
        let last_check = *self.role.last_check.get_or_insert(now);
        if now.duration_since(last_check) >= self.config.echo_interval {
            self.role.last_check = Some(now);
            let xid = self.write_role(version, ControllerRole::NoChange, 0, out);
            self.role.check_xid = Some(xid);
        }
    }

    fn write_nicira(&mut self, message: &NiciraMessage, out: &mut Vec<u8>) -> u32 {
        let xid = self.xids.next(self.origin());
        if let Err(error) = message.write(Version::Of10, xid, out) {
            urtica_log::error!(about: Subject::of_peer(&self.peer), peer = self.peer, %error, "cannot encode a message of the session; not sending it");
        }
        xid
    }
}

#[cfg(test)]
mod tests;
