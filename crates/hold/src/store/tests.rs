//! Tests against a manager's socket.

use super::*;
use std::fs::File;
use std::os::unix::net::UnixDatagram;

fn name(kind: char, id: Id, index: usize, count: usize, label: &str) -> Name {
    Name {
        kind,
        id,
        index,
        count,
        label: label.to_owned(),
    }
}

fn descriptor() -> OwnedFd {
    File::open("/dev/null").unwrap().into()
}

/// Creates a store, and the socket of its manager.
fn store() -> (Store, UnixDatagram, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("notify");
    let manager = UnixDatagram::bind(&place).unwrap();
    manager.set_nonblocking(true).unwrap();
    let store = Store::at(place.to_str().unwrap()).unwrap();
    (store, manager, folder)
}

fn told(manager: &UnixDatagram) -> Vec<String> {
    let mut bytes = [0; 1024];
    std::iter::from_fn(|| {
        let count = manager.recv(&mut bytes).ok()?;
        Some(String::from_utf8(bytes[..count].to_vec()).unwrap())
    })
    .collect()
}

#[test]
fn names_survive_the_way() {
    for label in [
        "",
        "ptcp:6653",
        "[::1]:5 a\u{e4}%\n",
        "urtica kernel half l2.2 3",
    ] {
        let name = name(CONNECTION, 7, 1, 2, label);
        let text = name.to_string();
        assert!(
            text.bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b':'),
            "{text}"
        );
        assert_eq!(text.parse(), Ok(name));
    }
}

#[test]
fn long_names_are_cut() {
    for label in ["\u{20ac}".repeat(100), "x".repeat(2000), ":".repeat(500)] {
        let text = name(LISTENER, Id::MAX, 0, 1, &label).to_string();
        assert!(
            text.len() <= MAX_NAME && text.len() > MAX_NAME - 3,
            "{}",
            text.len()
        );
        let read: Name = text.parse().unwrap();
        let whole = read.label.trim_end_matches(char::REPLACEMENT_CHARACTER);
        assert!(label.starts_with(whole));
    }
}

#[test]
fn other_names_are_left_alone() {
    for text in [
        "",
        "unknown",
        "urtica.service",
        "other.C.1.0.2.",
        "urtica.C.1.2.2.",
        "urtica.C.1.0.9.",
        "urtica.Z.1.0.1.",
        "urtica.C.-1.0.1.",
        "urtica.C.1.0.1",
        "urtica.L.1.0.1.%",
        "urtica.L.1.0.1.%zz",
    ] {
        assert_eq!(text.parse::<Name>(), Err(()), "{text}");
    }
    let (store, manager, _folder) = store();
    let left = store.take(vec![("unknown".into(), descriptor())]);
    assert!(left.listeners.is_empty() && left.connections.is_empty());
    assert_eq!(told(&manager), [""; 0]);
}

#[test]
fn each_descriptor_is_stored_and_removed_by_its_name() {
    let (store, manager, _folder) = store();
    let (socket, journal) = (descriptor(), descriptor());
    let fds = [socket.as_fd(), journal.as_fd()];
    let label = "tcp:[::1]:5".to_owned();
    store
        .send(&Message::Connection { id: 4, label }, &fds)
        .unwrap();
    let name = |index| format!("urtica.C.4.{index}.2.tcp%3a%5b%3a%3a1%5d%3a5");
    let stored = [0, 1].map(|index| format!("FDSTORE=1\nFDPOLL=0\nFDNAME={}", name(index)));
    assert_eq!(told(&manager), stored);
    let attachment = |label: &str| Message::Attachment {
        id: 4,
        fds: 1,
        label: label.to_owned(),
    };
    store.send(&attachment("one"), &fds[..1]).unwrap();
    store.send(&attachment("two"), &fds[..1]).unwrap();
    let told_of = told(&manager);
    assert_eq!(told_of[1], "FDSTOREREMOVE=1\nFDNAME=urtica.T.4.0.1.one");
    assert!(told_of[2].ends_with("FDNAME=urtica.T.4.0.1.two"));
    store.send(&Message::Detach { id: 4 }, &[]).unwrap();
    assert_eq!(
        told(&manager),
        ["FDSTOREREMOVE=1\nFDNAME=urtica.T.4.0.1.two"]
    );
    store.send(&Message::End, &[]).unwrap();
    let mut removed = told(&manager);
    removed.sort();
    assert_eq!(
        removed,
        [0, 1].map(|index| format!("FDSTOREREMOVE=1\nFDNAME={}", name(index)))
    );
    store.send(&Message::Forget { id: 4 }, &[]).unwrap();
    assert_eq!(told(&manager), [""; 0], "it is gone");
}

/// A program that dies while it stores an item leaves an incomplete item.
#[test]
fn incomplete_items_are_removed() {
    let (store, manager, _folder) = store();
    let all = [
        name(LISTENER, 1, 0, 1, "ptcp:6653"),
        name(CONNECTION, 2, 0, 2, "a"),
        name(CONNECTION, 2, 1, 2, "a"),
        name(ATTACHMENT, 2, 1, 2, "half"),
        name(ATTACHMENT, 2, 0, 2, "half"),
        name(COMMON, 3, 0, 1, "maps"),
        name(CONNECTION, 4, 0, 2, "b"),
        name(ATTACHMENT, 5, 0, 1, "of nobody"),
        name(LISTENER, 9, 1, 2, "too many"),
    ];
    let passed = all
        .iter()
        .rev()
        .map(|name| (name.to_string(), descriptor()));
    let left = store.take(passed.collect());
    assert_eq!(left.last_id, 9);
    assert_eq!(left.listeners[0].label, "ptcp:6653");
    assert_eq!(left.listeners.len(), 1);
    let [connection] = &left.connections[..] else {
        panic!("{:?}", left.connections);
    };
    let attachment = connection.attachment.as_ref().unwrap();
    assert_eq!((connection.id, attachment.fds.len()), (2, 2));
    assert_eq!(left.commons[0].attachment.label, "maps");
    let mut removed = told(&manager);
    removed.sort();
    assert_eq!(
        removed,
        [
            "FDSTOREREMOVE=1\nFDNAME=urtica.C.4.0.2.b",
            "FDSTOREREMOVE=1\nFDNAME=urtica.L.9.1.2.too%20many",
            "FDSTOREREMOVE=1\nFDNAME=urtica.T.5.0.1.of%20nobody",
        ]
    );
    // Descriptors of the earlier program are known by name.
    store.send(&Message::Forget { id: 1 }, &[]).unwrap();
    assert_eq!(
        told(&manager),
        ["FDSTOREREMOVE=1\nFDNAME=urtica.L.1.0.1.ptcp%3a6653"]
    );
}

/// When shared descriptors get another label, the new one is stored before the old one is removed. If the program dies in
/// between, the lesser label counts.
#[test]
fn replaced_descriptors_have_one_label() {
    let (store, manager, _folder) = store();
    let fd = descriptor();
    let common = |label: &str| Message::Common {
        id: 3,
        fds: 1,
        label: label.into(),
    };
    store.send(&common("maps 7"), &[fd.as_fd()]).unwrap();
    told(&manager);
    store.send(&common("maps 0"), &[fd.as_fd()]).unwrap();
    let expected = [
        "FDSTORE=1\nFDPOLL=0\nFDNAME=urtica.M.3.0.1.maps%200",
        "FDSTOREREMOVE=1\nFDNAME=urtica.M.3.0.1.maps%207",
    ];
    assert_eq!(told(&manager), expected);
    for names in [["maps%200", "maps%207"], ["maps%207", "maps%200"]] {
        let (store, manager, _folder) = self::store();
        let passed = names.map(|name| (format!("urtica.M.3.0.1.{name}"), descriptor()));
        let left = store.take(passed.into());
        assert_eq!(left.commons.len(), 1);
        assert_eq!(left.commons[0].attachment.label, "maps 0");
        // The next change leaves none of them.
        store.send(&common("maps 9"), &[fd.as_fd()]).unwrap();
        assert_eq!(told(&manager).len(), 3);
    }
}

#[test]
fn messages_for_a_slow_manager_are_sent_later() {
    let (store, manager, _folder) = store();
    let fd = descriptor();
    let message = |id| Message::Listener {
        id,
        label: String::new(),
    };
    let mut id = 1;
    while store.send(&message(id), &[fd.as_fd()]).is_ok() {
        id += 1;
    }
    assert_eq!(store.send(&message(id), &[fd.as_fd()]), Err(Errno::AGAIN));
    assert_eq!(told(&manager).len() as u64, id - 1);
    store.send(&message(id), &[fd.as_fd()]).unwrap();
    assert_eq!(told(&manager).len(), 1);
}
