//! The whole switch, without I/O.

use crate::PortIo;
use crate::agent::{Agent, ConnectionId, SessionError};
use crate::egress::Egress;
use crate::forwarder::{Forwarder, Polled};
use crate::port_table::{PortTable, SwitchPort};
use crate::shared::{Modes, Shared};
use std::sync::Arc;
use std::time::Duration;
use urtica_pipeline::{Backend, CompileConfig, Compiled, Pipeline, PipelineConfig, Reader};
use urtica_wire::{
    DatapathId, ErrorCode, FlowStats, FlowStatsRequest, Port, PortNo, PortReason, PortState,
    PortStats, Version, split_frame,
};

/// The configuration of a switch.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// The switch's identity.
    pub datapath_id: DatapathId,
    /// The versions that it supports; the highest common one is used.
    pub versions: Vec<Version>,
    /// Number of packets that it buffers for controllers; at most 65,536.
    pub n_buffers: u32,
    /// The limits of its pipeline.
    pub pipeline: PipelineConfig,
    /// How packets are processed in its tables.
    pub forwarding: Forwarding,
    /// The behaviour while no controller is connected (1.3.5 section 6.3.2).
    pub fail_mode: FailMode,
    /// Maximum number of packets sent to controllers per second, in bursts of up to a tenth of that; 0 for no limit. Further
    /// packets are dropped.
    pub packet_ins_per_second: u32,
    /// The seed of the hashes for hosts that NORMAL has learnt, so that runs are reproducible. Without it they are unpredictable,
    /// as is necessary for a switch with untrusted hosts.
    pub hash_seed: Option<u64>,
    /// The description for users.
    pub description: Description,
}

impl Default for SwitchConfig {
    /// Returns datapath 1 with both versions, 256 buffers, 100,000 packet-ins per second and compiled tables, which without a
    /// controller keeps forwarding by its entries.
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

/// A switch's description for users (`ofp_desc`, 1.3.5 section 7.3.5.1). Longer texts are truncated: the serial number to 31
/// bytes, all others to 255.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The manufacturer.
    pub manufacturer: String,
    /// The hardware.
    pub hardware: String,
    /// The software.
    pub software: String,
    /// Its serial number.
    pub serial_number: String,
    /// The switch's name for users.
    pub datapath: String,
}

impl Default for Description {
    /// Returns Urtica's description, with this version, and without serial number and name.
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

/// How packets are processed in a switch's tables. The results do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Forwarding {
    /// Tables are compiled, and process packets in bursts. Operations that the compiled form does not support, such as some
    /// groups, are left to the plain form.
    Compiled(Backend),
    /// Packets are processed one by one in the tables of the plain form.
    Plain,
}

impl Default for Forwarding {
    /// Returns tables compiled for this processor.
    fn default() -> Self {
        Self::Compiled(Backend::default())
    }
}

/// A switch's behaviour while no controller is connected, that is, while no hello was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailMode {
    /// Keeps forwarding by its flow entries.
    Secure,
    /// Forwards as a learning switch, without its flow entries, which stay and expire as usual.
    Standalone,
}

/// A switch: its pipeline, its ports, and its side of each controller's connection.
///
/// It is single-threaded: its owner calls [`Switch::poll_ports`] when frames have arrived, [`Switch::handle_input`] when bytes
/// have arrived, and [`Switch::handle_timeout`] a few times per second. `now` is the time since any moment that the caller
/// chooses, and must not decrease.
// It has many methods, which give an owner without sockets access to ports, controllers and time, in a file for each kind.
pub struct Switch {
    pub(crate) config: SwitchConfig,
    /// The state that this switch shares with the threads that forward its packets, if any.
    pub(crate) shared: Arc<Shared>,
    compiled: Option<Arc<Compiled>>,
    /// Whether the warning that tables are interpreted has not been logged yet.
    warns_of_interpreter: bool,
    /// Whether ports were reopened, and must be watched again.
    has_reopened: bool,
    pub(crate) forwarder: Forwarder,
    pub(crate) agent: Agent,
}

impl Switch {
    /// Creates a switch without ports or controllers.
    ///
    /// If the system allows no machine code, a warning is logged, and compiled tables are interpreted. If it has no memory for
    /// them, packets use the plain form.
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
            warns_of_interpreter: true,
            has_reopened: false,
            agent: Agent::new(versions, config.n_buffers, config.packet_ins_per_second),
            config,
        };
        switch.compile(false);
        switch.update_modes();
        let reader = switch.reader();
        switch.forwarder.set_reader(reader);
        switch
    }

    /// Adds a port, or replaces the one with its number. Controllers are notified.
    ///
    /// An invalid number (0, or a reserved one other than [`PortNo::LOCAL`]) is refused: the back end is dropped, and a warning
    /// is logged.
    pub fn add_port(&mut self, port_no: PortNo, io: Box<dyn PortIo>, now: Duration) {
        if port_no.0 == 0 || (port_no.is_reserved() && port_no != PortNo::LOCAL) {
            let name = io.name();
            tracing::warn!(%port_no, name, "cannot add a port with this number; expected 1 to 0xffffff00 or LOCAL");
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

    /// Removes a port. Controllers are notified.
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

    /// Receives at most one burst from each port and forwards it. Returns whether any port had a full burst, so that there may be
    /// more.
    pub fn poll_ports(&mut self, now: Duration) -> bool {
        let polled = self.poll_ports_once(now);
        self.flush_ports(Duration::ZERO, now);
        polled.may_have_more
    }

    /// Transmits queued frames, like [`Forwarder::flush`].
    pub(crate) fn flush_ports(&mut self, hold: Duration, now: Duration) {
        self.forwarder.flush(hold, now);
    }

    /// Polls the ports without flushing them, and returns the result.
    pub(crate) fn poll_ports_once(&mut self, now: Duration) -> Polled {
        let polled = self.forwarder.poll_ports(&mut self.agent, now);
        if polled.has_failed {
            self.report_links();
        }
        polled
    }

    /// Returns whether a port has frames for which it lacked space. Then [`Switch::poll_ports`] should be called again soon, even
    /// if no frames arrive.
    pub fn has_unsent(&self) -> bool {
        self.forwarder.ports.has_unsent()
    }

    /// Returns the ports' numbers and back ends, to watch.
    pub fn ports(&self) -> impl Iterator<Item = (PortNo, &dyn PortIo)> {
        let ports = self.forwarder.ports.iter();
        ports.filter_map(|port| Some((port.port_no, port.io()?)))
    }

    /// Opens a connection to a controller. The output then contains the hello. `peer` is the controller's name in logs.
    pub fn connect(&mut self, peer: String, now: Duration) -> ConnectionId {
        self.agent.connect(peer, now)
    }

    /// Handles bytes received from a controller.
    ///
    /// # Errors
    /// If the connection must end. The remaining output of [`Switch::output`] must be sent before.
    pub fn handle_input(
        &mut self,
        connection: ConnectionId,
        bytes: &[u8],
        now: Duration,
    ) -> Result<(), SessionError> {
        let session = self.agent.session_mut(connection);
        let session = session.ok_or(SessionError::NotOpen)?;
        session.note_activity(now);
        session.input.extend_from_slice(bytes);
        self.serve(connection, now)
    }

    /// Returns whether a controller should be read from. It should not while its output is unread, or while one of its messages
    /// waits for the end of a reply. Bytes that are passed nevertheless wait, up to 1 MiB.
    pub fn wants_input(&self, connection: ConnectionId) -> bool {
        let session = self.agent.session(connection);
        session.is_some_and(|session| session.is_served())
    }

    /// Returns the output for a controller, from which the caller removes the bytes that it has sent. `None` if the connection
    /// does not exist.
    pub fn output(&mut self, connection: ConnectionId) -> Option<&mut Vec<u8>> {
        let session = self.agent.session_mut(connection)?;
        Some(&mut session.output)
    }

    /// Continues the work for one controller: a change to too many entries to be made at once, a reply that is too long to be
    /// written at once, if the controller has read enough, or messages that waited for the end of either. It is one controller
    /// per call, so that packets do not wait long. Returns whether there was anything to do; then there is output, and there may
    /// be more to do.
    ///
    /// If this is not called, [`Switch::handle_input`] and [`Switch::handle_timeout`] continue such a change or reply, with a
    /// part each.
    pub fn poll_output(&mut self, now: Duration) -> bool {
        if self.continue_abandoned_change(now) {
            return true;
        }
        self.agent.durability = self.shared.durability();
        let Some(connection) = self.agent.next_turn() else {
            return false;
        };
        if let Err(reason) = self.serve(connection, now) {
            self.agent.end(connection, reason);
        }
        true
    }

    /// Closes a connection.
    pub fn disconnect(&mut self, connection: ConnectionId, _now: Duration) {
        self.agent.disconnect(connection);
        self.update_modes();
    }

    /// Handles timeouts: expires entries, sends echo requests to silent controllers, and checks links. Returns the connections
    /// that must end, and why.
    pub fn handle_timeout(&mut self, now: Duration) -> Vec<(ConnectionId, SessionError)> {
        let mut removed = Vec::new();
        self.shared
            .change(|pipeline| pipeline.expire(now, &mut removed));
        if !self.agent.is_changing() {
            self.shared.pipeline().settle(now);
        }
        self.agent.send_flow_removed(&removed, now);
        self.warn_if_interpreted();
        self.has_reopened |= self.forwarder.check_links();
        self.report_links();
        self.poll_output(now);
        let mut ended = self.agent.take_ended();
        ended.extend(self.agent.handle_timeout(now));
        ended
    }

    /// Returns whether ports were reopened since the last call; they must be watched again.
    pub(crate) fn take_reopened(&mut self) -> bool {
        std::mem::take(&mut self.has_reopened)
    }

    /// Handles the system's report of a network interface's link ([`PortIo::link_index`]). Groups stop using a port that has lost
    /// its link, and controllers are notified.
    pub fn handle_link(&mut self, link_index: u32, has_link: bool) {
        let is_ours = |port: &mut SwitchPort| port.note_link(link_index, has_link);
        if self.forwarder.ports.iter_mut().any(is_ours) {
            self.report_links();
        }
    }

    /// Returns whether one call of [`Switch::handle_timeout`] was not enough. Then it should be called again after forwarding
    /// packets.
    pub fn is_behind(&self, now: Duration) -> bool {
        let next_expiry = self.shared.pipeline().next_expiry();
        next_expiry.is_some_and(|next| next <= now)
    }

    /// Returns the number of packet-ins that were dropped because they exceeded [`SwitchConfig::packet_ins_per_second`], or
    /// because a controller did not read them.
    pub fn packet_ins_dropped(&self) -> u64 {
        self.agent.packet_ins_dropped() + self.shared.packet_ins_dropped()
    }

    /// Returns whether a controller is connected, that is, whether a hello was answered.
    pub fn has_controller(&self) -> bool {
        self.agent.is_connected()
    }

    /// Returns the number of packets that this switch itself has processed in the plain form: those that the compiled tables
    /// leave to it, and all if tables are not compiled. Packets of a [`Runner`](crate::Runner)'s threads are not counted.
    pub fn plain_packets(&self) -> u64 {
        self.forwarder.plain_packets()
    }

    /// Changes how packets are processed in the tables. Compiled tables are compiled again from the current entries.
    pub fn set_forwarding(&mut self, forwarding: Forwarding) {
        self.config.forwarding = forwarding;
        self.compiled = None;
        self.compile(false);
        let reader = self.reader();
        self.forwarder.set_reader(reader);
    }

    /// Returns the number of flow entries in all tables.
    pub fn entry_count(&self) -> usize {
        let pipeline = self.shared.pipeline();
        let tables = pipeline.tables().iter();
        tables.map(|table| table.entries().len()).sum()
    }

    /// Returns the flow entries that a request selects, as in a reply to a controller.
    ///
    /// # Errors
    /// The error code that a controller would receive.
    pub fn flow_stats(
        &self,
        request: &FlowStatsRequest,
        now: Duration,
    ) -> Result<Vec<FlowStats<'static>>, ErrorCode> {
        let entries = self.shared.pipeline().flow_stats(request)?;
        Ok(entries.iter().map(|entry| entry.to_stats(now)).collect())
    }

    /// Returns the counters of each port.
    pub fn port_stats(&self, now: Duration) -> Vec<PortStats> {
        let ports = self.forwarder.ports.iter();
        ports.map(|port| port.stats(now)).collect()
    }

    /// Limits each table to `entries` entries more than the largest table has now, as if others also used it.
    pub fn leave_room_for(&mut self, entries: u32) {
        let mut pipeline = self.shared.pipeline_mut();
        let tables = pipeline.tables().iter();
        let most = tables.map(|table| table.entries().len()).max();
        pipeline.set_max_entries(most.map_or(0, |most| most as u32).saturating_add(entries));
    }

    /// Resets the tables' limits to the configured ones.
    pub fn leave_room(&mut self) {
        let max_entries = self.config.pipeline.max_entries;
        self.shared.pipeline_mut().set_max_entries(max_entries);
    }

    /// Sets whether all flow mods are refused (OFPFMFC_EPERM).
    pub fn refuse_flow_mods(&mut self, refuses: bool) {
        self.shared.pipeline_mut().set_locked(refuses);
    }

    /// Returns the number of connections to controllers, with or without a hello.
    pub fn connection_count(&self) -> usize {
        self.agent.connection_count()
    }

    /// Gives a controller a turn: continues the change or reply that it waits for, and handles all complete messages that it has
    /// sent, unless they must wait.
    fn serve(&mut self, connection: ConnectionId, now: Duration) -> Result<(), SessionError> {
        self.agent.begin_turn();
        self.continue_change(connection, now);
        self.continue_reply(connection, now);
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

    /// Handles the messages at the front of `input`; returns their length in bytes.
    fn handle_frames(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Duration,
    ) -> Result<usize, SessionError> {
        let mut rest = input;
        // Other controllers do nothing during this one's turn.
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
                        self.shared.request_sync();
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

    /// Processes a packet that was not received by a port with `carry_out`.
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

    /// Sets the modes that controllers determine: the treatment of packets that match no entry, of fragments, and of all packets
    /// while no controller is connected.
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

    /// Replaces a port's description, and notifies controllers.
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

    /// Notifies controllers of ports whose links have changed.
    fn report_links(&mut self) {
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

    /// Compiles the current tables for one thread or for several, if that is configured.
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
            tracing::warn!(%error, "cannot compile tables; packets use the plain form");
        }
        self.compiled = compiled.ok();
        self.warn_if_interpreted();
        self.update_modes();
    }

    /// Warns once that tables are interpreted instead of compiled to machine code, whether from the start, or since the system
    /// refused memory for code.
    fn warn_if_interpreted(&mut self) {
        let wanted = matches!(self.config.forwarding, Forwarding::Compiled(backend) if backend == Backend::MachineCode);
        let is_interpreted = |compiled: &Arc<Compiled>| compiled.backend() == Backend::Interpreter;
        if self.warns_of_interpreter && wanted && self.compiled.as_ref().is_some_and(is_interpreted)
        {
            self.warns_of_interpreter = false;
            tracing::warn!(
                "the system allows no machine code (SELinux's execmem, systemd's MemoryDenyWriteExecute), or there is none for this \
                 processor; compiled tables are interpreted, which is slower"
            );
        }
    }

    /// Returns a reader of the compiled tables, if any.
    pub(crate) fn reader(&self) -> Option<Reader> {
        self.compiled.as_ref().map(Compiled::reader)
    }
}

#[cfg(test)]
mod tests;
