//! Tests of the choice of templates, and that packets find their entries while a table changes its template.

use crate::support::differential::{Comparison, ComparisonConfig};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;
use urtica_pipeline::{Packet, TemplateKind};
use urtica_wire::{FlowMod, FlowModCommand, PortNo};

fn change(comparison: &mut Comparison, command: FlowModCommand, text: &str) {
    let flow_mod = FlowMod::parse(command, text).expect(text);
    comparison.flow_mod(&flow_mod).expect(text);
}

fn add(comparison: &mut Comparison, text: &str) {
    change(comparison, FlowModCommand::Add, text);
}

/// Returns the template of table 0 in all compiled pipelines, after comparing packets for all hosts and networks.
#[track_caller]
fn template(comparison: &mut Comparison) -> TemplateKind {
    let frames: Vec<_> = (0..64).map(|host| (PortNo(1), frame(host))).collect();
    for burst in frames.chunks(32) {
        comparison.send(burst);
    }
    comparison.compare_counters();
    let subjects = comparison.subjects.iter();
    let mut names = subjects.map(|subject| subject.pipeline.template(0));
    let first = names.next().flatten().expect("it is compiled");
    assert!(names.all(|name| name == Some(first)));
    first
}

/// A TCP packet to the host with this number.
fn frame(host: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, host, 2, 0, 0, 0, 1, 1, 8, 0];
    frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1]);
    frame.extend([10, host % 4, 0, host]);
    frame.extend([0, 80, 0, host]);
    frame.resize(60, 0);
    frame
}

fn add_hosts(comparison: &mut Comparison) {
    for host in 0..20 {
        add(
            comparison,
            &format!("priority=10,dl_dst=02:00:00:00:00:{host:02x},actions=output:2"),
        );
    }
}

fn add_routes(comparison: &mut Comparison) {
    for net in 0..8 {
        add(
            comparison,
            &format!("priority=16,ip,nw_dst=10.{net}.0.0/16,actions=output:2"),
        );
        add(
            comparison,
            &format!("priority=24,ip,nw_dst=10.{net}.0.0/24,actions=dec_ttl,output:3"),
        );
    }
}

#[test]
fn few_entries_are_compared_one_by_one() {
    let mut comparison = Comparison::new(ComparisonConfig::default());
    assert_eq!(template(&mut comparison), TemplateKind::DirectCode);
    add(&mut comparison, "priority=5,tcp,tp_dst=7,actions=output:2");
    add(
        &mut comparison,
        "priority=6,dl_dst=02:00:00:00:00:07,actions=drop",
    );
    assert_eq!(template(&mut comparison), TemplateKind::DirectCode);
}

#[test]
fn hosts_are_hashed_until_another_kind_of_match_is_added() {
    let mut comparison = Comparison::new(ComparisonConfig::default());
    add_hosts(&mut comparison);
    assert_eq!(template(&mut comparison), TemplateKind::CompoundHash);
    add(&mut comparison, "priority=0,actions=output:3");
    assert_eq!(template(&mut comparison), TemplateKind::CompoundHash);
    add(&mut comparison, "priority=5,tcp,tp_dst=7,actions=output:1");
    assert_eq!(template(&mut comparison), TemplateKind::TupleSpace);
    let gone = "priority=5,tcp,tp_dst=7";
    change(&mut comparison, FlowModCommand::DeleteStrict, gone);
    assert_eq!(template(&mut comparison), TemplateKind::CompoundHash);
    change(&mut comparison, FlowModCommand::Delete, "");
    assert_eq!(template(&mut comparison), TemplateKind::DirectCode);
}

#[test]
fn routes_are_found_by_a_trie_while_their_priorities_follow_their_lengths() {
    let mut comparison = Comparison::new(ComparisonConfig::default());
    add_routes(&mut comparison);
    assert_eq!(template(&mut comparison), TemplateKind::LongestPrefixMatch);
    add(&mut comparison, "priority=0,actions=output:1");
    assert_eq!(template(&mut comparison), TemplateKind::LongestPrefixMatch);
    add(
        &mut comparison,
        "priority=99,ip,nw_dst=11.0.0.0/8,actions=output:4",
    );
    assert_eq!(template(&mut comparison), TemplateKind::TupleSpace);
}

#[test]
fn tables_switch_to_the_plain_form_and_back() {
    let mut comparison = Comparison::new(ComparisonConfig::default());
    add_hosts(&mut comparison);
    add(&mut comparison, "priority=9,tun_id=5,actions=output:1");
    assert_eq!(template(&mut comparison), TemplateKind::PlainForm);
    change(&mut comparison, FlowModCommand::Delete, "tun_id=5");
    for _ in 0..2 {
        add_hosts(&mut comparison);
    }
    assert_eq!(template(&mut comparison), TemplateKind::CompoundHash);
}

/// The entry that replaces a deleted one is itself after the entry that matches everything.
#[test]
fn entries_after_the_one_that_matches_everything_stay_hidden() {
    let mut comparison = Comparison::new(ComparisonConfig::default());
    add_hosts(&mut comparison);
    add(&mut comparison, "priority=5,actions=output:3");
    add(
        &mut comparison,
        "priority=1,dl_dst=02:00:00:00:00:07,actions=output:4",
    );
    let gone = "priority=10,dl_dst=02:00:00:00:00:07";
    change(&mut comparison, FlowModCommand::DeleteStrict, gone);
    assert_eq!(template(&mut comparison), TemplateKind::CompoundHash);
}

/// The predecessor did not count everything that the entry counts, or vice versa.
#[test]
fn an_entry_continues_only_counts_of_its_predecessor() {
    for flags in ["", "no_packet_counts", "no_byte_counts"] {
        for later in ["", "no_packet_counts", "no_byte_counts"] {
            let mut comparison = Comparison::new(ComparisonConfig::default());
            add_hosts(&mut comparison);
            for flags in [flags, later, flags] {
                let entry = "priority=10,dl_dst=02:00:00:00:00:07";
                add(
                    &mut comparison,
                    &format!("{entry},{flags},actions=output:4"),
                );
                assert_eq!(template(&mut comparison), TemplateKind::CompoundHash);
            }
        }
    }
}

/// An idle timeout starts at the last packet, even if a modify follows it, and whether or not that resets the counters: a
/// modify changes only the instructions (1.3.5 section 6.4). The comparison checks which entries expire, and when.
#[test]
fn an_idle_timeout_starts_at_the_last_packet_before_a_modify() {
    let nothing: fn(&mut Comparison) = |_| {};
    let tables = [
        (nothing, "ip", TemplateKind::DirectCode),
        (
            add_hosts,
            "dl_dst=02:00:00:00:00:3f",
            TemplateKind::CompoundHash,
        ),
        (
            add_routes,
            "ip,nw_dst=10.3.0.63",
            TemplateKind::LongestPrefixMatch,
        ),
    ];
    for (add_others, match_, kind) in tables {
        for flags in ["", "reset_counts,"] {
            let mut comparison = Comparison::new(ComparisonConfig::default());
            add_others(&mut comparison);
            let n_others = comparison.plain.tables()[0].entries().len();
            let entry = format!("priority=32,{match_}");
            let timeout = "idle_timeout=2,send_flow_rem,actions=output:2";
            add(&mut comparison, &format!("{entry},{timeout}"));
            comparison.wait(Duration::from_millis(1500));
            assert_eq!(template(&mut comparison), kind);

            let modify = format!("{entry},{flags}actions=output:3");
            change(&mut comparison, FlowModCommand::ModifyStrict, &modify);
            for (wait_ms, n_entries) in [(1999, n_others + 1), (1, n_others)] {
                comparison.wait(Duration::from_millis(wait_ms));
                comparison.compare_counters();
                assert_eq!(comparison.plain.tables()[0].entries().len(), n_entries);
            }
        }
    }
}

/// Prefixes of twelve lengths for each of three ports, with priorities that follow the lengths, and an entry for the
/// rest of a port.
fn add_port_routes(comparison: &mut Comparison) {
    for port in 1..4 {
        for number in 0..96 {
            let len = 19 + number % 12;
            let network = Ipv4Addr::from((10 << 24) + ((number / 12) << (32 - len)));
            let route = format!("in_port={port},ip,nw_dst={network}/{len}");
            add(
                comparison,
                &format!("priority={len},{route},actions=dec_ttl,output:2"),
            );
        }
        add(
            comparison,
            &format!("priority=1,in_port={port},actions=output:4"),
        );
    }
}

/// Lets time pass until the table has been inspected again.
fn settle(comparison: &mut Comparison) {
    (0..10).for_each(|_| comparison.wait(Duration::from_millis(100)));
}

/// Returns how packets to some networks of each port are searched for in table 0, after comparing all packets.
#[track_caller]
fn sub_tables(comparison: &mut Comparison) -> BTreeSet<Vec<TemplateKind>> {
    let mut frames = Vec::new();
    for port in 1..=4 {
        for number in 0..24 {
            let mut frame = frame(9);
            frame[31..34].copy_from_slice(&[0, number * 4, number * 10]);
            frames.push((PortNo(port), frame));
        }
    }
    let packets = frames.iter().map(|(port, frame)| Packet::new(*port, frame));
    let pipeline = &comparison.subjects[0].pipeline;
    let found = packets
        .map(|packet| pipeline.templates(0, &packet))
        .collect();
    for burst in frames.chunks(32) {
        comparison.send(burst);
    }
    comparison.compare_counters();
    found
}

#[test]
fn routes_of_several_ports_are_a_trie_for_each() {
    use TemplateKind::{
        CompoundHash, Decomposition, DirectCode, LongestPrefixMatch, MergedTupleSpace,
    };
    let mut comparison = Comparison::new(ComparisonConfig::default());
    add_port_routes(&mut comparison);
    settle(&mut comparison);
    let expected = BTreeSet::from([
        vec![Decomposition, DirectCode],
        vec![Decomposition, LongestPrefixMatch],
    ]);
    assert_eq!(sub_tables(&mut comparison), expected);
    // An entry for all ports belongs to every sub-table, and to the rest.
    add(
        &mut comparison,
        "priority=17,ip,nw_dst=10.0.0.0/17,actions=drop",
    );
    settle(&mut comparison);
    let expected = BTreeSet::from([
        vec![Decomposition, CompoundHash],
        vec![Decomposition, LongestPrefixMatch],
    ]);
    assert_eq!(sub_tables(&mut comparison), expected);
    // A port's entry of another kind, with a separate priority, changes only that port's sub-table.
    add(
        &mut comparison,
        "priority=99,in_port=2,tcp,tp_dst=9,actions=drop",
    );
    let mut changed = expected.clone();
    changed.insert(vec![Decomposition, MergedTupleSpace]);
    assert_eq!(sub_tables(&mut comparison), changed);
    change(
        &mut comparison,
        FlowModCommand::DeleteStrict,
        "priority=99,in_port=2,tcp,tp_dst=9",
    );
    // A new port has a sub-table immediately, and none when it has no entries.
    add(&mut comparison, "priority=50,in_port=4,arp,actions=drop");
    assert!(sub_tables(&mut comparison).len() >= 2);
    change(&mut comparison, FlowModCommand::Delete, "in_port=4");
    change(
        &mut comparison,
        FlowModCommand::Modify,
        "in_port=3,actions=drop",
    );
    sub_tables(&mut comparison);
    change(&mut comparison, FlowModCommand::Delete, "");
    assert_eq!(
        sub_tables(&mut comparison),
        BTreeSet::from([vec![TemplateKind::DirectCode]])
    );
}

/// More sets of bits than a tuple space search supports, but few for each address.
#[test]
fn tables_with_too_many_masks_are_cut() {
    let mut comparison = Comparison::new(ComparisonConfig::default());
    for host in 0..16 {
        for bits in 0..4 {
            let len = 1 + 2 * (host + bits) % 32;
            add(
                &mut comparison,
                &format!(
                    "priority={},tcp,nw_dst=10.1.0.{host},nw_src=10.0.0.0/{len},tp_dst={bits},actions=output:2",
                    10 + bits
                ),
            );
            add(
                &mut comparison,
                &format!(
                    "priority={},ip,nw_dst=10.1.0.{host},nw_src=10.0.0.0/{len},actions=drop",
                    20 + len
                ),
            );
        }
    }
    assert_eq!(template(&mut comparison), TemplateKind::Decomposition);
    let explained = comparison.subjects[0].pipeline.explain(false);
    let cut = explained.and_then(|explanation| explanation.tables[0].cut.clone());
    assert_eq!(
        cut.map(|cut| (cut.by, cut.values)),
        Some(("nw_dst".to_owned(), 16))
    );
}

/// A table that keeps none of its sub-tables is searched as a whole until it has changed for some time.
#[test]
fn cuts_that_no_longer_fit_are_undone() {
    let mut comparison = Comparison::new(ComparisonConfig::default());
    add_port_routes(&mut comparison);
    settle(&mut comparison);
    // Each belongs to every sub-table. This number would justify more sub-tables than there are slots.
    let add_for_all = |comparison: &mut Comparison, number: usize| {
        let len = 8 + number % 24;
        add(
            comparison,
            &format!(
                "priority={},ip,nw_src=10.{}.{}.0/{len},actions=drop",
                number % 7,
                number / 250,
                number % 250
            ),
        );
    };
    let mut seen = BTreeSet::new();
    for number in 0..1200 {
        add_for_all(&mut comparison, number);
        let templates = comparison.subjects[0].pipeline.template(0);
        seen.insert(templates);
    }
    assert!(
        seen.contains(&Some(TemplateKind::Decomposition)),
        "{seen:?}"
    );
    assert!(seen.len() > 1, "{seen:?}");
    sub_tables(&mut comparison);
}

/// A counter of one byte would count 256 decrements as 0.
#[test]
fn many_decrements_invalidate_any_ttl() {
    for decrements in [63, 64, 65, 255, 256, 257, 300] {
        let mut comparison = Comparison::new(ComparisonConfig::default());
        let actions = "dec_ttl,".repeat(decrements);
        add(
            &mut comparison,
            &format!("priority=1,ip,actions={actions}output:2"),
        );
        let frames = [1, 2, 44, 63, 64, 65, 66, 255].map(|ttl| {
            let mut frame = frame(9);
            frame[22] = ttl;
            (PortNo(1), frame)
        });
        comparison.send(&frames);
        comparison.compare_counters();
    }
}

/// For every template, and with or without entries after it.
#[test]
fn the_entry_that_matches_everything_is_added_changed_and_removed() {
    use FlowModCommand::{Add, DeleteStrict, ModifyStrict};
    let mut kinds = BTreeSet::new();
    let loads: [fn(&mut Comparison); 3] = [add_hosts, add_routes, |comparison| {
        add_hosts(comparison);
        for number in 0..40_u64 {
            let mask = (1 << 40) - 1 - (1 << number);
            let mask = urtica_wire::MacAddr::from_u64(0xff00_0000_0000 | mask);
            let text = format!("priority=12,dl_src=02:00:00:00:01:01/{mask},actions=output:1");
            add(comparison, &text);
        }
    }];
    for load in loads {
        for priority in [0, 13, 40] {
            let mut comparison = Comparison::new(ComparisonConfig::default());
            load(&mut comparison);
            settle(&mut comparison);
            kinds.insert(template(&mut comparison));
            for command in [Add, ModifyStrict, Add, DeleteStrict, DeleteStrict, Add] {
                let text = format!("priority={priority},actions=output:3");
                change(&mut comparison, command, &text);
                template(&mut comparison);
                let host = "priority=10,dl_dst=02:00:00:00:00:05,actions=output:4";
                add(&mut comparison, host);
                template(&mut comparison);
            }
        }
    }
    let expected = [
        TemplateKind::CompoundHash,
        TemplateKind::LongestPrefixMatch,
        TemplateKind::MergedTupleSpace,
    ];
    assert_eq!(kinds, BTreeSet::from(expected));
}
