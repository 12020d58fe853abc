//! One controller's connection to a switch that lets itself be asked: blocking, one request at a time.

use socket2::{SockAddr, Socket, Type};
use std::io::{self, Read, Write};
use std::time::Duration;
use urtica_socket::look_up;
use urtica_wire::{
    Address, DecodeError, EncodeError, ErrorCode, ErrorMessage, Header, Hello, Message,
    MultipartFlags, MultipartRequest, MultipartRequestBody, Version, split_frame,
};

const READ_BYTES: usize = 64 << 10;

/// Why a switch could not be asked, or did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cannot connect to {address}: {error}; expected a switch that listens there")]
    Connect { address: String, error: io::Error },
    #[error(
        "{0} is a place to listen at; expected one to connect to, such as tcp:HOST:PORT or unix:FILE"
    )]
    Passive(Address),
    #[error("the connection to the switch failed: {0}")]
    Io(io::Error),
    #[error("the switch did not answer within {0} s")]
    Silent(u64),
    #[error("the switch closed the connection")]
    Closed,
    #[error("the switch speaks other versions of OpenFlow; expected {ours}")]
    NoCommonVersion { ours: String },
    #[error("the switch refused: {code}{}", reason(.text))]
    Refused { code: ErrorCode, text: String },
    #[error("what the switch sent is not OpenFlow: {0}")]
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
    stream: Socket,
    version: Version,
    last_xid: u32,
    /// Bytes received and not yet taken.
    input: Vec<u8>,
    timeout: Duration,
}

impl Client {
    /// Connects, and agrees on the highest of `versions` that the switch speaks, of all where none are given. `timeout`
    /// bounds every wait.
    pub fn connect(
        address: &Address,
        versions: &[Version],
        timeout: Duration,
    ) -> Result<Self, ClientError> {
        let versions = match versions {
            [] => &Version::ALL,
            chosen => chosen,
        };
        let mut client = Self {
            stream: open(address, timeout)?,
            version: Version::Of13,
            last_xid: 0,
            input: Vec::new(),
            timeout,
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
        self.stream.write_all(&hello).map_err(ClientError::Io)?;
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
        self.stream.write_all(&bytes).map_err(ClientError::Io)?;
        Ok(xid)
    }

    /// Sends messages that are encoded already, at once and without awaiting anything.
    pub fn send_encoded(&mut self, messages: &[u8]) -> Result<(), ClientError> {
        self.stream.write_all(messages).map_err(ClientError::Io)
    }

    /// Sends a message and returns the reply, whole.
    pub fn request(&mut self, message: &Message) -> Result<Vec<u8>, ClientError> {
        let xid = self.send(message)?;
        self.reply(xid)
    }

    /// Asks for state; returns the reply's messages.
    pub fn multipart(&mut self, body: MultipartRequestBody) -> Result<Vec<Vec<u8>>, ClientError> {
        let flags = MultipartFlags::empty();
        let request = Message::MultipartRequest(MultipartRequest { flags, body });
        let xid = self.send(&request)?;
        let mut parts = Vec::new();
        loop {
            let frame = self.reply(xid)?;
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
            self.stream.write_all(&reply).map_err(ClientError::Io)?;
        }
    }

    fn next_frame(&mut self) -> Result<Vec<u8>, ClientError> {
        loop {
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
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(ClientError::Closed),
            Ok(count) => {
                self.input.extend_from_slice(&buffer[..count]);
                Ok(())
            }
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => Ok(()),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    Err(ClientError::Silent(self.timeout.as_secs()))
                }
                _ => Err(ClientError::Io(error)),
            },
        }
    }
}

fn refused(error: &ErrorMessage) -> ClientError {
    let is_sentence = error.code == ErrorCode::HelloFailedIncompatible;
    let text = if is_sentence { error.data } else { &[] };
    ClientError::Refused {
        code: error.code,
        text: String::from_utf8_lossy(text).into_owned(),
    }
}

fn open(address: &Address, timeout: Duration) -> Result<Socket, ClientError> {
    if address.is_passive() {
        return Err(ClientError::Passive(address.clone()));
    }
    connect(address, timeout).map_err(|error| ClientError::Connect {
        address: address.to_string(),
        error,
    })
}

/// Tries the places that the address stands for, one after the other.
fn connect(address: &Address, timeout: Duration) -> io::Result<Socket> {
    let mut last = io::ErrorKind::NotFound.into();
    for place in look_up(address)? {
        match connect_to(&place, timeout) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn connect_to(place: &SockAddr, timeout: Duration) -> io::Result<Socket> {
    let socket = Socket::new(place.domain(), Type::STREAM, None)?;
    socket.set_read_timeout(Some(timeout))?;
    socket.set_write_timeout(Some(timeout))?;
    if !place.is_unix() {
        socket.set_tcp_nodelay(true)?;
    }
    socket.connect_timeout(place, timeout)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};

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

    fn connect(said: Vec<u8>, timeout_ms: u64) -> Result<Client, ClientError> {
        let (address, _) = switch(said);
        Client::connect(&address, &Version::ALL, Duration::from_millis(timeout_ms))
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
        let client = connect(hello(&[Version::Of10]), 1000).unwrap();
        assert_eq!(client.version(), Version::Of10);
        let client = connect(hello(&Version::ALL), 1000).unwrap();
        assert_eq!(client.version(), Version::Of13);
    }

    #[test]
    fn echo_requests_are_answered_while_a_reply_is_awaited() {
        let mut said = hello(&Version::ALL);
        said.extend(encoded(Version::Of13, 77, &Message::EchoRequest(b"there?")));
        said.extend(encoded(Version::Of13, 2, &Message::BarrierReply));
        let (address, heard) = switch(said);
        let mut client = Client::connect(&address, &Version::ALL, Duration::from_secs(5)).unwrap();
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
        let mut client = connect(said, 5000).unwrap();
        let xid = client.send(&Message::FlowMod(Default::default())).unwrap();
        let code = ErrorCode::FlowModFailedTableFull;
        assert_eq!(client.barrier().unwrap(), [Refusal { xid, code }]);
    }

    #[test]
    fn failures_are_sentences() {
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
            (vec![], 50, "did not answer"),
            (vec![4, 0, 0, 3, 0, 0, 0, 1], 1000, "not OpenFlow"),
            (vec![6, 0, 0, 8, 0, 0, 0, 1], 50, "did not answer"),
            (vec![2, 0, 0, 8, 0, 0, 0, 1], 1000, "expected 1.0 or 1.3"),
            (refusal, 1000, "only 1.5 here"),
        ] {
            let told = sentence(said, wait);
            assert!(told.contains(expected), "{told}");
        }
        let passive: Address = "ptcp:6653".parse().unwrap();
        let error = Client::connect(&passive, &Version::ALL, Duration::from_secs(1)).err();
        assert!(error.unwrap().to_string().contains("tcp:HOST:PORT"));
    }
}
