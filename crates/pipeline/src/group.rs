//! Groups: sets of buckets that process packets (1.3.5 sections 5.10, 6.5, 7.3.4.2).
//!
//! Groups may send packets to other groups, but not back to themselves, and may not watch themselves, even through other
//! groups. A group mod that would create such a loop is refused, as is one that makes a chain longer than [`MAX_CHAIN`].
//! Therefore walks along chains always end.

use crate::group_counters::GroupCounters;
use crate::references::References;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use urtica_wire::{Action, BucketCounter, ErrorCode, GROUP_ANY, GroupType, PortNo};

/// The maximum length of a chain of groups.
pub const MAX_CHAIN: usize = 32;
/// The maximum number of buckets of a group.
pub const MAX_BUCKETS: usize = 1024;

/// All groups, by number.
#[derive(Debug, Default)]
pub struct Groups {
    groups: BTreeMap<u32, Arc<Group>>,
    /// References to groups by the groups that send packets to them.
    users: References<u32>,
}

/// A group.
///
/// Thread-safety: any thread may count and read. Everything else is changed only by group mods, which have exclusive access to
/// the pipeline.
#[derive(Debug)]
pub struct Group {
    /// The type, which determines the buckets that a packet is sent to.
    pub group_type: GroupType,
    /// The buckets.
    pub buckets: Vec<Bucket>,
    /// The time when it was added.
    pub added: Duration,
    pub(crate) counters: GroupCounters,
}

/// A bucket of a group.
#[derive(Debug)]
pub struct Bucket {
    /// The relative weight, in select groups.
    pub weight: u16,
    /// The port that must be live for the bucket to be live; [`PortNo::ANY`] for none.
    pub watch_port: PortNo,
    /// The group that must be live for the bucket to be live; [`urtica_wire::GROUP_ANY`] for none.
    pub watch_group: u32,
    /// The action set, in the controller's order.
    pub actions: Vec<Action<'static>>,
    /// The seed of select groups' hashes: see the module `group_select`.
    pub(crate) seed: u64,
    pub(crate) counters: GroupCounters,
}

impl Groups {
    /// Returns the group with this number.
    pub fn get(&self, group_id: u32) -> Option<&Group> {
        self.groups.get(&group_id).map(Arc::as_ref)
    }

    /// Returns all groups, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Group)> {
        self.groups.iter().map(|(&id, group)| (id, &**group))
    }

    /// Returns the groups with these numbers, in order.
    pub(crate) fn range(
        &self,
        ids: RangeInclusive<u32>,
    ) -> impl Iterator<Item = (u32, &Arc<Group>)> {
        self.groups.range(ids).map(|(&id, group)| (id, group))
    }

    /// Returns the number of groups.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Returns the groups that send packets to this one, directly or through other groups.
    pub(crate) fn ancestors(&self, group_id: u32) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        let mut waiting = vec![group_id];
        while let Some(next) = waiting.pop() {
            let users = self.users.to(next);
            waiting.extend(users.filter(|&user| found.insert(user)));
        }
        found
    }

    /// Returns the number of groups that send packets directly to this one.
    pub(crate) fn user_count(&self, group_id: u32) -> u32 {
        self.users.count(group_id)
    }

    /// Inserts a group, and returns the one it replaces.
    pub(crate) fn insert(&mut self, group_id: u32, group: Arc<Group>) -> Option<Arc<Group>> {
        let previous = self.remove(group_id);
        self.users.add(group_id, group.used_groups());
        self.groups.insert(group_id, group);
        previous
    }

    /// Removes a group.
    pub(crate) fn remove(&mut self, group_id: u32) -> Option<Arc<Group>> {
        let group = self.groups.remove(&group_id)?;
        self.users.remove(group_id, group.used_groups());
        Some(group)
    }

    /// Removes all groups.
    pub(crate) fn clear(&mut self) {
        let taken = std::mem::take(self);
        taken.groups.values().for_each(|group| group.retire());
    }

    /// Returns whether packets of a group return to it, or its liveness depends on itself.
    fn has_loop(&self, group_id: u32) -> bool {
        let mut seen = BTreeSet::new();
        let mut waiting = self.next_groups(group_id);
        while let Some(next) = waiting.pop() {
            if next == group_id {
                return true;
            }
            if seen.insert(next) {
                waiting.extend(self.next_groups(next));
            }
        }
        false
    }

    /// Returns the length of the longest chain that starts with a group. There must be no loops. `known` caches results.
    fn chain_length(&self, group_id: u32, known: &mut BTreeMap<u32, usize>) -> usize {
        if let Some(&length) = known.get(&group_id) {
            return length;
        }
        let next = self.next_groups(group_id).into_iter();
        let behind = next.map(|next| self.chain_length(next, known)).max();
        let length = 1 + behind.unwrap_or(0);
        known.insert(group_id, length);
        length
    }

    /// Returns the groups that a group sends packets to or watches.
    fn next_groups(&self, group_id: u32) -> Vec<u32> {
        let buckets = self.get(group_id).map_or(&[][..], |group| &group.buckets);
        buckets.iter().flat_map(Bucket::next_groups).collect()
    }

    /// Checks the chains of a group that was just inserted. A group that sends packets to no other makes no chain longer.
    pub(crate) fn check_chains(&self, group_id: u32) -> Result<(), ErrorCode> {
        if self.next_groups(group_id).is_empty() {
            return Ok(());
        }
        if self.has_loop(group_id) {
            return Err(ErrorCode::GroupModFailedLoop);
        }
        let mut known = BTreeMap::new();
        let mut groups = self.groups.keys();
        match groups.all(|&id| self.chain_length(id, &mut known) <= MAX_CHAIN) {
            true => Ok(()),
            false => Err(ErrorCode::GroupModFailedChainingUnsupported),
        }
    }
}

impl Group {
    /// Returns the groups that it sends packets to, possibly with repetitions.
    fn used_groups(&self) -> impl Iterator<Item = u32> {
        self.buckets.iter().flat_map(Bucket::used_groups)
    }

    /// Returns the numbers of its packets and bytes.
    pub fn counted(&self) -> BucketCounter {
        self.counters.read()
    }

    /// Takes over the compiled form's counts, before the compiled form stops using the group and frees its counters. A reply
    /// may still read the group.
    pub(crate) fn retire(&self) {
        let buckets = self.buckets.iter().map(|bucket| &bucket.counters);
        let counters = std::iter::once(&self.counters).chain(buckets);
        counters.for_each(GroupCounters::unlink);
    }
}

impl Bucket {
    /// Returns the numbers of its packets and bytes.
    pub fn counted(&self) -> BucketCounter {
        self.counters.read()
    }

    /// Returns the groups that it sends packets to or watches.
    fn next_groups(&self) -> impl Iterator<Item = u32> {
        let watched = (self.watch_group != GROUP_ANY).then_some(self.watch_group);
        self.used_groups().chain(watched)
    }

    /// Returns the groups that it sends packets to.
    fn used_groups(&self) -> impl Iterator<Item = u32> {
        self.actions.iter().filter_map(|action| match action {
            Action::Group(id) => Some(*id),
            _ => None,
        })
    }

    /// Returns `true` if its liveness depends on a port or a group.
    pub(crate) fn is_watching(&self) -> bool {
        self.watch_port != PortNo::ANY || self.watch_group != GROUP_ANY
    }
}
