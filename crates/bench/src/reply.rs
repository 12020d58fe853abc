//! A controller's answer to a packet-in, read in full: the judge for everything that the fast path does not recognise.
//!
//! Section numbers are those of OpenFlow 1.0.0 and 1.3.5.

use crate::config::Version;
use crate::packet_in::{Cursor, IN_PORT, IP_PROTO, IPV4_DST, IPV4_SRC, Identity, OUT_PORT};

/// The kinds of message that answer a packet-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// OFPT_FLOW_MOD.
    FlowMod,
    /// OFPT_PACKET_OUT.
    PacketOut,
}

/// Where a reply sends the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// To the port on which the destination was announced.
    Right,
    /// To all ports.
    Flood,
    /// Anywhere else, or nowhere.
    Wrong,
}

/// What one reply says, as far as a switch cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Flow mod or packet-out.
    pub kind: Kind,
    /// The header's xid.
    pub xid: u32,
    /// The buffer that it releases, or NO_BUFFER.
    pub buffer_id: u32,
    /// Where in the message the buffer id stands.
    pub buffer_at: usize,
    /// Where its actions send the packet.
    pub output: Output,
    matching: Match<'a>,
    frame: &'a [u8],
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Match<'a> {
    /// A packet-out matches nothing.
    None,
    /// `ofp_match` of 1.0 (5.2.3): 40 bytes.
    Fixed(&'a [u8; 40]),
    /// OXM TLVs of 1.3 (7.2.3), and where in the message they stand.
    Oxm(&'a [u8], usize),
}

const WILDCARD_IN_PORT: u32 = 1 << 0;
const WILDCARD_ETH_SRC: u32 = 1 << 2;
const WILDCARD_ETH_DST: u32 = 1 << 3;
const WILDCARD_ETH_TYPE: u32 = 1 << 4;
const WILDCARD_IP_PROTO: u32 = 1 << 5;
const WILDCARD_IPV4_SRC_SHIFT: u32 = 8;
const WILDCARD_IPV4_DST_SHIFT: u32 = 14;

const OXM_IN_PORT: u32 = 0x8000_0004;
const OXM_ETH_DST: u32 = 0x8000_0606;
const OXM_ETH_SRC: u32 = 0x8000_0806;
const OXM_ETH_TYPE: u32 = 0x8000_0a02;
const OXM_IP_PROTO: u32 = 0x8000_1401;
const OXM_IPV4_SRC: u32 = 0x8000_1604;
const OXM_IPV4_DST: u32 = 0x8000_1804;

const ETH_TYPE_IPV4: u16 = 0x0800;
const ETH_SRC_IN_FIXED_MATCH: usize = 6;
const ETH_SRC_IN_FRAME: usize = 6;

impl<'a> Reply<'a> {
    /// Reads a complete message of this version; `None` if it is neither flow mod nor packet-out, or is malformed.
    pub fn parse(version: Version, message: &'a [u8]) -> Option<Self> {
        match (version, *message.get(1)?) {
            (Version::V10, 14) => Self::flow_mod_10(message),
            (Version::V13, 14) => Self::flow_mod_13(message),
            (_, 13) => Self::packet_out(version, message),
            _ => None,
        }
    }

    /// `ofp_flow_mod` (1.0: 5.3.3).
    fn flow_mod_10(message: &'a [u8]) -> Option<Self> {
        let actions = message.get(72..)?;
        Some(Self {
            kind: Kind::FlowMod,
            xid: be32(message, 4)?,
            buffer_id: be32(message, 64)?,
            buffer_at: 64,
            output: output_of(Version::V10, actions)?,
            matching: Match::Fixed(message.get(8..48)?.try_into().ok()?),
            frame: &[],
        })
    }

    /// `ofp_flow_mod` (1.3: 7.3.4.1).
    fn flow_mod_13(message: &'a [u8]) -> Option<Self> {
        const MATCH_AT: usize = 48;
        let match_len = usize::from(be16(message, MATCH_AT + 2)?);
        let oxm = message.get(MATCH_AT + 4..MATCH_AT + match_len)?;
        let instructions = message.get(MATCH_AT + match_len.next_multiple_of(8)..)?;
        Some(Self {
            kind: Kind::FlowMod,
            xid: be32(message, 4)?,
            buffer_id: be32(message, 32)?,
            buffer_at: 32,
            output: output_of_instructions(instructions)?,
            matching: Match::Oxm(oxm, MATCH_AT + 4),
            frame: &[],
        })
    }

    /// `ofp_packet_out` (1.0: 5.3.6, 1.3: 7.3.7).
    fn packet_out(version: Version, message: &'a [u8]) -> Option<Self> {
        let (len_at, actions_at) = match version {
            Version::V10 => (14, 16),
            Version::V13 => (16, 24),
        };
        let frame_at = actions_at + usize::from(be16(message, len_at)?);
        Some(Self {
            kind: Kind::PacketOut,
            xid: be32(message, 4)?,
            buffer_id: be32(message, 8)?,
            buffer_at: 8,
            output: output_of(version, message.get(actions_at..frame_at)?)?,
            matching: Match::None,
            frame: message.get(frame_at..)?,
        })
    }

    /// Whether the match agrees with the packet-in at `cursor`: each field that it names has the packet's value. Fields
    /// that the benchmark's frames do not vary in are taken on trust.
    pub fn agrees(&self, identity: Identity, cursor: Cursor) -> bool {
        match self.matching {
            Match::None => true,
            Match::Fixed(fields) => fixed_agrees(fields, identity, cursor),
            Match::Oxm(fields, _) => oxm_agrees(fields, identity, cursor),
        }
    }

    /// Where in the message the match names the source MAC exactly, if it does.
    pub fn eth_src_at(&self) -> Option<usize> {
        match self.matching {
            Match::None => None,
            Match::Fixed(fields) => {
                let wildcards = be32(fields, 0)?;
                (wildcards & WILDCARD_ETH_SRC == 0).then_some(8 + ETH_SRC_IN_FIXED_MATCH)
            }
            Match::Oxm(fields, at) => {
                let mut offset = at;
                for (header, value) in oxm_fields(fields) {
                    if header == OXM_ETH_SRC {
                        return Some(offset + 4);
                    }
                    offset += 4 + value.len();
                }
                None
            }
        }
    }

    /// The source MAC of the frame that a packet-out carries.
    pub fn frame_eth_src(&self) -> Option<[u8; 6]> {
        self.frame
            .get(ETH_SRC_IN_FRAME..ETH_SRC_IN_FRAME + 6)?
            .try_into()
            .ok()
    }
}

fn fixed_agrees(fields: &[u8; 40], identity: Identity, cursor: Cursor) -> bool {
    let wildcards = be32(fields, 0).unwrap_or(0);
    let given = |wildcard| wildcards & wildcard == 0;
    let prefix = |shift| u32::MAX.checked_shl(wildcards >> shift & 0x3f).unwrap_or(0);
    (!given(WILDCARD_IN_PORT) || be16(fields, 4) == Some(IN_PORT as u16))
        && (!given(WILDCARD_ETH_SRC) || fields[6..12] == identity.source_bytes(cursor.source))
        && (!given(WILDCARD_ETH_DST) || fields[12..18] == identity.destination())
        && (!given(WILDCARD_ETH_TYPE) || be16(fields, 22) == Some(ETH_TYPE_IPV4))
        && (!given(WILDCARD_IP_PROTO) || fields[25] == IP_PROTO)
        && be32(fields, 28).is_some_and(|ip| (ip ^ IPV4_SRC) & prefix(WILDCARD_IPV4_SRC_SHIFT) == 0)
        && be32(fields, 32).is_some_and(|ip| (ip ^ IPV4_DST) & prefix(WILDCARD_IPV4_DST_SHIFT) == 0)
}

fn oxm_agrees(fields: &[u8], identity: Identity, cursor: Cursor) -> bool {
    oxm_fields(fields).all(|(header, value)| match header {
        OXM_IN_PORT => value == IN_PORT.to_be_bytes(),
        OXM_ETH_DST => value == identity.destination(),
        OXM_ETH_SRC => value == identity.source_bytes(cursor.source),
        OXM_ETH_TYPE => value == ETH_TYPE_IPV4.to_be_bytes(),
        OXM_IP_PROTO => value == [IP_PROTO],
        OXM_IPV4_SRC => value == IPV4_SRC.to_be_bytes(),
        OXM_IPV4_DST => value == IPV4_DST.to_be_bytes(),
        _ => true,
    })
}

/// The OXM TLVs up to the first that overruns.
fn oxm_fields(mut fields: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    std::iter::from_fn(move || {
        let header = be32(fields, 0)?;
        let end = 4 + (header & 0xff) as usize;
        let value = fields.get(4..end)?;
        fields = &fields[end..];
        Some((header, value))
    })
}

/// The output of the first apply-actions or write-actions instruction; `None` if a length is wrong.
fn output_of_instructions(mut instructions: &[u8]) -> Option<Output> {
    const WRITE_ACTIONS: u16 = 3;
    const APPLY_ACTIONS: u16 = 4;
    while !instructions.is_empty() {
        let len = usize::from(be16(instructions, 2)?);
        let instruction = instructions.get(..len).filter(|_| len >= 8)?;
        if matches!(be16(instruction, 0)?, WRITE_ACTIONS | APPLY_ACTIONS) {
            return output_of(Version::V13, &instruction[8..]);
        }
        instructions = &instructions[len..];
    }
    Some(Output::Wrong)
}

/// Where an action list sends the packet; `None` if a length is wrong.
fn output_of(version: Version, mut actions: &[u8]) -> Option<Output> {
    const OUTPUT: u16 = 0;
    let mut output = None;
    while !actions.is_empty() {
        let len = usize::from(be16(actions, 2)?);
        let action = actions.get(..len).filter(|_| len >= 8)?;
        if be16(action, 0)? == OUTPUT {
            let port = match version {
                Version::V10 => {
                    u32::from(be16(action, 4)?) | if action[4] == 0xff { 0xffff_0000 } else { 0 }
                }
                Version::V13 => be32(action, 4)?,
            };
            // Outputs to several ports are taken for a flood that lists them.
            output = Some(if output.is_none() {
                output_to(port)
            } else {
                Output::Flood
            });
        }
        actions = &actions[len..];
    }
    Some(output.unwrap_or(Output::Wrong))
}

fn output_to(port: u32) -> Output {
    const FLOOD: u32 = 0xffff_fffb;
    const ALL: u32 = 0xffff_fffc;
    match port {
        OUT_PORT => Output::Right,
        FLOOD | ALL => Output::Flood,
        _ => Output::Wrong,
    }
}

/// The big-endian 16-bit number at `at`, if there is one.
pub fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The big-endian 32-bit number at `at`, if there is one.
pub fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Replies as a learning switch writes them, for tests.
#[cfg(test)]
pub mod samples {
    use super::*;

    /// An exact flow mod of 80 bytes in 1.0.
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

    /// A flow mod with in_port, eth_dst and eth_src in 1.3: 104 bytes.
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

    /// A packet-out without data.
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
    use proptest::prelude::*;

    const ME: u64 = 7;

    #[test]
    fn flow_mods_of_both_versions() {
        let (identity, cursor) = (Identity::new(ME), Cursor::at(5, 100));
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
            assert_eq!(reply.output, Output::Right);
            assert_eq!(reply.eth_src_at(), Some(eth_src_at));
            assert!(reply.agrees(identity, cursor));
            assert!(!reply.agrees(identity, cursor.next()));
            assert!(!reply.agrees(Identity::new(ME + 1), cursor));
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
                let message = packet_out(version, Cursor::at(5, 100), port);
                let reply = Reply::parse(version, &message).unwrap();
                assert_eq!(
                    (reply.kind, reply.buffer_id, reply.output),
                    (Kind::PacketOut, 6, output)
                );
            }
        }
    }

    #[test]
    fn a_wildcarded_match_agrees_with_everything() {
        let mut message = flow_mod_10(Identity::new(ME), Cursor::at(5, 100), 2);
        message[8..12].copy_from_slice(&0x003f_ffffu32.to_be_bytes());
        let reply = Reply::parse(Version::V10, &message).unwrap();
        assert!(reply.agrees(Identity::new(1), Cursor::at(50, 100)));
        assert_eq!(reply.eth_src_at(), None);
    }

    #[test]
    fn zero_lengths_inside_are_malformed_and_end() {
        let mut message = flow_mod_10(Identity::new(ME), Cursor::at(5, 100), 2);
        message[75] = 0;
        assert_eq!(Reply::parse(Version::V10, &message), None);
        let mut message = flow_mod_13(Identity::new(ME), Cursor::at(5, 100), 2);
        message[83] = 0;
        assert_eq!(Reply::parse(Version::V13, &message), None);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(mut message in proptest::collection::vec(any::<u8>(), 8..200), flow_mod: bool) {
            message[1] = if flow_mod { 14 } else { 13 };
            for version in [Version::V10, Version::V13] {
                if let Some(reply) = Reply::parse(version, &message) {
                    reply.agrees(Identity::new(ME), Cursor::at(1, 10));
                    reply.eth_src_at();
                    reply.frame_eth_src();
                }
            }
        }
    }
}
