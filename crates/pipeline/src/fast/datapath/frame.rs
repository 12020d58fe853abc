//! A frame on its way through the compiled pipeline, as machine code sees it, and the bursts that frames come in.

use super::key::MAX_WORDS;
use super::kinds::Kinds;
use super::sent::{AllSent, SentFrame, SentRange};
use super::table::{Body, Header};
use std::mem::offset_of;
use std::ptr::NonNull;
use urtica_wire::PortNo;

/// How many frames a burst has.
pub const BURST: usize = 32;

/// The longest frame that fits into a burst; longer ones go the plain way.
pub const MAX_FRAME: usize = 1920;

/// Room before a frame for VLAN tags that are pushed.
pub(super) const HEADROOM: usize = 64;

/// Bytes behind a frame that are read with it, since keys are read in words of 8.
const READ_BEHIND: usize = 8;

/// Bytes from one buffer to the next: not a power of two, so that the beginnings of frames do not all fall into the same
/// sets of the caches. Behind the longest frame there are [`READ_BEHIND`].
const STRIDE: usize = 2112;

/// The longest frame, tags that were pushed included, that may be copied into a buffer.
pub(super) const MAX_COPIED: usize = STRIDE - HEADROOM - READ_BEHIND;

/// [`Frame::out_port`] of a frame that goes nowhere.
pub(crate) const DROP: u32 = 0;

/// [`Frame::out_port`] of a frame that goes on the plain way, from [`Frame::table_id`] on. No port has this number.
pub(crate) const PUNT: u32 = PortNo::ANY.0;

/// What is known of a frame on its way. Machine code reads and writes this: offsets are part of the contract, and
/// tested.
///
/// `data`, `network` and `transport` point into one buffer. A tag that is pushed or popped moves `data` and the
/// addresses; the other two stay, and `network - 2` is where the Ethernet type is, always.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Frame {
    /// The first byte.
    pub data: *mut u8,
    /// What the Ethernet type announces: the byte behind it. Valid from [`Depth::Type`](super::kinds::Depth::Type) on.
    pub network: *mut u8,
    /// What IP carries. Valid where `kinds` has one of the transport headers.
    pub transport: *mut u8,
    /// Bytes from `data` on.
    pub len: u32,
    /// What headers there are.
    pub kinds: Kinds,
    /// The port that it came in by.
    pub in_port: u32,
    /// As OXM has it: 0x1000 and the id of the outermost tag, or 0 without a tag.
    pub vlan_vid: u16,
    /// The priority of the outermost tag; 0 without.
    pub vlan_pcp: u16,
    /// What tables pass on to each other.
    pub metadata: u64,
    /// What goes on with it after a pause in which memory is fetched: machine code, or the interpreter's
    /// `interpret::Pause`.
    pub resume: u64,
    /// The table that it is in.
    pub header: *const Header,
    /// Where it leaves: a port, [`DROP`] or [`PUNT`].
    pub out_port: u32,
    /// Where the plain way begins, for [`PUNT`].
    pub table_id: u32,
    /// What the table is searched by, since the frame came to it.
    pub body: *const Body,
    /// Anything that is needed after a pause: the flow record found, the slot or trie entry to look at, the hash.
    pub kept: [u64; 5],
    /// The words of the key, kept over a pause.
    pub key: [u64; MAX_WORDS],
    /// Before this byte there is no room.
    pub floor: *mut u8,
    /// Where it leaves besides.
    pub sent: SentRange,
}

const _: () = assert!(
    offset_of!(Frame, in_port) % 8 == 0
        && offset_of!(Frame, vlan_vid) == offset_of!(Frame, in_port) + 4
        && offset_of!(Frame, vlan_pcp) == offset_of!(Frame, in_port) + 6
);

/// Up to [`BURST`] frames and their bytes.
///
/// Filled by [`Burst::push`] and [`Burst::push_in_place`], taken through the pipeline by [`Reader::process`](super::compiled::Reader::process), read by
/// [`Burst::iter`], emptied by [`Burst::clear`].
pub struct Burst {
    frames: Box<[Frame]>,
    len: usize,
    /// Where the frames' own buffers begin.
    floors: [*mut u8; BURST],
    /// Where frames leave besides what their verdicts tell.
    sent: AllSent,
    /// What `floors` point into.
    _buffers: Box<[Buffer]>,
}

/// Bytes for one frame.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Buffer([u8; STRIDE]);

impl Buffer {
    pub fn boxed() -> Box<Self> {
        Box::new(Self([0; STRIDE]))
    }

    pub fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Where a frame leaves the compiled pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// By this port, if there is one of this number and it may send.
    Output(PortNo),
    /// Nowhere.
    Drop,
    /// The compiled form does not carry out what comes next: see [`Pipeline::resume`](crate::Pipeline::resume).
    Punt,
}

/// A frame after it was processed.
#[derive(Clone, Copy)]
pub struct Processed<'a> {
    frame: &'a Frame,
    sent: &'a AllSent,
}

impl Default for Burst {
    fn default() -> Self {
        Self::new()
    }
}

impl Burst {
    /// An empty one. Takes 66 KiB.
    pub fn new() -> Self {
        let mut buffers = vec![Buffer([0; STRIDE]); BURST].into_boxed_slice();
        let frames = buffers.iter_mut().map(|buffer| Frame::empty(&mut buffer.0));
        let frames: Box<[Frame]> = frames.collect();
        Self {
            floors: std::array::from_fn(|at| frames[at].floor),
            frames,
            len: 0,
            sent: AllSent::default(),
            _buffers: buffers,
        }
    }

    /// How many frames are in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes in a frame. Returns whether it could: not when there are [`BURST`] already, when it is longer than
    /// [`MAX_FRAME`], or shorter than an Ethernet header.
    #[inline]
    pub fn push(&mut self, in_port: PortNo, bytes: &[u8]) -> bool {
        if self.len == BURST || !(14..=MAX_FRAME).contains(&bytes.len()) {
            return false;
        }
        let frame = &mut self.frames[self.len];
        frame.floor = self.floors[self.len];
        // SAFETY: `floor` is the start of a buffer that has room for HEADROOM and MAX_FRAME bytes, and `bytes` is not
        // in it, since nobody has a reference into it while `self` is borrowed mutably.
        unsafe {
            frame.data = frame.floor.add(HEADROOM);
            frame
                .data
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        frame.len = bytes.len() as u32;
        frame.in_port = in_port.0;
        self.len += 1;
        true
    }

    /// Takes in a frame from where it is: the `len` bytes from `start` on of `room`. Returns whether it could: not where
    /// [`Burst::push`] could not, nor where `room` ends less than 8 bytes behind the frame. Tags that are pushed go into the room
    /// before it.
    ///
    /// # Panics
    /// Where the frame does not end in the room.
    ///
    /// # Safety
    /// Until the burst is cleared, `room` can be read and written, and nobody accesses it but by this burst; or, once the frame
    /// was processed, nobody asks the burst for its bytes any more.
    #[inline]
    pub unsafe fn push_in_place(
        &mut self,
        in_port: PortNo,
        room: NonNull<[u8]>,
        start: usize,
        len: usize,
    ) -> bool {
        let behind = room.len().checked_sub(start + len);
        let behind = behind.expect("a frame ends in its room");
        if self.len == BURST || !(14..=MAX_FRAME).contains(&len) || behind < READ_BEHIND {
            return false;
        }
        let frame = &mut self.frames[self.len];
        frame.floor = room.cast().as_ptr();
        // SAFETY: within the room, as was checked.
        frame.data = unsafe { frame.floor.add(start) };
        frame.len = len as u32;
        frame.in_port = in_port.0;
        self.len += 1;
        true
    }

    /// Takes all frames out.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
        self.sent.clear();
    }

    /// The frames, in the order in which they came.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Processed<'_>> {
        let sent = &self.sent;
        let frames = self.frames[..self.len].iter();
        frames.map(move |frame| Processed { frame, sent })
    }

    /// The frames, to be processed, and where it is noted if they leave more than once.
    #[inline]
    pub(crate) fn parts_mut(&mut self) -> (&mut [Frame], &mut AllSent) {
        (&mut self.frames[..self.len], &mut self.sent)
    }
}

// SAFETY: the pointers of the frames go into buffers that the burst owns, or are set anew by each `process`.
unsafe impl Send for Burst {}

impl Processed<'_> {
    /// Where it leaves.
    #[inline]
    pub fn verdict(&self) -> Verdict {
        match self.frame.out_port {
            DROP => Verdict::Drop,
            PUNT => Verdict::Punt,
            port => Verdict::Output(PortNo(port)),
        }
    }

    /// Its bytes, as they are now.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.frame.bytes()
    }

    /// Where it leaves besides what its verdict tells, in this order, and before that. Most frames do not.
    #[inline]
    pub fn sent(&self) -> impl ExactSizeIterator<Item = SentFrame<'_>> {
        self.sent.of(self.frame)
    }

    /// Whether it leaves besides what its verdict tells.
    #[inline]
    pub fn is_sent_besides(&self) -> bool {
        self.frame.sent.count > 0
    }

    /// The port that it came in by.
    #[inline]
    pub fn in_port(&self) -> PortNo {
        PortNo(self.frame.in_port)
    }

    /// What the tables so far have written for those that follow.
    pub(crate) fn metadata(&self) -> u64 {
        self.frame.metadata
    }

    /// The table that the plain way begins with.
    pub(crate) fn table_id(&self) -> u8 {
        self.frame.table_id as u8
    }
}

impl Frame {
    /// Notes the outermost tag, or 0 and 0.
    ///
    /// The port is written again with it, as one word: keys read all three at once, and a processor that reads a word
    /// soon after its parts were written waits until they have reached the cache.
    #[inline]
    pub(crate) fn set_tag(&mut self, vlan_vid: u16, vlan_pcp: u16) {
        let port = u64::from(self.in_port);
        let (vid, pcp) = (u64::from(vlan_vid), u64::from(vlan_pcp));
        let word = match cfg!(target_endian = "little") {
            true => port | vid << 32 | pcp << 48,
            false => port << 32 | vid << 16 | pcp,
        };
        // SAFETY: the three fields are 8 bytes that lie together, at a multiple of 8, and any bytes will do for them.
        unsafe {
            let fields = std::ptr::from_mut(self).byte_add(offset_of!(Self, in_port));
            fields.cast::<u64>().write(word);
        }
    }

    /// A frame without bytes, in this buffer.
    pub(crate) fn empty(buffer: &mut [u8]) -> Self {
        let floor = buffer.as_mut_ptr();
        Self {
            data: floor,
            network: floor,
            transport: floor,
            len: 0,
            kinds: Kinds::empty(),
            in_port: 0,
            vlan_vid: 0,
            vlan_pcp: 0,
            metadata: 0,
            resume: 0,
            header: std::ptr::null(),
            out_port: DROP,
            table_id: 0,
            body: std::ptr::null(),
            kept: [0; 5],
            key: [0; MAX_WORDS],
            floor,
            sent: SentRange::default(),
        }
    }

    /// Its bytes, as they are now.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: `data` and `len` tell the part of the buffer that the frame takes up, and nobody changes it while the
        // burst is borrowed.
        unsafe { std::slice::from_raw_parts(self.data, self.len as usize) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_copied_or_stay_where_they_are() {
        let mut burst = Burst::new();
        let mut room = [3; 200];
        let begins = NonNull::from(&mut room[..]);
        // SAFETY: nobody else uses the room while frames are in it.
        unsafe {
            assert!(burst.push_in_place(PortNo(1), begins, 100, 60));
            assert!(
                !burst.push_in_place(PortNo(1), begins, 133, 60),
                "no room behind"
            );
            assert!(
                !burst.push_in_place(PortNo(1), begins, 0, 13),
                "no Ethernet header"
            );
        }
        assert!(burst.push(PortNo(2), &[4; 70]));
        let frames: Vec<_> = burst.iter().map(|frame| frame.bytes().to_vec()).collect();
        assert_eq!(frames, [vec![3; 60], vec![4; 70]]);
        let in_place = burst.iter().next().map(|frame| frame.bytes().as_ptr());
        assert_eq!(in_place, Some(room[100..].as_ptr()));
        burst.clear();
        assert!(burst.push(PortNo(1), &[5; 80]), "in its own buffer again");
        assert_eq!(burst.iter().next().unwrap().bytes(), [5; 80]);
        assert_eq!(room, [3; 200]);
    }

    #[test]
    #[should_panic = "ends in its room"]
    fn no_frame_is_beyond_its_room() {
        let mut room = [0; 100];
        // SAFETY: nobody else uses the room.
        unsafe { Burst::new().push_in_place(PortNo(1), NonNull::from(&mut room[..]), 90, 14) };
    }
}
