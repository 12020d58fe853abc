//! Tests against holders that read late or never.

use super::*;
use std::fs::File;
use std::os::unix::net::UnixDatagram;

/// More descriptors than a manager's socket can queue messages: `net.unix.max_dgram_qlen` is 10, or 512 if systemd has set it.
const MANY: usize = 1000;

/// Returns a manager's socket, and a link to it with `count` stored descriptors of an earlier program.
fn link(count: usize) -> (UnixDatagram, Link, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("notify");
    let manager = UnixDatagram::bind(&place).unwrap();
    let store = Store::at(place.to_str().unwrap()).unwrap();
    let passed = (1..=count).map(|id| {
        let fd = File::open("/dev/null").unwrap().into();
        (format!("urtica.L.{id}.0.1.listener"), fd)
    });
    store.take(passed.collect());
    let link = Link {
        backend: Backend::Manager(store),
        last_id: AtomicU64::new(count as u64),
        waiting: Mutex::default(),
    };
    (manager, link, folder)
}

/// Reads messages until `has_ended` has returned `true` and the manager's socket has then been quiet.
fn read_all(manager: &UnixDatagram, has_ended: impl Fn() -> bool) -> Vec<String> {
    let timeout = Duration::from_millis(5);
    manager.set_read_timeout(Some(timeout)).unwrap();
    let (mut told, mut bytes) = (Vec::new(), [0; 1024]);
    loop {
        let is_last = has_ended();
        match manager.recv(&mut bytes) {
            Ok(count) => told.push(String::from_utf8(bytes[..count].to_vec()).unwrap()),
            Err(_) if is_last => return told,
            Err(_) => {}
        }
    }
}

/// Even if the manager is slow, a program that ends leaves no descriptors in the store.
#[test]
fn dropping_a_link_waits_for_a_slow_manager() {
    let (manager, link, _folder) = link(MANY);
    link.end();
    assert!(link.has_waiting(), "the manager has read nothing");
    let dropping = thread::spawn(move || drop(link));
    let told = read_all(&manager, || dropping.is_finished());
    let is_removal = |text: &&String| text.starts_with("FDSTOREREMOVE=1");
    assert_eq!(told.iter().filter(is_removal).count(), MANY);
}

/// A descriptor that is stored after the end was announced is removed when its connection ends.
#[test]
fn descriptors_stored_after_the_end_are_removed_too() {
    let (manager, link, _folder) = link(MANY);
    link.end();
    let fd = File::open("/dev/null").unwrap();
    let id = link.keep_listener("late".into(), fd.as_fd()).unwrap();
    link.forget(id);
    let dropping = thread::spawn(move || drop(link));
    let told = read_all(&manager, || dropping.is_finished());
    let of_late: Vec<_> = told.iter().filter(|text| text.contains("late")).collect();
    let [stored, removed] = &of_late[..] else {
        panic!("{of_late:?}");
    };
    assert!(stored.starts_with("FDSTORE=1"), "{stored}");
    assert!(removed.starts_with("FDSTOREREMOVE=1"), "{removed}");
}

#[test]
fn a_manager_that_never_reads_is_waited_for_no_longer_than_the_limit() {
    let (manager, link, _folder) = link(MANY);
    link.end();
    link.flush_for(Duration::from_millis(20));
    assert!(link.has_waiting());
    drop(manager);
    link.flush();
    assert!(!link.has_waiting(), "nobody needs the messages");
}

#[test]
fn only_a_holder_of_the_same_user_or_of_root_is_trusted() {
    let user = Uid::from_raw(1000);
    assert!(is_trusted(user, user));
    assert!(is_trusted(Uid::ROOT, user));
    assert!(!is_trusted(user, Uid::ROOT));
    assert!(!is_trusted(user, Uid::from_raw(1001)));
}
