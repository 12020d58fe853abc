//! What an entry does, as a shape that many entries share and the numbers that are its own.
//!
//! ESWITCH calls these action templates (section 3.1): all routes of a table rewrite the same fields, each to its own
//! values. Machine code is made for the shape; the values stand in the entry's [`Cell`](super::table::Cell).

use super::kinds::{Depth, Kinds};

/// How many bytes of parameters a cell has room for at most.
pub(crate) const MAX_PARAMS: usize = 72;

/// A change to a frame. Where it has a parameter, that follows the earlier steps' in the cell, in network order unless
/// said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// 6 bytes.
    SetEthDst,
    /// 6 bytes.
    SetEthSrc,
    /// 2 bytes: the id, without OFPVID_PRESENT. Frames without a tag stay as they are.
    SetVlanVid,
    /// 1 byte. Frames without a tag stay as they are.
    SetVlanPcp,
    /// 4 bytes. The checksums of IPv4 and of TCP or UDP follow.
    SetIpv4Src,
    /// 4 bytes. The checksums of IPv4 and of TCP or UDP follow.
    SetIpv4Dst,
    /// 2 bytes: the source port of TCP or UDP, whichever `require` of the entry names. The checksum follows.
    SetTransportSrc,
    /// 2 bytes: the destination port of TCP or UDP. The checksum follows.
    SetTransportDst,
    /// The TTL of IPv4, whose checksum follows, or the hop limit of IPv6; other frames stay as they are. That it is
    /// high enough was looked at before the entry was counted: see [`ActionShape::ttl_steps`].
    DecNwTtl,
    /// The type is the instruction's own.
    PushVlan(u16),
    /// Frames without a tag stay as they are.
    PopVlan,
    /// 16 bytes: the bits to write and those to keep, both in the machine's order.
    WriteMetadata,
}

/// Where a frame goes after the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    /// Out of the port that is the cell's target, unless it came in by that.
    Output,
    /// Back out of the port that it came in by.
    InPort,
    /// To the table that is the cell's target.
    Goto,
    /// Nowhere.
    Drop,
    /// The plain way, from the beginning of this table on, uncounted: the entry does what only that can.
    Punt,
}

/// What entries have in common that do the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ActionShape {
    /// The headers that a frame has for sure when it comes here: those that the entry requires.
    pub require: Kinds,
    pub steps: Vec<Step>,
    pub end: End,
}

impl ActionShape {
    /// How often the TTL is decremented. A frame of IP whose TTL is not higher takes the plain way instead, which tells
    /// the controller (1.3.5 section 5.12).
    pub fn ttl_steps(&self) -> u8 {
        let steps = self.steps.iter();
        steps.filter(|&&step| step == Step::DecNwTtl).count() as u8
    }

    /// How many bytes of room before the frame the steps take. A frame with less takes the plain way.
    pub fn headroom(&self) -> usize {
        let steps = self.steps.iter();
        4 * steps
            .filter(|step| matches!(step, Step::PushVlan(_)))
            .count()
    }

    /// How deep frames must have been parsed.
    pub fn depth(&self) -> Depth {
        let depths = self.steps.iter().map(|step| step.depth());
        depths.max().unwrap_or_default()
    }
}

impl Step {
    /// How many bytes of parameters it has.
    pub fn params_len(self) -> usize {
        match self {
            Self::SetEthDst | Self::SetEthSrc => 6,
            Self::SetIpv4Src | Self::SetIpv4Dst => 4,
            Self::SetVlanVid | Self::SetTransportSrc | Self::SetTransportDst => 2,
            Self::SetVlanPcp => 1,
            Self::WriteMetadata => 16,
            Self::DecNwTtl | Self::PushVlan(_) | Self::PopVlan => 0,
        }
    }

    fn depth(self) -> Depth {
        match self {
            Self::SetEthDst | Self::SetEthSrc | Self::WriteMetadata => Depth::Ethernet,
            Self::SetVlanVid | Self::SetVlanPcp | Self::PushVlan(_) | Self::PopVlan => Depth::Type,
            Self::DecNwTtl => Depth::Network,
            Self::SetIpv4Src | Self::SetIpv4Dst | Self::SetTransportSrc | Self::SetTransportDst => {
                Depth::Transport
            }
        }
    }
}
