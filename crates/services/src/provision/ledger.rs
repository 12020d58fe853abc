//! The provisioned paths and their switches. No network and no clock.

use super::flow::{EntryKey, Flow, PathEntry};
use super::{COOKIE_TAG, ProvisionError, is_provisioned};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use urtica_wire::DatapathId;

/// All paths by cookie, and the places (switch, table, match and priority) of their entries.
///
/// A place belongs to at most one path. While one path replaces another, places of both belong to the new one.
#[derive(Default)]
pub(super) struct Ledger {
    paths: BTreeMap<u64, PathRecord>,
    places: BTreeMap<EntryKey, u64>,
    /// The paths that have an entry on a switch.
    on_switch: BTreeMap<DatapathId, BTreeSet<u64>>,
    /// The switches that have been cleaned of stale entries since they were first seen, and whether they have been cleaned
    /// since they last joined.
    ///
    /// A disconnected switch is remembered while a path uses it, so the number of switches is limited by that of paths'
    /// entries.
    cleaned: BTreeMap<DatapathId, bool>,
    /// The switches that are being cleaned, or will be, and whether each must be cleaned once more afterwards.
    cleanings: BTreeMap<DatapathId, bool>,
    last_number: u64,
}

struct PathRecord {
    /// From the ingress to the egress switch.
    entries: Arc<[PathEntry]>,
    stage: PathStage,
    /// A switch that disconnected while the path was being set up.
    lost: Option<DatapathId>,
    /// Whether a switch has reported that its entry is gone.
    has_lost_entry: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PathStage {
    SettingUp,
    Live,
    /// It is being replaced by another path.
    Replaced,
    /// Its entries are being removed.
    Removed,
}

/// A path about to be set up.
pub(super) struct Reserved {
    pub cookie: u64,
    /// From the ingress to the egress switch.
    pub entries: Arc<[PathEntry]>,
    /// The path that it replaces, if that exists.
    pub replaced: Option<(u64, Arc<[PathEntry]>)>,
}

impl Reserved {
    /// Returns the old path's entry in the place of this one.
    pub fn replaced_by(&self, entry: &PathEntry) -> Option<&PathEntry> {
        let place = entry.place();
        let (_, entries) = self.replaced.as_ref()?;
        entries.iter().find(|old| old.place() == place)
    }

    /// Returns the old path's entries that the new path does not replace.
    pub fn leftovers(&self) -> Vec<PathEntry> {
        let Some((_, old)) = &self.replaced else {
            return Vec::new();
        };
        let places: BTreeSet<_> = self.entries.iter().map(PathEntry::place).collect();
        let is_left = |entry: &&PathEntry| !places.contains(&entry.place());
        old.iter().filter(is_left).cloned().collect()
    }
}

impl Ledger {
    pub fn live_paths(&self) -> usize {
        self.paths.len()
    }

    pub fn is_live(&self, cookie: u64) -> bool {
        let path = self.paths.get(&cookie);
        path.is_some_and(|path| matches!(path.stage, PathStage::Live | PathStage::Replaced))
    }

    /// Assigns a cookie to a path, and reserves the places of its entries.
    pub fn reserve(
        &mut self,
        flow: &Flow,
        replaces: Option<u64>,
    ) -> Result<Reserved, ProvisionError> {
        let replaced = replaces.and_then(|old| self.paths.get(&old).map(|path| (old, path)));
        if let Some((cookie, path)) = replaced {
            if path.stage != PathStage::Live {
                return Err(ProvisionError::Changing { cookie });
            }
        }
        let replaced = replaced.map(|(old, path)| (old, Arc::clone(&path.entries)));
        let cookie = COOKIE_TAG | (self.last_number + 1);
        let entries: Arc<[_]> = flow.entries(cookie).into();
        self.check_places(&entries, replaced.as_ref().map(|(old, _)| *old))?;
        self.last_number += 1;
        self.enter(cookie, &entries);
        if let Some((old, _)) = &replaced {
            self.set_stage(*old, PathStage::Replaced);
        }
        Ok(Reserved {
            cookie,
            entries,
            replaced,
        })
    }

    fn check_places(&self, entries: &[PathEntry], but: Option<u64>) -> Result<(), ProvisionError> {
        for entry in entries {
            if let Some(&cookie) = self.places.get(&entry.place()) {
                if Some(cookie) != but {
                    let switch = entry.switch;
                    return Err(ProvisionError::Taken { switch, cookie });
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self, cookie: u64, entries: &Arc<[PathEntry]>) {
        for entry in entries.iter() {
            self.places.insert(entry.place(), cookie);
            self.on_switch
                .entry(entry.switch)
                .or_default()
                .insert(cookie);
        }
        let record = PathRecord {
            entries: Arc::clone(entries),
            stage: PathStage::SettingUp,
            lost: None,
            has_lost_entry: false,
        };
        self.paths.insert(cookie, record);
    }

    /// Checks that all switches have been connected since the path was reserved.
    pub fn check_complete(&self, cookie: u64) -> Result<(), ProvisionError> {
        match self.paths.get(&cookie).and_then(|path| path.lost) {
            Some(switch) => Err(ProvisionError::Left { switch }),
            None => Ok(()),
        }
    }

    /// Marks the path as installed, unless a switch has disconnected; the path that it replaces is removed.
    pub fn complete(&mut self, reserved: &Reserved) -> Result<(), ProvisionError> {
        self.check_complete(reserved.cookie)?;
        self.set_stage(reserved.cookie, PathStage::Live);
        if let Some((old, _)) = reserved.replaced {
            self.forget(old);
        }
        Ok(())
    }

    /// Marks the path as abandoned: its entries are being removed.
    pub fn begin_undoing(&mut self, cookie: u64) {
        self.set_stage(cookie, PathStage::Removed);
    }

    /// Removes a path that was not installed; the one that it would have replaced is valid again.
    pub fn give_up(&mut self, reserved: &Reserved) {
        self.forget(reserved.cookie);
        if let Some((old, entries)) = &reserved.replaced {
            for entry in entries.iter() {
                self.places.insert(entry.place(), *old);
            }
            self.set_stage(*old, PathStage::Live);
        }
    }

    /// Starts removing a path: returns its entries, or `None` if it was removed before.
    pub fn begin_removal(
        &mut self,
        cookie: u64,
    ) -> Result<Option<Arc<[PathEntry]>>, ProvisionError> {
        let Some(path) = self.paths.get_mut(&cookie) else {
            return Ok(None);
        };
        if path.stage != PathStage::Live {
            return Err(ProvisionError::Changing { cookie });
        }
        path.stage = PathStage::Removed;
        Ok(Some(Arc::clone(&path.entries)))
    }

    /// Forgets a removed path.
    pub fn forget(&mut self, cookie: u64) {
        let Some(path) = self.paths.remove(&cookie) else {
            return;
        };
        for entry in path.entries.iter() {
            let place = entry.place();
            if self.places.get(&place) == Some(&cookie) {
                self.places.remove(&place);
            }
            if let Some(paths) = self.on_switch.get_mut(&entry.switch) {
                paths.remove(&cookie);
                if paths.is_empty() {
                    self.on_switch.remove(&entry.switch);
                    // The switch is disconnected, or is being cleaned. If it is cleaned without paths, it starts over as well.
                    if self.cleaned.get(&entry.switch) == Some(&false) {
                        self.cleaned.remove(&entry.switch);
                    }
                }
            }
        }
    }

    /// Notes a switch's report that its entry of a path was removed. Returns whether half a path is left. That is not so if the
    /// switch has no entry of the path, or the path is not complete yet, or is being removed already.
    pub fn lose_entry(&mut self, switch: DatapathId, cookie: u64) -> bool {
        let paths = self.on_switch.get(&switch);
        if !paths.is_some_and(|paths| paths.contains(&cookie)) {
            return false;
        }
        if let Some(path) = self.paths.get_mut(&cookie) {
            path.has_lost_entry = true;
        }
        self.is_half(cookie)
    }

    /// Returns whether a path has lost an entry.
    pub fn is_half(&self, cookie: u64) -> bool {
        let path = self.paths.get(&cookie);
        path.is_some_and(|path| path.has_lost_entry && path.stage == PathStage::Live)
    }

    fn set_stage(&mut self, cookie: u64, stage: PathStage) {
        if let Some(path) = self.paths.get_mut(&cookie) {
            path.stage = stage;
        }
    }

    /// Notes that a switch has disconnected: paths over it that are being set up will fail.
    pub fn switch_left(&mut self, switch: DatapathId) {
        let cookies = self.on_switch.get(&switch).into_iter().flatten();
        for cookie in cookies {
            if let Some(path) = self.paths.get_mut(cookie) {
                if path.stage == PathStage::SettingUp {
                    path.lost.get_or_insert(switch);
                }
            }
        }
    }

    /// Notes that a switch has joined: until it is clean, no path is set up over it.
    pub fn mark_unclean(&mut self, switch: DatapathId) {
        if let Some(is_clean) = self.cleaned.get_mut(&switch) {
            *is_clean = false;
        }
    }

    /// Forgets a switch that has disconnected, and that no other connection represents.
    pub fn forget_switch(&mut self, switch: DatapathId) {
        match self.on_switch.contains_key(&switch) {
            true => self.mark_unclean(switch),
            false => drop(self.cleaned.remove(&switch)),
        }
    }

    /// Notes that a switch must be cleaned. Returns whether the caller should do it; if another caller is doing it, that one
    /// will clean once more.
    pub fn request_cleaning(&mut self, switch: DatapathId) -> bool {
        let is_first = !self.cleanings.contains_key(&switch);
        self.cleanings.insert(switch, !is_first);
        is_first
    }

    pub fn begin_cleaning(&mut self, switch: DatapathId) {
        self.cleanings.insert(switch, false);
    }

    /// Returns whether a switch must be cleaned once more.
    pub fn is_requested_again(&self, switch: DatapathId) -> bool {
        self.cleanings.get(&switch) == Some(&true)
    }

    /// Notes that a switch has only expected entries, or has disconnected. Returns whether the cleaning is done; it is not if
    /// the switch must be cleaned once more.
    pub fn end_cleaning(&mut self, switch: DatapathId, is_there: bool) -> bool {
        if self.is_requested_again(switch) {
            return false;
        }
        self.cleanings.remove(&switch);
        if is_there {
            self.cleaned.insert(switch, true);
        }
        true
    }

    /// Notes that a switch cannot be cleaned for now: paths need not wait for it.
    pub fn use_unclean(&mut self, switch: DatapathId) {
        self.cleaned.insert(switch, true);
    }

    pub fn is_clean(&self, switch: DatapathId) -> bool {
        self.cleaned.get(&switch) == Some(&true)
    }

    #[cfg(test)]
    pub fn known_switches(&self) -> usize {
        self.cleaned.len() + self.cleanings.len()
    }

    /// Returns `true` if an entry with this cookie, in this place, is stale: it has our tag, but its path was removed.
    ///
    /// `is_by_place` is for switches that cannot delete entries by cookie: there, an entry is not stale if a path is about to
    /// replace it.
    pub fn is_stale(&self, cookie: u64, place: &EntryKey, is_by_place: bool) -> bool {
        let holder = self.places.get(place);
        if !is_provisioned(cookie)
            || is_by_place && holder.is_some_and(|path| self.is_wanted(*path))
        {
            return false;
        }
        let switch = place.switch();
        let is_of_this_run = self.cleaned.contains_key(&switch);
        let has_entry = |paths: &BTreeSet<u64>| paths.contains(&cookie);
        let is_its_own = self.on_switch.get(&switch).is_some_and(has_entry);
        !(is_of_this_run && is_its_own && self.is_wanted(cookie))
    }

    /// Returns whether a path is installed or being set up.
    fn is_wanted(&self, cookie: u64) -> bool {
        let path = self.paths.get(&cookie);
        path.is_some_and(|path| path.stage != PathStage::Removed)
    }

    /// Returns the expected entries that a switch lacks: those of permanent live paths.
    pub fn missing(&self, switch: DatapathId, found: &BTreeSet<u64>) -> Vec<PathEntry> {
        let cookies = self.on_switch.get(&switch).into_iter().flatten();
        let paths = cookies
            .filter(|cookie| !found.contains(cookie))
            .filter_map(|cookie| self.paths.get(cookie))
            .filter(|path| path.stage == PathStage::Live);
        paths
            .flat_map(|path| path.entries.iter())
            .filter(|entry| entry.switch == switch && entry.is_permanent())
            .cloned()
            .collect()
    }
}
