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

/// The fields of an entry's match, in the order of their numbers. An empty one matches every packet.
#[derive(Clone, Debug, Default)]
pub struct EntryMatch {
    /// Field, value, mask; the value lies within the mask, and no mask is zero.
    fields: Box<[(OxmField, u128, u128)]>,
    /// The priority that 1.0 allows in a match on untagged packets. It matches nothing, and is only sent back.
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
    /// Checks and converts a match. A field whose mask is zero is omitted, which has an equal meaning.
    ///
    /// # Errors
    /// Those of 1.3.5 section 7.4.4.5 (OFPET_BAD_MATCH), for a field that is unknown or repeated, whose prerequisites are
    /// missing, or whose value or mask is invalid. Prerequisites may be in any order.
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

    /// Field, value, mask of each.
    pub fn fields(&self) -> &[(OxmField, u128, u128)] {
        &self.fields
    }

    /// Returns `true` if a packet has all fields.
    pub fn matches(&self, packet: &Packet) -> bool {
        self.fields
            .iter()
            .all(|&(field, value, mask)| packet.matches(field, value, mask))
    }

    /// Returns `true` if this matches every packet that `other` matches, judging by the fields, as for non-strict flow mods
    /// and statistics requests (1.3.5 section 6.4).
    pub fn includes(&self, other: &Self) -> bool {
        self.fields.iter().all(|&(field, value, mask)| {
            let theirs = other.get(field);
            theirs.is_some_and(|(their_value, their_mask)| {
                mask & !their_mask == 0 && their_value & mask == value
            })
        })
    }

    /// Returns `true` if one packet may match both (1.3.5 section 6.4, OFPFF_CHECK_OVERLAP).
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

    /// Converts the match for 1.0, with the priority next to `dl_vlan=OFP_VLAN_NONE`, if any.
    pub fn to_of10(&self) -> Match<'static> {
        match self.pcp_of_untagged {
            Some(pcp) => self.to_wire().vlan_pcp(pcp),
            None => self.to_wire(),
        }
    }

    /// The priority that 1.0 allows in a match on untagged packets, although it cannot count there.
    pub fn pcp_of_untagged(&self) -> Option<u8> {
        self.pcp_of_untagged
    }

    /// Sets the priority that [`EntryMatch::to_of10`] sends back.
    pub(crate) fn with_pcp_of_untagged(self, pcp_of_untagged: Option<u8>) -> Self {
        Self {
            pcp_of_untagged,
            ..self
        }
    }

    /// Value and mask of a field.
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

/// Returns `true` if this requires a VLAN id in packets without a tag. Everything else is valid (1.3.5 table 13):
/// OFPVID_NONE for packets without a tag, OFPVID_PRESENT as value and mask for packets with one, an id with OFPVID_PRESENT,
/// and masks on the id only.
fn is_impossible_vid(field: OxmField, value: u128, mask: u128) -> bool {
    let present = u128::from(VLAN_PRESENT);
    field == OxmField::VlanVid && mask & present != 0 && value & present == 0 && value != 0
}

/// An entry's instructions, at most one of each kind, in the order in which they are carried out (1.3.5 section 5.9).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// The meter to pass first.
    pub meter: Option<u32>,
    /// The actions to carry out now.
    pub apply: Option<Vec<Action<'static>>>,
    /// Whether the action set is emptied.
    pub clear: bool,
    /// The actions to merge into the action set.
    pub write: Option<Vec<Action<'static>>>,
    /// Metadata to write, and the mask of its bits.
    pub metadata: Option<(u64, u64)>,
    /// The next table.
    pub goto: Option<u8>,
}

impl Instructions {
    /// Returns all actions, those to apply and those to write.
    pub fn actions(&self) -> impl Iterator<Item = &Action<'static>> {
        self.apply.iter().chain(&self.write).flatten()
    }

    /// Returns whether an action sends packets by this port; those of groups do not count (1.3.5 section 6.4).
    pub fn output_to(&self, wanted: PortNo) -> bool {
        self.actions().any(|action| match *action {
            Action::Output { port, .. } | Action::Enqueue { port, .. } => port == wanted,
            _ => false,
        })
    }

    /// The groups that actions hand packets to; one may be among them more than once.
    pub(crate) fn groups(&self) -> impl Iterator<Item = u32> {
        self.actions().filter_map(|action| match action {
            Action::Group(id) => Some(*id),
            _ => None,
        })
    }

    /// Returns `true` if an action hands packets to this group.
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

/// A row of a flow table.
#[derive(Debug)]
pub struct FlowEntry {
    /// The table that it is in.
    pub table_id: u8,
    /// Higher numbers match first.
    pub priority: u16,
    /// Which packets.
    pub match_: EntryMatch,
    /// The instructions for these packets.
    pub instructions: Instructions,
    /// An opaque value of the controller's.
    pub cookie: u64,
    /// The options that it was added with.
    pub flags: FlowModFlags,
    /// Seconds without a packet after which the entry is removed; 0 for never.
    pub idle_timeout: u16,
    /// Seconds after which the entry is removed; 0 for never.
    pub hard_timeout: u16,
    /// The time when it was added.
    pub added: Duration,
    /// The version of the flow mod that added it.
    pub version: Version,
    /// The counters of the plain form: see [`FlowEntry::counted`] for all.
    pub counters: EntryCounters,
    /// The counters of another form of the pipeline.
    pub(crate) linked: LinkedCounters,
}

impl FlowEntry {
    /// Returns `true` for a table-miss entry (1.3.5 section 5.4). 1.0 has none: an entry that matches all packets is an
    /// ordinary one there.
    pub fn is_table_miss(&self) -> bool {
        self.version == Version::Of13 && self.priority == 0 && self.match_.fields().is_empty()
    }

    /// Counts a packet of `bytes` matched at `now`, unless its flags disable counters.
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

    /// Returns packets, bytes, and the time of the last packet in nanoseconds of the caller's clock, from all forms.
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

    /// Returns why the entry must be removed at `now`, if so: the timeout that expired first (1.3.5 section 5.5).
    pub fn expired(&self, now: Duration) -> Option<FlowRemovedReason> {
        let first = self.first_timeout().filter(|&(due, _)| due <= now);
        first.map(|(_, reason)| reason)
    }

    /// Returns `true` if it ever expires.
    pub(crate) fn has_timeout(&self) -> bool {
        self.idle_timeout != 0 || self.hard_timeout != 0
    }

    /// Returns the time at which it expires without another packet; `None` without a timeout.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.first_timeout().map(|(due, _)| due)
    }

    /// The timeout that will be over first, and when.
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

    /// Returns a copy with the counters as they are, which no packet uses.
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

    /// Returns the entry for a multipart reply.
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

    /// Returns the entry for a flow-removed message.
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

/// Returns the end of a timeout in seconds; `None` for a timeout of 0.
fn due(since: Duration, timeout: u16) -> Option<Duration> {
    (timeout != 0).then(|| since + Duration::from_secs(timeout.into()))
}

/// Converts a time of the caller's clock for a counter; it saturates after five centuries.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos().try_into().unwrap_or(u64::MAX)
}

/// Converts a duration for messages; the seconds saturate at 32 bits.
pub(crate) fn seconds_and_nanoseconds(duration: Duration) -> (u32, u32) {
    let seconds = u32::try_from(duration.as_secs()).unwrap_or(u32::MAX);
    (seconds, duration.subsec_nanos())
}
