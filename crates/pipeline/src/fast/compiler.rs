//! The compiled form of a pipeline, as the pipeline itself has it, and what follows its changes.

#[cfg(test)]
mod tests;

use super::Backend;
use super::arena::Arena;
use super::compiled::{Compiled, TableTotals};
use super::form::TableForm;
use super::store::Store;
use crate::{FlowTable, Pipeline, RemovedEntry};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// How a pipeline is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileConfig {
    /// What carries it out.
    pub backend: Backend,
    /// Whether several threads will process packets at a time: counting costs more then.
    pub is_shared: bool,
    /// How many bytes entries and what finds them may take, 16 GiB at most. Tables for which there is no room are left
    /// to the plain form.
    pub max_bytes: usize,
    /// Whether tables are cut into pieces where that pays; without, each is searched as a whole.
    pub decomposes: bool,
}

impl Default for CompileConfig {
    /// The fastest for one thread; 4 GiB at most.
    fn default() -> Self {
        Self {
            backend: Backend::default(),
            is_shared: false,
            max_bytes: 4 << 30,
            decomposes: true,
        }
    }
}

/// What keeps the compiled form the same as the tables.
#[derive(Debug)]
pub(crate) struct Compiler {
    pub(super) store: Store,
    pub(super) forms: Vec<TableForm>,
}

// SAFETY: the pointers in it lead to what its store and `Compiled` own, which does not care what thread that is done in.
unsafe impl Send for Compiler {}
// SAFETY: nothing changes through a shared reference but atomic counters; changes need the pipeline to themselves.
unsafe impl Sync for Compiler {}

impl Pipeline {
    /// Compiles the tables as they are, and from now on follows what changes them: every change is in effect for
    /// packets when the call that made it returns.
    ///
    /// Compiling again replaces the form there was: its readers leave every frame to the plain form from then on.
    ///
    /// # Errors
    /// The system's, if it has no memory for it; then all is as it was.
    pub fn compile(&mut self, config: CompileConfig) -> io::Result<Arc<Compiled>> {
        let arena = Arena::new(config.max_bytes)?;
        let store = Store::new(arena, config)?;
        // Not before: where there is no memory, the form there was goes on.
        self.stop_compiling();
        let compiled = store.compiled.clone();
        let forms = (0..self.tables.len()).map(TableForm::new).collect();
        let mut compiler = Compiler { store, forms };
        for (form, table) in compiler.forms.iter_mut().zip(&mut self.tables) {
            table.keep_changes();
            form.begin(&mut compiler.store, table);
        }
        self.compiler = Some(compiler);
        Ok(compiled)
    }

    /// How many bytes the compiled form takes for entries and what finds them, as far as packets look at it; what was
    /// freed and can be used again is not counted.
    pub fn compiled_bytes(&self) -> usize {
        let bytes = |compiler: &Compiler| {
            let forms = compiler.forms.iter().map(TableForm::bytes);
            compiler.store.arena.used_bytes() + forms.sum::<usize>()
        };
        self.compiler.as_ref().map_or(0, bytes)
    }

    /// How many bytes the compiled form's machine code takes, in whole pages; that of actions which no entry has any more
    /// is kept for some time.
    pub fn code_bytes(&self) -> usize {
        let compiler = self.compiler.as_ref();
        compiler.map_or(0, |compiler| compiler.store.code_bytes())
    }

    /// Leaves all packets to the plain form; entries and tables keep what they have counted.
    fn stop_compiling(&mut self) {
        if let Some(mut compiler) = self.compiler.take() {
            for (form, table) in compiler.forms.iter_mut().zip(&self.tables) {
                form.clear(&mut compiler.store, table);
            }
            compiler.store.settle();
            for (index, table) in self.tables.iter().enumerate() {
                let totals = compiler.store.compiled.totals(index);
                table.lookups.fetch_add(totals.lookups(), Relaxed);
                table.matches.fetch_add(totals.matches, Relaxed);
            }
        }
    }

    /// Has the compiled form follow what has changed in these tables. When it returns, no packet is on its way to an entry
    /// that was removed, and these have counted all that they matched.
    pub(crate) fn follow_changes(&mut self, tables: Range<usize>, removed: &[RemovedEntry]) {
        let Some(compiler) = &mut self.compiler else {
            return;
        };
        for index in tables {
            let changes = self.tables[index].take_changes();
            if !changes.is_empty() {
                compiler.follow(index, &self.tables[index], changes);
            }
        }
        match removed.is_empty() {
            true => compiler.store.collect(),
            false => compiler.store.settle(),
        }
    }

    /// What a table has counted in the compiled form.
    pub(crate) fn compiled_totals(&self, table_id: u8) -> TableTotals {
        let compiler = self.compiler.as_ref();
        let totals = compiler.map(|compiler| compiler.store.compiled.totals(table_id.into()));
        totals.unwrap_or_default()
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.stop_compiling();
    }
}

impl Compiler {
    fn follow(&mut self, index: usize, table: &FlowTable, changes: Vec<crate::flow_table::Change>) {
        self.forms[index].follow(&mut self.store, table, changes);
    }
}
