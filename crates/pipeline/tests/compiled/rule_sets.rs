//! Tests that realistic rule sets are compiled, whatever fields they match, in any order of addition.

use crate::support::choices::Choices;
use crate::support::differential::{Comparison, ComparisonConfig};
use crate::support::rule_sets::{ACCESS_LIST, CHAIN, FIREWALL, packet, rule_set};
use std::time::Duration;
use urtica_pipeline::{BURST, CompileConfig, Pipeline, PipelineConfig, TemplateKind};
use urtica_wire::{FlowMod, FlowModCommand, MacAddr, Port, PortNo};

/// Interval of a switch's timeouts.
const TICK: Duration = Duration::from_millis(100);

pub fn pipeline() -> Pipeline {
    let mut pipeline = Pipeline::new(PipelineConfig {
        n_tables: 1,
        ..PipelineConfig::default()
    });
    for number in 1..=4 {
        let port = Port::new(PortNo(number), MacAddr::from_u64(number.into()), "port");
        pipeline.set_port(port);
    }
    pipeline
}

pub fn add(pipeline: &mut Pipeline, entries: &[FlowMod]) {
    for entry in entries {
        let added = pipeline.flow_mod(entry, Duration::ZERO, &mut Vec::new());
        added.expect("the flow mod is right");
    }
}

/// Returns the explanation of the compiled form.
pub fn explained(pipeline: &Pipeline) -> String {
    let explanation = pipeline.explain(false).expect("it is compiled");
    explanation.to_string()
}

/// Lets time pass until the pipeline has been quiet for some time.
fn rest(pipeline: &mut Pipeline, from: Duration) {
    for tick in 0..10 {
        pipeline.expire(from + TICK * tick, &mut Vec::new());
    }
}

fn shuffled(entries: &[FlowMod<'static>], seed: u64) -> Vec<FlowMod<'static>> {
    let mut entries = entries.to_vec();
    let mut choices = Choices::from_seed(seed);
    for last in (1..entries.len()).rev() {
        entries.swap(last, choices.number(4) as usize % (last + 1));
    }
    entries
}

#[test]
fn entries_added_one_by_one_are_compiled_as_if_added_together() {
    for (shapes, rules) in [(ACCESS_LIST, 300), (FIREWALL, 150), (CHAIN, 150)] {
        let entries = rule_set(shapes, rules, 1);
        let mut together = pipeline();
        add(&mut together, &entries);
        together.compile(CompileConfig::default()).expect("memory");
        let expected = explained(&together);
        assert_ne!(together.template(0), Some(TemplateKind::PlainForm));
        for seed in 0..10 {
            let mut one_by_one = pipeline();
            one_by_one
                .compile(CompileConfig::default())
                .expect("memory");
            add(&mut one_by_one, &shuffled(&entries, seed));
            rest(&mut one_by_one, Duration::from_secs(1));
            assert_eq!(explained(&one_by_one), expected, "order {seed}");
        }
    }
}

/// A table with occasional changes is inspected again after the last one.
#[test]
fn a_table_is_inspected_again_only_after_the_last_change() {
    let entries = rule_set(FIREWALL, 150, 2);
    let mut pipeline = pipeline();
    pipeline.compile(CompileConfig::default()).expect("memory");
    add(&mut pipeline, &entries);
    rest(&mut pipeline, Duration::from_secs(1));
    let settled = explained(&pipeline);
    let extra = "priority=1,tcp,nw_src=1.2.3.4/9,nw_dst=9.9.9.9/13,tp_src=7,actions=drop";
    let mut now = Duration::from_secs(100);
    for command in [FlowModCommand::Add, FlowModCommand::DeleteStrict].repeat(20) {
        let flow_mod = FlowMod::parse(command, extra).expect("a flow mod");
        let changed = pipeline.flow_mod(&flow_mod, now, &mut Vec::new());
        changed.expect("the flow mod is right");
        now += TICK;
        pipeline.expire(now, &mut Vec::new());
        assert_ne!(pipeline.template(0), Some(TemplateKind::PlainForm));
    }
    rest(&mut pipeline, now + Duration::from_secs(1));
    assert_eq!(explained(&pipeline), settled);
}

/// Packets find the plain form's entries while the set is loaded, in every form that it has meanwhile, and while it is
/// removed.
#[test]
fn packets_find_the_entries_of_rule_sets() {
    for (seed, (shapes, rules)) in [(ACCESS_LIST, 200), (FIREWALL, 100), (CHAIN, 120)]
        .into_iter()
        .enumerate()
    {
        let mut comparison = Comparison::new(ComparisonConfig::default());
        comparison.set_misses_punt(false);
        let mut choices = Choices::from_seed(seed as u64);
        let entries = shuffled(&rule_set(shapes, rules, seed as u64), 3);
        for (index, entry) in entries.iter().enumerate() {
            comparison.flow_mod(entry).expect("the flow mod is right");
            if index % 16 == 0 {
                send(&mut comparison, &mut choices);
            }
        }
        (0..10).for_each(|_| comparison.wait(TICK));
        (0..20).for_each(|_| send(&mut comparison, &mut choices));
        for (index, entry) in entries.iter().enumerate() {
            let delete = FlowMod {
                command: FlowModCommand::DeleteStrict,
                ..entry.clone()
            };
            comparison.flow_mod(&delete).expect("the flow mod is right");
            if index % 16 == 0 {
                send(&mut comparison, &mut choices);
            }
        }
        comparison.compare_counters();
        assert_eq!(comparison.punted, 0);
    }
}

fn send(comparison: &mut Comparison, choices: &mut Choices) {
    let burst: Vec<_> = (0..BURST).map(|_| packet(choices)).collect();
    comparison.send(&burst);
}
