//! The operations of action programs, and the sizes of their parameters.

use super::kinds::Depth;
use super::needs::Needs;
use super::way::SEND_PARAM_LEN;

/// The size of [`Op::Meter`]'s parameter, in bytes.
pub(crate) const METER_PARAM_LEN: usize = size_of::<u64>();

/// The size of the address of a group's cell, in bytes.
pub(crate) const CELL_LEN: usize = size_of::<u64>();

/// A change to a frame. Its parameters, if any, follow those of earlier operations in the flow record, in network order
/// unless noted otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// 6 bytes.
    SetEthDst,
    /// 6 bytes.
    SetEthSrc,
    /// 2 bytes: the id, without OFPVID_PRESENT. Frames without a tag are unchanged.
    SetVlanVid,
    /// 1 byte. Frames without a tag are unchanged.
    SetVlanPcp,
    /// 4 bytes. Updates the checksums of IPv4 and of TCP or UDP.
    SetIpv4Src,
    /// 4 bytes. Updates the checksums of IPv4 and of TCP or UDP.
    SetIpv4Dst,
    /// 2 bytes: the source port of TCP or UDP, whichever the entry's `require` names. Updates the checksum.
    SetTransportSrc,
    /// 2 bytes: the destination port of TCP or UDP. Updates the checksum.
    SetTransportDst,
    /// Decrements the TTL of IPv4, with its checksum, or the hop limit of IPv6; other frames are unchanged. The TTL was checked
    /// before the entry was counted: see [`ActionProgram::ttl_decrements`](super::action_program::ActionProgram::ttl_decrements).
    DecNwTtl,
    /// No parameter: the EtherType is part of the operation.
    PushVlan(u16),
    /// Frames without a tag are unchanged.
    PopVlan,
    /// 16 bytes: the bits to write and the bits to keep, both in the machine's byte order.
    WriteMetadata,
    /// 8 bytes: the address of a [`MeterCell`](super::meter_cell::MeterCell). It is the first operation of its program: a frame
    /// that the meter drops is not processed further.
    Meter,
    /// Sends a copy of the frame: an [`Origin`](super::way::Origin) and a [`Way`](super::way::Way).
    Send,
}

impl Op {
    /// Returns the size of its parameters, in bytes.
    pub fn params_len(self) -> usize {
        match self {
            Self::SetEthDst | Self::SetEthSrc => 6,
            Self::SetIpv4Src | Self::SetIpv4Dst => 4,
            Self::SetVlanVid | Self::SetTransportSrc | Self::SetTransportDst => 2,
            Self::SetVlanPcp => 1,
            Self::WriteMetadata => 16,
            Self::Meter => METER_PARAM_LEN,
            Self::Send => SEND_PARAM_LEN,
            Self::DecNwTtl | Self::PushVlan(_) | Self::PopVlan => 0,
        }
    }

    /// Returns its requirements on a frame.
    pub fn needs(self) -> Needs {
        match self {
            Self::PushVlan(_) => Needs {
                headroom: 4,
                ..Needs::default()
            },
            Self::DecNwTtl => Needs {
                ttl_decrements: 1,
                ..Needs::default()
            },
            _ => Needs::default(),
        }
    }

    pub fn depth(self) -> Depth {
        match self {
            Self::SetEthDst | Self::SetEthSrc | Self::WriteMetadata | Self::Send => Depth::Ethernet,
            Self::SetVlanVid | Self::SetVlanPcp | Self::PushVlan(_) | Self::PopVlan => Depth::Type,
            // A remark changes the DSCP.
            Self::DecNwTtl | Self::Meter => Depth::Network,
            Self::SetIpv4Src | Self::SetIpv4Dst | Self::SetTransportSrc | Self::SetTransportDst => {
                Depth::Transport
            }
        }
    }
}
