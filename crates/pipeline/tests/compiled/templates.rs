//! Which template a table gets, and that packets find their entries while it changes from one to the other.

use crate::support::differential::{Court, CourtConfig};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;
use urtica_pipeline::{Packet, TemplateKind};
use urtica_wire::{FlowMod, FlowModCommand, PortNo};

fn change(court: &mut Court, command: FlowModCommand, text: &str) {
    let flow_mod = FlowMod::parse(command, text).expect(text);
    court.flow_mod(&flow_mod).expect(text);
}

fn add(court: &mut Court, text: &str) {
    change(court, FlowModCommand::Add, text);
}

/// What all compiled pipelines search table 0 by, after packets for all hosts and networks were compared.
#[track_caller]
fn template(court: &mut Court) -> TemplateKind {
    let frames: Vec<_> = (0..64).map(|host| (PortNo(1), frame(host))).collect();
    for burst in frames.chunks(32) {
        court.send(burst);
    }
    court.compare_counters();
    let subjects = court.subjects.iter();
    let mut names = subjects.map(|subject| subject.pipeline.template(0));
    let first = names.next().flatten().expect("it is compiled");
    assert!(names.all(|name| name == Some(first)));
    first
}

/// A TCP packet to a host of this number.
fn frame(host: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, host, 2, 0, 0, 0, 1, 1, 8, 0];
    frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1]);
    frame.extend([10, host % 4, 0, host]);
    frame.extend([0, 80, 0, host]);
    frame.resize(60, 0);
    frame
}

fn add_hosts(court: &mut Court) {
    for host in 0..20 {
        add(
            court,
            &format!("priority=10,dl_dst=02:00:00:00:00:{host:02x},actions=output:2"),
        );
    }
}

fn add_routes(court: &mut Court) {
    for net in 0..8 {
        add(
            court,
            &format!("priority=16,ip,nw_dst=10.{net}.0.0/16,actions=output:2"),
        );
        add(
            court,
            &format!("priority=24,ip,nw_dst=10.{net}.0.0/24,actions=dec_ttl,output:3"),
        );
    }
}

#[test]
fn few_entries_are_compared_one_by_one() {
    let mut court = Court::new(CourtConfig::default());
    assert_eq!(template(&mut court), TemplateKind::DirectCode);
    add(&mut court, "priority=5,tcp,tp_dst=7,actions=output:2");
    add(
        &mut court,
        "priority=6,dl_dst=02:00:00:00:00:07,actions=drop",
    );
    assert_eq!(template(&mut court), TemplateKind::DirectCode);
}

#[test]
fn hosts_are_hashed_until_another_sort_of_match_comes() {
    let mut court = Court::new(CourtConfig::default());
    add_hosts(&mut court);
    assert_eq!(template(&mut court), TemplateKind::CompoundHash);
    add(&mut court, "priority=0,actions=output:3");
    assert_eq!(template(&mut court), TemplateKind::CompoundHash);
    add(&mut court, "priority=5,tcp,tp_dst=7,actions=output:1");
    assert_eq!(template(&mut court), TemplateKind::TupleSpace);
    let gone = "priority=5,tcp,tp_dst=7";
    change(&mut court, FlowModCommand::DeleteStrict, gone);
    assert_eq!(template(&mut court), TemplateKind::CompoundHash);
    change(&mut court, FlowModCommand::Delete, "");
    assert_eq!(template(&mut court), TemplateKind::DirectCode);
}

#[test]
fn routes_are_found_by_a_trie_while_their_priorities_follow_their_lengths() {
    let mut court = Court::new(CourtConfig::default());
    add_routes(&mut court);
    assert_eq!(template(&mut court), TemplateKind::LongestPrefixMatch);
    add(&mut court, "priority=0,actions=output:1");
    assert_eq!(template(&mut court), TemplateKind::LongestPrefixMatch);
    add(
        &mut court,
        "priority=99,ip,nw_dst=11.0.0.0/8,actions=output:4",
    );
    assert_eq!(template(&mut court), TemplateKind::TupleSpace);
}

#[test]
fn what_only_the_plain_form_knows_is_left_to_it_and_comes_back() {
    let mut court = Court::new(CourtConfig::default());
    add_hosts(&mut court);
    add(&mut court, "priority=9,tun_id=5,actions=output:1");
    assert_eq!(template(&mut court), TemplateKind::PlainForm);
    change(&mut court, FlowModCommand::Delete, "tun_id=5");
    for _ in 0..2 {
        add_hosts(&mut court);
    }
    assert_eq!(template(&mut court), TemplateKind::CompoundHash);
}

/// The entry that comes out from behind a deleted one is itself behind the entry that matches everything.
#[test]
fn entries_behind_the_one_that_matches_everything_stay_there() {
    let mut court = Court::new(CourtConfig::default());
    add_hosts(&mut court);
    add(&mut court, "priority=5,actions=output:3");
    add(
        &mut court,
        "priority=1,dl_dst=02:00:00:00:00:07,actions=output:4",
    );
    let gone = "priority=10,dl_dst=02:00:00:00:00:07";
    change(&mut court, FlowModCommand::DeleteStrict, gone);
    assert_eq!(template(&mut court), TemplateKind::CompoundHash);
}

/// What an entry has counted is not what its successor asks for, or the other way round.
#[test]
fn an_entry_takes_over_only_what_the_one_before_counted() {
    for flags in ["", "no_packet_counts", "no_byte_counts"] {
        for later in ["", "no_packet_counts", "no_byte_counts"] {
            let mut court = Court::new(CourtConfig::default());
            add_hosts(&mut court);
            for flags in [flags, later, flags] {
                let entry = "priority=10,dl_dst=02:00:00:00:00:07";
                add(&mut court, &format!("{entry},{flags},actions=output:4"));
                assert_eq!(template(&mut court), TemplateKind::CompoundHash);
            }
        }
    }
}

/// An idle timeout goes by the last packet, also where a modify comes after it, and whether that resets the counters or not:
/// a modify gives other instructions, and all else stays (1.3.5 section 6.4). The court compares what expires, and when.
#[test]
fn an_idle_timeout_goes_by_the_last_packet_before_a_modify() {
    let nothing: fn(&mut Court) = |_| {};
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
            let mut court = Court::new(CourtConfig::default());
            add_others(&mut court);
            let n_others = court.plain.tables()[0].entries().len();
            let entry = format!("priority=32,{match_}");
            let timeout = "idle_timeout=2,send_flow_rem,actions=output:2";
            add(&mut court, &format!("{entry},{timeout}"));
            court.wait(Duration::from_millis(1500));
            assert_eq!(template(&mut court), kind);

            let modify = format!("{entry},{flags}actions=output:3");
            change(&mut court, FlowModCommand::ModifyStrict, &modify);
            for (wait_ms, n_entries) in [(1999, n_others + 1), (1, n_others)] {
                court.wait(Duration::from_millis(wait_ms));
                court.compare_counters();
                assert_eq!(court.plain.tables()[0].entries().len(), n_entries);
            }
        }
    }
}

/// Prefixes of twelve lengths for each of three ports, of priorities that follow the lengths, and what is left of a port.
fn add_port_routes(court: &mut Court) {
    for port in 1..4 {
        for number in 0..96 {
            let len = 19 + number % 12;
            let network = Ipv4Addr::from((10 << 24) + ((number / 12) << (32 - len)));
            let route = format!("in_port={port},ip,nw_dst={network}/{len}");
            add(
                court,
                &format!("priority={len},{route},actions=dec_ttl,output:2"),
            );
        }
        add(
            court,
            &format!("priority=1,in_port={port},actions=output:4"),
        );
    }
}

/// How packets to some networks of each port are searched for in table 0, once all were compared.
#[track_caller]
fn pieces(court: &mut Court) -> BTreeSet<Vec<TemplateKind>> {
    let mut frames = Vec::new();
    for port in 1..=4 {
        for number in 0..24 {
            let mut frame = frame(9);
            frame[31..34].copy_from_slice(&[0, number * 4, number * 10]);
            frames.push((PortNo(port), frame));
        }
    }
    let packets = frames.iter().map(|(port, frame)| Packet::new(*port, frame));
    let pipeline = &court.subjects[0].pipeline;
    let found = packets
        .map(|packet| pipeline.templates(0, &packet))
        .collect();
    for burst in frames.chunks(32) {
        court.send(burst);
    }
    court.compare_counters();
    found
}

#[test]
fn routes_of_several_ports_are_a_trie_for_each() {
    use TemplateKind::{CompoundHash, Decomposition, DirectCode, LongestPrefixMatch, TupleSpace};
    let mut court = Court::new(CourtConfig::default());
    add_port_routes(&mut court);
    let expected = BTreeSet::from([
        vec![Decomposition, DirectCode],
        vec![Decomposition, LongestPrefixMatch],
    ]);
    assert_eq!(pieces(&mut court), expected);
    // One for all ports belongs to every piece, and to the rest.
    add(&mut court, "priority=17,ip,nw_dst=10.0.0.0/17,actions=drop");
    let expected = BTreeSet::from([
        vec![Decomposition, CompoundHash],
        vec![Decomposition, LongestPrefixMatch],
    ]);
    assert_eq!(pieces(&mut court), expected);
    // A port's own entry of another sort, and of a priority of its own, changes that port's piece alone.
    add(
        &mut court,
        "priority=99,in_port=2,tcp,tp_dst=9,actions=drop",
    );
    let mut changed = expected.clone();
    changed.insert(vec![Decomposition, TupleSpace]);
    assert_eq!(pieces(&mut court), changed);
    change(
        &mut court,
        FlowModCommand::DeleteStrict,
        "priority=99,in_port=2,tcp,tp_dst=9",
    );
    // A port that is new has a piece at once, and none once it has no entries.
    add(&mut court, "priority=50,in_port=4,arp,actions=drop");
    assert!(pieces(&mut court).len() >= 2);
    change(&mut court, FlowModCommand::Delete, "in_port=4");
    change(&mut court, FlowModCommand::Modify, "in_port=3,actions=drop");
    pieces(&mut court);
    change(&mut court, FlowModCommand::Delete, "");
    assert_eq!(
        pieces(&mut court),
        BTreeSet::from([vec![TemplateKind::DirectCode]])
    );
}

/// More sets of bits than a tuple space has room for, but few for each address.
#[test]
fn a_table_of_too_many_sets_of_bits_is_not_left_to_the_plain_form_if_it_can_be_cut() {
    let mut court = Court::new(CourtConfig::default());
    for host in 0..16 {
        for bits in 0..4 {
            let len = 1 + 2 * (host + bits) % 32;
            add(
                &mut court,
                &format!(
                    "priority={},tcp,nw_dst=10.1.0.{host},nw_src=10.0.0.0/{len},tp_dst={bits},actions=output:2",
                    10 + bits
                ),
            );
            add(
                &mut court,
                &format!(
                    "priority={},ip,nw_dst=10.1.0.{host},nw_src=10.0.0.0/{len},actions=drop",
                    20 + len
                ),
            );
        }
    }
    assert_eq!(template(&mut court), TemplateKind::Decomposition);
    let explained = court.subjects[0].pipeline.explain(false);
    let cut = explained.and_then(|explanation| explanation.tables[0].cut.clone());
    assert_eq!(
        cut.map(|cut| (cut.by, cut.values)),
        Some(("nw_dst".to_owned(), 16))
    );
}

/// What keeps none of its pieces is searched as a whole, until it has changed for some time.
#[test]
fn a_cut_that_does_not_fit_any_more_is_given_up() {
    let mut court = Court::new(CourtConfig::default());
    add_port_routes(&mut court);
    // Each belongs to every piece; so many are worth more pieces than places.
    let add_for_all = |court: &mut Court, number: usize| {
        let len = 8 + number % 24;
        add(
            court,
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
        add_for_all(&mut court, number);
        let templates = court.subjects[0].pipeline.template(0);
        seen.insert(templates);
    }
    assert!(
        seen.contains(&Some(TemplateKind::Decomposition)),
        "{seen:?}"
    );
    assert!(seen.len() > 1, "{seen:?}");
    pieces(&mut court);
}
