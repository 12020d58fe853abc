//! What entries take in memory, and that finding them takes none: all memory that is asked for is counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;
use urtica_pipeline::{Packet, Pipeline, PipelineConfig};
use urtica_wire::{Action, Field, FlowMod, Instruction, List, Match, OxmField, PortNo};

/// What one entry with one field and one action may take.
const ENTRY_BYTES_MAX: usize = 400;

thread_local! {
    /// Bytes that this thread holds, and how often it asked for some.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which counts what it is asked for.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all is done by the system's allocator; the counters are plain numbers without destructors, which need no
// memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        HELD.set(HELD.get() + layout.size() as isize);
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as isize);
        // SAFETY: as above; the memory comes from the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn to_host(number: u64) -> Match<'static> {
    let mac = 0x0200_0000_0000 + u128::from(number);
    Match::from(vec![Field::exact(OxmField::EthDst, mac)])
}

fn add(pipeline: &mut Pipeline, match_: Match<'static>) {
    let instruction = Instruction::apply(vec![Action::output(PortNo::CONTROLLER)]);
    let flow_mod = FlowMod {
        match_,
        instructions: List::from(vec![instruction]),
        ..FlowMod::default()
    };
    let result = pipeline.flow_mod(&flow_mod, Duration::ZERO, &mut Vec::new());
    result.expect("the flow mod is right");
}

#[test]
fn an_entry_takes_few_bytes() {
    const COUNT: usize = 100_000;
    let mut pipeline = Pipeline::new(PipelineConfig::default());
    let before = HELD.get();
    (0..COUNT).for_each(|number| add(&mut pipeline, to_host(number as u64)));
    let bytes = (HELD.get() - before) as usize / COUNT;
    println!("{bytes} bytes an entry");
    assert!(bytes <= ENTRY_BYTES_MAX, "an entry takes {bytes} bytes");
}

/// IPv6 addresses do not fit into a key, so that the search takes its longer way.
#[test]
fn a_search_allocates_nothing() {
    let mut pipeline = Pipeline::new(PipelineConfig::default());
    (0..100).for_each(|number| add(&mut pipeline, to_host(number)));
    let both = [OxmField::Ipv6Src, OxmField::Ipv6Dst].map(|field| Field::exact(field, 0));
    let eth_type = Field::exact(OxmField::EthType, 0x86dd);
    add(
        &mut pipeline,
        Match::from([&[eth_type], &both[..]].concat()),
    );

    let mut frame = [0; 54];
    (frame[12], frame[13], frame[14]) = (0x86, 0xdd, 0x60);
    frame[20] = 59;
    let packet = Packet::new(PortNo(1), &frame);
    let before = CALLS.get();
    let found = pipeline.tables()[0].find(&packet);
    assert_eq!(CALLS.get(), before);
    assert!(found.is_some());
}
