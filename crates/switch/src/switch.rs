//! The whole switch, without I/O.

use crate::agent::{Agent, ConnectionId, SessionError};
use crate::egress::Egress;
use crate::forwarder::{Forwarder, Polled};
use crate::port_table::{PortTable, SwitchPort};
use crate::shared::{Modes, Shared};
use crate::{PortIo, PortQueues};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use urtica_pipeline::{Backend, CompileConfig, Compiled, Pipeline, PipelineConfig, Reader};
use urtica_wire::{
    DatapathId, ErrorCode, FlowStats, FlowStatsRequest, Port, PortNo, PortReason, PortState,
    PortStats, Version, split_frame,
};

/// What a switch is told before it starts.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// Its identity.
    pub datapath_id: DatapathId,
    /// The versions that it speaks; the highest that both sides do is taken.
    pub versions: Vec<Version>,
    /// How many packets it keeps for controllers; 65,536 at most.
    pub n_buffers: u32,
    /// Bounds of its pipeline.
    pub pipeline: PipelineConfig,
    /// How it carries packets through its tables.
    pub forwarding: Forwarding,
    /// What it does while no controller is connected (1.3.5 section 6.3.2).
    pub fail_mode: FailMode,
    /// How many packets it hands to controllers in a second, in bursts of a tenth of that; 0 for no limit. The rest
    /// is dropped.
    pub packet_ins_per_second: u32,
    /// What hashes follow from by which hosts are found that NORMAL has learnt, so that equal runs are equal. With none they
    /// cannot be foreseen, which a switch needs whose hosts are not to be trusted.
    pub hash_seed: Option<u64>,
    /// What it says of itself to people.
    pub description: Description,
}

impl Default for SwitchConfig {
    /// Datapath 1, both versions, 256 buffers, 100,000 packet-ins per second, tables compiled; without a controller it
    /// goes on by its entries.
    fn default() -> Self {
        Self {
            datapath_id: DatapathId(1),
            versions: Version::ALL.to_vec(),
            n_buffers: 256,
            pipeline: PipelineConfig::default(),
            forwarding: Forwarding::default(),
            fail_mode: FailMode::Secure,
            packet_ins_per_second: 100_000,
            hash_seed: None,
            description: Description::default(),
        }
    }
}

/// What a switch says of itself to people (`ofp_desc`, 1.3.5 section 7.3.5.1). Longer texts are cut off: all are told
/// with up to 255 bytes, the serial number with up to 31.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Who made it.
    pub manufacturer: String,
    /// What it runs on.
    pub hardware: String,
    /// What it is.
    pub software: String,
    /// Its serial number.
    pub serial_number: String,
    /// What people call this one.
    pub datapath: String,
}

impl Default for Description {
    /// Urtica's, with this version; no serial number and no name.
    fn default() -> Self {
        Self {
            manufacturer: "Urtica".into(),
            hardware: "software switch".into(),
            software: concat!("urtica ", env!("CARGO_PKG_VERSION")).into(),
            serial_number: "none".into(),
            datapath: "none".into(),
        }
    }
}

/// How a switch carries packets through its tables. What comes of a packet is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Forwarding {
    /// Tables are compiled, and packets go through them in bursts. What the compiled form does not carry out, such as
    /// groups and meters, goes on the plain way.
    Compiled(Backend),
    /// Packets go through the tables one by one, plainly.
    Plain,
}

impl Default for Forwarding {
    /// Compiled for this processor.
    fn default() -> Self {
        Self::Compiled(Backend::default())
    }
}

/// What a switch does while no controller is connected: none whose hello was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailMode {
    /// Goes on by its flow entries.
    Secure,
    /// Switches as a learning switch, past its flow entries, which stay and expire as ever.
    Standalone,
}

/// A switch: its pipeline, its ports, and its side of each controller's connection.
///
/// Single-threaded: whoever owns it calls [`Switch::poll_ports`] when frames have come, [`Switch::handle_input`] when
/// bytes have, and [`Switch::handle_timeout`] a few times a second. `now` is the time since any moment of the
/// caller's choice; it never goes back.
pub struct Switch {
    pub(crate) config: SwitchConfig,
    /// Also what the threads have in common that carry its packets, if others do.
    pub(crate) shared: Arc<Shared>,
    compiled: Option<Arc<Compiled>>,
    /// Whether nobody was told yet that tables are interpreted.
    tells_of_interpreter: bool,
    /// Whether ports were opened again, and are to be watched anew.
    has_reopened: bool,
    pub(crate) forwarder: Forwarder,
    pub(crate) agent: Agent,
    /// The queues of ports, by their names: a port that goes and comes again has them again.
    pub(crate) queues: BTreeMap<String, PortQueues>,
}

impl Switch {
    /// A switch without ports or controllers.
    ///
    /// Where the system allows no machine code, a warning is logged, and compiled tables are interpreted; where it has no memory
    /// for them, packets go the plain way.
    pub fn new(config: SwitchConfig) -> Self {
        let versions = match config.versions.is_empty() {
            true => Version::ALL.to_vec(),
            false => config.versions.clone(),
        };
        let shared = Arc::new(Shared::new(
            Pipeline::new(config.pipeline),
            config.hash_seed,
        ));
        let mut switch = Self {
            forwarder: Forwarder::new(Arc::clone(&shared), PortTable::default(), None),
            shared,
            compiled: None,
            tells_of_interpreter: true,
            has_reopened: false,
            agent: Agent::new(versions, config.n_buffers, config.packet_ins_per_second),
            queues: BTreeMap::new(),
            config,
        };
        switch.compile(false);
        switch.update_modes();
        let reader = switch.reader();
        switch.forwarder.set_reader(reader);
        switch
    }

    /// Adds a port, or puts it in the place of the one that has its number. Controllers are told.
    ///
    /// A number that no port can have, 0 or a reserved one but [`PortNo::LOCAL`], is refused: the back end is
    /// dropped, and a warning logged.
    pub fn add_port(&mut self, port_no: PortNo, io: Box<dyn PortIo>, now: Duration) {
        if port_no.0 == 0 || (port_no.is_reserved() && port_no != PortNo::LOCAL) {
            let name = io.name();
            tracing::warn!(%port_no, name, "no port can have this number; expected 1 to 0xffffff00 or LOCAL");
            return;
        }
        let (port, description) = SwitchPort::new(port_no, io, now);
        let port = self.with_its_queues(port, &description, now);
        let reason = match self.forwarder.ports.insert(port) {
            true => PortReason::Modify,
            false => PortReason::Add,
        };
        self.set_port(reason, description);
    }

    /// Takes a port away. Controllers are told.
    pub fn remove_port(&mut self, port_no: PortNo, _now: Duration) -> Option<Box<dyn PortIo>> {
        let port = self.forwarder.ports.remove(port_no)?;
        self.shared.hosts().forget_port(port_no);
        let removed = self.shared.pipeline_mut().remove_port(port_no);
        if let Some(description) = removed {
            self.agent
                .send_port_status(PortReason::Delete, &description);
        }
        port.into_io()
    }

    /// Takes in what has come in by all ports, at most a burst from each, and sends what comes of it. Returns whether
    /// any port had a full burst, so that there may be more.
    pub fn poll_ports(&mut self, now: Duration) -> bool {
        let polled = self.poll_ports_once(now);
        self.flush_ports(Duration::ZERO, now);
        polled.may_have_more
    }

    /// Has frames that were sent leave, as [`Forwarder::flush`].
    pub(crate) fn flush_ports(&mut self, hold: Duration, now: Duration) {
        self.forwarder.flush(hold, now);
    }

    /// The same without having frames leave; what came of it.
    pub(crate) fn poll_ports_once(&mut self, now: Duration) -> Polled {
        let polled = self.forwarder.poll_ports(&mut self.agent, now);
        if polled.has_failed {
            self.tell_of_links();
        }
        polled
    }

    /// Whether a port has frames for which it had no room: then [`Switch::poll_ports`] should be called again soon, although none
    /// come in.
    pub fn has_unsent(&self) -> bool {
        self.forwarder.ports.has_unsent()
    }

    /// The ports' numbers and back ends, to watch.
    pub fn ports(&self) -> impl Iterator<Item = (PortNo, &dyn PortIo)> {
        let ports = self.forwarder.ports.iter();
        ports.filter_map(|port| Some((port.port_no, port.io()?)))
    }

    /// A connection to a controller has been made: its hello waits to be sent. `peer` names the controller in logs.
    pub fn connect(&mut self, peer: String, now: Duration) -> ConnectionId {
        self.agent.connect(peer, now)
    }

    /// Takes in bytes of a controller, as many as have come.
    ///
    /// # Errors
    /// If the connection has to end. What is to be sent before that is in [`Switch::output`].
    pub fn handle_input(
        &mut self,
        connection: ConnectionId,
        bytes: &[u8],
        now: Duration,
    ) -> Result<(), SessionError> {
        let session = self.agent.session_mut(connection);
        let session = session.ok_or(SessionError::NotOpen)?;
        session.heard(now);
        session.input.extend_from_slice(bytes);
        self.go_on(connection, now)
    }

    /// Whether a controller should be read from: not while it leaves what it asked for unread, nor while something that it
    /// said waits for the end of a reply. What comes nevertheless waits, up to 1 MiB of it.
    pub fn wants_input(&self, connection: ConnectionId) -> bool {
        let session = self.agent.session(connection);
        session.is_some_and(|session| session.is_served())
    }

    /// What is to be sent to a controller; the caller takes off the front what it has sent. `None` where there is no
    /// such connection.
    pub fn output(&mut self, connection: ConnectionId) -> Option<&mut Vec<u8>> {
        let session = self.agent.session_mut(connection)?;
        Some(&mut session.output)
    }

    /// Goes on with a change that concerns too many entries to be made at once, with a reply that is too long to be written at once, as
    /// far as the controller has read, or with messages that waited for the end of either; one controller's at a time, so that packets need not wait long. Returns whether there was anything
    /// to do: then there is something to send, and there may be more to do.
    ///
    /// Who does not call it gets the rest of such a change or reply with [`Switch::handle_input`] and [`Switch::handle_timeout`], a part
    /// with each.
    pub fn poll_output(&mut self, now: Duration) -> bool {
        if self.go_on_with_left_change(now) {
            return true;
        }
        self.agent.durability = self.shared.durability();
        let Some(connection) = self.agent.next_turn() else {
            return false;
        };
        if let Err(reason) = self.go_on(connection, now) {
            self.agent.end(connection, reason);
        }
        true
    }

    /// A connection has ended.
    pub fn disconnect(&mut self, connection: ConnectionId, _now: Duration) {
        self.agent.disconnect(connection);
        self.update_modes();
    }

    /// Does what is due: entries expire, silent controllers are asked for an echo, links' states are looked at.
    /// Returns the connections that have to end, with why.
    pub fn handle_timeout(&mut self, now: Duration) -> Vec<(ConnectionId, SessionError)> {
        let mut removed = Vec::new();
        self.shared
            .change(|pipeline| pipeline.expire(now, &mut removed));
        if !self.agent.is_changing() {
            self.shared.pipeline().settle(now);
        }
        self.agent.send_flow_removed(&removed, now);
        self.tell_if_interpreted();
        self.has_reopened |= self.forwarder.look_at_links();
        self.tell_of_links();
        self.poll_output(now);
        let mut ended = self.agent.take_ended();
        ended.extend(self.agent.handle_timeout(now));
        ended
    }

    /// Whether ports were opened again since this was last asked; they are to be watched anew.
    pub(crate) fn take_reopened(&mut self) -> bool {
        std::mem::take(&mut self.has_reopened)
    }

    /// Takes in that the system has told of the link of a network interface ([`PortIo::link_index`]): a port that has lost its
    /// link is not used by groups from now on, and controllers are told.
    pub fn handle_link(&mut self, link_index: u32, has_link: bool) {
        let is_ours = |port: &mut SwitchPort| port.note_link(link_index, has_link);
        if self.forwarder.ports.iter_mut().any(is_ours) {
            self.tell_of_links();
        }
    }

    /// Whether more is due than one [`Switch::handle_timeout`] does: packets go first, then it is to be called again.
    pub fn is_behind(&self, now: Duration) -> bool {
        let next_expiry = self.shared.pipeline().next_expiry();
        next_expiry.is_some_and(|next| next <= now)
    }

    /// How many packet-ins were not sent, because there were more than [`SwitchConfig::packet_ins_per_second`] or
    /// because a controller did not read them.
    pub fn packet_ins_dropped(&self) -> u64 {
        self.agent.packet_ins_dropped() + self.shared.packet_ins_dropped()
    }

    /// Whether a controller is connected: one whose hello was answered.
    pub fn has_controller(&self) -> bool {
        self.agent.is_connected()
    }

    /// How many packets this switch itself has taken through its tables one by one, plainly: those that the compiled tables
    /// leave to the plain form, and all where nothing is compiled. Packets that threads of a [`Runner`](crate::Runner)
    /// carry are not among them.
    pub fn plain_packets(&self) -> u64 {
        self.forwarder.plain_packets()
    }

    /// Has packets go through the tables in another way from now on. What is to be compiled is compiled anew, from the
    /// entries there are.
    pub fn set_forwarding(&mut self, forwarding: Forwarding) {
        self.config.forwarding = forwarding;
        self.compiled = None;
        self.compile(false);
        let reader = self.reader();
        self.forwarder.set_reader(reader);
    }

    /// How many flow entries there are, in all tables.
    pub fn entry_count(&self) -> usize {
        let pipeline = self.shared.pipeline();
        let tables = pipeline.tables().iter();
        tables.map(|table| table.entries().len()).sum()
    }

    /// The flow entries that a request asks for, as a controller would be told.
    ///
    /// # Errors
    /// The code that a controller would get.
    pub fn flow_stats(
        &self,
        request: &FlowStatsRequest,
        now: Duration,
    ) -> Result<Vec<FlowStats<'static>>, ErrorCode> {
        let entries = self.shared.pipeline().flow_stats(request)?;
        Ok(entries.iter().map(|entry| entry.to_stats(now)).collect())
    }

    /// What went through each port.
    pub fn port_stats(&self, now: Duration) -> Vec<PortStats> {
        let ports = self.forwarder.ports.iter();
        ports.map(|port| port.stats(now)).collect()
    }

    /// Has each table be full as soon as it has so many entries more than the one with the most has now, as where others
    /// use it, too.
    pub fn leave_room_for(&mut self, entries: u32) {
        let mut pipeline = self.shared.pipeline_mut();
        let tables = pipeline.tables().iter();
        let most = tables.map(|table| table.entries().len()).max();
        pipeline.set_max_entries(most.map_or(0, |most| most as u32).saturating_add(entries));
    }

    /// Has each table hold as many entries as the configuration says.
    pub fn leave_room(&mut self) {
        let max_entries = self.config.pipeline.max_entries;
        self.shared.pipeline_mut().set_max_entries(max_entries);
    }

    /// Has all flow mods refused from now on (OFPFMFC_EPERM), or carried out again.
    pub fn refuse_flow_mods(&mut self, refuses: bool) {
        self.shared.pipeline_mut().set_locked(refuses);
    }

    /// How many connections to controllers there are, answered or not.
    pub fn connection_count(&self) -> usize {
        self.agent.connection_count()
    }

    /// Gives a controller a turn: goes on with the change or reply that it waits for, and takes in all whole messages that it has sent,
    /// as far as these need not wait.
    fn go_on(&mut self, connection: ConnectionId, now: Duration) -> Result<(), SessionError> {
        self.agent.begin_turn();
        self.go_on_with_change(connection, now);
        self.go_on_with_reply(connection, now);
        let Some(session) = self.agent.session_mut(connection) else {
            return Ok(());
        };
        let mut input = std::mem::take(&mut session.input);
        let result = self.handle_frames(connection, &input, now);
        self.forwarder.ports.flush(now);
        self.update_modes();
        let consumed = result?;
        input.drain(..consumed);
        match self.agent.session_mut(connection) {
            Some(session) => session.keep_input(input),
            None => Ok(()),
        }
    }

    /// Takes in the messages at the front of `input`; returns how many bytes they have.
    fn handle_frames(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Duration,
    ) -> Result<usize, SessionError> {
        let mut rest = input;
        // Others do nothing while this controller has its turn.
        let mut others = self.agent.others(connection);
        loop {
            others.durability = self.shared.durability();
            let turn = self.agent.turn;
            let Some(session) = self.agent.session_mut(connection) else {
                return Ok(input.len());
            };
            match split_frame(rest) {
                Ok(Some((frame, _))) if !session.admits(frame, &turn, others) => {
                    if session.waits_for_disk() {
                        self.shared.ask_sync();
                    }
                    return Ok(input.len() - rest.len());
                }
                Ok(Some((frame, after))) => {
                    if let Some(message) = session.handle_frame(frame)? {
                        self.handle_message(connection, frame, message, now);
                    }
                    rest = after;
                }
                Ok(None) => {
                    session.handle_fragment(rest)?;
                    return Ok(input.len() - rest.len());
                }
                Err(error) => return Err(session.handle_malformed(error, rest)),
            }
        }
    }

    /// Takes a packet that did not come in by a port to where `carry_out` sends it.
    pub(crate) fn carry_out_with(
        &mut self,
        now: Duration,
        carry_out: impl FnOnce(&Pipeline, &mut Egress<'_>),
    ) {
        let pipeline = self.shared.pipeline();
        let mut egress = Egress {
            pipeline: &pipeline,
            shared: &self.shared,
            ports: &mut self.forwarder.ports,
            controllers: &mut self.agent,
            now,
        };
        carry_out(&pipeline, &mut egress);
    }

    /// Has packets meet what controllers wish: how those are treated that no entry matches, and fragments, and all while
    /// no controller is there.
    fn update_modes(&self) {
        let fail_mode = self.config.fail_mode;
        let modes = Modes {
            is_alone: fail_mode == FailMode::Standalone && !self.agent.is_connected(),
            drops_fragments: self.agent.drops_fragments(),
            matches_hidden: self.agent.matches_hidden(),
            zeroes_ports: self.agent.zeroes_ports(),
            wants_table_misses: self.agent.wants_table_misses(),
        };
        self.shared.set_modes(modes);
        if let Some(compiled) = &self.compiled {
            compiled.set_misses_punt(modes.wants_table_misses);
        }
    }

    /// Takes a port's new description over, and tells controllers.
    pub(crate) fn set_port(&mut self, reason: PortReason, description: Port) {
        let port_no = description.port_no;
        if description.state.contains(PortState::LINK_DOWN) {
            self.shared.hosts().forget_port(port_no);
        }
        if let Some(port) = self.forwarder.ports.get_mut(port_no) {
            port.set_config(description.config);
        }
        self.shared.pipeline_mut().set_port(description);
        self.agent.send_port_status(reason, &description);
    }

    /// Tells controllers of ports whose links have changed.
    fn tell_of_links(&mut self) {
        let mut changed = Vec::new();
        for port in self.forwarder.ports.iter() {
            let known = self.shared.pipeline().port(port.port_no).copied();
            let Some(mut description) = known else {
                continue;
            };
            if port.describe(&mut description) {
                changed.push(description);
            }
        }
        for description in changed {
            self.set_port(PortReason::Modify, description);
        }
    }

    /// Compiles the tables as they are, unless that is not wanted, for one thread or for several.
    pub(crate) fn compile(&mut self, is_shared: bool) {
        let Forwarding::Compiled(backend) = self.config.forwarding else {
            return;
        };
        let compiled = self.shared.pipeline_mut().compile(CompileConfig {
            backend,
            is_shared,
            plans_beside: true,
            ..CompileConfig::default()
        });
        if let Err(error) = &compiled {
            tracing::warn!(%error, "tables are not compiled, and packets go the plain way");
        }
        self.compiled = compiled.ok();
        self.tell_if_interpreted();
        self.update_modes();
    }

    /// Says once that the interpreter carries out what machine code was to: from the start on, or since the system refused memory
    /// for code.
    fn tell_if_interpreted(&mut self) {
        let wanted = matches!(self.config.forwarding, Forwarding::Compiled(backend) if backend == Backend::MachineCode);
        let is_interpreted = |compiled: &Arc<Compiled>| compiled.backend() == Backend::Interpreter;
        if self.tells_of_interpreter && wanted && self.compiled.as_ref().is_some_and(is_interpreted)
        {
            self.tells_of_interpreter = false;
            tracing::warn!(
                "the system allows no machine code (SELinux's execmem, systemd's MemoryDenyWriteExecute), or there is none for this \
                 processor; compiled tables are interpreted, which is slower"
            );
        }
    }

    /// A thread's way into the compiled tables, if they are.
    pub(crate) fn reader(&self) -> Option<Reader> {
        self.compiled.as_ref().map(Compiled::reader)
    }
}

#[cfg(test)]
mod tests;
