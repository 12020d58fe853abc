//! Additional outputs of frames, and their copies.
//!
//! **What.** An entry or a group may send a frame more than once. All outputs but the last are noted here at the end of
//! processing, and are sent before the frame's verdict ([`Processed::sent`](super::burst::Processed::sent)).
//!
//! **How.** A frame that no longer changes is sent by any number of ports without copies. Buckets that change it get copies.
//!
//! **Cost.** 56 bytes per output, and a buffer per copy. Both are reused for later bursts. There are at most [`MAX_SENT`]
//! per frame of a burst: frames with more are left to the plain form.

use super::buffer::{Buffer, HEADROOM, MAX_COPIED};
use super::frame::Frame;
use super::way::{Origin, SentRange, Way};
use crate::packet::Packet;
use crate::packet_in_cause::PacketInCause;
use urtica_wire::{PacketInReason, PortNo};

/// The maximum number of additional outputs of a frame.
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
}

/// Which bytes leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bytes {
    /// Those of the frame, as it is in the end.
    Own,
    /// Part of a buffer.
    Copied { buffer: u32, start: u32, len: u32 },
}

/// Where the bytes of a frame are.
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

    /// Returns the number of outputs.
    pub fn len(&self) -> u32 {
        self.sent.len() as u32
    }

    /// Notes a way out of a frame.
    pub fn note(&mut self, frame: &Frame, place: Place, way: Way, origin: Origin) {
        let bytes = match place {
            Place::Own => Bytes::Own,
            Place::Copied(buffer) => Bytes::Copied {
                buffer,
                start: (frame.data as usize - frame.floor as usize) as u32,
                len: frame.len,
            },
        };
        self.sent.push(Sent { way, origin, bytes });
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
        let SentRange { first, count } = frame.sent;
        let sent = &self.sent[first as usize..(first + count) as usize];
        sent.iter().map(move |sent| SentFrame {
            frame,
            sent,
            bytes: match sent.bytes {
                Bytes::Own => frame.bytes(),
                Bytes::Copied { buffer, start, len } => {
                    let bytes = self.buffers[buffer as usize].bytes();
                    &bytes[start as usize..(start + len) as usize]
                }
            },
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

    /// The queue of the port that it leaves by; 0 unless an action has set one.
    #[inline]
    pub fn queue_id(&self) -> u32 {
        match self.port() {
            Some(_) => self.sent.way.max_len_or_queue.into(),
            None => 0,
        }
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// The packet, and the port that it leaves by.
    pub(crate) fn packet(&self) -> (Packet, PortNo) {
        let mut packet = Packet::new(PortNo(self.frame.in_port), self.bytes);
        packet.metadata = self.frame.metadata;
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
