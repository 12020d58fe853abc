//! Tests of a link between two sockets that need control of the clock or of the kernel's maps. The test replaces the
//! controller.

use super::*;
use crate::learning_switch::prepare;
use crate::places::{SharedPlaces, Size, floods_dropped, limit_floods, pause_entries};
use rustix::net::{SendFlags, send};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use urtica_apps::FloodLimit;
use urtica_wire::{BufferId, Header, Match, Message, PacketIn, PacketInReason, PortNo, Version};

const FLOW_MOD: u8 = 14;
const PACKET_OUT: u8 = 13;
const PLACES: usize = 64;

/// Maximum time for the system's reaction.
const PATIENCE: Duration = Duration::from_secs(60);

/// Loads the programs; if that fails, prints a line, or fails with CI=true.
fn kernel() -> Option<Kernel> {
    match Kernel::start() {
        Ok(kernel) => Some(kernel),
        Err(reason) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{reason}");
            println!("skipped: the kernel half cannot be tested here: {reason}");
            None
        }
    }
}

/// A switch, and its kernel half.
struct Bench {
    switch: TcpStream,
    socket: TcpStream,
    link: Link,
    version: Version,
    /// The program's table, which must stay alive.
    _places: SharedPlaces,
}

impl Bench {
    /// Creates a connection that the kernel owns, without known hosts.
    fn new(kernel: &Kernel, version: Version) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let switch = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        switch.set_read_timeout(Some(PATIENCE)).unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let opened = kernel.open_session().unwrap();
        prepare(&opened.memory, version, Size::fixed(PLACES));
        let places = SharedPlaces::new(Arc::clone(&opened.memory), PLACES);
        let mut link = Link::new(kernel.clone(), opened, Mode::Auto);
        link.attach(socket.as_fd()).unwrap();
        let mut bench = Self {
            switch,
            socket,
            link,
            version,
            _places: places,
        };
        assert_eq!(bench.hand_over(), Taken::Yes);
        bench
    }

    fn hand_over(&mut self) -> Taken {
        let handover = Handover::new(&[], 0, Instant::now());
        self.link.hand_over(self.socket.as_fd(), handover).unwrap()
    }

    /// Sends a packet-in for a packet from one host to another. Host N is behind port N.
    fn send(&mut self, src: u8, dst: u8) {
        let mut frame = [0; 64];
        (frame[5], frame[11]) = (dst, src);
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        (frame[17], frame[23], frame[39]) = (50, 17, 30);
        let packet = PacketIn {
            buffer_id: BufferId(1),
            total_len: 64,
            reason: PacketInReason::NoMatch,
            table_id: 0,
            cookie: u64::MAX,
            in_port: PortNo(src.into()),
            match_: Match::any().in_port(PortNo(src.into())),
            data: &frame,
        };
        let mut message = Vec::new();
        Message::PacketIn(packet)
            .encode(self.version, 1, &mut message)
            .unwrap();
        self.switch.write_all(&message).unwrap();
    }

    /// Returns the header of the kernel's answer.
    fn answer_header(&mut self) -> Header {
        let mut reply = [0; 200];
        let count = self.switch.read(&mut reply).expect("an answer in time");
        let header = Header::peek(&reply[..count]).expect("a message");
        assert_eq!(usize::from(header.length), count);
        header
    }

    /// Returns the type of the kernel's answer.
    fn answer(&mut self) -> u8 {
        self.answer_header().message_type
    }

    fn ask(&mut self, src: u8, dst: u8) -> u8 {
        self.send(src, dst);
        self.answer()
    }

    /// Advances the clock that the kernel compares ages to.
    fn pass(&mut self, seconds: u64) {
        let clock = &self.link.shared().clock_ns;
        let started = clock.load(Relaxed);
        clock.store(started.wrapping_sub(seconds * 1_000_000_000), Relaxed);
    }
}

/// As in `l2`, a host is forgotten after more than 300 s of silence.
#[test]
fn a_host_is_forgotten_after_a_silence() {
    let Some(kernel) = kernel() else { return };
    for version in Version::ALL {
        let mut bench = Bench::new(&kernel, version);
        assert_eq!(bench.ask(1, 2), PACKET_OUT, "nobody knows host 2");
        assert_eq!(bench.ask(2, 1), FLOW_MOD);
        bench.pass(298);
        assert_eq!(bench.ask(3, 1), FLOW_MOD, "host 1 is known still");
        bench.pass(4);
        assert_eq!(bench.ask(3, 1), PACKET_OUT, "host 1 is forgotten");
        assert_eq!(bench.ask(1, 3), FLOW_MOD, "host 3 was heard lately");
        assert_eq!(bench.ask(3, 1), FLOW_MOD, "host 1 was heard again");
    }
}

/// The next program's clock starts again, but hosts keep their age.
#[test]
fn hosts_keep_their_age_in_the_next_program() {
    let Some(kernel) = kernel() else { return };
    let mut bench = Bench::new(&kernel, Version::Of13);
    assert_eq!(bench.ask(1, 2), PACKET_OUT);
    bench.pass(200);
    bench.link.reclaim(&mut Vec::new());
    let started = Instant::now();
    let memory = Arc::clone(&bench.link.memory);
    let places = SharedPlaces::resume(memory, clock_ns_at(started)).unwrap();
    assert!(places.iter().any(|entry| entry.port() == Some(PortNo(1))));
    let handover = Handover::new(&[], 0, started);
    let taken = bench.link.hand_over(bench.socket.as_fd(), handover);
    assert_eq!(taken.unwrap(), Taken::Yes);
    bench.pass(98);
    assert_eq!(bench.ask(3, 1), FLOW_MOD, "host 1 is known still");
    bench.pass(4);
    assert_eq!(bench.ask(3, 1), PACKET_OUT, "host 1 is forgotten");
}

/// If the socket is removed from the kernel's maps, the program notices later input, and continues alone.
#[test]
fn the_program_continues_alone_without_the_kernels_part() {
    let Some(kernel) = kernel() else { return };
    let mut bench = Bench::new(&kernel, Version::Of13);
    assert_eq!(bench.ask(1, 2), PACKET_OUT);
    kernel.close_session(bench.link.slot, &[]);
    bench.send(2, 1);
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < PATIENCE, "nobody has noticed");
        // Like a shard, which does this four times a second.
        bench.link.reclaim(&mut Vec::new());
        if bench.hand_over() == Taken::SteppedAside {
            break;
        }
    }
    let mut bytes = [0; 200];
    assert_eq!(bench.socket.read(&mut bytes).unwrap(), 106);
    bench.link.note_read(106);
    for _ in 0..10 {
        assert_eq!(bench.hand_over(), Taken::NotYet, "it does not come back");
    }
    assert!(bench.link.may_write(bench.socket.as_fd()));
}

/// An idle connection is not considered lost.
#[test]
fn an_idle_connection_is_not_lost() {
    let Some(kernel) = kernel() else { return };
    let mut bench = Bench::new(&kernel, Version::Of10);
    for round in 0..100_u8 {
        if round % 10 == 0 {
            assert_eq!(bench.ask(1, 2 + round), PACKET_OUT);
        }
        bench.link.reclaim(&mut Vec::new());
        assert!(bench.link.may_write(bench.socket.as_fd()));
        assert_eq!(bench.hand_over(), Taken::Yes);
    }
}

/// Each port has its own burst. Packets to groups and to known hosts are not limited.
#[test]
fn packets_to_unknown_hosts_are_flooded_within_a_budget() {
    const BURST: u32 = 10;
    let Some(kernel) = kernel() else { return };
    for version in Version::ALL {
        let mut bench = Bench::new(&kernel, version);
        limit_floods(&bench.link.memory, FloodLimit::new(0, BURST));
        assert_eq!(bench.ask(2, 0xff), PACKET_OUT);
        for src in [3, 4] {
            for _ in 0..BURST {
                assert_eq!(bench.ask(src, 0xfe), PACKET_OUT);
            }
            for _ in 0..100 {
                bench.send(src, 0xfe);
                assert_eq!(bench.ask(src, 2), FLOW_MOD, "the other is dropped");
            }
        }
        assert_eq!(floods_dropped(&bench.link.memory), 200);
        limit_floods(&bench.link.memory, FloodLimit::NONE);
        assert_eq!(bench.ask(3, 0xfe), PACKET_OUT);
    }
}

/// While a switch's table is full, packets are forwarded without adding entries.
#[test]
fn no_entries_are_added_to_a_full_table() {
    let Some(kernel) = kernel() else { return };
    for version in Version::ALL {
        let mut bench = Bench::new(&kernel, version);
        assert_eq!(bench.ask(1, 2), PACKET_OUT);
        assert_eq!(bench.ask(2, 1), FLOW_MOD);
        let hour = Duration::from_secs(3600);
        pause_entries(&bench.link.memory, clock_ns_at(Instant::now() + hour));
        assert_eq!(bench.ask(2, 1), PACKET_OUT);
        pause_entries(&bench.link.memory, clock_ns_at(Instant::now()));
        assert_eq!(bench.ask(2, 1), FLOW_MOD);
    }
}

/// If the kernel drops the signal of a reply, the reply leaves some ticks later.
#[test]
fn a_reply_whose_signal_was_lost_is_signalled_again() {
    let Some(kernel) = kernel() else { return };
    for version in Version::ALL {
        let mut bench = Bench::new(&kernel, version);
        assert_eq!(bench.ask(1, 2), PACKET_OUT);
        kernel.empty_relay(bench.link.slot).unwrap();
        bench.send(2, 1);
        let start = Instant::now();
        while start.elapsed() < SIGNAL_AFTER / 2 || bench.link.shared().unsent_bytes() > 0 {
            assert!(start.elapsed() < PATIENCE, "it stays");
            // Like a shard, which does this four times a second.
            bench.link.reclaim(&mut Vec::new());
            assert_eq!(bench.hand_over(), Taken::Yes);
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(bench.answer(), FLOW_MOD);
    }
}

/// Signals concurrent with the kernel's own neither duplicate nor lose replies.
#[test]
fn more_signals_than_replies_do_no_harm() {
    const ROUNDS: u32 = 50_000;
    let Some(kernel) = kernel() else { return };
    let mut bench = Bench::new(&kernel, Version::Of10);
    let attached = bench.link.attached.as_ref().unwrap();
    let relay = attached.relay.relay.try_clone().unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Relaxed) {
                let _ = send(&relay, &[0], SendFlags::DONTWAIT);
            }
        });
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let xid = |bench: &mut Bench| bench.answer_header().xid;
            bench.send(1, 2);
            let first = xid(&mut bench);
            for round in 1..ROUNDS {
                bench.send(1, 2);
                assert_eq!(xid(&mut bench), first + round);
            }
        }));
        is_done.store(true, Relaxed);
        result.unwrap();
    });
}

/// Bytes that were never seen cannot be recovered.
#[test]
fn a_connection_that_lost_input_ends() {
    let Some(kernel) = kernel() else { return };
    let mut bench = Bench::new(&kernel, Version::Of13);
    assert_eq!(bench.ask(1, 2), PACKET_OUT);
    bench.link.reclaim(&mut Vec::new());
    let Bench { socket, link, .. } = &mut bench;
    assert!(link.step_aside(socket.as_fd()).unwrap());
    assert!(link.step_in(socket.as_fd(), true).unwrap());
    assert!(
        link.step_aside(socket.as_fd()).unwrap(),
        "nothing is missing"
    );
    bench.send(2, 1);
    bench.socket.set_nonblocking(false).unwrap();
    let mut bytes = [0; 106];
    bench.socket.read_exact(&mut bytes).unwrap();
    // Simulates another reader of the socket.
    let Bench { socket, link, .. } = &mut bench;
    assert!(link.step_in(socket.as_fd(), true).unwrap());
    let error = link.step_aside(socket.as_fd()).unwrap_err().to_string();
    assert!(error.contains("dropped a part"), "{error}");
}

/// The kernel's maps accept no socket whose peer has closed its side, so the program answers the rest.
#[test]
fn a_half_closed_socket_stays_with_the_program() {
    let Some(kernel) = kernel() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut switch = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    switch.write_all(b"the last").unwrap();
    switch.shutdown(std::net::Shutdown::Write).unwrap();
    let mut said = [0; 8];
    (&socket).read_exact(&mut said).unwrap();
    assert_eq!((&socket).read(&mut [0]).unwrap(), 0);
    let opened = kernel.open_session().unwrap();
    prepare(&opened.memory, Version::Of13, Size::fixed(PLACES));
    let mut link = Link::new(kernel.clone(), opened, Mode::Kernel);
    for _ in 0..2 {
        let error = link.attach(socket.as_fd()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(link.shared().is_attached.load(Relaxed), 0);
    }
    assert!(link.may_write(socket.as_fd()));
    (&socket).write_all(b"an answer").unwrap();
    drop((link, socket));
    let mut answer = Vec::new();
    switch.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"an answer");
}

/// A connection that has stepped aside when its peer closes its side stays aside.
#[test]
fn a_half_closed_socket_does_not_step_in() {
    let Some(kernel) = kernel() else { return };
    let mut bench = Bench::new(&kernel, Version::Of13);
    assert_eq!(bench.ask(1, 2), PACKET_OUT);
    bench.link.reclaim(&mut Vec::new());
    while !bench.link.may_write(bench.socket.as_fd()) {
        std::thread::yield_now();
    }
    assert!(bench.link.step_aside(bench.socket.as_fd()).unwrap());
    bench.switch.shutdown(std::net::Shutdown::Write).unwrap();
    let start = Instant::now();
    while !matches!(bench.socket.read(&mut [0]), Ok(0)) {
        assert!(start.elapsed() < PATIENCE, "the end arrives");
    }
    assert!(!bench.link.step_in(bench.socket.as_fd(), true).unwrap());
    // Passed input may remain, and is read nevertheless.
    bench.link.enter_again(bench.socket.as_fd()).unwrap();
}
