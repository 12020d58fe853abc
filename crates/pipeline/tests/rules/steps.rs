//! Changes to many entries in steps, compared with changes made at once.

use crate::support::port;
use std::time::Duration;
use urtica_pipeline::{
    EntryChange, Packet, PacketInCause, Pipeline, PipelineConfig, RemovedEntry, Sink,
};
use urtica_wire::{
    FlowMod, FlowModCommand, FlowStatsRequest, GROUP_ANY, GroupMod, GroupModCommand, MeterMod,
    MeterModCommand, PortNo, TABLE_ALL, Version,
};

#[derive(Default)]
struct Sent(Vec<PortNo>);

impl Sink for Sent {
    fn transmit(&mut self, port: PortNo, _packet: &Packet) {
        self.0.push(port);
    }

    fn packet_in(&mut self, _packet: &Packet, _cause: PacketInCause) {}

    fn normal(&mut self, _packet: &Packet) {}
}

/// Creates entries with several priorities and masks, some of which hide others.
fn pipeline() -> Pipeline {
    let mut pipeline = Pipeline::new(PipelineConfig {
        n_tables: 3,
        ..PipelineConfig::default()
    });
    for number in 1..=3 {
        pipeline.set_port(port(number));
    }
    let group = "group_id=1,type=all,bucket=output:1";
    let group = GroupMod::parse(GroupModCommand::Add, group).expect(group);
    pipeline
        .group_mod(&group, Duration::ZERO, &mut Vec::new())
        .expect("a group");
    let meter = "meter=1,kbps,band=type=drop,rate=1000";
    let meter = MeterMod::parse(MeterModCommand::Add, meter).expect(meter);
    pipeline
        .meter_mod(&meter, Duration::ZERO, &mut Vec::new())
        .expect("a meter");
    for number in 0..3000_u32 {
        let match_ = match number % 4 {
            0 => format!("dl_dst=02:00:00:00:00:{:02x}", number % 250),
            1 => format!("in_port={}", number % 9),
            2 => format!(
                "dl_dst=02:00:00:00:00:{:02x},in_port={}",
                number % 250,
                number % 9
            ),
            _ => format!(
                "dl_dst=02:00:00:00:00:{:02x}/ff:ff:ff:ff:ff:f0",
                number % 16 * 16
            ),
        };
        let actions = match number % 5 {
            0 => "group:1".to_owned(),
            1 => "meter:1,output:1".to_owned(),
            _ => format!("output:{}", number % 3 + 1),
        };
        let text = format!(
            "table={},priority={},cookie={},send_flow_rem,{match_},actions={actions}",
            number % 2,
            number * 7 % 50,
            number % 10,
        );
        change(&mut pipeline, FlowModCommand::Add, &text);
    }
    pipeline
}

fn change(pipeline: &mut Pipeline, command: FlowModCommand, text: &str) -> Vec<RemovedEntry> {
    let mut removed = Vec::new();
    let change = begin(pipeline, command, text);
    if let Some(mut change) = change {
        assert!(pipeline.go_on(&mut change, &mut { usize::MAX }, &mut removed));
    }
    removed
}

fn begin(pipeline: &mut Pipeline, command: FlowModCommand, text: &str) -> Option<EntryChange> {
    let flow_mod = FlowMod::parse(command, text).expect(text);
    let begun = pipeline.begin_flow_mod(Version::Of13, &flow_mod, Duration::ZERO);
    begun.expect(text)
}

/// Returns the entries, without ages.
fn entries(pipeline: &Pipeline) -> Vec<String> {
    let request = FlowStatsRequest {
        table_id: TABLE_ALL,
        out_port: PortNo::ANY,
        out_group: GROUP_ANY,
        ..FlowStatsRequest::default()
    };
    let entries = pipeline.flow_stats(&request).expect("a request");
    let stats = entries.iter().map(|entry| entry.to_stats(Duration::ZERO));
    stats.map(|stats| format!("{stats:?}")).collect()
}

/// Returns the outputs for packets of each kind in table 0.
fn outcomes(pipeline: &Pipeline) -> Vec<Vec<PortNo>> {
    let kinds = (0..=255_u8).flat_map(|host| (0..9).map(move |port| (host, port)));
    let outcome = |(host, port): (u8, u32)| {
        let mut frame = [0; 60];
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, host]);
        let mut sent = Sent::default();
        pipeline.process(Packet::new(PortNo(port), &frame), Duration::ZERO, &mut sent);
        sent.0
    };
    kinds.map(outcome).collect()
}

/// Carries out a change in steps, and calls `between` after each.
fn step_through(
    pipeline: &mut Pipeline,
    mut change: EntryChange,
    mut between: impl FnMut(&mut Pipeline, usize),
) -> Vec<RemovedEntry> {
    let mut removed = Vec::new();
    for step in 0.. {
        let mut looks = 16;
        let is_complete = pipeline.go_on(&mut change, &mut looks, &mut removed);
        between(pipeline, step);
        if is_complete {
            break;
        }
    }
    removed
}

/// Returns the properties of removed entries, in any order.
fn told(removed: &[RemovedEntry]) -> Vec<String> {
    let told = removed.iter();
    let mut told: Vec<_> = told
        .map(|gone| format!("{:?}", gone.to_wire(Duration::ZERO)))
        .collect();
    told.sort_unstable();
    told
}

const CHANGES: [(FlowModCommand, &str); 7] = [
    (FlowModCommand::Delete, "table=255"),
    (FlowModCommand::Delete, "table=0"),
    (FlowModCommand::Delete, "table=0,cookie=2/0xffff"),
    (FlowModCommand::Delete, "table=0,in_port=3"),
    (FlowModCommand::Delete, "table=255,out_port=2"),
    (FlowModCommand::Modify, "table=0,actions=output:3"),
    (
        FlowModCommand::Modify,
        "table=0,cookie=4/0xffff,actions=drop",
    ),
];

#[test]
fn steps_equal_one_change() {
    for (command, text) in CHANGES {
        let (mut whole, mut in_steps) = (pipeline(), pipeline());
        let expected = change(&mut whole, command, text);
        let begun = begin(&mut in_steps, command, text).expect("many entries");
        let mut steps = 0;
        let removed = step_through(&mut in_steps, begun, |_, step| steps = step);
        assert_eq!(told(&removed), told(&expected), "{text}");
        assert_eq!(entries(&in_steps), entries(&whole), "{text}");
        assert!(steps > 3, "{text} took {steps} steps");
    }
}

#[test]
fn packets_see_the_state_before_or_after() {
    for (command, text) in CHANGES {
        let (mut whole, mut in_steps) = (pipeline(), pipeline());
        let before = outcomes(&whole);
        change(&mut whole, command, text);
        let after = outcomes(&whole);
        let begun = begin(&mut in_steps, command, text).expect("many entries");
        step_through(&mut in_steps, begun, |pipeline, step| {
            if step % 16 != 0 {
                return;
            }
            let now = outcomes(pipeline);
            for (now, (before, after)) in now.iter().zip(before.iter().zip(&after)) {
                assert!(now == before || now == after, "{text}: {now:?}");
            }
        });
        assert_eq!(outcomes(&in_steps), after, "{text}");
    }
}

#[test]
fn entries_added_between_steps_stay_and_removed_ones_are_skipped() {
    let mut pipeline = pipeline();
    let begun = begin(&mut pipeline, FlowModCommand::Delete, "table=0");
    step_through(&mut pipeline, begun.expect("many"), |pipeline, step| {
        if step == 0 {
            let new = "table=0,priority=60000,in_port=1,actions=output:2";
            change(pipeline, FlowModCommand::Add, new);
            change(pipeline, FlowModCommand::Delete, "table=0,in_port=2");
        }
    });
    let left: Vec<_> = entries(&pipeline);
    let of_table_0 = left.iter().filter(|row| row.contains("table_id: 0"));
    assert_eq!(of_table_0.count(), 1);
}

#[test]
fn deleting_a_group_removes_entries_a_modify_would_make_use_it() {
    let mut pipeline = pipeline();
    let modify = "table=0,actions=group:1";
    let begun = begin(&mut pipeline, FlowModCommand::Modify, modify);
    step_through(&mut pipeline, begun.expect("many"), |pipeline, step| {
        if step == 3 {
            let delete = GroupMod::parse(GroupModCommand::Delete, "group_id=1").expect("a delete");
            let deleted = pipeline.group_mod(&delete, Duration::ZERO, &mut Vec::new());
            deleted.expect("nothing refers to it but entries");
        }
    });
    assert_eq!(pipeline.group_ref_count(1), 0);
    let left = entries(&pipeline);
    assert!(left.iter().all(|row| !row.contains("table_id: 0")));
}

#[test]
fn users_of_groups_and_meters_are_removed_in_steps() {
    let mut pipeline = pipeline();
    let (all, users) = (entries(&pipeline).len(), pipeline.group_ref_count(1));
    let metered = pipeline.meter_flow_count(1);
    let delete = GroupMod::parse(GroupModCommand::Delete, "group_id=1").expect("a delete");
    let begun = pipeline.begin_group_mod(&delete, Duration::ZERO);
    let removed = step_through(
        &mut pipeline,
        begun.expect("it is there").expect("users"),
        |_, _| {},
    );
    assert_eq!(removed.len(), users as usize);
    assert_eq!(pipeline.group_ref_count(1), 0);
    let delete = MeterMod::parse(MeterModCommand::Delete, "meter=all").expect("a delete");
    let begun = pipeline.begin_meter_mod(&delete, Duration::ZERO);
    let removed = step_through(
        &mut pipeline,
        begun.expect("it is there").expect("users"),
        |_, _| {},
    );
    assert_eq!(removed.len(), metered as usize);
    assert_eq!(pipeline.meter_flow_count(1), 0);
    assert_eq!(entries(&pipeline).len(), all - (users + metered) as usize);
    assert!(users > 100 && metered > 100);
}
