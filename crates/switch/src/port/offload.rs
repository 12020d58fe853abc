//! Work that senders leave to the hardware: checksums, and splitting large segments. A veth has no hardware, so the switch
//! must do this work: if it forwarded such frames unchanged, every TCP connection through it would break.
//!
//! - [`Offload`] is the kernel's description of a frame: the `struct virtio_net_hdr` before it.
//! - [`Segmenter`] splits a large segment (from GSO, or assembled by a network card's driver with GRO) into frames.
//! - [`complete_if_partial`] detects unfinished checksums without such a description.
//!
//! An unfinished checksum field contains the folded sum of the pseudo header. Adding up everything from the sum's start,
//! including that field, completes it.

use urtica_wire::packet::checksum::{self, crc32c};
use urtica_wire::packet::{VlanTags, ether_type, ip_proto};

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum is unfinished.
const NEEDS_CHECKSUM: u8 = 1;

/// `VIRTIO_NET_HDR_GSO_ECN`: reports congestion, in addition to the kind of segments.
const CONGESTION: u8 = 0x80;

/// `VIRTIO_NET_HDR_GSO_TCPV4`, `VIRTIO_NET_HDR_GSO_TCPV6`, `VIRTIO_NET_HDR_GSO_UDP_L4`.
const GSO_KINDS: [(u8, Kind); 3] = [(1, Kind::Tcp), (4, Kind::Tcp), (5, Kind::Udp)];

/// Offset of SCTP's CRC32c in its header. An internet checksum never has this offset.
const SCTP_CHECKSUM: usize = 8;

const ETHERNET_BYTES: usize = 14;
const UDP_BYTES: usize = 8;
const IPV6_BYTES: usize = 40;

/// TCP's flags FIN and PSH, which only the last segment has, and CWR, which only the first one has.
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// The unfinished work on a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offload {
    needs_checksum: bool,
    gso_type: u8,
    /// Maximum payload of each segment.
    gso_size: usize,
    /// The start of the summed bytes: the transport header.
    csum_start: usize,
    /// Offset of the checksum in the transport header.
    csum_offset: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tcp,
    Udp,
}

impl Offload {
    /// The length of `struct virtio_net_hdr`.
    pub const BYTES: usize = 10;

    /// Reads a `struct virtio_net_hdr`, whose fields are in the machine's byte order.
    pub fn parse(header: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
        Self {
            needs_checksum: header[0] & NEEDS_CHECKSUM != 0,
            gso_type: header[1] & !CONGESTION,
            gso_size: word(4),
            csum_start: word(6),
            csum_offset: word(8),
        }
    }

    /// Moves the offsets by `len` bytes, for a frame with bytes inserted before the transport header.
    pub fn moved_by(mut self, len: usize) -> Self {
        self.csum_start += len;
        self
    }

    /// Returns whether the frame must be split.
    pub fn is_large(&self) -> bool {
        self.gso_type != 0
    }

    /// Completes the checksum if it is unfinished.
    pub fn complete_checksum(&self, frame: &mut [u8]) {
        if self.needs_checksum {
            complete(frame, self.csum_start, self.csum_offset);
        }
    }
}

/// Completes the checksum at `offset` of the header at `start`, over everything from there on. Invalid offsets leave the
/// frame unchanged.
fn complete(frame: &mut [u8], start: usize, offset: usize) {
    let Some(packet) = frame.get_mut(start..) else {
        return;
    };
    if offset == SCTP_CHECKSUM {
        return complete_sctp(packet);
    }
    if packet.len() < offset + 2 {
        return;
    }
    // 0 would mean no checksum (UDP); the other zero represents the same number.
    let sum = match checksum::internet(packet) {
        0 => 0xffff,
        sum => sum,
    };
    packet[offset..offset + 2].copy_from_slice(&sum.to_be_bytes());
}

fn complete_sctp(packet: &mut [u8]) {
    if let Some(field) = packet.get_mut(SCTP_CHECKSUM..SCTP_CHECKSUM + 4) {
        field.fill(0);
        let crc = crc32c(&[packet]);
        packet[SCTP_CHECKSUM..SCTP_CHECKSUM + 4].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Splits large segments into frames, one at a time. Its buffers are reused.
#[derive(Default)]
pub(super) struct Segmenter {
    /// The frame to split, which the caller sets.
    pub frame: Vec<u8>,
    layout: Option<Layout>,
    /// The offset of the payload that has not been returned yet.
    next: usize,
    segment: Vec<u8>,
}

/// Offsets of a large segment's headers.
#[derive(Clone, Copy, Debug)]
struct Layout {
    kind: Kind,
    ip: usize,
    is_ipv6: bool,
    transport: usize,
    csum_offset: usize,
    payload: usize,
    gso_size: usize,
}

impl Segmenter {
    /// Starts with the frame in [`Segmenter::frame`]. Returns whether it can be split, that is, whether the headers match
    /// `offload`.
    pub fn begin(&mut self, offload: &Offload) -> bool {
        self.layout = Layout::read(&self.frame, offload);
        self.next = self.layout.map_or(0, |layout| layout.payload);
        self.layout.is_some()
    }

    /// Returns the next frame, or `None` at the end.
    pub fn next_segment(&mut self) -> Option<&[u8]> {
        let layout = self.layout?;
        let (start, end) = (self.next, self.frame.len().min(self.next + layout.gso_size));
        if start >= end {
            self.layout = None;
            return None;
        }
        self.segment.clear();
        self.segment
            .extend_from_slice(&self.frame[..layout.payload]);
        self.segment.extend_from_slice(&self.frame[start..end]);
        self.next = end;
        let is_last = end == self.frame.len();
        layout.fix_headers(
            &mut self.segment,
            start - layout.payload,
            is_last,
            self.frame.len(),
        );
        Some(&self.segment)
    }
}

impl Layout {
    fn read(frame: &[u8], offload: &Offload) -> Option<Self> {
        let (_, kind) = GSO_KINDS
            .into_iter()
            .find(|(number, _)| *number == offload.gso_type)?;
        let (ip, eth_type) = network_header(frame)?;
        let is_ipv6 = eth_type == ether_type::IPV6;
        let transport = offload.csum_start;
        let ip_bytes = if is_ipv6 { IPV6_BYTES } else { 20 };
        let transport_bytes = match kind {
            Kind::Tcp => usize::from(frame.get(transport + 12)? >> 4) * 4,
            Kind::Udp => UDP_BYTES,
        };
        let payload = transport + transport_bytes;
        let is_sound = offload.needs_checksum
            && offload.gso_size > 0
            && (is_ipv6 || eth_type == ether_type::IPV4)
            && transport >= ip + ip_bytes
            && transport_bytes >= offload.csum_offset + 2
            && (kind == Kind::Udp || transport_bytes >= 20)
            && payload < frame.len();
        is_sound.then_some(Self {
            kind,
            ip,
            is_ipv6,
            transport,
            csum_offset: offload.csum_offset,
            payload,
            gso_size: offload.gso_size,
        })
    }

    /// Changes the headers of a large segment to those of the segment at `offset` of its payload.
    fn fix_headers(&self, segment: &mut [u8], offset: usize, is_last: bool, large_bytes: usize) {
        self.fix_ip(segment, offset / self.gso_size);
        self.fix_pseudo_header(segment, large_bytes);
        match self.kind {
            Kind::Tcp => self.fix_tcp(segment, offset, is_last),
            Kind::Udp => put_u16(segment, self.transport + 4, segment.len() - self.transport),
        }
        complete(segment, self.transport, self.csum_offset);
    }

    fn fix_ip(&self, segment: &mut [u8], number: usize) {
        let (ip, len) = (self.ip, segment.len());
        if self.is_ipv6 {
            return put_u16(segment, ip + 4, len - ip - IPV6_BYTES);
        }
        put_u16(segment, ip + 2, len - ip);
        let id = get_u16(segment, ip + 4).wrapping_add(number as u16);
        put_u16(segment, ip + 4, id.into());
        put_u16(segment, ip + 10, 0);
        let sum = checksum::internet(&segment[ip..self.transport]);
        put_u16(segment, ip + 10, sum.into());
    }

    /// Replaces the large segment's length by the small one's in the checksum field, which contains the sum of a pseudo header.
    fn fix_pseudo_header(&self, segment: &mut [u8], large_bytes: usize) {
        let field = self.transport + self.csum_offset;
        let (old, new) = (large_bytes - self.transport, segment.len() - self.transport);
        let sum = checksum::Checksum::new()
            .add_u16(get_u16(segment, field))
            .add_u16(!(old as u16))
            .add_u16(new as u16);
        put_u16(segment, field, (!sum.finish()).into());
    }

    fn fix_tcp(&self, segment: &mut [u8], offset: usize, is_last: bool) {
        let (seq, flags) = (self.transport + 4, self.transport + 13);
        let number = u32::from_be_bytes([
            segment[seq],
            segment[seq + 1],
            segment[seq + 2],
            segment[seq + 3],
        ]);
        segment[seq..seq + 4].copy_from_slice(&number.wrapping_add(offset as u32).to_be_bytes());
        if !is_last {
            segment[flags] &= !(FIN | PSH);
        }
        if offset > 0 {
            segment[flags] &= !CWR;
        }
    }
}

/// Completes the checksum of TCP or UDP if it appears unfinished, because the field contains the sum of the pseudo header. A
/// correct checksum with that value stays unchanged, since it equals the completed one. An incorrect checksum is corrected by
/// chance once in 65,536 times.
pub(super) fn complete_if_partial(frame: &mut [u8]) {
    let Some(transport) = Transport::find(frame) else {
        return;
    };
    let offset = match transport.proto {
        ip_proto::TCP => 16,
        _ => 6,
    };
    let packet = &mut frame[..transport.end];
    if transport.end >= transport.start + offset + 2
        && get_u16(packet, transport.start + offset) == transport.pseudo_header
    {
        complete(packet, transport.start, offset);
    }
}

/// Location of TCP or UDP in a frame.
struct Transport {
    proto: u8,
    start: usize,
    end: usize,
    /// The folded sum of the pseudo header.
    pseudo_header: u16,
}

impl Transport {
    /// Finds the header over unfragmented IPv4, and over IPv6 without extension headers.
    fn find(frame: &[u8]) -> Option<Self> {
        let (ip, eth_type) = network_header(frame)?;
        let packet = &frame[ip..];
        let (proto, header, len, addresses) = match eth_type {
            ether_type::IPV4 => {
                let header = usize::from(packet.first()? & 0xf) * 4;
                let is_whole = packet.len() >= 20 && get_u16(packet, 6) & 0x3fff == 0;
                let len = is_whole.then(|| usize::from(get_u16(packet, 2)))?;
                (packet[9], header, len, 12..20)
            }
            ether_type::IPV6 if packet.len() >= IPV6_BYTES => {
                let len = IPV6_BYTES + usize::from(get_u16(packet, 4));
                (packet[6], IPV6_BYTES, len, 8..IPV6_BYTES)
            }
            _ => return None,
        };
        let is_sound = header >= addresses.end && len >= header && packet.len() >= len;
        if !is_sound || !matches!(proto, ip_proto::TCP | ip_proto::UDP) {
            return None;
        }
        let sum = checksum::Checksum::new()
            .add_bytes(&packet[addresses])
            .add_u16((len - header) as u16)
            .add_u16(proto.into());
        Some(Self {
            proto,
            start: ip + header,
            end: ip + len,
            pseudo_header: !sum.finish(),
        })
    }
}

/// Returns the offset of the header after all VLAN tags, and its EtherType. The frame may end there.
fn network_header(frame: &[u8]) -> Option<(usize, u16)> {
    let (header, payload) = frame.split_at_checked(ETHERNET_BYTES)?;
    let mut tags = VlanTags::new(get_u16(header, ETHERNET_BYTES - 2), payload);
    tags.by_ref().for_each(drop);
    let at = frame.len() - tags.rest().len();
    (!tags.is_cut_off()).then_some((at, tags.type_or_length()))
}

fn get_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put_u16(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use urtica_wire::packet::{Ipv4View, Ipv6View, PseudoHeader};

    const TCP_OFFSET: usize = 16;

    /// A TCP segment over IPv4 or IPv6, possibly tagged, with an unfinished checksum.
    fn partial(tags: usize, is_ipv6: bool, payload: &[u8]) -> (Vec<u8>, Offload) {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        (0..tags).for_each(|_| frame.extend([0x81, 0, 0, 7]));
        let len = 20 + payload.len();
        if is_ipv6 {
            frame.extend([
                0x86,
                0xdd,
                0x60,
                0,
                0,
                0,
                (len >> 8) as u8,
                len as u8,
                6,
                64,
            ]);
            frame.extend([0xfd; 32]);
        } else {
            let total = 20 + len;
            frame.extend([
                8,
                0,
                0x45,
                0,
                (total >> 8) as u8,
                total as u8,
                0xff,
                0xff,
                0x40,
                0,
                64,
                6,
            ]);
            frame.extend([0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        }
        let csum_start = frame.len();
        // Ports 1 and 2, sequence number 2^32 - 100, flags CWR, ACK, PSH and FIN.
        frame.extend([
            0, 1, 0, 2, 0xff, 0xff, 0xff, 0x9c, 0, 0, 0, 0, 0x50, 0x99, 1, 0, 0, 0, 0, 0,
        ]);
        frame.extend(payload);
        let sum = Transport::find(&frame).unwrap().pseudo_header;
        put_u16(&mut frame, csum_start + TCP_OFFSET, sum.into());
        let offload = Offload {
            needs_checksum: true,
            csum_start,
            csum_offset: TCP_OFFSET,
            ..Offload::default()
        };
        (frame, offload)
    }

    fn large(
        gso_type: u8,
        gso_size: usize,
        (frame, offload): (Vec<u8>, Offload),
    ) -> (Segmenter, Offload) {
        let segmenter = Segmenter {
            frame,
            ..Segmenter::default()
        };
        (
            segmenter,
            Offload {
                gso_type,
                gso_size,
                ..offload
            },
        )
    }

    /// Returns the payload of TCP, if all lengths and checksums are correct.
    fn checked_payload(frame: &[u8]) -> Option<Vec<u8>> {
        let (ip, eth_type) = network_header(frame)?;
        let (pseudo, segment) = if eth_type == ether_type::IPV6 {
            let view = Ipv6View::new(&frame[ip..]).ok()?;
            (
                PseudoHeader::V6 {
                    src: view.src(),
                    dst: view.dst(),
                },
                view.payload(),
            )
        } else {
            let view = Ipv4View::new(&frame[ip..]).ok()?;
            (checksum::internet(&frame[ip..ip + 20]) == 0 || frame[ip + 10..ip + 12] == [0, 0])
                .then_some(())?;
            (
                PseudoHeader::V4 {
                    src: view.src(),
                    dst: view.dst(),
                },
                view.payload(),
            )
        };
        let reaches_end = segment.as_ptr_range().end == frame.as_ptr_range().end;
        (reaches_end && pseudo.checksum(6, &[segment]) == 0).then(|| segment[20..].to_vec())
    }

    #[test]
    fn the_kernels_header_is_read() {
        let mut header = [0; Offload::BYTES];
        header[0] = 1;
        header[1] = 0x81;
        for (at, value) in [(2, 54_u16), (4, 1448), (6, 34), (8, 16)] {
            header[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        }
        let expected = Offload {
            needs_checksum: true,
            gso_type: 1,
            gso_size: 1448,
            csum_start: 34,
            csum_offset: 16,
        };
        assert_eq!(Offload::parse(&header), expected);
        assert_eq!(expected.moved_by(4).csum_start, 38);
    }

    proptest! {
        #[test]
        fn partial_checksums_are_completed_with_and_without_a_header(
            tags in 0_usize..3,
            is_ipv6: bool,
            payload in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let (frame, offload) = partial(tags, is_ipv6, &payload);
            let mut told = frame.clone();
            offload.complete_checksum(&mut told);
            prop_assert_eq!(checked_payload(&told), Some(payload));
            let mut found = frame;
            complete_if_partial(&mut found);
            prop_assert_eq!(&found, &told);
            complete_if_partial(&mut found);
            prop_assert_eq!(found, told, "what is complete stays");
        }

        #[test]
        fn segments_carry_all_payload_and_are_valid(
            tags in 0_usize..3,
            is_ipv6: bool,
            payload in prop::collection::vec(any::<u8>(), 1..5000),
            gso_size in 1_usize..2000,
        ) {
            let gso_type = if is_ipv6 { 4 } else { 1 };
            let (mut segmenter, offload) = large(gso_type, gso_size, partial(tags, is_ipv6, &payload));
            prop_assert!(segmenter.begin(&offload));
            let mut carried = Vec::new();
            while let Some(segment) = segmenter.next_segment() {
                let part = checked_payload(segment);
                prop_assert!(part.is_some(), "a segment is wrong");
                carried.extend(part.unwrap());
            }
            prop_assert_eq!(carried, payload);
        }

        #[test]
        fn invalid_offloads_are_ignored(
            mut frame in prop::collection::vec(any::<u8>(), 0..100),
            header: [u8; Offload::BYTES],
        ) {
            let offload = Offload::parse(&header);
            complete_if_partial(&mut frame);
            offload.complete_checksum(&mut frame);
            let mut segmenter = Segmenter { frame, ..Segmenter::default() };
            if segmenter.begin(&offload) {
                while segmenter.next_segment().is_some() {}
            }
        }
    }

    #[test]
    fn tcp_flags_and_numbers_are_each_segments_own() {
        let (mut segmenter, offload) = large(1, 100, partial(0, false, &[7; 250]));
        assert!(segmenter.begin(&offload));
        let mut seen = Vec::new();
        while let Some(segment) = segmenter.next_segment() {
            let seq = u32::from_be_bytes(segment[38..42].try_into().unwrap());
            seen.push((segment.len(), get_u16(segment, 18), seq, segment[47]));
        }
        assert_eq!(
            seen,
            [
                (154, 0xffff, 0xffff_ff9c, 0x90),
                (154, 0x0000, 0, 0x10),
                (104, 0x0001, 100, 0x19),
            ]
        );
    }

    #[test]
    fn udp_segments_have_their_length() {
        let (mut frame, mut offload) = partial(0, false, &[7; 188]);
        // The 20 bytes of the TCP header and 188 of payload become UDP of 8 and 200.
        frame[23] = ip_proto::UDP;
        put_u16(&mut frame, 38, 208);
        let sum = Transport::find(&frame).unwrap().pseudo_header;
        put_u16(&mut frame, 40, sum.into());
        offload.csum_offset = 6;
        let (mut segmenter, offload) = large(5, 150, (frame, offload));
        assert!(segmenter.begin(&offload));
        let mut lengths = Vec::new();
        while let Some(segment) = segmenter.next_segment() {
            let view = Ipv4View::new(&segment[14..]).unwrap();
            let pseudo = PseudoHeader::V4 {
                src: view.src(),
                dst: view.dst(),
            };
            assert_eq!(pseudo.checksum(ip_proto::UDP, &[view.payload()]), 0);
            lengths.push(get_u16(segment, 38));
        }
        assert_eq!(lengths, [158, 58]);
    }

    #[test]
    fn sctp_has_its_own_checksum() {
        let mut frame = vec![0; 34];
        frame.extend([0, 1, 0, 2, 0, 0, 0, 3, 0xaa, 0xaa, 0xaa, 0xaa, 1, 2, 3, 4]);
        let offload = Offload {
            needs_checksum: true,
            csum_start: 34,
            csum_offset: 8,
            ..Offload::default()
        };
        offload.complete_checksum(&mut frame);
        let crc = u32::from_le_bytes(frame[42..46].try_into().unwrap());
        frame[42..46].fill(0);
        assert_eq!(crc, crc32c(&[&frame[34..]]));
    }
}
