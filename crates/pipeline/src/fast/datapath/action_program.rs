//! What an entry does, as a program that many entries share and the numbers that are its own: the one form of actions that is
//! carried out here, by two readers. The interpreter executes it (`execute.rs`), and the code generator compiles it
//! (`control/machine/actions.rs`); `control/translate.rs` makes it. The plain form does not know it, so that it can be
//! compared with.
//!
//! ESWITCH calls these action templates (section 3.1): all routes of a table rewrite the same fields, each to its own
//! values. Machine code is made for the program; the values stand in the entry's [`FlowRecord`](super::table::FlowRecord).

use super::kinds::{Depth, Kinds};
use super::needs::Needs;
use super::way::{ORIGIN_LEN, WAY_LEN};

/// How many bytes of parameters a flow record has room for at most.
pub(crate) const MAX_PARAMS: usize = 72;

/// The most operations that an action program may have; longer lists are left to the plain form.
pub(crate) const MAX_OPS: usize = 64;

/// How many bytes of parameters [`Op::Meter`] has.
pub(crate) const METER_PARAM_LEN: usize = size_of::<u64>();

/// How many bytes of parameters [`End::Group`] has: the address of a [`GroupCell`](super::group::GroupCell), and an
/// [`Origin`](super::way::Origin).
pub(crate) const GROUP_PARAM_LEN: usize = CELL_LEN + ORIGIN_LEN;

/// How many bytes of these the address is.
pub(crate) const CELL_LEN: usize = size_of::<u64>();

/// A change to a frame. Where it has a parameter, that follows the earlier operations' in the flow record, in network
/// order unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
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
    /// high enough was looked at before the entry was counted: see [`ActionProgram::ttl_decrements`].
    DecNwTtl,
    /// The type is the instruction's own.
    PushVlan(u16),
    /// Frames without a tag stay as they are.
    PopVlan,
    /// 16 bytes: the bits to write and those to keep, both in the machine's order.
    WriteMetadata,
    /// 8 bytes: the address of a [`MeterCell`](super::meter_cell::MeterCell). The first operation of its program, if any: a
    /// frame that the meter drops goes no further.
    Meter,
}

/// Where a frame goes after the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    /// Out of the port that is the flow record's target, unless it came in by that.
    Output,
    /// Back out of the port that it came in by.
    InPort,
    /// To the table that is the flow record's target.
    Goto,
    /// To a group, and out where that says. Its parameters are behind those of the operations.
    Group,
    /// Nowhere.
    Drop,
    /// The plain way, from the beginning of this table on, uncounted: the entry does what only that can.
    Punt,
}

/// What entries have in common that do the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ActionProgram {
    /// The headers that a frame has for sure when it comes here: those that the entry requires.
    pub require: Kinds,
    pub ops: Vec<Op>,
    /// How often frames leave before they come to their end. If they do, the parameters of that are behind those of the
    /// operations: an [`Origin`](super::way::Origin), then one [`Way`](super::way::Way) for each.
    pub sent: u8,
    pub end: End,
}

impl ActionProgram {
    /// How often the TTL is decremented. A frame of IP whose TTL is not higher takes the plain way instead, which tells
    /// the controller (1.3.5 section 5.12).
    pub fn ttl_decrements(&self) -> u8 {
        let ops = self.ops.iter();
        const { assert!(MAX_OPS <= u8::MAX as usize) };
        ops.filter(|&&op| op == Op::DecNwTtl).count() as u8
    }

    /// Whether frames go through a meter. While the compiled form does not know that yet, they take the plain way.
    pub fn is_metered(&self) -> bool {
        self.ops.first() == Some(&Op::Meter)
    }

    /// Whether a frame may turn out to have to take the plain way.
    pub fn can_punt(&self) -> bool {
        matches!(self.end, End::Group | End::Punt)
            || self.is_metered()
            || self.headroom() > 0
            || self.ttl_decrements() > 0
    }

    /// How many bytes of room before the frame the operations take. A frame with less takes the plain way.
    pub fn headroom(&self) -> usize {
        let ops = self.ops.iter();
        4 * ops.filter(|op| matches!(op, Op::PushVlan(_))).count()
    }

    /// How deep frames must have been parsed.
    pub fn depth(&self) -> Depth {
        if self.end == End::Group {
            // A group may spread flows and change any header.
            return Depth::Transport;
        }
        let depths = self.ops.iter().map(|op| op.depth());
        depths.max().unwrap_or_default()
    }

    /// How many bytes of parameters the operations have; others follow them.
    pub fn ops_params_len(&self) -> usize {
        self.ops.iter().map(|op| op.params_len()).sum()
    }

    /// How many bytes of parameters there are.
    pub fn params_len(&self) -> usize {
        let others = match (self.end, usize::from(self.sent)) {
            (End::Group, _) => GROUP_PARAM_LEN,
            (_, 0) => 0,
            (_, sent) => ORIGIN_LEN + sent * WAY_LEN,
        };
        self.ops_params_len() + others
    }
}

impl Op {
    /// How many bytes of parameters it has.
    pub fn params_len(self) -> usize {
        match self {
            Self::SetEthDst | Self::SetEthSrc => 6,
            Self::SetIpv4Src | Self::SetIpv4Dst => 4,
            Self::SetVlanVid | Self::SetTransportSrc | Self::SetTransportDst => 2,
            Self::SetVlanPcp => 1,
            Self::WriteMetadata => 16,
            Self::Meter => METER_PARAM_LEN,
            Self::DecNwTtl | Self::PushVlan(_) | Self::PopVlan => 0,
        }
    }

    /// What a frame needs for it.
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

    fn depth(self) -> Depth {
        match self {
            Self::SetEthDst | Self::SetEthSrc | Self::WriteMetadata => Depth::Ethernet,
            Self::SetVlanVid | Self::SetVlanPcp | Self::PushVlan(_) | Self::PopVlan => Depth::Type,
            // A remark changes the DSCP.
            Self::DecNwTtl | Self::Meter => Depth::Network,
            Self::SetIpv4Src | Self::SetIpv4Dst | Self::SetTransportSrc | Self::SetTransportDst => {
                Depth::Transport
            }
        }
    }
}
