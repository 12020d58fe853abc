//! Tables, instructions and the action set (1.3.5 sections 5.1 to 5.4, 5.9, 5.10).

use crate::support::{Bed, IN, TCP, any_frame};
use urtica_wire::PacketInReason::{Action, NoMatch};
use urtica_wire::{CONTROLLER_NO_BUFFER, PortConfig, PortNo, PortState};

#[test]
fn the_highest_priority_that_matches_is_chosen() {
    let bed = Bed::with(&[
        "priority=1,actions=2",
        "priority=3,in_port=2,actions=3",
        "priority=2,in_port=1,actions=4",
    ]);
    assert_eq!(bed.send(&any_frame()).ports(), [4]);
}

#[test]
fn a_packet_that_no_entry_matches_is_dropped() {
    let bed = Bed::with(&["in_port=2,actions=3"]);
    assert!(bed.send(&any_frame()).is_dropped());
    let bed = Bed::with(&["actions=write_actions(output:2),goto_table:1"]);
    assert!(bed.send(&any_frame()).is_dropped(), "with its action set");
}

#[test]
fn in_1_0_misses_are_sent_to_the_controller() {
    let mut bed = Bed::new();
    bed.pipeline.set_misses_to_controller(true);
    let out = bed.send(&any_frame());
    let (cause, _) = &out.packet_ins[0];
    assert_eq!(cause.reason, NoMatch);
    assert_eq!(
        (cause.cookie, cause.max_len),
        (u64::MAX, CONTROLLER_NO_BUFFER)
    );
}

#[test]
fn a_table_miss_entry_has_a_separate_reason() {
    let miss = Bed::with(&["cookie=9,priority=0,actions=controller:128"]);
    let out = miss.send(&any_frame());
    let (cause, frame) = &out.packet_ins[0];
    assert_eq!(cause.reason, NoMatch);
    assert_eq!((cause.cookie, cause.table_id, cause.max_len), (9, 0, 128));
    assert_eq!(*frame, any_frame());
    for flow in [
        "priority=1,actions=controller",
        "priority=0,in_port=1,actions=controller",
    ] {
        assert_eq!(Bed::with(&[flow]).send(&any_frame()).reasons(), [Action]);
    }
}

#[test]
fn a_packet_in_names_the_table_and_the_cookie_of_its_entry() {
    let bed = Bed::with(&[
        "cookie=1,actions=controller,goto_table:2",
        "table=2,cookie=2,actions=controller",
    ]);
    let out = bed.send(&any_frame());
    let causes = out.packet_ins.iter();
    let causes: Vec<_> = causes
        .map(|(cause, _)| (cause.table_id, cause.cookie))
        .collect();
    assert_eq!(causes, [(0, 1), (2, 2)]);
}

#[test]
fn a_port_without_packet_ins_sends_no_misses() {
    let mut bed = Bed::with(&["priority=0,actions=controller"]);
    bed.set_port(IN.0, PortConfig::NO_PACKET_IN, PortState::empty());
    assert!(bed.send(&any_frame()).is_dropped());
    bed.add("priority=1,actions=controller");
    assert_eq!(bed.send(&any_frame()).reasons(), [Action]);
}

#[test]
fn frames_at_ports_that_cannot_receive_are_dropped() {
    for config in [PortConfig::NO_RECV, PortConfig::PORT_DOWN] {
        let mut bed = Bed::with(&["actions=2"]);
        bed.set_port(IN.0, config, PortState::empty());
        assert!(bed.send(&any_frame()).is_dropped());
        assert!(bed.dump()[0].starts_with("0 packets"));
    }
}

#[test]
fn instructions_are_carried_out_in_their_order_not_in_that_of_the_message() {
    let bed = Bed::with(&[
        "actions=goto_table:1,write_metadata:0x5,clear_actions,write_actions(output:3),output:2",
        "table=1,metadata=5,actions=4",
    ]);
    let out = bed.send(&any_frame());
    assert_eq!(out.ports(), [2, 4, 3]);
}

#[test]
fn clear_actions_removes_earlier_written_actions() {
    let bed = Bed::with(&[
        "actions=write_actions(output:2),goto_table:1",
        "table=1,actions=clear_actions,write_actions(set_queue:1)",
    ]);
    assert!(bed.send(&any_frame()).is_dropped());
}

#[test]
fn metadata_is_written_under_its_mask() {
    let bed = Bed::with(&[
        "actions=write_metadata:0xff,goto_table:1",
        "table=1,metadata=0xff,actions=write_metadata:0x12/0x0f,goto_table:2",
        "table=2,metadata=0xf2,actions=3",
    ]);
    assert_eq!(bed.send(&any_frame()).ports(), [3]);
}

#[test]
fn a_later_write_replaces_an_earlier_one() {
    let bed = Bed::with(&[
        "actions=write_actions(output:2,set_queue:1),goto_table:1",
        "table=1,actions=write_actions(output:3)",
    ]);
    let out = bed.send(&any_frame());
    let [(PortNo(3), 1, _)] = &out.sent[..] else {
        panic!("{:?}", out.sent);
    };
}

#[test]
fn the_set_is_carried_out_in_the_order_of_kinds() {
    let bed = Bed::with(&[
        "ip,actions=write_actions(output:2,set_field:5->mpls_label,push_mpls:0x8847,dec_mpls_ttl)",
    ]);
    let out = bed.send(&any_frame());
    let actions: Vec<_> = out.steps[2..].iter().map(String::as_str).collect();
    assert_eq!(
        actions,
        [
            "push_mpls:0x8847",
            "dec_mpls_ttl",
            "set_field:5->mpls_label",
            "output:2"
        ]
    );
}

#[test]
fn in_a_set_a_group_wins_over_an_output() {
    let mut bed = Bed::new();
    bed.add_group("group_id=1,type=indirect,bucket=output:3");
    bed.add_group("group_id=2,type=all");
    bed.add("in_port=1,actions=write_actions(output:2,group:1)");
    assert_eq!(bed.send(&any_frame()).ports(), [3]);
    bed.add("in_port=1,actions=write_actions(output:2,group:2)");
    assert!(bed.send(&any_frame()).is_dropped(), "without buckets too");
}

#[test]
fn tables_and_entries_count_the_frame_as_they_received_it() {
    let bed = Bed::with(&[
        "actions=push_vlan:0x8100,goto_table:1",
        "table=1,actions=2,goto_table:2",
    ]);
    bed.send(&any_frame());
    bed.send(&any_frame());
    let tables: Vec<_> = bed.pipeline.table_stats().collect();
    let counts = tables.iter();
    let counts: Vec<_> = counts
        .map(|table| (table.active_count, table.lookup_count, table.matched_count))
        .collect();
    assert_eq!(counts, [(1, 2, 2), (1, 2, 2), (0, 2, 0)]);
    let bytes = |table: usize| {
        let entry = bed.pipeline.tables()[table]
            .entries()
            .next()
            .expect("an entry");
        entry.to_stats(bed.now).byte_count
    };
    assert_eq!((bytes(0), bytes(1)), (120, 128));
}

#[test]
fn entries_can_disable_counters() {
    let bed = Bed::with(&[
        "in_port=1,no_packet_counts,actions=goto_table:1",
        "table=1,no_byte_counts,actions=2",
    ]);
    bed.send(&any_frame());
    let counts = |table: usize| {
        let stats = bed.pipeline.tables()[table]
            .entries()
            .next()
            .expect("an entry")
            .to_stats(bed.now);
        (stats.packet_count, stats.byte_count)
    };
    assert_eq!((counts(0), counts(1)), ((0, 60), (1, 0)));
}

#[test]
fn an_observer_sees_every_step() {
    let mut bed = Bed::new();
    bed.add_group("group_id=1,type=indirect,bucket=output:3");
    bed.add_meter("meter=1,pktps,band=type=drop,rate=10");
    bed.add("priority=7,actions=meter:1,dec_ttl,goto_table:1");
    bed.add("table=1,priority=0,actions=write_actions(group:1)");
    assert_eq!(
        bed.send(&TCP.frame()).steps,
        [
            "table 0 Some(7)",
            "meter 1 Pass",
            "dec_ttl",
            "table 1 Some(0)",
            "set of 1",
            "group:1",
            "bucket of 1",
            "output:3",
        ]
    );
}
