//! Groups (1.3.5 sections 5.6 and 6.5).

use crate::support::{Bed, TCP, Tcp, any_frame};
use std::collections::BTreeMap;
use std::time::Duration;
use urtica_pipeline::{MAX_BUCKETS, MAX_CHAIN, Pipeline, PipelineConfig};
use urtica_wire::GroupModCommand::{Add, Delete, Modify, Other};
use urtica_wire::{
    Action, Bucket, ErrorCode, FlowMod, FlowModCommand, FlowRemovedReason, GROUP_ALL, GROUP_ANY,
    GroupMod, GroupType, METER_ALL, MeterMod, MeterModCommand, PacketInReason, PortConfig, PortNo,
    PortState,
};

/// A pipeline that sends all packets to group 1.
#[track_caller]
fn bed_of(group: &str) -> Bed {
    let mut bed = Bed::new();
    bed.add_group(&format!("group_id=1,{group}"));
    bed.add("actions=group:1");
    bed
}

#[test]
fn all_buckets_get_separate_copies() {
    let bed = bed_of("type=all,bucket=actions=dec_ttl,output:2,bucket=output:3");
    let out = bed.send(&any_frame());
    assert_eq!(out.ports(), [2, 3]);
    assert_eq!((out.frame_at(2)[22], out.frame_at(3)[22]), (63, 64));
}

#[test]
fn an_apply_list_continues_with_the_packet_passed_to_the_group() {
    let mut bed = bed_of("type=all,bucket=actions=dec_ttl,output:2");
    bed.add("actions=group:1,output:3");
    let out = bed.send(&any_frame());
    assert_eq!((out.frame_at(2)[22], out.frame_at(3)[22]), (63, 64));
}

#[test]
fn a_buckets_actions_are_a_set() {
    let bed = bed_of("type=indirect,bucket=actions=output:2,set_queue:4,output:3");
    let out = bed.send(&any_frame());
    let [(PortNo(3), 4, _)] = &out.sent[..] else {
        panic!("{:?}", out.sent);
    };
}

#[test]
fn a_bucket_does_not_send_back_by_default() {
    let bed = bed_of("type=all,bucket=output:1,bucket=in_port,bucket=output:2");
    assert_eq!(bed.send(&any_frame()).ports(), [1, 2]);
}

#[test]
fn a_group_behind_a_table_miss_sends_by_action() {
    let mut bed = bed_of("type=indirect,bucket=controller");
    bed.add("priority=0,actions=group:1,controller");
    bed.flow(urtica_wire::FlowModCommand::DeleteStrict, "");
    let reasons = bed.send(&any_frame()).reasons();
    assert_eq!(reasons, [PacketInReason::Action, PacketInReason::NoMatch]);
}

#[test]
fn groups_pass_packets_to_groups() {
    let mut bed = Bed::new();
    bed.add_group("group_id=3,type=all,bucket=output:3,bucket=output:4");
    bed.add_group("group_id=2,type=all,bucket=group:3,bucket=output:2");
    bed.add("actions=write_actions(group:2)");
    assert_eq!(bed.send(&any_frame()).ports(), [3, 4, 2]);
    assert_eq!(bed.pipeline.group_ref_count(3), 1);
    assert_eq!(bed.pipeline.group_ref_count(2), 1);
}

#[test]
fn groups_and_buckets_count() {
    let mut bed =
        bed_of("type=fast_failover,bucket=watch_port:2,output:2,bucket=watch_port:3,output:3");
    bed.send(&any_frame());
    bed.set_port(2, PortConfig::empty(), PortState::LINK_DOWN);
    bed.send(&any_frame());
    bed.wait(2500);
    let stats = &bed.pipeline.group_stats(1, bed.now)[0];
    assert_eq!((stats.packet_count, stats.byte_count), (2, 120));
    assert_eq!((stats.ref_count, stats.duration_sec), (1, 2));
    let packets: Vec<_> = stats
        .buckets
        .iter()
        .map(|bucket| bucket.packet_count)
        .collect();
    assert_eq!(packets, [1, 1]);
}

#[test]
fn fast_failover_uses_the_first_live_bucket() {
    let mut bed = bed_of(
        "type=fast_failover,bucket=watch_port:2,output:2,bucket=watch_port:3,output:3,bucket=output:4",
    );
    let ports = |bed: &Bed| bed.send(&any_frame()).ports();
    assert_eq!(ports(&bed), [2]);
    bed.set_port(2, PortConfig::PORT_DOWN, PortState::empty());
    assert_eq!(ports(&bed), [3]);
    bed.pipeline.remove_port(PortNo(3));
    assert_eq!(ports(&bed), [4], "what watches nothing is live");
    bed.set_port(2, PortConfig::empty(), PortState::empty());
    assert_eq!(ports(&bed), [2]);
}

#[test]
fn without_a_live_bucket_the_packet_is_dropped() {
    let mut bed = bed_of("type=fast_failover,bucket=watch_port:2,output:3");
    bed.set_port(2, PortConfig::empty(), PortState::LINK_DOWN);
    assert!(bed.send(&any_frame()).is_dropped());
}

#[test]
fn a_watched_group_is_live_with_one_of_its_buckets() {
    let mut bed = Bed::new();
    bed.add_group(
        "group_id=2,type=fast_failover,bucket=watch_port:2,output:2,bucket=watch_port:3,output:3",
    );
    bed.add_group("group_id=1,type=fast_failover,bucket=watch_group:2,group:2,bucket=output:4");
    bed.add("actions=group:1");
    let ports = |bed: &Bed| bed.send(&any_frame()).ports();
    assert_eq!(ports(&bed), [2]);
    bed.set_port(2, PortConfig::empty(), PortState::LINK_DOWN);
    assert_eq!(ports(&bed), [3]);
    bed.set_port(3, PortConfig::empty(), PortState::LINK_DOWN);
    assert_eq!(ports(&bed), [4]);
}

/// Returns how many packets of a thousand flows left by each port.
fn spread(bed: &Bed, flow: impl Fn(u16) -> Tcp) -> BTreeMap<u32, usize> {
    let mut counts = BTreeMap::new();
    for number in 0..1000 {
        let frame = flow(number).frame();
        let [port] = bed.send(&frame).ports()[..] else {
            panic!("one bucket");
        };
        assert_eq!(bed.send(&frame).ports(), [port], "a flow keeps its bucket");
        *counts.entry(port).or_default() += 1;
    }
    counts
}

#[test]
fn select_spreads_flows_by_the_weights() {
    let bed = bed_of("type=select,bucket=weight:1,output:2,bucket=weight:3,output:3");
    let ports = spread(&bed, |number| Tcp {
        tcp_src: number,
        ..TCP
    });
    assert!(ports[&2].abs_diff(250) < 50, "{ports:?}");
    assert!(ports[&3].abs_diff(750) < 50, "{ports:?}");
}

#[test]
fn select_uses_the_addresses_of_every_layer() {
    let bed = bed_of("type=select,bucket=output:2,bucket=output:3");
    let flows: [fn(u16) -> Tcp; 5] = [
        |number| Tcp {
            eth_src: number as u8,
            eth_dst: (number >> 8) as u8,
            ..TCP
        },
        |number| Tcp {
            eth_dst: number as u8,
            eth_src: (number >> 8) as u8,
            ..TCP
        },
        |number| Tcp {
            ipv4_src: number as u8,
            ipv4_dst: (number >> 8) as u8,
            ..TCP
        },
        |number| Tcp {
            tcp_src: number,
            ..TCP
        },
        |number| Tcp {
            tcp_dst: number,
            ..TCP
        },
    ];
    for flow in flows {
        let ports = spread(&bed, flow);
        assert!(ports[&2].abs_diff(500) < 60, "{ports:?}");
    }
}

#[test]
fn select_ignores_fields_that_differ_within_a_flow() {
    let bed = bed_of("type=select,bucket=output:2,bucket=output:3,bucket=output:4");
    let ports = bed.send(&TCP.frame()).ports();
    for ttl in 1..=255 {
        let packet = Tcp {
            ttl,
            dscp: ttl & 63,
            ..TCP
        };
        assert_eq!(bed.send(&packet.frame()).ports(), ports);
    }
}

#[test]
fn select_skips_dead_buckets_and_those_of_weight_0() {
    let mut bed = bed_of(
        "type=select,bucket=weight:9,watch_port:2,output:2,bucket=weight:1,output:3,bucket=weight:0,output:4",
    );
    bed.set_port(2, PortConfig::empty(), PortState::LINK_DOWN);
    let ports = spread(&bed, |number| Tcp {
        tcp_src: number,
        ..TCP
    });
    assert_eq!(ports, BTreeMap::from([(3, 1000)]));
}

#[test]
fn a_group_is_added_once_and_modified_or_deleted_if_present() {
    let mut bed = bed_of("type=all,bucket=output:2");
    let text = "group_id=1,type=all,bucket=output:3";
    assert_eq!(
        bed.try_group(Add, text),
        Err(ErrorCode::GroupModFailedGroupExists)
    );
    assert_eq!(bed.try_group(Modify, text), Ok(()));
    assert_eq!(bed.send(&any_frame()).ports(), [3]);
    let unknown = "group_id=2,type=all,bucket=output:3";
    assert_eq!(
        bed.try_group(Modify, unknown),
        Err(ErrorCode::GroupModFailedUnknownGroup)
    );
    assert_eq!(bed.try_group(Delete, "group_id=2"), Ok(()));
    assert_eq!(bed.pipeline.group_descs().len(), 1);
}

#[test]
fn entries_are_removed_with_their_group() {
    let mut bed = bed_of("type=all,bucket=output:2");
    bed.add("send_flow_rem,in_port=1,actions=write_actions(group:1)");
    bed.add("in_port=2,actions=3");
    assert_eq!(bed.try_group(Delete, "group_id=1"), Ok(()));
    assert_eq!(bed.dump(), ["0 packets: in_port=2 actions=output:3"]);
    assert_eq!(bed.removed.len(), 1);
    assert_eq!(bed.removed[0].reason, FlowRemovedReason::GroupDelete);
}

#[test]
fn chained_groups_are_deleted_together() {
    let mut bed = bed_of("type=all,bucket=output:2");
    bed.add_group("group_id=2,type=all,bucket=group:1");
    assert_eq!(bed.try_group(Delete, ""), Ok(()));
    assert!(bed.pipeline.group_descs().is_empty() && bed.dump().is_empty());
    assert_eq!(bed.try_group(Delete, ""), Ok(()));
}

#[test]
fn used_groups_are_not_deleted() {
    let mut bed = bed_of("type=all,bucket=output:2");
    bed.add_group("group_id=2,type=all,bucket=group:1");
    let code = ErrorCode::GroupModFailedChainedGroup;
    assert_eq!(bed.try_group(Delete, "group_id=1"), Err(code));
    assert_eq!(bed.dump().len(), 1);
    assert_eq!(bed.try_group(Delete, "group_id=2"), Ok(()));
    assert_eq!(bed.try_group(Delete, "group_id=1"), Ok(()));
}

#[test]
fn loops_are_refused() {
    let mut bed = bed_of("type=all,bucket=output:2");
    bed.add_group("group_id=2,type=all,bucket=group:1");
    bed.add_group("group_id=3,type=select,bucket=watch_group:2,output:3");
    let code = ErrorCode::GroupModFailedLoop;
    for buckets in ["bucket=group:1", "bucket=group:2", "bucket=group:3"] {
        let text = format!("group_id=1,type=all,{buckets}");
        assert_eq!(bed.try_group(Modify, &text), Err(code), "{buckets}");
    }
    assert_eq!(
        bed.try_group(Add, "group_id=4,type=all,bucket=group:4"),
        Err(code)
    );
    assert_eq!(bed.pipeline.group_descs().len(), 3);
    assert_eq!(bed.send(&any_frame()).ports(), [2], "as it was before");
}

#[test]
fn chains_are_bounded() {
    let mut bed = bed_of("type=all,bucket=output:2");
    for id in 2..=MAX_CHAIN {
        bed.add_group(&format!(
            "group_id={id},type=all,bucket=group:{},bucket=group:{}",
            id - 1,
            id - 1
        ));
    }
    let text = format!(
        "group_id={},type=all,bucket=group:{MAX_CHAIN}",
        MAX_CHAIN + 1
    );
    let code = ErrorCode::GroupModFailedChainingUnsupported;
    assert_eq!(bed.try_group(Add, &text), Err(code));
    bed.add(&format!("actions=group:{MAX_CHAIN}"));
    let copies = bed.send(&any_frame()).sent.len();
    assert!(
        copies <= urtica_pipeline::MAX_BUCKETS_PER_PACKET,
        "{copies}"
    );
}

fn bucket(actions: Vec<Action<'static>>) -> Bucket<'static> {
    Bucket {
        weight: 0,
        watch_port: PortNo::ANY,
        watch_group: GROUP_ANY,
        actions: actions.into(),
    }
}

fn group(group_type: GroupType, buckets: Vec<Bucket<'static>>) -> GroupMod<'static> {
    GroupMod {
        command: Add,
        group_type,
        group_id: 1,
        buckets: buckets.into(),
    }
}

#[track_caller]
fn refused(group_mod: GroupMod) -> ErrorCode {
    let mut bed = Bed::new();
    let refused = bed
        .pipeline
        .group_mod(&group_mod, bed.now, &mut bed.removed);
    assert!(bed.pipeline.group_descs().is_empty());
    refused.expect_err("a bad group mod")
}

#[test]
fn each_error_of_a_group_has_its_code() {
    let one = || vec![bucket(vec![Action::output(PortNo(2))])];
    let all = || group(GroupType::All, one());
    let unknown_type = group(GroupType::Other(9), one());
    assert_eq!(refused(unknown_type), ErrorCode::GroupModFailedBadType);
    let command = GroupMod {
        command: Other(9),
        ..all()
    };
    assert_eq!(refused(command), ErrorCode::GroupModFailedBadCommand);
    for group_id in [0xffff_ff01, 0xffff_fffc, GROUP_ANY] {
        let number = GroupMod { group_id, ..all() };
        assert_eq!(refused(number), ErrorCode::GroupModFailedInvalidGroup);
    }
    for buckets in [vec![], [one(), one()].concat()] {
        let indirect = group(GroupType::Indirect, buckets);
        assert_eq!(refused(indirect), ErrorCode::GroupModFailedInvalidGroup);
    }
    let weighted = Bucket {
        weight: 1,
        ..bucket(vec![])
    };
    let weighted = group(GroupType::All, vec![weighted]);
    assert_eq!(refused(weighted), ErrorCode::GroupModFailedInvalidGroup);
    let many = group(GroupType::All, vec![bucket(vec![]); MAX_BUCKETS + 1]);
    assert_eq!(refused(many), ErrorCode::GroupModFailedOutOfBuckets);
}

#[test]
fn each_error_of_a_bucket_has_its_code() {
    let failover = |bucket| refused(group(GroupType::FastFailover, vec![bucket]));
    let code = ErrorCode::GroupModFailedBadWatch;
    let watch_port = PortNo(9);
    assert_eq!(
        failover(Bucket {
            watch_port,
            ..bucket(vec![])
        }),
        code
    );
    let watch_group = 9;
    assert_eq!(
        failover(Bucket {
            watch_group,
            ..bucket(vec![])
        }),
        code
    );
    let with = |action| failover(bucket(vec![action]));
    assert_eq!(
        with(Action::output(PortNo(9))),
        ErrorCode::BadActionBadOutPort
    );
    assert_eq!(with(Action::Group(9)), ErrorCode::BadActionBadOutGroup);
    assert_eq!(with(Action::PushVlan(1)), ErrorCode::BadActionBadArgument);
}

#[test]
fn the_number_of_groups_is_limited() {
    let mut bed = Bed::new();
    for id in 0..40 {
        bed.add_group(&format!("group_id={id},type=all"));
    }
    let code = ErrorCode::GroupModFailedOutOfGroups;
    assert_eq!(bed.try_group(Add, "group_id=40,type=all"), Err(code));
}

/// Visiting all entries for each group would need minutes.
#[test]
fn many_groups_and_meters_are_reported_and_deleted_with_many_entries() {
    const COUNT: u32 = 20_000;
    let mut pipeline = Pipeline::new(PipelineConfig::default());
    let (now, removed) = (Duration::ZERO, &mut Vec::new());
    for id in 1..=COUNT {
        let group = GroupMod::parse(Add, &format!("group_id={id},type=all"));
        pipeline.group_mod(&group.unwrap(), now, removed).unwrap();
        let meter = format!("meter={id},kbps,band=type=drop,rate=1");
        let meter = MeterMod::parse(MeterModCommand::Add, &meter);
        pipeline.meter_mod(&meter.unwrap(), now, removed).unwrap();
        let entry = format!("table=7,in_port={id},actions=meter:{id},group:{id}");
        let entry = FlowMod::parse(FlowModCommand::Add, &entry).unwrap();
        pipeline.flow_mod(&entry, now, removed).unwrap();
    }
    let groups = pipeline.group_stats(GROUP_ALL, now);
    assert!(groups.iter().all(|group| group.ref_count == 1));
    let meters = pipeline.meter_stats(METER_ALL, now).unwrap();
    assert!(meters.iter().all(|meter| meter.flow_count == 1));
    for id in 1..=COUNT {
        let group = format!("group_id={id}");
        let group = GroupMod::parse(Delete, &group).unwrap();
        pipeline.group_mod(&group, now, removed).unwrap();
        let left = pipeline.tables()[7].entries().len() as u32;
        assert_eq!((left, pipeline.meter_flow_count(id)), (COUNT - id, 0));
    }
}
