//! The messages of a recorded switch: asynchronous messages, and answers to the controller's messages.
//!
//! In the recording, an answer belongs to the message with its xid. In a replay xids differ, so an answer belongs to the
//! message of that kind with that sequence number.

use super::kind::{Kind, OFPT_ERROR, OFPT_EXPERIMENTER, replied_to};
use super::recording::Session;
use crate::transcript::Side;
use std::collections::HashMap;
use std::time::Duration;
use urtica_wire::{Header, Version};

/// The messages for a controller.
pub struct Script {
    pub version: Version,
    /// The asynchronous messages.
    pub asynchronous: Vec<Asynchronous>,
    /// The recorded controller's messages, without keep-alives.
    pub expected: Vec<Vec<u8>>,
    /// The answers to each of the expected messages.
    answers: Vec<Vec<Vec<u8>>>,
    /// The indices of the expected messages of each kind, in order.
    of_kind: HashMap<Kind, Vec<usize>>,
}

/// A message that the switch sent without a request.
pub struct Asynchronous {
    /// The time since the session's first message.
    pub offset: Duration,
    /// Number of the controller's messages before it.
    pub after: usize,
    pub frame: Vec<u8>,
}

impl Script {
    pub fn new(session: Session) -> Self {
        let begin = session.begin();
        let mut script = Self {
            version: session.version,
            asynchronous: Vec::new(),
            expected: Vec::new(),
            answers: Vec::new(),
            of_kind: HashMap::new(),
        };
        let mut by_xid = ByXid::default();
        for step in session.steps {
            let kind = Kind::of(script.version, &step.frame);
            let xid = Header::peek(&step.frame).map_or(0, |header| header.xid);
            if kind.is_keep_alive() {
                continue;
            }
            match step.from {
                Side::Controller => {
                    by_xid.note(xid, kind, script.expected.len());
                    script.expect(kind, step.frame);
                }
                Side::Switch => {
                    let offset = step.time.saturating_sub(begin);
                    script.say(
                        by_xid.asked(script.version, xid, kind),
                        offset,
                        kind,
                        step.frame,
                    );
                }
            }
        }
        script
    }

    fn expect(&mut self, kind: Kind, frame: Vec<u8>) {
        let of_kind = self.of_kind.entry(kind).or_default();
        of_kind.push(self.expected.len());
        self.expected.push(frame);
        self.answers.push(Vec::new());
    }

    fn say(&mut self, asked: Option<usize>, offset: Duration, kind: Kind, frame: Vec<u8>) {
        match asked {
            Some(index) => self.answers[index].push(frame),
            // An answer to a request that is not in the recording.
            None if replied_to(self.version, kind.message_type).is_some() => {}
            None => self.asynchronous.push(Asynchronous {
                offset,
                after: self.expected.len(),
                frame,
            }),
        }
    }

    /// Returns the switch's answers to the `turn`th message of this kind, counted from 0. If the recording has fewer, a
    /// request gets the last one's answers.
    pub fn answers(&self, kind: Kind, turn: usize) -> &[Vec<u8>] {
        let Some(of_kind) = self.of_kind.get(&kind) else {
            return &[];
        };
        let answers = |&index: &usize| &self.answers[index][..];
        match of_kind.get(turn) {
            Some(index) => answers(index),
            None if kind.is_request(self.version) => {
                let mut answered = of_kind.iter().rev().map(answers);
                answered.find(|answers| !answers.is_empty()).unwrap_or(&[])
            }
            None => &[],
        }
    }
}

/// The controller's messages by their xids; for equal xids, the last message.
#[derive(Default)]
struct ByXid {
    of_type: HashMap<(u32, u8), usize>,
    last: HashMap<u32, usize>,
}

impl ByXid {
    fn note(&mut self, xid: u32, kind: Kind, index: usize) {
        self.of_type.insert((xid, kind.message_type), index);
        self.last.insert(xid, index);
    }

    /// Returns the index of the message that a message of the switch answers.
    fn asked(&self, version: Version, xid: u32, kind: Kind) -> Option<usize> {
        match kind.message_type {
            OFPT_ERROR => self.last.get(&xid).copied(),
            OFPT_EXPERIMENTER => self.of_type.get(&(xid, OFPT_EXPERIMENTER)).copied(),
            message_type => {
                let request = replied_to(version, message_type)?;
                self.of_type.get(&(xid, request)).copied()
            }
        }
    }
}
