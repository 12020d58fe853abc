//! One table's compiled form, as the one thread that changes it has it.
//!
//! Most changes are carried out in place, by one store that packets see or do not see yet. Where the table has to be
//! searched in another way, a form is built beside the old one and shown in its place: packets meet the table as it was
//! or as it is.
//!
//! To find out whether a table should be cut, or cut otherwise, takes a look at all of its entries. So after each such look
//! there have to be half as many changes as there are entries before the next one, and twice as many as the last time
//! where all stayed as it was, unless the table has doubled. A table that cannot keep its sub-tables until then is searched
//! as a whole. When changes have ended ([`QUIET`]), all is looked at once more: so a table comes to the same form, in
//! whatever order its entries came.
//!
//! A table of more than [`PLANNED_AT_ONCE`] entries is looked at only when time passes, and rests after that: no change has to wait for
//! it, nor does a change to very many entries that is made in parts begin it again and again. Where a thread may be had for it
//! ([`Search`]), that holds for all but the smallest tables, and only what the look has found is carried out here.

mod build;
mod merged;
mod part;
mod routes;
mod sub_tables;

use super::choice::{Choice, Effort};
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
use part::{Part, are_shown_by, hash_template, part_index};
use routes::Routes;
use std::cmp::Reverse;
use std::mem;
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::Ordering::Release;
use std::time::Duration;
pub(super) use sub_tables::{SubTable, SubTables};

/// How many bytes a table may have to be searched without pauses: what the processor's own caches hold of it.
const NEAR_BYTES: usize = 384 << 10;

/// More changes at once than these are not carried out one by one, but for a table of which they are less than one in
/// [`BULK_SHARE`] of the entries: it is built anew, and so changes as a whole.
const BULK: usize = 64;
const BULK_SHARE: usize = 4;

/// A table that has grown to more entries than these is not cut before its changes end: code is made for each sub-table.
const CUT_WHILE_GROWING: usize = 128;

/// A table of more entries is not looked at because of a change: that takes some milliseconds.
const PLANNED_AT_ONCE: usize = 1024;

/// The same where a thread may be had for it.
const PLANNED_AT_ONCE_BESIDE_THREAD: usize = 64;

/// So long there has to be no change before a table is looked at again.
const QUIET: Duration = Duration::from_millis(500);

/// And so long, for each entry, after the last time: to look takes some microseconds for each.
const REST_OF_ENTRY: Duration = Duration::from_micros(200);

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
    /// How many changes there have to be before all of the table is looked at again for a cut, or to see whether it need
    /// not be left to the plain form any more.
    until_plan: usize,
    /// How many of these there were after the last look.
    patience: usize,
    /// How many entries there were at that look, and how many changes have come since.
    planned_entries: usize,
    changes: usize,
    /// When these were so many for the first time, as far as [`TableForm::settle`] has seen.
    quiet: Option<(usize, Duration)>,
    /// How many entries there were when time passed last.
    seen_entries: usize,
    /// Not before this is all looked at because changes have ended.
    rests_until: Duration,
}

/// What finds a table's entries, or those of a sub-table of it.
#[derive(Debug)]
enum Form {
    /// Built anew at each change.
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

/// The entry with the same match that is next in the order, if there is one: its rank, and the block of its flow record.
type Next = Option<(Rank, Ref)>;

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
            until_plan: 0,
            patience: 0,
            planned_entries: 0,
            changes: 0,
            seen_entries: 0,
            quiet: None,
            rests_until: Duration::ZERO,
        }
    }

    /// Shows packets the table as it is.
    pub fn begin(&mut self, store: &mut Store, table: &FlowTable) {
        let effort = self.effort(store, table);
        self.rebuild_with(store, table, &[], effort);
    }

    /// Follows what has changed in the table.
    pub fn follow(&mut self, store: &mut Store, table: &FlowTable, changes: Vec<Change>) {
        for change in &changes {
            if let Change::Replaced {
                old,
                new,
                kept: Some(kept),
                ..
            } = change
            {
                store.inherit(old, new, *kept);
            }
        }
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

    /// Whether all of the table should be looked at again, because changes have ended, or have been many, to search it as if
    /// they had come together.
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

    /// Looks at all of the table again, and searches it in the best way.
    pub fn settle(&mut self, store: &mut Store, table: &FlowTable, now: Duration) {
        let entries = table.entries().len();
        (self.planned_entries, self.patience, self.until_plan) = (entries, 0, 0);
        self.rest(table, now);
        let effort = self.effort(store, table);
        self.rebuild_with(store, table, &[], effort);
    }

    /// Begins to have all of the table looked at by a thread; `None` where that takes too little time to need one.
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

    /// Searches the table as a thread has found best for the entries that it had after `since` changes, unless it has changed too
    /// much meanwhile.
    pub fn take_over(&mut self, store: &mut Store, table: &FlowTable, found: Found, since: usize) {
        let entries = table.entries().len();
        let missed = self.changes.saturating_sub(since);
        self.planned_entries = entries;
        if missed > BULK.max(entries / BULK_SHARE) {
            // It changes faster than it can be looked at: there have to be more changes each time.
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

    /// Whether there has been no change for some time, as far as was looked.
    fn is_quiet(&mut self, now: Duration) -> bool {
        match self.quiet {
            Some((changes, since)) if changes == self.changes => now >= since + QUIET,
            _ => {
                self.quiet = Some((self.changes, now));
                false
            }
        }
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
        self.form.bytes()
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

    /// Follows that the entry which matches everything has come, changed or gone, where all else stays as it is: where there is none
    /// behind it, and no sub-table knows it.
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

    /// Shows a body for the form as it is. `default` is the flow record of the entry that matches everything, or null.
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

    /// Tries again when the table is small, or it is time.
    fn stay_plain(&mut self, store: &Store, table: &FlowTable) -> Result<(), NeedsRebuild> {
        match table.entries().len() <= DIRECT_MAX || self.is_to_be_planned(store, table) {
            true => Err(NeedsRebuild),
            false => Ok(()),
        }
    }

    /// Goes on as it is, unless it is time to look whether there is a better cut.
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

    /// Whether another form may be better after changes that this one has followed.
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

    /// Puts a new flow record in the place of an entry's.
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

    /// A flow record for an entry, which from now on counts for it.
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
        // SAFETY: the store keeps the flow record until it is retired, and clears the link then.
        unsafe { store.link(&place, &planned.entry) };
        Ok(place)
    }

    /// The rank of what matches everything: no packet comes to entries behind it.
    fn last_rank(&self) -> Rank {
        let default = self.default.as_ref();
        default.map_or(Rank::LAST, |&(rank, _)| rank)
    }

    /// How many words stand before the flow record of an entry.
    fn words(&self, key: &Key) -> usize {
        match &self.form {
            Form::Hash(_) if !key.mask.is_everything() => key.values.len(),
            Form::Cut(sub_tables) if !key.mask.is_everything() => sub_tables.room(),
            _ => 0,
        }
    }

    /// Shows another body where the one that is shown is not how the table should be searched any more.
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

    /// Its sub-tables, if it was cut.
    pub fn sub_tables(&self) -> Option<&SubTables> {
        match &self.form {
            Form::Cut(sub_tables) => Some(sub_tables),
            _ => None,
        }
    }

    /// Its merged tuples, if it has any.
    pub fn merged(&self) -> Option<&MergedTuples> {
        match &self.form {
            Form::Merged(tuples) => Some(tuples),
            _ => None,
        }
    }

    /// The machine code that searches the table, if there is any.
    pub fn listing(&self) -> Option<String> {
        self.shown.as_ref()?.executor.listing()
    }

    /// How many bytes what finds the entries of each part takes, without the entries.
    pub fn part_bytes(&self) -> Vec<usize> {
        self.form.part_bytes()
    }

    /// Builds the form that fits the table as it is now. `changes` have been made to the table, but not followed here.
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
            // One that is being loaded is still to be looked at for a cut when that has ended.
            if !is_loaded {
                (self.changes, self.quiet) = (0, None);
            }
            self.planned_entries = table.entries().len();
            // One that grows is looked at again when it has doubled.
            let share = if has_grown { 1 } else { 2 };
            self.patience = twice.max(table.entries().len() / share);
            self.until_plan = self.patience;
        }
    }

    /// How thoroughly the table is to be looked at, if it is by the thread that changes it.
    fn effort(&self, store: &Store, table: &FlowTable) -> Effort {
        match store.decomposes && self.until_plan == 0 && !self.is_being_loaded(table) {
            true => Effort::All,
            false => Effort::Uncut,
        }
    }

    /// Builds the form of a plan for the table as it is now, or leaves the table to the plain form.
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
                    // SAFETY: the store keeps the flow record until it is retired, and clears the link then.
                    unsafe { store.link(&place, &entry) };
                }
            }
            Err(reason) => {
                forget_records(store, &mut records);
                self.leave_to_plain(store, table, reason, changes);
            }
        }
    }

    /// Whether it seems that many more entries will come.
    fn is_being_loaded(&self, table: &FlowTable) -> bool {
        let entries = table.entries().len();
        let has_grown = entries > self.planned_entries + self.planned_entries / 4;
        let is_cut = matches!(self.form, Form::Cut(_));
        self.planned_entries > 0 && has_grown && !is_cut && entries > CUT_WHILE_GROWING
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
        self.until_plan = self.until_plan.max(table.entries().len() / 2);
    }

    /// Retires what packets do not see any more: the flow records of all entries, and what found them.
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

impl Form {
    /// Whether a plan would make it as it is, but for its parts.
    fn is_as_planned(&self, plan: &Plan) -> bool {
        match (self, &plan.choice) {
            (Self::Hash(_), Choice::Hash) | (Self::Merged(_), Choice::Merged(_)) => true,
            (Self::Cut(sub_tables), Choice::Cut(chosen)) => sub_tables.cut() == chosen.cut,
            _ => false,
        }
    }

    /// Has packets find an entry's flow record. `shown` is what they see of the form.
    fn put(
        &mut self,
        store: &mut Store,
        member: &Member,
        shown: Option<&OwnedBody>,
    ) -> Result<(), NeedsRebuild> {
        match self {
            Self::Hash(parts) => {
                let index = part_index(parts, member)?;
                if let Some(old) = parts[index].put(store, member) {
                    let shown = shown.filter(|shown| shows_part(shown, index));
                    show_slots(store, shown, index, &parts[index].table, old);
                }
                Ok(())
            }
            Self::Lpm(routes) => routes.put(store, member),
            Self::Cut(sub_tables) => sub_tables.put(store, member, shown),
            Self::Merged(tuples) => tuples.put(store, member, shown),
            Self::Direct | Self::Plain(_) => Err(NeedsRebuild),
        }
    }

    /// Has packets find an entry's flow record in the place of that of another one with the same match and rank.
    fn replace(
        &mut self,
        store: &mut Store,
        old: RecordPlace,
        member: &Member,
    ) -> Result<(), NeedsRebuild> {
        match self {
            Self::Hash(parts) => {
                let index = part_index(parts, member)?;
                parts[index].replace(store, old, member);
                Ok(())
            }
            Self::Lpm(routes) => routes.replace(store, member),
            Self::Cut(sub_tables) => sub_tables.replace(store, old, member),
            Self::Merged(tuples) => tuples.replace(store, old, member),
            Self::Direct | Self::Plain(_) => Err(NeedsRebuild),
        }
    }

    /// Has packets no longer find an entry's flow record, but that of the next one with the same match, if there is one.
    fn remove(
        &mut self,
        store: &mut Store,
        member: &Member,
        next: Next,
    ) -> Result<(), NeedsRebuild> {
        match self {
            Self::Hash(parts) => {
                let index = part_index(parts, member)?;
                parts[index].remove(store, member, next);
                Ok(())
            }
            Self::Lpm(routes) => routes.remove(store, member),
            Self::Cut(sub_tables) => sub_tables.remove(store, member, next),
            Self::Merged(tuples) => tuples.remove(store, member),
            Self::Direct | Self::Plain(_) => Err(NeedsRebuild),
        }
    }

    /// Brings the parts into the order in which they are searched, and takes out those without entries.
    fn tidy(&mut self) -> Vec<Part> {
        let Self::Hash(parts) = self else {
            return Vec::new();
        };
        let is_empty = |part: &Part| part.priorities.is_empty();
        let mut empty = Vec::new();
        if parts.iter().any(is_empty) {
            (empty, *parts) = mem::take(parts).into_iter().partition(is_empty);
        }
        parts.sort_by_key(|part| Reverse(part.highest()));
        empty
    }

    /// Takes parts without entries back that are shown still.
    fn untidy(&mut self, empty: &mut Vec<Part>) {
        if let Self::Hash(parts) = self {
            parts.append(empty);
        }
    }

    /// How it is to be searched, and where what finds its entries is; `None` for what is built anew at each change.
    fn template(&self, near_bytes: usize) -> Option<(Template, Vec<*const u8>)> {
        match self {
            Self::Hash(parts) => Some(hash_template(parts, near_bytes)),
            Self::Lpm(routes) => Some(routes.template(near_bytes)),
            Self::Cut(sub_tables) => Some(sub_tables.template()),
            Self::Merged(tuples) => Some(tuples.template()),
            Self::Direct | Self::Plain(_) => None,
        }
    }

    /// Whether packets that see this template find its entries, and need not see a better one.
    fn is_shown_by(&self, shown: &Template, near_bytes: usize) -> bool {
        if let (Template::Hash(shown), Self::Hash(parts)) = (shown, self) {
            return are_shown_by(parts, shown, near_bytes);
        }
        match (shown, self.template(near_bytes)) {
            (Template::Lpm(shown), Some((Template::Lpm(now), _))) => *shown == now,
            (Template::Cut(shown), Some((Template::Cut(now), _))) => *shown == now,
            (Template::Merged(shown), Some((Template::Merged(now), _))) => *shown == now,
            (_, None) => true,
            _ => false,
        }
    }

    /// The form with what packets are to see of it; its members are those that it was made of.
    fn with_body(
        self,
        store: &mut Store,
        members: &[Member],
        default: *const FlowRecord,
        near_bytes: usize,
    ) -> Result<(Self, OwnedBody), &'static str> {
        let direct = || (direct_template(members), Vec::new());
        let (template, pointers) = self.template(near_bytes).unwrap_or_else(direct);
        match store.make_body(template, default, &pointers) {
            Ok(body) => Ok((self, body)),
            Err(_) => {
                self.forget(store);
                Err(NO_ROOM)
            }
        }
    }

    /// Bytes of what finds its entries, but for what is in the arena.
    fn bytes(&self) -> usize {
        match self {
            Self::Hash(parts) => parts.iter().map(|part| part.table.bytes()).sum(),
            Self::Lpm(routes) => routes.trie.bytes_beside_arena(),
            Self::Cut(sub_tables) => sub_tables.bytes(),
            Self::Merged(tuples) => tuples.bytes(),
            Self::Direct | Self::Plain(_) => 0,
        }
    }

    /// How many bytes what finds the entries of each part takes, without the entries.
    fn part_bytes(&self) -> Vec<usize> {
        match self {
            Self::Hash(parts) => parts.iter().map(|part| part.table.bytes()).collect(),
            Self::Lpm(routes) => vec![routes.trie.search_bytes()],
            Self::Merged(tuples) => vec![tuples.bytes()],
            Self::Cut(_) | Self::Direct | Self::Plain(_) => Vec::new(),
        }
    }

    /// Frees it, but for its flow records, once packets cannot be in it any more.
    fn retire(self, store: &mut Store) {
        match self {
            Self::Hash(parts) => {
                let tables = parts.into_iter().map(|part| part.table);
                tables.for_each(|table| store.retire(OldForm::Hash(table)));
            }
            Self::Lpm(routes) => store.retire(OldForm::Trie(Box::new(routes.trie))),
            Self::Cut(sub_tables) => sub_tables.retire(store),
            Self::Merged(tuples) => store.retire(OldForm::Merged(Box::new(tuples.retired()))),
            Self::Direct | Self::Plain(_) => {}
        }
    }

    /// Frees it, but for its flow records: packets never saw it.
    fn forget(self, store: &mut Store) {
        match self {
            Self::Lpm(routes) => routes.trie.free(&mut store.arena),
            Self::Cut(sub_tables) => sub_tables.forget(store),
            Self::Merged(tuples) => tuples.free(&mut store.arena),
            Self::Hash(_) | Self::Direct | Self::Plain(_) => {}
        }
    }
}

/// Whether it takes so long to look at a table that a thread does it, where one may be had.
fn is_for_thread(store: &Store, table: &FlowTable) -> bool {
    store.plans_beside && table.entries().len() > PLANNED_AT_ONCE_BESIDE_THREAD
}

/// A flow record for an entry, behind so many words: those of its key, as far as there are so many, and zeros.
fn make_record(
    store: &mut Store,
    planned: &Planned,
    words: usize,
) -> Result<RecordPlace, NeedsRebuild> {
    let Planned { rank, entry, key } = planned;
    let (rank, require) = (rank.to_bits(), key.mask.require);
    let place = match key.values.get(..words) {
        Some(values) => store.make_record(entry, rank, require, values),
        None => {
            let mut values = key.values.clone();
            values.resize(words, 0);
            store.make_record(entry, rank, require, &values)
        }
    };
    place.ok_or(NeedsRebuild)
}

/// Takes flow records back that packets never saw.
fn forget_records(store: &mut Store, records: &mut build::NewRecords) {
    for (_, place) in records.drain(..) {
        store.forget_record(place);
    }
}

/// Retires the flow record of the entry that a change has taken out.
fn retire(store: &mut Store, change: &Change, words: usize) {
    match change {
        Change::Replaced { old, new, kept, .. } => {
            let last_used_ns = old.linked.counts().last_used_ns;
            new.counters.use_at(last_used_ns);
            store.retire_record(old, words, kept.map(|_| new.clone()));
        }
        Change::Removed(_, entry) => store.retire_record(entry, words, Some(entry.clone())),
        Change::Added(..) => {}
    }
}

fn shows_part(shown: &OwnedBody, index: usize) -> bool {
    matches!(&shown.body.template, Template::Hash(parts) if index < parts.len())
}

/// Shows the array that a hash table has now in the place of an old one.
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
