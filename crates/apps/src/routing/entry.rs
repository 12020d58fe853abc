//! A flow's entries: their form in messages to switches, and in reports of switches.

use super::late::Late;
use super::{COOKIE, ENTRY, FIRST, Flow};
use std::collections::BTreeMap;
use urtica_controller::{EntryOptions, Network, OWN_COOKIE_BITS};
use urtica_topology::Path;
use urtica_wire::{
    Action, DatapathId, FlowMod, FlowModCommand, FlowModFlags, FlowStats, FlowStatsRequest,
    Instruction, Message, MultipartFlags, MultipartRequest, MultipartRequestBody, PortNo, Version,
};

/// A switch's entry for a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub out_port: PortNo,
    /// Whether the switch reports the entry's removal: set in the first entry of a path.
    pub tells: bool,
}

/// A flow's entries by switch.
pub(super) type Entries = BTreeMap<DatapathId, Entry>;

/// Returns the entries of a path.
pub(super) fn of_path(path: &Path) -> Entries {
    let entry = |(index, hop): (usize, &urtica_topology::Hop)| {
        let entry = Entry {
            out_port: hop.out_port,
            tells: index == 0,
        };
        (hop.switch, entry)
    };
    path.hops.iter().enumerate().map(entry).collect()
}

impl Entry {
    /// Reads a reported entry; `None` if it differs from this program's: they are in this table, have our priority and
    /// time-out, and only output.
    pub fn told(stats: &FlowStats, table_id: u8) -> Option<Self> {
        let is_ours = stats.table_id == table_id
            && stats.priority == ENTRY.priority
            && (stats.idle_timeout, stats.hard_timeout) == (ENTRY.idle_timeout, 0);
        let mut instructions = stats.instructions.iter();
        let (Some(Instruction::ApplyActions(actions)), None) =
            (instructions.next(), instructions.next())
        else {
            return None;
        };
        let mut actions = actions.iter();
        match (actions.next(), actions.next()) {
            (Some(Action::Output { port, .. }), None) if is_ours => Some(Self {
                out_port: port,
                tells: stats.cookie & FIRST != 0,
            }),
            _ => None,
        }
    }

    /// Sends the entry to a switch, where it replaces the existing one.
    pub fn add(self, network: &Network, late: &Late, flow: &Flow, at: DatapathId) {
        let first = EntryOptions {
            cookie: COOKIE | FIRST,
            flags: FlowModFlags::SEND_FLOW_REM,
            ..ENTRY
        };
        let options = if self.tells { first } else { ENTRY };
        let actions = [Action::output(self.out_port)];
        late.note(at, network.install(at, flow.match_(), &actions, options));
    }
}

/// Replaces a flow's entries by the entries of a path: first sends the new and different entries, starting at the egress
/// switch, then deletes the others. Entries that stay are not sent.
pub(super) fn replace(
    network: &Network,
    late: &Late,
    flow: &Flow,
    old: &Entries,
    path: Option<&Path>,
) {
    let new = path.map(of_path).unwrap_or_default();
    let hops = path.map_or(&[][..], |path| &path.hops);
    for hop in hops.iter().rev() {
        let entry = new.get(&hop.switch);
        if let Some(entry) = entry.filter(|entry| old.get(&hop.switch) != Some(entry)) {
            entry.add(network, late, flow, hop.switch);
        }
    }
    for at in old.keys().filter(|at| !new.contains_key(at)) {
        delete(network, late, flow, *at, ENTRY.priority);
    }
}

/// Deletes one entry of a flow.
pub(super) fn delete(network: &Network, late: &Late, flow: &Flow, at: DatapathId, priority: u16) {
    let delete = Message::FlowMod(FlowMod {
        command: FlowModCommand::DeleteStrict,
        match_: flow.match_(),
        priority,
        ..ENTRY.flow_mod()
    });
    late.note(at, network.send(at, &delete));
}

/// Returns the request for this program's entries, or for all entries of a 1.0 switch, which cannot select by cookie.
pub(super) fn request(version: Version) -> Message<'static> {
    let request = match version {
        Version::Of10 => FlowStatsRequest::default(),
        Version::Of13 => FlowStatsRequest {
            cookie: COOKIE,
            cookie_mask: OWN_COOKIE_BITS & !FIRST,
            ..FlowStatsRequest::default()
        },
    };
    Message::MultipartRequest(MultipartRequest {
        flags: MultipartFlags::empty(),
        body: MultipartRequestBody::Flow(request),
    })
}
