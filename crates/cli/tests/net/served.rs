//! Tests of networks whose controller serves HTTP.

use super::{text, urtica};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A network whose controller serves HTTP; killed on drop.
#[cfg(feature = "northbound")]
struct Served {
    child: Child,
    /// Its output, kept open while the network runs.
    output: BufReader<std::process::ChildStdout>,
    url: String,
}

#[cfg(feature = "northbound")]
impl Served {
    /// Starts the network, and waits for the address. Its input stays open, so that the prompt waits.
    fn start(arguments: &[&str], browser: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_urtica"))
            .args(arguments)
            .env("RUST_LOG", "warn")
            .env("BROWSER", browser)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut told = String::new();
        let url = loop {
            let read = output.read_line(&mut told).unwrap();
            assert!(read > 0, "it has ended: {told}");
            let line = told.lines().next_back().unwrap_or_default();
            if let Some(url) = line.strip_prefix("the network in a browser: ") {
                break url.to_owned();
            }
        };
        Self { child, output, url }
    }

    /// Sends a request; returns the status and the body.
    fn send(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let host = self.url.strip_prefix("http://").unwrap();
        let host = host.trim_end_matches('/');
        let mut socket = std::net::TcpStream::connect(host).unwrap();
        socket.set_read_timeout(Some(BOUND)).unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    /// Returns the answer to a GET request, without blanks.
    fn get(&self, path: &str) -> String {
        let (status, body) = self.send("GET", path, "");
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Waits until the answer to a GET request is as expected.
    fn wait(&self, path: &str, is_right: impl Fn(&str) -> bool) {
        let start = std::time::Instant::now();
        loop {
            let body = self.get(path);
            if is_right(&body) {
                return;
            }
            assert!(start.elapsed() < BOUND, "{path}: {body}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the network by SIGINT; returns its exit status.
    fn interrupt(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        // The rest of the output fits into the pipe.
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap().code()
    }
}

#[cfg(feature = "northbound")]
impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number of rounds of pings after which the test fails.
#[cfg(feature = "northbound")]
const ROUNDS: usize = 20;

/// The timeout of all waits, after which a test has failed.
#[cfg(feature = "northbound")]
const BOUND: Duration = Duration::from_secs(120);

#[test]
#[cfg(feature = "northbound")]
fn requests_act_on_a_network_that_its_program_emulates() {
    let net = [
        "net",
        "linear,2",
        "--apps=discovery,hosts,l2",
        "--northbound=127.0.0.1:0",
    ];
    let net = Served::start(&net, Path::new(""));
    let parts = net.get("/api/v1/emulation");
    for expected in [
        r#"{"name":"s2","id":"0000000000000002","running":true}"#,
        r#"{"name":"h1","mac":"00:00:00:00:00:01","ipv4":"10.0.0.1"}"#,
        r#"{"a":"0000000000000002:2","b":"0000000000000001:2","up":true}"#,
    ] {
        assert!(parts.contains(expected), "{expected}: {parts}");
    }
    let links = "/api/v1/links";
    net.wait(links, |links| links.matches("from").count() == 2);
    let ping = |body: &str| net.send("POST", "/api/v1/emulation/pings", body);
    // A busy machine delays pings, so one complete round of several is enough.
    let rounds = std::iter::repeat_with(|| ping("")).take(ROUNDS);
    let mut answers = rounds.inspect(|(status, all)| assert_eq!(*status, 200, "{all}"));
    let all_reached = r#"{"sent":2,"answered":2,"longest_ms":"#;
    assert!(answers.any(|(_, all)| all.starts_with(all_reached)));
    // A cut link is reported as lost, and returns after the repair.
    let link = |up: bool| {
        let body = format!(r#"{{"up": {up}}}"#);
        assert_eq!(
            net.send("POST", "/api/v1/emulation/links/0", &body),
            (204, String::new())
        );
    };
    link(false);
    net.wait(links, |links| links == "[]");
    assert!(
        net.get("/api/v1/emulation")
            .contains(r#""b":"0000000000000001:2","up":false"#)
    );
    let lost = r#"{"sent":1,"answered":0,"longest_ms":null,"failed":[{"from":"h1","to":"h2"}]}"#;
    assert_eq!(
        ping(r#"{"from": "h1", "to": "h2"}"#),
        (200, lost.to_owned())
    );
    link(true);
    net.wait(links, |links| links.matches("from").count() == 2);
    // A switch without power disconnects, and joins again with power.
    let switch = |runs: bool| {
        let body = format!(r#"{{"running": {runs}}}"#);
        let path = "/api/v1/emulation/switches/2";
        assert_eq!(net.send("POST", path, &body), (204, String::new()));
    };
    let switches = "/api/v1/switches";
    switch(false);
    net.wait(switches, |switches| !switches.contains("0000000000000002"));
    switch(true);
    net.wait(switches, |switches| switches.contains("0000000000000002"));
    let traffic = r#"{"from": "h1", "to": "h2", "mbit_per_s": 1, "seconds": 600}"#;
    for expected in [204; 16].into_iter().chain([409]) {
        let (status, error) = net.send("POST", "/api/v1/emulation/traffic", traffic);
        assert_eq!(status, expected, "{error}");
    }
    net.wait("/stats/port/2/1", |ports| {
        let sent = ports.split(r#""tx_packets":"#).nth(1);
        let digits = sent.map(|sent| sent.split([',', '}']).next().unwrap_or_default().trim());
        digits.and_then(|digits| digits.parse::<u64>().ok()) > Some(100)
    });
    for (path, body, status, expected) in [
        ("links/7", r#"{"up": false}"#, 404, "there is no link 7"),
        (
            "switches/9",
            r#"{"running": false}"#,
            404,
            "there is no switch 0000000000000009",
        ),
        (
            "pings",
            r#"{"from": "h1", "to": "h9"}"#,
            404,
            "there is no host 'h9'",
        ),
        (
            "pings",
            r#"{"from": "h1", "to": "h1"}"#,
            409,
            "expected another host than h1",
        ),
    ] {
        let (found, error) = net.send("POST", &format!("/api/v1/emulation/{path}"), body);
        assert_eq!(found, status, "{error}");
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(net.interrupt(), Some(0));
}

#[test]
#[cfg(feature = "northbound")]
fn the_demonstration_is_shown_in_a_browser() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let browser = folder.path().join("browser");
    let opened = folder.path().join("opened");
    let script = format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display());
    std::fs::write(&browser, script).unwrap();
    std::fs::set_permissions(&browser, PermissionsExt::from_mode(0o700)).unwrap();
    let demo = Served::start(
        &["demo", "--topology=ring,3", "--web=127.0.0.1:0"],
        &browser,
    );
    // Its hosts have pinged each other, and continue to communicate.
    demo.wait("/api/v1/hosts", |hosts| {
        hosts.matches("\"mac\"").count() == 3
    });
    demo.wait("/api/v1/links", |links| links.matches("from").count() == 6);
    demo.wait("/stats/flow/1", |flows| {
        flows.matches("\"dl_dst\"").count() > 2
    });
    let (status, _) = demo.send("POST", "/api/v1/emulation/links/0", r#"{"up": false}"#);
    assert_eq!(status, 204);
    demo.wait("/api/v1/links", |links| links.matches("from").count() == 4);
    let url = std::fs::read_to_string(&opened).unwrap();
    assert_eq!(url.trim(), demo.url);
    assert_eq!(demo.interrupt(), Some(0));
    for arguments in [["--web", "--plain"], ["--web", "--simulated"]] {
        let output = urtica(&[&["demo"][..], &arguments].concat());
        assert_eq!(output.status.code(), Some(2));
        let errors = text(&output.stderr);
        assert!(errors.contains("cannot be used with"), "{errors}");
    }
}
