//! Tests of the memory of entries, and that searches allocate none, by counting all allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;
use urtica_pipeline::{
    Backend, Burst, CompileConfig, Packet, Pipeline, PipelineConfig, TemplateKind, Verdict,
};
use urtica_wire::{Action, Field, FlowMod, Instruction, List, Match, OxmField, PortNo};

/// Maximum memory of one entry with one field and one action.
const ENTRY_BYTES_MAX: usize = 400;

/// Maximum additional memory of its compiled form: a flow record with its key, and its share of a hash table that is at
/// least a quarter full.
const COMPILED_BYTES_MAX: usize = 128;

/// Maximum additional memory of a compiled route: a flow record, its share of the trie's nodes, and the writer's data on its
/// prefix.
const COMPILED_ROUTE_BYTES_MAX: usize = 192;

/// Memory of an additional field.
const FIELD_BYTES: usize = 48;

thread_local! {
    /// Bytes that this thread has allocated, and its number of allocations.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which counts.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the system's allocator does all the work; the counters are plain numbers without destructors, which need no
// memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        HELD.set(HELD.get() + layout.size() as isize);
        // SAFETY: the caller fulfils the requirements of the system's allocator.
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
    add_with(pipeline, match_, instruction);
}

fn add_with(pipeline: &mut Pipeline, match_: Match<'static>, instruction: Instruction<'static>) {
    add_at(pipeline, FlowMod::default().priority, match_, instruction);
}

fn add_at(
    pipeline: &mut Pipeline,
    priority: u16,
    match_: Match<'static>,
    instruction: Instruction<'static>,
) {
    let flow_mod = FlowMod {
        priority,
        match_,
        instructions: List::from(vec![instruction]),
        ..FlowMod::default()
    };
    let result = pipeline.flow_mod(&flow_mod, Duration::ZERO, &mut Vec::new());
    result.expect("the flow mod is right");
}

#[test]
fn an_entry_needs_few_bytes() {
    const COUNT: usize = 100_000;
    let mut pipeline = Pipeline::new(PipelineConfig::default());
    let before = HELD.get();
    (0..COUNT).for_each(|number| add(&mut pipeline, to_host(number as u64)));
    let bytes = (HELD.get() - before) as usize / COUNT;
    println!("{bytes} bytes an entry");
    assert!(bytes <= ENTRY_BYTES_MAX, "an entry takes {bytes} bytes");
}

/// IPv6 addresses do not fit into a key, so the search uses hashed keys.
#[test]
fn a_search_does_not_allocate() {
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

/// Returns the memory per entry of `count` entries that are added one by one to a compiled table: in the compiled form,
/// and on the heap.
fn compiled_entry_bytes(
    add_entry: impl Fn(&mut Pipeline, u32),
    template: TemplateKind,
) -> [usize; 2] {
    const COUNT: u32 = 100_000;
    let mut pipeline = Pipeline::new(PipelineConfig::default());
    let compiled = pipeline.compile(CompileConfig::default());
    let compiled = compiled.expect("there is memory");
    let (heap_before, before) = (HELD.get(), pipeline.compiled_bytes());
    (0..COUNT).for_each(|number| add_entry(&mut pipeline, number));
    assert_eq!(pipeline.template(0), Some(template));
    let bytes = pipeline.compiled_bytes() - before;
    let heap_bytes = (HELD.get() - heap_before) as usize;
    drop(compiled);
    [bytes, heap_bytes].map(|bytes| bytes / COUNT as usize)
}

#[test]
fn a_compiled_entry_needs_few_bytes() {
    let add_host = |pipeline: &mut Pipeline, number: u32| add(pipeline, to_host(number.into()));
    let [bytes, heap_bytes] = compiled_entry_bytes(add_host, TemplateKind::CompoundHash);
    println!("{bytes} bytes an entry, beside {heap_bytes} of which the slots are some");
    assert!(bytes <= COMPILED_BYTES_MAX, "an entry takes {bytes} bytes");
    // The heap contains the entry without its compiled form, and its share of the slots.
    assert!(heap_bytes <= ENTRY_BYTES_MAX + COMPILED_BYTES_MAX / 2);
}

/// Twenty prefixes of 21 to 24 bits for each node of the trie, much as in the routing tables of the Internet.
#[test]
fn a_compiled_route_needs_few_bytes() {
    let add_route = |pipeline: &mut Pipeline, number: u32| {
        let len = 21 + number % 4;
        let network = (number / 20) << 16 | (number % 20) << 11;
        let mask = u128::from(u32::MAX << (32 - len));
        let match_ = Match::from(vec![
            Field::exact(OxmField::EthType, 0x0800),
            Field::masked(OxmField::Ipv4Dst, u128::from(network) & mask, mask),
        ]);
        let instruction = Instruction::apply(vec![Action::output(PortNo::CONTROLLER)]);
        add_at(pipeline, len as u16, match_, instruction);
    };
    let [bytes, heap_bytes] = compiled_entry_bytes(add_route, TemplateKind::LongestPrefixMatch);
    println!(
        "{bytes} bytes a route, beside {heap_bytes} of which what the writer knows of prefixes is some"
    );
    assert!(
        bytes <= COMPILED_ROUTE_BYTES_MAX,
        "a route takes {bytes} bytes"
    );
    assert!(heap_bytes <= ENTRY_BYTES_MAX + FIELD_BYTES + COMPILED_BYTES_MAX / 2);
}

#[test]
fn compiled_tables_do_not_allocate_for_packets() {
    for backend in [Backend::Interpreter, Backend::MachineCode] {
        let mut pipeline = Pipeline::new(PipelineConfig::default());
        let config = CompileConfig {
            backend,
            ..CompileConfig::default()
        };
        let mut reader = pipeline.compile(config).expect("there is memory").reader();
        let actions =
            || Instruction::apply(vec![Action::DecNwTtl, Action::output(PortNo::IN_PORT)]);
        // So many that packets pause for them.
        for number in 0..10_000 {
            add_with(&mut pipeline, to_host(number), actions());
        }
        let mut burst = Burst::new();
        let before = CALLS.get();
        for round in 0..1000_u32 {
            burst.clear();
            for number in 0..32_u8 {
                let mut frame = [0; 60];
                let host =
                    0x0200_0000_0000 + u64::from(round * 32 % 10_000) + u64::from(number) % 8;
                frame[..6].copy_from_slice(&host.to_be_bytes()[2..]);
                frame[12..34].copy_from_slice(&[
                    8, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 253, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
                ]);
                assert!(burst.push(PortNo(1), &frame));
            }
            reader.process(&mut burst, Duration::from_secs(1));
            let output = Verdict::Output(PortNo(1));
            assert!(burst.iter().all(|frame| frame.verdict() == output));
        }
        assert_eq!(CALLS.get(), before);
    }
}
