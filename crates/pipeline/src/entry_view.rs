//! Views: tables as they were at one moment, while they change.
//!
//! **Why.** A reply with a million entries is written in steps, and a slow controller takes minutes to read it. It must show
//! the tables at one moment, without copying them first, and without delaying changes until it has been read.
//!
//! **How.** A table knows its open views. Before an entry changes, each view that selects it and has not passed it yet keeps
//! the old entry. The walk over a view merges the kept entries into those of the table. Sequence numbers identify entries
//! that were added after the view was opened.
//!
//! **Cost.** Without a view, a change checks an empty list. With views, it costs the logarithm of the number of kept entries,
//! and a copy of a modified entry, since the new entry continues its counters.
//!
//! **Memory.** A view keeps at most the entries that existed when it was opened. All views of a pipeline together keep about
//! [`MAX_KEPT`] entries; beyond this, the views that keep the most are lost, and their walks end with [`ViewLost`].

use crate::FlowEntry;
use crate::classifier::Rank;
use crate::selection::Selection;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// The maximum number of entries that all views keep together: two full tables of the default size.
const MAX_KEPT: usize = 2 << 20;

/// A view was lost: too many entries changed before it had been read.
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

    /// Returns `true` if a view that keeps `kept` entries must be lost instead of keeping another. With several views, at least
    /// one keeps an equal share or more, so the sum stays below twice the maximum.
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
    /// The number of entries ever added to each table when the view was opened.
    added: Box<[u64]>,
    budget: Arc<ViewBudget>,
    state: Mutex<ViewState>,
}

/// The changing state of a view.
#[derive(Debug)]
pub(crate) struct ViewState {
    /// The last inspected position.
    passed: Option<Place>,
    /// Old versions of entries that have changed, or `None` for those that the view does not select.
    kept: BTreeMap<Place, Option<Arc<FlowEntry>>>,
    is_lost: bool,
}

/// A position: a table, and a rank in it.
type Place = (usize, Rank);

impl View {
    /// Opens a view of tables to which these numbers of entries have been added.
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

    /// Returns the selection of its entries.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Returns `true` if the entry with this rank is older than the view.
    pub fn had(&self, table: usize, rank: Rank) -> bool {
        let added = self.added.get(table.wrapping_sub(self.first_table));
        added.is_some_and(|&added| rank.sequence() < added)
    }

    /// Locks the state, which is consistent after every statement.
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

    /// Removes and returns the first kept entry of a table and its rank, if this is at most `last`.
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
    /// Returns `true` if the view was lost, because too many entries have changed.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Notes that the walk has passed an entry.
    pub fn pass(&mut self, table: usize, rank: Rank) {
        self.passed = Some((table, rank));
    }

    /// Returns whether the view keeps entries of this table. Entries of earlier tables have already been taken.
    pub fn has_kept(&self, table: usize) -> bool {
        let first = self.kept.first_key_value();
        first.is_some_and(|(&(of_table, _), _)| of_table == table)
    }

    /// Returns the number of kept entries.
    pub fn kept_count(&self) -> usize {
        self.kept.len()
    }
}

/// The open views of a table.
#[derive(Debug, Default)]
pub(crate) struct Views(Mutex<Vec<Weak<View>>>);

impl Views {
    /// Adds a view, and removes closed ones.
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
