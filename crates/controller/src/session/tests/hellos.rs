//! Hellos, and the version that they negotiate.

use super::*;

#[test]
fn hello_has_the_highest_version_and_a_bitmap_of_all() {
    let (header, frame) = Bench::new(SessionConfig::default()).greeting();
    assert_eq!((header.version, header.message_type), (4, 0));
    let Message::Hello(hello) = Message::decode(&frame).unwrap().1 else {
        panic!("expected a hello");
    };
    let bitmap = hello.elements.iter().next().unwrap();
    let spoken: Vec<_> = (0..32)
        .filter(|&version| bitmap.includes(version))
        .collect();
    assert_eq!(spoken, [1, 4]);
}

#[test]
fn hello_waits_briefly_for_the_peers_first_message() {
    let mut bench = Bench::new(SessionConfig::default());
    assert!(bench.take().is_empty());
    bench.pass(HELLO_DELAY / 2).unwrap();
    assert!(bench.take().is_empty());
    bench.frame(&hello(4, None)).unwrap();
    let said: Vec<_> = bench.take();
    let types: Vec<_> = said.iter().map(|(header, _)| header.message_type).collect();
    assert_eq!(types[..2], [0, 5], "a hello, then a features request");
    let mut bench = Bench::new(SessionConfig::default());
    assert_eq!(bench.greeting().0.message_type, 0);
    bench.pass(HELLO_DELAY).unwrap();
    assert!(bench.take().is_empty(), "it is said once");
}

#[test]
fn hello_for_only_1_0_has_no_elements() {
    let (header, frame) = Bench::speaking(&[Version::Of10]).greeting();
    assert_eq!((header.version, frame.len()), (1, 8));
}

#[test]
fn lower_version_wins_without_a_bitmap() {
    for (theirs, agreed) in [(1, 1), (4, 4), (5, 4), (6, 4)] {
        let bench = Bench::new(SessionConfig::default());
        assert_eq!(
            bench.negotiate(&hello(theirs, None)),
            Ok(agreed),
            "{theirs:#x}"
        );
    }
    for theirs in [2, 3] {
        let bench = Bench::new(SessionConfig::default());
        let refused = bench.negotiate(&hello(theirs, None)).unwrap_err();
        assert!(
            matches!(refused, SessionError::NoCommonVersion { .. }),
            "{theirs:#x}"
        );
    }
}

#[test]
fn highest_common_version_wins_with_a_bitmap() {
    for (theirs, bitmap, agreed) in [
        (4, OF10 | OF13, 4),
        (2, OF10 | 1 << 2, 1),
        (3, OF10 | 1 << 2 | 1 << 3, 1),
        (6, OF10 | OF13 | OF15, 4),
        (6, OF10 | OF15, 1),
        (1, OF10, 1),
    ] {
        let bench = Bench::new(SessionConfig::default());
        let negotiated = bench.negotiate(&hello(theirs, Some(bitmap)));
        assert_eq!(negotiated, Ok(agreed), "{theirs:#x} {bitmap:#b}");
    }
}

#[test]
fn bitmaps_without_a_common_version_are_refused() {
    let bench = Bench::new(SessionConfig::default());
    let refused = bench.negotiate(&hello(6, Some(OF15))).unwrap_err();
    assert!(matches!(
        refused,
        SessionError::NoCommonVersion { theirs: 6, .. }
    ));
}

#[test]
fn invalid_hello_elements_are_ignored() {
    let bench = Bench::new(SessionConfig::default());
    let odd = [4, 0, 0, 12, 0, 0, 0, 7, 0, 1, 0, 0];
    assert_eq!(bench.negotiate(&odd), Ok(4));
}

#[test]
fn single_version_controllers_agree_to_their_version() {
    let bench = Bench::speaking(&[Version::Of10]);
    assert_eq!(bench.negotiate(&hello(4, None)), Ok(1));
    let bench = Bench::speaking(&[Version::Of13]);
    assert_eq!(bench.negotiate(&hello(6, Some(OF10 | OF13))), Ok(4));
}

#[test]
fn refusals_have_a_readable_message() {
    for (theirs, answered) in [(1, 1), (2, 1), (3, 1), (5, 4)] {
        let mut bench = Bench::speaking(&[Version::Of13]);
        bench.greeting();
        let refused = bench.frame(&hello(theirs, Some(1 << theirs))).unwrap_err();
        let sentence = refused.to_string();
        assert!(sentence.contains("we speak 1.3"), "{sentence}");
        assert!(sentence.contains("ovs-vsctl set bridge"), "{sentence}");
        let (header, code, data) = bench.take_error();
        assert_eq!((header.version, header.xid), (answered, 7));
        assert_eq!(code, ErrorCode::HelloFailedIncompatible);
        assert_eq!(data, b"This controller speaks OpenFlow 1.3.");
    }
}

#[test]
fn an_error_instead_of_a_hello_is_a_refusal_in_any_version() {
    for version in 1..=6 {
        let mut bench = Bench::new(SessionConfig::default());
        let error = [version, 1, 0, 12, 0, 0, 0, 7, 0, 0, 0, 1];
        let refused = bench.frame(&error).unwrap_err();
        assert_eq!(refused, SessionError::Refused(ErrorCode::HelloFailedEperm));
    }
}

#[test]
fn non_hello_bytes_are_refused_silently() {
    for garbage in [
        &b"echo A\n"[..],
        b"GET / HTTP/1.1\r\n",
        b"e",
        &[0],
        &[4, 10],
        &[7, 0],
    ] {
        let bench = Bench::new(SessionConfig::default());
        let refused = bench.session.handle_fragment(garbage).unwrap_err();
        assert!(refused.is_noise(), "{garbage:?}");
    }
    for start in [&[][..], &[1], &[4, 0], &[6, 0, 0], &[2, 1]] {
        let bench = Bench::new(SessionConfig::default());
        assert_eq!(bench.session.handle_fragment(start), Ok(()));
    }
}

#[test]
fn tls_is_distinguished_from_noise() {
    for said in [&[22, 3][..], &[22, 3, 1, 2, 0, 1], &[21, 3, 3, 0, 2, 2, 40]] {
        let refused = Bench::new(SessionConfig::default());
        let refused = refused.session.handle_fragment(said).unwrap_err();
        assert!(!refused.is_noise() && refused == SessionError::Tls);
        assert!(
            refused
                .to_string()
                .contains("expected tcp: in its configuration")
        );
    }
}

#[test]
fn a_message_before_the_hello_is_refused_without_an_answer() {
    let mut bench = Bench::new(SessionConfig::default());
    bench.take();
    let frame = encode(Version::Of13, 0, &packet_in());
    assert_eq!(bench.frame(&frame).unwrap_err(), SessionError::NotOpenFlow);
    assert!(bench.take().is_empty());
}
