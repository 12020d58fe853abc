//! A form's trie: the entries of a longest prefix match.

use super::{NeedsRebuild, make_cell};
use crate::FlowEntry;
use crate::classifier::Rank;
use crate::fast::arena::UNIT_BYTES;
use crate::fast::key::Key;
use crate::fast::lpm::Trie;
use crate::fast::plan::{Planned, Route, RouteTable};
use crate::fast::store::{CellPlace, OldForm, Store};
use crate::fast::table::Template;
use std::sync::Arc;

/// The bits that the root of a trie looks at.
const ROOT_BITS: u8 = 16;

/// The entries of a longest prefix match.
#[derive(Debug)]
pub(super) struct Routes {
    table: RouteTable,
    pub trie: Trie,
}

impl Routes {
    /// A trie for these entries, without any yet; `None` where they are no routes.
    pub fn new(entries: &[Planned]) -> Option<Self> {
        let table = RouteTable::of(entries)?;
        let trie = Trie::new(table.key_bytes(), ROOT_BITS.into());
        Some(Self { table, trie })
    }

    /// How it is searched, and where its root is.
    pub fn template(&self, near_bytes: usize) -> (Template, Vec<*const u8>) {
        let is_far = self.trie.bytes() + self.trie.len() * UNIT_BYTES > near_bytes;
        let part = self.table.part(ROOT_BITS, is_far);
        (Template::Lpm(part), vec![self.trie.root().entries().cast()])
    }

    /// Adds an entry.
    pub fn add(
        &mut self,
        store: &mut Store,
        rank: Rank,
        entry: &Arc<FlowEntry>,
        key: &Key,
    ) -> Result<(), NeedsRebuild> {
        let route = Route::new(&entry.match_, key.shape.require).ok_or(NeedsRebuild)?;
        if !self.table.add(&route, rank.priority()) {
            return Err(NeedsRebuild);
        }
        let place = make_cell(store, rank, entry, key, 0)?;
        if let Err(error) = self.put(store, entry, key, place) {
            store.forget_cell(place);
            return Err(error);
        }
        // SAFETY: the store keeps the cell until it is retired, and clears the link then.
        unsafe { entry.cell.set(place.cell) };
        Ok(())
    }

    /// Has packets find an entry's cell, which is counted among the routes already.
    pub fn put(
        &mut self,
        store: &mut Store,
        entry: &FlowEntry,
        key: &Key,
        place: CellPlace,
    ) -> Result<(), NeedsRebuild> {
        let route = Route::new(&entry.match_, key.shape.require).ok_or(NeedsRebuild)?;
        let inserted = self
            .trie
            .insert(&mut store.arena, route.prefix(), place.block);
        inserted.map_err(|_| NeedsRebuild)
    }

    /// Has packets find another cell in the place of that of the same match.
    pub fn replace(
        &mut self,
        store: &mut Store,
        entry: &FlowEntry,
        key: &Key,
        place: CellPlace,
    ) -> Result<(), NeedsRebuild> {
        let route = Route::new(&entry.match_, key.shape.require).ok_or(NeedsRebuild)?;
        self.trie.replace(&store.arena, route.prefix(), place.block);
        Ok(())
    }

    /// Takes an entry out.
    pub fn remove(
        &mut self,
        store: &mut Store,
        entry: &FlowEntry,
        key: &Key,
    ) -> Result<(), NeedsRebuild> {
        let route = Route::new(&entry.match_, key.shape.require).ok_or(NeedsRebuild)?;
        self.table.remove(&route);
        if let Some(removed) = self.trie.remove(&store.arena, route.prefix()) {
            debug_assert_eq!(removed.block, store.block_of(entry.cell.cell(), 0));
            for node in removed.nodes {
                store.retire(OldForm::Node(node));
            }
        }
        Ok(())
    }
}
