//! Programs that start and end, and the holder that outlives them.

use rustix::fd::{AsFd, OwnedFd};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use urtica_hold::{Held, HoldError, Holder, Journal, Notice, attach};

const LONG: Duration = Duration::from_secs(600);

/// A holder on a thread instead of a process.
struct Room {
    _folder: tempfile::TempDir,
    path: PathBuf,
    holder: JoinHandle<io::Result<usize>>,
}

impl Room {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hold.sock");
        let holder = Holder::bind(&path).unwrap();
        Self {
            _folder: folder,
            path,
            holder: thread::spawn(move || holder.run()),
        }
    }

    fn attach(&self) -> Held {
        attach(&self.path, LONG).unwrap()
    }

    /// Returns the number of sockets that the holder closed when it stopped, which it must do.
    fn closed(self) -> usize {
        let count = self.holder.join().unwrap().unwrap();
        assert!(!self.path.exists());
        count
    }
}

fn listen() -> (TcpListener, TcpStream, OwnedFd) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let socket = listener.accept().unwrap().0.into();
    (listener, peer, socket)
}

fn keep(held: &Held, listener: &TcpListener, socket: &OwnedFd) -> Journal {
    let journal = Journal::create(socket.as_fd()).unwrap();
    held.link
        .keep_listener("where".into(), listener.as_fd())
        .unwrap();
    held.link
        .keep_connection("who".into(), socket.as_fd(), &journal)
        .unwrap();
    journal
}

fn wait_for(link: &urtica_hold::Link, wanted: Notice) {
    let start = Instant::now();
    while link.next_notice() != Some(wanted) {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "expected {wanted:?}"
        );
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_next_program_takes_over_all_sockets() {
    let room = Room::new();
    let held = room.attach();
    assert!(held.listeners.is_empty() && held.connections.is_empty());
    let (listener, mut peer, socket) = listen();
    let place = listener.local_addr().unwrap();
    let journal = keep(&held, &listener, &socket);
    // The program has ended, and all its descriptors are closed.
    drop((held, listener, socket, journal));
    peer.write_all(b"still there?").unwrap();

    let mut held = room.attach();
    let kept = held.connections.pop().unwrap();
    assert_eq!(
        (kept.label.as_str(), held.listeners[0].label.as_str()),
        ("who", "where")
    );
    Journal::recover(kept.journal, kept.socket.as_fd()).unwrap();
    let mut socket = TcpStream::from(kept.socket);
    let mut said = [0; 12];
    socket.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"still there?");
    // New connections arrive at the same listener.
    let listener = TcpListener::from(held.listeners.pop().unwrap().socket);
    assert_eq!(listener.local_addr().unwrap(), place);
    TcpStream::connect(place).unwrap();

    // A forgotten socket is not passed to the next program.
    held.link.forget(kept.id);
    drop(held);
    let held = room.attach();
    assert!(held.connections.is_empty());
    assert_eq!(held.listeners.len(), 1);
    held.link.end();
    assert_eq!(room.closed(), 1);
}

#[test]
fn a_program_releases_its_sockets_for_the_next() {
    let room = Room::new();
    let first = room.attach();
    let (listener, _peer, socket) = listen();
    let _journal = keep(&first, &listener, &socket);
    let path = room.path.clone();
    let second = thread::spawn(move || attach(&path, LONG).unwrap());
    wait_for(&first.link, Notice::LetGo);
    // A third program must try again later.
    let refused = attach(&room.path, LONG).unwrap_err();
    assert!(
        refused.to_string().contains("about to take over"),
        "{refused}"
    );
    drop(first);
    let second = second.join().unwrap();
    assert_eq!(second.connections.len(), 1);
    second.link.end();
    room.closed();
}

#[test]
fn a_program_that_does_not_release_keeps_its_sockets() {
    let room = Room::new();
    let first = room.attach();
    let refused = attach(&room.path, LONG).unwrap_err();
    let HoldError::Refused { reason, .. } = refused else {
        panic!("{refused}");
    };
    let told = format!("kill -9 {}", std::process::id());
    assert!(reason.contains(&told), "{reason}");
    first.link.end();
    room.closed();
}

#[test]
fn without_a_program_all_is_closed_after_the_time_that_it_named() {
    let room = Room::new();
    let held = attach(&room.path, Duration::from_millis(1)).unwrap();
    let (listener, mut peer, socket) = listen();
    let journal = keep(&held, &listener, &socket);
    drop((held, listener, socket, journal));
    assert_eq!(
        peer.read(&mut [0; 1]).unwrap(),
        0,
        "the connection is closed"
    );
    assert_eq!(room.closed(), 2);
}

#[test]
fn many_connections_change_hands() {
    let room = Room::new();
    let held = room.attach();
    let (_listener, _peer, socket) = listen();
    let journal = Journal::create(socket.as_fd()).unwrap();
    let count = 1500;
    for number in 0..count {
        held.link
            .keep_connection(number.to_string(), socket.as_fd(), &journal)
            .unwrap();
    }
    let start = Instant::now();
    while held.link.has_waiting() {
        assert!(start.elapsed() < Duration::from_secs(20));
        held.link.flush();
    }
    drop(held);
    let held = room.attach();
    let labels: Vec<_> = held
        .connections
        .iter()
        .map(|kept| kept.label.clone())
        .collect();
    let expected: Vec<_> = (0..count).map(|number| number.to_string()).collect();
    assert_eq!(labels, expected);
    held.link.end();
    room.closed();
}

#[test]
fn the_program_is_notified_when_the_holder_stops() {
    let room = Room::new();
    let held = room.attach();
    held.link.end();
    room.holder.join().unwrap().unwrap();
    wait_for(&held.link, Notice::Gone);
    let absent = attach(&room.path, LONG).unwrap_err();
    assert!(absent.to_string().contains("`urtica hold "), "{absent}");
}

#[test]
fn only_the_owner_can_connect_and_only_one_holder_listens() {
    let room = Room::new();
    let mode = std::fs::metadata(&room.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(Holder::bind(&room.path).is_err());
    room.attach().link.end();
    let path = room.path.clone();
    let folder = room._folder;
    room.holder.join().unwrap().unwrap();
    // Killed: the socket is closed, its file still exists. A file of another kind is left alone.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    drop(Holder::bind(&path).unwrap());
    std::fs::write(&path, "no socket").unwrap();
    let refused = Holder::bind(&path).unwrap_err();
    assert!(refused.to_string().contains("not a socket"), "{refused}");
    drop(folder);
}

/// Descriptors attached to a connection, and shared ones, are passed to the next program.
#[test]
fn attachments_are_kept_as_long_as_their_connection() {
    let room = Room::new();
    let held = room.attach();
    let (listener, _peer, socket) = listen();
    keep(&held, &listener, &socket);
    let id = 2;
    let files = || [(); 2].map(|()| OwnedFd::from(tempfile::tempfile().unwrap()));
    let (own, common) = (files(), files());
    let fds = own.each_ref().map(AsFd::as_fd);
    held.link.attach(id, "own".into(), &fds).unwrap();
    let fds = common.each_ref().map(AsFd::as_fd);
    let common = held.link.keep_common("all".into(), &fds).unwrap();
    assert!(held.link.attach(id, "none".into(), &[]).is_err());
    drop(held);

    let held = room.attach();
    let attachment = held.connections[0].attachment.as_ref().unwrap();
    assert_eq!(
        (&attachment.label[..], attachment.fds.len()),
        ("own", own.len())
    );
    assert_eq!(held.commons[0].id, common);
    assert_eq!(held.commons[0].attachment.label, "all");
    assert_eq!(held.commons[0].attachment.fds.len(), 2);
    held.link.detach(id);
    held.link.forget(common);
    // Ids of an earlier program are not reused.
    assert!(held.link.keep_common("new".into(), &fds).unwrap() > common);
    drop(held);

    let held = room.attach();
    assert!(held.connections[0].attachment.is_none());
    assert_eq!(held.commons.len(), 1);
    held.link.end();
    assert_eq!(room.closed(), 2);
}
