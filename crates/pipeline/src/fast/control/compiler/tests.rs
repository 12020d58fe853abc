//! Tests that removed entries leave no memory behind, and that compiling again loses no counts.

use crate::fast::control::store::record_of;
use crate::{
    BURST, Backend, Burst, CompileConfig, Pipeline, PipelineConfig, Reader, TemplateKind, Verdict,
};
use std::ops::Range;
use std::time::Duration;
use urtica_wire::{
    Action, Field, FlowMod, FlowModCommand, FlowStatsRequest, Instruction, MacAddr, Match,
    OxmField, Port, PortNo,
};

const NOW: Duration = Duration::from_secs(1);

/// All backends.
const BACKENDS: &[Backend] = &[Backend::Interpreter, Backend::MachineCode];

/// The memory of the compiled form: bytes inside and outside of the arena, and the number of items that are not freed
/// yet.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    bytes: usize,
    waiting: usize,
}

fn pipeline() -> Pipeline {
    let mut pipeline = Pipeline::new(PipelineConfig {
        n_tables: 2,
        ..PipelineConfig::default()
    });
    for number in 1..=2 {
        let mac = MacAddr::from_u64(number.into());
        pipeline.set_port(Port::new(PortNo(number), mac, "port"));
    }
    pipeline
}

fn compiled(backend: Backend) -> (Pipeline, Reader) {
    let mut pipeline = pipeline();
    let config = CompileConfig {
        backend,
        max_bytes: 64 << 20,
        ..CompileConfig::default()
    };
    let reader = pipeline.compile(config).expect("there is memory").reader();
    (pipeline, reader)
}

/// Returns the memory of flow records and nodes. Arrays keep some spare space, and the number of unused action programs
/// bounds the memory of their code.
fn held(pipeline: &Pipeline) -> Held {
    let compiler = pipeline.compiler.as_ref().expect("it is compiled");
    let compiler = compiler.lock();
    Held {
        bytes: compiler.store.arena.used_bytes(),
        waiting: compiler.store.waiting(),
    }
}

fn to_host(number: u64) -> Match<'static> {
    Match::from(vec![Field::exact(OxmField::EthDst, number.into())])
}

fn to_network(number: u64, len: u32) -> Match<'static> {
    let mask = u128::from(u32::MAX << (32 - len));
    Match::from(vec![
        Field::exact(OxmField::EthType, 0x0800),
        Field::masked(OxmField::Ipv4Dst, u128::from(number << 8) & mask, mask),
    ])
}

fn flow_mod(command: FlowModCommand, priority: u16, match_: Match<'static>) -> FlowMod<'static> {
    FlowMod {
        command,
        priority,
        match_,
        ..FlowMod::default()
    }
}

/// Returns the flow mod with one of many action programs.
fn with_actions(flow_mod: FlowMod<'static>, number: u64) -> FlowMod<'static> {
    let fields = [OxmField::EthSrc, OxmField::EthDst];
    let set = |bit: u64| {
        let field = fields[(number >> bit) as usize & 1];
        Action::SetField(Field::exact(field, number.into()))
    };
    let mut actions: Vec<_> = (0..number % 11).map(set).collect();
    actions.push(Action::output(PortNo(2)));
    FlowMod {
        instructions: vec![Instruction::apply(actions)].into(),
        ..flow_mod
    }
}

fn carry_out(pipeline: &mut Pipeline, flow_mod: &FlowMod) {
    let result = pipeline.flow_mod(flow_mod, NOW, &mut Vec::new());
    result.expect("the flow mod is right");
}

/// Adds and deletes an entry `cycles` times, among some that stay.
fn cycle(backend: Backend, cycles: u64, matches: impl Fn(u64) -> (u16, Match<'static>)) {
    use FlowModCommand::{Add, DeleteStrict};
    let (mut pipeline, mut reader) = compiled(backend);
    let empty = held(&pipeline);
    for number in 0..20 {
        let (priority, match_) = matches(number);
        carry_out(
            &mut pipeline,
            &with_actions(flow_mod(Add, priority, match_), number),
        );
    }
    let before = held(&pipeline);
    let mut burst = Burst::new();
    for number in 0..cycles {
        let (priority, match_) = matches(100 + number % 1000);
        let add = with_actions(flow_mod(Add, priority, match_.clone()), number);
        carry_out(&mut pipeline, &add);
        if number % 64 == 0 {
            burst.clear();
            assert!(burst.push(PortNo(1), &[0; 60]));
            reader.process(&mut burst, NOW);
        }
        carry_out(&mut pipeline, &flow_mod(DeleteStrict, priority, match_));
    }
    assert_eq!(held(&pipeline), before);
    let compiler = pipeline.compiler.as_ref().expect("it is compiled");
    let programs = compiler.lock().store.programs_len();
    assert!(programs < 200, "{programs} action programs are kept");
    carry_out(
        &mut pipeline,
        &flow_mod(FlowModCommand::Delete, 0, Match::any()),
    );
    assert_eq!(held(&pipeline), empty);
}

fn cycle_all(cycles: u64) {
    for &backend in BACKENDS {
        cycle(backend, cycles, |number| (10, to_host(number)));
        cycle(backend, cycles, |number| {
            let len = if number % 2 == 0 { 24 } else { 23 };
            (len as u16, to_network(2 * number, len))
        });
        cycle(backend, cycles, |number| match number % 3 {
            0 => (7, to_host(number)),
            1 => (7, to_network(number, 24)),
            _ => (number as u16, to_host(3)),
        });
    }
}

#[test]
fn removed_entries_leave_no_memory() {
    cycle_all(5_000);
}

/// A match on a port and on some bits of the source, which differ for each port.
fn from_port(number: u64) -> (u16, Match<'static>) {
    let port = Field::exact(OxmField::InPort, (number % 5).into());
    let mask = 0xff_u128 << (number % 5 * 6 + number % 3 * 2);
    let source = Field::masked(OxmField::EthSrc, u128::from(number) << 8 & mask, mask);
    let fields = match number % 11 {
        0 => vec![source],
        1 => vec![port],
        _ => vec![port, source],
    };
    (number as u16 % 13, Match::from(fields))
}

/// Tables that are cut, then no longer cut, and then cut again.
#[test]
fn removed_sub_tables_leave_no_memory() {
    for &backend in BACKENDS {
        let (mut pipeline, mut reader) = compiled(backend);
        let empty = held(&pipeline);
        let mut burst = Burst::new();
        let mut cut = 0;
        for number in 0..4_000_u64 {
            let (priority, match_) = from_port(number * number % 997);
            let command = match number % 500 {
                0..300 => FlowModCommand::Add,
                _ => FlowModCommand::DeleteStrict,
            };
            let change = flow_mod(command, priority, match_);
            carry_out(&mut pipeline, &with_actions(change, number));
            burst.clear();
            assert!(burst.push(PortNo(1), &[0; 60]));
            reader.process(&mut burst, NOW);
            cut += usize::from(pipeline.template(0) == Some(TemplateKind::Decomposition));
        }
        assert!((1000..4_000).contains(&cut), "cut at {cut} of the times");
        let all = flow_mod(FlowModCommand::Delete, 0, Match::any());
        carry_out(&mut pipeline, &all);
        assert_eq!(held(&pipeline), empty);
    }
}

/// No memory is left behind if there is space for the entries but not for sub-tables, or for neither.
#[test]
fn sub_tables_without_space_leave_no_memory() {
    for max_bytes in (1..40).map(|kibibytes| kibibytes << 10) {
        let mut pipeline = pipeline();
        for number in 0..200 {
            let (priority, match_) = from_port(number);
            carry_out(
                &mut pipeline,
                &flow_mod(FlowModCommand::Add, priority, match_),
            );
        }
        let config = CompileConfig {
            max_bytes,
            ..CompileConfig::default()
        };
        pipeline.compile(config).expect("there is memory");
        let all = flow_mod(FlowModCommand::Delete, 0, Match::any());
        carry_out(&mut pipeline, &all);
        assert_eq!(held(&pipeline).bytes, 0, "of {max_bytes}");
    }
}

/// Prefixes of many lengths for source and destination, so that entries share hash tables.
fn between_networks(number: u64) -> (u16, Match<'static>) {
    let prefix = |field: OxmField, len: u64| {
        let mask = u128::from(u32::MAX << (32 - len));
        Field::masked(field, u128::from(number << 20 | number) & mask, mask)
    };
    let match_ = Match::from(vec![
        Field::exact(OxmField::EthType, 0x0800),
        prefix(OxmField::Ipv4Src, 1 + number % 7),
        prefix(OxmField::Ipv4Dst, 1 + number % 32),
    ]);
    ((1 + number % 13) as u16, match_)
}

#[test]
fn entries_of_shared_hash_tables_leave_no_memory() {
    for &backend in BACKENDS {
        let (mut pipeline, _reader) = compiled(backend);
        let empty = held(&pipeline);
        for round in 0..3 {
            let all = flow_mod(FlowModCommand::Add, 0, Match::any());
            carry_out(&mut pipeline, &all);
            for number in 0..200 {
                let (priority, match_) = between_networks(number);
                let entry = flow_mod(FlowModCommand::Add, priority, match_);
                carry_out(&mut pipeline, &with_actions(entry, number + round));
            }
            assert_eq!(pipeline.template(0), Some(TemplateKind::MergedTupleSpace));
            for number in (0..200).rev() {
                let (priority, match_) = between_networks(number);
                let delete = flow_mod(FlowModCommand::DeleteStrict, priority, match_);
                carry_out(&mut pipeline, &delete);
            }
            let all = flow_mod(FlowModCommand::Delete, 0, Match::any());
            carry_out(&mut pipeline, &all);
            assert_eq!(held(&pipeline), empty);
        }
    }
}

/// A trie of 16-byte addresses with little in common would need 14 nodes for each.
#[test]
fn ipv6_hosts_with_a_default_are_hashed() {
    for &backend in BACKENDS {
        let mut pipeline = pipeline();
        let eth_type = Field::exact(OxmField::EthType, 0x86dd);
        let mut add = |priority, fields: Vec<Field<'static>>| {
            let entry = flow_mod(FlowModCommand::Add, priority, Match::from(fields));
            carry_out(&mut pipeline, &entry);
        };
        let mut address = 1_u128;
        for _ in 0..2000 {
            address = address.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645) + 1;
            let to = Field::exact(OxmField::Ipv6Dst, address >> 4 | 2 << 124);
            add(20, vec![eth_type, to]);
        }
        add(1, vec![eth_type]);
        let config = CompileConfig {
            backend,
            ..CompileConfig::default()
        };
        pipeline.compile(config).expect("there is memory");
        assert_eq!(pipeline.template(0), Some(TemplateKind::TupleSpace));
        let bytes = held(&pipeline).bytes;
        assert!(bytes < 2001 * 256, "{bytes}");
    }
}

/// A table is rebuilt only if a considerable part of it changes at once.
#[test]
fn changes_of_few_of_many_entries_leave_the_others_in_place() {
    for &backend in BACKENDS {
        let (mut pipeline, _reader) = compiled(backend);
        for number in 0..4000 {
            let add = FlowMod {
                cookie: number % 40,
                ..flow_mod(FlowModCommand::Add, 10, to_host(number))
            };
            carry_out(&mut pipeline, &add);
        }
        let record = |pipeline: &Pipeline| {
            let mut entries = pipeline.tables()[0].entries();
            let entry = entries.find(|entry| entry.cookie == 39).expect("it stays");
            record_of(entry).expect("it is compiled")
        };
        let before = record(&pipeline);
        let delete = |cookie| FlowMod {
            cookie,
            cookie_mask: u64::MAX,
            ..flow_mod(FlowModCommand::Delete, 0, Match::any())
        };
        carry_out(&mut pipeline, &delete(1));
        assert_eq!(pipeline.tables()[0].entries().len(), 3900);
        assert_eq!(record(&pipeline), before, "100 of 4,000");
    }
}

/// Uses three million entries: `cargo test -p urtica-pipeline --release -- --ignored`.
#[test]
#[ignore = "takes a minute"]
fn a_million_removed_entries_leave_no_memory() {
    cycle_all(1_000_000);
}

fn send(pipeline: &Pipeline, reader: &mut Reader, destination: u8) {
    let mut frame = [0; 60];
    (frame[5], frame[12]) = (destination, 8);
    let mut burst = Burst::new();
    for _ in 0..BURST {
        assert!(burst.push(PortNo(1), &frame));
    }
    reader.process(&mut burst, NOW);
    let is_known = |verdict| matches!(verdict, Verdict::Output(_) | Verdict::Drop);
    assert!(burst.iter().all(|frame| is_known(frame.verdict())));
    assert!(pipeline.template(0) != Some(TemplateKind::PlainForm));
}

#[test]
fn recompiling_keeps_counts() {
    for &backend in BACKENDS {
        let (mut pipeline, mut reader) = compiled(backend);
        let add = with_actions(flow_mod(FlowModCommand::Add, 1, to_host(1)), 0);
        carry_out(&mut pipeline, &add);
        send(&pipeline, &mut reader, 1);
        let config = CompileConfig {
            backend,
            ..CompileConfig::default()
        };
        let mut reader = pipeline.compile(config).expect("there is memory").reader();
        send(&pipeline, &mut reader, 1);
        drop(reader);
        let stats = pipeline.table_stats().next().expect("a table");
        assert_eq!((stats.lookup_count, stats.matched_count), (64, 64));
        let entry = pipeline.tables()[0].entries().next().expect("an entry");
        assert_eq!(entry.counted().packets, 64);
    }
}

#[test]
fn readers_of_a_dropped_pipeline_use_the_plain_form() {
    for &backend in BACKENDS {
        let (mut pipeline, mut reader) = compiled(backend);
        let add = with_actions(flow_mod(FlowModCommand::Add, 1, Match::any()), 0);
        carry_out(&mut pipeline, &add);
        send(&pipeline, &mut reader, 1);
        drop(pipeline);
        let mut burst = Burst::new();
        assert!(burst.push(PortNo(1), &[0; 60]));
        reader.process(&mut burst, NOW);
        assert!(burst.iter().all(|frame| frame.verdict() == Verdict::Punt));
    }
}

/// Tables without space are left to the plain form, and compiled again when there is space.
#[test]
fn a_table_too_large_for_the_memory_is_left_to_the_plain_form() {
    for &backend in BACKENDS {
        let mut pipeline = pipeline();
        let config = CompileConfig {
            backend,
            max_bytes: 64 << 10,
            ..CompileConfig::default()
        };
        pipeline.compile(config).expect("there is memory");
        let add = |pipeline: &mut Pipeline, numbers: Range<u64>| {
            for number in numbers {
                let entry = flow_mod(FlowModCommand::Add, 10, to_host(number));
                carry_out(pipeline, &with_actions(entry, 0));
            }
        };
        add(&mut pipeline, 0..100);
        assert_eq!(pipeline.template(0), Some(TemplateKind::CompoundHash));
        add(&mut pipeline, 100..2000);
        assert_eq!(pipeline.template(0), Some(TemplateKind::PlainForm));
        carry_out(
            &mut pipeline,
            &flow_mod(FlowModCommand::Delete, 0, Match::any()),
        );
        add(&mut pipeline, 0..100);
        assert_eq!(pipeline.template(0), Some(TemplateKind::CompoundHash));
    }
}

/// A trie that could not be built leaves no nodes behind.
#[test]
fn routes_without_space_leave_no_memory() {
    for &backend in BACKENDS {
        let mut pipeline = pipeline();
        for number in 0..500 {
            let len = if number % 2 == 0 { 24 } else { 23 };
            let route = to_network(number << 9, len);
            carry_out(
                &mut pipeline,
                &flow_mod(FlowModCommand::Add, len as u16, route),
            );
        }
        let config = CompileConfig {
            backend,
            max_bytes: 64 << 10,
            ..CompileConfig::default()
        };
        pipeline.compile(config).expect("there is memory");
        assert_eq!(pipeline.template(0), Some(TemplateKind::PlainForm));
        assert_eq!(held(&pipeline).bytes, 0);
    }
}

/// An entry's counts can be read while the entry or the pipeline is being removed.
#[test]
fn counts_of_entries_can_be_read_during_removal() {
    for &backend in BACKENDS {
        let (mut pipeline, _reader) = compiled(backend);
        for number in 0..100 {
            let add = flow_mod(FlowModCommand::Add, 10, to_host(number));
            carry_out(&mut pipeline, &with_actions(add, number));
        }
        let entries = pipeline.flow_stats(&FlowStatsRequest::default());
        let entries = entries.expect("the request is right");
        let asking = std::thread::spawn(move || {
            (0..100).for_each(|_| {
                assert!(entries.iter().all(|entry| entry.counted().packets == 0));
            });
        });
        for number in 0..50 {
            let delete = flow_mod(FlowModCommand::DeleteStrict, 10, to_host(number));
            carry_out(&mut pipeline, &delete);
        }
        drop(pipeline);
        asking.join().expect("nothing was counted");
    }
}
