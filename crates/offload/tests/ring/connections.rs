//! Connections that end, threads that share rings, and threads with several rings.

use crate::application::{Application, Shared, connect, serve, start};
use crate::packets::{Draw, Packet};
use crate::same_messages::Pair;
use crate::switch::{Channel, PATIENCE, headers, join};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use urtica_offload::ring::{MessageType, Ring, RingError, RingEvent, Rings};
use urtica_wire::{DatapathId, Version};

const PACKET_INS: [MessageType; 1] = [MessageType::PacketIn];
const XIDS: std::ops::Range<u32> = 0..100;

/// Stops threads even if a test fails.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Returns some packet-ins.
fn packet_ins(version: Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    XIDS.for_each(|xid| Packet::udp(1, 2).encode(version, xid, &mut bytes));
    bytes
}

#[test]
fn a_switch_that_closes_its_end_is_answered_before() {
    let Some(rings) = start(1, 1 << 20) else {
        return;
    };
    let application = Application::run(rings, &PACKET_INS);
    for version in Version::ALL {
        for _ in 0..50 {
            let mut socket = application.connect();
            join(&mut socket, version, 1);
            socket.write_all(&packet_ins(version)).unwrap();
            // The start of another message, which never ends.
            socket.write_all(&packet_ins(version)[..20]).unwrap();
            socket.shutdown(Shutdown::Write).unwrap();
            let mut said = Vec::new();
            socket.read_to_end(&mut said).unwrap();
            assert!(headers(&said).map(|header| header.xid).eq(XIDS));
        }
    }
    application.stop();
}

#[test]
fn a_switch_that_resets_its_connection_leaves() {
    let Some(rings) = start(1, 1 << 20) else {
        return;
    };
    let mut ring = rings.register(0).unwrap();
    ring.subscribe(MessageType::PacketIn).unwrap();
    let shared = Shared::default();
    for id in 1..20 {
        let mut socket = std::thread::scope(|scope| {
            let switch = scope.spawn(|| {
                let mut socket = connect(&rings);
                join(&mut socket, Version::Of13, id);
                socket
            });
            while !switch.is_finished() {
                serve(&mut ring, &shared);
            }
            switch.join().unwrap()
        });
        socket.write_all(&packet_ins(Version::Of13)).unwrap();
        let linger = Some(Duration::ZERO);
        socket2::SockRef::from(&socket).set_linger(linger).unwrap();
        drop(socket);
        let start = Instant::now();
        while ring.connections() > 0 {
            assert!(start.elapsed() < PATIENCE, "the switch is still there");
            serve(&mut ring, &shared);
        }
    }
}

/// Serves switches concurrently, each in order.
fn exchange(application_connect: impl Fn() -> TcpStream, switches: u64) {
    let streams = (1..=switches).map(|id| {
        let mut socket = application_connect();
        join(&mut socket, Version::Of13, id);
        socket
    });
    let mut streams: Vec<_> = streams.collect();
    for _ in 0..50 {
        for socket in &mut streams {
            socket.write_all(&packet_ins(Version::Of13)).unwrap();
        }
        for socket in &mut streams {
            let mut said = Vec::new();
            while headers(&said).count() < XIDS.len() {
                said.extend(socket.receive());
            }
            assert!(headers(&said).map(|header| header.xid).eq(XIDS));
        }
    }
}

#[test]
fn as_many_threads_as_rings() {
    let Some(rings) = start(3, 1 << 18) else {
        return;
    };
    let application = Application::run(rings, &PACKET_INS);
    exchange(|| application.connect(), 7);
    application.stop();
}

#[test]
fn fewer_threads_than_rings() {
    let Some(rings) = start(4, 1 << 18) else {
        return;
    };
    let is_stopping = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = Stop(&is_stopping);
        scope.spawn(|| {
            let numbers = 0..rings.count();
            let mut ends: Vec<_> = numbers.map(|number| registered(&rings, number)).collect();
            let shared = Shared::default();
            while !is_stopping.load(SeqCst) {
                wait_for_any(&ends);
                ends.iter_mut().for_each(|ring| serve_once(ring, &shared));
            }
        });
        exchange(|| connect(&rings), 7);
        drop(stop);
    });
}

#[test]
fn more_threads_than_rings() {
    let Some(rings) = start(1, 1 << 18) else {
        return;
    };
    let is_stopping = AtomicBool::new(false);
    let ring = parking_lot::Mutex::new(registered(&rings, 0));
    std::thread::scope(|scope| {
        let stop = Stop(&is_stopping);
        for _ in 0..3 {
            scope.spawn(|| {
                let shared = Shared::default();
                while !is_stopping.load(SeqCst) {
                    serve(&mut ring.lock(), &shared);
                }
            });
        }
        exchange(|| connect(&rings), 7);
        drop(stop);
    });
}

fn registered(rings: &Rings, number: usize) -> Ring {
    let mut ring = rings.register(number).unwrap();
    ring.subscribe(MessageType::PacketIn).unwrap();
    ring
}

fn wait_for_any(ends: &[Ring]) {
    let mut fds: Vec<_> = ends
        .iter()
        .map(|ring| PollFd::from_borrowed_fd(ring.as_fd(), PollFlags::IN))
        .collect();
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: 10_000_000,
    };
    poll(&mut fds, Some(&timeout)).unwrap();
}

fn serve_once(ring: &mut Ring, shared: &Shared) {
    if ring.poll(Duration::ZERO).unwrap() != Default::default() {
        serve(ring, shared);
    }
}

#[test]
fn each_ring_and_each_type_has_one_consumer() {
    let Some(rings) = start(2, 1 << 18) else {
        return;
    };
    assert!(matches!(
        rings.register(2),
        Err(RingError::NoSuchRing {
            number: 2,
            count: 2
        })
    ));
    let mut ring = rings.register(1).unwrap();
    assert!(matches!(rings.register(1), Err(RingError::Registered(1))));
    ring.subscribe(MessageType::PortStatus).unwrap();
    assert!(matches!(
        ring.subscribe(MessageType::PortStatus),
        Err(RingError::Subscribed)
    ));
    drop(ring);
    rings.register(1).unwrap();
}

#[test]
fn events_report_switches_that_join_and_leave() {
    let Some(rings) = start(1, 1 << 18) else {
        return;
    };
    let mut ring = registered(&rings, 0);
    ring.subscribe_events();
    let next_event = |ring: &mut Ring| {
        let start = Instant::now();
        loop {
            assert!(start.elapsed() < PATIENCE);
            if let Some(event) = ring.next_event() {
                return event;
            }
            ring.poll(Duration::from_millis(10)).unwrap();
            assert!(ring.next_record().is_none());
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut socket = connect(&rings);
            join(&mut socket, Version::Of10, 5);
        });
        let up = next_event(&mut ring);
        assert!(matches!(up, RingEvent::SwitchUp(switch) if switch.datapath_id == DatapathId(5)));
        let down = next_event(&mut ring);
        assert!(matches!(down, RingEvent::SwitchDown(switch) if switch.version == Version::Of10));
    });
}

/// Without a subscription, messages are passed to the session, in order.
#[test]
fn messages_of_other_types_reach_the_session() {
    let types = [
        MessageType::PacketIn,
        MessageType::PortStatus,
        MessageType::FlowRemoved,
    ];
    for subscribed in 0..=types.len() {
        let types = &types[..subscribed];
        let Some(rings) = start(1, 1 << 18) else {
            return;
        };
        let application = Application::run(rings, types);
        for version in Version::ALL {
            let mut draw = Draw::new(subscribed as u64);
            let mut pair = Pair::new(&application, version, 1, types);
            for xid in 0..300 {
                let mut bytes = Vec::new();
                for _ in 0..draw.below(4) + 1 {
                    unasked(&mut draw, version, xid, &mut bytes);
                }
                for piece in draw.cut(&bytes) {
                    pair.send(piece);
                }
                pair.compare();
            }
            pair.finish();
        }
        application.stop();
    }
}

/// Appends an asynchronous message, or an echo request. Some are cut short, which the session answers with an error.
fn unasked(draw: &mut Draw, version: Version, xid: u32, bytes: &mut Vec<u8>) {
    const ECHO_REQUEST: u8 = 2;
    const FLOW_REMOVED: u8 = 11;
    const PORT_STATUS: u8 = 12;
    let is_of10 = version == Version::Of10;
    let (message_type, length) = match draw.below(6) {
        0 => return draw.plain_packet().encode(version, xid, bytes),
        1 => (ECHO_REQUEST, 8),
        2 => (PORT_STATUS, if is_of10 { 64 } else { 80 }),
        3 => (FLOW_REMOVED, if is_of10 { 88 } else { 56 }),
        4 => (PORT_STATUS, 24),
        _ => (FLOW_REMOVED, 24),
    };
    let start = bytes.len();
    let header = [
        version.to_wire(),
        message_type,
        0,
        length,
        0,
        0,
        0,
        xid as u8,
    ];
    bytes.extend(header);
    bytes.resize(start + usize::from(length), 0);
    if message_type == FLOW_REMOVED && length == 56 {
        // A match without fields.
        bytes[start + 48..start + 52].copy_from_slice(&[0, 1, 0, 4]);
    }
}

#[test]
fn a_timer_flushes_replies() {
    let Some(rings) = start(1, 1 << 18) else {
        return;
    };
    let mut ring = registered(&rings, 0);
    ring.flush_every(Duration::from_millis(20));
    let is_stopping = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = Stop(&is_stopping);
        scope.spawn(|| {
            while !is_stopping.load(SeqCst) {
                let ready = ring.poll(Duration::from_millis(10)).unwrap();
                assert!(!ready.output, "the timer flushes");
                while let Some((record, mut replies)) = ring.next_record() {
                    let echo = urtica_wire::Message::EchoReply(b"");
                    replies.write(record.xid(), &echo).unwrap();
                }
            }
        });
        exchange_once(&rings);
        drop(stop);
    });
}

#[test]
fn replies_wait_for_the_program_to_flush_them() {
    let Some(rings) = start(1, 1 << 18) else {
        return;
    };
    let mut ring = registered(&rings, 0);
    let mut flushes = 0;
    let is_stopping = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = Stop(&is_stopping);
        let thread = scope.spawn(|| {
            while !is_stopping.load(SeqCst) {
                let ready = ring.poll(Duration::from_millis(10)).unwrap();
                if ready.input {
                    while let Some((record, mut replies)) = ring.next_record() {
                        let echo = urtica_wire::Message::EchoReply(b"");
                        replies.write(record.xid(), &echo).unwrap();
                    }
                } else if ready.output {
                    ring.flush();
                    flushes += 1;
                    assert!(
                        !ring.poll(Duration::ZERO).unwrap().output,
                        "all are flushed"
                    );
                }
            }
        });
        exchange_once(&rings);
        drop(stop);
        thread.join().unwrap();
    });
    assert!(flushes > 0);
}

fn exchange_once(rings: &Rings) {
    let mut socket = connect(rings);
    join(&mut socket, Version::Of10, 1);
    socket.write_all(&packet_ins(Version::Of10)).unwrap();
    let mut said = Vec::new();
    while headers(&said).count() < XIDS.len() {
        said.extend(socket.receive());
    }
    assert!(headers(&said).map(|header| header.xid).eq(XIDS));
}
