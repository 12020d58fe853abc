//! Connections that outlive their controller, as handlers and switches see them.

use crate::support::*;
use socket2::Socket;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use urtica_controller::hold::{Held, Holder};
use urtica_controller::{
    Address, Controller, NetworkEvent, Program, Role, Running, SessionConfig, SwitchInfo,
};
use urtica_wire::{
    ControllerRole, DatapathId, EntryOptions, Experimenter, Features, Match, Message,
    Role as WireRole, Version,
};

const LONG: Duration = Duration::from_secs(600);

/// A holder on a thread instead of in a process.
struct Room {
    folder: tempfile::TempDir,
    holder: JoinHandle<std::io::Result<usize>>,
}

impl Room {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let holder = Holder::bind(&folder.path().join("hold.sock")).unwrap();
        Self {
            folder,
            holder: thread::spawn(move || holder.run()),
        }
    }

    fn attach(&self) -> Held {
        urtica_controller::hold::attach(&self.folder.path().join("hold.sock"), LONG).unwrap()
    }

    fn controller(&self) -> Controller {
        controller(2).hold(self.attach())
    }

    fn start(&self, program: impl Program + 'static) -> Running {
        self.controller().program(program).start().unwrap()
    }

    fn unix_socket(&self) -> PathBuf {
        self.folder.path().join("of.sock")
    }

    /// Waits for the holder to end.
    fn end(self) {
        self.holder.join().unwrap().unwrap();
    }
}

fn recording(room: &Room) -> (Running, Record) {
    let ([recorder], record) = recorders(["p"]);
    let program = move |_: &SwitchInfo| recorder.clone();
    (room.start(program), record)
}

/// Receives a resumed session's request for ports, and answers with ports 1 and 2.
fn describe_ports_again(switch: &mut FakeSwitch) {
    let request = switch.receive();
    match switch.version {
        Version::Of10 => {
            assert_eq!(request.message(), Message::FeaturesRequest);
            switch.send(request.header().xid, &features(Version::Of10, 1));
        }
        Version::Of13 => {
            assert!(matches!(request.message(), Message::MultipartRequest(_)));
            let ports = port_desc(urtica_wire::MultipartFlags::empty(), &[1, 2]);
            switch.send(request.header().xid, &ports);
        }
    }
}

#[test]
fn handovers_create_new_handlers_and_send_one_request() {
    for (version, ports) in [(Version::Of10, 3), (Version::Of13, 2)] {
        let room = Room::new();
        let (first, record) = recording(&room);
        let addresses = first.addresses().to_vec();
        let mut switch = FakeSwitch::join(&first, version, 1);
        assert_eq!(record.next(), "p: up, 3 ports");
        first.leave().unwrap();
        assert_eq!(record.next(), "p: down 0000000000000001");
        // Sent while no program runs.
        switch.send(0, &Message::PacketIn(packet_in(&UDP)));

        let (second, record) = recording(&room);
        assert_eq!(second.addresses(), addresses);
        assert_eq!(record.next(), "p: packet of 46 from 1");
        assert_eq!(second.network().switches(), [DatapathId(1)]);
        assert!(record.is_empty(), "its ports are not known yet");
        describe_ports_again(&mut switch);
        assert_eq!(record.next(), format!("p: up, {ports} ports"));
        switch.assert_served();
        // Other switches connect to the same address.
        let mut other = FakeSwitch::join(&second, version, 2);
        assert_eq!(record.next(), "p: up, 3 ports");
        other.assert_served();
        second.stop().unwrap();
        assert!(switch.try_receive().is_none());
        room.end();
    }
}

#[test]
fn xids_continue_after_a_handover() {
    let room = Room::new();
    let first = room.start(|_: &SwitchInfo| Hub);
    let mut switch = FakeSwitch::join(&first, Version::Of13, 1);
    switch.send(0, &Message::PacketIn(packet_in(&UDP)));
    let last = switch.receive().header().xid & 0x00ff_ffff;
    first.leave().unwrap();
    let second = room.start(|_: &SwitchInfo| Hub);
    let next = switch.receive().header().xid & 0x00ff_ffff;
    assert_eq!(next, last + 1);
    second.stop().unwrap();
}

/// A handshake that the end of its program interrupts continues, at any step.
#[test]
fn handshakes_continue_with_the_next_program() {
    let room = Room::new();
    let start = || room.start(|_: &SwitchInfo| Hub);
    let first = start();
    let version = Version::Of13;
    let mut silent = FakeSwitch::over(connect(&first), version);
    assert!(matches!(silent.receive().message(), Message::Hello(_)));
    let mut half = FakeSwitch::over(connect(&first), version);
    half.send_bytes(&[version.to_wire(), 0, 0, 8, 0, 0, 0, 0]);
    assert!(matches!(half.receive().message(), Message::Hello(_)));
    let request = half.receive();
    assert_eq!(request.message(), Message::FeaturesRequest);
    first.leave().unwrap();

    let second = start();
    silent.send_bytes(&[version.to_wire(), 0, 0, 8, 0, 0, 0, 0]);
    let asked = silent.receive();
    assert_eq!(
        asked.message(),
        Message::FeaturesRequest,
        "its hello was said"
    );
    silent.send(asked.header().xid, &features(version, 1));
    half.send(request.header().xid, &features(version, 2));
    let both = [DatapathId(1), DatapathId(2)];
    eventually("both have joined", || second.network().switches() == both);
    second.stop().unwrap();
}

/// The start of a message stays in the socket's queue, which is not read repeatedly.
#[test]
fn partial_messages_cause_no_busy_reading() {
    let room = Room::new();
    let running = room.start(|_: &SwitchInfo| Hub);
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    let packet = encode(Version::Of10, 0, &Message::PacketIn(packet_in(&UDP)));
    let reads = || {
        running
            .network()
            .shard_counters()
            .map(|shard| shard.reads.get())
            .sum::<u64>()
    };
    for cut in [1, 20] {
        let before = reads();
        switch.send_bytes(&packet[..cut]);
        eventually("the beginning is looked at", || reads() > before);
        thread::sleep(Duration::from_millis(100));
        assert!(reads() < before + 20, "{} reads", reads() - before);
        switch.send_bytes(&packet[cut..]);
        assert!(matches!(switch.receive().message(), Message::PacketOut(_)));
    }
    // The rest of the message never arrives.
    switch.send_bytes(&packet[..20]);
    switch.socket.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(switch.try_receive().is_none());
    running.stop().unwrap();
}

/// The longest message fits into a socket's queue, even if it arrives byte by byte.
#[test]
fn longest_messages_may_arrive_in_small_pieces() {
    let room = Room::new();
    let program = |_: &SwitchInfo| Hub;
    let running = room.start(program);
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    switch.socket.set_tcp_nodelay(true).unwrap();
    let question = encode(Version::Of10, 9, &Message::EchoRequest(&[7; 65_000]));
    for piece in question.chunks(13) {
        switch.send_bytes(piece);
    }
    let answer = switch.receive();
    assert_eq!(answer.message(), Message::EchoReply(&[7; 65_000]));
    running.stop().unwrap();
}

#[test]
fn next_controllers_send_the_queue_of_slow_switches() {
    const COUNT: u32 = 200;
    let room = Room::new();
    let first = room.start(|_: &SwitchInfo| Quiet);
    let mut switch = FakeSwitch::join(&first, Version::Of10, 1);
    let network = first.network().clone();
    let mut accepted = 0;
    for number in 0..COUNT {
        let message = Message::Experimenter(Experimenter {
            experimenter: number,
            data: &[0; 60_000],
        });
        // Messages beyond the backlog's limit are refused.
        accepted += u32::from(network.send(DatapathId(1), &message).is_ok());
    }
    // Messages sent before a request are in the switch's connection.
    let counters = network.counters(DatapathId(1)).unwrap();
    eventually("the shard has them", || {
        counters.sent.get() >= u64::from(accepted)
    });
    first.leave().unwrap();
    let second = room.start(|_: &SwitchInfo| Quiet);
    let mut received = 0;
    while received < accepted {
        match switch.receive().message() {
            Message::Experimenter(_) => received += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(switch.receive().message(), Message::FeaturesRequest);
    second.stop().unwrap();
}

/// Background programs see switches that were taken over come up, like other switches.
#[test]
fn taken_over_switches_join() {
    let room = Room::new();
    let first = room.start(|_: &SwitchInfo| Quiet);
    let mut switch = FakeSwitch::join(&first, Version::Of10, 1);
    first.leave().unwrap();
    let program = Beside(|background: &urtica_controller::Background| {
        let (network, mut events) = (background.network().clone(), background.network().events());
        background.spawn("installer", async move {
            while let Some(event) = events.next().await {
                if let NetworkEvent::Up(info) = event {
                    let drop_all = (Match::any(), &[], EntryOptions::PERMANENT);
                    network
                        .install(info.datapath_id, drop_all.0, drop_all.1, drop_all.2)
                        .unwrap();
                }
            }
        });
    });
    let second = room.start(program);
    describe_ports_again(&mut switch);
    assert!(matches!(switch.receive().message(), Message::FlowMod(_)));
    second.stop().unwrap();
}

/// Returns the role of the next 1.3 role request, and answers it with `role`.
fn give_role(switch: &mut FakeSwitch, role: ControllerRole) -> ControllerRole {
    let request = switch.receive();
    let Message::RoleRequest(asked) = request.message() else {
        panic!("{request:?}");
    };
    let generation_id = asked.generation_id;
    let given = WireRole {
        role,
        generation_id,
    };
    switch.send(request.header().xid, &Message::RoleReply(given));
    asked.role
}

#[test]
fn kept_roles_and_other_wanted_roles_are_handed_over() {
    let room = Room::new();
    let start = |role| {
        let controller = room.controller().role(role);
        controller.program(|_: &SwitchInfo| Hub).start().unwrap()
    };
    let role_of = |running: &Running| {
        let info = running.network().info(DatapathId(1));
        info.map(|info| info.role)
    };
    let first = start(Role::Primary);
    let mut switch = FakeSwitch::start(connect_to(&first.addresses()[0]), Version::Of13, 1);
    for asked in [ControllerRole::NoChange, ControllerRole::Master] {
        assert_eq!(give_role(&mut switch, ControllerRole::Master), asked);
    }
    switch.describe_ports(&[1, 2]);
    eventually("it has joined", || role_of(&first) == Some(Role::Primary));
    switch.assert_served();
    first.leave().unwrap();

    // An unchanged role is kept without a request, so that packet-ins are answered at once.
    let second = start(Role::Primary);
    switch.send(0, &Message::PacketIn(packet_in(&UDP)));
    describe_ports_again(&mut switch);
    assert!(matches!(switch.receive().message(), Message::PacketOut(_)));
    assert_eq!(role_of(&second), Some(Role::Primary));
    switch.assert_served();
    second.leave().unwrap();

    let third = start(Role::Secondary);
    describe_ports_again(&mut switch);
    for asked in [ControllerRole::NoChange, ControllerRole::Slave] {
        assert_eq!(give_role(&mut switch, ControllerRole::Slave), asked);
    }
    eventually("it is a secondary", || {
        role_of(&third) == Some(Role::Secondary)
    });
    third.stop().unwrap();
}

#[test]
fn auxiliary_connections_must_be_reopened() {
    let room = Room::new();
    let first = room.start(|_: &SwitchInfo| Hub);
    let mut switch = FakeSwitch::join(&first, Version::Of13, 1);
    let mut auxiliary = FakeSwitch::over(connect_to(&first.addresses()[0]), Version::Of13);
    let Message::FeaturesReply(features) = features(Version::Of13, 1) else {
        panic!("expected features");
    };
    let features = Message::FeaturesReply(Features {
        auxiliary_id: 1,
        ..features
    });
    auxiliary.send_bytes(&[4, 0, 0, 8, 0, 0, 0, 0]);
    auxiliary.send(2, &features);
    auxiliary.send(0, &Message::PacketIn(packet_in(&UDP)));
    // Hello, features request, configuration, ports, table-miss entry.
    for _ in 0..5 {
        auxiliary.receive();
    }
    assert!(matches!(
        auxiliary.receive().message(),
        Message::PacketOut(_)
    ));
    auxiliary.assert_served();
    first.leave().unwrap();
    let second = room.start(|_: &SwitchInfo| Hub);
    assert!(auxiliary.try_receive().is_none());
    describe_ports_again(&mut switch);
    switch.assert_served();
    second.stop().unwrap();
}

#[test]
fn disabled_versions_end_their_connections() {
    let room = Room::new();
    let first = room.start(|_: &SwitchInfo| Hub);
    let mut switch = FakeSwitch::join(&first, Version::Of13, 1);
    first.leave().unwrap();
    let mut session = SessionConfig::default();
    session.versions = vec![Version::Of10];
    let second = room
        .controller()
        .session(session)
        .program(|_: &SwitchInfo| Hub);
    let second = second.start().unwrap();
    assert!(switch.try_receive().is_none());
    FakeSwitch::join(&second, Version::Of10, 1).assert_served();
    second.stop().unwrap();
    room.end();
}

#[test]
fn connections_over_unix_sockets_end_and_their_listener_stays() {
    let room = Room::new();
    let address = Address::PassiveUnix(room.unix_socket());
    let start = || {
        let controller = Controller::new()
            .listen(address.clone())
            .shards(1)
            .pin(false);
        controller
            .hold(room.attach())
            .program(|_: &SwitchInfo| Hub)
            .start()
            .unwrap()
    };
    let connect = |running: &Running| -> Socket { connect_to(&running.addresses()[0]) };
    let first = start();
    let mut switch = FakeSwitch::start(connect(&first), Version::Of10, 1);
    first.leave().unwrap();
    assert!(switch.try_receive().is_none());
    // It is accepted once a program accepts connections.
    let waiting = connect_to(&address);
    let second = start();
    FakeSwitch::start(waiting, Version::Of10, 1).assert_served();
    second.stop().unwrap();
    assert!(!room.unix_socket().exists());
    room.end();
}

#[test]
fn unused_listeners_are_closed() {
    let room = Room::new();
    let first = room.start(|_: &SwitchInfo| Hub);
    let address = first.addresses()[0].clone();
    first.leave().unwrap();
    let elsewhere = Address::PassiveUnix(room.unix_socket());
    let second = Controller::new()
        .listen(elsewhere)
        .shards(1)
        .pin(false)
        .hold(room.attach());
    let second = second.program(|_: &SwitchInfo| Hub).start().unwrap();
    eventually("the first place is free", || {
        let again = Controller::new()
            .listen(address.clone())
            .shards(1)
            .pin(false);
        again.program(|_: &SwitchInfo| Hub).start().is_ok()
    });
    second.stop().unwrap();
}

#[test]
fn controllers_release_switches_when_another_attaches() {
    let room = Room::new();
    let first = room.start(|_: &SwitchInfo| Hub);
    let (sender, told) = std::sync::mpsc::channel();
    first.on_failure(move || sender.send(()).unwrap());
    let mut switch = FakeSwitch::join(&first, Version::Of10, 1);
    let second = room.start(|_: &SwitchInfo| Hub);
    told.recv_timeout(DEADLINE).unwrap();
    assert!(first.failure().is_none());
    first.stop().unwrap();
    describe_ports_again(&mut switch);
    switch.assert_served();
    second.stop().unwrap();
}
