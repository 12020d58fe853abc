//! A pipeline together with its compiled form. The plain form knows nothing of the compiled one, and that one knows tables
//! and entries, but no pipeline.

use crate::fast::{Compiler, TableTotals};
use crate::{
    CompileConfig, Compiled, Explanation, Packet, Pipeline, PlainReason, Processed, RemovedEntry,
    SentFrame, Sink, TemplateKind,
};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

impl Pipeline {
    /// Compiles the tables as they are, and from now on follows what changes them: every change is in effect for
    /// packets when the call that made it returns, unless [`Pipeline::defer_following`] says otherwise.
    ///
    /// Compiling again replaces the form there was: its readers leave every frame to the plain form from then on.
    ///
    /// Where the system allows no machine code, as SELinux without `execmem` and systemd's `MemoryDenyWriteExecute` do not, the
    /// interpreter carries the tables out: see [`Compiled::backend`]. So it does from then on where the system refuses memory for
    /// code later; readers follow by themselves.
    ///
    /// # Errors
    /// The system's, if it has no memory for it; then all is as it was.
    pub fn compile(&mut self, config: CompileConfig) -> io::Result<Arc<Compiled>> {
        let n_tables = self.tables.len();
        let mut compiler = Compiler::new(n_tables, config)?;
        // Not before: where there is no memory, the form there was goes on.
        self.stop_compiling();
        compiler.begin(&mut self.tables, &self.groups);
        self.follow_in(&mut compiler);
        let compiled = compiler.compiled().clone();
        self.compiler = Some(Mutex::new(compiler));
        Ok(compiled)
    }

    /// Leaves it to [`Pipeline::follow`] to have the compiled form follow changes, or not any more.
    ///
    /// A change of the plain form is short, but takes the pipeline to itself; the compiled form may have to be built anew, to
    /// which end the pipeline need only stay as it is. So who has it in a lock makes the change as a writer, and has it followed as
    /// a reader, while other readers take packets through the plain form.
    pub fn defer_following(&mut self, is_deferred: bool) {
        self.is_deferred = is_deferred;
        self.follow();
    }

    /// Has the compiled form follow the last change: it is in effect for all packets when this returns. What is not followed
    /// when the next change begins is followed then.
    pub fn follow(&self) {
        if let Some(mut compiler) = self.compiler() {
            self.follow_in(&mut compiler);
        }
    }

    /// Has the compiled form search a table in a better way that changed much before, and has not changed for some time; each call
    /// one. With [`CompileConfig::plans_beside`] a call begins to look for that way, and later ones go on with it: how much time
    /// passes between them does not matter.
    /// [`Pipeline::expire`] does it unless following is deferred.
    pub fn settle(&self, now: Duration) {
        if let Some(mut compiler) = self.compiler() {
            self.follow_in(&mut compiler);
            compiler.settle(&self.tables, &self.groups, now);
            self.follow_in(&mut compiler);
        }
    }

    /// Goes on with a frame that the compiled form leaves to the plain one ([`Verdict::Punt`](crate::Verdict::Punt)).
    pub fn resume(&self, frame: Processed<'_>, now: Duration, sink: &mut dyn Sink) {
        let mut packet = Packet::new(frame.in_port(), frame.bytes());
        packet.metadata = frame.metadata();
        self.process_from(frame.table_id(), packet, now, sink);
    }

    /// Sends a frame that leaves besides what its verdict tells ([`Processed::sent`]), by its port or by what a reserved port
    /// stands for.
    pub fn send(&self, sent: SentFrame<'_>, now: Duration, sink: &mut dyn Sink) {
        let (packet, port) = sent.packet();
        self.send_for(sent.cause(), port, &packet, now, sink);
    }

    /// How many bytes the compiled form takes for entries and what finds them, as far as packets look at it; what was
    /// freed and can be used again is not counted.
    pub fn compiled_bytes(&self) -> usize {
        self.compiler().map_or(0, |compiler| compiler.bytes())
    }

    /// How many bytes the compiled form's machine code takes, in whole pages; that of actions which no entry has any more
    /// is kept for some time.
    pub fn code_bytes(&self) -> usize {
        self.compiler().map_or(0, |compiler| compiler.code_bytes())
    }

    /// What the compiler has made of each table that has entries, `with_code` the machine code, too. `None` where the
    /// pipeline is not compiled.
    ///
    /// Cost: a look at each entry.
    pub fn explain(&self, with_code: bool) -> Option<Explanation> {
        let compiler = self.compiler()?;
        Some(compiler.explain(&self.tables, with_code))
    }

    /// How a table is searched. `None` where there is no such table, or the pipeline is not compiled.
    pub fn template(&self, table_id: u8) -> Option<TemplateKind> {
        self.compiler()?.template(table_id)
    }

    /// How a packet's entry is searched in a table: by its template, and where it was cut by that of the packet's sub-table,
    /// and so on. Empty where there is no such table, or the pipeline is not compiled.
    pub fn templates(&self, table_id: u8, packet: &Packet) -> Vec<TemplateKind> {
        let compiler = self.compiler();
        let kinds = compiler.map(|compiler| compiler.templates(table_id, packet));
        kinds.unwrap_or_default()
    }

    /// Why the compiled form of this pipeline has left a frame to the plain one; `None` where it has not.
    pub fn why_plain(&self, frame: Processed<'_>) -> Option<PlainReason> {
        self.compiler()?.why_plain(&self.tables, frame)
    }

    /// Has the compiled form follow what has changed in these tables, now or later. When it has, no packet is on its way to an
    /// entry that was removed, and these have counted all that they matched.
    pub(crate) fn follow_changes(&mut self, changed: Range<usize>, removed: &[RemovedEntry]) {
        let Some(compiler) = &mut self.compiler else {
            return;
        };
        let compiler = compiler.get_mut().unwrap_or_else(PoisonError::into_inner);
        compiler.take_changes(&mut self.tables, changed, removed);
        self.follow_now();
    }

    /// Has the compiled form follow that these meters were added, modified or deleted, now or later.
    pub(crate) fn follow_meter_changes(&mut self, meter_ids: impl Iterator<Item = u32>) {
        let Some(compiler) = &mut self.compiler else {
            return;
        };
        let compiler = compiler.get_mut().unwrap_or_else(PoisonError::into_inner);
        compiler.note_meters(meter_ids);
        self.follow_now();
    }

    /// Has the compiled form follow that a group was added, modified or deleted, or all were deleted, now or later.
    pub(crate) fn follow_group_changes(&mut self, group_id: Option<u32>) {
        let Some(compiler) = &mut self.compiler else {
            return;
        };
        let compiler = compiler.get_mut().unwrap_or_else(PoisonError::into_inner);
        compiler.note_group(group_id, &self.groups);
        self.follow_now();
    }

    /// Has the compiled form follow at once that a port has changed, which buckets of groups may watch.
    pub(crate) fn follow_ports(&self) {
        if let Some(mut compiler) = self.compiler() {
            compiler.follow_liveness(&self.groups, &|bucket| self.is_live(bucket));
        }
    }

    fn follow_now(&self) {
        if !self.is_deferred {
            self.follow();
        }
    }

    fn follow_in(&self, compiler: &mut Compiler) {
        compiler.follow(&self.tables, &self.groups);
        compiler.follow_meters(&self.meters);
        compiler.follow_groups(&self.groups, &|bucket| self.is_live(bucket));
    }

    /// What a table has counted in the compiled form.
    pub(crate) fn compiled_totals(&self, table_id: u8) -> TableTotals {
        let compiler = self.compiler();
        let totals = compiler.map(|compiler| compiler.totals(table_id.into()));
        totals.unwrap_or_default()
    }

    /// Leaves all packets to the plain form; entries, groups and tables keep what they have counted.
    fn stop_compiling(&mut self) {
        if let Some(compiler) = self.compiler.take() {
            let compiler = compiler.into_inner();
            let compiler = compiler.unwrap_or_else(PoisonError::into_inner);
            compiler.end(&self.tables, &self.groups);
        }
    }

    /// What follows changes. Packets do not take this lock.
    fn compiler(&self) -> Option<MutexGuard<'_, Compiler>> {
        let compiler = self.compiler.as_ref()?;
        Some(compiler.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.stop_compiling();
    }
}
