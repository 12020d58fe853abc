//! The cost of code, in cycles of the time-stamp counter per frame. Frames are processed in bursts.
//!
//! ```text
//! cargo test --release -p urtica-pipeline cycles -- --ignored --nocapture
//! ```
//!
//! Not measured: parsing, and the steps before and after the pipeline.

use super::listings::{eth_dst, ipv4_dst, route};
use super::*;
use crate::fast::control::machine::Assembler;
use crate::fast::datapath::burst::BURST;
use crate::fast::datapath::frame::PUNT;
use crate::fast::memory::hash_table::HashTable;
use crate::fast::memory::lpm::{Prefix, Trie};
use std::arch::x86_64::_rdtsc;
use std::collections::HashSet;
use urtica_wire::{MIX_STEP, mix};

/// The numbers of alternating bursts: one, whose frames the branch predictor memorises, and more than any can memorise.
const BURSTS: [usize; 2] = [1, 256];

/// The number of rounds, of which the fastest counts.
const ROUNDS: usize = 20;

/// Returns pseudo-random numbers, which are equal in each run.
fn random(state: &mut u64) -> u64 {
    let number = mix(*state);
    *state = state.wrapping_add(MIX_STEP);
    number
}

/// Frames of 64 bytes each.
struct Frames {
    _buffers: Vec<[u8; 256]>,
    frames: Vec<Frame>,
}

impl Frames {
    fn new(count: usize, mut fill: impl FnMut(usize, &mut [u8])) -> Self {
        let mut buffers = vec![[0; 256]; count];
        let frames = buffers.iter_mut().enumerate().map(|(number, buffer)| {
            fill(number, &mut buffer[64..128]);
            let mut frame = Frame::empty(buffer);
            frame.data = frame.floor.wrapping_add(64);
            frame.network = frame.data.wrapping_add(14);
            frame.len = 64;
            frame.kinds = Kinds::IPV4;
            frame.in_port = 7;
            frame
        });
        let frames = frames.collect();
        Self {
            _buffers: buffers,
            frames,
        }
    }
}

/// Processes all bursts with the table, and returns the number of cycles per frame.
fn cycles(world: &World, body: &Body, frames: &mut [Frame], repeats: usize) -> f64 {
    let mut best = u64::MAX;
    for _ in 0..ROUNDS {
        // SAFETY: every x86-64 processor has the counter.
        let start = unsafe { _rdtsc() };
        for _ in 0..repeats {
            frames
                .chunks_mut(BURST)
                .for_each(|burst| process(world, body, burst));
        }
        // SAFETY: as above.
        best = best.min(unsafe { _rdtsc() } - start);
    }
    best as f64 / (repeats * frames.len()) as f64
}

/// Processes one burst, including all pauses.
fn process(world: &World, body: &Body, burst: &mut [Frame]) {
    let mut paused = 0;
    for frame in burst.iter_mut() {
        frame.resume = 0;
        // SAFETY: `code` is a table's, and everything that the body refers to is alive.
        unsafe {
            // Routes decrement the TTL, and the frames are reused.
            *frame.network.add(8) = 64;
            let code: TableCode = std::mem::transmute(body.code);
            code(frame, &*world.context, body, &world.headers[HERE]);
        }
        paused += usize::from(frame.resume != 0);
    }
    while paused > 0 {
        paused = 0;
        for frame in burst.iter_mut().filter(|frame| frame.resume != 0) {
            let resume = std::mem::replace(&mut frame.resume, 0);
            // SAFETY: the code itself has set the address.
            unsafe {
                let code: ResumeCode = std::mem::transmute(resume);
                code(frame, &*world.context);
            }
            paused += usize::from(frame.resume != 0);
        }
    }
}

fn report(name: &str, world: &World, body: &Body, out_port: u32, fill: impl Fn(usize, &mut [u8])) {
    let [one, many] = BURSTS.map(|bursts| {
        let mut frames = Frames::new(bursts * BURST, &fill);
        let cycles = cycles(world, body, &mut frames.frames, 20_000 / bursts);
        assert!(frames.frames.iter().all(|frame| frame.out_port == out_port));
        cycles
    });
    println!("{name:<44} {one:>8.1} {many:>8.1}");
}

fn mac(number: u64) -> u64 {
    random(&mut number.clone()) & 0xffff_ffff_ffff
}

fn hash(entries: u64, is_far: bool) {
    let mut world = World::new();
    let assembler = Assembler::new(1 << 20, false);
    let actions = assembler
        .actions(&program(Kinds::empty(), &[], End::Output))
        .unwrap();
    let mut table = HashTable::new(1);
    for number in 0..entries {
        let key = [mac(number)];
        let block = world.block_for(&key, &record(&actions, 0, 1, &[0x42; 12]), 12);
        drop(table.insert(&world.arena, &key, block));
    }
    let code = assembler.hash(&[eth_dst(is_far)]).unwrap();
    let body = body(&code);
    body.parts[0].store(table.slots_ptr().cast_mut().cast(), Relaxed);
    let name = format!("hash, {entries} entries{}", far(is_far));
    report(&name, &world, &body, 1, |number, bytes| {
        let key = mac(random(&mut (number as u64 + 77)) % entries);
        bytes[..8].copy_from_slice(&key.to_le_bytes());
    });
}

fn lpm(routes: u64, root_bits: u8, is_far: bool) {
    let mut world = World::new();
    let assembler = Assembler::new(1 << 20, false);
    let actions = assembler.actions(&route()).unwrap();
    let mut trie = Trie::new(4, root_bits.into());
    let mut known = HashSet::new();
    for number in 0..routes {
        let block = world.block_for(&[], &record(&actions, 0, 1, &[0x42; 12]), 12);
        let prefix = Prefix::new(&prefix(number), 16 + (number % 9) as u32);
        if known.insert(prefix) {
            trie.insert(&mut world.arena, prefix, block).unwrap();
        }
    }
    let code = assembler.lpm(&ipv4_dst(root_bits, is_far)).unwrap();
    let body = body(&code);
    body.parts[0].store(trie.root().entries().cast_mut().cast(), Relaxed);
    let name = format!("route, {routes} of {root_bits} bits{}", far(is_far));
    report(&name, &world, &body, 1, |number, bytes| {
        let number = random(&mut (number as u64 + 77)) % routes;
        bytes[30..34].copy_from_slice(&prefix(number));
    });
    trie.free(&mut world.arena);
}

fn prefix(number: u64) -> [u8; 4] {
    (random(&mut number.clone()) as u32).to_be_bytes()
}

fn far(is_far: bool) -> &'static str {
    if is_far { ", far" } else { "" }
}

#[test]
#[ignore = "measures, and asserts nothing; see above"]
fn cycles_of_frames() {
    println!("{:<44} {:>8} {:>8}", "cycles per frame", "1 burst", "256");
    let world = World::new();
    let plain = Assembler::new(1 << 20, false).plain().unwrap();
    report(
        "no search (the bench's own part)",
        &world,
        &body(&plain),
        PUNT,
        |_, _| {},
    );
    println!("-- output");
    for (entries, is_far) in [
        (32, false),
        (1000, false),
        (1000, true),
        (1_000_000, false),
        (1_000_000, true),
    ] {
        hash(entries, is_far);
    }
    println!("-- set both addresses, decrement the TTL, output");
    for (routes, root_bits, is_far) in [
        (32, 16, false),
        (10_000, 16, false),
        (10_000, 16, true),
        (10_000, 24, false),
        (10_000, 24, true),
        (1_000_000, 24, false),
        (1_000_000, 24, true),
    ] {
        lpm(routes, root_bits, is_far);
    }
}
