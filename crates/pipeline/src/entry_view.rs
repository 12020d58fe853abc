//! Views: tables as they were at one moment, while they change.
//!
//! **Why.** A reply with a million entries is written in steps, and a slow controller reads it in minutes. It must show the tables at
//! one moment, and neither copy them first nor hold up changes until it has been read.
//!
//! **How.** A table knows the open views of it. Before an entry changes, each view that has not passed it, and selects it, keeps
//! the entry as it was. The walk over a view merges these into the entries of the table. Entries that were added after the
//! view are recognized by their sequence numbers.
//!
//! **Cost.** Without a view, a change inspects an empty list. With views, a change costs the logarithm of the number of kept entries,
//! and a copy of a modified entry, since its counters are continued by another.
//!
//! **Memory.** A view keeps at most the entries that existed when it was opened. All views of a pipeline together keep about
//! [`MAX_KEPT`] entries: beyond, those that keep the most are lost, and their walks end with [`ViewLost`].

use crate::FlowEntry;
use crate::classifier::Rank;
use crate::selection::Selection;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// The number of entries that views may keep together: two full tables of the default size.
const MAX_KEPT: usize = 2 << 20;

/// A view was given up: too many entries changed before it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "too many entries changed while they were read; expected a faster reader, or fewer changes"
)]
pub struct ViewLost;

/// The open views of a pipeline, and the total number of kept entries.
#[derive(Debug)]
pub(crate) struct ViewBudget {
    max_kept: usize,
    kept: AtomicUsize,
    views: AtomicUsize,
}

impl Default for ViewBudget {
    fn default() -> Self {
        Self::new(MAX_KEPT)
    }
}

impl ViewBudget {
    pub fn new(max_kept: usize) -> Self {
        Self {
            max_kept,
            kept: AtomicUsize::new(0),
            views: AtomicUsize::new(0),
        }
    }

    /// Returns `true` if a view that keeps this number of entries must be given up for one more. Of several views, some
    /// view keeps an equal share or more, so the sum stays below twice the maximum.
    fn is_exceeded_by(&self, kept: usize) -> bool {
        let views = self.views.load(Relaxed).max(1);
        self.kept.load(Relaxed) >= self.max_kept && kept >= self.max_kept / views
    }
}

/// Tables as they were at one moment.
#[derive(Debug)]
pub(crate) struct View {
    selection: Selection,
    /// The first of its tables.
    first_table: usize,
    /// The number of entries ever added to each of its tables when it was opened.
    added: Box<[u64]>,
    budget: Arc<ViewBudget>,
    state: Mutex<ViewState>,
}

/// The part of a view that changes.
#[derive(Debug)]
pub(crate) struct ViewState {
    /// The last place inspected.
    passed: Option<Place>,
    /// Entries that have changed since: as they were, or `None` if they were not selected.
    kept: BTreeMap<Place, Option<Arc<FlowEntry>>>,
    is_lost: bool,
}

/// A table, and a rank in it.
type Place = (usize, Rank);

impl View {
    /// A view of tables to which these numbers of entries have been added.
    pub fn open(
        selection: Selection,
        tables: Range<usize>,
        added: Box<[u64]>,
        budget: &Arc<ViewBudget>,
    ) -> Self {
        budget.views.fetch_add(1, Relaxed);
        Self {
            selection,
            first_table: tables.start,
            added,
            budget: Arc::clone(budget),
            state: Mutex::new(ViewState {
                passed: None,
                kept: BTreeMap::new(),
                is_lost: false,
            }),
        }
    }

    /// The entries that it is of.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Returns `true` if an entry with this rank is older than the view.
    pub fn had(&self, table: usize, rank: Rank) -> bool {
        let added = self.added.get(table.wrapping_sub(self.first_table));
        added.is_some_and(|&added| rank.sequence() < added)
    }

    /// Its state, which is whole between any two statements.
    pub fn state(&self) -> MutexGuard<'_, ViewState> {
        self.state.lock()
    }

    /// Keeps an entry that is about to be removed, or replaced by `new`.
    fn note(&self, rank: Rank, old: &Arc<FlowEntry>, new: Option<&FlowEntry>) {
        let place = (usize::from(old.table_id), rank);
        let mut state = self.state();
        let is_done = state.is_lost || state.passed.is_some_and(|passed| place <= passed);
        if is_done || !self.had(place.0, rank) || state.kept.contains_key(&place) {
            return;
        }
        let kept = match (self.selection.is_for(old), new) {
            (true, Some(_)) => Some(Arc::new(old.frozen())),
            (true, None) => Some(Arc::clone(old)),
            (false, Some(new)) if self.selection.is_for(new) => None,
            (false, _) => return,
        };
        if self.budget.is_exceeded_by(state.kept.len()) {
            self.give_up(&mut state);
            return;
        }
        self.budget.kept.fetch_add(1, Relaxed);
        state.kept.insert(place, kept);
    }

    /// Returns the first kept entry in a table, with its rank, and forgets it, if its rank is at most `last`.
    pub fn take_kept(
        &self,
        state: &mut ViewState,
        table: usize,
        last: Option<Rank>,
    ) -> Option<(Rank, Option<Arc<FlowEntry>>)> {
        let first = state.kept.first_entry()?;
        let &(of_table, rank) = first.key();
        if of_table != table || last.is_some_and(|last| rank > last) {
            return None;
        }
        self.budget.kept.fetch_sub(1, Relaxed);
        Some((rank, first.remove()))
    }

    fn give_up(&self, state: &mut ViewState) {
        state.is_lost = true;
        self.forget(state);
    }

    fn forget(&self, state: &mut ViewState) {
        self.budget.kept.fetch_sub(state.kept.len(), Relaxed);
        state.kept.clear();
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let mut state = self.state();
        self.forget(&mut state);
        self.budget.views.fetch_sub(1, Relaxed);
    }
}

impl ViewState {
    /// Returns `true` if too many entries have changed.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Notes that an entry was inspected, and all before it.
    pub fn pass(&mut self, table: usize, rank: Rank) {
        self.passed = Some((table, rank));
    }

    /// Returns whether entries of a table are kept; those of earlier tables have been taken.
    pub fn has_kept(&self, table: usize) -> bool {
        let first = self.kept.first_key_value();
        first.is_some_and(|(&(of_table, _), _)| of_table == table)
    }

    /// The number of kept entries.
    pub fn kept_count(&self) -> usize {
        self.kept.len()
    }
}

/// The open views of a table.
#[derive(Debug, Default)]
pub(crate) struct Views(Mutex<Vec<Weak<View>>>);

impl Views {
    /// Adds a view, and forgets closed ones.
    pub fn add(&self, view: &Arc<View>) {
        let mut views = self.0.lock();
        views.retain(|view| view.strong_count() > 0);
        views.push(Arc::downgrade(view));
    }

    /// Makes each view keep an entry that is about to be removed, or replaced by `new`.
    pub fn note(&mut self, rank: Rank, old: &Arc<FlowEntry>, new: Option<&FlowEntry>) {
        let views = self.0.get_mut();
        views.retain(|view| {
            let view = view.upgrade();
            view.inspect(|view| view.note(rank, old, new)).is_some()
        });
    }
}
