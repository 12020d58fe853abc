//! A form's pieces: the entries of a table that was cut, or of a piece that was cut again.
//!
//! Each piece has a form and a body of its own, and a door that leads to it, found by what packets have in the field that
//! the cut is by. The rest has a door, too, for packets that find none. An entry has one cell, wherever it is: all of the
//! table's cells stand behind as many words, the first of which are the entry's key; hash tables of several pieces find
//! the same block, tries and direct code its cell.
//!
//! A change goes to each piece that the entry belongs to. A piece that has to be searched in another way is built anew
//! from its entries, behind its door; one of more than [`BULK`] only if it has changed as often as it has entries.

use super::part::{Part, hash_parts};
use super::routes::Routes;
use super::{BULK, Form, Member, NEAR_BYTES, NO_ROOM, NeedsRebuild, Next, show_slots};
use crate::FlowEntry;
use crate::classifier::Rank;
use crate::fast::control::cut::{Cut, Side, is_everything, reachable};
use crate::fast::control::decompose::{DIRECT_MAX, PIECES_MAX, Way, places_max};
use crate::fast::control::match_key::Key;
use crate::fast::control::plan::TOO_MANY;
use crate::fast::control::planned::Planned;
use crate::fast::control::store::{CellPlace, OldForm, OwnedBody, Store};
use crate::fast::datapath::key::KeyShape;
use crate::fast::datapath::table::{Body, Cell, MAX_PARTS, Template};
use crate::fast::memory::arena::{Ref, UNIT_BYTES};
use crate::fast::memory::hash_table::{HashTable, SlotArray};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The pieces that a cut has made.
#[derive(Debug)]
pub(in crate::fast::control) struct Pieces {
    common: Common,
    /// What is compared at the doors.
    shape: KeyShape,
    doors: HashTable,
    /// By the value that packets have.
    pieces: BTreeMap<u128, Piece>,
    /// For packets of no such value.
    rest: Piece,
    rest_door: *const u8,
    /// How many entries there are, and how many places they have in the pieces and the rest.
    entries: usize,
    places: usize,
}

/// What all pieces of a cut have in common.
#[derive(Clone, Debug)]
pub(super) struct Common {
    /// The cuts that tell something of all packets which come to the pieces. The last one is their own: it tells nothing
    /// of packets that come to the rest.
    pub cuts: Vec<Cut>,
    /// How many cuts there have been, with this one.
    pub depth: usize,
    /// How many words there are before each cell.
    pub room: usize,
    /// The cell of the entry that matches all packets before they were cut, or null.
    pub default: *const Cell,
}

/// The entries that concern packets of one value.
#[derive(Debug)]
pub(in crate::fast::control) struct Piece {
    members: BTreeMap<Rank, Arc<FlowEntry>>,
    /// How many entries are in this piece alone.
    own: usize,
    /// Of the entry that matches all packets of the piece. Entries behind it are members only.
    last: Option<Rank>,
    form: Form,
    shown: OwnedBody,
    door: Ref,
    /// How many words the key before the door has.
    door_words: usize,
    /// How many changes there were since it was built anew.
    since_built: usize,
}

/// A piece without a door.
struct Made {
    form: Form,
    shown: OwnedBody,
    last: Option<Rank>,
}

/// What the form of a piece depends on besides its entries.
#[derive(Clone, Copy, Debug)]
struct Site<'a> {
    /// As in [`Common`]; those that hold here.
    cuts: &'a [Cut],
    depth: usize,
    room: usize,
    default: *const Cell,
    /// How many pieces there are.
    count: usize,
}

impl Common {
    fn cut(&self) -> Cut {
        *self.cuts.last().expect("pieces come about by a cut")
    }

    /// Where so many pieces are.
    fn site(&self, count: usize) -> Site<'_> {
        Site {
            cuts: &self.cuts,
            depth: self.depth,
            room: self.room,
            default: self.default,
            count,
        }
    }

    /// Where the rest is of so many pieces.
    fn site_of_rest(&self, count: usize) -> Site<'_> {
        let (_, before) = self.cuts.split_last().expect("pieces come about by a cut");
        Site {
            cuts: before,
            ..self.site(count)
        }
    }

    fn side(&self, entry: &FlowEntry) -> Side {
        self.cut().side(&entry.match_)
    }
}

impl Pieces {
    /// The pieces of these entries, in their order.
    ///
    /// # Errors
    /// Why they cannot be.
    pub(super) fn new(
        store: &mut Store,
        members: &[Member],
        common: Common,
    ) -> Result<Self, &'static str> {
        let mut of_value: BTreeMap<u128, Vec<Member>> = BTreeMap::new();
        let mut several = Vec::new();
        for member in members {
            match common.side(&member.planned.entry) {
                Side::One(value) => of_value.entry(value).or_default().push(*member),
                side => several.push((side, *member)),
            }
        }
        let rest: Vec<_> = several.iter().map(|&(_, member)| member).collect();
        let count = of_value.len();
        let shape = common.cut().key(0).ok_or(TOO_MANY)?.shape;
        let rest = Piece::new(store, &rest, 0, &[], common.site_of_rest(count))?;
        let mut pieces = Self {
            doors: HashTable::new(shape.words.len()),
            shape,
            rest_door: store.arena.pointer(rest.door),
            places: rest.members.len(),
            rest,
            pieces: BTreeMap::new(),
            entries: members.len(),
            common,
        };
        for (value, mut members) in of_value {
            let own = members.len();
            let others = several.iter().filter(|(side, _)| side.is_in(value));
            members.extend(others.map(|&(_, member)| member));
            members.sort_unstable_by_key(|member| member.planned.rank);
            match pieces.add_piece(store, value, &members, own, count) {
                // No packet has seen the array that it may have outgrown.
                Ok(grown) => drop(grown),
                Err(reason) => {
                    pieces.forget(store);
                    return Err(reason);
                }
            }
        }
        Ok(pieces)
    }

    /// Makes a piece, and its door. Returns the array of doors that has grown too small: the new one has to be shown.
    fn add_piece(
        &mut self,
        store: &mut Store,
        value: u128,
        members: &[Member],
        own: usize,
        count: usize,
    ) -> Result<Option<SlotArray>, &'static str> {
        let key = self.common.cut().key(value).ok_or(TOO_MANY)?;
        let piece = Piece::new(store, members, own, &key.values, self.common.site(count))?;
        let grown = self.doors.insert(&store.arena, &key.values, piece.door);
        self.places += piece.members.len();
        self.pieces.insert(value, piece);
        Ok(grown)
    }

    /// How many words there are before each cell.
    pub fn room(&self) -> usize {
        self.common.room
    }

    /// How it is searched, and where the doors are.
    pub fn template(&self) -> (Template, Vec<*const u8>) {
        let pointers = vec![self.doors.slots_ptr().cast(), self.rest_door];
        (Template::Cut(self.shape.clone()), pointers)
    }

    /// Has packets find an entry.
    pub(super) fn put(
        &mut self,
        store: &mut Store,
        member: &Member,
        shown: Option<&OwnedBody>,
    ) -> Result<(), NeedsRebuild> {
        let side = self.common.side(&member.planned.entry);
        if let Side::One(value) = side
            && !self.pieces.contains_key(&value)
        {
            self.open(store, value, shown)?;
        }
        self.entries += 1;
        let mut places = self.places;
        self.each(store, side, |piece, store, site| {
            places += 1;
            piece.own += usize::from(matches!(side, Side::One(_)));
            piece.put(store, member, site)
        })?;
        self.places = places;
        match self.places > 2 * places_max(self.entries) {
            true => Err(NeedsRebuild),
            false => Ok(()),
        }
    }

    /// Has packets find an entry's cell in the place of that of another one with the same match and rank.
    pub(super) fn replace(
        &mut self,
        store: &mut Store,
        old: CellPlace,
        member: &Member,
    ) -> Result<(), NeedsRebuild> {
        let side = self.common.side(&member.planned.entry);
        self.each(store, side, |piece, store, site| {
            piece.replace(store, old, member, site)
        })
    }

    /// Has packets no longer find an entry.
    pub(super) fn remove(
        &mut self,
        store: &mut Store,
        member: &Member,
        next: Next,
    ) -> Result<(), NeedsRebuild> {
        let side = self.common.side(&member.planned.entry);
        self.entries -= 1;
        let mut places = self.places;
        self.each(store, side, |piece, store, site| {
            places -= 1;
            piece.own -= usize::from(matches!(side, Side::One(_)));
            piece.remove(store, member, next, site)
        })?;
        self.places = places;
        match side {
            Side::One(value) => self.close(store, value),
            Side::Several { .. } => Ok(()),
        }
    }

    /// Does something about each piece on a side, the rest included.
    fn each(
        &mut self,
        store: &mut Store,
        side: Side,
        mut change: impl FnMut(&mut Piece, &mut Store, Site) -> Result<(), NeedsRebuild>,
    ) -> Result<(), NeedsRebuild> {
        let site = self.common.site(self.pieces.len());
        if let Side::One(value) = side {
            let piece = self.pieces.get_mut(&value).ok_or(NeedsRebuild)?;
            return change(piece, store, site);
        }
        let rest_site = self.common.site_of_rest(self.pieces.len());
        let mut pieces = self.pieces.iter_mut();
        pieces.try_for_each(|(value, piece)| match side.is_in(*value) {
            true => change(piece, store, site),
            false => Ok(()),
        })?;
        change(&mut self.rest, store, rest_site)
    }

    /// Makes a piece for a value that none is for, of those entries of the rest that concern it: packets of the value
    /// find the same in it as they did.
    fn open(
        &mut self,
        store: &mut Store,
        value: u128,
        shown: Option<&OwnedBody>,
    ) -> Result<(), NeedsRebuild> {
        if self.pieces.len() == PIECES_MAX {
            return Err(NeedsRebuild);
        }
        let members = self.rest.members.iter();
        let concerned = members.filter(|(_, entry)| self.common.side(entry).is_in(value));
        let planned = planned(concerned)?;
        let members = members_of(store, &planned, self.common.room)?;
        let count = self.pieces.len() + 1;
        let grown = self.add_piece(store, value, &members, 0, count);
        if let Some(old) = grown.map_err(|_| NeedsRebuild)? {
            show_slots(store, shown, 0, &self.doors, old);
        }
        Ok(())
    }

    /// Takes out the piece of a value that no entry asks for any more: packets of it find the same in the rest.
    fn close(&mut self, store: &mut Store, value: u128) -> Result<(), NeedsRebuild> {
        if self.pieces.get(&value).is_some_and(|piece| piece.own > 0) {
            return Ok(());
        }
        let key = self.common.cut().key(value).ok_or(NeedsRebuild)?;
        self.doors.remove(&store.arena, &key.values);
        if let Some(piece) = self.pieces.remove(&value) {
            self.places -= piece.members.len();
            piece.retire(store);
        }
        Ok(())
    }

    /// By what they were cut.
    pub fn cut(&self) -> Cut {
        self.common.cut()
    }

    /// Those of each value, in the order of these.
    pub fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.values()
    }

    /// What packets go on in that have none of the values.
    pub fn rest(&self) -> &Piece {
        &self.rest
    }

    /// What a packet goes on in that has this value; `None` for one without the field.
    pub fn piece_of(&self, value: Option<u128>) -> &Piece {
        let piece = value.and_then(|value| self.pieces.get(&value));
        piece.unwrap_or(&self.rest)
    }

    /// How many places the entries have in all pieces and the rest.
    pub fn places(&self) -> usize {
        self.places
    }

    /// Bytes of what finds the pieces.
    pub fn door_bytes(&self) -> usize {
        self.doors.bytes() + (1 + self.pieces.len()) * UNIT_BYTES
    }

    /// Bytes of what finds its entries, but for what is in the arena.
    pub fn bytes(&self) -> usize {
        let pieces = self.pieces.values().chain([&self.rest]);
        let bytes = pieces.map(|piece| piece.form.bytes() + size_of::<Body>());
        self.doors.bytes() + bytes.sum::<usize>()
    }

    /// Frees it, but for the cells, once packets cannot be in it any more.
    pub fn retire(self, store: &mut Store) {
        let pieces = self.pieces.into_values().chain([self.rest]);
        pieces.for_each(|piece| piece.retire(store));
        store.retire(OldForm::Hash(self.doors));
    }

    /// Frees it, but for the cells: packets never saw it.
    pub fn forget(self, store: &mut Store) {
        for piece in self.pieces.into_values().chain([self.rest]) {
            store.forget_door(piece.door, piece.door_words);
            piece.form.forget(store);
        }
    }
}

impl Piece {
    /// A piece of these entries, in their order, `own` of which are in no other one, and its door behind these words.
    fn new(
        store: &mut Store,
        members: &[Member],
        own: usize,
        words: &[u64],
        site: Site,
    ) -> Result<Self, &'static str> {
        let Made { form, shown, last } = Made::new(store, members, site)?;
        let Some(door) = store.make_door(words, &shown.body) else {
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
            door,
            door_words: words.len(),
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
        old: CellPlace,
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

    /// Whether packets do not come to an entry, as one before it matches them all.
    fn is_behind(&self, rank: Rank) -> bool {
        self.last.is_some_and(|last| last < rank)
    }

    /// Shows what has changed in the form, or builds it anew where it could not change.
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

    /// Shows another body where the one that is shown is not how the piece should be searched any more.
    fn refresh(&mut self, store: &mut Store, site: Site) -> Result<(), NeedsRebuild> {
        let mut empty = self.form.tidy();
        let shown = &self.shown.body;
        if let Some((template, pointers)) =
            self.form.outdated(&shown.template, near_bytes(site.count))
        {
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
        store.lead(self.door, self.door_words, &body.body);
        let old = std::mem::replace(&mut self.shown, body);
        store.retire(OldForm::Body(old));
    }

    /// Builds the form anew, behind its door.
    fn rebuild(&mut self, store: &mut Store, site: Site) -> Result<(), NeedsRebuild> {
        if self.members.len() > BULK && self.since_built < self.members.len() {
            return Err(NeedsRebuild);
        }
        let planned = planned(self.members.iter())?;
        let members = members_of(store, &planned, site.room)?;
        let made = Made::new(store, &members, site).map_err(|_| NeedsRebuild)?;
        self.show(store, made.shown);
        std::mem::replace(&mut self.form, made.form).retire(store);
        self.last = made.last;
        self.since_built = 0;
        Ok(())
    }

    /// What packets see of it.
    pub fn template(&self) -> &Template {
        &self.shown.body.template
    }

    /// The entries that packets come to.
    pub fn entries(&self) -> impl Iterator<Item = &FlowEntry> {
        let last = self.last.unwrap_or(Rank::LAST);
        self.members.range(..=last).map(|(_, entry)| &**entry)
    }

    /// Its own pieces, if it was cut again.
    pub fn pieces(&self) -> Option<&Pieces> {
        match &self.form {
            Form::Cut(pieces) => Some(pieces),
            _ => None,
        }
    }

    /// How many bytes what finds its entries takes, without these.
    pub fn bytes(&self) -> usize {
        match &self.form {
            Form::Cut(pieces) => pieces.bytes(),
            form => form.part_bytes().iter().sum(),
        }
    }

    /// The machine code that searches it, if there is any.
    pub fn listing(&self) -> Option<String> {
        self.shown.runner.listing()
    }

    fn retire(self, store: &mut Store) {
        store.retire(OldForm::Door(self.door, self.door_words));
        store.retire(OldForm::Body(self.shown));
        self.form.retire(store);
    }
}

impl Made {
    /// The best form for the entries of a piece, in their order, and what packets are to see of it.
    fn new(store: &mut Store, members: &[Member], site: Site) -> Result<Self, &'static str> {
        let planned: Vec<_> = members.iter().map(|member| member.planned).collect();
        let (reached, last) = reachable(&planned, site.cuts);
        let members = &members[..reached.len() + usize::from(last.is_some())];
        let (members, default) = match last.and(members.split_last()) {
            Some((last, members)) => (members, last.place.cell.cast_const()),
            None => (members, site.default),
        };
        let may_be_direct = Way::may_be_direct(site.count, site.depth);
        let form = match Way::of(&reached, site.cuts, may_be_direct) {
            Way::Direct => Form::Direct,
            Way::Lpm => Form::Lpm(Box::new(Routes::new(store, members, site.cuts)?)),
            Way::Hash => match Cut::best(&reached, site.cuts, site.depth) {
                Some(cut) => {
                    let common = Common {
                        cuts: [site.cuts, &[cut]].concat(),
                        depth: site.depth + 1,
                        room: site.room,
                        default,
                    };
                    Form::Cut(Box::new(Pieces::new(store, members, common)?))
                }
                None => Form::Hash(hash_parts(store, members)),
            },
        };
        if matches!(&form, Form::Hash(parts) if parts.len() > MAX_PARTS) {
            return Err(TOO_MANY);
        }
        let (form, shown) = form.with_body(store, members, default, near_bytes(site.count))?;
        Ok(Self {
            form,
            shown,
            last: last.map(|planned| planned.rank),
        })
    }
}

/// How many bytes one of so many pieces may have to be searched without pauses.
fn near_bytes(count: usize) -> usize {
    NEAR_BYTES / count.max(1)
}

/// Entries as they are looked at for a form.
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

/// The same with the cells that they have.
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
