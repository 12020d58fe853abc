//! The null responder, which does the minimum that a controller can do, and so measures the upper limit of a machine and a load.
//!
//! It completes the handshake, and then answers each packet-in with one flow mod of a fixed size, copied from a template, with
//! the packet-in's xid and buffer id: the cheapest possible answer. It has one thread, one epoll loop, reads of 256 KiB into
//! one buffer, and one write per read. It learns nothing, so its matches are not correct answers: use `--expect any`.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, accept_with, getsockname, recv, send, sockopt,
};
use urtica_socket::Address;

use crate::Error;
use crate::socket::{allow_open_files, listen_at, local_port};

const READ_BYTES: usize = 256 * 1024;
const MAX_MESSAGE_BYTES: usize = 65_535;
const MAX_CONNECTIONS: u32 = 65_536;
/// The number of readable bytes after the last message, so that the shortest one can be read like a packet-in.
const SLACK: usize = 4;
const EVENTS: usize = 256;
const LISTENER: u64 = u64::MAX;

const HELLO: u8 = 0;
const ECHO_REQUEST: u8 = 2;
const PACKET_IN: u8 = 10;
const HELLO_10: [u8; 8] = [1, 0, 0, 8, 0, 0, 0, 1];
const FEATURES_REQUEST_10: [u8; 8] = [1, 5, 0, 8, 0, 0, 0, 2];
const HELLO_13: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];
const FEATURES_REQUEST_13: [u8; 8] = [4, 5, 0, 8, 0, 0, 0, 2];

/// Match all packets, output to port 2 (1.0.0: 5.3.3).
const FLOW_MOD_10: [u8; 80] = patch(
    [0; 80],
    &[
        (0, &[1, 14, 0, 80]),
        (8, &[0, 0x3f, 0xff, 0xff]),
        (68, &[0xff, 0xff]),
        (72, &[0, 0, 0, 8, 0, 2]),
    ],
);

/// As large as a learning switch's flow mod: a match on in_port, eth_dst and eth_src, apply-actions with output to port 2
/// (1.3.5: 7.3.4.1).
const FLOW_MOD_13: [u8; 104] = patch(
    [0; 104],
    &[
        (0, &[4, 14, 0, 104]),
        (36, &[0xff; 8]),
        (48, &[0, 1, 0, 32]),
        (52, &[0x80, 0, 0, 4, 0, 0, 0, 1]),
        (60, &[0x80, 0, 6, 6]),
        (70, &[0x80, 0, 8, 6]),
        (80, &[0, 4, 0, 24, 0, 0, 0, 0]),
        (88, &[0, 0, 0, 16, 0, 0, 0, 2]),
    ],
);

const fn patch<const LEN: usize>(mut message: [u8; LEN], parts: &[(usize, &[u8])]) -> [u8; LEN] {
    let mut part = 0;
    while part < parts.len() {
        let (at, bytes) = parts[part];
        let mut byte = 0;
        while byte < bytes.len() {
            message[at + byte] = bytes[byte];
            byte += 1;
        }
        part += 1;
    }
    message
}

/// A null responder that listens, and has no connections yet.
pub struct Limit {
    listener: OwnedFd,
    epoll: OwnedFd,
    connections: HashMap<RawFd, Connection>,
    input: Box<[u8]>,
    output: Vec<u8>,
}

struct Connection {
    socket: OwnedFd,
    /// The start of an incomplete message.
    tail: Vec<u8>,
    /// Answers that the socket did not accept. While there are any, nothing is read.
    unsent: Vec<u8>,
}

impl Limit {
    /// Listens at `ptcp:[PORT][:HOST]` or `punix:FILE`.
    pub fn listen(address: &Address) -> Result<Self, Error> {
        let listener = listen_at(address)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(Error::system("create an epoll instance"))?;
        let event = epoll::EventData::new_u64(LISTENER);
        epoll::add(&epoll, &listener, event, epoll::EventFlags::IN)
            .map_err(Error::system("watch a socket"))?;
        // As many as the system allows; a load that needs more fails at its own limit.
        let _ = [MAX_CONNECTIONS, 16_384, 4096]
            .into_iter()
            .any(|count| allow_open_files(count).is_ok());
        Ok(Self {
            listener,
            epoll,
            connections: HashMap::new(),
            input: vec![0; MAX_MESSAGE_BYTES + READ_BYTES + SLACK].into(),
            output: Vec::with_capacity(2 * READ_BYTES),
        })
    }

    /// Returns the TCP port at which it listens, if the system has chosen it.
    pub fn port(&self) -> Option<u16> {
        local_port(&self.listener)
    }

    /// Answers until a system call fails.
    pub fn run(mut self) -> Result<(), Error> {
        let mut events = [const {
            epoll::Event {
                flags: epoll::EventFlags::empty(),
                data: epoll::EventData::new_u64(0),
            }
        }; EVENTS];
        loop {
            let count = match epoll::wait(&self.epoll, &mut events, None) {
                Ok(count) => count,
                Err(Errno::INTR) => 0,
                Err(error) => return Err(Error::system("wait for sockets")(error)),
            };
            for event in &events[..count] {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    fd => self.serve(fd as RawFd),
                }
            }
        }
    }

    fn accept(&mut self) {
        let Ok(socket) = accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
        else {
            return;
        };
        if getsockname(&socket).is_ok_and(|name| name.address_family() != AddressFamily::UNIX)
            && sockopt::set_tcp_nodelay(&socket, true).is_err()
        {
            return;
        }
        let fd = socket.as_raw_fd();
        let event = epoll::EventData::new_u64(fd as u64);
        if epoll::add(&self.epoll, &socket, event, epoll::EventFlags::IN).is_ok() {
            self.connections.insert(
                fd,
                Connection {
                    socket,
                    tail: Vec::new(),
                    unsent: Vec::new(),
                },
            );
        }
    }

    fn serve(&mut self, fd: RawFd) {
        let Some(connection) = self.connections.get_mut(&fd) else {
            return;
        };
        let served = if connection.unsent.is_empty() {
            connection.answer(&mut self.input, &mut self.output)
        } else {
            connection.flush()
        };
        let watched = served.and_then(|changed| {
            if changed {
                connection.watch(&self.epoll)
            } else {
                Ok(())
            }
        });
        if watched.is_err() {
            self.connections.remove(&fd);
        }
    }
}

impl Connection {
    /// Reads once and answers all complete messages. Returns `true` if the events to wait for have changed.
    fn answer(&mut self, input: &mut [u8], output: &mut Vec<u8>) -> Result<bool, Errno> {
        let kept = self.tail.len();
        input[..kept].copy_from_slice(&self.tail);
        let count = match recv(
            &self.socket,
            &mut input[kept..kept + READ_BYTES],
            RecvFlags::empty(),
        ) {
            Ok((0, _)) => return Err(Errno::CONNRESET),
            Ok((count, _)) => count,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(error) => return Err(error),
        };
        output.clear();
        let end = kept + count;
        let at = answer_messages(input, end, output)?;
        self.tail.clear();
        self.tail.extend_from_slice(&input[at..end]);
        if output.is_empty() {
            return Ok(false);
        }
        let sent = match send(&self.socket, output, SendFlags::NOSIGNAL) {
            Err(Errno::AGAIN) => 0,
            sent => sent?,
        };
        self.unsent.extend_from_slice(&output[sent..]);
        Ok(sent < output.len())
    }

    /// Sends bytes that the socket did not accept before. Returns `true` if none are left.
    fn flush(&mut self) -> Result<bool, Errno> {
        match send(&self.socket, &self.unsent, SendFlags::NOSIGNAL) {
            Err(Errno::AGAIN) => {}
            sent => drop(self.unsent.drain(..sent?)),
        }
        Ok(self.unsent.is_empty())
    }

    fn watch(&self, epoll: &OwnedFd) -> Result<(), Errno> {
        let flags = if self.unsent.is_empty() {
            epoll::EventFlags::IN
        } else {
            epoll::EventFlags::OUT
        };
        epoll::modify(
            epoll,
            &self.socket,
            epoll::EventData::new_u64(self.socket.as_raw_fd() as u64),
            flags,
        )
    }
}

/// Answers the complete messages in the first `end` bytes. Returns the offset of the first incomplete one.
fn answer_messages(input: &[u8], end: usize, output: &mut Vec<u8>) -> Result<usize, Errno> {
    let mut at = 0;
    while end - at >= 8 {
        let Some(header) = input[at..].first_chunk::<12>() else {
            break;
        };
        let len = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if len < 8 {
            return Err(Errno::PROTO);
        }
        if end - at < len {
            break;
        }
        let message = &input[at..at + len];
        match (header[1], header[0]) {
            (PACKET_IN, 1) => answer_packet_in(&FLOW_MOD_10, 64, header, output),
            (PACKET_IN, _) => answer_packet_in(&FLOW_MOD_13, 32, header, output),
            (HELLO, 1) => output.extend([HELLO_10, FEATURES_REQUEST_10].concat()),
            (HELLO, _) => output.extend([HELLO_13, FEATURES_REQUEST_13].concat()),
            (ECHO_REQUEST, _) => {
                output.extend_from_slice(message);
                let kind = output.len() - len + 1;
                output[kind] = ECHO_REQUEST + 1;
            }
            _ => {}
        }
        at += len;
    }
    Ok(at)
}

/// Writes a flow mod with the packet-in's xid and, at `buffer_at`, its buffer id.
#[inline(always)]
fn answer_packet_in<const LEN: usize>(
    template: &[u8; LEN],
    buffer_at: usize,
    header: &[u8; 12],
    output: &mut Vec<u8>,
) {
    let mut flow_mod = *template;
    flow_mod[4..8].copy_from_slice(&header[4..8]);
    flow_mod[buffer_at..buffer_at + 4].copy_from_slice(&header[8..12]);
    output.extend_from_slice(&flow_mod);
}
