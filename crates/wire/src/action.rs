//! What happens to a packet.

use crate::{DecodeError, Element, EncodeError, Field, PortNo, Reader, Version, of10, of13};

/// One action of a list or set (1.3.5 section 7.2.4, 1.0 section 5.2.4).
///
/// 1.0's `set_dl_*`, `set_nw_*` and `strip_vlan` are [`Action::SetField`] and [`Action::PopVlan`]. Actions that 1.3
/// has no equal for keep a variant of their own, marked "1.0 only".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Sends the packet out of a port.
    Output {
        /// Where to.
        port: PortNo,
        /// How many bytes of it go to the controller, where that is the port; [`crate::CONTROLLER_NO_BUFFER`] for all.
        max_len: u16,
    },
    /// Copies the TTL outwards.
    CopyTtlOut,
    /// Copies the TTL inwards.
    CopyTtlIn,
    /// Sets the MPLS TTL.
    SetMplsTtl(u8),
    /// Decrements the MPLS TTL.
    DecMplsTtl,
    /// Pushes a VLAN tag of this Ethernet type (0x8100 or 0x88a8).
    PushVlan(u16),
    /// Pops the outermost VLAN tag.
    PopVlan,
    /// Pushes an MPLS header of this Ethernet type (0x8847 or 0x8848).
    PushMpls(u16),
    /// Pops the outermost MPLS header; the payload is of this Ethernet type.
    PopMpls(u16),
    /// Sets the queue for following outputs.
    SetQueue(u32),
    /// Hands the packet to a group.
    Group(u32),
    /// Sets the IP TTL.
    SetNwTtl(u8),
    /// Decrements the IP TTL.
    DecNwTtl,
    /// Sets a header field.
    SetField(Field<'a>),
    /// Pushes a PBB service tag of this Ethernet type (0x88e7).
    PushPbb(u16),
    /// Pops the outermost PBB service tag.
    PopPbb,
    /// 1.0 only: sets the VLAN id (12 bits), adding a tag where there is none.
    SetVlanVid(u16),
    /// 1.0 only: sets the VLAN priority (3 bits), adding a tag where there is none.
    SetVlanPcp(u8),
    /// 1.0 only: sets the source port of TCP or UDP, or the ICMP type, whichever the packet has.
    SetTpSrc(u16),
    /// 1.0 only: sets the destination port of TCP or UDP, or the ICMP code, whichever the packet has.
    SetTpDst(u16),
    /// 1.0 only: sends the packet out of a port through one of its queues.
    Enqueue {
        /// The port.
        port: PortNo,
        /// The queue of that port.
        queue_id: u32,
    },
    /// An experimenter's action (1.0: a vendor's).
    Experimenter {
        /// Whose it is.
        experimenter: u32,
        /// What follows the experimenter id, up to the action's length. Its own length and the eight bytes before it
        /// make a multiple of eight.
        data: &'a [u8],
    },
}

impl Action<'_> {
    /// An output to a port, with nothing kept for the controller.
    pub const fn output(port: PortNo) -> Self {
        Self::Output { port, max_len: 0 }
    }

    /// An output of whole packets to the controller.
    pub const fn controller() -> Self {
        Self::Output {
            port: PortNo::CONTROLLER,
            max_len: crate::CONTROLLER_NO_BUFFER,
        }
    }
}

impl<'a> Element<'a> for Action<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match version {
            Version::Of10 => of10::action::decode(reader),
            Version::Of13 => of13::action::decode(reader),
        }
    }

    fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match version {
            Version::Of10 => of10::action::encode(self, out),
            Version::Of13 => of13::action::encode(self, out),
        }
    }
}
