//! The cells of all groups that flow records refer to, and the compiled groups that they show.

use super::translate::BoundBucket;
use crate::counters::EntryCounters;
use crate::fast::datapath::group::{BucketEnd, Choice, CompiledBucket, CompiledGroup, GroupCell};
use crate::fast::datapath::needs::Needs;
use crate::fast::datapath::sent::MAX_SENT;
use crate::fast::memory::arena::{Arena, Ref};
use crate::group_counters::GroupCounters;
use crate::thread_counts::ThreadCounts;
use crate::{Bucket, Group, Groups};
use std::collections::{BTreeSet, HashMap};
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use urtica_wire::{GROUP_ANY, GroupType};

/// Cells, by the number of their group.
#[derive(Debug, Default)]
pub(super) struct GroupCells {
    cells: HashMap<u32, HeldGroup>,
    /// Groups whose cells are not up to date.
    stale: BTreeSet<u32>,
    /// Groups with a bucket that watches a port or group, and groups with one that watches a group.
    watching: BTreeSet<u32>,
    watching_groups: BTreeSet<u32>,
    /// Replaced groups that packets may still use.
    replaced: Vec<Replaced>,
}

/// A replaced group, to be freed when no packet can use it.
#[derive(Debug)]
pub(super) enum Replaced {
    Group(#[expect(dead_code, reason = "freed with this")] Arc<CompiledGroup>),
    /// The counters of a group and its buckets.
    Counters(Vec<Ref>),
}

/// A cell, and its data.
#[derive(Debug)]
struct HeldGroup {
    cell: Arc<GroupCell>,
    /// The number of flow records that refer to it.
    records: usize,
    /// The group that the cell shows; `None` if packets are left to the plain form.
    shown: Option<Arc<CompiledGroup>>,
    /// The counters of the group and its buckets.
    counters: Vec<Ref>,
}

/// The current data from which groups are compiled.
pub(super) struct World<'a> {
    pub groups: &'a Groups,
    pub is_live: &'a dyn Fn(&Bucket) -> bool,
    pub arena: &'a mut Arena,
    pub threads: Option<&'a ThreadCounts>,
}

/// The size of a group's or bucket's counters in units of the arena.
const COUNTERS_UNITS: usize = 1;

impl GroupCells {
    /// Returns the address of a group's cell, for another flow record.
    pub fn acquire(&mut self, group_id: u32) -> u64 {
        let held = self.hold(group_id);
        held.records += 1;
        Arc::as_ptr(&held.cell) as u64
    }

    /// Releases the cell of a flow record that no packet uses any longer. The cell of an existing group stays, since it has the
    /// group's counters.
    pub fn release(&mut self, group_id: u32) {
        if let Some(held) = self.cells.get_mut(&group_id) {
            held.records -= 1;
            if held.records == 0 && held.counters.is_empty() {
                self.stale.insert(group_id);
            }
        }
    }

    /// Notes that a group was added, modified or deleted; `None` means that all were deleted.
    pub fn note(&mut self, group_id: Option<u32>, groups: &Groups) {
        let Some(group_id) = group_id else {
            return self.stale.extend(self.cells.keys());
        };
        let changed = groups.ancestors(group_id).into_iter().chain([group_id]);
        let held = changed.filter(|id| self.cells.contains_key(id));
        self.stale.extend(held);
    }

    /// Updates the cells to the current groups. Returns the replaced ones, which packets may still use.
    pub fn refresh(&mut self, world: &mut World<'_>) -> Vec<Replaced> {
        let mut has_changed = false;
        while let Some(&group_id) = self.stale.first() {
            self.current(group_id, world);
            has_changed = true;
        }
        if has_changed {
            // A bucket may watch one of the changed groups.
            self.refresh_those(&self.watching_groups, world.groups, world.is_live);
        }
        std::mem::take(&mut self.replaced)
    }

    /// Updates the liveness of buckets.
    pub fn refresh_liveness(&self, groups: &Groups, is_live: &dyn Fn(&Bucket) -> bool) {
        self.refresh_those(&self.watching, groups, is_live);
    }

    fn refresh_those(
        &self,
        group_ids: &BTreeSet<u32>,
        groups: &Groups,
        is_live: &dyn Fn(&Bucket) -> bool,
    ) {
        for group_id in group_ids.difference(&self.stale) {
            let shown = self
                .cells
                .get(group_id)
                .and_then(|held| held.shown.as_ref());
            let (Some(group), Some(shown)) = (groups.get(*group_id), shown) else {
                continue;
            };
            for (bucket, shown) in group.buckets.iter().zip(&shown.buckets) {
                shown.is_live.store(is_live(bucket), Relaxed);
            }
        }
    }

    fn note_watching(&mut self, group_id: u32, group: &Group) {
        let mut buckets = group.buckets.iter();
        if buckets.any(Bucket::is_watching) {
            self.watching.insert(group_id);
        }
        let mut buckets = group.buckets.iter();
        if buckets.any(|bucket| bucket.watch_group != GROUP_ANY) {
            self.watching_groups.insert(group_id);
        }
    }

    /// Makes groups take over the counts of the compiled form, which processes no more packets.
    pub fn end(&mut self, groups: &Groups) {
        let known = self.cells.keys().filter_map(|&id| groups.get(id));
        known.for_each(|group| counters_of(group).for_each(GroupCounters::unlink));
        self.cells.clear();
    }

    fn hold(&mut self, group_id: u32) -> &mut HeldGroup {
        self.cells.entry(group_id).or_insert_with(|| {
            self.stale.insert(group_id);
            HeldGroup {
                cell: Arc::new(GroupCell::new(group_id)),
                records: 0,
                shown: None,
                counters: Vec::new(),
            }
        })
    }

    /// Returns the compiled form of the current group; `None` if packets must be left to the plain form. Groups form no loops.
    fn current(&mut self, group_id: u32, world: &mut World<'_>) -> Option<Arc<CompiledGroup>> {
        self.hold(group_id);
        if self.stale.remove(&group_id) {
            self.watching.remove(&group_id);
            self.watching_groups.remove(&group_id);
            let known = world.groups.get(group_id);
            let compiled = match known {
                Some(group) => self.compile(group_id, group, world),
                None => Some(CompiledGroup::missing()),
            };
            self.show(group_id, compiled.map(Arc::new));
            if known.is_none() {
                self.forget_missing(group_id);
            }
        }
        self.cells.get(&group_id)?.shown.clone()
    }

    fn show(&mut self, group_id: u32, compiled: Option<Arc<CompiledGroup>>) {
        let Some(held) = self.cells.get_mut(&group_id) else {
            return;
        };
        let pointer = compiled.as_ref().map_or(null(), Arc::as_ptr);
        held.cell.group.store(pointer.cast_mut(), Release);
        let before = std::mem::replace(&mut held.shown, compiled);
        self.replaced.extend(before.map(Replaced::Group));
    }

    /// Frees the data of a deleted group. Its cell stays while flow records refer to it.
    fn forget_missing(&mut self, group_id: u32) {
        let Some(held) = self.cells.get_mut(&group_id) else {
            return;
        };
        let counters = std::mem::take(&mut held.counters);
        self.replaced.push(Replaced::Counters(counters));
        if held.records == 0 {
            let shown = self.cells.remove(&group_id).and_then(|held| held.shown);
            self.replaced.extend(shown.map(Replaced::Group));
        }
    }

    /// Compiles a group; `None` if the compiled form does not support all of its buckets, or has no memory for its counters.
    fn compile(
        &mut self,
        group_id: u32,
        group: &Group,
        world: &mut World<'_>,
    ) -> Option<CompiledGroup> {
        let choice = match group.group_type {
            GroupType::All if group.buckets.len() <= 1 => Choice::First,
            GroupType::Indirect => Choice::First,
            GroupType::FastFailover => Choice::FirstLive,
            GroupType::Select => Choice::ByFlow,
            GroupType::All => Choice::All,
            GroupType::Other(_) => return None,
        };
        self.link(group_id, group, world)?;
        self.note_watching(group_id, group);
        let mut needs = Needs::default();
        let buckets = group.buckets.iter().map(|bucket| {
            let (bucket, needed) = self.compile_bucket(bucket, world)?;
            needs = match choice {
                Choice::All => needs.beside(needed),
                _ => needs.or(needed),
            };
            Some(bucket)
        });
        let buckets = buckets.collect::<Option<_>>()?;
        (needs.sent <= MAX_SENT).then(|| CompiledGroup {
            choice,
            needs: match needs.changes {
                true => needs,
                false => Needs { copies: 0, ..needs },
            },
            counters: Some(group.counters.linked.pointer()),
            buckets,
        })
    }

    /// Compiles a bucket, and returns its requirements on frames, including those of its groups.
    fn compile_bucket(
        &mut self,
        bucket: &Bucket,
        world: &mut World<'_>,
    ) -> Option<(CompiledBucket, Needs)> {
        let bound = BoundBucket::of(&bucket.actions)?;
        let mut needs = bound.needs();
        let end = match bound.next_group {
            Some(group_id) => {
                let next = self.current(group_id, world)?;
                needs = needs.then(next.needs);
                BucketEnd::Group(next)
            }
            None => bound.end,
        };
        let compiled = CompiledBucket {
            is_live: (world.is_live)(bucket).into(),
            weight: bucket.weight,
            seed: bucket.seed,
            counters: bucket.counters.linked.pointer(),
            ops: bound.ops.into(),
            params: bound.params.into(),
            end,
        };
        Some((compiled, needs))
    }

    /// Creates the counters of a group and its buckets, unless they exist. `None` if there is not enough memory.
    fn link(&mut self, group_id: u32, group: &Group, world: &mut World<'_>) -> Option<()> {
        if !group.counters.linked.pointer().is_null() {
            return Some(());
        }
        let held = self.cells.get_mut(&group_id)?;
        // The counters of the replaced group.
        let before = std::mem::take(&mut held.counters);
        self.replaced.push(Replaced::Counters(before));
        for counters in counters_of(group) {
            let block = world.arena.allocate(COUNTERS_UNITS);
            held.counters.extend(block);
            let has_memory = world
                .threads
                .is_none_or(|threads| threads.reach(world.arena.committed_bytes()));
            let Some(block) = block.filter(|_| has_memory) else {
                counters_of(group).for_each(|counters| counters.linked.clear());
                let unused = std::mem::take(&mut held.counters);
                self.replaced.push(Replaced::Counters(unused));
                return None;
            };
            let own = world.arena.pointer(block).cast::<EntryCounters>();
            // SAFETY: the block is long enough for counters, zeroed, and in the arena of the threads' counters. It is freed after
            // the group was deleted or replaced, which clears the link (`Group::retire`), or after it was cleared otherwise.
            unsafe { counters.linked.set(own, world.threads) };
        }
        Some(())
    }
}

/// Frees counters that no packet can use any longer.
pub(super) fn free_counters(blocks: Vec<Ref>, arena: &mut Arena, threads: Option<&ThreadCounts>) {
    for block in blocks {
        if let Some(threads) = threads {
            // SAFETY: the counters are in the arena.
            unsafe { threads.clear(arena.pointer(block).cast_const().cast()) };
        }
        arena.free(block, COUNTERS_UNITS);
    }
}

fn counters_of(group: &Group) -> impl Iterator<Item = &GroupCounters> {
    let buckets = group.buckets.iter().map(|bucket| &bucket.counters);
    std::iter::once(&group.counters).chain(buckets)
}
