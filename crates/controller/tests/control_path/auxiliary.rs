//! Auxiliary connections: further connections of a switch, on which it sends packet-ins and gets their replies.

use crate::in_memory::*;
use crate::support::*;
use std::time::Duration;
use urtica_controller::{
    ConnectionId, Controller, NetworkEvent, Role, Running, Switch, SwitchHandler, SwitchInfo,
};
use urtica_wire::{
    DatapathId, ErrorMessage, Features, Message, PacketIn, PortNo, PortReason, PortStatus, Version,
};

const ONE: DatapathId = DatapathId(1);

/// Sends the nth packet since the switch joined out of port n. A separate handler for each connection would restart at 1.
struct Numbering(u32);

impl SwitchHandler for Numbering {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        self.0 += 1;
        switch.forward(packet, PortNo(self.0));
    }
}

/// Panics when it handles a packet.
struct Broken;

impl SwitchHandler for Broken {
    fn packet_in(&mut self, _: &mut Switch, _: &PacketIn) {
        panic!("a test");
    }
}

fn auxiliary_features(switch: u64, id: u8) -> Vec<u8> {
    let Message::FeaturesReply(features) = features(Version::Of13, switch) else {
        panic!("expected features");
    };
    let features = Message::FeaturesReply(Features {
        auxiliary_id: id,
        ..features
    });
    encode(Version::Of13, 2, &features)
}

/// Returns the hello and features reply of an auxiliary connection.
fn said(switch: u64, id: u8) -> Vec<u8> {
    let hello = vec![4, 0, 0, 8, 0, 0, 0, 0];
    [hello, auxiliary_features(switch, id)].concat()
}

fn packet() -> Vec<u8> {
    encode(Version::Of13, 0, &Message::PacketIn(packet_in(&UDP)))
}

/// Returns the number in the only answer, which must be a packet-out.
fn number_in(answers: &[Frame]) -> u32 {
    let [answer] = answers else {
        panic!("expected one answer, not {answers:?}");
    };
    let Message::PacketOut(packet_out) = answer.message() else {
        panic!("{answer:?}");
    };
    let action = packet_out.actions.iter().next().unwrap();
    let urtica_wire::Action::Output { port, .. } = action else {
        panic!("{action:?}");
    };
    port.0
}

fn numbering() -> Bench {
    Bench::new(Controller::new().program(|_: &SwitchInfo| Numbering(0)))
}

impl Bench {
    /// Opens an auxiliary connection, which joins; its output so far is discarded.
    fn join_auxiliary(&mut self, switch: u64, id: u8) -> ConnectionId {
        let connection = self.connect();
        self.input(connection, &said(switch, id));
        self.poll();
        self.take(connection);
        connection
    }

    fn ask(&mut self, connection: ConnectionId) -> u32 {
        self.input(connection, &packet());
        let answers = self.take(connection);
        number_in(&answers)
    }

    /// Returns the reason why a connection ends when it handles these bytes.
    fn refusal(&mut self, bytes: &[u8]) -> String {
        let connection = self.connect();
        let ended = self.controller.handle_input(connection, bytes, self.now);
        ended.expect_err("it is refused").to_string()
    }
}

#[test]
fn replies_use_the_connection_of_their_request() {
    let mut bench = numbering();
    let main = bench.join(Version::Of13, 1);
    let auxiliaries = [1, 2].map(|id| bench.join_auxiliary(1, id));
    let asked = [main, auxiliaries[0], auxiliaries[1], main, auxiliaries[1]];
    let numbers = asked.map(|connection| bench.ask(connection));
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    let network = bench.controller.network();
    assert_eq!(network.switches(), [ONE], "it is one switch");
    let counters = network.counters(ONE).unwrap();
    assert_eq!((counters.packet_ins.get(), counters.sent.get()), (5, 5));
    assert_eq!(counters.auxiliaries.get(), 2);
    // Messages from elsewhere use the main connection.
    network.send(ONE, &Message::BarrierRequest).unwrap();
    bench.poll();
    assert_eq!(bench.take(main).len(), 1);
    assert!(bench.take(auxiliaries[0]).is_empty());
}

#[test]
fn messages_right_after_the_features_reply_are_handled() {
    let mut bench = numbering();
    bench.join(Version::Of13, 1);
    let auxiliary = bench.connect();
    let bytes = [said(1, 1), packet(), packet()].concat();
    for piece in bytes.chunks(50) {
        bench.input(auxiliary, piece);
    }
    let answers = bench.take(auxiliary);
    let packets = answers
        .iter()
        .filter(|answer| matches!(answer.message(), Message::PacketOut(_)));
    assert_eq!(packets.count(), 2);
}

#[test]
fn an_auxiliary_connection_without_a_main_one_is_refused() {
    let mut bench = numbering();
    bench.join(Version::Of13, 2);
    let refusal = bench.refusal(&said(1, 7));
    assert_eq!(
        refusal,
        "auxiliary connection 7 of switch 0000000000000001 refused: the switch has no main connection here; expected the main connection first"
    );
    bench.join(Version::Of10, 1);
    let refusal = bench.refusal(&said(1, 7));
    assert!(refusal.contains("expected the version"), "{refusal}");
    assert!(bench.is_connected(1) && bench.is_connected(2));
}

#[test]
fn an_auxiliary_connection_of_another_host_is_refused() {
    let mut bench = numbering();
    let main = bench.join(Version::Of13, 1);
    let stranger = "tcp:192.0.2.66:4711".to_owned();
    let stranger = bench.controller.connect(stranger, bench.now);
    let ended = bench
        .controller
        .handle_input(stranger, &said(1, 1), bench.now);
    let refusal = ended.unwrap_err().to_string();
    assert!(refusal.contains("expected it from a test"), "{refusal}");
    assert_eq!(bench.ask(main), 1);
}

#[test]
fn auxiliary_connections_end_with_their_main_one() {
    let mut bench = numbering();
    let main = bench.join(Version::Of13, 1);
    let auxiliary = bench.join_auxiliary(1, 1);
    let other = bench.join(Version::Of13, 2);
    let others = bench.join_auxiliary(2, 1);
    bench.controller.disconnect(main, bench.now);
    let ended = bench.controller.poll(bench.now);
    let ended: Vec<_> = ended
        .iter()
        .map(|(connection, reason)| (*connection, reason.to_string()))
        .collect();
    assert_eq!(
        ended,
        [(auxiliary, "its main connection has ended".to_owned())]
    );
    assert_eq!((bench.ask(other), bench.ask(others)), (1, 2));
}

#[test]
fn the_main_connection_outlives_its_auxiliary_ones() {
    let mut bench = numbering();
    let main = bench.join(Version::Of13, 1);
    let auxiliary = bench.join_auxiliary(1, 1);
    assert_eq!(bench.ask(auxiliary), 1);
    bench.controller.disconnect(auxiliary, bench.now);
    assert_eq!(bench.ask(main), 2);
    let again = bench.join_auxiliary(1, 1);
    assert_eq!(bench.ask(again), 3);
}

#[test]
fn replacing_main_connections_have_no_auxiliary_connections() {
    let mut bench = numbering();
    bench.join(Version::Of13, 1);
    let auxiliary = bench.join_auxiliary(1, 1);
    let newer = bench.connect();
    let Message::FeaturesReply(features) = features(Version::Of13, 1) else {
        panic!("expected features");
    };
    let features = encode(Version::Of13, 2, &Message::FeaturesReply(features));
    bench.input(newer, &[&[4, 0, 0, 8, 0, 0, 0, 0], &features[..]].concat());
    let ended = bench.controller.poll(bench.now);
    assert_eq!(ended.len(), 2, "{ended:?}");
    assert_eq!(ended[1].0, auxiliary);
    bench.take(newer);
    assert_eq!(bench.ask(newer), 1);
}

#[test]
fn at_most_sixteen_auxiliary_connections_with_distinct_ids() {
    let mut bench = numbering();
    let main = bench.join(Version::Of13, 1);
    let first = bench.join_auxiliary(1, 1);
    for id in 2..=16 {
        bench.join_auxiliary(1, id);
    }
    let refusal = bench.refusal(&said(1, 17));
    assert!(refusal.contains("expected 16 of them at most"), "{refusal}");
    let newer = bench.connect();
    bench.input(newer, &said(1, 1));
    let ended = bench.controller.poll(bench.now);
    assert_eq!(ended.len(), 1);
    assert_eq!(
        (ended[0].0, ended[0].1.to_string()),
        (
            first,
            "a newer auxiliary connection has the same id".to_owned()
        )
    );
    bench.take(newer);
    assert_eq!((bench.ask(newer), bench.ask(main)), (1, 2));
}

#[test]
fn a_panic_of_the_handler_ends_all_connections_of_the_switch() {
    let mut bench = Bench::new(Controller::new().program(|_: &SwitchInfo| Broken));
    bench.join(Version::Of13, 1);
    let auxiliary = bench.join_auxiliary(1, 1);
    let ended = bench
        .controller
        .handle_input(auxiliary, &packet(), bench.now);
    assert!(ended.unwrap_err().to_string().contains("a test"));
    assert!(!bench.is_connected(1));
}

#[test]
fn roles_lost_on_one_connection_are_lost_on_all() {
    let mut bench = numbering();
    let main = bench.join(Version::Of13, 1);
    let auxiliary = bench.join_auxiliary(1, 1);
    let mut lost = Vec::new();
    ErrorMessage::write_is_slave(Version::Of13, 9, &[], &mut lost).unwrap();
    bench.input(auxiliary, &lost);
    let info = bench.controller.network().info(ONE).unwrap();
    assert_eq!(info.role, Role::Secondary);
    for connection in [main, auxiliary] {
        bench.input(connection, &packet());
        assert!(bench.take(connection).is_empty(), "nothing is written");
    }
    let counters = bench.controller.network().counters(ONE).unwrap();
    assert_eq!(
        (counters.role_changes.get(), counters.withheld.get()),
        (1, 2)
    );
}

#[test]
fn ports_may_change_over_any_connection() {
    let mut bench = numbering();
    bench.join(Version::Of13, 1);
    let auxiliary = bench.join_auxiliary(1, 1);
    let mut events = bench.controller.network().events();
    let added = PortStatus {
        reason: PortReason::Add,
        port: port(9),
    };
    let added = encode(Version::Of13, 0, &Message::PortStatus(added));
    bench.input(auxiliary, &added);
    assert!(matches!(events.try_next(), Some(NetworkEvent::Up(_))));
    assert!(matches!(events.try_next(), Some(NetworkEvent::Port(..))));
    let info = bench.controller.network().info(ONE).unwrap();
    assert!(info.port(PortNo(9)).is_some());
    // Ports are requested on each connection; the auxiliary one's reply does not add any.
    let described = port_desc(urtica_wire::MultipartFlags::empty(), &[1, 2, 3]);
    bench.input(auxiliary, &encode(Version::Of13, 4, &described));
    assert!(events.try_next().is_none());
}

/// Opens an auxiliary connection over a socket.
fn connect_auxiliary(running: &Running, id: u8) -> FakeSwitch {
    let mut switch = FakeSwitch::over(connect(running), Version::Of13);
    switch.send_bytes(&said(1, id));
    for _ in 0..5 {
        switch.receive();
    }
    switch
}

#[test]
fn connections_of_a_switch_move_to_one_shard() {
    let running = controller(3)
        .program(|_: &SwitchInfo| Numbering(0))
        .start()
        .unwrap();
    let mut main = FakeSwitch::join(&running, Version::Of13, 1);
    let mut auxiliaries: Vec<_> = (1..=4).map(|id| connect_auxiliary(&running, id)).collect();
    let mut expected = 0;
    for _ in 0..20 {
        for switch in std::iter::once(&mut main).chain(&mut auxiliaries) {
            expected += 1;
            switch.send_bytes(&packet());
            assert_eq!(number_in(&[switch.receive()]), expected);
        }
    }
    let counters = running.network().counters(ONE).unwrap();
    eventually("all are counted", || counters.packet_ins.get() == 100);
    drop(main);
    for auxiliary in &mut auxiliaries {
        assert!(
            auxiliary.try_receive().is_none(),
            "it ends with its main one"
        );
    }
    running.stop().unwrap();
}

#[test]
fn a_silent_auxiliary_connection_ends_alone() {
    let mut bench = numbering();
    let main = bench.join(Version::Of13, 1);
    let auxiliary = bench.join_auxiliary(1, 1);
    for second in 1..=14 {
        bench.now = Duration::from_secs(second);
        bench.controller.note_received(main, bench.now);
        assert!(bench.controller.handle_timeout(bench.now).is_empty());
    }
    bench.now = Duration::from_secs(16);
    bench.controller.note_received(main, bench.now);
    let ended = bench.controller.handle_timeout(bench.now);
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(ended[0].0, auxiliary);
    assert!(bench.is_connected(1));
}
