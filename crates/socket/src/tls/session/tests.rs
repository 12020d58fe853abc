//! Tests of both sides of a TLS connection, on sockets between which the test can intervene.

use super::*;
use crate::Stream;
use crate::tls::testing::{Authority, Ends, Files, Made, Outcome, pair, version_1};
use rcgen::DnType;
use std::os::unix::net::UnixStream;

/// Authorities as ovs-pki makes them, and the certificates that they have signed.
struct Pki {
    switches: Authority,
    controllers: Authority,
}

impl Pki {
    fn new() -> Self {
        Self {
            switches: Authority::new("switchca"),
            controllers: Authority::new("controllerca"),
        }
    }

    fn switch(&self, own: &Made) -> Files {
        Files::new(own, &self.controllers.pem)
    }

    fn controller(&self, own: &Made) -> Files {
        Files::new(own, &self.switches.pem)
    }

    fn files(&self) -> (Files, Files) {
        let (switch, controller) = (
            self.switches.sign_name("s1"),
            self.controllers.sign_name("ctl"),
        );
        (self.switch(&switch), self.controller(&controller))
    }
}

fn expect(outcome: &Outcome, words: &[&str]) {
    let sentence = outcome.as_ref().expect_err("the handshake should fail");
    for word in words {
        assert!(sentence.contains(word), "expected '{word}' in: {sentence}");
    }
}

fn connected() -> [Stream; 2] {
    let (switch, controller) = Pki::new().files();
    let mut ends = Ends::new(&switch.load(), &controller.load());
    assert_eq!(ends.shake_hands(), (Ok(()), Ok(())));
    ends.into_streams()
}

#[test]
fn both_ends_know_each_other() {
    let [client, server] = connected();
    assert!(client.certificate().unwrap().is_called("ctl"));
    assert!(server.certificate().unwrap().is_called("s1"));
    assert!(client.plain_socket().is_none() && !client.has_unsent() && !server.has_input());
}

#[test]
fn megabytes_arrive_in_order_with_bounded_buffers() {
    let [mut client, mut server] = connected();
    let sent: Vec<u8> = (0..5_000_000_u32).map(|at| (at ^ at >> 8) as u8).collect();
    let (mut taken, mut received, mut buffer) = (0, Vec::new(), vec![0; 64 << 10]);
    while received.len() < sent.len() {
        client.flush().unwrap();
        match client.write(&sent[taken..]) {
            Ok(count) => taken += count,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                assert!(client.has_unsent());
            }
        }
        assert!(
            taken - received.len() <= WRITE_BYTES + (1 << 20),
            "the socket is full"
        );
        match server.read(&mut buffer) {
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    assert_eq!(received, sent);
    drop(client);
    assert_eq!(server.read(&mut buffer).unwrap(), 0);
}

#[test]
fn reads_data_received_with_the_end_of_the_handshake() {
    let (switch, controller) = Pki::new().files();
    let mut ends = Ends::new(&switch.load(), &controller.load());
    while !ends.client.0.handshake(&ends.client.1).unwrap() {
        if !ends.client.0.tls.is_handshaking() {
            break;
        }
        assert!(!ends.server.0.handshake(&ends.server.1).unwrap());
    }
    ends.client.0.write(&ends.client.1, b"hello").unwrap();
    assert!(ends.server.0.handshake(&ends.server.1).unwrap());
    let [_client, mut server] = ends.into_streams();
    assert!(server.has_input());
    let mut buffer = vec![0; 64 << 10];
    assert_eq!(server.read(&mut buffer).unwrap(), 5);
    assert!(!server.has_input());
    assert_eq!(
        server.read(&mut buffer).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
}

/// Passes a byte from one socket to the other, if one has arrived.
fn pass_byte(from: &mut UnixStream, to: &mut UnixStream) -> bool {
    let mut byte = [0];
    match from.read(&mut byte) {
        Ok(1) => to.write_all(&byte).is_ok(),
        _ => false,
    }
}

#[test]
fn handshakes_and_records_may_be_cut_at_every_byte() {
    let (switch, controller) = Pki::new().files();
    let ((client_socket, mut client_side), (server_socket, mut server_side)) = (pair(), pair());
    let mut client = Session::client(&switch.load()).unwrap();
    let mut server = Session::server(&controller.load()).unwrap();
    let (mut client_done, mut server_done) = (false, false);
    while !(client_done && server_done) {
        client_done = client.handshake(&client_socket).unwrap();
        let up = pass_byte(&mut client_side, &mut server_side);
        server_done = server.handshake(&server_socket).unwrap();
        let down = pass_byte(&mut server_side, &mut client_side);
        assert!(up || down || client_done && server_done, "nobody speaks");
    }
    let sent = [7; 300];
    client.write(&client_socket, &sent).unwrap();
    let (mut received, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    while received.len() < sent.len() {
        assert!(
            pass_byte(&mut client_side, &mut server_side),
            "{} came",
            received.len()
        );
        match server.read(&server_socket, &mut buffer) {
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    assert_eq!(received, sent);
}

#[test]
fn peers_of_other_authorities_are_refused_with_a_reason() {
    let pki = Pki::new();
    let (switch, controller) = pki.files();
    // A switch's certificate does not authenticate a controller: each has its own authority.
    let impostor = Files::new(&pki.switches.sign_name("s2"), &pki.switches.pem);
    let (client, server) = Ends::new(&switch.load(), &impostor.load()).shake_hands();
    expect(
        &client,
        &[
            "'s2'",
            "signed by 'switchca'",
            "not in",
            "ca.pem",
            "controllerca/cacert.pem",
        ],
    );
    expect(
        &server,
        &["does not accept our certificate 's2' in", "cert.pem"],
    );
    let stranger = Files::new(
        &Authority::new("elsewhere").sign_name("s3"),
        &pki.controllers.pem,
    );
    let mut ends = Ends::new(&stranger.load(), &controller.load());
    expect(&ends.shake_hands().1, &["'s3'", "signed by 'elsewhere'"]);
    // In TLS 1.3, a client learns of the refusal only when it reads.
    let [mut client, _] = ends.into_streams();
    let error = client.read(&mut vec![0; 64 << 10]).unwrap_err().to_string();
    assert!(
        error.contains("does not accept our certificate 's3'"),
        "{error}"
    );
}

#[test]
fn certificates_outside_their_validity_are_refused_with_the_date() {
    let pki = Pki::new();
    let (_, controller) = pki.files();
    let made_for = |from: i32, until: i32| {
        pki.switches.sign(|params| {
            params.not_before = rcgen::date_time_ymd(from, 1, 2);
            params.not_after = rcgen::date_time_ymd(until, 3, 4);
            params.distinguished_name.push(DnType::CommonName, "s1");
        })
    };
    for (from, until, words) in [
        (1999, 2001, ["expired on 2001-03-04", "ovs-pki req+sign"]),
        (2998, 2999, ["not valid before 2998-01-02", "clock"]),
    ] {
        let switch = pki.switch(&made_for(from, until));
        // The switch itself would refuse to load this certificate.
        let tls = Tls::load_at(switch.config(), crate::tls::testing::year(until - 1)).unwrap();
        let outcome = Ends::new(&tls, &controller.load()).shake_hands();
        expect(&outcome.1, &words);
    }
}

#[test]
fn checks_the_expected_name() {
    let (switch, controller) = Pki::new().files();
    for (expected, is_right) in [("ctl", true), ("other", false)] {
        let mut config = switch.config();
        config.peer_name = Some(expected.to_owned());
        let tls = Tls::load(config).unwrap();
        let (client, server) = Ends::new(&tls, &controller.load()).shake_hands();
        assert_eq!(client.is_ok(), is_right);
        if !is_right {
            expect(&client, &["has the name 'ctl'", "expected 'other'"]);
            expect(&server, &["does not expect our certificate 'ctl'"]);
        }
    }
}

#[test]
fn a_client_without_a_certificate_is_refused() {
    let (_, controller) = Pki::new().files();
    let (socket, other) = pair();
    let mut server = Session::server(&controller.load()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .dangerous()
    .with_custom_certificate_verifier(Arc::new(crate::tls::testing::Credulous))
    .with_no_client_auth();
    let name = ServerName::try_from(ANYBODY).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let outcome = (0..20).find_map(|_| {
        let mut wire = Wire(other.as_fd());
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        let outcome = server.handshake(&socket);
        let _ = client.read_tls(&mut wire);
        let _ = client.process_new_packets();
        outcome.err()
    });
    expect(
        &Err(outcome.expect("an end").to_string()),
        &["it has no certificate", "ovs-vsctl set-ssl"],
    );
}

#[test]
fn reports_a_peer_without_tls() {
    let (switch, controller) = Pki::new().files();
    for session in [
        Session::server(&controller.load()),
        Session::client(&switch.load()),
    ] {
        let (socket, mut other) = pair();
        let mut session = session.unwrap();
        assert!(!session.handshake(&socket).unwrap());
        other.write_all(&[4, 0, 0, 8, 0, 0, 0, 1]).unwrap();
        let error = session.handshake(&socket).unwrap_err();
        assert!(matches!(error, TlsError::NotTls), "{error}");
        assert!(error.to_string().contains("expected ssl:") && !error.is_noise());
    }
}

#[test]
fn a_connection_closed_without_data_is_noise() {
    let (_, controller) = Pki::new().files();
    for (said, is_noise) in [(&b""[..], true), (&[22, 3, 1, 0], false)] {
        let (socket, mut other) = pair();
        let mut session = Session::server(&controller.load()).unwrap();
        other.write_all(said).unwrap();
        drop(other);
        let error = session.handshake(&socket).unwrap_err();
        assert!(
            matches!(error, TlsError::Closed { .. }) && error.is_noise() == is_noise,
            "{error}"
        );
    }
}

#[test]
fn certificates_of_version_1_are_accepted_from_their_authority_only() {
    let pki = Pki::new();
    let (_, controller) = pki.files();
    let old = version_1(&pki.switches, "old");
    let mut ends = Ends::new(&pki.switch(&old).load(), &controller.load());
    assert_eq!(ends.shake_hands(), (Ok(()), Ok(())));
    assert!(ends.server.0.certificate().unwrap().is_called("old"));
    let stranger = version_1(&Authority::new("switchca"), "old");
    let outcome = Ends::new(&pki.switch(&stranger).load(), &controller.load()).shake_hands();
    expect(&outcome.1, &["'old'", "not in"]);
}

#[test]
fn a_certificate_in_the_peers_own_file_needs_no_authority() {
    let lone = Authority::new("lone switch");
    let made = lone.own();
    let pki = Pki::new();
    let controller = Files::new(&pki.controllers.sign_name("ctl"), &lone.pem);
    let outcome = Ends::new(&pki.switch(&made).load(), &controller.load()).shake_hands();
    assert_eq!(outcome, (Ok(()), Ok(())));
}

#[test]
fn an_unexpected_handshake_message_ends_the_connection() {
    let [client, mut server] = connected();
    let record = [22, 3, 3, 0, 4, 1, 0, 0, 0];
    rustix::net::send(&client, &record, SendFlags::NOSIGNAL).unwrap();
    let error = server.read(&mut vec![0; 64 << 10]).unwrap_err();
    assert!(
        error.to_string().contains("TLS connection failed"),
        "{error}"
    );
}

/// Loads a side's files with these certificate revocation lists.
fn with_lists(files: &Files, lists: &str) -> Result<Tls, String> {
    files.write("crl.pem", lists);
    let config = files.config().crl(Some(files.path("crl.pem")));
    Tls::load(config).map_err(|error| error.to_string())
}

#[test]
fn a_revoked_certificate_is_refused_at_both_ends() {
    let pki = Pki::new();
    let (s1, s2) = (pki.switches.sign_name("s1"), pki.switches.sign_name("s2"));
    let ctl = pki.controllers.sign_name("ctl");
    let lists = pki.switches.revoke(&[&s1], 2026);
    let controller = with_lists(&pki.controller(&ctl), &lists).unwrap();
    let (_, told) = Ends::new(&pki.switch(&s1).load(), &controller).shake_hands();
    expect(&told, &["'s1' was revoked", "crl.pem"]);
    let outcome = Ends::new(&pki.switch(&s2).load(), &controller).shake_hands();
    assert_eq!(outcome, (Ok(()), Ok(())));
    let lists = pki.controllers.revoke(&[&ctl], 2026);
    let switch = with_lists(&pki.switch(&s2), &lists).unwrap();
    let (told, _) = Ends::new(&switch, &pki.controller(&ctl).load()).shake_hands();
    expect(&told, &["'ctl' was revoked", "crl.pem"]);
    let lists = pki.controllers.revoke(&[], 2026);
    let switch = with_lists(&pki.switch(&s2), &lists).unwrap();
    let outcome = Ends::new(&switch, &pki.controller(&ctl).load()).shake_hands();
    assert_eq!(outcome, (Ok(()), Ok(())));
}

#[test]
fn without_a_list_of_its_authority_a_certificate_is_refused() {
    let pki = Pki::new();
    let (s1, ctl) = (
        pki.switches.sign_name("s1"),
        pki.controllers.sign_name("ctl"),
    );
    let lists = pki.controllers.revoke(&[], 2026);
    let controller = with_lists(&pki.controller(&ctl), &lists).unwrap();
    let (_, told) = Ends::new(&pki.switch(&s1).load(), &controller).shake_hands();
    expect(&told, &["'s1'", "crl.pem has a list of 'switchca'"]);
    // The lists are not checked for version 1.
    let lists = pki.switches.revoke(&[], 2026);
    let controller = with_lists(&pki.controller(&ctl), &lists).unwrap();
    let old = pki.switch(&version_1(&pki.switches, "old"));
    let (_, told) = Ends::new(&old.load(), &controller).shake_hands();
    expect(&told, &["'old'", "version 3"]);
}

#[test]
fn ignores_crls_of_other_issuers() {
    let pki = Pki::new();
    let (s1, ctl) = (
        pki.switches.sign_name("s1"),
        pki.controllers.sign_name("ctl"),
    );
    let forged = Authority::new("switchca").revoke(&[], 2026);
    let controller = with_lists(&pki.controller(&ctl), &forged).unwrap();
    let (_, told) = Ends::new(&pki.switch(&s1).load(), &controller).shake_hands();
    expect(
        &told,
        &["'s1'", "list of 'switchca' in", "crl.pem cannot be used"],
    );
}

#[test]
fn reports_unreadable_crls() {
    let pki = Pki::new();
    let files = pki.controller(&pki.controllers.sign_name("ctl"));
    for text in ["", "no list", &pki.switches.pem] {
        let sentence = with_lists(&files, text).unwrap_err();
        assert!(sentence.contains("BEGIN X509 CRL"), "{sentence}");
    }
    let config = files.config().crl(Some("/none/crl.pem".into()));
    let sentence = Tls::load(config).unwrap_err().to_string();
    assert!(
        sentence.contains("/none/crl.pem cannot be read"),
        "{sentence}"
    );
}
