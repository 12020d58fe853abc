//! The OpenFlow connections in a capture: each has the messages of both sides in the order of their capture.

use super::kind::{OFPT_FEATURES_REPLY, OFPT_HELLO};
use crate::packets::{Packets, ReadError};
use crate::reassembly::{Piece, Reassembly};
use crate::segment::{Direction, Segment, tcp_segment};
use crate::transcript::Side;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;
use urtica_socket::is_tls_record;
use urtica_wire::{DatapathId, Header, Version, split_frame};

/// The wire versions of hellos: 1.0 to 1.5.
const WIRE_VERSIONS: std::ops::RangeInclusive<u8> = 1..=6;

/// The content of a capture.
pub struct Recording {
    /// The connections that can be replayed, in the order of their start.
    pub sessions: Vec<Session>,
    /// Descriptions of the parts that cannot be replayed.
    pub problems: Vec<String>,
}

/// One connection.
pub struct Session {
    /// The address of the switch.
    pub switch: SocketAddr,
    /// The switch's identity.
    pub datapath_id: DatapathId,
    /// The negotiated version.
    pub version: Version,
    /// All messages after the hellos.
    pub steps: Vec<Step>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When it was captured, since 1970.
    pub time: Duration,
    /// Its sender.
    pub from: Side,
    /// The whole message.
    pub frame: Vec<u8>,
}

/// An error of a capture with nothing to replay.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file is not a capture.
    #[error(transparent)]
    File(#[from] ReadError),
    /// The capture has no OpenFlow connection.
    #[error(
        "the recording has no OpenFlow connection to replay; expected one that starts in it, with the hellos \
         of both sides and a features reply{}", told(.0)
    )]
    Nothing(Vec<String>),
}

fn told(problems: &[String]) -> String {
    problems
        .iter()
        .map(|problem| format!("\n  {problem}"))
        .collect()
}

impl Session {
    /// Returns the capture time of the first message.
    pub fn begin(&self) -> Duration {
        self.steps.first().map_or(Duration::ZERO, |step| step.time)
    }
}

impl Recording {
    /// Reads a pcap or pcapng file, up to the first unreadable packet.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn read(bytes: &[u8]) -> Result<Self, RecordingError> {
        let mut packets = Packets::new(bytes)?;
        let mut connections = Connections::default();
        loop {
            match packets.next() {
                Ok(None) => break,
                Ok(Some(packet)) => {
                    if let Some((direction, segment)) = tcp_segment(packet.link, &packet.data) {
                        connections.take(packet.time, direction, &segment);
                    }
                }
                Err(error) => {
                    connections.problems.push(error.to_string());
                    break;
                }
            }
        }
        connections.finish()
    }
}

/// The open connections while reading a capture.
#[derive(Default)]
struct Connections {
    open: HashMap<(SocketAddr, SocketAddr), Connection>,
    sessions: Vec<Session>,
    problems: Vec<String>,
    /// Number of connections with another protocol.
    others: u64,
}

/// One connection so far.
struct Connection {
    ends: [End; 2],
    /// The messages, each with its sender's index in `ends`.
    messages: Vec<(usize, Duration, Vec<u8>)>,
    /// The reason why later messages cannot be used.
    stopped: Option<String>,
    is_tls: bool,
}

/// One direction.
struct End {
    at: SocketAddr,
    reassembly: Reassembly,
    bytes: Vec<u8>,
    has_spoken: bool,
}

impl Connections {
    fn take(&mut self, time: Duration, direction: Direction, segment: &Segment<'_>) {
        let (from, to) = (direction.from, direction.to);
        let key = (from.min(to), from.max(to));
        if let Some(open) = self.open.get(&key) {
            let sender = usize::from(open.ends[0].at != from);
            if open.ends[sender].reassembly.is_new_connection(segment) {
                self.end(key);
            }
        }
        let connection = self.open.entry(key).or_insert_with(|| Connection::new(key));
        connection.take(usize::from(key.0 != from), time, segment);
    }

    fn end(&mut self, key: (SocketAddr, SocketAddr)) {
        let Some(mut connection) = self.open.remove(&key) else {
            return;
        };
        connection.finish();
        let places = format!("{} and {}", key.0, key.1);
        match connection.into_session() {
            Ok((session, stopped)) => {
                let id = session.datapath_id;
                let stopped = stopped.map(|why| {
                    format!(
                        "the connection of {id} ({places}) is replayed up to the point where {why}"
                    )
                });
                self.problems.extend(stopped);
                self.sessions.push(session);
            }
            Err(NoSession::NotOpenFlow) => self.others += 1,
            Err(NoSession::Because(why)) => {
                let problem = format!("the connection between {places} is not replayed: {why}");
                self.problems.push(problem);
            }
        }
    }

    fn finish(mut self) -> Result<Recording, RecordingError> {
        let mut open: Vec<_> = self.open.keys().copied().collect();
        open.sort_unstable();
        for key in open {
            self.end(key);
        }
        if self.sessions.is_empty() {
            if self.others > 0 {
                let others = self.others;
                let problem = format!(
                    "TCP connections that do not begin with OpenFlow's hello in the recording: {others}"
                );
                self.problems.push(problem);
            }
            return Err(RecordingError::Nothing(self.problems));
        }
        self.sessions.sort_by_key(Session::begin);
        Ok(Recording {
            sessions: self.sessions,
            problems: self.problems,
        })
    }
}

/// Why a connection is not a session.
enum NoSession {
    NotOpenFlow,
    Because(String),
}

impl Connection {
    fn new(places: (SocketAddr, SocketAddr)) -> Self {
        let end = |at| End {
            at,
            reassembly: Reassembly::default(),
            bytes: Vec::new(),
            has_spoken: false,
        };
        Self {
            ends: [end(places.0), end(places.1)],
            messages: Vec::new(),
            stopped: None,
            is_tls: false,
        }
    }

    fn take(&mut self, sender: usize, time: Duration, segment: &Segment<'_>) {
        self.advance(sender, time, |reassembly, give| {
            reassembly.take(segment, give);
        });
        if let Some(ack) = segment.ack {
            self.advance(1 - sender, time, |reassembly, give| {
                reassembly.acknowledge(ack, give);
            });
        }
    }

    fn finish(&mut self) {
        for sender in [0, 1] {
            let time = self.messages.last().map_or(Duration::ZERO, |last| last.1);
            self.advance(sender, time, Reassembly::finish);
        }
        let rest = self.ends.iter().find(|end| !end.bytes.is_empty());
        if let Some(end) = rest {
            let why = format!("the recording ends within a message of {}", end.at);
            self.stopped.get_or_insert(why);
        }
    }

    /// Handles the bytes that a direction's reassembly delivers in `step`.
    fn advance(
        &mut self,
        sender: usize,
        time: Duration,
        step: impl FnOnce(&mut Reassembly, &mut dyn FnMut(Piece<'_>)),
    ) {
        let end = &mut self.ends[sender];
        let (bytes, stopped, at) = (&mut end.bytes, &mut self.stopped, end.at);
        step(&mut end.reassembly, &mut |piece| match piece {
            Piece::Bytes(new) if stopped.is_none() => bytes.extend_from_slice(new),
            Piece::Bytes(_) => {}
            Piece::Lost(count) => {
                let why = format!("bytes of {at} are missing from the recording: {count}");
                stopped.get_or_insert(why);
            }
        });
        self.split(sender, time);
    }

    /// Splits a side's bytes into whole messages.
    fn split(&mut self, sender: usize, time: Duration) {
        let end = &mut self.ends[sender];
        let mut taken = 0;
        loop {
            let rest = &end.bytes[taken..];
            if !end.has_spoken && !rest.is_empty() && !starts_with_hello(rest) {
                self.is_tls |= is_tls_record(rest);
                self.stopped
                    .get_or_insert_with(|| "it is not OpenFlow".to_owned());
                break;
            }
            match split_frame(rest) {
                Ok(None) => break,
                Ok(Some((frame, _))) => {
                    end.has_spoken = true;
                    taken += frame.len();
                    self.messages.push((sender, time, frame.to_vec()));
                }
                Err(error) => {
                    let at = end.at;
                    self.stopped
                        .get_or_insert_with(|| format!("{at} sent invalid OpenFlow: {error}"));
                    break;
                }
            }
        }
        end.bytes.drain(..taken);
        if self.stopped.is_some() {
            end.bytes.clear();
        }
    }

    /// Returns the session, and the reason why it stopped early, if it did.
    fn into_session(self) -> Result<(Session, Option<String>), NoSession> {
        if self.is_tls {
            return Err(NoSession::Because(
                "it is TLS, which urtica capture records in plain".to_owned(),
            ));
        }
        if !self.ends.iter().all(|end| end.has_spoken) {
            return Err(NoSession::NotOpenFlow);
        }
        let no_switch = || {
            let why = self
                .stopped
                .as_deref()
                .unwrap_or("it identifies the switch");
            NoSession::Because(format!(
                "neither side has sent a features reply before {why}"
            ))
        };
        let (switch, features) = self.features().ok_or_else(no_switch)?;
        let version = Version::from_wire(features[0]).map_err(|_| {
            NoSession::Because(format!(
                "it speaks OpenFlow 1.{}; expected 1.0 or 1.3",
                features[0].saturating_sub(1)
            ))
        })?;
        if version == Version::Of13 && features.get(21).is_some_and(|&auxiliary| auxiliary != 0) {
            let why = "it is an auxiliary connection, and only main ones are".to_owned();
            return Err(NoSession::Because(why));
        }
        let id = features.get(8..16).and_then(|id| id.try_into().ok());
        let datapath_id = DatapathId(id.map(u64::from_be_bytes).ok_or_else(no_switch)?);
        let place = self.ends[switch].at;
        let messages = self.messages.into_iter();
        let steps = messages.filter(|(_, _, frame)| frame[1] != OFPT_HELLO);
        let steps = steps.map(|(sender, time, frame)| Step {
            time,
            from: match sender == switch {
                true => Side::Switch,
                false => Side::Controller,
            },
            frame,
        });
        let session = Session {
            switch: place,
            datapath_id,
            version,
            steps: steps.collect(),
        };
        Ok((session, self.stopped))
    }

    /// Returns the first features reply, and which side has sent it.
    fn features(&self) -> Option<(usize, &[u8])> {
        let mut messages = self.messages.iter();
        let (sender, _, frame) = messages.find(|(_, _, frame)| frame[1] == OFPT_FEATURES_REPLY)?;
        Some((*sender, frame))
    }
}

/// Returns `true` if these may be the first bytes of an OpenFlow connection.
fn starts_with_hello(bytes: &[u8]) -> bool {
    let is_version = bytes
        .first()
        .is_none_or(|byte| WIRE_VERSIONS.contains(byte));
    let is_hello = bytes.get(1).is_none_or(|&byte| byte == OFPT_HELLO);
    let is_long_enough =
        Header::peek(bytes).is_none_or(|header| usize::from(header.length) >= Header::SIZE);
    is_version && is_hello && is_long_enough
}
