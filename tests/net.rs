//! `urtica net` as people use it: by itself, against a controller in another process, and simulated.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn urtica(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urtica"));
    command.args(arguments).env("RUST_LOG", "warn");
    command.stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `urtica run` at a Unix socket; it ends when dropped.
struct Controller(Child);

impl Controller {
    fn start(app: &str, socket: &Path) -> Self {
        let listen = format!("punix:{}", socket.display());
        let child = Command::new(env!("CARGO_BIN_EXE_urtica"))
            .args(["run", app, "--listen", &listen])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let controller = Self(child);
        let started = Instant::now();
        while !socket.exists() {
            assert!(
                started.elapsed() < Duration::from_secs(10),
                "the controller listens"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        controller
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn hosts_reach_each_other_under_a_controller_in_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("of.sock");
    let _controller = Controller::start("l2", &socket);
    let address = format!("unix:{}", socket.display());
    let output = urtica(&[
        "net",
        "tree,depth=2,fanout=2",
        "--controller",
        &address,
        "--ping-all",
    ]);
    let told = text(&output.stdout);
    assert!(output.status.success(), "{told}{}", text(&output.stderr));
    assert!(told.contains("3 of 3 switches are connected"), "{told}");
    assert!(
        told.contains("Results: 0% dropped (12/12 received)"),
        "{told}"
    );
}

#[test]
fn the_exit_status_tells_that_hosts_are_not_reached() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("apart.toml");
    let apart = "[[switches]]\nname = 's1'\n[[switches]]\nname = 's2'\n\
                 [[hosts]]\nname = 'h1'\nattached = 's1:1'\n[[hosts]]\nname = 'h2'\nattached = 's2:1'\n";
    std::fs::write(&file, apart).unwrap();
    let output = urtica(&[
        "net",
        &file.display().to_string(),
        "--simulated",
        "--ping-all",
    ]);
    let told = text(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{told}{}",
        text(&output.stderr)
    );
    assert!(
        told.contains("Results: 100% dropped (0/2 received)"),
        "{told}"
    );
    assert!(told.contains("h1 got no answer from h2"), "{told}");
}

#[test]
fn a_controller_that_is_not_there_is_told() {
    let output = urtica(&[
        "net",
        "single,2",
        "--controller",
        "unix:/nonexistent/of.sock",
        "--seconds",
        "1",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let errors = text(&output.stderr);
    assert!(errors.contains("found no controller within 1s"), "{errors}");
}

#[test]
fn a_capture_holds_what_went_through_the_cable() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trunk.pcap");
    let capture = format!("s1,s2={}", file.display());
    let output = urtica(&[
        "net",
        "linear,2",
        "--apps",
        "l2",
        "--simulated",
        "--ping-all",
        "--pcap",
        &capture,
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let frames = std::fs::read(&file).unwrap();
    let mut reader = pcap_file::pcap::PcapReader::new(&frames[..]).unwrap();
    let mut lengths = Vec::new();
    while let Some(packet) = reader.next_packet() {
        lengths.push(packet.unwrap().data.len());
    }
    // At least a question and an answer of ARP, and requests and replies both ways.
    assert!(
        lengths.iter().filter(|&&length| length == 60).count() >= 2,
        "{lengths:?}"
    );
    assert!(
        lengths.iter().filter(|&&length| length == 110).count() >= 4,
        "{lengths:?}"
    );
}

#[test]
fn a_trace_shows_messages_and_frames() {
    let output = urtica(&[
        "net",
        "linear,2",
        "--apps",
        "l2",
        "--simulated",
        "--ping-all",
        "--trace",
    ]);
    let told = text(&output.stdout);
    for expected in [
        "s1 connects to the controller",
        "-> controller OFPT_HELLO",
        "OFPT_FLOW_MOD",
        "ARP who has 10.0.0.2? tell 10.0.0.1",
        "10.0.0.1 > 10.0.0.2 ICMP echo request",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

#[test]
fn seeds_hold_and_repeat() {
    let output = urtica(&["net", "simulate", "--seed", "7", "--seeds", "5"]);
    let told = text(&output.stdout);
    assert!(output.status.success(), "{told}");
    assert!(
        told.contains("5 seeds from 7 on: everything held"),
        "{told}"
    );
    let run = || text(&urtica(&["net", "simulate", "--seed", "9"]).stdout);
    let digest = |told: &str| told.lines().next().unwrap_or_default().to_owned();
    let (one, other) = (run(), run());
    assert!(one.starts_with("seed 9 ("), "{one}");
    assert_eq!(digest(&one), digest(&other));
}

#[test]
fn a_seed_that_fails_is_told_with_how_to_see_it_again() {
    let arguments = [
        "net",
        "simulate",
        "--apps",
        "hub",
        "--topology",
        "mesh,4",
        "--seed",
        "1",
    ];
    let output = urtica(&arguments);
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("seed 1 (mesh,4) fails at"), "{told}");
    assert!(
        told.contains("urtica net simulate --seed 1 --trace --apps hub"),
        "{told}"
    );
}

#[test]
fn what_is_planted_is_found_and_its_seed_shows_it_again() {
    let simulate = |arguments: &[&str]| {
        let output = urtica(&[&["net", "simulate", "--topology", "ring,3"], arguments].concat());
        (output.status.code(), text(&output.stdout))
    };
    let planted = ["--plant", "forgotten-entries"];
    let (status, told) = simulate(&[&planted[..], &["--seed", "1", "--seeds", "5"]].concat());
    assert_eq!(status, Some(1), "{told}");
    assert!(
        told.contains("nothing is left over at rest")
            && told.contains(" --plant forgotten-entries"),
        "{told}"
    );
    let seed = told.split_whitespace().nth(1).unwrap();
    let again = simulate(&[&planted[..], &["--seed", seed]].concat());
    assert_eq!(again, (status, told.clone()));
    let (status, told) = simulate(&["--seed", seed]);
    assert_eq!(status, Some(0), "{told}");
}

#[test]
fn a_failure_is_reduced_to_what_it_needs_and_that_is_run_again() {
    let simulate = |arguments: &[&str]| {
        let planted = [
            "net",
            "simulate",
            "--topology",
            "ring,3",
            "--plant",
            "forgotten-entries",
        ];
        text(&urtica(&[&planted[..], arguments].concat()).stdout)
    };
    let told = simulate(&["--seed", "1", "--seeds", "5", "--minimise"]);
    // Who reaches whom is tried in every run: that is sender enough.
    assert!(
        told.contains("the least of it that still fails, after ") && told.contains(": none\n"),
        "{told}"
    );
    let again = told.lines().last().unwrap();
    assert!(again.ends_with(" --only none"), "{told}");
    let seed = told.split_whitespace().nth(1).unwrap();
    let told_again = simulate(&["--seed", seed, "--only", "none"]);
    let [least, told_again] = [&told, &told_again].map(|told| {
        let least = told.rfind("\nseed ").map_or(0, |place| place + 1);
        told[least..].to_owned()
    });
    assert_eq!(least, told_again);
}

#[test]
fn programs_that_need_a_file_are_simulated() {
    for apps in [
        "l2,firewall",
        "routing,firewall",
        "l3,routing",
        "security,routing",
    ] {
        let output = urtica(&[
            "net", "simulate", "--apps", apps, "--seed", "1", "--seeds", "2",
        ]);
        let told = text(&output.stdout) + &text(&output.stderr);
        assert!(
            told.contains("2 seeds from 1 on: everything held"),
            "{apps}: {told}"
        );
    }
}

#[test]
fn unknown_topologies_and_programs_are_sentences() {
    for (arguments, expected) in [
        (
            &["net", "star,3"][..],
            "'star,3' is not a topology; expected single,N",
        ),
        (
            &["net", "single,2", "--apps", "l9"],
            "there is no control program 'l9'",
        ),
        (
            &["net", "simulate", "--apps", "l9"],
            "there is no control program 'l9'",
        ),
        (
            &["net", "simulate", "--plant", "moths"],
            "there is no bug 'moths' to plant; expected one of: ignore-port-down, ",
        ),
        (
            &["net", "simulate", "--kinds", "cut,moths"],
            "there is no kind of fault 'moths'; expected one of: cut, ",
        ),
        (
            &["net", "simulate", "--only", "fault-1,moths"],
            "'moths' is no part of a run; expected one such as fault-0 or flow-3",
        ),
    ] {
        let output = urtica(arguments);
        assert!(!output.status.success());
        let errors = text(&output.stderr);
        assert!(errors.contains(expected), "{errors}");
    }
}
