//! A form's trie: the entries of a longest prefix match.

use super::{Member, NO_ROOM, NeedsRebuild};
use crate::fast::control::cut::Cut;
use crate::fast::control::planned::Planned;
use crate::fast::control::route::{Route, RouteTable};
use crate::fast::control::store::{OldForm, Store};
use crate::fast::datapath::table::Template;
use crate::fast::memory::arena::{NODE_UNITS, UNIT_BYTES};
use crate::fast::memory::lpm::{Prefix, Trie};

/// The number of bits that index the root of a trie.
const ROOT_BITS: u8 = 16;

/// The entries of a longest prefix match.
#[derive(Debug)]
pub(super) struct Routes {
    table: RouteTable,
    /// The cuts that led to the sub-table with these entries.
    cuts: Vec<Cut>,
    /// The number of words before each flow record.
    room: usize,
    pub trie: Trie,
}

impl Routes {
    /// Returns whether a trie can search these entries, which are all of a table, or of a sub-table that these cuts have
    /// created.
    pub fn may_be_of(members: &[Member], cuts: &[Cut]) -> bool {
        RouteTable::of(members.iter().map(|member| member.planned), cuts).is_some()
    }

    /// Creates a trie of these entries, which are all of a table, or of a sub-table after these cuts.
    ///
    /// # Errors
    /// If they are not routes, or there is not enough memory for the nodes.
    pub fn new(store: &mut Store, members: &[Member], cuts: &[Cut]) -> Result<Self, &'static str> {
        let planned = members.iter().map(|member| member.planned);
        let table = RouteTable::of(planned, cuts).ok_or("its entries are no routes")?;
        let mut routes = Self {
            trie: Trie::new(table.key_bytes(), ROOT_BITS.into()),
            table,
            cuts: cuts.to_vec(),
            room: members.first().map_or(0, |member| member.place.words),
        };
        let mut members = members.iter();
        match members.try_for_each(|member| routes.insert(store, member)) {
            Ok(()) => Ok(routes),
            Err(NeedsRebuild) => {
                routes.trie.free(&mut store.arena);
                Err(NO_ROOM)
            }
        }
    }

    /// Returns the template, and the address of the root.
    pub fn template(&self, near_bytes: usize) -> (Template, Vec<*const u8>) {
        let is_far = self.trie.bytes() + self.trie.len() * UNIT_BYTES > near_bytes;
        let part = self.table.part(ROOT_BITS, self.room, is_far);
        (Template::Lpm(part), vec![self.trie.root().entries().cast()])
    }

    /// Makes packets find an entry's flow record.
    pub fn put(&mut self, store: &mut Store, member: &Member) -> Result<(), NeedsRebuild> {
        let route = self.route(member.planned)?;
        let is_new = self.cuts.is_empty() || !self.trie.has(route.prefix());
        if !is_new || !self.table.add(&route, member.planned.rank.priority()) {
            return Err(NeedsRebuild);
        }
        self.insert(store, member)?;
        match self.trie.is_compact() {
            true => Ok(()),
            false => Err(NeedsRebuild),
        }
    }

    fn insert(&mut self, store: &mut Store, member: &Member) -> Result<(), NeedsRebuild> {
        let prefix = self.prefix(member.planned)?;
        let inserted = self
            .trie
            .insert(&mut store.arena, prefix, member.place.block);
        inserted.map_err(|_| NeedsRebuild)
    }

    /// Makes packets find an entry instead of one with an equal match.
    pub fn replace(&mut self, store: &Store, member: &Member) -> Result<(), NeedsRebuild> {
        let prefix = self.prefix(member.planned)?;
        self.trie.replace(&store.arena, prefix, member.place.block);
        Ok(())
    }

    /// Removes an entry.
    pub fn remove(&mut self, store: &mut Store, member: &Member) -> Result<(), NeedsRebuild> {
        let route = self.route(member.planned)?;
        self.table.remove(&route);
        if let Some(removed) = self.trie.remove(&store.arena, route.prefix()) {
            debug_assert_eq!(removed.block, member.place.block);
            for node in removed.nodes {
                store.retire(OldForm::Block(node, NODE_UNITS));
            }
        }
        Ok(())
    }

    fn prefix(&self, planned: &Planned) -> Result<Prefix, NeedsRebuild> {
        Ok(self.route(planned)?.prefix())
    }

    fn route(&self, planned: &Planned) -> Result<Route, NeedsRebuild> {
        let require = planned.key.mask.require;
        Route::within(&planned.entry.match_, require, &self.cuts).ok_or(NeedsRebuild)
    }
}
