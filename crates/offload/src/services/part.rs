//! The services' part of a session: `struct application` of `bpf/service_tables.h`, field by field.

use crate::session::Memory;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

const MAX_VERDICTS: usize = 512;
const EVENT_ROOM: usize = 65536;
const MAX_EVENT_BYTES: usize = 256;

#[repr(C)]
pub struct Part {
    pub datapath_id: AtomicU64,
    others: AtomicU64,
    pub events_full: AtomicU64,
    event_bytes: AtomicU32,
    events_due: AtomicU32,
    looked_at: AtomicU32,
    carried_out: AtomicU32,
    counted_others: AtomicU64,
    padding: [AtomicU64; 2],
    verdicts: [[AtomicU64; 2]; MAX_VERDICTS],
    events: [AtomicU8; EVENT_ROOM + MAX_EVENT_BYTES],
}

impl Part {
    /// Returns the part of a session.
    pub fn of(memory: &Memory) -> &Self {
        // SAFETY: the mapping lives as long as `memory`, and has the size of a Part there, aligned, as `application` asserts. A
        // Part consists of atomics, for which all bytes are valid and which the kernel may change at any time.
        unsafe { &*memory.application::<Self>() }
    }

    /// Returns the number of settled messages that are no packet-ins since this was last called, also by an earlier program.
    pub fn take_others(&self) -> u64 {
        let others = self.others.load(Relaxed);
        others.saturating_sub(self.counted_others.swap(others, Relaxed))
    }

    /// Returns whether there are events. The owner does not matter.
    pub fn has_events(&self) -> bool {
        self.event_bytes.load(Acquire) != 0
    }

    /// Appends the events, which are complete messages, and discards verdicts that were not carried out. Must be called right
    /// after the program has become the owner.
    pub fn take_events(&self, to: &mut Vec<u8>) {
        self.events_due.store(0, Relaxed);
        self.looked_at.store(0, Relaxed);
        self.carried_out.store(0, Relaxed);
        let bytes = self.event_bytes.swap(0, Relaxed) as usize;
        let events = self.events.iter().take(bytes);
        to.extend(events.map(|byte| byte.load(Relaxed)));
    }
}
