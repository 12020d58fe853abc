//! One connection's services in the kernel.

use super::part::Part;
use crate::kernel::{Kernel, Opened};
use crate::link::Link;
use crate::mode::Mode;
use crate::session::Memory;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use urtica_controller::{Handover, HeldHalf, KernelHalf, Reclaimed, SwitchInfo, Taken};
use urtica_wire::split_frame;

/// A link, and its events.
pub(super) struct Half {
    link: Link,
    memory: Arc<Memory>,
    /// The kernel's count when the program last became the owner.
    events_full: u64,
    /// Events that were read from the kernel, but not passed to handlers yet.
    events: Vec<u8>,
}

impl Half {
    pub fn new(kernel: Kernel, opened: Opened, info: &SwitchInfo, mode: Mode) -> Self {
        let memory = Arc::clone(&opened.memory);
        let version = info.version.to_wire();
        memory.shared().version.store(version.into(), Relaxed);
        Part::of(&memory)
            .datapath_id
            .store(info.datapath_id.0, Relaxed);
        Self {
            link: Link::new(kernel, opened, mode).without_local_limit(),
            memory,
            events_full: 0,
            events: Vec::new(),
        }
    }

    /// Continues with the link of an earlier program, and with its events. The program is the owner.
    pub fn resume(link: Link, memory: &Arc<Memory>) -> Self {
        let part = Part::of(memory);
        let mut events = Vec::new();
        part.take_events(&mut events);
        Self {
            link,
            memory: Arc::clone(memory),
            events_full: part.events_full.load(Relaxed),
            events,
        }
    }
}

/// Separates the messages that are no packet-ins, which are part of the kernel's count of answered ones.
pub(super) fn count_others(part: &Part, reclaimed: &mut Reclaimed) {
    reclaimed.others = part.take_others().min(reclaimed.answered);
    reclaimed.answered -= reclaimed.others;
}

impl KernelHalf for Half {
    fn attach(&mut self, socket: BorrowedFd) -> io::Result<()> {
        self.link.attach(socket)
    }

    fn wakeup(&self) -> BorrowedFd<'_> {
        self.link.wakeup()
    }

    fn has_passed(&self) -> bool {
        self.link.has_passed()
    }

    fn hand_over(&mut self, socket: BorrowedFd, handover: Handover) -> io::Result<Taken> {
        // Those of an earlier program, which wait for handlers.
        if !self.events.is_empty() {
            return Ok(Taken::NotYet);
        }
        self.link.hand_over(socket, handover)
    }

    fn reclaim(&mut self, input: &mut Vec<u8>) -> Reclaimed {
        let mut reclaimed = self.link.reclaim(input);
        let part = Part::of(&self.memory);
        part.take_events(&mut self.events);
        count_others(part, &mut reclaimed);
        let full = part.events_full.load(Relaxed);
        let fell_back = (full - self.events_full).min(reclaimed.passed);
        reclaimed.passed -= fell_back;
        reclaimed.fell_back += fell_back;
        self.events_full = full;
        reclaimed
    }

    fn may_write(&mut self, socket: BorrowedFd) -> bool {
        self.link.may_write(socket)
    }

    fn note_read(&mut self, count: usize) {
        self.link.note_read(count);
    }

    fn unread(&self) -> u64 {
        self.link.unread()
    }

    fn note_written(&mut self, count: usize) {
        self.link.note_written(count);
    }

    fn memory_bytes(&self) -> usize {
        self.link.memory_bytes()
    }

    fn describe(&self, socket: BorrowedFd) -> String {
        self.link.describe(socket)
    }

    fn max_fragment(&self) -> usize {
        self.link.max_fragment()
    }

    fn has_events(&self) -> bool {
        !self.events.is_empty() || Part::of(&self.memory).has_events()
    }

    fn held(&mut self) -> Option<&mut dyn HeldHalf> {
        self.link.held()
    }

    fn take_events(&mut self, tell: &mut dyn FnMut(&[u8])) {
        let mut rest = &self.events[..];
        while let Ok(Some((message, after))) = split_frame(rest) {
            tell(message);
            rest = after;
        }
        self.events.clear();
    }
}
