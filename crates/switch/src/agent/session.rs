//! A connection to a controller: hello, echo, malformed messages, and the output of asynchronous messages.
//!
//! ```text
//! start ─► Hello ──hello──► Up(version)
//!            │                 │
//!            └──── time-out ───┴── silence ──► SessionError
//! ```

use super::controller::ControllerState;
use super::error;
use super::long_change::LongChange;
use super::long_reply::{LongReply, Written};
use super::partial_requests::PartialRequests;
use super::session_error::{DEAD_INTERVAL, HANDSHAKE_TIMEOUT, SessionError};
use super::turn::{Awaits, Others, Turn};
use std::time::Duration;
use urtica_pipeline::Pipeline;
use urtica_wire::{
    DecodeError, EncodeError, ErrorCode, ErrorMessage, Header, Hello, Message, NiciraMessage,
    PacketInReason, Version, split_frame,
};

/// Message types whose numbers are equal in all versions.
const OFPT_HELLO: u8 = 0;
const OFPT_ERROR: u8 = 1;

/// Silence after which an echo request is sent.
const ECHO_INTERVAL: Duration = Duration::from_secs(5);
/// Size of output from which the controller should not be read from, because it does not read its replies.
const OUTPUT_HIGH_BYTES: usize = 1 << 20;
/// Size of output from which multipart requests wait, and replies in parts are paused. With another part, at most twice
/// as much waits.
const REPLY_OUTPUT_BYTES: usize = 64 << 10;
/// Size of output from which packet-ins are no longer sent, so that replies do not wait behind a flood of them.
const PACKET_IN_OUTPUT_BYTES: usize = 256 << 10;
/// Size of output from which all requests wait, and asynchronous messages are dropped.
const OUTPUT_MAX_BYTES: usize = 16 << 20;
/// Maximum number of bytes of waiting requests.
const INPUT_MAX_BYTES: usize = 1 << 20;
/// Number of bytes of a failed request that an error quotes: "at least 64 bytes" (1.3.5 section 7.4.4).
const QUOTED_BYTES: usize = 64;

/// The xid of the hello and of asynchronous messages, as in Open vSwitch. Controllers that number their requests do not use
/// it, so a controller that pairs messages by xid does not mistake one of these for a reply.
const UNASKED_XID: u32 = 0;

/// A connection to a controller.
#[derive(Debug)]
pub(crate) struct Session {
    versions: Vec<Version>,
    peer: String,
    version: Option<Version>,
    /// The start of an incomplete message, or waiting messages.
    pub input: Vec<u8>,
    /// Whether the first message of the input is waiting.
    is_waiting: bool,
    pub output: Vec<u8>,
    /// The unwritten rest of a reply.
    pub reply: Option<LongReply>,
    /// The rest of its last change, for which all its messages wait.
    pub change: Option<LongChange>,
    /// The change that must be on the disk before the barrier at the front of the input is answered.
    durable_wanted: Option<u64>,
    /// The xid of the last echo request, or 0 before the first.
    last_echo_xid: u32,
    started: Duration,
    last_activity: Duration,
    last_probe: Option<Duration>,
    /// Size of the output at the last timeout.
    last_output_bytes: usize,
    /// Whether the output was read since then, so that a reply could continue.
    has_been_read: bool,
    /// Role, filter and packet lengths.
    pub controller: ControllerState,
    /// Multipart requests that are incomplete.
    pub partial_requests: PartialRequests,
}

impl Session {
    /// Starts a connection with `peer`, a name for logs. Its output starts with a hello that offers `versions`, which
    /// must not be empty.
    pub fn start(versions: &[Version], peer: String, now: Duration) -> Self {
        let mut session = Self {
            versions: versions.to_vec(),
            peer,
            version: None,
            input: Vec::new(),
            is_waiting: false,
            output: Vec::new(),
            reply: None,
            change: None,
            durable_wanted: None,
            last_echo_xid: 0,
            started: now,
            last_activity: now,
            last_probe: None,
            last_output_bytes: 0,
            has_been_read: false,
            controller: ControllerState::default(),
            partial_requests: PartialRequests::default(),
        };
        Hello::write(versions, UNASKED_XID, &mut session.output);
        session
    }

    /// Returns the negotiated version, once the controller has sent its hello.
    pub fn version(&self) -> Option<Version> {
        self.version
    }

    /// Returns whether the controller may be read from: it reads its output, and none of its messages waits.
    pub fn is_served(&self) -> bool {
        self.output.len() < OUTPUT_HIGH_BYTES && !self.is_waiting
    }

    /// Returns whether the output has space for asynchronous messages.
    fn has_space(&self) -> bool {
        self.output.len() < OUTPUT_MAX_BYTES
    }

    /// Returns whether the output has space for a part of a reply.
    fn has_space_for_part(&self) -> bool {
        self.output.len() < REPLY_OUTPUT_BYTES
    }

    /// Returns whether a message may be handled now: the output has space for its reply, and the message need not wait.
    /// Otherwise notes that it waits.
    pub fn admits(&mut self, frame: &[u8], turn: &Turn, others: Others) -> bool {
        self.is_waiting = !self.may_carry_out(frame, turn, others);
        if self.is_waiting && self.is_barrier_of_disk(frame) {
            self.durable_wanted
                .get_or_insert(others.durability.sequence);
        }
        !self.is_waiting
    }

    /// Returns whether a barrier waits only for changes to be durable.
    pub fn waits_for_disk(&self) -> bool {
        self.is_waiting && self.durable_wanted.is_some()
    }

    /// Returns the change whose durability the next barrier has waited for, if the barrier may now be answered.
    pub fn take_durable_wanted(&mut self) -> Option<u64> {
        self.durable_wanted.take()
    }

    /// Returns whether a message is a barrier that waits at most for the disk.
    fn is_barrier_of_disk(&self, frame: &[u8]) -> bool {
        let awaits = self.version.map(|version| Awaits::of(version, frame));
        awaits == Some(Awaits::Replies) && self.change.is_none() && self.reply.is_none()
    }

    fn may_carry_out(&self, frame: &[u8], turn: &Turn, others: Others) -> bool {
        if self.change.is_some() {
            return false;
        }
        let is_ready = match self.version.map(|version| Awaits::of(version, frame)) {
            None | Some(Awaits::Nothing) => true,
            Some(Awaits::Replies) => {
                let durability = others.durability;
                let is_durable = durability.has_failed || durability.has(self.durable_wanted);
                self.reply.is_none() && is_durable
            }
            Some(Awaits::Room) => {
                self.reply.is_none()
                    && self.has_space_for_part()
                    && turn.may_look()
                    && !others.are_changing
            }
            Some(Awaits::Readers) => !others.wait_to_read,
        };
        is_ready && self.has_space()
    }

    /// Returns whether a change or a reply can continue, or a message that waited can be handled.
    pub fn can_continue(&self, others: Others) -> bool {
        if self.change.is_some() {
            return true;
        }
        if self.reply.is_some() && self.has_space_for_part() {
            return true;
        }
        self.may_carry_out_waiting(others).is_some()
    }

    /// Returns whether a multipart request waits only for the end of other controllers' changes.
    pub fn waits_to_read(&self) -> bool {
        self.may_carry_out_waiting(Others::default()) == Some(Awaits::Room)
    }

    /// Returns the reason why the waiting message was delayed, if it may be handled given the work of others.
    fn may_carry_out_waiting(&self, others: Others) -> Option<Awaits> {
        let (true, Ok(Some((frame, _)))) = (self.is_waiting, split_frame(&self.input)) else {
            return None;
        };
        let may = self.may_carry_out(frame, &Turn::new(), others);
        may.then(|| self.version.map(|version| Awaits::of(version, frame)))?
    }

    /// Writes the next part of the reply, if there is one and the output has space.
    pub fn continue_reply(&mut self, pipeline: &Pipeline, now: Duration, turn: &mut Turn) {
        if !self.has_space_for_part() || !turn.may_look() {
            return;
        }
        let Some(mut reply) = self.reply.take() else {
            return;
        };
        self.has_been_read = true;
        match reply.write_part(pipeline, now, &mut turn.looks, &mut self.output) {
            Written::Part => self.reply = Some(reply),
            Written::All => {}
            Written::Lost => self.end_reply(&reply),
        }
    }

    /// Ends a reply that cannot be completed. The request was not kept, so the error quotes nothing.
    fn end_reply(&mut self, reply: &LongReply) {
        urtica_log::warn!(
            about: urtica_log::without_port(&self.peer), peer = self.peer,
            "too many entries changed while the controller read its statistics; sending an error"
        );
        if let Some(version) = self.version {
            let error = ErrorMessage {
                code: error::for_version(version, ErrorCode::BadRequestMultipartBufferOverflow),
                data: &[],
            };
            self.write(version, reply.xid(), &Message::Error(error));
        }
    }

    /// Returns whether the output has space for packet-ins.
    pub fn has_space_for_packet_in(&self) -> bool {
        self.output.len() < PACKET_IN_OUTPUT_BYTES
    }

    /// Returns whether the controller wants packets that match no entry, not even a table-miss entry (1.0 section 3.4).
    pub fn wants_table_misses(&self) -> bool {
        self.version() == Some(Version::Of10)
            && self.controller.wants_packet_in(PacketInReason::NoMatch)
    }

    /// Notes that the controller is alive.
    pub fn note_activity(&mut self, now: Duration) {
        self.last_activity = now;
        self.last_probe = None;
    }

    /// Handles one complete frame. Returns the decoded message if the switch must handle it.
    ///
    /// # Errors
    /// If the connection must end, once the output has been sent.
    pub fn handle_frame<'a>(
        &mut self,
        frame: &'a [u8],
    ) -> Result<Option<(Header, Message<'a>)>, SessionError> {
        match self.version {
            None => self.handle_hello(frame).map(|()| None),
            Some(version) => Ok(self.handle_message(version, frame)),
        }
    }

    /// Keeps input that cannot be handled yet.
    ///
    /// # Errors
    /// If too much input waits.
    pub fn keep_input(&mut self, input: Vec<u8>) -> Result<(), SessionError> {
        self.input = input;
        match self.input.len() > INPUT_MAX_BYTES {
            true => Err(SessionError::NotRead(self.output.len())),
            false => Ok(()),
        }
    }

    /// Checks the start of an incomplete message, to reject peers early that are not controllers.
    ///
    /// # Errors
    /// If a first message cannot be a hello.
    pub fn handle_fragment(&self, fragment: &[u8]) -> Result<(), SessionError> {
        match self.version {
            None if urtica_socket::is_tls_record(fragment) => Err(SessionError::Tls),
            None if !may_open(fragment) => Err(SessionError::NotOpenFlow),
            _ => Ok(()),
        }
    }

    /// Handles bytes that cannot be split into messages; returns why the connection must end.
    pub fn handle_malformed(&mut self, error: DecodeError, bytes: &[u8]) -> SessionError {
        if self.version.is_some() {
            self.send_error(error.code(), bytes);
        }
        match self.handle_fragment(bytes) {
            Ok(()) => SessionError::Malformed(error),
            Err(not_openflow) => not_openflow,
        }
    }

    /// Handles timeouts: sends an echo request to a silent controller.
    ///
    /// # Errors
    /// If it has been silent for too long.
    pub fn handle_timeout(&mut self, now: Duration) -> Result<(), SessionError> {
        let since = |time| now.saturating_sub(time);
        if self.version.is_none() {
            let is_late = since(self.started) >= HANDSHAKE_TIMEOUT;
            return if is_late {
                Err(SessionError::HandshakeTimeout)
            } else {
                Ok(())
            };
        }
        // A controller that reads its output is alive, even while it is not read from.
        let output_bytes = std::mem::replace(&mut self.last_output_bytes, self.output.len());
        let has_been_read = std::mem::take(&mut self.has_been_read);
        if self.output.len() < output_bytes || has_been_read {
            self.note_activity(now);
        }
        if since(self.last_activity) >= DEAD_INTERVAL {
            return Err(SessionError::Dead);
        }
        if since(self.last_probe.unwrap_or(self.last_activity)) >= ECHO_INTERVAL {
            self.last_probe = Some(now);
            self.send_echo_request();
        }
        Ok(())
    }

    fn handle_hello(&mut self, frame: &[u8]) -> Result<(), SessionError> {
        self.handle_fragment(frame)?;
        let header = Header::peek(frame).ok_or(SessionError::NotOpenFlow)?;
        if header.message_type == OFPT_ERROR {
            return Err(SessionError::Refused(ErrorMessage::hello_error_code(frame)));
        }
        self.version = Hello::negotiate(frame, &self.versions);
        match self.version {
            Some(_) => Ok(()),
            None => Err(self.refuse(header)),
        }
    }

    fn refuse(&mut self, hello: Header) -> SessionError {
        let spoken: Vec<_> = self.versions.iter().map(Version::to_string).collect();
        let ours = spoken.join(" and ");
        let sentence = format!("This switch speaks OpenFlow {ours}.");
        let error = ErrorMessage {
            code: ErrorCode::HelloFailedIncompatible,
            data: sentence.as_bytes(),
        };
        // If the switch has only one of two versions, the lower one may be the one that the controller understands.
        let version = match hello.version < Version::Of13.to_wire() {
            true => Version::Of10,
            false => self.highest(),
        };
        self.write(version, hello.xid, &Message::Error(error));
        SessionError::NoCommonVersion {
            theirs: hello.version,
            ours,
        }
    }

    fn handle_message<'a>(
        &mut self,
        version: Version,
        frame: &'a [u8],
    ) -> Option<(Header, Message<'a>)> {
        let decoded = match Header::peek(frame) {
            Some(header) if header.version != version.to_wire() => {
                Err(DecodeError::UnknownVersion(header.version))
            }
            Some(header) if is_only_sent_by_switches(version, header.message_type) => {
                Err(DecodeError::UnknownType {
                    version,
                    message_type: header.message_type,
                })
            }
            _ => Message::decode(frame),
        };
        match decoded {
            Ok((header, Message::EchoRequest(data))) => {
                self.reply(header.xid, &Message::EchoReply(data));
                None
            }
            Ok((_, Message::Hello(_) | Message::EchoReply(_))) => None,
            Ok((_, Message::Error(error))) => {
                urtica_log::debug!(about: urtica_log::without_port(&self.peer), peer = self.peer, code = %error.code, "the controller sent an error");
                None
            }
            Ok(message) => Some(message),
            Err(error) => {
                urtica_log::debug!(about: urtica_log::without_port(&self.peer), peer = self.peer, %error, "received a malformed message");
                self.send_error(error.code(), frame);
                None
            }
        }
    }

    /// Sends the reply to the request with this xid.
    pub fn reply(&mut self, xid: u32, message: &Message) {
        if let Some(version) = self.version {
            self.write(version, xid, message);
        }
    }

    /// Sends a vendor message as the reply to the request with this xid.
    pub fn reply_vendor(&mut self, xid: u32, message: &NiciraMessage) {
        if let Some(version) = self.version {
            let written = message.write(version, xid, &mut self.output);
            self.note_unwritten(written);
        }
    }

    /// Sends an asynchronous message, unless too much output is unread.
    pub fn send(&mut self, message: &Message) {
        if self.has_space() {
            self.reply(UNASKED_XID, message);
        }
    }

    /// Sends an echo request with its own xid, so that a reply can be paired with it.
    fn send_echo_request(&mut self) {
        if self.has_space() {
            self.last_echo_xid = self.last_echo_xid.wrapping_add(1);
            self.reply(self.last_echo_xid, &Message::EchoRequest(&[]));
        }
    }

    /// Answers a message with an error, which quotes it. Errors are never answered with errors.
    pub fn send_error(&mut self, code: ErrorCode, frame: &[u8]) {
        let header = Header::peek(frame).filter(|header| header.message_type != OFPT_ERROR);
        let (Some(header), Some(version)) = (header, self.version) else {
            return;
        };
        let quoted = &frame[..frame.len().min(QUOTED_BYTES)];
        if code == ErrorCode::BadRequestIsSlave {
            // 1.0 does not define this error, but Open vSwitch and controllers that know its extension do.
            let written =
                ErrorMessage::write_is_slave(version, header.xid, quoted, &mut self.output);
            return self.note_unwritten(written);
        }
        let error = ErrorMessage {
            code: error::for_version(version, code),
            data: quoted,
        };
        self.write(version, header.xid, &Message::Error(error));
    }

    /// Writes a message, unless the version cannot express it.
    fn write(&mut self, version: Version, xid: u32, message: &Message) {
        let written = message.encode(version, xid, &mut self.output);
        self.note_unwritten(written);
    }

    fn note_unwritten(&self, written: Result<(), EncodeError>) {
        if let Err(error) = written {
            urtica_log::debug!(about: urtica_log::without_port(&self.peer), peer = self.peer, %error, "cannot encode a message; not sending it");
        }
    }

    fn highest(&self) -> Version {
        self.versions.iter().copied().max().unwrap_or(Version::Of13)
    }
}

/// Returns whether only switches send messages of this type. They are refused by type, whatever their bodies.
fn is_only_sent_by_switches(version: Version, message_type: u8) -> bool {
    match version {
        // Replies about features and configuration, packet-ins, flow-removed, port-status, then all replies from
        // multipart (1.0: statistics) on.
        Version::Of10 => matches!(message_type, 6 | 8 | 10..=12 | 17 | 19 | 21),
        Version::Of13 => matches!(message_type, 6 | 8 | 10..=12 | 19 | 21 | 23 | 25 | 27),
    }
}

/// Returns whether bytes, possibly incomplete, can be the start of a hello, or of an OFPT_ERROR that refuses ours.
fn may_open(bytes: &[u8]) -> bool {
    let has_version = bytes.first().is_none_or(|&version| version != 0);
    let message_type = bytes.get(1).copied().unwrap_or(OFPT_HELLO);
    has_version && matches!(message_type, OFPT_HELLO | OFPT_ERROR)
}
