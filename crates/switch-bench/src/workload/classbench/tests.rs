use super::rule::Prefix;
use super::*;
use crate::workload::packets;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use urtica_client::Loader;
use urtica_pipeline::{EntryMatch, Packet};
use urtica_wire::{FlowMod, FlowModCommand, PortNo};

fn set(name: &str) -> ClassBench {
    name.parse().unwrap()
}

/// Returns each kind with 1,000 rules, and one of each family with 10,000.
fn counted() -> impl Iterator<Item = (ClassBench, Statistics, RuleSet)> {
    let small = KINDS.map(|kind| ClassBench {
        kind,
        size: Size::OneK,
    });
    let large = ["acl4-10k", "fw4-10k", "ipc1-10k"].map(set);
    small.into_iter().chain(large).map(|set| {
        let statistics = Statistics::of(set.kind, set.size.counted());
        (set, statistics, RuleSet::new(set))
    })
}

/// Returns the share of each thing, in parts of 1.
fn shares<T: std::hash::Hash + Eq>(things: impl Iterator<Item = (T, u32)>) -> HashMap<T, f64> {
    let mut counts = HashMap::new();
    let mut all = 0;
    for (thing, count) in things {
        *counts.entry(thing).or_insert(0) += count;
        all += count;
    }
    let share = |(thing, count)| (thing, f64::from(count) / f64::from(all));
    counts.into_iter().map(share).collect()
}

/// Returns half of the sum of the differences: 0 for equal shares, 1 for disjoint ones.
fn distance<T: std::hash::Hash + Eq>(one: &HashMap<T, f64>, other: &HashMap<T, f64>) -> f64 {
    let things: HashSet<_> = one.keys().chain(other.keys()).collect();
    let share = |shares: &HashMap<T, f64>, thing| shares.get(thing).copied().unwrap_or(0.0);
    let differences = things
        .into_iter()
        .map(|thing| share(one, thing) - share(other, thing));
    differences.map(f64::abs).sum::<f64>() / 2.0
}

fn class(ports: PortRange) -> PortClass {
    match ports {
        PortRange::ANY => PortClass::Any,
        ports if ports == PortRange::new(1024, 65_535) => PortClass::High,
        ports if ports == PortRange::new(0, 1023) => PortClass::Low,
        ports if ports.prefixes() == [(ports.prefixes()[0].0, u16::MAX)] => PortClass::Exact,
        _ => PortClass::Range,
    }
}

#[test]
fn every_set_has_its_number_of_different_rules() {
    for kind in KINDS {
        for size in [Size::OneK, Size::TenK] {
            let set = ClassBench { kind, size };
            let rules = RuleSet::new(set).rules;
            let distinct: HashSet<_> = rules.iter().collect();
            assert_eq!(distinct.len() as u32, size.rules(), "{set}");
        }
    }
}

#[test]
fn sets_are_reproducible_and_differ_from_each_other() {
    let one = RuleSet::new(set("acl1-1k"));
    assert_eq!(one.rules, RuleSet::new(set("acl1-1k")).rules);
    assert_ne!(one.rules, RuleSet::new(set("acl2-1k")).rules);
    let first = one.entries().swap_remove(0);
    assert!(
        first.starts_with("cookie=0x1,table=0,priority=60000,"),
        "{first}"
    );
}

#[test]
fn lengths_and_port_classes_are_distributed_as_counted() {
    for (set, statistics, rules) in counted() {
        let joint = statistics.joint.iter();
        let counted_lengths = shares(
            joint
                .clone()
                .map(|(shape, count)| ((shape.src_length, shape.dst_length), *count)),
        );
        let drawn = rules.rules.iter();
        let lengths = shares(
            drawn
                .clone()
                .map(|rule| ((rule.src.length, rule.dst.length), 1)),
        );
        let found = distance(&counted_lengths, &lengths);
        assert!(found < 0.2, "{set}: lengths differ by {found}");
        let counted_ports =
            shares(joint.map(|(shape, count)| ((shape.src_ports, shape.dst_ports), *count)));
        let ports = shares(drawn.map(|rule| ((class(rule.src_ports), class(rule.dst_ports)), 1)));
        let found = distance(&counted_ports, &ports);
        assert!(found < 0.1, "{set}: classes of ports differ by {found}");
    }
}

#[test]
fn sets_have_about_as_many_masks_as_counted() {
    for (set, statistics, rules) in counted() {
        let masks = |ports: PortRange| ports.prefixes().into_iter().map(|(_, mask)| mask);
        let mask_sets: HashSet<_> = rules
            .rules
            .iter()
            .flat_map(|rule| {
                let lengths = (rule.src.length, rule.dst.length);
                let any = rule.protocols == Protocols::Any;
                masks(rule.src_ports).flat_map(move |src| {
                    masks(rule.dst_ports).map(move |dst| (lengths, src, dst, any))
                })
            })
            .collect();
        let ratio = mask_sets.len() as f64 / f64::from(statistics.mask_sets);
        assert!(
            (0.6..1.4).contains(&ratio),
            "{set}: {ratio} times as many mask sets"
        );
    }
}

#[test]
fn prefixes_are_as_many_and_as_nested_as_counted() {
    for (set, statistics, rules) in counted() {
        let scale = f64::from(set.size.rules()) / f64::from(statistics.rules);
        type Side = fn(&Rule) -> Prefix;
        let sides: [(&str, Side, _); 2] = [
            ("source", |rule| rule.src, &statistics.src),
            ("destination", |rule| rule.dst, &statistics.dst),
        ];
        for (side, of, counts) in sides {
            let distinct: HashSet<_> = rules.rules.iter().map(of).collect();
            let counted: u32 = counts.by_length.iter().map(|(_, count)| count).sum();
            let ratio = distinct.len() as f64 / (f64::from(counted) * scale);
            assert!(
                (0.7..1.1).contains(&ratio),
                "{set}, {side}: {ratio} times as many prefixes"
            );
            let is_inside = |prefix: &&Prefix| {
                (1..prefix.length).any(|length| distinct.contains(&prefix.shortened(length)))
            };
            let inside = distinct.iter().filter(is_inside).count() as f64 / distinct.len() as f64;
            assert!(
                (inside - counts.inside).abs() < 0.1,
                "{set}, {side}: {inside} inside another"
            );
        }
    }
}

#[test]
fn no_rule_hides_another_one() {
    let rules = RuleSet::new(set("fw1-1k")).rules;
    let is_inside = |inner: PortRange, outer: PortRange| {
        let [inner, outer] = [inner, outer].map(|ports| {
            let prefixes = ports.prefixes();
            let (first, last) = (prefixes[0], prefixes[prefixes.len() - 1]);
            (first.0, last.0 | !last.1)
        });
        outer.0 <= inner.0 && inner.1 <= outer.1
    };
    let within = |inner: &Rule, outer: &Rule| {
        inner.src.length >= outer.src.length
            && inner.src.shortened(outer.src.length) == outer.src
            && inner.dst.length >= outer.dst.length
            && inner.dst.shortened(outer.dst.length) == outer.dst
            && is_inside(inner.src_ports, outer.src_ports)
            && is_inside(inner.dst_ports, outer.dst_ports)
            && (outer.protocols == Protocols::Any || inner.protocols == outer.protocols)
    };
    for (number, rule) in rules.iter().enumerate() {
        let hides = rules[..number].iter().find(|before| within(rule, before));
        assert!(hides.is_none(), "{hides:?} hides {rule:?}");
    }
}

#[test]
fn priorities_are_enough_for_a_hundred_thousand_rules() {
    let rules = RuleSet::new(set("acl1-100k"));
    assert_eq!(rules.rules.len(), 100_000);
    let priorities = rules.priorities();
    assert!(priorities.is_sorted_by(|before, after| before >= after));
    assert!(*priorities.last().unwrap() > 0);
    let same = priorities
        .chunk_by(|one, other| one == other)
        .map(<[_]>::len);
    let mut first = 0;
    for count in same {
        let together = &rules.rules[first..first + count];
        for (number, rule) in together.iter().enumerate() {
            assert!(
                !together[..number].iter().any(|other| other.overlaps(rule)),
                "{rule:?}"
            );
        }
        first += count;
    }
}

#[test]
#[ignore = "takes long: make nightly"]
fn every_entry_parses_to_its_rule() {
    for name in ["acl1-1k", "fw2-1k", "fw4-1k", "ipc1-1k"] {
        let rules = RuleSet::new(set(name));
        let mut random = PythonRandom::new("entries");
        let entries: Vec<_> = rules
            .entries()
            .iter()
            .map(|entry| FlowMod::parse(FlowModCommand::Add, entry).unwrap())
            .collect();
        let mut loader = Loader::default();
        rules
            .entries()
            .iter()
            .for_each(|entry| loader.read_line(entry).unwrap());
        assert_eq!(loader.flow_count(), entries.len());
        for _ in 0..300 {
            let header = rules.packet(&mut random);
            let frame = packets::with_header(&header);
            assert_eq!(Header::of(&frame), Some(header));
            let packet = Packet::new(PortNo(1), &frame);
            let matching = entries
                .iter()
                .filter(|entry| EntryMatch::new(&entry.match_).unwrap().matches(&packet));
            let first = matching.max_by_key(|entry| entry.priority).unwrap();
            let winner = rules.find(&header).unwrap() as u64;
            assert_eq!(first.cookie, winner + 1, "{name}: {header:?}");
        }
    }
}

#[test]
fn all_rules_get_equal_numbers_of_packets() {
    let rules = RuleSet::new(set("ipc2-1k"));
    let mut random = PythonRandom::new("packets");
    let mut drawn = vec![0; rules.rules.len()];
    for _ in 0..30_000 {
        let header = rules.packet(&mut random);
        for (number, rule) in rules.rules.iter().enumerate() {
            drawn[number] += u32::from(rule.matches(&header));
        }
    }
    // Wide rules match packets of other rules besides their own 30.
    assert!(drawn.iter().all(|&count| count > 5), "{drawn:?}");
}

#[test]
fn names_are_kinds_and_sizes() {
    assert_eq!(set("fw5-100k").to_string(), "fw5-100k");
    for wrong in ["acl1", "acl6-1k", "acl1-1K", "ipc3-10k", "-1k", "acl1-500k"] {
        assert!(wrong.parse::<ClassBench>().is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn prefixes_of_ports_are_the_range(low in 0..=u16::MAX, more in 0..=u16::MAX) {
        let high = low.saturating_add(more);
        let prefixes = PortRange::new(low, high).prefixes();
        prop_assert!(prefixes.len() <= 30);
        for port in [0, low.saturating_sub(1), low, low / 2 + high / 2, high, high.saturating_add(1), u16::MAX] {
            let holding = prefixes.iter().filter(|(value, mask)| port & mask == *value).count();
            prop_assert_eq!(holding, usize::from((low..=high).contains(&port)), "{}", port);
        }
    }

    #[test]
    fn rules_overlap_if_a_packet_matches_both(seed in 0..1000u32) {
        let mut random = PythonRandom::new(&seed.to_string());
        let rules = RuleSet { rules: Draw::new(&Statistics::of("fw1", "1k"), 100, PythonRandom::new(&seed.to_string())).rules(30) };
        let header = rules.packet(&mut random);
        let both: Vec<_> = rules.rules.iter().filter(|rule| rule.matches(&header)).collect();
        prop_assert!(!both.is_empty());
        for one in &both {
            prop_assert!(both.iter().all(|other| one.overlaps(other)));
        }
    }
}
