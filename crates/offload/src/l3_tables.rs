//! The router's part of a session: `struct application` of `bpf/l3.h`, field by field.
//!
//! While the program is the owner, it writes facts into the tables. The kernel looks facts up, and records the hosts that it
//! has heard. Any thread may mark the facts as stale; the kernel then does not answer until the program has forgotten all of
//! them.

use crate::session::Memory;
use std::cell::UnsafeCell;
use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, compiler_fence};
use urtica_apps::L3Fact;
use urtica_wire::{MacAddr, PortNo};

const MAX_HOSTS: usize = 2048;
const MAX_NEXT_HOPS: usize = 4096;
const MAX_FLOWS: usize = 4096;

/// Number of slots for a key.
const PLACES_IN_BUCKET: usize = 4;

const MAC_IS_GATEWAY: u64 = 1 << 62;
const MAC_IS_HEARD: u64 = 1 << 63;

const HOP_ROUTED: u32 = 0;
const HOP_OWNER: u32 = 1;
const HOP_GATEWAY: u32 = 2;

#[repr(C)]
#[derive(Clone, Copy)]
struct Host {
    mac: u64,
    port: u32,
    generation: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct NextHop {
    dst: u64,
    src: u64,
    address: u32,
    port: u32,
    kind: u32,
    generation: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Flow {
    src: u64,
    gateway: u64,
    dst: u32,
    generation: u32,
}

/// The whole part, as in the memory that kernel and program share.
#[repr(C)]
pub struct Tables {
    is_stale: AtomicU32,
    generation: AtomicU32,
    xid: AtomicU32,
    heard_count: AtomicU32,
    padding: [AtomicU32; 12],
    known: UnsafeCell<OwnerState>,
}

/// State that only the owner uses.
#[repr(C)]
struct OwnerState {
    hosts: [Host; MAX_HOSTS],
    next_hops: [NextHop; MAX_NEXT_HOPS],
    flows: [Flow; MAX_FLOWS],
    heard: [u32; MAX_HOSTS],
}

/// A slot of a table.
trait Entry: Copy {
    fn key(&self) -> u64;
    fn generation(&self) -> u32;

    /// Sets the generation; 0 marks a free slot.
    fn set_generation(&mut self, generation: u32);

    /// Returns whether both entries have one subject.
    fn is_about(&self, other: &Self) -> bool;
}

impl Entry for Host {
    fn key(&self) -> u64 {
        self.mac & !MAC_IS_HEARD
    }

    fn generation(&self) -> u32 {
        self.generation
    }

    fn set_generation(&mut self, generation: u32) {
        self.generation = generation;
    }

    fn is_about(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl NextHop {
    /// Returns the fact as the program stored it.
    fn fact(&self) -> L3Fact {
        let address = Ipv4Addr::from_bits(self.address);
        let dst = MacAddr::from_u64(self.dst);
        match self.kind {
            HOP_GATEWAY => L3Fact::Gateway { address, mac: dst },
            kind => L3Fact::NextHop {
                address,
                port: PortNo(self.port),
                dst,
                src: MacAddr::from_u64(self.src),
                is_owner: kind == HOP_OWNER,
            },
        }
    }
}

impl Entry for NextHop {
    fn key(&self) -> u64 {
        self.address.into()
    }

    fn generation(&self) -> u32 {
        self.generation
    }

    fn set_generation(&mut self, generation: u32) {
        self.generation = generation;
    }

    fn is_about(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl Flow {
    /// Returns the fact as the program stored it.
    fn fact(&self) -> L3Fact {
        L3Fact::Flow {
            src: MacAddr::from_u64(self.src),
            gateway: MacAddr::from_u64(self.gateway),
            dst: Ipv4Addr::from_bits(self.dst),
        }
    }
}

impl Entry for Flow {
    fn key(&self) -> u64 {
        self.src << 16 ^ self.gateway ^ u64::from(self.dst) << 20
    }

    fn generation(&self) -> u32 {
        self.generation
    }

    fn set_generation(&mut self, generation: u32) {
        self.generation = generation;
    }

    fn is_about(&self, other: &Self) -> bool {
        (self.src, self.gateway, self.dst) == (other.src, other.gateway, other.dst)
    }
}

/// Puts an entry into one of the slots that the kernel searches for it, if one is free.
fn put<E: Entry>(table: &mut [E], entry: E) {
    let hash = (entry.key().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
    let first = (hash * PLACES_IN_BUCKET) & (table.len() - 1);
    let bucket = &mut table[first..first + PLACES_IN_BUCKET];
    let is_valid = |place: &E| place.generation() == entry.generation();
    let same = bucket
        .iter()
        .position(|place| is_valid(place) && place.is_about(&entry));
    let place = same.or_else(|| bucket.iter().position(|place| !is_valid(place)));
    if let Some(place) = place {
        write(&mut bucket[place], entry);
    }
}

/// Writes an entry so that the next program finds it either complete or as a free slot, whenever this program dies.
fn write<E: Entry>(place: &mut E, mut entry: E) {
    let generation = entry.generation();
    place.set_generation(0);
    compiler_fence(SeqCst);
    entry.set_generation(0);
    *place = entry;
    compiler_fence(SeqCst);
    place.set_generation(generation);
}

/// Frees the slots of valid entries that `keep` rejects.
fn retain<E: Entry>(table: &mut [E], generation: u32, mut keep: impl FnMut(&E) -> bool) {
    let known = table.iter_mut();
    let known = known.filter(|place| place.generation() == generation);
    for place in known {
        if !keep(place) {
            place.set_generation(0);
        }
    }
}

/// The tables of one session, for the connection's thread. All methods except [`SharedTables::forget`] must be called while the
/// program is the owner.
pub struct SharedTables(Arc<Memory>);

impl SharedTables {
    /// Creates the tables of a session that was never handed over. Its packet-outs have this xid.
    pub fn new(memory: Arc<Memory>, xid: u32) -> Self {
        let shared = Self(memory);
        shared.tables().xid.store(xid, Relaxed);
        shared.tables().generation.store(1, Relaxed);
        shared
    }

    /// Resumes tables that an earlier program left; returns `None` if they are invalid.
    pub fn resume(memory: Arc<Memory>, xid: u32) -> Option<Self> {
        let shared = Self(memory);
        shared.tables().xid.store(xid, Relaxed);
        (shared.tables().generation.load(Relaxed) != 0).then_some(shared)
    }

    fn tables(&self) -> &Tables {
        tables_of(&self.0)
    }

    fn known(&mut self) -> &mut OwnerState {
        // SAFETY: the kernel uses it only while it is the owner, and the program calls this only while it is, in the
        // connection's thread: the exchange of the owner orders the accesses. It contains only numbers.
        unsafe { &mut *self.tables().known.get() }
    }

    /// Adds a fact, if there is space.
    pub fn tell(&mut self, fact: L3Fact) {
        let generation = self.tables().generation.load(Relaxed);
        let known = self.known();
        match fact {
            L3Fact::Gateway { address, mac } => {
                let host = Host {
                    mac: mac.to_u64() | MAC_IS_GATEWAY,
                    port: 0,
                    generation,
                };
                let hop = NextHop {
                    dst: mac.to_u64(),
                    src: 0,
                    address: address.to_bits(),
                    port: 0,
                    kind: HOP_GATEWAY,
                    generation,
                };
                put(&mut known.hosts, host);
                put(&mut known.next_hops, hop);
            }
            L3Fact::Host { mac, port } => {
                let host = Host {
                    mac: mac.to_u64(),
                    port: port.0,
                    generation,
                };
                put(&mut known.hosts, host);
            }
            L3Fact::NextHop {
                address,
                port,
                dst,
                src,
                is_owner,
            } => {
                let hop = NextHop {
                    dst: dst.to_u64(),
                    src: src.to_u64(),
                    address: address.to_bits(),
                    port: port.0,
                    kind: if is_owner { HOP_OWNER } else { HOP_ROUTED },
                    generation,
                };
                put(&mut known.next_hops, hop);
            }
            L3Fact::Flow { src, gateway, dst } => {
                let flow = Flow {
                    src: src.to_u64(),
                    gateway: gateway.to_u64(),
                    dst: dst.to_bits(),
                    generation,
                };
                put(&mut known.flows, flow);
            }
        }
    }

    /// Returns the next hops of known addresses.
    pub fn next_hops(&mut self) -> Vec<L3Fact> {
        let generation = self.tables().generation.load(Relaxed);
        let hops = self.known().next_hops.iter();
        let known = hops.filter(|hop| hop.generation == generation);
        known.map(NextHop::fact).collect()
    }

    /// Forgets facts that no longer hold.
    pub fn retain(&mut self, is_so: &mut dyn FnMut(L3Fact) -> bool) {
        let generation = self.tables().generation.load(Relaxed);
        let known = self.known();
        let mut gateways = HashSet::new();
        retain(&mut known.next_hops, generation, |hop| {
            let keep = is_so(hop.fact());
            if keep && hop.kind == HOP_GATEWAY {
                gateways.insert(hop.dst);
            }
            keep
        });
        retain(&mut known.hosts, generation, |host| match host.key() {
            mac if mac & MAC_IS_GATEWAY != 0 => gateways.contains(&(mac & !MAC_IS_GATEWAY)),
            mac => is_so(L3Fact::Host {
                mac: MacAddr::from_u64(mac),
                port: PortNo(host.port),
            }),
        });
        retain(&mut known.flows, generation, |flow| is_so(flow.fact()));
    }

    /// Calls `hear` with each host that the kernel has heard since the last call.
    pub fn take_heard(&mut self, mut hear: impl FnMut(MacAddr, PortNo)) {
        let count = self.tables().heard_count.swap(0, Relaxed) as usize;
        let known = self.known();
        for place in known.heard.iter().take(count) {
            let host = &mut known.hosts[*place as usize % MAX_HOSTS];
            host.mac &= !MAC_IS_HEARD;
            hear(MacAddr::from_u64(host.mac), PortNo(host.port));
        }
    }

    /// Forgets all facts if any have become stale since the last call.
    pub fn forget_stale(&mut self) {
        // Usually there is nothing to do, so the word is only read.
        let is_stale = &self.tables().is_stale;
        if is_stale.load(Relaxed) == 0 || is_stale.swap(0, AcqRel) == 0 {
            return;
        }
        let next = self.tables().generation.load(Relaxed).wrapping_add(1);
        if next == 0 {
            self.clear();
        }
        self.tables().generation.store(next.max(1), Relaxed);
    }

    /// Frees all slots, before generation numbers start again.
    fn clear(&mut self) {
        let known = self.known();
        known.hosts.iter_mut().for_each(|host| host.generation = 0);
        let hops = known.next_hops.iter_mut();
        hops.for_each(|hop| hop.generation = 0);
        known.flows.iter_mut().for_each(|flow| flow.generation = 0);
    }
}

/// Marks the session's facts as stale. Any thread may call this. Does nothing if the session is left to the next program, which
/// checks the facts itself.
pub fn forget(memory: &Memory) {
    if !memory.is_left.load(Relaxed) {
        tables_of(memory).is_stale.store(1, Release);
    }
}

fn tables_of(memory: &Memory) -> &Tables {
    // SAFETY: the mapping lives as long as `memory`. Tables consists of atomics and a cell, for which all bytes are
    // valid.
    unsafe { &*memory.application::<Tables>() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn flow(src: u64, generation: u32) -> Flow {
        Flow {
            src,
            gateway: 1,
            dst: 2,
            generation,
        }
    }

    /// Finds a flow like the kernel.
    fn find(table: &[Flow], src: u64, generation: u32) -> Option<Flow> {
        let wanted = flow(src, generation);
        let mut places = table
            .iter()
            .filter(|place| place.generation == generation && place.is_about(&wanted));
        let found = places.next().copied();
        assert!(places.next().is_none(), "it is there twice");
        found
    }

    #[test]
    fn a_table_has_exactly_the_entries_that_fit() {
        let mut table = [flow(0, 0); 64];
        for generation in 1..4 {
            let mut refused = 0;
            let mut known = HashMap::new();
            for src in (0..200).chain(0..200) {
                put(&mut table, flow(src, generation));
                let is_there = find(&table, src, generation).is_some();
                refused += u32::from(!is_there);
                let was_there = known.insert(src, is_there);
                assert!(was_there.is_none_or(|was_there| was_there == is_there));
            }
            let count = known.values().filter(|is_there| **is_there).count();
            assert!(count > 48 && count <= 64, "{count} are known");
            assert!(refused > 0);
            assert!((0..200).all(|src| find(&table, src, generation + 1).is_none()));
        }
    }
    #[test]
    fn dropped_entries_free_their_slots() {
        let mut table = [flow(0, 0); 64];
        for src in 0..40 {
            put(&mut table, flow(src, 2));
        }
        // An entry of an older generation, which is never searched for.
        put(&mut table, flow(100, 1));
        let known = |table: &[Flow]| table.iter().filter(|place| place.generation == 2).count();
        let before = known(&table);
        let mut dropped = 0;
        retain(&mut table, 2, |flow| {
            assert!(flow.src < 40);
            dropped += usize::from(flow.src % 2 == 1);
            flow.src % 2 == 0
        });
        assert!(dropped > 0);
        assert_eq!(known(&table), before - dropped);
        for src in 0..40 {
            let found = find(&table, src, 2);
            assert!(found.is_none_or(|_| src % 2 == 0), "{src} is kept");
        }
    }
}
