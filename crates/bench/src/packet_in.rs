//! The packet-ins that emulated switches send: cbench's, byte for byte, in OpenFlow 1.0; the same frame in 1.3.
//!
//! What varies from one packet-in to the next is its xid, its buffer id and its frame's source MAC; all three follow
//! from its place in the switch's sequence. So nothing needs to be stored: a [`Cursor`] walks the sequence, a
//! [`Train`] patches those bytes into a prepared image, and a message cut short by the socket is made again.

use crate::config::Version;

/// Buffer ids run from 1 and wrap to 0 here, as cbench's do.
pub const BUFFER_IDS: u32 = 100_000;

/// The port on which the frames arrive.
pub const IN_PORT: u32 = 1;

/// The port on which the frames' destination was announced.
pub const OUT_PORT: u32 = 2;

/// The buffer id that means "not buffered".
pub const NO_BUFFER: u32 = u32::MAX;

/// The IPv4 source address in every frame.
pub const IPV4_SRC: u32 = 0xc0a8_0028;

/// The IPv4 destination address in every frame.
pub const IPV4_DST: u32 = 0xc0a8_0128;

/// The IPv4 protocol in every frame: cbench's choice, a reserved one.
pub const IP_PROTO: u8 = 0xff;

const TRAIN_BYTES: usize = 65_536;
const FRAME_FROM_ETHERTYPE: [u8; 52] = [
    0x08, 0x00, 0x45, 0x00, 0x00, 0x32, 0x00, 0x00, 0x00, 0x00, 0x40, 0xff, 0xf7, 0x2c, 0xc0, 0xa8,
    0x00, 0x28, 0xc0, 0xa8, 0x01, 0x28, 0x7a, 0x18, 0x58, 0x6b, 0x11, 0x08, 0x97, 0xf5, 0x19, 0xe2,
    0x65, 0x7e, 0x07, 0xcc, 0x31, 0xc3, 0x11, 0xc7, 0xc4, 0x0c, 0x8b, 0x95, 0x51, 0x51, 0x33, 0x54,
    0x51, 0xd5, 0x00, 0x36,
];

/// Who a switch is: its datapath id and the MAC addresses that its frames carry.
///
/// cbench writes the switch's number into one byte of each address, so that the 257th switch is taken for the first.
/// Here the numbers up to 256 give the same bytes, and larger ones spill into the neighbouring bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The switch's datapath id.
    pub datapath_id: u64,
    low: u8,
    high: u16,
}

impl Identity {
    /// The identity of the switch with this datapath id.
    pub fn new(datapath_id: u64) -> Self {
        let high = (datapath_id.saturating_sub(1) >> 8) as u16;
        Self {
            datapath_id,
            low: datapath_id as u8,
            high,
        }
    }

    /// The destination of all its frames: `80:00:00:00:00:ID`.
    pub fn destination(self) -> [u8; 6] {
        let [high, mid] = self.high.to_be_bytes();
        [0x80, 0, 0, high, mid, self.low]
    }

    /// The source MAC with this number, as the low 48 bits of a little-endian integer: the number stands in bytes 1 to
    /// 3 (little-endian, as cbench leaves it), its excess over 2^24 in byte 0 above the multicast bit.
    #[inline]
    pub fn source(self, number: u32) -> u64 {
        let own = u64::from(self.low) << 40 | u64::from(self.high as u8) << 32;
        own | u64::from(number & 0xff_ffff) << 8 | u64::from(number >> 24) << 2
    }

    /// The same address as bytes.
    pub fn source_bytes(self, number: u32) -> [u8; 6] {
        let [b0, b1, b2, b3, b4, b5, ..] = self.source(number).to_le_bytes();
        [b0, b1, b2, b3, b4, b5]
    }

    /// The number of a source MAC; `None` if it is none of this switch's.
    pub fn number_of(self, mac: [u8; 6]) -> Option<u32> {
        let number = u32::from_le_bytes([mac[1], mac[2], mac[3], mac[0] >> 2]);
        (self.source_bytes(number) == mac).then_some(number)
    }
}

/// A place in a switch's sequence of packet-ins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// How many packet-ins come before this one.
    pub seq: u64,
    /// Its buffer id.
    pub buffer_id: u32,
    /// The number of its source MAC.
    pub source: u32,
    macs: u32,
}

impl Cursor {
    /// The place after `seq` packet-ins, of a sequence with `macs` distinct sources.
    pub fn at(seq: u64, macs: u32) -> Self {
        Self {
            seq,
            buffer_id: ((seq + 1) % u64::from(BUFFER_IDS)) as u32,
            source: (seq % u64::from(macs)) as u32,
            macs,
        }
    }

    /// The xid of this packet-in.
    #[inline]
    pub fn xid(self) -> u32 {
        self.seq as u32
    }

    /// The next place.
    #[inline]
    pub fn next(self) -> Self {
        let (buffer_id, source) = (self.buffer_id + 1, self.source + 1);
        Self {
            seq: self.seq + 1,
            buffer_id: if buffer_id == BUFFER_IDS {
                0
            } else {
                buffer_id
            },
            source: if source == self.macs { 0 } else { source },
            macs: self.macs,
        }
    }

    /// The place `count` further on.
    pub fn skip(self, count: u64) -> Self {
        Self::at(self.seq + count, self.macs)
    }
}

/// Packet-ins in a row, ready to be sent: an image shared by all switches of a thread.
pub struct Train {
    image: Vec<u8>,
    message_len: usize,
    frame_at: usize,
    capacity: usize,
}

impl Train {
    /// An image of as many packet-ins with frames of `frame_len` bytes as 64 KiB hold.
    pub fn new(version: Version, frame_len: usize) -> Self {
        let header = packet_in_header(version, frame_len);
        let frame_at = header.len();
        let message_len = frame_at + frame_len;
        let capacity = TRAIN_BYTES / message_len;
        let mut message = header;
        message.extend_from_slice(&[0; 12]);
        message.extend_from_slice(&FRAME_FROM_ETHERTYPE);
        message.resize(message_len, 0);
        Self {
            image: message.repeat(capacity),
            message_len,
            frame_at,
            capacity,
        }
    }

    /// The bytes of each packet-in.
    pub fn message_len(&self) -> usize {
        self.message_len
    }

    /// The most packet-ins in a row.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The bytes of `count` packet-ins of this switch from `cursor` on, at most [`Train::capacity`] of them.
    #[inline]
    pub fn load(&mut self, identity: Identity, mut cursor: Cursor, count: usize) -> &[u8] {
        let count = count.min(self.capacity);
        let [d0, d1, d2, d3, d4, d5] = identity.destination();
        let destination = [d0, d1, d2, d3, d4, d5, 0, 0];
        let bytes = &mut self.image[..count * self.message_len];
        for message in bytes.chunks_exact_mut(self.message_len) {
            let ids = u64::from(cursor.xid()) << 32 | u64::from(cursor.buffer_id);
            message[4..12].copy_from_slice(&ids.to_be_bytes());
            // Eight bytes each: the destination runs over into the source, the source into the Ethertype.
            let source_and_ethertype = identity.source(cursor.source) | 0x0008 << 48;
            let addresses = &mut message[self.frame_at..self.frame_at + 14];
            addresses[..8].copy_from_slice(&destination);
            addresses[6..].copy_from_slice(&source_and_ethertype.to_le_bytes());
            cursor = cursor.next();
        }
        bytes
    }
}

/// All that comes before the frame, with xid and buffer id left zero.
fn packet_in_header(version: Version, frame_len: usize) -> Vec<u8> {
    packet_in(version, 0, 0, IN_PORT, frame_len)
}

/// A packet-in without its frame: the caller appends `frame_len` bytes.
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
        // Reason OFPR_NO_MATCH, table 0, cookie -1, a match with in_port alone, padding.
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

/// The packet-in by which a switch lets the controller learn where its frames' destination is: a gratuitous ARP on
/// [`OUT_PORT`], not buffered.
pub fn gratuitous_arp(version: Version, identity: Identity) -> Vec<u8> {
    const FRAME_LEN: usize = 66;
    let mac = identity.destination();
    let address = IPV4_DST.to_be_bytes();
    let mut message = packet_in(version, 0, NO_BUFFER, OUT_PORT, FRAME_LEN);
    let len = message.len() + FRAME_LEN;
    message.extend_from_slice(&[0xff; 6]);
    message.extend_from_slice(&mac);
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
    use std::collections::HashSet;

    #[test]
    fn packet_in_is_cbenchs_byte_for_byte() {
        let mut train = Train::new(Version::V10, 64);
        assert_eq!((train.message_len(), train.capacity()), (82, 799));
        let bytes = train.load(Identity::new(3), Cursor::at(0x0203, 100_000), 1);
        let mut expected = vec![
            0x01, 0x0a, 0x00, 0x52, 0, 0, 2, 3, 0, 0, 2, 4, 0x00, 0x40, 0x00, 0x01, 0, 0,
        ];
        expected.extend([0x80, 0, 0, 0, 0, 3]);
        expected.extend([0, 3, 2, 0, 0, 3]);
        expected.extend(FRAME_FROM_ETHERTYPE);
        assert_eq!(bytes, expected);
    }

    #[test]
    fn packet_in_of_1_3_has_in_port_in_its_match() {
        let mut train = Train::new(Version::V13, 64);
        let bytes = train.load(Identity::new(1), Cursor::at(0, 100), 2);
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
        let message = gratuitous_arp(Version::V10, Identity::new(1));
        assert_eq!(message.len(), 84);
        assert_eq!(message[8..12], [0xff; 4]);
        assert_eq!(message[14..16], [0, 2]);
        assert_eq!(message[24..32], [0x80, 0, 0, 0, 0, 1, 8, 6]);
    }

    #[test]
    fn cursor_wraps_each_number_on_its_own() {
        let mut cursor = Cursor::at(0, 7);
        assert_eq!((cursor.xid(), cursor.buffer_id, cursor.source), (0, 1, 0));
        for seq in 0..2 * u64::from(BUFFER_IDS) {
            assert_eq!(cursor, Cursor::at(seq, 7));
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
