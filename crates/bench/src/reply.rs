//! The full parser of a controller's answers to packet-ins, for all messages that the fast path does not recognize.
//!
//! Section numbers are those of OpenFlow 1.0.0 and 1.3.5.

use crate::actions::{Effect, Output};
use crate::bytes::{be16, be32};
use crate::config::Version;
use crate::frame::Packet;
use crate::identity::{IN_PORT, OUT_PORT};
use crate::matching::{Fit, Match};
use crate::packet_in::NO_BUFFER;

/// The kinds of message that answer a packet-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// OFPT_FLOW_MOD.
    FlowMod,
    /// OFPT_PACKET_OUT.
    PacketOut,
}

/// The parts of a reply that a switch uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The kind: flow mod or packet-out.
    pub kind: Kind,
    /// The header's xid.
    pub xid: u32,
    /// The buffer that it releases, or `NO_BUFFER`.
    pub buffer_id: u32,
    /// The offset of the buffer id in the message.
    pub buffer_at: usize,
    /// The match of a flow mod.
    pub matching: Match<'a>,
    /// Whether it is a packet-out, or a flow mod that adds an entry to the switch's only table.
    adds: bool,
    effect: Effect,
    /// The ingress port of a packet-out.
    in_port: u32,
    frame: &'a [u8],
}

/// The faults of a reply to a packet-in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// A flow mod that adds no entry.
    pub command: bool,
    /// The match does not match the packet, or a switch would refuse it.
    pub matching: bool,
    /// The match also matches packets to other destinations.
    pub broad: bool,
    /// The packet is output to a wrong port, to several ports, or not at all.
    pub port: bool,
    /// The packet is modified before it is output.
    pub rewritten: bool,
    /// The frame in the packet-out is not the packet-in's.
    pub frame: bool,
}

impl Faults {
    /// Returns `true` if there are no faults.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

const ADD: u16 = 0;
const ETH_SRC_IN_FRAME: usize = 6;

impl<'a> Reply<'a> {
    /// Parses a complete message of this version; `None` if it is malformed, or neither a flow mod nor a packet-out.
    pub fn parse(version: Version, message: &'a [u8]) -> Option<Self> {
        match (version, message.first_chunk::<2>()?) {
            (_, [other, _]) if *other != version.wire() => None,
            (Version::V10, [_, 14]) => Self::flow_mod_10(message),
            (Version::V13, [_, 14]) => Self::flow_mod_13(message),
            (_, [_, 13]) => Self::packet_out(version, message),
            _ => None,
        }
    }

    /// Parses an `ofp_flow_mod` (1.0: 5.3.3). Modifying a missing entry also adds it.
    fn flow_mod_10(message: &'a [u8]) -> Option<Self> {
        const MODIFY_STRICT: u16 = 2;
        let actions = message.get(72..)?;
        Some(Self {
            kind: Kind::FlowMod,
            xid: be32(message, 4)?,
            buffer_id: be32(message, 64)?,
            buffer_at: 64,
            matching: Match::Fixed(message.get(8..48)?.try_into().ok()?),
            adds: (ADD..=MODIFY_STRICT).contains(&be16(message, 56)?),
            effect: Effect::of_actions(Version::V10, actions)?,
            in_port: IN_PORT,
            frame: &[],
        })
    }

    /// Parses an `ofp_flow_mod` (1.3: 7.3.4.1).
    fn flow_mod_13(message: &'a [u8]) -> Option<Self> {
        const TABLE_AND_COMMAND_AT: usize = 24;
        const MATCH_AT: usize = 48;
        const OFPMT_OXM: u16 = 1;
        let match_len = usize::from(be16(message, MATCH_AT + 2)?);
        let oxm = message.get(MATCH_AT + 4..MATCH_AT + match_len)?;
        let instructions = message.get(MATCH_AT + match_len.next_multiple_of(8)..)?;
        if be16(message, MATCH_AT)? != OFPMT_OXM {
            return None;
        }
        Some(Self {
            kind: Kind::FlowMod,
            xid: be32(message, 4)?,
            buffer_id: be32(message, 32)?,
            buffer_at: 32,
            matching: Match::Oxm(oxm, MATCH_AT + 4),
            // Table 0, which is the only one, and OFPFC_ADD.
            adds: be16(message, TABLE_AND_COMMAND_AT)? == ADD,
            effect: Effect::of_instructions(instructions)?,
            in_port: IN_PORT,
            frame: &[],
        })
    }

    /// Parses an `ofp_packet_out` (1.0: 5.3.6, 1.3: 7.3.7).
    fn packet_out(version: Version, message: &'a [u8]) -> Option<Self> {
        let (len_at, actions_at) = match version {
            Version::V10 => (14, 16),
            Version::V13 => (16, 24),
        };
        let in_port = match version {
            Version::V10 => u32::from(be16(message, 12)?),
            Version::V13 => be32(message, 12)?,
        };
        let frame_at = actions_at + usize::from(be16(message, len_at)?);
        Some(Self {
            kind: Kind::PacketOut,
            xid: be32(message, 4)?,
            buffer_id: be32(message, 8)?,
            buffer_at: 8,
            matching: Match::None,
            adds: true,
            effect: Effect::of_actions(version, message.get(actions_at..frame_at)?)?,
            in_port,
            frame: message.get(frame_at..)?,
        })
    }

    /// Returns its faults as the reply to this packet, whose frame has `frame_len` bytes.
    pub fn faults(&self, packet: &Packet, frame_len: usize) -> Faults {
        let fit = self.matching.fit(packet);
        let carries = self.kind == Kind::PacketOut && self.buffer_id == NO_BUFFER;
        Faults {
            command: !self.adds,
            matching: fit == Fit::No,
            broad: fit == Fit::Broad,
            port: self.output() == Output::Wrong,
            rewritten: self.effect.rewrites(),
            frame: carries && !packet.is(self.frame, frame_len),
        }
    }

    /// Returns the packet's output. A switch skips the ingress port, so a packet-out must specify it correctly.
    pub fn output(&self) -> Output {
        let output = self.effect.output();
        let is_right = match output {
            Output::Flood => self.in_port == IN_PORT,
            _ => self.in_port != OUT_PORT,
        };
        if is_right { output } else { Output::Wrong }
    }

    /// Returns the offset in the message of an exactly matched source MAC, if there is one.
    pub fn eth_src_at(&self) -> Option<usize> {
        self.matching.eth_src_at()
    }

    /// Returns the source MAC in a packet-out's frame.
    pub fn frame_eth_src(&self) -> Option<[u8; 6]> {
        self.frame
            .get(ETH_SRC_IN_FRAME..ETH_SRC_IN_FRAME + 6)?
            .try_into()
            .ok()
    }
}

/// Replies as a learning switch writes them, for tests.
#[cfg(test)]
pub mod samples {
    use super::*;
    use crate::identity::Identity;
    use crate::packet_in::Cursor;

    const OXM_IN_PORT: u32 = 0x8000_0004;
    const OXM_ETH_DST: u32 = 0x8000_0606;
    const OXM_ETH_SRC: u32 = 0x8000_0806;

    /// Returns an exact flow mod of 80 bytes in 1.0.
    pub fn flow_mod_10(identity: Identity, cursor: Cursor, port: u16) -> Vec<u8> {
        let mut message = vec![1, 14, 0, 80];
        message.extend(cursor.xid().to_be_bytes());
        message.extend(0x003f_fff2u32.to_be_bytes());
        message.extend((IN_PORT as u16).to_be_bytes());
        message.extend(identity.source_bytes(cursor.source));
        message.extend(identity.destination());
        message.resize(64, 0);
        message.extend(cursor.buffer_id.to_be_bytes());
        message.extend([0xff, 0xff, 0, 0, 0, 0, 0, 8]);
        message.extend(port.to_be_bytes());
        message.extend([0, 0]);
        message
    }

    /// Returns a flow mod with in_port, eth_dst and eth_src in 1.3: 104 bytes.
    pub fn flow_mod_13(identity: Identity, cursor: Cursor, port: u32) -> Vec<u8> {
        let mut message = vec![4, 14, 0, 104];
        message.extend(cursor.xid().to_be_bytes());
        message.resize(32, 0);
        message.extend(cursor.buffer_id.to_be_bytes());
        message.resize(48, 0);
        message.extend([0, 1, 0, 32]);
        message.extend(OXM_IN_PORT.to_be_bytes());
        message.extend(IN_PORT.to_be_bytes());
        message.extend(OXM_ETH_DST.to_be_bytes());
        message.extend(identity.destination());
        message.extend(OXM_ETH_SRC.to_be_bytes());
        message.extend(identity.source_bytes(cursor.source));
        message.extend([0, 4, 0, 24, 0, 0, 0, 0, 0, 0, 0, 16]);
        message.extend(port.to_be_bytes());
        message.resize(104, 0);
        message
    }

    /// Returns a packet-out without data.
    pub fn packet_out(version: Version, cursor: Cursor, port: u32) -> Vec<u8> {
        let mut message = vec![
            version.wire(),
            13,
            0,
            if version == Version::V10 { 24 } else { 40 },
        ];
        message.extend(cursor.xid().to_be_bytes());
        message.extend(cursor.buffer_id.to_be_bytes());
        match version {
            Version::V10 => {
                message.extend([0, 1, 0, 8, 0, 0, 0, 8]);
                message.extend((port as u16).to_be_bytes());
                message.extend([0, 0]);
            }
            Version::V13 => {
                message.extend([0, 0, 0, 1, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16]);
                message.extend(port.to_be_bytes());
                message.resize(40, 0);
            }
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::samples::*;
    use super::*;
    use crate::config::Addresses;
    use crate::frame::FrameKind;
    use crate::hosts::Hosts;
    use crate::identity::Identity;
    use crate::packet_in::Cursor;
    use proptest::prelude::*;

    const ME: u64 = 7;
    const FRAME_LEN: usize = 64;

    fn at(seq: u64) -> Cursor {
        Cursor::at(seq, Hosts::new(100, Addresses::InTurn, ME))
    }

    fn packet(id: u64, cursor: Cursor) -> Packet {
        Packet::new(FrameKind::Cbench, Identity::new(id), cursor.source)
    }

    #[test]
    fn flow_mods_of_both_versions() {
        let (identity, cursor) = (Identity::new(ME), at(5));
        let messages = [
            (Version::V10, flow_mod_10(identity, cursor, 2), 14),
            (Version::V13, flow_mod_13(identity, cursor, 2), 74),
        ];
        for (version, message, eth_src_at) in messages {
            let reply = Reply::parse(version, &message).unwrap();
            assert_eq!(
                (reply.kind, reply.xid, reply.buffer_id),
                (Kind::FlowMod, 5, 6)
            );
            assert_eq!(reply.output(), Output::Right);
            assert_eq!(reply.eth_src_at(), Some(eth_src_at));
            let faults = |packet: Packet| reply.faults(&packet, FRAME_LEN);
            let wrong_match = Faults {
                matching: true,
                ..Faults::default()
            };
            assert!(faults(packet(ME, cursor)).is_empty());
            assert_eq!(faults(packet(ME, cursor.next())), wrong_match);
            assert_eq!(faults(packet(ME + 1, cursor)), wrong_match);
        }
    }

    #[test]
    fn packet_outs_of_both_versions() {
        for version in [Version::V10, Version::V13] {
            let outputs = [
                (2, Output::Right),
                (0xffff_fffb, Output::Flood),
                (0xffff_fffc, Output::Flood),
                (3, Output::Wrong),
            ];
            for (port, output) in outputs {
                let message = packet_out(version, at(5), port);
                let reply = Reply::parse(version, &message).unwrap();
                assert_eq!(
                    (reply.kind, reply.buffer_id, reply.output()),
                    (Kind::PacketOut, 6, output)
                );
            }
        }
    }

    #[test]
    fn a_message_of_another_version_is_malformed() {
        let mut message = flow_mod_10(Identity::new(ME), at(5), 2);
        message[0] = 4;
        assert_eq!(Reply::parse(Version::V10, &message), None);
    }

    #[test]
    fn zero_lengths_inside_are_malformed_and_end() {
        let mut message = flow_mod_10(Identity::new(ME), at(5), 2);
        message[75] = 0;
        assert_eq!(Reply::parse(Version::V10, &message), None);
        let mut message = flow_mod_13(Identity::new(ME), at(5), 2);
        message[83] = 0;
        assert_eq!(Reply::parse(Version::V13, &message), None);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(mut message in proptest::collection::vec(any::<u8>(), 8..200), flow_mod: bool, v13: bool) {
            let version = if v13 { Version::V13 } else { Version::V10 };
            message[0] = version.wire();
            message[1] = if flow_mod { 14 } else { 13 };
            if let Some(reply) = Reply::parse(version, &message) {
                reply.faults(&packet(ME, at(1)), FRAME_LEN);
                reply.eth_src_at();
                reply.matching.eth_dst();
                reply.frame_eth_src();
            }
        }

        #[test]
        fn broken_flow_mods_never_panic(byte in 8usize..104, value: u8, v13: bool) {
            let (version, mut message) = if v13 {
                (Version::V13, flow_mod_13(Identity::new(ME), at(5), 2))
            } else {
                (Version::V10, flow_mod_10(Identity::new(ME), at(5), 2))
            };
            if let Some(broken) = message.get_mut(byte) {
                *broken = value;
            }
            if let Some(reply) = Reply::parse(version, &message) {
                reply.faults(&packet(ME, at(5)), FRAME_LEN);
                reply.eth_src_at();
            }
        }
    }
}
