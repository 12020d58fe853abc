//! A load with very short tests, and controllers within this process with configurable answers.

#![allow(dead_code, reason = "each test has its own use of it")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use urtica_bench::config::{Expect, LoadConfig, Version};
use urtica_bench::run::run;
use urtica_bench::{Error, Report};
use urtica_socket::Address;

pub fn tcp(port: u16) -> Address {
    Address::Tcp {
        host: "127.0.0.1".to_owned(),
        port,
    }
}

pub fn config(controller: Address) -> LoadConfig {
    LoadConfig {
        controller,
        switches: 3,
        tests: 3,
        test_length: Duration::from_millis(30),
        macs: 50,
        verify: true,
        expect: Expect::Any,
        ..LoadConfig::default()
    }
}

pub fn load(config: &LoadConfig) -> Result<Report, Error> {
    run(config, &AtomicBool::new(false), |_| ())
}

/// Runs a load whose tests are long enough on this machine for an answer in the tests that count.
pub fn load_until_answered(config: &LoadConfig) -> Report {
    let mut config = config.clone();
    loop {
        let report = load(&config).unwrap();
        if !report.has_no_answers() || config.test_length > Duration::from_secs(20) {
            return report;
        }
        config.test_length *= 2;
    }
}

/// Starts a controller that completes the handshake of 1.0, and then calls `after` with each connection's number and stream.
pub fn controller(after: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static) -> Address {
    controller_of(Version::V10, after)
}

/// Like `controller`, for this version.
pub fn controller_of(
    version: Version,
    after: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static,
) -> Address {
    let wire = version.wire();
    let after = Arc::new(after);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let after = Arc::clone(&after);
            thread::spawn(move || {
                stream
                    .write_all(&[wire, 0, 0, 8, 0, 0, 0, 1, wire, 5, 0, 8, 0, 0, 0, 2])
                    .unwrap();
                after(number, &mut stream);
            });
        }
    });
    tcp(port)
}

/// Answers packet-ins with a flow mod each, `count` times. Returns `true` if the connection stayed open.
pub fn answer_packet_ins(stream: &mut TcpStream, count: usize) -> bool {
    (0..count).all(|_| {
        next_packet_in(stream)
            .is_some_and(|packet_in| stream.write_all(&flow_mod(&packet_in)).is_ok())
    })
}

/// Reads the next packet-in with a buffer id; `None` once the connection is closed.
pub fn next_packet_in(stream: &mut TcpStream) -> Option<Vec<u8>> {
    loop {
        let mut message = vec![0; 8];
        stream.read_exact(&mut message).ok()?;
        let len = usize::from(u16::from_be_bytes([message[2], message[3]]));
        message.resize(len, 0);
        stream.read_exact(&mut message[8..]).ok()?;
        if message[1] == 10 && message[8..12] != [0xff; 4] {
            return Some(message);
        }
    }
}

/// Returns a flow mod of 1.0 with the packet-in's xid and buffer id.
pub fn flow_mod(packet_in: &[u8]) -> Vec<u8> {
    let mut flow_mod = vec![1, 14, 0, 72];
    flow_mod.extend(&packet_in[4..8]);
    flow_mod.extend(0x003f_ffffu32.to_be_bytes());
    flow_mod.resize(64, 0);
    flow_mod.extend(&packet_in[8..12]);
    flow_mod.extend([0; 4]);
    flow_mod
}
