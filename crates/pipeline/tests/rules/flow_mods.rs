//! The five commands of a flow mod (1.3.5 section 6.4), and those of 1.0 (1.0 section 4.6).

use crate::support::{Bed, any_frame};
use urtica_wire::FlowModCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict, Other};
use urtica_wire::{
    ErrorCode, FlowMod, FlowModFlags, FlowRemovedReason, FlowStatsRequest, PortNo, TABLE_ALL,
};

#[test]
fn entries_are_kept_by_priority_and_then_by_age() {
    let bed = Bed::with(&[
        "priority=1,in_port=1,actions=1",
        "priority=2,in_port=1,actions=2",
        "priority=2,in_port=2,actions=3",
        "table=1,priority=9,actions=4",
    ]);
    assert_eq!(
        bed.dump(),
        [
            "0 packets: priority=2,in_port=1 actions=output:2",
            "0 packets: priority=2,in_port=2 actions=output:3",
            "0 packets: priority=1,in_port=1 actions=output:1",
            "0 packets: table=1,priority=9 actions=output:4",
        ]
    );
}

#[test]
fn an_add_replaces_an_identical_entry_and_keeps_its_counters() {
    let mut bed = Bed::with(&["cookie=1,send_flow_rem,priority=5,in_port=1,actions=2"]);
    bed.send(&any_frame());
    bed.wait(3000);
    bed.add("cookie=2,priority=5,in_port=1,actions=3");
    assert_eq!(
        bed.dump(),
        ["1 packets: cookie=0x2,priority=5,in_port=1 actions=output:3"]
    );
    let entry = bed.pipeline.tables()[0].entries().next().expect("an entry");
    assert_eq!(entry.to_stats(bed.now).duration_sec, 0);
    assert!(bed.removed.is_empty(), "no flow-removed for it");
}

#[test]
fn an_add_with_reset_counts_starts_at_zero() {
    let mut bed = Bed::with(&["in_port=1,actions=2"]);
    bed.send(&any_frame());
    bed.add("in_port=1,reset_counts,actions=3");
    assert!(bed.dump()[0].starts_with("0 packets"));
}

#[test]
fn a_modify_changes_only_instructions() {
    let mut bed = Bed::with(&["cookie=1,idle_timeout=9,hard_timeout=8,in_port=1,actions=2"]);
    bed.send(&any_frame());
    bed.wait(2000);
    bed.flow(Modify, "cookie=7,idle_timeout=1,in_port=1,actions=3");
    assert_eq!(
        bed.dump(),
        ["1 packets: cookie=0x1,idle_timeout=9,hard_timeout=8,in_port=1 actions=output:3"]
    );
    let entry = bed.pipeline.tables()[0].entries().next().expect("an entry");
    assert_eq!(entry.to_stats(bed.now).duration_sec, 2);
}

#[test]
fn a_modify_with_reset_counts_starts_at_zero() {
    let mut bed = Bed::with(&["in_port=1,actions=2"]);
    bed.send(&any_frame());
    bed.flow(Modify, "reset_counts,actions=3");
    assert_eq!(bed.dump(), ["0 packets: in_port=1 actions=output:3"]);
}

#[test]
fn modify_changes_included_entries_and_strict_modify_the_equal_one() {
    let flows = [
        "priority=1,in_port=1,actions=1",
        "priority=2,in_port=1,metadata=5,actions=1",
        "priority=2,in_port=2,actions=1",
    ];
    let changed = |command, text| {
        let mut bed = Bed::with(&flows);
        bed.flow(command, text);
        let dump = bed.dump();
        dump.iter().filter(|row| row.ends_with("output:4")).count()
    };
    assert_eq!(changed(Modify, "in_port=1,actions=4"), 2);
    assert_eq!(changed(Modify, "actions=4"), 3);
    assert_eq!(changed(ModifyStrict, "priority=1,in_port=1,actions=4"), 1);
    assert_eq!(changed(ModifyStrict, "priority=2,in_port=1,actions=4"), 0);
}

#[test]
fn a_modify_without_a_match_adds_no_entry() {
    let mut bed = Bed::new();
    bed.flow(Modify, "in_port=1,actions=2");
    bed.flow(ModifyStrict, "in_port=1,actions=2");
    assert!(bed.dump().is_empty());
}

#[test]
fn cookies_restrict_modify_and_delete() {
    let mut bed = Bed::with(&[
        "cookie=0x11,in_port=1,actions=1",
        "cookie=0x12,in_port=2,actions=1",
    ]);
    bed.flow(Modify, "cookie=0x11/0xff,actions=3");
    bed.flow(Delete, "cookie=0x02/0x0f");
    assert_eq!(
        bed.dump(),
        ["0 packets: cookie=0x11,in_port=1 actions=output:3"]
    );
}

#[test]
fn delete_removes_included_entries_and_strict_delete_the_equal_one() {
    let flows = [
        "priority=1,in_port=1,actions=1",
        "priority=2,in_port=1,metadata=5,actions=1",
        "table=1,priority=2,in_port=1,actions=1",
    ];
    let left = |command, text| {
        let mut bed = Bed::with(&flows);
        bed.flow(command, text);
        bed.dump().len()
    };
    assert_eq!(left(Delete, "in_port=1"), 0);
    assert_eq!(left(Delete, "table=0,in_port=1"), 1);
    assert_eq!(left(Delete, "table=2"), 3);
    assert_eq!(left(DeleteStrict, "priority=1,in_port=1"), 2);
    assert_eq!(left(DeleteStrict, "priority=2,in_port=1"), 2);
    assert_eq!(left(DeleteStrict, "priority=7,in_port=1"), 3);
}

#[test]
fn a_delete_can_filter_by_output() {
    let mut bed = Bed::new();
    bed.add_group("group_id=1,type=all,bucket=output:4");
    bed.add("in_port=1,actions=2");
    bed.add("in_port=2,actions=write_actions(output:2)");
    bed.add("in_port=3,actions=group:1");
    bed.add("in_port=4,actions=drop");
    bed.flow(Delete, "out_port=4");
    assert_eq!(bed.dump().len(), 4, "a group's ports do not count");
    bed.flow(Delete, "out_group=1");
    assert_eq!(bed.dump().len(), 3);
    bed.flow(Delete, "out_port=2");
    assert_eq!(bed.dump(), ["0 packets: in_port=4 actions=drop"]);
}

#[test]
fn a_modify_ignores_the_output_filter() {
    let mut bed = Bed::with(&["in_port=1,actions=2"]);
    let modify = FlowMod::parse(Modify, "actions=3").expect("a flow");
    let modify = FlowMod {
        out_port: PortNo(4),
        ..modify
    };
    assert_eq!(bed.try_flow_mod(&modify), Ok(()));
    assert_eq!(bed.dump(), ["0 packets: in_port=1 actions=output:3"]);
}

#[test]
fn only_entries_with_the_flag_are_reported() {
    let mut bed = Bed::with(&["in_port=1,actions=2", "send_flow_rem,in_port=2,actions=2"]);
    bed.wait(1500);
    bed.flow(Delete, "");
    let [removed] = &bed.removed[..] else {
        panic!("{:?}", bed.removed);
    };
    let told = removed.to_wire(bed.now);
    assert_eq!(told.reason, FlowRemovedReason::Delete);
    assert_eq!((told.duration_sec, told.duration_nsec), (1, 500_000_000));
    assert_eq!(told.match_, "in_port=2".parse().expect("a match"));
}

#[test]
fn an_overlap_is_refused_if_checked() {
    let mut bed = Bed::with(&["priority=5,in_port=1,actions=2"]);
    let code = ErrorCode::FlowModFailedOverlap;
    assert_eq!(
        bed.refused("check_overlap,priority=5,metadata=1,actions=2"),
        code
    );
    assert_eq!(
        bed.refused("check_overlap,priority=5,in_port=1,actions=2"),
        code
    );
    bed.add("check_overlap,priority=5,in_port=2,actions=2");
    bed.add("check_overlap,priority=6,metadata=1,actions=2");
    bed.add("priority=5,metadata=1,actions=2");
}

#[test]
fn a_full_table_refuses_adds_and_accepts_changes() {
    let mut bed = Bed::new();
    for port in 1..=8 {
        bed.add(&format!("in_port={port},actions=2"));
    }
    let code = ErrorCode::FlowModFailedTableFull;
    assert_eq!(bed.refused("in_port=9,actions=2"), code);
    bed.add("in_port=8,actions=3");
    bed.add("table=1,in_port=9,actions=2");
}

#[test]
fn missing_tables_are_refused() {
    let mut bed = Bed::new();
    let code = ErrorCode::FlowModFailedBadTableId;
    assert_eq!(bed.refused("table=3,actions=2"), code);
    for command in [Add, Modify, ModifyStrict] {
        let all = FlowMod {
            table_id: TABLE_ALL,
            command,
            ..FlowMod::default()
        };
        assert_eq!(bed.try_flow_mod(&all), Err(code));
    }
    assert_eq!(bed.try_flow(Delete, "table=3"), Err(code));
    assert_eq!(bed.try_flow(Delete, ""), Ok(()));
}

#[test]
fn unknown_commands_and_flags_are_refused() {
    let mut bed = Bed::new();
    let unknown = FlowMod {
        command: Other(5),
        ..FlowMod::default()
    };
    let code = ErrorCode::FlowModFailedBadCommand;
    assert_eq!(bed.try_flow_mod(&unknown), Err(code));
    let flagged = FlowMod {
        flags: FlowModFlags::from_bits_retain(1 << 5),
        ..FlowMod::default()
    };
    let code = ErrorCode::FlowModFailedBadFlags;
    assert_eq!(bed.try_flow_mod(&flagged), Err(code));
}

#[test]
fn statistics_cover_the_included_entries() {
    let bed = Bed::with(&[
        "cookie=1,in_port=1,actions=2",
        "cookie=2,in_port=2,actions=3",
        "table=1,cookie=1,in_port=1,actions=3",
    ]);
    bed.send(&any_frame());
    let all = FlowStatsRequest::default;
    let rows = |request: FlowStatsRequest| bed.dump_of(&request).len();
    let in_port_1 = || "in_port=1".parse().expect("a match");
    assert_eq!(rows(all()), 3);
    assert_eq!(
        rows(FlowStatsRequest {
            table_id: 1,
            ..all()
        }),
        1
    );
    assert_eq!(
        rows(FlowStatsRequest {
            match_: in_port_1(),
            ..all()
        }),
        2
    );
    assert_eq!(
        rows(FlowStatsRequest {
            out_port: PortNo(3),
            ..all()
        }),
        2
    );
    let (cookie, cookie_mask) = (1, u64::MAX);
    assert_eq!(
        rows(FlowStatsRequest {
            cookie,
            cookie_mask,
            ..all()
        }),
        2
    );
    let sum = bed.pipeline.aggregate_stats(&all()).expect("a sum");
    assert_eq!(
        (sum.flow_count, sum.packet_count, sum.byte_count),
        (3, 1, 60)
    );
    let nowhere = FlowStatsRequest {
        table_id: 3,
        ..all()
    };
    let code = ErrorCode::BadRequestBadTableId;
    assert_eq!(bed.pipeline.flow_stats(&nowhere).err(), Some(code));
}

#[track_caller]
fn flow_of10(bed: &mut Bed, command: urtica_wire::FlowModCommand, text: &str) {
    let flow_mod = FlowMod::parse(command, text).expect(text);
    let (now, removed) = (bed.now, &mut bed.removed);
    bed.pipeline
        .flow_mod_of10(&flow_mod, now, removed)
        .expect(text);
}

#[test]
fn in_1_0_a_modify_without_a_match_adds() {
    let mut bed = Bed::new();
    flow_of10(&mut bed, Modify, "cookie=1,in_port=1,actions=2");
    flow_of10(&mut bed, ModifyStrict, "cookie=2,in_port=2,actions=2");
    flow_of10(&mut bed, Modify, "cookie=3,in_port=1,actions=3");
    assert_eq!(
        bed.dump(),
        [
            "0 packets: cookie=0x3,in_port=1 actions=output:3",
            "0 packets: cookie=0x2,in_port=2 actions=output:2",
        ]
    );
}

#[test]
fn delete_covers_all_tables_and_add_clears_counters_in_1_0() {
    let mut bed = Bed::with(&["in_port=1,actions=2", "table=1,in_port=1,actions=2"]);
    bed.send(&any_frame());
    flow_of10(&mut bed, Add, "in_port=1,actions=2");
    assert!(bed.dump()[0].starts_with("0 packets"));
    flow_of10(&mut bed, Delete, "table=0");
    assert!(bed.dump().is_empty());
}

#[test]
fn in_1_0_actions_need_not_fit_the_match() {
    let mut bed = Bed::new();
    flow_of10(&mut bed, Add, "actions=mod_nw_src:10.0.0.9,output:2");
    assert_eq!(bed.dump().len(), 1);
    let emergency = FlowMod {
        flags: FlowModFlags::EMERG,
        ..FlowMod::default()
    };
    let refused = bed
        .pipeline
        .flow_mod_of10(&emergency, bed.now, &mut bed.removed);
    assert_eq!(refused, Err(ErrorCode::FlowModFailedUnsupported));
}

#[test]
fn goto_is_refused_in_1_0() {
    let mut bed = Bed::new();
    let flow_mod = FlowMod::parse(Add, "table=0,actions=goto_table:1").expect("a flow");
    let refused = bed
        .pipeline
        .flow_mod_of10(&flow_mod, bed.now, &mut bed.removed);
    assert_eq!(refused, Err(ErrorCode::BadInstructionUnsupInst));
}
