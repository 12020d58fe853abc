//! Tests of a running `urtica switch` through its control socket. The ports are capture files, so that no root is needed.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

fn urtica(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urtica"));
    command.args(arguments).env_remove("RUST_LOG");
    command.stdin(Stdio::null());
    command
}

/// A running switch with a control socket, a recording port, and an address at which controllers may connect.
struct Switch {
    child: Child,
    log: BufReader<ChildStderr>,
    folder: PathBuf,
}

impl Switch {
    /// Starts the switch in this folder with further options, and waits until it forwards.
    fn start(folder: &Path, options: &[&str]) -> Self {
        let mut child = Self::command(folder, options).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let folder = folder.to_owned();
        let mut switch = Self { child, log, folder };
        switch.wait_for("switching");
        switch
    }

    fn command(folder: &Path, options: &[&str]) -> Command {
        let mut command = urtica(&["switch", "--port", "1=pcap:,one.pcap"]);
        command
            .args(["--datapath-id", "0x2a", "--control", "ctl"])
            .args(["--controller", "punix:of.sock"])
            .args(options)
            .current_dir(folder)
            .stderr(Stdio::piped());
        command
    }

    /// Reads its log up to a line with this text, and returns it.
    fn wait_for(&mut self, text: &str) -> String {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            let count = self.log.read_line(&mut line).unwrap();
            assert!(count > 0, "the switch ended before it said '{text}'");
        }
        line
    }

    fn ctl(&self, arguments: &[&str]) -> Output {
        let mut command = urtica(&["switch", "ctl", "--control", "ctl"]);
        let command = command.args(arguments).current_dir(&self.folder);
        command.output().unwrap()
    }

    /// Returns the output of a command.
    fn told(&self, arguments: &[&str]) -> String {
        let output = self.ctl(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the items of an answer.
    fn items(&self, arguments: &[&str]) -> Vec<Value> {
        let told = self.told(&[&["--json"], arguments].concat());
        let lines = told.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Returns the error message of a refused command.
    fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.ctl(arguments);
        assert!(!output.status.success(), "{arguments:?} was accepted");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Changes flow entries, as a controller would.
    fn flows(&self, arguments: &[&str]) {
        let output = urtica(&["flows"])
            .args(arguments)
            .current_dir(&self.folder)
            .output();
        let output = output.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
    }

    /// Sends a signal, and waits for the end.
    fn stop(mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let _ = self.log.read_to_end(&mut Vec::new());
        self.child.wait().unwrap()
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_running_switch_reports_its_state() {
    let folder = tempfile::tempdir().unwrap();
    let switch = Switch::start(folder.path(), &["--name", "s1"]);
    let show = switch.told(&["show"]);
    assert!(
        show.starts_with("s1 dpid=000000000000002a uptime="),
        "{show}"
    );
    assert!(show.contains(" punix:of.sock listening\n"), "{show}");
    let [show] = &switch.items(&["show"])[..] else {
        panic!("expected one item");
    };
    assert_eq!(show["ports"][0]["number"], 1);
    assert_eq!(show["controllers"][0]["state"], "listening");
    let causes: Vec<_> = switch.items(&["counters"]);
    assert!(
        causes
            .iter()
            .any(|one| one["cause"] == "table_misses" && one["packets"] == 0)
    );
    assert_eq!(switch.told(&["tables"]), "");
    assert_eq!(switch.told(&["flows"]), "");
}

#[test]
fn reports_entries_tables_and_templates() {
    let folder = tempfile::tempdir().unwrap();
    let switch = Switch::start(folder.path(), &[]);
    let entries = [
        "priority=5,in_port=1,actions=output:1",
        "table=3,priority=6,tcp,actions=drop",
    ];
    switch.flows(&["add", "unix:of.sock", entries[0], entries[1]]);
    let told = switch.told(&["flows"]);
    assert_eq!(told.lines().count(), 2, "{told}");
    assert!(
        told.contains("table=0, n_packets=0, n_bytes=0, priority=5,in_port=1 actions=output:1"),
        "{told}"
    );
    let of_table = switch.items(&["flows", "--table", "3"]);
    assert_eq!(of_table.len(), 1);
    assert_eq!(of_table[0]["priority"], 6);
    assert!(switch.told(&["tables"]).contains(" table=3: active=1, "));
    let templates = switch.items(&["templates"]);
    assert_eq!(templates[0]["tables"][1]["table"], 3);
    assert!(!switch.told(&["templates"]).is_empty());
    assert!(
        switch
            .refusal(&["flows", "--table", "254"])
            .contains("urtica: ")
    );
}

#[test]
fn ports_and_controllers_are_added_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let switch = Switch::start(folder.path(), &[]);
    assert_eq!(
        switch.told(&["add-port", "pcap:,two.pcap"]),
        "port 2 added\n"
    );
    assert_eq!(
        switch.told(&["add-port", "7=pcap:,seven.pcap"]),
        "port 7 added\n"
    );
    assert_eq!(switch.told(&["remove-port", "2"]), "port 2 removed\n");
    switch.told(&["add-controller", "punix:more.sock"]);
    switch.flows(&["show", "unix:more.sock"]);
    switch.told(&["remove-controller", "punix:more.sock"]);
    assert!(!folder.path().join("more.sock").exists());
    let show = &switch.items(&["show"])[0];
    let numbers: Vec<_> = show["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| &port["number"])
        .collect();
    assert_eq!(numbers, [1, 7]);
    assert_eq!(show["controllers"].as_array().unwrap().len(), 1);
}

#[test]
fn queues_are_read_from_a_file_set_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[[ports]]\nport = \"1\"\nrate = \"10Mbit\"\n[[ports.queues]]\nid = 1\nmin-rate = \"1Mbit\"\npriority = 2\n";
    std::fs::write(folder.path().join("queues.toml"), text).unwrap();
    let switch = Switch::start(folder.path(), &["--queues", "queues.toml"]);
    let show = switch.told(&["show"]);
    assert!(show.contains("    queues share 10Mbit\n"), "{show}");
    let queue = "    queue 1: min=1Mbit, max=none, priority=2; tx pkts=0, bytes=0, drop=0\n";
    assert!(show.contains(queue), "{show}");
    let set = [
        "set-queue",
        "1",
        "5",
        "--max-rate",
        "2Mbit",
        "--max-packets",
        "9",
    ];
    assert_eq!(switch.told(&set), "queue 5 of port 1 set\n");
    assert_eq!(
        switch.told(&["set-queue-rate", "1", "20Mbit"]),
        "rate of port 1 set\n"
    );
    let port = &switch.items(&["show"])[0]["ports"][0];
    assert_eq!(port["queue_rate"], "20Mbit");
    let (first, second) = (&port["queues"][0], &port["queues"][1]);
    assert_eq!((&first["queue"], &second["queue"]), (&1.into(), &5.into()));
    assert_eq!(second["max_rate"], "2Mbit");
    assert_eq!(second["max_packets"], 9);
    for (arguments, expected) in [
        (&["delete-queue", "1", "9"][..], "port 1 has no queue 9"),
        (&["delete-queue", "nix"], "there is no port 'nix'"),
        (
            &["set-queue", "1", "1", "--min-rate", "fast"],
            "'fast' is not a bandwidth",
        ),
        (
            &["set-queue", "1", "1", "--min-rate", "21Mbit"],
            "the minimum rates add up to",
        ),
        (&["set-queue-rate", "1", "1bit"], "out of range"),
    ] {
        let sentence = switch.refusal(arguments);
        assert!(sentence.contains(expected), "{arguments:?}: {sentence}");
    }
    assert_eq!(
        switch.told(&["delete-queue", "1", "5"]),
        "queue 5 of port 1 deleted\n"
    );
    assert_eq!(
        switch.told(&["delete-queue", "1"]),
        "all queues of port 1 deleted\n"
    );
    assert!(!switch.told(&["show"]).contains("queue"));
}

#[test]
fn a_file_of_queues_is_refused_with_the_line() {
    let folder = tempfile::tempdir().unwrap();
    for (text, expected) in [
        (
            "[[ports]]\nport = \"nix\"\n",
            "queues.toml:2:8: there is no port 'nix'",
        ),
        ("[[ports]]\nport = \"1\"\nrate = 5\n", "queues.toml:3:8: "),
        (
            "[[ports]]\nport = \"1\"\n[[ports]]\nport = \"1\"\n",
            "queues.toml:4:8: port 1 is named twice",
        ),
    ] {
        std::fs::write(folder.path().join("queues.toml"), text).unwrap();
        let mut command = Switch::command(folder.path(), &["--queues", "queues.toml"]);
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && stderr.contains(expected),
            "{stderr}"
        );
    }
}

#[test]
fn impossible_commands_are_refused_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let switch = Switch::start(folder.path(), &[]);
    for (arguments, expected) in [
        (&["add-port", "dpdk:0"][..], "expected INTERFACE"),
        (
            &["add-port", "1=pcap:,two.pcap"],
            "expected an unused number",
        ),
        (&["add-port", "0=pcap:,two.pcap"], "expected 1 to"),
        (&["remove-port", "nine"], "no port 'nine'"),
        (&["add-controller", "here"], "tcp:HOST"),
        (&["add-controller", "pssl:0"], "--private-key"),
        (
            &["remove-controller", "tcp:127.0.0.1"],
            "there is no controller",
        ),
    ] {
        let sentence = switch.refusal(arguments);
        assert!(sentence.contains(expected), "{arguments:?}: {sentence}");
    }
}

/// Sends a request to the socket, and returns the answer up to the end of the connection.
fn conversation(socket: &Path, request: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    // The switch may close the connection before it has read the whole request.
    let _ = stream.write_all(request);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn malformed_requests_get_a_message_and_silent_clients_delay_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let switch = Switch::start(folder.path(), &[]);
    let socket = folder.path().join("ctl");
    let long = vec![b'x'; 64 << 10];
    for request in [
        &b"\n"[..],
        b"show\n",
        b"{\"command\":\"show\"}",
        b"{\"command\":\"explode\"}\n",
        b"{\"command\":\"flows\",\"table\":-1}\n",
        b"\xff\xfe\n",
        b"",
    ] {
        let answer = conversation(&socket, request);
        assert!(
            answer.contains("expected a line of JSON"),
            "{request:?}: {answer}"
        );
    }
    conversation(&socket, &long);
    let _silent: Vec<_> = (0..4)
        .map(|_| UnixStream::connect(&socket).unwrap())
        .collect();
    assert!(switch.told(&["show"]).contains("dpid="));
}

#[test]
fn the_socket_is_private_and_removed_with_the_switch() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("ctl");
    // Like the socket of a killed switch.
    drop(UnixListener::bind(&socket).unwrap());
    let switch = Switch::start(folder.path(), &[]);
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
    let second = Switch::command(folder.path(), &[]).output().unwrap();
    assert!(!second.status.success());
    assert!(switch.told(&["show"]).contains("dpid="));
    assert!(switch.stop(Signal::TERM).success());
    assert!(!socket.exists());
    let mut command = urtica(&["switch", "ctl", "--control"]);
    let output = command.arg(&socket).arg("show").output().unwrap();
    let sentence = String::from_utf8(output.stderr).unwrap();
    assert!(sentence.contains("no switch answers at"), "{sentence}");
}

#[test]
fn a_switch_with_the_name_of_another_runs_without_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let start = |port: &str| {
        let mut command = urtica(&["switch", "--port", port, "--name", "twin"]);
        command
            .env("RUNTIME_DIRECTORY", folder.path())
            .current_dir(folder.path());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let folder = folder.path().to_owned();
        Switch { child, log, folder }
    };
    let mut first = start("1=pcap:,one.pcap");
    first.wait_for("switching");
    let mut second = start("1=pcap:,two.pcap");
    second.wait_for("no control socket: another switch answers at");
    second.wait_for("switching");
    drop(second);
    let mut command = urtica(&["switch", "ctl", "--name", "twin", "show"]);
    let output = command
        .env("RUNTIME_DIRECTORY", folder.path())
        .output()
        .unwrap();
    assert!(output.status.success() && output.stdout.starts_with(b"twin dpid="));
}

/// Returns the flow entries without fields that depend on the time.
fn entries(switch: &Switch) -> Vec<String> {
    let mut flows = switch.items(&["flows"]);
    let told = flows.iter_mut().map(|flow| {
        assert!(flow["duration_seconds"].as_f64().unwrap() >= 0.0);
        let text = flow["flow"].as_str().unwrap();
        let (before, after) = text.split_once("duration=").unwrap();
        format!("{before}{}", after.split_once(", ").unwrap().1)
    });
    told.collect()
}

#[test]
fn a_restart_keeps_entries_groups_and_meters() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--state", "state"];
    let switch = Switch::start(folder.path(), &options);
    switch.flows(&[
        "add-meter",
        "unix:of.sock",
        "meter=3,kbps,band=type=drop,rate=1000",
    ]);
    switch.flows(&[
        "add-group",
        "unix:of.sock",
        "group_id=5,type=all,bucket=output:1",
    ]);
    let entry = "cookie=0x9,table=2,priority=5,idle_timeout=600,in_port=1,actions=meter:3,group:5";
    switch.flows(&["add", "unix:of.sock", entry]);
    assert_eq!(
        switch.told(&["add-port", "pcap:,two.pcap"]),
        "port 2 added\n"
    );
    // After the restart, the entry names a port that does not exist.
    switch.flows(&["add", "unix:of.sock", "priority=6,actions=output:2"]);
    let before = entries(&switch);
    assert_eq!(before.len(), 2);
    let age = switch.items(&["flows"])[0]["duration_seconds"]
        .as_f64()
        .unwrap();
    assert!(switch.stop(Signal::TERM).success());
    let switch = Switch::start(folder.path(), &options);
    assert_eq!(entries(&switch), before);
    assert!(
        switch.items(&["flows"])[0]["duration_seconds"]
            .as_f64()
            .unwrap()
            >= age
    );
    // The number of a removed port stays reserved for its name.
    assert_eq!(
        switch.told(&["add-port", "pcap:,three.pcap"]),
        "port 3 added\n"
    );
    assert_eq!(
        switch.told(&["add-port", "pcap:,two.pcap"]),
        "port 2 added\n"
    );
}

/// Queues that were changed at run time outlive a stop and a kill, until their section of the file changes.
#[test]
fn a_restart_keeps_queues_set_at_run_time() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[[ports]]\nport = \"1\"\n[[ports.queues]]\nid = 1\n";
    let queues = folder.path().join("queues.toml");
    std::fs::write(&queues, text).unwrap();
    let options = ["--state", "state", "--queues", "queues.toml"];
    let ids = |switch: &Switch| {
        let show = switch.items(&["show"]);
        let queues = show[0]["ports"][0]["queues"].as_array().unwrap().clone();
        let ids = queues.iter().map(|queue| queue["queue"].as_u64().unwrap());
        ids.collect::<Vec<_>>()
    };
    let switch = Switch::start(folder.path(), &options);
    switch.told(&["set-queue", "1", "5", "--max-rate", "3Mbit"]);
    assert!(switch.stop(Signal::TERM).success());
    let switch = Switch::start(folder.path(), &options);
    assert_eq!(ids(&switch), [1, 5]);
    assert!(switch.told(&["show"]).contains("max=3Mbit"));
    switch.told(&["delete-queue", "1", "1"]);
    wait_for_journal(folder.path());
    switch.stop(Signal::KILL);
    let switch = Switch::start(folder.path(), &options);
    assert_eq!(ids(&switch), [5]);
    assert!(switch.stop(Signal::TERM).success());
    std::fs::write(&queues, text.replace("id = 1", "id = 2")).unwrap();
    let switch = Switch::start(folder.path(), &options);
    assert_eq!(ids(&switch), [2]);
}

/// Waits until a journal contains changes: an empty one has 40 bytes.
fn wait_for_journal(folder: &Path) {
    let journal = folder.join("state.journal");
    let start = std::time::Instant::now();
    while std::fs::metadata(&journal).map_or(0, |found| found.len()) <= 40 {
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "nothing was saved"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn entries_are_saved_while_it_runs_and_outlive_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--state", "state"];
    let switch = Switch::start(folder.path(), &options);
    switch.flows(&["add", "unix:of.sock", "priority=5,actions=drop"]);
    wait_for_journal(folder.path());
    switch.stop(Signal::KILL);
    let switch = Switch::start(folder.path(), &options);
    assert_eq!(switch.items(&["flows"]).len(), 1);
    assert!(switch.stop(Signal::TERM).success());
    let journal = folder.path().join("state.journal");
    assert!(!journal.exists(), "the whole file has all");
}

/// The kill follows right after the reply to the client's barrier.
#[test]
fn confirmed_entries_outlive_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--state", "state", "--state-sync", "barrier"];
    for round in 0..4_usize {
        let switch = Switch::start(folder.path(), &options);
        assert_eq!(switch.items(&["flows"]).len(), 30 * round);
        let entries =
            (0..30).map(|number| format!("priority={},in_port={number},actions=drop", round + 1));
        let entries: Vec<String> = entries.collect();
        let arguments = ["add", "unix:of.sock"].into_iter();
        let arguments = arguments.chain(entries.iter().map(String::as_str));
        switch.flows(&arguments.collect::<Vec<_>>());
        switch.stop(Signal::KILL);
    }
    let switch = Switch::start(folder.path(), &options);
    assert_eq!(switch.items(&["flows"]).len(), 120);
}

#[test]
fn an_unusable_state_file_prevents_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    for (content, expected) in [
        ("", "was not written by a switch"),
        ("urtica switch state 9\n", "another version"),
        ("urtica switch state 1\n", "is incomplete"),
    ] {
        std::fs::write(&file, content).unwrap();
        let output = Switch::command(folder.path(), &["--state", "state"]).output();
        let output = output.unwrap();
        let sentence = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && sentence.contains(expected),
            "{sentence}"
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
    }
}

/// Returns the body of the page at this address, and the first line of the response.
#[cfg(feature = "northbound")]
fn scrape(address: &str, path: &str) -> (String, String) {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let accept = "Accept: application/openmetrics-text";
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{accept}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

#[cfg(feature = "northbound")]
#[test]
fn a_switch_has_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let command = Switch::command(folder.path(), &["--metrics", "0", "--name", "s1"]).spawn();
    let mut child = command.unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    let folder = folder.path().to_owned();
    let mut switch = Switch { child, log, folder };
    let line = switch.wait_for(" metrics ");
    let address = line
        .trim_end()
        .rsplit_once("address=")
        .unwrap()
        .1
        .to_owned();
    switch.wait_for("switching");
    switch.flows(&["add", "unix:of.sock", "table=2,priority=5,actions=drop"]);
    switch.told(&["set-queue", "1", "7"]);
    let (status, page) = scrape(&address, "/metrics");
    assert_eq!(status, "HTTP/1.1 200 OK");
    let labels = "dp_id=\"000000000000002a\",dp_name=\"s1\"";
    for row in [
        format!("urtica_port_received_packets_total{{{labels},port=\"1\"}} 0"),
        format!("urtica_queue_sent_packets_total{{{labels},port=\"1\",queue=\"7\"}} 0"),
        format!("urtica_queue_sent_bytes_total{{{labels},port=\"1\",queue=\"7\"}} 0"),
        format!("urtica_queue_sent_errors_total{{{labels},port=\"1\",queue=\"7\"}} 0"),
        format!("urtica_table_entries{{{labels},table=\"2\"}} 1"),
        format!("urtica_switch_dropped_packets_total{{{labels},cause=\"table_misses\"}} 0"),
    ] {
        assert!(page.lines().any(|line| line == row), "{row}: {page}");
    }
    assert!(page.ends_with("# EOF\n"), "{page}");
    assert_eq!(scrape(&address, "/").0, "HTTP/1.1 404 Not Found");
    assert!(switch.stop(Signal::TERM).success());
}

/// Entries of OpenFlow 1.0 see ports of 0 in all fragments, in the switch and in a trace.
#[test]
fn a_trace_over_1_0_sees_no_ports_in_fragments() {
    let folder = tempfile::tempdir().unwrap();
    let switch = Switch::start(folder.path(), &[]);
    for entry in ["udp,tp_dst=53,actions=drop", "udp,tp_dst=0,actions=IN_PORT"] {
        switch.flows(&["-O", "1.0", "add", "unix:of.sock", entry]);
    }
    let trace = |flags_and_offset: &str| {
        let frame = format!(
            "020000000002 020000000001 0800 4500001c0001{flags_and_offset}4011 0000 0a000001 0a000002 0050003500080000"
        );
        let output = urtica(&[
            "trace",
            "-O",
            "1.0",
            "--switch",
            "unix:of.sock",
            "in_port=1",
        ])
        .args(["--packet", &frame])
        .current_dir(folder.path())
        .output()
        .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let whole = trace("0000");
    assert!(whole.contains("tp_dst=53 actions=drop"), "{whole}");
    for fragment in ["2000", "2001", "0001"] {
        let told = trace(fragment);
        assert!(told.contains("tp_dst=0 actions="), "{fragment}: {told}");
        assert!(told.contains("ports of fragments are 0"), "{told}");
    }
}
