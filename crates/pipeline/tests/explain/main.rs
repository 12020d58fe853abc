//! Compares the compiler's results, templates and code, with reviewed files.
//!
//! Each file has entries in `ovs-ofctl`'s syntax, a line `----`, and the result. With `BLESS=1` in the environment, the test
//! writes the second half instead of comparing it.

use std::path::Path;
use std::time::Duration;
use urtica_pipeline::{Burst, CompileConfig, Explanation, Pipeline, PipelineConfig, TemplateKind};
use urtica_wire::{FlowMod, FlowModCommand, MacAddr, Port, PortNo};

const SEPARATOR: &str = "\n----\n";

fn pipeline(entries: &str) -> Pipeline {
    let mut pipeline = Pipeline::new(PipelineConfig::default());
    for number in 1..=3 {
        let port = Port::new(PortNo(number), MacAddr::ZERO, "port");
        pipeline.set_port(port);
    }
    let lines = entries.lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        add(&mut pipeline, line);
    }
    pipeline.compile(CompileConfig::default()).expect("memory");
    pipeline
}

fn add(pipeline: &mut Pipeline, line: &str) {
    let flow_mod = FlowMod::parse(FlowModCommand::Add, line).expect(line);
    pipeline
        .flow_mod(&flow_mod, Duration::ZERO, &mut Vec::new())
        .expect(line);
}

fn explained(pipeline: &Pipeline) -> Explanation {
    pipeline.explain(false).expect("it is compiled")
}

/// Returns `count` lines, each created by `entry`.
fn lines(count: u8, entry: impl Fn(u8) -> String) -> String {
    (1..=count).map(|number| entry(number) + "\n").collect()
}

#[track_caller]
fn assert_blessed(name: &str) {
    if cfg!(not(target_arch = "x86_64")) {
        println!("skipped: the listings are of code for x86-64");
        return;
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/explain")
        .join(name);
    let text = std::fs::read_to_string(&file).expect(name);
    let (entries, blessed) = text
        .split_once(SEPARATOR)
        .expect("entries, ---- and the rest");
    let pipeline = pipeline(entries);
    let explanation = pipeline.explain(true).expect("it is compiled");
    assert_brief(&pipeline, &explanation);
    let explanation = explanation.to_string();
    if std::env::var_os("BLESS").is_some() {
        let text = format!("{entries}{SEPARATOR}{explanation}");
        std::fs::write(&file, text).expect("the file can be written");
        return;
    }
    let mut lines = explanation.lines().zip(blessed.lines());
    let differing = lines.find(|(now, then)| now != then);
    assert!(
        explanation == blessed,
        "{name} has changed, first in {differing:?}; if it is for the better, test again with BLESS=1"
    );
}

/// Compares the brief descriptions with the long one.
#[track_caller]
fn assert_brief(pipeline: &Pipeline, explanation: &Explanation) {
    for table in &explanation.tables {
        let brief = pipeline.brief_form(table.table_id).expect("it is compiled");
        let template = table.template.to_string();
        assert!(brief.starts_with(&template), "{brief}, for {template}");
        let Some(cut) = &table.cut else {
            continue;
        };
        let counts = cut.sub_tables.iter().filter_map(|alike| {
            let count = alike.count?;
            Some(format!("{count} {}", alike.template))
        });
        let rest = cut.sub_tables.last().expect("the rest is last").template;
        let expected = format!(
            "decomposition by {}: sub-tables: {}; for other values: {rest}",
            cut.by,
            counts.collect::<Vec<_>>().join(", ")
        );
        assert_eq!(brief, expected);
    }
}

#[test]
fn a_learning_switch_is_a_compound_hash() {
    assert_blessed("learning.txt");
}

#[test]
fn a_few_entries_are_direct_code() {
    assert_blessed("few.txt");
}

#[test]
fn routes_are_a_trie() {
    assert_blessed("routes.txt");
}

#[test]
fn an_access_list_is_a_tuple_space_and_larger_ones_plain() {
    assert_blessed("access.txt");
}

#[test]
fn lists_of_several_services_are_a_piece_for_each() {
    assert_blessed("services.txt");
}

#[test]
fn routes_of_several_customers_are_a_trie_for_each() {
    assert_blessed("customers.txt");
}

#[test]
fn uncompiled_pipelines_have_no_explanation() {
    let pipeline = Pipeline::new(PipelineConfig::default());
    assert_eq!(pipeline.explain(true), None);
    assert_eq!(pipeline.template(0), None);
    assert_eq!(pipeline.brief_form(0), None);
}

#[test]
fn a_pipeline_without_entries_is_explained() {
    let text = explained(&pipeline("")).to_string();
    assert!(text.ends_with("\nno table has entries\n"), "{text}");
}

#[test]
fn an_explanation_shows_the_form_after_changes() {
    let host = |number| format!("priority=9,dl_dst=02:00:00:00:00:{number:02x} actions=output:1");
    let mut pipeline = pipeline(&lines(6, host));
    let why = |pipeline: &Pipeline| explained(pipeline).tables[0].why.clone();
    assert_eq!(pipeline.template(0), Some(TemplateKind::DirectCode));
    add(&mut pipeline, &host(7));
    assert_eq!(pipeline.template(0), Some(TemplateKind::CompoundHash));
    assert!(
        why(&pipeline).starts_with("7 entries, more than the 6"),
        "{}",
        why(&pipeline)
    );
    for number in [1, 2] {
        let gone = format!("dl_dst=02:00:00:00:00:{number:02x}");
        let flow_mod = FlowMod::parse(FlowModCommand::Delete, &gone).expect("a match");
        let deleted = pipeline.flow_mod(&flow_mod, Duration::ZERO, &mut Vec::new());
        deleted.expect("it is there");
    }
    assert!(
        why(&pipeline).starts_with("5 entries left"),
        "{}",
        why(&pipeline)
    );
}

#[test]
fn far_memory_is_fetched_ahead_and_hidden_entries_are_counted() {
    let hosts = (0..8000).map(|host| {
        format!(
            "priority=9,dl_dst=02:00:00:00:{:02x}:{:02x} actions=output:1\n",
            host >> 8,
            host & 255
        )
    });
    let text: String = hosts
        .chain(["priority=2,actions=drop\npriority=1,arp,actions=drop\n".to_owned()])
        .collect();
    let table = &explained(&pipeline(&text)).tables[0];
    assert_eq!((table.parts.len(), table.hidden_entries), (2, 1));
    let [hosts, everything] = [&table.parts[0], &table.parts[1]];
    assert_eq!((hosts.entries, hosts.looks_at.as_str()), (8000, "dl_dst"));
    assert!(hosts.is_fetched_ahead && hosts.bytes > 8000 * 64);
    assert_eq!(
        (everything.entries, everything.looks_at.as_str()),
        (1, "everything")
    );
    assert!(!everything.is_fetched_ahead);
}

#[test]
fn explanations_give_the_reason_for_the_plain_form() {
    let unknown = pipeline("tun_id=1 actions=output:1\n");
    let table = &explained(&unknown).tables[0];
    assert_eq!(table.template, TemplateKind::PlainForm);
    assert!(
        table.why.ends_with("only the plain form knows: tun_id"),
        "{}",
        table.why
    );
    let brief = unknown.brief_form(0).expect("it is compiled");
    assert!(
        brief.starts_with("plain form: ") && brief.ends_with("only the plain form knows"),
        "{brief}"
    );
    assert_eq!(unknown.brief_form(255), None);
}

#[test]
fn a_list_between_networks_is_a_merged_tuple_space() {
    assert_blessed("networks.txt");
}

#[test]
fn entries_with_many_sets_of_bits_share_hash_tables() {
    let masks = lines(32, |bits| {
        format!("priority={bits},ip,nw_src=10.0.0.0/{bits},nw_dst=10.0.0.0/{bits} actions=drop")
    });
    let pipeline = pipeline(&masks);
    let table = &explained(&pipeline).tables[0];
    assert_eq!(table.template, TemplateKind::MergedTupleSpace);
    let brief = pipeline.brief_form(0).expect("it is compiled");
    assert_eq!(
        brief,
        "merged tuple space: 4 hash tables for 32 sets of bits"
    );
    assert!(
        table
            .why
            .contains("32 different sets of bits, more than the 31")
            && table.why.contains("they share 4"),
        "{}",
        table.why
    );
}

#[test]
fn the_reason_against_a_longest_prefix_match_is_explained() {
    let prefixes = |priority: fn(u8) -> u8| {
        lines(8, |bits| {
            format!(
                "priority={},ip,nw_dst=10.0.0.0/{} actions=output:1",
                priority(bits),
                bits + 7
            )
        })
    };
    let why = |entries: &str| explained(&pipeline(entries)).tables[0].why.clone();
    let in_order = pipeline(&prefixes(|bits| bits));
    assert_eq!(in_order.template(0), Some(TemplateKind::LongestPrefixMatch));
    let upside_down = why(&prefixes(|bits| 20 - bits));
    assert!(
        upside_down.contains("does not always have the higher priority"),
        "{upside_down}"
    );
    let two = prefixes(|bits| bits) + "priority=30,ip,nw_src=10.0.0.0/30 actions=drop\n";
    assert!(
        why(&two).ends_with("the prefixes are not of one address"),
        "{}",
        why(&two)
    );
    let more = prefixes(|bits| bits) + "priority=30,tcp,tp_dst=80 actions=drop\n";
    assert!(
        why(&more).ends_with("not every entry is a prefix of one address alone"),
        "{}",
        why(&more)
    );
}

/// Returns why the compiled form leaves a packet with these bytes to the plain form, and in which table.
fn plain_from(entries: &str, frame: &[u8]) -> Option<(u8, bool, String)> {
    let mut pipeline = pipeline(entries);
    let compiled = pipeline.compile(CompileConfig::default()).expect("memory");
    let mut burst = Burst::new();
    assert!(burst.push(PortNo(1), frame));
    compiled.reader().process(&mut burst, Duration::ZERO);
    let processed = burst.iter().next().expect("a frame");
    let reason = pipeline.why_plain(processed)?;
    Some((reason.table_id, reason.is_searched, reason.why.into_owned()))
}

#[test]
fn the_reason_for_a_packets_plain_form_is_explained() {
    let mut ip = vec![0; 60];
    ip[12..14].copy_from_slice(&[8, 0]);
    ip[14..18].copy_from_slice(&[0x45, 0, 0, 20]);
    ip[22] = 1;
    let mut fragment = ip.clone();
    fragment[20] = 0x20;
    let mut cut_off = ip.clone();
    cut_off[17] = 200;
    for (entries, frame, expected) in [
        ("actions=output:2\n", &ip, None),
        ("actions=FLOOD\n", &ip, None),
        ("actions=output:2,output:3\n", &ip, None),
        (
            "actions=output:2,goto_table:1\n",
            &ip,
            Some((1, true, "no entry matches")),
        ),
        (
            "actions=write_actions(output:2),goto_table:1\ntable=1,actions=drop\n",
            &ip,
            None,
        ),
        (
            "ip,actions=write_actions(dec_ttl,output:2),goto_table:1\ntable=1,actions=drop\n",
            &ip,
            Some((1, true, "its action set has a group")),
        ),
        ("actions=clear_actions\n", &ip, None),
        (
            "actions=write_actions(NORMAL)\n",
            &ip,
            Some((0, true, "its entry does NORMAL")),
        ),
        (
            "ip,actions=dec_ttl,output:2\n",
            &ip,
            Some((0, true, "TTL is too low")),
        ),
        (
            "ip,actions=output:2\n",
            &cut_off,
            Some((0, false, "is cut short")),
        ),
        ("ip,actions=output:2\n", &fragment, None),
        (
            "in_port=2,actions=drop\n",
            &ip,
            Some((0, true, "no entry matches")),
        ),
        (
            "actions=goto_table:1\ntable=1,tun_id=0,actions=drop\n",
            &ip,
            Some((1, false, "tun_id")),
        ),
    ] {
        let told = plain_from(entries, frame);
        match (&told, &expected) {
            (None, None) => {}
            (Some(told), Some(expected)) => {
                assert_eq!(
                    (told.0, told.1),
                    (expected.0, expected.1),
                    "{entries}: {told:?}"
                );
                assert!(told.2.contains(expected.2), "{entries}: {told:?}");
            }
            _ => panic!("{entries}: {told:?}, expected {expected:?}"),
        }
    }
}
