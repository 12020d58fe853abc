//! Creating the sockets for an interface's queues, in the best way that the driver, the kernel and other ports allow.

use super::memory::{FrameMemory, Kind, Memory, RX_FRAMES, TX_FRAMES};
use super::queue::{Receiver, Sender};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::xdp::{SocketAddrXdp, SocketAddrXdpFlags, SocketAddrXdpWithSharedUmem};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time in which the kernel releases a closed socket; a second has been observed.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

/// Size of the kernel's buffer for frames being sent.
const SEND_BUFFER_BYTES: usize = 8 << 20;

/// From the best kind to the one that every driver supports.
const KINDS: [Kind; 4] = [
    Kind {
        is_zero_copy: true,
        has_parts: true,
    },
    Kind {
        is_zero_copy: true,
        has_parts: false,
    },
    Kind {
        is_zero_copy: false,
        has_parts: true,
    },
    Kind {
        is_zero_copy: false,
        has_parts: false,
    },
];

/// The sockets of an interface.
pub(super) struct Queues {
    pub kind: Kind,
    pub memory: Arc<Memory>,
    /// A receiver for each queue, in order.
    pub receivers: Vec<Receiver>,
    /// The sender, which uses the first queue.
    pub sender: Sender,
}

/// The operation that failed, and the error.
pub(super) type Failure = (&'static str, Errno);

/// Binds sockets to all queues of the interface with this number, in the best possible way; with frames in parts if
/// `needs_parts`.
pub(super) fn open(
    index: u32,
    count: u32,
    needs_parts: bool,
    memory: &mut FrameMemory,
) -> Result<Queues, Failure> {
    memory.expect_one_less();
    let start = Instant::now();
    let mut failure = ("bind to the interface", Errno::OPNOTSUPP);
    for kind in KINDS
        .into_iter()
        .filter(|kind| kind.has_parts || !needs_parts)
    {
        loop {
            match open_kind(index, count, kind, memory) {
                Ok(queues) => return Ok(queues),
                // The kernel releases a queue some time after its socket was closed.
                Err((_, Errno::BUSY)) if start.elapsed() < RELEASE_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err((what, error @ (Errno::BUSY | Errno::PERM | Errno::ACCESS))) => {
                    return Err((what, error));
                }
                Err(other) => {
                    failure = other;
                    break;
                }
            }
        }
    }
    Err(failure)
}

fn open_kind(
    index: u32,
    count: u32,
    kind: Kind,
    memory: &mut FrameMemory,
) -> Result<Queues, Failure> {
    let place = QueueRange { index, count, kind };
    if let Some((shared, owner)) = memory.find(kind, count as usize) {
        match place.join_all(&shared, &owner) {
            Ok(queues) => {
                memory.note(kind, &shared, &owner, count as usize);
                return Ok(queues);
            }
            Err(failure @ (_, Errno::BUSY)) => return Err(failure),
            Err((_, error)) => {
                tracing::info!(interface = index, %error, "cannot share memory with other ports; copying frames between them");
            }
        }
    }
    let made = memory.make(count as usize);
    let own = Arc::new(made.map_err(|error| ("get memory for frames", error))?);
    let (queues, owner) = place.found(&own)?;
    memory.note(kind, &own, &owner, count as usize);
    Ok(queues)
}

/// The queues to bind to.
#[derive(Clone, Copy)]
struct QueueRange {
    index: u32,
    count: u32,
    kind: Kind,
}

impl QueueRange {
    /// Opens sockets that share a memory, which was registered through `owner`.
    fn join_all(self, memory: &Arc<Memory>, owner: &OwnedFd) -> Result<Queues, Failure> {
        let first = Prepared::new(true, None)?;
        let mapped = self.map(&first)?;
        self.join(&first, 0, owner)?;
        self.complete(mapped, memory, owner)
    }

    /// Opens sockets that share a new memory, which the first of them registers.
    fn found(self, memory: &Arc<Memory>) -> Result<(Queues, Arc<OwnedFd>), Failure> {
        let first = Prepared::new(true, Some(memory))?;
        let mut flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
        flags |= match self.kind.is_zero_copy {
            true => SocketAddrXdpFlags::XDP_ZEROCOPY,
            false => SocketAddrXdpFlags::XDP_COPY,
        };
        flags.set(SocketAddrXdpFlags::XDP_USE_SG, self.kind.has_parts);
        let mapped = self.map(&first)?;
        bind(&*first.socket, &SocketAddrXdp::new(flags, self.index, 0)).map_err(on_bind)?;
        let queues = self.complete(mapped, memory, &first.socket)?;
        Ok((queues, first.socket))
    }

    fn map(self, first: &Prepared) -> Result<(Receiver, Sender), Failure> {
        let offsets = first.offsets()?;
        let receiver = Receiver::map(&first.socket, &offsets).map_err(on_map)?;
        let sender = Sender::map(&first.socket, &offsets, self.kind);
        Ok((receiver, sender.map_err(on_map)?))
    }

    /// Adds the sockets of the other queues, which only receive.
    fn complete(
        self,
        (first, sender): (Receiver, Sender),
        memory: &Arc<Memory>,
        owner: &OwnedFd,
    ) -> Result<Queues, Failure> {
        let mut receivers = vec![first];
        for queue in 1..self.count {
            let prepared = Prepared::new(false, None)?;
            let receiver = Receiver::map(&prepared.socket, &prepared.offsets()?);
            receivers.push(receiver.map_err(on_map)?);
            self.join(&prepared, queue, owner)?;
        }
        Ok(Queues {
            kind: self.kind,
            memory: Arc::clone(memory),
            receivers,
            sender,
        })
    }

    fn join(self, prepared: &Prepared, queue: u32, owner: &OwnedFd) -> Result<(), Failure> {
        let flags = SocketAddrXdpFlags::XDP_SHARED_UMEM;
        let address = SocketAddrXdpWithSharedUmem {
            addr: SocketAddrXdp::new(flags, self.index, queue),
            shared_umem_fd: owner.as_fd(),
        };
        bind(&*prepared.socket, &address).map_err(on_bind)
    }
}

/// A socket with rings, which is not bound yet.
struct Prepared {
    socket: Arc<OwnedFd>,
}

impl Prepared {
    /// Creates a socket, and registers `memory` through it, if any.
    fn new(sends: bool, memory: Option<&Memory>) -> Result<Self, Failure> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)
            .map_err(|error| ("create an XDP socket", error))?;
        if let Some(memory) = memory {
            let registered = memory.register(&socket);
            registered.map_err(|error| ("share memory with the kernel", error))?;
        }
        size_rings(&socket, sends).map_err(|error| ("make rings", error))?;
        if sends {
            // This may exceed the system's limit if the process is privileged; otherwise frames wait for space.
            let _ = sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER_BYTES)
                .or_else(|_| sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES));
        }
        Ok(Self {
            socket: Arc::new(socket),
        })
    }

    fn offsets(&self) -> Result<rustix::net::xdp::XdpMmapOffsets, Failure> {
        sockopt::xdp_mmap_offsets(&self.socket).map_err(|error| ("find the rings", error))
    }
}

fn size_rings(socket: &OwnedFd, sends: bool) -> Result<(), Errno> {
    sockopt::set_xdp_umem_fill_ring_size(socket, RX_FRAMES as u32)?;
    sockopt::set_xdp_rx_ring_size(socket, RX_FRAMES as u32)?;
    sockopt::set_xdp_umem_completion_ring_size(socket, TX_FRAMES as u32)?;
    match sends {
        true => sockopt::set_xdp_tx_ring_size(socket, TX_FRAMES as u32),
        false => Ok(()),
    }
}

fn on_bind(error: Errno) -> Failure {
    ("bind to the interface", error)
}

fn on_map(error: Errno) -> Failure {
    ("map the rings", error)
}
