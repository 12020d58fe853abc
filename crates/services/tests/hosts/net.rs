//! An embedded controller, and switches that consist of a table, ports and links only, in simulated time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use urtica_controller::{Controller, Embedded, OWN_COOKIE_BITS};
use urtica_topology::{DirectedLink, PortId};
use urtica_wire::{
    Action, BufferId, Capabilities, DatapathId, ErrorCode, ErrorMessage, Features, FlowMod,
    FlowModCommand, FlowRemoved, FlowRemovedReason, FlowStats, Instruction, List, MacAddr, Match,
    Message, MultipartFlags, MultipartReply, MultipartReplyBody, MultipartRequestBody, PacketIn,
    PacketInReason, Port, PortNo, PortReason, PortState, PortStatus, Version, split_frame,
};

/// A message to a switch, recorded in the order over all switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToSwitch {
    Add { cookie: u64, out: Vec<PortNo> },
    Delete { cookie: u64 },
    Barrier,
    PacketOut { out: Vec<PortNo>, data: Vec<u8> },
    EchoReply { xid: u32 },
}

/// Returns the length of the complete messages at the front.
fn whole_messages(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Ok(Some((_, after))) = split_frame(rest) {
        rest = after;
    }
    bytes.len() - rest.len()
}

/// A fault of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It refuses an add.
    Refuse,
    /// It disconnects when it receives an add, before it has carried it out.
    LeaveBefore,
    /// It carries an add out and disconnects.
    LeaveAfter,
    /// It carries an add out and answers no barrier for a minute.
    FallSilent,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub cookie: u64,
    pub table_id: u8,
    pub priority: u16,
    pub match_: Match<'static>,
    pub out: Vec<PortNo>,
}

struct FakeSwitch {
    version: Version,
    ports: Vec<Port>,
    connection: Option<urtica_controller::ConnectionId>,
    table: Vec<Entry>,
    fault: Option<Fault>,
    refuses_deletes: bool,
    silent_until: Option<Duration>,
    /// The barriers that it has not answered yet.
    held: Vec<u32>,
}

pub struct Net {
    pub controller: Embedded,
    pub now: Duration,
    pub told: Vec<(u64, ToSwitch)>,
    /// Frames sent by ports without a link.
    pub delivered: Vec<(PortId, Vec<u8>)>,
    switches: BTreeMap<u64, FakeSwitch>,
    links: BTreeMap<PortId, PortId>,
}

pub fn port(switch: u64, port_no: u32) -> PortId {
    PortId::new(DatapathId(switch), PortNo(port_no))
}

impl Net {
    pub fn new(controller: Controller) -> Self {
        Self {
            controller: controller.embed().unwrap(),
            now: Duration::ZERO,
            told: Vec::new(),
            delivered: Vec::new(),
            switches: BTreeMap::new(),
            links: BTreeMap::new(),
        }
    }

    /// Adds a switch with ports 1 to `ports`, which is not connected yet.
    pub fn add_switch(&mut self, id: u64, version: Version, ports: u32) {
        let port = |number: u32| {
            let mac = MacAddr::from_u64(0x0600_0000_0000 + (id << 16) + u64::from(number));
            Port::new(PortNo(number), mac, &format!("s{id}-eth{number}"))
        };
        let switch = FakeSwitch {
            version,
            ports: (1..=ports).map(port).collect(),
            connection: None,
            table: Vec::new(),
            fault: None,
            refuses_deletes: false,
            silent_until: None,
            held: Vec::new(),
        };
        self.switches.insert(id, switch);
    }

    pub fn link(&mut self, a: PortId, b: PortId) -> DirectedLink {
        self.links.insert(a, b);
        self.links.insert(b, a);
        DirectedLink::new(a, b)
    }

    /// Returns a line of switches 1 to `length`, joined by ports 2 and 1, with hosts at port 3; all are connected.
    pub fn line(controller: Controller, version: Version, length: u64) -> Self {
        let mut net = Self::new(controller);
        for id in 1..=length {
            net.add_switch(id, version, 3);
        }
        for id in 1..length {
            net.link(port(id, 2), port(id + 1, 1));
        }
        for id in 1..=length {
            net.connect(id);
        }
        net
    }

    pub fn connect(&mut self, id: u64) {
        let connection = self.controller.connect(format!("s{id}"), self.now);
        let switch = self.switches.get_mut(&id).unwrap();
        switch.connection = Some(connection);
        let version = switch.version;
        self.send(id, 0, &[version.to_wire(), 0, 0, 8, 0, 0, 0, 0]);
        self.settle();
    }

    pub fn disconnect(&mut self, id: u64) {
        self.hang_up(id);
        self.settle();
    }

    fn hang_up(&mut self, id: u64) {
        let switch = self.switches.get_mut(&id).unwrap();
        if let Some(connection) = switch.connection.take() {
            self.controller.disconnect(connection, self.now);
        }
    }

    pub fn set_fault(&mut self, id: u64, fault: Fault) {
        self.switches.get_mut(&id).unwrap().fault = Some(fault);
    }

    /// Sets whether a switch refuses to delete entries one by one.
    pub fn refuse_deletes(&mut self, id: u64, refuses: bool) {
        self.switches.get_mut(&id).unwrap().refuses_deletes = refuses;
    }

    /// Makes a switch carry out messages without answering barriers from now on.
    pub fn silence(&mut self, id: u64) {
        self.switches.get_mut(&id).unwrap().silent_until = Some(Duration::MAX);
    }

    /// Lets a switch answer again, starting with the unanswered barriers.
    pub fn speak(&mut self, id: u64) {
        let switch = self.switches.get_mut(&id).unwrap();
        switch.silent_until = None;
        for xid in std::mem::take(&mut switch.held) {
            self.send_message(id, xid, &Message::BarrierReply);
        }
        self.settle();
    }

    /// Clears the switch's table, as a power cut does.
    pub fn clear_table(&mut self, id: u64) {
        self.switches.get_mut(&id).unwrap().table.clear();
    }

    pub fn install_foreign(&mut self, id: u64, entry: Entry) {
        self.switches.get_mut(&id).unwrap().table.push(entry);
    }

    /// Returns the entries other than those of the session and of discovery.
    pub fn table(&self, id: u64) -> Vec<Entry> {
        let table = self.switches[&id].table.iter();
        table.filter(|entry| entry.cookie != 0).cloned().collect()
    }

    /// Lets an entry time out.
    pub fn expire(&mut self, id: u64, cookie: u64) {
        let switch = self.switches.get_mut(&id).unwrap();
        let place = switch.table.iter().position(|entry| entry.cookie == cookie);
        let entry = switch.table.remove(place.unwrap());
        let removed = Message::FlowRemoved(FlowRemoved {
            cookie: of_a_program(cookie),
            priority: entry.priority,
            reason: FlowRemovedReason::IdleTimeout,
            table_id: entry.table_id,
            duration_sec: 1,
            duration_nsec: 0,
            idle_timeout: 1,
            hard_timeout: 0,
            packet_count: 0,
            byte_count: 0,
            match_: entry.match_,
        });
        self.send_message(id, 0, &removed);
        self.settle();
    }

    pub fn packet_in(&mut self, at: PortId, data: &[u8]) {
        self.send_packet_in(at, data);
        self.settle();
    }

    pub fn set_link(&mut self, at: PortId, is_up: bool) {
        let switch = self.switches.get_mut(&at.switch.0).unwrap();
        let port = switch
            .ports
            .iter_mut()
            .find(|port| port.port_no == at.port_no);
        let port = port.unwrap();
        port.state.set(PortState::LINK_DOWN, !is_up);
        let status = PortStatus {
            reason: PortReason::Modify,
            port: *port,
        };
        self.send_message(at.switch.0, 0, &Message::PortStatus(status));
        self.settle();
    }

    /// Advances the time.
    pub fn advance(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(next) = self.controller.next_timeout().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.settle();
        }
        self.now = end;
        self.settle();
    }

    /// Moves bytes until no more move.
    pub fn settle(&mut self) {
        loop {
            self.controller.poll(self.now);
            let mut is_quiet = true;
            for id in self.switches.keys().copied().collect::<Vec<_>>() {
                is_quiet &= !self.take_output(id);
            }
            if is_quiet {
                return;
            }
        }
    }

    fn take_output(&mut self, id: u64) -> bool {
        let Some(connection) = self.switches[&id].connection else {
            return false;
        };
        let Some(output) = self.controller.output(connection) else {
            return false;
        };
        let bytes: Vec<_> = output.drain(..whole_messages(output)).collect();
        let mut rest = &bytes[..];
        while let Ok(Some((frame, after))) = split_frame(rest) {
            rest = after;
            if self.switches[&id].connection == Some(connection) {
                let (header, message) = Message::decode(frame).unwrap();
                self.handle(id, header.xid, message);
            }
        }
        !bytes.is_empty()
    }

    fn handle(&mut self, id: u64, xid: u32, message: Message) {
        let version = self.switches[&id].version;
        match message {
            Message::FeaturesRequest => {
                let features = self.features(id);
                self.send_message(id, xid, &features);
            }
            Message::MultipartRequest(request) => match request.body {
                MultipartRequestBody::PortDesc => {
                    let ports = self.switches[&id].ports.clone();
                    self.reply(id, xid, MultipartReplyBody::PortDesc(ports.into()));
                }
                MultipartRequestBody::Flow(wanted) => {
                    let table = self.switches[&id].table.clone();
                    let fits = |entry: &&Entry| entry.cookie & wanted.cookie_mask == wanted.cookie;
                    let entries = table.iter().filter(fits).map(|entry| stats(version, entry));
                    self.reply(id, xid, MultipartReplyBody::Flow(entries.collect()));
                }
                other => panic!("no switch was expected to be asked {other:?}"),
            },
            Message::FlowMod(flow_mod) => self.handle_flow_mod(id, xid, &flow_mod),
            Message::BarrierRequest => {
                self.told.push((id, ToSwitch::Barrier));
                let switch = self.switches.get_mut(&id).unwrap();
                if switch.silent_until.is_some_and(|until| self.now < until) {
                    switch.held.push(xid);
                } else {
                    self.send_message(id, xid, &Message::BarrierReply);
                }
            }
            Message::PacketOut(packet_out) => {
                let out = outputs(packet_out.actions.iter());
                self.handle_packet_out(id, &out, packet_out.data);
            }
            Message::EchoReply(_) => self.told.push((id, ToSwitch::EchoReply { xid })),
            Message::EchoRequest(data) => self.send_message(id, xid, &Message::EchoReply(data)),
            _ => {}
        }
    }

    fn handle_flow_mod(&mut self, id: u64, xid: u32, flow_mod: &FlowMod) {
        let entry = to_entry(flow_mod);
        match flow_mod.command {
            FlowModCommand::Add => {
                if entry.cookie != 0 {
                    let (cookie, out) = (entry.cookie, entry.out.clone());
                    self.told.push((id, ToSwitch::Add { cookie, out }));
                }
                let fault = match entry.cookie {
                    0 => None,
                    _ => self.switches.get_mut(&id).unwrap().fault.take(),
                };
                match fault {
                    Some(Fault::Refuse) => {
                        let code = ErrorCode::FlowModFailedTableFull;
                        return self.send_message(id, xid, &error(code));
                    }
                    Some(Fault::LeaveBefore) => return self.hang_up(id),
                    Some(Fault::FallSilent) => {
                        let until = self.now + Duration::from_secs(60);
                        self.switches.get_mut(&id).unwrap().silent_until = Some(until);
                    }
                    _ => {}
                }
                let table = &mut self.switches.get_mut(&id).unwrap().table;
                table.retain(|other| !is_same(other, &entry));
                table.push(entry);
                if fault == Some(Fault::LeaveAfter) {
                    self.hang_up(id);
                }
            }
            FlowModCommand::DeleteStrict => {
                let cookie = entry.cookie;
                self.told.push((id, ToSwitch::Delete { cookie }));
                if self.switches[&id].refuses_deletes {
                    return self.send_message(id, xid, &error(ErrorCode::FlowModFailedEperm));
                }
                let mask = flow_mod.cookie_mask;
                let table = &mut self.switches.get_mut(&id).unwrap().table;
                table.retain(|other| {
                    !(is_same(other, &entry) && other.cookie & mask == cookie & mask)
                });
            }
            FlowModCommand::Delete => {
                let mask = flow_mod.cookie_mask;
                let table = &mut self.switches.get_mut(&id).unwrap().table;
                table.retain(|other| {
                    !(includes(&entry, other) && other.cookie & mask == entry.cookie & mask)
                });
            }
            other => panic!("no {other:?} was expected"),
        }
    }

    fn handle_packet_out(&mut self, id: u64, out: &[PortNo], data: &[u8]) {
        let is_lldp = data.get(12..14) == Some(&[0x88, 0xcc]);
        if !is_lldp {
            let (out, data) = (out.to_vec(), data.to_vec());
            self.told.push((id, ToSwitch::PacketOut { out, data }));
        }
        for &port_no in out {
            let from = PortId::new(DatapathId(id), port_no);
            match self.links.get(&from).copied() {
                Some(to) => self.send_packet_in(to, data),
                None if is_lldp => {}
                None => self.delivered.push((from, data.to_vec())),
            }
        }
    }

    fn send_packet_in(&mut self, at: PortId, data: &[u8]) {
        let packet_in = PacketIn {
            buffer_id: BufferId::NONE,
            total_len: data.len() as u16,
            reason: PacketInReason::NoMatch,
            table_id: 0,
            cookie: u64::MAX,
            in_port: at.port_no,
            match_: Match::any().in_port(at.port_no),
            data,
        };
        self.send_message(at.switch.0, 0, &Message::PacketIn(packet_in));
    }

    fn features(&self, id: u64) -> Message<'static> {
        let switch = &self.switches[&id];
        Message::FeaturesReply(Features {
            datapath_id: DatapathId(id),
            n_buffers: 0,
            n_tables: 1,
            auxiliary_id: 0,
            capabilities: Capabilities::empty(),
            actions: 0,
            ports: match switch.version {
                Version::Of10 => switch.ports.clone().into(),
                Version::Of13 => List::default(),
            },
        })
    }

    fn reply(&mut self, id: u64, xid: u32, body: MultipartReplyBody) {
        let flags = MultipartFlags::empty();
        let reply = Message::MultipartReply(MultipartReply { flags, body });
        self.send_message(id, xid, &reply);
    }

    pub fn send_message(&mut self, id: u64, xid: u32, message: &Message) {
        let mut bytes = Vec::new();
        let version = self.switches[&id].version;
        message.encode(version, xid, &mut bytes).unwrap();
        self.send(id, xid, &bytes);
    }

    fn send(&mut self, id: u64, _xid: u32, bytes: &[u8]) {
        if let Some(connection) = self.switches[&id].connection {
            self.controller
                .handle_input(connection, bytes, self.now)
                .expect("the connection lives");
        }
    }

    /// Returns the switches that have an entry with a cookie.
    pub fn switches_with(&self, cookie: u64) -> BTreeSet<u64> {
        let has = |id: &u64| self.table(*id).iter().any(|entry| entry.cookie == cookie);
        self.switches.keys().copied().filter(has).collect()
    }
}

fn error(code: ErrorCode) -> Message<'static> {
    Message::Error(ErrorMessage { code, data: &[] })
}

fn outputs<'a>(actions: impl Iterator<Item = Action<'a>>) -> Vec<PortNo> {
    let port = |action| match action {
        Action::Output { port, .. } => Some(port),
        _ => None,
    };
    actions.filter_map(port).collect()
}

fn to_entry(flow_mod: &FlowMod) -> Entry {
    let fields: Vec<_> = flow_mod
        .match_
        .fields()
        .map(|field| match field {
            urtica_wire::Field::Basic { field, value, mask } => {
                urtica_wire::Field::masked(field, value, mask)
            }
            urtica_wire::Field::Raw(_) => panic!("no raw fields are expected"),
        })
        .collect();
    let out = flow_mod
        .instructions
        .iter()
        .flat_map(|instruction| match instruction {
            Instruction::ApplyActions(actions) => outputs(actions.iter()),
            _ => Vec::new(),
        });
    Entry {
        cookie: flow_mod.cookie & OWN_COOKIE_BITS,
        table_id: flow_mod.table_id,
        priority: flow_mod.priority,
        match_: Match::from(fields),
        out: out.collect(),
    }
}

fn is_same(a: &Entry, b: &Entry) -> bool {
    (a.priority, &a.match_) == (b.priority, &b.match_)
}

/// Returns the cookie as the switch reports it: with the number of the program that installed the entry, which the
/// table omits.
fn of_a_program(cookie: u64) -> u64 {
    cookie | 1 << 56
}

/// Returns whether `other` has all fields of `wide`.
fn includes(wide: &Entry, other: &Entry) -> bool {
    let is_there = |field| other.match_.fields().any(|there| there == field);
    wide.match_.fields().all(is_there)
}

fn stats(_version: Version, entry: &Entry) -> FlowStats<'static> {
    let actions: Vec<_> = entry.out.iter().copied().map(Action::output).collect();
    FlowStats {
        table_id: entry.table_id,
        duration_sec: 0,
        duration_nsec: 0,
        priority: entry.priority,
        idle_timeout: 0,
        hard_timeout: 0,
        flags: Default::default(),
        cookie: of_a_program(entry.cookie),
        packet_count: 0,
        byte_count: 0,
        match_: entry.match_.clone(),
        instructions: vec![Instruction::apply(actions)].into(),
    }
}
