//! Tests of hello, echo, and connections that are not OpenFlow.

use crate::support::{Bench, HELLO, config, encode};
use std::collections::BTreeSet;
use std::time::Duration;
use urtica_switch::{ConnectionId, SwitchConfig};
use urtica_wire::{ErrorCode, Message, Version};

const OF10: u8 = 1 << 1;
const OF13: u8 = 1 << 4;
const OF15: u8 = 1 << 6;

fn speaking(versions: &[Version]) -> Bench {
    Bench::new(SwitchConfig {
        versions: versions.to_vec(),
        ..config()
    })
}

fn hello(version: u8, bitmap: Option<u8>) -> Vec<u8> {
    match bitmap {
        None => vec![version, 0, 0, 8, 0, 0, 0, 7],
        Some(bits) => [&[version], &HELLO[1..15], &[bits]].concat(),
    }
}

/// Returns the version of the reply to a barrier after this hello.
fn negotiated(mut bench: Bench, hello: &[u8]) -> Result<u8, String> {
    let controller = bench.connect_silently();
    bench.take(controller);
    bench.input(controller, hello)?;
    for version in Version::ALL {
        let barrier = encode(version, 1, &Message::BarrierRequest);
        bench.input(controller, &barrier).unwrap();
    }
    let sent = bench.take(controller);
    let is_reply = |version| move |message: &Message| *message == version;
    let reply = sent
        .iter()
        .find(|sent| is_reply(Message::BarrierReply)(&sent.message()));
    Ok(reply.expect("a barrier reply").header.version)
}

#[test]
fn the_hello_names_the_highest_version_and_all_in_the_bitmap() {
    let mut bench = speaking(&Version::ALL);
    let controller = bench.connect_silently();
    let sent = bench.take_one(controller);
    assert_eq!((sent.header.version, sent.header.message_type), (4, 0));
    let Message::Hello(hello) = sent.message() else {
        panic!("expected a hello");
    };
    let bitmap = hello.elements.iter().next().unwrap();
    let spoken: Vec<_> = (0..32)
        .filter(|&version| bitmap.includes(version))
        .collect();
    assert_eq!(spoken, [1, 4]);
}

#[test]
fn a_hello_for_1_0_alone_has_no_elements() {
    let mut bench = speaking(&[Version::Of10]);
    let controller = bench.connect_silently();
    let header = bench.take_one(controller).header;
    assert_eq!((header.version, header.length), (1, 8));
}

#[test]
fn without_a_bitmap_the_lower_version_is_used() {
    for (theirs, agreed) in [(1, 1), (4, 4), (5, 4), (6, 4)] {
        let bench = speaking(&Version::ALL);
        assert_eq!(negotiated(bench, &hello(theirs, None)), Ok(agreed));
    }
}

#[test]
fn with_a_bitmap_the_highest_common_version_is_used() {
    for (bits, agreed) in [(OF10, 1), (OF13, 4), (OF10 | OF13, 4), (OF10 | OF15, 1)] {
        let bench = speaking(&Version::ALL);
        assert_eq!(negotiated(bench, &hello(6, Some(bits))), Ok(agreed));
    }
}

#[test]
fn no_common_version_is_refused_with_a_sentence() {
    let bitmap_15 = hello(6, Some(OF15));
    for (ours, theirs, answered_in) in [
        (vec![Version::Of13], hello(1, None), 1),
        (vec![Version::Of10], bitmap_15.clone(), 1),
        (Version::ALL.to_vec(), hello(3, None), 1),
        (Version::ALL.to_vec(), bitmap_15, 4),
    ] {
        let mut bench = speaking(&ours);
        let controller = bench.connect_silently();
        bench.take(controller);
        let reason = bench.input(controller, &theirs).unwrap_err();
        assert!(reason.contains("allow one of these there"), "{reason}");
        let sent = bench.take_one(controller);
        assert_eq!((sent.header.version, sent.header.xid), (answered_in, 7));
        let Message::Error(error) = sent.message() else {
            panic!("expected an error");
        };
        assert_eq!(error.code, ErrorCode::HelloFailedIncompatible);
        assert!(error.data.starts_with(b"This switch speaks OpenFlow 1."));
    }
}

#[test]
fn connections_without_openflow_end_without_an_answer() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"echo A",
        &[4, 2, 0, 8, 0, 0, 0, 1],
        b"\0",
    ] {
        let mut bench = speaking(&Version::ALL);
        let controller = bench.connect_silently();
        bench.take(controller);
        let reason = bench.input(controller, bytes).unwrap_err();
        assert!(reason.contains("not an OpenFlow hello"), "{reason}");
        assert!(bench.take(controller).is_empty());
    }
}

#[test]
fn a_controller_that_refuses_our_hello_is_quoted() {
    let mut bench = speaking(&Version::ALL);
    let controller = bench.connect_silently();
    let error = [1, 1, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0];
    let reason = bench.input(controller, &error).unwrap_err();
    assert!(reason.contains("OFPHFC_INCOMPATIBLE"), "{reason}");
}

#[test]
fn echo_replies_have_the_payload() {
    for version in Version::ALL {
        let (mut bench, controller) = Bench::with_controller(version);
        let answer = bench.ask(controller, &Message::EchoRequest(b"payload"));
        assert_eq!(answer.message(), Message::EchoReply(b"payload"));
        assert_eq!(answer.header.version, version.to_wire());
    }
}

#[test]
fn messages_may_arrive_in_pieces_of_any_size() {
    let stream = [
        hello(4, None),
        encode(Version::Of13, 1, &Message::EchoRequest(&[7; 100])),
        encode(Version::Of13, 2, &Message::BarrierRequest),
    ]
    .concat();
    for size in 1..stream.len() {
        let mut bench = speaking(&Version::ALL);
        let controller = bench.connect_silently();
        bench.take(controller);
        for chunk in stream.chunks(size) {
            bench.input(controller, chunk).unwrap();
        }
        let xids: Vec<_> = bench
            .take(controller)
            .iter()
            .map(|s| s.header.xid)
            .collect();
        assert_eq!(xids, [1, 2]);
    }
}

#[test]
fn a_silent_controller_gets_an_echo_request_and_times_out() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    assert!(bench.pass(Duration::from_millis(4999)).is_empty());
    assert!(bench.take(controller).is_empty());
    assert!(bench.pass(Duration::from_millis(1)).is_empty());
    let request = bench.take_one(controller);
    assert_eq!(request.message(), Message::EchoRequest(&[]));
    assert!(bench.pass(Duration::from_millis(9999)).is_empty());
    let ended = bench.pass(Duration::from_millis(1));
    assert_eq!(ended[0].0, controller);
    assert!(ended[0].1.contains("nothing received for 15s"), "{ended:?}");
}

#[test]
fn a_controller_that_answers_is_kept() {
    let (mut bench, controller) = Bench::with_controller(Version::Of10);
    let mut xids = BTreeSet::new();
    for _ in 0..10 {
        assert!(bench.pass(Duration::from_secs(5)).is_empty());
        xids.insert(bench.take_one(controller).header.xid);
        bench.tell_quietly(controller, &Message::EchoReply(&[]));
    }
    assert_eq!(xids.len(), 10, "each request has an xid of its own");
}

#[test]
fn a_controller_without_a_hello_times_out() {
    let mut bench = speaking(&Version::ALL);
    let controller = bench.connect_silently();
    assert!(bench.pass(Duration::from_millis(9999)).is_empty());
    let ended = bench.pass(Duration::from_millis(1));
    assert_eq!(ended[0].0, controller);
    assert!(ended[0].1.contains("no hello received"), "{ended:?}");
}

#[test]
fn a_length_below_the_headers_ends_the_connection_after_an_error() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let frame = [4, 2, 0, 7, 0, 0, 0, 9];
    let reason = bench.input(controller, &frame).unwrap_err();
    assert!(reason.contains("gives its length as 7"), "{reason}");
    assert_eq!(
        bench.refusal(controller, &frame),
        ErrorCode::BadRequestBadLen
    );
}

#[test]
fn malformed_messages_are_refused_and_survived() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    for (frame, code) in [
        (
            &[1, 5, 0, 8, 0, 0, 0, 9][..],
            ErrorCode::BadRequestBadVersion,
        ),
        (&[5, 0, 0, 8, 0, 0, 0, 9], ErrorCode::BadRequestBadVersion),
        (&[4, 30, 0, 8, 0, 0, 0, 9], ErrorCode::BadRequestBadType),
        (&[4, 5, 0, 9, 0, 0, 0, 9, 0], ErrorCode::BadRequestBadLen),
        (
            &[4, 14, 0, 10, 0, 0, 0, 9, 0, 0],
            ErrorCode::BadRequestBadLen,
        ),
        (
            &[4, 18, 0, 16, 0, 0, 0, 9, 0, 99, 0, 0, 0, 0, 0, 0],
            ErrorCode::BadRequestBadMultipart,
        ),
    ] {
        bench.input(controller, frame).unwrap();
        assert_eq!(bench.refusal(controller, frame), code, "{frame:?}");
    }
    bench.ask(controller, &Message::BarrierRequest);
}

#[test]
fn errors_are_not_answered() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    for frame in [
        &[4, 1, 0, 12, 0, 0, 0, 9, 0, 1, 0, 1][..],
        &[4, 1, 0, 9, 0, 0, 0, 9, 0],
    ] {
        bench.input(controller, frame).unwrap();
        assert!(bench.take(controller).is_empty());
    }
}

#[test]
fn unknown_connections_are_errors() {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    bench.switch.disconnect(controller, bench.now);
    bench.switch.disconnect(controller, bench.now);
    assert!(bench.input(controller, &HELLO).is_err());
    assert!(bench.switch.output(controller).is_none());
    assert!(!bench.switch.wants_input(controller));
}

/// A controller that has requested this number of echoes of 65,000 bytes, and read none of them.
fn unread(echoes: usize) -> (Bench, ConnectionId, Result<(), String>) {
    let (mut bench, controller) = Bench::with_controller(Version::Of13);
    let echo = encode(Version::Of13, 1, &Message::EchoRequest(&[0; 65_000]));
    let result = (0..echoes).try_for_each(|_| bench.input(controller, &echo));
    (bench, controller, result)
}

#[test]
fn a_controller_that_does_not_read_is_not_read_from() {
    let (mut bench, controller, result) = unread(20);
    assert_eq!(result, Ok(()));
    assert!(!bench.switch.wants_input(controller));
    bench.switch.output(controller).unwrap().clear();
    assert!(bench.switch.wants_input(controller));
}

#[test]
fn requests_wait_for_a_controller_that_does_not_read() {
    let (mut bench, controller, result) = unread(270);
    assert_eq!(result, Ok(()));
    let answered = bench.take(controller).len();
    assert!((250..270).contains(&answered), "{answered}");
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.take(controller).len(), 270 - answered);
}

#[test]
fn a_controller_that_requests_without_reading_is_disconnected() {
    let (mut bench, controller, result) = unread(1000);
    assert!(result.unwrap_err().contains("are unread"));
    assert!(bench.switch.output(controller).unwrap().len() < 17 << 20);
}

#[test]
fn a_controller_that_reads_is_alive() {
    let (mut bench, controller, _) = unread(100);
    for _ in 0..20 {
        assert!(bench.pass(Duration::from_secs(5)).is_empty());
        bench.switch.output(controller).unwrap().drain(..1000);
    }
}
