//! Flow mods, which change flow tables, and flow-removed messages.

pub(crate) mod straight;

use crate::codec::wire_enum;
use crate::{BufferId, GROUP_ANY, Instruction, List, Match, PortNo, TABLE_ALL};
use bitflags::bitflags;

wire_enum! {
    /// The command of a flow mod (`ofp_flow_mod_command`).
    FlowModCommand: u8 {
        /// Adds an entry.
        Add = 0,
        /// Changes the instructions of all entries whose match is within the given one.
        Modify = 1,
        /// Changes the entry with exactly this match and priority.
        ModifyStrict = 2,
        /// Deletes all entries whose match is within the given one.
        Delete = 3,
        /// Deletes the entry with exactly this match and priority.
        DeleteStrict = 4,
    }
}

bitflags! {
    /// `ofp_flow_mod_flags`, numbered as in 1.3.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct FlowModFlags: u16 {
        /// Send a flow-removed message when the entry expires or is deleted.
        const SEND_FLOW_REM = 1 << 0;
        /// Refuse the entry if it overlaps another one with its priority.
        const CHECK_OVERLAP = 1 << 1;
        /// Reset the counters of entries that are modified. 1.3 only.
        const RESET_COUNTS = 1 << 2;
        /// Do not count packets. 1.3 only.
        const NO_PKT_COUNTS = 1 << 3;
        /// Do not count bytes. 1.3 only.
        const NO_BYT_COUNTS = 1 << 4;
        /// 1.0 only: an entry that is used without a controller (bit 2 in 1.0).
        const EMERG = 1 << 15;
        /// Undefined bits are kept.
        const _ = !0;
    }
}

/// A message that adds, changes or deletes flow entries (1.3.5 section 7.3.4.1, 1.0 section 5.3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowMod<'a> {
    /// A value that the controller chooses, opaque to the switch, and kept with the entry.
    pub cookie: u64,
    /// Restricts modify and delete to entries whose cookie equals `cookie` in these bits; 0 for no restriction. 1.3 only.
    pub cookie_mask: u64,
    /// The table; [`TABLE_ALL`] deletes from all tables. 1.0's messages have no table id: there it is 0, or, for all commands
    /// except add, [`TABLE_ALL`].
    pub table_id: u8,
    /// The command.
    pub command: FlowModCommand,
    /// Seconds without a packet after which the entry expires; 0 for never.
    pub idle_timeout: u16,
    /// Seconds after which the entry expires in any case; 0 for never.
    pub hard_timeout: u16,
    /// The priority; higher ones match first.
    pub priority: u16,
    /// The buffered packet that the entry should forward.
    pub buffer_id: BufferId,
    /// Restricts a delete to entries that output to this port; [`PortNo::ANY`] for no restriction.
    pub out_port: PortNo,
    /// Restricts a delete to entries that use this group; [`GROUP_ANY`] for no restriction. 1.3 only.
    pub out_group: u32,
    /// The options.
    pub flags: FlowModFlags,
    /// The packets to match.
    pub match_: Match<'a>,
    /// The instructions for matching packets.
    pub instructions: List<'a, Instruction<'a>>,
}

impl Default for FlowMod<'_> {
    /// Returns an add to table 0 with the middle priority (0x8000, OFP_DEFAULT_PRIORITY), which matches all packets, drops
    /// them, and does not expire.
    #[inline]
    fn default() -> Self {
        Self {
            cookie: 0,
            cookie_mask: 0,
            table_id: 0,
            command: FlowModCommand::Add,
            idle_timeout: 0,
            hard_timeout: 0,
            priority: 0x8000,
            buffer_id: BufferId::NONE,
            out_port: PortNo::ANY,
            out_group: GROUP_ANY,
            flags: FlowModFlags::empty(),
            match_: Match::any(),
            instructions: List::default(),
        }
    }
}

impl FlowMod<'_> {
    /// Creates a flow mod that deletes all entries with this cookie, in all tables. A program that marks its entries with a
    /// cookie can thus remove those of an earlier run. 1.3 only: 1.0 cannot select entries by cookie, and encoding fails.
    pub fn delete_by_cookie(cookie: u64) -> Self {
        Self {
            table_id: TABLE_ALL,
            command: FlowModCommand::Delete,
            cookie,
            cookie_mask: u64::MAX,
            ..Self::default()
        }
    }
}

/// The options of an entry in addition to match and actions: timeouts, priority and cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryOptions {
    /// Seconds without a packet after which the entry expires; 0 for never.
    pub idle_timeout: u16,
    /// Seconds after which the entry expires in any case; 0 for never.
    pub hard_timeout: u16,
    /// The priority; higher ones match first.
    pub priority: u16,
    /// A value kept with the entry, opaque to the switch.
    pub cookie: u64,
    /// The options.
    pub flags: FlowModFlags,
}

impl EntryOptions {
    /// Options for an entry with the middle priority that stays until it is deleted.
    pub const PERMANENT: Self = Self {
        idle_timeout: 0,
        hard_timeout: 0,
        priority: 0x8000,
        cookie: 0,
        flags: FlowModFlags::empty(),
    };

    /// Creates options for an entry that expires after `seconds` without a packet.
    pub const fn idle(seconds: u16) -> Self {
        Self {
            idle_timeout: seconds,
            ..Self::PERMANENT
        }
    }

    /// Sets the priority.
    pub const fn priority(self, priority: u16) -> Self {
        Self { priority, ..self }
    }

    /// Creates an add with these options, which matches all packets and drops them.
    #[inline]
    pub fn flow_mod(self) -> FlowMod<'static> {
        FlowMod {
            cookie: self.cookie,
            idle_timeout: self.idle_timeout,
            hard_timeout: self.hard_timeout,
            priority: self.priority,
            flags: self.flags,
            ..FlowMod::default()
        }
    }
}

wire_enum! {
    /// The reason why an entry was removed (`ofp_flow_removed_reason`).
    FlowRemovedReason: u8 {
        /// No packet arrived within its idle timeout.
        IdleTimeout = 0,
        /// Its hard timeout passed.
        HardTimeout = 1,
        /// A flow mod deleted it.
        Delete = 2,
        /// Its group was deleted. 1.3 only.
        GroupDelete = 3,
    }
}

/// The message that an entry was removed (1.3.5 section 7.4.2, 1.0 section 5.4.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRemoved<'a> {
    /// The entry's cookie.
    pub cookie: u64,
    /// The entry's priority.
    pub priority: u16,
    /// The reason why it was removed.
    pub reason: FlowRemovedReason,
    /// The table in which it was; 0 in 1.0.
    pub table_id: u8,
    /// The whole seconds of its duration.
    pub duration_sec: u32,
    /// The rest of its duration, in nanoseconds.
    pub duration_nsec: u32,
    /// Its idle timeout in seconds.
    pub idle_timeout: u16,
    /// Its hard timeout in seconds; 0 in 1.0, which does not report it.
    pub hard_timeout: u16,
    /// The number of packets that it matched.
    pub packet_count: u64,
    /// The number of bytes that it matched.
    pub byte_count: u64,
    /// Its match.
    pub match_: Match<'a>,
}
