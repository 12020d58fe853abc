//! Link changes of network interfaces, reported by the kernel (rtnetlink(7)) immediately, without polling.
//!
//! **What.** A socket that becomes readable when an interface of the network namespace changes. [`LinkWatch::changes`]
//! returns the interface's number, and whether it has a link.
//!
//! **Overflow.** The kernel drops messages for which the socket has no space, and reports this (ENOBUFS). Then all interfaces
//! are queried, and the replies are treated as changes, as at the start.
//!
//! **Limits.** If the driver reports a lost carrier more than once a second, the kernel delays the later reports by up
//! to a second.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};
use std::io;

/// `RTMGRP_LINK`: the multicast group for changes of interfaces.
const LINK_GROUP: u32 = 1;
const HEADER_BYTES: usize = 16;
/// `NLMSG_ALIGNTO`: messages start at multiples of this.
const ALIGNMENT: usize = 4;
/// `struct ifinfomsg`, followed by attributes.
const INFO_BYTES: usize = 16;
/// The buffer's size, larger than any datagram of the kernel, whose messages about one interface can be long.
const BUFFER_BYTES: usize = 64 << 10;

/// The current state of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkChange {
    /// The number of the interface.
    pub index: u32,
    /// Whether it is switched on and has a carrier.
    pub has_link: bool,
}

/// A source of link changes from the kernel.
pub(crate) struct LinkWatch {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl LinkWatch {
    /// Watches the interfaces of the calling thread's network namespace, and reports all of them at first.
    ///
    /// # Errors
    /// The system's, if it cannot create such a socket.
    pub fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // The default protocol is NETLINK_ROUTE.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, LINK_GROUP))?;
        let watch = Self {
            socket,
            buffer: vec![0; BUFFER_BYTES],
        };
        watch.request_all()?;
        Ok(watch)
    }

    /// Returns the changes since the last call, in order.
    ///
    /// # Errors
    /// If no more changes can be reported.
    pub fn changes(&mut self) -> io::Result<Vec<LinkChange>> {
        let mut changes = Vec::new();
        let mut has_lost_some = false;
        loop {
            match recv(&self.socket, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((_, len)) => read_messages(&self.buffer[..len.min(BUFFER_BYTES)], &mut changes),
                Err(Errno::INTR) => {}
                Err(Errno::NOBUFS) => has_lost_some = true,
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        if has_lost_some {
            self.request_all()?;
        }
        Ok(changes)
    }

    /// Requests all interfaces from the kernel (RTM_GETLINK).
    fn request_all(&self) -> Result<(), Errno> {
        const REQUEST_BYTES: usize = HEADER_BYTES + INFO_BYTES;
        let mut request = [0; REQUEST_BYTES];
        request[..4].copy_from_slice(&(REQUEST_BYTES as u32).to_ne_bytes());
        request[4..6].copy_from_slice(&libc::RTM_GETLINK.to_ne_bytes());
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
        request[6..8].copy_from_slice(&flags.to_ne_bytes());
        match send(&self.socket, &request, SendFlags::empty()) {
            // A request is in progress, or memory is short. If messages are lost again, the kernel reports that again.
            Ok(_) | Err(Errno::BUSY | Errno::NOBUFS | Errno::AGAIN) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for LinkWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Appends the interfaces in a datagram's messages to `changes`.
fn read_messages(mut datagram: &[u8], changes: &mut Vec<LinkChange>) {
    while let Some((header, _)) = datagram.split_first_chunk::<HEADER_BYTES>() {
        let len = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let Some(body) = datagram.get(HEADER_BYTES..len) else {
            return;
        };
        changes.extend(read_link(kind, body));
        let end = len.next_multiple_of(ALIGNMENT);
        datagram = datagram.get(end..).unwrap_or_default();
    }
}

/// Reads a message's `struct ifinfomsg`.
fn read_link(kind: u16, body: &[u8]) -> Option<LinkChange> {
    let info: &[u8; INFO_BYTES] = body.first_chunk()?;
    let number =
        |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
    let wanted = (libc::IFF_UP | libc::IFF_RUNNING) as u32;
    let has_link = match kind {
        libc::RTM_NEWLINK => number(8) & wanted == wanted,
        libc::RTM_DELLINK => false,
        _ => return None,
    };
    Some(LinkChange {
        index: number(4),
        has_link,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::interface::Interface;
    use crate::port::testing::{eventually, in_namespace, ip, veth};
    use rustix::net::sockopt;
    use std::collections::BTreeMap;

    /// The last reported state of each interface.
    #[derive(Default)]
    struct Known(BTreeMap<u32, bool>);

    impl Known {
        fn learn(&mut self, watch: &mut LinkWatch) -> &BTreeMap<u32, bool> {
            for change in watch.changes().unwrap() {
                self.0.insert(change.index, change.has_link);
            }
            &self.0
        }
    }

    fn index(name: &str) -> u32 {
        Interface::find(name).unwrap().index
    }

    #[test]
    fn all_links_are_reported_first_and_then_changes() {
        in_namespace(|| {
            veth("v0", "v1");
            let (v0, mut known) = (index("v0"), Known::default());
            let mut watch = LinkWatch::open().unwrap();
            eventually(|| known.learn(&mut watch).get(&v0) == Some(&true));
            ip("link set v1 down");
            eventually(|| known.learn(&mut watch).get(&v0) == Some(&false));
            ip("link set v1 up");
            eventually(|| known.learn(&mut watch).get(&v0) == Some(&true));
            ip("link delete v0");
            eventually(|| known.learn(&mut watch).get(&v0) == Some(&false));
        });
    }

    #[test]
    fn interfaces_are_queried_after_an_overflow() {
        in_namespace(|| {
            veth("v0", "v1");
            let (v0, mut known) = (index("v0"), Known::default());
            let mut watch = LinkWatch::open().unwrap();
            eventually(|| known.learn(&mut watch).get(&v0) == Some(&true));
            sockopt::set_socket_recv_buffer_size(&watch.socket, 4096).unwrap();
            for number in 0..20 {
                ip(&format!("link set v0 alias number{number}"));
            }
            // The socket has no space for this message.
            ip("link set v1 down");
            let interface = Interface::find("v0").unwrap();
            eventually(|| !interface.is_up());
            sockopt::set_socket_recv_buffer_size(&watch.socket, 1 << 20).unwrap();
            eventually(|| known.learn(&mut watch).get(&v0) == Some(&false));
        });
    }

    /// Creates a message of this kind about interface 7, with these flags and an attribute of 5 bytes.
    fn message(kind: u16, flags: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(37_u32.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend([0; 4]);
        bytes.extend(7_u32.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend([5, 0, 3, 0, 9]);
        bytes.extend([0; 3]);
        bytes
    }

    fn read(datagram: &[u8]) -> Vec<bool> {
        let mut changes = Vec::new();
        read_messages(datagram, &mut changes);
        assert!(changes.iter().all(|change| change.index == 7));
        changes.iter().map(|change| change.has_link).collect()
    }

    #[test]
    fn messages_are_read() {
        const UP: u32 = (libc::IFF_UP | libc::IFF_RUNNING) as u32;
        let messages = [
            message(libc::RTM_NEWLINK, UP),
            message(libc::RTM_NEWLINK, libc::IFF_UP as u32),
            message(libc::RTM_NEWADDR, UP),
            message(libc::RTM_DELLINK, UP),
        ];
        assert_eq!(read(&messages.concat()), [true, false, false]);
    }

    #[test]
    fn malformed_messages_are_skipped() {
        let whole = message(libc::RTM_NEWLINK, 0);
        for len in 0..whole.len() {
            assert!(read(&whole[..len]).len() <= 1);
        }
        for len in [0_u32, 1, 15, 16, 31, u32::MAX] {
            let mut wrong = whole.clone();
            wrong[..4].copy_from_slice(&len.to_ne_bytes());
            assert_eq!(read(&wrong), [], "{len}");
        }
    }
}
