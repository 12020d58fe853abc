//! Tests with recordings of one switch, and with matching and differing controllers.

use super::played::{PlayError, Played};
use super::player::{Pace, Player, scaled};
use super::recording::{Recording, RecordingError};
use super::script::Script;
use crate::transcript::{Side, Transcript};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, TsResolution};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use urtica_socket::Address;
use urtica_wire::{Version, split_frame};

/// A timeout that only a failure reaches.
const LONG: Duration = Duration::from_secs(60);

/// A timeout that some tests wait for.
const SHORT: Duration = Duration::from_secs(1);

const SWITCH: &str = "192.0.2.1:40000";
const CONTROLLER: &str = "192.0.2.2:9999";

fn message(message_type: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let length = 8 + body.len() as u16;
    let head = [&[4, message_type], &length.to_be_bytes()[..]].concat();
    [&head, &xid.to_be_bytes()[..], body].concat()
}

fn hello() -> Vec<u8> {
    message(0, 1, &[0, 1, 0, 8, 0, 0, 0, 0x10])
}

/// Returns a features reply of datapath 7.
fn features_reply(xid: u32) -> Vec<u8> {
    let mut body = [0; 24];
    body[7] = 7;
    message(6, xid, &body)
}

fn packet_in(reason: u8) -> Vec<u8> {
    let head = [
        0xff, 0xff, 0xff, 0xff, 0, 4, reason, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    let matched = [0, 1, 0, 4, 0, 0, 0, 0];
    message(
        10,
        0,
        &[&head[..], &matched, &[0, 0], &[1, 2, 3, 4]].concat(),
    )
}

fn flow_mod(xid: u32) -> Vec<u8> {
    let mut body = [0; 48];
    body[41] = 1;
    body[43] = 4;
    message(14, xid, &body)
}

/// Returns a conversation: handshake, a barrier, and two packet-ins that a flow mod each answers, the first with an error.
fn conversation() -> Vec<(Side, Vec<u8>)> {
    use Side::{Controller, Switch};
    vec![
        (Switch, hello()),
        (Controller, [hello(), message(5, 100, &[])].concat()),
        (Switch, features_reply(100)),
        (Controller, message(20, 101, &[])),
        (Switch, message(21, 101, &[])),
        (Switch, message(2, 55, b"alive")),
        (Controller, message(3, 55, b"alive")),
        (Switch, packet_in(0)),
        (Controller, flow_mod(102)),
        (Switch, message(1, 102, &[0, 5, 0, 1])),
        (Switch, packet_in(1)),
        (Controller, flow_mod(103)),
    ]
}

fn packets(conversation: &[(Side, Vec<u8>)]) -> Vec<Vec<u8>> {
    let place = |text: &str| text.parse().expect("a place");
    let mut transcript = Transcript::new(place(SWITCH), place(CONTROLLER), 1);
    let mut packets = transcript.open();
    for (side, bytes) in conversation {
        packets.extend(transcript.data(*side, bytes));
    }
    packets.extend(transcript.close(Side::Switch));
    packets
}

/// Returns a file with these packets, a millisecond apart.
fn file(packets: &[Vec<u8>]) -> Vec<u8> {
    let header = PcapHeader {
        datalink: DataLink::RAW,
        ts_resolution: TsResolution::MicroSecond,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(Vec::new(), header).expect("a header");
    for (packet, time_ms) in packets.iter().zip(1_000_000..) {
        let time = Duration::from_millis(time_ms);
        let packet = PcapPacket::new(time, packet.len() as u32, packet);
        writer.write_packet(&packet).expect("written");
    }
    writer.into_writer()
}

fn read(packets: &[Vec<u8>]) -> Recording {
    Recording::read(&file(packets)).expect("a recording")
}

fn script() -> Script {
    let mut recording = read(&packets(&conversation()));
    assert_eq!(recording.problems, [""; 0]);
    Script::new(recording.sessions.remove(0))
}

#[test]
fn a_conversation_has_answers_and_asynchronous_messages() {
    let recording = read(&packets(&conversation()));
    let session = &recording.sessions[0];
    assert_eq!(session.switch, SWITCH.parse().expect("a place"));
    assert_eq!((session.datapath_id.0, session.version), (7, Version::Of13));
    let script = script();
    assert_eq!(script.expected.len(), 4);
    let asynchronous: Vec<_> = script
        .asynchronous
        .iter()
        .map(|asynchronous| (asynchronous.after, asynchronous.frame.clone()))
        .collect();
    assert_eq!(asynchronous, [(2, packet_in(0)), (3, packet_in(1))]);
    let apart = script.asynchronous[1].offset - script.asynchronous[0].offset;
    assert_eq!(apart, Duration::from_millis(3));
}

#[test]
fn repeated_and_late_packets_change_nothing() {
    let in_order = packets(&conversation());
    let mut disordered = in_order.clone();
    disordered.insert(6, in_order[5].clone());
    let last = disordered.len() - 4;
    disordered.swap(last, last - 2);
    let (expected, found) = (read(&in_order), read(&disordered));
    assert_eq!(found.problems, [""; 0]);
    let of_switch = |recording: &Recording| {
        let steps = recording.sessions[0].steps.iter();
        let steps = steps.filter(|step| step.from == Side::Switch);
        steps.map(|step| step.frame.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of_switch(&found), of_switch(&expected));
}

#[test]
fn a_session_ends_at_missing_bytes_and_reports_them() {
    let mut packets = packets(&conversation());
    // The first packet-in comes after three packets of the handshake, and seven others.
    packets.remove(10);
    let recording = read(&packets);
    let script = Script::new(read(&packets).sessions.remove(0));
    assert_eq!(script.asynchronous.len(), 0);
    let [problem] = &recording.problems[..] else {
        panic!("{:?}", recording.problems);
    };
    let words = format!(
        "bytes of {SWITCH} are missing from the recording: {}",
        packet_in(0).len()
    );
    assert!(problem.contains(&words), "{problem}");
}

#[test]
fn a_truncated_file_is_reported() {
    let whole = file(&packets(&conversation()));
    let mut sessions = 0;
    for length in 0..whole.len() {
        match Recording::read(&whole[..length]) {
            Ok(recording) => {
                let session = &recording.sessions[0];
                assert!(session.steps.len() < 12);
                sessions += 1;
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(sessions > 100, "{sessions}");
    let cut = Recording::read(&whole[..whole.len() - 1]).expect("a recording");
    assert!(
        cut.problems[0].contains("ends in the middle of a packet"),
        "{:?}",
        cut.problems
    );
}

#[test]
fn implausible_times_are_waited_for_like_others() {
    let year = Duration::from_secs(365 * 24 * 3600);
    assert_eq!(scaled(Duration::MAX, 0.001), year);
    assert_eq!(scaled(Duration::MAX, 1e6), year);
    assert_eq!(
        scaled(Duration::from_secs(3), 2.0),
        Duration::from_millis(1500)
    );
}

proptest! {
    #[test]
    fn no_damage_to_a_file_panics(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut bytes = file(&packets(&conversation()));
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(recording) = Recording::read(&bytes) {
            for session in recording.sessions {
                let script = Script::new(session);
                for asynchronous in script.asynchronous {
                    prop_assert!(scaled(asynchronous.offset, 0.001) > Duration::ZERO || asynchronous.offset.is_zero());
                }
            }
        }
    }
}

/// Returns the error of a conversation with nothing to replay.
fn refusal(conversation: &[(Side, Vec<u8>)]) -> String {
    match Recording::read(&file(&packets(conversation))) {
        Err(error @ RecordingError::Nothing(_)) => error.to_string(),
        other => panic!("{:?}", other.map(|recording| recording.problems)),
    }
}

#[test]
fn other_protocols_are_refused_with_a_reason() {
    use Side::{Controller, Switch};
    let http = [
        (Switch, b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        (Controller, b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
    ];
    assert!(refusal(&http).contains("do not begin with OpenFlow's hello in the recording: 1"));
    let tls = [(Switch, vec![0x16, 3, 1, 0, 5, 1, 2, 3, 4, 5])];
    assert!(refusal(&tls).contains("it is TLS, which urtica capture records in plain"));
    let no_features = &conversation()[..2];
    assert!(refusal(no_features).contains("neither side has sent a features reply"));
    let mut newer = conversation();
    for (_, bytes) in &mut newer {
        bytes[0] = 6;
        if bytes.len() > 24 && bytes[1] == 0 {
            bytes[16] = 6;
        }
    }
    assert!(refusal(&newer).contains("it speaks OpenFlow 1.5; expected 1.0 or 1.3"));
    let no_capture = Recording::read(b"no capture")
        .map(|_| ())
        .expect_err("refused");
    assert!(
        no_capture
            .to_string()
            .contains("expected a pcap or pcapng file")
    );
}

/// The controller's end of a connection.
struct Controller {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Controller {
    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("sent");
    }

    /// Returns the next message; `None` at the end.
    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some((frame, _)) = split_frame(&self.input).expect("OpenFlow") {
                let frame = frame.to_vec();
                self.input.drain(..frame.len());
                return Some(frame);
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer).expect("read") {
                0 => return None,
                count => self.input.extend_from_slice(&buffer[..count]),
            }
        }
    }

    fn expect(&mut self, message: &[u8]) {
        assert_eq!(self.next().as_deref(), Some(message));
    }

    /// Performs the handshake, as in the recording but with other xids.
    fn shake_hands(&mut self) {
        self.send(&hello());
        assert_eq!(self.next().map(|frame| frame[1]), Some(0));
        self.send(&message(5, 900, &[]));
        self.expect(&features_reply(900));
        self.send(&message(20, 901, &[]));
        self.expect(&message(21, 901, &[]));
    }

    /// Replies to the echo request at the end.
    fn finish(&mut self) {
        let mut fence = self.next().expect("an echo request");
        assert_eq!(fence[1], 2);
        fence[1] = 3;
        self.send(&fence);
        assert_eq!(self.next(), None);
    }
}

/// Replays the conversation against a controller with this behaviour.
fn replay(
    pace: Pace,
    timeout: Duration,
    controller: impl FnOnce(&mut Controller) + Send,
) -> Result<Played, PlayError> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address: Address = format!("tcp:{}", listener.local_addr().expect("an address"))
        .parse()
        .expect("an address");
    let script = script();
    std::thread::scope(|scope| {
        let controller = scope.spawn(move || {
            let (stream, _) = listener.accept().expect("accepted");
            stream.set_read_timeout(Some(LONG)).expect("set");
            let input = Vec::new();
            controller(&mut Controller { stream, input });
        });
        let player = Player::connect(&address, None, &script, timeout);
        let played = player.and_then(|player| player.play(pace));
        controller
            .join()
            .expect("the controller has seen what it should");
        played
    })
}

#[test]
fn an_equal_controller_receives_equal_messages() {
    let played = replay(Pace::AsAnswered, LONG, |controller| {
        controller.shake_hands();
        controller.send(&message(2, 77, b"there?"));
        controller.expect(&packet_in(0));
        controller.expect(&message(3, 77, b"there?"));
        controller.send(&flow_mod(902));
        // The error that the recorded switch sent, with our xid, and then its next message.
        controller.expect(&message(1, 902, &[0, 5, 0, 1]));
        controller.expect(&packet_in(1));
        controller.send(&flow_mod(903));
        controller.finish();
    });
    let played = played.expect("played");
    assert_eq!(played.difference, None);
    assert_eq!((played.sent, played.received, played.answered), (2, 4, 3));
    assert_eq!((played.unknown, played.missed), (0, 0));
}

#[test]
fn a_differing_controller_is_reported() {
    let played = replay(Pace::AsAnswered, LONG, |controller| {
        controller.shake_hands();
        controller.expect(&packet_in(0));
        // A message that was not recorded is refused, and returned in the error.
        let tables = message(18, 904, &[0, 3, 0, 0, 0, 0, 0, 0]);
        controller.send(&tables);
        let refused = [&[0, 1, 0, 2][..], &tables].concat();
        controller.expect(&message(1, 904, &refused));
        controller.expect(&packet_in(1));
        // Another barrier, which is answered like the recorded one.
        controller.send(&message(20, 905, &[]));
        controller.expect(&message(21, 905, &[]));
        controller.finish();
    });
    let played = played.expect("played");
    let difference = played.difference.expect("a difference");
    assert_eq!(
        difference,
        "the controller's message 3 is OFPST_TABLE request; expected OFPT_FLOW_MOD, as recorded"
    );
    assert_eq!((played.received, played.unknown), (4, 1));
}

#[test]
fn missing_messages_are_reported_after_a_timeout() {
    let played = replay(Pace::AsAnswered, SHORT, |controller| {
        controller.shake_hands();
        controller.expect(&packet_in(0));
        controller.expect(&packet_in(1));
        controller.finish();
    });
    let played = played.expect("played");
    let difference = played.difference.expect("a difference");
    let words =
        "expected OFPT_FLOW_MOD as the controller's message 3, but nothing arrived within 1 s";
    assert_eq!(difference, words);
    assert_eq!(played.missed, 2);
}

#[test]
fn load_is_repeated_after_one_handshake() {
    let played = replay(Pace::Load { loops: 500 }, LONG, |controller| {
        controller.shake_hands();
        for _ in 0..500 {
            controller.expect(&packet_in(0));
            controller.expect(&packet_in(1));
        }
        controller.finish();
    });
    assert_eq!(played.expect("played").sent, 1000);
}

#[test]
fn times_are_kept_as_they_were_recorded() {
    let due = script().asynchronous[1].offset * 50;
    let played = replay(Pace::AsRecorded { speed: 0.02 }, LONG, |controller| {
        let began = std::time::Instant::now();
        controller.shake_hands();
        controller.expect(&packet_in(0));
        controller.send(&flow_mod(902));
        controller.expect(&message(1, 902, &[0, 5, 0, 1]));
        controller.expect(&packet_in(1));
        assert!(began.elapsed() >= due);
        controller.send(&flow_mod(903));
        controller.finish();
    });
    assert_eq!(played.expect("played").difference, None);
}

#[test]
fn closing_refusing_and_foreign_controllers_end_the_replay_with_a_message() {
    let ended = |controller: fn(&mut Controller)| {
        let played = replay(Pace::AsAnswered, LONG, controller);
        played.expect_err("it cannot go on").to_string()
    };
    let closed = ended(|controller| {
        controller.shake_hands();
        controller.expect(&packet_in(0));
    });
    let words = "the controller closed the connection after 1 of 2 asynchronous messages";
    assert!(closed.starts_with(words), "{closed}");
    let refused = ended(|controller| {
        controller.send(&message(1, 0, b"\0\0\0\0no \x1b[31m please"));
        controller.next();
    });
    assert_eq!(
        refused,
        "the controller refused: OFPHFC_INCOMPATIBLE (no \\u{1b}[31m please)"
    );
    let older = ended(|controller| {
        controller.send(&[1, 0, 0, 8, 0, 0, 0, 1]);
        controller.next();
    });
    assert!(older.contains("expected 1.3"), "{older}");
    let other = ended(|controller| {
        controller.send(&[4, 0, 0, 3, 0, 0, 0, 1]);
        controller.next();
    });
    assert!(other.contains("invalid OpenFlow"), "{other}");
}
