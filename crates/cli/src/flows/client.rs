//! One controller's connection to a switch that lets itself be asked: blocking, one request at a time.

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use urtica_socket::{
    Address, Stream, Tls, TlsArgs, TlsArgsError, TlsError, connect, is_tls_record, is_try_again,
};
use urtica_wire::{
    DecodeError, EncodeError, ErrorCode, ErrorMessage, Header, Hello, Message, MultipartFlags,
    MultipartRequest, MultipartRequestBody, Version, split_frame,
};

const READ_BYTES: usize = 64 << 10;

/// A year: what is longer is as good as for ever.
const TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// How long an answer may be in all its parts: some millions of flow entries.
const ANSWER_BYTES_MAX: usize = 512 << 20;

/// Why a switch could not be asked, or did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cannot connect to {address}: {error}; expected a switch that listens there")]
    Connect { address: String, error: io::Error },
    #[error(
        "{0} is an address to listen on; expected one to connect to, such as tcp:HOST:PORT, ssl:HOST:PORT or unix:FILE"
    )]
    Passive(Address),
    #[error(transparent)]
    TlsFiles(#[from] TlsArgsError),
    #[error("no TLS connection with {address}: {error}")]
    Tls { address: String, error: TlsError },
    #[error("the switch speaks TLS there; expected ssl: in its address")]
    NeedsTls,
    #[error("the connection to the switch failed: {0}")]
    Io(io::Error),
    #[error("the switch did not answer within {0} s")]
    Silent(u64),
    #[error(
        "the switch's answer was incomplete after {seconds} s, with {bytes} bytes; increase --timeout"
    )]
    Slow { seconds: u64, bytes: usize },
    #[error("the switch did not read the request within {0} s")]
    Stalled(u64),
    #[error("the switch's answer is too long; expected at most {} MiB", ANSWER_BYTES_MAX >> 20)]
    Endless,
    #[error("the switch closed the connection")]
    Closed,
    #[error("the switch speaks other versions of OpenFlow; expected {ours}")]
    NoCommonVersion { ours: String },
    #[error("the switch refused: {code}{}", reason(.text))]
    Refused { code: ErrorCode, text: String },
    #[error("the switch sent invalid OpenFlow: {0}")]
    NotOpenFlow(#[from] DecodeError),
    #[error("{0}")]
    Unsupported(#[from] EncodeError),
}

/// The sentence that came with an error, if one did.
fn reason(text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!(" ({text})"),
    }
}

/// A message that the switch refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The message's xid.
    pub xid: u32,
    /// Why.
    pub code: ErrorCode,
}

/// A connection whose version is agreed.
pub struct Client {
    stream: Stream,
    version: Version,
    last_xid: u32,
    /// Bytes received and not yet taken.
    input: Vec<u8>,
    timeout: Duration,
    /// When what is being sent or awaited must be done with.
    deadline: Instant,
    /// How many bytes have come of what is awaited.
    answered_bytes: usize,
}

impl Client {
    /// Connects, and agrees on the highest of `versions` that the switch speaks, of all where none are given. `timeout`
    /// bounds each message's way out, and each answer from the question to its last byte.
    pub fn connect(
        address: &Address,
        tls: &TlsArgs,
        versions: &[Version],
        timeout: Duration,
    ) -> Result<Self, ClientError> {
        let versions = match versions {
            [] => &Version::ALL,
            chosen => chosen,
        };
        let tls = tls.load_for([address])?;
        let mut client = Self {
            stream: open(address, tls.as_ref(), timeout.min(TIMEOUT_MAX))?,
            version: Version::Of13,
            last_xid: 0,
            input: Vec::new(),
            timeout: timeout.min(TIMEOUT_MAX),
            deadline: Instant::now(),
            answered_bytes: 0,
        };
        client.version = client.agree(versions)?;
        Ok(client)
    }

    /// The version that is spoken.
    pub fn version(&self) -> Version {
        self.version
    }

    fn agree(&mut self, versions: &[Version]) -> Result<Version, ClientError> {
        let mut hello = Vec::new();
        Hello::write(versions, self.next_xid(), &mut hello);
        self.send_encoded(&hello)?;
        self.begin();
        let frame = self.next_frame()?;
        match Message::decode(&frame)?.1 {
            Message::Error(error) => Err(refused(&error)),
            _ => Hello::negotiate(&frame, versions).ok_or_else(|| ClientError::NoCommonVersion {
                ours: versions
                    .iter()
                    .map(Version::to_string)
                    .collect::<Vec<_>>()
                    .join(" or "),
            }),
        }
    }

    fn next_xid(&mut self) -> u32 {
        self.last_xid += 1;
        self.last_xid
    }

    /// Sends a message without awaiting anything; returns its xid, which an error about it will have.
    pub fn send(&mut self, message: &Message) -> Result<u32, ClientError> {
        let xid = self.next_xid();
        let mut bytes = Vec::new();
        message.encode(self.version, xid, &mut bytes)?;
        self.send_encoded(&bytes)?;
        Ok(xid)
    }

    /// Sends messages that are encoded already, at once and without awaiting anything.
    pub fn send_encoded(&mut self, messages: &[u8]) -> Result<(), ClientError> {
        self.begin();
        self.write_all(messages)
    }

    /// Sends a message and returns the reply, whole.
    pub fn request(&mut self, message: &Message) -> Result<Vec<u8>, ClientError> {
        let xid = self.send(message)?;
        self.begin();
        self.reply(xid)
    }

    /// Asks for state; returns the reply's messages.
    pub fn multipart(&mut self, body: MultipartRequestBody) -> Result<Vec<Vec<u8>>, ClientError> {
        let flags = MultipartFlags::empty();
        let request = Message::MultipartRequest(MultipartRequest { flags, body });
        let xid = self.send(&request)?;
        self.begin();
        let mut parts = Vec::new();
        loop {
            let frame = self.reply(xid)?;
            if self.answered_bytes > ANSWER_BYTES_MAX {
                return Err(ClientError::Endless);
            }
            let more = match Message::decode(&frame)?.1 {
                Message::MultipartReply(reply) => reply.flags.contains(MultipartFlags::MORE),
                _ => false,
            };
            parts.push(frame);
            if !more {
                return Ok(parts);
            }
        }
    }

    /// Waits until the switch has dealt with all that was sent; returns what it refused.
    pub fn barrier(&mut self) -> Result<Vec<Refusal>, ClientError> {
        let barrier = self.send(&Message::BarrierRequest)?;
        self.begin();
        let mut refusals = Vec::new();
        loop {
            let frame = self.next_answer()?;
            let (header, message) = Message::decode(&frame)?;
            match message {
                Message::BarrierReply if header.xid == barrier => return Ok(refusals),
                Message::Error(error) if header.xid == barrier => return Err(refused(&error)),
                Message::Error(error) => refusals.push(Refusal {
                    xid: header.xid,
                    code: error.code,
                }),
                _ => {}
            }
        }
    }

    /// The next message with this xid; whatever else comes is passed over.
    fn reply(&mut self, xid: u32) -> Result<Vec<u8>, ClientError> {
        loop {
            let frame = self.next_answer()?;
            if Header::peek(&frame).is_none_or(|header| header.xid != xid) {
                continue;
            }
            return match Message::decode(&frame)?.1 {
                Message::Error(error) => Err(refused(&error)),
                _ => Ok(frame),
            };
        }
    }

    /// The next message that is not an echo request, which is answered.
    fn next_answer(&mut self) -> Result<Vec<u8>, ClientError> {
        loop {
            let frame = self.next_frame()?;
            let (header, message) = Message::decode(&frame)?;
            let Message::EchoRequest(payload) = message else {
                return Ok(frame);
            };
            let mut reply = Vec::new();
            Message::EchoReply(payload).encode(self.version, header.xid, &mut reply)?;
            self.write_all(&reply)?;
        }
    }

    fn next_frame(&mut self) -> Result<Vec<u8>, ClientError> {
        loop {
            if is_tls_record(&self.input) {
                return Err(ClientError::NeedsTls);
            }
            if let Some((frame, rest)) = split_frame(&self.input)? {
                let (frame, length) = (frame.to_vec(), self.input.len() - rest.len());
                self.input.drain(..length);
                return Ok(frame);
            }
            self.read_more()?;
        }
    }

    fn read_more(&mut self) -> Result<(), ClientError> {
        let mut buffer = [0; READ_BYTES];
        let left = self.time_left().ok_or_else(|| self.too_late())?;
        set_socket_timeout(&self.stream, Timeout::Recv, Some(left))
            .map_err(|error| ClientError::Io(error.into()))?;
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(ClientError::Closed),
            Ok(count) => {
                self.answered_bytes += count;
                self.input.extend_from_slice(&buffer[..count]);
                Ok(())
            }
            // The next look at the time decides.
            Err(error) if is_for_later(&error) => Ok(()),
            Err(error) => Err(ClientError::Io(error)),
        }
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), ClientError> {
        while !bytes.is_empty() {
            let seconds = self.timeout.as_secs();
            let left = self.time_left().ok_or(ClientError::Stalled(seconds))?;
            set_socket_timeout(&self.stream, Timeout::Send, Some(left))
                .map_err(|error| ClientError::Io(error.into()))?;
            match self.stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if is_for_later(&error) => {}
                Err(error) => return Err(ClientError::Io(error)),
            }
        }
        Ok(())
    }

    /// From now on the time counts for what is sent or awaited next.
    fn begin(&mut self) {
        self.deadline = Instant::now() + self.timeout;
        self.answered_bytes = self.input.len();
    }

    fn time_left(&self) -> Option<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    fn too_late(&self) -> ClientError {
        let (seconds, bytes) = (self.timeout.as_secs(), self.answered_bytes);
        match bytes {
            0 => ClientError::Silent(seconds),
            _ => ClientError::Slow { seconds, bytes },
        }
    }
}

/// The socket has a time limit.
fn is_for_later(error: &io::Error) -> bool {
    is_try_again(error) || error.kind() == io::ErrorKind::TimedOut
}

fn refused(error: &ErrorMessage) -> ClientError {
    let is_sentence = error.code == ErrorCode::HelloFailedIncompatible;
    let text = if is_sentence { error.data } else { &[] };
    ClientError::Refused {
        code: error.code,
        text: String::from_utf8_lossy(text).into_owned(),
    }
}

fn open(address: &Address, tls: Option<&Tls>, timeout: Duration) -> Result<Stream, ClientError> {
    if address.is_passive() {
        return Err(ClientError::Passive(address.clone()));
    }
    let socket = connect(address, timeout).map_err(|error| ClientError::Connect {
        address: address.to_string(),
        error,
    })?;
    match tls.filter(|_| address.is_tls()) {
        Some(tls) => {
            Stream::connect_tls(socket.into(), tls, timeout).map_err(|error| ClientError::Tls {
                address: address.to_string(),
                error,
            })
        }
        None => Ok(OwnedFd::from(socket).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};
    use urtica_wire::{List, MultipartReply, MultipartReplyBody};

    /// What nobody waits for unless something is wrong.
    const LONG: Duration = Duration::from_secs(60);

    /// A switch that says `said` at once, and closes when the client does.
    fn switch(said: Vec<u8>) -> (Address, JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&said).unwrap();
            let mut heard = Vec::new();
            stream.read_to_end(&mut heard).unwrap();
            heard
        });
        let host = "127.0.0.1".to_owned();
        (Address::Tcp { host, port }, heard)
    }

    fn connect(said: Vec<u8>, timeout: Duration) -> Result<Client, ClientError> {
        let (address, _) = switch(said);
        Client::connect(&address, &TlsArgs::default(), &Version::ALL, timeout)
    }

    fn hello(versions: &[Version]) -> Vec<u8> {
        let mut bytes = Vec::new();
        Hello::write(versions, 1, &mut bytes);
        bytes
    }

    fn encoded(version: Version, xid: u32, message: &Message) -> Vec<u8> {
        let mut bytes = Vec::new();
        message.encode(version, xid, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_highest_common_version_is_taken() {
        let client = connect(hello(&[Version::Of10]), LONG).unwrap();
        assert_eq!(client.version(), Version::Of10);
        let client = connect(hello(&Version::ALL), LONG).unwrap();
        assert_eq!(client.version(), Version::Of13);
    }

    #[test]
    fn echo_requests_are_answered_while_a_reply_is_awaited() {
        let mut said = hello(&Version::ALL);
        said.extend(encoded(Version::Of13, 77, &Message::EchoRequest(b"there?")));
        said.extend(encoded(Version::Of13, 2, &Message::BarrierReply));
        let (address, heard) = switch(said);
        let mut client =
            Client::connect(&address, &TlsArgs::default(), &Version::ALL, LONG).unwrap();
        assert_eq!(client.barrier().unwrap(), []);
        drop(client);
        let reply = encoded(Version::Of13, 77, &Message::EchoReply(b"there?"));
        assert!(heard.join().unwrap().ends_with(&reply));
    }

    #[test]
    fn a_barrier_tells_what_was_refused() {
        let error = ErrorMessage {
            code: ErrorCode::FlowModFailedTableFull,
            data: &[],
        };
        let mut said = hello(&Version::ALL);
        said.extend(encoded(Version::Of13, 2, &Message::Error(error)));
        said.extend(encoded(Version::Of13, 3, &Message::BarrierReply));
        let mut client = connect(said, LONG).unwrap();
        let xid = client.send(&Message::FlowMod(Default::default())).unwrap();
        let code = ErrorCode::FlowModFailedTableFull;
        assert_eq!(client.barrier().unwrap(), [Refusal { xid, code }]);
    }

    /// A switch that says `said`, and then `again` for ever, byte by byte where `by_bytes`.
    fn endless_switch(said: Vec<u8>, again: Vec<u8>, by_bytes: bool) -> Address {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            stream.write_all(&said).unwrap();
            // Ends when the client has gone.
            loop {
                let sent = match by_bytes {
                    true => again.iter().try_for_each(|byte| {
                        thread::sleep(Duration::from_millis(5));
                        stream.write_all(&[*byte])
                    }),
                    false => stream.write_all(&again),
                };
                if sent.is_err() {
                    return;
                }
            }
        });
        let host = "127.0.0.1".to_owned();
        Address::Tcp { host, port }
    }

    #[test]
    fn an_answer_that_drips_is_waited_for_no_longer_than_the_timeout() {
        let more = MultipartReply {
            flags: MultipartFlags::MORE,
            body: MultipartReplyBody::Flow(List::default()),
        };
        let part = encoded(Version::Of13, 2, &Message::MultipartReply(more));
        let barrier = encoded(Version::Of13, 77, &Message::BarrierReply);
        for (again, by_bytes) in [(part, true), (barrier.clone(), true), (barrier, false)] {
            // The first bytes of the answer come with the hello, so that they are there in time.
            let said = [hello(&Version::ALL), again.clone()].concat();
            let address = endless_switch(said, again, by_bytes);
            let mut client =
                Client::connect(&address, &TlsArgs::default(), &Version::ALL, LONG).unwrap();
            client.timeout = Duration::from_millis(200);
            let error = client.multipart(MultipartRequestBody::Table).unwrap_err();
            assert!(matches!(error, ClientError::Slow { .. }), "{error}");
            let told = error.to_string();
            assert!(told.contains("was incomplete after"), "{told}");
        }
    }

    #[test]
    fn a_hello_that_drips_is_waited_for_no_longer_than_the_timeout() {
        let address = endless_switch(vec![4, 0, 0xff], vec![0xff, 0, 0], true);
        let timeout = Duration::from_millis(200);
        let error = Client::connect(&address, &TlsArgs::default(), &Version::ALL, timeout).err();
        // The machine may be too busy for a single byte to come in time.
        assert!(matches!(
            error,
            Some(ClientError::Slow { .. } | ClientError::Silent(_) | ClientError::Connect { .. })
        ));
    }

    #[test]
    fn failures_are_sentences() {
        const SOON: Duration = Duration::from_millis(300);
        let sentence = |said, wait| match connect(said, wait).and_then(|mut client| {
            let _ = client.barrier()?;
            Ok(())
        }) {
            Ok(()) => panic!("expected a failure"),
            Err(error) => error.to_string(),
        };
        let refusal = ErrorMessage {
            code: ErrorCode::HelloFailedIncompatible,
            data: b"only 1.5 here",
        };
        let refusal = encoded(Version::Of10, 1, &Message::Error(refusal));
        for (said, wait, expected) in [
            (vec![], SOON, "did not answer"),
            (vec![4, 0, 0, 3, 0, 0, 0, 1], LONG, "invalid OpenFlow"),
            (vec![6, 0, 0, 8, 0, 0, 0, 1], SOON, "did not answer"),
            (vec![2, 0, 0, 8, 0, 0, 0, 1], LONG, "expected 1.0 or 1.3"),
            (refusal, LONG, "only 1.5 here"),
        ] {
            let told = sentence(said, wait);
            assert!(told.contains(expected), "{told}");
        }
        let passive: Address = "ptcp:6653".parse().unwrap();
        let error = Client::connect(
            &passive,
            &TlsArgs::default(),
            &Version::ALL,
            Duration::from_secs(1),
        )
        .err();
        assert!(error.unwrap().to_string().contains("tcp:HOST:PORT"));
    }
}
