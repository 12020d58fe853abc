//! Links of network interfaces, as the kernel tells of them (rtnetlink(7)): at once, without being asked.
//!
//! **What.** A socket that becomes readable when an interface of the network namespace changes; [`LinkWatch::changes`] says which,
//! and whether it has a link.
//!
//! **When it gets too many.** The kernel drops messages for which the socket has no room, and says so (ENOBUFS). Then all interfaces
//! are asked for, and their answers come as other changes do; so they do at first.
//!
//! **Limits.** Where the driver reports a lost carrier more than once a second, the kernel passes the later ones on with a delay of
//! up to a second.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};
use std::io;

/// `RTMGRP_LINK`: the multicast group of what changes about interfaces.
const LINK_GROUP: u32 = 1;
const HEADER_BYTES: usize = 16;
/// `NLMSG_ALIGNTO`: messages begin at multiples of this.
const ALIGNMENT: usize = 4;
/// `struct ifinfomsg`, which attributes follow.
const INFO_BYTES: usize = 16;
/// More than one datagram of the kernel's takes, whose messages about one interface can be long.
const BUFFER_BYTES: usize = 64 << 10;

/// What an interface is like now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkChange {
    /// The number of the interface.
    pub index: u32,
    /// Whether it is switched on and has a carrier.
    pub has_link: bool,
}

/// Where the kernel tells of changes.
pub(crate) struct LinkWatch {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl LinkWatch {
    /// Watches the interfaces of the calling thread's network namespace; tells of all of them at first.
    ///
    /// # Errors
    /// The system's, where it has no such socket.
    pub fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // No protocol is NETLINK_ROUTE.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, LINK_GROUP))?;
        let watch = Self {
            socket,
            buffer: vec![0; BUFFER_BYTES],
        };
        watch.ask_for_all()?;
        Ok(watch)
    }

    /// What has changed since the last time, in order.
    ///
    /// # Errors
    /// Where nothing more can be told.
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
            self.ask_for_all()?;
        }
        Ok(changes)
    }

    /// Has the kernel tell of all interfaces (RTM_GETLINK).
    fn ask_for_all(&self) -> Result<(), Errno> {
        const REQUEST_BYTES: usize = HEADER_BYTES + INFO_BYTES;
        let mut request = [0; REQUEST_BYTES];
        request[..4].copy_from_slice(&(REQUEST_BYTES as u32).to_ne_bytes());
        request[4..6].copy_from_slice(&libc::RTM_GETLINK.to_ne_bytes());
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
        request[6..8].copy_from_slice(&flags.to_ne_bytes());
        match send(&self.socket, &request, SendFlags::empty()) {
            // One is under way, or there is no memory: who loses messages then is told so again.
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

/// Appends what the messages of a datagram say about interfaces.
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

/// What a message says: `struct ifinfomsg`.
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

    /// What was last told of each interface.
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
    fn all_links_are_told_of_at_first_and_then_what_changes() {
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
    fn what_the_kernel_had_no_room_to_tell_is_asked_for() {
        in_namespace(|| {
            veth("v0", "v1");
            let (v0, mut known) = (index("v0"), Known::default());
            let mut watch = LinkWatch::open().unwrap();
            eventually(|| known.learn(&mut watch).get(&v0) == Some(&true));
            sockopt::set_socket_recv_buffer_size(&watch.socket, 4096).unwrap();
            for number in 0..20 {
                ip(&format!("link set v0 alias number{number}"));
            }
            // This finds no room any more.
            ip("link set v1 down");
            let interface = Interface::find("v0").unwrap();
            eventually(|| !interface.is_up());
            sockopt::set_socket_recv_buffer_size(&watch.socket, 1 << 20).unwrap();
            eventually(|| known.learn(&mut watch).get(&v0) == Some(&false));
        });
    }

    /// A message of this kind about interface 7, with these flags and an attribute of 5 bytes.
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
    fn malformed_messages_are_passed_over() {
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
