//! A frame in the compiled pipeline, as machine code sees it.

use super::action_set::FrameSet;
use super::key::MAX_WORDS;
use super::kinds::Kinds;
use super::table::{Body, Header};
use super::way::SentList;
use std::mem::offset_of;
use urtica_wire::PortNo;

/// [`Frame::out_port`] of a frame that is dropped.
pub(crate) const DROP: u32 = 0;

/// [`Frame::out_port`] of a frame that is left to the plain form, starting at [`Frame::table_id`]. No port has this number.
pub(crate) const PUNT: u32 = PortNo::ANY.0;

/// A frame being processed. Machine code reads and writes it, so its offsets are part of the contract, and tested.
///
/// `data`, `network` and `transport` point into one buffer. Pushing or popping a tag moves `data` and the addresses; the
/// other two stay, and the Ethernet type is always at `network - 2`.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Frame {
    /// The first byte.
    pub data: *mut u8,
    /// The start of the header that the Ethernet type announces. Valid from [`Depth::Type`](super::kinds::Depth::Type) on.
    pub network: *mut u8,
    /// The start of the upper layer of IP. Valid if `kinds` has a transport header.
    pub transport: *mut u8,
    /// The number of bytes from `data` on.
    pub len: u32,
    /// The frame's headers.
    pub kinds: Kinds,
    /// The input port.
    pub in_port: u32,
    /// The outermost tag as in OXM: 0x1000 plus its id, or 0 without a tag.
    pub vlan_vid: u16,
    /// The priority of the outermost tag; 0 without a tag.
    pub vlan_pcp: u16,
    /// Data that tables pass to later ones.
    pub metadata: u64,
    /// The continuation after a pause for memory: machine code, or the interpreter's `interpret::Pause`.
    pub resume: u64,
    /// The current table.
    pub header: *const Header,
    /// The output: a port, [`DROP`] or [`PUNT`].
    pub out_port: u32,
    /// The table at which the plain form starts, for [`PUNT`].
    pub table_id: u16,
    /// The queue that earlier tables have chosen for its outputs, if `kinds` contains [`Kinds::QUEUE`].
    pub queue_id: u16,
    /// The table's body when the frame reached it.
    pub body: *const Body,
    /// Data kept during a pause: the flow record found, the next slot or trie entry, the hash.
    pub kept: [u64; 5],
    /// The words of the key, kept during a pause.
    pub key: [u64; MAX_WORDS],
    /// The start of the space before the frame.
    pub floor: *mut u8,
    /// The additional outputs.
    pub sent: SentList,
    /// The protocol of IPv6's payload, after extension headers. It has the size of a word, since keys read words. Valid for IPv6.
    pub ip_proto: u64,
    /// The action set, if `kinds` contains [`Kinds::ACTION_SET`].
    pub action_set: FrameSet,
}

const _: () = assert!(
    offset_of!(Frame, in_port) % 8 == 0
        && offset_of!(Frame, vlan_vid) == offset_of!(Frame, in_port) + 4
        && offset_of!(Frame, vlan_pcp) == offset_of!(Frame, in_port) + 6
);

// Four cache lines, so that a burst's frames stay in the first-level cache with tables.
const _: () = assert!(size_of::<Frame>() == 256);

impl Frame {
    /// Notes the outermost tag, or 0 and 0 without one.
    ///
    /// The port is rewritten with it, as one word. Keys read all three at once, and a processor that reads a word soon after
    /// its parts were written waits until they have reached the cache.
    #[inline]
    pub(crate) fn set_tag(&mut self, vlan_vid: u16, vlan_pcp: u16) {
        let port = u64::from(self.in_port);
        let (vid, pcp) = (u64::from(vlan_vid), u64::from(vlan_pcp));
        let word = match cfg!(target_endian = "little") {
            true => port | vid << 32 | pcp << 48,
            false => port << 32 | vid << 16 | pcp,
        };
        // SAFETY: the three fields are 8 adjacent bytes, aligned to 8, and any values are valid for them.
        unsafe {
            let fields = std::ptr::from_mut(self).byte_add(offset_of!(Self, in_port));
            fields.cast::<u64>().write(word);
        }
    }

    /// Creates a frame without bytes in this buffer.
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
            queue_id: 0,
            body: std::ptr::null(),
            kept: [0; 5],
            key: [0; MAX_WORDS],
            floor,
            sent: SentList::default(),
            ip_proto: 0,
            action_set: FrameSet::EMPTY,
        }
    }

    /// Replaces its action set.
    pub(super) fn carry(&mut self, set: FrameSet) {
        self.action_set = set;
        self.kinds.set(Kinds::ACTION_SET, !set.is_empty());
    }

    /// Replaces the queue for its outputs; 0 means no particular one.
    pub(super) fn carry_queue(&mut self, queue_id: u16) {
        self.queue_id = queue_id;
        self.kinds.set(Kinds::QUEUE, queue_id != 0);
    }

    /// Returns the queue that earlier tables have chosen for its outputs, or 0.
    #[inline]
    pub(super) fn carried_queue(&self) -> u16 {
        match self.kinds.contains(Kinds::QUEUE) {
            true => self.queue_id,
            false => 0,
        }
    }

    /// Returns the bytes as they are now.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: `data` and `len` describe the frame's part of the buffer, which does not change while the burst is borrowed.
        unsafe { std::slice::from_raw_parts(self.data, self.len as usize) }
    }
}
