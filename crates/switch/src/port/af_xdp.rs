//! A network interface by AF_XDP: frames go past most of the kernel, into memory that is shared with it.
//!
//! **What.** A small XDP program (see the module `program`) hands the frames of each of the interface's receive queues to a
//! socket, in the driver where that can (native), or else right behind it (generic). Without copies where the driver can do
//! that, with one where it cannot (see `opening`). Frames are lent to the switch where they are, and a port that shares their
//! memory sends them from there (see `memory`). The interface is promiscuous as long as the port exists.
//!
//! **Cost.** 13 MiB of memory for each queue. Receiving is no system call. Sending is one for a burst; where the kernel copies,
//! it does 32 frames at a time.
//!
//! **Threads.** Queues can be dealt out to several. The first sends by the rings of the first queue, the others by AF_PACKET.
//!
//! **Interfaces made again.** The port opens an interface that was deleted and created again under its name, with memory of its
//! own. After [`PortIo::split`], the first thread gets all queues of the new interface.
//!
//! **Limits.** Frames leave by the first queue. Where the kernel has no frames of several parts (before Linux 6.6), frames up to
//! `MAX_MTU` and their headers. Partial checksums of local senders are completed; segments that are larger than the MTU do not
//! come, natively because the kernel then has the sender cut them, generically because it drops them. A VLAN tag that the
//! sender's kernel left to the hardware of a veth is lost: `ethtool -K PEER txvlan off` has it put in.

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
use rustix::event::epoll;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use urtica_wire::MacAddr;

/// What the kernel keeps free before each frame that it receives (`XDP_PACKET_HEADROOM`).
const HEADROOM_BYTES: usize = 256;

/// The largest MTU with which a frame, its Ethernet header and two VLAN tags have one part.
const MAX_MTU: usize = FRAME_BYTES - HEADROOM_BYTES - 22;

/// A port on a network interface.
pub struct AfXdpPort {
    interface: Interface,
    // Declared before the sockets: no frame may be redirected to a socket that is gone. Shared by those that were split.
    _redirect: Arc<Redirect>,
    _promiscuity: Arc<Promiscuity>,
    receivers: Vec<Receiver>,
    /// The one whose turn it is.
    next_receiver: usize,
    sender: Outgoing,
    /// What watches all receivers, if there are several.
    watch: Option<OwnedFd>,
    /// Free frames, by address.
    spare: Vec<u64>,
    /// Lent frames that their receiver has not passed on.
    unused: Vec<LentFrame>,
    memory: Arc<Memory>,
}

/// How frames leave.
enum Outgoing {
    /// By the rings of the first queue, which take one thread.
    Rings(Sender),
    /// By AF_PACKET.
    Beside(Box<dyn PortSender>),
}

/// What it takes to send by the interface beside the port.
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
    /// Where there is no such interface, it cannot be used so, another program has it, or we may not.
    pub fn open(name: &str) -> Result<Self, PortError> {
        Self::open_sharing(name, &mut FrameMemory::for_ports(1))
    }

    /// The same, with the memory of other ports if that is possible.
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
        let promiscuity = Promiscuity::begin(&interface)
            .map_err(opening.failed("listen to all of the interface"))?;
        let sockets = queues.receivers.iter().map(AsFd::as_fd);
        let redirect = Redirect::attach(interface.index, sockets, queues.kind.has_parts)
            .map_err(opening.failed("attach an XDP program"))?;
        let watch = watch_all(&queues.receivers).map_err(opening.failed("watch its queues"))?;
        match queues.kind.is_zero_copy {
            true => tracing::info!(port = name, queues = count, "AF_XDP, without copies"),
            false => tracing::info!(
                port = name,
                queues = count,
                "AF_XDP; the kernel copies frames, since the driver has no zero copy"
            ),
        }
        Ok(Self::with(interface, queues, redirect, promiscuity, watch))
    }

    fn with(
        interface: Interface,
        queues: Queues,
        redirect: Redirect,
        promiscuity: Promiscuity,
        watch: Option<OwnedFd>,
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

    /// The port for another thread, with these of the queues.
    fn part(&self, way: Way, receivers: Vec<Receiver>, watch: Option<OwnedFd>) -> Self {
        Self {
            interface: way.interface,
            _redirect: Arc::clone(&self._redirect),
            _promiscuity: Arc::clone(&self._promiscuity),
            receivers,
            next_receiver: 0,
            sender: Outgoing::Beside(way.sender),
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

    /// Deals its queues out, round-robin.
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
            Outgoing::Beside(sender) => {
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
                // SAFETY: this port shares the memory, and nothing else has the frame.
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
        self.memory.give_back(&mut self.spare, SPARE_FRAMES);
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        match &mut self.sender {
            Outgoing::Rings(sender) => sender.send(frame, &self.memory, &mut self.spare),
            Outgoing::Beside(sender) => sender.send(frame),
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
            Outgoing::Beside(sender) => sender.flush(),
        }
    }

    fn has_unsent(&self) -> bool {
        match &self.sender {
            Outgoing::Rings(sender) => sender.is_congested(),
            Outgoing::Beside(sender) => sender.has_unsent(),
        }
    }

    /// By AF_PACKET: a socket's rings take one thread.
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

/// `count` shares of all queues, as equal as can be.
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

/// Several sockets as one descriptor, which is readable when one of them is.
fn watch_all(receivers: &[Receiver]) -> Result<Option<OwnedFd>, Errno> {
    if receivers.len() == 1 {
        return Ok(None);
    }
    let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for receiver in receivers {
        let data = epoll::EventData::new_u64(0);
        epoll::add(&watch, receiver, data, epoll::EventFlags::IN)?;
    }
    Ok(Some(watch))
}

#[cfg(test)]
mod tests;
