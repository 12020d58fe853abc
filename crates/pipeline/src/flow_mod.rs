//! Flow mods: adding, changing and deleting entries, and their expiry (1.3.5 sections 5.5, 6.4, 7.3.4.1).

use crate::counters::EntryCounters;
use crate::entry_change::{EntryChange, Kind, Modification};
use crate::entry_walk::Wanted;
use crate::flow_table::Counts;
use crate::linked_counters::LinkedCounters;
use crate::removed_entry::announce;
use crate::selection::Selection;
use crate::{EntryMatch, FlowEntry, FlowTable, Pipeline, RemovedEntry};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use urtica_wire::{
    ErrorCode, FlowMod, FlowModCommand, FlowModFlags, FlowRemovedReason, FlowStatsRequest,
    TABLE_ALL, Version,
};

/// The flags that an entry may have.
const FLAGS: FlowModFlags = FlowModFlags::SEND_FLOW_REM
    .union(FlowModFlags::CHECK_OVERLAP)
    .union(FlowModFlags::RESET_COUNTS)
    .union(FlowModFlags::NO_PKT_COUNTS)
    .union(FlowModFlags::NO_BYT_COUNTS);

/// The maximum number of entries that one call of [`Pipeline::expire`] inspects, in some hundred microseconds.
const EXPIRY_STEP: usize = 256;

impl Pipeline {
    /// Executes a flow mod completely, or not at all.
    ///
    /// Deleted entries whose flags request a notification are appended to `removed`, but not entries that an add replaces. The
    /// new entry continues the counters of a replaced one unless OFPFF_RESET_COUNTS is set (1.3.5 section 6.4). The caller
    /// handles the buffer.
    ///
    /// # Errors
    /// The specification's error if the message is invalid; then nothing has changed.
    pub fn flow_mod(
        &mut self,
        flow_mod: &FlowMod,
        now: Duration,
        removed: &mut Vec<RemovedEntry>,
    ) -> Result<(), ErrorCode> {
        let change = self.begin_flow_mod(Version::Of13, flow_mod, now)?;
        self.finish(change, removed);
        Ok(())
    }

    /// Executes a flow mod of 1.0 (1.0 sections 3.4, 4.6 and 5.3.3), which differs from [`Pipeline::flow_mod`] in six points:
    /// all commands except add apply to all tables; a modify that finds no entry adds one, and changes cookies; an add that
    /// replaces an entry clears its counters; actions need not fit the match, but have no effect on packets without the field;
    /// an entry without wildcards has the highest priority, 65,535, whatever the message specifies; and no entry is a
    /// table-miss entry.
    ///
    /// # Errors
    /// The specification's error if the message is invalid; then nothing has changed.
    pub fn flow_mod_of10(
        &mut self,
        flow_mod: &FlowMod,
        now: Duration,
        removed: &mut Vec<RemovedEntry>,
    ) -> Result<(), ErrorCode> {
        let change = self.begin_flow_mod(Version::Of10, flow_mod, now)?;
        self.finish(change, removed);
        Ok(())
    }

    /// Checks a flow mod of a version. Adds a single entry immediately; starts a change that may affect many entries, for
    /// [`Pipeline::go_on`].
    ///
    /// # Errors
    /// The specification's error if the message is invalid; then nothing has changed.
    pub fn begin_flow_mod(
        &mut self,
        version: Version,
        flow_mod: &FlowMod,
        now: Duration,
    ) -> Result<Option<EntryChange>, ErrorCode> {
        use FlowModCommand::*;
        if self.is_locked {
            return Err(ErrorCode::FlowModFailedEperm);
        }
        self.follow();
        check_flags(version, flow_mod.flags)?;
        let tables = self.tables_of(version, flow_mod)?;
        let flow_mod = &with_priority_of(version, flow_mod);
        let selection = Selection::of_flow_mod(flow_mod)?;
        let kind = match flow_mod.command {
            Add => {
                self.add(version, flow_mod, selection.match_, now)?;
                return Ok(None);
            }
            Modify | ModifyStrict if self.modifies_nothing(version, &tables, &selection) => {
                self.add(version, flow_mod, selection.match_, now)?;
                return Ok(None);
            }
            Modify | ModifyStrict => {
                Kind::Modify(self.check_modify(version, flow_mod, &selection.match_)?)
            }
            Delete | DeleteStrict => Kind::Remove(FlowRemovedReason::Delete),
            Other(_) => return Err(ErrorCode::FlowModFailedBadCommand),
        };
        let wanted = Wanted::Selected(selection);
        Ok(Some(self.begin_change(tables, wanted, kind)))
    }

    /// Returns the tables that a flow mod applies to.
    fn tables_of(&self, version: Version, flow_mod: &FlowMod) -> Result<Range<usize>, ErrorCode> {
        use FlowModCommand::*;
        let any = match flow_mod.command {
            Add => false,
            Modify | ModifyStrict => version == Version::Of10,
            Delete | DeleteStrict => version == Version::Of10 || flow_mod.table_id == TABLE_ALL,
            Other(_) => return Err(ErrorCode::FlowModFailedBadCommand),
        };
        match flow_mod.table_id {
            _ if any => Ok(0..self.tables.len()),
            id if id < self.config().n_tables => Ok(usize::from(id)..usize::from(id) + 1),
            _ => Err(ErrorCode::FlowModFailedBadTableId),
        }
    }

    fn add(
        &mut self,
        version: Version,
        flow_mod: &FlowMod,
        match_: EntryMatch,
        now: Duration,
    ) -> Result<(), ErrorCode> {
        let instructions =
            self.check_instructions(version, flow_mod.table_id, &match_, &flow_mod.instructions)?;
        let max_entries = self.config().max_entries as usize;
        let table = &mut self.tables[usize::from(flow_mod.table_id)];
        let checks_overlap = flow_mod.flags.contains(FlowModFlags::CHECK_OVERLAP);
        if checks_overlap && table.has_overlap(flow_mod.priority, &match_) {
            return Err(ErrorCode::FlowModFailedOverlap);
        }
        let twin = table.find_strict(flow_mod.priority, &match_);
        if twin.is_none() && table.entries().len() >= max_entries {
            return Err(ErrorCode::FlowModFailedTableFull);
        }
        let keeps_counts =
            version == Version::Of13 && !flow_mod.flags.contains(FlowModFlags::RESET_COUNTS);
        let counters = match twin {
            Some(twin) if keeps_counts => twin.counters.copy(),
            _ => EntryCounters::default(),
        };
        let counts = match keeps_counts {
            true => Counts::Kept,
            false => Counts::Reset,
        };
        let entry = FlowEntry {
            table_id: flow_mod.table_id,
            priority: flow_mod.priority,
            match_,
            instructions,
            cookie: flow_mod.cookie,
            flags: flow_mod.flags,
            idle_timeout: flow_mod.idle_timeout,
            hard_timeout: flow_mod.hard_timeout,
            added: now,
            version,
            counters,
            linked: LinkedCounters::default(),
        };
        table.insert(entry, counts);
        let index = usize::from(flow_mod.table_id);
        self.note_expiry(index..index + 1);
        self.follow_changes(index..index + 1, &[]);
        Ok(())
    }

    /// Returns `true` if a modify finds no entry, and therefore adds one.
    fn modifies_nothing(
        &self,
        version: Version,
        tables: &Range<usize>,
        selection: &Selection,
    ) -> bool {
        let mut concerned = self.tables[tables.clone()].iter();
        version == Version::Of10 && !concerned.any(|table| table.finds_any(selection))
    }

    /// Checks a modify's instructions for the selected entries, which keep everything else (1.3.5 section 6.4).
    fn check_modify(
        &self,
        version: Version,
        flow_mod: &FlowMod,
        match_: &EntryMatch,
    ) -> Result<Modification, ErrorCode> {
        let (table_id, instructions) = (flow_mod.table_id, &flow_mod.instructions);
        Ok(Modification {
            instructions: self.check_instructions(version, table_id, match_, instructions)?,
            cookie: (version == Version::Of10).then_some(flow_mod.cookie),
            counts: match flow_mod.flags.contains(FlowModFlags::RESET_COUNTS) {
                true => Counts::Reset,
                false => Counts::Kept,
            },
        })
    }

    /// Updates the next expiry for these tables.
    pub(crate) fn note_expiry(&mut self, tables: Range<usize>) {
        let earliest = earliest_expiry(&self.tables[tables]);
        self.next_expiry = self.next_expiry.into_iter().chain(earliest).min();
    }

    /// Removes expired entries, and appends those whose flags request a notification to `removed`. Also recompiles tables that
    /// changed much and then not for some time.
    ///
    /// Inspects at most 256 entries. If more are due, [`Pipeline::next_expiry`] is not later than `now`: process packets, and
    /// call this again.
    pub fn expire(&mut self, now: Duration, removed: &mut Vec<RemovedEntry>) {
        self.follow();
        if !self.is_deferred {
            self.settle(now);
        }
        if self.next_expiry.is_none_or(|next| next > now) {
            return self.follow_changes(0..0, removed);
        }
        let mut looks = EXPIRY_STEP;
        for table in &mut self.tables {
            announce(table.expire(now, &mut looks), removed);
        }
        self.next_expiry = earliest_expiry(&self.tables);
        self.follow_changes(0..self.tables.len(), removed);
    }

    /// Returns a lower bound for the next expiry, without inspecting entries; `None` if no entry expires.
    pub fn next_expiry(&self) -> Option<Duration> {
        self.next_expiry
    }

    /// Returns all entries that a request selects at once: the reference model of [`Pipeline::walk_flows`].
    ///
    /// # Errors
    /// The specification's error if the request's match or table is invalid.
    pub fn flow_stats(&self, request: &FlowStatsRequest) -> Result<Vec<Arc<FlowEntry>>, ErrorCode> {
        let selection = Selection::of_request(request)?;
        let tables = self.tables_asked(request.table_id)?;
        let tables = self.tables[tables].iter();
        let selected = tables.flat_map(|table| table.select(&selection));
        Ok(selected.collect())
    }

    /// Returns the tables of a request.
    pub(crate) fn tables_asked(&self, table_id: u8) -> Result<Range<usize>, ErrorCode> {
        match table_id {
            TABLE_ALL => Ok(0..self.tables.len()),
            id if id < self.config().n_tables => Ok(usize::from(id)..usize::from(id) + 1),
            _ => Err(ErrorCode::BadRequestBadTableId),
        }
    }
}

/// Returns the flow mod with the priority that it has in a version. 1.0: "an exact entry that has no wildcards is always
/// the highest priority" (1.0 section 3.4).
fn with_priority_of<'a>(version: Version, flow_mod: &FlowMod<'a>) -> FlowMod<'a> {
    let is_highest = version == Version::Of10 && flow_mod.match_.is_exact_in_of10();
    FlowMod {
        priority: if is_highest {
            u16::MAX
        } else {
            flow_mod.priority
        },
        ..flow_mod.clone()
    }
}

/// Returns a lower bound for the next expiry in some tables; `None` if no entry expires.
fn earliest_expiry(tables: &[FlowTable]) -> Option<Duration> {
    tables.iter().filter_map(FlowTable::next_expiry).min()
}

/// Checks the flags. Each version has its own error code for unknown ones.
fn check_flags(version: Version, flags: FlowModFlags) -> Result<(), ErrorCode> {
    if FLAGS.contains(flags) {
        return Ok(());
    }
    match version {
        Version::Of10 => Err(ErrorCode::FlowModFailedUnsupported),
        Version::Of13 => Err(ErrorCode::FlowModFailedBadFlags),
    }
}
