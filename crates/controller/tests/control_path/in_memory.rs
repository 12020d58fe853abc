//! An embedded controller whose switches are bytes, in time that a test advances.

use crate::support::*;
use std::time::Duration;
use urtica_controller::{ConnectionId, Controller, Embedded};
use urtica_wire::{DatapathId, Features, Message, MultipartFlags, Version, split_frame};

/// Parses bytes written as in the specification: in hex, with spaces anywhere.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Splits bytes into messages.
pub fn frames(bytes: &[u8]) -> Vec<Frame> {
    let mut rest = bytes;
    let mut frames = Vec::new();
    while let Some((frame, after)) = split_frame(rest).unwrap() {
        frames.push(Frame(frame.to_vec()));
        rest = after;
    }
    assert!(rest.is_empty(), "half a message");
    frames
}

/// An embedded controller with a clock.
pub struct Bench {
    pub controller: Embedded,
    pub now: Duration,
}

impl Bench {
    pub fn new(controller: Controller) -> Self {
        Self {
            controller: controller.embed().unwrap(),
            now: Duration::ZERO,
        }
    }

    /// Opens a connection without input.
    pub fn connect(&mut self) -> ConnectionId {
        self.controller.connect("a test".into(), self.now)
    }

    /// Connects a switch with this id, ports 1 to 3 and two tables, which joins. Its output so far is discarded.
    pub fn join(&mut self, version: Version, id: u64) -> ConnectionId {
        let (switch, _) = self.join_with_tables(version, id, 2);
        switch
    }

    /// Like `join`, with `tables` tables; also returns the messages sent after the features request.
    pub fn join_with_tables(
        &mut self,
        version: Version,
        id: u64,
        n_tables: u8,
    ) -> (ConnectionId, Vec<Frame>) {
        let switch = self.connect();
        self.input(switch, &[version.to_wire(), 0, 0, 8, 0, 0, 0, 0]);
        let mut told = self.take(switch).split_off(1);
        let xid = told.remove(0).header().xid;
        let Message::FeaturesReply(features) = features(version, id) else {
            panic!("expected features");
        };
        let features = Message::FeaturesReply(Features {
            n_tables,
            ..features
        });
        self.input(switch, &encode(version, xid, &features));
        told.extend(self.take(switch));
        if version == Version::Of13 {
            let described = port_desc(MultipartFlags::empty(), &[1, 2, 3]);
            self.input(switch, &encode(version, told[1].header().xid, &described));
        }
        self.poll();
        (switch, told)
    }

    pub fn input(&mut self, switch: ConnectionId, bytes: &[u8]) {
        self.controller
            .handle_input(switch, bytes, self.now)
            .unwrap();
    }

    pub fn packet_in(&mut self, switch: ConnectionId, version: Version) {
        let packet = encode(version, 0, &Message::PacketIn(packet_in(&UDP)));
        self.input(switch, &packet);
    }

    /// Runs programs that can run; no connection may end.
    pub fn poll(&mut self) {
        let ended = self.controller.poll(self.now);
        assert!(ended.is_empty(), "{ended:?}");
    }

    /// Lets time pass, at most until `end`, from one time-out to the next.
    pub fn run_until(&mut self, end: Duration) {
        while let Some(due) = self.controller.next_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.poll();
        }
        self.now = end;
        self.poll();
    }

    /// Removes and returns a switch's output.
    pub fn take_bytes(&mut self, switch: ConnectionId) -> Vec<u8> {
        let output = self.controller.output(switch);
        output.map(std::mem::take).unwrap_or_default()
    }

    /// Removes and returns the messages in a switch's output.
    pub fn take(&mut self, switch: ConnectionId) -> Vec<Frame> {
        frames(&self.take_bytes(switch))
    }

    pub fn is_connected(&self, id: u64) -> bool {
        self.controller.network().info(DatapathId(id)).is_some()
    }
}

/// Returns the hello and features reply of a 1.0 switch with id 1 and no ports.
pub fn said_by_hand() -> Vec<u8> {
    let mut said = hex("01 00 0008 00000000");
    said.extend(hex(
        "01 06 0020 00000002  0000000000000001  00000100 01 000000 00000000 00000000",
    ));
    said
}

/// Returns a 1.0 packet-in with [`UDP`], which the switch has in buffer 7.
pub fn packet_in_by_hand() -> Vec<u8> {
    let mut packet = hex("01 0a 0040 00000000  00000007 002e 0001 00 00");
    packet.extend(UDP);
    packet
}
