//! The handlers that receive each message, and their order.

use crate::support::*;
use urtica_controller::{
    Background, Events, Network, NetworkEvent, Program, Running, Switch, SwitchHandler, SwitchInfo,
};
use urtica_wire::{
    DatapathId, EntryOptions, ErrorCode, Experimenter, FlowRemoved, FlowRemovedReason, Match,
    Message, MultipartFlags, MultipartReply, MultipartReplyBody, PacketIn, PortNo, PortReason,
    PortStatus, Version,
};

fn record<const N: usize>(names: [&'static str; N]) -> (Running, Record) {
    let (recorders, record) = recorders(names);
    let running = recorders
        .into_iter()
        .fold(controller(1), |controller, recorder| {
            controller.program(move |_: &SwitchInfo| recorder.clone())
        });
    (running.start().unwrap(), record)
}

fn flow_removed(cookie: u64) -> Message<'static> {
    Message::FlowRemoved(FlowRemoved {
        cookie,
        priority: 1,
        reason: FlowRemovedReason::IdleTimeout,
        table_id: 0,
        duration_sec: 5,
        duration_nsec: 0,
        idle_timeout: 5,
        hard_timeout: 0,
        packet_count: 1,
        byte_count: 60,
        match_: Match::any().in_port(PortNo(1)),
    })
}

fn port_status(reason: PortReason, number: u32) -> Message<'static> {
    Message::PortStatus(PortStatus {
        reason,
        port: port(number),
    })
}

#[test]
fn asynchronous_messages_reach_all_programs_in_order() {
    for version in Version::ALL {
        let (running, record) = record(["a", "b"]);
        let mut switch = FakeSwitch::join(&running, version, 1);
        // The switch chooses the xids of asynchronous messages: these look like ours.
        for xid in [0, 0x0100_0001, 0xff00_0001] {
            switch.send(xid, &Message::PacketIn(packet_in(&UDP)));
            switch.send(xid, &flow_removed(0xc0));
            switch.send(xid, &port_status(PortReason::Modify, 2));
        }
        let mut expected = vec!["up, 3 ports"];
        for _ in 0..3 {
            expected.extend([
                "packet of 46 from 1",
                "flow 0xc0 removed",
                "port 2 Modify, now [1, 2, 3]",
            ]);
        }
        expected.push("down 0000000000000001");
        drop(switch);
        for what in expected {
            assert_eq!(record.next(), format!("a: {what}"));
            assert_eq!(record.next(), format!("b: {what}"));
        }
        running.stop().unwrap();
    }
}

#[test]
fn ports_are_kept_up_to_date() {
    for version in Version::ALL {
        let (running, record) = record(["p"]);
        let mut switch = FakeSwitch::join(&running, version, 1);
        assert_eq!(record.next(), "p: up, 3 ports");
        switch.send(0, &port_status(PortReason::Delete, 2));
        switch.send(0, &port_status(PortReason::Add, 4));
        switch.send(0, &port_status(PortReason::Delete, 9));
        assert_eq!(record.next(), "p: port 2 Delete, now [1, 3]");
        assert_eq!(record.next(), "p: port 4 Add, now [1, 3, 4]");
        assert_eq!(record.next(), "p: port 9 Delete, now [1, 3, 4]");
        let info = running.network().info(DatapathId(1)).unwrap();
        assert_eq!(info.port(PortNo(4)).unwrap().name.to_string(), "eth4");
        assert!(info.port(PortNo(2)).is_none());
        running.stop().unwrap();
    }
}

#[test]
fn switches_join_with_their_last_port_in_1_3() {
    let (running, record) = record(["p"]);
    let mut switch = FakeSwitch::start(connect(&running), Version::Of13, 1);
    let xid = switch.receive().header().xid;
    assert!(matches!(switch.receive().message(), Message::FlowMod(_)));
    switch.send(0, &Message::PacketIn(packet_in(&UDP)));
    switch.send(xid, &port_desc(MultipartFlags::MORE, &[1, 2]));
    switch.send(xid, &port_desc(MultipartFlags::empty(), &[3, 4]));
    assert_eq!(record.next(), "p: packet of 46 from 1");
    assert_eq!(record.next(), "p: up, 4 ports");
    running.stop().unwrap();
}

#[test]
fn switches_join_without_ports_if_refused_in_1_3() {
    let (running, record) = record(["p"]);
    let mut switch = FakeSwitch::start(connect(&running), Version::Of13, 1);
    let xid = switch.receive().header().xid;
    switch.send(xid, &error(ErrorCode::BadRequestBadMultipart));
    assert_eq!(record.next(), "p: up, 0 ports");
    switch.send(0, &port_status(PortReason::Add, 1));
    assert_eq!(record.next(), "p: port 1 Add, now [1]");
    running.stop().unwrap();
}

/// Sends a request when its switch comes up, and records the messages that it receives.
struct Asking(Recorder);

impl SwitchHandler for Asking {
    fn switch_up(&mut self, switch: &mut Switch) {
        switch.send(&Message::GetConfigRequest).unwrap();
    }

    fn error(&mut self, switch: &mut Switch, xid: u32, error: &urtica_wire::ErrorMessage) {
        self.0.error(switch, xid, error);
    }

    fn message(&mut self, switch: &mut Switch, xid: u32, message: &Message) {
        self.0.message(switch, xid, message);
    }
}

#[test]
fn errors_and_replies_reach_the_program_that_caused_them() {
    let ([a, b], record) = recorders(["a", "b"]);
    let running = controller(1)
        .program(move |_: &SwitchInfo| Asking(a.clone()))
        .program(move |_: &SwitchInfo| Asking(b.clone()))
        .start()
        .unwrap();
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    let [xid_a, xid_b] = [switch.receive(), switch.receive()].map(|frame| {
        assert_eq!(frame.message(), Message::GetConfigRequest);
        frame.header().xid
    });
    switch.send(xid_b, &error(ErrorCode::BadRequestEperm));
    let counter = xid_b & 0x00ff_ffff;
    assert_eq!(
        record.next(),
        format!("b: error OFPBRC_EPERM to {counter:#x}")
    );
    switch.send(xid_a, &Message::BarrierReply);
    assert_eq!(record.next(), "a: BarrierReply");
    // Xids of no sender, of the session, and of a request that no caller awaits.
    for xid in [0, 1, 0xff00_0001] {
        switch.send(xid, &error(ErrorCode::BadRequestEperm));
    }
    switch.assert_served();
    assert!(record.is_empty());
    let counters = running.network().counters(DatapathId(1)).unwrap();
    assert_eq!(counters.errors.get(), 4);
    running.stop().unwrap();
}

/// Sends an entry to switch 1: from a background program when the switch comes up, and from another switch's handler for a
/// packet.
struct Installing(Recorder);

impl Program for Installing {
    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(InstallingHandler(self.0.clone()))
    }

    fn start(&self, background: &Background) {
        let network = background.network().clone();
        background.spawn("installing", async move {
            let mut events = network.events();
            while let Some(event) = events.next().await {
                match event {
                    NetworkEvent::Up(info) if info.datapath_id == DatapathId(1) => {
                        install(&network)
                    }
                    _ => {}
                }
            }
        });
    }
}

struct InstallingHandler(Recorder);

impl SwitchHandler for InstallingHandler {
    fn packet_in(&mut self, switch: &mut Switch, _: &PacketIn) {
        install(switch.network());
    }

    fn error(&mut self, switch: &mut Switch, xid: u32, error: &urtica_wire::ErrorMessage) {
        self.0.error(switch, xid, error);
    }

    fn refused(&mut self, switch: &mut Switch, error: &urtica_wire::ErrorMessage) {
        self.0.refused(switch, error);
    }
}

fn install(network: &Network) {
    let any = Match::any().in_port(PortNo(1));
    network
        .install(DatapathId(1), any, &[], EntryOptions::PERMANENT)
        .unwrap();
}

#[test]
fn refusals_of_messages_sent_outside_handlers_are_reported() {
    for version in Version::ALL {
        let ([a, b], record) = recorders(["a", "b"]);
        let running = controller(1)
            .program(move |_: &SwitchInfo| Asking(a.clone()))
            .program(Installing(b))
            .start()
            .unwrap();
        let mut one = FakeSwitch::join(&running, version, 1);
        let mut refuse = |of: &str| loop {
            let frame = one.receive();
            if matches!(frame.message(), Message::FlowMod(_)) {
                one.send(frame.header().xid, &error(ErrorCode::FlowModFailedEperm));
                let told = "b: OFPFMFC_EPERM refused by 0000000000000001";
                return assert_eq!(record.next(), told, "{version:?}, {of}");
            }
        };
        refuse("a background program");
        let mut two = FakeSwitch::join(&running, version, 2);
        two.send(0, &Message::PacketIn(packet_in(&UDP)));
        refuse("another switch's handler");
        running.stop().unwrap();
    }
}

/// A named program whose handlers may panic at packet-ins.
struct Named(&'static str, bool);

impl Program for Named {
    fn program_name(&self) -> Option<&str> {
        Some(self.0)
    }

    fn handler(&self, _: &SwitchInfo) -> Box<dyn SwitchHandler> {
        Box::new(Fragile(self.1))
    }
}

struct Fragile(bool);

impl SwitchHandler for Fragile {
    fn packet_in(&mut self, _: &mut Switch, _: &PacketIn) {
        assert!(!self.0, "no packets, please");
    }
}

/// Returns the next event other than a switch coming up.
fn next_event(events: &mut Events<NetworkEvent>) -> NetworkEvent {
    let mut found = None;
    eventually("an event is there", || {
        let next = events.try_next();
        found = next.filter(|event| !matches!(event, NetworkEvent::Up(_)));
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn a_panic_names_its_program_and_its_switch() {
    let running = controller(1)
        .program(Named("sound", false))
        .program(Named("fragile", true))
        .start()
        .unwrap();
    let mut events = running.network().events();
    let mut switch = FakeSwitch::join(&running, Version::Of13, 7);
    switch.send(0, &Message::PacketIn(packet_in(&UDP)));
    let NetworkEvent::Panicked(panic) = next_event(&mut events) else {
        panic!("the panic is reported before its switch is gone");
    };
    assert_eq!(
        (panic.program.as_deref(), panic.switch),
        (Some("fragile"), Some(DatapathId(7)))
    );
    assert!(panic.reason.contains("no packets, please"), "{panic:?}");
    assert!(matches!(next_event(&mut events), NetworkEvent::Down(_)));
    assert_eq!(running.network().panics(), [panic]);
    running.stop().unwrap();
}

#[test]
fn refusals_are_reported_as_they_are_logged() {
    let running = controller(1).program(|_: &SwitchInfo| Hub).start().unwrap();
    let mut events = running.network().events();
    let mut switch = FakeSwitch::join(&running, Version::Of13, 1);
    for xid in 0..9 {
        switch.send(xid, &error(ErrorCode::FlowModFailedTableFull));
    }
    for expected in [1, 2, 4, 8] {
        let NetworkEvent::Refused(info, code, count) = next_event(&mut events) else {
            panic!("expected a refusal");
        };
        assert_eq!(info.datapath_id, DatapathId(1));
        assert_eq!((code, count), (ErrorCode::FlowModFailedTableFull, expected));
    }
    running.stop().unwrap();
}

#[test]
fn experimenter_messages_reach_all_programs_with_any_xid() {
    let (running, record) = record(["a", "b"]);
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    assert_eq!(
        (record.next(), record.next()),
        ("a: up, 3 ports".into(), "b: up, 3 ports".into())
    );
    let message = Message::Experimenter(Experimenter {
        experimenter: 0x2320,
        data: &[1, 2, 3, 4],
    });
    for xid in [0, 0x4000_0000] {
        switch.send(xid, &message);
        for name in ["a", "b"] {
            assert_eq!(record.next(), format!("{name}: {message:?}"));
        }
    }
    running.stop().unwrap();
}

/// Consumes packets that are longer than the minimum.
struct Greedy(Recorder);

impl SwitchHandler for Greedy {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        self.0.packet_in(switch, packet);
        if packet.data.len() > 14 {
            switch.consume();
        }
    }
}

#[test]
fn programs_can_consume_messages() {
    let ([first, second, third], record) = recorders(["1", "2", "3"]);
    let running = controller(1)
        .program(move |_: &SwitchInfo| first.clone())
        .program(move |_: &SwitchInfo| Greedy(second.clone()))
        .program(move |_: &SwitchInfo| third.clone())
        .start()
        .unwrap();
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    assert_eq!(
        (record.next(), record.next()),
        ("1: up, 3 ports".into(), "3: up, 3 ports".into())
    );
    switch.send(0, &Message::PacketIn(packet_in(&UDP)));
    switch.send(0, &Message::PacketIn(packet_in(&UDP[..14])));
    for expected in [
        "1: packet of 46",
        "2: packet of 46",
        "1: packet of 14",
        "2: packet of 14",
        "3: packet of 14",
    ] {
        assert_eq!(record.next(), format!("{expected} from 1"));
    }
    running.stop().unwrap();
}

#[test]
fn handlers_without_methods_ignore_all_messages() {
    for version in Version::ALL {
        let running = controller(1)
            .program(|_: &SwitchInfo| Quiet)
            .start()
            .unwrap();
        let mut switch = FakeSwitch::join(&running, version, 1);
        let stats = MultipartReply {
            flags: MultipartFlags::empty(),
            body: MultipartReplyBody::PortStats(Default::default()),
        };
        switch.send(0, &Message::PacketIn(packet_in(&UDP)));
        switch.send(0, &flow_removed(1));
        switch.send(0, &port_status(PortReason::Modify, 1));
        switch.send(0, &error(ErrorCode::BadRequestEperm));
        switch.send(0, &Message::MultipartReply(stats));
        switch.send(0, &Message::BarrierReply);
        switch.assert_served();
        running.stop().unwrap();
    }
}

#[test]
fn each_switch_has_its_own_handler() {
    struct Counting(Recorder, u32);

    impl SwitchHandler for Counting {
        fn packet_in(&mut self, switch: &mut Switch, _: &PacketIn) {
            self.1 += 1;
            self.0
                .tell(format_args!("{} has {}", switch.datapath_id(), self.1));
        }
    }

    let ([recorder], record) = recorders(["p"]);
    let program = move |_: &SwitchInfo| Counting(recorder.clone(), 0);
    let running = controller(2).program(program).start().unwrap();
    for id in [1, 2] {
        let mut switch = FakeSwitch::join(&running, Version::Of10, id);
        for count in 1..=2 {
            switch.send(0, &Message::PacketIn(packet_in(&UDP)));
            assert_eq!(record.next(), format!("p: {:016x} has {count}", id));
        }
    }
    running.stop().unwrap();
}

/// Records what it handles, and panics when it is dropped.
struct Grudging(Recorder);

impl SwitchHandler for Grudging {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        self.0.packet_in(switch, packet);
    }

    fn switch_down(&mut self, info: &SwitchInfo) {
        self.0.switch_down(info);
    }
}

impl Drop for Grudging {
    fn drop(&mut self) {
        panic!("a handler that is dropped");
    }
}

#[test]
fn panics_in_drop_affect_no_other_handler() {
    let ([first, second], record) = recorders(["1", "2"]);
    let running = controller(1)
        .program(move |_: &SwitchInfo| Grudging(first.clone()))
        .program(move |info: &SwitchInfo| {
            assert!(info.datapath_id != DatapathId(3), "no handler for this one");
            Grudging(second.clone())
        })
        .start()
        .unwrap();
    let network = running.network().clone();
    let mut lasting = FakeSwitch::join(&running, Version::Of10, 1);
    drop(FakeSwitch::join(&running, Version::Of10, 2));
    for name in ["1", "2"] {
        assert_eq!(record.next(), format!("{name}: down 0000000000000002"));
    }
    // The second program creates no handler for this switch, after the first has.
    let mut refused = FakeSwitch::start(connect(&running), Version::Of10, 3);
    assert!(refused.try_receive().is_none());
    assert_eq!(record.next(), "1: down 0000000000000003");
    // The shard keeps running: it serves connected switches and new ones.
    lasting.assert_served();
    FakeSwitch::join(&running, Version::Of10, 4).assert_served();
    assert!(network.info(DatapathId(2)).is_none());
    assert!(running.failure().is_none());
    running.stop().unwrap();
    // Two for each of the three switches that have joined. For the other, one handler, and the program that created none.
    let panics: u64 = network
        .shard_counters()
        .map(|shard| shard.panics.get())
        .sum();
    assert_eq!(panics, 8);
}
