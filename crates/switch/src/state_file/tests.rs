//! Tests of writing, reading and rejecting files.

use super::*;
use crate::SwitchConfig;
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use tempfile::TempDir;
use urtica_pipeline::{FlowEntry, PipelineConfig};
use urtica_wire::{
    FlowMod, FlowModCommand, FlowStatsRequest, GROUP_ALL, GroupMod, GroupModCommand, METER_ALL,
    MacAddr, Match, Message, MeterMod, MeterModCommand, Port, Version,
};

const NOW: Duration = Duration::from_secs(500);

/// Creates a switch with two entries, two groups, the first of which sends packets to the second, and a meter.
fn filled() -> Switch {
    let switch = Switch::new(SwitchConfig::default());
    let at = NOW - Duration::from_secs(20);
    let removed = &mut Vec::new();
    let meter = "meter=4,kbps,burst,band=type=drop,rate=100,burst_size=7";
    let meter = MeterMod::parse(MeterModCommand::Add, meter).unwrap();
    let groups = [
        "group_id=2,type=all,bucket=output:1,bucket=output:9",
        "group_id=1,type=indirect,bucket=group:2",
    ];
    let groups = groups.map(|text| GroupMod::parse(GroupModCommand::Add, text).unwrap());
    let flows = [
        "table=1,cookie=0x7,priority=5,idle_timeout=10,hard_timeout=60,send_flow_rem,in_port=1,actions=meter:4,group:1",
        "priority=9,tcp,tcp_dst=80,actions=set_field:1.2.3.4->ip_dst,goto_table:1",
    ];
    let flows = flows.map(|text| FlowMod::parse(FlowModCommand::Add, text).unwrap());
    switch.shared.change(|pipeline| {
        for number in [1, 9] {
            pipeline.set_port(Port::new(PortNo(number), MacAddr::from_u64(1), "port"));
        }
        pipeline.meter_mod(&meter, at, removed).unwrap();
        for group in &groups {
            pipeline.group_mod(group, at, removed).unwrap();
        }
        for flow in &flows {
            pipeline.flow_mod(flow, at, removed).unwrap();
        }
        let entries = pipeline.flow_stats(&FlowStatsRequest::default()).unwrap();
        entries
            .iter()
            .for_each(|entry| entry.count(100, NOW - Duration::from_secs(3)));
    });
    switch
}

fn numbers() -> BTreeMap<String, PortNo> {
    BTreeMap::from([("eth7".to_owned(), PortNo(7))])
}

/// Writes a switch's state.
fn write(state: &StateFile, shared: &Shared) -> Result<(), StateError> {
    let view = StateView::open(shared).unwrap();
    state.write(view, shared, &numbers(), NOW, &mut || Ok(()))
}

/// Creates a folder, and returns the path of a file in it.
fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    (folder, file)
}

/// Creates a file with the state of the filled switch.
fn written() -> (TempDir, PathBuf) {
    let (folder, file) = folder();
    let state = StateFile::open(&file).unwrap();
    write(&state, &filled().shared).unwrap();
    (folder, file)
}

/// Returns everything that a controller can read.
fn told(switch: &Switch, now: Duration) -> impl PartialEq + std::fmt::Debug + use<> {
    let pipeline = switch.shared.pipeline();
    (
        switch
            .flow_stats(&FlowStatsRequest::default(), now)
            .unwrap(),
        pipeline.group_descs(),
        pipeline.group_stats(GROUP_ALL, now),
        pipeline.meter_configs(METER_ALL).unwrap(),
        pipeline.meter_stats(METER_ALL, now).unwrap(),
    )
}

#[test]
fn written_state_is_restored() {
    let (_folder, file) = written();
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let state = StateFile::open(&file).unwrap();
    assert_eq!(state.port_numbers(), [("eth7".to_owned(), PortNo(7))]);
    let age = state.clock_start().elapsed();
    assert!(age >= Duration::from_secs(20), "{age:?}");
    let mut switch = Switch::new(SwitchConfig::default());
    // This is another clock, which shows 25 s.
    let now = Duration::from_secs(25);
    let restored = switch.restore(&state, now);
    let expected = Restored {
        flows: 2,
        groups: 2,
        meters: 1,
        queues: 0,
        refused: 0,
    };
    assert_eq!(restored, expected);
    assert_eq!(told(&switch, now), told(&filled(), NOW));
    // The last packet arrived 3 s ago, so 7 s of 10 are left.
    switch.handle_timeout(now + Duration::from_millis(6900));
    assert_eq!(switch.entry_count(), 2);
    switch.handle_timeout(now + Duration::from_secs(7));
    assert_eq!(switch.entry_count(), 1);
}

#[test]
fn unsupported_objects_are_skipped_and_counted() {
    let (_folder, file) = written();
    let state = StateFile::open(&file).unwrap();
    let mut switch = Switch::new(SwitchConfig {
        pipeline: PipelineConfig {
            n_tables: 1,
            ..PipelineConfig::default()
        },
        ..SwitchConfig::default()
    });
    let restored = switch.restore(&state, NOW);
    assert_eq!((restored.flows, restored.refused), (0, 2));
}

#[test]
fn without_a_file_nothing_is_restored() {
    let (_folder, file) = folder();
    let state = StateFile::open(&file).unwrap();
    let mut switch = Switch::new(SwitchConfig::default());
    assert_eq!(switch.restore(&state, NOW), Restored::default());
}

#[test]
fn a_file_belongs_to_one_switch() {
    let (_folder, file) = folder();
    let first = StateFile::open(&file).unwrap();
    let refused = StateFile::open(&file).unwrap_err().to_string();
    assert!(refused.contains("used by another switch"), "{refused}");
    drop(first);
    StateFile::open(&file).unwrap();
}

#[test]
fn leftovers_of_a_killed_switch_are_replaced() {
    let (_folder, file) = folder();
    std::fs::write(beside(&file, "new"), "half of a file").unwrap();
    let state = StateFile::open(&file).unwrap();
    write(&state, &filled().shared).unwrap();
    assert!(!beside(&file, "new").exists());
}

#[test]
fn a_failed_write_leaves_the_file_unchanged() {
    let (_folder, file) = written();
    let before = std::fs::read(&file).unwrap();
    // A folder cannot be replaced by a file.
    std::fs::create_dir(beside(&file, "new")).unwrap();
    let state = StateFile::open(&file).unwrap();
    let error = write(&state, &filled().shared);
    let sentence = error.unwrap_err().to_string();
    assert!(
        sentence.contains("cannot write the state file"),
        "{sentence}"
    );
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn a_failed_save_leaves_no_temporary_file() {
    let (_folder, file) = folder();
    let failing = |out: &mut dyn Write| {
        out.write_all(b"half")?;
        Err(io::ErrorKind::StorageFull.into())
    };
    let new = beside(&file, "new");
    let error = replace(&file, &new, failing).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(!new.exists() && !file.exists());
    // A folder cannot be replaced by a file.
    std::fs::create_dir(&file).unwrap();
    replace(&file, &new, |out| out.write_all(b"whole")).unwrap_err();
    assert!(!new.exists());
}

/// Entries of 1.0 differ from others in two properties, which are saved.
#[test]
fn entries_of_1_0_are_restored_as_such() {
    let bytes = [
        [0_u8, 0x2f, 0xff, 0xfd].as_slice(),
        &[0; 14],
        &[0xff, 0xff, 5],
        &[0; 19],
    ];
    let flow_mod = [
        [1, 14, 0, 72, 0, 0, 0, 0].as_slice(),
        &bytes.concat(),
        &[0; 16],
        &[0xff; 6],
        &[0; 2],
    ];
    let frame = flow_mod.concat();
    let (_, Message::FlowMod(flow_mod)) = Message::decode(&frame).unwrap() else {
        panic!("expected a flow mod");
    };
    let switch = Switch::new(SwitchConfig::default());
    let every = FlowMod {
        match_: Match::any(),
        priority: 0,
        ..flow_mod.clone()
    };
    switch.shared.change(|pipeline| {
        for flow_mod in [&flow_mod, &every] {
            let added = pipeline.flow_mod_of10(flow_mod, NOW, &mut Vec::new());
            added.unwrap();
        }
    });
    let (_folder, file) = folder();
    let state = StateFile::open(&file).unwrap();
    write(&state, &switch.shared).unwrap();
    drop(state);
    let mut restored = Switch::new(SwitchConfig::default());
    restored.restore(&StateFile::open(&file).unwrap(), NOW);
    let of = |switch: &Switch| -> Vec<_> {
        let request = FlowStatsRequest::default();
        let entries = switch.shared.pipeline().flow_stats(&request).unwrap();
        let of_entry =
            |entry: &Arc<FlowEntry>| (entry.match_.pcp_of_untagged(), entry.is_table_miss());
        entries.iter().map(of_entry).collect()
    };
    assert_eq!(of(&switch), of(&restored));
    let pcps: Vec<_> = of(&restored).iter().map(|&(pcp, _)| pcp).collect();
    assert!(pcps.contains(&Some(5)), "{pcps:?}");
    assert!(
        of(&restored)
            .iter()
            .all(|&(_, is_table_miss)| !is_table_miss)
    );
}

/// Returns the error message for a file with these bytes.
fn refusal(bytes: &[u8]) -> String {
    let (_folder, file) = folder();
    std::fs::write(&file, bytes).unwrap();
    StateFile::open(&file).unwrap_err().to_string()
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused() {
    let (_folder, file) = written();
    let whole = std::fs::read(&file).unwrap();
    for length in 0..whole.len() {
        assert!(
            SavedState::parse(whole[..length].to_vec()).is_err(),
            "{length}"
        );
    }
    let sentence = refusal(&whole[..whole.len() - 1]);
    assert!(
        sentence.contains("is incomplete") && sentence.contains("expected a file written by"),
        "{sentence}"
    );
}

#[test]
fn a_file_with_any_bit_changed_is_refused() {
    let (_folder, file) = written();
    let whole = std::fs::read(&file).unwrap();
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(SavedState::parse(changed).is_err(), "{at}");
    }
}

#[test]
fn files_of_others_and_of_later_versions_are_refused() {
    let sentence = refusal(b"urtica switch state 9\nwho knows");
    assert!(sentence.contains("another version"), "{sentence}");
    let sentence = refusal(b"#!/bin/sh\n");
    assert!(
        sentence.contains("was not written by a switch"),
        "{sentence}"
    );
    let sentence = refusal(&with_digest(b"X\0\0\0\0"));
    assert!(sentence.contains("cannot be read"), "{sentence}");
}

/// Creates a file with these records, and a valid digest.
fn with_digest(records: &[u8]) -> Vec<u8> {
    let mut bytes = [MAGIC, records].concat();
    let digest = Sha256::digest(&bytes);
    bytes.extend_from_slice(&digest);
    bytes
}

proptest! {
    /// Records are checked even if their digest is valid: a user who can write the file must only be able to set entries.
    #[test]
    fn no_records_cause_a_panic(at in any::<prop::sample::Index>(), bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let (_folder, file) = written();
        let whole = std::fs::read(&file).unwrap();
        let mut records = whole[MAGIC.len()..whole.len() - DIGEST_BYTES].to_vec();
        let at = at.index(records.len());
        let end = records.len().min(at + bytes.len());
        records.splice(at..end, bytes);
        if let Ok(saved) = SavedState::parse(with_digest(&records)) {
            let mut restored = Restored::default();
            saved.restore(&mut Pipeline::new(PipelineConfig::default()), NOW, &mut restored);
        }
    }
}

/// Creates a run's id from one byte.
fn run_of(byte: u8) -> RunId {
    RunId([byte; 16])
}

/// Returns a pipeline's contents, without values that depend on the time.
fn held(pipeline: &Pipeline) -> impl PartialEq + std::fmt::Debug + use<> {
    let entries = pipeline.flow_stats(&FlowStatsRequest::default()).unwrap();
    let entry = |entry: &Arc<FlowEntry>| {
        let stats = entry.to_stats(NOW);
        let match_: Vec<_> = stats.match_.fields().collect();
        let instructions: Vec<_> = stats.instructions.iter().collect();
        let place = (stats.table_id, stats.priority);
        format!("{place:?} {} {match_:?} {instructions:?}", stats.cookie)
    };
    let entries: Vec<_> = entries.iter().map(entry).collect();
    let meters = pipeline.meter_configs(METER_ALL).unwrap();
    (entries, pipeline.group_descs(), meters)
}

fn small() -> Pipeline {
    Pipeline::new(PipelineConfig {
        n_tables: 3,
        ..PipelineConfig::default()
    })
}

fn empty() -> Shared {
    Shared::new(small(), None)
}

/// Makes one of several changes to a pipeline, which may be refused or have no effect.
fn change(pipeline: &mut Pipeline, choice: u8) {
    use FlowModCommand::{Add, Delete, DeleteStrict, Modify};
    let (kind, one, other) = (choice % 9, choice / 9 % 3, choice / 27 % 2);
    let entry = format!("table={one},priority={other},in_port={}", other + 1);
    let removed = &mut Vec::new();
    let flow = |command, text: String| FlowMod::parse(command, &text).unwrap();
    let flow_mod = match kind {
        0 => flow(Add, format!("{entry},cookie={choice},actions=drop")),
        1 => flow(Add, format!("{entry},actions=group:1")),
        2 => flow(Modify, format!("table={one},actions=set_queue:{other}")),
        3 => flow(DeleteStrict, entry),
        4 => flow(Delete, format!("table={one}")),
        5 | 6 => {
            let text = format!("group_id={},type=all,bucket=set_queue:{one}", other + 1);
            let command = match kind {
                5 => GroupModCommand::Add,
                _ => GroupModCommand::Delete,
            };
            let text = match kind {
                5 => text,
                _ => format!("group_id={}", other + 1),
            };
            let group_mod = GroupMod::parse(command, &text).unwrap();
            let _ = pipeline.group_mod(&group_mod, NOW, removed);
            return;
        }
        7 => {
            let text = format!("meter={},kbps,band=type=drop,rate=100", one + 1);
            let meter_mod = MeterMod::parse(MeterModCommand::Add, &text).unwrap();
            let _ = pipeline.meter_mod(&meter_mod, NOW, removed);
            return;
        }
        _ => flow(
            Add,
            format!("{entry},dl_type=0x800,idle_timeout=9,actions=drop"),
        ),
    };
    let _ = pipeline.flow_mod(&flow_mod, NOW, removed);
}

/// Creates a file with a switch's entries, as written by a run after this number of changes.
fn file_of(shared: &Shared, id: RunId, previous: Option<RunId>, sequence: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let view = StateView {
        sequence,
        ..StateView::open(shared).unwrap()
    };
    let run = RunRecord {
        id,
        previous,
        sequence,
        now: NOW,
    };
    let mut writer = Writer::new(&mut bytes);
    writer
        .write_all(view, run, &BTreeMap::new(), shared, &mut || Ok(()))
        .unwrap();
    bytes
}

/// Restores a file and a journal.
fn put_back(file: &[u8], journal: &[u8]) -> Result<Pipeline, StateError> {
    let mut saved = SavedState::parse(file.to_vec()).unwrap();
    saved.take_journal(journal.to_vec(), Path::new("journal"))?;
    let mut pipeline = small();
    let mut restored = Restored::default();
    saved.restore(&mut pipeline, NOW, &mut restored);
    assert_eq!(restored.refused, 0);
    Ok(pipeline)
}

/// This holds even if no entry has changed since the whole file was written.
#[test]
fn port_numbers_in_a_journal_count() {
    let id = run_of(1);
    let file = file_of(&empty(), id, None, 5);
    let mut journal = journal::header(id);
    Journal::put_numbers(id, numbers().iter(), NOW, &mut journal);
    let mut saved = SavedState::parse(file).unwrap();
    saved.take_journal(journal, Path::new("journal")).unwrap();
    let is_port = |record: &Record| matches!(record, Record::Port(PortNo(7), "eth7"));
    assert!(saved.records().any(|(record, _)| is_port(&record)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The restored state is that after some change, and not before the last complete one in the journal, since a barrier is
    /// answered when its changes are durable.
    #[test]
    fn a_truncated_journal_is_a_prefix_of_the_changes(choices in prop::collection::vec(any::<u8>(), 1..14)) {
        let id = run_of(1);
        let mut pipeline = small();
        let file = file_of(&empty(), id, None, 0);
        pipeline.log_changes();
        let mut journal = journal::header(id);
        let mut states = vec![(journal.len(), held(&pipeline))];
        for (sequence, choice) in (1..).zip(choices) {
            change(&mut pipeline, choice);
            let changes = pipeline.take_logged();
            Journal::put_changes(id, sequence, &changes, NOW, &mut journal);
            states.push((journal.len(), held(&pipeline)));
        }
        for cut in 0..=journal.len() {
            let whole = states.iter().rev().find(|(end, _)| *end <= cut);
            let (_, expected) = whole.unwrap_or(&states[0]);
            let found = put_back(&file, &journal[..cut]).unwrap();
            prop_assert_eq!(&held(&found), expected, "cut at {}", cut);
        }
    }

    /// A changed byte ends the journal there.
    #[test]
    fn a_journal_with_a_changed_byte_ends_there(choices in prop::collection::vec(any::<u8>(), 1..8), at in any::<prop::sample::Index>()) {
        let id = run_of(1);
        let mut pipeline = small();
        let file = file_of(&empty(), id, None, 0);
        pipeline.log_changes();
        let mut journal = journal::header(id);
        let mut states = vec![(journal.len(), held(&pipeline))];
        for (sequence, choice) in (1..).zip(choices) {
            change(&mut pipeline, choice);
            let changes = pipeline.take_logged();
            Journal::put_changes(id, sequence, &changes, NOW, &mut journal);
            states.push((journal.len(), held(&pipeline)));
        }
        let at = journal::HEADER_BYTES + at.index(journal.len() - journal::HEADER_BYTES);
        journal[at] ^= 0x10;
        let (_, expected) = states.iter().rev().find(|(end, _)| *end <= at).unwrap();
        let found = put_back(&file, &journal).unwrap();
        prop_assert_eq!(&held(&found), expected);
    }
}

/// Changes that the file contains are skipped in the journal.
#[test]
fn a_journal_older_than_its_file_is_applied_from_the_file_on() {
    let id = run_of(1);
    let shared = empty();
    shared.pipeline_mut().log_changes();
    let mut journal = journal::header(id);
    let mut file = Vec::new();
    for (sequence, choice) in [(1, 0), (2, 4), (3, 27), (4, 9)] {
        let mut pipeline = shared.pipeline_mut();
        change(&mut pipeline, choice);
        let changes = pipeline.take_logged();
        drop(pipeline);
        Journal::put_changes(id, sequence, &changes, NOW, &mut journal);
        if sequence == 3 {
            file = file_of(&shared, id, None, 3);
        }
    }
    let found = put_back(&file, &journal).unwrap();
    assert_eq!(held(&found), held(&shared.pipeline()));
}

#[test]
fn a_journal_of_another_run_is_refused_unless_the_file_has_it() {
    let file = file_of(&empty(), run_of(2), Some(run_of(1)), 0);
    put_back(&file, &journal::header(run_of(1))).unwrap();
    let refused = put_back(&file, &journal::header(run_of(3))).err().unwrap();
    let sentence = refused.to_string();
    assert!(sentence.contains("does not belong"), "{sentence}");
    assert!(put_back(&file, b"#!/bin/sh").is_err());
    let (_folder, file) = folder();
    std::fs::write(beside(&file, "journal"), journal::header(run_of(1))).unwrap();
    let alone = StateFile::open(&file).unwrap_err();
    assert!(matches!(alone, StateError::ForeignJournal(_)));
}

#[test]
fn a_full_disk_is_an_error_of_the_journal() {
    let options = OpenOptions::new().write(true).open("/dev/full");
    let mut journal = Journal {
        file: options.unwrap(),
        bytes: 0,
    };
    let error = journal.append(&[0; 100]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(journal.bytes(), 0);
}

/// Creates a switch whose barriers wait for the disk, with a controller, and the journal's end of the feed.
fn with_barriers() -> (
    Switch,
    crate::ConnectionId,
    Arc<Feed>,
    std::sync::mpsc::Receiver<Item>,
) {
    let mut switch = Switch::new(SwitchConfig::default());
    let (sender, items) = std::sync::mpsc::channel();
    let feed = Arc::new(Feed::new(sender, true));
    switch.shared.set_feed(Arc::clone(&feed));
    let controller = switch.connect("controller".into(), NOW);
    let hello = [4, 0, 0, 8, 0, 0, 0, 1];
    switch.handle_input(controller, &hello, NOW).unwrap();
    switch.output(controller).unwrap().clear();
    (switch, controller, feed, items)
}

/// Creates an entry and a barrier after it.
fn entry_and_barrier() -> Vec<u8> {
    let flow_mod = FlowMod::parse(FlowModCommand::Add, "actions=drop").unwrap();
    let mut bytes = Vec::new();
    for message in [Message::FlowMod(flow_mod), Message::BarrierRequest] {
        message.encode(Version::Of13, 7, &mut bytes).unwrap();
    }
    bytes
}

#[test]
fn a_barrier_waits_for_the_disk() {
    let (mut switch, controller, feed, items) = with_barriers();
    switch
        .handle_input(controller, &entry_and_barrier(), NOW)
        .unwrap();
    while switch.poll_output(NOW) {}
    assert!(switch.output(controller).unwrap().is_empty());
    assert!(matches!(items.try_recv(), Ok(Item::Changes(1, _))));
    assert!(matches!(items.try_recv(), Ok(Item::Sync)));
    feed.note_durable(1);
    while switch.poll_output(NOW) {}
    let reply = switch.output(controller).unwrap().clone();
    assert_eq!(reply, [4, 21, 0, 8, 0, 0, 0, 7]);
}

#[test]
fn a_barrier_is_refused_while_the_disk_is_full() {
    let (mut switch, controller, feed, _items) = with_barriers();
    switch
        .handle_input(controller, &entry_and_barrier(), NOW)
        .unwrap();
    feed.note_failure();
    while switch.poll_output(NOW) {}
    let reply = switch.output(controller).unwrap().clone();
    // OFPT_ERROR with OFPET_BAD_REQUEST and OFPBRC_EPERM, about the barrier.
    assert_eq!(reply[..12], [4, 1, 0, 20, 0, 0, 0, 7, 0, 1, 0, 5]);
    assert_eq!(switch.entry_count(), 1, "the switch goes on");
}
