//! Compares searches of tables with linear searches.

use super::*;
use crate::fast::control::machine::Assembler;
use crate::fast::datapath::frame::{DROP, PUNT};
use crate::fast::datapath::key::{Base, KeyMask, Word};
use crate::fast::datapath::kinds::Depth;
use crate::fast::datapath::table::{HashPart, LpmPart, Rule};
use crate::fast::memory::hash_table::HashTable;
use crate::fast::memory::lpm::{Prefix, Trie};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Returns a part that requires headers which never occur together.
pub(super) fn part_that_never_matches() -> HashPart {
    HashPart {
        mask: KeyMask {
            require: Kinds::all(),
            words: vec![word(Base::Data, 0, u64::MAX)],
            depth: Depth::Ethernet,
        },
        room: 1,
        is_far: false,
        is_final: true,
    }
}

pub(super) fn word(base: Base, at: i16, mask: u64) -> Word {
    Word { base, at, mask }
}

/// A frame in its own buffer.
struct Bytes {
    _buffer: Box<[u8; 256]>,
    frame: Frame,
}

/// Bytes with few different values, so that keys match.
fn bytes() -> impl Strategy<Value = ([u8; 96], u8, u32)> {
    let byte = || select(&[0_u8, 0, 0, 1]);
    (vec(byte(), 96), 0..8_u8, 0..2_u32)
        .prop_map(|(bytes, kinds, in_port)| (bytes.try_into().expect("96 bytes"), kinds, in_port))
}

impl Bytes {
    fn new((bytes, kinds, in_port): &([u8; 96], u8, u32)) -> Self {
        let mut buffer = Box::new([0; 256]);
        buffer[64..160].copy_from_slice(bytes);
        let mut frame = Frame::empty(&mut buffer[..]);
        frame.data = frame.floor.wrapping_add(64);
        frame.network = frame.data.wrapping_add(14);
        frame.transport = frame.data.wrapping_add(34);
        frame.kinds = Kinds::from_bits_retain(u32::from(*kinds));
        frame.in_port = *in_port;
        frame.len = 80;
        Self {
            _buffer: buffer,
            frame,
        }
    }

    /// Returns the masked word, according to the specification of words.
    fn word(&self, word: &Word) -> u64 {
        let frame = &self.frame;
        let base = match word.base {
            Base::Frame => (&raw const *frame).cast::<u8>(),
            Base::Data => frame.data.cast_const(),
            Base::Network => frame.network.cast_const(),
            Base::Transport => frame.transport.cast_const(),
        };
        // SAFETY: tests read only within the frame and its buffer.
        let bytes = unsafe { base.offset(word.at.into()).cast::<u64>().read_unaligned() };
        bytes & word.mask
    }

    fn matches(&self, mask: &KeyMask, values: &[u64]) -> bool {
        let mut pairs = mask.words.iter().zip(values);
        self.frame.kinds.contains(mask.require)
            && pairs.all(|(word, value)| self.word(word) == *value)
    }
}

fn any_word() -> impl Strategy<Value = Word> {
    let mask = select(&[
        u64::MAX,
        0xff,
        0xffff,
        0xffff_ffff,
        0xffff_ffff_ffff,
        0x00ff_00ff,
        0xff00_ff00_0000_00f1,
        0xffff_ffff_ffff_ff0f,
        0xc0ff_ffff,
    ]);
    let base = select(&[Base::Data, Base::Network, Base::Transport, Base::Frame]);
    (base, -2..12_i16, mask).prop_map(|(base, at, mask)| match base {
        Base::Frame => word(
            base,
            std::mem::offset_of!(Frame, in_port) as i16,
            0xffff_ffff,
        ),
        _ => word(base, at, mask),
    })
}

fn key_mask(words: std::ops::Range<usize>) -> impl Strategy<Value = KeyMask> {
    (0..8_u32, vec(any_word(), words)).prop_map(|(kinds, words)| KeyMask {
        require: Kinds::from_bits_retain(kinds & kinds >> 1),
        words,
        depth: Depth::Transport,
    })
}

/// An entry: its part, the frame that it matches, and the upper bits of its rank.
type Entry = (prop::sample::Index, prop::sample::Index, u8);

/// The model of a part's entries: values, rank, target.
type Model = Vec<(Vec<u64>, u64, u32)>;

fn assert_found(
    world: &World,
    bytes: &mut Bytes,
    body: &Body,
    expected: Option<u32>,
    default: Option<u32>,
) {
    let before = world.count(HERE);
    world.run(&mut bytes.frame, body);
    let counted = world.count(HERE);
    let frame = &bytes.frame;
    match expected.or(default) {
        Some(target) => {
            assert_eq!(frame.out_port, target);
            assert_eq!(counted, (before.0 + 1, before.1));
        }
        None if world.context.misses_punt != 0 => {
            assert_eq!((frame.out_port, frame.table_id), (PUNT, 100 + HERE as u16));
            assert_eq!(counted, before);
        }
        None => {
            assert_eq!(frame.out_port, DROP);
            assert_eq!(counted, (before.0, before.1 + 1));
        }
    }
}

/// Target ports are numbered from here on, so that they differ from the frames' ingress ports.
const TARGETS: u32 = 1000;
const DEFAULT: u32 = 999;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn hash_tables_find_the_entry_of_the_lowest_rank(
        masks in vec((key_mask(1..9), any::<bool>()), 1..4),
        frames in vec(bytes(), 1..20),
        entries in vec(any::<Entry>(), 0..60),
        finals in any::<bool>(),
        (has_default, misses_punt) in any::<(bool, bool)>(),
    ) {
        let mut world = World::new();
        world.context.misses_punt = misses_punt.into();
        let assembler = Assembler::new(1 << 20, false);
        let output = assembler.actions(&program(Kinds::empty(), &[], End::Output)).unwrap();
        let mut models: Vec<Model> = vec![Vec::new(); masks.len()];
        let mut tables: Vec<_> = masks.iter().map(|(mask, _)| HashTable::new(mask.words.len())).collect();
        for (number, (part, of, rank)) in entries.iter().enumerate() {
            let part = part.index(masks.len());
            let mask = &masks[part].0;
            let of = Bytes::new(of.get(&frames));
            let values: Vec<u64> = mask.words.iter().map(|word| of.word(word)).collect();
            if models[part].iter().any(|(other, ..)| *other == values) {
                continue;
            }
            // Parts that are final must have lower ranks than all later ones.
            let rank = if finals { (part as u64) << 20 } else { u64::from(*rank) << 8 } + number as u64;
            let target = TARGETS + number as u32;
            let block = world.block(&values, &record(&output, rank, target, &[]));
            drop(tables[part].insert(&world.arena, &values, block));
            models[part].push((values, rank, target));
        }
        let parts: Vec<_> = masks.iter().map(|(mask, is_far)| HashPart {
            mask: mask.clone(),
            room: mask.words.len(),
            is_far: *is_far,
            is_final: finals,
        }).collect();
        let code = assembler.hash(&parts).unwrap();
        let mut body = body(&code);
        for (slot, table) in body.parts.iter().zip(&tables) {
            slot.store(table.slots_ptr().cast_mut().cast(), Relaxed);
        }
        if has_default {
            let block = world.block(&[], &record(&output, u64::MAX, DEFAULT, &[]));
            body.default = world.record(block, 0);
        }
        for frame in &frames {
            let mut bytes = Bytes::new(frame);
            let found = models.iter().zip(&masks).flat_map(|(model, (mask, _))| {
                model.iter().filter(|(values, ..)| bytes.matches(mask, values))
            }).min_by_key(|(_, rank, _)| *rank);
            let expected = found.map(|(.., target)| *target);
            assert_found(&world, &mut bytes, &body, expected, has_default.then_some(DEFAULT));
        }
    }

}

proptest! {
    // The roots need 256 KiB and 64 MiB.
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn tries_find_the_longest_prefix(
        len in 2..17_usize,
        is_24 in any::<bool>(),
        is_far in any::<bool>(),
        frames in vec(bytes(), 1..20),
        entries in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..40),
        require in 0..2_u32,
        has_default in any::<bool>(),
    ) {
        let root_bits = if is_24 && len >= 3 { 24 } else { 16 };
        let mut world = World::new();
        let assembler = Assembler::new(1 << 20, false);
        let output = assembler.actions(&program(Kinds::empty(), &[], End::Output)).unwrap();
        let part = LpmPart {
            require: Kinds::from_bits_retain(require),
            depth: Depth::Network,
            field: word(Base::Network, 12, 0),
            len: len as u8,
            root_bits,
            room: 0,
            is_far,
        };
        let key = |(bytes, ..): &([u8; 96], u8, u32)| bytes[26..26 + len].to_vec();
        let mut trie = Trie::new(len, root_bits.into());
        let mut model: Vec<(Vec<u8>, usize, u32)> = Vec::new();
        for (number, (of, bits)) in entries.iter().enumerate() {
            let key = key(of.get(&frames));
            // The shortest prefixes fill a root, so they are used only if it is small.
            let shortest = if root_bits == 24 { 12 } else { 0 };
            let bits = shortest + bits.index(8 * len + 1 - shortest);
            if model.iter().any(|(other, other_bits, _)| *other_bits == bits && begins_with(&key, other, bits)) {
                continue;
            }
            let target = TARGETS + number as u32;
            let block = world.block(&[], &record(&output, 0, target, &[]));
            trie.insert(&mut world.arena, Prefix::new(&key, bits as u32), block).unwrap();
            model.push((key, bits, target));
        }
        let code = assembler.lpm(&part).unwrap();
        let mut body = body(&code);
        body.parts[0].store(trie.root().entries().cast_mut().cast(), Relaxed);
        if has_default {
            let block = world.block(&[], &record(&output, u64::MAX, DEFAULT, &[]));
            body.default = world.record(block, 0);
        }
        for frame in &frames {
            let mut bytes = Bytes::new(frame);
            let found = model.iter().filter(|(prefix, bits, _)| begins_with(&key(frame), prefix, *bits));
            let is_searched = bytes.frame.kinds.contains(part.require);
            let longest = found.max_by_key(|(_, bits, _)| *bits).filter(|_| is_searched);
            let expected = longest.map(|(.., target)| *target);
            assert_found(&world, &mut bytes, &body, expected, has_default.then_some(DEFAULT));
        }
        trie.free(&mut world.arena);
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn direct_code_finds_the_first_entry(
        masks in vec(key_mask(0..4), 1..3),
        frames in vec(bytes(), 1..20),
        entries in vec(any::<Entry>(), 0..20),
        has_default in any::<bool>(),
    ) {
        let mut world = World::new();
        let assembler = Assembler::new(1 << 20, false);
        let actions = program(Kinds::empty(), &[], End::Output);
        let output = assembler.actions(&actions).unwrap();
        let rules: Vec<Rule> = entries.iter().enumerate().map(|(number, (which, of, _))| {
            let mask = which.get(&masks).clone();
            let of = Bytes::new(of.get(&frames));
            let values = mask.words.iter().map(|word| of.word(word)).collect();
            let block = world.block(&[], &record(&output, 0, TARGETS + number as u32, &[]));
            Rule { mask, values, record: world.record(block, 0) }
        }).collect();
        let pairs: Vec<_> = rules.iter().map(|rule| (rule, &actions)).collect();
        let code = assembler.direct(&pairs).unwrap();
        let mut body = body(&code);
        if has_default {
            let block = world.block(&[], &record(&output, u64::MAX, DEFAULT, &[]));
            body.default = world.record(block, 0);
        }
        for frame in &frames {
            let mut bytes = Bytes::new(frame);
            let first = rules.iter().position(|rule| bytes.matches(&rule.mask, &rule.values));
            let expected = first.map(|index| TARGETS + index as u32);
            assert_found(&world, &mut bytes, &body, expected, has_default.then_some(DEFAULT));
        }
    }
}

fn begins_with(key: &[u8], prefix: &[u8], bits: usize) -> bool {
    (0..bits).all(|bit| (key[bit / 8] ^ prefix[bit / 8]) >> (7 - bit % 8) & 1 == 0)
}

#[test]
fn plain_tables_use_the_plain_form() {
    let world = World::new();
    let code = Assembler::new(1 << 20, false).plain().unwrap();
    let mut bytes = Bytes::new(&([0; 96], 0, 1));
    assert_eq!(world.run(&mut bytes.frame, &body(&code)), 0);
    assert_eq!(
        (bytes.frame.out_port, bytes.frame.table_id),
        (PUNT, 100 + HERE as u16)
    );
    assert_eq!(world.count(HERE), (0, 0));
}
