//! Roles as a switch sees them, without a socket.

use super::*;
use crate::SessionConfig;
use crate::session::SessionError;
use proptest::prelude::*;
use std::time::Duration;
use urtica_wire::{
    AsyncConfig, Capabilities, ErrorMessage, Features, Hello, List, MacAddr, Port, PortNo,
    PortReason, PortStatus, split_frame,
};

/// A switch's part of the specification: the role that it grants, and the generations that are too old.
#[derive(Clone, Copy, Debug)]
struct FakeSwitch {
    version: Version,
    generation: Option<u64>,
    role: ControllerRole,
    has_roles: bool,
}

impl FakeSwitch {
    fn give(&mut self, asked: WireRole) -> Result<WireRole, ErrorCode> {
        if !self.has_roles {
            return Err(match self.version {
                Version::Of10 => ErrorCode::BadRequestBadExperimenter,
                Version::Of13 => ErrorCode::RoleRequestFailedUnsup,
            });
        }
        let has_generation = matches!(asked.role, ControllerRole::Master | ControllerRole::Slave);
        if has_generation && self.version != Version::Of10 {
            // "distance = (int64_t)(generation_id - cached_generation_id)" (1.3.5 section 6.3.6).
            let distance = |cached: u64| asked.generation_id.wrapping_sub(cached) as i64;
            if self.generation.is_some_and(|cached| distance(cached) < 0) {
                return Err(ErrorCode::RoleRequestFailedStale);
            }
            self.generation = Some(asked.generation_id);
        }
        if asked.role != ControllerRole::NoChange {
            self.role = asked.role;
        }
        Ok(WireRole {
            role: self.role,
            generation_id: self.generation.unwrap_or(u64::MAX),
        })
    }

    fn answer(&mut self, xid: u32, asked: WireRole) -> Vec<u8> {
        match self.give(asked) {
            Ok(role) if self.version == Version::Of10 => {
                let mut reply = Vec::new();
                let given = NiciraMessage::RoleReply(role.role);
                given.write(Version::Of10, xid, &mut reply).unwrap();
                reply
            }
            Ok(role) => encode(Version::Of13, xid, &Message::RoleReply(role)),
            Err(code) => {
                let error = Message::Error(ErrorMessage { code, data: &[] });
                encode(self.version, xid, &error)
            }
        }
    }
}

/// A session, the clock, and the switch.
struct Bench {
    session: Session,
    now: Instant,
    switch: FakeSwitch,
    out: Vec<u8>,
    /// The messages sent by the session, as short texts.
    sent: Vec<String>,
}

fn encode(version: Version, xid: u32, message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(version, xid, &mut bytes).unwrap();
    bytes
}

fn wanting(role: Role) -> SessionConfig {
    SessionConfig {
        role,
        ..SessionConfig::default()
    }
}

/// Returns a short text for a message, and the role that it requests.
fn in_words(message: &Message) -> (String, Option<WireRole>) {
    let word = match message {
        Message::RoleRequest(role) => {
            let word = format!("role {:?} {}", role.role, role.generation_id);
            return (word, Some(*role));
        }
        Message::Experimenter(vendor) => match NiciraMessage::decode(vendor).unwrap() {
            Some(NiciraMessage::RoleRequest(role)) => {
                let asked = WireRole {
                    role,
                    generation_id: 0,
                };
                return (format!("nicira role {role:?}"), Some(asked));
            }
            Some(NiciraMessage::SetAsync(_)) => "nicira async".to_owned(),
            other => panic!("{other:?}"),
        },
        Message::FlowMod(entry) => format!("table-miss {}", entry.table_id),
        Message::SetAsync(_) => "async".to_owned(),
        Message::SetConfig(_) => "config".to_owned(),
        Message::MultipartRequest(_) => "ports".to_owned(),
        Message::FeaturesRequest => "features".to_owned(),
        Message::Hello(_) => "hello".to_owned(),
        Message::EchoRequest(_) => "echo".to_owned(),
        other => panic!("{other:?}"),
    };
    (word, None)
}

impl Bench {
    /// Creates a session that has received the switch's hello.
    fn new(config: SessionConfig, version: Version) -> Self {
        let now = Instant::now();
        let mut bench = Self {
            session: Session::new(config, "tcp:192.0.2.1:4711".into(), now),
            now,
            switch: FakeSwitch {
                version,
                generation: None,
                role: ControllerRole::Equal,
                has_roles: true,
            },
            out: Vec::new(),
            sent: Vec::new(),
        };
        let mut hello = Vec::new();
        Hello::write(&[version], 1, &mut hello);
        bench.input(&hello);
        bench
    }

    /// Creates a session that has joined; its messages until then are discarded.
    fn joined(role: Role, version: Version) -> Self {
        let mut bench = Self::new(wanting(role), version);
        let info = bench.features().or_else(|| bench.answer());
        assert_eq!(info.expect("it joins").role, role);
        bench.take_sent();
        bench
    }

    /// Handles a frame; returns the switch if it joins.
    fn input(&mut self, frame: &[u8]) -> Option<SwitchInfo> {
        let event = self.session.handle_frame(self.now, frame, &mut self.out);
        match event.unwrap() {
            Event::Joined(info) => Some(info),
            _ => None,
        }
    }

    fn features(&mut self) -> Option<SwitchInfo> {
        let features = Features {
            datapath_id: DatapathId(0xd1),
            n_buffers: 256,
            n_tables: 3,
            auxiliary_id: 0,
            capabilities: Capabilities::FLOW_STATS,
            actions: 0,
            ports: List::default(),
        };
        let frame = encode(self.switch.version, 2, &Message::FeaturesReply(features));
        self.input(&frame)
    }

    /// Makes the switch answer until the session sends no more; returns the switch if it joins.
    fn answer(&mut self) -> Option<SwitchInfo> {
        let mut joined = None;
        while !self.out.is_empty() {
            for answer in self.answers() {
                joined = self.input(&answer).or(joined);
            }
        }
        joined
    }

    /// Returns the switch's answers to messages since the last call.
    fn answers(&mut self) -> Vec<Vec<u8>> {
        let sent = std::mem::take(&mut self.out);
        let (mut rest, mut answers) = (&sent[..], Vec::new());
        while let Some((frame, after)) = split_frame(rest).unwrap() {
            rest = after;
            let (header, message) = Message::decode(frame).unwrap();
            let (word, asked) = in_words(&message);
            self.sent.push(word);
            answers.extend(asked.map(|asked| self.switch.answer(header.xid, asked)));
        }
        answers
    }

    fn take_sent(&mut self) -> Vec<String> {
        self.answer();
        std::mem::take(&mut self.sent)
    }

    fn ask(&mut self, request: impl Into<RoleRequest>) {
        self.session.ask_for_role(self.now, request, &mut self.out);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        let event = self.session.handle_timeout(self.now, &mut self.out);
        event.unwrap();
    }

    fn reports(&mut self) -> Vec<RoleReport> {
        std::iter::from_fn(|| self.session.poll_role()).collect()
    }

    /// Handles the error OFPBRC_IS_SLAVE of the switch.
    fn refuse_as_slave(&mut self) {
        let mut error = Vec::new();
        ErrorMessage::write_is_slave(self.switch.version, 0x0100_0001, &[], &mut error).unwrap();
        self.input(&error);
    }
}

const LOST: RoleReport = RoleReport::Changed {
    from: Role::Primary,
    to: Role::Secondary,
};

#[test]
fn equal_controllers_send_no_role_request() {
    for version in Version::ALL {
        let mut bench = Bench::new(SessionConfig::default(), version);
        assert_eq!(bench.features().unwrap().role, Role::Equal);
        assert!(!bench.take_sent().iter().any(|word| word.contains("role")));
        assert_eq!(bench.reports(), []);
    }
}

#[test]
fn no_entries_are_sent_before_the_role_reply() {
    let mut bench = Bench::new(wanting(Role::Primary), Version::Of13);
    assert!(bench.features().is_none(), "it has not joined");
    assert_eq!(bench.session.version(), None);
    let info = bench.answer().expect("it joins with the role");
    assert_eq!(
        (info.role, bench.session.role()),
        (Role::Primary, Role::Primary)
    );
    let expected = [
        "hello",
        "features",
        "config",
        "role NoChange 0",
        "role Master 0",
        "ports",
        "table-miss 0",
    ];
    assert_eq!(bench.take_sent(), expected);
    assert_eq!(bench.session.answering_version(), Some(Version::Of13));
}

#[test]
fn messages_before_the_role_reply_reach_no_program() {
    let mut bench = Bench::new(wanting(Role::Primary), Version::Of10);
    assert!(bench.features().is_none());
    let echo = encode(Version::Of10, 5, &Message::EchoRequest(b"?"));
    assert!(bench.input(&echo).is_none());
    let reply = bench.out.split_off(bench.out.len() - echo.len());
    assert_eq!(reply, encode(Version::Of10, 5, &Message::EchoReply(b"?")));
    let added = PortStatus {
        reason: PortReason::Add,
        port: Port::new(PortNo(7), MacAddr::from_u64(7), "eth7"),
    };
    let added = encode(Version::Of10, 6, &Message::PortStatus(added));
    assert!(bench.input(&added).is_none());
    let info = bench.answer().expect("it joins");
    assert!(info.port(PortNo(7)).is_some(), "the port is known");
    assert_eq!(bench.take_sent().last().unwrap(), "nicira role Master");
}

#[test]
fn a_secondary_writes_no_entries_until_it_is_promoted() {
    let mut bench = Bench::new(wanting(Role::Secondary), Version::Of13);
    bench.features();
    assert_eq!(bench.answer().unwrap().role, Role::Secondary);
    assert_eq!(bench.session.answering_version(), None);
    assert_eq!(bench.session.version(), Some(Version::Of13));
    let asked = ["role NoChange 0", &format!("role Slave {}", u64::MAX)];
    assert_eq!(bench.take_sent()[3..], [asked[0], asked[1], "ports"]);
    bench.ask(Role::Primary);
    assert_eq!(
        bench.take_sent(),
        ["role NoChange 0", "role Master 0", "table-miss 0"]
    );
    let won = RoleReport::Changed {
        from: Role::Secondary,
        to: Role::Primary,
    };
    assert_eq!(bench.reports(), [won, RoleReport::Granted(Role::Primary)]);
}

#[test]
fn primaries_use_the_generation_after_the_newest() {
    for newest in [0, 7, u64::MAX - 1, i64::MAX as u64] {
        let mut bench = Bench::new(wanting(Role::Primary), Version::Of13);
        bench.switch.generation = Some(newest);
        bench.features();
        assert_eq!(bench.answer().unwrap().role, Role::Primary);
        assert_eq!(bench.switch.generation, Some(newest.wrapping_add(1)));
    }
}

#[test]
fn stale_generations_are_replaced() {
    let mut bench = Bench::joined(Role::Equal, Version::Of13);
    bench.ask(Role::Primary);
    // Another controller is faster several times.
    for newest in (10..19).step_by(3) {
        let [newest_generation] = &bench.answers()[..] else {
            panic!("expected the question for the generation");
        };
        bench.input(newest_generation);
        bench.switch.generation = Some(newest);
        let [stale] = &bench.answers()[..] else {
            panic!("expected the request for the role");
        };
        bench.input(stale);
    }
    bench.answer();
    assert_eq!(bench.session.role(), Role::Primary);
    assert_eq!(bench.switch.generation, Some(17));
}

#[test]
fn lost_elections_are_reported_and_leave_a_secondary() {
    let config = SessionConfig::default();
    let request = RoleRequest {
        role: Role::Primary,
        generation_id: Some(4),
    };
    config.roles.set_all(request);
    let mut bench = Bench::new(config, Version::Of13);
    bench.switch.generation = Some(5);
    bench.features();
    assert_eq!(bench.answer().unwrap().role, Role::Secondary);
    let expected = ["role Master 4", "role NoChange 0", "role Slave 5", "ports"];
    assert_eq!(bench.take_sent()[3..], expected);
    // A pending request is reported, and has no other effect.
    bench.ask(request);
    bench.answer();
    let stale = RoleRefusal::Error(ErrorCode::RoleRequestFailedStale);
    assert_eq!(bench.reports(), [RoleReport::Refused(stale)]);
    assert!(stale.is_stale());
}

#[test]
fn switches_without_roles_accept_equals_and_read_only_secondaries() {
    let cases = [
        (Role::Primary, Role::Equal),
        (Role::Secondary, Role::Secondary),
    ];
    for version in Version::ALL {
        for (wanted, role) in cases {
            let mut bench = Bench::new(wanting(wanted), version);
            bench.switch.has_roles = false;
            bench.features();
            assert_eq!(bench.answer().unwrap().role, role, "{wanted} {version}");
            let sent = bench.take_sent();
            let writes = sent.iter().any(|word| word.starts_with("table-miss"));
            assert_eq!(writes, role == Role::Equal && version == Version::Of13);
        }
    }
}

#[test]
fn a_switch_that_does_not_answer_does_not_join() {
    let mut bench = Bench::new(wanting(Role::Primary), Version::Of10);
    bench.features();
    bench.now += Duration::from_secs(10);
    let ended = bench.session.handle_timeout(bench.now, &mut bench.out);
    let error = ended.unwrap_err();
    assert_eq!(error, SessionError::RoleTimeout(Duration::from_secs(10)));
    assert!(error.to_string().contains("--role equal"), "{error}");
}

#[test]
fn slave_errors_lose_the_role() {
    for version in Version::ALL {
        let mut bench = Bench::joined(Role::Primary, version);
        bench.refuse_as_slave();
        assert_eq!(bench.reports(), [LOST]);
        assert_eq!(bench.session.answering_version(), None);
        bench.refuse_as_slave();
        assert_eq!(bench.reports(), [], "it is told once");
    }
}

#[test]
fn primaries_check_their_role_regularly() {
    let mut bench = Bench::joined(Role::Primary, Version::Of13);
    bench.pass(Duration::from_secs(1));
    bench.pass(Duration::from_secs(4));
    assert_eq!(bench.take_sent(), ["echo"]);
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.take_sent(), ["role NoChange 0"]);
    assert_eq!(bench.reports(), []);
    bench.switch.role = ControllerRole::Slave;
    bench.pass(Duration::from_secs(5));
    bench.answer();
    assert_eq!(bench.reports(), [LOST]);
    bench.take_sent();
    bench.pass(Duration::from_secs(6));
    assert!(!bench.take_sent().iter().any(|word| word.contains("role")));
}

#[test]
fn role_requests_of_programs_count() {
    let mut bench = Bench::joined(Role::Equal, Version::Of13);
    let reply = Message::RoleReply(WireRole {
        role: ControllerRole::Slave,
        generation_id: 3,
    });
    let reply = encode(Version::Of13, 0x0100_0005, &reply);
    let event = bench
        .session
        .handle_frame(bench.now, &reply, &mut bench.out);
    assert!(
        matches!(event, Ok(Event::Message(..))),
        "the program gets it"
    );
    assert_eq!(bench.session.role(), Role::Secondary);
}

#[test]
fn unanswered_role_requests_end() {
    let mut bench = Bench::joined(Role::Equal, Version::Of13);
    bench.ask(Role::Primary);
    assert!(bench.session.is_asking_for_role());
    bench.out.clear();
    // The switch is alive throughout.
    for _ in 0..3 {
        bench.session.note_received(bench.now);
        bench.pass(Duration::from_secs(4));
    }
    assert_eq!(bench.reports(), [RoleReport::Refused(RoleRefusal::Timeout)]);
    assert!(!bench.session.is_asking_for_role());
}

#[test]
fn asynchronous_messages_are_configured_before_the_role_request() {
    let wanted = AsyncConfig {
        packet_in_mask: [7, 7],
        port_status_mask: [7, 7],
        flow_removed_mask: [15, 0],
    };
    for (version, word) in [(Version::Of10, "nicira async"), (Version::Of13, "async")] {
        for role in [Role::Equal, Role::Secondary] {
            let mut config = wanting(role);
            config.async_config = Some(wanted);
            let mut bench = Bench::new(config, version);
            bench.take_sent();
            bench.features();
            assert_eq!(bench.take_sent()[0], word, "{version} {role}");
        }
    }
}

proptest! {
    /// For any generations that two controllers have named, each gets its role, and the switch's generation only advances.
    #[test]
    fn two_controllers_always_agree_on_roles(
        first: Option<u64>,
        turns in prop::collection::vec((any::<bool>(), any::<bool>()), 1..20),
    ) {
        let mut bench = Bench::joined(Role::Equal, Version::Of13);
        bench.switch.generation = first;
        for (is_other, is_primary) in turns {
            let before = bench.switch.generation.unwrap_or(u64::MAX);
            if is_other {
                // Another controller wins an election.
                bench.switch.generation = Some(before.wrapping_add(1));
                bench.switch.role = ControllerRole::Slave;
                bench.refuse_as_slave();
                bench.reports();
                continue;
            }
            let role = match is_primary {
                true => Role::Primary,
                false => Role::Secondary,
            };
            bench.ask(role);
            bench.answer();
            prop_assert_eq!(bench.reports().pop(), Some(RoleReport::Granted(role)));
            prop_assert_eq!(bench.session.role(), role);
            let after = bench.switch.generation.unwrap();
            prop_assert_eq!(after.wrapping_sub(before), u64::from(is_primary));
        }
    }

    /// Arbitrary bytes instead of a reply do not cause a panic.
    #[test]
    fn any_role_reply_is_tolerated(
        message_type in 0_u8..30,
        body in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        for version in Version::ALL {
            let mut bench = Bench::new(wanting(Role::Primary), version);
            bench.features();
            let length = (8 + body.len()) as u8;
            let xid = bench.session.xids.last() as u8;
            let mut frame = vec![version.to_wire(), message_type, 0, length, 0, 0, 0, xid];
            frame.extend(&body);
            let _ = bench.session.handle_frame(bench.now, &frame, &mut bench.out);
            let _ = bench.session.handle_timeout(bench.now, &mut bench.out);
        }
    }
}
