use super::super::{Journal, Restored, StateFile, StateView};
use super::*;
use crate::port::memory::{MemoryPort, pair};
use crate::shared::Shared;
use crate::state_file::{Feed, Item};
use crate::{QueueError, Switch, SwitchConfig};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use urtica_wire::{MacAddr, PortNo};

const NOW: Duration = Duration::from_secs(5);

/// Creates queues with these numbers, for a port of 10 Mbit/s.
fn queues(ids: &[u32]) -> PortQueues {
    let queue = Queue {
        min_rate_bps: Some(1_000_000),
        priority: 3,
        ..Queue::default()
    };
    PortQueues {
        rate_bps: Some(10_000_000),
        queues: ids.iter().map(|&id| (id, queue)).collect(),
    }
}

/// Creates two ports, `p0` and `p1`.
fn ports() -> (MemoryPort, MemoryPort) {
    let [one, other] = [1, 2].map(MacAddr::from_u64);
    pair(("p0", one), ("p1", other), 8)
}

/// Creates a switch whose ports, `p0` and `p1`, both start with these queues.
fn switch(configured: &PortQueues) -> Switch {
    let mut switch = Switch::new(SwitchConfig::default());
    let (one, other) = ports();
    switch.add_port(PortNo(1), Box::new(one), NOW);
    switch.add_port(PortNo(2), Box::new(other), NOW);
    for port in ["p0", "p1"] {
        switch
            .configure_queues(port, configured.clone(), NOW)
            .unwrap();
    }
    switch
}

fn set(switch: &mut Switch, port: &str, queues: &PortQueues) {
    let change = |_, settings: &mut PortQueues| -> Result<(), QueueError> {
        *settings = queues.clone();
        Ok(())
    };
    switch.change_queues(port, change, NOW).unwrap();
}

fn write(file: &Path, shared: &Shared) -> StateFile {
    let state = StateFile::open(file).unwrap();
    let view = StateView::open(shared).unwrap();
    let written = state.write(view, shared, &BTreeMap::new(), NOW, &mut || Ok(()));
    written.unwrap();
    state
}

/// Restarts a switch with these queues. Returns the queues of both ports, and the number of ports whose queues were restored.
fn restart(file: &Path, configured: &PortQueues) -> ([PortQueues; 2], usize) {
    let mut switch = switch(configured);
    let Restored {
        queues, refused, ..
    } = switch.restore(&StateFile::open(file).unwrap(), NOW);
    assert_eq!(refused, 0);
    let found = [1, 2].map(|number| switch.queues(PortNo(number)).unwrap_or_default());
    (found, queues)
}

#[test]
fn a_restart_keeps_changes_unless_the_configured_queues_have_changed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    for before in [PortQueues::default(), queues(&[1])] {
        let mut old = switch(&before);
        set(&mut old, "p1", &queues(&[1, 7]));
        drop(write(&file, &old.shared));
        let (found, restored) = restart(&file, &before);
        assert_eq!(found, [before.clone(), queues(&[1, 7])]);
        assert_eq!(restored, 1, "the other port has no changes");
        let edited = queues(&[2]);
        let (found, restored) = restart(&file, &edited);
        assert_eq!(found, [edited.clone(), edited]);
        assert_eq!(restored, 0);
    }
}

/// Deleting configured queues is also a change; setting them again is none.
#[test]
fn deleted_queues_stay_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    let configured = queues(&[1]);
    let mut old = switch(&configured);
    set(&mut old, "p0", &PortQueues::default());
    drop(write(&file, &old.shared));
    let (found, restored) = restart(&file, &configured);
    assert_eq!(found, [PortQueues::default(), configured.clone()]);
    assert_eq!(restored, 1);
    set(&mut old, "p0", &configured);
    assert_eq!(old.shared.changed_queues(), []);
}

#[test]
fn queues_of_a_port_that_is_added_later_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    let mut old = switch(&PortQueues::default());
    set(&mut old, "p1", &queues(&[7]));
    drop(write(&file, &old.shared));
    let mut new = Switch::new(SwitchConfig::default());
    let restored = new.restore(&StateFile::open(&file).unwrap(), NOW);
    assert_eq!(restored.queues, 1);
    let again = folder.path().join("again");
    drop(write(&again, &new.shared));
    let (_, port) = ports();
    new.add_port(PortNo(4), Box::new(port), NOW);
    assert_eq!(new.queues(PortNo(4)), Some(queues(&[7])));
    assert_eq!(restart(&again, &PortQueues::default()).1, 1);
}

/// A killed switch leaves only the journal, in which the last change of each port counts.
#[test]
fn changes_are_restored_from_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    let mut old = switch(&PortQueues::default());
    let state = write(&file, &old.shared);
    let (sender, items) = channel();
    old.shared.set_feed(Arc::new(Feed::new(sender, false)));
    for (port, ids) in [("p0", [1]), ("p1", [2]), ("p0", [3])] {
        set(&mut old, port, &queues(&ids));
    }
    set(&mut old, "p1", &PortQueues::default());
    let mut frames = Vec::new();
    for (expected, item) in (1..).zip(items.try_iter()) {
        let Item::Queues(sequence, name, queues) = item else {
            panic!("expected changes of queues");
        };
        assert_eq!(sequence, expected);
        Journal::put_queues(state.id(), sequence, (&name, &queues), NOW, &mut frames);
    }
    state.start_journal(&frames).unwrap();
    drop(state);
    let (found, restored) = restart(&file, &PortQueues::default());
    assert_eq!(found, [queues(&[3]), PortQueues::default()]);
    assert_eq!(restored, 1);
}

/// Files of the previous format have no records of queues.
#[test]
fn files_of_the_previous_format_are_read() {
    use sha2::{Digest, Sha256};
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    drop(write(&file, &switch(&queues(&[1])).shared));
    let mut bytes = std::fs::read(&file).unwrap();
    let number = bytes.iter().position(|&byte| byte == b'3').unwrap();
    bytes[number] = b'2';
    let end = bytes.len() - 32;
    let digest = Sha256::digest(&bytes[..end]);
    bytes[end..].copy_from_slice(&digest);
    std::fs::write(&file, bytes).unwrap();
    let (found, restored) = restart(&file, &queues(&[4]));
    assert_eq!(found, [queues(&[4]), queues(&[4])]);
    assert_eq!(restored, 0);
}

fn any_queues() -> impl Strategy<Value = PortQueues> {
    let rate = || prop::option::of(1_000..u64::MAX);
    let limits = (any::<u8>(), any::<u32>(), any::<u32>());
    let queue = (rate(), rate(), limits);
    let queue = queue.prop_map(|(min, max, (priority, packets, bytes))| Queue {
        min_rate_bps: min,
        max_rate_bps: max,
        priority,
        max_packets: packets,
        max_bytes: bytes,
    });
    let queues = prop::collection::btree_map(any::<u32>(), queue, 0..5);
    (rate(), queues).prop_map(|(rate_bps, queues)| PortQueues { rate_bps, queues })
}

proptest! {
    #[test]
    fn records_are_read_as_written(name in ".{0,20}", configured in any_queues(), current in any_queues()) {
        let queues = NamedQueues { configured, current };
        let mut record = Vec::new();
        put_queues(&mut record, &name, &queues).unwrap();
        prop_assert_eq!(read_queues(&record), Some((&name[..], queues)));
        for cut in 0..record.len() {
            prop_assert_eq!(read_queues(&record[..cut]), None);
        }
    }

    #[test]
    fn reading_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = read_queues(&bytes);
    }
}
