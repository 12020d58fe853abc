//! The two halves of XDP sockets, for receiving from one queue of the interface and for sending.

use super::memory::{
    FRAME_BYTES, Kind, Memory, RX_FRAMES, SPARE_FRAMES, TX_FRAMES, frame_of, offset,
};
use super::ring::{Consumer, Producer};
use crate::port::lent::{LentFrame, Received};
use crate::port::offload;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::xdp::{
    XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING,
    XdpDesc, XdpDescOptions, XdpMmapOffsets,
};
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};
use std::sync::Arc;

/// Maximum length of a frame: the largest IP packet, an Ethernet header and two VLAN tags.
pub(super) const MAX_FRAME_BYTES: usize = 65_535 + 22;

/// Minimum length of a frame: an Ethernet header. The kernel refuses shorter frames, and does not return their memory.
const MIN_FRAME_BYTES: usize = 14;

/// An address outside of any memory, which makes an entry invalid, so that the kernel sends nothing for it.
const NO_FRAME: u64 = u64::MAX;

/// The receiving half, for one queue.
pub(super) struct Receiver {
    /// The rings of received frames, and of frames that the kernel may use for receiving.
    rx: Consumer<XdpDesc>,
    fill: Producer<u64>,
    /// Number of further frames that the kernel could be given.
    missing: usize,
    /// The parts of a frame received so far.
    parts: Vec<u8>,
    /// Number of frames that the kernel had lost at the last query.
    dropped_before: u64,
    socket: Arc<OwnedFd>,
}

impl Receiver {
    pub fn map(socket: &Arc<OwnedFd>, offsets: &XdpMmapOffsets) -> Result<Self, Errno> {
        Ok(Self {
            rx: Consumer::map(socket, &offsets.rx, RX_FRAMES, XDP_PGOFF_RX_RING)?,
            fill: Producer::map(socket, &offsets.fr, RX_FRAMES, XDP_UMEM_PGOFF_FILL_RING)?,
            missing: RX_FRAMES,
            parts: Vec::new(),
            dropped_before: 0,
            socket: Arc::clone(socket),
        })
    }

    /// Passes on at most `max` frames, and returns their number. Free frames are taken from and returned to `spare`.
    pub fn receive(
        &mut self,
        max: usize,
        memory: &Memory,
        spare: &mut Vec<u64>,
        handle: &mut dyn FnMut(Received<'_>),
    ) -> usize {
        let mut count = 0;
        while count < max {
            let Some(desc) = self.rx.pop() else {
                break;
            };
            self.missing += 1;
            let is_part = desc.options.contains(XdpDescOptions::XDP_PKT_CONTD);
            let len = desc.len as usize;
            // SAFETY: the kernel has just returned the frame.
            let bytes = unsafe { memory.bytes_mut(desc.addr, len) };
            if is_part || !self.parts.is_empty() {
                self.parts.extend_from_slice(bytes);
                spare.push(frame_of(desc.addr));
                if !is_part {
                    offload::complete_if_partial(&mut self.parts);
                    handle(Received::Bytes(&self.parts));
                    self.parts.clear();
                    count += 1;
                }
                continue;
            }
            offload::complete_if_partial(bytes);
            let room = memory.room(desc.addr);
            let frame = LentFrame::new(memory.id(), room, offset(desc.addr), len);
            handle(Received::Lent(frame));
            count += 1;
        }
        self.rx.release();
        count
    }

    /// Gives the kernel as many frames for receiving as it can have.
    pub fn refill(&mut self, memory: &Memory, spare: &mut Vec<u64>) {
        if self.missing > spare.len() {
            memory.take(self.missing - spare.len(), spare);
        }
        let left = spare.len() - self.missing.min(spare.len());
        self.missing -= spare.len() - left;
        spare
            .drain(left..)
            .for_each(|address| self.fill.push(address));
        self.fill.publish();
        if self.fill.needs_wakeup() {
            // This receives nothing, but notifies the driver of the frames that it was given.
            let _ = recv(&self.socket, &mut [0_u8; 0][..], RecvFlags::DONTWAIT);
        }
    }

    /// Returns the number of frames lost for lack of space since the last call.
    pub fn take_dropped(&mut self) -> u64 {
        let Ok(counts) = sockopt::xdp_statistics(&self.socket) else {
            return 0;
        };
        let dropped = counts.rx_dropped + counts.rx_ring_full.unwrap_or(0);
        dropped - std::mem::replace(&mut self.dropped_before, dropped).min(dropped)
    }

    /// Clears the error that a deleted interface leaves, with which the socket would stay readable.
    pub fn take_error(&self) {
        let _ = sockopt::socket_error(&self.socket);
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The sending half, for the first queue.
pub(super) struct Sender {
    /// The rings of frames to send, and of sent frames.
    tx: Producer<XdpDesc>,
    completed: Consumer<u64>,
    /// Number of frames that the kernel has, or will have after the next flush.
    in_flight: usize,
    /// Whether the kernel was too busy to accept all frames.
    is_congested: bool,
    /// Whether the interface was down at the last flush: then frames are dropped.
    is_down: bool,
    /// Frames whose entries were made invalid, in order, until it is known which of them the kernel had accepted before.
    cancelled: Vec<u64>,
    /// Number of invalid entries that the kernel had skipped at the last query.
    skipped: u64,
    kind: Kind,
    socket: Arc<OwnedFd>,
}

impl Sender {
    pub fn map(socket: &Arc<OwnedFd>, offsets: &XdpMmapOffsets, kind: Kind) -> Result<Self, Errno> {
        let page = XDP_UMEM_PGOFF_COMPLETION_RING;
        Ok(Self {
            tx: Producer::map(socket, &offsets.tx, TX_FRAMES, XDP_PGOFF_TX_RING)?,
            completed: Consumer::map(socket, &offsets.cr, TX_FRAMES, page)?,
            in_flight: 0,
            is_congested: false,
            is_down: false,
            cancelled: Vec::new(),
            skipped: 0,
            kind,
            socket: Arc::clone(socket),
        })
    }

    /// Copies a frame to be sent. Returns whether the ring had space and the interface was up.
    pub fn send(&mut self, frame: &[u8], memory: &Memory, spare: &mut Vec<u64>) -> bool {
        let parts = frame.len().div_ceil(FRAME_BYTES);
        let is_sound = (MIN_FRAME_BYTES..=MAX_FRAME_BYTES).contains(&frame.len())
            && (parts == 1 || self.kind.has_parts);
        if !is_sound || !self.has_space(parts, memory, spare) {
            return false;
        }
        if spare.len() < parts {
            memory.take(SPARE_FRAMES.max(parts), spare);
        }
        if spare.len() < parts {
            return false;
        }
        let first = spare.len() - parts;
        let places = spare.drain(first..).zip(frame.chunks(FRAME_BYTES));
        for (number, (address, part)) in (1..).zip(places) {
            // SAFETY: the frame was free.
            let bytes = unsafe { memory.bytes_mut(address, part.len()) };
            bytes.copy_from_slice(part);
            self.push(address, part.len(), number < parts);
        }
        true
    }

    /// Sends a frame in place, or returns it if the ring has no space or the interface is down.
    pub fn send_lent(
        &mut self,
        frame: LentFrame,
        memory: &Memory,
        spare: &mut Vec<u64>,
    ) -> Result<(), LentFrame> {
        if frame.len() < MIN_FRAME_BYTES || !self.has_space(1, memory, spare) {
            return Err(frame);
        }
        self.push(memory.address_of(&frame), frame.len(), false);
        Ok(())
    }

    /// Makes the kernel send the frames that it was given, and takes back sent frames.
    ///
    /// If the driver accepts frames directly, one system call sends all. If the kernel copies them, it sends 32, and reports
    /// that its own limit (EAGAIN) or a frame that it dropped (EBUSY) interrupted it.
    pub fn flush(&mut self, memory: &Memory, spare: &mut Vec<u64>) {
        self.tx.publish();
        self.is_congested = false;
        while self.is_down || self.tx.unread() > 0 && self.tx.needs_wakeup() {
            let before = self.tx.unread();
            let sent = send(&self.socket, &[], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            let has_more = matches!(
                sent,
                Err(Errno::AGAIN | Errno::BUSY | Errno::INTR | Errno::NOBUFS)
            );
            // After any other error, the interface is down.
            let was_down = std::mem::replace(&mut self.is_down, sent.is_err() && !has_more);
            if self.is_down {
                self.cancel(was_down);
            }
            if self.is_down || !has_more {
                break;
            }
            if self.tx.unread() == before {
                self.is_congested = true;
                break;
            }
        }
        self.reap(memory, spare);
        if !self.is_down && !self.cancelled.is_empty() {
            self.skip_cancelled(memory, spare);
        }
    }

    pub fn is_congested(&self) -> bool {
        self.is_congested
    }

    /// Returns whether `count` more frames can be in progress.
    fn has_space(&mut self, count: usize, memory: &Memory, spare: &mut Vec<u64>) -> bool {
        if self.is_blocked() {
            return false;
        }
        if self.in_flight + count > TX_FRAMES {
            self.flush(memory, spare);
        }
        !self.is_blocked() && self.in_flight + count <= TX_FRAMES
    }

    /// Returns whether frames are dropped, because the interface is down, or the ring still has entries from when it was down.
    fn is_blocked(&self) -> bool {
        self.is_down || !self.cancelled.is_empty()
    }

    /// Invalidates the entries that the kernel has not accepted, so that frames for a dead link are not sent later.
    ///
    /// A driver that accepts frames itself may read the ring at any time, so its entries stay, and are sent when the link
    /// returns. So do frames of several parts, and those that wait with them, since the kernel may have accepted the start of
    /// one.
    fn cancel(&mut self, was_down: bool) {
        let mut has_parts = false;
        self.tx.replace_unread(|entry| {
            has_parts |= entry.options.contains(XdpDescOptions::XDP_PKT_CONTD);
            entry
        });
        if was_down || self.kind.is_zero_copy || has_parts {
            return;
        }
        let cancelled = &mut self.cancelled;
        self.tx.replace_unread(|entry| {
            if entry.addr != NO_FRAME {
                cancelled.push(frame_of(entry.addr));
            }
            XdpDesc {
                addr: NO_FRAME,
                len: 0,
                options: XdpDescOptions::empty(),
            }
        });
    }

    /// Makes the kernel skip the entries of cancelled frames, and takes those frames back.
    ///
    /// The kernel reports late how many entries it has accepted (after accepting all), so some of the frames may have been
    /// sent; these are returned as sent. It counts the invalid entries, which were the last ones.
    fn skip_cancelled(&mut self, memory: &Memory, spare: &mut Vec<u64>) {
        // A system call skips at least one entry.
        for _ in 0..TX_FRAMES {
            if self.tx.unread() == 0 {
                break;
            }
            let _ = send(&self.socket, &[], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
        self.reap(memory, spare);
        let Ok(statistics) = sockopt::xdp_statistics(&self.socket) else {
            return;
        };
        if self.tx.unread() == 0 {
            let skipped = (statistics.tx_invalid_descs - self.skipped) as usize;
            self.skipped = statistics.tx_invalid_descs;
            let taken = self.cancelled.len().saturating_sub(skipped);
            self.in_flight -= self.cancelled.len() - taken;
            spare.extend(self.cancelled.drain(..).skip(taken));
            memory.release(spare, SPARE_FRAMES);
        }
    }

    fn push(&mut self, address: u64, len: usize, has_more: bool) {
        let mut options = XdpDescOptions::empty();
        options.set(XdpDescOptions::XDP_PKT_CONTD, has_more);
        self.tx.push(XdpDesc {
            addr: address,
            len: len as u32,
            options,
        });
        self.in_flight += 1;
    }

    /// Takes back the frames that were sent. Some kernels also return the invalid entries of cancelled frames.
    fn reap(&mut self, memory: &Memory, spare: &mut Vec<u64>) {
        while let Some(address) = self.completed.pop() {
            if address != NO_FRAME {
                spare.push(frame_of(address));
                self.in_flight -= 1;
            }
        }
        self.completed.release();
        memory.release(spare, SPARE_FRAMES);
    }
}
