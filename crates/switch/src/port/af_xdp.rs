//! A network interface by AF_XDP: frames go past most of the kernel, into memory that is shared with it.
//!
//! **What.** A small XDP program (see the module `program`) hands the frames of the interface's receive queue to a socket,
//! in the driver where that can (native), or else right behind it (generic). Without copies where the driver can do that,
//! with one where it cannot; the kernel chooses. The interface is promiscuous as long as the port exists.
//!
//! **Cost.** `FRAMES` frames of `FRAME_BYTES` of memory for each port. Receiving is no system call. Sending is a copy, and a
//! system call for a burst, of which the kernel does 32 frames at a time where it copies.
//!
//! **Limits.** One receive queue, since one thread serves the port; an interface with more is refused. Frames up to
//! `MAX_MTU` and their headers. Partial checksums of local senders are completed; segments that are larger than the MTU do not
//! come, natively because the kernel then has the sender cut them, generically because it drops them. A VLAN tag that the
//! sender's kernel left to the hardware of a veth is lost: `ethtool -K PEER txvlan off` has it put in.

mod program;
mod ring;

use super::af_packet::Promiscuity;
use super::interface::Interface;
use super::{Opening, PortError, PortIo, offload};
use program::Redirect;
use ring::{Consumer, Producer};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions, XdpUmemReg,
    XdpUmemRegFlags,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
    sockopt,
};
use std::io;
use std::ptr::NonNull;
use std::time::{Duration, Instant};
use urtica_wire::MacAddr;

/// The memory of one frame.
const FRAME_BYTES: usize = 4096;

/// What the kernel keeps free before each frame that it receives (`XDP_PACKET_HEADROOM`).
const HEADROOM_BYTES: usize = 256;

/// Frames that may wait to be received, and as many again to be sent; powers of two.
const RX_FRAMES: usize = 2048;
const TX_FRAMES: usize = 1024;

/// All frames of a port.
const FRAMES: usize = RX_FRAMES + TX_FRAMES;

/// The largest MTU: the rest of a frame's memory is for the Ethernet header and two VLAN tags.
const MAX_MTU: usize = FRAME_BYTES - HEADROOM_BYTES - 22;

/// How long the kernel may take to let go of a socket that was closed; it has been seen to take a second.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

/// How often the kernel is asked to go on with a burst, 32 frames each time.
const KICKS: usize = TX_FRAMES / 32;

/// A port on a network interface.
pub struct AfXdpPort {
    interface: Interface,
    // Declared before the socket: no frame may be redirected to a socket that is gone.
    _redirect: Redirect,
    _promiscuity: Promiscuity,
    /// Received frames, and the frames given to the kernel to receive into.
    rx: Consumer<XdpDesc>,
    fill: Producer<u64>,
    /// Frames to send, and the frames that have been.
    tx: Producer<XdpDesc>,
    completed: Consumer<u64>,
    /// The frames, by address, that nothing is sent from.
    free: Vec<u64>,
    /// Whether the kernel was too busy to take all frames that are to be sent.
    is_congested: bool,
    /// How many frames the kernel had lost when it was last asked.
    dropped_before: u64,
    socket: OwnedFd,
    memory: Memory,
}

impl AfXdpPort {
    /// Opens the interface `name` of the process's network namespace.
    ///
    /// # Errors
    /// Where there is no such interface, it has several receive queues or large frames, another program has it, or we may not.
    pub fn open(name: &str) -> Result<Self, PortError> {
        let interface = Interface::find(name)?;
        let opening = Opening {
            port: name,
            needs: "CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF",
        };
        check(&interface, &opening)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)
            .map_err(opening.failed("make an XDP socket"))?;
        let memory = Memory::new().map_err(opening.failed("get memory for frames"))?;
        register(&socket, &memory).map_err(opening.failed("share memory with the kernel"))?;
        let offsets =
            sockopt::xdp_mmap_offsets(&socket).map_err(opening.failed("find the rings"))?;
        let rings = "map the rings";
        let port = Self {
            rx: Consumer::map(&socket, &offsets.rx, RX_FRAMES, XDP_PGOFF_RX_RING)
                .map_err(opening.failed(rings))?,
            fill: Producer::map(&socket, &offsets.fr, RX_FRAMES, XDP_UMEM_PGOFF_FILL_RING)
                .map_err(opening.failed(rings))?,
            tx: Producer::map(&socket, &offsets.tx, TX_FRAMES, XDP_PGOFF_TX_RING)
                .map_err(opening.failed(rings))?,
            completed: Consumer::map(
                &socket,
                &offsets.cr,
                TX_FRAMES,
                XDP_UMEM_PGOFF_COMPLETION_RING,
            )
            .map_err(opening.failed(rings))?,
            _promiscuity: Promiscuity::begin(&interface)
                .map_err(opening.failed("listen to all of the interface"))?,
            _redirect: {
                bind_when_free(&socket, interface.index)
                    .map_err(opening.failed("bind to the interface"))?;
                Redirect::attach(interface.index, &socket)
                    .map_err(opening.failed("attach an XDP program"))?
            },
            free: (RX_FRAMES..FRAMES).map(address).collect(),
            is_congested: false,
            dropped_before: 0,
            interface,
            socket,
            memory,
        };
        Ok(port.with_frames_to_receive_into())
    }

    fn with_frames_to_receive_into(mut self) -> Self {
        (0..RX_FRAMES).for_each(|number| self.fill.push(address(number)));
        self.fill.publish();
        self
    }

    /// Takes back the frames that have been sent.
    fn reap(&mut self) {
        while let Some(address) = self.completed.pop() {
            self.free.push(address);
        }
        self.completed.release();
    }
}

impl PortIo for AfXdpPort {
    fn name(&self) -> &str {
        &self.interface.name
    }

    fn hw_addr(&self) -> MacAddr {
        self.interface.hw_addr
    }

    fn is_up(&self) -> bool {
        // An interface that goes away leaves an error, with which the socket would seem readable until it is asked for.
        let _ = sockopt::socket_error(&self.socket);
        self.interface.is_up()
    }

    fn link_index(&self) -> Option<u32> {
        Some(self.interface.index)
    }

    fn speed_kbps(&self) -> u32 {
        self.interface.speed_kbps()
    }

    fn receive(&mut self, max: usize, handle: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        let mut count = 0;
        while count < max {
            let Some(desc) = self.rx.pop() else {
                break;
            };
            let frame = self.memory.slice(desc.addr, desc.len as usize);
            offload::complete_if_partial(frame);
            handle(frame);
            self.fill.push(desc.addr & !(FRAME_BYTES as u64 - 1));
            count += 1;
        }
        self.rx.release();
        self.fill.publish();
        if self.fill.needs_wakeup() {
            // Nothing is received by this; it tells the driver of the frames that were given back.
            let _ = recv(&self.socket, &mut [0_u8; 0][..], RecvFlags::DONTWAIT);
        }
        Ok(count)
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        if self.free.is_empty() {
            self.reap();
        }
        if frame.len() > FRAME_BYTES {
            return false;
        }
        let Some(address) = self.free.pop() else {
            return false;
        };
        self.memory
            .slice(address, frame.len())
            .copy_from_slice(frame);
        self.tx.push(XdpDesc {
            addr: address,
            len: frame.len() as u32,
            options: XdpDescOptions::empty(),
        });
        true
    }

    fn flush(&mut self) {
        self.tx.publish();
        let is_left = |tx: &Producer<XdpDesc>| tx.has_unread() && tx.needs_wakeup();
        let mut kicks = 0..KICKS;
        self.is_congested = is_left(&self.tx);
        while self.is_congested && kicks.next().is_some() {
            // After any other error the interface is down: what is left goes when it is up again, with what is sent then.
            let sent = send(&self.socket, &[], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            let may_go_on = matches!(sent, Ok(_) | Err(Errno::AGAIN | Errno::INTR));
            self.is_congested = may_go_on && is_left(&self.tx);
        }
    }

    fn has_unsent(&self) -> bool {
        self.is_congested
    }

    fn take_dropped(&mut self) -> u64 {
        let Ok(counts) = sockopt::xdp_statistics(&self.socket) else {
            return 0;
        };
        let dropped = counts.rx_dropped + counts.rx_ring_full.unwrap_or(0);
        dropped - std::mem::replace(&mut self.dropped_before, dropped).min(dropped)
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

/// The memory of all frames, shared with the kernel (UMEM). Who may touch a frame, the rings say: its address is either in one
/// of them, or here.
struct Memory {
    start: NonNull<u8>,
}

// SAFETY: the mapping belongs to this value alone; nothing in it depends on the thread.
unsafe impl Send for Memory {}

impl Memory {
    const BYTES: usize = FRAMES * FRAME_BYTES;

    fn new() -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, where the kernel likes it.
        let start = unsafe {
            mmap_anonymous(std::ptr::null_mut(), Self::BYTES, access, MapFlags::PRIVATE)?
        };
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { start })
    }

    /// `len` bytes of a frame that is ours at this time.
    fn slice(&mut self, address: u64, len: usize) -> &mut [u8] {
        let address = address as usize;
        assert!(address + len <= Self::BYTES, "addresses are of our frames");
        // SAFETY: within the mapping, as just asserted; the kernel does not touch frames that it has handed over.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(address), len) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping, and nothing refers to it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), Self::BYTES) };
    }
}

/// Where frame `number` is in the memory.
fn address(number: usize) -> u64 {
    (number * FRAME_BYTES) as u64
}

fn check(interface: &Interface, opening: &Opening) -> Result<(), PortError> {
    let mtu = interface.mtu().map_err(opening.failed("read the MTU"))?;
    if mtu > MAX_MTU {
        return Err(opening.unsuitable(format!(
            "has an MTU of {mtu}; expected {MAX_MTU} at most (use afpacket, or `ip link set mtu`)"
        )));
    }
    match interface.rx_queues() {
        Some(queues) if queues > 1 => Err(opening.unsuitable(format!(
            "has {queues} receive queues; expected one (`ethtool -L {} combined 1`)",
            interface.name
        ))),
        _ => Ok(()),
    }
}

fn register(socket: &OwnedFd, memory: &Memory) -> Result<(), Errno> {
    let region = XdpUmemReg {
        addr: memory.start.as_ptr() as u64,
        len: Memory::BYTES as u64,
        chunk_size: FRAME_BYTES as u32,
        headroom: 0,
        flags: XdpUmemRegFlags::empty(),
        tx_metadata_len: 0,
    };
    sockopt::set_xdp_umem_reg(socket, region)?;
    sockopt::set_xdp_umem_fill_ring_size(socket, RX_FRAMES as u32)?;
    sockopt::set_xdp_rx_ring_size(socket, RX_FRAMES as u32)?;
    sockopt::set_xdp_umem_completion_ring_size(socket, TX_FRAMES as u32)?;
    sockopt::set_xdp_tx_ring_size(socket, TX_FRAMES as u32)
}

/// Binds to the interface's only queue. The kernel lets go of a queue only some time after its socket was closed.
fn bind_when_free(socket: &OwnedFd, index: u32) -> Result<(), Errno> {
    let address = SocketAddrXdp::new(SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP, index, 0);
    let start = Instant::now();
    loop {
        match bind(socket, &address) {
            Err(Errno::BUSY) if start.elapsed() < RELEASE_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(50));
            }
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::af_packet::AfPacketPort;
    use crate::port::testing::{frame, in_namespace, ip, is_readable, receive, tcp_passes, veth};

    fn link() -> (AfXdpPort, AfXdpPort) {
        veth("v0", "v1");
        let open = |name| AfXdpPort::open(name).unwrap();
        (open("v0"), open("v1"))
    }

    #[test]
    fn bursts_arrive_whole_and_in_order() {
        in_namespace(|| {
            let (mut a, mut b) = link();
            let expected: Vec<_> = (0..100)
                .map(|mark| frame(60 + usize::from(mark), mark))
                .collect();
            for _ in 0..2 * FRAMES / 100 {
                expected.iter().for_each(|frame| assert!(a.send(frame)));
                a.flush();
                assert_eq!(receive(&mut b, 100), expected);
            }
            assert_eq!(
                a.receive(32, &mut |_| {}).unwrap(),
                0,
                "own frames do not come back"
            );
        });
    }

    #[test]
    fn frames_that_find_no_room_are_counted() {
        in_namespace(|| {
            let (mut a, mut b) = link();
            for _ in 0..(RX_FRAMES + 100) / 4 {
                (0..4).for_each(|_| assert!(a.send(&frame(60, 1))));
                a.flush();
            }
            assert_eq!(receive(&mut b, RX_FRAMES).len(), RX_FRAMES);
            assert_eq!((b.take_dropped(), b.take_dropped()), (100, 0));
        });
    }

    #[test]
    fn readable_exactly_while_frames_wait() {
        in_namespace(|| {
            let (mut a, mut b) = link();
            assert!(!is_readable(&b, 0));
            a.send(&frame(1514, 1));
            a.flush();
            assert!(is_readable(&b, 500));
            receive(&mut b, 1);
            assert!(!is_readable(&b, 0));
        });
    }

    #[test]
    fn local_tcp_passes() {
        in_namespace(|| tcp_passes(|name| Box::new(AfXdpPort::open(name).unwrap())));
    }

    /// A veth has no XDP in the driver while its peer has more queues than itself.
    #[test]
    fn frames_pass_where_the_driver_has_no_xdp() {
        in_namespace(|| {
            ip("link add v0 numtxqueues 4 type veth peer name v1");
            for end in ["v0", "v1"] {
                ip(&format!("link set {end} addrgenmode none"));
                ip(&format!("link set {end} up"));
            }
            let mut a = AfPacketPort::open("v0").unwrap();
            let mut b = AfXdpPort::open("v1").unwrap();
            assert!(a.send(&frame(100, 1)) && a.send(&frame(1514, 2)));
            a.flush();
            assert_eq!(receive(&mut b, 2), [frame(100, 1), frame(1514, 2)]);
            assert!(b.send(&frame(200, 3)));
            b.flush();
            assert_eq!(receive(&mut a, 1), [frame(200, 3)]);
        });
    }

    #[test]
    fn an_interface_can_be_opened_again_at_once() {
        in_namespace(|| {
            drop(link());
            assert!(AfXdpPort::open("v0").is_ok());
        });
    }

    #[test]
    fn refusals_say_what_was_expected() {
        in_namespace(|| {
            veth("v0", "v1");
            let refuse = |name| AfXdpPort::open(name).err().unwrap().to_string();
            ip("link set v0 mtu 9000");
            assert!(
                refuse("v0").contains("an MTU of 9000; expected 3818 at most"),
                "{}",
                refuse("v0")
            );
            ip("link add w0 numrxqueues 4 type veth peer name w1");
            assert!(
                refuse("w0").contains("receive queues; expected one"),
                "{}",
                refuse("w0")
            );
        });
    }
}
