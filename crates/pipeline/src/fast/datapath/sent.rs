//! Additional outputs of frames, and copies of frames.
//!
//! **What.** Entries and groups may send a frame more than once. All outputs except the last are noted here, and are sent
//! before the frame's verdict takes effect ([`Processed::sent`](super::burst::Processed::sent)).
//!
//! **How.** A frame that no longer changes is sent to any number of ports without copies. If it may change after an output, a
//! copy is sent, as for buckets that change it. The frames of a burst alternate, so each frame's outputs are linked.
//!
//! **Cost.** 64 bytes per output, and a buffer per copy, both of which are reused for later bursts. There are at most
//! [`MAX_SENT`] per group, and as many per entry: frames with more are left to the plain form.

use super::buffer::{Buffer, HEADROOM, MAX_COPIED};
use super::frame::Frame;
use super::way::{Origin, SentList, Way};
use crate::packet::Packet;
use crate::packet_in_cause::PacketInCause;
use urtica_wire::{PacketInReason, PortNo};

/// The maximum number of additional outputs of a frame in one group.
pub(crate) const MAX_SENT: u32 = 64;

/// The additional outputs of all frames in a burst.
#[derive(Debug, Default)]
pub(crate) struct AllSent {
    sent: Vec<Sent>,
    #[expect(
        clippy::vec_box,
        reason = "copies point into them while others are added"
    )]
    buffers: Vec<Box<Buffer>>,
    /// The number of buffers in use.
    used: usize,
}

/// One additional output.
#[derive(Clone, Copy, Debug)]
struct Sent {
    way: Way,
    origin: Origin,
    bytes: Bytes,
    /// The frame's metadata at this output.
    metadata: u64,
    /// The index of the frame's next output; for the last output, that of the first.
    next: u32,
}

/// The bytes to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bytes {
    /// The frame's bytes in the burst, in their final state.
    Own,
    /// A part of a buffer.
    Copied { buffer: u32, start: u32, len: u32 },
}

/// The location of a frame's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameLocation {
    /// The burst.
    Own,
    /// The buffer with this index.
    Copied(u32),
}

/// An additional output of a processed frame.
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

    /// Appends an output of a frame, or of a copy of it, to `list`.
    pub fn note(
        &mut self,
        list: &mut SentList,
        frame: &Frame,
        place: FrameLocation,
        way: Way,
        origin: Origin,
    ) {
        let bytes = match place {
            FrameLocation::Own => Bytes::Own,
            FrameLocation::Copied(buffer) => Bytes::Copied {
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

    /// Copies a frame, including all parsed data about it.
    ///
    /// # Safety
    /// The frame is one of a burst, or such a copy, and not longer than [`MAX_COPIED`].
    pub unsafe fn copy(&mut self, frame: &Frame) -> (Frame, FrameLocation) {
        debug_assert!(frame.len as usize <= MAX_COPIED);
        let number = self.used;
        self.used += 1;
        if self.buffers.len() == number {
            self.buffers.push(Buffer::boxed());
        }
        let floor = self.buffers[number].start();
        // SAFETY: the buffer has this much space after its headroom, and no frame uses it.
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
        (copy, FrameLocation::Copied(number as u32))
    }

    /// Returns the outputs of a frame, in order.
    pub fn of<'a>(&'a self, frame: &'a Frame) -> impl ExactSizeIterator<Item = SentFrame<'a>> {
        let SentList { last, count } = frame.sent;
        let mut at = last;
        (0..count).map(move |_| {
            // The last output links to the first.
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

    /// Returns the queue of the output ports; 0 unless an action has set one.
    #[inline]
    pub fn queue_id(&self) -> u32 {
        self.sent.way.queue_id().into()
    }

    /// Returns the bytes to send.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Returns the packet and its output port.
    pub(crate) fn packet(&self) -> (Packet, PortNo) {
        let mut packet = Packet::new(PortNo(self.frame.in_port), self.bytes);
        packet.metadata = self.sent.metadata;
        packet.queue_id = self.queue_id();
        (packet, PortNo(self.sent.way.port))
    }

    /// Returns the cause of the packet-in, if it is sent to the controller.
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
