//! A switch that does not read: the kernel's memory for it is bounded, and nothing is lost when it finally reads.

use crate::packets::Packet;
use crate::support::kernel;
use crate::switch::{PATIENCE, connect, headers, join, offloaded};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Instant;
use urtica_offload::{Kernel, Mode};
use urtica_wire::{DatapathId, Header, Version};

/// The maximum that the kernel may hold for a switch that does not read, in bytes of messages.
const MOST_HELD: usize = 16 << 20;

/// Time after which a socket that accepts no bytes counts as full.
const FULL_AFTER: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Sends packet-ins until the socket is full. Returns the number of bytes sent.
fn fill(socket: &mut TcpStream, version: Version) -> usize {
    let message = packet_in(version);
    let several = message.repeat(20);
    let mut sent = 0;
    socket.set_nonblocking(true).unwrap();
    loop {
        // Continues in the middle of a message if the last write ended there.
        match socket.write(&several[sent % message.len()..]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut fds = [PollFd::new(&*socket, PollFlags::OUT)];
                if poll(&mut fds, Some(&FULL_AFTER)).unwrap() == 0 {
                    return sent;
                }
            }
            Err(error) => panic!("{error}"),
        }
        assert!(sent < 8 * MOST_HELD, "the socket takes more and more");
    }
}

/// Returns a packet-in that is answered with a flow mod once the other host is known.
fn packet_in(version: Version) -> Vec<u8> {
    let mut message = Vec::new();
    Packet::udp(1, 2).encode(version, 1, &mut message);
    message
}

/// Returns the number of bytes that the other side's kernel has not received yet.
pub fn unacknowledged_bytes(socket: &TcpStream) -> usize {
    let mut count: libc::c_int = 0;
    // SAFETY: the system writes one int.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &mut count) };
    assert_eq!(result, 0);
    count as usize
}

/// Reads until `count` messages arrived. Returns their headers.
fn read_messages(socket: &mut TcpStream, count: usize) -> Vec<Header> {
    let mut said = Vec::new();
    let mut bytes = vec![0; 1 << 20];
    socket.set_nonblocking(false).unwrap();
    while headers(&said).count() < count {
        let read = socket.read(&mut bytes).expect("something comes in time");
        assert!(read > 0, "the controller has closed the connection");
        said.extend(&bytes[..read]);
    }
    headers(&said).collect()
}

#[test]
fn a_switch_that_never_reads_costs_a_bounded_amount_of_memory() {
    let Some(kernel) = kernel() else { return };
    for version in Version::ALL {
        for mode in [Mode::Kernel, Mode::Auto] {
            // It is random which side is the owner when the flood starts, so the test is repeated until it was the kernel.
            let mut runs = 0..50;
            while !falls_back(&kernel, mode, version) {
                runs.next().expect("now and then the kernel is the owner");
            }
        }
    }
}

/// Returns whether the kernel started to answer and then left the rest to the program. In either case, memory is bounded and
/// nothing is lost.
fn falls_back(kernel: &Kernel, mode: Mode, version: Version) -> bool {
    let controller = offloaded(kernel, mode, 1024);
    let mut socket = connect(&controller);
    join(&mut socket, version, 1);
    let mut introduction = Vec::new();
    Packet::udp(2, 1).encode(version, 1, &mut introduction);
    socket.write_all(&introduction).unwrap();
    read_messages(&mut socket, 1);
    let counters = controller.network().counters(DatapathId(1)).unwrap();
    // The kernel becomes the owner when the program has no work, and its counts are read from time to time.
    let start = Instant::now();
    while counters.answered_in_kernel.get() == 0 {
        assert!(start.elapsed() < PATIENCE, "the kernel never was the owner");
        socket.write_all(&packet_in(version)).unwrap();
        read_messages(&mut socket, 1);
    }
    let sent = fill(&mut socket, version);
    let taken = sent - unacknowledged_bytes(&socket);
    // Each message is held either as itself or as its reply, which is at most twice as long.
    assert!(
        2 * taken < MOST_HELD,
        "{taken} bytes of packet-ins were taken"
    );

    // When it finally reads, all complete messages are answered, in order.
    let answers = sent / packet_in(version).len();
    let xids = read_messages(&mut socket, answers);
    let xids: Vec<_> = xids.iter().map(|header| header.xid).collect();
    assert!(
        xids.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "replies are lost or out of order"
    );
    drop(socket);
    controller.stop().unwrap();
    counters.fell_back.get() > 0
}
