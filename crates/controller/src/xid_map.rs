//! Substitutes on the wire for xids of a raw program that collide with another sender's.

use crate::xid::{Origin, Xids};
use std::collections::{HashMap, VecDeque};
use urtica_wire::Header;

/// The maximum number of remembered substitutes; older ones are no longer mapped back.
const MAX_MAPPED: usize = 4096;

/// The types of messages, equal in all versions, whose xid is chosen by the peer.
const HELLO: u8 = 0;
const ERROR: u8 = 1;
const ECHO_REPLY: u8 = 3;

/// The offset of the xid in a header.
const XID: std::ops::Range<usize> = 4..8;

/// The offset of the refused message's xid in an OFPT_ERROR, which contains the message's start.
const XID_IN_ERROR: std::ops::Range<usize> = 16..20;

/// The substitutes in use.
#[derive(Default)]
pub(crate) struct XidMap {
    originals: HashMap<u32, u32>,
    substitutes: HashMap<u32, u32>,
    /// The substitutes, the oldest first.
    order: VecDeque<u32>,
}

impl XidMap {
    /// Replaces the xid of an encoded frame if its reply would be mistaken for another sender's: `is_reserved` returns
    /// whether xids of an origin belong to another sender.
    pub fn replace(
        &mut self,
        frame: &mut [u8],
        xids: &mut Xids,
        is_reserved: impl Fn(Origin) -> bool,
    ) {
        let Some(header) = Header::peek(frame) else {
            return;
        };
        let is_own = !matches!(header.message_type, HELLO | ERROR | ECHO_REPLY);
        if is_own && is_reserved(Origin::of(header.xid)) {
            let substitute = self.substitute(header.xid, xids);
            frame[XID].copy_from_slice(&substitute.to_be_bytes());
        }
    }

    fn substitute(&mut self, original: u32, xids: &mut Xids) -> u32 {
        if let Some(&substitute) = self.substitutes.get(&original) {
            return substitute;
        }
        if self.order.len() == MAX_MAPPED {
            let oldest = self.order.pop_front();
            let freed = oldest.and_then(|oldest| self.originals.remove(&oldest));
            freed.map(|original| self.substitutes.remove(&original));
        }
        let substitute = xids.next(Origin::RAW);
        self.originals.insert(substitute, original);
        self.substitutes.insert(original, substitute);
        self.order.push_back(substitute);
        substitute
    }

    /// Returns a copy of a switch's frame with the program's xid, if the frame has a substitute.
    pub fn restore(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let header = Header::peek(frame)?;
        let original = self.originals.get(&header.xid)?.to_be_bytes();
        let mut restored = frame.to_vec();
        restored[XID].copy_from_slice(&original);
        let is_error = header.message_type == ERROR;
        let quoted = restored.get_mut(XID_IN_ERROR).filter(|_| is_error);
        if let Some(quoted) = quoted.filter(|quoted| **quoted == header.xid.to_be_bytes()) {
            quoted.copy_from_slice(&original);
        }
        Some(restored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(message_type: u8, xid: u32) -> Vec<u8> {
        let mut frame = vec![4, message_type, 0, 8];
        frame.extend_from_slice(&xid.to_be_bytes());
        frame
    }

    fn xid_of(frame: &[u8]) -> u32 {
        Header::peek(frame).unwrap().xid
    }

    fn sent(map: &mut XidMap, xids: &mut Xids, message_type: u8, xid: u32) -> u32 {
        let mut frame = frame(message_type, xid);
        map.replace(&mut frame, xids, |origin| origin == Origin::REQUEST);
        xid_of(&frame)
    }

    #[test]
    fn reserved_xids_are_mapped_and_mapped_back() {
        let (mut map, mut xids) = (XidMap::default(), Xids::default());
        assert_eq!(sent(&mut map, &mut xids, 20, 7), 7);
        let substitute = sent(&mut map, &mut xids, 20, 0xff00_0007);
        assert_eq!(Origin::of(substitute), Origin::RAW);
        assert_eq!(sent(&mut map, &mut xids, 18, 0xff00_0007), substitute);
        let restored = map.restore(&frame(21, substitute)).unwrap();
        assert_eq!(restored, frame(21, 0xff00_0007));
        assert_eq!(map.restore(&frame(21, 7)), None);
    }

    #[test]
    fn replies_keep_the_xid_of_their_request() {
        let (mut map, mut xids) = (XidMap::default(), Xids::default());
        for message_type in [HELLO, ERROR, ECHO_REPLY] {
            let xid = sent(&mut map, &mut xids, message_type, 0xff00_0001);
            assert_eq!(xid, 0xff00_0001);
        }
    }

    #[test]
    fn errors_quote_the_message_with_the_programs_xid() {
        let (mut map, mut xids) = (XidMap::default(), Xids::default());
        let substitute = sent(&mut map, &mut xids, 14, 0xff00_0003);
        let mut error = frame(ERROR, substitute);
        error[3] = 20;
        error.extend_from_slice(&[0, 5, 0, 1]);
        error.extend_from_slice(&frame(14, substitute));
        let restored = map.restore(&error).unwrap();
        assert_eq!(xid_of(&restored), 0xff00_0003);
        assert_eq!(restored[12..], frame(14, 0xff00_0003));
    }

    #[test]
    fn substitutes_are_bounded() {
        let (mut map, mut xids) = (XidMap::default(), Xids::default());
        let of = |index: usize| 0xff00_0000 | index as u32;
        let first = sent(&mut map, &mut xids, 20, of(0));
        for index in 1..=MAX_MAPPED {
            sent(&mut map, &mut xids, 20, of(index));
        }
        assert_eq!(map.originals.len(), MAX_MAPPED);
        assert_eq!(map.substitutes.len(), MAX_MAPPED);
        assert_eq!(map.restore(&frame(21, first)), None);
    }
}
