//! The single operations of action programs.
//!
//! **Safety.** Functions here use the pointers of a [`Frame`] without checking its length. Callers ensure that the frame is
//! parsed as deeply as its program requires ([`ActionProgram::depth`](super::action_program::ActionProgram::depth)). Then
//! `data`, `network` and `transport` point into its buffer, and each header in `kinds` or the program's `require` is
//! complete.

use super::frame::Frame;
use super::kinds::Kinds;
use super::offset;
use super::op::Op;
use crate::meter::raised_drop_precedence;
use urtica_wire::VLAN_PRESENT;

/// Executes one operation.
///
/// # Safety
/// The frame is parsed as deeply as the operation requires, and has its headers; `params` points to its parameters.
pub(super) unsafe fn carry_out(frame: &mut Frame, op: Op, params: *const u8) {
    // SAFETY: the frame is parsed as deeply as the operation requires, and has the headers that the entry requires or that
    // are checked here; `params` has as many bytes as the operation needs (`Op::params_len`).
    unsafe {
        match op {
            Op::SetEthDst => set_eth(frame, offset::ETH_DST, params),
            Op::SetEthSrc => set_eth(frame, offset::ETH_SRC, params),
            Op::SetVlanVid if frame.kinds.contains(Kinds::VLAN) => {
                let vid = u16::from_be_bytes(params.cast::<[u8; 2]>().read());
                set_tci(frame, tci(frame) & 0xf000 | vid);
            }
            Op::SetVlanPcp if frame.kinds.contains(Kinds::VLAN) => {
                set_tci(frame, tci(frame) & 0x1fff | u16::from(*params) << 13);
            }
            Op::SetIpv4Src => set_ipv4_address(frame, offset::IPV4_SRC, params),
            Op::SetIpv4Dst => set_ipv4_address(frame, offset::IPV4_DST, params),
            Op::SetTransportSrc => set_port(frame, offset::SRC_PORT, params),
            Op::SetTransportDst => set_port(frame, offset::DST_PORT, params),
            Op::DecNwTtl => dec_ttl(frame),
            Op::PushVlan(ether_type) => push_vlan(frame, ether_type),
            Op::PopVlan if frame.kinds.contains(Kinds::VLAN) => pop_vlan(frame),
            Op::WriteMetadata => {
                let [value, kept] = params.cast::<[u64; 2]>().read_unaligned();
                frame.metadata = frame.metadata & kept | value;
            }
            Op::SetVlanVid | Op::SetVlanPcp | Op::PopVlan | Op::Meter | Op::Send => {}
        }
    }
}

/// Raises the drop precedence of IPv4 and IPv6, and updates the checksum of IPv4.
///
/// # Safety
/// The frame is parsed up to the network header.
pub(super) unsafe fn raise_drop_precedence(frame: &mut Frame, levels: u8) {
    let is_v4 = frame.kinds.contains(Kinds::IPV4);
    if !is_v4 && !frame.kinds.contains(Kinds::IPV6) {
        return;
    }
    // SAFETY: `kinds` shows that the network header is complete; the DSCP is in its first two bytes.
    unsafe {
        let old = word_at(frame.network);
        let shift = if is_v4 { 2 } else { 6 };
        let dscp = (old >> shift & 0x3f) as u8;
        let raised = u32::from(raised_drop_precedence(dscp, levels));
        let new = old & !(0x3f << shift) | raised << shift;
        let place = frame.network.cast::<[u8; 2]>();
        place.write((new as u16).to_be_bytes());
        if is_v4 && new != old {
            Change::of_word(old, new).update(frame.network.add(offset::IPV4_CHECKSUM));
        }
    }
}

unsafe fn set_eth(frame: &mut Frame, at: usize, params: *const u8) {
    // SAFETY: every frame has both addresses, and `params` has 6 bytes, which are not in the frame.
    unsafe { frame.data.add(at).copy_from_nonoverlapping(params, 6) }
}

/// Returns the TTL of IPv4 or the hop limit of IPv6, and the checksum that covers it; `None` for other frames.
///
/// # Safety
/// The frame is parsed up to the network header.
pub(super) unsafe fn ttl(frame: &Frame) -> Option<(*mut u8, Option<*mut u8>)> {
    // SAFETY: the frame is parsed up to the network header, and `kinds` shows that it is complete.
    unsafe {
        if frame.kinds.contains(Kinds::IPV4) {
            let sum = frame.network.add(offset::IPV4_CHECKSUM);
            return Some((frame.network.add(offset::IPV4_TTL), Some(sum)));
        }
        let is_v6 = frame.kinds.contains(Kinds::IPV6);
        is_v6.then(|| (frame.network.add(offset::IPV6_HOP_LIMIT), None))
    }
}

unsafe fn dec_ttl(frame: &mut Frame) {
    // SAFETY: the frame is parsed up to the network header; `ttl` returns addresses in it.
    unsafe {
        let Some((ttl, sum)) = ttl(frame) else { return };
        let word = |ttl: u8| u32::from(ttl) << 8;
        if let Some(sum) = sum {
            Change::of_word(word(*ttl), word(*ttl - 1)).update(sum);
        }
        *ttl -= 1;
    }
}

unsafe fn set_ipv4_address(frame: &mut Frame, at: usize, params: *const u8) {
    // SAFETY: only programs that require IPv4, so that its header is complete, have such an operation; `params` has 4 bytes.
    unsafe {
        let place = frame.network.add(at);
        let change = Change {
            gone: (word_at(place) ^ 0xffff) + (word_at(place.add(2)) ^ 0xffff),
            come: word_at(params) + word_at(params.add(2)),
        };
        place.copy_from_nonoverlapping(params, 4);
        change.update(frame.network.add(offset::IPV4_CHECKSUM));
        change.update_transport(frame);
    }
}

unsafe fn set_port(frame: &mut Frame, at: usize, params: *const u8) {
    // SAFETY: only programs that require TCP or UDP, so that the header is complete, have such an operation; `params` has 2
    // bytes.
    unsafe {
        let place = frame.transport.add(at);
        let change = Change::of_word(word_at(place), word_at(params));
        place.copy_from_nonoverlapping(params, 2);
        change.update_transport(frame);
    }
}

/// A change of words under a checksum.
#[derive(Clone, Copy)]
struct Change {
    /// The sum of the complements of the old words.
    gone: u32,
    /// The sum of the new words.
    come: u32,
}

impl Change {
    fn of_word(old: u32, new: u32) -> Self {
        Self {
            gone: old ^ 0xffff,
            come: new,
        }
    }

    /// Updates a checksum (RFC 1624, equation 3).
    ///
    /// # Safety
    /// There are two unshared bytes at `at`.
    unsafe fn update(self, at: *mut u8) {
        // SAFETY: `at` has the two bytes that are read and written.
        unsafe {
            let mut total = (word_at(at) ^ 0xffff) + self.gone + self.come;
            total = (total & 0xffff) + (total >> 16);
            total = (total & 0xffff) + (total >> 16);
            at.cast::<[u8; 2]>().write((!(total as u16)).to_be_bytes());
        }
    }

    /// Updates the checksum of TCP or UDP; 0 in UDP means none (RFC 768).
    ///
    /// # Safety
    /// The frame is parsed up to the transport header.
    unsafe fn update_transport(self, frame: &Frame) {
        // SAFETY: `kinds` shows that the transport header is complete, including the checksum.
        unsafe {
            let udp_sum = frame.transport.wrapping_add(offset::UDP_CHECKSUM);
            if frame.kinds.contains(Kinds::TCP) {
                self.update(frame.transport.add(offset::TCP_CHECKSUM));
            } else if frame.kinds.contains(Kinds::UDP) && word_at(udp_sum) != 0 {
                self.update(udp_sum);
                if word_at(udp_sum) == 0 {
                    udp_sum.cast::<[u8; 2]>().write([0xff; 2]);
                }
            }
        }
    }
}

unsafe fn word_at(at: *const u8) -> u32 {
    // SAFETY: callers pass addresses in a header of the frame, or in a flow record's parameters.
    u16::from_be_bytes(unsafe { at.cast::<[u8; 2]>().read() }).into()
}

/// Returns the TCI of the outermost tag.
unsafe fn tci(frame: &Frame) -> u16 {
    // SAFETY: `kinds` shows that there is a tag; the outermost is right after the addresses.
    unsafe { word_at(frame.data.add(offset::TCI)) as u16 }
}

unsafe fn set_tci(frame: &mut Frame, tci: u16) {
    // SAFETY: as in `tci`, or `push_vlan` has just inserted the tag.
    unsafe {
        let place = frame.data.add(offset::TCI).cast::<[u8; 2]>();
        place.write(tci.to_be_bytes());
    }
    note_tci(frame, tci);
}

/// Updates the fields for the outermost tag in the frame.
fn note_tci(frame: &mut Frame, tci: u16) {
    frame.set_tag(VLAN_PRESENT | tci & 0xfff, tci >> 13);
}

/// Pushes a tag with the values of the outermost existing one, except for the drop indicator.
unsafe fn push_vlan(frame: &mut Frame, ether_type: u16) {
    let outer = frame.vlan_pcp << 13 | frame.vlan_vid & 0xfff;
    // SAFETY: `can_execute` has checked that the program's tags fit between `floor` and `data`; the addresses are 12 bytes.
    unsafe {
        let addresses = frame.data;
        frame.data = addresses.sub(offset::TAG_LEN);
        addresses.copy_to(frame.data, offset::ADDRESSES_LEN);
        let place = frame.data.add(offset::ADDRESSES_LEN).cast::<[u8; 2]>();
        place.write(ether_type.to_be_bytes());
        frame.len += offset::TAG_LEN as u32;
        frame.kinds |= Kinds::VLAN;
        set_tci(frame, outer);
    }
}

/// Pops a tag. An inner tag, if any, becomes the outermost; then the type before `network` is not the first one.
unsafe fn pop_vlan(frame: &mut Frame) {
    // SAFETY: `kinds` shows that there is a tag, so the frame has the 4 bytes after its addresses that are removed, and is
    // parsed up to the type.
    unsafe {
        let addresses = frame.data;
        frame.data = addresses.add(offset::TAG_LEN);
        addresses.copy_to(frame.data, offset::ADDRESSES_LEN);
        frame.len -= offset::TAG_LEN as u32;
        if frame.network as usize - frame.data as usize > offset::ADDRESSES_LEN + 2 {
            note_tci(frame, tci(frame));
        } else {
            frame.kinds -= Kinds::VLAN;
            frame.set_tag(0, 0);
        }
    }
}
