//! A flow to provision: a path, the packets that follow it, and the properties of its entries.

use super::ProvisionError;
use std::collections::BTreeSet;
use urtica_topology::{Hop, Path, PortId};
use urtica_wire::{
    Action, BufferId, DatapathId, Element, EntryOptions, Field, FlowMod, FlowModCommand,
    FlowModFlags, Instruction, List, Match, Message, OxmField, PacketIn, PacketOut, PortNo,
    Version,
};

/// Packets that will follow a path: [`Provisioner::provision`](super::Provisioner::provision) installs an entry for
/// them in every switch of the path.
///
/// ```
/// use urtica_services::Flow;
/// use urtica_topology::{Hop, Path};
/// use urtica_wire::{DatapathId, EntryOptions, Match, PortNo};
///
/// let path = Path {
///     hops: vec![Hop { switch: DatapathId(1), in_port: PortNo(1), out_port: PortNo(2) }],
/// };
/// let flow = Flow::new(path, Match::any().eth_dst("02:00:00:00:00:02".parse()?))
///     .options(EntryOptions::idle(30).priority(100));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Flow {
    pub(super) path: Path,
    match_: Match<'static>,
    options: EntryOptions,
    table_id: u8,
    matches_in_port: bool,
    at_each_switch: Vec<Action<'static>>,
    at_egress: Vec<Action<'static>>,
    waiting: Option<WaitingPacket>,
}

/// A packet to send along the path once it is installed.
#[derive(Clone, Debug)]
struct WaitingPacket {
    buffer_id: BufferId,
    in_port: PortNo,
    data: Vec<u8>,
}

impl Flow {
    /// Creates a flow of packets that match `match_` and follow `path`. Its entries are in table 0, have the middle priority,
    /// and stay until they are removed.
    pub fn new(path: Path, match_: Match<'static>) -> Self {
        Self {
            path,
            match_,
            options: EntryOptions::PERMANENT,
            table_id: 0,
            matches_in_port: false,
            at_each_switch: Vec::new(),
            at_egress: Vec::new(),
            waiting: None,
        }
    }

    /// Sets the entries' priority, time-outs and flags. The cookie given here is replaced by the provisioner's.
    ///
    /// With a time-out, the whole path is removed when its first entry expires.
    pub fn options(self, options: EntryOptions) -> Self {
        Self { options, ..self }
    }

    /// Sets the table for the entries. 1.0 has only table 0.
    pub fn table(self, table_id: u8) -> Self {
        Self { table_id, ..self }
    }

    /// Makes each entry also match the ingress port of its switch.
    pub fn matching_in_ports(self) -> Self {
        Self {
            matches_in_port: true,
            ..self
        }
    }

    /// Sets the actions of each switch before it forwards a packet. If they change a field of the match, the entry of the next
    /// switch does not match the packet.
    pub fn at_each_switch(self, actions: Vec<Action<'static>>) -> Self {
        Self {
            at_each_switch: actions,
            ..self
        }
    }

    /// Sets additional actions for the last switch before it sends a packet out, for instance to rewrite headers.
    pub fn at_egress(self, actions: Vec<Action<'static>>) -> Self {
        Self {
            at_egress: actions,
            ..self
        }
    }

    /// Sends this packet, which waits at the ingress switch, once the path is installed. If provisioning fails, the packet is
    /// not sent.
    ///
    /// A packet that the switch neither buffered nor sent whole cannot be forwarded, and is dropped.
    pub fn releasing(self, packet: &PacketIn) -> Self {
        let is_whole = packet.data.len() >= usize::from(packet.total_len);
        let is_kept = packet.buffer_id.is_some();
        let waiting = WaitingPacket {
            buffer_id: packet.buffer_id,
            in_port: packet.in_port,
            data: if is_kept {
                Vec::new()
            } else {
                packet.data.to_vec()
            },
        };
        Self {
            waiting: (is_kept || is_whole).then_some(waiting),
            ..self
        }
    }

    /// Checks everything that can be checked without the network.
    pub(super) fn check(&self) -> Result<(), ProvisionError> {
        if self.path.hops.is_empty() {
            return Err(ProvisionError::EmptyPath);
        }
        let mut seen = BTreeSet::new();
        match self.path.hops.iter().find(|hop| !seen.insert(hop.switch)) {
            Some(hop) => Err(ProvisionError::Circle { switch: hop.switch }),
            None => Ok(()),
        }
    }

    /// Returns the ports of the path.
    pub(super) fn ports(&self) -> impl Iterator<Item = PortId> + '_ {
        let hops = self.path.hops.iter();
        hops.flat_map(|hop| [hop.comes_in(), hop.goes_out()])
    }

    /// Returns the entries, from the ingress to the egress switch.
    pub(super) fn entries(&self, cookie: u64) -> Vec<PathEntry> {
        let last = self.path.hops.len().saturating_sub(1);
        let hops = self.path.hops.iter().enumerate();
        hops.map(|(index, hop)| self.entry(hop, index == last, cookie))
            .collect()
    }

    fn entry(&self, hop: &Hop, is_last: bool, cookie: u64) -> PathEntry {
        let mut actions = self.at_each_switch.clone();
        if is_last {
            actions.extend(&self.at_egress);
        }
        actions.push(Action::output(out_port(hop)));
        let match_ = match self.matches_in_port {
            true => self
                .match_
                .clone()
                .with_exact(OxmField::InPort, hop.in_port.0),
            false => self.match_.clone(),
        };
        let mut flow_mod = FlowMod {
            cookie,
            table_id: self.table_id,
            match_,
            instructions: List::from(vec![Instruction::apply(actions)]),
            ..self.options.flow_mod()
        };
        if flow_mod.idle_timeout > 0 || flow_mod.hard_timeout > 0 {
            flow_mod.flags |= FlowModFlags::SEND_FLOW_REM;
        }
        PathEntry {
            switch: hop.switch,
            flow_mod,
        }
    }

    /// Returns the packet-out that sends the waiting packet through the ingress switch's actions.
    pub(super) fn release(&self) -> Option<(DatapathId, Message<'_>)> {
        let (waiting, hop) = (self.waiting.as_ref()?, self.path.hops.first()?);
        let entry = self.entry(hop, self.path.hops.len() == 1, 0);
        let packet_out = PacketOut {
            buffer_id: waiting.buffer_id,
            in_port: waiting.in_port,
            actions: List::from(entry.actions()),
            data: &waiting.data,
        };
        Some((hop.switch, Message::PacketOut(packet_out)))
    }
}

/// Returns the output port. A packet may leave through its ingress port only if that is explicit (1.3.5 section 4.5,
/// `OFPP_IN_PORT`).
fn out_port(hop: &Hop) -> PortNo {
    if hop.out_port == hop.in_port {
        PortNo::IN_PORT
    } else {
        hop.out_port
    }
}

/// One switch's entry of a path.
#[derive(Clone, Debug)]
pub(super) struct PathEntry {
    pub switch: DatapathId,
    flow_mod: FlowMod<'static>,
}

/// The identity of an entry in a switch, which has at most one entry for each table, priority and match.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryKey {
    switch: DatapathId,
    table_id: u8,
    priority: u16,
    /// The match's fields as TLVs, sorted.
    fields: Vec<Vec<u8>>,
}

impl EntryKey {
    pub fn new(switch: DatapathId, table_id: u8, priority: u16, match_: &Match) -> Self {
        let mut fields: Vec<_> = match_.fields().map(|field| to_tlv(&field)).collect();
        fields.sort_unstable();
        Self {
            switch,
            table_id,
            priority,
            fields,
        }
    }

    pub fn switch(&self) -> DatapathId {
        self.switch
    }
}

fn to_tlv(field: &Field) -> Vec<u8> {
    let mut tlv = Vec::new();
    // An entry with a field that cannot be encoded is refused when it is sent; until then, the field's debug text identifies
    // it.
    if field.encode(Version::Of13, &mut tlv).is_err() {
        tlv = format!("{field:?}").into_bytes();
    }
    tlv
}

impl PathEntry {
    pub fn place(&self) -> EntryKey {
        let FlowMod {
            table_id,
            priority,
            match_,
            ..
        } = &self.flow_mod;
        EntryKey::new(self.switch, *table_id, *priority, match_)
    }

    /// Returns whether the entry stays until it is deleted.
    pub fn is_permanent(&self) -> bool {
        self.flow_mod.idle_timeout == 0 && self.flow_mod.hard_timeout == 0
    }

    pub fn add(&self) -> Message<'static> {
        Message::FlowMod(self.flow_mod.clone())
    }

    pub fn delete(&self, version: Version) -> Message<'static> {
        let FlowMod {
            cookie,
            table_id,
            priority,
            ref match_,
            ..
        } = self.flow_mod;
        delete_strict(version, cookie, table_id, priority, match_.clone())
    }

    fn actions(&self) -> Vec<Action<'static>> {
        let applied = self.flow_mod.instructions.iter().next();
        match applied {
            Some(Instruction::ApplyActions(actions)) => actions.iter().collect(),
            _ => Vec::new(),
        }
    }
}

/// Returns the deletion of one entry: in 1.3 only if it has this cookie, in 1.0 regardless of the cookie.
pub(super) fn delete_strict(
    version: Version,
    cookie: u64,
    table_id: u8,
    priority: u16,
    match_: Match<'_>,
) -> Message<'_> {
    Message::FlowMod(FlowMod {
        cookie,
        cookie_mask: if version == Version::Of13 {
            u64::MAX
        } else {
            0
        },
        table_id,
        command: FlowModCommand::DeleteStrict,
        priority,
        match_,
        ..FlowMod::default()
    })
}
