//! A switch that sends as much as it can.

use crate::packets::Packet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use urtica_wire::Version;

/// Maximum number of bytes that may be accepted from a switch whose messages are not read.
pub const MOST_HELD: usize = 16 << 20;

/// Time after which a socket that accepts no bytes counts as full.
const FULL_AFTER: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Sends packet-ins until the socket is full. Returns the bytes sent, and the rest of the last message.
pub fn fill(socket: &mut TcpStream, version: Version) -> (Vec<u8>, Vec<u8>) {
    let (mut sent, mut at, mut xid) = (Vec::new(), 0, 0);
    socket.set_nonblocking(true).unwrap();
    loop {
        while sent.len() < at + 4096 {
            Packet::udp(1, 2).encode(version, xid, &mut sent);
            xid += 1;
        }
        match socket.write(&sent[at..]) {
            Ok(count) => at += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut fds = [PollFd::new(&*socket, PollFlags::OUT)];
                if poll(&mut fds, Some(&FULL_AFTER)).unwrap() == 0 {
                    break;
                }
            }
            Err(error) => panic!("{error}"),
        }
        assert!(at < 4 * MOST_HELD, "the socket takes more and more");
    }
    socket.set_nonblocking(false).unwrap();
    let missing = (sent.len() - at) % (sent.len() / xid as usize);
    let rest = sent[at..at + missing].to_vec();
    sent.truncate(at);
    (sent, rest)
}
