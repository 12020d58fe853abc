//! Matches replies to their packet-ins, and checks them.
//!
//! A packet-in is *answered* by the reply that releases its buffer: a flow mod or packet-out with its buffer id, a packet-out
//! that contains its frame, or a flow mod without a buffer id but with the packet-in's xid. Some controllers send both kinds
//! of message for a packet-in, which count as one answer.
//!
//! Most replies are alike and in order, and are matched by [`crate::template`]; all others are checked here, one by one.

use std::ops::AddAssign;
use std::sync::Arc;

use serde::Serialize;

use crate::actions::Output;
use crate::config::{Expect, Version};
use crate::frame::{FrameKind, Packet};
use crate::identity::Identity;
use crate::matching::Fit;
use crate::outstanding::{BufferIdState, Outstanding};
use crate::packet_in::{Cursor, NO_BUFFER};
use crate::reply::{Faults, Kind, Reply};
use crate::template::{Check, Template};

/// Counts of replies to packet-ins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Packet-ins that were answered.
    pub answered: u64,
    /// Flow mods received, for any purpose.
    pub flow_mods: u64,
    /// Packet-outs received, for any purpose.
    pub packet_outs: u64,
    /// Flow mods and packet-outs without a buffer id that answer no packet-in, such as additional entries.
    pub unbuffered: u64,
    /// Replies that flood a packet although its destination had been announced.
    pub flooded: u64,
    /// Replies that send the packet to a wrong port, to several ports, or to none.
    pub wrong_port: u64,
    /// Flow mods whose match does not match the packet-in's packet, or that a switch would refuse.
    pub wrong_match: u64,
    /// Flow mods whose match also matches packets to other destinations.
    pub broad_match: u64,
    /// Flow mods that add no entry, but delete entries, or are for a missing table.
    pub wrong_command: u64,
    /// Replies that modify the packet before they output it.
    pub rewritten: u64,
    /// Packet-outs with a frame other than the packet-in's.
    pub wrong_frame: u64,
    /// Replies with a buffer id that no packet-in had.
    pub unknown_buffer: u64,
    /// Further replies to packet-ins that had been answered.
    pub duplicates: u64,
    /// Replies received before the reply to an earlier packet-in of the same switch.
    pub out_of_order: u64,
    /// Flow mods and packet-outs that cannot be decoded.
    pub malformed: u64,
    /// Packet-ins that count as lost.
    pub lost: u64,
    /// OFPT_ERROR messages from the controller.
    pub errors: u64,
}

impl Tally {
    /// Returns the number of flow mods and packet-outs received, which cbench does not distinguish.
    pub fn messages(&self) -> u64 {
        self.flow_mods + self.packet_outs
    }

    /// Counts the faults of a reply.
    pub fn note(&mut self, faults: Faults) {
        self.wrong_port += u64::from(faults.port);
        self.wrong_match += u64::from(faults.matching);
        self.broad_match += u64::from(faults.broad);
        self.wrong_command += u64::from(faults.command);
        self.rewritten += u64::from(faults.rewritten);
        self.wrong_frame += u64::from(faults.frame);
    }

    /// Returns the number of faulty replies, among those checked, plus that of lost packet-ins.
    pub fn faults(&self) -> u64 {
        self.wrong_port
            + self.wrong_match
            + self.broad_match
            + self.wrong_command
            + self.rewritten
            + self.wrong_frame
            + self.unknown_buffer
            + self.duplicates
            + self.malformed
            + self.lost
            + self.errors
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.answered += other.answered;
        self.flow_mods += other.flow_mods;
        self.packet_outs += other.packet_outs;
        self.unbuffered += other.unbuffered;
        self.flooded += other.flooded;
        self.wrong_port += other.wrong_port;
        self.wrong_match += other.wrong_match;
        self.broad_match += other.broad_match;
        self.wrong_command += other.wrong_command;
        self.rewritten += other.rewritten;
        self.wrong_frame += other.wrong_frame;
        self.unknown_buffer += other.unknown_buffer;
        self.duplicates += other.duplicates;
        self.out_of_order += other.out_of_order;
        self.malformed += other.malformed;
        self.lost += other.lost;
        self.errors += other.errors;
    }
}

/// The rules for replies.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The version of all messages.
    pub version: Version,
    /// Whether to check more than buffer ids.
    pub verify: bool,
    /// The expected replies.
    pub expect: Expect,
    /// Whether destinations were announced, so that floods are counted.
    pub announced: bool,
    /// The kinds of frame, which are sent in rotation.
    pub frames: Arc<[FrameKind]>,
    /// The length of each frame in bytes.
    pub frame_len: usize,
}

impl Rules {
    /// Returns the packet-in's packet at `cursor`.
    pub fn packet(&self, identity: Identity, cursor: Cursor) -> Packet {
        let kind = self.frames[cursor.turn(self.frames.len())];
        Packet::new(kind, identity, cursor.source)
    }

    /// Returns `true` if replies must do more than identify a packet-in.
    pub fn look_inside(&self) -> bool {
        self.verify && self.expect == Expect::Learning
    }
}

/// The form of the controller's current replies.
struct Learned {
    kind: Kind,
    /// Whether each such reply counts as flooded.
    floods: bool,
    template: Template,
}

/// Matches one switch's replies to its packet-ins.
pub struct Checker {
    rules: Rules,
    identity: Identity,
    /// The learned form for each kind of frame.
    learned: Box<[Option<Learned>]>,
    /// The number of packet-ins answered by a flow mod without buffer id, for which a packet-out with the buffer id may follow.
    awaiting_packet_out: u64,
}

impl Checker {
    /// Creates a checker for the replies to the switch `identity`.
    pub fn new(rules: Rules, identity: Identity) -> Self {
        Self {
            learned: rules.frames.iter().map(|_| None).collect(),
            rules,
            identity,
            awaiting_packet_out: 0,
        }
    }

    /// Consumes the replies at the front of `bytes` that match the template. Bytes from `end` on are slack. Returns the number of
    /// bytes consumed, and calls `record(latency_ns, how_many)`.
    #[inline]
    pub fn take_run(
        &mut self,
        bytes: &[u8],
        end: usize,
        outstanding: &mut Outstanding,
        now_ns: u64,
        tally: &mut Tally,
        record: impl FnMut(u64, u64),
    ) -> usize {
        let (mut record, mut taken) = (record, 0);
        loop {
            // With several kinds of frame, consecutive replies differ.
            let most = if self.learned.len() == 1 { u64::MAX } else { 1 };
            let (rest, left) = (&bytes[taken..], end - taken);
            match self.take_alike(rest, left, most, outstanding, now_ns, tally, &mut record) {
                0 => return taken,
                bytes => taken += bytes,
            }
            if most == u64::MAX {
                return taken;
            }
        }
    }

    /// Consumes up to `most` replies that are alike.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "those of take_run")]
    fn take_alike(
        &self,
        bytes: &[u8],
        end: usize,
        most: u64,
        outstanding: &mut Outstanding,
        now_ns: u64,
        tally: &mut Tally,
        record: impl FnMut(u64, u64),
    ) -> usize {
        let mut cursor = outstanding.head();
        let Some(Learned {
            kind,
            floods,
            template,
        }) = &self.learned[cursor.turn(self.learned.len())]
        else {
            return 0;
        };
        let check = if self.rules.verify {
            Check::Whole
        } else {
            Check::Count
        };
        let limit = outstanding.in_order_limit().min(most);
        let count = template.take_run(check, bytes, end, self.identity, &mut cursor, limit);
        if count == 0 {
            return 0;
        }
        outstanding.answer_in_order(cursor, now_ns, record);
        tally.answered += count;
        match kind {
            Kind::FlowMod => tally.flow_mods += count,
            Kind::PacketOut => tally.packet_outs += count,
        }
        tally.flooded += if *floods { count } else { 0 };
        count as usize * template.len()
    }

    /// Checks one complete flow mod or packet-out. Calls `record(latency_ns, 1)` if it answers a packet-in.
    pub fn check(
        &mut self,
        message: &[u8],
        outstanding: &mut Outstanding,
        now_ns: u64,
        tally: &mut Tally,
        mut record: impl FnMut(u64, u64),
    ) {
        let Some(reply) = Reply::parse(self.rules.version, message) else {
            tally.malformed += 1;
            return;
        };
        match reply.kind {
            Kind::FlowMod => tally.flow_mods += 1,
            Kind::PacketOut => tally.packet_outs += 1,
        }
        match self.place(&reply, outstanding) {
            BufferIdState::Waiting(cursor) => {
                let (latency_ns, early) = outstanding.answer(cursor.seq, now_ns);
                record(latency_ns, 1);
                tally.answered += 1;
                tally.out_of_order += u64::from(early);
                self.awaiting_packet_out +=
                    u64::from(reply.buffer_id == NO_BUFFER && reply.kind == Kind::FlowMod);
                let flooded = tally.flooded;
                let packet = self.rules.packet(self.identity, cursor);
                let right = self.is_right(&reply, &packet, tally);
                if right && reply.buffer_id == cursor.buffer_id {
                    let template = Template::from_reply(message, &reply, self.identity, cursor);
                    let (kind, floods) = (reply.kind, tally.flooded > flooded);
                    let turn = cursor.turn(self.learned.len());
                    self.learned[turn] = template.map(|template| Learned {
                        kind,
                        floods,
                        template,
                    });
                }
            }
            BufferIdState::Answered
                if reply.kind == Kind::PacketOut && self.awaiting_packet_out > 0 =>
            {
                self.awaiting_packet_out -= 1;
                let packet = self.rules.packet(self.identity, outstanding.head());
                self.is_right(&reply, &packet, tally);
            }
            BufferIdState::Answered => tally.duplicates += 1,
            BufferIdState::Never if reply.buffer_id == NO_BUFFER => {
                tally.unbuffered += 1;
                self.check_unbuffered(&reply, outstanding, tally);
            }
            BufferIdState::Never => tally.unknown_buffer += 1,
        }
    }

    /// Returns the packet-in that the reply is for.
    fn place(&self, reply: &Reply<'_>, outstanding: &Outstanding) -> BufferIdState {
        if reply.buffer_id != NO_BUFFER {
            return outstanding.find_buffer(reply.buffer_id);
        }
        match reply.kind {
            Kind::PacketOut => self.place_of_frame(reply, outstanding),
            // A controller may number its messages with the same xids, so the match must match the packet as well.
            Kind::FlowMod => match outstanding.find_xid(reply.xid) {
                BufferIdState::Waiting(cursor)
                    if reply.matching.eth_src_at().is_some()
                        && self.fit(reply, cursor) == Fit::Exact =>
                {
                    BufferIdState::Waiting(cursor)
                }
                _ => BufferIdState::Never,
            },
        }
    }

    fn fit(&self, reply: &Reply<'_>, cursor: Cursor) -> Fit {
        reply
            .matching
            .fit(&self.rules.packet(self.identity, cursor))
    }

    fn place_of_frame(&self, reply: &Reply<'_>, outstanding: &Outstanding) -> BufferIdState {
        let Some(mac) = reply.frame_eth_src() else {
            return BufferIdState::Never;
        };
        match self.identity.number_of(mac) {
            Some(source) => outstanding.find_source(source),
            None => BufferIdState::Never,
        }
    }

    /// Returns `true` if the reply to this packet is correct, as far as the rules require a check, and counts its faults.
    fn is_right(&self, reply: &Reply<'_>, packet: &Packet, tally: &mut Tally) -> bool {
        if !self.rules.look_inside() {
            return true;
        }
        let faults = reply.faults(packet, self.rules.frame_len);
        tally.note(faults);
        let floods = reply.output() == Output::Flood;
        tally.flooded += u64::from(floods && self.rules.announced);
        faults.is_empty()
    }

    /// Checks a flow mod that releases no buffer, and therefore answers no packet-in, but is about packets of this load, since
    /// its match contains their destination. The source in the match determines the packet-in for which it was meant.
    fn check_unbuffered(&self, reply: &Reply<'_>, outstanding: &Outstanding, tally: &mut Tally) {
        let is_ours = reply.matching.eth_dst() == Some(self.identity.destination());
        if !is_ours || reply.kind != Kind::FlowMod || !self.rules.look_inside() {
            return;
        }
        let mut packet = self.rules.packet(self.identity, outstanding.head());
        let named = reply.matching.eth_src();
        let is_host = |mac: &[u8; 6]| self.identity.number_of(*mac).is_some();
        packet.eth_src = named.filter(is_host).unwrap_or(packet.eth_src);
        // Of several kinds of frame, the one that it matches is used.
        let kinds = self
            .rules
            .frames
            .iter()
            .map(|&kind| Packet { kind, ..packet });
        let fitting = kinds
            .clone()
            .find(|packet| reply.matching.fit(packet) == Fit::Exact);
        tally.note(reply.faults(&fitting.unwrap_or(packet), self.rules.frame_len));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::bytes::be16;
    use crate::config::Addresses;
    use crate::hosts::Hosts;
    use crate::naive::NaiveChecker;
    use crate::outstanding::SendTimes;
    use crate::reply::samples::{flow_mod_10, flow_mod_13, packet_out};
    use crate::template::SLACK;

    fn rules(version: Version, verify: bool) -> Rules {
        Rules {
            version,
            verify,
            expect: Expect::Learning,
            announced: true,
            frames: [FrameKind::Cbench].into(),
            frame_len: 64,
        }
    }

    fn hosts() -> Hosts {
        Hosts::new(7, Addresses::InTurn, 1)
    }

    fn at(seq: u64) -> Cursor {
        Cursor::at(seq, hosts())
    }

    fn sent(count: u64) -> Outstanding {
        let mut outstanding = Outstanding::new(1000, hosts(), SendTimes::Clock(VecDeque::new()));
        outstanding.sent(count, 0);
        outstanding
    }

    /// Checks `bytes` like a load thread: runs as long as possible, then one message with the full check.
    fn check(checker: &mut Checker, outstanding: &mut Outstanding, bytes: &[u8]) -> (Tally, u64) {
        let (mut tally, mut recorded, end) = (Tally::default(), 0, bytes.len());
        let bytes = [bytes, &[0xa5; SLACK]].concat();
        let mut at = 0;
        loop {
            let mut record = |_, count| recorded += count;
            at += checker.take_run(
                &bytes[at..],
                end - at,
                outstanding,
                1,
                &mut tally,
                &mut record,
            );
            let Some(len) = be16(&bytes[..end], at + 2)
                .map(usize::from)
                .filter(|len| end - at >= *len)
            else {
                break;
            };
            checker.check(
                &bytes[at..at + len],
                outstanding,
                1,
                &mut tally,
                &mut record,
            );
            at += len;
        }
        (tally, recorded)
    }

    fn answer(version: Version, identity: Identity, seq: u64, port: u32) -> Vec<u8> {
        let cursor = at(seq);
        match version {
            Version::V10 => flow_mod_10(identity, cursor, port as u16),
            Version::V13 => flow_mod_13(identity, cursor, port),
        }
    }

    #[test]
    fn correct_answers_use_the_fast_path() {
        let identity = Identity::new(3);
        for version in [Version::V10, Version::V13] {
            let (mut checker, mut outstanding) =
                (Checker::new(rules(version, true), identity), sent(100));
            let bytes: Vec<u8> = (0..100)
                .flat_map(|seq| answer(version, identity, seq, 2))
                .collect();
            let first = answer(version, identity, 0, 2).len();
            let mut tally = Tally::default();
            checker.check(&bytes[..first], &mut outstanding, 1, &mut tally, |_, _| ());
            let rest = [&bytes[first..], &[0; SLACK]].concat();
            let taken = checker.take_run(
                &rest,
                bytes.len() - first,
                &mut outstanding,
                1,
                &mut tally,
                |_, _| (),
            );
            assert_eq!(taken, bytes.len() - first);
            assert_eq!(
                tally,
                Tally {
                    answered: 100,
                    flow_mods: 100,
                    ..Tally::default()
                }
            );
        }
    }

    #[test]
    fn a_single_wrong_byte_is_seen_only_when_verifying() {
        let identity = Identity::new(3);
        let mut bytes: Vec<u8> = (0..10)
            .flat_map(|seq| answer(Version::V10, identity, seq, 2))
            .collect();
        // The low byte of the output port in the sixth reply.
        bytes[5 * 80 + 77] = 9;
        for (verify, wrong_port) in [(true, 1), (false, 0)] {
            let (tally, _) = check(
                &mut Checker::new(rules(Version::V10, verify), identity),
                &mut sent(10),
                &bytes,
            );
            assert_eq!((tally.answered, tally.wrong_port), (10, wrong_port));
        }
    }

    #[test]
    fn flow_mod_and_packet_out_answer_once() {
        let identity = Identity::new(3);
        let mut flow_mod = answer(Version::V10, identity, 0, 2);
        flow_mod[64..68].fill(0xff);
        let bytes = [flow_mod.clone(), packet_out(Version::V10, at(0), 2)].concat();
        // A flow mod with the packet-in's xid answers it; with another xid, only the packet-out does.
        let (tally, recorded) = check(
            &mut Checker::new(rules(Version::V10, true), identity),
            &mut sent(2),
            &bytes,
        );
        assert_eq!((tally.answered, tally.duplicates, recorded), (1, 0, 1));
        flow_mod[4] = 0x77;
        let bytes = [flow_mod, packet_out(Version::V10, at(0), 2)].concat();
        let (tally, recorded) = check(
            &mut Checker::new(rules(Version::V10, true), identity),
            &mut sent(2),
            &bytes,
        );
        assert_eq!(
            (tally.answered, tally.unbuffered, tally.duplicates, recorded),
            (1, 1, 0, 1)
        );
    }

    #[test]
    fn a_packet_out_with_its_frame_answers_by_the_frame() {
        let identity = Identity::new(3);
        let mut message = packet_out(Version::V10, at(4), 2);
        message[8..12].fill(0xff);
        message[13] = 1;
        message.extend(identity.destination());
        message.extend(identity.source_bytes(4));
        message.extend(&FrameKind::Cbench.image(64)[12..]);
        message[3] = message.len() as u8;
        let (tally, _) = check(
            &mut Checker::new(rules(Version::V10, true), identity),
            &mut sent(6),
            &message,
        );
        assert_eq!(
            (tally.answered, tally.out_of_order, tally.faults()),
            (1, 1, 0)
        );
    }

    #[test]
    fn floods_are_counted_on_the_fast_path_too() {
        let identity = Identity::new(3);
        let bytes: Vec<u8> = (0..10)
            .flat_map(|seq| packet_out(Version::V13, at(seq), 0xffff_fffb))
            .collect();
        for (announced, flooded) in [(true, 10), (false, 0)] {
            let rules = Rules {
                announced,
                ..rules(Version::V13, true)
            };
            let (tally, _) = check(&mut Checker::new(rules, identity), &mut sent(10), &bytes);
            assert_eq!(
                (tally.answered, tally.flooded, tally.faults()),
                (10, flooded, 0)
            );
        }
    }

    /// A modification of the stream of answers.
    #[derive(Clone, Debug)]
    enum Mishap {
        Swap(usize),
        Drop(usize),
        Repeat(usize),
        Flip(usize, usize, u8),
        PacketOut(usize, u32),
    }

    fn mishap() -> impl Strategy<Value = Mishap> {
        prop_oneof![
            (0usize..60).prop_map(Mishap::Swap),
            (0usize..60).prop_map(Mishap::Drop),
            (0usize..60).prop_map(Mishap::Repeat),
            (0usize..60, 8usize..80, 1u8..)
                .prop_map(|(at, byte, bits)| Mishap::Flip(at, byte, bits)),
            (0usize..60, 0u32..5).prop_map(|(at, port)| Mishap::PacketOut(at, port)),
        ]
    }

    fn apply(version: Version, messages: &mut Vec<Vec<u8>>, mishap: &Mishap) {
        let count = messages.len();
        match *mishap {
            Mishap::Swap(at) if at + 1 < count => messages.swap(at, at + 1),
            Mishap::Drop(at) if at < count => drop(messages.remove(at)),
            Mishap::Repeat(at) if at < count => messages.push(messages[at].clone()),
            Mishap::Flip(at, byte, bits) if at < count && byte < messages[at].len() => {
                messages[at][byte] ^= bits
            }
            Mishap::PacketOut(index, port) if index < count => {
                messages[index] = packet_out(version, at(index as u64), port)
            }
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_naive_checker(
            v13: bool,
            verify: bool,
            answered in 0u64..60,
            mishaps in proptest::collection::vec(mishap(), 0..6),
        ) {
            let version = if v13 { Version::V13 } else { Version::V10 };
            let identity = Identity::new(300);
            let mut messages: Vec<_> = (0..answered).map(|seq| answer(version, identity, seq, 2)).collect();
            // Without verification, the fast path does not inspect replies, so a malformed one is not noticed.
            let mishaps = mishaps.iter().filter(|mishap| verify || !matches!(mishap, Mishap::Flip(..)));
            mishaps.for_each(|mishap| apply(version, &mut messages, mishap));
            let bytes = messages.concat();
            let (tally, recorded) = check(&mut Checker::new(rules(version, verify), identity), &mut sent(60), &bytes);
            let naive = NaiveChecker::new(rules(version, verify), identity, hosts(), 60).check(&bytes);
            prop_assert_eq!(tally, naive);
            prop_assert_eq!(recorded, tally.answered);
        }
    }
}
