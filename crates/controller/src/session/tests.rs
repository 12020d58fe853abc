//! Tests of the session against the specification, without a socket, in time that tests advance.

mod hellos;
mod silence;

use super::*;
use urtica_wire::{
    Action, CONTROLLER_NO_BUFFER, Capabilities, DatapathId, Features, Instruction, List, MacAddr,
    MultipartRequestBody, PacketIn, PortNo, Role,
};

/// Returns an `ofp_hello` with this bitmap of versions.
fn hello(version: u8, bitmap: Option<u32>) -> Vec<u8> {
    match bitmap {
        None => vec![version, 0, 0, 8, 0, 0, 0, 7],
        Some(bits) => {
            let mut hello = vec![version, 0, 0, 16, 0, 0, 0, 7, 0, 1, 0, 8];
            hello.extend(bits.to_be_bytes());
            hello
        }
    }
}

fn encode(version: Version, xid: u32, message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(version, xid, &mut bytes).unwrap();
    bytes
}

fn features(auxiliary_id: u8) -> Message<'static> {
    Message::FeaturesReply(Features {
        datapath_id: DatapathId(0xd1),
        n_buffers: 256,
        n_tables: 4,
        auxiliary_id,
        capabilities: Capabilities::FLOW_STATS,
        actions: 0,
        ports: List::default(),
    })
}

fn port(number: u32) -> Port {
    Port::new(PortNo(number), MacAddr::from_u64(u64::from(number)), "eth")
}

fn port_desc(flags: MultipartFlags, ports: Vec<Port>) -> Message<'static> {
    let body = MultipartReplyBody::PortDesc(List::from(ports));
    Message::MultipartReply(urtica_wire::MultipartReply { flags, body })
}

fn packet_in() -> Message<'static> {
    Message::PacketIn(PacketIn {
        buffer_id: urtica_wire::BufferId::NONE,
        total_len: 4,
        reason: urtica_wire::PacketInReason::NoMatch,
        table_id: 0,
        cookie: u64::MAX,
        in_port: PortNo(1),
        match_: urtica_wire::Match::any().in_port(PortNo(1)),
        data: &[1, 2, 3, 4],
    })
}

fn messages(sent: &[(Header, Vec<u8>)]) -> Vec<Message<'_>> {
    sent.iter()
        .map(|(_, frame)| Message::decode(frame).unwrap().1)
        .collect()
}

/// A session with a clock and the messages that it has written.
struct Bench {
    session: Session,
    start: Instant,
    now: Instant,
    out: Vec<u8>,
}

impl Bench {
    fn new(config: SessionConfig) -> Self {
        let start = Instant::now();
        Self {
            session: Session::new(config, "tcp:192.0.2.1:4711".into(), start),
            start,
            now: start,
            out: Vec::new(),
        }
    }

    fn speaking(versions: &[Version]) -> Self {
        Self::new(SessionConfig {
            versions: versions.to_vec(),
            ..SessionConfig::default()
        })
    }

    /// Creates a session that a switch of this version has joined. Its messages until then are discarded, except for the xid
    /// of the port description request.
    fn joined(version: Version) -> (Self, Option<u32>) {
        let mut bench = Self::greeted(SessionConfig::default(), version);
        let sent = bench.take();
        bench.join(version);
        assert!(bench.take().is_empty(), "all was asked with the features");
        let asked = sent.iter().find(|(header, _)| header.message_type == 18);
        (bench, asked.map(|(header, _)| header.xid))
    }

    /// Creates a session in which the peer has sent a hello of this version.
    fn greeted(config: SessionConfig, version: Version) -> Self {
        let mut bench = Self::new(config);
        bench.frame(&hello(version.to_wire(), None)).unwrap();
        bench
    }

    fn join(&mut self, version: Version) -> SwitchInfo {
        match self.frame(&encode(version, 0, &features(0))).unwrap() {
            Event::Joined(info) => info,
            other => panic!("expected the switch to join, not {other:?}"),
        }
    }

    fn frame<'a>(&mut self, frame: &'a [u8]) -> Result<Event<'a>, SessionError> {
        self.session.handle_frame(self.now, frame, &mut self.out)
    }

    fn pass(&mut self, time: Duration) -> Result<(), SessionError> {
        self.pass_to(time).map(drop)
    }

    /// Like `pass`, and returns the resulting event.
    fn pass_to(&mut self, time: Duration) -> Result<Event<'static>, SessionError> {
        self.now += time;
        self.session.handle_timeout(self.now, &mut self.out)
    }

    /// Returns the messages sent since the last call: headers and whole messages.
    fn take(&mut self) -> Vec<(Header, Vec<u8>)> {
        let out = std::mem::take(&mut self.out);
        let mut rest = out.as_slice();
        let mut sent = Vec::new();
        while let Some((frame, after)) = urtica_wire::split_frame(rest).unwrap() {
            sent.push((Header::peek(frame).unwrap(), frame.to_vec()));
            rest = after;
        }
        assert!(rest.is_empty(), "half a message was sent");
        sent
    }

    /// Returns the only message sent since the last call.
    fn take_one(&mut self) -> (Header, Vec<u8>) {
        let mut sent = self.take();
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.remove(0)
    }

    /// Returns the error sent since the last call, which must be the only message.
    fn take_error(&mut self) -> (Header, ErrorCode, Vec<u8>) {
        let (header, frame) = self.take_one();
        match Message::decode(&frame).unwrap().1 {
            Message::Error(error) => (header, error.code, error.data.to_vec()),
            other => panic!("expected an error, not {other:?}"),
        }
    }

    /// Returns the hello of a session that has waited long enough for the peer's.
    fn greeting(&mut self) -> (Header, Vec<u8>) {
        self.pass(HELLO_DELAY).unwrap();
        self.take_one()
    }

    /// Returns the version of the session's features request after this hello.
    fn negotiate(mut self, hello: &[u8]) -> Result<u8, SessionError> {
        self.greeting();
        self.frame(hello)?;
        let (header, _) = self.take().remove(0);
        assert_eq!(header.message_type, 5, "a features request");
        Ok(header.version)
    }
}

const OF10: u32 = 1 << 1;
const OF13: u32 = 1 << 4;
const OF15: u32 = 1 << 6;

#[test]
fn a_1_0_switch_is_configured_and_joins() {
    let mut bench = Bench::greeted(SessionConfig::default(), Version::Of10);
    assert_eq!(bench.session.version(), None);
    let sent = bench.take();
    let [
        Message::Hello(_),
        Message::FeaturesRequest,
        Message::SetConfig(config),
    ] = &messages(&sent)[..]
    else {
        panic!("expected hello, a question and configuration, not {sent:?}");
    };
    assert_eq!(config.miss_send_len, CONTROLLER_NO_BUFFER);
    assert!(sent[1..].iter().all(|(header, _)| header.version == 1));
    let info = bench.join(Version::Of10);
    assert_eq!(info.datapath_id, DatapathId(0xd1));
    assert_eq!(
        (info.version, info.n_buffers, info.n_tables),
        (Version::Of10, 256, 4)
    );
    assert_eq!(info.peer, "tcp:192.0.2.1:4711");
    assert_eq!(bench.session.version(), Some(Version::Of10));
    assert!(bench.take().is_empty());
}

#[test]
fn ports_are_requested_and_table_miss_entries_added_in_1_3() {
    let mut bench = Bench::greeted(SessionConfig::default(), Version::Of13);
    let sent = bench.take();
    let [
        Message::Hello(_),
        Message::FeaturesRequest,
        Message::SetConfig(_),
        Message::MultipartRequest(request),
        Message::FlowMod(entry),
    ] = &messages(&sent)[..]
    else {
        panic!("expected hello, questions, configuration and a table-miss entry, not {sent:?}");
    };
    assert_eq!(request.body, MultipartRequestBody::PortDesc);
    assert_eq!((entry.priority, entry.table_id), (0, 0));
    assert_eq!(entry.match_.fields().count(), 0);
    let actions = [Action::controller()];
    assert_eq!(
        entry.instructions,
        List::from(vec![Instruction::apply(&actions)])
    );
}

#[test]
fn existing_further_tables_get_table_miss_entries() {
    let config = SessionConfig {
        tables: 6,
        ..SessionConfig::default()
    };
    let mut bench = Bench::greeted(config, Version::Of13);
    bench.take();
    bench.join(Version::Of13);
    let sent = bench.take();
    let tables: Vec<_> = messages(&sent)
        .iter()
        .map(|message| match message {
            Message::FlowMod(entry) => entry.table_id,
            other => panic!("expected table-miss entries, not {other:?}"),
        })
        .collect();
    assert_eq!(tables, [1, 2, 3], "of four tables the first has its entry");
}

#[test]
fn refused_table_miss_entries_are_sent_until_accepted() {
    let config = SessionConfig {
        tables: 2,
        echo_interval: Duration::from_secs(3600),
        dead_interval: Duration::from_secs(7200),
        ..SessionConfig::default()
    };
    let mut bench = Bench::greeted(config, Version::Of13);
    let refusal = Message::Error(ErrorMessage {
        code: ErrorCode::FlowModFailedTableFull,
        data: &[],
    });
    let refuse = |bench: &mut Bench, xid| {
        drop(bench.frame(&encode(Version::Of13, xid, &refusal)));
    };
    let entries = |bench: &mut Bench| -> Vec<(u8, u32)> {
        let sent = bench.take();
        let xids = sent.iter().map(|(header, _)| header.xid);
        let entries = messages(&sent).into_iter().zip(xids);
        let entry = |(message, xid)| match message {
            Message::FlowMod(entry) => Some((entry.table_id, xid)),
            _ => None,
        };
        entries.filter_map(entry).collect()
    };
    // Sent before the switch has joined, and again after that.
    let [(0, first)] = entries(&mut bench)[..] else {
        panic!("expected the entry of table 0");
    };
    refuse(&mut bench, first);
    bench.join(Version::Of13);
    let [(1, mut last)] = entries(&mut bench)[..] else {
        panic!("expected the entry of table 1");
    };
    refuse(&mut bench, last);
    for (table, pause_s) in [(0, 1), (1, 2), (1, 4), (1, 8), (1, 8)] {
        bench.pass(Duration::ZERO).unwrap();
        bench
            .pass(Duration::from_secs(pause_s) - Duration::from_millis(1))
            .unwrap();
        assert_eq!(entries(&mut bench), [], "before {pause_s} s");
        bench.pass(Duration::from_millis(1)).unwrap();
        let again = entries(&mut bench);
        assert_eq!(again[0].0, table, "after {pause_s} s");
        last = again.last().unwrap().1;
        refuse(&mut bench, last);
    }
    // The switch accepts it at last: nothing more is sent.
    bench.pass(Duration::from_secs(9)).unwrap();
    bench.pass(Duration::from_secs(9)).unwrap();
    assert_eq!(entries(&mut bench).len(), 1);
    bench.pass(Duration::from_secs(60)).unwrap();
    bench.pass(Duration::from_secs(60)).unwrap();
    assert_eq!(entries(&mut bench), []);
}

#[test]
fn the_table_miss_entries_can_be_switched_off() {
    let config = SessionConfig {
        table_miss: false,
        tables: 2,
        ..SessionConfig::default()
    };
    let mut bench = Bench::greeted(config, Version::Of13);
    bench.join(Version::Of13);
    const FLOW_MOD: u8 = 14;
    assert!(
        bench
            .take()
            .iter()
            .all(|(header, _)| header.message_type != FLOW_MOD)
    );
}

#[test]
fn early_port_descriptions_are_requested_again() {
    let refusal = Message::Error(ErrorMessage {
        code: ErrorCode::BadRequestBadType,
        data: &[],
    });
    for early in [port_desc(MultipartFlags::empty(), vec![port(1)]), refusal] {
        let mut bench = Bench::greeted(SessionConfig::default(), Version::Of13);
        let (asked, _) = bench.take().remove(3);
        let reply = encode(Version::Of13, asked.xid, &early);
        let taken = bench.frame(&reply);
        assert!(matches!(taken, Ok(Event::Nothing)), "{taken:?}");
        bench.join(Version::Of13);
        let (again, frame) = bench.take_one();
        let Message::MultipartRequest(request) = Message::decode(&frame).unwrap().1 else {
            panic!("expected the question for ports, not {again:?}");
        };
        assert_eq!(request.body, MultipartRequestBody::PortDesc);
        let ports = port_desc(MultipartFlags::empty(), vec![port(1)]);
        let reply = encode(Version::Of13, again.xid, &ports);
        assert!(matches!(
            bench.frame(&reply),
            Ok(Event::Ports { last: true, .. })
        ));
    }
}

#[test]
fn refused_configuration_is_tolerated_and_refused_features_are_not() {
    for version in Version::ALL {
        let refusal = Message::Error(ErrorMessage {
            code: ErrorCode::BadRequestEperm,
            data: &[],
        });
        let mut bench = Bench::greeted(SessionConfig::default(), version);
        let sent = bench.take();
        let (features, config) = (sent[1].0.xid, sent[2].0.xid);
        let frame = encode(version, config, &refusal);
        let taken = bench.frame(&frame);
        assert!(matches!(taken, Ok(Event::Nothing)), "{taken:?}");
        bench.join(version);

        let mut bench = Bench::greeted(SessionConfig::default(), version);
        assert_eq!(
            bench
                .frame(&encode(version, features, &refusal))
                .unwrap_err(),
            SessionError::Refused(ErrorCode::BadRequestEperm)
        );
    }
}

#[test]
fn packet_ins_are_accepted_after_the_features_reply() {
    for version in Version::ALL {
        let mut bench = Bench::new(SessionConfig::default());
        bench.frame(&hello(version.to_wire(), None)).unwrap();
        let frame = encode(version, 9, &packet_in());
        assert!(matches!(bench.frame(&frame), Ok(Event::Nothing)));
        bench.join(version);
        let taken = bench.frame(&frame);
        assert!(
            matches!(taken, Ok(Event::Message(_, Message::PacketIn(_)))),
            "{taken:?}"
        );
    }
}

#[test]
fn echo_requests_are_answered_before_the_features_reply() {
    let mut bench = Bench::new(SessionConfig::default());
    bench.frame(&hello(1, None)).unwrap();
    bench.take();
    bench
        .frame(&encode(Version::Of10, 3, &Message::EchoRequest(b"x")))
        .unwrap();
    let (header, frame) = bench.take_one();
    assert_eq!(header.xid, 3);
    assert_eq!(Message::decode(&frame).unwrap().1, Message::EchoReply(b"x"));
}

#[test]
fn port_descriptions_have_one_part_or_several() {
    let (mut bench, xid) = Bench::joined(Version::Of13);
    let xid = xid.unwrap();
    for (flags, numbers, is_last) in [
        (MultipartFlags::MORE, vec![1, 2], false),
        (MultipartFlags::empty(), vec![3], true),
    ] {
        let described = numbers.iter().copied().map(port).collect();
        let frame = encode(Version::Of13, xid, &port_desc(flags, described));
        let Event::Ports { ports, last } = bench.frame(&frame).unwrap() else {
            panic!("expected ports");
        };
        let told: Vec<_> = ports.iter().map(|status| status.port.port_no.0).collect();
        assert_eq!((told, last), (numbers, is_last));
    }
    // The request has been answered: a further description is not its reply.
    let frame = encode(
        Version::Of13,
        xid,
        &port_desc(MultipartFlags::empty(), vec![]),
    );
    assert!(matches!(bench.frame(&frame), Ok(Event::Message(..))));
}

#[test]
fn refused_port_descriptions_are_tolerated() {
    let (mut bench, xid) = Bench::joined(Version::Of13);
    let error = Message::Error(ErrorMessage {
        code: ErrorCode::BadRequestBadMultipart,
        data: &[],
    });
    let frame = encode(Version::Of13, xid.unwrap(), &error);
    let Event::PortsUnknown(problem) = bench.frame(&frame).unwrap() else {
        panic!("expected the end of the ports");
    };
    assert_eq!(
        problem.to_string(),
        "it refused to describe its ports with OFPBRC_BAD_MULTIPART"
    );
    assert!(matches!(
        bench.frame(&frame),
        Ok(Event::Message(_, Message::Error(_)))
    ));
}

#[test]
fn malformed_port_descriptions_keep_the_valid_ports() {
    let (mut bench, xid) = Bench::joined(Version::Of13);
    let xid = xid.unwrap();
    let mut part = encode(
        Version::Of13,
        xid,
        &port_desc(MultipartFlags::MORE, vec![port(1), port(2)]),
    );
    assert!(matches!(
        bench.frame(&part),
        Ok(Event::Ports { last: false, .. })
    ));
    // The last port is incomplete.
    part.truncate(part.len() - 32);
    let length = part.len() as u16;
    part[2..4].copy_from_slice(&length.to_be_bytes());
    let Event::PortsUnknown(PortsProblem::Malformed(error)) = bench.frame(&part).unwrap() else {
        panic!("expected that the description is given up");
    };
    let (header, _) = bench.take_one();
    assert_eq!((header.message_type, header.xid), (1, xid), "an error");
    // Another malformed part is one more malformed message.
    let again = bench.frame(&part).unwrap();
    assert!(matches!(again, Event::Malformed(same) if same == error));
}

#[test]
fn endless_port_descriptions_end_with_the_handshake_timeout() {
    let second = Duration::from_secs(1);
    let (mut bench, xid) = Bench::joined(Version::Of13);
    let part = encode(
        Version::Of13,
        xid.unwrap(),
        &port_desc(MultipartFlags::MORE, vec![port(1)]),
    );
    for _ in 0..9 {
        assert!(matches!(bench.pass_to(second), Ok(Event::Nothing)));
        assert!(matches!(
            bench.frame(&part),
            Ok(Event::Ports { last: false, .. })
        ));
    }
    let Ok(Event::PortsUnknown(problem)) = bench.pass_to(second) else {
        panic!("expected that nobody waits any longer");
    };
    assert_eq!(problem, PortsProblem::Late(10 * second));
    // Later parts are accepted nevertheless, and the end of the wait is reported once.
    assert!(matches!(
        bench.frame(&part),
        Ok(Event::Ports { last: false, .. })
    ));
    assert!(matches!(bench.pass_to(second), Ok(Event::Nothing)));
}

#[test]
fn port_descriptions_reach_the_program_that_requested_them() {
    let (mut bench, _) = Bench::joined(Version::Of13);
    let xid = bench.session.xids.next(Origin::REQUEST);
    let frame = encode(
        Version::Of13,
        xid,
        &port_desc(MultipartFlags::empty(), vec![port(1)]),
    );
    let event = bench.frame(&frame).unwrap();
    assert!(matches!(
        event,
        Event::Message(_, Message::MultipartReply(_))
    ));
}

#[test]
fn echo_requests_are_answered_and_own_replies_consumed() {
    for version in Version::ALL {
        let (mut bench, _) = Bench::joined(version);
        bench
            .frame(&encode(version, 0xabcd, &Message::EchoRequest(b"ping")))
            .unwrap();
        let (header, frame) = bench.take_one();
        assert_eq!((header.version, header.xid), (version.to_wire(), 0xabcd));
        assert_eq!(
            Message::decode(&frame).unwrap().1,
            Message::EchoReply(b"ping")
        );
        let reply = encode(version, 1, &Message::EchoReply(b""));
        assert!(matches!(bench.frame(&reply), Ok(Event::Nothing)));
        assert!(bench.take().is_empty());
    }
}

#[test]
fn echo_replies_reach_the_program_that_requested_them() {
    let (mut bench, _) = Bench::joined(Version::Of13);
    let xid = bench.session.xids.next(Origin::program(0));
    let reply = encode(Version::Of13, xid, &Message::EchoReply(b""));
    assert!(matches!(
        bench.frame(&reply),
        Ok(Event::Message(_, Message::EchoReply(_)))
    ));
}

#[test]
fn role_replies_reach_the_program_that_requested_them() {
    let (mut bench, _) = Bench::joined(Version::Of13);
    let role = Message::RoleReply(Role {
        role: urtica_wire::ControllerRole::Slave,
        generation_id: 1,
    });
    let xid = bench.session.xids.next(Origin::program(3));
    let frame = encode(Version::Of13, xid, &role);
    let Event::Message(header, Message::RoleReply(_)) = bench.frame(&frame).unwrap() else {
        panic!("expected the role reply");
    };
    assert_eq!(Origin::of(header.xid), Origin::program(3));
    assert!(matches!(
        bench.frame(&encode(Version::Of13, 0, &packet_in())),
        Ok(Event::Message(_, Message::PacketIn(_)))
    ));
}

#[test]
fn invalid_messages_get_the_specified_errors() {
    let unknown_type = [4, 99, 0, 8, 0, 0, 0, 5].as_slice();
    let wrong_version = [5, 10, 0, 8, 0, 0, 0, 5].as_slice();
    let other_version = [1, 2, 0, 8, 0, 0, 0, 5].as_slice();
    let truncated = [4, 10, 0, 12, 0, 0, 0, 5, 0, 0, 0, 0].as_slice();
    let for_switches = [4, 20, 0, 8, 0, 0, 0, 5].as_slice();
    for (frame, expected) in [
        (unknown_type, ErrorCode::BadRequestBadType),
        (wrong_version, ErrorCode::BadRequestBadVersion),
        (other_version, ErrorCode::BadRequestBadVersion),
        (truncated, ErrorCode::BadRequestBadLen),
        (for_switches, ErrorCode::BadRequestBadType),
    ] {
        let (mut bench, _) = Bench::joined(Version::Of13);
        let event = bench.frame(frame).unwrap();
        assert!(
            matches!(event, Event::Malformed(_) | Event::Nothing),
            "{event:?}"
        );
        let (header, code, data) = bench.take_error();
        assert_eq!((header.version, header.xid), (4, 5));
        assert_eq!((code, data.as_slice()), (expected, frame));
    }
}

#[test]
fn errors_quote_at_most_64_bytes() {
    let (mut bench, _) = Bench::joined(Version::Of10);
    let mut frame = vec![1, 99, 0, 200, 0, 0, 0, 5];
    frame.resize(200, 0xaa);
    bench.frame(&frame).unwrap();
    assert_eq!(bench.take_error().2, frame[..64]);
}

#[test]
fn errors_are_not_answered_with_errors() {
    let (mut bench, _) = Bench::joined(Version::Of13);
    for frame in [&[4, 1, 0, 9, 0, 0, 0, 5, 0][..], &[9, 1, 0, 8, 0, 0, 0, 5]] {
        assert!(matches!(bench.frame(frame), Ok(Event::Malformed(_))));
        assert!(bench.take().is_empty());
    }
}

#[test]
fn malformed_bytes_get_an_error_once_the_peer_is_known() {
    let bytes = [4, 2, 0, 7, 0, 0, 0, 5];
    let error = urtica_wire::split_frame(&bytes).unwrap_err();
    let mut bench = Bench::new(SessionConfig::default());
    bench.take();
    bench
        .session
        .handle_malformed(error.clone(), &bytes, &mut bench.out);
    assert!(bench.take().is_empty());
    let (mut bench, _) = Bench::joined(Version::Of13);
    let end = bench
        .session
        .handle_malformed(error.clone(), &bytes, &mut bench.out);
    assert_eq!(end, SessionError::Malformed(error));
    assert_eq!(bench.take_error().1, ErrorCode::BadRequestBadLen);
}

#[test]
fn auxiliary_and_main_connections_are_distinguished() {
    let mut bench = Bench::greeted(SessionConfig::default(), Version::Of13);
    bench.take();
    let frame = encode(Version::Of13, 2, &features(3));
    let Event::Auxiliary {
        datapath_id,
        auxiliary_id,
    } = bench.frame(&frame).unwrap()
    else {
        panic!("expected an auxiliary connection");
    };
    assert_eq!((datapath_id, auxiliary_id), (DatapathId(0xd1), 3));
    assert!(bench.take().is_empty(), "it is not configured again");
}

#[test]
fn switches_that_refuse_the_features_request_are_disconnected() {
    let mut bench = Bench::new(SessionConfig::default());
    bench.frame(&hello(4, None)).unwrap();
    let error = Message::Error(ErrorMessage {
        code: ErrorCode::BadRequestEperm,
        data: &[],
    });
    let frame = encode(Version::Of13, 1, &error);
    assert_eq!(
        bench.frame(&frame).unwrap_err(),
        SessionError::Refused(ErrorCode::BadRequestEperm)
    );
}

proptest::proptest! {
    #[test]
    fn no_frames_make_a_session_panic(
        frames in proptest::collection::vec(proptest::collection::vec(proptest::num::u8::ANY, 8..80), 1..20),
        version in proptest::option::of(proptest::sample::select(&Version::ALL[..])),
    ) {
        let mut bench = match version {
            Some(version) => Bench::joined(version).0,
            None => Bench::new(SessionConfig::default()),
        };
        for mut frame in frames {
            let length = frame.len() as u16;
            frame[2..4].copy_from_slice(&length.to_be_bytes());
            if let Some(version) = version {
                frame[0] = version.to_wire();
                frame[1] %= 32;
            }
            if bench.frame(&frame).is_err() {
                break;
            }
            bench.take();
        }
    }
}
