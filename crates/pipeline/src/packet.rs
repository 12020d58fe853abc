//! A packet in the pipeline: its bytes and its pipeline fields.

#[cfg(test)]
pub(crate) mod testing;

use crate::layout::Layout;
use std::sync::OnceLock;
use urtica_wire::PortNo;

/// Space before a packet for pushed headers: eight tags of VLAN or MPLS, or a PBB header and some tags.
const HEADROOM: usize = 64;

/// A packet that the pipeline processes.
// It has many methods, one for each header and each action, in a file for each kind.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The bytes, from `start` on.
    buffer: Vec<u8>,
    start: usize,
    /// The offsets of the headers, determined on first use, and forgotten when headers may have moved.
    layout: OnceLock<Layout>,
    /// Its input port.
    pub in_port: PortNo,
    /// The physical port below the input port.
    pub in_phy_port: PortNo,
    /// Data that tables pass to later ones (1.3.5 section 5.6).
    pub metadata: u64,
    /// The key of its incoming or outgoing tunnel.
    pub tunnel_id: u64,
    /// The queue for later outputs; 0 unless an action has set one.
    pub queue_id: u32,
    /// Whether fields that a fragment hides read as 0: see [`Packet::with_hidden_fields`].
    pub(crate) shows_hidden: bool,
    /// Whether transport fields read as 0: see [`Packet::as_fragment_of10`].
    pub(crate) has_zero_ports: bool,
}

impl Packet {
    /// Creates a packet received by a physical port.
    pub fn new(in_port: PortNo, frame: &[u8]) -> Self {
        let mut buffer = Vec::with_capacity(HEADROOM + frame.len());
        buffer.resize(HEADROOM, 0);
        buffer.extend_from_slice(frame);
        Self {
            buffer,
            start: HEADROOM,
            layout: OnceLock::new(),
            in_port,
            in_phy_port: in_port,
            metadata: 0,
            tunnel_id: 0,
            queue_id: 0,
            shows_hidden: false,
            has_zero_ports: false,
        }
    }

    /// Makes fields that a fragment hides read as 0: ports and ICMP types of a fragment without a complete transport header,
    /// and the protocol of IPv6 after truncated extension headers. Open vSwitch matches fragments like this
    /// (`OFPC_FRAG_NX_MATCH`); in the specification, no entry with such a field matches.
    pub fn with_hidden_fields(self) -> Self {
        Self {
            shows_hidden: true,
            ..self
        }
    }

    /// Makes a fragment match as in OpenFlow 1.0 (1.0 section 3.4): ports and ICMP types read as 0, even in the first fragment,
    /// which has them.
    pub fn as_fragment_of10(self) -> Self {
        Self {
            has_zero_ports: true,
            ..self
        }
    }

    /// Returns `true` if it is a fragment that matches as in OpenFlow 1.0.
    pub fn is_fragment_of10(&self) -> bool {
        self.has_zero_ports
    }

    /// Returns the bytes, starting with the Ethernet header.
    pub fn frame(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Returns the bytes for changes in place.
    pub fn frame_mut(&mut self) -> &mut [u8] {
        self.layout.take();
        &mut self.buffer[self.start..]
    }

    /// Inserts `count` zeros at `at`, by moving the bytes before it.
    ///
    /// # Panics
    /// If `at` is beyond the end.
    pub fn insert(&mut self, at: usize, count: usize) {
        self.layout.take();
        if self.start < count {
            let more = HEADROOM + count;
            self.buffer.splice(0..0, std::iter::repeat_n(0, more));
            self.start += more;
        }
        let from = self.start;
        self.start -= count;
        self.buffer.copy_within(from..from + at, self.start);
        self.buffer[self.start + at..from + at].fill(0);
    }

    /// Removes `count` bytes at `at`, by moving the bytes before it.
    ///
    /// # Panics
    /// If `at + count` is beyond the end.
    pub fn remove(&mut self, at: usize, count: usize) {
        self.layout.take();
        let from = self.start;
        self.buffer.copy_within(from..from + at, from + count);
        self.start += count;
    }

    /// Returns the offsets of the headers.
    pub(crate) fn layout(&self) -> &Layout {
        self.layout.get_or_init(|| Layout::of(self.frame()))
    }

    /// Returns the bytes for changes in place that do not affect the layout.
    pub(crate) fn settled_frame_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;

    #[test]
    fn a_new_packet_knows_its_port_and_bytes() {
        let packet = Packet::new(PortNo(7), &[1, 2, 3]);
        assert_eq!(packet.frame(), [1, 2, 3]);
        assert_eq!((packet.in_port, packet.in_phy_port), (PortNo(7), PortNo(7)));
        assert_eq!(
            (packet.metadata, packet.tunnel_id, packet.queue_id),
            (0, 0, 0)
        );
    }

    #[test]
    fn a_changed_frame_is_parsed_again() {
        let mut packet = Packet::new(PortNo(1), &[0; 14]);
        assert_eq!(packet.layout().eth_type, Some(0x05ff));
        packet.frame_mut()[12] = 0x08;
        assert_eq!(packet.layout().eth_type, Some(0x0800));
        packet.insert(12, 4);
        assert_eq!(packet.layout().eth_type, Some(0x05ff));
    }

    proptest! {
        #[test]
        fn agrees_with_a_vec(
            frame in vec(any::<u8>(), 0..200),
            edits in vec((any::<bool>(), any::<Index>(), 0usize..100), 0..20),
        ) {
            let mut packet = Packet::new(PortNo(1), &frame);
            let mut plain = frame;
            for (is_insert, at, count) in edits {
                let at = at.index(plain.len() + 1);
                if is_insert {
                    packet.insert(at, count);
                    plain.splice(at..at, std::iter::repeat_n(0, count));
                } else {
                    let count = count.min(plain.len() - at);
                    packet.remove(at, count);
                    plain.drain(at..at + count);
                }
                prop_assert_eq!(packet.frame(), &plain);
            }
        }
    }
}
