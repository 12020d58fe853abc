//! One table's compiled form, as the one thread that changes it has it.
//!
//! Most changes are carried out in place, by one store that packets see or do not see yet. Where the table has to be
//! searched in another way, a form is built beside the old one and shown in its place: packets meet the table as it was
//! or as it is.

mod build;
mod part;
mod routes;

use super::key::Key;
use super::plan::{DIRECT_MAX, Plan};
use super::store::{CellPlace, OldForm, OwnedBody, Store};
use super::table::{Cell, Rule, Template};
use crate::classifier::Rank;
use crate::flow_table::Change;
use crate::{FlowEntry, FlowTable};
use build::{NewCells, build};
use part::{Part, hash_template, part_index};
use routes::Routes;
use std::cmp::Reverse;
use std::io;
use std::ptr::null;
use std::sync::Arc;

/// How many bytes a table may have to be searched without pauses: what the processor's own caches hold of it.
const NEAR_BYTES: usize = 384 << 10;

/// So many changes at once are not carried out one by one: the table is built anew, and so changes as a whole.
const BULK: usize = 64;

/// A table's form.
#[derive(Debug)]
pub(super) struct TableForm {
    /// Its header's place.
    index: usize,
    form: Form,
    /// What packets see; `None` while that is the body that all tables begin with.
    shown: Option<OwnedBody>,
    /// The entry that matches everything. Entries behind it are left out: no packet comes to them.
    default: DefaultEntry,
    /// How many changes there were since the table was left to the plain form.
    since_plain: usize,
}

/// What finds a table's entries.
#[derive(Debug)]
enum Form {
    /// Built anew at each change.
    Direct,
    Hash(Vec<Part>),
    Lpm(Box<Routes>),
    Plain(&'static str),
}

/// Why the plain form may have to do.
const NO_ROOM: &str = "there is no memory left for it";

/// The change cannot be carried out in place.
#[derive(Debug)]
struct NeedsRebuild;

/// The entry that matches everything, if there is one.
type DefaultEntry = Option<(Rank, Arc<FlowEntry>)>;

impl TableForm {
    /// The form of an empty table.
    pub fn new(index: usize) -> Self {
        Self {
            index,
            form: Form::Plain("nothing has been added yet"),
            shown: None,
            default: None,
            since_plain: 0,
        }
    }

    /// Shows packets the table as it is.
    pub fn begin(&mut self, store: &mut Store, table: &FlowTable) {
        self.rebuild(store, table, &[]);
    }

    /// Follows what has changed in the table.
    pub fn follow(&mut self, store: &mut Store, table: &FlowTable, changes: Vec<Change>) {
        for change in &changes {
            if let Change::Replaced {
                old,
                new,
                keeps_counts: true,
                ..
            } = change
            {
                store.inherit(old, new);
            }
        }
        let mut rest = changes.as_slice();
        if rest.len() > BULK {
            return self.rebuild(store, table, rest);
        }
        while let Some((change, behind)) = rest.split_first() {
            if self.apply(store, table, change).is_err() {
                return self.rebuild(store, table, rest);
            }
            rest = behind;
        }
        self.refresh(store, table);
    }

    /// What packets see, and for the plain form, why.
    pub fn template(&self) -> Result<&Template, &'static str> {
        match (&self.form, &self.shown) {
            (Form::Plain(reason), _) => Err(reason),
            (_, Some(shown)) => Ok(&shown.body.template),
            (_, None) => Err("it has not been looked at yet"),
        }
    }

    /// Bytes of what finds its entries, but for what is in the arena.
    pub fn bytes(&self) -> usize {
        match &self.form {
            Form::Hash(parts) => parts.iter().map(|part| part.table.bytes()).sum(),
            Form::Lpm(routes) => routes.trie.bytes_beside_arena(),
            Form::Direct | Form::Plain(_) => 0,
        }
    }

    /// Frees everything: no packet comes any more, or ever finds more than the body that all tables begin with.
    pub fn clear(&mut self, store: &mut Store, table: &FlowTable) {
        self.leave_to_plain(store, table, "the pipeline is gone", &[]);
    }

    fn apply(
        &mut self,
        store: &mut Store,
        table: &FlowTable,
        change: &Change,
    ) -> Result<(), NeedsRebuild> {
        match self.form {
            Form::Direct => return Err(NeedsRebuild),
            Form::Plain(_) => return self.stay_plain(table),
            Form::Hash(_) | Form::Lpm(_) => {}
        }
        let (Change::Added(_, entry)
        | Change::Replaced { new: entry, .. }
        | Change::Removed(_, entry)) = change;
        let key = Key::new(&entry.match_).ok_or(NeedsRebuild)?;
        if key.shape.is_everything() {
            return Err(NeedsRebuild);
        }
        match change {
            Change::Added(rank, entry) => self.add(store, *rank, entry, &key),
            Change::Replaced { old, .. } if old.cell.cell().is_null() => Ok(()),
            Change::Replaced { rank, old, new, .. } => {
                self.replace(store, *rank, (old, new), &key)?;
                retire(store, change, self.words(&key));
                Ok(())
            }
            Change::Removed(rank, entry) => {
                self.remove(store, table, *rank, entry, &key)?;
                retire(store, change, self.words(&key));
                Ok(())
            }
        }
    }

    /// Tries again when the table is small, or has changed as often as it has entries.
    fn stay_plain(&mut self, table: &FlowTable) -> Result<(), NeedsRebuild> {
        self.since_plain += 1;
        let len = table.entries().len();
        match len <= DIRECT_MAX || self.since_plain > len {
            true => Err(NeedsRebuild),
            false => Ok(()),
        }
    }

    fn add(
        &mut self,
        store: &mut Store,
        rank: Rank,
        entry: &Arc<FlowEntry>,
        key: &Key,
    ) -> Result<(), NeedsRebuild> {
        if rank > self.last_rank() {
            return Ok(());
        }
        let shown = self.shown.as_ref();
        match &mut self.form {
            Form::Hash(parts) => {
                let index = part_index(parts, key)?;
                let shown = shown.filter(|shown| shows_part(shown, index));
                parts[index].add(store, rank, entry, key, |part, old, store| {
                    if let Some(shown) = shown {
                        shown.body.parts[index].store(
                            part.table.slots_ptr().cast_mut().cast(),
                            std::sync::atomic::Ordering::Release,
                        );
                    }
                    store.retire(OldForm::Slots(old));
                })
            }
            Form::Lpm(routes) => routes.add(store, rank, entry, key),
            Form::Direct | Form::Plain(_) => Err(NeedsRebuild),
        }
    }

    /// Puts a new cell in the place of an entry's, unless that is hidden.
    fn replace(
        &mut self,
        store: &mut Store,
        rank: Rank,
        (old, new): (&FlowEntry, &Arc<FlowEntry>),
        key: &Key,
    ) -> Result<(), NeedsRebuild> {
        let words = self.words(key);
        if let Form::Hash(parts) = &mut self.form {
            let index = part_index(parts, key)?;
            let found = parts[index].table.find(&store.arena, &key.values);
            if found != Some(store.block_of(old.cell.cell(), words)) {
                return Ok(());
            }
        }
        let place = make_cell(store, rank, new, key, words)?;
        match &mut self.form {
            Form::Hash(parts) => {
                let index = part_index(parts, key)?;
                parts[index]
                    .table
                    .replace(&store.arena, &key.values, place.block);
            }
            Form::Lpm(routes) => {
                routes.replace(store, new, key, place)?;
            }
            Form::Direct | Form::Plain(_) => return Err(NeedsRebuild),
        }
        // SAFETY: the store keeps the cell until it is retired, and clears the link then.
        unsafe { new.cell.set(place.cell) };
        Ok(())
    }

    fn remove(
        &mut self,
        store: &mut Store,
        table: &FlowTable,
        rank: Rank,
        entry: &Arc<FlowEntry>,
        key: &Key,
    ) -> Result<(), NeedsRebuild> {
        if rank > self.last_rank() {
            return Ok(());
        }
        if table.entries().len() <= DIRECT_MAX / 2 {
            return Err(NeedsRebuild);
        }
        let last = self.last_rank();
        match &mut self.form {
            Form::Hash(parts) => {
                let index = part_index(parts, key)?;
                let next = table.first_with(&entry.match_);
                let next = next.filter(|&(rank, _)| rank < last);
                parts[index].remove(store, rank, entry, next, key)
            }
            Form::Lpm(routes) => routes.remove(store, entry, key),
            Form::Direct | Form::Plain(_) => Err(NeedsRebuild),
        }
    }

    /// The rank of what matches everything: no packet comes to entries behind it.
    fn last_rank(&self) -> Rank {
        let default = self.default.as_ref();
        default.map_or(Rank::LAST, |&(rank, _)| rank)
    }

    /// How many words stand before the cell of an entry.
    fn words(&self, key: &Key) -> usize {
        match self.form {
            Form::Hash(_) if !key.shape.is_everything() => key.values.len(),
            _ => 0,
        }
    }

    /// Shows another body where the one that is shown is not how the table should be searched any more.
    fn refresh(&mut self, store: &mut Store, table: &FlowTable) {
        let mut empty = Vec::new();
        if let Form::Hash(parts) = &mut self.form {
            empty.extend(parts.extract_if(.., |part| part.priorities.is_empty()));
            parts.sort_by_key(|part| Reverse(part.highest()));
        }
        let (template, pointers) = match &self.form {
            Form::Hash(parts) => hash_template(parts, NEAR_BYTES),
            Form::Lpm(routes) => routes.template(NEAR_BYTES),
            Form::Direct | Form::Plain(_) => return,
        };
        let is_shown = match (
            self.shown.as_ref().map(|shown| &shown.body.template),
            &template,
        ) {
            (Some(Template::Hash(shown)), Template::Hash(now)) => shown == now,
            (Some(Template::Lpm(shown)), Template::Lpm(now)) => shown == now,
            _ => false,
        };
        if !is_shown {
            let default = self.default_cell();
            match store.make_body(template, default, &pointers) {
                Ok(body) => self.show(store, body),
                Err(_) => self.leave_to_plain(store, table, NO_ROOM, &[]),
            }
        }
        for part in empty {
            store.retire(OldForm::Hash(part.table));
        }
    }

    fn default_cell(&self) -> *const Cell {
        let default = self.default.as_ref();
        default.map_or(null(), |(_, entry)| entry.cell.cell().cast_const())
    }

    fn show(&mut self, store: &mut Store, body: OwnedBody) {
        store.show(self.index, &body.body);
        if let Some(old) = self.shown.replace(body) {
            store.retire(OldForm::Body(old));
        }
    }

    /// The machine code that searches the table, if there is any.
    pub fn listing(&self) -> Option<String> {
        self.shown.as_ref()?.runner.listing()
    }

    /// How many bytes what finds the entries of each part takes, without the entries.
    pub fn part_bytes(&self) -> Vec<usize> {
        match &self.form {
            Form::Hash(parts) => parts.iter().map(|part| part.table.bytes()).collect(),
            Form::Lpm(routes) => vec![routes.trie.search_bytes()],
            Form::Direct | Form::Plain(_) => Vec::new(),
        }
    }

    /// Builds the form that fits the table as it is now. `changes` have been made to the table, but not followed here.
    fn rebuild(&mut self, store: &mut Store, table: &FlowTable, changes: &[Change]) {
        let plan = Plan::new(table);
        let mut cells = Vec::new();
        let built = build(store, plan, &mut cells).and_then(|(form, default)| {
            match form.body(store, default.as_ref(), &cells) {
                Ok(body) => Ok((form, default, body)),
                Err(_) => {
                    form.forget(store);
                    Err(NO_ROOM)
                }
            }
        });
        match built {
            Ok((form, default, body)) => {
                store.show(self.index, &body.body);
                let old_body = self.shown.replace(body);
                self.retire_old(store, table, old_body, changes);
                (self.form, self.default) = (form, default);
                for (entry, place) in cells {
                    // SAFETY: the store keeps the cell until it is retired, and clears the link then.
                    unsafe { entry.cell.set(place.cell) };
                }
            }
            Err(reason) => {
                for (_, place) in cells {
                    store.forget_cell(place);
                }
                self.leave_to_plain(store, table, reason, changes);
            }
        }
    }

    /// Has packets take the plain way.
    fn leave_to_plain(
        &mut self,
        store: &mut Store,
        table: &FlowTable,
        reason: &'static str,
        changes: &[Change],
    ) {
        store.show(self.index, &store.compiled.plain);
        let old_body = self.shown.take();
        self.retire_old(store, table, old_body, changes);
        (self.form, self.default) = (Form::Plain(reason), None);
        self.since_plain = 0;
    }

    /// Retires what packets do not see any more: the cells of all entries, and what found them.
    fn retire_old(
        &mut self,
        store: &mut Store,
        table: &FlowTable,
        old_body: Option<OwnedBody>,
        changes: &[Change],
    ) {
        for change in changes {
            let (Change::Replaced { old, .. } | Change::Removed(_, old)) = change else {
                continue;
            };
            let words = Key::new(&old.match_).map_or(0, |key| self.words(&key));
            retire(store, change, words);
        }
        for entry in table.entries().filter(|entry| !entry.cell.cell().is_null()) {
            let words = Key::new(&entry.match_).map_or(0, |key| self.words(&key));
            store.retire_cell(entry, words, Some(entry.clone()));
        }
        match std::mem::replace(&mut self.form, Form::Direct) {
            Form::Hash(parts) => {
                let tables = parts.into_iter().map(|part| part.table);
                tables.for_each(|table| store.retire(OldForm::Hash(table)));
            }
            Form::Lpm(routes) => store.retire(OldForm::Trie(Box::new(routes.trie))),
            Form::Direct | Form::Plain(_) => {}
        }
        if let Some(body) = old_body {
            store.retire(OldForm::Body(body));
        }
    }
}

impl Form {
    /// What packets are to see of it, once its cells have been made.
    fn body(
        &self,
        store: &mut Store,
        default: Option<&(Rank, Arc<FlowEntry>)>,
        cells: &NewCells,
    ) -> io::Result<OwnedBody> {
        let (template, pointers) = match self {
            Self::Direct => (direct_template(cells), Vec::new()),
            Self::Hash(parts) => hash_template(parts, NEAR_BYTES),
            Self::Lpm(routes) => routes.template(NEAR_BYTES),
            Self::Plain(_) => (Template::Plain, Vec::new()),
        };
        // The cell of what matches everything is made last.
        let default = default
            .and(cells.last())
            .map_or(null(), |(_, place)| place.cell.cast_const());
        store.make_body(template, default, &pointers)
    }

    /// Frees it, but for its cells: packets never saw it.
    fn forget(self, store: &mut Store) {
        if let Self::Lpm(routes) = self {
            routes.trie.free(&mut store.arena);
        }
    }
}

/// A cell for an entry, behind so many words of its key.
fn make_cell(
    store: &mut Store,
    rank: Rank,
    entry: &Arc<FlowEntry>,
    key: &Key,
    words: usize,
) -> Result<CellPlace, NeedsRebuild> {
    let values = &key.values[..words];
    let place = store.make_cell(entry, rank.to_bits(), key.shape.require, values);
    place.ok_or(NeedsRebuild)
}

/// Retires the cell of the entry that a change has taken out.
fn retire(store: &mut Store, change: &Change, words: usize) {
    match change {
        Change::Replaced {
            old,
            new,
            keeps_counts,
            ..
        } => {
            let last_used_ns = old.cell.counts().last_used_ns;
            new.counters.use_at(last_used_ns);
            store.retire_cell(old, words, keeps_counts.then(|| new.clone()));
        }
        Change::Removed(_, entry) => store.retire_cell(entry, words, Some(entry.clone())),
        Change::Added(..) => {}
    }
}

fn shows_part(shown: &OwnedBody, index: usize) -> bool {
    matches!(&shown.body.template, Template::Hash(parts) if index < parts.len())
}

fn direct_template(cells: &NewCells) -> Template {
    let rules = cells.iter().filter_map(|(entry, place)| {
        let key = Key::new(&entry.match_)?;
        Some(Rule {
            shape: key.shape,
            values: key.values,
            cell: place.cell,
        })
    });
    Template::Direct(rules.collect())
}
