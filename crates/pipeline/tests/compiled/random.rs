//! Differential tests with random pipelines and packets.

use crate::support::choices::Choices;
use crate::support::differential::{Comparison, ComparisonConfig};
use crate::support::frames;
use crate::support::trial::Trial;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use urtica_pipeline::BURST;
use urtica_pipeline::TemplateKind;
use urtica_wire::{FlowMod, FlowModCommand, PortNo};

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 300, ..ProptestConfig::default() })]

    /// The pipelines are generated from bytes, so that failures can be shrunk.
    #[test]
    fn the_compiled_form_equals_the_plain_one(bytes in vec(any::<u8>(), 0..8000)) {
        Trial::new(Choices::from_bytes(&bytes)).run(usize::MAX);
    }
}

#[test]
#[ignore = "takes long: make nightly"]
fn the_compiled_form_equals_the_plain_one_in_long_trials() {
    for seed in 0..10 {
        Trial::new(Choices::from_seed(seed)).run(300);
    }
}

#[test]
#[ignore = "takes long: make nightly"]
fn the_compiled_form_equals_the_plain_one_with_many_entries() {
    for seed in 0..2 {
        let mut trial = Trial::with_many_entries(seed);
        let pipeline = &trial.comparison.subjects[0].pipeline;
        let templates = [0, 1].map(|table_id| pipeline.template(table_id));
        assert_eq!(
            templates,
            [
                Some(TemplateKind::CompoundHash),
                Some(TemplateKind::LongestPrefixMatch)
            ]
        );
        trial.run(100);
    }
}

#[test]
fn the_compiled_form_equals_the_plain_one_with_sub_tables() {
    use TemplateKind::{Decomposition, DirectCode, LongestPrefixMatch, TupleSpace};
    let mut looked_up = BTreeSet::new();
    for seed in 0..8 {
        let mut trial = Trial::in_sub_tables(seed);
        trial.run(100);
        looked_up.extend(trial.comparison.looked_up.into_keys());
    }
    let mut trial = Trial::with_many_routes_of_ports(0);
    trial.run(30);
    looked_up.extend(trial.comparison.looked_up.into_keys());
    for template in [DirectCode, TupleSpace, LongestPrefixMatch] {
        assert!(
            looked_up.contains(&vec![Decomposition, template]),
            "{template}"
        );
    }
}

/// Each address has many services, each with its own sources.
#[test]
fn the_compiled_form_equals_the_plain_one_after_two_cuts() {
    use TemplateKind::Decomposition;
    let mut trial = Trial::in_sub_tables(0);
    trial.comparison = Comparison::new(ComparisonConfig::default());
    for text in cut_twice() {
        let flow_mod = FlowMod::parse(FlowModCommand::Add, &text).expect(&text);
        trial.comparison.flow_mod(&flow_mod).expect(&text);
    }
    trial.comparison.recompile();
    trial.run(100);
    let is_cut_again = |way: &Vec<_>| way.starts_with(&[Decomposition, Decomposition]);
    let looked_up = &trial.comparison.looked_up;
    assert!(looked_up.keys().any(is_cut_again), "{looked_up:?}");
}

/// Entries for addresses and ports of packets. Those of each service have their own masks.
fn cut_twice() -> impl Iterator<Item = String> {
    let services = (0..5).flat_map(|host| (0..frames::PORTS.len()).map(move |port| (host, port)));
    services.flat_map(|(host, port)| {
        (0..8).map(move |number| {
            let mask = (host * frames::PORTS.len() + port) * 8 + number;
            let source = [
                "",
                ",tp_src=80",
                ",tp_src=80/0xfff0",
                ",tp_src=0/0xff00",
                ",tp_src=80/0xfffe",
            ];
            format!(
                "priority={},tcp,nw_dst=10.0.0.{},tp_dst={},nw_src=10.0.0.0/{}{},actions=output:2",
                number % 6,
                [0, 1, 2, 3, 255][host],
                frames::PORTS[port],
                1 + mask % 32,
                source[mask / 32]
            )
        })
    })
}

#[test]
fn forms_are_equal_with_any_number_of_masks() {
    let mut looked_up = BTreeSet::new();
    for seed in 0..8 {
        let mut trial = Trial::of_many_masks(seed);
        trial.run(100);
        looked_up.extend(trial.comparison.looked_up.into_keys());
    }
    assert!(looked_up.contains(&vec![TemplateKind::MergedTupleSpace]));
    let is_sub_table =
        |way: &Vec<_>| way.len() > 1 && way.ends_with(&[TemplateKind::MergedTupleSpace]);
    assert!(looked_up.iter().any(is_sub_table), "{looked_up:?}");
}

/// Packets consist of arbitrary bytes; fuzzing uses these tables, too.
#[test]
fn forms_are_equal_with_hostile_packets() {
    for seed in 0..8 {
        let mut comparison = Trial::filled(seed).comparison;
        let mut choices = Choices::from_seed(seed);
        for _ in 0..50 {
            let burst: Vec<_> = (0..BURST)
                .map(|_| (PortNo(1), mangled(&mut choices)))
                .collect();
            comparison.send(&burst);
        }
        comparison.compare_counters();
    }
}

/// A frame in which a few bytes were changed, or which was truncated.
fn mangled(choices: &mut Choices) -> Vec<u8> {
    let mut frame = frames::frame(choices);
    for _ in 0..choices.below(4) {
        let at = choices.below(frame.len().max(1));
        if let Some(byte) = frame.get_mut(at) {
            *byte = choices.byte();
        }
    }
    if choices.is_in(20) {
        frame.truncate(choices.below(frame.len() + 1));
    }
    frame
}
