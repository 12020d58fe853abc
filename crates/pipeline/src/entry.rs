//! A flow entry: its match, instructions and counters (1.3.5 section 5.2).

use crate::Packet;
use crate::counters::{EntryCounters, EntryCounts};
use crate::linked_counters::LinkedCounters;
use crate::prerequisites::Known;
use std::hash::{Hash, Hasher};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use urtica_wire::{
    Action, ErrorCode, Field, FlowModFlags, FlowRemoved, FlowRemovedReason, FlowStats, Instruction,
    List, Match, OxmField, PortNo, VLAN_PRESENT, Version,
};

/// The match of an entry: fields, in the order of their numbers. An empty match includes every packet.
#[derive(Clone, Debug, Default)]
pub struct EntryMatch {
    /// Field, value and mask. A value has no bits outside its mask, and no mask is zero.
    fields: Box<[(OxmField, u128, u128)]>,
    /// The VLAN priority that 1.0 allows in a match on untagged packets. It matches nothing, and is only sent back.
    pcp_of_untagged: Option<u8>,
}

/// Matches are equal if they have the same fields, values and masks.
impl PartialEq for EntryMatch {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields
    }
}

impl Eq for EntryMatch {}

impl Hash for EntryMatch {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fields.hash(state);
    }
}

impl EntryMatch {
    /// Checks and converts a match. A field whose mask is zero is omitted, since it matches everything.
    ///
    /// # Errors
    /// The errors of 1.3.5 section 7.4.4.5 (OFPET_BAD_MATCH): for a field that is unknown or repeated, lacks its prerequisites,
    /// or has an invalid value or mask. Prerequisites may be in any order.
    pub fn new(match_: &Match) -> Result<Self, ErrorCode> {
        let mut fields: Vec<_> = match_.fields().map(checked).collect::<Result<_, _>>()?;
        fields.sort_unstable_by_key(|&(field, ..)| field);
        if fields.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(ErrorCode::BadMatchDupField);
        }
        fields.retain(|&(.., mask)| mask != 0);
        let known = Known::from_fields(&fields);
        match fields.iter().all(|&(field, ..)| known.allows(field)) {
            true => Ok(Self {
                fields: fields.into(),
                pcp_of_untagged: match_.pcp_of_untagged(),
            }),
            false => Err(ErrorCode::BadMatchBadPrereq),
        }
    }

    /// Returns the fields with their values and masks.
    pub fn fields(&self) -> &[(OxmField, u128, u128)] {
        &self.fields
    }

    /// Returns `true` if a packet matches all fields.
    pub fn matches(&self, packet: &Packet) -> bool {
        self.fields
            .iter()
            .all(|&(field, value, mask)| packet.matches(field, value, mask))
    }

    /// Returns `true` if this matches every packet that `other` matches, according to the fields alone, as for non-strict flow
    /// mods and statistics requests (1.3.5 section 6.4).
    pub fn includes(&self, other: &Self) -> bool {
        self.fields.iter().all(|&(field, value, mask)| {
            let theirs = other.get(field);
            theirs.is_some_and(|(their_value, their_mask)| {
                mask & !their_mask == 0 && their_value & mask == value
            })
        })
    }

    /// Returns `true` if a single packet may match both (1.3.5 section 6.4, OFPFF_CHECK_OVERLAP).
    pub fn overlaps(&self, other: &Self) -> bool {
        self.fields.iter().all(|&(field, value, mask)| {
            let theirs = other.get(field);
            theirs.is_none_or(|(their_value, their_mask)| {
                (value ^ their_value) & mask & their_mask == 0
            })
        })
    }

    /// Converts it to the type of `urtica-wire`, for a controller.
    pub fn to_wire(&self) -> Match<'static> {
        let fields = self.fields.iter();
        let fields = fields.map(|&(field, value, mask)| Field::masked(field, value, mask));
        Match::from(fields.collect::<Vec<_>>())
    }

    /// Converts it for 1.0, with the VLAN priority next to `dl_vlan=OFP_VLAN_NONE`, if any.
    pub fn to_of10(&self) -> Match<'static> {
        match self.pcp_of_untagged {
            Some(pcp) => self.to_wire().vlan_pcp(pcp),
            None => self.to_wire(),
        }
    }

    /// Returns the VLAN priority that 1.0 allows in a match on untagged packets, where it has no effect.
    pub fn pcp_of_untagged(&self) -> Option<u8> {
        self.pcp_of_untagged
    }

    /// Sets the VLAN priority that [`EntryMatch::to_of10`] sends back.
    pub(crate) fn with_pcp_of_untagged(self, pcp_of_untagged: Option<u8>) -> Self {
        Self {
            pcp_of_untagged,
            ..self
        }
    }

    /// Returns the value and mask of a field.
    pub(crate) fn get(&self, wanted: OxmField) -> Option<(u128, u128)> {
        let found = self.fields.iter().find(|&&(field, ..)| field == wanted);
        found.map(|&(_, value, mask)| (value, mask))
    }
}

/// Checks a single field (1.3.5 sections 7.2.3.5 to 7.2.3.7).
fn checked(field: Field) -> Result<(OxmField, u128, u128), ErrorCode> {
    let Field::Basic { field, value, mask } = field else {
        return Err(ErrorCode::BadMatchBadField);
    };
    let full = field.full_mask();
    if mask & !full != 0 || (mask != full && !field.maskable()) {
        return Err(ErrorCode::BadMatchBadMask);
    }
    if value & !full != 0 || is_impossible_vid(field, value, mask) {
        return Err(ErrorCode::BadMatchBadValue);
    }
    if value & !mask != 0 {
        return Err(ErrorCode::BadMatchBadWildcards);
    }
    Ok((field, value, mask))
}

/// Returns `true` if this requires a VLAN id in packets without a tag. Valid are (1.3.5 table 13): OFPVID_NONE for packets
/// without a tag, OFPVID_PRESENT as value and mask for packets with one, an id with OFPVID_PRESENT, and masks on the id
/// only.
fn is_impossible_vid(field: OxmField, value: u128, mask: u128) -> bool {
    let present = u128::from(VLAN_PRESENT);
    field == OxmField::VlanVid && mask & present != 0 && value & present == 0 && value != 0
}

/// An entry's instructions, at most one of each kind, in the order of execution (1.3.5 section 5.9).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// The meter through which packets pass first.
    pub meter: Option<u32>,
    /// The actions to apply immediately.
    pub apply: Option<Vec<Action<'static>>>,
    /// Whether to clear the action set.
    pub clear: bool,
    /// The actions to write to the action set.
    pub write: Option<Vec<Action<'static>>>,
    /// The metadata to write, and its mask.
    pub metadata: Option<(u64, u64)>,
    /// The next table; always a later one.
    pub goto: Option<u8>,
}

impl Instructions {
    /// Returns all actions, both applied and written.
    pub fn actions(&self) -> impl Iterator<Item = &Action<'static>> {
        self.apply.iter().chain(&self.write).flatten()
    }

    /// Returns whether an action outputs packets to this port. The actions of groups do not count (1.3.5 section 6.4).
    pub fn output_to(&self, wanted: PortNo) -> bool {
        self.actions().any(|action| match *action {
            Action::Output { port, .. } | Action::Enqueue { port, .. } => port == wanted,
            _ => false,
        })
    }

    /// Returns the groups that packets are sent to, possibly with repetitions.
    pub(crate) fn groups(&self) -> impl Iterator<Item = u32> {
        self.actions().filter_map(|action| match action {
            Action::Group(id) => Some(*id),
            _ => None,
        })
    }

    /// Returns `true` if an action sends packets to this group.
    pub fn use_group(&self, group_id: u32) -> bool {
        self.actions()
            .any(|&action| action == Action::Group(group_id))
    }

    /// Converts it to the type of `urtica-wire`, for a controller.
    pub fn to_wire(&self) -> List<'static, Instruction<'static>> {
        let apply = self.apply.clone().map(Instruction::apply);
        let write = self.write.clone();
        let write = write.map(|actions| Instruction::WriteActions(actions.into()));
        let metadata = self.metadata;
        let metadata =
            metadata.map(|(metadata, mask)| Instruction::WriteMetadata { metadata, mask });
        let all = [
            self.meter.map(Instruction::Meter),
            apply,
            self.clear.then_some(Instruction::ClearActions),
            write,
            metadata,
            self.goto.map(Instruction::GotoTable),
        ];
        all.into_iter().flatten().collect()
    }
}

/// A flow entry: a row of a flow table.
#[derive(Debug)]
pub struct FlowEntry {
    /// The table of the entry.
    pub table_id: u8,
    /// The priority; higher ones match first.
    pub priority: u16,
    /// The match.
    pub match_: EntryMatch,
    /// The instructions for matching packets.
    pub instructions: Instructions,
    /// A value that the controller chose, opaque to the switch.
    pub cookie: u64,
    /// The flags of the flow mod that added it.
    pub flags: FlowModFlags,
    /// Seconds without a packet after which the entry is removed; 0 for never.
    pub idle_timeout: u16,
    /// Seconds after which the entry is removed; 0 for never.
    pub hard_timeout: u16,
    /// The time when it was added.
    pub added: Duration,
    /// The version of the flow mod that added it.
    pub version: Version,
    /// The counters of the plain form. [`FlowEntry::counted`] has the totals.
    pub counters: EntryCounters,
    /// The counters of another form of the pipeline.
    pub(crate) linked: LinkedCounters,
}

impl FlowEntry {
    /// Returns `true` for a table-miss entry (1.3.5 section 5.4). 1.0 has none: there, an entry that matches all packets is an
    /// ordinary one.
    pub fn is_table_miss(&self) -> bool {
        self.version == Version::Of13 && self.priority == 0 && self.match_.fields().is_empty()
    }

    /// Counts a matched packet of `bytes` at `now`, unless the flags disable counters.
    pub fn count(&self, bytes: usize, now: Duration) {
        let counters = &self.counters;
        if !self.flags.contains(FlowModFlags::NO_PKT_COUNTS) {
            counters.packets.fetch_add(1, Relaxed);
        }
        if !self.flags.contains(FlowModFlags::NO_BYT_COUNTS) {
            counters.bytes.fetch_add(bytes as u64, Relaxed);
        }
        counters.last_used_ns.store(nanoseconds(now), Relaxed);
    }

    /// Returns the counts of all forms.
    pub fn counted(&self) -> EntryCounts {
        self.counters
            .read()
            .plus(self.linked.counts().wanted(self.flags))
    }

    /// Adds counts from elsewhere.
    pub(crate) fn take_over(&self, counts: EntryCounts) {
        let counters = &self.counters;
        counters.packets.fetch_add(counts.packets, Relaxed);
        counters.bytes.fetch_add(counts.bytes, Relaxed);
        counters
            .last_used_ns
            .fetch_max(counts.last_used_ns, Relaxed);
    }

    /// Returns the reason for removing the entry at `now`, if any: the timeout that expired first (1.3.5 section 5.5).
    pub fn expired(&self, now: Duration) -> Option<FlowRemovedReason> {
        let first = self.first_timeout().filter(|&(due, _)| due <= now);
        first.map(|(_, reason)| reason)
    }

    /// Returns `true` if it has a timeout.
    pub(crate) fn has_timeout(&self) -> bool {
        self.idle_timeout != 0 || self.hard_timeout != 0
    }

    /// Returns the time at which it expires without another packet; `None` without a timeout.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.first_timeout().map(|(due, _)| due)
    }

    /// Returns the timeout that will expire first, and when.
    fn first_timeout(&self) -> Option<(Duration, FlowRemovedReason)> {
        let last_used = Duration::from_nanos(self.counted().last_used_ns);
        let idle = due(last_used.max(self.added), self.idle_timeout);
        let hard = due(self.added, self.hard_timeout);
        let timeouts = [
            (hard, FlowRemovedReason::HardTimeout),
            (idle, FlowRemovedReason::IdleTimeout),
        ];
        let timeouts = timeouts.into_iter();
        let timeouts = timeouts.filter_map(|(due, reason)| Some((due?, reason)));
        timeouts.min_by_key(|&(due, _)| due)
    }

    /// Returns its age, in whole seconds and nanoseconds.
    fn age(&self, now: Duration) -> (u32, u32) {
        seconds_and_nanoseconds(now.saturating_sub(self.added))
    }

    /// Returns a copy with the current counters, which later packets do not change.
    pub(crate) fn frozen(&self) -> Self {
        let counted = self.counted();
        Self {
            match_: self.match_.clone(),
            instructions: self.instructions.clone(),
            counters: EntryCounters {
                packets: counted.packets.into(),
                bytes: counted.bytes.into(),
                last_used_ns: counted.last_used_ns.into(),
            },
            linked: LinkedCounters::default(),
            ..*self
        }
    }

    /// Converts the entry for a multipart reply.
    pub fn to_stats(&self, now: Duration) -> FlowStats<'static> {
        let (duration_sec, duration_nsec) = self.age(now);
        let counted = self.counted();
        FlowStats {
            table_id: self.table_id,
            duration_sec,
            duration_nsec,
            priority: self.priority,
            idle_timeout: self.idle_timeout,
            hard_timeout: self.hard_timeout,
            flags: self.flags,
            cookie: self.cookie,
            packet_count: counted.packets,
            byte_count: counted.bytes,
            match_: self.match_.to_wire(),
            instructions: self.instructions.to_wire(),
        }
    }

    /// Converts the entry for a flow-removed message.
    pub fn to_removed(&self, reason: FlowRemovedReason, now: Duration) -> FlowRemoved<'static> {
        let (duration_sec, duration_nsec) = self.age(now);
        let counted = self.counted();
        FlowRemoved {
            cookie: self.cookie,
            priority: self.priority,
            reason,
            table_id: self.table_id,
            duration_sec,
            duration_nsec,
            idle_timeout: self.idle_timeout,
            hard_timeout: self.hard_timeout,
            packet_count: counted.packets,
            byte_count: counted.bytes,
            match_: self.match_.to_wire(),
        }
    }
}

/// Returns when a timeout of this many seconds expires; `None` for a timeout of 0.
fn due(since: Duration, timeout: u16) -> Option<Duration> {
    (timeout != 0).then(|| since + Duration::from_secs(timeout.into()))
}

/// Converts a time of the caller's clock to nanoseconds, saturating after five centuries.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos().try_into().unwrap_or(u64::MAX)
}

/// Converts a duration for messages; the seconds saturate at 32 bits.
pub(crate) fn seconds_and_nanoseconds(duration: Duration) -> (u32, u32) {
    let seconds = u32::try_from(duration.as_secs()).unwrap_or(u32::MAX);
    (seconds, duration.subsec_nanos())
}
