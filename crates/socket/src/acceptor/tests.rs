//! Connections that are accepted, refused or delayed.

use super::*;
use crate::Address;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Read;
use std::net::TcpStream;

/// Longer than any step of a test.
const LONG: Duration = Duration::from_secs(60);

fn listener(address: &str) -> Listener {
    Listener::bind(&address.parse().unwrap()).unwrap()
}

fn port(acceptor: &Acceptor, id: ListenerId) -> u16 {
    let mut listeners = acceptor.listeners();
    let (_, listener) = listeners.find(|(other, _)| *other == id).unwrap();
    match listener.address() {
        Address::PassiveTcp { port, .. } | Address::PassiveSsl { port, .. } => *port,
        other => panic!("{other}"),
    }
}

fn plain() -> (Acceptor, ListenerId) {
    let mut acceptor = Acceptor::new().unwrap();
    let id = acceptor.add(listener("ptcp:0:127.0.0.1")).unwrap();
    (acceptor, id)
}

fn is_readable(acceptor: &Acceptor, timeout: Duration) -> bool {
    let timeout = Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: timeout.subsec_nanos().into(),
    };
    let mut fds = [PollFd::new(acceptor, PollFlags::IN)];
    poll(&mut fds, Some(&timeout)).unwrap() > 0
}

/// Returns the next events; waits for at least one.
fn next(acceptor: &mut Acceptor, now: Instant) -> Vec<Accepted> {
    loop {
        assert!(is_readable(acceptor, LONG), "nothing to do");
        let accepted = acceptor.poll(now);
        if !accepted.is_empty() {
            return accepted;
        }
    }
}

fn connection(accepted: Accepted) -> (Stream, String, Option<usize>) {
    match accepted {
        Accepted::Connection { stream, peer, tag } => (stream, peer, tag),
        Accepted::Refused { reason, .. } => panic!("{reason}"),
        Accepted::Paused(error) => panic!("{error}"),
        Accepted::Notice(notice) => panic!("{notice}"),
    }
}

#[test]
fn accepts_at_each_listener_and_names_the_peer() {
    let (mut acceptor, first) = plain();
    let second = acceptor.add(listener("ptcp:0:127.0.0.1")).unwrap();
    assert!(!is_readable(&acceptor, Duration::ZERO));
    for id in [first, second] {
        let mut peer = TcpStream::connect(("127.0.0.1", port(&acceptor, id))).unwrap();
        let mut accepted = next(&mut acceptor, Instant::now());
        assert_eq!(accepted.len(), 1);
        let (mut stream, name, tag) = connection(accepted.remove(0));
        assert_eq!(name, format!("tcp:{}", peer.local_addr().unwrap()));
        assert_eq!(tag, None);
        stream.write(b"hello").unwrap();
        let mut received = [0; 5];
        peer.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"hello");
    }
}

#[test]
fn accepts_a_limited_number_at_once_and_all_in_the_end() {
    let (mut acceptor, id) = plain();
    let port = port(&acceptor, id);
    let connect = |_| TcpStream::connect(("127.0.0.1", port)).unwrap();
    let peers: Vec<_> = (0..3 * AT_ONCE).map(connect).collect();
    let mut count = 0;
    while count < peers.len() {
        let accepted = next(&mut acceptor, Instant::now());
        assert!(accepted.len() <= AT_ONCE);
        count += accepted.len();
    }
    assert!(!is_readable(&acceptor, Duration::ZERO));
}

#[test]
fn a_removed_listener_accepts_nothing() {
    let (mut acceptor, id) = plain();
    let _peer = TcpStream::connect(("127.0.0.1", port(&acceptor, id))).unwrap();
    assert!(is_readable(&acceptor, LONG));
    // It still listens, but the acceptor does not wait for it.
    let removed = acceptor.remove(id).unwrap();
    assert!(!is_readable(&acceptor, Duration::ZERO));
    assert!(acceptor.poll(Instant::now()).is_empty());
    assert!(acceptor.remove(id).is_none());
    let again = acceptor.add(removed).unwrap();
    assert_ne!(again, id);
    assert_eq!(next(&mut acceptor, Instant::now()).len(), 1);
    assert_eq!(acceptor.take_listeners().len(), 1);
    assert_eq!(acceptor.listeners().count(), 0);
}

#[test]
fn errors_of_single_connections_change_nothing() {
    let (mut acceptor, _) = plain();
    for passing in [Errno::AGAIN, Errno::INTR, Errno::CONNABORTED] {
        assert!(
            acceptor
                .note_error(passing.into(), Instant::now())
                .is_none()
        );
        assert_eq!(acceptor.next_timeout(), None, "{passing}");
    }
}

#[test]
fn a_lack_of_descriptors_pauses_accepting_and_is_reported_once() {
    let (mut acceptor, id) = plain();
    let now = Instant::now();
    let _peer = TcpStream::connect(("127.0.0.1", port(&acceptor, id))).unwrap();
    let reported = acceptor.note_error(Errno::MFILE.into(), now);
    let Some(Accepted::Paused(error)) = reported else {
        panic!("not reported");
    };
    assert!(error.to_string().contains("ulimit -n"), "{error}");
    assert!(acceptor.note_error(Errno::NFILE.into(), now).is_none());
    // The connection waits. Neither it nor a new listener makes the descriptor readable.
    let second = acceptor.add(listener("ptcp:0:127.0.0.1")).unwrap();
    let _other = TcpStream::connect(("127.0.0.1", port(&acceptor, second))).unwrap();
    let over = now + EXHAUSTED_PAUSE;
    assert_eq!(acceptor.next_timeout(), Some(over));
    assert!(acceptor.poll(over - Duration::from_nanos(1)).is_empty());
    assert!(!is_readable(&acceptor, Duration::ZERO));
    // At the end of the pause, both are accepted, and the next shortage is reported again.
    assert_eq!(acceptor.poll(over).len(), 2);
    assert_eq!(acceptor.next_timeout(), None);
    for lasting in [Errno::NOBUFS, Errno::NOMEM] {
        let reported = acceptor.note_error(lasting.into(), over);
        assert_eq!(reported.is_some(), lasting == Errno::NOBUFS, "{lasting}");
        assert_eq!(acceptor.next_timeout(), Some(over + EXHAUSTED_PAUSE));
    }
}

#[test]
fn without_tls_a_connection_is_ready_at_once() {
    let (mut acceptor, id) = plain();
    assert!(!acceptor.speaks_tls());
    let socket = TcpStream::connect(("127.0.0.1", port(&acceptor, id))).unwrap();
    let begun = acceptor.connect(socket.into(), "peer".to_owned(), 7, Instant::now());
    let (_, peer, tag) = connection(begun.unwrap());
    assert_eq!((peer.as_str(), tag), ("peer", Some(7)));
}

#[cfg(feature = "tls")]
mod tls {
    use super::*;
    use crate::HANDSHAKE_TIMEOUT;
    use crate::tls::testing::{Authority, Files};
    use rustix::fd::OwnedFd;

    struct Bed {
        acceptor: Acceptor,
        port: u16,
        ours: Files,
        switch: Files,
        ca: Authority,
    }

    impl Bed {
        fn new() -> Self {
            let ca = Authority::new("ca");
            let ours = Files::new(&ca.sign_name("ctl"), &ca.pem);
            let switch = Files::new(&ca.sign_name("s1"), &ca.pem);
            let mut acceptor = Acceptor::new().unwrap();
            acceptor.speak_tls(ours.load()).unwrap();
            let id = acceptor.add(listener("pssl:0:127.0.0.1")).unwrap();
            Self {
                port: port(&acceptor, id),
                acceptor,
                ours,
                switch,
                ca,
            }
        }

        fn socket(&self) -> OwnedFd {
            TcpStream::connect(("127.0.0.1", self.port)).unwrap().into()
        }
    }

    #[test]
    fn both_sides_of_a_handshake_may_be_ours() {
        let mut bed = Bed::new();
        assert!(bed.acceptor.speaks_tls());
        let socket = TcpStream::connect(("127.0.0.1", bed.port)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let peer = "ssl:other".to_owned();
        let begun = bed.acceptor.connect(socket.into(), peer, 7, Instant::now());
        assert!(begun.is_none());
        let mut tags = Vec::new();
        while tags.len() < 2 {
            for accepted in next(&mut bed.acceptor, Instant::now()) {
                let (stream, _, tag) = connection(accepted);
                assert!(stream.certificate().unwrap().is_called("ctl"));
                tags.push(tag);
            }
        }
        tags.sort_unstable();
        assert_eq!(tags, [None, Some(7)]);
    }

    #[test]
    fn a_silent_peer_is_refused_after_a_while() {
        let mut bed = Bed::new();
        let _silent = bed.socket();
        let now = Instant::now();
        assert!(is_readable(&bed.acceptor, LONG));
        assert!(bed.acceptor.poll(now).is_empty());
        let mut late = bed.acceptor.poll(now + HANDSHAKE_TIMEOUT);
        assert_eq!(late.len(), 1);
        let Accepted::Refused { peer, tag, .. } = late.remove(0) else {
            panic!("accepted");
        };
        assert!(peer.starts_with("ssl:127.0.0.1:"), "{peer}");
        assert_eq!(tag, None);
    }

    #[test]
    fn certificates_that_change_are_used_by_later_handshakes() {
        let mut bed = Bed::new();
        let now = Instant::now();
        assert!(bed.acceptor.poll(now).is_empty());
        let newer = bed.ca.sign_name("newer");
        bed.ours.write("key.pem", &newer.key);
        bed.ours.write("cert.pem", &newer.pem);
        // The first call sees the change, and the next that it is complete.
        assert!(bed.acceptor.poll(now + REFRESH_INTERVAL).is_empty());
        let early = bed.acceptor.poll(now + REFRESH_INTERVAL * 3 / 2);
        assert!(early.is_empty());
        let late = bed.acceptor.poll(now + 2 * REFRESH_INTERVAL);
        assert!(matches!(late[..], [Accepted::Notice(_)]));
        let (socket, tls) = (bed.socket(), bed.switch.load());
        let client = std::thread::spawn(move || Stream::connect_tls(socket, &tls, LONG).unwrap());
        let accepted = next(&mut bed.acceptor, Instant::now()).remove(0);
        assert!(
            connection(accepted)
                .0
                .certificate()
                .unwrap()
                .is_called("s1")
        );
        let stream = client.join().unwrap();
        assert!(stream.certificate().unwrap().is_called("newer"));
    }
}
