//! A pipeline together with its compiled form. The plain form does not depend on the compiled one, and that one depends
//! on tables and entries, but not on the pipeline.

use crate::fast::{Compiler, TableTotals};
use crate::{
    CompileConfig, Compiled, Explanation, Packet, Pipeline, PlainReason, Processed, RemovedEntry,
    SentFrame, Sink, TemplateKind,
};
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

impl Pipeline {
    /// Compiles the tables, and follows their changes from now on: every change is in effect for packets when its call
    /// returns, unless [`Pipeline::defer_following`] was called.
    ///
    /// Compiling again replaces the old form, whose readers then leave every frame to the plain form.
    ///
    /// If the system allows no machine code, as with SELinux without `execmem` or systemd's `MemoryDenyWriteExecute`, or
    /// refuses memory for code later, the interpreter is used: see [`Compiled::backend`]. Readers follow automatically.
    ///
    /// # Errors
    /// The system's, if there is no memory; then nothing has changed.
    pub fn compile(&mut self, config: CompileConfig) -> io::Result<Arc<Compiled>> {
        let n_tables = self.tables.len();
        let mut compiler = Compiler::new(n_tables, config)?;
        // Only now: without memory, the old form stays.
        self.stop_compiling();
        compiler.begin(&mut self.tables, &self.groups);
        self.follow_in(&mut compiler);
        let compiled = compiler.compiled().clone();
        self.compiler = Some(Mutex::new(compiler));
        Ok(compiled)
    }

    /// If `is_deferred`, the compiled form follows changes only in [`Pipeline::follow`].
    ///
    /// A change of the plain form is short, but needs exclusive access; building the compiled form again only needs an
    /// unchanged pipeline. So with a lock around the pipeline, make the change as a writer, and call `follow` as a reader,
    /// while other readers process packets in the plain form.
    pub fn defer_following(&mut self, is_deferred: bool) {
        self.is_deferred = is_deferred;
        self.follow();
    }

    /// Makes the compiled form follow the last change, which is in effect for all packets when this returns. The next change
    /// does this if it was not done before.
    pub fn follow(&self) {
        if let Some(mut compiler) = self.compiler() {
            self.follow_in(&mut compiler);
        }
    }

    /// Improves the search of one table that changed much and has not changed for some time. With
    /// [`CompileConfig::plans_beside`] a call starts the search for a better way, and later calls continue it, at any
    /// intervals. [`Pipeline::expire`] does it unless following is deferred.
    pub fn settle(&self, now: Duration) {
        if let Some(mut compiler) = self.compiler() {
            self.follow_in(&mut compiler);
            compiler.settle(&self.tables, &self.groups, now);
            self.follow_in(&mut compiler);
        }
    }

    /// Continues with a frame that the compiled form leaves to the plain one ([`Verdict::Punt`](crate::Verdict::Punt)).
    pub fn resume(&self, frame: Processed<'_>, now: Duration, sink: &mut dyn Sink) {
        let mut packet = Packet::new(frame.in_port(), frame.bytes());
        packet.metadata = frame.metadata();
        packet.queue_id = frame.queue_id();
        let action_set = frame.action_set();
        self.process_from(frame.table_id(), packet, action_set, now, sink);
    }

    /// Sends an additional frame ([`Processed::sent`]) to its port, or to the ports of a reserved port.
    pub fn send(&self, sent: SentFrame<'_>, now: Duration, sink: &mut dyn Sink) {
        let (packet, port) = sent.packet();
        self.send_for(sent.cause(), port, &packet, now, sink);
    }

    /// Returns the bytes of the compiled form's entries and search structures in use, without freed memory.
    pub fn compiled_bytes(&self) -> usize {
        self.compiler().map_or(0, |compiler| compiler.bytes())
    }

    /// Returns the bytes of the compiled form's machine code, in whole pages; code of unused actions is kept for some time.
    pub fn code_bytes(&self) -> usize {
        self.compiler().map_or(0, |compiler| compiler.code_bytes())
    }

    /// Describes the compiled form of each table with entries, and its machine code if `with_code`. `None` if the pipeline
    /// is not compiled.
    ///
    /// It inspects each entry.
    pub fn explain(&self, with_code: bool) -> Option<Explanation> {
        let compiler = self.compiler()?;
        Some(compiler.explain(&self.tables, with_code))
    }

    /// Describes in a few words how a table is searched, as in `tuple space: 3 hash tables`. `None` if there is no such table,
    /// or the pipeline is not compiled.
    ///
    /// It inspects no entries, so that it may be called every second.
    pub fn brief_form(&self, table_id: u8) -> Option<String> {
        self.compiler()?.brief(table_id)
    }

    /// Returns the template of a table; `None` if there is no such table, or the pipeline is not compiled.
    pub fn template(&self, table_id: u8) -> Option<TemplateKind> {
        self.compiler()?.template(table_id)
    }

    /// Returns the templates by which a packet's entry is searched in a table: the table's, then that of the packet's
    /// sub-table, and so on. Empty if there is no such table, or the pipeline is not compiled.
    pub fn templates(&self, table_id: u8, packet: &Packet) -> Vec<TemplateKind> {
        let compiler = self.compiler();
        let kinds = compiler.map(|compiler| compiler.templates(table_id, packet));
        kinds.unwrap_or_default()
    }

    /// Returns why the compiled form has left a frame to the plain one; `None` if it has not.
    pub fn why_plain(&self, frame: Processed<'_>) -> Option<PlainReason> {
        self.compiler()?.why_plain(&self.tables, frame)
    }

    /// Makes the compiled form follow the changes in these tables, now or later. After that, no packet is on its way to a
    /// removed entry, and the counters of removed entries are final.
    pub(crate) fn follow_changes(&mut self, changed: Range<usize>, removed: &[RemovedEntry]) {
        let Some(compiler) = &mut self.compiler else {
            return;
        };
        let compiler = compiler.get_mut();
        compiler.take_changes(&mut self.tables, changed, removed);
        self.follow_now();
    }

    /// Makes the compiled form follow the addition, change or deletion of these meters, now or later.
    pub(crate) fn follow_meter_changes(&mut self, meter_ids: impl Iterator<Item = u32>) {
        let Some(compiler) = &mut self.compiler else {
            return;
        };
        let compiler = compiler.get_mut();
        compiler.note_meters(meter_ids);
        self.follow_now();
    }

    /// Makes the compiled form follow the addition, change or deletion of a group, or the deletion of all, now or later.
    pub(crate) fn follow_group_changes(&mut self, group_id: Option<u32>) {
        let Some(compiler) = &mut self.compiler else {
            return;
        };
        let compiler = compiler.get_mut();
        compiler.note_group(group_id, &self.groups);
        self.follow_now();
    }

    /// Makes the compiled form immediately follow the change of a port, which buckets of groups may watch.
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

    /// Returns a table's counters in the compiled form.
    pub(crate) fn compiled_totals(&self, table_id: u8) -> TableTotals {
        let compiler = self.compiler();
        let totals = compiler.map(|compiler| compiler.totals(table_id.into()));
        totals.unwrap_or_default()
    }

    /// Leaves all packets to the plain form; entries, groups and tables keep their counters.
    fn stop_compiling(&mut self) {
        if let Some(compiler) = self.compiler.take() {
            let compiler = compiler.into_inner();
            compiler.end(&self.tables, &self.groups);
        }
    }

    /// Locks the compiler, which follows changes. Packets do not use this lock.
    fn compiler(&self) -> Option<MutexGuard<'_, Compiler>> {
        let compiler = self.compiler.as_ref()?;
        Some(compiler.lock())
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.stop_compiling();
    }
}
