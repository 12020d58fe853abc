//! The compiled pipeline that threads share to process packets.

use super::backend::Backend;
#[cfg(target_arch = "x86_64")]
use super::backend::{ResumeCode, TableCode};
use super::burst::Burst;
use super::context::Context;
use super::frame::{Frame, PUNT};
use super::interpret;
use super::kinds::Depth;
use super::parse::parse;
use super::table::{Body, Header, MAX_HEADERS, TableCounts, Template};
use crate::fast::memory::epoch::{Epochs, Participant};
use crate::thread_counts::ThreadCounts;
use parking_lot::{Mutex, MutexGuard};
use std::any::Any;
use std::cell::Cell;
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The compiled form of a [`Pipeline`](crate::Pipeline), created by [`Pipeline::compile`](crate::Pipeline::compile).
///
/// Thread-safety: any number of [`Reader`]s, one per thread, may use it while the pipeline changes; readers never wait.
/// After the pipeline is dropped, all tables leave every frame to the plain form.
#[derive(Debug)]
pub struct Compiled {
    pub(in crate::fast) headers: Box<[Header]>,
    pub(in crate::fast) epochs: Arc<Epochs>,
    pub(in crate::fast) arena_base: *mut u8,
    /// See [`Compiled::depth`].
    pub(in crate::fast) depth: AtomicU8,
    misses_punt: AtomicBool,
    backend: Backend,
    /// The threads' counters of flow records, if several threads may count.
    pub(in crate::fast) thread_counts: Option<ThreadCounts>,
    counts: Mutex<AllCounts>,
    /// The form that replaced this one, to which readers switch.
    successor: OnceLock<Arc<Compiled>>,
    /// The body of headers that have no table.
    pub(in crate::fast) plain: Box<Body>,
    /// Keeps the code of `plain` alive.
    _plain_code: Box<dyn Any + Send + Sync>,
}

// SAFETY: data behind the pointers is changed by atomics, and freed only when no participant of `epochs` can see it.
unsafe impl Send for Compiled {}
// SAFETY: as above.
unsafe impl Sync for Compiled {}

/// One reader's counters for each header.
#[derive(Debug)]
struct Counts(Box<[TableCounts]>);

/// All readers' counters.
#[derive(Debug, Default)]
struct AllCounts {
    /// The counters of existing readers.
    present: Vec<Arc<Counts>>,
    /// The totals of dropped readers for each header; empty if there are none.
    gone: Vec<TableTotals>,
}

/// The total of all readers' counters for a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableTotals {
    pub matches: u64,
    misses: u64,
}

impl TableTotals {
    /// Returns the number of frames looked up.
    pub fn lookups(self) -> u64 {
        self.matches + self.misses
    }

    fn add(&mut self, counts: &TableCounts) {
        self.matches += counts.matches.load(Relaxed);
        self.misses += counts.misses.load(Relaxed);
    }
}

impl Compiled {
    /// Returns the current backend, which is the interpreter if machine code is not, or no longer, available.
    pub fn backend(&self) -> Backend {
        self.newest().backend
    }

    /// Makes readers switch to another form of the same tables at their next burst. In this form all tables become plain.
    pub(in crate::fast) fn replace_by(&self, successor: &Arc<Self>) {
        successor.set_misses_punt(self.misses_punt.load(Relaxed));
        let replaced = self.successor.set(Arc::clone(successor));
        debug_assert!(replaced.is_ok(), "a form is replaced once");
    }

    fn newest(&self) -> &Self {
        self.successor.get().map_or(self, |next| next.newest())
    }

    /// Creates a form in which every table is plain.
    pub(in crate::fast) fn new(
        arena_base: *mut u8,
        backend: Backend,
        plain_address: u64,
        plain_code: Box<dyn Any + Send + Sync>,
        thread_counts: Option<ThreadCounts>,
    ) -> Self {
        let plain = Box::new(Body {
            code: plain_address,
            default: null(),
            parts: Default::default(),
            template: Template::Plain,
        });
        let header = |index: usize| Header {
            body: AtomicPtr::new(std::ptr::from_ref(&*plain).cast_mut()),
            index: index as u32,
            table_id: index as u32,
        };
        Self {
            headers: (0..MAX_HEADERS).map(header).collect(),
            epochs: Epochs::new(),
            arena_base,
            depth: AtomicU8::new(Depth::Ethernet as u8),
            misses_punt: AtomicBool::new(true),
            backend,
            thread_counts,
            counts: Mutex::default(),
            successor: OnceLock::new(),
            plain,
            _plain_code: plain_code,
        }
    }

    /// Sets whether frames without an entry are left to the plain form, which notifies its sink (the default), or counted and
    /// dropped.
    pub fn set_misses_punt(&self, misses_punt: bool) {
        self.newest().misses_punt.store(misses_punt, Relaxed);
    }

    /// Creates a reader, with which one thread can process packets.
    pub fn reader(self: &Arc<Self>) -> Reader {
        let counts = (0..MAX_HEADERS).map(|_| TableCounts::default()).collect();
        let counts = Arc::new(Counts(counts));
        self.all_counts().present.push(counts.clone());
        Reader {
            context: Context {
                now_ns: 0,
                arena: self.arena_base,
                headers: self.headers.as_ptr(),
                counts: counts.0.as_ptr().cast_mut(),
                misses_punt: 1,
                has_left: Cell::new(0),
                entry_counts: self
                    .thread_counts
                    .as_ref()
                    .map_or(null_mut(), ThreadCounts::join),
                sent: null_mut(),
            },
            participant: self.epochs.join(),
            compiled: self.clone(),
            counts,
        }
    }

    /// Returns a table's counters.
    pub(crate) fn totals(&self, index: usize) -> TableTotals {
        let all = self.all_counts();
        let mut totals = all.gone.get(index).copied().unwrap_or_default();
        all.present
            .iter()
            .for_each(|counts| totals.add(&counts.0[index]));
        totals
    }

    /// Locks the counters. They are numbers, so they are consistent even if a thread died with the lock.
    fn all_counts(&self) -> MutexGuard<'_, AllCounts> {
        self.counts.lock()
    }

    /// Returns the depth to which frames are parsed.
    pub(in crate::fast) fn depth(&self) -> Depth {
        const DEPTHS: [Depth; 4] = [
            Depth::Ethernet,
            Depth::Type,
            Depth::Network,
            Depth::Transport,
        ];
        DEPTHS[usize::from(self.depth.load(Acquire))]
    }
}

/// A handle with which one thread processes packets in the compiled form.
pub struct Reader {
    context: Context,
    participant: Participant,
    compiled: Arc<Compiled>,
    /// The counters to which `context` points.
    counts: Arc<Counts>,
}

// SAFETY: the context points to data that `compiled` and `counts` own.
unsafe impl Send for Reader {}

impl Reader {
    /// Processes the frames of a burst until each has a [`Verdict`](super::burst::Verdict). `now` is the time since a moment
    /// that is fixed for the whole pipeline.
    ///
    /// Never waits, and keeps no references after it returns.
    pub fn process(&mut self, burst: &mut Burst, now: Duration) {
        if let Some(successor) = self.compiled.successor.get() {
            *self = successor.reader();
        }
        self.context.now_ns = crate::entry::nanoseconds(now);
        self.context.misses_punt = self.compiled.misses_punt.load(Relaxed).into();
        self.context.has_left.set(0);
        let (frames, sent) = burst.parts_mut();
        self.context.sent = sent;
        self.participant.begin();
        match self.compiled.backend {
            #[cfg(target_arch = "x86_64")]
            Backend::MachineCode => self.pass(frames, enter_code, resume_code),
            _ => self.pass(frames, enter_template, resume_template),
        }
        self.participant.rest();
    }

    /// Starts all frames, and continues paused ones in order: while one waits for memory, others are processed.
    #[inline(always)]
    fn pass(
        &self,
        frames: &mut [Frame],
        enter: impl Fn(&mut Frame, &Context, *const Header),
        resume: impl Fn(&mut Frame, &Context),
    ) {
        let depth = self.compiled.depth();
        let first = self.compiled.headers.as_ptr();
        let mut waiting = [0_u8; super::burst::BURST];
        let mut count = 0;
        for (index, frame) in frames.iter_mut().enumerate() {
            if !parse(frame, depth) {
                (frame.out_port, frame.table_id) = (PUNT, 0);
                self.context.has_left.set(1);
                continue;
            }
            frame.resume = 0;
            enter(frame, &self.context, first);
            waiting[count] = index as u8;
            count += usize::from(frame.resume != 0);
        }
        while count > 0 {
            let mut still = 0;
            for at in 0..count {
                let index = waiting[at];
                let frame = &mut frames[usize::from(index)];
                resume(frame, &self.context);
                waiting[still] = index;
                still += usize::from(frame.resume != 0);
            }
            count = still;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(threads) = &self.compiled.thread_counts {
            threads.leave(self.context.entry_counts);
        }
        let mut all = self.compiled.all_counts();
        all.present
            .retain(|counts| !Arc::ptr_eq(counts, &self.counts));
        all.gone.resize(MAX_HEADERS, TableTotals::default());
        for (totals, counts) in all.gone.iter_mut().zip(&self.counts.0) {
            totals.add(counts);
        }
    }
}

#[inline(always)]
fn enter_template(frame: &mut Frame, context: &Context, header: *const Header) {
    // SAFETY: header and context belong to one pipeline for the interpreter; nothing that they refer to is freed while the
    // reader's participant is in a burst.
    unsafe { interpret::enter(frame, context, header) }
}

#[inline(always)]
fn resume_template(frame: &mut Frame, context: &Context) {
    // SAFETY: as for `enter_template`.
    unsafe { interpret::resume(frame, context) }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn enter_code(frame: &mut Frame, context: &Context, header: *const Header) {
    // SAFETY: the header belongs to a pipeline whose bodies have code with this signature; nothing that it refers to is
    // freed while the reader's participant is in a burst.
    unsafe {
        let body = (*header).body.load(Acquire);
        let code: TableCode = std::mem::transmute((*body).code);
        code(frame, context, body, header);
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn resume_code(frame: &mut Frame, context: &Context) {
    // SAFETY: a paused frame refers to code with this signature.
    unsafe {
        let code: ResumeCode = std::mem::transmute(frame.resume);
        frame.resume = 0;
        code(frame, context);
    }
}
