//! Tests of many connections, most of them silent.

use super::*;
use crate::tls::testing::{Authority, Files};
use std::io::Write;
use std::os::unix::net::UnixStream;

/// Longer than any step of a test.
const LONG: Duration = Duration::from_secs(60);

struct Bed {
    handshakes: Handshakes,
    switch: Files,
    now: Instant,
}

impl Bed {
    fn new() -> Self {
        let ca = Authority::new("ca");
        let controller = Files::new(&ca.sign_name("ctl"), &ca.pem);
        Self {
            handshakes: Handshakes::new(controller.load()).unwrap(),
            switch: Files::new(&ca.sign_name("s1"), &ca.pem),
            now: Instant::now(),
        }
    }

    fn accept(&mut self, name: &str) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        self.handshakes
            .accept(ours.into(), name.to_owned(), self.now);
        theirs
    }

    /// Polls until a handshake ends.
    fn next(&mut self) -> Ended {
        loop {
            let timeout = Timespec {
                tv_sec: LONG.as_secs() as i64,
                tv_nsec: 0,
            };
            let ready = poll(
                &mut [PollFd::new(&self.handshakes, PollFlags::IN)],
                Some(&timeout),
            );
            assert_ne!(ready.unwrap(), 0, "nothing to do");
            let mut ended = self.handshakes.poll(self.now);
            assert!(ended.len() <= 1);
            if let Some(one) = ended.pop() {
                return one;
            }
        }
    }
}

#[test]
fn silent_connections_delay_no_handshake() {
    let mut bed = Bed::new();
    let _mute: Vec<_> = (0..100)
        .map(|number| bed.accept(&number.to_string()))
        .collect();
    let mut half = bed.accept("half");
    half.write_all(&[22, 3, 1, 0]).unwrap();
    let tls = bed.switch.load();
    let socket = bed.accept("switch");
    let client = std::thread::spawn(move || Stream::connect_tls(socket.into(), &tls, LONG).is_ok());
    let ended = bed.next();
    assert_eq!(ended.peer, "switch");
    assert!(
        ended
            .outcome
            .unwrap()
            .certificate()
            .unwrap()
            .is_called("s1")
    );
    assert!(client.join().unwrap());
    // All others time out at once, and no handshake is left.
    assert_eq!(
        bed.handshakes.next_timeout(),
        Some(bed.now + HANDSHAKE_TIMEOUT)
    );
    bed.now += HANDSHAKE_TIMEOUT;
    let ended = bed.handshakes.poll(bed.now);
    assert_eq!(ended.len(), 101);
    assert!(
        ended
            .iter()
            .all(|one| matches!(one.outcome, Err(TlsError::Timeout(_))))
    );
    assert_eq!(bed.handshakes.next_timeout(), None);
}

#[test]
fn closes_the_oldest_above_the_limit() {
    let mut bed = Bed::new();
    bed.handshakes.max_half_open = 3;
    let _mute: Vec<_> = (0..5)
        .map(|number| bed.accept(&number.to_string()))
        .collect();
    let ended = bed.handshakes.poll(bed.now);
    let names: Vec<_> = ended.iter().map(|one| one.peer.as_str()).collect();
    assert_eq!(names, ["0", "1"]);
    let Err(error @ TlsError::TooMany(3)) = &ended[0].outcome else {
        panic!("expected TlsError::TooMany");
    };
    assert!(error.to_string().contains("3 others"), "{error}");
}

#[test]
fn clients_start_without_input() {
    let mut bed = Bed::new();
    let (ours, theirs) = UnixStream::pair().unwrap();
    for socket in [&ours, &theirs] {
        socket.set_nonblocking(true).unwrap();
    }
    let mut switch = Handshakes::new(bed.switch.load()).unwrap();
    switch.connect(theirs.into(), "ssl:ctl".to_owned(), 7, bed.now);
    bed.handshakes
        .accept(ours.into(), "switch".to_owned(), bed.now);
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        client.extend(switch.poll(bed.now));
        server.extend(bed.handshakes.poll(bed.now));
    }
    let (Some(client), Some(server)) = (client.pop(), server.pop()) else {
        panic!("expected two finished handshakes");
    };
    assert_eq!((client.tag, server.tag), (Some(7), None));
    assert!(
        client
            .outcome
            .unwrap()
            .certificate()
            .unwrap()
            .is_called("ctl")
    );
    assert!(server.outcome.is_ok());
}

#[test]
fn a_silent_peer_times_out() {
    let bed = Bed::new();
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let timeout = Duration::from_millis(20);
    let Err(error) = Stream::connect_tls(ours.into(), &bed.switch.load(), timeout) else {
        panic!("nobody answered");
    };
    assert!(matches!(error, TlsError::Timeout(_)), "{error}");
}
