//! A pipeline together with its compiled form. The plain form knows nothing of the compiled one, and that one knows tables
//! and entries, but no pipeline.

use crate::fast::{Compiler, TableTotals};
use crate::{
    Backend, CompileConfig, Compiled, Explanation, Packet, Pipeline, PlainReason, Processed,
    RemovedEntry, Sink, TemplateKind,
};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

impl Pipeline {
    /// Compiles the tables as they are, and from now on follows what changes them: every change is in effect for
    /// packets when the call that made it returns.
    ///
    /// Compiling again replaces the form there was: its readers leave every frame to the plain form from then on.
    ///
    /// Where the system allows no machine code, as SELinux without `execmem` and systemd's `MemoryDenyWriteExecute` do not, the
    /// interpreter carries the tables out: see [`Compiled::backend`].
    ///
    /// # Errors
    /// The system's, if it has no memory for it; then all is as it was.
    pub fn compile(&mut self, config: CompileConfig) -> io::Result<Arc<Compiled>> {
        let n_tables = self.tables.len();
        let mut compiler = match Compiler::new(n_tables, config) {
            Err(error) if may_interpret(&error, config) => {
                let backend = Backend::Interpreter;
                Compiler::new(n_tables, CompileConfig { backend, ..config })?
            }
            outcome => outcome?,
        };
        // Not before: where there is no memory, the form there was goes on.
        self.stop_compiling();
        compiler.begin(&mut self.tables);
        let compiled = compiler.compiled().clone();
        self.compiler = Some(compiler);
        Ok(compiled)
    }

    /// Goes on with a frame that the compiled form leaves to the plain one ([`Verdict::Punt`](crate::Verdict::Punt)).
    pub fn resume(&self, frame: Processed<'_>, now: Duration, sink: &mut dyn Sink) {
        let mut packet = Packet::new(frame.in_port(), frame.bytes());
        packet.metadata = frame.metadata();
        self.process_from(frame.table_id(), packet, now, sink);
    }

    /// How many bytes the compiled form takes for entries and what finds them, as far as packets look at it; what was
    /// freed and can be used again is not counted.
    pub fn compiled_bytes(&self) -> usize {
        self.compiler.as_ref().map_or(0, Compiler::bytes)
    }

    /// How many bytes the compiled form's machine code takes, in whole pages; that of actions which no entry has any more
    /// is kept for some time.
    pub fn code_bytes(&self) -> usize {
        self.compiler.as_ref().map_or(0, Compiler::code_bytes)
    }

    /// What the compiler has made of each table that has entries, `with_code` the machine code, too. `None` where the
    /// pipeline is not compiled.
    ///
    /// Cost: a look at each entry.
    pub fn explain(&self, with_code: bool) -> Option<Explanation> {
        let compiler = self.compiler.as_ref()?;
        Some(compiler.explain(&self.tables, with_code))
    }

    /// How a table is searched. `None` where there is no such table, or the pipeline is not compiled.
    pub fn template(&self, table_id: u8) -> Option<TemplateKind> {
        self.compiler.as_ref()?.template(table_id)
    }

    /// How a packet's entry is searched in a table: by its template, and where it was cut by that of the packet's sub-table,
    /// and so on. Empty where there is no such table, or the pipeline is not compiled.
    pub fn templates(&self, table_id: u8, packet: &Packet) -> Vec<TemplateKind> {
        let compiler = self.compiler.as_ref();
        let kinds = compiler.map(|compiler| compiler.templates(table_id, packet));
        kinds.unwrap_or_default()
    }

    /// Why the compiled form of this pipeline has left a frame to the plain one; `None` where it has not.
    pub fn why_plain(&self, frame: Processed<'_>) -> Option<PlainReason> {
        self.compiler.as_ref()?.why_plain(&self.tables, frame)
    }

    /// Has the compiled form follow what has changed in these tables. When it returns, no packet is on its way to an entry
    /// that was removed, and these have counted all that they matched.
    pub(crate) fn follow_changes(&mut self, changed: Range<usize>, removed: &[RemovedEntry]) {
        if let Some(compiler) = &mut self.compiler {
            compiler.follow(&mut self.tables, changed, removed);
        }
    }

    /// Has the compiled form search tables in better ways that have not changed for some time.
    pub(crate) fn settle_compiled(&mut self, now: Duration) {
        if let Some(compiler) = &mut self.compiler {
            compiler.settle(&self.tables, now);
        }
    }

    /// What a table has counted in the compiled form.
    pub(crate) fn compiled_totals(&self, table_id: u8) -> TableTotals {
        let compiler = self.compiler.as_ref();
        let totals = compiler.map(|compiler| compiler.totals(table_id.into()));
        totals.unwrap_or_default()
    }

    /// Leaves all packets to the plain form; entries and tables keep what they have counted.
    fn stop_compiling(&mut self) {
        if let Some(compiler) = self.compiler.take() {
            compiler.end(&self.tables);
        }
    }
}

/// Whether what was refused is machine code, which the interpreter does without.
fn may_interpret(error: &io::Error, config: CompileConfig) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && config.backend == Backend::MachineCode
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.stop_compiling();
    }
}
