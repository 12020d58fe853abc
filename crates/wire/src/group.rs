//! Groups: sets of buckets that packets are handed to.

use crate::codec::wire_enum;
use crate::{Action, DecodeError, Element, EncodeError, List, PortNo, Reader, Version, of13};
use bitflags::bitflags;

wire_enum! {
    /// What a group mod does (`ofp_group_mod_command`).
    GroupModCommand: u16 {
        /// Adds a group.
        Add = 0,
        /// Changes a group.
        Modify = 1,
        /// Deletes a group, or all.
        Delete = 2,
    }
}

wire_enum! {
    /// How a group chooses among its buckets (`ofp_group_type`).
    GroupType: u8 {
        /// All of them.
        All = 0,
        /// One of them, by the switch's choice and the weights.
        Select = 1,
        /// The only one.
        Indirect = 2,
        /// The first that is live.
        FastFailover = 3,
    }
}

/// Adds, changes or deletes groups (1.3.5 section 7.3.4.2). 1.0 has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMod<'a> {
    /// What to do.
    pub command: GroupModCommand,
    /// How the group chooses among its buckets.
    pub group_type: GroupType,
    /// Which group.
    pub group_id: u32,
    /// Its buckets.
    pub buckets: List<'a, Bucket<'a>>,
}

/// One bucket of a group (`ofp_bucket`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket<'a> {
    /// Its relative weight; select groups only, 0 in others.
    pub weight: u16,
    /// The port whose state makes it live; [`PortNo::ANY`] where that does not matter.
    pub watch_port: PortNo,
    /// The group whose state makes it live; [`crate::GROUP_ANY`] where that does not matter.
    pub watch_group: u32,
    /// Its action set.
    pub actions: List<'a, Action<'a>>,
}

impl<'a> Element<'a> for Bucket<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        of13::group::decode_bucket(reader)
    }

    fn encode(&self, _: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        of13::group::encode_bucket(self, out)
    }
}

bitflags! {
    /// `ofp_group_capabilities`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct GroupCapabilities: u32 {
        /// Weights of select groups.
        const SELECT_WEIGHT = 1 << 0;
        /// Liveness of select groups.
        const SELECT_LIVENESS = 1 << 1;
        /// Groups of groups.
        const CHAINING = 1 << 2;
        /// Loops among them are refused.
        const CHAINING_CHECKS = 1 << 3;
        /// Bits without a meaning are kept.
        const _ = !0;
    }
}
