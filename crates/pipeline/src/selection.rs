//! Which entries a controller means (1.3.5 sections 6.4, 7.3.5.2).

use crate::classifier::Rank;
use crate::flow_table::Scope;
use crate::{EntryMatch, FlowEntry, FlowTable};
use std::sync::Arc;
use urtica_wire::{ErrorCode, FlowMod, FlowModCommand, FlowStatsRequest, GROUP_ANY, PortNo};

/// Which entries a modify, a delete or a request is for (1.3.5 section 6.4).
#[derive(Debug)]
pub(crate) struct Selection {
    pub match_: EntryMatch,
    /// Only entries with exactly this priority and match, as for strict commands.
    priority: Option<u16>,
    cookie: u64,
    cookie_mask: u64,
    out_port: PortNo,
    out_group: u32,
}

impl Selection {
    /// Only a delete checks the outputs.
    pub fn of_flow_mod(flow_mod: &FlowMod) -> Result<Self, ErrorCode> {
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
    pub fn select(&self, table: &FlowTable) -> impl Iterator<Item = Arc<FlowEntry>> {
        let selected = table.select_ranked(self.scope(), |entry| self.selects(entry));
        selected.into_iter().map(|(_, entry)| entry)
    }

    /// Returns the selected entries with their ranks, unless more than `max` entries must be inspected.
    pub fn select_few(&self, table: &FlowTable, max: usize) -> Option<Vec<(Rank, Arc<FlowEntry>)>> {
        let mut few = match self.priority {
            Some(_) => table.select_ranked(self.scope(), |_| true),
            None => table.select_few(&self.match_, max)?,
        };
        few.retain(|(_, entry)| self.selects(entry));
        Some(few)
    }

    /// Whether there is an entry in its scope.
    pub fn finds_any(&self, table: &FlowTable) -> bool {
        match self.priority {
            Some(priority) => table.find_strict(priority, &self.match_).is_some(),
            None => table.has_within(&self.match_),
        }
    }

    /// Whether it is for an entry.
    pub fn is_for(&self, entry: &FlowEntry) -> bool {
        let is_in_scope = match self.priority {
            Some(priority) => entry.priority == priority && entry.match_ == self.match_,
            None => self.match_.includes(&entry.match_),
        };
        is_in_scope && self.selects(entry)
    }

    /// Returns the part of a table to search.
    fn scope(&self) -> Scope<'_> {
        match self.priority {
            Some(priority) => Scope::Strict(priority, &self.match_),
            None => Scope::Within(&self.match_),
        }
    }

    /// Whether it is for an entry of its scope.
    fn selects(&self, entry: &FlowEntry) -> bool {
        let instructions = &entry.instructions;
        (entry.cookie ^ self.cookie) & self.cookie_mask == 0
            && (self.out_port == PortNo::ANY || instructions.output_to(self.out_port))
            && (self.out_group == GROUP_ANY || instructions.use_group(self.out_group))
    }
}
