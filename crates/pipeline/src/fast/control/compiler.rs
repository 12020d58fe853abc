//! The compiler, which keeps the compiled form of a pipeline up to date with its tables.

#[cfg(test)]
mod tests;

use super::config::CompileConfig;
use super::form::TableForm;
use super::search::{Progress, Search};
use super::store::Store;
use super::translate::passes_state_on;
use crate::fast::datapath::compiled::{Compiled, TableTotals};
use crate::fast::memory::arena::Arena;
use crate::flow_table::Change;
use crate::{Backend, Bucket, FlowTable, Groups, Meters, RemovedEntry};
use std::io;
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The compiled form of all tables of a pipeline, for the thread that changes it.
#[derive(Debug)]
pub(crate) struct Compiler {
    pub(super) store: Store,
    pub(super) forms: Vec<TableForm>,
    config: CompileConfig,
    /// Whether machine code was requested, but the system refused memory for it.
    pub(super) is_code_refused: bool,
    /// Changes of tables that the compiled form has not followed yet.
    changes: Vec<(usize, Vec<Change>)>,
    /// Whether the changes removed entries that request a notification.
    removes: bool,
    /// The search in progress for a table's best structure.
    search: Option<Search>,
}

// SAFETY: its pointers refer to data of its store and `Compiled`, which may be used in any thread.
unsafe impl Send for Compiler {}

impl Compiler {
    /// Creates a compiler for `tables` tables, which [`Compiler::begin`] compiles. If machine code is requested but not
    /// permitted, it compiles for the interpreter.
    ///
    /// # Errors
    /// The system's error if there is not enough memory.
    pub fn new(tables: usize, config: CompileConfig) -> io::Result<Self> {
        match Self::with(tables, config) {
            Err(error)
                if error.kind() == io::ErrorKind::PermissionDenied
                    && config.backend == Backend::MachineCode =>
            {
                Self::interpreting(tables, config)
            }
            outcome => outcome,
        }
    }

    /// Creates a compiler for the interpreter, after machine code was refused.
    fn interpreting(tables: usize, config: CompileConfig) -> io::Result<Self> {
        let config = CompileConfig {
            backend: Backend::Interpreter,
            ..config
        };
        Ok(Self {
            is_code_refused: true,
            ..Self::with(tables, config)?
        })
    }

    fn with(tables: usize, config: CompileConfig) -> io::Result<Self> {
        let arena = Arena::new(config.max_bytes)?;
        Ok(Self {
            store: Store::new(arena, config)?,
            forms: (0..tables).map(TableForm::new).collect(),
            config,
            is_code_refused: false,
            changes: Vec::new(),
            removes: false,
            search: None,
        })
    }

    /// Compiles the tables, and makes them record their changes.
    pub fn begin(&mut self, tables: &mut [FlowTable], groups: &Groups) {
        tables.iter_mut().for_each(FlowTable::keep_changes);
        self.compile(tables, groups);
    }

    fn compile(&mut self, tables: &[FlowTable], groups: &Groups) {
        let entries = || tables.iter().flat_map(FlowTable::entries);
        let mut carries_state = entries().map(|entry| passes_state_on(&entry.instructions));
        self.store.carries_state = carries_state.any(|passes| passes);
        for (form, table) in self.forms.iter_mut().zip(tables) {
            form.begin(&mut self.store, table);
        }
        self.continue_without_code(tables, groups);
    }

    /// Compiles all tables for the interpreter, after memory for machine code was refused, which leaves a table to the plain
    /// form. Readers find the new form automatically. If there is not enough memory, nothing changes.
    fn continue_without_code(&mut self, tables: &[FlowTable], groups: &Groups) {
        if !self.store.is_code_refused() {
            return;
        }
        let Ok(next) = Self::interpreting(self.forms.len(), self.config) else {
            return;
        };
        let before = mem::replace(self, next);
        let replaced = before.compiled().clone();
        before.end(tables, groups);
        self.compile(tables, groups);
        replaced.replace_by(self.compiled());
    }

    /// Returns the state that readers share.
    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.store.compiled
    }

    /// Returns the memory of entries and search structures in use, in bytes.
    pub fn bytes(&self) -> usize {
        let forms = self.forms.iter().map(TableForm::bytes);
        self.store.arena.used_bytes() + forms.sum::<usize>()
    }

    /// Returns the size of machine code in bytes, in whole pages.
    pub fn code_bytes(&self) -> usize {
        self.store.code_bytes()
    }

    /// Collects the changes of these tables, to follow them later.
    pub fn take_changes(
        &mut self,
        tables: &mut [FlowTable],
        changed: Range<usize>,
        removed: &[RemovedEntry],
    ) {
        for index in changed {
            let changes = tables[index].take_changes();
            if !changes.is_empty() {
                self.changes.push((index, changes));
            }
        }
        self.removes |= !removed.is_empty();
    }

    /// Follows the collected changes. Afterwards no packet can use a removed entry, and the counters of removed entries are
    /// final.
    pub fn follow(&mut self, tables: &[FlowTable], groups: &Groups) {
        if !self.store.carries_state && self.changes.iter().any(|(_, changes)| carry_state(changes))
        {
            self.follow_with_state(tables);
        }
        for (index, changes) in mem::take(&mut self.changes) {
            self.forms[index].follow(&mut self.store, &tables[index], changes);
        }
        match mem::take(&mut self.removes) {
            true => self.store.settle(),
            false => self.store.collect(),
        }
        self.continue_without_code(tables, groups);
    }

    /// Follows the changes by which packets bring action sets or queues to tables for the first time. All tables are rebuilt,
    /// the last one first, so that no packet brings any before later tables expect it.
    fn follow_with_state(&mut self, tables: &[FlowTable]) {
        self.store.carries_state = true;
        let mut changes: Vec<_> = tables.iter().map(|_| Vec::new()).collect();
        for (index, more) in mem::take(&mut self.changes) {
            changes[index].extend(more);
        }
        let forms = self.forms.iter_mut().zip(tables).zip(changes);
        for ((form, table), changes) in forms.rev() {
            form.follow_anew(&mut self.store, table, changes);
        }
    }

    /// Notes that meters were added, modified or deleted.
    pub fn note_meters(&mut self, meter_ids: impl Iterator<Item = u32>) {
        meter_ids.for_each(|meter_id| self.store.meters.note(meter_id));
    }

    /// Updates the meters of flow records. Until then, packets for new meters are left to the plain form.
    pub fn follow_meters(&mut self, meters: &Meters) {
        self.store.refresh_meters(meters);
    }

    /// Notes that a group was added, modified or deleted; `None` means that all were deleted.
    pub fn note_group(&mut self, group_id: Option<u32>, groups: &Groups) {
        self.store.groups.note(group_id, groups);
    }

    /// Updates the groups of flow records. Until then, packets for new groups are left to the plain form.
    pub fn follow_groups(&mut self, groups: &Groups, is_live: &dyn Fn(&Bucket) -> bool) {
        self.store.refresh_groups(groups, is_live);
    }

    /// Updates the liveness of groups' buckets.
    pub fn follow_liveness(&mut self, groups: &Groups, is_live: &dyn Fn(&Bucket) -> bool) {
        self.store.groups.refresh_liveness(groups, is_live);
    }

    /// Improves the search of one table that has not changed for some time, if there is one. It is only one per call, since
    /// this needs much time.
    pub fn settle(&mut self, tables: &[FlowTable], groups: &Groups, now: Duration) {
        self.look_for_better(tables, now);
        self.continue_without_code(tables, groups);
    }

    fn look_for_better(&mut self, tables: &[FlowTable], now: Duration) {
        if let Some(search) = self.search.take() {
            return self.go_on(search, tables);
        }
        let is_due = |&index: &usize| self.forms[index].is_due(&tables[index], now);
        let Some(index) = (0..tables.len()).find(is_due) else {
            return;
        };
        let (form, table) = (&mut self.forms[index], &tables[index]);
        match form.begin_search(&self.store, table, now) {
            Some(search) => self.go_on(search, tables),
            None => form.settle(&mut self.store, table, now),
        }
    }

    /// Continues a search for a table's best structure, and applies its result.
    fn go_on(&mut self, search: Search, tables: &[FlowTable]) {
        let (index, since) = (search.index, search.since);
        let (form, table) = (&mut self.forms[index], &tables[index]);
        match search.go_on(table) {
            Progress::Goes(search) => self.search = Some(search),
            Progress::Ends(found) => form.take_over(&mut self.store, table, found, since),
            Progress::Fails => {}
        }
    }

    /// Leaves all packets to the plain form, and returns the counts to entries, groups and tables.
    pub fn end(mut self, tables: &[FlowTable], groups: &Groups) {
        for (form, table) in self.forms.iter_mut().zip(tables) {
            form.clear(&mut self.store, table);
        }
        self.store.settle();
        self.store.groups.end(groups);
        for (index, table) in tables.iter().enumerate() {
            let totals = self.totals(index);
            table.lookups.fetch_add(totals.lookups(), Relaxed);
            table.matches.fetch_add(totals.matches, Relaxed);
        }
    }

    /// Returns the counts of a table in the compiled form.
    pub fn totals(&self, index: usize) -> TableTotals {
        self.store.compiled.totals(index)
    }
}

/// Returns `true` if a change adds an entry with an action set or a queue for the next table.
fn carry_state(changes: &[Change]) -> bool {
    changes.iter().any(|change| match change {
        Change::Added(_, entry) | Change::Replaced { new: entry, .. } => {
            passes_state_on(&entry.instructions)
        }
        Change::Removed(..) => false,
    })
}
