//! The addresses of hosts, and claims of other hosts on them.

use super::{Change, Sighting, Subject, Timer};
use crate::hosts::host::{Host, HostId};
use crate::hosts::{ConflictPolicy, HostEvent};
use std::net::IpAddr;
use std::sync::Arc;

impl Change<'_> {
    /// Handles a host's claims to addresses.
    pub(super) fn learn_addresses(&mut self, id: HostId, sighting: &Sighting) {
        if let Some(neighbour) = sighting.neighbour {
            if let Some(address) = neighbour.claim() {
                self.claim_address(id, address);
            }
            if let Some(is_router) = neighbour.is_router() {
                self.set_router(id, is_router);
            }
        }
        // A packet's sender may be remote: the source address counts only if no host claims it.
        if let Some(address) = sighting.ip_src {
            if self.owner(id.0, address).is_none() {
                self.add_address(id, address);
            }
        }
    }

    fn claim_address(&mut self, id: HostId, address: IpAddr) {
        let Some(owner) = self.owner(id.0, address) else {
            return self.add_address(id, address);
        };
        if owner.id() == id {
            return;
        }
        if self.is_worth_telling(Subject::Conflict(id.0, address)) {
            if let Some(claimant) = self.find(id) {
                self.tell(HostEvent::AddressConflict {
                    address,
                    owner: Arc::clone(&owner),
                    claimant,
                });
            }
        }
        if self.table.config.on_conflict == ConflictPolicy::NewestWins {
            return self.move_address(&owner, id, address);
        }
        if !self.writer.claims.contains_key(&(id.0, address)) {
            let claim = self.claim(id, &owner);
            self.writer.claims.insert((id.0, address), claim);
            let timer = Timer::Claim(id.0, address);
            self.writer.timers.set(timer, claim.due);
            self.probe_for(&owner, address);
        }
    }

    /// Decides a claim after the time in which the address's owner could answer.
    pub(super) fn decide_claim(&mut self, vlan: Option<u16>, address: IpAddr) {
        let Some(claim) = self.writer.claims.get(&(vlan, address)).copied() else {
            return;
        };
        if claim.due > self.now {
            return;
        }
        self.writer.claims.remove(&(vlan, address));
        let claimant = claim.by;
        if self.find(claimant).is_none() {
            return;
        }
        let owner = self.owner(vlan, address);
        if let Some(owner) = &owner {
            self.note_settled(owner);
        }
        match owner {
            Some(owner) if owner.id() == claimant || owner.heard() != claim.heard => {}
            Some(owner) => self.move_address(&owner, claimant, address),
            None => self.add_address(claimant, address),
        }
    }

    /// Adds a free address, and drops the oldest if there are too many.
    pub(super) fn add_address(&mut self, id: HostId, address: IpAddr) {
        let Some(host) = self.find(id) else {
            return;
        };
        if let Some(oldest) = host.surplus(address, self.table.config.max_addresses) {
            self.take_address(id, oldest);
            let host = self.update(&host, |host| host.remove(oldest));
            return self.add_address(host.id(), address);
        }
        let host = self.update(&host, |host| host.add(address));
        self.tell(HostEvent::Changed(host));
    }

    fn move_address(&mut self, owner: &Arc<Host>, to: HostId, address: IpAddr) {
        self.take_address(owner.id(), address);
        let from = self.update(owner, |host| host.remove(address));
        self.add_address(to, address);
        if let Some(to) = self.find(to) {
            self.tell(HostEvent::AddressMoved { address, from, to });
        }
    }
}
