//! One OpenFlow session, without sockets and without a clock: frames in, bytes and events out.
//!
//! ```text
//! new ───► Hello ──hello──► Features ──features reply──► (Role ──role reply──►) Up ◄──roles──► ReadOnly
//!            │                 │  asks for features; configures; 1.3: asks for port descriptions, adds the table-miss entry
//!            └──── time-out ───┴── silence, two probes ───┴─► SessionError
//! ```
//! Packet-ins are accepted from the features reply on: cbench and real switches send them at once, and a controller that
//! waited for the port descriptions would flood packets whose destinations it could have learnt.
//!
//! **Roles** (1.3.5 sections 6.3.6 and 7.3.9). Every controller starts as an EQUAL, and stays one unless its settings request
//! another role ([`SessionConfig::role`]) or [`Session::ask_for_role`] is called. If the settings do, the switch joins only
//! after its answer: until then only this connection's configuration is written, and packet-ins are ignored, since another
//! controller may answer them. [`Session::poll_role`] reports outcomes, even of a role request that a program sends itself;
//! the program receives the reply as well.

use crate::SwitchInfo;
use crate::role::Role;
use crate::xid::{Origin, Xids};
pub(crate) use config::Clients;
pub use config::SessionConfig;
pub use error::{PortsProblem, SessionError};
pub(crate) use resumption::Unusable;
use role::RoleState;
pub use role::{RoleRefusal, RoleReport};
use std::time::{Duration, Instant};
use table_misses::TableMisses;
use urtica_wire::{
    DatapathId, DecodeError, ErrorCode, ErrorMessage, Header, Hello, Message, MultipartFlags,
    MultipartReplyBody, Port, PortReason, PortStatus, Version,
};

/// Message types with equal numbers in all versions.
const OFPT_HELLO: u8 = 0;
const OFPT_ERROR: u8 = 1;

/// The message type is equal in all versions from 1.1.
const OFPT_MULTIPART_REPLY: u8 = 19;

/// The time that our hello waits for the peer's.
const HELLO_DELAY: Duration = Duration::from_millis(200);

/// The subject of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject<'a> {
    /// A switch that has sent its features reply.
    Switch(DatapathId),
    /// The peer at this address.
    Peer(&'a str),
}

impl<'a> Subject<'a> {
    /// Returns the subject of lines about a peer, by its name for logs.
    pub fn of_peer(name: &'a str) -> Self {
        Self::Peer(urtica_log::without_port(name))
    }
}

/// The effect of a frame for the session's user.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// No effect: the session handled it.
    Nothing,
    /// The switch has sent its features reply, and joins once it has answered the role request.
    Identified(DatapathId),
    /// The switch has sent its features reply, and the role is settled if one was requested.
    Joined(SwitchInfo),
    /// The peer's features reply makes it an auxiliary connection (1.3.5 section 6.3.7) of the switch that has this datapath
    /// id on its main connection.
    Auxiliary {
        /// The datapath id of the switch.
        datapath_id: DatapathId,
        /// The id of the auxiliary connection, which is not 0.
        auxiliary_id: u8,
    },
    /// A message for programs, from a switch that has joined.
    Message(Header, Message<'a>),
    /// A 1.3 switch has described some of its ports.
    Ports {
        /// The ports, each as if it had just been added.
        ports: Vec<PortStatus>,
        /// Whether this is the last part of the description.
        last: bool,
    },
    /// A 1.3 switch has not described all of its ports. It is used with the described ones; later descriptions are reported
    /// as [`Event::Ports`].
    PortsUnknown(PortsProblem),
    /// A message could not be decoded; an OFPT_ERROR has been written.
    Malformed(DecodeError),
}

/// One session.
// It has a method for each message of the protocol; set-up and roles are in separate files.
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    phase: Phase,
    peer: String,
    pub(crate) xids: Xids,
    started: Instant,
    last_received: Instant,
    last_probe: Option<Instant>,
    /// The time of the first echo request since the last message.
    first_probe: Option<Instant>,
    features_xid: u32,
    /// The xid of the port description request, until the last part of the reply.
    port_desc_xid: Option<u32>,
    /// Whether the switch is up only once its ports are described.
    awaits_ports: bool,
    table_misses: TableMisses,
    /// The switch's number of tables, once it has reported it.
    n_tables: u8,
    role: RoleState,
    /// The switch, until it answers the role request.
    joining: Option<SwitchInfo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Neither side has sent anything.
    New,
    /// Our hello has been written.
    Hello,
    Features(Version),
    /// The features are known, but not the role.
    Role(Version),
    Up(Version),
    /// Like `Up`, but packet-ins do not bypass the session: our role permits only reading, or a raw program gets them.
    ReadOnly(Version),
}

impl Session {
    /// Creates a session with `peer` (a name for logs).
    ///
    /// Our hello waits for the peer's first bytes, or for 200 ms. Switches send their hello at once, so this costs them no
    /// time. But Mininet detects controllers by connecting and closing: if it receives a hello, it may mistake its bytes for
    /// the output of a process and wait for ever.
    pub fn new(config: SessionConfig, peer: String, now: Instant) -> Self {
        Self {
            config,
            phase: Phase::New,
            peer,
            xids: Xids::default(),
            started: now,
            last_received: now,
            last_probe: None,
            first_probe: None,
            features_xid: 0,
            port_desc_xid: None,
            awaits_ports: false,
            table_misses: TableMisses::default(),
            n_tables: 0,
            role: RoleState::default(),
            joining: None,
        }
    }

    /// Returns `true` if a raw program gets the frames: then the session refuses no messages, and configures nothing for
    /// programs.
    pub(crate) fn is_raw(&self) -> bool {
        self.config.clients != Clients::Programs
    }

    /// Returns the origin of its xids.
    fn origin(&self) -> Origin {
        match self.is_raw() {
            true => Origin::RAW_SESSION,
            false => Origin::SESSION,
        }
    }

    /// Writes our hello, unless it has been written.
    fn greet(&mut self, out: &mut Vec<u8>) {
        if self.phase == Phase::New {
            let xid = self.xids.next(self.origin());
            Hello::write(&self.config.versions, xid, out);
            self.phase = Phase::Hello;
        }
    }

    /// Returns the negotiated version, once the switch has joined.
    pub fn version(&self) -> Option<Version> {
        match self.phase {
            Phase::Up(version) | Phase::ReadOnly(version) => Some(version),
            _ => None,
        }
    }

    /// Like `version`, if programs may answer packet-ins, which then bypass the session.
    #[inline]
    pub(crate) fn answering_version(&self) -> Option<Version> {
        match self.phase {
            Phase::Up(version) => Some(version),
            _ => None,
        }
    }

    /// Returns whether the switch has joined but not yet described its ports.
    pub(crate) fn awaits_ports(&self) -> bool {
        self.awaits_ports
    }

    /// Returns the time in which the switch must answer the requests before it joins.
    pub(crate) fn handshake_timeout(&self) -> Duration {
        self.config.handshake_timeout
    }

    /// Returns the peer's name for logs.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// Notes that something was received. For callers that handle some frames themselves.
    #[inline]
    pub fn note_received(&mut self, now: Instant) {
        self.last_received = now;
        (self.last_probe, self.first_probe) = (None, None);
    }

    /// Handles one whole frame, and appends output to `out`.
    ///
    /// # Errors
    /// [`SessionError`] if the connection must be closed, after the bytes in `out` have been sent.
    pub fn handle_frame<'a>(
        &mut self,
        now: Instant,
        frame: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Event<'a>, SessionError> {
        self.note_received(now);
        match self.phase {
            Phase::New | Phase::Hello => self.handle_hello(frame, out),
            Phase::Features(version) => self.handle_features(version, now, frame, out),
            Phase::Role(version) => Ok(self.handle_joining(version, now, frame, out)),
            Phase::Up(version) | Phase::ReadOnly(version) => {
                self.handle_message(version, frame, out)
            }
        }
    }

    /// Handles the passing of time: writes our hello to peers that wait for it, and echo requests to silent switches. Returns
    /// [`Event::PortsUnknown`] if a switch has not described its ports in time, otherwise [`Event::Nothing`].
    ///
    /// # Errors
    /// [`SessionError::HandshakeTimeout`] and [`SessionError::Dead`].
    pub fn handle_timeout(
        &mut self,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<Event<'static>, SessionError> {
        let Some(version) = self.version() else {
            self.handle_handshake_timeout(now, out)?;
            return Ok(Event::Nothing);
        };
        if self.is_dead(now) {
            return Err(SessionError::Dead(self.config.dead_interval));
        }
        let silent_since = self.last_probe.unwrap_or(self.last_received);
        if now.duration_since(silent_since) >= self.config.echo_interval {
            self.last_probe = Some(now);
            self.first_probe.get_or_insert(now);
            self.write(version, &Message::EchoRequest(&[]), out);
        }
        self.handle_role_timeout(version, now, out);
        for table_id in self.table_misses.take_due(now) {
            self.write_table_miss(version, table_id, out);
        }
        let timeout = self.config.handshake_timeout;
        if self.awaits_ports && now.duration_since(self.started) >= timeout {
            return Ok(self.give_up_on_ports(PortsProblem::Late(timeout)));
        }
        Ok(Event::Nothing)
    }

    /// Returns `true` if the switch has been silent for too long, and has had the time to answer an echo request: after the
    /// whole program was stopped for a while, no switch has been probed yet.
    fn is_dead(&self, now: Instant) -> bool {
        let SessionConfig {
            echo_interval,
            dead_interval,
            ..
        } = self.config;
        let to_answer = dead_interval.saturating_sub(echo_interval);
        now.duration_since(self.last_received) >= dead_interval
            && self
                .first_probe
                .is_some_and(|probe| now.duration_since(probe) >= to_answer)
    }

    fn handle_handshake_timeout(
        &mut self,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<(), SessionError> {
        let waited = now.duration_since(self.started);
        if waited >= self.config.handshake_timeout {
            let timeout = self.config.handshake_timeout;
            return Err(match self.phase {
                Phase::Role(_) => SessionError::RoleTimeout(timeout),
                _ => SessionError::HandshakeTimeout(timeout),
            });
        }
        if waited >= HELLO_DELAY {
            self.greet(out);
        }
        Ok(())
    }

    /// Checks the start of an incomplete message, so that a peer that is no switch is disconnected at once: the number of
    /// bytes that a browser's request seems to announce never arrives.
    ///
    /// # Errors
    /// [`SessionError::NotOpenFlow`] or [`SessionError::Tls`] if a first message cannot become a hello.
    #[inline]
    pub fn handle_fragment(&self, fragment: &[u8]) -> Result<(), SessionError> {
        if matches!(self.phase, Phase::New | Phase::Hello) && !may_open(fragment) {
            return Err(match urtica_socket::is_tls_record(fragment) {
                true => SessionError::Tls,
                false => SessionError::NotOpenFlow,
            });
        }
        Ok(())
    }

    /// Handles malformed input, after which the connection must be closed: writes an OFPT_ERROR about it if the peer is known
    /// to be a switch. Returns the reason for closing.
    pub fn handle_malformed(
        &mut self,
        error: DecodeError,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> SessionError {
        if let Phase::Features(version)
        | Phase::Role(version)
        | Phase::Up(version)
        | Phase::ReadOnly(version) = self.phase
        {
            self.write_error(version, error.code(), bytes, out);
        }
        match self.handle_fragment(bytes) {
            Ok(()) => SessionError::Malformed(error),
            Err(not_openflow) => not_openflow,
        }
    }

    fn handle_hello<'a>(
        &mut self,
        frame: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Event<'a>, SessionError> {
        self.handle_fragment(frame)?;
        self.greet(out);
        let header = Header::peek(frame).ok_or(SessionError::NotOpenFlow)?;
        if header.message_type == OFPT_ERROR {
            return Err(SessionError::Refused(ErrorMessage::hello_error_code(frame)));
        }
        let Some(version) = Hello::negotiate(frame, &self.config.versions) else {
            let ours = self.our_versions();
            let sentence = format!("This controller speaks OpenFlow {ours}.");
            let error = ErrorMessage {
                code: ErrorCode::HelloFailedIncompatible,
                data: sentence.as_bytes(),
            };
            // The peer is more likely to be able to decode the lower version.
            let version = if header.version < Version::Of13.to_wire() {
                Version::Of10
            } else {
                self.highest()
            };
            self.write_with_xid(version, header.xid, &Message::Error(error), out);
            return Err(SessionError::NoCommonVersion {
                theirs: header.version,
                ours,
            });
        };
        self.ask_for_features(version, out);
        Ok(Event::Nothing)
    }

    fn ask_for_features(&mut self, version: Version, out: &mut Vec<u8>) {
        self.phase = Phase::Features(version);
        self.features_xid = self.write(version, &Message::FeaturesRequest, out);
        self.write_configuration(version, out);
    }

    fn handle_features<'a>(
        &mut self,
        version: Version,
        now: Instant,
        frame: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Event<'a>, SessionError> {
        match self.decode(version, frame, out) {
            Ok((_, Message::FeaturesReply(features))) if features.auxiliary_id != 0 => {
                self.phase = self.phase_of_role(version);
                self.share_role();
                Ok(Event::Auxiliary {
                    datapath_id: features.datapath_id,
                    auxiliary_id: features.auxiliary_id,
                })
            }
            Ok((_, Message::FeaturesReply(features))) => {
                self.n_tables = features.n_tables;
                let info = SwitchInfo::new(version, self.peer.clone(), &features);
                Ok(self.handle_identity(version, now, info, out))
            }
            // Messages after the features request are configuration, which a switch may refuse.
            Ok((header, Message::Error(error))) if header.xid <= self.features_xid => {
                Err(SessionError::Refused(error.code))
            }
            Ok((header, Message::EchoRequest(data))) => {
                self.write_with_xid(version, header.xid, &Message::EchoReply(data), out);
                Ok(Event::Nothing)
            }
            // Switches may reply out of order (1.3.5 section 6.2): the request is sent again later.
            Ok((header, _)) if self.port_desc_xid == Some(header.xid) => {
                self.port_desc_xid = None;
                Ok(Event::Nothing)
            }
            Ok((header, Message::Error(error))) => {
                self.note_refusal(header.xid);
                urtica_log::warn!(about: Subject::of_peer(&self.peer), peer = self.peer, code = %error.code, "the switch refused its configuration");
                Ok(Event::Nothing)
            }
            // Before the features reply there are no handlers for other messages.
            Ok(_) => Ok(Event::Nothing),
            Err(error) => Ok(Event::Malformed(error)),
        }
    }

    /// Handles the switch's features: it joins, unless a role must be requested first.
    fn handle_identity<'a>(
        &mut self,
        version: Version,
        now: Instant,
        info: SwitchInfo,
        out: &mut Vec<u8>,
    ) -> Event<'a> {
        self.write_async_config(version, out);
        let datapath_id = info.datapath_id;
        let request = self.wanted_role(datapath_id);
        if request.role == Role::Equal {
            return Event::Joined(self.join(version, info, out));
        }
        self.begin_joining(version, now, (info, request), out);
        Event::Identified(datapath_id)
    }

    fn join(&mut self, version: Version, mut info: SwitchInfo, out: &mut Vec<u8>) -> SwitchInfo {
        self.phase = self.phase_of_role(version);
        self.awaits_ports = version != Version::Of10 && self.config.clients != Clients::Raw;
        self.write_rest_of_configuration(version, out);
        info.role = self.role();
        info
    }

    fn handle_message<'a>(
        &mut self,
        version: Version,
        frame: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Event<'a>, SessionError> {
        let (header, message) = match self.decode(version, frame, out) {
            Ok(decoded) => decoded,
            Err(error) if self.awaits_ports && self.describes_ports(frame) => {
                return Ok(self.give_up_on_ports(PortsProblem::Malformed(error)));
            }
            // The raw program gets it.
            Err(_) if self.is_raw() => return Ok(Event::Nothing),
            Err(error) => return Ok(Event::Malformed(error)),
        };
        if self.note_role(version, (header, &message), out) {
            return Ok(Event::Nothing);
        }
        match message {
            Message::EchoRequest(data) => {
                self.write_with_xid(version, header.xid, &Message::EchoReply(data), out);
                Ok(Event::Nothing)
            }
            Message::MultipartReply(reply) if self.port_desc_xid == Some(header.xid) => {
                match reply.body {
                    MultipartReplyBody::PortDesc(ports) => {
                        let more = reply.flags.contains(MultipartFlags::MORE);
                        Ok(self.learn_ports(ports.iter().collect(), !more))
                    }
                    _ => Ok(Event::Nothing),
                }
            }
            // The reply to a resumed session's request for the ports of a 1.0 switch.
            Message::FeaturesReply(features) if self.port_desc_xid == Some(header.xid) => {
                Ok(self.learn_ports(features.ports.iter().collect(), true))
            }
            Message::Error(error) if self.port_desc_xid == Some(header.xid) => {
                self.port_desc_xid = None;
                Ok(self.give_up_on_ports(PortsProblem::Refused(error.code)))
            }
            Message::Error(_) => {
                self.note_refusal(header.xid);
                Ok(Event::Message(header, message))
            }
            // A reply to a program's echo request is passed to the program.
            Message::EchoReply(_) if Origin::of(header.xid) == self.origin() => Ok(Event::Nothing),
            Message::Hello(_) => Ok(Event::Nothing),
            message if is_for_switches(&message) => {
                self.refuse(version, ErrorCode::BadRequestBadType, frame, out);
                Ok(Event::Nothing)
            }
            message => Ok(Event::Message(header, message)),
        }
    }

    /// Schedules a refused table-miss entry to be sent again: without it the switch drops packets that match no other entry.
    fn note_refusal(&mut self, xid: u32) {
        if let Some(table_id) = self.table_misses.note_refused(xid) {
            urtica_log::warn!(about: Subject::of_peer(&self.peer), peer = self.peer, table_id, "the switch refused the table-miss entry, which sends packets that match no other entry to the controller; resending it until the switch accepts it");
        }
    }

    /// Returns `true` if this is a part of the port description, well-formed or not.
    fn describes_ports(&self, frame: &[u8]) -> bool {
        Header::peek(frame).is_some_and(|header| {
            header.message_type == OFPT_MULTIPART_REPLY && self.port_desc_xid == Some(header.xid)
        })
    }

    /// Stops waiting for ports. The switch is used nevertheless: port-status messages may add the missing ones.
    fn give_up_on_ports<'a>(&mut self, problem: PortsProblem) -> Event<'a> {
        match std::mem::take(&mut self.awaits_ports) {
            true => Event::PortsUnknown(problem),
            false => Event::Nothing,
        }
    }

    fn learn_ports<'a>(&mut self, ports: Vec<Port>, last: bool) -> Event<'a> {
        if last {
            self.port_desc_xid = None;
            self.awaits_ports = false;
        }
        let added = |port| PortStatus {
            reason: PortReason::Add,
            port,
        };
        Event::Ports {
            ports: ports.into_iter().map(added).collect(),
            last,
        }
    }

    /// Decodes a frame of the session's version, or writes the OFPT_ERROR that answers it.
    fn decode<'a>(
        &mut self,
        version: Version,
        frame: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<(Header, Message<'a>), DecodeError> {
        let decoded = match Header::peek(frame) {
            Some(header) if header.version != version.to_wire() => {
                Err(DecodeError::UnknownVersion(header.version))
            }
            _ => Message::decode(frame),
        };
        decoded.inspect_err(|error| self.refuse(version, error.code(), frame, out))
    }

    /// Answers a message with an OFPT_ERROR, unless a raw program gets it.
    fn refuse(&mut self, version: Version, code: ErrorCode, frame: &[u8], out: &mut Vec<u8>) {
        if !self.is_raw() {
            self.write_error(version, code, frame, out);
        }
    }

    fn write_error(&mut self, version: Version, code: ErrorCode, frame: &[u8], out: &mut Vec<u8>) {
        // "At least 64 bytes of the failed request" (1.3.5 section 7.4.4). An error is never answered with an error.
        let header = Header::peek(frame).filter(|header| header.message_type != OFPT_ERROR);
        let Some(header) = header else {
            return;
        };
        let error = ErrorMessage {
            code,
            data: &frame[..frame.len().min(64)],
        };
        self.write_with_xid(version, header.xid, &Message::Error(error), out);
    }

    fn write(&mut self, version: Version, message: &Message, out: &mut Vec<u8>) -> u32 {
        let xid = self.xids.next(self.origin());
        self.write_with_xid(version, xid, message, out);
        xid
    }

    fn write_with_xid(&self, version: Version, xid: u32, message: &Message, out: &mut Vec<u8>) {
        if let Err(error) = message.encode(version, xid, out) {
            urtica_log::error!(about: Subject::of_peer(&self.peer), peer = self.peer, %error, "cannot encode a message of the session; not sending it");
        }
    }

    fn highest(&self) -> Version {
        self.config
            .versions
            .iter()
            .copied()
            .max()
            .unwrap_or(Version::Of13)
    }

    fn our_versions(&self) -> String {
        let versions: Vec<_> = self
            .config
            .versions
            .iter()
            .map(Version::to_string)
            .collect();
        versions.join(" and ")
    }
}

/// Returns whether these bytes can start a hello, or an OFPT_ERROR that refuses ours.
fn may_open(bytes: &[u8]) -> bool {
    /// The versions 1.0 to 1.5: a hello's may be one that we do not support, if it has a bitmap or is higher than ours.
    const VERSIONS: std::ops::RangeInclusive<u8> = 0x01..=0x06;
    let version = bytes
        .first()
        .is_none_or(|version| VERSIONS.contains(version));
    let message_type = bytes.get(1).copied().unwrap_or(OFPT_HELLO);
    version && matches!(message_type, OFPT_HELLO | OFPT_ERROR)
}

/// Returns whether a message is sent by controllers to switches only.
fn is_for_switches(message: &Message) -> bool {
    matches!(
        message,
        Message::FeaturesRequest
            | Message::GetConfigRequest
            | Message::SetConfig(_)
            | Message::PacketOut(_)
            | Message::FlowMod(_)
            | Message::GroupMod(_)
            | Message::PortMod(_)
            | Message::TableMod(_)
            | Message::MultipartRequest(_)
            | Message::BarrierRequest
            | Message::QueueGetConfigRequest(_)
            | Message::RoleRequest(_)
            | Message::GetAsyncRequest
            | Message::SetAsync(_)
            | Message::MeterMod(_)
    )
}

mod config;
mod configuration;
mod error;
mod resumption;
mod role;
mod table_misses;
#[cfg(test)]
mod tests;
