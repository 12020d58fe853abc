//! Input of a connection that arrives through the shard's ring.

use super::{Channel, Close, Connection};
use crate::InputRing;
use crate::batch::BatchContext;
use crate::mailbox::Token;

impl<C: Channel> Connection<C> {
    /// Handles messages from the ring, after other input that waits.
    pub fn handle_ring_messages(
        &mut self,
        messages: &[u8],
        batch: &mut BatchContext,
    ) -> Result<(), Close> {
        let shard = &batch.network.shard(batch.shard).counters;
        shard.received_bytes.add(messages.len() as u64);
        shard.through_rings.add(messages.len() as u64);
        self.counters.through_rings.add(messages.len() as u64);
        if self.transport.is_stalled() || self.transport.input_len() > 0 {
            self.transport.keep_input(messages);
            return Ok(());
        }
        batch.note_read();
        self.handle_input(messages, batch)?;
        self.flush(batch)
    }

    /// Reads from the socket again if the ring has passed input. All earlier entries of the ring have been handled.
    pub fn take_back_from_ring(&mut self, batch: &BatchContext) {
        self.transport.take_back_from_ring();
        self.count_ring(batch);
    }

    /// Attaches the connection to the ring once the switch is up, and hands its input over if possible.
    pub(super) fn settle_ring(&mut self, ring: Option<&mut (dyn InputRing + 'static)>) {
        if let (Some(ring), true) = (ring, self.transport.may_get_ring()) {
            self.attach_to_ring(ring, self.token);
        }
        self.transport.settle_ring();
    }

    fn attach_to_ring(&mut self, ring: &mut dyn InputRing, token: Token) {
        let is_up = self.switch.as_ref().is_some_and(|switch| switch.is_up);
        let (true, Some(version)) = (is_up, self.session.answering_version()) else {
            return;
        };
        if let Err(error) = self.transport.attach_to_ring(ring, token, version) {
            urtica_log::warn!(about: self.subject(), peer = self.name(), %error, "cannot use the ring for the switch; reading from its socket");
        }
    }

    /// Returns `true` if the ring has lost the socket.
    pub fn is_lost_by_ring(&mut self) -> bool {
        let is_lost = self.transport.is_lost_by_ring();
        if is_lost {
            urtica_log::warn!(about: self.subject(), peer = self.name(), "the kernel no longer fills the ring; reading from the switch's socket");
        }
        is_lost
    }

    /// Adds the ring's counts to the counters.
    pub(super) fn count_ring(&mut self, batch: &BatchContext) {
        let Some(counts) = self.transport.take_ring_counts() else {
            return;
        };
        let shard = &batch.network.shard(batch.shard).counters;
        self.counters.passed_by_kernel.add(counts.passed);
        shard.passed_by_kernel.add(counts.passed);
        self.counters.fell_back.add(counts.fell_back);
        shard.fell_back.add(counts.fell_back);
        self.counters.ring_full.add(counts.ring_full);
        shard.ring_full.add(counts.ring_full);
    }
}
