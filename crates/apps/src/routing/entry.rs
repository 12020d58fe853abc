//! A flow's entries, as they are sent, and as a switch reports them.

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
    /// Whether the switch reports the removal of the entry, as the first of a path does.
    pub tells: bool,
}

/// All switches' entries for a flow.
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
    /// The entry that a switch reports, if it is like one of this program's: in this table, with our priority and time-out,
    /// and with nothing but an output.
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

    /// Adds the entry, or changes the existing one.
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

/// Replaces the entries of a flow by those of a path: first those that are new or different, from the egress switch on, and
/// then the deletion of those without a successor. Entries that are already right are not sent.
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

/// Requests this program's entries; from a 1.0 switch, which cannot select them, all.
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
