//! `urtica bench` as scripts use it: flags, lines, exit status, files.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

fn urtica(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urtica"));
    command.arg("bench").args(args).stdin(Stdio::null());
    command
}

/// The null responder as a process that ends with this.
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

    /// A short load on it.
    fn load(&self, more: &[&str]) -> Output {
        let few = [
            "-c",
            "127.0.0.1",
            "-p",
            &self.port,
            "-s",
            "2",
            "-l",
            "3",
            "-m",
            "20",
            "--expect",
            "any",
        ];
        urtica(&[&few, more].concat()).output().unwrap()
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn lines_are_those_that_scripts_parse() {
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
            && figures[0] > 0.0
            && figures[0] <= figures[2]
            && figures[2] <= figures[1]
    );
}

#[test]
fn all_of_cbenchs_flags_are_taken() {
    let output = Limit::start().load(&[
        "-d", "-l", "2", "-M", "100", "-m", "10", "-s", "3", "-w", "0", "-C", "1", "-D", "1", "-i",
        "1", "-I", "2", "-L", "-o", "7",
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
fn wrong_answers_fail_the_verification() {
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

#[test]
fn nobody_listening_is_a_sentence_and_a_failure() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
        .to_string();
    let output = urtica(&["-c", "127.0.0.1", "-p", &port]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("is it running, and does it listen there?"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn bad_flags_are_sentences() {
    for (flags, sentence) in [
        (&["-w", "16"][..], "leave none of 16 tests to count"),
        (&["-s", "0"], "switches must be at least 1"),
        (&["--threads", "99"], "99 threads cannot share 16 switches"),
        (&["-t", "--window", "3"], "cannot be used with"),
        (&["--openflow", "1.1"], "invalid value '1.1'"),
        (&["-c", "ptcp:6653"], "place to listen"),
        (&["-c", "ssl:h"], "TLS, which is not supported yet"),
        (
            &["--packet-size", "3"],
            "a frame of 3 bytes is not from 60 to 9000",
        ),
        (&["--rate", "0"], "a rate of 0 per second"),
        (&["--controller-pid", "4294967295"], "no process 4294967295"),
        (&["limit", "--listen", "tcp:h"], "give one to listen at"),
        (&["limit", "--listen", "nowhere"], "known forms"),
        (
            &["versus", "nox"],
            "none of limit, ovs-testcontroller, os-ken",
        ),
        (&["versus", "limit", "--rounds", "0"], "at least one round"),
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
fn a_port_in_use_is_a_sentence() {
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
    let few = [
        "versus", "limit", "--rounds", "1", "-s", "2", "-l", "2", "-m", "30", "--verify", "--json",
        "-",
    ];
    let output = urtica(&few).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let comparison: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let contenders = comparison["contenders"].as_array().unwrap();
    let names: Vec<&str> = contenders
        .iter()
        .filter_map(|c| c["name"].as_str())
        .collect();
    assert_eq!(names, ["urtica l2", "limit"]);
    assert_eq!(contenders[0]["responses_per_s"]["ours_over_this"], 1.0);
    assert!(
        contenders[1]["responses_per_s"]["spread"]["median"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    assert!(stderr(&output).contains("median (min to max) of 1 rounds in turn"));
}
