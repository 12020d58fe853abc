//! A connection whose segments come late, twice, in part or never: what `urtica decode` prints are messages that were sent, in their
//! order, each once; all of them if nothing was lost, and else it is told that something is missing.
//!
//! The input: four bytes of sequence number, one that says whether the beginning was captured, then a segment for each two bytes: how long
//! it is, and what becomes of it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::VecDeque;
use urtica_recordings::decode::{Connections, Outcome};
use urtica_recordings::{Direction, Segment};

/// Fills messages; no message begins with it.
const FILLER: u8 = 0xee;

/// How many segments may be late.
const LATE_MAX: usize = 8;

/// More than is acknowledged before bytes count as lost.
const ACKNOWLEDGED_TIMES: u32 = 20;

fuzz_target!(|bytes: &[u8]| {
    let [s0, s1, s2, s3, flags, plan @ ..] = bytes else {
        return;
    };
    let start = u32::from_le_bytes([*s0, *s1, *s2, *s3]);
    let mut run = Run::new(start, flags & 1 == 0);
    for step in plan.chunks_exact(2) {
        run.step(step[0], step[1]);
    }
    run.finish(flags & 2 == 0);
});

struct Run {
    connections: Connections<'static>,
    told: Vec<u8>,
    /// Where the stream starts.
    start: u32,
    has_beginning: bool,
    /// How many bytes were sent, and the message that is being sent.
    sent: u32,
    message: VecDeque<u8>,
    messages: u32,
    late: VecDeque<(u32, Vec<u8>)>,
    lost: u32,
}

impl Run {
    fn new(start: u32, has_beginning: bool) -> Self {
        let mut run = Self {
            connections: Connections::new(&[6653], false),
            told: Vec::new(),
            start,
            has_beginning,
            sent: 0,
            message: VecDeque::new(),
            messages: 0,
            late: VecDeque::new(),
            lost: 0,
        };
        if has_beginning {
            let syn = Segment {
                seq: start.wrapping_sub(1),
                starts: true,
                ..Segment::default()
            };
            run.take(&syn);
        }
        run
    }

    /// Sends the next segment: in time, late, twice, in part, or not at all.
    fn step(&mut self, length: u8, fate: u8) {
        let (at, bytes) = (self.sent, self.next_bytes(usize::from(length) + 1));
        // What a capture without a beginning begins with must have come.
        let is_first = at == 0 && !self.has_beginning;
        match fate % 8 {
            0 if !is_first && self.late.len() < LATE_MAX => self.late.push_back((at, bytes)),
            1 => {
                self.deliver(at, &bytes, 0);
                self.deliver(at, &bytes, 0);
            }
            2 if !is_first => self.lost += bytes.len() as u32,
            3 => {
                let there = usize::from(fate / 8) % bytes.len() + 1;
                let cut = bytes.len() - there;
                self.lost += cut as u32;
                self.deliver(at, &bytes[..there], cut as u32);
            }
            4 => {
                self.deliver(at, &bytes, 0);
                self.deliver_late(usize::from(fate / 8));
            }
            _ => self.deliver(at, &bytes, 0),
        }
    }

    fn finish(mut self, is_acknowledged: bool) {
        while !self.late.is_empty() {
            self.deliver_late(0);
        }
        if is_acknowledged || self.lost > 0 {
            for _ in 0..ACKNOWLEDGED_TIMES {
                self.acknowledge(self.sent);
            }
        }
        let outcome = self.connections.finish(&mut self.told).expect("writing to memory");
        let told = String::from_utf8(self.told).expect("text");
        let printed: Vec<u32> = told.lines().filter_map(xid).collect();
        assert!(printed.is_sorted_by(|a, b| a < b), "{told}");
        assert!(printed.iter().all(|&xid| xid < self.messages), "{told}");
        let whole = self.messages - u32::from(!self.message.is_empty());
        if self.lost == 0 && self.has_beginning {
            assert_eq!(printed.len() as u32, whole, "{told}");
        }
        if self.lost == 0 && self.message.is_empty() {
            assert_eq!(outcome, Outcome::AllRead, "{told}");
        }
        // A single byte at the end may be the connection's end.
        if self.lost > 1 {
            assert_eq!(outcome, Outcome::SomeUnreadable, "{told}");
        }
    }

    /// The next bytes of the stream: echo requests of all lengths, which are numbered.
    fn next_bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count);
        while bytes.len() < count {
            if self.message.is_empty() {
                let payload = self.messages.wrapping_mul(37) % 300;
                let [l0, l1] = (8 + payload as u16).to_be_bytes();
                self.message.extend([4, 2, l0, l1]);
                self.message.extend(self.messages.to_be_bytes());
                self.message.extend(std::iter::repeat_n(FILLER, payload as usize));
                self.messages += 1;
            }
            bytes.extend(self.message.pop_front());
        }
        self.sent += bytes.len() as u32;
        bytes
    }

    fn deliver_late(&mut self, which: usize) {
        let which = which % self.late.len().max(1);
        if let Some((at, bytes)) = self.late.remove(which) {
            self.deliver(at, &bytes, 0);
        }
    }

    fn deliver(&mut self, at: u32, bytes: &[u8], cut: u32) {
        let segment = Segment {
            seq: self.start.wrapping_add(at),
            payload: bytes,
            cut,
            ..Segment::default()
        };
        self.take(&segment);
    }

    fn acknowledge(&mut self, until: u32) {
        let segment = Segment {
            ack: Some(self.start.wrapping_add(until)),
            ..Segment::default()
        };
        let packet = Some((direction().reversed(), segment));
        self.connections
            .packet(packet, &mut self.told)
            .expect("writing to memory");
    }

    fn take(&mut self, segment: &Segment<'_>) {
        self.connections
            .packet(Some((direction(), *segment)), &mut self.told)
            .expect("writing to memory");
    }
}

fn direction() -> Direction {
    Direction {
        from: ([10, 0, 0, 1], 43210).into(),
        to: ([10, 0, 0, 2], 6653).into(),
    }
}

/// The xid of a message that was printed.
fn xid(line: &str) -> Option<u32> {
    let (_, rest) = line.split_once("OFPT_ECHO_REQUEST (OF1.3) (xid=0x")?;
    let (digits, _) = rest.split_once(')')?;
    u32::from_str_radix(digits, 16).ok()
}
