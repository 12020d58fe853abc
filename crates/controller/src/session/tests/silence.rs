//! Keep-alive, and the time-out of the handshake.

use super::*;

#[test]
fn silent_switches_are_probed_after_5_s_and_dropped_after_15() {
    let (mut bench, _) = Bench::joined(Version::Of13);
    bench.pass(Duration::from_millis(4999)).unwrap();
    assert!(bench.take().is_empty());
    bench.pass(Duration::from_millis(1)).unwrap();
    assert_eq!(bench.take_one().0.message_type, 2, "an echo request");
    bench.pass(Duration::from_millis(4999)).unwrap();
    assert!(bench.take().is_empty());
    bench.pass(Duration::from_millis(1)).unwrap();
    assert_eq!(bench.take_one().0.message_type, 2, "an echo request");
    bench.pass(Duration::from_millis(4999)).unwrap();
    let dead = bench.pass(Duration::from_millis(1));
    assert_eq!(dead, Err(SessionError::Dead(Duration::from_secs(15))));
    assert_eq!(bench.now - bench.start, Duration::from_secs(15));
}

#[test]
fn switches_are_probed_before_they_are_dropped_after_a_pause() {
    let (mut bench, _) = Bench::joined(Version::Of13);
    bench.pass(Duration::from_secs(60)).unwrap();
    assert_eq!(bench.take_one().0.message_type, 2, "an echo request");
    bench.pass(Duration::from_millis(9999)).unwrap();
    assert_eq!(bench.take_one().0.message_type, 2, "an echo request");
    let dead = bench.pass(Duration::from_millis(1));
    assert_eq!(dead, Err(SessionError::Dead(Duration::from_secs(15))));
}

#[test]
fn any_message_keeps_a_switch_alive() {
    let (mut bench, _) = Bench::joined(Version::Of10);
    for _ in 0..10 {
        bench.pass(Duration::from_secs(4)).unwrap();
        bench
            .frame(&encode(Version::Of10, 0, &packet_in()))
            .unwrap();
    }
    assert!(bench.take().is_empty());
    bench.pass(Duration::from_secs(14)).unwrap();
    bench.session.note_received(bench.now);
    bench.pass(Duration::from_secs(14)).unwrap();
}

#[test]
fn the_handshake_must_end_within_10_s() {
    for is_half_done in [false, true] {
        let mut bench = Bench::new(SessionConfig::default());
        if is_half_done {
            bench.frame(&hello(4, None)).unwrap();
        }
        bench.pass(Duration::from_millis(9999)).unwrap();
        let late = bench.pass(Duration::from_millis(1));
        assert_eq!(
            late,
            Err(SessionError::HandshakeTimeout(Duration::from_secs(10)))
        );
    }
}

#[test]
fn other_messages_do_not_prolong_the_handshake() {
    let mut bench = Bench::new(SessionConfig::default());
    bench.frame(&hello(4, None)).unwrap();
    let chatter = encode(Version::Of13, 0, &Message::EchoRequest(b""));
    for _ in 0..9 {
        bench.pass(Duration::from_secs(1)).unwrap();
        bench.frame(&chatter).unwrap();
    }
    bench.pass(Duration::from_secs(1)).unwrap_err();
}
