//! A connection to a switch: blocking, one request at a time.

use crate::error::{ANSWER_BYTES_MAX, ClientError};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use urtica_socket::{Address, NoTlsConfig, Stream, Tls, connect, has_timed_out, is_tls_record};
use urtica_wire::{
    ErrorCode, ErrorMessage, Header, Hello, Message, MultipartFlags, MultipartRequest,
    MultipartRequestBody, Version, split_frame,
};

const READ_BYTES: usize = 64 << 10;

/// A year: a longer timeout has no effect in practice.
const TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// A message that the switch refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The message's xid.
    pub xid: u32,
    /// The switch's error.
    pub code: ErrorCode,
}

/// A connection to a switch, after the handshake.
pub struct Client {
    stream: Stream,
    version: Version,
    last_xid: u32,
    /// Received bytes that have not been processed.
    input: Vec<u8>,
    timeout: Duration,
    /// The time by which the current message must be sent, or the current reply complete.
    deadline: Instant,
    /// The number of received bytes of the current reply.
    answered_bytes: usize,
}

impl Client {
    /// Connects, and negotiates the highest of `versions` that the switch supports; an empty list means all versions. `tls`
    /// is required for `ssl:` addresses. `timeout` limits the time to send each message, and to receive each reply from the
    /// request to its last byte.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn connect(
        address: &Address,
        tls: Option<&Tls>,
        versions: &[Version],
        timeout: Duration,
    ) -> Result<Self, ClientError> {
        let versions = match versions {
            [] => &Version::ALL,
            chosen => chosen,
        };
        let mut client = Self {
            stream: open(address, tls, timeout.min(TIMEOUT_MAX))?,
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

    /// Returns the negotiated version.
    pub fn version(&self) -> Version {
        self.version
    }

    fn agree(&mut self, versions: &[Version]) -> Result<Version, ClientError> {
        let mut hello = Vec::new();
        Hello::write(versions, self.next_xid(), &mut hello);
        self.send_encoded(&hello)?;
        self.start_timer();
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

    /// Sends a message without waiting for a reply; returns its xid, which an error about it will have.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn send(&mut self, message: &Message) -> Result<u32, ClientError> {
        let xid = self.next_xid();
        let mut bytes = Vec::new();
        message.encode(self.version, xid, &mut bytes)?;
        self.send_encoded(&bytes)?;
        Ok(xid)
    }

    /// Sends encoded messages without waiting for a reply.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn send_encoded(&mut self, messages: &[u8]) -> Result<(), ClientError> {
        self.start_timer();
        self.write_all(messages)
    }

    /// Sends a message and returns the bytes of the reply.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn request(&mut self, message: &Message) -> Result<Vec<u8>, ClientError> {
        let xid = self.send(message)?;
        self.start_timer();
        self.reply(xid)
    }

    /// Sends a multipart request; returns the bytes of each message of the reply.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn multipart(&mut self, body: MultipartRequestBody) -> Result<Vec<Vec<u8>>, ClientError> {
        let flags = MultipartFlags::empty();
        let request = Message::MultipartRequest(MultipartRequest { flags, body });
        let xid = self.send(&request)?;
        self.start_timer();
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

    /// Waits until the switch has processed all earlier messages; returns the refused ones.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn barrier(&mut self) -> Result<Vec<Refusal>, ClientError> {
        let barrier = self.send(&Message::BarrierRequest)?;
        self.start_timer();
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

    /// Returns the next message with this xid, and discards all others.
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

    /// Returns the next message other than an echo request, and answers echo requests.
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
            // The next check of the deadline handles it.
            Err(error) if has_timed_out(&error) => Ok(()),
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
                Err(error) if has_timed_out(&error) => {}
                Err(error) => return Err(ClientError::Io(error)),
            }
        }
        Ok(())
    }

    /// Starts the timeout of the next message or reply.
    fn start_timer(&mut self) {
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

fn refused(error: &ErrorMessage) -> ClientError {
    let has_text = error.code == ErrorCode::HelloFailedIncompatible;
    let text = if has_text { error.data } else { &[] };
    ClientError::Refused {
        code: error.code,
        text: String::from_utf8_lossy(text).into_owned(),
    }
}

fn open(address: &Address, tls: Option<&Tls>, timeout: Duration) -> Result<Stream, ClientError> {
    if address.is_passive() {
        return Err(ClientError::Passive(address.clone()));
    }
    if address.is_tls() && tls.is_none() {
        return Err(NoTlsConfig(address.clone()).into());
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

    /// A timeout that expires only if a test fails.
    const LONG: Duration = Duration::from_secs(60);

    /// Starts a switch that sends `sent` at once, and closes when the client does. The thread returns the received bytes.
    fn switch(sent: Vec<u8>) -> (Address, JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&sent).unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            received
        });
        let host = "127.0.0.1".to_owned();
        (Address::Tcp { host, port }, received)
    }

    fn connect(sent: Vec<u8>, timeout: Duration) -> Result<Client, ClientError> {
        let (address, _) = switch(sent);
        Client::connect(&address, None, &Version::ALL, timeout)
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
    fn negotiates_the_highest_common_version() {
        let client = connect(hello(&[Version::Of10]), LONG).unwrap();
        assert_eq!(client.version(), Version::Of10);
        let client = connect(hello(&Version::ALL), LONG).unwrap();
        assert_eq!(client.version(), Version::Of13);
    }

    #[test]
    fn answers_echo_requests_while_waiting_for_a_reply() {
        let mut sent = hello(&Version::ALL);
        sent.extend(encoded(Version::Of13, 77, &Message::EchoRequest(b"there?")));
        sent.extend(encoded(Version::Of13, 2, &Message::BarrierReply));
        let (address, received) = switch(sent);
        let mut client = Client::connect(&address, None, &Version::ALL, LONG).unwrap();
        assert_eq!(client.barrier().unwrap(), []);
        drop(client);
        let reply = encoded(Version::Of13, 77, &Message::EchoReply(b"there?"));
        assert!(received.join().unwrap().ends_with(&reply));
    }

    #[test]
    fn barrier_returns_refused_messages() {
        let error = ErrorMessage {
            code: ErrorCode::FlowModFailedTableFull,
            data: &[],
        };
        let mut sent = hello(&Version::ALL);
        sent.extend(encoded(Version::Of13, 2, &Message::Error(error)));
        sent.extend(encoded(Version::Of13, 3, &Message::BarrierReply));
        let mut client = connect(sent, LONG).unwrap();
        let xid = client.send(&Message::FlowMod(Default::default())).unwrap();
        let code = ErrorCode::FlowModFailedTableFull;
        assert_eq!(client.barrier().unwrap(), [Refusal { xid, code }]);
    }

    /// Starts a switch that sends `sent`, and then `again` for ever, byte by byte if `by_bytes`.
    fn endless_switch(sent: Vec<u8>, again: Vec<u8>, by_bytes: bool) -> Address {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            stream.write_all(&sent).unwrap();
            // Ends when the client has closed.
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
    fn slow_replies_time_out() {
        let more = MultipartReply {
            flags: MultipartFlags::MORE,
            body: MultipartReplyBody::Flow(List::default()),
        };
        let part = encoded(Version::Of13, 2, &Message::MultipartReply(more));
        let barrier = encoded(Version::Of13, 77, &Message::BarrierReply);
        for (again, by_bytes) in [(part, true), (barrier.clone(), true), (barrier, false)] {
            // The first bytes of the reply are sent with the hello, so that they arrive in time.
            let sent = [hello(&Version::ALL), again.clone()].concat();
            let address = endless_switch(sent, again, by_bytes);
            let mut client = Client::connect(&address, None, &Version::ALL, LONG).unwrap();
            client.timeout = Duration::from_millis(200);
            let error = client.multipart(MultipartRequestBody::Table).unwrap_err();
            assert!(matches!(error, ClientError::Slow { .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains("was incomplete after"), "{text}");
        }
    }

    #[test]
    fn slow_hellos_time_out() {
        let address = endless_switch(vec![4, 0, 0xff], vec![0xff, 0, 0], true);
        let timeout = Duration::from_millis(200);
        let error = Client::connect(&address, None, &Version::ALL, timeout).err();
        // The machine may be too busy for a single byte to arrive in time.
        assert!(matches!(
            error,
            Some(ClientError::Slow { .. } | ClientError::Silent(_) | ClientError::Connect { .. })
        ));
    }

    #[test]
    fn error_messages_name_the_failure() {
        const SOON: Duration = Duration::from_millis(300);
        let message = |sent, wait| match connect(sent, wait).and_then(|mut client| {
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
        for (sent, wait, expected) in [
            (vec![], SOON, "did not answer"),
            (vec![4, 0, 0, 3, 0, 0, 0, 1], LONG, "invalid OpenFlow"),
            (vec![6, 0, 0, 8, 0, 0, 0, 1], SOON, "did not answer"),
            (vec![2, 0, 0, 8, 0, 0, 0, 1], LONG, "expected 1.0 or 1.3"),
            (refusal, LONG, "only 1.5 here"),
        ] {
            let text = message(sent, wait);
            assert!(text.contains(expected), "{text}");
        }
        let passive: Address = "ptcp:6653".parse().unwrap();
        let error = Client::connect(&passive, None, &Version::ALL, Duration::from_secs(1)).err();
        assert!(error.unwrap().to_string().contains("tcp:HOST:PORT"));
    }
}
