//! Switches that connect by TLS, and other peers at a port for TLS.

use crate::pki::Pki;
use crate::support::*;
use rustix::fd::OwnedFd;
use std::io::{ErrorKind, Read, Write};
use std::time::Duration;
use urtica_controller::{Controller, Running, SwitchInfo};
use urtica_socket::{Stream, Tls};
use urtica_wire::{Capabilities, DatapathId, Features, Hello, List, Message, Version, split_frame};

fn start(pki: &Pki, change: impl FnOnce(Controller) -> Controller) -> Running {
    let controller = Controller::new()
        .shards(2)
        .pin(false)
        .tls(pki.sign("ctl", "ctl"))
        .listen("pssl:0:127.0.0.1".parse().unwrap())
        .listen("ptcp:0:127.0.0.1".parse().unwrap())
        .program(|_: &SwitchInfo| Hub);
    change(controller).start().unwrap()
}

/// A switch that speaks TLS.
struct TlsSwitch {
    stream: Stream,
    version: Version,
    received: Vec<u8>,
}

impl TlsSwitch {
    fn connect(running: &Running, tls: &Tls) -> Self {
        let socket = connect_to(&running.addresses()[0]);
        let stream = Stream::connect_tls(OwnedFd::from(socket), tls, DEADLINE).unwrap();
        Self {
            stream,
            version: Version::Of10,
            received: Vec::new(),
        }
    }

    /// Connects a 1.0 switch, which sends its features reply.
    fn join(running: &Running, tls: &Tls, id: u64) -> Self {
        Self::connect(running, tls).joined(id, 0)
    }

    /// Opens the main connection of a 1.3 switch, or an auxiliary one.
    fn join_by(running: &Running, tls: &Tls, id: u64, auxiliary_id: u8) -> Self {
        let connected = Self {
            version: Version::Of13,
            ..Self::connect(running, tls)
        };
        connected.joined(id, auxiliary_id)
    }

    fn joined(mut self, id: u64, auxiliary_id: u8) -> Self {
        let features = Message::FeaturesReply(Features {
            datapath_id: DatapathId(id),
            n_buffers: 0,
            n_tables: 1,
            auxiliary_id,
            capabilities: Capabilities::empty(),
            actions: 0,
            ports: List::default(),
        });
        self.send(&Message::Hello(Hello::default()));
        self.send(&features);
        self
    }

    fn send(&mut self, message: &Message) {
        let mut bytes = Vec::new();
        message.encode(self.version, 0, &mut bytes).unwrap();
        self.write(&bytes);
    }

    fn write(&mut self, bytes: &[u8]) {
        assert_eq!(self.stream.write(bytes).unwrap(), bytes.len());
    }

    /// Returns the next message; `None` if the controller has closed the connection.
    fn receive(&mut self) -> Option<Frame> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            if let Some((frame, rest)) = split_frame(&self.received).unwrap() {
                let (frame, left) = (frame.to_vec(), rest.len());
                self.received.drain(..self.received.len() - left);
                return Some(Frame(frame));
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }

    /// Sends a packet-in and waits for the answer.
    fn is_served(&mut self) -> bool {
        self.send(&Message::PacketIn(packet_in(&UDP)));
        std::iter::from_fn(|| self.receive())
            .any(|frame| matches!(frame.message(), Message::PacketOut(_)))
    }
}

#[test]
fn switches_are_served_with_and_without_tls() {
    let pki = Pki::new();
    let running = start(&pki, |controller| controller);
    let mut switches: Vec<_> = (1..=5)
        .map(|id| TlsSwitch::join(&running, &pki.tls(&format!("s{id}")), id))
        .collect();
    let plain = connect_to(&running.addresses()[1]);
    let mut plain = FakeSwitch::start(plain, Version::Of10, 9);
    for _ in 0..3 {
        assert!(switches.iter_mut().all(TlsSwitch::is_served));
        plain.send(0, &Message::PacketIn(packet_in(&UDP)));
        assert!(matches!(plain.receive().message(), Message::PacketOut(_)));
    }
    let ids = running.network().switches();
    assert_eq!(ids, [1, 2, 3, 4, 5, 9].map(DatapathId));
    let peer = &running.network().info(DatapathId(1)).unwrap().peer;
    assert!(peer.starts_with("ssl:127.0.0.1:"), "{peer}");
    drop(switches);
    eventually("all that spoke TLS have left", || {
        running.network().switches().len() == 1
    });
}

#[test]
fn a_switch_that_does_not_read_stalls_alone() {
    let pki = Pki::new();
    let running = start(&pki, |controller| controller.shards(1));
    let mut stalled = TlsSwitch::join(&running, &pki.tls("s1"), 1);
    let mut other = TlsSwitch::join(&running, &pki.tls("s2"), 2);
    assert!(stalled.is_served() && other.is_served());
    // Written until the controller stops reading, since its answers are not read.
    rustix::io::ioctl_fionbio(&stalled.stream, true).unwrap();
    let mut bytes = Vec::new();
    for _ in 0..1000 {
        Message::PacketIn(packet_in(&UDP))
            .encode(Version::Of10, 0, &mut bytes)
            .unwrap();
    }
    let (mut sent, mut at) = (0_usize, 0);
    let stalls = || {
        running
            .network()
            .counters(DatapathId(1))
            .unwrap()
            .stalls
            .get()
    };
    eventually("the connection stalls", || {
        let _ = stalled.stream.flush();
        while let Ok(count) = stalled.stream.write(&bytes[at..]) {
            sent += count;
            at = (at + count) % bytes.len();
        }
        stalls() > 0
    });
    assert!(other.is_served());
    // It reads again, and each packet-in that it has sent is answered.
    let whole = sent / (bytes.len() / 1000);
    rustix::io::ioctl_fionbio(&stalled.stream, false).unwrap();
    let mut answers = 0;
    while answers < whole {
        let frame = stalled.receive().expect("it is still connected");
        answers += usize::from(matches!(frame.message(), Message::PacketOut(_)));
    }
}

#[test]
fn certificates_cannot_replace_other_switches() {
    let pki = Pki::new();
    let ids = pki.path("ids");
    std::fs::write(&ids, "1 s1\n2,3 s2\n").unwrap();
    let running = start(&pki, |controller| controller.datapath_ids(ids));
    let (s1, s2) = (pki.tls("s1"), pki.tls("s2"));
    let mut rightful = TlsSwitch::join(&running, &s1, 1);
    assert!(rightful.is_served());
    // The certificate of another switch, a certificate that is on no line, and no certificate.
    assert!(!TlsSwitch::join(&running, &s2, 1).is_served());
    assert!(!TlsSwitch::join(&running, &pki.tls("s3"), 3).is_served());
    let mut plain = connect_to(&running.addresses()[1]);
    let mut said = vec![1, 0, 0, 8, 0, 0, 0, 0];
    let features = Features {
        datapath_id: DatapathId(1),
        n_buffers: 0,
        n_tables: 1,
        auxiliary_id: 0,
        capabilities: Capabilities::empty(),
        actions: 0,
        ports: List::default(),
    };
    Message::FeaturesReply(features)
        .encode(Version::Of10, 0, &mut said)
        .unwrap();
    plain.write_all(&said).unwrap();
    let closed = plain.read_to_end(&mut Vec::new());
    assert!(
        closed.is_ok() || closed.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
    );
    assert!(rightful.is_served(), "it is not disturbed");
    let mut second = TlsSwitch::join(&running, &s2, 3);
    assert!(second.is_served());
    assert_eq!(running.network().switches(), [1, 3].map(DatapathId));
}

#[test]
fn auxiliary_connections_need_the_certificate_of_their_switch() {
    let pki = Pki::new();
    let ids = pki.path("ids");
    std::fs::write(&ids, "1 s1\n2 s2\n").unwrap();
    let running = start(&pki, |controller| controller.datapath_ids(ids));
    let (s1, s2) = (pki.tls("s1"), pki.tls("s2"));
    let mut main = TlsSwitch::join_by(&running, &s1, 1, 0);
    assert!(main.is_served());
    let mut auxiliary = TlsSwitch::join_by(&running, &s1, 1, 1);
    assert!(auxiliary.is_served());
    assert!(!TlsSwitch::join_by(&running, &s2, 1, 2).is_served());
    assert!(auxiliary.is_served() && main.is_served());
    assert_eq!(running.network().switches(), [DatapathId(1)]);
}

#[test]
fn mute_and_plain_peers_cost_switches_nothing() {
    let pki = Pki::new();
    let running = start(&pki, |controller| controller);
    let tls = pki.tls("s1");
    let mut before = TlsSwitch::join(&running, &tls, 1);
    let mute: Vec<_> = (0..1_000)
        .map(|_| connect_to(&running.addresses()[0]))
        .collect();
    for mut socket in &mute[..500] {
        // An incomplete client hello.
        socket.write_all(&[22, 3, 1, 2, 0, 1, 0, 1]).unwrap();
    }
    assert!(before.is_served());
    assert!(TlsSwitch::join(&running, &tls, 2).is_served());
    let mut plain = connect_to(&running.addresses()[0]);
    plain.write_all(&[4, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert_eq!(
        answer.first(),
        Some(&0x15),
        "expected a TLS alert, not {answer:?}"
    );
    assert!(before.is_served());
}

#[test]
fn new_certificates_apply_to_new_connections() {
    let pki = Pki::new();
    let running = start(&pki, |controller| controller);
    let tls = pki.tls("s1");
    let mut before: Vec<_> = (1..=200)
        .map(|id| TlsSwitch::join(&running, &tls, id))
        .collect();
    assert!(before.iter_mut().all(TlsSwitch::is_served));
    pki.sign("ctl", "renewed");
    eventually("the new certificate is shown", || {
        let switch = TlsSwitch::connect(&running, &tls);
        let name = switch.stream.certificate().unwrap().is_called("renewed");
        std::thread::sleep(Duration::from_millis(50));
        name
    });
    assert!(
        before.iter_mut().all(TlsSwitch::is_served),
        "they keep their connections"
    );
    assert_eq!(running.network().switches().len(), 200);
}

#[test]
fn missing_tls_settings_are_errors_at_the_start() {
    let pki = Pki::new();
    let controller = || {
        Controller::new()
            .listen("pssl:0:127.0.0.1".parse().unwrap())
            .program(|_: &SwitchInfo| Hub)
    };
    let refusal = |controller: Controller| controller.start().err().unwrap().to_string();
    let sentence = refusal(controller());
    assert!(
        sentence.contains("--private-key") && sentence.contains("pssl:0"),
        "{sentence}"
    );
    let config = pki.sign("ctl", "ctl");
    std::fs::write(&config.certificate, "").unwrap();
    let sentence = refusal(controller().tls(config.clone()));
    assert!(
        sentence.contains("ctl-cert.pem has no certificate"),
        "{sentence}"
    );
    let config = pki.sign("ctl", "ctl");
    let sentence = refusal(controller().tls(config).datapath_ids(pki.path("none")));
    assert!(sentence.contains("cannot be read"), "{sentence}");
}
