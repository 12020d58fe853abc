//! Group mods: adding, changing and deleting groups (1.3.5 sections 6.5, 7.3.4.2).

use crate::change_log::StateChange;
use crate::entry_change::{EntryChange, Kind};
use crate::entry_walk::Wanted;
use crate::group_counters::GroupCounters;
use crate::group_select::seed;
use crate::removed_entry::RemovedEntry;
use crate::{Bucket, Group, MAX_BUCKETS, Pipeline};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use urtica_wire::{
    Action, ErrorCode, FlowRemovedReason, GROUP_ALL, GROUP_ANY, GROUP_MAX, GroupMod,
    GroupModCommand, GroupType, PortNo,
};

impl Pipeline {
    /// Executes a group mod completely, or not at all. Deleting a group deletes the entries that use it; those whose flags
    /// request a notification are appended to `removed`. Modifying a group resets its counters.
    ///
    /// # Errors
    /// The specification's error if the message is invalid, or would create a loop of groups.
    pub fn group_mod(
        &mut self,
        group_mod: &GroupMod,
        now: Duration,
        removed: &mut Vec<RemovedEntry>,
    ) -> Result<(), ErrorCode> {
        let change = self.begin_group_mod(group_mod, now)?;
        self.finish(change, removed);
        Ok(())
    }

    /// Executes a group mod, but only starts the deletion of entries, for [`Pipeline::go_on`]. Until that is complete, packets
    /// of these entries find no group.
    ///
    /// # Errors
    /// As for [`Pipeline::group_mod`].
    pub fn begin_group_mod(
        &mut self,
        group_mod: &GroupMod,
        now: Duration,
    ) -> Result<Option<EntryChange>, ErrorCode> {
        use GroupModCommand::*;
        let is_known = self.groups.get(group_mod.group_id).is_some();
        match group_mod.command {
            Delete if group_mod.group_id == GROUP_ALL => return Ok(Some(self.delete_all_groups())),
            Add | Modify | Delete if group_mod.group_id > GROUP_MAX => {
                return Err(ErrorCode::GroupModFailedInvalidGroup);
            }
            Add => {
                self.check_new_group(group_mod)?;
                self.put_group(group_mod, now)?;
            }
            Modify if !is_known => return Err(ErrorCode::GroupModFailedUnknownGroup),
            Modify => self.put_group(group_mod, now)?,
            Delete => return Ok(Some(self.delete_group(group_mod.group_id)?)),
            Other(_) => return Err(ErrorCode::GroupModFailedBadCommand),
        }
        Ok(None)
    }

    /// Checks that a group with this number can be added.
    pub(crate) fn check_new_group(&self, group_mod: &GroupMod) -> Result<(), ErrorCode> {
        match group_mod.group_id {
            id if id > GROUP_MAX => Err(ErrorCode::GroupModFailedInvalidGroup),
            id if self.groups.get(id).is_some() => Err(ErrorCode::GroupModFailedGroupExists),
            _ if self.groups.len() >= self.config().max_groups as usize => {
                Err(ErrorCode::GroupModFailedOutOfGroups)
            }
            _ => Ok(()),
        }
    }

    fn put_group(&mut self, group_mod: &GroupMod, now: Duration) -> Result<(), ErrorCode> {
        let group = self.check_group(group_mod, now)?;
        self.insert_group(group_mod.group_id, group)
    }

    /// Inserts a group, unless that would create a loop or a chain that is too long.
    pub(crate) fn insert_group(&mut self, group_id: u32, group: Group) -> Result<(), ErrorCode> {
        let previous = self.groups.insert(group_id, Arc::new(group));
        let checked = self.groups.check_chains(group_id);
        match (checked, previous) {
            (Err(_), Some(previous)) => drop(self.groups.insert(group_id, previous)),
            (Err(_), None) => drop(self.groups.remove(group_id)),
            (Ok(()), previous) => {
                previous.iter().for_each(|previous| previous.retire());
                self.log_group(group_id);
            }
        }
        checked.inspect(|()| self.follow_group_changes(Some(group_id)))
    }

    /// Checks and converts a group mod, without its relations to other groups.
    pub(crate) fn check_group(
        &self,
        group_mod: &GroupMod,
        now: Duration,
    ) -> Result<Group, ErrorCode> {
        let (group_type, group_id) = (group_mod.group_type, group_mod.group_id);
        if let GroupType::Other(_) = group_type {
            return Err(ErrorCode::GroupModFailedBadType);
        }
        let count = group_mod.buckets.len();
        if count > MAX_BUCKETS {
            return Err(ErrorCode::GroupModFailedOutOfBuckets);
        }
        if group_type == GroupType::Indirect && count != 1 {
            return Err(ErrorCode::GroupModFailedInvalidGroup);
        }
        let buckets = group_mod.buckets.iter();
        let buckets = buckets.map(|bucket| self.check_group_bucket(group_type, group_id, &bucket));
        let mut buckets: Vec<_> = buckets.collect::<Result<_, _>>()?;
        set_seeds(&mut buckets);
        Ok(Group {
            group_type,
            buckets,
            added: now,
            counters: GroupCounters::default(),
        })
    }

    /// A group is refused "if a specified group type is invalid (i.e. includes fields such as weight that are undefined for
    /// the specified group type)" (1.3.5 section 6.5). Types that do not use a bucket's watched port or group ignore it.
    fn check_group_bucket(
        &self,
        group_type: GroupType,
        group_id: u32,
        bucket: &urtica_wire::Bucket,
    ) -> Result<Bucket, ErrorCode> {
        if bucket.weight != 0 && group_type != GroupType::Select {
            return Err(ErrorCode::GroupModFailedInvalidGroup);
        }
        let hands_back = |action| action == Action::Group(group_id);
        if bucket.watch_group == group_id || bucket.actions.iter().any(hands_back) {
            return Err(ErrorCode::GroupModFailedLoop);
        }
        let bucket = Bucket {
            weight: bucket.weight,
            watch_port: bucket.watch_port,
            watch_group: bucket.watch_group,
            actions: self.check_bucket(&bucket.actions)?,
            seed: 0,
            counters: GroupCounters::default(),
        };
        match self.can_watch(&bucket) || !looks_at_liveness(group_type) {
            true => Ok(bucket),
            false => Err(ErrorCode::GroupModFailedBadWatch),
        }
    }

    fn can_watch(&self, bucket: &Bucket) -> bool {
        let (port, group) = (bucket.watch_port, bucket.watch_group);
        (port == PortNo::ANY || self.has_port(port))
            && (group == GROUP_ANY || self.groups.get(group).is_some())
    }

    /// Logs the current state of a group.
    fn log_group(&self, group_id: u32) {
        let group = || self.groups.range(group_id..=group_id).next();
        let now = || group().map(|(_, group)| Arc::clone(group));
        self.log.note(|| StateChange::Group(group_id, now()));
    }

    fn delete_all_groups(&mut self) -> EntryChange {
        for (group_id, _) in self.groups.iter() {
            self.log.note(|| StateChange::Group(group_id, None));
        }
        self.groups.clear();
        self.follow_group_changes(None);
        self.remove_group_users(None)
    }

    /// Deletes a group. Deleting a missing one is no error (1.3.5 section 6.5).
    fn delete_group(&mut self, group_id: u32) -> Result<EntryChange, ErrorCode> {
        if self.groups.user_count(group_id) > 0 {
            return Err(ErrorCode::GroupModFailedChainedGroup);
        }
        let removed = self.groups.remove(group_id);
        if let Some(removed) = removed {
            removed.retire();
            self.log_group(group_id);
        }
        self.follow_group_changes(Some(group_id));
        Ok(self.remove_group_users(Some(group_id)))
    }

    fn remove_group_users(&self, group: Option<u32>) -> EntryChange {
        let kind = Kind::Remove(FlowRemovedReason::GroupDelete);
        self.begin_change(0..self.tables.len(), Wanted::GroupUsers(group), kind)
    }

    /// Returns the number of entries and groups that refer to a group.
    pub fn group_ref_count(&self, group_id: u32) -> u32 {
        let tables = self.tables.iter();
        let entries = tables.map(|table| table.group_users().count(group_id));
        entries.sum::<u32>() + self.groups.user_count(group_id)
    }
}

/// Sets the seeds of buckets. Equal buckets get different seeds, by their order.
fn set_seeds(buckets: &mut [Bucket]) {
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for bucket in buckets {
        let same_before = counts.entry(seed(&bucket.actions, 0)).or_default();
        bucket.seed = seed(&bucket.actions, *same_before);
        *same_before += 1;
    }
}

/// Returns `true` if groups of this type skip buckets that are not live.
fn looks_at_liveness(group_type: GroupType) -> bool {
    matches!(group_type, GroupType::Select | GroupType::FastFailover)
}
