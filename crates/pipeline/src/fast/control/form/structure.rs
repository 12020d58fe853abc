//! The search structures to which a table is compiled.

use super::Form;
use super::part::{Part, are_shown_by, hash_template, part_index};
use super::{Member, NO_ROOM, NeedsRebuild, Next, direct_template, show_slots, shows_part};
use crate::fast::control::choice::Choice;
use crate::fast::control::plan::Plan;
use crate::fast::control::record_place::RecordPlace;
use crate::fast::control::store::{OldForm, OwnedBody, Store};
use crate::fast::datapath::table::{FlowRecord, Template};
use std::cmp::Reverse;
use std::mem;

impl Form {
    /// Returns `true` if a plan would create this structure, apart from its parts.
    pub(super) fn is_as_planned(&self, plan: &Plan) -> bool {
        match (self, &plan.choice) {
            (Self::Hash(_), Choice::Hash) | (Self::Merged(_), Choice::Merged(_)) => true,
            (Self::Cut(sub_tables), Choice::Cut(chosen)) => sub_tables.cut() == chosen.cut,
            _ => false,
        }
    }

    /// Makes packets find an entry's flow record. `shown` is the published body.
    pub(super) fn put(
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

    /// Makes packets find an entry's flow record instead of one with equal match and rank.
    pub(super) fn replace(
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

    /// Hides an entry's flow record from packets, which find the one of the next entry with an equal match, if any.
    pub(super) fn remove(
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

    /// Sorts the parts in the order of the search, and removes and returns empty ones.
    pub(super) fn tidy(&mut self) -> Vec<Part> {
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

    /// Adds empty parts that are still published again.
    pub(super) fn untidy(&mut self, empty: &mut Vec<Part>) {
        if let Self::Hash(parts) = self {
            parts.append(empty);
        }
    }

    /// Returns the template, and the addresses of the search structures; `None` for structures that are rebuilt at each
    /// change.
    pub(super) fn template(&self, near_bytes: usize) -> Option<(Template, Vec<*const u8>)> {
        match self {
            Self::Hash(parts) => Some(hash_template(parts, near_bytes)),
            Self::Lpm(routes) => Some(routes.template(near_bytes)),
            Self::Cut(sub_tables) => Some(sub_tables.template()),
            Self::Merged(tuples) => Some(tuples.template()),
            Self::Direct | Self::Plain(_) => None,
        }
    }

    /// Returns `true` if packets that see this template find all entries, and another template would not be much better.
    pub(super) fn is_shown_by(&self, shown: &Template, near_bytes: usize) -> bool {
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

    /// Creates the form with its body; `members` are its entries.
    pub(super) fn with_body(
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

    /// Returns the size of the search structures in bytes, without those in the arena.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Hash(parts) => parts.iter().map(|part| part.table.bytes()).sum(),
            Self::Lpm(routes) => routes.trie.bytes_beside_arena(),
            Self::Cut(sub_tables) => sub_tables.bytes(),
            Self::Merged(tuples) => tuples.bytes(),
            Self::Direct | Self::Plain(_) => 0,
        }
    }

    /// Returns the size of each part's search structure in bytes, without the entries.
    pub(super) fn part_bytes(&self) -> Vec<usize> {
        match self {
            Self::Hash(parts) => parts.iter().map(|part| part.table.bytes()).collect(),
            Self::Lpm(routes) => vec![routes.trie.search_bytes()],
            Self::Merged(tuples) => vec![tuples.bytes()],
            Self::Cut(_) | Self::Direct | Self::Plain(_) => Vec::new(),
        }
    }

    /// Retires it, except for its flow records: it is freed when no packet can use it.
    pub(super) fn retire(self, store: &mut Store) {
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

    /// Frees it, except for its flow records; packets must never have seen it.
    pub(super) fn forget(self, store: &mut Store) {
        match self {
            Self::Lpm(routes) => routes.trie.free(&mut store.arena),
            Self::Cut(sub_tables) => sub_tables.forget(store),
            Self::Merged(tuples) => tuples.free(&mut store.arena),
            Self::Hash(_) | Self::Direct | Self::Plain(_) => {}
        }
    }
}
