//! A change of programs at a connected switch: adds and removes handlers, and their entries.

use super::joined::{Joined, TickTimer};
use super::{Channel, Close, Connection, contain, drop_contained, panic_of};
use crate::batch::BatchContext;
use crate::entries;
use crate::permanent::PermanentEntries;
use crate::program_list::{Listed, ProgramList};
use crate::reconciliation::{PendingReply, Reconciliation, TOLD_WITHIN, Waiting, request};
use crate::request::Asker;
use crate::session::Subject;
use crate::switch::Identity;
use crate::xid::Origin;
use crate::{ProgramId, RequestError, SwitchHandler};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;
use urtica_wire::{Match, Message, Version, split_frame};

/// Handlers with their programs.
type Handlers = Vec<(Listed, Box<dyn SwitchHandler>)>;

/// The reason for closing a connection with a kernel half: it starts again with the new programs.
const HAS_KERNEL_HALF: Close =
    Close::Asked("the programs have changed, and one of them answered in the kernel");

impl<C: Channel> Connection<C> {
    /// Applies the shard's list of programs to the switch, unless another shard has done so. May call handlers.
    pub fn follow_programs(&mut self, batch: &mut BatchContext) -> Result<(), Close> {
        let Some(joined) = &mut self.switch else {
            return Ok(());
        };
        if joined.programs.version >= batch.programs.version {
            return Ok(());
        }
        if self.transport.has_kernel_half() {
            return Err(HAS_KERNEL_HALF);
        }
        let list = Arc::clone(&batch.programs);
        let (fresh, gone) = joined.take_programs(&list);
        for (program, handler) in gone {
            if let Some(joined) = &self.switch {
                joined.end_handler(&program.identity, handler, batch);
            }
            let is_replaced = list.position(program.id()).is_some();
            self.settle_entries(program.id(), is_replaced, batch);
        }
        self.start_handlers(fresh, batch);
        Ok(())
    }

    /// Calls `switch_up` of handlers that were added while the switch was up.
    fn start_handlers(&mut self, positions: Vec<usize>, batch: &mut BatchContext) {
        if !self.switch.as_ref().is_some_and(|switch| switch.is_up) {
            return;
        }
        for position in positions {
            self.call_one(position, batch, |handler, switch| handler.switch_up(switch));
            if let Some(switch) = &mut self.switch {
                switch.start_timer(position, batch.now);
            }
        }
    }

    /// Deletes the entries of a removed program; if another program replaces it, only entries that the new one does not have.
    fn settle_entries(&mut self, program: ProgramId, is_replaced: bool, batch: &mut BatchContext) {
        let Some(version) = self.session.version() else {
            return;
        };
        let mut under_way = self.reconciliations.iter_mut();
        if let Some(earlier) = under_way.find(|earlier| earlier.program == program) {
            let unsent = earlier.begin_again(is_replaced, batch.now);
            self.transport
                .backlog()
                .subtract(unsent.iter().map(|waiting| waiting.counted).sum());
            return;
        }
        if !is_replaced && version != Version::Of10 {
            let deletion = self.deletion_of(program, version, batch);
            return batch.out.extend_from_slice(&deletion);
        }
        let told = self.ask(&request(program, version), version, batch);
        self.reconciliations.push(Reconciliation::begin(
            program,
            is_replaced,
            version,
            told,
            batch.now,
        ));
    }

    /// Sends the switch a request, behind the handlers' output.
    fn ask(
        &mut self,
        question: &Message,
        version: Version,
        batch: &mut BatchContext,
    ) -> PendingReply {
        let (sender, told) = oneshot::channel();
        let asker = Asker {
            sender,
            deadline: TOLD_WITHIN,
        };
        let xid = self.session.xids.next(Origin::REQUEST);
        // If it cannot be encoded, its sender is dropped, and the receiver reports that no reply will arrive.
        if question.encode(version, xid, &mut batch.out).is_ok() {
            self.counters.sent.add(1);
            self.requests.insert(xid, asker, batch.now);
        }
        told
    }

    /// Returns the message that deletes all entries of a program.
    fn deletion_of(&self, program: ProgramId, version: Version, batch: &BatchContext) -> Vec<u8> {
        let mut bytes = Vec::new();
        let deletion = entries::deletion(Match::any(), program);
        let xid = Origin::SESSION.xid();
        // All versions can express a match on everything.
        let _ = entries::encode(&deletion, program, None, version, xid, &mut bytes);
        self.counters.sent.add(1);
        let permanent = self.permanent_entries(batch);
        if let (Some(permanent), Message::FlowMod(deletion)) = (permanent, &deletion) {
            let mut permanent = permanent.lock();
            let end = bytes.len();
            let again = permanent.add_again(deletion, &mut bytes, 0);
            self.counters.sent.add(again);
            // A delete needs no space.
            let _ = permanent.note(program, deletion, &bytes[..end]);
        }
        bytes
    }

    /// Returns the record of a 1.0 switch's permanent entries.
    fn permanent_entries(&self, batch: &BatchContext) -> Option<Arc<Mutex<PermanentEntries>>> {
        match self.session.version() {
            Some(Version::Of10) => batch.network.permanent_entries(self.datapath_id()?),
            _ => None,
        }
    }

    /// Removes redundant changes of entries from the handlers' output, while entries are being settled.
    #[cold] // so that connections whose programs do not change pay a comparison
    pub(super) fn rewrite_output(&mut self, batch: &mut BatchContext) {
        for reconciliation in &mut self.reconciliations {
            let rewritten = reconciliation.rewrite_output(&batch.out, batch.now);
            batch.out.clear();
            batch.out.extend_from_slice(&rewritten);
        }
    }

    /// Delays messages from the mailbox, or removes redundant changes from them, if their sender's entries are being settled.
    /// Returns the messages to send now.
    #[cold]
    pub(super) fn rewrite_sent(&mut self, waiting: Waiting, now: Instant) -> Option<Waiting> {
        let mut settled = self.reconciliations.iter_mut();
        let Some(settled) = settled.find(|it| it.is_about(&waiting.bytes)) else {
            return Some(waiting);
        };
        if settled.is_asking() {
            settled.wait(waiting);
            return None;
        }
        let mut bytes = Vec::with_capacity(waiting.bytes.len());
        settled.rewrite(&waiting.bytes, now, &mut bytes);
        Some(Waiting { bytes, ..waiting })
    }

    /// Continues to settle entries: once the switch has reported them, and again once their program is quiet.
    pub(super) fn settle(&mut self, batch: &mut BatchContext) {
        for index in 0..self.reconciliations.len() {
            let settled = &mut self.reconciliations[index];
            match settled.take_reply() {
                None => continue,
                Some(Ok(reply)) => settled.entries.note_told(settled.program, &reply),
                Some(Err(error)) => self.begin_without(index, &error, batch),
            }
            self.send_delayed(index, batch.now);
        }
        self.finish_settled(batch);
    }

    /// Deletes all earlier entries of a program, since the switch did not report them.
    fn begin_without(&mut self, index: usize, error: &RequestError, batch: &BatchContext) {
        urtica_log::warn!(about: self.subject(), peer = self.name(), %error, "cannot read a changed program's entries; deleting and resending all");
        let program = self.reconciliations[index].program;
        if let Some(version) = self.session.version() {
            let deletion = self.deletion_of(program, version, batch);
            self.send_now(Waiting::uncounted(deletion), batch.now);
        }
    }

    /// Sends messages that waited for the switch's reply.
    fn send_delayed(&mut self, index: usize, now: Instant) {
        for waiting in self.reconciliations[index].take_waiting() {
            let mut bytes = Vec::new();
            self.reconciliations[index].rewrite(&waiting.bytes, now, &mut bytes);
            self.send_now(Waiting { bytes, ..waiting }, now);
        }
    }

    /// Deletes the remaining entries of programs that have finished their initial changes.
    fn finish_settled(&mut self, batch: &mut BatchContext) {
        let all = std::mem::take(&mut self.reconciliations).into_iter();
        let (finished, left): (Vec<_>, _) = all.partition(|settled| settled.is_over(batch.now));
        self.reconciliations = left;
        for mut settled in finished {
            let start = batch.out.len();
            let xids = &mut self.session.xids;
            settled
                .entries
                .delete_rest(|| xids.next(Origin::SESSION), &mut batch.out);
            self.forget_permanent(settled.program, &batch.out[start..], batch);
            let counts = settled.entries.counts;
            self.counters.sent.add(counts.deleted);
            urtica_log::info!(
                about: self.subject(),
                peer = self.name(),
                program = settled.program.number(),
                kept = counts.kept,
                added = counts.added,
                deleted = counts.deleted,
                "the switch has the entries of a program that has changed"
            );
        }
    }

    /// Removes the permanent entries that these messages delete from the record of a 1.0 switch.
    fn forget_permanent(&self, program: ProgramId, deletions: &[u8], batch: &BatchContext) {
        let Some(permanent) = self.permanent_entries(batch) else {
            return;
        };
        let (mut permanent, mut rest) = (permanent.lock(), deletions);
        while let Ok(Some((frame, after))) = split_frame(rest) {
            rest = after;
            if let Ok((_, Message::FlowMod(deletion))) = Message::decode(frame) {
                // A delete needs no space.
                let _ = permanent.note(program, &deletion, frame);
            }
        }
    }
}

impl Joined {
    /// Changes to another list of programs, keeping existing handlers and creating new ones. Returns the positions of the new
    /// handlers, and the handlers that are no longer used.
    fn take_programs(&mut self, list: &Arc<ProgramList>) -> (Vec<usize>, Handlers) {
        let old = std::mem::replace(&mut self.programs, Arc::clone(list));
        let mut before: Vec<_> = self.handlers.drain(..).map(Some).collect();
        let mut timers = std::mem::take(&mut self.timers);
        let mut fresh = Vec::new();
        for (position, listed) in list.programs.iter().enumerate() {
            let earlier = old.programs.iter().position(|other| other.is(listed));
            match earlier.and_then(|earlier| Some((earlier, before[earlier].take()?))) {
                Some((earlier, handler)) => {
                    self.handlers.push(handler);
                    if let Some(timer) = timers.iter().position(|it| it.program == earlier) {
                        let timer = timers.swap_remove(timer);
                        self.timers.push(TickTimer {
                            program: position,
                            ..timer
                        });
                    }
                }
                None => {
                    self.handlers.push(listed.program.handler(&self.info));
                    fresh.push(position);
                }
            }
        }
        let gone = old.programs.iter().zip(before);
        let gone = gone.filter_map(|(listed, handler)| Some((listed.clone(), handler?)));
        (fresh, gone.collect())
    }

    fn start_timer(&mut self, position: usize, now: Instant) {
        let interval = self.handlers[position].tick_interval();
        let timer = interval.and_then(|interval| TickTimer::start(position, interval, now));
        self.timers.extend(timer);
    }

    /// Notifies a handler that its switch is gone.
    pub(super) fn end_handler(
        &self,
        program: &Identity,
        mut handler: Box<dyn SwitchHandler>,
        batch: &BatchContext,
    ) {
        let told = contain(|| {
            handler.switch_down(&self.info);
            Ok(())
        });
        let panics = [told, drop_contained(handler)];
        for reason in panics.into_iter().filter_map(Result::err) {
            let shard = &batch.network.shard(batch.shard).counters;
            shard.panics.add(1);
            let id = self.info.datapath_id;
            let log = batch.network.panic_log();
            log.note(program.times.name(), Some(id), &panic_of(&reason));
            urtica_log::error!(about: Subject::Switch(id), dp_id = %id, %reason, "a handler panicked while its switch left");
        }
    }
}
