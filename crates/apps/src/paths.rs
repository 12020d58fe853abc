//! Provisioned paths by key, for programs.
//!
//! A [`Provisioner`] returns a future of a path's outcome, and handlers must not wait. So this module keeps the futures, and
//! [`Paths::settle`] checks them.
//!
//! Thread-safety: the caller needs a lock. The functions take the locks of the provisioner.

use futures_util::FutureExt;
use std::collections::BTreeMap;
use urtica_services::{Flow, Provisioned, Provisioner, Provisioning};
use urtica_topology::{Path, Topology};

/// Provisioned paths by key.
pub(crate) struct Paths<K> {
    provisioner: Provisioner,
    by_key: BTreeMap<K, (Path, Entries)>,
    /// Paths that were given up before they were complete.
    unwanted: Vec<Provisioning>,
}

/// The entries of a path.
enum Entries {
    OnTheirWay(Provisioning),
    There(Provisioned),
}

/// Removes all paths, so that a program that ends before the controller leaves none behind.
impl<K> Drop for Paths<K> {
    fn drop(&mut self) {
        for (_, entries) in self.by_key.values_mut() {
            if settle(entries, &self.provisioner) {
                if let Entries::There(entries) = entries {
                    drop(self.provisioner.remove(entries));
                }
            }
        }
    }
}

impl<K: Ord + Copy> Paths<K> {
    pub fn new(provisioner: &Provisioner) -> Self {
        Self {
            provisioner: provisioner.clone(),
            by_key: BTreeMap::new(),
            unwanted: Vec::new(),
        }
    }

    /// Starts to provision a path, replacing the path of this key.
    pub fn insert(&mut self, key: K, path: Path, flow: Flow) {
        let entries = match self.by_key.remove(&key) {
            Some((_, Entries::There(old))) => self.provisioner.replace(&old, flow),
            Some((_, Entries::OnTheirWay(old))) => {
                self.unwanted.push(old);
                self.provisioner.provision(flow)
            }
            None => self.provisioner.provision(flow),
        };
        self.by_key
            .insert(key, (path, Entries::OnTheirWay(entries)));
    }

    /// Removes a path. Returns `true` if it existed.
    pub fn remove(&mut self, key: &K) -> bool {
        match self.by_key.remove(key) {
            Some((_, Entries::OnTheirWay(entries))) => self.unwanted.push(entries),
            // The result is not needed: disconnected switches get the message when they return.
            Some((_, Entries::There(entries))) => drop(self.provisioner.remove(&entries)),
            None => return false,
        }
        true
    }

    pub fn get(&self, key: &K) -> Option<&Path> {
        self.by_key.get(key).map(|(path, _)| path)
    }

    /// Returns `true` if all switches of a path have confirmed their entries.
    pub fn is_there(&self, key: &K) -> bool {
        matches!(self.by_key.get(key), Some((_, Entries::There(_))))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &Path)> {
        self.by_key.iter().map(|(key, (path, _))| (key, path))
    }

    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Checks the state of the entries. Returns the keys of paths that are gone, or could not be provisioned.
    pub fn settle(&mut self) -> Vec<K> {
        self.settle_each(|_| ())
    }

    /// Like [`Self::settle`], and calls `lose` for each of these paths.
    pub fn settle_each(&mut self, mut lose: impl FnMut(&Path)) -> Vec<K> {
        let mut gone = Vec::new();
        for (key, (path, entries)) in &mut self.by_key {
            if !settle(entries, &self.provisioner) {
                lose(path);
                gone.push(*key);
            }
        }
        for key in &gone {
            self.by_key.remove(key);
        }
        let provisioner = &self.provisioner;
        self.unwanted
            .retain_mut(|entries| match entries.now_or_never() {
                None => true,
                Some(outcome) => {
                    if let Ok(provisioned) = outcome {
                        drop(provisioner.remove(&provisioned));
                    }
                    false
                }
            });
        gone
    }
}

/// Updates the state of entries. Returns `true` if they are installed, or may still be.
fn settle(entries: &mut Entries, provisioner: &Provisioner) -> bool {
    match entries {
        Entries::There(entries) => provisioner.is_live(entries),
        Entries::OnTheirWay(outcome) => match outcome.now_or_never() {
            None => true,
            Some(Ok(provisioned)) => {
                *entries = Entries::There(provisioned);
                true
            }
            Some(Err(error)) => {
                urtica_log::debug!(about: "paths", %error, "cannot provision a path");
                false
            }
        },
    }
}

/// Returns `true` if all links between a path's switches are in the topology.
pub(crate) fn is_in(path: &Path, topology: &Topology) -> bool {
    path.directed_links().all(|link| topology.contains(&link))
}
