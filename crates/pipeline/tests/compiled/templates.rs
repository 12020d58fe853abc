//! Which template a table gets, and that packets find their entries while it changes from one to the other.

use crate::support::court::{Court, CourtConfig};
use urtica_pipeline::TemplateKind;
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
        "priority=99,ip,nw_dst=10.0.0.0/8,actions=output:4",
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
