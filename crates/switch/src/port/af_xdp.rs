//! A network interface through AF_XDP: frames bypass most of the kernel, and are received into memory that is shared with
//! it.
//!
//! **What.** A small XDP program (see the module `program`) passes the frames of each receive queue of the interface to a
//! socket, in the driver if possible (native), otherwise right after it (generic); without copies if the driver supports
//! that, otherwise with one copy (see `opening`). Frames are lent to the switch in place, and a port that shares their
//! memory sends them from there (see `memory`). The interface is promiscuous while the port exists.
//!
//! **Cost.** 13 MiB of memory for each queue. Receiving needs no system call. Sending needs one for a burst, or for 32
//! frames if the kernel copies.
//!
//! **Threads.** Queues can be distributed to several threads. The first thread sends through the rings of the first queue,
//! the others through AF_PACKET.
//!
//! **Recreated interfaces.** The port reopens an interface that was deleted and created again under its name, with its own
//! memory. After [`PortIo::split`], the first thread gets all queues of the new interface.
//!
//! **Limits.** Frames are sent through the first queue. If the kernel has no frames of several parts (before Linux 6.6),
//! frames are limited to `MAX_MTU` and their headers. Partial checksums of local senders are completed. Segments larger than
//! the MTU are not received: in native mode the kernel makes the sender split them, in generic mode it drops them. A VLAN
//! tag that the sender's kernel left to the hardware of a veth is lost: `ethtool -K PEER txvlan off` makes the kernel
//! insert it.

mod memory;
mod opening;
mod program;
mod queue;
mod ring;

use super::af_packet::{Promiscuity, open_sender};
use super::interface::Interface;
use super::lent::{LentFrame, Received};
use super::{Opening, PortError, PortIo, PortSender};
pub use memory::FrameMemory;
use memory::{FRAME_BYTES, Memory, SPARE_FRAMES, frame_of};
use opening::Queues;
use program::Redirect;
use queue::{Receiver, Sender};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use urtica_socket::{EventFlags, Poller};
use urtica_wire::MacAddr;

/// Space that the kernel keeps free before each frame that it receives (`XDP_PACKET_HEADROOM`).
const HEADROOM_BYTES: usize = 256;

/// The largest MTU at which a frame with its Ethernet header and two VLAN tags fits into one part.
const MAX_MTU: usize = FRAME_BYTES - HEADROOM_BYTES - 22;

/// A port on a network interface.
pub struct AfXdpPort {
    interface: Interface,
    // Declared before the sockets: no frame may be redirected to a closed socket. Ports that were split share this.
    _redirect: Arc<Redirect>,
    _promiscuity: Arc<Promiscuity>,
    receivers: Vec<Receiver>,
    /// Index of the receiver that is polled next.
    next_receiver: usize,
    sender: Outgoing,
    /// The descriptor that watches all receivers, if there are several.
    watch: Option<Poller>,
    /// Addresses of free frames.
    spare: Vec<u64>,
    /// Lent frames that their receiver did not forward.
    unused: Vec<LentFrame>,
    memory: Arc<Memory>,
}

/// How frames are sent.
enum Outgoing {
    /// Through the rings of the first queue, which only one thread may use.
    Rings(Sender),
    /// Through AF_PACKET.
    AfPacket(Box<dyn PortSender>),
}

/// An additional path to send through the port's interface.
struct Way {
    interface: Interface,
    sender: Box<dyn PortSender>,
}

impl Way {
    fn open(name: &str) -> Result<Self, PortError> {
        let interface = Interface::find(name)?;
        let sender = open_sender(&interface)?;
        Ok(Self { interface, sender })
    }
}

impl AfXdpPort {
    /// Opens the interface `name` of the process's network namespace.
    ///
    /// # Errors
    /// If there is no such interface, AF_XDP cannot use it, another program uses it, or the process lacks the
    /// permission.
    pub fn open(name: &str) -> Result<Self, PortError> {
        Self::open_sharing(name, &mut FrameMemory::for_ports(1))
    }

    /// Like [`AfXdpPort::open`], with the memory of other ports if possible.
    ///
    /// # Errors
    /// As [`AfXdpPort::open`].
    pub fn open_sharing(name: &str, memory: &mut FrameMemory) -> Result<Self, PortError> {
        let interface = Interface::find(name)?;
        let opening = opening(name);
        let mtu = interface.mtu().map_err(opening.failed("read the MTU"))?;
        let count = interface.rx_queues().unwrap_or(1).max(1);
        let opened = opening::open(interface.index, count, mtu > MAX_MTU, memory);
        let queues = opened.map_err(|(what, error)| match error {
            Errno::OPNOTSUPP | Errno::INVAL if mtu > MAX_MTU => opening.unsuitable(format!(
                "has an MTU of {mtu}; expected {MAX_MTU} at most, as the kernel or the driver has no frames of several parts (use afpacket, or `ip link set mtu`)"
            )),
            error => opening.failed(what)(error),
        })?;
        let promiscuity =
            Promiscuity::begin(&interface).map_err(opening.failed("enable promiscuous mode"))?;
        let sockets = queues.receivers.iter().map(AsFd::as_fd);
        let redirect = Redirect::attach(interface.index, sockets, queues.kind.has_parts)
            .map_err(opening.failed("attach an XDP program"))?;
        let watch = watch_all(&queues.receivers).map_err(opening.failed("watch its queues"))?;
        match queues.kind.is_zero_copy {
            true => tracing::info!(port = name, queues = count, "AF_XDP: zero copy"),
            false => tracing::info!(
                port = name,
                queues = count,
                "AF_XDP: the kernel copies frames, since the driver has no zero copy"
            ),
        }
        Ok(Self::with(interface, queues, redirect, promiscuity, watch))
    }

    fn with(
        interface: Interface,
        queues: Queues,
        redirect: Redirect,
        promiscuity: Promiscuity,
        watch: Option<Poller>,
    ) -> Self {
        let mut port = Self {
            interface,
            _redirect: Arc::new(redirect),
            _promiscuity: Arc::new(promiscuity),
            receivers: queues.receivers,
            next_receiver: 0,
            sender: Outgoing::Rings(queues.sender),
            watch,
            spare: Vec::new(),
            unused: Vec::new(),
            memory: queues.memory,
        };
        port.refill();
        port
    }

    /// Creates the port for another thread, with some of the queues.
    fn part(&self, way: Way, receivers: Vec<Receiver>, watch: Option<Poller>) -> Self {
        Self {
            interface: way.interface,
            _redirect: Arc::clone(&self._redirect),
            _promiscuity: Arc::clone(&self._promiscuity),
            receivers,
            next_receiver: 0,
            sender: Outgoing::AfPacket(way.sender),
            watch,
            spare: Vec::new(),
            unused: Vec::new(),
            memory: Arc::clone(&self.memory),
        }
    }

    fn refill(&mut self) {
        for receiver in &mut self.receivers {
            receiver.refill(&self.memory, &mut self.spare);
        }
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
        self.receivers.iter().for_each(Receiver::take_error);
        self.interface.is_up()
    }

    fn link_index(&self) -> Option<u32> {
        Some(self.interface.index)
    }

    fn speed_kbps(&self) -> u32 {
        self.interface.speed_kbps()
    }

    fn max_threads(&self) -> usize {
        self.receivers.len()
    }

    /// Distributes the port's queues round-robin.
    fn split(&mut self, count: usize) -> Result<Vec<Box<dyn PortIo>>, PortError> {
        let count = count.min(self.receivers.len());
        let ways = (1..count).map(|_| Way::open(&self.interface.name));
        let ways = ways.collect::<Result<Vec<_>, _>>()?;
        let mut shares = deal(std::mem::take(&mut self.receivers), count);
        let watches = shares.iter().map(|share| watch_all(share));
        let mut watches = match watches.collect::<Result<Vec<_>, _>>() {
            Ok(watches) => watches.into_iter(),
            Err(error) => {
                self.receivers = shares.into_iter().flatten().collect();
                return Err(opening(&self.interface.name).failed("watch its queues")(
                    error,
                ));
            }
        };
        let others = shares.split_off(1);
        self.receivers = shares.remove(0);
        self.watch = watches.next().flatten();
        self.next_receiver = 0;
        let parts = ways.into_iter().zip(others).zip(watches);
        let parts = parts.map(|((way, receivers), watch)| self.part(way, receivers, watch));
        Ok(parts
            .map(|part| Box::new(part) as Box<dyn PortIo>)
            .collect())
    }

    fn reopen(&mut self) -> Result<bool, PortError> {
        if !self.interface.is_replaced() {
            return Ok(false);
        }
        match &mut self.sender {
            Outgoing::Rings(_) => *self = Self::open(&self.interface.name)?,
            Outgoing::AfPacket(sender) => {
                sender.reopen()?;
                self.interface = Interface::find(&self.interface.name)?;
            }
        }
        Ok(true)
    }

    fn receive(&mut self, max: usize, handle: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        let mut unused = std::mem::take(&mut self.unused);
        let received = self.receive_lent(max, &mut |received| match received {
            Received::Bytes(bytes) => handle(bytes),
            Received::Lent(frame) => {
                // SAFETY: this port shares the memory, and only this code has the frame.
                handle(unsafe { frame.bytes() });
                unused.push(frame);
            }
        });
        self.take_back(&mut unused);
        self.unused = unused;
        received
    }

    fn receive_lent(
        &mut self,
        max: usize,
        handle: &mut dyn FnMut(Received<'_>),
    ) -> io::Result<usize> {
        let mut count = 0;
        let queues = self.receivers.len();
        for _ in 0..queues {
            let receiver = &mut self.receivers[self.next_receiver];
            let left = max - count;
            let received = receiver.receive(left, &self.memory, &mut self.spare, handle);
            count += received;
            if received > 0 {
                receiver.refill(&self.memory, &mut self.spare);
            }
            self.next_receiver = (self.next_receiver + 1) % queues;
            if count == max {
                break;
            }
        }
        Ok(count)
    }

    fn take_back(&mut self, frames: &mut Vec<LentFrame>) {
        let ours = |frame: &LentFrame| frame.memory() == self.memory.id();
        let addresses = frames
            .drain(..)
            .filter(ours)
            .map(|frame| frame_of(self.memory.address_of(&frame)));
        self.spare.extend(addresses);
        self.memory.release(&mut self.spare, SPARE_FRAMES);
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        match &mut self.sender {
            Outgoing::Rings(sender) => sender.send(frame, &self.memory, &mut self.spare),
            Outgoing::AfPacket(sender) => sender.send(frame),
        }
    }

    fn send_lent(&mut self, frame: LentFrame) -> Result<(), LentFrame> {
        match &mut self.sender {
            Outgoing::Rings(sender) if frame.memory() == self.memory.id() => {
                sender.send_lent(frame, &self.memory, &mut self.spare)
            }
            _ => Err(frame),
        }
    }

    fn flush(&mut self) {
        match &mut self.sender {
            Outgoing::Rings(sender) => sender.flush(&self.memory, &mut self.spare),
            Outgoing::AfPacket(sender) => sender.flush(),
        }
    }

    fn has_unsent(&self) -> bool {
        match &self.sender {
            Outgoing::Rings(sender) => sender.is_congested(),
            Outgoing::AfPacket(sender) => sender.has_unsent(),
        }
    }

    /// Returns a sender through AF_PACKET, since only one thread may use a socket's rings.
    fn sender(&self) -> Option<Result<Box<dyn PortSender>, PortError>> {
        Some(open_sender(&self.interface))
    }

    fn take_dropped(&mut self) -> u64 {
        self.receivers.iter_mut().map(Receiver::take_dropped).sum()
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.watch {
            Some(watch) => Some(watch.as_fd()),
            None => self.receivers.first().map(AsFd::as_fd),
        }
    }
}

/// Splits the queues into `count` shares, as equal as possible.
fn deal(receivers: Vec<Receiver>, count: usize) -> Vec<Vec<Receiver>> {
    let mut shares: Vec<_> = (0..count).map(|_| Vec::new()).collect();
    for (number, receiver) in receivers.into_iter().enumerate() {
        shares[number % count].push(receiver);
    }
    shares
}

fn opening(name: &str) -> Opening<'_> {
    Opening {
        port: name,
        needs: "CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF",
    }
}

/// Combines several sockets into one descriptor, which is readable when one of them is.
fn watch_all(receivers: &[Receiver]) -> io::Result<Option<Poller>> {
    if receivers.len() == 1 {
        return Ok(None);
    }
    let poller = Poller::new()?;
    for receiver in receivers {
        poller.add(receiver, 0, EventFlags::IN)?;
    }
    Ok(Some(poller))
}

#[cfg(test)]
mod tests;
