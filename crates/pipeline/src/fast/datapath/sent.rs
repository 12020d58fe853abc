//! Additional outputs of frames, and their copies.
//!
//! **What.** Entries and groups may send a frame more than once. All outputs but the last are noted here, and are sent before
//! the frame's verdict ([`Processed::sent`](super::burst::Processed::sent)).
//!
//! **How.** A frame that no longer changes is sent by any number of ports without copies. If it may change after an output,
//! a copy leaves; so do the copies of buckets that change it. Frames of a burst take turns, so the outputs of one are linked.
//!
//! **Cost.** 64 bytes per output, and a buffer per copy. Both are reused for later bursts. There are at most [`MAX_SENT`]
//! per group, and as many per entry: frames with more are left to the plain form.

use super::buffer::{Buffer, HEADROOM, MAX_COPIED};
use super::frame::Frame;
use super::way::{Origin, SentList, Way};
use crate::packet::Packet;
use crate::packet_in_cause::PacketInCause;
use urtica_wire::{PacketInReason, PortNo};

/// The maximum number of additional outputs of a frame in one group.
pub(crate) const MAX_SENT: u32 = 64;

/// The ways out of the frames of one burst.
#[derive(Debug, Default)]
pub(crate) struct AllSent {
    sent: Vec<Sent>,
    #[expect(
        clippy::vec_box,
        reason = "copies point into them while others are added"
    )]
    buffers: Vec<Box<Buffer>>,
    /// The number of used buffers.
    used: usize,
}

/// One way out.
#[derive(Clone, Copy, Debug)]
struct Sent {
    way: Way,
    origin: Origin,
    bytes: Bytes,
    /// The frame's metadata at this output.
    metadata: u64,
    /// The number of the frame's next one; of its last, that of the first.
    next: u32,
}

/// The bytes to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bytes {
    /// The frame's own bytes, in their final state.
    Own,
    /// Part of a buffer.
    Copied { buffer: u32, start: u32, len: u32 },
}

/// The location of a frame's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the burst.
    Own,
    /// In this buffer.
    Copied(u32),
}

/// An additional output of a frame.
#[derive(Clone, Copy, Debug)]
pub struct SentFrame<'a> {
    frame: &'a Frame,
    sent: &'a Sent,
    bytes: &'a [u8],
}

impl AllSent {
    pub fn clear(&mut self) {
        self.sent.clear();
        self.used = 0;
    }

    /// Appends an output of a frame, or of a copy of it, to those in `list`.
    pub fn note(
        &mut self,
        list: &mut SentList,
        frame: &Frame,
        place: Place,
        way: Way,
        origin: Origin,
    ) {
        let bytes = match place {
            Place::Own => Bytes::Own,
            Place::Copied(buffer) => Bytes::Copied {
                buffer,
                start: (frame.data as usize - frame.floor as usize) as u32,
                len: frame.len,
            },
        };
        let number = self.sent.len() as u32;
        let next = match list.count {
            0 => number,
            _ => std::mem::replace(&mut self.sent[list.last as usize].next, number),
        };
        self.sent.push(Sent {
            way,
            origin,
            bytes,
            metadata: frame.metadata,
            next,
        });
        *list = SentList {
            last: number,
            count: list.count + 1,
        };
    }

    /// Copies a frame, with all that is known of it.
    ///
    /// # Safety
    /// The frame is one of a burst, or such a copy, and not longer than [`MAX_COPIED`].
    pub unsafe fn copy(&mut self, frame: &Frame) -> (Frame, Place) {
        debug_assert!(frame.len as usize <= MAX_COPIED);
        let number = self.used;
        self.used += 1;
        if self.buffers.len() == number {
            self.buffers.push(Buffer::boxed());
        }
        let floor = self.buffers[number].start();
        // SAFETY: the buffer has this much space after its headroom, and belongs to no frame.
        let data = unsafe {
            let data = floor.add(HEADROOM);
            data.copy_from_nonoverlapping(frame.data, frame.len as usize);
            data
        };
        let begins = frame.data.addr();
        let moved = |pointer: *mut u8| data.wrapping_add(pointer.addr().wrapping_sub(begins));
        let copy = Frame {
            data,
            network: moved(frame.network),
            transport: moved(frame.transport),
            floor,
            ..*frame
        };
        (copy, Place::Copied(number as u32))
    }

    /// The ways out of a frame, in their order.
    pub fn of<'a>(&'a self, frame: &'a Frame) -> impl ExactSizeIterator<Item = SentFrame<'a>> {
        let SentList { last, count } = frame.sent;
        let mut at = last;
        (0..count).map(move |_| {
            // The next of the last is the first.
            at = self.sent[at as usize].next;
            let sent = &self.sent[at as usize];
            SentFrame {
                frame,
                sent,
                bytes: match sent.bytes {
                    Bytes::Own => frame.bytes(),
                    Bytes::Copied { buffer, start, len } => {
                        let bytes = self.buffers[buffer as usize].bytes();
                        &bytes[start as usize..(start + len) as usize]
                    }
                },
            }
        })
    }
}

impl SentFrame<'_> {
    /// Returns the output port; `None` for a reserved port: see [`Pipeline::send`](crate::Pipeline::send).
    #[inline]
    pub fn port(&self) -> Option<PortNo> {
        match PortNo(self.sent.way.port) {
            PortNo::IN_PORT => Some(PortNo(self.frame.in_port)),
            port if port.is_reserved() && port != PortNo::LOCAL => None,
            port => Some(port),
        }
    }

    /// Returns the queue of the ports that it leaves by; 0 unless an action has set one.
    #[inline]
    pub fn queue_id(&self) -> u32 {
        self.sent.way.queue_id().into()
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// The packet, and the port that it leaves by.
    pub(crate) fn packet(&self) -> (Packet, PortNo) {
        let mut packet = Packet::new(PortNo(self.frame.in_port), self.bytes);
        packet.metadata = self.sent.metadata;
        packet.queue_id = self.queue_id();
        (packet, PortNo(self.sent.way.port))
    }

    /// Returns the cause for a packet-in, if it is sent to the controller.
    pub(crate) fn cause(&self) -> PacketInCause {
        let origin = self.sent.origin;
        PacketInCause {
            reason: match origin.is_miss {
                true => PacketInReason::NoMatch,
                false => PacketInReason::Action,
            },
            table_id: origin.table_id,
            cookie: origin.cookie,
            max_len: self.sent.way.max_len_or_queue,
        }
    }
}
