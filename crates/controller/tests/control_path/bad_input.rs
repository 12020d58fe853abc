//! Bad input: other switches are not affected, and the answer is the one that the specification requires.

use crate::support::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Write;
use std::time::Duration;
use urtica_controller::{
    RequestError, Running, SessionConfig, Switch, SwitchHandler, SwitchInfo, WaitingBytes,
};
use urtica_wire::{DatapathId, ErrorCode, Message, MultipartFlags, PacketIn, PacketOut, Version};

fn hub(shards: usize) -> Running {
    controller(shards)
        .program(|_: &SwitchInfo| Hub)
        .start()
        .unwrap()
}

/// Returns the settings of sessions with short time-outs.
fn impatient() -> SessionConfig {
    let mut session = SessionConfig::default();
    session.handshake_timeout = Duration::from_millis(500);
    session.echo_interval = Duration::from_millis(200);
    session.dead_interval = Duration::from_millis(600);
    session
}

#[test]
fn a_length_below_8_ends_the_connection_with_an_error() {
    let running = hub(1);
    let mut other = FakeSwitch::join(&running, Version::Of13, 1);
    for length in [0, 7] {
        let mut switch = FakeSwitch::join(&running, Version::Of13, 2);
        switch.send_bytes(&[4, 2, 0, length, 0, 0, 0, 9]);
        let last_words = switch.receive();
        assert_eq!(last_words.header().xid, 9);
        assert_eq!(last_words.error_code(), ErrorCode::BadRequestBadLen);
        assert!(switch.try_receive().is_none());
    }
    other.assert_served();
    running.stop().unwrap();
}

#[test]
fn incomplete_messages_time_out() {
    let program = |_: &SwitchInfo| Hub;
    let running = controller(1)
        .session(impatient())
        .program(program)
        .start()
        .unwrap();
    let mut switch = FakeSwitch::join(&running, Version::Of10, 1);
    switch.send_bytes(&[1, 10, 0xff, 0xff, 0, 0, 0, 0, 1, 2, 3]);
    let before_the_end = switch.read_to_end();
    assert!(!before_the_end.is_empty(), "it is asked whether it lives");
    for frame in before_the_end {
        assert_eq!(frame.message(), Message::EchoRequest(&[]));
    }
    FakeSwitch::join(&running, Version::Of10, 2).assert_served();
    running.stop().unwrap();
}

#[test]
fn invalid_messages_are_refused_one_by_one() {
    const UNKNOWN_TYPE: &[u8] = &[4, 30, 0, 8, 0, 0, 0, 9];
    const UNKNOWN_VERSION: &[u8] = &[9, 2, 0, 8, 0, 0, 0, 9];
    const TRUNCATED_PACKET_IN: &[u8] =
        &[4, 10, 0, 16, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    const FOR_SWITCHES: &[u8] = &[4, 5, 0, 8, 0, 0, 0, 9];
    let running = hub(1);
    let mut switch = FakeSwitch::join(&running, Version::Of13, 1);
    for (frame, code) in [
        (UNKNOWN_TYPE, ErrorCode::BadRequestBadType),
        (UNKNOWN_VERSION, ErrorCode::BadRequestBadVersion),
        (TRUNCATED_PACKET_IN, ErrorCode::BadRequestBadLen),
        (FOR_SWITCHES, ErrorCode::BadRequestBadType),
    ] {
        switch.send_bytes(frame);
        let answer = switch.receive();
        assert_eq!((answer.header().xid, answer.error_code()), (9, code));
        switch.assert_served();
    }
    let counters = running.network().counters(DatapathId(1)).unwrap();
    assert_eq!(counters.malformed.get(), 3);
    running.stop().unwrap();
}

/// Returns messages with an inner length that is zero or too large.
fn with_inner_length(length: u16) -> Vec<Vec<u8>> {
    let [high, low] = length.to_be_bytes();
    let header = |message_type, length| vec![4, message_type, 0, length, 0, 0, 0, 9];
    let mut match_in_packet_in = header(10, 42);
    match_in_packet_in.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    match_in_packet_in.extend([0, 1, high, low]);
    match_in_packet_in.resize(42, 0);
    let mut flow_stats = header(19, 72);
    flow_stats.extend([0, 1, 0, 0, 0, 0, 0, 0, high, low]);
    flow_stats.resize(72, 0);
    let mut instruction_in_flow_stats = header(19, 80);
    instruction_in_flow_stats.extend([0, 1, 0, 0, 0, 0, 0, 0, 0, 64]);
    instruction_in_flow_stats.resize(64, 0);
    instruction_in_flow_stats.extend([0, 1, 0, 4, 0, 0, 0, 0, 0, 4, high, low, 0, 0, 0, 0]);
    let mut queue_config = header(23, 32);
    queue_config.extend([0; 8]);
    queue_config.extend([0, 0, 0, 1, 0, 0, 0, 1, high, low]);
    queue_config.resize(32, 0);
    let mut table_feature = header(19, 88);
    table_feature.extend([0, 12, 0, 0, 0, 0, 0, 0, 0, 72]);
    table_feature.resize(80, 0);
    table_feature.extend([0, 0, high, low, 0, 0, 0, 0]);
    vec![
        match_in_packet_in,
        flow_stats,
        instruction_in_flow_stats,
        queue_config,
        table_feature,
    ]
}

#[test]
fn invalid_inner_lengths_are_refused() {
    let running = hub(1);
    let mut switch = FakeSwitch::join(&running, Version::Of13, 1);
    for length in [0, 1, 0x7fff, 0xffff] {
        for (index, frame) in with_inner_length(length).into_iter().enumerate() {
            switch.send_bytes(&frame);
            let answer = switch.receive();
            let code = answer.error_code().name();
            assert!(code.ends_with("_LEN"), "{index} with {length}: {code}");
            switch.assert_served();
        }
    }
    running.stop().unwrap();
}

#[test]
fn a_thousand_silent_connections_are_closed_and_disturb_no_switch() {
    let program = |_: &SwitchInfo| Hub;
    let mut session = SessionConfig::default();
    session.handshake_timeout = Duration::from_secs(2);
    let running = controller(2)
        .session(session)
        .program(program)
        .start()
        .unwrap();
    let silent: Vec<_> = (0..1000).map(|_| connect(&running)).collect();
    let mut switch = FakeSwitch::join(&running, Version::Of13, 1);
    switch.send(1, &Message::PacketIn(packet_in(&UDP)));
    assert!(matches!(switch.receive().message(), Message::PacketOut(_)));
    for socket in silent {
        let hello_alone = FakeSwitch::over(socket, Version::Of13).read_to_end();
        assert_eq!(hello_alone.len(), 1);
    }
    switch.assert_served();
    running.stop().unwrap();
}

#[test]
fn probes_that_are_not_openflow_are_closed_at_once() {
    let running = hub(1);
    let mut switch = FakeSwitch::join(&running, Version::Of13, 1);
    for probe in [
        &b"echo A\n"[..],
        b"GET / HTTP/1.1\r\n\r\n",
        &[0; 64],
        &[0x16, 3, 1],
    ] {
        let mut socket = connect(&running);
        socket.write_all(probe).unwrap();
        let hello_alone = FakeSwitch::over(socket, Version::Of13).read_to_end();
        assert!(hello_alone.len() <= 1, "{probe:?} was answered");
    }
    switch.assert_served();
    running.stop().unwrap();
}

#[test]
fn disjoint_versions_are_refused_with_a_message() {
    let running = hub(1);
    let mut switch = FakeSwitch::over(connect(&running), Version::Of10);
    switch.send_bytes(&[2, 0, 0, 8, 0, 0, 0, 9]);
    assert!(matches!(switch.receive().message(), Message::Hello(_)));
    let refusal = switch.receive();
    let Message::Error(error) = refusal.message() else {
        panic!("expected an error");
    };
    assert_eq!(error.code, ErrorCode::HelloFailedIncompatible);
    assert_eq!(error.data, b"This controller speaks OpenFlow 1.0 and 1.3.");
    assert!(switch.try_receive().is_none());
    running.stop().unwrap();
}

/// Answers each packet with many times its size.
struct Verbose;

impl SwitchHandler for Verbose {
    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        let answer = PacketOut {
            buffer_id: packet.buffer_id,
            in_port: packet.in_port,
            actions: Default::default(),
            data: &[0; 8000],
        };
        switch.send(&Message::PacketOut(answer)).unwrap();
    }
}

/// Writes packet-ins until the controller stops reading; returns their number.
fn flood(switch: &FakeSwitch) -> usize {
    const LONG_ENOUGH: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 300_000_000,
    };
    const FAR_TOO_MUCH: usize = 1 << 30;
    let frame = encode(switch.version, 5, &Message::PacketIn(packet_in(&UDP)));
    let batch = frame.repeat(1000);
    switch.socket.set_nonblocking(true).unwrap();
    let mut written = 0;
    loop {
        let mut ready = [PollFd::new(&switch.socket, PollFlags::OUT)];
        if poll(&mut ready, Some(&LONG_ENOUGH)).unwrap() == 0 {
            break;
        }
        written += (&switch.socket)
            .write(&batch[written % frame.len()..])
            .unwrap();
        assert!(
            written < FAR_TOO_MUCH,
            "the controller reads without being read from"
        );
    }
    switch.socket.set_nonblocking(false).unwrap();
    let rest = written.next_multiple_of(frame.len()) - written;
    // From here on the replies are read, so that the controller reads this.
    let (mut writer, tail) = (
        switch.socket.try_clone().unwrap(),
        frame[frame.len() - rest..].to_vec(),
    );
    std::thread::spawn(move || writer.write_all(&tail).unwrap());
    (written + rest) / frame.len()
}

#[test]
fn a_switch_that_never_reads_is_not_read_from() {
    let running = controller(1)
        .program(|_: &SwitchInfo| Verbose)
        .start()
        .unwrap();
    let mut other = FakeSwitch::join(&running, Version::Of10, 2);
    let mut deaf = FakeSwitch::join(&running, Version::Of10, 1);
    let count = flood(&deaf);
    let counters = running.network().counters(DatapathId(1)).unwrap();
    eventually("reading stops", || counters.stalls.get() > 0);
    assert!(counters.received.get() < count as u64, "it read to the end");
    let waiting = || running.network().waiting_bytes(DatapathId(1)).unwrap();
    eventually("what waits is told", || {
        waiting().replies > 0 && waiting().received > 0
    });
    other.send(1, &Message::PacketIn(packet_in(&UDP)));
    assert!(matches!(other.receive().message(), Message::PacketOut(_)));
    // Once it reads, it gets an answer to each packet.
    for _ in 0..count {
        assert!(matches!(deaf.receive().message(), Message::PacketOut(_)));
    }
    assert_eq!(counters.received.get(), WORDS_TO_JOIN + count as u64);
    eventually("nothing waits", || waiting() == WaitingBytes::default());
    running.stop().unwrap();
}

#[test]
fn newer_of_two_connections_with_a_datapath_id_is_used() {
    for shards in [1, 2] {
        let ([recorder], record) = recorders(["p"]);
        let program = move |_: &SwitchInfo| recorder.clone();
        let running = controller(shards).program(program).start().unwrap();
        let mut older = FakeSwitch::join(&running, Version::Of10, 1);
        assert_eq!(record.next(), "p: up, 3 ports");
        let mut newer = FakeSwitch::join(&running, Version::Of13, 1);
        assert!(
            older.try_receive().is_none(),
            "the older connection is closed"
        );
        let mut told = [record.next(), record.next()];
        told.sort();
        assert_eq!(told, ["p: down 0000000000000001", "p: up, 3 ports"]);
        let info = running.network().info(DatapathId(1)).unwrap();
        assert_eq!(info.version, Version::Of13);
        running
            .network()
            .send(DatapathId(1), &Message::BarrierRequest)
            .unwrap();
        assert_eq!(newer.receive().message(), Message::BarrierRequest);
        drop(newer);
        assert_eq!(record.next(), "p: down 0000000000000001");
        assert!(running.network().switches().is_empty());
        running.stop().unwrap();
    }
}

/// Panics in the callback that the switch's number selects.
struct Clumsy(u64);

impl Clumsy {
    fn join(info: &SwitchInfo) -> Self {
        assert_ne!(info.datapath_id, DatapathId(1), "it dislikes this number");
        Self(info.datapath_id.0)
    }
}

impl SwitchHandler for Clumsy {
    fn switch_up(&mut self, _: &mut Switch) {
        assert_ne!(self.0, 2);
    }

    fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) {
        assert_ne!(self.0, 3);
        Hub.packet_in(switch, packet);
    }

    fn switch_down(&mut self, _: &SwitchInfo) {
        assert_ne!(self.0, 4);
    }
}

#[test]
fn handler_panics_lose_only_their_switch() {
    let ([recorder], record) = recorders(["p"]);
    let running = controller(1)
        .program(Clumsy::join)
        .program(move |_: &SwitchInfo| recorder.clone())
        .start()
        .unwrap();
    let mut other = FakeSwitch::join(&running, Version::Of10, 9);
    assert_eq!(record.next(), "p: up, 3 ports");
    let panics = || {
        running
            .network()
            .shard_counters()
            .next()
            .unwrap()
            .panics
            .get()
    };

    let mut in_factory = FakeSwitch::over(connect(&running), Version::Of10);
    in_factory.send_bytes(&[1, 0, 0, 8, 0, 0, 0, 0]);
    in_factory.send(0, &features(Version::Of10, 1));
    in_factory.read_to_end();
    eventually("a panic is counted", || panics() == 1);

    let mut in_up = FakeSwitch::over(connect(&running), Version::Of10);
    in_up.send_bytes(&[1, 0, 0, 8, 0, 0, 0, 0]);
    in_up.send(0, &features(Version::Of10, 2));
    in_up.read_to_end();
    assert_eq!(record.next(), "p: down 0000000000000002");
    eventually("a panic is counted", || panics() == 2);

    let mut in_packet_in = FakeSwitch::join(&running, Version::Of10, 3);
    assert_eq!(record.next(), "p: up, 3 ports");
    in_packet_in.send(0, &Message::PacketIn(packet_in(&UDP)));
    assert!(in_packet_in.try_receive().is_none());
    assert_eq!(record.next(), "p: down 0000000000000003");
    eventually("a panic is counted", || panics() == 3);

    drop(FakeSwitch::join(&running, Version::Of10, 4));
    assert_eq!(record.next(), "p: up, 3 ports");
    assert_eq!(record.next(), "p: down 0000000000000004");
    eventually("a panic is counted", || panics() == 4);
    eventually("it is kept", || running.network().panics().len() == 4);
    let kept = running.network().panics();
    let switches: Vec<_> = kept.iter().map(|it| it.switch.map(|id| id.0)).collect();
    assert_eq!(switches, [Some(1), Some(2), Some(3), Some(4)]);
    assert!(
        kept.iter().all(|it| it.reason.starts_with("assertion")),
        "{kept:?}"
    );

    other.send(1, &Message::PacketIn(packet_in(&UDP)));
    assert!(matches!(other.receive().message(), Message::PacketOut(_)));
    assert_eq!(running.network().switches(), [DatapathId(9)]);
    running.stop().unwrap();
}

#[test]
fn switches_that_leave_during_a_message_are_forgotten() {
    let running = hub(1);
    let mut switch = FakeSwitch::join(&running, Version::Of13, 1);
    switch.send_bytes(&encode(Version::Of13, 0, &Message::PacketIn(packet_in(&UDP)))[..20]);
    drop(switch);
    eventually("it is gone", || running.network().switches().is_empty());
    running.stop().unwrap();
}

#[test]
fn endless_replies_are_dropped_beyond_a_total_length() {
    let running = hub(1);
    let mut switch = FakeSwitch::join(&running, Version::Of13, 1);
    let request = Message::MultipartRequest(urtica_wire::MultipartRequest {
        flags: MultipartFlags::empty(),
        body: urtica_wire::MultipartRequestBody::PortDesc,
    });
    let ask = || running.network().request(DatapathId(1), &request).unwrap();
    let [first, second, whole] = [ask(), ask(), ask()];
    let xids = [(); 3].map(|()| switch.receive().header().xid);
    let part = |xid, flags| encode(Version::Of13, xid, &port_desc(flags, &[7; 1000]));
    let endless = [xids[0], xids[1]].map(|xid| part(xid, MultipartFlags::MORE));
    let most = (64 << 20) / endless[0].len();
    for _ in 0..most / 2 + 1 {
        switch.send_bytes(&endless[0]);
        switch.send_bytes(&endless[1]);
    }
    // One of the two requests ends, and its space is free for the other and for later ones.
    assert_eq!(first.wait(DEADLINE).unwrap_err(), RequestError::TooLong);
    switch.send_bytes(&part(xids[2], MultipartFlags::empty()));
    assert_eq!(whole.wait(DEADLINE).unwrap().messages().count(), 1);
    for _ in 0..most / 2 {
        switch.send_bytes(&endless[1]);
    }
    assert_eq!(second.wait(DEADLINE).unwrap_err(), RequestError::TooLong);
    switch.assert_served();
    running.stop().unwrap();
}
