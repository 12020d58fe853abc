//! Tests of `urtica bench` as scripts use it: flags, lines, exit status, files.

mod switch;

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Output, Stdio};

use rustix::net::{AddressFamily, SocketType, bind, getsockname};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn urtica(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urtica"));
    command.arg("bench").args(args).stdin(Stdio::null());
    command
}

/// The null responder as a process, killed on drop.
struct Limit {
    child: Child,
    port: String,
}

impl Limit {
    fn start() -> Self {
        let mut child = urtica(&["limit", "--listen", "ptcp:0:127.0.0.1"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let port = line
            .split("port ")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .to_owned();
        Self { child, port }
    }

    /// Runs a short load on the responder.
    fn load(&self, more: &[&str]) -> Output {
        until_answered(|ms| self.command(ms, more))
    }

    fn command(&self, ms: &str, more: &[&str]) -> Command {
        let few = ["-c", "127.0.0.1", "-p", &self.port];
        let load = ["-s", "2", "-l", "3", "-m", ms, "--expect", "any"];
        urtica(&[&few, &load[..], more].concat())
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Returns the output of a load whose tests, of the given length in ms, are long enough on this machine to get answers in
/// every counted test.
fn until_answered(command: impl Fn(&str) -> Command) -> Output {
    let lengths = (0..).map(|attempt| (20 << attempt).to_string());
    let outputs = lengths.map(|ms| command(&ms).output().unwrap());
    let says = |output: &Output| stderr(output).contains("the controller answered no packet-in");
    outputs.take(11).find(|output| !says(output)).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn lines_have_the_format_that_scripts_parse() {
    let output = Limit::start().load(&["-t"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = stdout(&output);
    let tests: Vec<&str> = lines
        .lines()
        .filter(|line| line.contains(" switches: flows/sec:  "))
        .collect();
    assert_eq!(tests.len(), 3);
    assert!(tests.iter().all(|line| line.ends_with(" per ms ")
        && line[8..9] == *"."
        && line[12..].starts_with(" 2   switches")));
    let result = lines.lines().last().unwrap();
    assert!(
        result.starts_with("RESULT: 2 switches 2 tests min/max/avg/stdev = ")
            && result.ends_with(" responses/s")
    );
    let figures: Vec<f64> = result
        .split_whitespace()
        .nth(7)
        .unwrap()
        .split('/')
        .map(|f| f.parse().unwrap())
        .collect();
    assert!(
        figures.len() == 4
            && figures[2] > 0.0
            && figures[0] <= figures[2]
            && figures[2] <= figures[1]
    );
}

#[test]
fn all_cbench_flags_are_accepted() {
    let output = Limit::start().load(&[
        "-d", "-l", "2", "-M", "100", "-s", "3", "-w", "0", "-C", "1", "-D", "1", "-i", "1", "-I",
        "2", "-L", "-o", "7",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("RESULT: 3 switches 1 tests"));
    assert!(stderr(&output).contains("switch 0000000000000009"));
}

#[test]
fn a_ranged_test_steps() {
    let output = Limit::start().load(&["-r", "-s", "3", "--json", "-"]);
    let reports: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let switches: Vec<u64> = reports
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["setup"]["switches"].as_u64().unwrap())
        .collect();
    assert_eq!(switches, [1, 2, 3]);
}

#[test]
fn json_stands_alone_on_standard_output() {
    let output = Limit::start().load(&[
        "--verify",
        "--window",
        "4",
        "--openflow",
        "1.3",
        "--json",
        "-",
    ]);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(
        (&report["setup"]["openflow"], &report["setup"]["mode"]),
        (&"1.3".into(), &"window 4".into())
    );
    assert!(stderr(&output).contains("RESULT: 2 switches"));
}

#[test]
fn an_html_report_is_written() {
    let file = std::env::temp_dir().join(format!("urtica-bench-{}.html", std::process::id()));
    let output = Limit::start().load(&["--rate", "500", "--report", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
}

#[test]
fn invalid_answers_fail_the_verification() {
    let limit = Limit::start();
    let load = [
        "-c",
        "127.0.0.1",
        "-p",
        &limit.port,
        "-s",
        "1",
        "-l",
        "2",
        "-m",
        "20",
        "--verify",
        "--openflow",
        "1.3",
    ];
    let output = urtica(&load).output().unwrap();
    assert!(!output.status.success());
    assert!(
        stdout(&output).contains("with a wrong match"),
        "{}",
        stdout(&output)
    );
}

/// Reserves a port of the loopback interface without a listener; no other process can bind it while the socket exists.
fn port_without_listener() -> (OwnedFd, String) {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = SocketAddrV4::try_from(getsockname(&socket).unwrap()).unwrap();
    (socket, address.port().to_string())
}

#[test]
fn ctrl_c_prints_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json");
    let limit = Limit::start();
    let mut command = limit.command("50", &["-l", "100000", "--json", file.to_str().unwrap()]);
    let mut load = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(load.stdout.take().unwrap()).lines();
    let is_test = |line: &String| line.contains(" switches: flows/sec:  ");
    let begun = lines.by_ref().map(Result::unwrap).filter(is_test).take(3);
    assert_eq!(begun.count(), 3);
    kill_process(Pid::from_child(&load), Signal::INT).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let rest = rest.join("\n");
    assert_eq!(load.wait().unwrap().code(), Some(130), "{rest}");
    assert!(
        rest.contains("   ended       interrupted in test "),
        "{rest}"
    );
    assert!(
        rest.lines()
            .last()
            .unwrap()
            .starts_with("RESULT: 2 switches "),
        "{rest}"
    );
    let report: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(report["ended"], "interrupted");
    assert!(report["tests"].as_array().unwrap().len() >= 3);
}

#[test]
fn unwritable_files_are_reported_before_measuring() {
    let (_socket, port) = port_without_listener();
    for flags in [
        &[
            "-p",
            &port,
            "-c",
            "127.0.0.1",
            "--json",
            "/nowhere/report.json",
        ][..],
        &[
            "-p",
            &port,
            "-c",
            "127.0.0.1",
            "--report",
            "/nowhere/report.html",
        ],
        &["versus", "limit", "--json", "/nowhere/versus.json"],
        &["network", "--json", "/nowhere/network.json"],
        &[
            "switch",
            "--pipeline",
            "l3",
            "--json",
            "/nowhere/switch.json",
        ],
    ] {
        let output = urtica(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{flags:?}");
        let sentence = stderr(&output);
        assert!(sentence.contains("cannot write /nowhere/"), "{sentence}");
        assert_eq!(
            (sentence.lines().count(), stdout(&output).len()),
            (1, 0),
            "{sentence}"
        );
    }
}

#[test]
fn failed_runs_leave_files_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = ["old.json", "new.json"].map(|name| folder.path().join(name));
    std::fs::write(&old, "yesterday's").unwrap();
    let (_socket, port) = port_without_listener();
    for file in [&old, &new] {
        let flags = [
            "-c",
            "127.0.0.1",
            "-p",
            &port,
            "--json",
            file.to_str().unwrap(),
        ];
        assert!(!urtica(&flags).output().unwrap().status.success());
    }
    assert_eq!(std::fs::read_to_string(old).unwrap(), "yesterday's");
    assert!(!new.exists());
}

#[test]
fn connection_refusals_fail_with_a_message() {
    let (_socket, port) = port_without_listener();
    let output = urtica(&["-c", "127.0.0.1", "-p", &port]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("is it running, and does it listen there?"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn invalid_flags_are_refused_with_a_message() {
    for (flags, sentence) in [
        (&["-w", "16"][..], "leave no tests of 16 to count"),
        (&["-s", "0"], "switches must be at least 1"),
        (&["--threads", "99"], "99 threads cannot share 16 switches"),
        (&["-t", "--window", "3"], "cannot be used with"),
        (&["--openflow", "1.1"], "invalid value '1.1'"),
        (&["-c", "ptcp:6653"], "address to listen at"),
        (&["-c", "ssl:h"], "uses TLS, which needs a private key"),
        (
            &["--packet-size", "3"],
            "a frame of 3 bytes is not from 60 to 9000",
        ),
        (&["--rate", "0"], "a rate of 0 per second"),
        (
            &["--frames", "ipv6", "--packet-size", "60"],
            "too short for IPv6",
        ),
        (
            &["--frames", "gre"],
            "possible values: cbench, tcp, udp, arp, ipv6, vlan",
        ),
        (
            &["--addresses", "zipf", "--unique-macs"],
            "omit --unique-macs",
        ),
        (&["--outstanding", "0"], "cannot share 0 outstanding"),
        (
            &["--outstanding", "9", "--rate", "5"],
            "cannot be used with",
        ),
        (
            &["--controller-pid", "4294967295"],
            "process 4294967295, which does not exist on this machine",
        ),
        (
            &["limit", "--listen", "tcp:h"],
            "is not an address to listen at without TLS",
        ),
        (&["limit", "--listen", "nowhere"], "known forms"),
        (
            &["versus", "nox"],
            "expected limit, ovs-testcontroller, os-ken",
        ),
        (&["versus", "limit", "--rounds", "0"], "at least one round"),
        (&["switch"], "--pipeline <NAME,...>"),
        (&["switch", "--pipeline", "l4"], "there is no pipeline 'l4'"),
        (
            &["switch", "--pipeline", "l3", "--flows", "0"],
            "expected numbers of 1 to 16777216",
        ),
        (
            &["switch", "--pipeline", "l3", "--form", "fast"],
            "possible values: switch, limit, pipeline, interpreted, plain, bare",
        ),
        (
            &["switch", "--pipeline", "acl1-5k"],
            "acl1 to acl5, fw1 to fw5, ipc1 and ipc2 with -1k, -10k or -100k",
        ),
        (&["switch", "--flows-file", "a.flows"], "--pcap <FILE>"),
        (
            &[
                "switch",
                "--flows-file",
                "/nowhere/a",
                "--pcap",
                "/nowhere/b",
            ],
            "/nowhere/a: No such file or directory",
        ),
        (
            &["switch", "--pipeline", "l3", "--trace", "pareto"],
            "possible values: uniform, zipf",
        ),
        (
            &["switch", "--pipeline", "l3", "--loading", "slowly"],
            "possible values: one-by-one, together",
        ),
        (
            &["switch", "--pipeline", "l3", "--seconds", "0"],
            "expected 0.001 to 3600 seconds",
        ),
        (
            &["switch", "--pipeline", "l3", "--core", "1023"],
            "there is no core 1023 for this process",
        ),
        (
            &["switch", "--pipeline", "l3,lb", "--updates", "9"],
            "lb has no routes to update",
        ),
        (&["switch", "--load", "1048577"], "1..=1048576"),
    ] {
        let output = urtica(flags).output().unwrap();
        assert!(!output.status.success(), "{flags:?}");
        assert!(
            stderr(&output).contains(sentence),
            "{flags:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_port_in_use_is_reported() {
    let limit = Limit::start();
    let output = urtica(&[
        "limit",
        "--listen",
        &format!("ptcp:{}:127.0.0.1", limit.port),
    ])
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("cannot listen at ptcp:"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn versus_compares_ours_with_the_null_responder() {
    let output = until_answered(|ms| {
        let few = ["versus", "limit", "--rounds", "1", "-s", "2", "-l", "2"];
        urtica(&[&few[..], &["-m", ms, "--verify", "--json", "-"]].concat())
    });
    assert!(output.status.success(), "{}", stderr(&output));
    let comparison: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let contenders = comparison["contenders"].as_array().unwrap();
    let names: Vec<&str> = contenders
        .iter()
        .filter_map(|c| c["name"].as_str())
        .collect();
    assert_eq!(names, ["urtica l2", "limit"]);
    let ratio = &contenders[0]["responses_per_s"]["ours_over_this"];
    assert_eq!(
        (&ratio["median"], &ratio["low"]),
        (&1.0.into(), &1.0.into())
    );
    assert!(
        contenders[1]["responses_per_s"]["spread"]["median"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    assert!(stderr(&output).contains("median (min to max) of 1 interleaved rounds"));
}

#[test]
fn single_process_networks_are_measured() {
    let output = urtica(&["network", "--quick", "--rounds", "2", "--json", "-"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = stdout(&output);
    let records: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<_> = records.iter().map(|record| &record["figure"]).collect();
    assert_eq!(
        names,
        [
            "reservations-1",
            "reservations-2",
            "reservations-2-over-1",
            "reservations-near-2-over-1",
            "reservations-near-limit",
            "path-tree",
            "next-hops-full",
            "next-hops-change",
            "discovery-1000",
            "repair-100",
            "hops",
        ]
    );
    for record in &records {
        let values = record["values"].as_array().unwrap();
        assert_eq!(values.len(), 2, "{record}");
        assert!(
            values.iter().all(|value| value.as_f64().unwrap() > 0.0),
            "{record}"
        );
    }
}
