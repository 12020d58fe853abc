use super::*;
use urtica_wire::{Capabilities, DatapathId, Features, Header, Hello, List, split_frame};

const VERSIONS: [Version; 2] = Version::ALL;

fn encode(version: Version, xid: u32, message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(version, xid, &mut bytes).unwrap();
    bytes
}

fn features(version: Version, xid: u32) -> Vec<u8> {
    let reply = Features {
        datapath_id: DatapathId(0xd1),
        n_buffers: 256,
        n_tables: 4,
        auxiliary_id: 0,
        capabilities: Capabilities::FLOW_STATS,
        actions: 0,
        ports: List::default(),
    };
    encode(version, xid, &Message::FeaturesReply(reply))
}

fn new_session() -> Session {
    Session::new(
        SessionConfig::default(),
        "tcp:192.0.2.1:4711".into(),
        Instant::now(),
    )
}

/// Passes hello and features reply to the session, the first `steps` of them.
fn advance(session: &mut Session, version: Version, steps: usize) {
    let mut hello = Vec::new();
    Hello::write(&[version], 1, &mut hello);
    let steps = &[hello, features(version, 2)][..steps];
    for frame in steps {
        session
            .handle_frame(Instant::now(), frame, &mut Vec::new())
            .unwrap();
    }
}

fn resume(
    session: &Session,
    config: SessionConfig,
    features: &[u8],
) -> Result<(Session, Option<SwitchInfo>, Vec<u8>), Unusable> {
    let (peer, now) = (session.peer().to_owned(), Instant::now());
    let mut out = Vec::new();
    let kept = (session.to_word(), features);
    let (session, info) = Session::resume(config, peer, now, kept, &mut out)?;
    Ok((session, info, out))
}

/// The messages that are sent, as words of the specification.
fn names(mut sent: &[u8]) -> Vec<&'static str> {
    let mut names = Vec::new();
    while let Some((frame, rest)) = split_frame(sent).unwrap() {
        names.push(match Message::decode(frame).unwrap().1 {
            Message::FeaturesRequest => "features",
            Message::SetConfig(_) => "config",
            Message::MultipartRequest(_) => "ports",
            Message::FlowMod(_) => "table-miss",
            other => panic!("{other:?}"),
        });
        sent = rest;
    }
    names
}

#[test]
fn every_phase_is_resumed() {
    for version in VERSIONS {
        let mut session = new_session();
        let (next, info, sent) = resume(&session, SessionConfig::default(), &[]).unwrap();
        assert_eq!(
            (next.phase, info.is_none(), sent.len()),
            (Phase::New, true, 0)
        );

        session
            .handle_timeout(session.started + super::super::HELLO_DELAY, &mut Vec::new())
            .unwrap();
        let (next, _, sent) = resume(&session, SessionConfig::default(), &[]).unwrap();
        assert_eq!(
            (next.phase, sent.len()),
            (Phase::Hello, 0),
            "it has said its hello"
        );

        advance(&mut session, version, 1);
        let (mut next, info, sent) = resume(&session, SessionConfig::default(), &[]).unwrap();
        assert!(info.is_none());
        assert_eq!(names(&sent)[..2], ["features", "config"]);
        // The reply to the question of the program before serves as well.
        let reply = features(version, 2);
        let event = next.handle_frame(Instant::now(), &reply, &mut Vec::new());
        assert!(
            matches!(event, Ok(super::super::Event::Joined(_))),
            "{event:?}"
        );
    }
}

/// The words of this layout of journals, which another build may have written.
#[test]
fn a_word_has_golden_bytes() {
    let session = new_session();
    assert_eq!(session.to_word().to_le_bytes()[4..], [0, 0, 1, 0]);
    for (version, expected) in [(Version::Of10, [3, 1, 1, 0]), (Version::Of13, [3, 4, 1, 0])] {
        let mut session = new_session();
        advance(&mut session, version, 1);
        let word = session.to_word();
        assert_eq!(word.to_le_bytes()[4..6], [2, version.to_wire()]);
        advance(&mut session, version, 2);
        let word = session.to_word();
        assert_eq!(word as u32, session.xids.last());
        assert_eq!(word.to_le_bytes()[4..], expected);
    }
}

#[test]
fn resumed_switches_are_only_asked_for_their_ports() {
    for (version, asked) in [(Version::Of10, "features"), (Version::Of13, "ports")] {
        let mut session = new_session();
        advance(&mut session, version, 2);
        let kept = features(version, 2);
        let (mut next, info, sent) = resume(&session, SessionConfig::default(), &kept).unwrap();
        let info = info.unwrap();
        assert_eq!(
            (info.datapath_id, info.n_tables, info.version),
            (DatapathId(0xd1), 4, version)
        );
        assert_eq!(names(&sent), [asked]);
        assert!(next.awaits_ports());
        assert_eq!(
            next.version(),
            Some(version),
            "packet-ins are answered at once"
        );
        // Its xids continue.
        let xid = Header::peek(&sent).unwrap().xid;
        assert_eq!(xid, session.xids.last() + 1);
        if version == Version::Of10 {
            let reply = features(version, xid);
            let event = next.handle_frame(Instant::now(), &reply, &mut Vec::new());
            assert!(
                matches!(event, Ok(super::super::Event::Ports { last: true, .. })),
                "{event:?}"
            );
        }
    }
}

#[test]
fn possibly_missing_table_miss_entries_are_added() {
    let mut session = new_session();
    advance(&mut session, Version::Of13, 2);
    let kept = features(Version::Of13, 2);
    let with_filter = SessionConfig {
        tables: 2,
        ..SessionConfig::default()
    };
    let (_, _, sent) = resume(&session, with_filter, &kept).unwrap();
    assert_eq!(names(&sent), ["ports", "table-miss", "table-miss"]);
    // The switch had refused it.
    session.table_misses.note_sent(0, 0xabc);
    session.note_refusal(0xabc);
    let (_, _, sent) = resume(&session, SessionConfig::default(), &kept).unwrap();
    assert_eq!(names(&sent), ["ports", "table-miss"]);
}

#[test]
fn unusable_sessions_are_refused() {
    let mut session = new_session();
    advance(&mut session, Version::Of13, 2);
    let old = SessionConfig {
        versions: vec![Version::Of10],
        ..SessionConfig::default()
    };
    let refused = resume(&session, old, &features(Version::Of13, 2)).map(drop);
    assert_eq!(refused, Err(Unusable::Version(Version::Of13)));
    for nonsense in [&[][..], &[4, 0, 0, 8, 0, 0, 0, 0], b"nonsense"] {
        let refused = resume(&session, SessionConfig::default(), nonsense).map(drop);
        assert_eq!(refused, Err(Unusable::Nonsense));
    }
    for bytes in [[3, 0xff, 0, 0], [4, 4, 0, 0]] {
        let word = u64::from(u32::from_le_bytes(bytes)) << XID_BITS;
        let (peer, kept) = (String::new(), (word, &features(Version::Of13, 2)[..]));
        let now = Instant::now();
        let refused = Session::resume(SessionConfig::default(), peer, now, kept, &mut Vec::new());
        assert_eq!(refused.map(drop), Err(Unusable::Nonsense));
    }
}
