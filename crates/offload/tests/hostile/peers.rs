//! The behaviour of misbehaving peers.

use crate::packets::Packet;
use crate::switch::{PATIENCE, connect, headers, join};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};
use urtica_controller::Running;
use urtica_wire::Version;

const ERROR: u8 = 1;
const ECHO_REPLY: u8 = 3;
const PACKET_OUT: u8 = 13;
const FLOW_MOD: u8 = 14;

/// The xid of the last message of a peer.
const LAST_XID: u8 = 0x77;

/// A switch that sends this once it is served.
#[derive(Debug)]
pub struct Hostile {
    name: &'static str,
    bytes: &'static [u8],
}

const fn hostile(name: &'static str, bytes: &'static [u8]) -> Hostile {
    Hostile { name, bytes }
}

/// Messages with one fault each; those of a known type are of 1.3.
pub const HOSTILE: [Hostile; 14] = [
    hostile("a length of 0", &[4, 2, 0, 0, 0, 0, 0, 9]),
    hostile("a length of 7", &[4, 10, 0, 7, 0, 0, 0, 9]),
    hostile("an unknown type", &[4, 30, 0, 8, 0, 0, 0, 9]),
    hostile("an unknown version", &[9, 2, 0, 8, 0, 0, 0, 9]),
    hostile("the other version", &[1, 2, 0, 8, 0, 0, 0, 9]),
    hostile("a message for switches", &[4, 5, 0, 8, 0, 0, 0, 9]),
    hostile(
        "a packet-in that is cut",
        &[4, 10, 0, 16, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0],
    ),
    hostile(
        "a match beyond its packet-in",
        &[
            4, 10, 0, 42, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 1, 0x7f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
    ),
    hostile(
        "a match of no length",
        &[
            4, 10, 0, 42, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
    ),
    hostile(
        "a port status that is cut",
        &[4, 12, 0, 12, 0, 0, 0, 9, 0, 0, 0, 0],
    ),
    hostile("a second hello", &[4, 0, 0, 8, 0, 0, 0, 9]),
    hostile("a reply that nobody wants", &[4, 21, 0, 8, 0, 0, 0, 9]),
    hostile(
        "an error of its own",
        &[4, 1, 0, 12, 0, 0, 0, 9, 0, 1, 0, 1],
    ),
    // One message by its length.
    hostile("no OpenFlow", &[b'G'; 0x4747]),
];

/// The outcome for a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The errors that it received.
    pub errors: Vec<Vec<u8>>,
    pub is_closed: bool,
}

impl Hostile {
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Connects a switch with this id that has been served, by the kernel if that answers.
    pub fn earned(controller: &Running, id: u64) -> TcpStream {
        let mut socket = connect(controller);
        join(&mut socket, Version::Of13, id);
        for _ in 0..4 {
            assert_served(&mut socket);
        }
        socket
    }

    /// Returns the outcome for a switch with this id that sends the message among well-formed ones.
    pub fn outcome(&self, controller: &Running, id: u64) -> Outcome {
        let mut socket = Self::earned(controller, id);
        let mut said = Vec::new();
        Packet::udp(3, 4).encode(Version::Of13, 1, &mut said);
        said.extend_from_slice(self.bytes);
        Packet::udp(4, 3).encode(Version::Of13, 2, &mut said);
        said.extend([4, 2, 0, 8, 0, 0, 0, LAST_XID]);
        // Fails if the connection has ended by then.
        let _ = socket.write_all(&said);
        let (heard, is_closed) = read_until(&mut socket, |kind, xid| {
            kind == ECHO_REPLY && xid == u32::from(LAST_XID)
        });
        let mut at = 0;
        let mut errors = Vec::new();
        for header in headers(&heard) {
            let end = at + usize::from(header.length);
            if header.message_type == ERROR {
                errors.push(heard[at..end].to_vec());
            }
            at = end;
        }
        Outcome { errors, is_closed }
    }
}

/// Reads until a message of this type and xid, or the end; returns all, and whether that was the end.
fn read_until(socket: &mut TcpStream, is_it: impl Fn(u8, u32) -> bool) -> (Vec<u8>, bool) {
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if headers(&heard).any(|header| is_it(header.message_type, header.xid)) {
            return (heard, false);
        }
        match socket.read(&mut buffer) {
            Ok(0) => return (heard, true),
            Ok(count) => heard.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return (heard, true),
            Err(error) => panic!("nothing comes: {error}"),
        }
    }
}

/// Sends a packet; returns whether it was flooded, or has a flow entry, and not the end of the connection.
pub fn ask(socket: &mut TcpStream, packet: &Packet) -> bool {
    let mut message = Vec::new();
    packet.encode(Version::Of13, 1, &mut message);
    socket.write_all(&message).unwrap();
    let (_, is_closed) = read_until(socket, |kind, _| kind == PACKET_OUT || kind == FLOW_MOD);
    !is_closed
}

/// Fails if a switch is not answered.
pub fn assert_served(socket: &mut TcpStream) {
    assert!(ask(socket, &Packet::udp(5, 6)));
}

/// Sends the first bytes of a message, after one that is whole.
pub fn send_cut(socket: &mut TcpStream, bytes: usize) {
    let mut said = Vec::new();
    Packet::udp(3, 4).encode(Version::Of13, 1, &mut said);
    let whole = said.len();
    Packet::udp(3, 4).encode(Version::Of13, 2, &mut said);
    socket.write_all(&said[..whole + bytes]).unwrap();
}

/// Reads until the controller has closed the connection.
pub fn read_to_end(socket: &mut TcpStream) {
    let (_, is_closed) = read_until(socket, |_, _| false);
    assert!(is_closed);
}

/// Sends packets without reading, until the socket accepts no more for a while.
pub fn fill(mut socket: &TcpStream) {
    socket
        .set_write_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let mut packet = Vec::new();
    Packet::udp(3, 4).encode(Version::Of13, 1, &mut packet);
    let packets = packet.repeat(500);
    let mut sent = 0;
    while let Ok(count) = socket.write(&packets) {
        sent += count;
        assert!(sent < 1 << 28, "it is read for ever");
    }
}

/// Waits until the neighbour is the only switch, and no other has a kernel half.
pub fn wait_until_alone(controller: &Running) {
    let (start, network) = (Instant::now(), controller.network());
    while network.switches().len() > 1 || network.kernel_half_totals().switches() > 1 {
        assert!(start.elapsed() < PATIENCE, "they have left");
        thread::sleep(Duration::from_millis(1));
    }
}
