//! The load against the null responder, and against controllers that misbehave, all in this process. Durations are
//! tiny, and no test depends on how fast anything is.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use urtica_bench::config::{Expect, LoadConfig, Mode, Version};
use urtica_bench::limit::Limit;
use urtica_bench::report::{html, json};
use urtica_bench::run::{Live, run};
use urtica_bench::{Error, Report};
use urtica_wire::Address;

fn limit() -> Address {
    let limit = Limit::listen(&"ptcp:0:127.0.0.1".parse().unwrap()).unwrap();
    let port = limit.port().unwrap();
    // It ends with the test's process.
    thread::spawn(move || limit.run());
    tcp(port)
}

fn tcp(port: u16) -> Address {
    Address::Tcp {
        host: "127.0.0.1".to_owned(),
        port,
    }
}

fn config(controller: Address) -> LoadConfig {
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

fn load(config: &LoadConfig) -> Result<Report, Error> {
    run(config, |_| ())
}

#[test]
fn every_mode_and_version() {
    let controller = limit();
    for version in [Version::V10, Version::V13] {
        for mode in [
            Mode::PingPong,
            Mode::MaxRate,
            Mode::Window(5),
            Mode::Rate(2000.0),
        ] {
            let report = load(&LoadConfig {
                mode,
                version,
                ..config(controller.clone())
            })
            .unwrap();
            let context = format!("{mode:?} {version:?}: {:?}", report.tally);
            assert_eq!(
                (report.tests.len(), report.setup.switches_ready),
                (3, 3),
                "{context}"
            );
            assert!(
                report.tally.answered > 0 && report.responses_per_s.max > 0.0,
                "{context}"
            );
            assert_eq!(report.tally.flow_mods, report.tally.answered, "{context}");
            assert_eq!(
                (report.tally.faults(), report.unanswered),
                (0, 0),
                "{context}"
            );
            assert_eq!(report.switch_responses_per_s.len(), 3, "{context}");
            assert!(
                report.latency.count > 0 && report.latency.p50_us <= report.latency.max_us,
                "{context}"
            );
            assert_eq!(
                report.controller.as_ref().unwrap().pid,
                std::process::id(),
                "{context}"
            );
        }
    }
}

#[test]
fn window_and_ping_pong_keep_their_bound() {
    let controller = limit();
    for (mode, bound) in [(Mode::PingPong, 3.0), (Mode::Window(5), 15.0)] {
        let report = load(&LoadConfig {
            mode,
            ..config(controller.clone())
        })
        .unwrap();
        assert!(
            report.little.outstanding <= bound + 1e-6,
            "{mode:?}: {:?}",
            report.little
        );
    }
}

#[test]
fn a_rate_is_not_exceeded() {
    let report = load(&LoadConfig {
        mode: Mode::Rate(1000.0),
        ..config(limit())
    })
    .unwrap();
    // 3 switches, 90 ms in all, and the one due at the start.
    assert!(report.tally.answered <= 3 * 91, "{:?}", report.tally);
}

#[test]
fn several_threads_unique_macs_and_large_frames() {
    let config = LoadConfig {
        mode: Mode::MaxRate,
        switches: 5,
        threads: 2,
        macs: urtica_bench::config::MAX_MACS,
        frame_len: 1500,
        ..config(limit())
    };
    let report = load(&config).unwrap();
    assert_eq!(
        (
            report.load.threads.len(),
            report.switch_responses_per_s.len()
        ),
        (2, 5)
    );
    assert_eq!(report.tally.faults(), 0);
}

#[test]
fn hundreds_of_switches() {
    let report = load(&LoadConfig {
        switches: 400,
        verify: true,
        ..config(limit())
    })
    .unwrap();
    assert_eq!(
        (report.setup.switches_ready, report.tally.faults()),
        (400, 0)
    );
}

#[test]
fn a_unix_domain_socket() {
    let file = std::env::temp_dir().join(format!("urtica-bench-{}.sock", std::process::id()));
    let limit = Limit::listen(&Address::PassiveUnix(file.clone())).unwrap();
    thread::spawn(move || limit.run());
    let report = load(&config(Address::Unix(file.clone()))).unwrap();
    std::fs::remove_file(file).unwrap();
    assert!(report.tally.answered > 0);
    assert_eq!(report.controller.unwrap().pid, std::process::id());
}

#[test]
fn the_null_responder_is_no_learning_switch() {
    let report = load(&LoadConfig {
        expect: Expect::Learning,
        version: Version::V13,
        ..config(limit())
    })
    .unwrap();
    assert_eq!(report.tally.wrong_match, report.tally.answered);
    assert!(report.failed_verification());
}

#[test]
fn reports_are_complete() {
    let report = load(&config(limit())).unwrap();
    let value: serde_json::Value =
        serde_json::from_str(&json::write(std::slice::from_ref(&report))).unwrap();
    assert_eq!(value["tally"]["answered"], report.tally.answered);
    assert_eq!(html::write(&report).matches("<svg").count(), 3);
}

#[test]
fn nobody_listens() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let sentence = load(&config(tcp(port))).unwrap_err().to_string();
    assert!(
        sentence.contains(&format!(
            "cannot connect to the controller at tcp:127.0.0.1:{port}"
        )),
        "{sentence}"
    );
    assert!(sentence.contains("is it running"), "{sentence}");
}

/// A controller that does the handshake of 1.0, then what `after` says with each connection, by its number.
fn controller(after: fn(usize, &mut TcpStream)) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                stream
                    .write_all(&[1, 0, 0, 8, 0, 0, 0, 1, 1, 5, 0, 8, 0, 0, 0, 2])
                    .unwrap();
                after(number, &mut stream);
            });
        }
    });
    tcp(port)
}

/// Answers each packet-in by a flow mod, `count` times.
fn answer_packet_ins(stream: &mut TcpStream, count: usize) {
    let mut answered = 0;
    while answered < count {
        let mut header = [0; 8];
        if stream.read_exact(&mut header).is_err() {
            return;
        }
        let mut body = vec![0; usize::from(u16::from_be_bytes([header[2], header[3]])) - 8];
        if stream.read_exact(&mut body).is_err() {
            return;
        }
        if header[1] == 10 && body[..4] != [0xff; 4] {
            let mut flow_mod = vec![1, 14, 0, 72];
            flow_mod.extend(&header[4..8]);
            flow_mod.extend(0x003f_ffffu32.to_be_bytes());
            flow_mod.resize(64, 0);
            flow_mod.extend(&body[..4]);
            flow_mod.extend([0; 4]);
            if stream.write_all(&flow_mod).is_err() {
                return;
            }
            answered += 1;
        }
    }
}

#[test]
fn what_waits_while_others_are_answered_is_not_lost() {
    const WINDOW: u32 = 10;
    static TURN: Mutex<()> = Mutex::new(());
    // The last switch has its first answer when the others have all of theirs, long after the tests.
    let address = controller(|_, stream| {
        let turn = TURN.lock().unwrap();
        for _ in 0..WINDOW {
            thread::sleep(Duration::from_millis(80));
            answer_packet_ins(stream, 1);
        }
        drop(turn);
        answer_packet_ins(stream, usize::MAX);
    });
    let report = load(&LoadConfig {
        mode: Mode::Window(WINDOW),
        ..config(address)
    })
    .unwrap();
    let tally = report.tally;
    assert!(tally.answered >= u64::from(3 * WINDOW), "{tally:?}");
    assert_eq!((tally.faults(), report.unanswered), (0, 0), "{tally:?}");
}

#[test]
fn what_is_never_answered_is_lost() {
    let address = controller(|number, stream| {
        // The end of this waits for the connection's: it reads all, and answers nothing.
        answer_packet_ins(stream, if number == 1 { 0 } else { usize::MAX });
        let _ = std::io::copy(stream, &mut std::io::sink());
    });
    let report = load(&config(address)).unwrap();
    assert_eq!((report.tally.lost, report.unanswered), (1, 0));
    assert!(report.failed_verification() && report.closed.is_empty());
}

#[test]
fn goes_on_without_a_switch_whose_connection_is_closed() {
    let address = controller(|number, stream| {
        answer_packet_ins(stream, if number == 1 { 3 } else { usize::MAX })
    });
    let mut told = 0;
    let report = run(&config(address), |live| {
        told += usize::from(matches!(live, Live::Closed(_)))
    })
    .unwrap();
    assert_eq!((told, report.closed.len(), report.tests.len()), (1, 1, 3));
    assert_eq!(report.closed[0].datapath_id, "0000000000000002");
    assert!(
        report.closed[0].reason.contains("closed") || report.closed[0].reason.contains("reset")
    );
    assert!(report.switch_responses_per_s[0] > 0.0 && report.switch_responses_per_s[1] == 0.0);
}

#[test]
fn all_connections_closed_is_an_error() {
    let address = controller(|_, stream| answer_packet_ins(stream, 3));
    let sentence = load(&config(address)).unwrap_err().to_string();
    assert!(sentence.contains("closed all 3 connections"), "{sentence}");
}

#[test]
fn a_controller_that_hangs_up_at_once_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || listener.incoming().for_each(drop));
    let sentence = load(&config(tcp(port))).unwrap_err().to_string();
    assert!(
        sentence.contains("no switch got through its handshake"),
        "{sentence}"
    );
}

#[test]
fn a_controller_of_the_other_version_is_an_error() {
    let address = controller(|_, stream| answer_packet_ins(stream, usize::MAX));
    let sentence = load(&LoadConfig {
        version: Version::V13,
        ..config(address)
    })
    .unwrap_err()
    .to_string();
    assert!(
        sentence.contains("does not speak OpenFlow 1.3"),
        "{sentence}"
    );
}

#[test]
fn a_header_with_a_length_below_eight_ends_the_connection() {
    let address = controller(|number, stream| {
        if number == 0 {
            // Both the connection and the test's process outlive a failed write.
            let _ = stream.write_all(&[1, 14, 0, 0, 0, 0, 0, 0]);
        }
        answer_packet_ins(stream, usize::MAX);
    });
    let report = load(&config(address)).unwrap();
    assert_eq!(report.closed.len(), 1);
    assert!(
        report.closed[0].reason.contains("gives its length as 0"),
        "{}",
        report.closed[0].reason
    );
}

#[test]
fn errors_from_the_controller_are_counted() {
    let address = controller(|_, stream| {
        let _ = stream.write_all(&[1, 1, 0, 12, 0, 0, 0, 0, 0, 1, 0, 1]);
        answer_packet_ins(stream, usize::MAX);
    });
    assert_eq!(load(&config(address)).unwrap().tally.errors, 3);
}
