//! The compiled form of one table, for the thread that changes it.
//!
//! Most changes are made in place, by one store. If the table needs another structure, a new form is built and then
//! published in place of the old one: packets see either the old or the new table.
//!
//! Looking for a better cut inspects all entries. So it needs half as many changes as there are entries since the last time,
//! and twice as many after an attempt in vain, unless the table has doubled. A table that cannot keep its sub-tables until
//! then is searched as a whole. After the last change ([`QUIET`]), everything is inspected once more, so a table's final
//! form does not depend on the order of its changes.
//!
//! A table of more than [`PLANNED_AT_ONCE`] entries is inspected only when time passes, and not again for some time: no
//! change waits for it, and a large change in steps does not trigger it repeatedly. With a separate thread ([`Search`]), this
//! applies to all but the smallest tables, and the changing thread only applies the result.

mod build;
mod merged;
mod part;
mod records;
mod routes;
mod structure;
mod sub_tables;

use super::choice::Effort;
use super::decompose::DIRECT_MAX;
use super::match_key::Key;
use super::plan::Plan;
use super::planned::Planned;
use super::record_place::RecordPlace;
use super::search::{Found, Search};
use super::store::{OldForm, OwnedBody, Store, record_of};
use crate::classifier::Rank;
use crate::fast::datapath::table::{FlowRecord, Rule, Template};
use crate::fast::memory::arena::Ref;
use crate::fast::memory::hash_table::{HashTable, SlotArray};
use crate::flow_table::Change;
use crate::{FlowEntry, FlowTable};
use build::build;
pub(super) use merged::MergedTuples;
use part::Part;
use records::{forget_records, inherit, make_record, retire};
use routes::Routes;
use std::mem;
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::Ordering::Release;
use std::time::Duration;
pub(super) use sub_tables::{SubTable, SubTables};

/// The maximum size of a table that is searched without pauses, in bytes: it fits into the processor's caches.
const NEAR_BYTES: usize = 384 << 10;

/// The maximum number of simultaneous changes that are made one by one. If there are more, and they are at least one in
/// [`BULK_SHARE`] of the entries, the table is rebuilt, and changes as a whole.
const BULK: usize = 64;
const BULK_SHARE: usize = 4;

/// A table that has grown beyond this number of entries is not cut before its changes end, since each sub-table needs code.
const CUT_WHILE_GROWING: usize = 128;

/// The maximum number of entries that are inspected during a change, in a few milliseconds.
const PLANNED_AT_ONCE: usize = 1024;

/// Like [`PLANNED_AT_ONCE`], if there is a separate thread.
const PLANNED_AT_ONCE_BESIDE_THREAD: usize = 64;

/// The time without changes after which a table is inspected again.
const QUIET: Duration = Duration::from_millis(500);

/// The minimum time since the last inspection, per entry; an inspection needs some microseconds per entry.
const REST_OF_ENTRY: Duration = Duration::from_micros(200);

/// A table's form.
#[derive(Debug)]
pub(super) struct TableForm {
    /// The index of its header.
    index: usize,
    form: Form,
    /// The published body; `None` for the body that all tables have initially.
    shown: Option<OwnedBody>,
    /// The entry that matches everything. Entries after it are omitted, since no packet reaches them.
    default: DefaultEntry,
    /// The number of changes until the whole table is inspected again, for a cut, or for compiling it again.
    until_plan: usize,
    /// The value of `until_plan` after the last inspection.
    patience: usize,
    /// The number of entries at the last inspection.
    planned_entries: usize,
    changes: usize,
    /// The number of changes, and the time when [`TableForm::is_due`] first saw this number.
    quiet: Option<(usize, Duration)>,
    /// The number of entries when [`TableForm::is_due`] was last called.
    seen_entries: usize,
    /// The earliest time of the next inspection.
    rests_until: Duration,
}

/// The search structure of a table or sub-table.
#[derive(Debug)]
enum Form {
    /// Rebuilt at each change.
    Direct,
    Hash(Vec<Part>),
    Lpm(Box<Routes>),
    Cut(Box<SubTables>),
    Merged(Box<MergedTuples>),
    Plain(&'static str),
}

/// An entry and its flow record.
#[derive(Clone, Copy, Debug)]
struct Member<'a> {
    planned: &'a Planned,
    place: RecordPlace,
}

/// The next entry with an equal match, if any: its rank, and the block of its flow record.
type Next = Option<(Rank, Ref)>;

/// A reason why the plain form may be needed.
const NO_ROOM: &str = "there is no memory left for it";

/// The change cannot be made in place.
#[derive(Debug)]
struct NeedsRebuild;

/// The entry that matches everything, if any.
type DefaultEntry = Option<(Rank, Arc<FlowEntry>)>;

impl TableForm {
    /// Creates the form of an empty table.
    pub fn new(index: usize) -> Self {
        Self {
            index,
            form: Form::Plain("nothing has been added yet"),
            shown: None,
            default: None,
            until_plan: 0,
            patience: 0,
            planned_entries: 0,
            changes: 0,
            seen_entries: 0,
            quiet: None,
            rests_until: Duration::ZERO,
        }
    }

    /// Compiles and publishes the current table.
    pub fn begin(&mut self, store: &mut Store, table: &FlowTable) {
        let effort = self.effort(store, table);
        self.rebuild_with(store, table, &[], effort);
    }

    /// Follows changes of the table by rebuilding it.
    pub fn follow_anew(&mut self, store: &mut Store, table: &FlowTable, changes: Vec<Change>) {
        inherit(store, &changes);
        self.changes += changes.len();
        self.rebuild(store, table, &changes);
    }

    /// Follows changes of the table.
    pub fn follow(&mut self, store: &mut Store, table: &FlowTable, changes: Vec<Change>) {
        inherit(store, &changes);
        let entries = table.entries().len();
        self.changes += changes.len();
        self.until_plan = match entries >= 2 * self.planned_entries {
            true => 0,
            false => self.until_plan.saturating_sub(changes.len()),
        };
        let mut rest = changes.as_slice();
        if rest.len() > BULK.max(entries / BULK_SHARE) {
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

    /// Returns `true` if the whole table should be inspected again because changes have ended, or were many, to search it as if
    /// all entries had been added together.
    pub fn is_due(&mut self, table: &FlowTable, now: Duration) -> bool {
        if self.changes == 0 || !self.may_be_better() {
            return false;
        }
        let entries = table.entries().len();
        let seen = mem::replace(&mut self.seen_entries, entries);
        let is_loaded = entries > seen + seen / 32;
        let is_due = self.is_quiet(now) || self.until_plan == 0 && !is_loaded;
        is_due && now >= self.rests_until
    }

    /// Inspects the whole table again, and builds the best structure.
    pub fn settle(&mut self, store: &mut Store, table: &FlowTable, now: Duration) {
        let entries = table.entries().len();
        (self.planned_entries, self.patience, self.until_plan) = (entries, 0, 0);
        self.rest(table, now);
        let effort = self.effort(store, table);
        self.rebuild_with(store, table, &[], effort);
    }

    /// Starts an inspection of the whole table in a separate thread; returns `None` if it is too short to need one.
    pub fn begin_search(
        &mut self,
        store: &Store,
        table: &FlowTable,
        now: Duration,
    ) -> Option<Search> {
        if !is_for_thread(store, table) {
            return None;
        }
        self.rest(table, now);
        let effort = match store.decomposes {
            true => Effort::All,
            false => Effort::Uncut,
        };
        Some(Search::new(self.index, self.changes, effort))
    }

    /// Applies the thread's choice for the entries after `since` changes, unless the table has changed too much since then.
    pub fn take_over(&mut self, store: &mut Store, table: &FlowTable, found: Found, since: usize) {
        let entries = table.entries().len();
        let missed = self.changes.saturating_sub(since);
        self.planned_entries = entries;
        if missed > BULK.max(entries / BULK_SHARE) {
            // The table changes faster than it can be inspected: require more changes each time.
            self.patience = entries.max(2 * self.patience);
        } else {
            if let Ok(plan) = found.and_then(|plan| plan.for_present(table)) {
                self.build_as(store, table, &[], Ok(plan));
            }
            self.patience = entries / 2;
            (self.changes, self.quiet) = (missed, None);
        }
        self.until_plan = self.patience;
    }

    fn rest(&mut self, table: &FlowTable, now: Duration) {
        self.rests_until = now + REST_OF_ENTRY * table.entries().len() as u32;
    }

    /// Returns `true` if no change has been observed for some time.
    fn is_quiet(&mut self, now: Duration) -> bool {
        match self.quiet {
            Some((changes, since)) if changes == self.changes => now >= since + QUIET,
            _ => {
                self.quiet = Some((self.changes, now));
                false
            }
        }
    }

    /// Returns the published template, or the reason for the plain form.
    pub fn template(&self) -> Result<&Template, &'static str> {
        match (&self.form, &self.shown) {
            (Form::Plain(reason), _) => Err(reason),
            (_, Some(shown)) => Ok(&shown.body.template),
            (_, None) => Err("it has not been looked at yet"),
        }
    }

    /// Returns the size of its search structures in bytes, without those in the arena.
    pub fn bytes(&self) -> usize {
        self.form.bytes()
    }

    /// Frees everything. No packet may reach the table any longer, or find more than the initial body.
    pub fn clear(&mut self, store: &mut Store, table: &FlowTable) {
        self.leave_to_plain(store, table, "the pipeline is gone", &[]);
    }

    fn apply(
        &mut self,
        store: &mut Store,
        table: &FlowTable,
        change: &Change,
    ) -> Result<(), NeedsRebuild> {
        match &self.form {
            Form::Direct => return Err(NeedsRebuild),
            Form::Plain(_) => return self.stay_plain(store, table),
            Form::Hash(_) | Form::Lpm(_) | Form::Cut(_) | Form::Merged(_) => {
                self.stay(store, table)?
            }
        }
        let (Change::Added(rank, entry)
        | Change::Replaced {
            rank, new: entry, ..
        }
        | Change::Removed(rank, entry)) = change;
        let planned = Planned {
            rank: *rank,
            entry: entry.clone(),
            key: Key::new(&entry.match_).ok_or(NeedsRebuild)?,
        };
        if *rank > self.last_rank() {
            return Ok(());
        }
        if planned.key.mask.is_everything() {
            return self.follow_default(store, table, change, &planned);
        }
        let words = self.words(&planned.key);
        match change {
            Change::Added(..) => self.add(store, &planned),
            Change::Replaced { old, .. } => {
                self.replace(store, old, &planned)?;
                retire(store, change, words);
                Ok(())
            }
            Change::Removed(..) => {
                self.remove(store, table, &planned)?;
                retire(store, change, words);
                Ok(())
            }
        }
    }

    /// Follows the addition, change or removal of the entry that matches everything, if nothing else changes: if there are no
    /// entries after it, and no sub-table refers to it.
    fn follow_default(
        &mut self,
        store: &mut Store,
        table: &FlowTable,
        change: &Change,
        planned: &Planned,
    ) -> Result<(), NeedsRebuild> {
        let is_last = table.ranked_behind(Some(planned.rank)).next().is_none();
        let is_small = table.entries().len() <= DIRECT_MAX / 2;
        if !is_last || is_small || matches!(self.form, Form::Cut(_)) {
            return Err(NeedsRebuild);
        }
        let (record, default) = match change {
            Change::Removed(..) => (null(), None),
            Change::Added(..) | Change::Replaced { .. } => {
                let place = self.new_record(store, planned)?;
                let default = (planned.rank, planned.entry.clone());
                (place.record.cast_const(), Some(default))
            }
        };
        self.show_anew(store, record)?;
        self.default = default;
        retire(store, change, 0);
        Ok(())
    }

    /// Publishes a new body for the current form. `default` is the flow record of the entry that matches everything, or null.
    fn show_anew(
        &mut self,
        store: &mut Store,
        default: *const FlowRecord,
    ) -> Result<(), NeedsRebuild> {
        let mut empty = self.form.tidy();
        let shown = match self.form.template(NEAR_BYTES) {
            Some((template, pointers)) => store.make_body(template, default, &pointers),
            None => return Ok(()),
        };
        let Ok(body) = shown else {
            self.form.untidy(&mut empty);
            return Err(NeedsRebuild);
        };
        self.show(store, body);
        for part in empty {
            store.retire(OldForm::Hash(part.table));
        }
        Ok(())
    }

    /// Leaves the table in the plain form, unless it is small, or it is time for another attempt.
    fn stay_plain(&mut self, store: &Store, table: &FlowTable) -> Result<(), NeedsRebuild> {
        match table.entries().len() <= DIRECT_MAX || self.is_to_be_planned(store, table) {
            true => Err(NeedsRebuild),
            false => Ok(()),
        }
    }

    /// Keeps the form, unless it is time to look for a better cut.
    fn stay(&self, store: &Store, table: &FlowTable) -> Result<(), NeedsRebuild> {
        match self.may_be_better() && self.is_to_be_planned(store, table) {
            true => Err(NeedsRebuild),
            false => Ok(()),
        }
    }

    fn is_to_be_planned(&self, store: &Store, table: &FlowTable) -> bool {
        let entries = table.entries().len();
        self.until_plan == 0 && entries <= PLANNED_AT_ONCE && !is_for_thread(store, table)
    }

    /// Returns `true` if another form may be better after changes that this one could follow.
    fn may_be_better(&self) -> bool {
        match &self.form {
            Form::Hash(parts) => parts.len() > 1,
            Form::Cut(_) | Form::Merged(_) | Form::Plain(_) => true,
            Form::Direct | Form::Lpm(_) => false,
        }
    }

    fn add(&mut self, store: &mut Store, planned: &Planned) -> Result<(), NeedsRebuild> {
        let place = self.new_record(store, planned)?;
        self.form
            .put(store, &Member { planned, place }, self.shown.as_ref())
    }

    /// Replaces an entry's flow record by a new one.
    fn replace(
        &mut self,
        store: &mut Store,
        old: &FlowEntry,
        planned: &Planned,
    ) -> Result<(), NeedsRebuild> {
        let old = store.place_of(old, self.words(&planned.key));
        let old = old.ok_or(NeedsRebuild)?;
        let place = self.new_record(store, planned)?;
        self.form.replace(store, old, &Member { planned, place })
    }

    fn remove(
        &mut self,
        store: &mut Store,
        table: &FlowTable,
        planned: &Planned,
    ) -> Result<(), NeedsRebuild> {
        if table.entries().len() <= DIRECT_MAX / 2 {
            return Err(NeedsRebuild);
        }
        let words = self.words(&planned.key);
        let place = store.place_of(&planned.entry, words).ok_or(NeedsRebuild)?;
        let next = table.first_with(&planned.entry.match_);
        let next = match next.filter(|&(rank, _)| rank < self.last_rank()) {
            Some((rank, next)) => {
                Some((rank, store.place_of(next, words).ok_or(NeedsRebuild)?.block))
            }
            None => None,
        };
        let member = Member { planned, place };
        self.form.remove(store, &member, next)
    }

    /// Creates a flow record for an entry, and links it to the entry's counters.
    fn new_record(
        &self,
        store: &mut Store,
        planned: &Planned,
    ) -> Result<RecordPlace, NeedsRebuild> {
        let words = self.words(&planned.key);
        if matches!(self.form, Form::Cut(_)) && planned.key.values.len() > words {
            return Err(NeedsRebuild);
        }
        let place = make_record(store, planned, words)?;
        // SAFETY: the store keeps the flow record until it is retired, and then clears the link.
        unsafe { store.link(&place, &planned.entry) };
        Ok(place)
    }

    /// Returns the rank of the entry that matches everything: no packet reaches entries after it.
    fn last_rank(&self) -> Rank {
        let default = self.default.as_ref();
        default.map_or(Rank::LAST, |&(rank, _)| rank)
    }

    /// Returns the number of words before an entry's flow record.
    fn words(&self, key: &Key) -> usize {
        match &self.form {
            Form::Hash(_) if !key.mask.is_everything() => key.values.len(),
            Form::Cut(sub_tables) if !key.mask.is_everything() => sub_tables.room(),
            _ => 0,
        }
    }

    /// Publishes another body, if the current one no longer fits the table.
    fn refresh(&mut self, store: &mut Store, table: &FlowTable) {
        let Some(OwnedBody { body, .. }) = &self.shown else {
            return;
        };
        if self.form.is_shown_by(&body.template, NEAR_BYTES) {
            return;
        }
        let default = body.default;
        if self.show_anew(store, default).is_err() {
            self.leave_to_plain(store, table, NO_ROOM, &[]);
        }
    }

    fn show(&mut self, store: &mut Store, body: OwnedBody) {
        store.show(self.index, &body.body);
        if let Some(old) = self.shown.replace(body) {
            store.retire(OldForm::Body(old));
        }
    }

    /// Returns its sub-tables, if it was cut.
    pub fn sub_tables(&self) -> Option<&SubTables> {
        match &self.form {
            Form::Cut(sub_tables) => Some(sub_tables),
            _ => None,
        }
    }

    /// Returns its merged tuples, if it has any.
    pub fn merged(&self) -> Option<&MergedTuples> {
        match &self.form {
            Form::Merged(tuples) => Some(tuples),
            _ => None,
        }
    }

    /// Returns the machine code that searches the table, if any.
    pub fn listing(&self) -> Option<String> {
        self.shown.as_ref()?.executor.listing()
    }

    /// Returns the size of each part's search structure in bytes, without the entries.
    pub fn part_bytes(&self) -> Vec<usize> {
        self.form.part_bytes()
    }

    /// Builds the form that fits the current table. The table, but not the form, has already followed `changes`.
    fn rebuild(&mut self, store: &mut Store, table: &FlowTable, changes: &[Change]) {
        let effort = match is_for_thread(store, table) {
            true => Effort::Least,
            false => self.effort(store, table),
        };
        self.rebuild_with(store, table, changes, effort);
    }

    fn rebuild_with(
        &mut self,
        store: &mut Store,
        table: &FlowTable,
        changes: &[Change],
        effort: Effort,
    ) {
        let is_loaded = self.is_being_loaded(table);
        let plan = Plan::new(table.ranked(), effort);
        let is_planned = plan.as_ref().map_or(true, Plan::is_planned);
        let is_known = plan
            .as_ref()
            .is_ok_and(|plan| self.form.is_as_planned(plan));
        self.build_as(store, table, changes, plan);
        if self.until_plan == 0 && is_planned && effort != Effort::Least {
            let has_grown = table.entries().len() >= 2 * self.planned_entries;
            let twice = if is_known && !has_grown {
                2 * self.patience
            } else {
                0
            };
            // A table that is being loaded is still inspected for a cut afterwards.
            if !is_loaded {
                (self.changes, self.quiet) = (0, None);
            }
            self.planned_entries = table.entries().len();
            // A growing table is inspected again when its size has doubled.
            let share = if has_grown { 1 } else { 2 };
            self.patience = twice.max(table.entries().len() / share);
            self.until_plan = self.patience;
        }
    }

    /// Returns the effort of an inspection in the thread that changes the table.
    fn effort(&self, store: &Store, table: &FlowTable) -> Effort {
        match store.decomposes && self.until_plan == 0 && !self.is_being_loaded(table) {
            true => Effort::All,
            false => Effort::Uncut,
        }
    }

    /// Builds the form of a plan for the current table, or leaves the table to the plain form.
    fn build_as(
        &mut self,
        store: &mut Store,
        table: &FlowTable,
        changes: &[Change],
        plan: Result<Plan, &'static str>,
    ) {
        let is_cut = matches!(&plan, Ok(plan) if plan.is_cut());
        let mut records = Vec::new();
        let mut built = plan.and_then(|plan| build(store, plan, &mut records));
        if built.is_err() && is_cut {
            forget_records(store, &mut records);
            let effort = match is_for_thread(store, table) {
                true => Effort::Least,
                false => Effort::Uncut,
            };
            let plan = Plan::new(table.ranked(), effort);
            built = plan.and_then(|plan| build(store, plan, &mut records));
        }
        match built {
            Ok((form, body, default)) => {
                store.show(self.index, &body.body);
                let old_body = self.shown.replace(body);
                self.retire_old(store, table, old_body, changes);
                (self.form, self.default) = (form, default);
                for (entry, place) in records {
                    // SAFETY: the store keeps the flow record until it is retired, and then clears the link.
                    unsafe { store.link(&place, &entry) };
                }
            }
            Err(reason) => {
                forget_records(store, &mut records);
                self.leave_to_plain(store, table, reason, changes);
            }
        }
    }

    /// Returns whether many more entries are likely to follow.
    fn is_being_loaded(&self, table: &FlowTable) -> bool {
        let entries = table.entries().len();
        let has_grown = entries > self.planned_entries + self.planned_entries / 4;
        let is_cut = matches!(self.form, Form::Cut(_));
        self.planned_entries > 0 && has_grown && !is_cut && entries > CUT_WHILE_GROWING
    }

    /// Leaves packets to the plain form.
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
        self.until_plan = self.until_plan.max(table.entries().len() / 2);
    }

    /// Retires data that is no longer published: the flow records of all entries, and their search structures.
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
        for entry in table.entries().filter(|entry| record_of(entry).is_some()) {
            let words = Key::new(&entry.match_).map_or(0, |key| self.words(&key));
            store.retire_record(entry, words, Some(entry.clone()));
        }
        std::mem::replace(&mut self.form, Form::Direct).retire(store);
        if let Some(body) = old_body {
            store.retire(OldForm::Body(body));
        }
    }
}

/// Returns `true` if inspecting a table needs so much time that a separate thread should do it.
fn is_for_thread(store: &Store, table: &FlowTable) -> bool {
    store.plans_beside && table.entries().len() > PLANNED_AT_ONCE_BESIDE_THREAD
}

fn shows_part(shown: &OwnedBody, index: usize) -> bool {
    matches!(&shown.body.template, Template::Hash(parts) if index < parts.len())
}

/// Publishes a hash table's current array instead of an old one.
fn show_slots(
    store: &mut Store,
    shown: Option<&OwnedBody>,
    index: usize,
    table: &HashTable,
    old: SlotArray,
) {
    if let Some(shown) = shown {
        let slots = table.slots_ptr().cast_mut().cast();
        shown.body.parts[index].store(slots, Release);
    }
    store.retire(OldForm::Slots(old));
}

fn direct_template(members: &[Member]) -> Template {
    let rules = members.iter().map(|member| Rule {
        mask: member.planned.key.mask.clone(),
        values: member.planned.key.values.clone(),
        record: member.place.record,
    });
    Template::Direct(rules.collect())
}
