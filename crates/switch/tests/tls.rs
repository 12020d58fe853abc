//! Tests of a switch with controllers that use TLS, through active and passive connections.

#[path = "../../socket/tests/pki/mod.rs"]
mod pki;

use pki::Pki;
use rustix::fd::OwnedFd;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use urtica_socket::{Address, Handshakes, Stream};
use urtica_switch::{RunError, Runner, StopHandle, Switch, SwitchConfig};
use urtica_wire::{Message, Version, split_frame};

/// A time longer than any step needs, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// A running switch, which is stopped on drop.
struct Running {
    stop: StopHandle,
    thread: Option<JoinHandle<Result<(), RunError>>>,
    addresses: Vec<Address>,
}

impl Running {
    fn start(pki: &Pki, addresses: &[String]) -> Self {
        let addresses: Vec<_> = addresses.iter().map(|one| one.parse().unwrap()).collect();
        let runner = Runner::new(Switch::new(SwitchConfig::default()), &addresses).unwrap();
        let runner = runner.with_tls(pki.sign("s1", "s1")).unwrap();
        Self {
            stop: runner.stop_handle(),
            addresses: runner.listen_addresses().cloned().collect(),
            thread: Some(std::thread::spawn(|| runner.run())),
        }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.addresses[0].listen_addr().unwrap()).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().expect("no panic").expect("an orderly end");
        }
    }
}

/// Sends a hello and a request, and waits for the reply.
fn is_answered(stream: &mut Stream) -> bool {
    let mut said = vec![1, 0, 0, 8, 0, 0, 0, 0];
    Message::BarrierRequest
        .encode(Version::Of10, 77, &mut said)
        .unwrap();
    write_all(stream, &said);
    let (mut received, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    let start = Instant::now();
    while start.elapsed() < DEADLINE {
        while let Some((frame, rest)) = split_frame(&received).unwrap() {
            if matches!(Message::decode(frame).unwrap().1, Message::BarrierReply) {
                return true;
            }
            received = rest.to_vec();
        }
        match stream.read(&mut buffer) {
            Ok(0) => return false,
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
        }
    }
    false
}

fn write_all(stream: &mut Stream, bytes: &[u8]) {
    assert_eq!(stream.write(bytes).unwrap(), bytes.len());
}

/// Waits for a switch, and completes the handshake with it.
fn accept(listener: &TcpListener, handshakes: &mut Handshakes) -> Result<Stream, String> {
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    handshakes.accept(
        OwnedFd::from(socket),
        "the switch".to_owned(),
        Instant::now(),
    );
    let start = Instant::now();
    while start.elapsed() < DEADLINE {
        if let Some(ended) = handshakes.poll(Instant::now()).pop() {
            return ended.outcome.map_err(|error| error.to_string());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("the handshake is not over");
}

#[test]
fn the_switch_connects_and_accepts_connections() {
    let pki = Pki::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("ssl:{}", listener.local_addr().unwrap());
    let running = Running::start(&pki, &[target, "pssl:0:127.0.0.1".to_owned()]);
    let mut handshakes = Handshakes::new(pki.tls("ctl")).unwrap();
    let mut reached = accept(&listener, &mut handshakes).unwrap();
    assert!(reached.certificate().unwrap().is_called("s1"));
    assert!(is_answered(&mut reached));
    let socket = OwnedFd::from(running.connect());
    let mut connected = Stream::connect_tls(socket, &pki.tls("ctl"), DEADLINE).unwrap();
    assert!(is_answered(&mut connected));
}

#[test]
fn an_untrusted_controller_is_refused_and_retried() {
    let (pki, other) = (Pki::new(), Pki::new());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("ssl:{}", listener.local_addr().unwrap());
    let _running = Running::start(&pki, &[target]);
    let mut stranger = Handshakes::new(other.tls("ctl")).unwrap();
    let sentence = accept(&listener, &mut stranger)
        .err()
        .expect("it is refused");
    assert!(
        sentence.contains("does not accept our certificate 'ctl'"),
        "{sentence}"
    );
    let mut rightful = Handshakes::new(pki.tls("ctl")).unwrap();
    assert!(is_answered(&mut accept(&listener, &mut rightful).unwrap()));
}

#[test]
fn silent_and_plain_connections_do_not_affect_others() {
    let pki = Pki::new();
    let running = Running::start(&pki, &["pssl:0:127.0.0.1".to_owned()]);
    let _mute: Vec<_> = (0..100).map(|_| running.connect()).collect();
    let mut plain = running.connect();
    plain.write_all(&[4, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert_eq!(
        answer.first(),
        Some(&0x15),
        "expected a TLS alert, not {answer:?}"
    );
    let socket = OwnedFd::from(running.connect());
    let mut controller = Stream::connect_tls(socket, &pki.tls("ctl"), DEADLINE).unwrap();
    assert!(is_answered(&mut controller));
}

#[test]
fn tls_needs_files() {
    let address = "pssl:0:127.0.0.1".parse().unwrap();
    let runner = Runner::new(Switch::new(SwitchConfig::default()), &[address]).unwrap();
    let sentence = runner.run().unwrap_err().to_string();
    assert!(
        sentence.contains("uses TLS") && sentence.contains("--private-key"),
        "{sentence}"
    );
}
