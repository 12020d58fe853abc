//! The sub-tables of a table that was cut, or of a sub-table that was cut again.
//!
//! Each sub-table has its own form and body, and a pointer, which packets find by their value of the cut's field. Packets that
//! find none use the pointer to the rest. An entry has one flow record. All of the table's flow records follow the same
//! number of words, the first of which are the entry's key; hash tables of several sub-tables refer to the block, tries and
//! direct code to the flow record in it.
//!
//! A change is applied to each sub-table of the entry. A sub-table that cannot follow it is rebuilt behind its pointer with
//! merged tuples, which can follow any change and need no code. A sub-table of more than [`BULK`] entries is only rebuilt
//! after as many changes as it has entries. After the last change, the whole table is inspected again.

use super::part::{Part, hash_parts};
use super::routes::Routes;
use super::{
    BULK, Form, Member, MergedTuples, NEAR_BYTES, NO_ROOM, NeedsRebuild, Next, show_slots,
};
use crate::FlowEntry;
use crate::classifier::Rank;
use crate::fast::control::choice::{Choice, CutChoice, count_masks};
use crate::fast::control::cut::{Cut, Side, Split, is_everything};
use crate::fast::control::decompose::{DIRECT_MAX, SUB_TABLES_MAX, Way, places_max};
use crate::fast::control::match_key::Key;
use crate::fast::control::planned::Planned;
use crate::fast::control::record_place::RecordPlace;
use crate::fast::control::store::{OldForm, OwnedBody, Store};
use crate::fast::datapath::key::KeyMask;
use crate::fast::datapath::table::{Body, FlowRecord, MAX_PARTS, Template};
use crate::fast::memory::arena::{Ref, UNIT_BYTES};
use crate::fast::memory::hash_table::{HashTable, SlotArray};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A reason for not cutting a table. Cuts are made only by fields with a single location: see [`Cut::new`].
const NO_PLACE: &str = "the field to cut by has no single position in packets";

/// The reason for not using a chosen cut after the entries have changed.
const TOO_MANY_PLACES: &str = "its entries would be in too many sub-tables";

/// The sub-tables of a cut.
#[derive(Debug)]
pub(in crate::fast::control) struct SubTables {
    common: Common,
    /// The mask of the keys of sub-tables.
    mask: KeyMask,
    sub_pointers: HashTable,
    /// The sub-tables, by the packet's value.
    sub_tables: BTreeMap<u128, SubTable>,
    /// The sub-table for packets with none of these values.
    rest: SubTable,
    rest_sub_pointer: *const u8,
    /// The number of entries, and the number of their slots in the sub-tables and the rest.
    entries: usize,
    places: usize,
}

/// The data that all sub-tables of a cut share.
#[derive(Clone, Debug)]
pub(super) struct Common {
    /// The cuts that apply to all packets of the sub-tables. The last one created them, and does not apply to the rest.
    pub cuts: Vec<Cut>,
    /// The number of cuts, including this one.
    pub depth: usize,
    /// The number of words before each flow record.
    pub room: usize,
    /// The flow record of the entry that matches all packets before the cut, or null.
    pub default: *const FlowRecord,
}

/// The entries for packets with one value, or for the rest.
#[derive(Debug)]
pub(in crate::fast::control) struct SubTable {
    members: BTreeMap<Rank, Arc<FlowEntry>>,
    /// The number of entries that are only in this sub-table.
    own: usize,
    /// The rank of the entry that matches all packets of the sub-table. Entries after it are members, but not searched.
    last: Option<Rank>,
    form: Form,
    shown: OwnedBody,
    sub_pointer: Ref,
    /// The number of words of the key before the sub-table pointer.
    sub_pointer_words: usize,
    /// The number of changes since it was last built.
    since_built: usize,
}

/// A sub-table to which no pointer refers yet.
struct NewSubTable {
    form: Form,
    shown: OwnedBody,
    last: Option<Rank>,
}

/// The data that a sub-table's form depends on, in addition to its entries.
#[derive(Clone, Copy, Debug)]
struct Site<'a> {
    /// As in [`Common`], but only the cuts that apply here.
    cuts: &'a [Cut],
    depth: usize,
    room: usize,
    default: *const FlowRecord,
    /// The number of sub-tables.
    count: usize,
}

impl Common {
    fn cut(&self) -> Cut {
        *self.cuts.last().expect("sub-tables come about by a cut")
    }

    /// Returns the site of one of `count` sub-tables.
    fn site(&self, count: usize) -> Site<'_> {
        Site {
            cuts: &self.cuts,
            depth: self.depth,
            room: self.room,
            default: self.default,
            count,
        }
    }

    /// Returns the site of the rest of `count` sub-tables.
    fn site_of_rest(&self, count: usize) -> Site<'_> {
        let (_, before) = self
            .cuts
            .split_last()
            .expect("sub-tables come about by a cut");
        Site {
            cuts: before,
            ..self.site(count)
        }
    }

    fn side(&self, entry: &FlowEntry) -> Side {
        self.cut().side(&entry.match_)
    }
}

impl SubTables {
    /// Creates the chosen sub-tables of these ordered entries.
    ///
    /// # Errors
    /// The reason why they cannot be created.
    pub(super) fn new(
        store: &mut Store,
        members: &[Member],
        common: Common,
        chosen: &CutChoice,
    ) -> Result<Self, &'static str> {
        let cut = common.cut();
        let places_max = 2 * places_max(members.len());
        let split = cut.split(members, places_max, |member| member.planned);
        let Split { of_value, rest } = split.ok_or(TOO_MANY_PLACES)?;
        let count = of_value.len();
        let mask = cut.key(0).ok_or(NO_PLACE)?.mask;
        let made = NewSubTable::new(store, &rest, common.site_of_rest(count), &chosen.rest)?;
        let rest = SubTable::new(store, &rest, 0, &[], made)?;
        let mut sub_tables = Self {
            sub_pointers: HashTable::new(mask.words.len()),
            mask,
            rest_sub_pointer: store.arena.pointer(rest.sub_pointer),
            places: rest.members.len(),
            rest,
            sub_tables: BTreeMap::new(),
            entries: members.len(),
            common,
        };
        for (value, (own, members)) in of_value {
            let site = sub_tables.common.site(count);
            let made = match chosen.sub_tables.get(&value) {
                Some(chosen) => NewSubTable::new(store, &members, site, chosen),
                None => NewSubTable::merged(store, &members, site),
            };
            let added = made.and_then(|made| sub_tables.add(store, value, &members, own, made));
            match added {
                // If an array was outgrown, no packet has seen it.
                Ok(grown) => drop(grown),
                Err(reason) => {
                    sub_tables.forget(store);
                    return Err(reason);
                }
            }
        }
        Ok(sub_tables)
    }

    /// Creates a sub-table and the pointer to it. Returns an array of sub-table pointers that became too small; then the new
    /// one must be published.
    fn add(
        &mut self,
        store: &mut Store,
        value: u128,
        members: &[Member],
        own: usize,
        made: NewSubTable,
    ) -> Result<Option<SlotArray>, &'static str> {
        let key = self.common.cut().key(value).ok_or(NO_PLACE)?;
        let sub_table = SubTable::new(store, members, own, &key.values, made)?;
        let grown = self
            .sub_pointers
            .insert(&store.arena, &key.values, sub_table.sub_pointer);
        self.places += sub_table.members.len();
        self.sub_tables.insert(value, sub_table);
        Ok(grown)
    }

    /// Returns the number of words before each flow record.
    pub fn room(&self) -> usize {
        self.common.room
    }

    /// Returns the template, and the addresses of the sub-table pointers.
    pub fn template(&self) -> (Template, Vec<*const u8>) {
        let pointers = vec![self.sub_pointers.slots_ptr().cast(), self.rest_sub_pointer];
        (Template::Cut(self.mask.clone()), pointers)
    }

    /// Makes packets find an entry's flow record.
    pub(super) fn put(
        &mut self,
        store: &mut Store,
        member: &Member,
        shown: Option<&OwnedBody>,
    ) -> Result<(), NeedsRebuild> {
        let side = self.common.side(&member.planned.entry);
        match side {
            Side::One(value) if !self.sub_tables.contains_key(&value) => {
                self.open(store, value, shown)?;
            }
            Side::One(_) | Side::Several { .. } => {}
        }
        self.entries += 1;
        let mut places = self.places;
        self.each(store, side, |sub_table, store, site| {
            places += 1;
            sub_table.own += usize::from(matches!(side, Side::One(_)));
            sub_table.put(store, member, site)
        })?;
        self.places = places;
        match self.places > 2 * places_max(self.entries) {
            true => Err(NeedsRebuild),
            false => Ok(()),
        }
    }

    /// Makes packets find an entry's flow record instead of one with equal match and rank.
    pub(super) fn replace(
        &mut self,
        store: &mut Store,
        old: RecordPlace,
        member: &Member,
    ) -> Result<(), NeedsRebuild> {
        let side = self.common.side(&member.planned.entry);
        self.each(store, side, |sub_table, store, site| {
            sub_table.replace(store, old, member, site)
        })
    }

    /// Hides an entry from packets.
    pub(super) fn remove(
        &mut self,
        store: &mut Store,
        member: &Member,
        next: Next,
    ) -> Result<(), NeedsRebuild> {
        let side = self.common.side(&member.planned.entry);
        self.entries -= 1;
        let mut places = self.places;
        self.each(store, side, |sub_table, store, site| {
            places -= 1;
            sub_table.own -= usize::from(matches!(side, Side::One(_)));
            sub_table.remove(store, member, next, site)
        })?;
        self.places = places;
        match side {
            Side::One(value) => self.close(store, value),
            Side::Several { .. } => Ok(()),
        }
    }

    /// Calls a function for each sub-table on a side, including the rest.
    fn each(
        &mut self,
        store: &mut Store,
        side: Side,
        mut change: impl FnMut(&mut SubTable, &mut Store, Site) -> Result<(), NeedsRebuild>,
    ) -> Result<(), NeedsRebuild> {
        let site = self.common.site(self.sub_tables.len());
        if let Side::One(value) = side {
            let sub_table = self.sub_tables.get_mut(&value).ok_or(NeedsRebuild)?;
            return change(sub_table, store, site);
        }
        let rest_site = self.common.site_of_rest(self.sub_tables.len());
        let mut sub_tables = self.sub_tables.iter_mut();
        sub_tables.try_for_each(|(value, sub_table)| match side.is_in(*value) {
            true => change(sub_table, store, site),
            false => Ok(()),
        })?;
        change(&mut self.rest, store, rest_site)
    }

    /// Creates a sub-table for a new value, from the entries of the rest that apply to it. Packets with the value find the same
    /// entries as before.
    fn open(
        &mut self,
        store: &mut Store,
        value: u128,
        shown: Option<&OwnedBody>,
    ) -> Result<(), NeedsRebuild> {
        if self.sub_tables.len() == SUB_TABLES_MAX {
            return Err(NeedsRebuild);
        }
        let members = self.rest.members.iter();
        let concerned = members.filter(|(_, entry)| self.common.side(entry).is_in(value));
        let planned = planned(concerned)?;
        let members = members_of(store, &planned, self.common.room)?;
        let count = self.sub_tables.len() + 1;
        let made = NewSubTable::merged(store, &members, self.common.site(count));
        let grown = made.and_then(|made| self.add(store, value, &members, 0, made));
        if let Some(old) = grown.map_err(|_| NeedsRebuild)? {
            show_slots(store, shown, 0, &self.sub_pointers, old);
        }
        Ok(())
    }

    /// Removes the sub-table of a value that no entry has any longer. Its packets find the same entries in the rest.
    fn close(&mut self, store: &mut Store, value: u128) -> Result<(), NeedsRebuild> {
        if self
            .sub_tables
            .get(&value)
            .is_some_and(|sub_table| sub_table.own > 0)
        {
            return Ok(());
        }
        let key = self.common.cut().key(value).ok_or(NeedsRebuild)?;
        self.sub_pointers.remove(&store.arena, &key.values);
        if let Some(sub_table) = self.sub_tables.remove(&value) {
            self.places -= sub_table.members.len();
            sub_table.retire(store);
        }
        Ok(())
    }

    /// Returns the cut.
    pub fn cut(&self) -> Cut {
        self.common.cut()
    }

    /// Returns the sub-tables of all values, in order.
    pub fn sub_tables(&self) -> impl Iterator<Item = &SubTable> {
        self.sub_tables.values()
    }

    /// Returns the sub-table of packets with none of the values.
    pub fn rest(&self) -> &SubTable {
        &self.rest
    }

    /// Returns the sub-table for packets with this value; `None` stands for packets without the field.
    pub fn sub_table_of(&self, value: Option<u128>) -> &SubTable {
        let sub_table = value.and_then(|value| self.sub_tables.get(&value));
        sub_table.unwrap_or(&self.rest)
    }

    /// Returns the number of slots that entries have in all sub-tables and the rest.
    pub fn places(&self) -> usize {
        self.places
    }

    /// Returns the size of the structure that finds sub-tables, in bytes.
    pub fn sub_pointer_bytes(&self) -> usize {
        self.sub_pointers.bytes() + (1 + self.sub_tables.len()) * UNIT_BYTES
    }

    /// Returns the size of its search structures in bytes, without those in the arena.
    pub fn bytes(&self) -> usize {
        let sub_tables = self.sub_tables.values().chain([&self.rest]);
        let bytes = sub_tables.map(|sub_table| sub_table.form.bytes() + size_of::<Body>());
        self.sub_pointers.bytes() + bytes.sum::<usize>()
    }

    /// Retires it, except for the flow records: it is freed when no packet can use it.
    pub fn retire(self, store: &mut Store) {
        let sub_tables = self.sub_tables.into_values().chain([self.rest]);
        sub_tables.for_each(|sub_table| sub_table.retire(store));
        store.retire(OldForm::Hash(self.sub_pointers));
    }

    /// Frees it, except for the flow records; packets must never have seen it.
    pub fn forget(self, store: &mut Store) {
        for sub_table in self.sub_tables.into_values().chain([self.rest]) {
            store.forget_sub_pointer(sub_table.sub_pointer, sub_table.sub_pointer_words);
            sub_table.form.forget(store);
        }
    }
}

impl SubTable {
    /// Creates a sub-table of these ordered entries, `own` of which are in no other one, and the pointer to it after these
    /// words.
    fn new(
        store: &mut Store,
        members: &[Member],
        own: usize,
        words: &[u64],
        made: NewSubTable,
    ) -> Result<Self, &'static str> {
        let NewSubTable { form, shown, last } = made;
        let Some(sub_pointer) = store.make_sub_pointer(words, &shown.body) else {
            form.forget(store);
            return Err(NO_ROOM);
        };
        let entries = members.iter().map(|member| member.planned);
        Ok(Self {
            members: entries
                .map(|planned| (planned.rank, planned.entry.clone()))
                .collect(),
            own,
            last,
            form,
            shown,
            sub_pointer,
            sub_pointer_words: words.len(),
            since_built: usize::MAX,
        })
    }

    fn put(&mut self, store: &mut Store, member: &Member, site: Site) -> Result<(), NeedsRebuild> {
        let Planned { rank, entry, key } = member.planned;
        self.members.insert(*rank, entry.clone());
        self.since_built = self.since_built.saturating_add(1);
        if self.is_behind(*rank) {
            return Ok(());
        }
        if is_everything(&entry.match_, key, site.cuts) {
            return self.rebuild(store, site);
        }
        let put = self.form.put(store, member, Some(&self.shown));
        self.follow(store, site, put)
    }

    fn replace(
        &mut self,
        store: &mut Store,
        old: RecordPlace,
        member: &Member,
        site: Site,
    ) -> Result<(), NeedsRebuild> {
        let Planned { rank, entry, .. } = member.planned;
        self.members.insert(*rank, entry.clone());
        if self.is_behind(*rank) {
            return Ok(());
        }
        if self.last == Some(*rank) {
            return self.rebuild(store, site);
        }
        let replaced = self.form.replace(store, old, member);
        self.follow(store, site, replaced)
    }

    fn remove(
        &mut self,
        store: &mut Store,
        member: &Member,
        next: Next,
        site: Site,
    ) -> Result<(), NeedsRebuild> {
        let rank = member.planned.rank;
        self.members.remove(&rank);
        self.since_built = self.since_built.saturating_add(1);
        if self.is_behind(rank) {
            return Ok(());
        }
        let may_be_direct = Way::may_be_direct(site.count, site.depth);
        let is_small = may_be_direct && self.members.len() <= DIRECT_MAX / 2;
        if self.last == Some(rank) || is_small {
            return self.rebuild(store, site);
        }
        let next = next.filter(|&(rank, _)| !self.is_behind(rank));
        let removed = self.form.remove(store, member, next);
        self.follow(store, site, removed)
    }

    /// Returns `true` if packets do not reach an entry, because one before it matches them all.
    fn is_behind(&self, rank: Rank) -> bool {
        self.last.is_some_and(|last| last < rank)
    }

    /// Publishes the changes of the form, or rebuilds the form if it could not follow them.
    fn follow(
        &mut self,
        store: &mut Store,
        site: Site,
        changed: Result<(), NeedsRebuild>,
    ) -> Result<(), NeedsRebuild> {
        let is_empty = |parts: &[Part]| parts.iter().all(|part| part.priorities.is_empty());
        match (changed, &self.form) {
            (Err(NeedsRebuild), _) => self.rebuild(store, site),
            (Ok(()), Form::Hash(parts)) if is_empty(parts) => self.rebuild(store, site),
            (Ok(()), _) => self.refresh(store, site),
        }
    }

    /// Publishes another body, if the current one no longer fits the sub-table.
    fn refresh(&mut self, store: &mut Store, site: Site) -> Result<(), NeedsRebuild> {
        let (shown, near_bytes) = (&self.shown.body, near_bytes(site.count));
        if self.form.is_shown_by(&shown.template, near_bytes) {
            return Ok(());
        }
        let mut empty = self.form.tidy();
        if let Some((template, pointers)) = self.form.template(near_bytes) {
            match store.make_body(template, shown.default, &pointers) {
                Ok(body) => self.show(store, body),
                Err(_) => {
                    self.form.untidy(&mut empty);
                    return Err(NeedsRebuild);
                }
            }
        }
        for part in empty {
            store.retire(OldForm::Hash(part.table));
        }
        Ok(())
    }

    fn show(&mut self, store: &mut Store, body: OwnedBody) {
        // SAFETY: this is the pointer to the sub-table, created with this number of words before it, and retired with it.
        unsafe { store.lead(self.sub_pointer, self.sub_pointer_words, &body.body) };
        let old = std::mem::replace(&mut self.shown, body);
        store.retire(OldForm::Body(old));
    }

    /// Rebuilds the form behind the same pointer, with merged tuples, which need no new code. After the last change, the whole
    /// table is inspected again.
    fn rebuild(&mut self, store: &mut Store, site: Site) -> Result<(), NeedsRebuild> {
        if self.members.len() > BULK && self.since_built < self.members.len() {
            return Err(NeedsRebuild);
        }
        let planned = planned(self.members.iter())?;
        let members = members_of(store, &planned, site.room)?;
        let made = match self.members.is_empty() {
            true => NewSubTable::new(store, &members, site, &Choice::Direct),
            false => NewSubTable::merged(store, &members, site),
        };
        let made = made.map_err(|_| NeedsRebuild)?;
        self.show(store, made.shown);
        std::mem::replace(&mut self.form, made.form).retire(store);
        self.last = made.last;
        self.since_built = 0;
        Ok(())
    }

    /// Returns the published template.
    pub fn template(&self) -> &Template {
        &self.shown.body.template
    }

    /// Returns the entries that packets reach.
    pub fn entries(&self) -> impl Iterator<Item = &FlowEntry> {
        let last = self.last.unwrap_or(Rank::LAST);
        self.members.range(..=last).map(|(_, entry)| &**entry)
    }

    /// Returns its sub-tables, if it was cut again.
    pub fn sub_tables(&self) -> Option<&SubTables> {
        match &self.form {
            Form::Cut(sub_tables) => Some(sub_tables),
            _ => None,
        }
    }

    /// Returns the size of its search structure in bytes, without the entries.
    pub fn bytes(&self) -> usize {
        match &self.form {
            Form::Cut(sub_tables) => sub_tables.bytes(),
            form => form.part_bytes().iter().sum(),
        }
    }

    /// Returns the machine code that searches it, if any.
    pub fn listing(&self) -> Option<String> {
        self.shown.executor.listing()
    }

    fn retire(self, store: &mut Store) {
        store.retire(OldForm::SubTablePointer(
            self.sub_pointer,
            self.sub_pointer_words,
        ));
        store.retire(OldForm::Body(self.shown));
        self.form.retire(store);
    }
}

impl NewSubTable {
    /// Creates the form that follows changes best, for a sub-table's ordered entries.
    fn merged(store: &mut Store, members: &[Member], site: Site) -> Result<Self, &'static str> {
        let (reached, ..) = site.reached(members);
        let planned: Vec<_> = reached.iter().map(|member| member.planned).collect();
        Self::new(store, members, site, &Choice::merged(&planned))
    }

    /// Creates the chosen form for a sub-table's ordered entries, and its body. If the entries have changed since the choice and
    /// it no longer fits, they share hash tables.
    fn new(
        store: &mut Store,
        members: &[Member],
        site: Site,
        chosen: &Choice,
    ) -> Result<Self, &'static str> {
        let (members, default, last) = site.reached(members);
        let form = match chosen {
            Choice::Direct if members.len() <= DIRECT_MAX => Form::Direct,
            Choice::Hash if is_for_hash(members) => Form::Hash(hash_parts(store, members)),
            Choice::Lpm if Routes::may_be_of(members, site.cuts) => {
                Form::Lpm(Box::new(Routes::new(store, members, site.cuts)?))
            }
            Choice::Cut(cut) => {
                let common = Common {
                    cuts: [site.cuts, &[cut.cut]].concat(),
                    depth: site.depth + 1,
                    room: site.room,
                    default,
                };
                Form::Cut(Box::new(SubTables::new(store, members, common, cut)?))
            }
            Choice::Merged(tuples) => {
                Form::Merged(Box::new(MergedTuples::new(store, members, tuples)?))
            }
            Choice::Direct | Choice::Hash | Choice::Lpm => {
                Form::Merged(Box::new(MergedTuples::new(store, members, &[])?))
            }
        };
        let (form, shown) = form.with_body(store, members, default, near_bytes(site.count))?;
        Ok(Self { form, shown, last })
    }
}

/// Returns `true` if these entries can have a hash table for each set of bits.
fn is_for_hash(members: &[Member]) -> bool {
    let masks = count_masks(members.iter().map(|member| member.planned));
    (1..=MAX_PARTS).contains(&masks)
}

impl Site<'_> {
    /// Returns the entries that packets reach, the flow record for packets that match none of them, and the rank of that
    /// record's entry, if it is one of `members`.
    fn reached<'m, 'a>(
        &self,
        members: &'m [Member<'a>],
    ) -> (&'m [Member<'a>], *const FlowRecord, Option<Rank>) {
        let is_last = |member: &Member| {
            let Planned { entry, key, .. } = member.planned;
            is_everything(&entry.match_, key, self.cuts)
        };
        match members.iter().position(is_last) {
            Some(at) => {
                let last = &members[at];
                let record = last.place.record.cast_const();
                (&members[..at], record, Some(last.planned.rank))
            }
            None => (members, self.default, None),
        }
    }
}

/// Returns the maximum size of one of `count` sub-tables that is searched without pauses, in bytes.
fn near_bytes(count: usize) -> usize {
    NEAR_BYTES / count.max(1)
}

/// Converts entries for planning a form.
fn planned<'a>(
    entries: impl Iterator<Item = (&'a Rank, &'a Arc<FlowEntry>)>,
) -> Result<Vec<Planned>, NeedsRebuild> {
    let planned = entries.map(|(&rank, entry)| {
        Ok(Planned {
            rank,
            entry: entry.clone(),
            key: Key::new(&entry.match_).ok_or(NeedsRebuild)?,
        })
    });
    planned.collect()
}

/// Returns the entries with their flow records.
fn members_of<'a>(
    store: &Store,
    planned: &'a [Planned],
    room: usize,
) -> Result<Vec<Member<'a>>, NeedsRebuild> {
    let members = planned.iter().map(|planned| {
        let place = store.place_of(&planned.entry, room);
        place.map(|place| Member { planned, place })
    });
    members.collect::<Option<_>>().ok_or(NeedsRebuild)
}
