//! Shared state of a shard's connections while they handle input.

use crate::kernel_half::Threshold;
use crate::program_list::ProgramList;
use crate::{KernelHalves, Network};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The state that a shard lends a connection while it handles a batch: the messages of one read.
pub(crate) struct BatchContext {
    /// Collects replies; empty between batches.
    pub out: Vec<u8>,
    /// Read once each time that the shard wakes.
    pub now: Instant,
    /// Whole seconds since the shard started.
    pub now_s: u32,
    /// The time when the current input was read; `None` if packet-ins are not timed.
    pub read_at: Option<Instant>,
    pub network: Network,
    /// The programs that get a handler for each switch that joins.
    pub programs: Arc<ProgramList>,
    /// The kernel halves that settle messages before all programs, if any.
    pub kernel_halves: Option<Arc<dyn KernelHalves>>,
    /// The threshold from which a switch gets a kernel half.
    pub half_threshold: Threshold,
    /// The index of the shard.
    pub shard: usize,
    /// The time when the shard started.
    pub started: Instant,
    /// Receives discarded input; empty unless a holder keeps connections.
    pub discarded: Vec<u8>,
}

impl BatchContext {
    /// Creates a shard's context, which collects replies in `out`.
    pub fn new(
        out: Vec<u8>,
        now: Instant,
        network: Network,
        programs: Arc<ProgramList>,
        shard: usize,
    ) -> Self {
        Self {
            out,
            now,
            now_s: 0,
            read_at: None,
            network,
            programs,
            kernel_halves: None,
            half_threshold: Threshold::default(),
            shard,
            started: now,
            discarded: Vec::new(),
        }
    }

    /// Notes that the next input has just been read.
    #[inline]
    pub fn note_read(&mut self) {
        if let Some(read_at) = &mut self.read_at {
            *read_at = Instant::now();
        }
    }
}

/// Returns the value of [`BatchContext::now_s`] at `time` after the start.
pub(crate) fn whole_seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}
