//! How a port's frames are sent: by its back end, a sender, queues, or another thread.

use super::record::{Counters, PortRecord};
use crate::parcel::Outlet;
use crate::queues::{Polled, Pushed, SharedQueues};
use crate::{PortIo, PortSender};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The source and destination of a port's frames.
pub(super) enum Backend {
    /// The back end belongs to this thread.
    Here(Box<dyn PortIo>),
    /// The back end belongs to another thread, but this one can send directly.
    Direct(Box<dyn PortSender>),
    /// The back end belongs to another thread, and frames pass through its inbox.
    Elsewhere(Outlet),
    /// Frames pass through queues before they are sent.
    Queued(Box<Queued>),
}

/// The output of a port that has queues.
pub(super) struct Queued {
    pub(super) queues: Arc<SharedQueues>,
    /// The back end after the queues, which has no queues.
    pub(super) inner: Backend,
}

impl Backend {
    /// Returns the back end after the queues, if there are any.
    #[inline]
    pub(super) fn inner(&self) -> &Self {
        match self {
            Self::Queued(queued) => &queued.inner,
            backend => backend,
        }
    }

    /// Returns the back end after the queues mutably, if there are any.
    #[inline]
    pub(super) fn inner_mut(&mut self) -> &mut Self {
        match self {
            Self::Queued(queued) => &mut queued.inner,
            backend => backend,
        }
    }

    /// Sends a frame without queues, and counts it. Returns whether the port accepted it.
    pub(super) fn send(&mut self, frame: &[u8], counters: &Counters) -> bool {
        let is_sent = match self {
            Self::Here(io) => io.send(frame),
            Self::Direct(sender) => sender.send(frame),
            Self::Elsewhere(outlet) => {
                counters.count_lost(outlet.push(frame));
                return true;
            }
            Self::Queued(queued) => return queued.inner.send(frame, counters),
        };
        if is_sent {
            counters.count_sent(frame.len() as u64);
        }
        is_sent
    }

    /// Transmits all frames that are not in queues. Returns whether some are left.
    pub(super) fn flush(&mut self, counters: &Counters) -> bool {
        match self {
            Self::Here(io) => {
                io.flush();
                io.has_unsent()
            }
            Self::Direct(sender) => {
                sender.flush();
                sender.has_unsent()
            }
            Self::Elsewhere(outlet) => {
                counters.count_lost(outlet.flush());
                false
            }
            Self::Queued(queued) => queued.inner.flush(counters),
        }
    }

    /// Closes queues, and sends the frames that wait in them.
    pub(super) fn take_all(&mut self, queues: &SharedQueues, counters: &Counters) {
        let lost = queues.close(|frame| self.send(frame, counters));
        counters.count_lost(lost);
    }
}

impl Queued {
    pub(super) fn push(&mut self, queue_id: u32, frame: &[u8], counters: &Counters) {
        let is_lost = match self.queues.push(queue_id, frame) {
            Pushed::Waits => false,
            Pushed::Dropped => true,
            Pushed::Closed => !self.inner.send(frame, counters),
        };
        counters.count_lost(is_lost.into());
    }

    /// Transmits the frames that may leave; a port without a link drops all frames. Returns whether some are left.
    pub(super) fn flush(
        &mut self,
        record: &PortRecord,
        counters: &Counters,
        now: Duration,
    ) -> bool {
        let Self { queues, inner } = self;
        let is_empty = match record.has_link.load(Relaxed) {
            true => {
                let send = |frame: &[u8]| inner.send(frame, counters);
                queues.poll(record.rate_bps(), now, send) == Polled::Empty
            }
            false => {
                counters.count_lost(queues.discard());
                true
            }
        };
        inner.flush(counters) || !is_empty
    }
}
