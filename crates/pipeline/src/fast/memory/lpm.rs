//! A trie for the longest prefix of an address.
//!
//! **What.** The trie maps prefixes to blocks of an arena: [`Root::find`] returns the block of an address's longest prefix.
//! Keys have up to 16 bytes, for IPv4, IPv6 and Ethernet addresses. One writer changes a [`Trie`]; readers, including
//! generated code, start at its [`Root`].
//!
//! **How.** A multibit trie with prefixes expanded and pushed down to where addresses end (Srinivasan and Varghese,
//! ACM Transactions on Computer Systems 17, 1999), as DIR-24-8 (Gupta, Lin and McKeown, INFOCOM 1998) does for IPv4.
//! The root has an entry for each value of the first 16 or 24 bits, a node one for each value of the next 8. An entry
//! has 4 bytes:
//!
//! | content | means |
//! | --- | --- |
//! | 0 | no prefix |
//! | `1 << 31 \| ref` | the search continues in the node at `base + ref * 64` with the key's next byte |
//! | `ref` | the longest prefix's block |
//!
//! The root's index is the key's first bytes, in network order. So a search has one load per level, and no state or
//! comparisons. An entry has the block of its longest prefix, even if that is shorter than the path to the entry; so a prefix
//! is written to every entry that it covers, except for entries of longer ones. These are recognized by their content: **each
//! prefix has its own block**, and an entry that has the block of the next shorter prefix, or 0, is not covered by a longer
//! one. When a prefix is removed, its entries get the block of the next shorter one. A node whose entries are then all equal
//! is also removed; [`Trie::remove`] never needs memory.
//!
//! **Cost.** A search for an IPv4 address needs 1 to 3 dependent loads with 16 bits in the root, 1 or 2 with 24. The root has
//! 256 KiB or 64 MiB, a node 1 KiB. In the benchmark `structures`, 24 bits are not faster for 10,000 routes, whose entries
//! stay in the caches, but for 500,000 with a prefetch. Hence 16 is the usual choice. The writer has a hash table of prefixes,
//! with 29 to 58 bytes each (33 for 100,000). A change writes the entries that the prefix covers, and tries the lengths in use
//! to find the next shorter prefix. So a default route writes the whole root, 65,536 or 16,777,216 entries, and all nodes.
//!
//! **Thread-safety.** Each entry changes by one `Release` store, which readers load with `Acquire`. A node is complete before
//! an entry refers to it, and initially has the entry's old content; it no longer changes after its removal. So a search
//! always returns the result from before or after the current change. Removed nodes are returned: the caller frees them when
//! no reader can see them ([`super::epoch`]).

use super::arena::{Arena, Full, NODE_UNITS, Ref};
use super::hash_table::{hash, random_seeds};
use super::zeroed::Zeroed;
use hashbrown::HashTable;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The length of the longest key, in bytes.
pub(crate) const KEY_BYTES_MAX: usize = 16;

/// The bit that is set in entries that refer to a node.
pub(crate) const NODE: u32 = 1 << 31;

/// The number of bits of a key that index a node.
const NODE_BITS: u32 = 8;

/// The number of nodes up to which a trie always counts as compact.
pub(crate) const NODES_SPARE: usize = 4096;

/// The maximum number of nodes on a path: one for each byte after a root of two bytes.
const DEPTH_MAX: usize = KEY_BYTES_MAX - 2;

/// A prefix: the first bits of some addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Prefix {
    /// The bits, left-aligned, with zeros after them.
    bits: u128,
    len: u32,
}

impl Prefix {
    /// Creates a prefix of the first `len` bits of a key; the others are ignored.
    ///
    /// # Panics
    /// If the key has fewer bits, or is longer than [`KEY_BYTES_MAX`].
    pub fn new(key: &[u8], len: u32) -> Self {
        assert!(
            len as usize <= key.len() * 8,
            "a prefix is no longer than its key"
        );
        Self::of_bits(bits_of(key), len)
    }

    /// Returns the nodes on its path, after a root of 16 bits: equal parts of prefixes have equal nodes.
    pub fn nodes(self) -> impl Iterator<Item = Self> {
        let levels = (16..self.len).step_by(NODE_BITS as usize);
        levels.map(move |level| self.shortened(level))
    }

    fn of_bits(bits: u128, len: u32) -> Self {
        let mask = u128::MAX.checked_shl(128 - len).unwrap_or(0);
        Self {
            bits: bits & mask,
            len,
        }
    }

    fn shortened(self, len: u32) -> Self {
        Self::of_bits(self.bits, len)
    }
}

/// Returns a key's bits, left-aligned.
fn bits_of(key: &[u8]) -> u128 {
    let mut bytes = [0; KEY_BYTES_MAX];
    bytes[..key.len()].copy_from_slice(key);
    u128::from_be_bytes(bytes)
}

/// The readers' entry point of a trie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Root {
    entries: *const AtomicU32,
    bytes: usize,
}

// SAFETY: only `find` uses the pointer, and it is unsafe itself; the pointer's data is changed by atomics.
unsafe impl Send for Root {}
// SAFETY: as above.
unsafe impl Sync for Root {}

impl Root {
    /// Creates the root with these entries, one for each value of the first `root_bits` bits, 16 or 24.
    pub fn new(entries: *const AtomicU32, root_bits: u32) -> Self {
        Self {
            entries,
            bytes: root_bits as usize / 8,
        }
    }

    /// Returns the entries.
    pub fn entries(self) -> *const AtomicU32 {
        self.entries
    }

    /// Returns the block of the longest prefix of a key.
    ///
    /// # Panics
    /// If the key is shorter than the root's part of it, or ends before the search does.
    ///
    /// # Safety
    /// The trie is, or was at the last `begin` of this thread's participant, one whose nodes are in the arena with this
    /// base; neither the root nor a node is freed before the next `begin`.
    #[inline]
    pub unsafe fn find(self, arena_base: *const u8, key: &[u8]) -> Option<Ref> {
        let (first, rest) = key.split_at(self.bytes);
        // SAFETY: the root has an entry for each value of its bits.
        let mut entry = unsafe { &*self.entries.add(index(first)) }.load(Acquire);
        let mut rest = rest.iter();
        while entry & NODE != 0 {
            let byte = *rest.next().expect("a trie is no deeper than its keys");
            let offset = node_offset(entry) + usize::from(byte) * size_of::<AtomicU32>();
            // SAFETY: a node of the arena with this base, which has 256 entries.
            entry = unsafe { &*arena_base.add(offset).cast::<AtomicU32>() }.load(Acquire);
        }
        Ref::from_bits(entry)
    }

    /// Prefetches the first entry of a search for this key.
    ///
    /// # Panics
    /// If the key is shorter than the root's part of it.
    #[inline]
    pub fn prefetch(self, key: &[u8]) {
        let entry = self.entries.wrapping_add(index(&key[..self.bytes]));
        super::zeroed::prefetch(entry.cast());
    }
}

/// Returns the index of the root's entry for a key with these first bytes.
#[inline]
fn index(first: &[u8]) -> usize {
    first
        .iter()
        .fold(0, |index, &byte| index << 8 | usize::from(byte))
}

/// Returns the node that an entry refers to, if any.
fn node_of(entry: u32) -> Option<Ref> {
    Ref::from_bits(entry & !NODE).filter(|_| entry & NODE != 0)
}

#[inline]
fn node_offset(entry: u32) -> usize {
    (entry & !NODE) as usize * super::arena::UNIT_BYTES
}

/// The root or a node, for the writer. It cannot be freed during use, since that needs exclusive access to the arena.
#[derive(Clone, Copy, Debug)]
struct Level<'a> {
    entries: &'a [AtomicU32],
    /// The position of its first bit in a key.
    begin: u32,
    end: u32,
}

impl<'a> Level<'a> {
    /// Returns the node that a level's entry refers to, if any; `begin` is the end of that level.
    fn node(arena: &'a Arena, entry: u32, begin: u32) -> Option<Self> {
        let node = node_of(entry)?;
        Some(Self {
            entries: arena.atomics(node, NODE_UNITS),
            begin,
            end: begin + NODE_BITS,
        })
    }

    /// Returns the next level for addresses with the prefix, if there is one.
    fn next(self, arena: &'a Arena, prefix: Prefix) -> Option<Self> {
        let entry = self.covered(prefix)[0].load(Relaxed);
        Self::node(arena, entry, self.end)
    }

    /// Returns the entries for addresses with the prefix; only one if the prefix continues in a lower level.
    fn covered(self, prefix: Prefix) -> &'a [AtomicU32] {
        let first = (prefix.bits << self.begin >> (128 - (self.end - self.begin))) as usize;
        let count = 1_usize << self.end.saturating_sub(prefix.len);
        // The bits after the prefix are 0, so its entries are the next `count`.
        &self.entries[first..first + count]
    }
}

/// A prefix and its block, in 24 bytes.
#[derive(Clone, Copy, Debug)]
struct KnownPrefix {
    bits: [u32; 4],
    len: u32,
    block: Ref,
}

impl KnownPrefix {
    fn new(prefix: Prefix, block: Ref) -> Self {
        let word = |index: u32| (prefix.bits >> (96 - 32 * index)) as u32;
        Self {
            bits: [word(0), word(1), word(2), word(3)],
            len: prefix.len,
            block,
        }
    }

    fn prefix(&self) -> Prefix {
        let bits = self.bits.iter();
        Prefix {
            bits: bits.fold(0, |bits, &word| bits << 32 | u128::from(word)),
            len: self.len,
        }
    }
}

/// All prefixes of a trie.
#[derive(Debug)]
struct Prefixes {
    known: HashTable<KnownPrefix>,
    /// The number of prefixes of each length.
    lengths: [u32; KEY_BYTES_MAX * 8 + 1],
    seeds: (u64, u64),
}

impl Prefixes {
    fn new() -> Self {
        Self {
            known: HashTable::new(),
            lengths: [0; KEY_BYTES_MAX * 8 + 1],
            seeds: random_seeds(),
        }
    }

    fn hash((seed0, seed1): (u64, u64), prefix: Prefix) -> u64 {
        let words = [
            (prefix.bits >> 64) as u64,
            prefix.bits as u64,
            prefix.len.into(),
        ];
        hash(&words, seed0, seed1)
    }

    fn find(&self, prefix: Prefix) -> Option<Ref> {
        let hash = Self::hash(self.seeds, prefix);
        let known = self.known.find(hash, |known| known.prefix() == prefix)?;
        Some(known.block)
    }

    /// Returns the block of the longest prefix that is shorter than this one and covers it.
    fn next_shorter(&self, prefix: Prefix) -> Option<Ref> {
        let lengths = (0..prefix.len).rev();
        lengths
            .filter(|&len| self.lengths[len as usize] > 0)
            .find_map(|len| self.find(prefix.shortened(len)))
    }

    fn insert(&mut self, prefix: Prefix, block: Ref) {
        let seeds = self.seeds;
        let known = KnownPrefix::new(prefix, block);
        let hash_of = |known: &KnownPrefix| Self::hash(seeds, known.prefix());
        self.known.insert_unique(hash_of(&known), known, hash_of);
        self.lengths[prefix.len as usize] += 1;
    }

    fn replace(&mut self, prefix: Prefix, block: Ref) -> Option<Ref> {
        let hash = Self::hash(self.seeds, prefix);
        let known = self
            .known
            .find_mut(hash, |known| known.prefix() == prefix)?;
        Some(std::mem::replace(&mut known.block, block))
    }

    fn remove(&mut self, prefix: Prefix) -> Option<Ref> {
        let hash = Self::hash(self.seeds, prefix);
        let entry = self
            .known
            .find_entry(hash, |known| known.prefix() == prefix);
        let (known, _) = entry.ok()?.remove();
        self.lengths[prefix.len as usize] -= 1;
        Some(known.block)
    }
}

/// The result of [`Trie::remove`]: the prefix's block, and nodes of [`NODE_UNITS`].
#[derive(Debug)]
pub(crate) struct Removed {
    pub block: Ref,
    pub nodes: Vec<Ref>,
}

/// A trie, for its only writer. All calls must use the same arena.
#[derive(Debug)]
pub(crate) struct Trie {
    root: Zeroed,
    root_bits: u32,
    key_bits: u32,
    prefixes: Prefixes,
    nodes: usize,
}

impl Trie {
    /// Creates an empty trie for keys of `key_bytes` bytes, of which the root uses the first 16 or 24 bits.
    ///
    /// # Panics
    /// If the root does not have 16 or 24 bits, or keys are shorter than that or longer than [`KEY_BYTES_MAX`].
    pub fn new(key_bytes: usize, root_bits: u32) -> Self {
        assert!(matches!(root_bits, 16 | 24), "a root of {root_bits} bits");
        let lengths = root_bits as usize / 8..=KEY_BYTES_MAX;
        assert!(lengths.contains(&key_bytes), "keys of {key_bytes} bytes");
        Self {
            root: Zeroed::new(size_of::<AtomicU32>() << root_bits),
            root_bits,
            key_bits: key_bytes as u32 * 8,
            prefixes: Prefixes::new(),
            nodes: 0,
        }
    }

    /// Returns the readers' entry point, which never changes.
    pub fn root(&self) -> Root {
        Root::new(self.root.pointer().cast_const().cast(), self.root_bits)
    }

    /// Returns the number of prefixes.
    pub fn len(&self) -> usize {
        self.prefixes.known.len()
    }

    /// Returns whether it has at most two nodes per prefix, plus a fixed number.
    pub fn is_compact(&self) -> bool {
        self.nodes <= NODES_SPARE + 2 * self.len()
    }

    /// Returns the size of the data that searches use, root and nodes, in bytes.
    pub fn search_bytes(&self) -> usize {
        self.root.bytes() + self.nodes * NODE_UNITS * super::arena::UNIT_BYTES
    }

    /// Returns the size of the root, the nodes, and the writer's data, in bytes.
    pub fn bytes(&self) -> usize {
        let nodes = self.nodes * NODE_UNITS * super::arena::UNIT_BYTES;
        self.bytes_beside_arena() + nodes
    }

    /// Like `bytes`, but without the nodes, which are in the arena.
    pub fn bytes_beside_arena(&self) -> usize {
        self.root.bytes() + self.prefixes.known.allocation_size() + size_of::<Self>()
    }

    /// Returns the block of the longest prefix of a key.
    ///
    /// # Panics
    /// If the key has another length.
    #[cfg(test)]
    pub fn find(&self, arena: &Arena, key: &[u8]) -> Option<Ref> {
        assert_eq!(
            key.len() * 8,
            self.key_bits as usize,
            "keys have one length"
        );
        // SAFETY: the trie is ours, and only its writer can free a node.
        unsafe { self.root().find(arena.base(), key) }
    }

    /// Adds a new prefix, with a block that no other prefix has.
    ///
    /// # Errors
    /// If the arena has no space for nodes; then nothing has changed.
    ///
    /// # Panics
    /// If the prefix is longer than the keys.
    pub fn insert(&mut self, arena: &mut Arena, prefix: Prefix, block: Ref) -> Result<(), Full> {
        debug_assert_eq!(
            self.prefixes.find(prefix),
            None,
            "the prefix is there already"
        );
        assert!(
            prefix.len <= self.key_bits,
            "a prefix is no longer than keys are"
        );
        let level = self.lowest_level(arena, prefix);
        if prefix.len > level.end {
            let (begin, before) = (level.end, level.covered(prefix)[0].load(Relaxed));
            let grown = self.grow(arena, prefix, begin, before, block)?;
            let level = self.lowest_level(arena, prefix);
            level.covered(prefix)[0].store(grown, Release);
            self.prefixes.insert(prefix, block);
            return Ok(());
        }
        let shorter = self.prefixes.next_shorter(prefix);
        repaint(
            arena,
            level,
            level.covered(prefix),
            bits(shorter),
            block.bits(),
        );
        self.prefixes.insert(prefix, block);
        Ok(())
    }

    /// Returns `true` if it contains exactly this prefix.
    pub fn has(&self, prefix: Prefix) -> bool {
        self.prefixes.find(prefix).is_some()
    }

    /// Replaces the block of a prefix by another, which no prefix has, and returns the old one; `None` if the prefix does not
    /// exist.
    pub fn replace(&mut self, arena: &Arena, prefix: Prefix, block: Ref) -> Option<Ref> {
        let old = self.prefixes.replace(prefix, block)?;
        let level = self.lowest_level(arena, prefix);
        repaint(
            arena,
            level,
            level.covered(prefix),
            old.bits(),
            block.bits(),
        );
        Some(old)
    }

    /// Removes a prefix, whose addresses then match the next shorter one; `None` if the prefix does not exist.
    pub fn remove(&mut self, arena: &Arena, prefix: Prefix) -> Option<Removed> {
        let block = self.prefixes.remove(prefix)?;
        let mut path: [Option<(&AtomicU32, Level)>; DEPTH_MAX] = [None; DEPTH_MAX];
        let mut depth = 0;
        let mut level = self.root_level();
        while prefix.len > level.end {
            let entry = &level.covered(prefix)[0];
            // There is a node: the prefix's entries have its own block or those of longer prefixes, none of which covers this
            // whole entry.
            level = level.next(arena, prefix)?;
            path[depth] = Some((entry, level));
            depth += 1;
        }
        let shorter = self.prefixes.next_shorter(prefix);
        repaint(
            arena,
            level,
            level.covered(prefix),
            block.bits(),
            bits(shorter),
        );
        let nodes = collapse(path[..depth].iter().rev().flatten());
        self.nodes -= nodes.len();
        Some(Removed { block, nodes })
    }

    /// Frees the nodes. No reader may use the trie any longer.
    pub fn free(self, arena: &mut Arena) {
        let mut nodes = Vec::with_capacity(self.nodes);
        add_nodes(arena, self.root_level(), &mut nodes);
        nodes
            .into_iter()
            .for_each(|node| arena.free(node, NODE_UNITS));
    }

    fn root_level(&self) -> Level<'_> {
        Level {
            entries: self.root.atomics(),
            begin: 0,
            end: self.root_bits,
        }
    }

    /// Returns the level in which a prefix ends, or the lowest existing one on its path.
    fn lowest_level<'a>(&'a self, arena: &'a Arena, prefix: Prefix) -> Level<'a> {
        let mut level = self.root_level();
        while prefix.len > level.end {
            let Some(next) = level.next(arena, prefix) else {
                break;
            };
            level = next;
        }
        level
    }

    /// Makes an entry refer to new nodes with equal content, except for the prefix, which starts at a bit of it.
    fn grow(
        &mut self,
        arena: &mut Arena,
        prefix: Prefix,
        begin: u32,
        before: u32,
        block: Ref,
    ) -> Result<u32, Full> {
        let node = arena.allocate(NODE_UNITS).ok_or(Full)?;
        fill(arena, node, before);
        let entry = NODE | node.bits();
        let end = begin + NODE_BITS;
        let value = if prefix.len > end {
            let below = self.grow(arena, prefix, end, before, block);
            below.inspect_err(|_| arena.free(node, NODE_UNITS))?
        } else {
            block.bits()
        };
        let level = Level::node(arena, entry, begin).ok_or(Full)?;
        level
            .covered(prefix)
            .iter()
            .for_each(|entry| entry.store(value, Relaxed));
        self.nodes += 1;
        Ok(entry)
    }
}

/// Removes the nodes of a path whose entries are all equal, from the lowest on, and returns them.
fn collapse<'a>(path: impl Iterator<Item = &'a (&'a AtomicU32, Level<'a>)>) -> Vec<Ref> {
    let mut nodes = Vec::new();
    for &(entry, level) in path {
        let Some(value) = uniform(level.entries) else {
            break;
        };
        nodes.extend(node_of(entry.swap(value, Release)));
    }
    nodes
}

/// Sets all entries of an unshared node to one value.
fn fill(arena: &Arena, node: Ref, value: u32) {
    let entries = arena.atomics(node, NODE_UNITS).iter();
    entries.for_each(|entry| entry.store(value, Relaxed));
}

/// Replaces one block by another, in these entries of a level and in all nodes below.
fn repaint(arena: &Arena, level: Level, entries: &[AtomicU32], from: u32, to: u32) {
    for entry in entries {
        let value = entry.load(Relaxed);
        if value == from {
            entry.store(to, Release);
        } else if let Some(node) = Level::node(arena, value, level.end) {
            repaint(arena, node, node.entries, from, to);
        }
    }
}

/// Returns the common value of all entries, if they are equal and do not refer to a node.
fn uniform(entries: &[AtomicU32]) -> Option<u32> {
    let first = entries[0].load(Relaxed);
    let same = |entry: &AtomicU32| entry.load(Relaxed) == first;
    (first & NODE == 0 && entries[1..].iter().all(same)).then_some(first)
}

/// Appends all nodes below a level, lower ones first.
fn add_nodes(arena: &Arena, level: Level, nodes: &mut Vec<Ref>) {
    for entry in level.entries {
        let value = entry.load(Relaxed);
        if let Some(next) = Level::node(arena, value, level.end) {
            add_nodes(arena, next, nodes);
            nodes.extend(node_of(value));
        }
    }
}

fn bits(block: Option<Ref>) -> u32 {
    block.map_or(0, Ref::bits)
}

#[cfg(test)]
mod tests;
