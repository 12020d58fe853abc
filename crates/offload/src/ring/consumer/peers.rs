//! The connections of a ring, by number and by session.

use crate::ring::peer::Peer;
use crate::ring::record::RingSwitch;
use slab::Slab;
use std::os::fd::OwnedFd;
use urtica_controller::ConnectionId;

/// Connections by number. A number consists of 32 unique bits and the index in the slab.
#[derive(Default)]
pub(super) struct Peers {
    pub(super) slab: Slab<Peer>,
    count: u64,
}

impl Peers {
    pub(super) fn add(&mut self, socket: OwnedFd, session: ConnectionId) -> u64 {
        self.count += 1;
        let entry = self.slab.vacant_entry();
        let number = self.count << 32 | entry.key() as u64;
        entry.insert(Peer::new(number, socket, session));
        number
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Peer> {
        let peer = self.slab.get_mut(number as u32 as usize);
        peer.filter(|peer| peer.number == number)
    }

    /// Notes that a switch is up. If another connection has its id, this one is newer.
    pub(super) fn bring_up(&mut self, switch: RingSwitch) {
        let peers = self.slab.iter_mut().map(|(_, peer)| peer);
        let joined = peers.filter(|peer| peer.joined == Some(switch));
        if let Some(peer) = joined.max_by_key(|peer| peer.number) {
            peer.switch = Some(switch);
        }
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Peer> {
        self.get_mut(number)?;
        Some(self.slab.remove(number as u32 as usize))
    }

    pub(super) fn numbers(&self) -> Vec<u64> {
        self.slab.iter().map(|(_, peer)| peer.number).collect()
    }
}
