//! Receiving from an interface with several sockets, each in its own thread (PACKET_FANOUT).
//!
//! **What.** The kernel passes each frame to one socket of a group, chosen by a hash of addresses and ports that is equal in
//! both directions, so the frames of a flow stay in order. All frames that are not IP use one socket, and so do fragments
//! with equal addresses: they may overtake, or be overtaken by, whole frames of their flow.
//!
//! **Limits.** A frame for a socket whose ring is full is lost and counted. It is not passed to another socket
//! (PACKET_FANOUT_FLAG_ROLLOVER), since this would reorder the frames of a busy flow, just when there are many. While a
//! socket joins, for some microseconds, its frames are lost.

use super::set;
use parking_lot::Mutex;
use rustix::fd::{AsRawFd, OwnedFd};
use std::ffi::c_void;
use std::io;
use std::mem::size_of;

/// Maximum number of sockets in a group: the kernel's default.
pub(super) const MAX_MEMBERS: usize = 256;

/// `PACKET_FANOUT`.
const OPTION: libc::c_int = 18;

/// `PACKET_FANOUT_HASH`.
const BY_HASH: u32 = 0;

/// `PACKET_FANOUT_FLAG_UNIQUEID`: the kernel chooses a number that no group has.
const UNIQUE_ID: u32 = 0x2000;

/// `SO_ATTACH_FILTER`.
const ATTACH_FILTER: libc::c_int = 26;

/// The results of a filter for frames to be dropped, and for whole frames.
const NOTHING: u32 = 0;
const ALL: u32 = u32::MAX;

/// The sockets of one interface that share its frames.
#[derive(Debug, Default)]
pub(super) struct Group {
    current: Mutex<Option<GroupId>>,
}

/// The kernel's number of a group, and that of its interface. When the interface is gone, its sockets must form a new group
/// for each interface that replaces it: the kernel identifies interfaces by their addresses in its memory, and might let a
/// socket join an old interface's group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupId {
    id: u16,
    interface: u32,
}

impl Group {
    /// Makes a socket that is bound to the interface with this number share the interface's frames. `left` is the group of the
    /// socket that it replaces, which lost its interface.
    ///
    /// # Errors
    /// The system's error if the socket cannot join.
    pub fn join(
        &self,
        socket: &OwnedFd,
        interface: u32,
        left: Option<GroupId>,
    ) -> io::Result<GroupId> {
        // A group ignores the option by which its sockets ignore outgoing frames.
        attach(socket, &not_outgoing())?;
        let mut current = self.current.lock();
        let is_ours = |group: &GroupId| group.interface == interface && Some(*group) != left;
        if let Some(group) = current.filter(is_ours) {
            set(socket, OPTION, &(u32::from(group.id) | BY_HASH << 16))?;
            return Ok(group);
        }
        set(socket, OPTION, &((BY_HASH | UNIQUE_ID) << 16))?;
        let id = id_of(socket)?;
        Ok(*current.insert(GroupId { id, interface }))
    }
}

/// Makes a socket receive nothing until it joins a group; otherwise another socket would receive earlier frames again.
pub(super) fn deafen(socket: &OwnedFd) -> io::Result<()> {
    attach(socket, &[end(NOTHING)])
}

/// Returns the number of a socket's group.
fn id_of(socket: &OwnedFd) -> io::Result<u16> {
    let mut option = 0_u32;
    let mut len = size_of::<u32>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, the size of the option.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            OPTION,
            (&raw mut option).cast::<c_void>(),
            &mut len,
        )
    };
    match done {
        0 => Ok(option as u16),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns a filter for frames that the interface receives, which excludes frames that it sends.
fn not_outgoing() -> [libc::sock_filter; 4] {
    let packet_type = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
    let is_outgoing = libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: 0,
        jf: 1,
        k: u32::from(libc::PACKET_OUTGOING),
    };
    [
        statement(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, packet_type),
        is_outgoing,
        end(NOTHING),
        end(ALL),
    ]
}

fn end(bytes: u32) -> libc::sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, bytes)
}

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    }
}

/// Attaches a filter (classic BPF) to a socket, and replaces an earlier one.
fn attach(socket: &OwnedFd, filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel reads the program, which points to `len` instructions, and changes neither.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            ATTACH_FILTER,
            (&raw const program).cast::<c_void>(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use crate::PortIo;
    use crate::port::af_packet::AfPacketPort;
    use crate::port::testing::{
        FLOWS, by_flow, eventually, frame, in_namespace, ip, receive, receive_from_all, send_flows,
        veth,
    };

    /// Creates a host, and a port that `count` threads share.
    fn shared(count: usize) -> (AfPacketPort, Vec<Box<dyn PortIo>>) {
        veth("v0", "v1");
        let host = AfPacketPort::open("v0").unwrap();
        let mut port = AfPacketPort::open("v1").unwrap();
        let others = port.split(count).unwrap();
        assert_eq!(others.len(), count - 1);
        let ports = std::iter::once(Box::new(port) as Box<dyn PortIo>).chain(others);
        (host, ports.collect())
    }

    /// Sends from the host, and asserts that each flow is received completely, in order and by one of the ports.
    fn expect_each_flow_at_one_port(host: &mut AfPacketPort, ports: &mut [Box<dyn PortIo>]) {
        const FRAMES: u16 = 20;
        for round in 0..FRAMES {
            send_flows(host, round);
        }
        let received = receive_from_all(ports, usize::from(FLOWS * FRAMES));
        assert!(
            received.iter().all(|frames| !frames.is_empty()),
            "all receive"
        );
        let mut flows = Vec::new();
        for (flow, numbers) in received.iter().flat_map(|frames| by_flow(frames)) {
            assert!(numbers.into_iter().eq(0..FRAMES), "flow {flow}");
            flows.push(flow);
        }
        flows.sort_unstable();
        assert!(flows.into_iter().eq(0..FLOWS));
    }

    #[test]
    fn each_flow_is_received_by_one_thread_in_order() {
        for count in [2, 3] {
            in_namespace(move || {
                let (mut host, mut ports) = shared(count);
                expect_each_flow_at_one_port(&mut host, &mut ports);
            });
        }
    }

    /// A group has its own hook, to which the kernel would also pass outgoing frames.
    #[test]
    fn outgoing_frames_are_not_received() {
        in_namespace(|| {
            let (mut host, mut ports) = shared(2);
            // Sent by the network stack, whose frames packet sockets receive.
            ip("address add 10.0.0.1/24 dev v1");
            ip("neighbour add 10.0.0.2 lladdr 02:00:00:00:00:02 dev v1");
            let socket = std::net::UdpSocket::bind("10.0.0.1:0").unwrap();
            for port in 1..=64 {
                socket.send_to(&[0; 32], ("10.0.0.2", port)).unwrap();
            }
            for port in &mut ports {
                assert!(port.send(&frame(60, 1)));
                port.flush();
            }
            let mut count = 0;
            eventually(|| {
                count += host.receive(32, &mut |_| {}).unwrap();
                count == 64 + 2
            });
            for port in &mut ports {
                assert_eq!(port.receive(32, &mut |_| {}).unwrap(), 0);
            }
        });
    }

    /// The ports form one group, whichever reopens first.
    #[test]
    fn a_recreated_interface_is_shared_again() {
        in_namespace(|| {
            let (_, mut ports) = shared(3);
            for _ in 0..3 {
                ip("link delete v0");
                let reopened = |port: &mut Box<dyn PortIo>| port.reopen().unwrap();
                assert!(!ports.iter_mut().any(reopened), "there is none");
                veth("v0", "v1");
                let mut host = AfPacketPort::open("v0").unwrap();
                ports.rotate_left(1);
                assert!(ports.iter_mut().all(reopened));
                assert!(!ports.iter_mut().any(reopened), "once is enough");
                eventually(|| ports.iter().all(|port| port.is_up()) && host.is_up());
                expect_each_flow_at_one_port(&mut host, &mut ports);
            }
        });
    }

    #[test]
    fn a_port_that_reopens_late_joins_the_others() {
        in_namespace(|| {
            let (_, mut ports) = shared(2);
            let again = || {
                ip("link delete v0");
                veth("v0", "v1");
            };
            again();
            assert!(ports[0].reopen().unwrap());
            // The other port never sees the interface in between.
            again();
            assert!(ports[1].reopen().unwrap() && ports[0].reopen().unwrap());
            let mut host = AfPacketPort::open("v0").unwrap();
            eventually(|| ports.iter().all(|port| port.is_up()) && host.is_up());
            expect_each_flow_at_one_port(&mut host, &mut ports);
        });
    }

    #[test]
    fn a_sender_reopens_a_recreated_interface() {
        in_namespace(|| {
            let (_, ports) = shared(2);
            let mut sender = ports[0].sender().unwrap().unwrap();
            assert!(!sender.reopen().unwrap());
            ip("link delete v0");
            assert!(!sender.reopen().unwrap());
            veth("v0", "v1");
            let mut host = AfPacketPort::open("v0").unwrap();
            assert!(sender.reopen().unwrap() && !sender.reopen().unwrap());
            eventually(|| host.is_up());
            assert!(sender.send(&frame(60, 1)));
            sender.flush();
            assert_eq!(receive(&mut host, 1), [frame(60, 1)]);
        });
    }
}
