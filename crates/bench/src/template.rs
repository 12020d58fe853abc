//! The fast path of the checker, which compares replies with the last good one as a whole.
//!
//! A controller's answers to packet-ins differ only in xid, buffer id and source MAC, and for the next reply in order all three
//! are known. So a reply that passed the full check becomes a template, and following replies need not be parsed: if the three
//! values are the expected ones and all other bytes equal the template's, the reply is correct for the same reasons. All other
//! replies get the full check.
//!
//! ```text
//! while replies are left and packet-ins wait in order:
//!     differs = OR over 8-byte words of (word XOR template word) AND mask word
//!     stop unless differs == 0 and buffer id, xid, source MAC are those of the next packet-in
//!     next
//! ```
//! The words are compared without branches, so that the compiler uses vector instructions for each length.

use crate::identity::Identity;
use crate::packet_in::Cursor;
use crate::reply::Reply;

/// The number of bytes that must be readable after the last message passed to [`Template::take_run`].
pub const SLACK: usize = 16;

/// The maximum length, slightly more than that of an exact flow mod for IPv6 and UDP in 1.3.
const MAX_LEN: usize = 208;

/// The expected form of the next reply in order.
#[derive(Clone, Debug)]
pub struct Template {
    bytes: [u8; MAX_LEN],
    mask: [u8; MAX_LEN],
    len: usize,
    buffer_at: usize,
    /// All ones if the controller copies the packet-in's xid; otherwise zero, so that nothing is compared.
    xid_mask: u32,
    /// The offset of the source MAC, and the bits of it to compare, which are none if the reply does not contain it.
    source_at: usize,
    source_mask: u64,
}

/// The extent to which replies are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// All bytes.
    Whole,
    /// Version, type, length and buffer id.
    Count,
}

impl Template {
    /// Creates a template from a reply to the packet-in at `cursor` that passed the full check; `None` if it is too long.
    pub fn from_reply(
        message: &[u8],
        reply: &Reply<'_>,
        identity: Identity,
        cursor: Cursor,
    ) -> Option<Self> {
        let (mut bytes, mut mask) = ([0; MAX_LEN], [0; MAX_LEN]);
        bytes.get_mut(..message.len())?.copy_from_slice(message);
        mask[..message.len()].fill(0xff);
        mask[4..8].fill(0);
        mask[reply.buffer_at..reply.buffer_at + 4].fill(0);
        // If a controller's match contains another MAC, replies are compared with that constant.
        let source = identity.source_bytes(cursor.source);
        let source_at = reply
            .eth_src_at()
            .filter(|&at| at + 8 <= message.len() && message[at..at + 6] == source);
        if let Some(at) = source_at {
            mask[at..at + 6].fill(0);
        }
        Some(Self {
            bytes,
            mask,
            len: message.len(),
            buffer_at: reply.buffer_at,
            xid_mask: if reply.xid == cursor.xid() {
                u32::MAX
            } else {
                0
            },
            source_at: source_at.unwrap_or(0),
            source_mask: if source_at.is_some() {
                (1 << 48) - 1
            } else {
                0
            },
        })
    }

    /// Returns the length of the replies that match.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Consumes replies to the packet-ins from `cursor` on from the front of `bytes`, at most `most` of them, and advances the
    /// cursor. Bytes from `end` on are slack. Returns the number of replies.
    #[inline]
    pub fn take_run(
        &self,
        check: Check,
        bytes: &[u8],
        end: usize,
        identity: Identity,
        cursor: &mut Cursor,
        most: u64,
    ) -> u64 {
        debug_assert!(end + SLACK <= bytes.len());
        let run = match (check, self.len.next_multiple_of(16)) {
            (Check::Count, _) => Self::take_run_counting,
            (Check::Whole, 32) => Self::take_run_of::<32>,
            (Check::Whole, 48) => Self::take_run_of::<48>,
            (Check::Whole, 64) => Self::take_run_of::<64>,
            (Check::Whole, 80) => Self::take_run_of::<80>,
            (Check::Whole, 96) => Self::take_run_of::<96>,
            (Check::Whole, 112) => Self::take_run_of::<112>,
            (Check::Whole, 128) => Self::take_run_of::<128>,
            (Check::Whole, 144) => Self::take_run_of::<144>,
            (Check::Whole, 160) => Self::take_run_of::<160>,
            (Check::Whole, 176) => Self::take_run_of::<176>,
            (Check::Whole, 192) => Self::take_run_of::<192>,
            (Check::Whole, 208) => Self::take_run_of::<208>,
            (Check::Whole, _) => return 0,
        };
        run(self, bytes, end, identity, cursor, most)
    }

    /// Like `take_run`, with the length rounded up to whole vectors as `LEN`. The mask hides the bytes after the message.
    fn take_run_of<const LEN: usize>(
        &self,
        bytes: &[u8],
        end: usize,
        identity: Identity,
        cursor: &mut Cursor,
        most: u64,
    ) -> u64 {
        let Some((template, mask)) = self
            .bytes
            .first_chunk::<LEN>()
            .zip(self.mask.first_chunk::<LEN>())
        else {
            return 0;
        };
        let (mut next, mut rest, mut left) = (*cursor, bytes, end);
        let mut taken = 0;
        while taken < most && left >= self.len {
            let Some(message) = rest.first_chunk::<LEN>() else {
                break;
            };
            if differs(message, template, mask) != 0 || !self.names(message, identity, next) {
                break;
            }
            next = next.next();
            taken += 1;
            left -= self.len;
            rest = &rest[self.len..];
        }
        *cursor = next;
        taken
    }

    fn take_run_counting(
        &self,
        bytes: &[u8],
        end: usize,
        _: Identity,
        cursor: &mut Cursor,
        most: u64,
    ) -> u64 {
        let head = u32_at(&self.bytes, 0);
        let (mut next, mut rest, mut left) = (*cursor, bytes, end);
        let mut taken = 0;
        while taken < most && left >= self.len {
            if u32_at(rest, 0) != head || u32_at(rest, self.buffer_at) != next.buffer_id.to_be() {
                break;
            }
            next = next.next();
            taken += 1;
            left -= self.len;
            rest = &rest[self.len..];
        }
        *cursor = next;
        taken
    }

    /// Returns `true` if the variable parts are those for the packet-in at `cursor`.
    #[inline(always)]
    fn names(&self, message: &[u8], identity: Identity, cursor: Cursor) -> bool {
        let xid = (u32_at(message, 4) ^ cursor.xid().to_be()) & self.xid_mask;
        let buffer = u32_at(message, self.buffer_at) ^ cursor.buffer_id.to_be();
        let source =
            (u64_at(message, self.source_at) ^ identity.source(cursor.source)) & self.source_mask;
        u64::from(xid | buffer) | source == 0
    }
}

/// Returns zero if `message` equals `template` in all bits of `mask`.
#[inline(always)]
fn differs<const LEN: usize>(message: &[u8; LEN], template: &[u8; LEN], mask: &[u8; LEN]) -> u64 {
    let words = message
        .chunks_exact(8)
        .zip(template.chunks_exact(8))
        .zip(mask.chunks_exact(8));
    words.fold(0, |differs, ((message, template), mask)| {
        differs | (u64_at(message, 0) ^ u64_at(template, 0)) & u64_at(mask, 0)
    })
}

#[inline(always)]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("a range of four"))
}

/// Reads a little-endian word, so that the six bytes of a MAC are the low 48 bits.
#[inline(always)]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a range of eight"))
}
