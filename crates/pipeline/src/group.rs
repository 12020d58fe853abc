//! Groups: sets of buckets that packets are handed to (1.3.5 sections 5.10, 6.5, 7.3.4.2).
//!
//! Groups may hand packets to other groups. No group hands them back, or watches itself, by whatever way round: a
//! group mod that would make such a loop is refused, as is one that makes a chain longer than [`MAX_CHAIN`]. Walks
//! along chains therefore end.

use crate::flow_hash::flow_hash;
use crate::flow_mod::RemovedEntry;
use crate::{Packet, Pipeline};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use urtica_wire::{
    Action, ErrorCode, FlowRemovedReason, GROUP_ALL, GROUP_ANY, GROUP_MAX, GroupMod,
    GroupModCommand, GroupType, PortConfig, PortNo, PortState,
};

/// How many groups may stand one behind the other.
pub const MAX_CHAIN: usize = 32;
/// How many buckets a group can have.
pub const MAX_BUCKETS: usize = 1024;

/// All groups, by their numbers.
#[derive(Debug, Default)]
pub struct Groups {
    groups: BTreeMap<u32, Group>,
}

/// One group.
///
/// Thread-safety: any thread counts, any reads; all else changes only through a group mod, which has the pipeline to
/// itself.
#[derive(Debug)]
pub struct Group {
    /// How it chooses among its buckets.
    pub group_type: GroupType,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
    /// When it was added.
    pub added: Duration,
    /// Packets that it handled.
    pub packets: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
}

/// One bucket of a group.
#[derive(Debug)]
pub struct Bucket {
    /// Its relative weight, in select groups.
    pub weight: u16,
    /// The port whose state makes it live; [`PortNo::ANY`] where that does not matter.
    pub watch_port: PortNo,
    /// The group whose state makes it live; [`urtica_wire::GROUP_ANY`] where that does not matter.
    pub watch_group: u32,
    /// Its action set, as given.
    pub actions: Vec<Action<'static>>,
    /// Packets that it handled.
    pub packets: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
}

impl Groups {
    /// The group with this number.
    pub fn get(&self, group_id: u32) -> Option<&Group> {
        self.groups.get(&group_id)
    }

    /// All groups, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Group)> {
        self.groups.iter().map(|(&id, group)| (id, group))
    }

    /// Whether packets of a group come, or liveness of one depends, on itself again.
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

    /// The longest chain that begins with a group. There must be no loops. `known` keeps what was found on the way.
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

    /// The groups that a group hands packets to or watches.
    fn next_groups(&self, group_id: u32) -> Vec<u32> {
        let buckets = self.get(group_id).map_or(&[][..], |group| &group.buckets);
        buckets.iter().flat_map(Bucket::next_groups).collect()
    }

    /// What is wrong with the chains that a group, just put in, is part of. A group that hands on nothing makes none
    /// longer: where it is new, what refers to it counted on it before.
    fn check_chains(&self, group_id: u32) -> Result<(), ErrorCode> {
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
    /// Counts a packet of `bytes`.
    pub(crate) fn count(&self, bytes: usize) {
        self.packets.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }
}

impl Bucket {
    /// Counts a packet of `bytes`.
    pub(crate) fn count(&self, bytes: usize) {
        self.packets.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// The groups that it hands packets to or watches.
    fn next_groups(&self) -> impl Iterator<Item = u32> {
        let watched = (self.watch_group != GROUP_ANY).then_some(self.watch_group);
        let used = self.actions.iter().filter_map(|action| match action {
            Action::Group(id) => Some(*id),
            _ => None,
        });
        used.chain(watched)
    }

    /// Whether it hands packets to this group.
    fn uses_group(&self, group_id: u32) -> bool {
        self.actions.contains(&Action::Group(group_id))
    }

    /// Whether its being live depends on anything.
    fn is_watching(&self) -> bool {
        self.watch_port != PortNo::ANY || self.watch_group != GROUP_ANY
    }
}

impl Pipeline {
    /// Carries out a group mod, or nothing of it. Deleting a group deletes the entries that use it, which are
    /// appended to `removed` where their flags ask for word of that. A group that is modified begins anew: with
    /// counters of zero.
    ///
    /// # Errors
    /// The specification's error where a part of it is wrong, or where it would make groups hand packets round in a
    /// loop.
    pub fn group_mod(
        &mut self,
        group_mod: &GroupMod,
        now: Duration,
        removed: &mut Vec<RemovedEntry>,
    ) -> Result<(), ErrorCode> {
        use GroupModCommand::*;
        let is_known = self.groups.get(group_mod.group_id).is_some();
        match group_mod.command {
            Delete if group_mod.group_id == GROUP_ALL => self.delete_all_groups(removed),
            Add | Modify | Delete if group_mod.group_id > GROUP_MAX => {
                return Err(ErrorCode::GroupModFailedInvalidGroup);
            }
            Add if is_known => return Err(ErrorCode::GroupModFailedGroupExists),
            Add if self.groups.groups.len() >= self.config().max_groups as usize => {
                return Err(ErrorCode::GroupModFailedOutOfGroups);
            }
            Modify if !is_known => return Err(ErrorCode::GroupModFailedUnknownGroup),
            Add | Modify => self.put_group(group_mod, now)?,
            Delete => self.delete_group(group_mod.group_id, removed)?,
            Other(_) => return Err(ErrorCode::GroupModFailedBadCommand),
        }
        Ok(())
    }

    fn put_group(&mut self, group_mod: &GroupMod, now: Duration) -> Result<(), ErrorCode> {
        let group_id = group_mod.group_id;
        let group = self.check_group(group_mod, now)?;
        let previous = self.groups.groups.insert(group_id, group);
        let checked = self.groups.check_chains(group_id);
        if checked.is_err() {
            match previous {
                Some(previous) => self.groups.groups.insert(group_id, previous),
                None => self.groups.groups.remove(&group_id),
            };
        }
        checked
    }

    /// Takes over what a group mod says, but for how it stands to other groups.
    fn check_group(&self, group_mod: &GroupMod, now: Duration) -> Result<Group, ErrorCode> {
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
        Ok(Group {
            group_type,
            buckets: buckets.collect::<Result<_, _>>()?,
            added: now,
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        })
    }

    /// "If a specified group type is invalid (i.e. includes fields such as weight that are undefined for the
    /// specified group type)", the group is (1.3.5 section 6.5). What a bucket watches counts only where the type
    /// looks at it.
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
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        };
        match self.can_watch(&bucket) || !looks_at_liveness(group_type) {
            true => Ok(bucket),
            false => Err(ErrorCode::GroupModFailedBadWatch),
        }
    }

    fn can_watch(&self, bucket: &Bucket) -> bool {
        let (port, group) = (bucket.watch_port, bucket.watch_group);
        (port == PortNo::ANY || self.port(port).is_some())
            && (group == GROUP_ANY || self.groups.get(group).is_some())
    }

    fn delete_all_groups(&mut self, removed: &mut Vec<RemovedEntry>) {
        let tables = 0..self.tables.len();
        self.groups.groups.clear();
        let reason = FlowRemovedReason::GroupDelete;
        self.remove_entries(tables, reason, removed, |entry| {
            let mut actions = entry.instructions.actions();
            actions.any(|action| matches!(action, Action::Group(_)))
        });
    }

    /// A group that is not there is as good as deleted (1.3.5 section 6.5).
    fn delete_group(
        &mut self,
        group_id: u32,
        removed: &mut Vec<RemovedEntry>,
    ) -> Result<(), ErrorCode> {
        if self.group_users(group_id) > 0 {
            return Err(ErrorCode::GroupModFailedChainedGroup);
        }
        let tables = 0..self.tables.len();
        self.groups.groups.remove(&group_id);
        let reason = FlowRemovedReason::GroupDelete;
        self.remove_entries(tables, reason, removed, |entry| {
            entry.instructions.use_group(group_id)
        });
        Ok(())
    }

    /// The buckets of a group that a packet goes to: all; one by the packet's hash and the weights, among those that
    /// are live; the only one; or the first live one.
    pub fn buckets_for<'a>(&'a self, group: &'a Group, packet: &Packet) -> Vec<&'a Bucket> {
        let mut live = group.buckets.iter().filter(|bucket| self.is_live(bucket));
        match group.group_type {
            GroupType::All | GroupType::Indirect => group.buckets.iter().collect(),
            GroupType::FastFailover => live.next().into_iter().collect(),
            GroupType::Select => select(&live.collect::<Vec<_>>(), flow_hash(packet))
                .into_iter()
                .collect(),
            GroupType::Other(_) => Vec::new(),
        }
    }

    /// Whether a bucket is live: where it watches anything, the port or the group that it watches is.
    pub fn is_live(&self, bucket: &Bucket) -> bool {
        self.is_live_but_for(bucket, &mut BTreeSet::new())
    }

    /// The same, where the groups in `dead` are known not to be live: each is looked at once, by however many ways it
    /// is reached.
    fn is_live_but_for(&self, bucket: &Bucket, dead: &mut BTreeSet<u32>) -> bool {
        !bucket.is_watching()
            || self.is_port_live(bucket.watch_port)
            || self.is_group_live(bucket.watch_group, dead)
    }

    fn is_port_live(&self, port_no: PortNo) -> bool {
        self.port(port_no).is_some_and(|port| {
            !port.config.contains(PortConfig::PORT_DOWN)
                && !port.state.contains(PortState::LINK_DOWN)
        })
    }

    fn is_group_live(&self, group_id: u32, dead: &mut BTreeSet<u32>) -> bool {
        let Some(group) = self.groups.get(group_id) else {
            return false;
        };
        if dead.contains(&group_id) {
            return false;
        }
        let mut buckets = group.buckets.iter();
        let is_live = buckets.any(|bucket| self.is_live_but_for(bucket, dead));
        if !is_live {
            dead.insert(group_id);
        }
        is_live
    }

    /// How many entries and groups refer to a group.
    pub fn group_ref_count(&self, group_id: u32) -> u32 {
        let entries = self.tables.iter().flat_map(|table| table.entries());
        let entries = entries.filter(|entry| entry.instructions.use_group(group_id));
        (entries.count() + self.group_users(group_id)) as u32
    }

    /// How many groups hand packets to a group.
    fn group_users(&self, group_id: u32) -> usize {
        let groups = self.groups.groups.values();
        let uses = |group: &&Group| {
            group
                .buckets
                .iter()
                .any(|bucket| bucket.uses_group(group_id))
        };
        groups.filter(uses).count()
    }
}

/// Whether a group of this type passes over buckets that are not live.
fn looks_at_liveness(group_type: GroupType) -> bool {
    matches!(group_type, GroupType::Select | GroupType::FastFailover)
}

/// The bucket whose part of the whole the hash falls into; the parts are as large as the weights.
fn select<'a>(buckets: &[&'a Bucket], hash: u64) -> Option<&'a Bucket> {
    let total: u64 = buckets.iter().map(|bucket| u64::from(bucket.weight)).sum();
    let mut point = ((u128::from(hash) * u128::from(total)) >> 64) as u64;
    buckets.iter().copied().find(|bucket| {
        let weight = u64::from(bucket.weight);
        let is_within = point < weight;
        point = point.saturating_sub(weight);
        is_within
    })
}
