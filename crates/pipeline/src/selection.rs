//! The entries that a request or flow mod selects (1.3.5 sections 6.4, 7.3.5.2).

use crate::{EntryMatch, FlowEntry};
use urtica_wire::{ErrorCode, FlowMod, FlowModCommand, FlowStatsRequest, GROUP_ANY, PortNo};

/// The condition by which a modify, a delete or a request selects entries (1.3.5 section 6.4).
#[derive(Debug)]
pub(crate) struct Selection {
    pub match_: EntryMatch,
    /// Selects only entries with exactly this priority and match, as strict commands do.
    priority: Option<u16>,
    cookie: u64,
    cookie_mask: u64,
    out_port: PortNo,
    out_group: u32,
}

impl Selection {
    /// Only a delete filters by output.
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

    /// Returns `true` if it selects an entry.
    pub fn is_for(&self, entry: &FlowEntry) -> bool {
        let is_in_scope = match self.priority {
            Some(priority) => entry.priority == priority && entry.match_ == self.match_,
            None => self.match_.includes(&entry.match_),
        };
        is_in_scope && self.selects(entry)
    }

    /// Returns the part of a table that contains all selected entries.
    pub fn scope(&self) -> Scope<'_> {
        match self.priority {
            Some(priority) => Scope::Strict(priority, &self.match_),
            None => Scope::Within(&self.match_),
        }
    }

    /// Returns `true` if it selects an entry that is within its scope.
    pub fn selects(&self, entry: &FlowEntry) -> bool {
        let instructions = &entry.instructions;
        (entry.cookie ^ self.cookie) & self.cookie_mask == 0
            && (self.out_port == PortNo::ANY || instructions.output_to(self.out_port))
            && (self.out_group == GROUP_ANY || instructions.use_group(self.out_group))
    }
}

/// The entries of a table that a change or a request may select.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scope<'a> {
    /// The entries whose match this one includes ([`EntryMatch::includes`]).
    Within(&'a EntryMatch),
    /// The entry with this priority and exactly this match.
    Strict(u16, &'a EntryMatch),
}
