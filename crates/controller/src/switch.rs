//! What a handler can do to its switch.

use crate::connection::FLUSH_BYTES;
use crate::xid::{Origin, Xids};
use crate::{Network, SwitchCounters};
use std::time::Instant;
use urtica_wire::{
    Action, BufferId, Capabilities, DatapathId, EncodeError, EntryOptions, ExactFlowMod, Features,
    FlowMod, FlowModCommand, Instruction, List, Match, Message, OutputPacket, PacketIn, Port,
    PortNo, PortReason, PortStatus, Version,
};

/// What is known of a switch.
#[derive(Clone, Debug)]
pub struct SwitchInfo {
    /// Its identity.
    pub datapath_id: DatapathId,
    /// The version that it and we speak.
    pub version: Version,
    /// Where its connection comes from, as people read it.
    pub peer: String,
    /// How many packets it can keep for us.
    pub n_buffers: u32,
    /// How many tables it has.
    pub n_tables: u8,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Its ports, by number. Empty until a 1.3 switch has described them.
    pub ports: Vec<Port>,
}

impl SwitchInfo {
    pub(crate) fn new(version: Version, peer: String, features: &Features) -> Self {
        let mut info = Self {
            datapath_id: features.datapath_id,
            version,
            peer,
            n_buffers: features.n_buffers,
            n_tables: features.n_tables,
            capabilities: features.capabilities,
            ports: features.ports.iter().collect(),
        };
        info.ports.sort_by_key(|port| port.port_no);
        info
    }

    /// The port with this number.
    pub fn port(&self, port_no: PortNo) -> Option<&Port> {
        let index = self
            .ports
            .binary_search_by_key(&port_no, |port| port.port_no)
            .ok()?;
        Some(&self.ports[index])
    }

    /// Takes in what a port-status message or a port description says.
    pub(crate) fn update_port(&mut self, status: &PortStatus) {
        let found = self
            .ports
            .binary_search_by_key(&status.port.port_no, |port| port.port_no);
        match (found, status.reason) {
            (Ok(index), PortReason::Delete) => drop(self.ports.remove(index)),
            (Ok(index), _) => self.ports[index] = status.port,
            (Err(_), PortReason::Delete) => {}
            (Err(index), _) => self.ports.insert(index, status.port),
        }
    }
}

/// Goes when no packet came for five seconds.
pub const IDLE_5S: EntryOptions = EntryOptions::idle(5);

/// A handler's switch, for the time of one message.
///
/// What is sent here is appended to the shard's output buffer and leaves in one write when the whole batch of
/// messages has been handled (McNettle section 5.2).
pub struct Switch<'a> {
    pub(crate) info: &'a SwitchInfo,
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) xids: &'a mut Xids,
    pub(crate) counters: &'a SwitchCounters,
    pub(crate) network: &'a Network,
    pub(crate) now: Instant,
    pub(crate) now_s: u32,
    /// Whose handler is at work.
    pub(crate) origin: Origin,
    /// Whether programs after this one are to see the message.
    pub(crate) consumed: bool,
    /// Messages written and not yet counted.
    pub(crate) sent: u64,
}

impl Drop for Switch<'_> {
    fn drop(&mut self) {
        self.counters.sent.add(self.sent);
    }
}

impl Switch<'_> {
    /// The handler of the program with this index takes its turn at a message.
    #[inline]
    pub(crate) fn begin(&mut self, program: usize) {
        self.origin = Origin::program(program);
        self.consumed = false;
    }

    /// Whether more replies may gather before they are sent.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.out.len() < FLUSH_BYTES
    }

    /// What is known of the switch.
    #[inline]
    pub fn info(&self) -> &SwitchInfo {
        self.info
    }

    /// Its identity.
    #[inline]
    pub fn datapath_id(&self) -> DatapathId {
        self.info.datapath_id
    }

    /// The time: read once per batch of messages, simulated where the network is.
    #[inline]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Whole seconds since the shard started: for tables whose entries age.
    #[inline]
    pub fn now_s(&self) -> u32 {
        self.now_s
    }

    /// The way to the other switches.
    pub fn network(&self) -> &Network {
        self.network
    }

    /// Keeps this message from the programs after this one.
    pub fn consume(&mut self) {
        self.consumed = true;
    }

    /// Sends a packet out of a port, or to [`PortNo::FLOOD`] (McNettle Figure 4, `forward`).
    ///
    /// A packet that the switch neither kept nor sent whole cannot be sent on; it is counted as lost
    /// ([`SwitchCounters::truncated`]).
    #[inline(always)]
    pub fn forward(&mut self, packet: &PacketIn, port: PortNo) {
        let whole = packet.data.len() >= usize::from(packet.total_len);
        self.output(packet.buffer_id, packet.in_port, packet.data, whole, port);
    }

    /// Takes what it needs of a packet apart, so that a handler's packet never has to lie in memory.
    fn output(
        &mut self,
        buffer_id: BufferId,
        in_port: PortNo,
        data: &[u8],
        whole: bool,
        port: PortNo,
    ) {
        if !buffer_id.is_some() && !whole {
            return self.counters.truncated.add(1);
        }
        let data = if buffer_id.is_some() { &[] } else { data };
        let xid = self.next_xid();
        let output = OutputPacket {
            buffer_id,
            in_port,
            port,
            data,
        };
        let written = output.write(self.info.version, xid, self.out);
        self.count(written);
    }

    /// Adds an entry that sends packets like this one out of a port, and sends this one there too (McNettle
    /// Figure 4, `forwardWithRule`).
    #[inline(always)]
    pub fn forward_with_rule(
        &mut self,
        packet: &PacketIn,
        match_: Match,
        port: PortNo,
        options: EntryOptions,
    ) {
        let xid = self.next_xid();
        let written = match match_.into_exact() {
            Ok(exact) => ExactFlowMod {
                match_: exact,
                port,
                buffer_id: packet.buffer_id,
                options,
            }
            .write(self.info.version, xid, self.out),
            Err(match_) => self.write_rule(xid, match_, port, packet.buffer_id, options),
        };
        self.count(written);
        if !packet.buffer_id.is_some() {
            self.forward(packet, port);
        }
    }

    #[cold]
    fn write_rule(
        &mut self,
        xid: u32,
        match_: Match,
        port: PortNo,
        buffer_id: BufferId,
        options: EntryOptions,
    ) -> Result<(), EncodeError> {
        let actions = [Action::output(port)];
        let instructions = [Instruction::apply(&actions)];
        let flow_mod = FlowMod {
            buffer_id,
            match_,
            instructions: List::from(&instructions),
            ..options.flow_mod()
        };
        Message::FlowMod(flow_mod).encode(self.info.version, xid, self.out)
    }

    /// Adds an entry that carries out `actions` on the packets that it matches; none drops them. Returns the xid.
    ///
    /// # Errors
    /// [`EncodeError`] where the switch's version cannot express a part of it; nothing is sent then.
    pub fn install(
        &mut self,
        match_: Match,
        actions: &[Action],
        options: EntryOptions,
    ) -> Result<u32, EncodeError> {
        let apply = [Instruction::apply(actions)];
        let instructions = if actions.is_empty() {
            List::default()
        } else {
            List::from(&apply)
        };
        self.send(&Message::FlowMod(FlowMod {
            match_,
            instructions,
            ..options.flow_mod()
        }))
    }

    /// Deletes all entries that `match_` includes, in all tables. Returns the xid.
    ///
    /// # Errors
    /// [`EncodeError`] where the switch's version cannot express the match; nothing is sent then.
    pub fn delete(&mut self, match_: Match) -> Result<u32, EncodeError> {
        self.send(&Message::FlowMod(FlowMod {
            table_id: urtica_wire::TABLE_ALL,
            command: FlowModCommand::Delete,
            match_,
            ..FlowMod::default()
        }))
    }

    /// Sends any message. Returns its xid, which a reply or error will have.
    ///
    /// # Errors
    /// [`EncodeError`] where the switch's version cannot express it; nothing is sent then.
    pub fn send(&mut self, message: &Message) -> Result<u32, EncodeError> {
        let xid = self.next_xid();
        message.encode(self.info.version, xid, self.out)?;
        self.sent += 1;
        Ok(xid)
    }

    #[inline]
    fn next_xid(&mut self) -> u32 {
        self.xids.next(self.origin)
    }

    #[inline]
    fn count(&mut self, written: Result<(), EncodeError>) {
        match written {
            Ok(()) => self.sent += 1,
            Err(error) => self.refused(&error),
        }
    }

    #[cold]
    fn refused(&self, error: &EncodeError) {
        self.counters.unsendable.add(1);
        tracing::debug!(dp_id = %self.info.datapath_id, %error, "a handler's message could not be written");
    }
}
