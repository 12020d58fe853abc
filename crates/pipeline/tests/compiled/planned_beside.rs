//! Tests of tables that change while a thread searches for a better form.

use crate::rule_sets::{add, explained, pipeline};
use crate::support::choices::Choices;
use crate::support::differential::{Comparison, ComparisonConfig, PlansBeside};
use crate::support::rule_sets::{ACCESS_LIST, CHAIN, FIREWALL, Shape, packet, rule_set};
use std::time::{Duration, Instant};
use urtica_pipeline::{BURST, CompileConfig};
use urtica_wire::{FlowMod, FlowModCommand};

/// Interval of a switch's timeouts.
const TICK: Duration = Duration::from_millis(100);

/// Time without changes after which a search starts.
const QUIET: Duration = Duration::from_millis(600);

/// A time in which a thread finishes its search on any machine.
const PATIENCE: Duration = Duration::from_secs(300);

const RULE_SETS: [(&[Shape], usize); 3] = [(ACCESS_LIST, 200), (FIREWALL, 100), (CHAIN, 120)];

fn comparison() -> Comparison {
    Comparison::new(ComparisonConfig {
        n_tables: 1,
        plans_beside: PlansBeside::All,
        ..ComparisonConfig::default()
    })
}

fn change(comparison: &mut Comparison, command: FlowModCommand, entry: &FlowMod) {
    let flow_mod = FlowMod {
        command,
        ..entry.clone()
    };
    let changed = comparison.flow_mod(&flow_mod);
    changed.expect("the flow mod is right");
}

fn add_all(comparison: &mut Comparison, entries: &[FlowMod]) {
    for entry in entries {
        change(comparison, FlowModCommand::Add, entry);
    }
}

/// Makes all pipelines start a search, which does not include later changes.
fn start_search(comparison: &mut Comparison) {
    comparison.wait(TICK);
    comparison.wait(QUIET);
}

/// Returns the explanation for entries that were compiled together.
fn compiled_together(entries: &[FlowMod]) -> String {
    let mut pipeline = pipeline();
    add(&mut pipeline, entries);
    let compiled = pipeline.compile(CompileConfig::default());
    compiled.expect("there is memory");
    explained(&pipeline)
}

/// Lets time pass until a condition holds for each compiled pipeline, and compares the outcomes of packets at each step.
#[track_caller]
fn wait_until(comparison: &mut Comparison, choices: &mut Choices, is_so: impl Fn(&str) -> bool) {
    let begin = Instant::now();
    let is_unlike = |comparison: &Comparison| {
        let subjects = comparison.subjects.iter();
        let explained = subjects.map(|subject| explained(&subject.pipeline));
        explained.into_iter().find(|explained| !is_so(explained))
    };
    while let Some(unlike) = is_unlike(comparison) {
        assert!(begin.elapsed() < PATIENCE, "{unlike}");
        comparison.wait(TICK);
        send(comparison, choices);
    }
    comparison.compare_counters();
}

fn send(comparison: &mut Comparison, choices: &mut Choices) {
    let burst: Vec<_> = (0..BURST).map(|_| packet(choices)).collect();
    comparison.send(&burst);
}

#[test]
fn a_table_reaches_the_form_of_its_entries_compiled_together() {
    for (seed, (shapes, rules)) in RULE_SETS.into_iter().enumerate() {
        let mut comparison = comparison();
        let mut choices = Choices::from_seed(seed as u64);
        let entries = rule_set(shapes, rules, seed as u64);
        let expected = compiled_together(&entries);
        add_all(&mut comparison, &entries);
        let before = explained(&comparison.subjects[0].pipeline);
        assert_ne!(before, expected, "nothing is left to be found");
        wait_until(&mut comparison, &mut choices, |told| told == expected);
    }
}

/// Some entries are removed, some added, and the actions of others change. Each packet has the plain form's outcome, in the
/// old form and in the form that was found for the earlier entries.
#[test]
fn changes_during_a_search_are_in_the_found_form() {
    for (seed, (shapes, rules)) in RULE_SETS.into_iter().enumerate() {
        let mut comparison = comparison();
        let mut choices = Choices::from_seed(seed as u64);
        let entries = rule_set(shapes, rules, seed as u64);
        let (late, early): (Vec<_>, Vec<_>) = entries
            .into_iter()
            .enumerate()
            .partition(|(at, _)| at % 9 == 0);
        let [late, early] = [late, early].map(|entries| {
            let entries = entries.into_iter().map(|(_, entry)| entry);
            entries.collect::<Vec<_>>()
        });
        add_all(&mut comparison, &early);
        let before = explained(&comparison.subjects[0].pipeline);
        start_search(&mut comparison);
        for (at, entry) in early.iter().enumerate().step_by(12) {
            let commands = [FlowModCommand::DeleteStrict, FlowModCommand::Add];
            change(&mut comparison, commands[at % 2], entry);
            send(&mut comparison, &mut choices);
        }
        add_all(&mut comparison, &late);
        let everything = FlowMod::parse(FlowModCommand::Add, "priority=0,actions=output:3");
        add_all(&mut comparison, &[everything.expect("a flow mod")]);
        let changed = explained(&comparison.subjects[0].pipeline);
        wait_until(&mut comparison, &mut choices, |told| {
            told != before && told != changed
        });
        (0..20).for_each(|_| send(&mut comparison, &mut choices));
        let deleted = early.iter().chain(&late).step_by(3);
        for entry in deleted {
            change(&mut comparison, FlowModCommand::DeleteStrict, entry);
            send(&mut comparison, &mut choices);
        }
        comparison.compare_counters();
    }
}

/// Most entries are removed during a search, and the table is searched again.
#[test]
fn a_form_found_for_other_entries_is_discarded() {
    let mut comparison = comparison();
    let mut choices = Choices::from_seed(1);
    let entries = rule_set(FIREWALL, 200, 1);
    let (gone, kept) = entries.split_at(entries.len() / 2);
    add_all(&mut comparison, &entries);
    start_search(&mut comparison);
    for entry in gone {
        change(&mut comparison, FlowModCommand::DeleteStrict, entry);
    }
    let expected = compiled_together(kept);
    wait_until(&mut comparison, &mut choices, |told| told == expected);
}

/// A table that changes constantly is searched as well as possible, and in the best way when changes have ended.
#[test]
fn a_table_that_changes_faster_than_it_is_inspected_is_always_correct() {
    let mut comparison = comparison();
    let mut choices = Choices::from_seed(2);
    let entries = rule_set(ACCESS_LIST, 300, 2);
    let half = entries.len() / 2;
    add_all(&mut comparison, &entries[..half]);
    for round in 0..6 {
        let (gone, come) = entries.split_at(half);
        let (gone, come) = match round % 2 {
            0 => (gone, come),
            _ => (come, gone),
        };
        for (gone, come) in gone.iter().zip(come) {
            change(&mut comparison, FlowModCommand::DeleteStrict, gone);
            change(&mut comparison, FlowModCommand::Add, come);
        }
        comparison.wait(TICK);
        send(&mut comparison, &mut choices);
    }
    let left: Vec<_> = comparison.plain.tables()[0].entries().collect();
    let is_there = |entry: &&FlowMod| left.iter().any(|left| left.priority == entry.priority);
    let left: Vec<_> = entries.iter().filter(is_there).cloned().collect();
    let expected = compiled_together(&left);
    wait_until(&mut comparison, &mut choices, |told| told == expected);
}
