//! The program's end of a ring: reads entries of messages in place, where the kernel has put them.
//!
//! A ring is a `BPF_MAP_TYPE_RINGBUF` (the kernel's Documentation/bpf/ringbuf.rst): a page with the consumer's position, a page
//! with the producer's, and the data, which is mapped twice in a row so that no entry is split at the end. Each entry follows a
//! header of 8 bytes, whose first four contain its length and two flags.

use crate::waker::ring_bytes;
use memmap2::{MmapOptions, MmapRaw};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};

/// Length of the header of each entry.
const HEADER_BYTES: usize = 8;
/// `struct entry` of `bpf/ring_session.h`.
const HEAD_BYTES: usize = 16;

const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;

/// `struct record` of `bpf/ring_session.h`: one message of an entry.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawRecord {
    /// The start of the message, relative to the first message of the entry.
    pub at: u32,
    pub bytes: u16,
    pub message_type: u8,
    reserved: u8,
    pub xid: u32,
    pub buffer_id: u32,
    pub in_port: u32,
    pub frame_at: u32,
    pub frame_bytes: u32,
    padding: u32,
}

/// An entry: some messages of one connection, all complete. An entry without messages reports that further input is being
/// passed to the program.
#[derive(Clone, Copy)]
pub struct Entry<'q> {
    pub connection: u64,
    /// One record per message; empty if records were not requested.
    pub records: &'q [RawRecord],
    pub messages: &'q [u8],
}

/// A word per ring that shows whether the ring was too full to report passed input.
pub struct Untold(MmapRaw);

impl Untold {
    /// Maps the words of this number of rings.
    pub fn map(map: BorrowedFd, rings: usize) -> io::Result<Self> {
        let memory = MmapOptions::new()
            .len(rings * size_of::<u64>())
            .map_raw(map.as_raw_fd())?;
        Ok(Self(memory))
    }

    fn take(&self, ring: u32) -> bool {
        let index = ring as usize;
        assert!((index + 1) * size_of::<u64>() <= self.0.len());
        // SAFETY: the mapping has a word for each ring, as was just checked, and lives as long as self; the kernel changes the
        // word atomically.
        let word = unsafe { &*self.0.as_ptr().cast::<AtomicU64>().add(index) };
        word.swap(0, AcqRel) != 0
    }
}

/// The program's end of a ring. An entry stays, and the kernel does not change it, until it is [released](Queue::pass_over).
pub struct Queue {
    ring: OwnedFd,
    number: u32,
    untold: Arc<Untold>,
    consumer: MmapRaw,
    /// The producer's page and the data.
    data: MmapRaw,
    page: usize,
    data_bytes: usize,
    /// The position of the next entry.
    at: u64,
}

impl Queue {
    /// Maps a ring of this number of bytes.
    pub fn map(
        ring: OwnedFd,
        number: u32,
        data_bytes: usize,
        untold: Arc<Untold>,
    ) -> io::Result<Self> {
        let page = ring_bytes();
        let consumer = MmapOptions::new().len(page).map_raw(ring.as_raw_fd())?;
        let data = MmapOptions::new()
            .offset(page as u64)
            .len(page + 2 * data_bytes)
            .map_raw_read_only(ring.as_raw_fd())?;
        Ok(Self {
            ring,
            number,
            untold,
            consumer,
            data,
            page,
            data_bytes,
            at: 0,
        })
    }

    /// Returns the ring's number in the kernel's table.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the position at which the kernel continues to write. A caller that reads only up to there leaves time for other
    /// work.
    pub fn end(&self) -> u64 {
        position(&self.data).load(Acquire)
    }

    /// Returns whether there is an entry before this position.
    pub fn has_next(&mut self, end: u64) -> bool {
        while self.at < end {
            let length = self.header().load(Acquire);
            if length & BUSY != 0 {
                return false;
            }
            if length & DISCARDED == 0 {
                return true;
            }
            self.pass_over();
        }
        false
    }

    /// Returns the next entry. Must be called only if [`Queue::has_next`] returned `true`.
    pub fn entry(&self) -> Entry<'_> {
        let length = (self.header().load(Acquire) & !(BUSY | DISCARDED)) as usize;
        let offset = self.offset() + HEADER_BYTES;
        assert!(
            (HEAD_BYTES..=self.data_bytes).contains(&length)
                && offset + length <= 2 * self.data_bytes,
            "the kernel's ring is broken"
        );
        // SAFETY: the data is mapped twice in a row, and the entry lies in it, as was just checked. It was complete when its
        // header lost BUSY, and the kernel does not touch it until the consumer's position is after it, which needs `&mut
        // self`.
        let entry = unsafe {
            std::slice::from_raw_parts(self.data.as_ptr().add(self.page + offset), length)
        };
        Entry::read(entry)
    }

    /// Releases the entry to the kernel.
    pub fn pass_over(&mut self) {
        let length = self.header().load(Acquire) & !(BUSY | DISCARDED);
        self.at += (HEADER_BYTES as u64 + u64::from(length)).next_multiple_of(8);
        position(&self.consumer).store(self.at, Release);
        // The kernel wakes only a program that has read everything, which it determines by comparing positions. Later checks
        // must happen after the kernel can see this position.
        fence(SeqCst);
    }

    /// Returns whether input was passed that the ring had no space to report. Must be called when the ring is empty.
    pub fn take_untold(&self) -> bool {
        self.untold.take(self.number)
    }

    fn offset(&self) -> usize {
        self.at as usize & (self.data_bytes - 1)
    }

    fn header(&self) -> &AtomicU32 {
        let at = self.page + self.offset();
        // SAFETY: positions are multiples of 8 and `offset` is less than the size of the data, so it lies in the mapping,
        // aligned; the kernel changes it atomically.
        unsafe { &*self.data.as_ptr().add(at).cast() }
    }
}

impl AsFd for Queue {
    /// Readable while the ring has entries.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

impl<'q> Entry<'q> {
    fn read(entry: &'q [u8]) -> Self {
        let (head, rest) = entry.split_at(HEAD_BYTES);
        let word = |at: usize| {
            let bytes = head[at..].first_chunk().expect("the head has it");
            u32::from_ne_bytes(*bytes) as usize
        };
        let connection = head.first_chunk().expect("the head has it");
        let (count, bytes) = (word(8), word(12));
        let (records, messages) = rest.split_at(count * size_of::<RawRecord>());
        // SAFETY: a RawRecord consists of numbers, for which all bytes are valid. The records have their size, and lie at a
        // multiple of 8, because entries start at one and the head's size is one.
        let records = unsafe { std::slice::from_raw_parts(records.as_ptr().cast(), count) };
        Self {
            connection: u64::from_ne_bytes(*connection),
            records,
            messages: &messages[..bytes],
        }
    }
}

/// Returns the position at the front of a page.
fn position(page: &MmapRaw) -> &AtomicU64 {
    // SAFETY: a page is mapped there for as long as `page` lives, and it starts with a number that the kernel reads and writes
    // atomically. The producer's page, which is mapped for reading, is only read.
    unsafe { &*page.as_ptr().cast() }
}

// SAFETY: the mappings are not bound to a thread.
unsafe impl Send for Queue {}
