//! What a shard's connections have at hand while they handle what they received.

use crate::program_list::ProgramList;
use crate::{KernelHalves, Network};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a shard lends a connection while it handles a batch: the messages that one read brought.
pub(crate) struct BatchContext {
    /// Where replies gather; empty between batches.
    pub out: Vec<u8>,
    /// Read once each time that the shard wakes.
    pub now: Instant,
    /// Whole seconds since the shard started.
    pub now_s: u32,
    /// When the input that is handled was read; `None` where packet-ins are not timed.
    pub read_at: Option<Instant>,
    pub network: Network,
    /// The programs of switches that join.
    pub programs: Arc<ProgramList>,
    /// What settles messages in front of all programs, where there is such.
    pub kernel_halves: Option<Arc<dyn KernelHalves>>,
    /// The index of the shard.
    pub shard: usize,
    /// When the shard started.
    pub started: Instant,
    /// Where input would go that is discarded; empty unless a holder keeps connections.
    pub discarded: Vec<u8>,
}

impl BatchContext {
    /// The context of a shard, with this memory for replies.
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
            shard,
            started: now,
            discarded: Vec::new(),
        }
    }

    /// What is handled next was read now.
    #[inline]
    pub fn note_read(&mut self) {
        if let Some(read_at) = &mut self.read_at {
            *read_at = Instant::now();
        }
    }
}

/// What [`BatchContext::now_s`] is after this time.
pub(crate) fn whole_seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}
