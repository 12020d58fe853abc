//! A network interface through AF_PACKET, which works with every driver, in every container with the necessary capability.
//!
//! **What.** A socket with a ring of slots (TPACKET_V2), which the kernel fills with the frames that the interface receives,
//! and a second socket that sends bursts (`sendmmsg`). The interface is promiscuous while the port exists. The port does not
//! receive frames that it sends itself. A VLAN tag that the kernel has removed is inserted again; checksums and segments
//! that a local sender left to the hardware are completed and split (see the module `offload`).
//!
//! **Why version 2.** Version 3 packs frames densely, but passes them on in blocks: a frame on a quiet link waits for its
//! block's timeout, at least a millisecond, on each hop. Version 2 passes on each frame immediately. Frames that do not fit
//! into a slot, which over a veth are TCP's large segments, are received by `recv`, in order (PACKET_COPY_THRESH).
//!
//! **Why no send ring.** PACKET_TX_RING also needs a system call for a burst, and a slot is occupied until the frame's
//! receiver has released it, which may last long on a veth.
//!
//! **Threads.** Several threads can receive from one interface, each through a port with its own socket and ring (see the
//! module `fanout`).
//!
//! **Cost.** `RING_BYTES` of memory for each port and for each thread that receives from it. Receiving a frame that fits into
//! a slot needs no system call and one copy, by the kernel. Sending needs a copy, and a system call for `BATCH` frames.
//!
//! **An interface that is deleted and created again** under its name is a different one to the kernel. The port detects that
//! its sockets have lost their interface, and opens new ones ([`PortIo::reopen`]).
//!
//! **Limits.** The machine's own network stack also receives the frames, so the interface should have no IP address. Large
//! segments are split, never forwarded whole, so bulk TCP between local hosts is slower than through a kernel bridge. A
//! frame may exceed the MTU by a customer VLAN tag (0x8100), but not by a service tag (0x88a8), which the kernel refuses.

mod fanout;
mod socket;

use super::interface::Interface;
use super::offload::{Offload, Segmenter};
use super::{Opening, PortError, PortIo, PortSender};
use fanout::{Group, GroupId, MAX_MEMBERS};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::mm::munmap;
use rustix::net::{RecvFlags, recv, sockopt};
pub(super) use socket::Promiscuity;
use socket::{bind, configure, map, packet_socket, set, statistics};
use std::io;
use std::marker::PhantomData;
use std::mem::size_of;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use urtica_wire::MacAddr;
use urtica_wire::packet::ether_type;

/// The ring's memory.
const RING_BYTES: usize = 4 << 20;

/// Size of the blocks in which the kernel allocates the ring.
const BLOCK_BYTES: usize = 64 << 10;

/// Bytes of a slot in addition to the packet: the kernel's description, the Ethernet header and a second VLAN tag.
const SLOT_HEADER_BYTES: usize = 128;

/// Memory for waiting frames that do not fit into slots: about fifty of the largest.
const LARGE_FRAMES_BYTES: usize = 4 << 20;

/// Buffer size for the largest possible frame.
const MAX_FRAME_BYTES: usize = 128 << 10;

/// Number of frames sent per system call.
const BATCH: usize = 32;

const ETHERNET_BYTES: usize = 14;
const TAG_BYTES: usize = 4;

/// A port on a network interface.
pub struct AfPacketPort {
    interface: Interface,
    _promiscuity: Promiscuity,
    ring: Ring,
    /// The frame that did not fit into a slot, after space for its [`Offload`].
    large: Vec<u8>,
    /// Number of truncated frames since the last query.
    cut: u64,
    segmenter: Segmenter,
    sender: Sender,
    /// The group of sockets that share the interface's frames, if there are others, and its id.
    shared: Option<(Arc<Group>, GroupId)>,
}

impl AfPacketPort {
    /// Opens the interface `name` of the process's network namespace. It should be up, or be brought up later.
    ///
    /// # Errors
    /// If there is no such interface, or the process lacks the permission.
    pub fn open(name: &str) -> Result<Self, PortError> {
        Self::open_in(name, None)
    }

    /// Opens the interface `name` in this group, if any; the group id is that of the group that was left.
    fn open_in(
        name: &str,
        group: Option<(&Arc<Group>, Option<GroupId>)>,
    ) -> Result<Self, PortError> {
        let interface = Interface::find(name)?;
        let opening = opening(name);
        let (ring, shared) = match group {
            Some((group, left)) => {
                let (ring, id) = Ring::open_in(&interface, &opening, group, left)?;
                (ring, Some((Arc::clone(group), id)))
            }
            None => (Ring::open(&interface, &opening)?, None),
        };
        Ok(Self {
            _promiscuity: Promiscuity::begin(&interface)
                .map_err(opening.failed("enable promiscuous mode"))?,
            ring,
            large: vec![0; MAX_FRAME_BYTES],
            cut: 0,
            segmenter: Segmenter::default(),
            sender: Sender::open(&interface, &opening)?,
            shared,
            interface,
        })
    }

    /// Starts sharing the port's frames with others.
    fn share(&mut self) -> Result<Arc<Group>, PortError> {
        let group = Arc::new(Group::default());
        let id = group
            .join(&self.ring.socket, self.interface.index, None)
            .map_err(opening(&self.interface.name).failed("share its frames among threads"))?;
        self.shared = Some((Arc::clone(&group), id));
        Ok(group)
    }

    /// Handles the next slot: passes on its frame, or passes it to the segmenter if it must be split. Returns the number of
    /// frames passed on; `None` if the ring is empty.
    fn receive_slot(&mut self, handle: &mut dyn FnMut(&[u8])) -> Option<usize> {
        let mut slot = self.ring.slots.next()?;
        let tag = slot.vlan_tag();
        let (bytes, len) = match slot.contents() {
            Contents::Whole => slot.frame_with_room(),
            Contents::Aside => match receive_large(&self.ring.socket, &mut self.large) {
                Some(len) => (&mut self.large[..], len),
                None => return Some(self.lose_slot()),
            },
            Contents::Cut => return Some(self.lose_slot()),
        };
        let (frame, offload) = finish(bytes, len, tag);
        if offload.is_large() {
            self.segmenter.frame.clear();
            self.segmenter.frame.extend_from_slice(frame);
            self.segmenter.begin(&offload);
            return Some(self.ring.slots.release(0));
        }
        offload.complete_checksum(frame);
        handle(frame);
        Some(self.ring.slots.release(1))
    }

    /// Skips a frame that was truncated.
    fn lose_slot(&mut self) -> usize {
        self.cut += 1;
        self.ring.slots.release(0)
    }
}

impl PortIo for AfPacketPort {
    fn name(&self) -> &str {
        &self.interface.name
    }

    fn hw_addr(&self) -> MacAddr {
        self.interface.hw_addr
    }

    fn is_up(&self) -> bool {
        // An interface that goes down leaves an error, and the socket stays readable until the error is read.
        let _ = sockopt::socket_error(&self.ring.socket);
        self.interface.is_up()
    }

    fn link_index(&self) -> Option<u32> {
        Some(self.interface.index)
    }

    fn speed_kbps(&self) -> u32 {
        self.interface.speed_kbps()
    }

    fn max_threads(&self) -> usize {
        MAX_MEMBERS
    }

    fn split(&mut self, count: usize) -> Result<Vec<Box<dyn PortIo>>, PortError> {
        let group = self.share()?;
        let others = (1..count).map(|_| {
            let other = Self::open_in(&self.interface.name, Some((&group, None)))?;
            Ok(Box::new(other) as Box<dyn PortIo>)
        });
        others.collect()
    }

    fn reopen(&mut self) -> Result<bool, PortError> {
        if !has_lost_interface(&self.ring.socket) || !is_there(&self.interface.name) {
            return Ok(false);
        }
        let group = self.shared.as_ref();
        let group = group.map(|(group, left)| (group, Some(*left)));
        *self = Self::open_in(&self.interface.name, group)?;
        Ok(true)
    }

    fn receive(&mut self, max: usize, handle: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        let mut count = 0;
        while count < max {
            if let Some(segment) = self.segmenter.next_segment() {
                handle(segment);
                count += 1;
                continue;
            }
            match self.receive_slot(handle) {
                Some(received) => count += received,
                None => break,
            }
        }
        Ok(count)
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        self.sender.send(frame)
    }

    fn flush(&mut self) {
        self.sender.flush();
    }

    fn has_unsent(&self) -> bool {
        self.sender.has_unsent()
    }

    fn sender(&self) -> Option<Result<Box<dyn PortSender>, PortError>> {
        Some(open_sender(&self.interface))
    }

    /// Returns the number of frames for which the ring had no slot. The kernel resets this counter when it is read.
    fn take_dropped(&mut self) -> u64 {
        let cut = std::mem::take(&mut self.cut);
        cut + statistics(&self.ring.socket).map_or(0, |counts| counts.tp_drops.into())
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ring.socket.as_fd())
    }
}

/// Inserts the VLAN tag again. `bytes` contains an [`Offload`], a frame of `len` bytes, and possibly more.
fn finish(bytes: &mut [u8], len: usize, tag: Option<[u8; TAG_BYTES]>) -> (&mut [u8], Offload) {
    let (header, _) = bytes
        .split_first_chunk()
        .expect("there is room for the header before each frame");
    let offload = Offload::parse(header);
    let end = Offload::BYTES + len;
    let Some(tag) = tag.filter(|_| len >= ETHERNET_BYTES) else {
        return (&mut bytes[Offload::BYTES..end], offload);
    };
    // The addresses move forward over the offload, which has been read.
    let start = Offload::BYTES - TAG_BYTES;
    bytes.copy_within(Offload::BYTES..Offload::BYTES + 12, start);
    bytes[start + 12..start + 16].copy_from_slice(&tag);
    (&mut bytes[start..end], offload.moved_by(TAG_BYTES))
}

/// Receives a frame that did not fit into its slot, after its [`Offload`]. Returns its length, unless the frame was lost.
fn receive_large(socket: &OwnedFd, buffer: &mut [u8]) -> Option<usize> {
    let (len, _) = recv(socket, buffer, RecvFlags::DONTWAIT).ok()?;
    len.checked_sub(Offload::BYTES)
}

/// A socket and the ring into which the kernel puts received frames.
struct Ring {
    slots: Slots,
    socket: OwnedFd,
}

/// The slots that the kernel fills, shared with it. A slot's status says whether it belongs to the kernel or to this side.
/// Only this side returns slots, and only in order.
struct Slots {
    memory: NonNull<u8>,
    slot_bytes: usize,
    count: usize,
    /// Index of the slot that is filled next.
    next: usize,
}

// SAFETY: the mapping belongs to this value alone; nothing in it depends on the thread.
unsafe impl Send for Slots {}

impl Ring {
    fn open(interface: &Interface, opening: &Opening) -> Result<Self, PortError> {
        let ring = Self::make(interface, opening)?;
        ring.listen(interface, opening)?;
        Ok(ring)
    }

    /// Opens a ring that shares the interface's frames with others.
    fn open_in(
        interface: &Interface,
        opening: &Opening,
        group: &Group,
        left: Option<GroupId>,
    ) -> Result<(Self, GroupId), PortError> {
        let what = "share its frames among threads";
        let ring = Self::make(interface, opening)?;
        fanout::deafen(&ring.socket).map_err(opening.failed(what))?;
        ring.listen(interface, opening)?;
        let id = group.join(&ring.socket, interface.index, left);
        Ok((ring, id.map_err(opening.failed(what))?))
    }

    fn make(interface: &Interface, opening: &Opening) -> Result<Self, PortError> {
        let socket = packet_socket().map_err(opening.failed("create a packet socket"))?;
        let mtu = interface.mtu().map_err(opening.failed("read the MTU"))?;
        // Large MTUs get larger slots, up to the size of a block.
        let slot_bytes = (mtu + SLOT_HEADER_BYTES)
            .next_power_of_two()
            .clamp(2048, BLOCK_BYTES);
        configure(&socket, slot_bytes).map_err(opening.failed("set up the receive ring"))?;
        let memory = map(&socket).map_err(opening.failed("map the receive ring"))?;
        let slots = Slots {
            memory,
            slot_bytes,
            count: RING_BYTES / slot_bytes,
            next: 0,
        };
        Ok(Self { slots, socket })
    }

    /// Binds the socket. This is the last step, so that all frames are put into the ring.
    fn listen(&self, interface: &Interface, opening: &Opening) -> Result<(), PortError> {
        bind(&self.socket, interface.index, libc::ETH_P_ALL as u16)
            .map_err(opening.failed("bind to the interface"))
    }
}

impl Slots {
    /// Returns the next slot, once it is filled. It belongs to this side until it is released.
    fn next(&mut self) -> Option<Slot<'_>> {
        let status = self.status().load(Ordering::Acquire);
        (status & libc::TP_STATUS_USER != 0).then(|| Slot {
            start: self.start(),
            bytes: self.slot_bytes,
            slots: PhantomData,
        })
    }

    /// Returns the next slot to the kernel. Returns `count` unchanged.
    fn release(&mut self, count: usize) -> usize {
        let status = libc::TP_STATUS_KERNEL;
        self.status().store(status, Ordering::Release);
        self.next = (self.next + 1) % self.count;
        count
    }

    /// Returns the status of the next slot.
    fn status(&self) -> &AtomicU32 {
        // SAFETY: the status is the first field of the slot, which is aligned, mapped as long as `self` exists, and
        // accessed atomically by both sides.
        unsafe { AtomicU32::from_ptr(self.start().as_ptr().cast()) }
    }

    fn start(&self) -> NonNull<u8> {
        // SAFETY: `next` is below `count`, and as many slots of this size are mapped.
        unsafe { self.memory.add(self.next * self.slot_bytes) }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping, and nothing refers to it any longer: slots borrow this value.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), RING_BYTES) };
    }
}

/// A slot that the kernel has filled. Since it borrows the ring, the slot cannot be returned to the kernel while it or its
/// frame is used.
struct Slot<'ring> {
    start: NonNull<u8>,
    bytes: usize,
    slots: PhantomData<&'ring mut Slots>,
}

/// The part of a frame in a slot.
enum Contents {
    Whole,
    /// The start; the whole frame can be received by `recv`.
    Aside,
    /// The start; the rest is lost, because too many such frames are waiting.
    Cut,
}

impl Slot<'_> {
    fn header(&self) -> libc::tpacket2_hdr {
        // SAFETY: each slot starts with this structure, of plain numbers, aligned to 16 bytes. The kernel does not write to a
        // slot that belongs to this side, as this one does while it is borrowed.
        unsafe { self.start.cast().read() }
    }

    fn contents(&self) -> Contents {
        let header = self.header();
        match header.tp_status & libc::TP_STATUS_COPY {
            0 if header.tp_snaplen == header.tp_len => Contents::Whole,
            0 => Contents::Cut,
            _ => Contents::Aside,
        }
    }

    /// Returns the frame, after its [`Offload`], and its length.
    fn frame_with_room(&mut self) -> (&mut [u8], usize) {
        let header = self.header();
        let len = header.tp_snaplen as usize;
        let start = usize::from(header.tp_mac) - Offload::BYTES;
        assert!(
            start + Offload::BYTES + len <= self.bytes,
            "the kernel keeps to its slots"
        );
        // SAFETY: this is within the slot, as just asserted, and after its header, where the kernel puts frames. It is mapped
        // as long as the ring, and neither the kernel nor this side accesses it otherwise while the slot is borrowed.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(self.start.as_ptr().add(start), Offload::BYTES + len)
        };
        (bytes, len)
    }

    /// Returns the tag that the kernel removed: TPID and TCI.
    fn vlan_tag(&self) -> Option<[u8; TAG_BYTES]> {
        let header = self.header();
        if header.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
            return None;
        }
        let tpid = match header.tp_status & libc::TP_STATUS_VLAN_TPID_VALID {
            0 => ether_type::VLAN,
            _ => header.tp_vlan_tpid,
        };
        let ([a, b], [c, d]) = (tpid.to_be_bytes(), header.tp_vlan_tci.to_be_bytes());
        Some([a, b, c, d])
    }
}

/// Frames that are waiting to be sent together.
struct Sender {
    socket: OwnedFd,
    /// The frames, concatenated.
    bytes: Vec<u8>,
    /// The end of each frame.
    ends: Vec<usize>,
    index: u32,
    name: String,
}

impl Sender {
    fn open(interface: &Interface, opening: &Opening) -> Result<Self, PortError> {
        let socket = packet_socket().map_err(opening.failed("create a packet socket"))?;
        set(&socket, libc::PACKET_QDISC_BYPASS, &1)
            .and_then(|()| bind(&socket, interface.index, 0))
            .map_err(opening.failed("send through the interface"))?;
        Ok(Self {
            socket,
            bytes: Vec::new(),
            ends: Vec::with_capacity(BATCH),
            index: interface.index,
            name: interface.name.clone(),
        })
    }

    /// Sends the frames from index `first` on; returns the number sent.
    fn send_from(&self, first: usize) -> Result<usize, Errno> {
        // SAFETY: both structures are valid when all zero: null pointers and zero lengths.
        let (mut vectors, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut start = first.checked_sub(1).map_or(0, |before| self.ends[before]);
        let mut count = 0;
        for &end in &self.ends[first..] {
            let frame = &self.bytes[start..end];
            vectors[count].iov_base = frame.as_ptr().cast_mut().cast();
            vectors[count].iov_len = frame.len();
            messages[count].msg_hdr.msg_iov = &mut vectors[count];
            messages[count].msg_hdr.msg_iovlen = 1;
            (start, count) = (end, count + 1);
        }
        // SAFETY: `count` messages are filled in, and the data that they refer to outlives the call, which only reads it.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                count as u32,
                libc::MSG_DONTWAIT,
            )
        };
        match sent {
            -1 => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
            sent => Ok(sent as usize),
        }
    }

    /// Drops the first `count` frames.
    fn forget(&mut self, count: usize) {
        let Some(end) = count.checked_sub(1).map(|last| self.ends[last]) else {
            return;
        };
        self.bytes.drain(..end);
        self.ends.drain(..count);
        self.ends.iter_mut().for_each(|later| *later -= end);
    }
}

impl PortSender for Sender {
    fn send(&mut self, frame: &[u8]) -> bool {
        if self.ends.len() == BATCH {
            self.flush();
        }
        if self.ends.len() == BATCH {
            return false;
        }
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
        true
    }

    /// Sends the waiting frames. Frames for which the socket has no space stay. A frame that the interface refuses, because it
    /// is too long or the interface is down, is lost.
    fn flush(&mut self) {
        let mut sent = 0;
        while sent < self.ends.len() {
            match self.send_from(sent) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => {
                    urtica_log::trace!(about: self.index, interface = self.index, %error, "cannot send a frame; dropping it");
                    sent += 1;
                }
            }
        }
        self.forget(sent);
    }

    fn has_unsent(&self) -> bool {
        !self.ends.is_empty()
    }

    fn reopen(&mut self) -> Result<bool, PortError> {
        if !has_lost_interface(&self.socket) || !is_there(&self.name) {
            return Ok(false);
        }
        *self = Self::open(&Interface::find(&self.name)?, &opening(&self.name))?;
        Ok(true)
    }
}

/// Opens an additional sender for an interface.
pub(super) fn open_sender(interface: &Interface) -> Result<Box<dyn PortSender>, PortError> {
    let sender = Sender::open(interface, &opening(&interface.name))?;
    Ok(Box::new(sender))
}

fn opening(name: &str) -> Opening<'_> {
    Opening {
        port: name,
        needs: "CAP_NET_RAW",
    }
}

/// Returns whether an interface with this name exists.
fn is_there(name: &str) -> bool {
    !matches!(Interface::find(name), Err(PortError::NoInterface(_)))
}

/// Returns whether the interface to which a socket was bound is gone. An interface that is created again under its name is
/// a different one to the kernel.
fn has_lost_interface(socket: &OwnedFd) -> bool {
    // SAFETY: an address of zeros is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, the size of the address.
    let done =
        unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &mut len) };
    done == 0 && address.sll_ifindex == -1
}

#[cfg(test)]
mod tests;
