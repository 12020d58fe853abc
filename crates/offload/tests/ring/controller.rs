//! A program written for the controller, used with rings: its replies equal those without rings, byte for byte.

use crate::flood::{MOST_HELD, fill};
use crate::packets::{Draw, Packet};
use crate::support::kernel_of_rings;
use crate::switch::{Channel, InMemory, PATIENCE, connect, headers, join, settle};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use urtica_apps::L2;
use urtica_controller::{
    Controller, Program, Running, SessionConfig, Switch, SwitchCounters, SwitchHandler, SwitchInfo,
};
use urtica_wire::{DatapathId, Message, PacketIn, PortNo, Version};

/// Starts a controller that runs this program with rings.
pub fn behind_rings(program: impl Program + 'static, shards: usize) -> Option<Running> {
    let mut session = SessionConfig::default();
    session.echo_interval = Duration::from_secs(3000);
    session.dead_interval = Duration::from_secs(6000);
    let controller = Controller::new()
        .session(session)
        .listen("ptcp:0:127.0.0.1".parse().unwrap())
        .input_rings(kernel_of_rings()?)
        .shards(shards)
        .program(program);
    Some(controller.start().unwrap())
}

fn l2(_: &SwitchInfo) -> L2 {
    L2::default()
}

fn counters(controller: &Running, id: u64) -> Arc<SwitchCounters> {
    controller.network().counters(DatapathId(id)).unwrap()
}

/// A switch of such a controller, and a switch whose controller has no rings; both receive equal input.
struct Pair {
    real: TcpStream,
    reference: InMemory,
    expected: Vec<u8>,
}

impl Pair {
    fn new(controller: &Running, version: Version, id: u64) -> Self {
        let (mut real, mut reference) = (connect(controller), InMemory::new(l2));
        join(&mut real, version, id);
        join(&mut reference, version, id);
        Self {
            real,
            reference,
            expected: Vec::new(),
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.reference.send(bytes);
        self.expected.extend(self.reference.take());
        self.real.send(bytes);
    }

    fn compare(&mut self) {
        let mut said = Vec::new();
        while said.len() < self.expected.len() {
            said.extend(self.real.receive());
        }
        assert!(said == self.expected, "the replies differ");
        self.expected.clear();
    }

    /// Checks that no further output follows.
    fn finish(mut self, version: Version) {
        self.compare();
        let (mut said, mut expected) = (Vec::new(), Vec::new());
        settle(&mut self.real, &mut said, version);
        settle(&mut self.reference, &mut expected, version);
        assert!(said == expected, "the replies differ");
    }
}

#[test]
fn a_random_stream_in_random_pieces() {
    let Some(controller) = behind_rings(l2, 1) else {
        return;
    };
    for seed in 0..4 {
        for version in Version::ALL {
            let mut draw = Draw::new(seed);
            let mut pair = Pair::new(&controller, version, seed + 1);
            for _ in 0..60 {
                let stream = draw.stream(version, 60);
                for piece in draw.cut(&stream) {
                    pair.send(piece);
                }
                pair.compare();
            }
            assert!(counters(&controller, seed + 1).through_rings.get() > 0);
            pair.finish(version);
        }
    }
    controller.stop().unwrap();
}

#[test]
fn a_stream_cut_at_every_byte() {
    let Some(controller) = behind_rings(l2, 1) else {
        return;
    };
    for version in Version::ALL {
        let mut stream = Vec::new();
        for (xid, (src, dst)) in [(1, 2), (2, 1), (1, 2)].into_iter().enumerate() {
            Packet::udp(src, dst).encode(version, xid as u32, &mut stream);
        }
        Message::EchoRequest(b"there?")
            .encode(version, 9, &mut stream)
            .unwrap();
        let mut pair = Pair::new(&controller, version, 1);
        for cut in 1..stream.len() {
            let (head, tail) = stream.split_at(cut);
            pair.send(head);
            pair.send(tail);
            pair.compare();
        }
        pair.finish(version);
    }
    controller.stop().unwrap();
}

/// A stream that cannot be split into messages ends the connection, with the error that is sent without rings.
#[test]
fn a_malformed_header_is_answered_as_without_rings() {
    let Some(controller) = behind_rings(l2, 1) else {
        return;
    };
    for version in Version::ALL {
        let mut pair = Pair::new(&controller, version, 1);
        let mut bytes = Vec::new();
        Packet::udp(1, 2).encode(version, 1, &mut bytes);
        pair.send(&bytes);
        pair.compare();
        // The length is less than a header's.
        let broken = [version.to_wire(), 10, 0, 7, 0, 0, 0, 9];
        pair.reference.handle(&broken).unwrap_err();
        let expected = pair.reference.take();
        pair.real.write_all(&broken).unwrap();
        let mut said = Vec::new();
        pair.real.read_to_end(&mut said).unwrap();
        assert_eq!(said, expected);
    }
    controller.stop().unwrap();
}

/// Blocks while the flag is set, and then answers each packet-in.
struct Held(Arc<AtomicBool>);

impl SwitchHandler for Held {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        while self.0.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        switch.forward(packet, PortNo::FLOOD);
    }
}

/// While the program is busy for long, the ring fills, then the socket, and then TCP stops the switch.
#[test]
fn a_late_program_loses_no_messages() {
    let is_held = Arc::new(AtomicBool::new(false));
    let held = Arc::clone(&is_held);
    let program = move |_: &SwitchInfo| Held(Arc::clone(&held));
    let Some(controller) = behind_rings(program, 1) else {
        return;
    };
    for version in Version::ALL {
        let mut socket = connect(&controller);
        join(&mut socket, version, 1);
        let counters = counters(&controller, 1);
        for round in 0.. {
            assert!(round < 50, "the ring is full now and then");
            is_held.store(true, SeqCst);
            let (sent, rest) = fill(&mut socket, version);
            assert!(sent.len() < MOST_HELD, "{} bytes were taken", sent.len());
            is_held.store(false, SeqCst);
            socket.write_all(&rest).unwrap();
            read_in_order(&mut socket, headers(&[sent, rest].concat()).count());
            settle(&mut socket, &mut Vec::new(), version);
            if counters.ring_full.get() > 0 {
                break;
            }
        }
    }
    controller.stop().unwrap();
}

/// Receives `count` messages, whose xids must be consecutive.
fn read_in_order(socket: &mut TcpStream, count: usize) {
    let (mut said, mut received, mut last) = (Vec::new(), 0, None);
    while received < count {
        said.extend(socket.receive());
        let mut handled = 0;
        for header in headers(&said) {
            let is_next = last.is_none_or(|last| header.xid == last + 1);
            assert!(is_next, "replies are lost or out of order");
            last = Some(header.xid);
            handled += usize::from(header.length);
            received += 1;
        }
        said.drain(..handled);
    }
}

#[test]
fn a_switch_that_closes_its_end_is_answered_before() {
    let Some(controller) = behind_rings(l2, 1) else {
        return;
    };
    for version in Version::ALL {
        for _ in 0..50 {
            let mut socket = connect(&controller);
            join(&mut socket, version, 1);
            let mut bytes = Vec::new();
            (0..100).for_each(|xid| Packet::udp(1, 2).encode(version, xid, &mut bytes));
            socket.write_all(&bytes).unwrap();
            // The start of another message, which never ends.
            socket.write_all(&bytes[..20]).unwrap();
            socket.shutdown(Shutdown::Write).unwrap();
            let mut said = Vec::new();
            socket.read_to_end(&mut said).unwrap();
            assert_eq!(headers(&said).count(), 100);
        }
    }
    controller.stop().unwrap();
}

/// Messages of other threads are sent between the replies, even while the kernel reads the input.
#[test]
fn requests_are_answered_through_the_ring() {
    let Some(controller) = behind_rings(l2, 2) else {
        return;
    };
    let mut socket = connect(&controller);
    join(&mut socket, Version::Of13, 1);
    for _ in 0..200 {
        let network = controller.network();
        let pending = network
            .request(DatapathId(1), &Message::BarrierRequest)
            .unwrap();
        let mut said = Vec::new();
        while headers(&said).next().is_none() {
            said.extend(socket.receive());
        }
        let request = headers(&said).next().unwrap();
        let mut reply = Vec::new();
        Message::BarrierReply
            .encode(Version::Of13, request.xid, &mut reply)
            .unwrap();
        socket.write_all(&reply).unwrap();
        pending.wait(PATIENCE).unwrap();
    }
    let counters = counters(&controller, 1);
    assert!(counters.through_rings.get() > 0);
    drop(socket);
    let start = Instant::now();
    while controller.network().counters(DatapathId(1)).is_some() {
        assert!(start.elapsed() < PATIENCE, "the switch is still there");
        std::thread::sleep(Duration::from_millis(1));
    }
    controller.stop().unwrap();
}
