//! The whole switch, without I/O.

use crate::PortIo;
use crate::agent::{Agent, ConnectionId};
use crate::egress::Egress;
use crate::fragments::is_fragment;
use crate::normal::MacTable;
use crate::port_table::{BURST, PortTable};
use std::time::Duration;
use urtica_pipeline::{Packet, Pipeline, PipelineConfig, Sink};
use urtica_wire::{
    DatapathId, Port, PortConfig, PortNo, PortReason, PortState, Version, split_frame,
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
    /// What it does while no controller is connected (1.3.5 section 6.3.2).
    pub fail_mode: FailMode,
    /// How many packets it hands to controllers in a second, in bursts of a tenth of that; 0 for no limit. The rest
    /// is dropped.
    pub packet_ins_per_second: u32,
    /// What it says of itself to people.
    pub description: Description,
}

impl Default for SwitchConfig {
    /// Datapath 1, both versions, 256 buffers, 100,000 packet-ins per second; without a controller it goes on by its
    /// entries.
    fn default() -> Self {
        Self {
            datapath_id: DatapathId(1),
            versions: Version::ALL.to_vec(),
            n_buffers: 256,
            pipeline: PipelineConfig::default(),
            fail_mode: FailMode::Secure,
            packet_ins_per_second: 100_000,
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
    pub(crate) pipeline: Pipeline,
    pub(crate) ports: PortTable,
    pub(crate) agent: Agent,
    hosts: MacTable,
    /// Room for a burst, kept between them.
    burst: Vec<Packet>,
}

impl Switch {
    /// A switch without ports or controllers.
    pub fn new(config: SwitchConfig) -> Self {
        let versions = match config.versions.is_empty() {
            true => Version::ALL.to_vec(),
            false => config.versions.clone(),
        };
        Self {
            pipeline: Pipeline::new(config.pipeline),
            ports: PortTable::default(),
            agent: Agent::new(versions, config.n_buffers, config.packet_ins_per_second),
            hosts: MacTable::new(),
            burst: Vec::with_capacity(BURST),
            config,
        }
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
        let before = self.ports.insert(port_no, io, now);
        let Some(port) = self.ports.get_mut(port_no) else {
            return;
        };
        let port = port.describe(port_no);
        let reason = match before {
            Some(_) => PortReason::Modify,
            None => PortReason::Add,
        };
        self.set_port(reason, port);
    }

    /// Takes a port away. Controllers are told.
    pub fn remove_port(&mut self, port_no: PortNo, _now: Duration) -> Option<Box<dyn PortIo>> {
        let io = self.ports.remove(port_no)?;
        self.hosts.forget_port(port_no);
        if let Some(port) = self.pipeline.remove_port(port_no) {
            self.agent.send_port_status(PortReason::Delete, &port);
        }
        Some(io)
    }

    /// Takes in what has come in by all ports, at most a burst from each, and sends what comes of it. Returns whether
    /// any port had a full burst, so that there may be more.
    pub fn poll_ports(&mut self, now: Duration) -> bool {
        let numbers: Vec<_> = self.ports.iter().map(|(port_no, _)| port_no).collect();
        let mut may_have_more = false;
        for port_no in numbers {
            may_have_more |= self.poll_port(port_no, now) == BURST;
        }
        self.ports.flush();
        may_have_more
    }

    /// The ports' numbers and back ends, to watch.
    pub fn ports(&self) -> impl Iterator<Item = (PortNo, &dyn PortIo)> {
        self.ports
            .iter()
            .map(|(port_no, port)| (port_no, &*port.io))
    }

    /// A connection to a controller has been made: its hello waits to be sent. `peer` names the controller in logs.
    pub fn connect(&mut self, peer: String, now: Duration) -> ConnectionId {
        self.agent.connect(peer, now)
    }

    /// Takes in bytes of a controller, in pieces of any size.
    ///
    /// # Errors
    /// Where the connection has to end: a sentence that says why. What is to be sent before that is in
    /// [`Switch::output`].
    pub fn handle_input(
        &mut self,
        connection: ConnectionId,
        bytes: &[u8],
        now: Duration,
    ) -> Result<(), String> {
        let Some(session) = self.agent.session_mut(connection) else {
            return Err("the connection is not open; expected one that connect() returned".into());
        };
        session.heard(now);
        let mut input = std::mem::take(&mut session.input);
        input.extend_from_slice(bytes);
        self.handle_waiting_input(connection, input, now)
    }

    /// Whether a controller should be read from: not while it leaves what it asked for unread. What comes
    /// nevertheless waits, up to 1 MiB of it, until there is less than 16 MiB to read.
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

    /// A connection has ended.
    pub fn disconnect(&mut self, connection: ConnectionId, _now: Duration) {
        self.agent.disconnect(connection);
    }

    /// Does what is due: entries expire, silent controllers are asked for an echo, links' states are looked at.
    /// Returns the connections that have to end, with why.
    pub fn handle_timeout(&mut self, now: Duration) -> Vec<(ConnectionId, String)> {
        let mut removed = Vec::new();
        self.pipeline.expire(now, &mut removed);
        self.agent.send_flow_removed(&removed, now);
        self.look_at_links();
        let mut ended = self.handle_waiting_inputs(now);
        let silent = self.agent.handle_timeout(now).into_iter();
        ended.extend(silent.map(|(connection, error)| (connection, error.to_string())));
        ended
    }

    /// How many packet-ins were not sent, because there were more than [`SwitchConfig::packet_ins_per_second`] or
    /// because a controller did not read them.
    pub fn packet_ins_dropped(&self) -> u64 {
        self.agent.packet_ins_dropped()
    }

    /// Goes on with requests that waited for room in the output.
    fn handle_waiting_inputs(&mut self, now: Duration) -> Vec<(ConnectionId, String)> {
        let mut ended = Vec::new();
        for (connection, input) in self.agent.take_waiting_inputs() {
            if let Err(error) = self.handle_waiting_input(connection, input, now) {
                ended.push((connection, error));
            }
        }
        ended
    }

    /// Takes in all whole messages there are, as far as there is room for what they are answered with.
    fn handle_waiting_input(
        &mut self,
        connection: ConnectionId,
        mut input: Vec<u8>,
        now: Duration,
    ) -> Result<(), String> {
        let result = self.handle_frames(connection, &input, now);
        self.ports.flush();
        let consumed = result?;
        input.drain(..consumed);
        match self.agent.session_mut(connection) {
            Some(session) => session.keep_input(input).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    /// Takes in the messages at the front of `input`; returns how many bytes they have.
    fn handle_frames(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Duration,
    ) -> Result<usize, String> {
        let mut rest = input;
        loop {
            let Some(session) = self.agent.session_mut(connection) else {
                return Ok(input.len());
            };
            match split_frame(rest) {
                Ok(Some(_)) if !session.has_room() => return Ok(input.len() - rest.len()),
                Ok(Some((frame, after))) => {
                    let handled = session.handle_frame(frame);
                    if let Some(message) = handled.map_err(|error| error.to_string())? {
                        self.handle_message(connection, frame, message, now);
                    }
                    rest = after;
                }
                Ok(None) => {
                    let handled = session.handle_fragment(rest);
                    handled.map_err(|error| error.to_string())?;
                    return Ok(input.len() - rest.len());
                }
                Err(error) => return Err(session.handle_malformed(error, rest).to_string()),
            }
        }
    }

    /// Returns how many frames came.
    fn poll_port(&mut self, port_no: PortNo, now: Duration) -> usize {
        let is_receiving = self.pipeline.port(port_no).is_some_and(|port| {
            !port
                .config
                .intersects(PortConfig::PORT_DOWN | PortConfig::NO_RECV)
        });
        let Some(port) = self.ports.get_mut(port_no) else {
            return 0;
        };
        let mut burst = std::mem::take(&mut self.burst);
        let received = port.receive(port_no, is_receiving, &mut burst);
        for packet in burst.drain(..) {
            self.handle_packet(packet, now);
        }
        self.burst = burst;
        received.unwrap_or_else(|error| {
            tracing::warn!(%port_no, %error, "the port does not work any more");
            self.take_link_down(port_no);
            0
        })
    }

    fn handle_packet(&mut self, packet: Packet, now: Duration) {
        if self.agent.drops_fragments() && is_fragment(packet.frame()) {
            return;
        }
        let is_alone = self.config.fail_mode == FailMode::Standalone && !self.agent.is_connected();
        let mut egress = self.egress(now);
        if is_alone {
            egress.normal(&packet);
        } else {
            egress.pipeline.process(packet, now, &mut egress);
        }
    }

    /// Where the pipeline leaves packets.
    pub(crate) fn egress(&mut self, now: Duration) -> Egress<'_> {
        Egress {
            pipeline: &self.pipeline,
            ports: &mut self.ports,
            hosts: &mut self.hosts,
            agent: &mut self.agent,
            now,
        }
    }

    /// Takes a port's new description over, and tells controllers.
    fn set_port(&mut self, reason: PortReason, port: Port) {
        if port.state.contains(PortState::LINK_DOWN) {
            self.hosts.forget_port(port.port_no);
        }
        self.pipeline.set_port(port);
        self.agent.send_port_status(reason, &port);
    }

    fn look_at_links(&mut self) {
        let mut changed = Vec::new();
        for (port_no, port) in self.ports.iter_mut() {
            if let Some(mut description) = self.pipeline.port(port_no).copied()
                && port.look(&mut description)
            {
                changed.push(description);
            }
        }
        for port in changed {
            self.set_port(PortReason::Modify, port);
        }
    }

    fn take_link_down(&mut self, port_no: PortNo) {
        if let Some(mut port) = self.pipeline.port(port_no).copied() {
            port.state.insert(PortState::LINK_DOWN);
            port.state.remove(PortState::LIVE);
            self.set_port(PortReason::Modify, port);
        }
    }
}
