//! The kernel half of a connection's programs: its start, and how the connection returns to the program.

use super::{Channel, Close, Connection};
use crate::batch::BatchContext;
use crate::kernel_half::{Reclaimed, Taken};
use crate::{InputRing, Switch, SwitchHandler};
use rustix::fd::BorrowedFd;
use std::io;
use urtica_wire::{Header, PacketIn};

impl<C: Channel> Connection<C> {
    /// Hands further input over to the kernel half or to the shard's ring, if all input has been handled. Must be called
    /// after each use of the connection. `watch` watches a descriptor in addition to the socket.
    pub fn release(
        &mut self,
        ring: Option<&mut (dyn InputRing + 'static)>,
        batch: &mut BatchContext,
        watch: impl FnOnce(BorrowedFd) -> io::Result<()>,
    ) -> Result<(), Close> {
        if self.awaits_half {
            self.start_kernel_half(batch);
        }
        self.attach_half();
        if let Some(wakeup) = self.transport.wakeup_to_watch() {
            watch(wakeup)?;
        }
        self.hand_to_kernel(batch)?;
        self.settle_ring(ring);
        Ok(())
    }

    /// Reclaims the connection, if its kernel half owns it.
    pub(super) fn reclaim(&mut self, batch: &BatchContext) {
        if let Some(reclaimed) = self.transport.reclaim() {
            self.session.xids.go_on_after(reclaimed.xid);
            self.count_reclaimed(&reclaimed, batch);
        }
    }

    /// Adds the kernel's counts to the counters.
    pub(super) fn count_reclaimed(&mut self, reclaimed: &Reclaimed, batch: &BatchContext) {
        let received = reclaimed.answered + reclaimed.others;
        if received > 0 {
            self.session.note_received(batch.now);
        }
        self.counters.received.add(received);
        self.counters.packet_ins.add(reclaimed.answered);
        self.counters.answered_in_kernel.add(reclaimed.answered);
        self.counters.sent.add(reclaimed.sent);
        self.counters.sent_bytes.add(reclaimed.sent_bytes);
        self.counters.passed_by_kernel.add(reclaimed.passed);
        self.counters.fell_back.add(reclaimed.fell_back);
        let shard = &batch.network.shard(batch.shard).counters;
        shard.received.add(received);
        shard.sent_bytes.add(reclaimed.sent_bytes);
        shard.answered_in_kernel.add(reclaimed.answered);
        shard.passed_by_kernel.add(reclaimed.passed);
        shard.fell_back.add(reclaimed.fell_back);
    }

    /// Passes the events of the kernel half to handlers, before later input is handled. Those that an earlier program left
    /// wait until the switch has described its ports: handlers would ignore news from unknown ports.
    pub(super) fn handle_events(&mut self, batch: &mut BatchContext) {
        let (Some(joined), Some(version)) = (&mut self.switch, self.session.version()) else {
            return;
        };
        if !joined.is_up {
            return;
        }
        let (xids, counters) = (&mut self.session.xids, &self.counters);
        self.transport.take_events(&mut |message| {
            let body = message.get(Header::SIZE..).unwrap_or_default();
            if let Ok(packet) = PacketIn::decode(version, body) {
                let settled = |handler: &mut dyn SwitchHandler, switch: &mut Switch| {
                    handler.settled(switch, &packet);
                };
                joined.call(0..usize::MAX, xids, counters, batch, settled);
            }
        });
    }

    /// Starts a kernel half once the switch is up, may be written to, and has reached the threshold: that of all programs,
    /// that of the only program, or one that answers for all. Does nothing if there is none, or if one continues from an
    /// earlier program.
    pub(super) fn start_kernel_half(&mut self, batch: &BatchContext) {
        let (Some(switch), true) = (&mut self.switch, self.transport.may_get_kernel_half()) else {
            return;
        };
        // A kernel half would answer frames that a raw program must see.
        if !switch.is_up || !self.session.role().may_write() || self.session.is_raw() {
            return;
        }
        let uptime = batch.now.saturating_duration_since(switch.up_since);
        let packet_ins = self.counters.packet_ins.get();
        if !batch.half_threshold.is_reached(uptime, packet_ins) {
            self.awaits_half = true;
            return;
        }
        self.awaits_half = match &batch.kernel_halves {
            Some(_) => true,
            None => (switch.handlers.iter()).any(|handler| handler.may_have_kernel_half()),
        };
        let half = match (&batch.kernel_halves, &mut switch.handlers[..]) {
            (Some(halves), _) => halves.open(&switch.info),
            (None, [handler]) => handler.kernel_half(),
            (None, several) => several
                .iter_mut()
                .find_map(|handler| handler.kernel_half_for_all()),
        };
        if let Some(half) = half {
            let totals = batch.network.kernel_half_totals();
            self.transport.start_half(half, totals);
        }
    }

    fn attach_half(&mut self) {
        match self.transport.attach_half() {
            Ok(false) => {}
            Ok(true) => {
                urtica_log::debug!(about: self.subject(), peer = self.name(), "the holder keeps the kernel half");
            }
            Err(error) => {
                urtica_log::warn!(about: self.subject(), peer = self.name(), %error, "cannot attach the kernel half; the program answers alone");
                self.awaits_half = false;
            }
        }
    }

    fn hand_to_kernel(&mut self, batch: &mut BatchContext) -> Result<(), Close> {
        if !self.transport.has_kernel_half() {
            return Ok(());
        }
        // Handles the events of a connection that was reclaimed to send something.
        self.handle_events(batch);
        if !batch.out.is_empty() {
            self.flush(batch)?;
        }
        if self.transport.is_let_go() {
            if self.transport.end_half(self.session.to_word())? {
                self.start_kernel_half(batch);
            }
            return Ok(());
        }
        if self.session.answering_version().is_none() {
            return Ok(());
        }
        let xid = self.session.xids.last();
        if self.transport.hand_over(xid, batch.started)? == Taken::SteppedAside {
            self.counters.stepped_aside.add(1);
            let shard = &batch.network.shard(batch.shard).counters;
            shard.stepped_aside.add(1);
        }
        Ok(())
    }
}
