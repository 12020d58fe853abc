//! Groups: sets of buckets for packets.

use crate::codec::wire_enum;
use crate::{Action, GROUP_ANY, List, PortNo};
use bitflags::bitflags;

wire_enum! {
    /// The command of a group mod (`ofp_group_mod_command`).
    GroupModCommand: u16 {
        /// Adds a group.
        Add = 0,
        /// Changes a group.
        Modify = 1,
        /// Deletes a group, or all groups.
        Delete = 2,
    }
}

wire_enum! {
    /// The type of a group, which determines how it selects buckets (`ofp_group_type`).
    GroupType: u8 {
        /// All buckets.
        All = 0,
        /// One bucket, selected by the switch according to the weights.
        Select = 1,
        /// The only bucket.
        Indirect = 2,
        /// The first live bucket.
        FastFailover = 3,
    }
}

/// A message that adds, changes or deletes groups (1.3.5 section 7.3.4.2). 1.0 has none.
///
/// The constructors add a group; [`GroupMod::modify`] changes an existing one instead.
///
/// ```
/// use urtica_wire::{Action, Bucket, GroupMod, Message, PortNo, Version};
///
/// // Port 1 as long as it is up, then port 2.
/// let protected = GroupMod::fast_failover(7, [
///     Bucket::new(vec![Action::output(PortNo(1))]).watch_port(PortNo(1)),
///     Bucket::new(vec![Action::output(PortNo(2))]).watch_port(PortNo(2)),
/// ]);
/// // Two of three flows to port 1, the others to port 2.
/// let balanced = GroupMod::select(8, [
///     Bucket::new(vec![Action::output(PortNo(1))]).weight(2),
///     Bucket::new(vec![Action::output(PortNo(2))]).weight(1),
/// ]);
/// let mut out = Vec::new();
/// Message::GroupMod(protected.clone()).encode(Version::Of13, 1, &mut out)?;
/// Message::GroupMod(balanced).encode(Version::Of13, 2, &mut out)?;
///
/// let error = Message::GroupMod(protected).encode(Version::Of10, 3, &mut out).unwrap_err();
/// assert_eq!(error.to_string(), "OpenFlow 1.0 cannot express the message OFPT_GROUP_MOD");
/// # Ok::<(), urtica_wire::EncodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMod<'a> {
    /// The command.
    pub command: GroupModCommand,
    /// The group's type.
    pub group_type: GroupType,
    /// The number of the group.
    pub group_id: u32,
    /// The buckets.
    pub buckets: List<'a, Bucket<'a>>,
}

impl<'a> GroupMod<'a> {
    /// Adds a group that sends a copy of each packet to every bucket, for multicast and flooding.
    pub fn all(group_id: u32, buckets: impl IntoIterator<Item = Bucket<'a>>) -> Self {
        Self::add(GroupType::All, group_id, buckets)
    }

    /// Adds a group that sends each packet to one bucket, in proportion to the weights. The switch selects it, usually by a
    /// hash of the packet's addresses and ports. A bucket without a weight gets 1.
    pub fn select(group_id: u32, buckets: impl IntoIterator<Item = Bucket<'a>>) -> Self {
        let weighted = buckets.into_iter().map(|bucket| Bucket {
            weight: bucket.weight.max(1),
            ..bucket
        });
        Self::add(GroupType::Select, group_id, weighted)
    }

    /// Adds a group of one bucket with these actions, which many entries can share and which can be changed in one place.
    pub fn indirect(group_id: u32, actions: impl Into<List<'a, Action<'a>>>) -> Self {
        Self::add(GroupType::Indirect, group_id, [Bucket::new(actions)])
    }

    /// Adds a group that sends each packet to its first live bucket. Each bucket must watch a port or a group
    /// ([`Bucket::watch_port`], [`Bucket::watch_group`]).
    pub fn fast_failover(group_id: u32, buckets: impl IntoIterator<Item = Bucket<'a>>) -> Self {
        Self::add(GroupType::FastFailover, group_id, buckets)
    }

    /// Deletes a group, and the flow entries that use it; [`crate::GROUP_ALL`] for all groups. A missing group is no error.
    pub fn delete(group_id: u32) -> Self {
        Self {
            command: GroupModCommand::Delete,
            ..Self::add(GroupType::All, group_id, [])
        }
    }

    /// Changes the existing group's type and buckets; its users stay.
    pub fn modify(self) -> Self {
        Self {
            command: GroupModCommand::Modify,
            ..self
        }
    }

    fn add(
        group_type: GroupType,
        group_id: u32,
        buckets: impl IntoIterator<Item = Bucket<'a>>,
    ) -> Self {
        Self {
            command: GroupModCommand::Add,
            group_type,
            group_id,
            buckets: buckets.into_iter().collect(),
        }
    }
}

/// A bucket of a group (`ofp_bucket`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket<'a> {
    /// The relative weight, in select groups; 0 in others.
    pub weight: u16,
    /// The port that must be live for the bucket to be live; [`PortNo::ANY`] for none.
    pub watch_port: PortNo,
    /// The group that must be live for the bucket to be live; [`crate::GROUP_ANY`] for none.
    pub watch_group: u32,
    /// The action set.
    pub actions: List<'a, Action<'a>>,
}

impl<'a> Bucket<'a> {
    /// Creates a bucket with this action set, which watches nothing.
    pub fn new(actions: impl Into<List<'a, Action<'a>>>) -> Self {
        Self {
            weight: 0,
            watch_port: PortNo::ANY,
            watch_group: GROUP_ANY,
            actions: actions.into(),
        }
    }

    /// Sets the weight, for a select group.
    pub fn weight(self, weight: u16) -> Self {
        Self { weight, ..self }
    }

    /// Makes the bucket live while this port is up.
    pub fn watch_port(self, watch_port: PortNo) -> Self {
        Self { watch_port, ..self }
    }

    /// Makes the bucket live while this group has a live bucket.
    pub fn watch_group(self, watch_group: u32) -> Self {
        Self {
            watch_group,
            ..self
        }
    }
}

bitflags! {
    /// `ofp_group_capabilities`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct GroupCapabilities: u32 {
        /// Select groups have weights.
        const SELECT_WEIGHT = 1 << 0;
        /// Select groups use liveness.
        const SELECT_LIVENESS = 1 << 1;
        /// Groups can send packets to groups.
        const CHAINING = 1 << 2;
        /// Loops of groups are refused.
        const CHAINING_CHECKS = 1 << 3;
        /// Undefined bits are kept.
        const _ = !0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::{hex, message};
    use crate::{GROUP_ALL, Message};

    fn output(port: u32) -> Bucket<'static> {
        Bucket::new(vec![Action::output(PortNo(port))])
    }

    #[test]
    fn constructors_equal_parsed_texts() {
        for (group, expected) in [
            (
                GroupMod::all(1, [output(1), output(2)]),
                "group_id=1,type=all,bucket=actions=output:1,bucket=actions=output:2",
            ),
            (
                GroupMod::select(2, [output(1).weight(3), output(2)]),
                "group_id=2,type=select,bucket=weight:3,actions=output:1,bucket=weight:1,actions=output:2",
            ),
            (
                GroupMod::indirect(3, vec![Action::PopVlan, Action::output(PortNo(2))]),
                "group_id=3,type=indirect,bucket=actions=strip_vlan,output:2",
            ),
            (
                GroupMod::fast_failover(
                    4,
                    [output(1).watch_port(PortNo(1)), output(2).watch_group(3)],
                ),
                "group_id=4,type=ff,bucket=watch_port:1,actions=output:1,bucket=watch_group:3,actions=output:2",
            ),
        ] {
            let parsed = GroupMod::parse(GroupModCommand::Add, expected).expect(expected);
            assert_eq!(group, parsed);
            let modified = GroupMod::parse(GroupModCommand::Modify, expected).expect(expected);
            assert_eq!(group.modify(), modified);
        }
        let parsed = GroupMod::parse(GroupModCommand::Delete, "group_id=5");
        assert_eq!(Ok(GroupMod::delete(5)), parsed);
        let parsed = GroupMod::parse(GroupModCommand::Delete, "");
        assert_eq!(Ok(GroupMod::delete(GROUP_ALL)), parsed);
    }

    #[test]
    fn a_failover_group_is_the_bytes_of_the_specification() {
        let group = GroupMod::fast_failover(7, [output(1).watch_port(PortNo(1))]);
        let bytes = hex("04 0f 0030 00000000 0000 03 00 00000007
             0020 0000 00000001 ffffffff 00000000 0000 0010 00000001 0000 000000000000");
        message(&bytes, &Message::GroupMod(group));
    }
}
