//! The simplest possible checker: a map of outstanding packet-ins, and one reply at a time. It is the reference model of the
//! fast one in tests.

use std::collections::BTreeMap;

use crate::actions::Output;
use crate::bytes::be16;
use crate::checker::{Rules, Tally};
use crate::hosts::Hosts;
use crate::identity::Identity;
use crate::packet_in::{BUFFER_IDS, Cursor, NO_BUFFER};
use crate::reply::{Kind, Reply};

/// The state of one of the last `BUFFER_IDS` packet-ins of a switch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Answered,
}

/// A checker without a fast path.
pub struct NaiveChecker {
    rules: Rules,
    identity: Identity,
    hosts: Hosts,
    sent: BTreeMap<u64, State>,
}

impl NaiveChecker {
    pub fn new(rules: Rules, identity: Identity, hosts: Hosts, sent: u64) -> Self {
        Self {
            rules,
            identity,
            hosts,
            sent: (0..sent).map(|seq| (seq, State::Waiting)).collect(),
        }
    }

    /// Checks all complete messages in `bytes`, which must be flow mods and packet-outs, with or without a buffer id.
    pub fn check(&mut self, mut bytes: &[u8]) -> Tally {
        let mut tally = Tally::default();
        while let Some(message) = be16(bytes, 2).and_then(|len| bytes.get(..usize::from(len))) {
            self.check_one(message, &mut tally);
            bytes = &bytes[message.len()..];
        }
        tally
    }

    fn check_one(&mut self, message: &[u8], tally: &mut Tally) {
        let Some(reply) = Reply::parse(self.rules.version, message) else {
            tally.malformed += 1;
            return;
        };
        match reply.kind {
            Kind::FlowMod => tally.flow_mods += 1,
            Kind::PacketOut => tally.packet_outs += 1,
        }
        if reply.buffer_id == NO_BUFFER {
            tally.unbuffered += 1;
            return;
        }
        let sent = self.sent.iter().rev();
        let found = sent
            .map(|(&seq, &state)| (Cursor::at(seq, self.hosts), state))
            .find(|(cursor, _)| cursor.buffer_id == reply.buffer_id);
        match found {
            None => tally.unknown_buffer += 1,
            Some((_, State::Answered)) => tally.duplicates += 1,
            Some((cursor, State::Waiting)) => self.check_answer(&reply, cursor, tally),
        }
    }

    fn check_answer(&mut self, reply: &Reply<'_>, cursor: Cursor, tally: &mut Tally) {
        let oldest = self
            .sent
            .iter()
            .find(|(_, state)| **state == State::Waiting)
            .map(|(&seq, _)| seq);
        tally.out_of_order += u64::from(oldest != Some(cursor.seq));
        self.sent.insert(cursor.seq, State::Answered);
        tally.answered += 1;
        if !self.rules.look_inside() {
            return;
        }
        let packet = self.rules.packet(self.identity, cursor);
        tally.note(reply.faults(&packet, self.rules.frame_len));
        tally.flooded += u64::from(reply.output() == Output::Flood && self.rules.announced);
    }
}

/// Buffer ids are unique among the packet-ins of a test.
const _: () = assert!(BUFFER_IDS > 1000);
