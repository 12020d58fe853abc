//! Each message reaches the program or the session as it would from a socket.

use crate::application::{Application, expected_answer, start};
use crate::packets::{Draw, Packet};
use crate::switch::{Channel, InMemory, join, settle};
use std::net::TcpStream;
use urtica_controller::{SwitchHandler, SwitchInfo};
use urtica_offload::ring::MessageType;
use urtica_wire::{Message, Version, split_frame};

/// A program that leaves all messages to the session.
struct Quiet;

impl SwitchHandler for Quiet {}

/// A switch, and its expected output, which comes from a model that reads message by message.
pub struct Pair {
    pub real: TcpStream,
    reference: InMemory,
    version: Version,
    types: Vec<MessageType>,
    /// The start of a message that the model has not completely received.
    rest: Vec<u8>,
    pub expected: Vec<u8>,
}

impl Pair {
    pub fn new(
        application: &Application,
        version: Version,
        id: u64,
        types: &[MessageType],
    ) -> Self {
        let mut real = application.connect();
        let mut reference = InMemory::new(|_: &SwitchInfo| Quiet);
        join(&mut real, version, id);
        join(&mut reference, version, id);
        Self {
            real,
            reference,
            version,
            types: types.to_vec(),
            rest: Vec::new(),
            expected: Vec::new(),
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.expect(bytes);
        self.real.send(bytes);
    }

    pub fn expect(&mut self, bytes: &[u8]) {
        let mut all = std::mem::take(&mut self.rest);
        all.extend_from_slice(bytes);
        let mut rest = &all[..];
        while let Ok(Some((message, after))) = split_frame(rest) {
            rest = after;
            match expected_answer(message, self.version, &self.types) {
                Some(answer) => self.expected.extend(answer),
                None => {
                    self.reference.send(message);
                    self.expected.extend(self.reference.take());
                }
            }
        }
        self.rest = rest.to_vec();
    }

    /// Waits until as much output as expected has arrived, and compares.
    pub fn compare(&mut self) {
        let mut said = Vec::new();
        while said.len() < self.expected.len() {
            said.extend(self.real.receive());
        }
        assert!(
            said == self.expected,
            "{}",
            difference(&said, &self.expected)
        );
        self.expected.clear();
    }

    /// Checks that no further output follows.
    pub fn finish(mut self) {
        self.compare();
        let (mut said, mut expected) = (Vec::new(), Vec::new());
        settle(&mut self.real, &mut said, self.version);
        settle(&mut self.reference, &mut expected, self.version);
        assert!(said == expected, "{}", difference(&said, &expected));
    }
}

fn difference(said: &[u8], expected: &[u8]) -> String {
    let at = said.iter().zip(expected).position(|(a, b)| a != b);
    let at = at.unwrap_or(said.len().min(expected.len()));
    let around = |bytes: &[u8]| {
        format!(
            "{:02x?}",
            &bytes[at.saturating_sub(40)..bytes.len().min(at + 40)]
        )
    };
    format!(
        "byte {at} of {}, expected {}:\n{}\nexpected\n{}",
        said.len(),
        expected.len(),
        around(said),
        around(expected)
    )
}

const PACKET_INS: [MessageType; 1] = [MessageType::PacketIn];

#[test]
fn a_random_stream_in_random_pieces() {
    let Some(rings) = start(1, 1 << 20) else {
        return;
    };
    let application = Application::run(rings, &PACKET_INS);
    for seed in 0..4 {
        for version in Version::ALL {
            let mut draw = Draw::new(seed);
            let mut pair = Pair::new(&application, version, seed + 1, &PACKET_INS);
            for _ in 0..60 {
                let stream = draw.stream(version, 60);
                for piece in draw.cut(&stream) {
                    pair.send(piece);
                }
                pair.compare();
            }
            assert!(
                application.counts().delivered_bytes > 0,
                "the kernel has put nothing into the ring"
            );
            pair.finish();
        }
    }
    application.stop();
}

#[test]
fn a_stream_cut_at_every_byte() {
    let Some(rings) = start(1, 1 << 20) else {
        return;
    };
    let application = Application::run(rings, &PACKET_INS);
    for version in Version::ALL {
        let mut stream = Vec::new();
        for (xid, (src, dst)) in [(1, 2), (2, 1), (1, 2)].into_iter().enumerate() {
            Packet::udp(src, dst).encode(version, xid as u32, &mut stream);
        }
        Message::EchoRequest(b"there?")
            .encode(version, 9, &mut stream)
            .unwrap();
        Packet::udp(2, 1).encode(version, 4, &mut stream);
        let mut pair = Pair::new(&application, version, 1, &PACKET_INS);
        for cut in 1..stream.len() {
            let (head, tail) = stream.split_at(cut);
            pair.send(head);
            pair.send(tail);
            pair.compare();
        }
        for piece in stream.chunks(1) {
            pair.send(piece);
        }
        pair.finish();
    }
    application.stop();
}
