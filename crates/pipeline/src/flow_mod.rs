//! Flow mods: adding, changing and deleting entries, and their expiry (1.3.5 sections 5.5, 6.4, 7.3.4.1).

use crate::classifier::Rank;
use crate::counters::EntryCounters;
use crate::flow_table::{Counts, Scope};
use crate::linked_counters::LinkedCounters;
use crate::{EntryMatch, FlowEntry, FlowTable, Instructions, Pipeline, RemovedEntry};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use urtica_wire::{
    ErrorCode, FlowMod, FlowModCommand, FlowModFlags, FlowRemovedReason, FlowStatsRequest,
    GROUP_ANY, PortNo, TABLE_ALL, Version,
};

/// The flags that an entry can have.
const FLAGS: FlowModFlags = FlowModFlags::SEND_FLOW_REM
    .union(FlowModFlags::CHECK_OVERLAP)
    .union(FlowModFlags::RESET_COUNTS)
    .union(FlowModFlags::NO_PKT_COUNTS)
    .union(FlowModFlags::NO_BYT_COUNTS);

/// How many entries one call of [`Pipeline::expire`] looks at: some hundred microseconds' work.
const EXPIRY_STEP: usize = 1024;

impl Pipeline {
    /// Carries out a flow mod, or nothing of it.
    ///
    /// Entries that it deletes and whose flags ask for a notification are appended to `removed`. An entry that an add
    /// replaces is not among them; its counters go on in the new one unless OFPFF_RESET_COUNTS is set (1.3.5 section
    /// 6.4). The buffer is the caller's affair.
    ///
    /// # Errors
    /// The specification's error where a part of it is wrong; then nothing has changed.
    pub fn flow_mod(
        &mut self,
        flow_mod: &FlowMod,
        now: Duration,
        removed: &mut Vec<RemovedEntry>,
    ) -> Result<(), ErrorCode> {
        self.carry_out(Version::Of13, flow_mod, now, removed)
    }

    /// Carries out a flow mod as 1.0 means it (1.0 sections 4.6 and 5.3.3), in four points unlike
    /// [`Pipeline::flow_mod`]: all commands but an add concern all tables; a modify that finds no entry adds one, and
    /// changes cookies; an add that replaces an entry clears its counters; and actions need not fit the match, but do
    /// nothing to packets without the field.
    ///
    /// # Errors
    /// The specification's error where a part of it is wrong; then nothing has changed.
    pub fn flow_mod_of10(
        &mut self,
        flow_mod: &FlowMod,
        now: Duration,
        removed: &mut Vec<RemovedEntry>,
    ) -> Result<(), ErrorCode> {
        self.carry_out(Version::Of10, flow_mod, now, removed)
    }

    fn carry_out(
        &mut self,
        version: Version,
        flow_mod: &FlowMod,
        now: Duration,
        removed: &mut Vec<RemovedEntry>,
    ) -> Result<(), ErrorCode> {
        use FlowModCommand::*;
        if self.is_locked {
            return Err(ErrorCode::FlowModFailedEperm);
        }
        check_flags(version, flow_mod.flags)?;
        let tables = self.tables_of(version, flow_mod)?;
        let selection = Selection::of_flow_mod(flow_mod)?;
        let changed = tables.clone();
        match flow_mod.command {
            Add => self.add(version, flow_mod, selection.match_, now)?,
            Modify | ModifyStrict => self.modify(version, flow_mod, tables, &selection, now)?,
            Delete | DeleteStrict => self.delete(tables, &selection, removed),
            Other(_) => return Err(ErrorCode::FlowModFailedBadCommand),
        }
        let changed_expiry = earliest_expiry(&self.tables[changed.clone()]);
        self.next_expiry = self.next_expiry.into_iter().chain(changed_expiry).min();
        self.follow_changes(changed, removed);
        Ok(())
    }

    /// The tables that a flow mod is for.
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
            counters,
            linked: LinkedCounters::default(),
        };
        table.insert(entry, counts);
        Ok(())
    }

    /// Gives the selected entries new instructions. All else about them stays (1.3.5 section 6.4).
    fn modify(
        &mut self,
        version: Version,
        flow_mod: &FlowMod,
        tables: Range<usize>,
        selection: &Selection,
        now: Duration,
    ) -> Result<(), ErrorCode> {
        let mut concerned = self.tables[tables.clone()].iter();
        if version == Version::Of10 && concerned.all(|table| selection.select(table).is_empty()) {
            return self.add(version, flow_mod, selection.match_.clone(), now);
        }
        let (table_id, match_) = (flow_mod.table_id, &selection.match_);
        let instructions =
            self.check_instructions(version, table_id, match_, &flow_mod.instructions)?;
        let counts = match flow_mod.flags.contains(FlowModFlags::RESET_COUNTS) {
            true => Counts::Reset,
            false => Counts::Kept,
        };
        for table in &mut self.tables[tables] {
            table.replace(selection.scope(), counts, |entry| {
                let is_changed = selection.selects(entry);
                is_changed.then(|| modified(version, entry, flow_mod, &instructions))
            });
        }
        Ok(())
    }

    /// Removes the entries whose places in each table `places` tells; those whose flags ask for a notification are appended
    /// to `removed`.
    pub(crate) fn remove_entries(
        &mut self,
        reason: FlowRemovedReason,
        removed: &mut Vec<RemovedEntry>,
        places: impl Fn(&FlowTable) -> BTreeSet<Rank>,
    ) {
        for table in &mut self.tables {
            let gone = table.remove_at(places(table).into_iter());
            announce(with_reason(gone, reason), removed);
        }
        self.follow_changes(0..self.tables.len(), removed);
    }

    fn delete(
        &mut self,
        tables: Range<usize>,
        selection: &Selection,
        removed: &mut Vec<RemovedEntry>,
    ) {
        for table in &mut self.tables[tables] {
            let gone = table.remove(selection.scope(), |entry| selection.selects(entry));
            announce(with_reason(gone, FlowRemovedReason::Delete), removed);
        }
    }

    /// Removes entries whose time has come; those whose flags ask for a notification are appended to `removed`. Tables
    /// that have not changed for some time are compiled anew, where they changed much before.
    ///
    /// It looks at 1,024 entries at most. Where more are due, [`Pipeline::next_expiry`] is not later than `now`: the
    /// caller lets packets through, and calls again.
    pub fn expire(&mut self, now: Duration, removed: &mut Vec<RemovedEntry>) {
        self.settle_compiled(now);
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

    /// Before this no entry expires, as far as is known without a look at entries; `None` where none ever does.
    pub fn next_expiry(&self) -> Option<Duration> {
        self.next_expiry
    }

    /// The entries that a request asks for, all at once: the reference model of [`Pipeline::walk_flows`].
    ///
    /// # Errors
    /// The specification's error where its match or table is wrong.
    pub fn flow_stats(&self, request: &FlowStatsRequest) -> Result<Vec<Arc<FlowEntry>>, ErrorCode> {
        let selection = Selection::of_request(request)?;
        let tables = self.tables_asked(request.table_id)?;
        let tables = self.tables[tables].iter();
        let selected = tables.flat_map(|table| selection.select(table));
        Ok(selected.collect())
    }

    /// The tables that a request is about.
    pub(crate) fn tables_asked(&self, table_id: u8) -> Result<Range<usize>, ErrorCode> {
        match table_id {
            TABLE_ALL => Ok(0..self.tables.len()),
            id if id < self.config().n_tables => Ok(usize::from(id)..usize::from(id) + 1),
            _ => Err(ErrorCode::BadRequestBadTableId),
        }
    }
}

/// Before which time no entry of some tables expires; `None` where none ever does.
fn earliest_expiry(tables: &[FlowTable]) -> Option<Duration> {
    tables.iter().filter_map(FlowTable::next_expiry).min()
}

/// Entries that are gone for one reason.
fn with_reason(
    gone: Vec<Arc<FlowEntry>>,
    reason: FlowRemovedReason,
) -> impl Iterator<Item = RemovedEntry> {
    let gone = gone.into_iter();
    gone.map(move |entry| RemovedEntry { entry, reason })
}

/// Appends the entries whose flags ask for a notification.
fn announce(gone: impl IntoIterator<Item = RemovedEntry>, removed: &mut Vec<RemovedEntry>) {
    let asks = |gone: &RemovedEntry| gone.entry.flags.contains(FlowModFlags::SEND_FLOW_REM);
    removed.extend(gone.into_iter().filter(asks));
}

/// An entry after a modify.
fn modified(
    version: Version,
    entry: &FlowEntry,
    flow_mod: &FlowMod,
    instructions: &Instructions,
) -> FlowEntry {
    let counters = match flow_mod.flags.contains(FlowModFlags::RESET_COUNTS) {
        true => entry.counters.cleared(),
        false => entry.counters.copy(),
    };
    let cookie = match version {
        Version::Of10 => flow_mod.cookie,
        Version::Of13 => entry.cookie,
    };
    FlowEntry {
        match_: entry.match_.clone(),
        instructions: instructions.clone(),
        cookie,
        counters,
        linked: LinkedCounters::default(),
        ..*entry
    }
}

/// Each version has a code of its own for flags that it does not know.
fn check_flags(version: Version, flags: FlowModFlags) -> Result<(), ErrorCode> {
    if FLAGS.contains(flags) {
        return Ok(());
    }
    match version {
        Version::Of10 => Err(ErrorCode::FlowModFailedUnsupported),
        Version::Of13 => Err(ErrorCode::FlowModFailedBadFlags),
    }
}

/// Which entries a modify, a delete or a request is for (1.3.5 section 6.4).
#[derive(Debug)]
pub(crate) struct Selection {
    pub match_: EntryMatch,
    /// Only entries of this priority and with this very match: what strict commands ask.
    priority: Option<u16>,
    cookie: u64,
    cookie_mask: u64,
    out_port: PortNo,
    out_group: u32,
}

impl Selection {
    /// Only a delete looks at the ways out.
    fn of_flow_mod(flow_mod: &FlowMod) -> Result<Self, ErrorCode> {
        use FlowModCommand::*;
        let is_strict = matches!(flow_mod.command, ModifyStrict | DeleteStrict);
        let (out_port, out_group) = match flow_mod.command {
            Delete | DeleteStrict => (flow_mod.out_port, flow_mod.out_group),
            _ => (PortNo::ANY, GROUP_ANY),
        };
        Ok(Self {
            match_: EntryMatch::new(&flow_mod.match_)?,
            priority: is_strict.then_some(flow_mod.priority),
            cookie: flow_mod.cookie,
            cookie_mask: flow_mod.cookie_mask,
            out_port,
            out_group,
        })
    }

    pub fn of_request(request: &FlowStatsRequest) -> Result<Self, ErrorCode> {
        Ok(Self {
            match_: EntryMatch::new(&request.match_)?,
            priority: None,
            cookie: request.cookie,
            cookie_mask: request.cookie_mask,
            out_port: request.out_port,
            out_group: request.out_group,
        })
    }

    /// The entries of a table that it is for.
    fn select(&self, table: &FlowTable) -> Vec<Arc<FlowEntry>> {
        table.select(self.scope(), |entry| self.selects(entry))
    }

    /// Where a table has to look for them.
    fn scope(&self) -> Scope<'_> {
        match self.priority {
            Some(priority) => Scope::Strict(priority, &self.match_),
            None => Scope::Within(&self.match_),
        }
    }

    /// Whether it is for an entry of its scope.
    pub fn selects(&self, entry: &FlowEntry) -> bool {
        let instructions = &entry.instructions;
        (entry.cookie ^ self.cookie) & self.cookie_mask == 0
            && (self.out_port == PortNo::ANY || instructions.output_to(self.out_port))
            && (self.out_group == GROUP_ANY || instructions.use_group(self.out_group))
    }
}
