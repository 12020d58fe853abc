//! A pipeline together with its compiled form. The plain form does not depend on the compiled form, which depends on tables
//! and entries, but not on the pipeline.

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
    /// Compiles the tables. The compiled form follows changes from now on: every change applies to packets when its call
    /// returns, unless [`Pipeline::defer_following`] was called.
    ///
    /// Compiling again replaces the compiled form. Readers of the old one then leave every frame to the plain form.
    ///
    /// The interpreter is used if the system allows no machine code, as with SELinux without `execmem` or systemd's
    /// `MemoryDenyWriteExecute`, or later refuses memory for code: see [`Compiled::backend`]. Readers follow automatically.
    ///
    /// # Errors
    /// The system's error if there is not enough memory; then nothing has changed.
    pub fn compile(&mut self, config: CompileConfig) -> io::Result<Arc<Compiled>> {
        let n_tables = self.tables.len();
        let mut compiler = Compiler::new(n_tables, config)?;
        // Only now, so that the old form stays if there is not enough memory.
        self.stop_compiling();
        compiler.begin(&mut self.tables, &self.groups);
        self.follow_in(&mut compiler);
        let compiled = compiler.compiled().clone();
        self.compiler = Some(Mutex::new(compiler));
        Ok(compiled)
    }

    /// Sets whether the compiled form follows changes only in [`Pipeline::follow`].
    ///
    /// A change of the plain form is short, but needs exclusive access. Rebuilding the compiled form takes longer, but only needs
    /// an unchanged pipeline. So with a lock around the pipeline, make the change as a writer and call `follow` as a reader,
    /// while other readers process packets in the plain form.
    pub fn defer_following(&mut self, is_deferred: bool) {
        self.is_deferred = is_deferred;
        self.follow();
    }

    /// Makes the compiled form follow the last change, which applies to all packets when this returns. If this is not called,
    /// the next change does it.
    pub fn follow(&self) {
        if let Some(mut compiler) = self.compiler() {
            self.follow_in(&mut compiler);
        }
    }

    /// Improves the search of one table that changed much and then not for some time. With [`CompileConfig::plans_beside`], a
    /// call starts looking for a better structure, and later calls, at any intervals, continue. [`Pipeline::expire`] does this
    /// unless following is deferred.
    pub fn settle(&self, now: Duration) {
        if let Some(mut compiler) = self.compiler() {
            self.follow_in(&mut compiler);
            compiler.settle(&self.tables, &self.groups, now);
            self.follow_in(&mut compiler);
        }
    }

    /// Continues processing a frame that the compiled form leaves to the plain form ([`Verdict::Punt`](crate::Verdict::Punt)).
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

    /// Returns the memory of the compiled form's entries and search structures in bytes, without freed memory.
    pub fn compiled_bytes(&self) -> usize {
        self.compiler().map_or(0, |compiler| compiler.bytes())
    }

    /// Returns the size of the compiled form's machine code in bytes, in whole pages, including code of unused actions, which
    /// is kept for some time.
    pub fn code_bytes(&self) -> usize {
        self.compiler().map_or(0, |compiler| compiler.code_bytes())
    }

    /// Describes the compiled form of each table with entries, with its machine code if `with_code`. `None` if the pipeline is
    /// not compiled.
    ///
    /// Inspects each entry.
    pub fn explain(&self, with_code: bool) -> Option<Explanation> {
        let compiler = self.compiler()?;
        Some(compiler.explain(&self.tables, with_code))
    }

    /// Describes briefly how a table is searched, as in `tuple space: 3 hash tables`. `None` if the table does not exist, or the
    /// pipeline is not compiled.
    ///
    /// Inspects no entries, so it may be called every second.
    pub fn brief_form(&self, table_id: u8) -> Option<String> {
        self.compiler()?.brief(table_id)
    }

    /// Returns the template of a table; `None` if the table does not exist, or the pipeline is not compiled.
    pub fn template(&self, table_id: u8) -> Option<TemplateKind> {
        self.compiler()?.template(table_id)
    }

    /// Returns the templates that find a packet's entry in a table: the table's, then the one of the packet's sub-table, and so
    /// on. Empty if the table does not exist, or the pipeline is not compiled.
    pub fn templates(&self, table_id: u8, packet: &Packet) -> Vec<TemplateKind> {
        let compiler = self.compiler();
        let kinds = compiler.map(|compiler| compiler.templates(table_id, packet));
        kinds.unwrap_or_default()
    }

    /// Returns why the compiled form left a frame to the plain form; `None` if it did not.
    pub fn why_plain(&self, frame: Processed<'_>) -> Option<PlainReason> {
        self.compiler()?.why_plain(&self.tables, frame)
    }

    /// Makes the compiled form follow the changes in these tables, now or later. Afterwards no packet can use a removed entry,
    /// and the counters of removed entries are final.
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

    /// Makes the compiled form follow the addition, change or deletion of a group, or the deletion of all groups, now or later.
    pub(crate) fn follow_group_changes(&mut self, group_id: Option<u32>) {
        let Some(compiler) = &mut self.compiler else {
            return;
        };
        let compiler = compiler.get_mut();
        compiler.note_group(group_id, &self.groups);
        self.follow_now();
    }

    /// Makes the compiled form follow a change of a port immediately, since buckets of groups may watch it.
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

    /// Returns a table's counters of the compiled form.
    pub(crate) fn compiled_totals(&self, table_id: u8) -> TableTotals {
        let compiler = self.compiler();
        let totals = compiler.map(|compiler| compiler.totals(table_id.into()));
        totals.unwrap_or_default()
    }

    /// Leaves all packets to the plain form, which keeps the counters of entries, groups and tables.
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
