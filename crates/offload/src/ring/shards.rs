//! Rings for the shards of a controller, transparent to its programs: [`RingKernel`] as its
//! [`InputRings`](urtica_controller::InputRings).

use super::kernel::RingKernel;
use super::link::{KernelCounts, Link};
use super::reader::{Next, Reader};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use urtica_controller::{InputRing, InputRings, RingCounts, RingEntry, RingInput};
use urtica_wire::Version;

/// Number of bytes of messages that a shard's ring holds.
const RING_BYTES: usize = 4 << 20;

impl InputRings for RingKernel {
    fn open(&self) -> io::Result<Box<dyn InputRing>> {
        Ok(Box::new(ShardRing {
            reader: Reader::open(self, RING_BYTES)?,
            is_at_messages: false,
        }))
    }
}

/// One shard's ring.
struct ShardRing {
    reader: Reader,
    /// Whether the shard is handling the messages at the front.
    is_at_messages: bool,
}

impl InputRing for ShardRing {
    fn wakeup(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    fn attach(
        &mut self,
        connection: u64,
        socket: BorrowedFd,
        version: Version,
    ) -> io::Result<Box<dyn RingInput>> {
        // The connection parses messages itself, and answers malformed ones.
        let (types, wants_records) = (u64::MAX, false);
        let link = self
            .reader
            .attach(connection, socket, version, types, wants_records)?;
        Ok(Box::new(ShardLink {
            link,
            before: KernelCounts::default(),
        }))
    }

    fn look(&mut self) {
        self.reader.look();
    }

    fn find_passed(&mut self) {
        self.reader.find_passed();
    }

    fn next(&mut self) -> Option<RingEntry<'_>> {
        if std::mem::take(&mut self.is_at_messages) {
            self.reader.pass_over();
        }
        match self.reader.next()? {
            Next::Passed(connection) => Some(RingEntry::Passed(connection)),
            Next::Messages => {
                self.is_at_messages = true;
                let entry = self.reader.entry();
                Some(RingEntry::Messages(entry.connection, entry.messages))
            }
        }
    }
}

/// One connection's link to its shard's ring.
struct ShardLink {
    link: Link,
    /// The counts that the shard has received so far.
    before: KernelCounts,
}

impl RingInput for ShardLink {
    fn is_owned_by_ring(&self) -> bool {
        self.link.is_read_by_kernel()
    }

    fn note_read(&mut self, count: usize) {
        self.link.note_read(count);
    }

    fn hand_over(&mut self, fragment: &[u8]) -> bool {
        self.link.hand_over(fragment)
    }

    fn take_back(&mut self, input: &mut Vec<u8>) -> bool {
        self.link.take_back(input)
    }

    fn is_found_lost(&mut self, socket: BorrowedFd) -> bool {
        self.link.is_found_lost(socket)
    }

    fn ask_back(&self) {
        self.link.request_back();
    }

    fn take_counts(&mut self) -> RingCounts {
        let now = self.link.counts();
        let before = std::mem::replace(&mut self.before, now);
        RingCounts {
            passed: now.passed - before.passed,
            fell_back: now.fell_back - before.fell_back,
            ring_full: now.ring_full - before.ring_full,
        }
    }
}
