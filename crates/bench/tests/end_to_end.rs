//! Tests of the load with the null responder and with misbehaving controllers, all within this process. Durations are very
//! short, and no test depends on speed.

mod common;

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use common::{
    answer_packet_ins, config, controller, flow_mod, load, load_until_answered, next_packet_in, tcp,
};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use urtica_bench::config::{Expect, LoadConfig, Mode, Version};
use urtica_bench::limit::Limit;
use urtica_bench::report::{Ended, html, json, text};
use urtica_bench::run::{Live, run};
use urtica_socket::Address;

fn limit() -> Address {
    let limit = Limit::listen(&"ptcp:0:127.0.0.1".parse().unwrap()).unwrap();
    let port = limit.port().unwrap();
    // The thread ends with the process of the test.
    thread::spawn(move || limit.run());
    tcp(port)
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
            let report = load_until_answered(&LoadConfig {
                mode,
                version,
                ..config(controller.clone())
            });
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
                report
                    .latency
                    .as_ref()
                    .is_some_and(|latency| latency.p50_us <= latency.max_us),
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
    for (mode, most_outstanding, bound) in [
        (Mode::PingPong, None, 3.0),
        (Mode::Window(5), None, 15.0),
        (Mode::Window(5), Some(7), 7.0),
        (Mode::PingPong, Some(2), 2.0),
        (Mode::MaxRate, Some(20), 20.0),
    ] {
        let report = load_until_answered(&LoadConfig {
            mode,
            most_outstanding,
            ..config(controller.clone())
        });
        let outstanding = report.little.unwrap().outstanding;
        assert!(outstanding <= bound + 1e-6, "{mode:?}: {outstanding}");
    }
}

/// With fewer outstanding packet-ins than switches, each switch is still served, also with several threads.
#[test]
fn switches_share_the_limit_of_outstanding_packet_ins() {
    for threads in [1, 2] {
        let (stop, served) = (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
        let stopping = Arc::clone(&stop);
        let address = controller(move |_, stream| {
            // A switch sends its second packet-in only after the answer to its first.
            answer_packet_ins(stream, 2);
            let all_served = served.fetch_add(1, Ordering::Relaxed) + 1 == 10;
            stopping.fetch_or(all_served, Ordering::Relaxed);
            answer_packet_ins(stream, usize::MAX);
        });
        let config = LoadConfig {
            switches: 10,
            most_outstanding: Some(4),
            threads,
            tests: 1,
            warmup: 0,
            test_length: Duration::from_secs(60),
            ..config(address)
        };
        let report = run(&config, &stop, |_| ()).unwrap();
        let answered = &report.tests[0].answered;
        assert!(answered.iter().all(|&count| count > 0), "{answered:?}");
        assert_eq!(
            (report.ended, report.rated_tests()),
            (Ended::Interrupted, 1)
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
    // 3 switches, a thousand times per second each for the elapsed time, plus the packet-in due at the start.
    let elapsed_s: f64 = report.tests.iter().map(|test| test.elapsed_s).sum();
    let most = 3.0 * (elapsed_s * 1000.0 + 1.0);
    assert!(report.tally.answered as f64 <= most, "{:?}", report.tally);
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
    let report = load_until_answered(&config(Address::Unix(file.clone())));
    std::fs::remove_file(file).unwrap();
    assert!(report.tally.answered > 0);
    assert_eq!(report.controller.unwrap().pid, std::process::id());
}

#[test]
fn the_null_responder_fails_verification() {
    let report = load_until_answered(&LoadConfig {
        expect: Expect::Learning,
        version: Version::V13,
        ..config(limit())
    });
    assert_eq!(report.tally.wrong_match, report.tally.answered);
    assert!(report.failed_verification());
}

#[test]
fn reports_are_complete() {
    let report = load_until_answered(&config(limit()));
    let value: serde_json::Value =
        serde_json::from_str(&json::write(std::slice::from_ref(&report))).unwrap();
    assert_eq!(value["tally"]["answered"], report.tally.answered);
    assert_eq!(html::write(&report).matches("<svg").count(), 3);
}

#[test]
fn connecting_without_a_listener_is_an_error() {
    // The address is bound, so that no other process uses it, but nothing listens.
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = SocketAddrV4::try_from(getsockname(&socket).unwrap()).unwrap();
    let port = address.port();
    let sentence = load(&config(tcp(port))).unwrap_err().to_string();
    assert!(
        sentence.contains(&format!(
            "cannot connect to the controller at tcp:127.0.0.1:{port}"
        )),
        "{sentence}"
    );
    assert!(sentence.contains("is it running"), "{sentence}");
}

#[test]
fn waiting_packet_ins_are_not_lost_while_others_are_answered() {
    const WINDOW: u32 = 10;
    static TURN: Mutex<()> = Mutex::new(());
    // The last switch is answered only after the others have all their answers, long after the tests.
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
fn unanswered_packet_ins_are_lost() {
    let address = controller(|number, stream| {
        // This returns when the connection closes: it reads everything, and answers nothing.
        answer_packet_ins(stream, if number == 1 { 0 } else { usize::MAX });
        let _ = std::io::copy(stream, &mut std::io::sink());
    });
    let report = load(&config(address)).unwrap();
    assert_eq!((report.tally.lost, report.unanswered), (1, 0));
    assert!(report.failed_verification() && report.closed.is_empty());
}

#[test]
fn continues_without_a_closed_connection() {
    let address = controller(|number, stream| {
        answer_packet_ins(stream, if number == 1 { 3 } else { usize::MAX });
    });
    let config = LoadConfig {
        tests: 100_000,
        ..config(address)
    };
    // This stops when the others have been answered in a test that started without it.
    let (stop, mut told) = (AtomicBool::new(false), 0);
    let report = run(&config, &stop, |live| match live {
        Live::Closed(_) => told += 1,
        Live::Test(test) if told > 0 && test.answered[0] > 0 && test.answered[1] == 0 => {
            stop.store(true, Ordering::Relaxed)
        }
        _ => {}
    })
    .unwrap();
    assert_eq!((told, report.closed.len()), (1, 1));
    assert_eq!(report.ended, Ended::Interrupted);
    assert_eq!(report.closed[0].datapath_id, "0000000000000002");
    assert!(
        report.closed[0].reason.contains("closed") || report.closed[0].reason.contains("reset")
    );
    let answered =
        |switch: usize| -> u64 { report.tests.iter().map(|test| test.answered[switch]).sum() };
    assert!(answered(0) > 0 && answered(1) <= 3, "{:?}", report.tests);
}

#[test]
fn closed_connection_loses_unanswered_packet_ins() {
    // It reads ten packet-ins and answers seven before it closes the connection: with ten outstanding, at least three are
    // lost.
    let address = controller(|number, stream| {
        let count = if number == 1 { 7 } else { usize::MAX };
        (0..3).for_each(|_| drop((number == 1).then(|| next_packet_in(stream))));
        answer_packet_ins(stream, count);
    });
    let report = load(&LoadConfig {
        mode: Mode::Window(10),
        ..config(address)
    });
    let report = report.unwrap();
    assert_eq!(report.closed.len(), 1);
    assert!((3..=10).contains(&report.tally.lost), "{:?}", report.tally);
    assert!(report.failed_verification());
}

#[test]
fn ends_when_all_connections_are_closed() {
    let address = controller(|_, stream| {
        answer_packet_ins(stream, 3);
    });
    let (config, mut told) = (
        LoadConfig {
            tests: 1000,
            threads: 2,
            ..config(address)
        },
        0,
    );
    let report = run(&config, &AtomicBool::new(false), |live| {
        told += usize::from(matches!(live, Live::Test(_)))
    });
    let report = report.unwrap();
    assert_eq!(report.ended, Ended::AllClosed);
    assert!(
        (1..1000).contains(&told) && report.tests.len() == told,
        "{told}"
    );
    let summary = text::summary(&report);
    let ended = format!("ended       the controller closed all connections in test {told} of 1000");
    assert!(summary.contains(&ended), "{summary}");
}

#[test]
fn an_interrupted_run_reports_its_measurements() {
    let stop = AtomicBool::new(false);
    let config = LoadConfig {
        tests: 100_000,
        ..config(limit())
    };
    let report = run(&config, &stop, |live| {
        if let Live::Test(test) = live {
            stop.store(
                test.counted && test.responses_per_s > 0.0,
                Ordering::Relaxed,
            );
        }
    });
    let report = report.unwrap();
    assert_eq!(report.ended, Ended::Interrupted);
    assert!(report.rated_tests() >= 1 && report.responses_per_s.max > 0.0);
    assert!(report.tests.len() < 100_000 && report.faults() == 0);
    let whole = report
        .tests
        .iter()
        .filter(|test| test.counted && !test.cut_short);
    assert_eq!(report.rated_tests(), whole.count());
    assert!(text::result_line(&report).starts_with("RESULT: 3 switches "));
}

#[test]
fn reports_an_interruption_before_the_first_counted_test() {
    let stop = Arc::new(AtomicBool::new(false));
    let stopping = Arc::clone(&stop);
    let address = controller(move |_, stream| {
        answer_packet_ins(stream, 1);
        stopping.store(true, Ordering::Relaxed);
        answer_packet_ins(stream, usize::MAX);
    });
    let config = LoadConfig {
        test_length: Duration::from_secs(600),
        ..config(address)
    };
    let report = run(&config, &stop, |_| ()).unwrap();
    assert_eq!(
        (report.ended, report.rated_tests()),
        (Ended::Interrupted, 0)
    );
    let summary = text::summary(&report);
    assert!(
        summary.contains("interrupted in test 1 of 3; 0 of them count"),
        "{summary}"
    );
}

#[test]
fn no_latency_or_bottleneck_without_answers() {
    let address = controller(|_, stream| drop(std::io::copy(stream, &mut std::io::sink())));
    let report = load(&config(address)).unwrap();
    assert!(report.has_no_answers() && report.latency.is_none() && report.little.is_none());
    let summary = text::summary(&report);
    for line in [
        "latency     none: no packet-in was answered in the tests that count",
        "verdict     the controller answered no packet-in, so nothing was measured",
    ] {
        assert!(summary.contains(line), "{summary}");
    }
    let json = json::write(std::slice::from_ref(&report));
    assert!(json.contains("\"latency\": null"), "{json}");
}

#[test]
fn reports_messages_in_addition_to_answers() {
    let address = controller(|_, stream| {
        while let Some(packet_in) = next_packet_in(stream) {
            let mut both = flow_mod(&packet_in);
            both[64..68].fill(0xff);
            both.extend([1, 13, 0, 24, 0, 0, 0, 9]);
            both.extend(&packet_in[8..12]);
            both.extend([0, 1, 0, 8, 0, 0, 0, 8, 0, 2, 0, 0]);
            if stream.write_all(&both).is_err() {
                return;
            }
        }
    });
    let report = load_until_answered(&config(address));
    let line = text::result_line(&report);
    assert!(
        line.contains(" responses/s (packet-ins answered; "),
        "{line}"
    );
    assert!(
        report.messages_per_s.mean > report.responses_per_s.mean,
        "{line}"
    );
}

#[test]
fn a_controller_that_closes_at_once_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || listener.incoming().for_each(drop));
    let sentence = load(&config(tcp(port))).unwrap_err().to_string();
    assert!(
        sentence.contains("no switch completed its handshake"),
        "{sentence}"
    );
}

#[test]
fn a_controller_of_the_other_version_is_an_error() {
    let address = controller(|_, stream| {
        answer_packet_ins(stream, usize::MAX);
    });
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
            // Both the connection and the process of the test survive a failed write.
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
