//! What leaves besides what verdicts tell: frames by further ports, and copies of them.
//!
//! **What.** An entry or a group may send a frame out more than once. Each time but the last is noted here, when the frame is at
//! its end, and leaves before the frame's own verdict is carried out ([`Processed::sent`](super::frame::Processed::sent)).
//!
//! **How.** A frame that does not change any more leaves as it is in the end, by however many ports. Buckets that change it get
//! copies.
//!
//! **Cost.** 56 bytes for each way out, and a buffer for each copy. Both are kept from burst to burst, and there are [`MAX_SENT`]
//! for each frame of a burst at most: what sends more is left to the plain form.

use super::frame::{Buffer, Frame, HEADROOM, MAX_COPIED};
use crate::{Packet, PacketInCause};
use urtica_wire::{PacketInReason, PortNo};

/// How often a frame leaves at most besides what its verdict tells.
pub(crate) const MAX_SENT: u32 = 64;

/// How many bytes of parameters an [`Origin`] is.
pub(crate) const ORIGIN_LEN: usize = 10;

/// How many bytes of parameters a way out is.
pub(crate) const WAY_LEN: usize = 6;

/// The ways out of the frames of one burst.
#[derive(Debug, Default)]
pub(crate) struct AllSent {
    sent: Vec<Sent>,
    #[expect(
        clippy::vec_box,
        reason = "copies point into them while others are added"
    )]
    buffers: Vec<Box<Buffer>>,
    /// How many of the buffers are in use.
    used: usize,
}

/// The ways out of one frame among those of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub(crate) struct SentRange {
    pub first: u32,
    pub count: u32,
}

/// One way out.
#[derive(Clone, Copy, Debug)]
struct Sent {
    way: Way,
    origin: Origin,
    bytes: Bytes,
}

/// A port, or a reserved one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub port: u32,
    /// How many bytes to send to the controller, if it is that.
    pub max_len: u16,
}

/// The entry that sends a packet out, as a controller is told of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    pub cookie: u64,
    pub table_id: u8,
    /// Whether it is a table-miss entry, and no group is between it and the controller.
    pub is_miss: bool,
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

/// A frame that leaves besides what its verdict tells.
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

    /// How many ways out there are.
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
        // SAFETY: the buffer has that much room behind its headroom, and is no frame's own.
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

impl Origin {
    /// As parameters.
    pub fn to_bytes(self) -> [u8; ORIGIN_LEN] {
        let mut bytes = [0; ORIGIN_LEN];
        bytes[..8].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[8] = self.table_id;
        bytes[9] = self.is_miss.into();
        bytes
    }

    fn from_bytes(bytes: [u8; ORIGIN_LEN]) -> Self {
        let [cookie @ .., table_id, is_miss] = bytes;
        Self {
            cookie: u64::from_be_bytes(cookie),
            table_id,
            is_miss: is_miss != 0,
        }
    }

    /// The origin among parameters.
    ///
    /// # Safety
    /// `params` are those of an origin.
    pub unsafe fn at(params: *const u8) -> Self {
        // SAFETY: so many bytes are there, as this function asks for.
        Self::from_bytes(unsafe { params.cast::<[u8; ORIGIN_LEN]>().read() })
    }
}

impl Way {
    /// As parameters.
    pub fn to_bytes(self) -> [u8; WAY_LEN] {
        let mut bytes = [0; WAY_LEN];
        bytes[..4].copy_from_slice(&self.port.to_be_bytes());
        bytes[4..].copy_from_slice(&self.max_len.to_be_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; WAY_LEN]) -> Self {
        let [port @ .., high, low] = bytes;
        Self {
            port: u32::from_be_bytes(port),
            max_len: u16::from_be_bytes([high, low]),
        }
    }
}

/// Notes the ways out of a frame that does not change any more, for both readers: an [`Origin`] and so many [`Way`]s, which
/// follow each other. The port that the frame came in by is none of them.
///
/// # Safety
/// Context and frame are of the burst that is processed; the parameters are there.
pub(crate) unsafe extern "sysv64" fn send(
    frame: *mut Frame,
    context: *const super::table::Context,
    params: *const u8,
    count: u32,
) {
    // SAFETY: all are alive, as this function asks for, and nobody else has the frame or what is sent.
    let (frame, sent, origin) = unsafe {
        let sent = &mut *(*context).sent;
        (&mut *frame, sent, Origin::at(params))
    };
    let first = sent.len();
    for at in 0..count as usize {
        // SAFETY: there are so many ways out behind the origin.
        let way = unsafe {
            let way = params.add(ORIGIN_LEN + at * WAY_LEN);
            Way::from_bytes(way.cast::<[u8; WAY_LEN]>().read())
        };
        if way.port != frame.in_port {
            sent.note(frame, Place::Own, way, origin);
        }
    }
    frame.sent = SentRange {
        first,
        count: sent.len() - first,
    };
}

impl SentFrame<'_> {
    /// The port that it leaves by; `None` if that is what a reserved port stands for: see
    /// [`Pipeline::send`](crate::Pipeline::send).
    #[inline]
    pub fn port(&self) -> Option<PortNo> {
        match PortNo(self.sent.way.port) {
            PortNo::IN_PORT => Some(PortNo(self.frame.in_port)),
            port if port.is_reserved() && port != PortNo::LOCAL => None,
            port => Some(port),
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
        (packet, PortNo(self.sent.way.port))
    }

    /// What the controller is told, if it leaves for that.
    pub(crate) fn cause(&self) -> PacketInCause {
        let origin = self.sent.origin;
        PacketInCause {
            reason: match origin.is_miss {
                true => PacketInReason::NoMatch,
                false => PacketInReason::Action,
            },
            table_id: origin.table_id,
            cookie: origin.cookie,
            max_len: self.sent.way.max_len,
        }
    }
}
