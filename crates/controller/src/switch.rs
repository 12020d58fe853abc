//! A handler's operations on its switch.

use crate::actions::{self, Actions};
use crate::entries;
use crate::flooding;
use crate::permanent::Full;
use crate::role::is_write;
use crate::xid::{Origin, Xids};
use crate::{Network, OWN_COOKIE_BITS, PacketInTimes, ProgramId, SwitchCounters, SwitchInfo};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;
use urtica_wire::{
    Action, BufferId, DatapathId, EncodeError, EntryOptions, ExactFlowMod, ExactMatch, FlowMod,
    List, Match, Message, OutputPacket, PacketIn, PacketOut, PortNo, Version, split_frame,
};

/// The size at which output is flushed before the batch ends. It is about the output of one full read, so that a batch costs
/// one system call in each direction, and fits in the core's second-level cache.
pub(crate) const FLUSH_BYTES: usize = 256 << 10;

/// Options of an entry that expires after five seconds without packets.
pub const IDLE_5S: EntryOptions = EntryOptions::idle(5);

/// A handler's switch, during one message.
///
/// Messages sent here are appended to the shard's output buffer and sent in one write when the whole batch of messages has
/// been handled (McNettle section 5.2).
pub struct Switch<'a> {
    pub(crate) info: &'a SwitchInfo,
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) xids: &'a mut Xids,
    pub(crate) counters: &'a SwitchCounters,
    pub(crate) network: &'a Network,
    pub(crate) now: Instant,
    pub(crate) now_s: u32,
    /// The program of the current handler.
    pub(crate) origin: Origin,
    /// The framework's part of the cookies of its entries, in network order: it is written for each packet-in.
    pub(crate) cookie_be: u64,
    /// The program's own table, if it has one.
    pub(crate) own_table: Option<u8>,
    /// All programs, in the order of their handlers.
    pub(crate) programs: &'a [Identity],
    /// Whether the message is hidden from the programs after this one.
    pub(crate) consumed: bool,
    /// Messages written and not yet counted.
    pub(crate) sent: u64,
}

/// A program's identity in its messages and entries.
#[derive(Clone)]
pub(crate) struct Identity {
    /// The durations of its packet-ins.
    pub times: Arc<PacketInTimes>,
    pub origin: Origin,
    /// The network through which its handlers send to other switches.
    pub network: Network,
    /// Its own table, if it has one.
    pub own_table: Option<u8>,
}

/// The parts of a packet-in that forwarding needs, so that a handler's packet-in need not be stored in memory.
struct Packet<'a> {
    buffer_id: BufferId,
    in_port: PortNo,
    data: &'a [u8],
    /// Whether `data` is the whole packet.
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

    /// Returns the data for a packet-out: no bytes if the switch has buffered the packet; `None` if the whole packet is not
    /// available.
    #[inline(always)]
    fn data_to_send(&self) -> Option<&'a [u8]> {
        if self.buffer_id.is_some() {
            return Some(&[]);
        }
        self.is_whole.then_some(self.data)
    }
}

thread_local! {
    /// The program whose handler has panicked on this thread, until its connection is closed.
    static PANICKED: Cell<Option<Origin>> = const { Cell::new(None) };
}

/// Returns the program whose handler has panicked on this thread since the last call.
pub(crate) fn take_panicked() -> Option<Origin> {
    PANICKED.take()
}

impl Drop for Switch<'_> {
    fn drop(&mut self) {
        self.counters.sent.add(self.sent);
        if std::thread::panicking() {
            PANICKED.set(Some(self.origin));
        }
    }
}

impl Switch<'_> {
    /// Starts the turn of the handler of the program at this position.
    #[inline]
    pub(crate) fn begin(&mut self, program: usize) {
        let program = &self.programs[program];
        self.origin = program.origin;
        self.cookie_be = self.origin.cookie().to_be();
        self.own_table = program.own_table;
        self.network = &program.network;
        self.consumed = false;
    }

    /// Removes messages from `start` on that would change the switch, if our role is secondary. The hot path of packet-ins
    /// does not check the role, so this is done for packet-ins that arrive anyway.
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

    /// Returns `true` if more replies may be buffered before they are sent.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.out.len() < FLUSH_BYTES
    }

    /// Returns the description of the switch.
    #[inline]
    pub fn info(&self) -> &SwitchInfo {
        self.info
    }

    /// Returns the switch's datapath id.
    #[inline]
    pub fn datapath_id(&self) -> DatapathId {
        self.info.datapath_id
    }

    /// Returns the time: read once per batch of messages; simulated in a simulated network.
    #[inline]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns whole seconds since the shard started, for tables whose entries age.
    #[inline]
    pub fn now_s(&self) -> u32 {
        self.now_s
    }

    /// Returns the table of this program's entries: 1 for programs after a filter, otherwise 0. See [`Stage`](crate::Stage).
    #[inline]
    pub fn table(&self) -> u8 {
        self.own_table.unwrap_or(0)
    }

    /// Returns the program whose handler is called, which owns the entries that the handler installs.
    pub fn program(&self) -> ProgramId {
        ProgramId::of_handler(self.origin)
    }

    /// Returns the network, for the other switches. Entries installed through it are in the table of
    /// [`Stage::Forward`](crate::Stage::Forward); a filter's handler selects its own by [`Network::for_stage`].
    pub fn network(&self) -> &Network {
        self.network
    }

    /// Hides this message from the programs after this one.
    pub fn consume(&mut self) {
        self.consumed = true;
    }

    /// Sends a packet out of a port, to [`PortNo::FLOOD`], or through a list of actions (McNettle Figure 4, `forward`).
    ///
    /// If a service knows the network's loops ([`Network::flood_by`]), a flooded packet is sent to the ports that the service
    /// chooses, even if it is sent by [`Switch::send`] or [`Network::send`]. A flow entry that outputs to FLOOD cannot be
    /// made safe like this: do not install one if links form loops.
    ///
    /// A packet that the switch neither buffered nor sent completely cannot be forwarded; it is counted as lost
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

    /// Sends a packet that the controller made, from its Ethernet header on, out of a port or through a list of actions.
    /// Returns the xid.
    ///
    /// # Errors
    /// [`EncodeError`] if the switch's version cannot express an action; nothing is sent then.
    pub fn send_packet<'b>(
        &mut self,
        data: &[u8],
        actions: impl Into<Actions<'b>>,
    ) -> Result<u32, EncodeError> {
        actions::with_packet_out(data, actions.into(), |packet_out| self.send(packet_out))
    }

    /// Sends a packet to these ports. A buffered packet is released even if no port is given.
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

    /// Adds an entry for packets like this one, and applies its actions to this one (McNettle Figure 4, `forwardWithRule`):
    /// sends it out of a port, or through a list of actions. If the switch's version cannot express the entry, only the
    /// packet is sent.
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
        let ExactMatch { in_port, frame } = match match_.into_exact() {
            Ok(exact) => exact,
            Err(match_) => {
                let packet = Packet::of(packet);
                return self.forward_with_other_rule(xid, packet, match_, actions, options);
            }
        };
        // The most frequent case: a buffered packet, and an entry that is encoded directly. This is the last call, so that no
        // state has to be kept while the entry is written.
        if self.own_table.is_none() && packet.buffer_id.is_some() {
            if let Actions::Output(port) = actions {
                let flow_mod = ExactFlowMod {
                    match_: ExactMatch { in_port, frame },
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
        }
        self.forward_with_exact_rule(xid, Packet::of(packet), in_port, frame, actions, options);
    }

    /// Like `forward_with_rule`, for packets that the switch did not buffer, for entries that are not encoded directly, and
    /// for programs with their own table. Its arguments are the parts of the match, since a [`Match`] would be built in
    /// memory.
    #[cold] // so that registers are kept for the others
    #[inline(never)]
    fn forward_with_exact_rule(
        &mut self,
        xid: u32,
        packet: Packet,
        in_port: PortNo,
        frame: &[u8],
        actions: Actions,
        options: EntryOptions,
    ) {
        let exact = ExactMatch { in_port, frame };
        self.forward_with_any_rule(xid, packet, Ok(exact), actions, options);
    }

    /// Like `forward_with_rule`, for entries that do not match the packet's own fields.
    #[cold]
    #[inline(never)]
    fn forward_with_other_rule(
        &mut self,
        xid: u32,
        packet: Packet,
        match_: Match,
        actions: Actions,
        options: EntryOptions,
    ) {
        self.forward_with_any_rule(xid, packet, Err(match_), actions, options);
    }

    #[inline(always)] // for both kinds of match
    fn forward_with_any_rule(
        &mut self,
        xid: u32,
        packet: Packet,
        match_: Result<ExactMatch, Match>,
        actions: Actions,
        options: EntryOptions,
    ) {
        let options = self.mark(options);
        let buffer_id = match self.own_table {
            None => packet.buffer_id,
            // A buffered packet would pass through all tables again, and a filter that checked only this packet has no entry
            // for it, so it is sent separately.
            Some(_) => BufferId::NONE,
        };
        let written = match (match_, actions) {
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
        // If the entry was not written, it does not release the buffer.
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

    /// Adds an entry that applies `actions` to matching packets; an empty list drops them. Returns the xid.
    ///
    /// # Errors
    /// [`EncodeError`] if the switch's version cannot express a part of it; nothing is sent then.
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

    /// Adds an entry that lets matching packets pass to the table of forwarding programs. Returns the xid. For programs of
    /// [`Stage::Filter`](crate::Stage::Filter).
    ///
    /// # Errors
    /// [`EncodeError`] in 1.0, where packets pass only through the controller; nothing is sent then.
    pub fn let_pass(&mut self, match_: Match, options: EntryOptions) -> Result<u32, EncodeError> {
        self.send(&entries::pass(match_, options))
    }

    /// Deletes this program's entries that `match_` includes, in all tables; if a program filters, in [`Switch::table`].
    /// Returns the xid.
    ///
    /// OpenFlow 1.0 cannot select a program's entries: there, all entries that `match_` includes are deleted, and other
    /// programs' permanent entries are added again in the same write, with counters restarted. Entries with time-outs are
    /// added again when packets for them arrive. At most 4,096 permanent entries of a switch are recorded;
    /// [`SwitchCounters::unprotected`] counts entries beyond that.
    ///
    /// # Errors
    /// [`EncodeError`] if the switch's version cannot express the match; nothing is sent then.
    pub fn delete(&mut self, match_: Match) -> Result<u32, EncodeError> {
        self.delete_of(self.program(), match_)
    }

    /// Deletes another program's entries, like [`Switch::delete`]. [`ProgramId::of_cookie`] returns the program of an entry.
    ///
    /// # Errors
    /// Like [`Switch::delete`].
    pub fn delete_of(&mut self, program: ProgramId, match_: Match) -> Result<u32, EncodeError> {
        self.send(&entries::deletion(match_, program))
    }

    /// Sends any message. Returns the xid, which a reply or error will have.
    ///
    /// If a program filters, a flow mod for table 0 or all tables applies to [`Switch::table`]. One that modifies or deletes
    /// applies to the entries of all programs, and to the framework's, unless its cookie selects a program.
    ///
    /// # Errors
    /// [`EncodeError`] if the switch's version cannot express it, or our role is secondary and it is a write; nothing is
    /// sent then.
    pub fn send(&mut self, message: &Message) -> Result<u32, EncodeError> {
        if !self.info.role.may_write() && is_write(message) {
            self.counters.withheld.add(1);
            return Err(EncodeError::Secondary);
        }
        let xid = self.next_xid();
        let spread = flooding::in_place_of(message, |in_port| {
            self.network.flood_ports(self.info.datapath_id, in_port)
        });
        let start = self.out.len();
        match &spread[..] {
            [] => self.encode(message, xid)?,
            parts => {
                let encoded = parts.iter().try_for_each(|part| self.encode(part, xid));
                encoded.inspect_err(|_| self.out.truncate(start))?;
            }
        }
        self.sent += spread.len().max(1) as u64;
        if let (Version::Of10, Message::FlowMod(flow_mod)) = (self.info.version, message) {
            self.note_permanent(flow_mod, start);
        }
        Ok(xid)
    }

    fn encode(&mut self, message: &Message, xid: u32) -> Result<(), EncodeError> {
        let (program, version) = (self.program(), self.info.version);
        entries::encode(message, program, self.own_table, version, xid, self.out)
    }

    /// Protects other programs' permanent entries in a 1.0 switch from this flow mod.
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

    /// Marks an entry's cookie as this program's.
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

    /// Counts a message that was written, or that could not be; returns `true` if it was written.
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
        urtica_log::debug!(about: self.info.datapath_id, dp_id = %self.info.datapath_id, %error, "cannot encode a handler's message; not sending it");
    }
}
