//! What a handler can do to its switch.

use crate::actions::{self, Actions};
use crate::entries;
use crate::flooding;
use crate::permanent::Full;
use crate::role::is_write;
use crate::xid::{Origin, Xids};
use crate::{Network, OWN_COOKIE_BITS, PacketInTimes, ProgramId, SwitchCounters, SwitchInfo};
use std::sync::Arc;
use std::time::Instant;
use urtica_wire::{
    Action, BufferId, DatapathId, EncodeError, EntryOptions, ExactFlowMod, FlowMod, List, Match,
    Message, OutputPacket, PacketIn, PacketOut, PortNo, Version, split_frame,
};

/// Replies leave when this many bytes have gathered, or when the batch has been handled: about as many as one full read
/// brings, so that a batch costs one system call each way, and still within the core's second cache.
pub(crate) const FLUSH_BYTES: usize = 256 << 10;

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
    /// What the cookies of its entries say of it, as on the wire: it is written for each packet-in.
    pub(crate) cookie_be: u64,
    /// The table that its program has to itself, where it has one.
    pub(crate) own_table: Option<u8>,
    /// All programs, in the order of their handlers.
    pub(crate) programs: &'a [Identity],
    /// Whether programs after this one are to see the message.
    pub(crate) consumed: bool,
    /// Messages written and not yet counted.
    pub(crate) sent: u64,
}

/// What a program's messages and entries are its by.
#[derive(Clone)]
pub(crate) struct Identity {
    /// How long packet-ins take in it.
    pub times: Arc<PacketInTimes>,
    pub origin: Origin,
    /// What its handlers send by to other switches.
    pub network: Network,
    /// The table that it has to itself, where it has one.
    pub own_table: Option<u8>,
}

/// What is needed of a packet-in to send its packet on, so that a handler's packet-in never has to lie in memory.
struct Packet<'a> {
    buffer_id: BufferId,
    in_port: PortNo,
    data: &'a [u8],
    /// Whether `data` is all of the packet.
    is_whole: bool,
}

impl<'a> Packet<'a> {
    #[inline(always)]
    fn of(packet: &PacketIn<'a>) -> Self {
        Self {
            buffer_id: packet.buffer_id,
            in_port: packet.in_port,
            data: packet.data,
            is_whole: packet.data.len() >= usize::from(packet.total_len),
        }
    }

    /// What a packet-out carries of it: nothing where the switch keeps it; `None` where nobody has all of it.
    #[inline(always)]
    fn data_to_send(&self) -> Option<&'a [u8]> {
        if self.buffer_id.is_some() {
            return Some(&[]);
        }
        self.is_whole.then_some(self.data)
    }
}

impl Drop for Switch<'_> {
    fn drop(&mut self) {
        self.counters.sent.add(self.sent);
    }
}

impl Switch<'_> {
    /// The handler of the program at this position takes its turn at a message.
    #[inline]
    pub(crate) fn begin(&mut self, program: usize) {
        let program = &self.programs[program];
        self.origin = program.origin;
        self.cookie_be = self.origin.cookie().to_be();
        self.own_table = program.own_table;
        self.network = &program.network;
        self.consumed = false;
    }

    /// Takes back what would change the switch among the messages from `start` on, where our role lets us only look. Packet-ins are
    /// answered without a look at the role: this is done for those that come all the same.
    #[cold]
    pub(crate) fn withhold_writes(&mut self, start: usize) {
        let written = self.out.split_off(start);
        let mut rest = &written[..];
        while let Ok(Some((frame, after))) = split_frame(rest) {
            rest = after;
            match Message::decode(frame) {
                Ok((_, message)) if !is_write(&message) => self.out.extend_from_slice(frame),
                _ => {
                    self.sent -= 1;
                    self.counters.withheld.add(1);
                }
            }
        }
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

    /// The table that this program's entries go to: 0, but 1 for those after a filter: see [`Stage`](crate::Stage).
    #[inline]
    pub fn table(&self) -> u8 {
        self.own_table.unwrap_or(0)
    }

    /// The program whose handler this is called in: whose entries it installs.
    pub fn program(&self) -> ProgramId {
        ProgramId::of_handler(self.origin)
    }

    /// The way to the other switches. What is installed through it goes to the table of
    /// [`Stage::Forward`](crate::Stage::Forward); a filter's handler asks for its own with [`Network::for_stage`].
    pub fn network(&self) -> &Network {
        self.network
    }

    /// Keeps this message from the programs after this one.
    pub fn consume(&mut self) {
        self.consumed = true;
    }

    /// Sends a packet out of a port, or to [`PortNo::FLOOD`], or through a list of actions (McNettle Figure 4, `forward`).
    ///
    /// Where a service knows the network's loops ([`Network::flood_by`]), a flooded packet goes to the ports that it names, also
    /// where it is sent with [`Switch::send`] or [`Network::send`]. A flow entry that outputs to FLOOD cannot be made safe
    /// like that: where links form loops, install none.
    ///
    /// A packet that the switch neither kept nor sent whole cannot be sent on; it is counted as lost
    /// ([`SwitchCounters::truncated`]).
    #[inline(always)]
    pub fn forward<'b>(&mut self, packet: &PacketIn, actions: impl Into<Actions<'b>>) {
        match actions.into() {
            Actions::Output(port) => self.output(Packet::of(packet), port),
            Actions::List(actions) => self.output_by(Packet::of(packet), actions),
        }
    }

    fn output(&mut self, packet: Packet, port: PortNo) {
        let Packet {
            buffer_id, in_port, ..
        } = packet;
        let Some(data) = packet.data_to_send() else {
            return self.counters.truncated.add(1);
        };
        if port == PortNo::FLOOD {
            if let Some(ports) = self.network.flood_ports(self.info.datapath_id, in_port) {
                return self.flood(&ports, buffer_id, in_port, data);
            }
        }
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

    /// Sends a packet through a list of actions.
    fn output_by(&mut self, packet: Packet, actions: &[Action]) {
        let Some(data) = packet.data_to_send() else {
            return self.counters.truncated.add(1);
        };
        let packet_out = Message::PacketOut(PacketOut {
            buffer_id: packet.buffer_id,
            in_port: packet.in_port,
            actions: List::from(actions),
            data,
        });
        if let Err(error) = self.send(&packet_out) {
            self.refused(&error);
        }
    }

    /// Sends a packet that the controller made, from its Ethernet header on, out of a port or through a list of actions. Returns the
    /// xid.
    ///
    /// # Errors
    /// [`EncodeError`] where the switch's version cannot express an action; nothing is sent then.
    pub fn send_packet<'b>(
        &mut self,
        data: &[u8],
        actions: impl Into<Actions<'b>>,
    ) -> Result<u32, EncodeError> {
        actions::with_packet_out(data, actions.into(), |packet_out| self.send(packet_out))
    }

    /// Sends a packet to these ports. One that goes nowhere is sent all the same if the switch keeps it: that frees
    /// its buffer.
    #[inline(never)] // out of the way of packets that go to one port
    fn flood(&mut self, ports: &[PortNo], buffer_id: BufferId, in_port: PortNo, data: &[u8]) {
        let actions: Vec<_> = ports.iter().copied().map(Action::output).collect();
        if actions.is_empty() && !buffer_id.is_some() {
            return;
        }
        let packet_out = PacketOut {
            buffer_id,
            in_port,
            actions: actions.into(),
            data,
        };
        let xid = self.next_xid();
        let written = Message::PacketOut(packet_out).encode(self.info.version, xid, self.out);
        self.count(written);
    }

    /// Adds an entry for packets like this one, and does with this one what the entry does (McNettle Figure 4,
    /// `forwardWithRule`): sends it out of a port, or through a list of actions. Where the switch's version cannot express the
    /// entry, the packet is sent alone.
    #[inline(always)]
    pub fn forward_with_rule<'b>(
        &mut self,
        packet: &PacketIn,
        match_: Match,
        actions: impl Into<Actions<'b>>,
        options: EntryOptions,
    ) {
        let xid = self.next_xid();
        let actions = actions.into();
        let match_ = match match_.into_exact() {
            // What a controller spends its life on: a packet that the switch keeps, and an entry that is written straight.
            // Nothing is left to be done after that, so that nothing has to be kept for it while it is written.
            Ok(exact) if self.own_table.is_none() && packet.buffer_id.is_some() => {
                if let Actions::Output(port) = actions {
                    let flow_mod = ExactFlowMod {
                        match_: exact,
                        port,
                        buffer_id: packet.buffer_id,
                        options: self.mark(options),
                        table_id: 0,
                    };
                    if flow_mod.write_straight(self.info.version, xid, self.out) {
                        self.sent += 1;
                        return;
                    }
                }
                Match::exact_frame(exact.in_port, exact.frame)
            }
            Ok(exact) => Match::exact_frame(exact.in_port, exact.frame),
            Err(match_) => match_,
        };
        self.forward_with_any_rule(xid, Packet::of(packet), match_, actions, options);
    }

    /// The same for packets that the switch did not keep, for entries that are not written straight, and for programs that
    /// have a table to themselves.
    #[cold] // so that registers are kept for the others
    #[inline(never)]
    fn forward_with_any_rule(
        &mut self,
        xid: u32,
        packet: Packet,
        match_: Match,
        actions: Actions,
        options: EntryOptions,
    ) {
        let options = self.mark(options);
        let buffer_id = match self.own_table {
            None => packet.buffer_id,
            // One that the switch kept would go through all tables again, where no entry of a filter that looked at this
            // packet alone lets it pass: it is sent by itself.
            Some(_) => BufferId::NONE,
        };
        let written = match (match_.into_exact(), actions) {
            (Ok(exact), Actions::Output(port)) => ExactFlowMod {
                match_: exact,
                port,
                buffer_id,
                options,
                table_id: self.table(),
            }
            .write(self.info.version, xid, self.out),
            (Ok(exact), _) => {
                let match_ = Match::from(exact.fields_in(self.info.version));
                self.write_rule(xid, match_, actions, buffer_id, options)
            }
            (Err(match_), _) => self.write_rule(xid, match_, actions, buffer_id, options),
        };
        // Where there is no entry, the buffer is not emptied by it.
        if self.count(written) && buffer_id.is_some() {
            return;
        }
        match actions {
            Actions::Output(port) => self.output(packet, port),
            Actions::List(actions) => self.output_by(packet, actions),
        }
    }

    fn write_rule(
        &mut self,
        xid: u32,
        match_: Match,
        actions: Actions,
        buffer_id: BufferId,
        options: EntryOptions,
    ) -> Result<(), EncodeError> {
        entries::with_addition(match_, actions, options, |entry| {
            let flow_mod = FlowMod {
                table_id: self.table(),
                buffer_id,
                ..entry
            };
            Message::FlowMod(flow_mod).encode(self.info.version, xid, self.out)
        })
    }

    /// Adds an entry that carries out `actions` on the packets that it matches; none drops them. Returns the xid.
    ///
    /// # Errors
    /// [`EncodeError`] where the switch's version cannot express a part of it; nothing is sent then.
    pub fn install<'b>(
        &mut self,
        match_: Match,
        actions: impl Into<Actions<'b>>,
        options: EntryOptions,
    ) -> Result<u32, EncodeError> {
        entries::with_addition(match_, actions.into(), options, |entry| {
            self.send(&Message::FlowMod(entry))
        })
    }

    /// Adds an entry that lets the packets which it matches pass to the forwarding programs' table. Returns the xid. For
    /// programs of [`Stage::Filter`](crate::Stage::Filter).
    ///
    /// # Errors
    /// [`EncodeError`] in 1.0, where packets pass through the controller alone; nothing is sent then.
    pub fn let_pass(&mut self, match_: Match, options: EntryOptions) -> Result<u32, EncodeError> {
        self.send(&entries::pass(match_, options))
    }

    /// Deletes this program's entries that `match_` includes, in all tables; where a program filters, in [`Switch::table`]. Returns
    /// the xid.
    ///
    /// OpenFlow 1.0 cannot name a program's entries: there, all that `match_` includes are deleted, and those that other programs have
    /// installed to stay are added again in the same write, with counters that begin anew. Those with time-outs come again with the packets
    /// that they are for. Of a switch's permanent entries, 4,096 are known so; [`SwitchCounters::unprotected`] counts those beyond.
    ///
    /// # Errors
    /// [`EncodeError`] where the switch's version cannot express the match; nothing is sent then.
    pub fn delete(&mut self, match_: Match) -> Result<u32, EncodeError> {
        self.delete_of(self.program(), match_)
    }

    /// Deletes another program's entries, as [`Switch::delete`] does this one's. [`ProgramId::of_cookie`] tells whose an entry is.
    ///
    /// # Errors
    /// As [`Switch::delete`].
    pub fn delete_of(&mut self, program: ProgramId, match_: Match) -> Result<u32, EncodeError> {
        self.send(&entries::deletion(match_, program))
    }

    /// Sends any message. Returns its xid, which a reply or error will have.
    ///
    /// A flow mod that names table 0 or all tables is about [`Switch::table`] where a program filters. One that modifies or deletes
    /// concerns the entries of all programs, and the framework's, unless its cookie says which.
    ///
    /// # Errors
    /// [`EncodeError`] where the switch's version cannot express it, or our role lets us only look; nothing is sent then.
    pub fn send(&mut self, message: &Message) -> Result<u32, EncodeError> {
        if !self.info.role.may_write() && is_write(message) {
            self.counters.withheld.add(1);
            return Err(EncodeError::Secondary);
        }
        let xid = self.next_xid();
        let spread = flooding::in_place_of(message, |in_port| {
            self.network.flood_ports(self.info.datapath_id, in_port)
        });
        let message = spread.as_ref().unwrap_or(message);
        let start = self.out.len();
        entries::encode(
            message,
            self.program(),
            self.own_table,
            self.info.version,
            xid,
            self.out,
        )?;
        self.sent += 1;
        if let (Version::Of10, Message::FlowMod(flow_mod)) = (self.info.version, message) {
            self.note_permanent(flow_mod, start);
        }
        Ok(xid)
    }

    /// Keeps the other programs' permanent entries in a 1.0 switch, which is sent this flow mod.
    fn note_permanent(&mut self, flow_mod: &FlowMod, start: usize) {
        let Some(permanent) = self.network.permanent_entries(self.info.datapath_id) else {
            return;
        };
        let mut permanent = permanent.lock();
        let end = self.out.len();
        self.sent += permanent.add_again(flow_mod, self.out, start);
        let frame = &self.out[start..end];
        if let Err(Full) = permanent.note(self.program(), flow_mod, frame) {
            self.counters.unprotected.add_shared(1);
        }
    }

    /// Says in an entry's cookie that it is this program's.
    #[inline(always)]
    fn mark(&self, options: EntryOptions) -> EntryOptions {
        EntryOptions {
            cookie: u64::from_be(self.cookie_be) | options.cookie & OWN_COOKIE_BITS,
            ..options
        }
    }

    #[inline]
    fn next_xid(&mut self) -> u32 {
        self.xids.next(self.origin)
    }

    /// Counts a message that was written, or that could not be: returns which.
    #[inline]
    fn count(&mut self, written: Result<(), EncodeError>) -> bool {
        match written {
            Ok(()) => self.sent += 1,
            Err(error) => {
                self.refused(&error);
                return false;
            }
        }
        true
    }

    #[cold]
    fn refused(&self, error: &EncodeError) {
        self.counters.unsendable.add(1);
        urtica_log::debug!(about: self.info.datapath_id, dp_id = %self.info.datapath_id, %error, "a handler's message could not be written");
    }
}
