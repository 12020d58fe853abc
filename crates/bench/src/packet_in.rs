//! The packet-ins that emulated switches send: in OpenFlow 1.0, by default cbench's, byte for byte; in 1.3, with the same frame.
//!
//! The xid, buffer id, kind of frame and source MAC of a packet-in are determined by its position in the switch's sequence, so
//! they need not be stored: a [`Cursor`] walks the sequence, a [`Train`] patches these bytes into a prepared image, and a
//! message that was sent in part is generated again.

use std::ops::Range;

use crate::config::Version;
use crate::frame::{FrameKind, IPV4_DST, Packet, VLAN_PCP, VLAN_VID};
use crate::hosts::Hosts;
use crate::identity::{IN_PORT, Identity, OUT_PORT};

/// The number of buffer ids: they start at 1 and wrap to 0 here, as in cbench.
pub const BUFFER_IDS: u32 = 100_000;

/// The buffer id that means "not buffered".
pub const NO_BUFFER: u32 = u32::MAX;

const TRAIN_BYTES: usize = 65_536;

/// A position in a switch's sequence of packet-ins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The number of packet-ins before this one.
    pub seq: u64,
    /// Its buffer id.
    pub buffer_id: u32,
    /// The address number of its source, which determines the MAC.
    pub source: u32,
    /// The number of the source host.
    host: u32,
    hosts: Hosts,
}

impl Cursor {
    /// Returns the position after `seq` packet-ins from these hosts.
    pub fn at(seq: u64, hosts: Hosts) -> Self {
        let host = hosts.number_at(seq);
        Self {
            seq,
            buffer_id: ((seq + 1) % u64::from(BUFFER_IDS)) as u32,
            source: hosts.address(host),
            host,
            hosts,
        }
    }

    /// Returns the xid of this packet-in.
    #[inline]
    pub fn xid(self) -> u32 {
        self.seq as u32
    }

    /// Returns the index of its kind of frame among `kinds` that are sent in rotation.
    #[inline]
    pub fn turn(self, kinds: usize) -> usize {
        if kinds == 1 {
            0
        } else {
            (self.seq % kinds as u64) as usize
        }
    }

    /// Returns the next position.
    #[inline]
    pub fn next(self) -> Self {
        let buffer_id = self.buffer_id + 1;
        let host = self.hosts.number_after(self.host, self.seq);
        Self {
            seq: self.seq + 1,
            buffer_id: if buffer_id == BUFFER_IDS {
                0
            } else {
                buffer_id
            },
            source: self.hosts.address(host),
            host,
            hosts: self.hosts,
        }
    }

    /// Returns the position after `count` further packet-ins.
    pub fn skip(self, count: u64) -> Self {
        Self::at(self.seq + count, self.hosts)
    }
}

/// Consecutive packet-ins, ready to be sent, in an image that all switches of a thread share. With several kinds of frame, the
/// image contains them in rotation and is longer by one cycle, so that it can be sent from any kind on.
pub struct Train {
    image: Vec<u8>,
    kinds: Vec<FrameKind>,
    message_len: usize,
    frame_at: usize,
    capacity: usize,
}

impl Train {
    /// Creates an image of as many packet-ins with frames of `frame_len` bytes as fit into 64 KiB.
    pub fn new(version: Version, frame_len: usize, kinds: &[FrameKind]) -> Self {
        let header = packet_in_header(version, frame_len);
        let frame_at = header.len();
        let message_len = frame_at + frame_len;
        let capacity = TRAIN_BYTES / message_len;
        let mut kinds_in_turn = kinds.iter().cycle();
        let messages = (0..capacity + kinds.len() - 1).flat_map(|_| {
            let kind = kinds_in_turn.next().unwrap_or(&FrameKind::Cbench);
            [header.clone(), kind.image(frame_len)].concat()
        });
        Self {
            image: messages.collect(),
            kinds: kinds.to_vec(),
            message_len,
            frame_at,
            capacity,
        }
    }

    /// Returns the length of each packet-in in bytes.
    pub fn message_len(&self) -> usize {
        self.message_len
    }

    /// Returns the maximum number of consecutive packet-ins.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the bytes of `count` packet-ins of this switch, starting at `cursor`; at most [`Train::capacity`].
    #[inline]
    pub fn load(&mut self, identity: Identity, cursor: Cursor, count: usize) -> &[u8] {
        let count = count.min(self.capacity);
        let begin = cursor.turn(self.kinds.len()) * self.message_len;
        let bytes = begin..begin + count * self.message_len;
        self.patch(bytes.clone(), identity, cursor);
        if self.kinds.contains(&FrameKind::Arp) {
            self.patch_arp(bytes.clone(), identity, cursor);
        }
        &self.image[bytes]
    }

    #[inline]
    fn patch(&mut self, bytes: Range<usize>, identity: Identity, mut cursor: Cursor) {
        let [d0, d1, d2, d3, d4, d5] = identity.destination();
        let destination = [d0, d1, d2, d3, d4, d5, 0, 0];
        for message in self.image[bytes].chunks_exact_mut(self.message_len) {
            let ids = u64::from(cursor.xid()) << 32 | u64::from(cursor.buffer_id);
            message[4..12].copy_from_slice(&ids.to_be_bytes());
            // Each write has eight bytes: the destination's overlaps the source, the source's overlaps the EtherType.
            let addresses = &mut message[self.frame_at..self.frame_at + 14];
            let eth_type = u64::from(addresses[12]) | u64::from(addresses[13]) << 8;
            let source_and_eth_type = identity.source(cursor.source) | eth_type << 48;
            addresses[..8].copy_from_slice(&destination);
            addresses[6..].copy_from_slice(&source_and_eth_type.to_le_bytes());
            cursor = cursor.next();
        }
    }

    /// Writes the addresses within ARP packets.
    fn patch_arp(&mut self, bytes: Range<usize>, identity: Identity, mut cursor: Cursor) {
        for message in self.image[bytes].chunks_exact_mut(self.message_len) {
            let kind = self.kinds[cursor.turn(self.kinds.len())];
            if kind == FrameKind::Arp {
                Packet::new(kind, identity, cursor.source)
                    .write_addresses(&mut message[self.frame_at..]);
            }
            cursor = cursor.next();
        }
    }
}

/// Returns all bytes before the frame, with a zero xid and buffer id.
fn packet_in_header(version: Version, frame_len: usize) -> Vec<u8> {
    packet_in(version, 0, 0, IN_PORT, frame_len)
}

/// Returns a packet-in without its frame; the caller must append `frame_len` bytes.
pub fn packet_in(
    version: Version,
    xid: u32,
    buffer_id: u32,
    in_port: u32,
    frame_len: usize,
) -> Vec<u8> {
    let header_len = match version {
        Version::V10 => 18,
        Version::V13 => 42,
    };
    let mut message = vec![version.wire(), 10];
    message.extend_from_slice(&((header_len + frame_len) as u16).to_be_bytes());
    message.extend_from_slice(&xid.to_be_bytes());
    message.extend_from_slice(&buffer_id.to_be_bytes());
    message.extend_from_slice(&(frame_len as u16).to_be_bytes());
    match version {
        // in_port, reason OFPR_NO_MATCH, padding.
        Version::V10 => {
            message.extend_from_slice(&(in_port as u16).to_be_bytes());
            message.extend_from_slice(&[0, 0]);
        }
        // Reason OFPR_NO_MATCH, table 0, cookie -1, a match with only in_port, padding.
        Version::V13 => {
            message.extend_from_slice(&[0, 0]);
            message.extend_from_slice(&u64::MAX.to_be_bytes());
            message.extend_from_slice(&[0, 1, 0, 12, 0x80, 0, 0, 4]);
            message.extend_from_slice(&in_port.to_be_bytes());
            message.extend_from_slice(&[0; 6]);
        }
    }
    message
}

/// Returns the packet-ins that announce the destination of a switch's frames to the controller: a gratuitous ARP on
/// [`OUT_PORT`], not buffered, and another one in the VLAN if some frames are tagged.
pub fn announcements(version: Version, identity: Identity, kinds: &[FrameKind]) -> Vec<u8> {
    let mut messages = gratuitous_arp(version, identity, &[]);
    if kinds.contains(&FrameKind::Vlan) {
        let [high, low] = (u16::from(VLAN_PCP) << 13 | VLAN_VID).to_be_bytes();
        messages.extend(gratuitous_arp(version, identity, &[0x81, 0, high, low]));
    }
    messages
}

fn gratuitous_arp(version: Version, identity: Identity, tag: &[u8]) -> Vec<u8> {
    const FRAME_LEN: usize = 66;
    let mac = identity.destination();
    let address = IPV4_DST.to_be_bytes();
    let mut message = packet_in(version, 0, NO_BUFFER, OUT_PORT, FRAME_LEN);
    let len = message.len() + FRAME_LEN;
    message.extend_from_slice(&[0xff; 6]);
    message.extend_from_slice(&mac);
    message.extend_from_slice(tag);
    message.extend_from_slice(&[0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 2]);
    message.extend_from_slice(&mac);
    message.extend_from_slice(&address);
    message.extend_from_slice(&mac);
    message.extend_from_slice(&address);
    message.resize(len, 0);
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Addresses;
    use std::collections::HashSet;

    fn at(seq: u64, macs: u32) -> Cursor {
        Cursor::at(seq, Hosts::new(macs, Addresses::InTurn, 1))
    }

    #[test]
    fn packet_in_is_cbenchs_byte_for_byte() {
        let mut train = Train::new(Version::V10, 64, &[FrameKind::Cbench]);
        assert_eq!((train.message_len(), train.capacity()), (82, 799));
        let bytes = train.load(Identity::new(3), at(0x0203, 100_000), 1);
        let mut expected = vec![
            0x01, 0x0a, 0x00, 0x52, 0, 0, 2, 3, 0, 0, 2, 4, 0x00, 0x40, 0x00, 0x01, 0, 0,
        ];
        expected.extend([0x80, 0, 0, 0, 0, 3]);
        expected.extend([0, 3, 2, 0, 0, 3]);
        expected.extend(&FrameKind::Cbench.image(64)[12..]);
        assert_eq!(bytes, expected);
    }

    #[test]
    fn packet_in_of_1_3_has_in_port_in_its_match() {
        let mut train = Train::new(Version::V13, 64, &[FrameKind::Cbench]);
        let bytes = train.load(Identity::new(1), at(0, 100), 2);
        assert_eq!(bytes.len(), 2 * 106);
        assert_eq!(
            bytes[..16],
            [4, 10, 0, 106, 0, 0, 0, 0, 0, 0, 0, 1, 0, 64, 0, 0]
        );
        assert_eq!(bytes[16..24], [0xff; 8]);
        assert_eq!(
            bytes[24..42],
            [0, 1, 0, 12, 0x80, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(
            bytes[106 + 42..][..14],
            [0x80, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 8, 0]
        );
    }

    #[test]
    fn gratuitous_arp_has_cbenchs_size() {
        let message = announcements(Version::V10, Identity::new(1), &[FrameKind::Cbench]);
        assert_eq!(message.len(), 84);
        assert_eq!(message[8..12], [0xff; 4]);
        assert_eq!(message[14..16], [0, 2]);
        assert_eq!(message[24..32], [0x80, 0, 0, 0, 0, 1, 8, 6]);
    }

    #[test]
    fn announces_the_destination_within_the_vlan() {
        let kinds = [FrameKind::Udp, FrameKind::Vlan];
        let messages = announcements(Version::V10, Identity::new(1), &kinds);
        assert_eq!(messages.len(), 2 * 84);
        assert_eq!(messages[84 + 30..][..6], [0x81, 0, 0x60, 5, 8, 6]);
    }

    #[test]
    fn kinds_of_frame_are_cyclic_from_any_start() {
        let (version, identity) = (Version::V10, Identity::new(3));
        let mut train = Train::new(version, 64, &FrameKind::ALL);
        for (seq, count) in [(0, 7), (4, 20), (5, 799), (11, 1)] {
            let bytes = train.load(identity, at(seq, 100), count).to_vec();
            let mut cursor = at(seq, 100);
            assert_eq!(bytes.len(), count * 82);
            for message in bytes.chunks_exact(82) {
                let kind = FrameKind::ALL[(cursor.seq % 6) as usize];
                assert_eq!(message[4..8], cursor.xid().to_be_bytes());
                assert!(
                    Packet::new(kind, identity, cursor.source).is(&message[18..], 64),
                    "{kind:?}"
                );
                cursor = cursor.next();
            }
        }
    }

    #[test]
    fn cursor_wraps_each_number_independently() {
        let mut cursor = at(0, 7);
        assert_eq!((cursor.xid(), cursor.buffer_id, cursor.source), (0, 1, 0));
        for seq in 0..2 * u64::from(BUFFER_IDS) {
            assert_eq!(cursor, at(seq, 7));
            cursor = cursor.next();
        }
    }

    #[test]
    fn thousands_of_switches_have_distinct_addresses() {
        let identities: Vec<_> = (1..=5000).map(Identity::new).collect();
        let destinations: HashSet<_> = identities.iter().map(|i| i.destination()).collect();
        let sources: HashSet<_> = identities.iter().map(|i| i.source_bytes(5)).collect();
        assert_eq!((destinations.len(), sources.len()), (5000, 5000));
    }

    #[test]
    fn sources_are_distinct_unicast_addresses() {
        let identity = Identity::new(256);
        let numbers = [0, 1, 255, 256, 0xff_ffff, 0x100_0000, 0x3fff_ffff];
        let sources: HashSet<_> = numbers.iter().map(|&n| identity.source_bytes(n)).collect();
        assert_eq!(sources.len(), numbers.len());
        assert!(sources.iter().all(|mac| mac[0] & 1 == 0));
        assert_eq!(identity.source_bytes(0x01_0203), [0, 3, 2, 1, 0, 0]);
        assert!(
            numbers
                .iter()
                .all(|&n| identity.number_of(identity.source_bytes(n)) == Some(n))
        );
        assert_eq!(identity.number_of(Identity::new(1).source_bytes(0)), None);
    }
}
