//! Finding entries in steps, compared with finding them at once.

use crate::support::port;
use std::sync::Arc;
use std::time::Duration;
use urtica_pipeline::{FlowEntry, Pipeline, PipelineConfig};
use urtica_wire::{
    ErrorCode, FlowMod, FlowModCommand, FlowStats, FlowStatsRequest, GROUP_ANY, Match, PortNo,
    TABLE_ALL,
};

/// Entries of three tables, with several priorities and masks.
fn pipeline() -> Pipeline {
    let mut pipeline = Pipeline::new(PipelineConfig {
        n_tables: 3,
        ..PipelineConfig::default()
    });
    for number in 1..=3 {
        pipeline.set_port(port(number));
    }
    for number in 0..3000_u32 {
        let text = match number % 4 {
            0 => format!(
                "dl_dst=02:00:00:00:{:02x}:{:02x}",
                number >> 8,
                number & 0xff
            ),
            1 => format!("in_port={},dl_src=02:00:00:00:00:01", number % 7 + number),
            2 => format!("ip,nw_dst=10.{}.{}.0/24", number >> 8, number & 0xff),
            _ => format!("in_port={}", number),
        };
        let (table, priority, cookie) = (number % 3, number * 7 % 5, number % 10);
        let text = format!(
            "table={table},priority={priority},cookie={cookie},{text},actions=output:{}",
            number % 3 + 1
        );
        change(&mut pipeline, FlowModCommand::Add, &text);
    }
    pipeline
}

fn change(pipeline: &mut Pipeline, command: FlowModCommand, text: &str) {
    let flow_mod = FlowMod::parse(command, text).expect(text);
    let changed = pipeline.flow_mod(&flow_mod, Duration::ZERO, &mut Vec::new());
    changed.expect(text);
}

fn all() -> FlowStatsRequest<'static> {
    FlowStatsRequest {
        table_id: TABLE_ALL,
        out_port: PortNo::ANY,
        out_group: GROUP_ANY,
        ..FlowStatsRequest::default()
    }
}

fn matching(text: &str) -> FlowStatsRequest<'static> {
    let flow_mod = FlowMod::parse(FlowModCommand::Add, &format!("{text},actions=drop"));
    let match_: Vec<_> = flow_mod.expect(text).match_.fields().collect();
    FlowStatsRequest {
        match_: Match::from(match_),
        ..all()
    }
}

/// Returns everything that a walk with `looks` visited entries per step finds, and the number of steps.
fn walk(
    pipeline: &Pipeline,
    request: &FlowStatsRequest,
    looks: usize,
) -> (Vec<Arc<FlowEntry>>, usize) {
    let mut walk = pipeline.walk_flows(request).expect("a good request");
    let (mut found, mut steps) = (Vec::new(), 0);
    while !walk.is_over() {
        found.extend(walk.go_on(pipeline, &mut looks.clone()).expect("no change"));
        steps += 1;
    }
    (found, steps)
}

#[test]
fn walks_find_equal_entries_in_equal_order() {
    let pipeline = pipeline();
    let requests = [
        all(),
        FlowStatsRequest {
            table_id: 1,
            ..all()
        },
        FlowStatsRequest {
            cookie: 3,
            cookie_mask: u64::MAX,
            ..all()
        },
        FlowStatsRequest {
            out_port: PortNo(2),
            ..all()
        },
        matching("in_port=3"),
        matching("in_port=8"),
        matching("ip"),
        matching("ip,nw_dst=10.2.0.0/16"),
        matching("dl_dst=02:00:00:00:00:04"),
        matching("dl_dst=02:00:00:00:00:05"),
    ];
    for request in &requests {
        let expected = pipeline.flow_stats(request).expect("a good request");
        for looks in [1, 2, 7, 300, 1_000_000] {
            let (found, _) = walk(&pipeline, request, looks);
            assert_eq!(
                found.len(),
                expected.len(),
                "{request:?}, {looks} at a time"
            );
            let mut pairs = found.iter().zip(&expected);
            assert!(pairs.all(|(one, other)| Arc::ptr_eq(one, other)));
        }
    }
}

#[test]
fn a_step_visits_at_most_its_limit() {
    let pipeline = pipeline();
    let (found, steps) = walk(&pipeline, &all(), 100);
    assert_eq!((found.len(), steps), (3000, 30));
    let one = matching("dl_dst=02:00:00:00:00:04");
    let (found, steps) = walk(&pipeline, &one, 100);
    assert_eq!((found.len(), steps), (1, 1), "few others can be the one");
}

#[test]
fn growing_tables_are_walked_to_the_end() {
    let mut pipeline = pipeline();
    let mut walk = pipeline.walk_flows(&all()).expect("a good request");
    let mut found = 0;
    for number in 0.. {
        if walk.is_over() {
            break;
        }
        found += walk.go_on(&pipeline, &mut 10).expect("few changes").len();
        for more in 0..2 {
            let text = format!(
                "table={},priority=0,in_port={},actions=drop",
                number % 3,
                10_000 + 2 * number + more
            );
            change(&mut pipeline, FlowModCommand::Add, &text);
        }
    }
    assert_eq!(found, 3000);
}

/// Returns the rows of a reply for these entries.
fn rows(entries: &[Arc<FlowEntry>]) -> Vec<FlowStats<'static>> {
    let rows = entries.iter().map(|entry| entry.to_stats(Duration::ZERO));
    rows.collect()
}

/// Returns a number below `bound`, random enough to choose changes between steps.
fn below(seed: &mut u64, bound: u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % bound
}

/// Returns one of many changes: to one entry, or to all with a cookie, in a table, or within a match.
fn random_change(seed: &mut u64) -> (FlowModCommand, String) {
    use FlowModCommand::*;
    let (table, cookie, port) = (below(seed, 3), below(seed, 10), below(seed, 3000));
    let priority = below(seed, 5);
    let one = format!("table={table},priority={priority},in_port={port}");
    match below(seed, 8) {
        0 => (
            Delete,
            format!("table={table},cookie={cookie}/0xffffffffffffffff"),
        ),
        1 => (Delete, format!("table={table},in_port={port}")),
        2 => (DeleteStrict, one),
        3 => (Modify, format!("table={table},ip,actions=output:3")),
        4 => (
            Modify,
            format!("table={table},in_port={port},actions=output:1"),
        ),
        5 => (Add, format!("{one},cookie={cookie},actions=output:2")),
        6 => (Add, format!("{one},reset_counts,cookie=99,actions=drop")),
        _ => (
            Add,
            format!("table={table},priority=9,cookie=3,in_port={port},actions=output:2"),
        ),
    }
}

/// The model of a walk is the list at its start.
#[test]
fn walks_show_the_tables_at_their_start() {
    let requests = [
        all(),
        FlowStatsRequest {
            table_id: 2,
            ..all()
        },
        FlowStatsRequest {
            cookie: 3,
            cookie_mask: u64::MAX,
            ..all()
        },
        FlowStatsRequest {
            out_port: PortNo(2),
            ..all()
        },
        matching("in_port=8"),
        matching("ip,nw_dst=10.2.0.0/16"),
        matching("dl_dst=02:00:00:00:00:04"),
    ];
    for seed in 0..60_u64 {
        let (mut pipeline, mut random) = (pipeline(), seed);
        let request = &requests[seed as usize % requests.len()];
        let expected = rows(&pipeline.flow_stats(request).expect("a good request"));
        let mut walk = pipeline.walk_flows(request).expect("a good request");
        let mut found = Vec::new();
        while !walk.is_over() {
            for _ in 0..below(&mut random, 3) {
                let (command, text) = random_change(&mut random);
                change(&mut pipeline, command, &text);
            }
            let mut looks = 1 + below(&mut random, 400) as usize;
            found.extend(walk.go_on(&pipeline, &mut looks).expect("few changes"));
        }
        assert_eq!(rows(&found), expected, "seed {seed}, {request:?}");
    }
}

#[test]
fn concurrent_walks_each_show_their_start() {
    let mut pipeline = pipeline();
    let (mut walks, mut expected) = (Vec::new(), Vec::new());
    for cookie in 0..4 {
        expected.push(rows(&pipeline.flow_stats(&all()).expect("a good request")));
        walks.push(pipeline.walk_flows(&all()).expect("a good request"));
        let text = format!("table={},cookie={cookie}/0xffffffffffffffff", cookie % 3);
        change(&mut pipeline, FlowModCommand::Delete, &text);
    }
    change(&mut pipeline, FlowModCommand::Delete, "table=0");
    for (mut walk, expected) in walks.into_iter().zip(expected) {
        let found = walk
            .go_on(&pipeline, &mut { usize::MAX })
            .expect("few changes");
        assert_eq!(rows(&found), expected);
    }
}

#[test]
fn replaced_entries_keep_their_last_counters() {
    let mut pipeline = pipeline();
    let request = matching("dl_dst=02:00:00:00:00:04");
    let entries = pipeline.flow_stats(&request).expect("a good request");
    entries[0].count(100, Duration::ZERO);
    let mut walk = pipeline.walk_flows(&request).expect("a good request");
    let text = "table=1,dl_dst=02:00:00:00:00:04,actions=output:3";
    change(&mut pipeline, FlowModCommand::Modify, text);
    let now = pipeline.flow_stats(&request).expect("a good request");
    now[0].count(100, Duration::ZERO);
    let found = walk
        .go_on(&pipeline, &mut { usize::MAX })
        .expect("few changes");
    assert_eq!(
        (found[0].counted().packets, now[0].counted().packets),
        (1, 2)
    );
}

#[test]
fn refusals() {
    let pipeline = pipeline();
    let nowhere = FlowStatsRequest {
        table_id: 3,
        ..all()
    };
    let refused = pipeline.walk_flows(&nowhere).err();
    assert_eq!(refused, Some(ErrorCode::BadRequestBadTableId));
}
