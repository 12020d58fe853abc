//! Roles: which of several controllers may write to a switch, and how programs learn of a change.

use crate::in_memory::*;
use crate::support::*;
use urtica_controller::{
    ConnectionId, Controller, EntryOptions, Events, NetworkEvent, RequestError, Role, RoleRequest,
    Switch, SwitchHandler, SwitchInfo,
};
use urtica_wire::{
    ControllerRole, DatapathId, EncodeError, ErrorCode, ErrorMessage, Match, Message,
    MultipartFlags, NiciraMessage, PacketIn, PortNo, Role as WireRole, Version,
};

const ONE: DatapathId = DatapathId(1);

/// Installs an entry when the switch is up, floods packets, and records roles.
struct Installer(Recorder);

impl SwitchHandler for Installer {
    fn switch_up(&mut self, switch: &mut Switch) {
        let installed = switch.install(Match::any(), PortNo(2), EntryOptions::PERMANENT);
        self.0.tell(format_args!("up, {}", installed.is_ok()));
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let installed = switch.install(Match::any(), PortNo(2), EntryOptions::PERMANENT);
        let is_secondary = installed == Err(EncodeError::Secondary);
        self.0.tell(format_args!("packet, refused {is_secondary}"));
        switch.forward(packet, PortNo::FLOOD);
        switch.send(&Message::BarrierRequest).unwrap();
    }

    fn role_changed(&mut self, switch: &mut Switch) {
        self.0.tell(format_args!("role {}", switch.info().role));
    }
}

/// A controller that wants this role, with one switch that has sent its hello and features.
struct Lab {
    bench: Bench,
    record: Record,
    version: Version,
    switch: ConnectionId,
    ports_xid: Option<u32>,
}

impl Lab {
    fn new(role: Role, version: Version) -> Self {
        let ([recorder], record) = recorders(["app"]);
        let controller = Controller::new()
            .role(role)
            .program(move |_: &SwitchInfo| Installer(recorder.clone()));
        let mut bench = Bench::new(controller);
        let switch = bench.connect();
        let mut lab = Self {
            bench,
            record,
            version,
            switch,
            ports_xid: None,
        };
        lab.introduce();
        lab
    }

    fn introduce(&mut self) {
        let hello = [self.version.to_wire(), 0, 0, 8, 0, 0, 0, 0];
        self.bench.input(self.switch, &hello);
        self.note_question();
        let features = encode(self.version, 2, &features(self.version, 1));
        self.bench.input(self.switch, &features);
    }

    /// Returns a lab whose switch is up with the role.
    fn up(role: Role, version: Version) -> Self {
        let mut lab = Self::new(role, version);
        if role != Role::Equal {
            lab.give_role(role);
            lab.note_question();
        }
        lab.describe_ports();
        if role == Role::Equal {
            // The flow mod of `switch_up`.
            assert_eq!(lab.take_types(), [FLOW_MOD]);
        }
        lab
    }

    fn reply(&mut self, xid: u32, role: Role, generation_id: u64) {
        let role = match role {
            Role::Equal => ControllerRole::Equal,
            Role::Primary => ControllerRole::Master,
            Role::Secondary => ControllerRole::Slave,
        };
        let mut reply = Vec::new();
        match self.version {
            Version::Of10 => NiciraMessage::RoleReply(role)
                .write(self.version, xid, &mut reply)
                .unwrap(),
            Version::Of13 => {
                let given = WireRole {
                    role,
                    generation_id,
                };
                reply = encode(self.version, xid, &Message::RoleReply(given));
            }
        }
        self.bench.input(self.switch, &reply);
    }

    /// Answers the pending role requests, which must be the only messages sent, with this role.
    fn give_role(&mut self, role: Role) {
        let questions = if self.version == Version::Of13 && role != Role::Equal {
            2
        } else {
            1
        };
        for _ in 0..questions {
            let sent = self.bench.take(self.switch);
            let [question] = &sent[..] else {
                panic!("expected one question, not {sent:?}");
            };
            let xid = question.header().xid;
            self.reply(xid, role, 5);
        }
    }

    /// Removes the output, and notes the xid of the port description request in it.
    fn note_question(&mut self) {
        let sent = self.bench.take(self.switch);
        let question = sent
            .iter()
            .find(|frame| matches!(frame.message(), Message::MultipartRequest(_)));
        self.ports_xid = question.map(|frame| frame.header().xid);
    }

    fn describe_ports(&mut self) {
        if let Some(xid) = self.ports_xid {
            let described = port_desc(MultipartFlags::empty(), &[1, 2, 3]);
            self.bench
                .input(self.switch, &encode(Version::Of13, xid, &described));
        }
        self.bench.poll();
    }

    /// Refuses a message because another controller has become the primary.
    fn lose(&mut self) {
        let mut error = Vec::new();
        ErrorMessage::write_is_slave(self.version, 0x0100_0099, &[], &mut error).unwrap();
        self.bench.input(self.switch, &error);
    }

    /// Returns the types of the messages sent since the last call.
    fn take_types(&mut self) -> Vec<u8> {
        let sent = self.bench.take(self.switch);
        let types = sent.iter().map(|frame| frame.header().message_type);
        types.collect()
    }

    fn install(&self) -> Result<(), RequestError> {
        let network = self.bench.controller.network();
        network.install(ONE, Match::any(), PortNo(1), EntryOptions::PERMANENT)
    }

    fn withheld(&self) -> u64 {
        let counters = self.bench.controller.network().counters(ONE).unwrap();
        counters.withheld.get()
    }
}

const FLOW_MOD: u8 = 14;
const VENDOR: u8 = 4;

/// Returns the next event about a role.
fn next_role(events: &mut Events<NetworkEvent>) -> Option<Role> {
    loop {
        match events.try_next()? {
            NetworkEvent::Role(info) => return Some(info.role),
            _ => continue,
        }
    }
}

#[test]
fn a_switch_joins_with_its_role() {
    for version in Version::ALL {
        let mut lab = Lab::new(Role::Primary, version);
        assert!(!lab.bench.is_connected(1), "its role is not known");
        lab.bench.packet_in(lab.switch, version);
        lab.give_role(Role::Primary);
        assert!(lab.bench.is_connected(1));
        lab.note_question();
        lab.describe_ports();
        assert_eq!(lab.record.next(), "app: up, true");
        let info = lab.bench.controller.network().info(ONE).unwrap();
        assert_eq!(info.role, Role::Primary);
        lab.bench.packet_in(lab.switch, version);
        assert_eq!(lab.record.next(), "app: packet, refused false");
        assert!(
            lab.record.is_empty(),
            "the packet before the role is not seen"
        );
    }
}

#[test]
fn secondaries_read_and_do_not_write() {
    for version in Version::ALL {
        let mut lab = Lab::up(Role::Secondary, version);
        assert!(lab.record.is_empty(), "programs do not start on it");
        assert_eq!(lab.take_types(), [0; 0]);
        assert_eq!(lab.install(), Err(RequestError::Secondary(ONE)));
        lab.bench.packet_in(lab.switch, version);
        assert_eq!(lab.record.next(), "app: packet, refused true");
        let barrier = match version {
            Version::Of10 => 18,
            Version::Of13 => 20,
        };
        assert_eq!(lab.take_types(), [barrier], "only what it may send");
        assert_eq!(lab.withheld(), 2);
        let network = lab.bench.controller.network().clone();
        let asked = network.barrier(ONE);
        assert!(asked.is_ok(), "it may ask");
        let counters = network.counters(ONE).unwrap();
        assert_eq!((counters.packet_ins.get(), counters.sent.get()), (1, 1));
    }
}

#[test]
fn lost_and_regained_roles_are_reported() {
    for version in Version::ALL {
        let mut lab = Lab::up(Role::Primary, version);
        let mut events = lab.bench.controller.network().events();
        assert_eq!(lab.record.next(), "app: up, true");
        lab.install().unwrap();
        lab.bench.poll();
        lab.take_types();
        lab.lose();
        assert_eq!(next_role(&mut events), Some(Role::Secondary));
        assert_eq!(lab.record.next(), "app: role secondary");
        let refused = lab.install().unwrap_err();
        assert_eq!(refused, RequestError::Secondary(ONE));
        assert!(refused.to_string().contains("0000000000000001"));
        let network = lab.bench.controller.network().clone();
        let reply = network.set_role(ONE, Role::Primary).unwrap();
        lab.bench.poll();
        lab.give_role(Role::Primary);
        block_on(reply).unwrap();
        assert_eq!(next_role(&mut events), Some(Role::Primary));
        assert_eq!(lab.record.next(), "app: role primary");
        assert_eq!(lab.record.next(), "app: up, true");
        lab.bench.poll();
        assert!(lab.take_types().contains(&FLOW_MOD));
        lab.install().unwrap();
        let counters = network.counters(ONE).unwrap();
        assert_eq!(counters.role_changes.get(), 2);
    }
}

#[test]
fn reconnected_switches_get_the_role_request_again() {
    let mut lab = Lab::up(Role::Equal, Version::Of10);
    let network = lab.bench.controller.network().clone();
    let reply = network.set_role(ONE, Role::Secondary).unwrap();
    lab.bench.poll();
    lab.give_role(Role::Secondary);
    block_on(reply).unwrap();
    lab.bench.controller.disconnect(lab.switch, lab.bench.now);
    lab.switch = lab.bench.connect();
    lab.introduce();
    assert!(!lab.bench.is_connected(1));
    lab.give_role(Role::Secondary);
    assert_eq!(network.info(ONE).unwrap().role, Role::Secondary);
}

#[test]
fn roles_can_be_requested_before_the_switch_connects() {
    let mut lab = Lab::new(Role::Equal, Version::Of13);
    let network = lab.bench.controller.network().clone();
    assert_eq!(network.switches(), [ONE]);
    let two = DatapathId(2);
    let unknown = network.set_role(two, Role::Secondary).err();
    assert_eq!(unknown, Some(RequestError::UnknownSwitch(two)));
    lab.bench.take(lab.switch);
    lab.switch = lab.bench.connect();
    lab.bench.input(lab.switch, &[4, 0, 0, 8, 0, 0, 0, 0]);
    assert!(!lab.take_types().contains(&FLOW_MOD), "not before the role");
    let features = encode(Version::Of13, 2, &features(Version::Of13, 2));
    lab.bench.input(lab.switch, &features);
    lab.give_role(Role::Secondary);
    assert_eq!(network.info(two).unwrap().role, Role::Secondary);
}

#[test]
fn all_switches_change_at_once() {
    let mut lab = Lab::up(Role::Equal, Version::Of10);
    let network = lab.bench.controller.network().clone();
    let replies = network.set_role_of_all(Role::Primary).unwrap();
    let [(id, _)] = &replies[..] else {
        panic!("expected one switch");
    };
    assert_eq!(*id, ONE);
    lab.bench.poll();
    lab.take_types();
    lab.switch = lab.bench.connect();
    lab.bench.input(lab.switch, &[1, 0, 0, 8, 0, 0, 0, 0]);
    lab.bench.take(lab.switch);
    lab.bench.input(
        lab.switch,
        &encode(Version::Of10, 2, &features(Version::Of10, 7)),
    );
    lab.give_role(Role::Primary);
    let info = network.info(DatapathId(7)).unwrap();
    assert_eq!(info.role, Role::Primary);
}

#[test]
fn stale_elections_and_refusals_are_returned_to_the_caller() {
    let mut lab = Lab::up(Role::Equal, Version::Of13);
    let network = lab.bench.controller.network().clone();
    let request = RoleRequest {
        role: Role::Primary,
        generation_id: Some(3),
    };
    let refused = |lab: &mut Lab, code| {
        let reply = network.set_role(ONE, request).unwrap();
        lab.bench.poll();
        let sent = lab.bench.take(lab.switch);
        let [asked] = &sent[..] else {
            panic!("expected one request, not {sent:?}");
        };
        let expected = WireRole {
            role: ControllerRole::Master,
            generation_id: 3,
        };
        assert_eq!(asked.message(), Message::RoleRequest(expected));
        let refusal = encode(Version::Of13, asked.header().xid, &error(code));
        lab.bench.input(lab.switch, &refusal);
        block_on(reply).unwrap_err()
    };
    for code in [
        ErrorCode::RoleRequestFailedStale,
        ErrorCode::RoleRequestFailedUnsup,
    ] {
        assert_eq!(refused(&mut lab, code), RequestError::Refused(code));
    }
    lab.install().unwrap();
}

#[test]
fn requests_for_roles_are_answered_in_order() {
    let mut lab = Lab::up(Role::Secondary, Version::Of10);
    let network = lab.bench.controller.network().clone();
    let roles = [Role::Equal, Role::Secondary, Role::Primary];
    let replies = roles.map(|role| network.set_role(ONE, role).unwrap());
    lab.bench.poll();
    for (role, reply) in roles.into_iter().zip(replies) {
        let sent = lab.bench.take(lab.switch);
        let mut vendor = sent
            .iter()
            .filter(|frame| frame.header().message_type == VENDOR);
        let question = vendor.next().expect("a question");
        assert!(vendor.next().is_none(), "one question at a time");
        lab.reply(question.header().xid, role, 0);
        block_on(reply).unwrap();
        assert_eq!(network.info(ONE).unwrap().role, role);
    }
}

#[test]
fn disconnections_end_role_requests() {
    let mut lab = Lab::up(Role::Equal, Version::Of13);
    let network = lab.bench.controller.network().clone();
    let reply = network.set_role(ONE, Role::Primary).unwrap();
    lab.bench.poll();
    lab.bench.controller.disconnect(lab.switch, lab.bench.now);
    assert_eq!(block_on(reply).unwrap_err(), RequestError::Disconnected);
}

#[test]
fn transactions_cannot_request_roles() {
    let lab = Lab::up(Role::Equal, Version::Of13);
    let network = lab.bench.controller.network();
    let asked = urtica_state::atomically(|_| Ok(network.set_role(ONE, Role::Primary).err()));
    assert_eq!(asked, Some(RequestError::InTransaction));
}

#[test]
fn roles_over_sockets() {
    let running = controller(2)
        .role(Role::Secondary)
        .program(|_: &SwitchInfo| Hub)
        .start()
        .unwrap();
    let mut switch = FakeSwitch::start(connect(&running), Version::Of10, 1);
    let answer = |switch: &mut FakeSwitch, role| {
        let asked = switch.receive();
        let mut reply = Vec::new();
        NiciraMessage::RoleReply(role)
            .write(Version::Of10, asked.header().xid, &mut reply)
            .unwrap();
        switch.send_bytes(&reply);
    };
    answer(&mut switch, ControllerRole::Slave);
    let network = running.network();
    eventually("it has joined", || network.info(ONE).is_some());
    switch.send(0, &Message::PacketIn(packet_in(&UDP)));
    switch.assert_served();
    let reply = network.set_role(ONE, Role::Primary).unwrap();
    answer(&mut switch, ControllerRole::Master);
    reply.wait(DEADLINE).unwrap();
    switch.send(0, &Message::PacketIn(packet_in(&UDP)));
    assert!(matches!(switch.receive().message(), Message::PacketOut(_)));
    running.stop().unwrap();
}
