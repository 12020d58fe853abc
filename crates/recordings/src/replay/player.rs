//! One recorded switch, connected to a controller.
//!
//! The controller's requests are answered at once, with its own xids. The switch's asynchronous messages wait until the
//! controller has sent as many messages as it had in the recording.

use super::kind::{Kind, OFPT_ERROR, OFPT_HELLO, name};
use super::played::{PlayError, Played};
use super::script::Script;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};
use urtica_socket::{Address, ConnectError, Stream, Tls, is_try_again};
use urtica_wire::{ErrorCode, ErrorMessage, Header, Hello, Message, split_frame};

const READ_BYTES: usize = 64 << 10;

/// The timeout for the controller's handshake, for reading bytes, and for the reply to an echo request.
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of bytes waiting for the controller at which sending pauses.
const WAITING_BYTES_MAX: usize = 256 << 10;

/// The minimum number of a message's bytes in an error about it (1.3.5 section 7.4.4).
const ERROR_DATA_BYTES: usize = 64;

/// The xid of our own messages; recorded messages keep theirs.
const OWN_XID: u32 = 0xffff_ff00;

/// The data of our last echo request, which identifies its reply.
const FENCE: &[u8] = b"end of replay";

/// The timing of asynchronous messages.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Pace {
    /// At the recorded times.
    AsRecorded {
        /// The factor by which sending is faster.
        speed: f64,
    },
    /// As soon as the controller has sent the messages that came before in the recording.
    AsAnswered,
    /// As fast as the controller reads.
    Load {
        /// Number of times that the asynchronous messages are sent.
        loops: u64,
    },
}

/// A connected switch.
pub struct Player<'s> {
    script: &'s Script,
    stream: Stream,
    input: Vec<u8>,
    output: Vec<u8>,
    buffer: Vec<u8>,
    /// The time limit for each of the controller's recorded messages.
    timeout: Duration,
    has_hello: bool,
    is_fenced: bool,
    /// Number of received messages of each kind.
    turns: HashMap<Kind, usize>,
    /// Number of the controller's messages for which it no longer waits.
    skipped: usize,
    /// Total number of asynchronous messages to send.
    all: u64,
    played: Played,
}

impl<'s> Player<'s> {
    /// Connects to a controller, and sends a hello of the recorded version. `timeout` is the limit for each of the
    /// controller's recorded messages.
    pub fn connect(
        address: &Address,
        tls: Option<&Tls>,
        script: &'s Script,
        timeout: Duration,
    ) -> Result<Self, PlayError> {
        let stream = open(address, tls)?;
        let mut output = Vec::new();
        Hello::write(&[script.version], OWN_XID, &mut output);
        Ok(Self {
            script,
            stream,
            input: Vec::new(),
            output,
            buffer: vec![0; READ_BYTES],
            timeout,
            has_hello: false,
            is_fenced: false,
            turns: HashMap::new(),
            skipped: 0,
            all: script.asynchronous.len() as u64,
            played: Played::default(),
        })
    }

    /// Sends all messages.
    pub fn play(mut self, pace: Pace) -> Result<Played, PlayError> {
        if !self.wait(PATIENCE, |player| player.has_hello)? {
            return Err(silent("its hello"));
        }
        let began = Instant::now();
        let first = self
            .script
            .asynchronous
            .first()
            .map_or(0, |first| first.after);
        self.wait_for(first, self.timeout.max(PATIENCE))?;
        let said_from = Instant::now();
        match pace {
            Pace::Load { loops } => self.say_fast(loops)?,
            Pace::AsRecorded { speed } => self.say_in_turn(Some((began, speed)))?,
            Pace::AsAnswered => self.say_in_turn(None)?,
        }
        if !matches!(pace, Pace::Load { .. }) {
            self.wait_for(self.script.expected.len(), self.timeout)?;
        }
        self.fence()?;
        self.played.taken = said_from.elapsed();
        self.note_missing();
        Ok(self.played)
    }

    fn say_fast(&mut self, loops: u64) -> Result<(), PlayError> {
        self.all = self.all.saturating_mul(loops);
        for _ in 0..loops {
            for message in &self.script.asynchronous {
                self.say(&message.frame)?;
            }
        }
        Ok(())
    }

    fn say_in_turn(&mut self, times: Option<(Instant, f64)>) -> Result<(), PlayError> {
        for message in &self.script.asynchronous {
            self.wait_for(message.after, self.timeout)?;
            if let Some((began, speed)) = times {
                let due = began + scaled(message.offset, speed);
                self.pump(due, |_| false)?;
            }
            self.say(&message.frame)?;
        }
        Ok(())
    }

    fn say(&mut self, frame: &[u8]) -> Result<(), PlayError> {
        self.output.extend_from_slice(frame);
        self.played.sent += 1;
        if self.output.len() < WAITING_BYTES_MAX {
            return Ok(());
        }
        // A slow controller may continue as long as it reads anything.
        loop {
            let before = self.output.len();
            if self.wait(PATIENCE, |player| {
                player.output.len() < WAITING_BYTES_MAX / 2
            })? {
                return Ok(());
            }
            if self.output.len() == before {
                return Err(PlayError::Stalled(PATIENCE.as_secs()));
            }
        }
    }

    /// Waits until `count` of the controller's messages have arrived, or counts the rest as missed after the timeout.
    fn wait_for(&mut self, count: usize, timeout: Duration) -> Result<(), PlayError> {
        let count = count.saturating_sub(self.skipped) as u64;
        if self.wait(timeout, |player| {
            player.played.received >= count && player.output.is_empty()
        })? {
            return Ok(());
        }
        self.played.missed += 1;
        self.skipped += count.saturating_sub(self.played.received) as usize;
        let next = self.played.received as usize;
        let expected = self.script.expected.get(next);
        let expected = expected.map_or_else(String::new, |frame| name(frame));
        let seconds = timeout.as_secs();
        self.differ(|| {
            format!("expected {expected} as the controller's message {}, but nothing arrived within {seconds} s", next + 1)
        });
        Ok(())
    }

    /// Sends an echo request; its reply shows that the controller has handled all earlier messages.
    fn fence(&mut self) -> Result<(), PlayError> {
        let header = Header {
            version: self.script.version.to_wire(),
            message_type: 2,
            length: (Header::SIZE + FENCE.len()) as u16,
            xid: OWN_XID + 1,
        };
        header.write(&mut self.output);
        self.output.extend_from_slice(FENCE);
        // While bytes are sent or received, the controller is not silent.
        loop {
            let before = (self.output.len(), self.played.received);
            if self.wait(PATIENCE, |player| player.is_fenced)? {
                return Ok(());
            }
            if before == (self.output.len(), self.played.received) {
                return Err(silent("the reply to an echo request"));
            }
        }
    }

    fn note_missing(&mut self) {
        let received = self.played.received as usize;
        if let Some(frame) = self.script.expected.get(received) {
            let expected = name(frame);
            self.differ(|| {
                format!(
                    "the controller sent {received} messages; expected {expected} next, as recorded"
                )
            });
        }
    }

    fn differ(&mut self, difference: impl FnOnce() -> String) {
        self.played.difference.get_or_insert_with(difference);
    }

    /// Sends and receives until `holds` returns `true`, or the time is over; returns the last result.
    fn wait(
        &mut self,
        timeout: Duration,
        holds: impl Fn(&Self) -> bool,
    ) -> Result<bool, PlayError> {
        self.pump(Instant::now() + timeout, holds)
    }

    /// Sends and receives until `holds` returns `true`, or the deadline; returns the last result.
    fn pump(
        &mut self,
        deadline: Instant,
        holds: impl Fn(&Self) -> bool,
    ) -> Result<bool, PlayError> {
        loop {
            self.flush()?;
            if holds(self) {
                return Ok(true);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            self.poll(left)?;
            self.receive()?;
        }
    }

    fn poll(&self, left: Duration) -> Result<(), PlayError> {
        if self.stream.has_input() {
            return Ok(());
        }
        let mut flags = PollFlags::IN;
        flags.set(
            PollFlags::OUT,
            !self.output.is_empty() || self.stream.has_unsent(),
        );
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&self.stream, flags)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(PlayError::Io(error.into())),
        }
    }

    fn flush(&mut self) -> Result<(), PlayError> {
        let mut sent = 0;
        let flushed = self.stream.flush().map(drop);
        let flushed = flushed.and_then(|()| {
            while sent < self.output.len() {
                sent += self.stream.write(&self.output[sent..])?;
            }
            Ok(())
        });
        self.output.drain(..sent);
        match flushed {
            Err(error) if !is_try_again(&error) => Err(self.closed(Some(error))),
            _ => Ok(()),
        }
    }

    fn closed(&self, error: Option<io::Error>) -> PlayError {
        PlayError::Closed {
            sent: self.played.sent,
            all: self.all,
            error,
        }
    }

    /// Reads once, and handles all complete messages.
    fn receive(&mut self) -> Result<(), PlayError> {
        match self.stream.read(&mut self.buffer) {
            Ok(0) => return Err(self.closed(None)),
            Ok(count) => self.input.extend_from_slice(&self.buffer[..count]),
            Err(error) if is_try_again(&error) => return Ok(()),
            Err(error) => return Err(self.closed(Some(error))),
        }
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..];
        while let Some((frame, after)) = split_frame(rest)? {
            self.handle(frame)?;
            rest = after;
        }
        self.input = rest.to_vec();
        Ok(())
    }

    fn handle(&mut self, frame: &[u8]) -> Result<(), PlayError> {
        let version = self.script.version;
        let kind = Kind::of(version, frame);
        if !self.has_hello {
            return self.handle_hello(frame, kind);
        }
        if frame[0] != version.to_wire() {
            return Err(PlayError::Version(version));
        }
        if kind.is_echo_request() {
            self.echo(frame);
        } else if kind.is_echo_reply() {
            self.is_fenced |= &frame[Header::SIZE..] == FENCE;
        } else {
            self.compare(kind, frame);
            self.answer(kind, frame);
            self.played.received += 1;
        }
        Ok(())
    }

    fn handle_hello(&mut self, frame: &[u8], kind: Kind) -> Result<(), PlayError> {
        let version = self.script.version;
        match kind.message_type {
            OFPT_HELLO => {
                self.has_hello = Hello::negotiate(frame, &[version]).is_some();
                match self.has_hello {
                    true => Ok(()),
                    false => Err(PlayError::Version(version)),
                }
            }
            OFPT_ERROR => {
                let text = frame.get(Header::SIZE + 4..).unwrap_or_default();
                Err(PlayError::Refused {
                    code: ErrorMessage::hello_error_code(frame),
                    text: String::from_utf8_lossy(text).into_owned(),
                })
            }
            _ => Err(silent("a hello before anything else")),
        }
    }

    fn compare(&mut self, kind: Kind, frame: &[u8]) {
        let index = self.played.received as usize;
        let recorded = self.script.expected.get(index);
        if recorded.is_some_and(|recorded| Kind::of(self.script.version, recorded) == kind) {
            return;
        }
        self.differ(|| {
            let expected = recorded.map_or_else(|| "none".to_owned(), |frame| name(frame));
            let sent = name(frame);
            format!(
                "the controller's message {} is {sent}; expected {expected}, as recorded",
                index + 1
            )
        });
    }

    /// Answers like the recorded switch, with this message's xid.
    fn answer(&mut self, kind: Kind, frame: &[u8]) {
        let script = self.script;
        let turn = self.turns.entry(kind).or_default();
        let answers = script.answers(kind, *turn);
        *turn += 1;
        let xid = Header::peek(frame).map_or(0, |header| header.xid);
        for answer in answers {
            let start = self.output.len();
            self.output.extend_from_slice(answer);
            self.output[start + 4..start + 8].copy_from_slice(&xid.to_be_bytes());
        }
        if !answers.is_empty() {
            self.played.answered += 1;
        } else if kind.is_barrier_request(script.version) {
            self.encode(&Message::BarrierReply, xid);
        } else if kind.is_request(script.version) {
            self.refuse(kind, frame, xid);
        }
    }

    /// Replies with an error that the request is unknown to the recorded switch; without a reply the controller would wait.
    fn refuse(&mut self, kind: Kind, frame: &[u8], xid: u32) {
        self.played.unknown += 1;
        let code = match kind.is_multipart_request(self.script.version) {
            true => ErrorCode::BadRequestBadMultipart,
            false => ErrorCode::BadRequestBadType,
        };
        let data = &frame[..frame.len().min(ERROR_DATA_BYTES)];
        self.encode(&Message::Error(ErrorMessage { code, data }), xid);
    }

    fn encode(&mut self, message: &Message<'_>, xid: u32) {
        let encoded = message.encode(self.script.version, xid, &mut self.output);
        encoded.expect("both versions have short errors and barriers");
    }

    fn echo(&mut self, request: &[u8]) {
        let start = self.output.len();
        self.output.extend_from_slice(request);
        self.output[start + 1] = 3;
    }
}

/// Opens a non-blocking connection.
fn open(address: &Address, tls: Option<&Tls>) -> Result<Stream, PlayError> {
    Stream::connect(address, tls, PATIENCE).map_err(|error| {
        let address = address.clone();
        match error {
            ConnectError::Socket(error) => PlayError::Connect { address, error },
            ConnectError::Tls(error) => PlayError::Tls { address, error },
            other => PlayError::Connect {
                address,
                error: io::Error::other(other),
            },
        }
    })
}

/// Returns a recorded time divided by `speed`, at most a year: a damaged recording may have any time.
pub fn scaled(time: Duration, speed: f64) -> Duration {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let scaled = Duration::try_from_secs_f64(time.as_secs_f64() / speed);
    scaled.unwrap_or(YEAR).min(YEAR)
}

fn silent(expected: &'static str) -> PlayError {
    PlayError::Silent(PATIENCE.as_secs(), expected)
}
