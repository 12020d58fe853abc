//! Tests of `urtica net`: alone, with a controller in another process, and simulated.

mod served;
mod simulated;
mod terminal;

use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

fn urtica(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urtica"));
    command.args(arguments).env("RUST_LOG", "warn");
    command.stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `urtica run` at a Unix socket; killed on drop.
struct Controller {
    child: Child,
    /// Its log, kept open while the controller runs.
    _log: BufReader<ChildStderr>,
}

impl Controller {
    fn start(app: &str, socket: &Path) -> Self {
        let listen = format!("punix:{}", socket.display());
        let mut child = Command::new(env!("CARGO_BIN_EXE_urtica"))
            .args(["run", app, "--listen", &listen])
            .env("RUST_LOG", "info")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        // It logs its address once it listens.
        let mut line = String::new();
        while !line.contains(&listen) {
            line.clear();
            assert!(
                log.read_line(&mut line).unwrap() > 0,
                "the controller ended"
            );
        }
        Self { child, _log: log }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn hosts_reach_each_other_under_a_controller_in_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("of.sock");
    let _controller = Controller::start("l2", &socket);
    let address = format!("unix:{}", socket.display());
    // A busy machine delays pings, so one complete round of several is enough.
    let arguments = ["tree,depth=2,fanout=2", "--controller", &address];
    let (told, _) = commanded(&arguments, &"pingall\n".repeat(5));
    assert!(told.contains("3 of 3 switches are connected"), "{told}");
    assert!(
        told.contains("Results: 0% dropped (12/12 received)"),
        "{told}"
    );
}

/// Two hosts without a way to each other.
const APART: &str = "[[switches]]\nname = 's1'\n[[switches]]\nname = 's2'\n\
                     [[hosts]]\nname = 'h1'\nattached = 's1:1'\n[[hosts]]\nname = 'h2'\nattached = 's2:1'\n";

#[test]
fn unreachable_hosts_set_the_exit_status() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("apart.toml");
    std::fs::write(&file, APART).unwrap();
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
    assert!(told.contains("h1 received no reply from h2"), "{told}");
}

#[test]
fn reports_a_missing_controller() {
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
fn a_network_is_drawn_in_the_format_of_the_file_and_not_started() {
    let folder = tempfile::tempdir().unwrap();
    for (name, begin) in [
        ("net.svg", "<svg xmlns="),
        ("net.dot", "graph network {"),
        ("net.json", "{\n  \"width\": "),
    ] {
        let file = folder.path().join(name).display().to_string();
        let output = urtica(&["net", "torus,3,3", "--draw", &file]);
        assert_eq!(
            (output.status.code(), text(&output.stdout)),
            (Some(0), format!("torus,3,3: drawn in {file}\n"))
        );
        let drawing = std::fs::read_to_string(&file).unwrap();
        assert!(drawing.starts_with(begin), "{drawing}");
        assert!(
            drawing.contains("s3x3") && drawing.contains("10.0.0.9"),
            "{drawing}"
        );
        urtica(&["net", "torus,3,3", "--draw", &file]);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), drawing);
    }
    let printed = urtica(&["net", "torus,3,3", "--draw", "-"]);
    let file = std::fs::read_to_string(folder.path().join("net.dot")).unwrap();
    assert_eq!(text(&printed.stdout), file);
}

#[test]
fn drawings_that_cannot_be_written_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    for (drawing, status, expected) in [
        (
            file("net.png"),
            2,
            "expected FILE.svg, FILE.dot or FILE.json, or - for DOT",
        ),
        (file("none/net.svg"), 1, "cannot write "),
        ("/dev/full".to_owned(), 2, "expected FILE.svg"),
    ] {
        let output = urtica(&["net", "single,2", "--draw", &drawing]);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{errors}");
        assert!(errors.contains(expected), "{errors}");
        assert_eq!(text(&output.stdout), "");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_urtica"));
    command
        .args(["net", "single,2", "--draw", "-"])
        .stdout(full);
    let output = command.stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = text(&output.stderr);
    assert!(
        errors.contains("cannot write to standard output"),
        "{errors}"
    );
}

#[test]
fn a_capture_contains_the_frames_of_the_link() {
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
    // At least an ARP request and reply, and echo requests and replies both ways.
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
fn unknown_topologies_and_programs_are_refused_with_a_message() {
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
            "unknown kind of fault 'moths'; expected one of: cut, ",
        ),
        (
            &["net", "simulate", "--only", "fault-1,moths"],
            "'moths' is not a fault or flow of a run; expected for example fault-0 or flow-3",
        ),
    ] {
        let output = urtica(arguments);
        assert!(!output.status.success());
        let errors = text(&output.stderr);
        assert!(errors.contains(expected), "{errors}");
    }
}

/// Runs `urtica net` with these commands from a pipe; returns its output and exit status.
fn commanded(arguments: &[&str], commands: &str) -> (String, Option<i32>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_urtica"))
        .arg("net")
        .args(arguments)
        .env("RUST_LOG", "warn")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(commands.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    (text(&output.stdout), output.status.code())
}

/// Returns the output without the first line, which describes the network.
fn after_the_first_line(told: &str) -> &str {
    told.split_once('\n').map_or("", |(_, rest)| rest)
}

#[test]
fn commands_from_a_pipe_are_mininets() {
    let commands =
        "nodes\nnet\nlinks\nintfs\ndump\n# a comment\n\npingall\nlink s1 s2 down\nlinks\n";
    let (told, status) = commanded(&["linear,2", "--simulated"], commands);
    assert_eq!(
        after_the_first_line(&told),
        "available nodes are:\n\
         h1 h2 s1 s2\n\
         h1 h1-eth0:s1-eth1\n\
         h2 h2-eth0:s2-eth1\n\
         s1 s1-eth1:h1-eth0 s1-eth2:s2-eth2\n\
         s2 s2-eth1:h2-eth0 s2-eth2:s1-eth2\n\
         s2-eth2<->s1-eth2 (OK OK)\n\
         h1-eth0<->s1-eth1 (OK OK)\n\
         h2-eth0<->s2-eth1 (OK OK)\n\
         h1: h1-eth0\n\
         h2: h2-eth0\n\
         s1: s1-eth1,s1-eth2\n\
         s2: s2-eth1,s2-eth2\n\
         <Host h1: h1-eth0:10.0.0.1 mac=00:00:00:00:00:01>\n\
         <Host h2: h2-eth0:10.0.0.2 mac=00:00:00:00:00:02>\n\
         <Switch s1: s1-eth1,s1-eth2 dpid=0000000000000001 without controller>\n\
         <Switch s2: s2-eth1,s2-eth2 dpid=0000000000000002 without controller>\n\
         *** Ping: testing ping reachability\n\
         h1 -> h2\n\
         h2 -> h1\n\
         *** Results: 0% dropped (2/2 received)\n\
         s2-eth2<->s1-eth2 (down down)\n\
         h1-eth0<->s1-eth1 (OK OK)\n\
         h2-eth0<->s2-eth1 (OK OK)\n"
    );
    assert_eq!(status, Some(0));
}

#[test]
fn failed_piped_commands_set_the_exit_status() {
    for (command, expected) in [
        ("dance", "there is no command 'dance'"),
        ("h1 ping -c1 h9", "there is no host 'h9'"),
        ("link h1 h2 down", "there is no link between 'h1' and 'h2'"),
        (
            "switch s1 stop\npingall",
            "h1 -> X\nh2 -> X\n*** Results: 100% dropped (0/2 received)",
        ),
        (
            "switch s1 stop\nh1 ping -c2 h2\nswitch s1 start",
            "no answer from 10.0.0.2: icmp_seq=2\n--- h2 ping statistics ---\n\
             2 packets transmitted, 0 received, 100% packet loss",
        ),
    ] {
        let (told, status) = commanded(&["single,2", "--simulated"], command);
        assert!(told.contains(expected), "{command}: {told}");
        assert_eq!(status, Some(1), "{command}: {told}");
    }
    // Later commands are still executed.
    let (told, status) = commanded(&["single,2", "--simulated"], "dance\npingpair\nexit\ndance");
    assert!(
        told.ends_with("*** Results: 0% dropped (2/2 received)\n"),
        "{told}"
    );
    assert_eq!(status, Some(1));
}

#[test]
fn reports_pings_streams_and_entries() {
    let commands = "h1 ping -c 2 h2\niperf\nflows s1\nflows\nwait 20\nflows s2\n";
    let (told, status) = commanded(&["linear,2", "--simulated", "--apps", "l2"], commands);
    assert_eq!(status, Some(0), "{told}");
    for expected in [
        "PING h2 (10.0.0.2)\n64 bytes from 10.0.0.2: icmp_seq=1 time=",
        "2 packets transmitted, 2 received, 0% packet loss\nrtt min/avg/max = ",
        "*** Iperf: testing TCP bandwidth between h1 and h2\n*** Results: ",
        "bits/sec, 0 packets retransmitted\n",
        "tcp,in_port=1,",
        "*** s2 -----",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    // When the network is quiescent, only the entry that sends all other packets to the controller is left.
    let last = told.lines().last().unwrap();
    assert!(
        last.ends_with("priority=0 actions=CONTROLLER:65535"),
        "{told}"
    );
}

/// A network with endless loops of frames, which cannot keep up with the clock.
const STORM: &str = "mesh,4";

#[test]
fn pings_in_a_storm_end_when_the_time_is_over() {
    let output = urtica(&["net", STORM, "--ping-all", "--seconds", "1"]);
    let told = text(&output.stdout);
    // A fast machine may complete the pings themselves.
    let are_told =
        told.contains("Results: ") || told.contains(" received so far, of 12 to be sent");
    assert!(are_told, "{told}");
}

#[test]
fn a_network_that_does_not_fit_is_refused_before_it_is_built() {
    let output = urtica(&["net", "single,100000", "--ping-all"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let begin = "urtica: single,100000 with --ping-all needs about 1192 GB of memory, and ";
    assert!(told.starts_with(begin), "{told}");
    assert!(
        told.ends_with("expected a smaller network, or one without --ping-all\n"),
        "{told}"
    );
    assert!(output.stdout.is_empty());
}

/// Returns the peak memory of building a network of one switch, in kilobytes.
fn peak_kb(hosts: u32) -> u64 {
    let spec = format!("single,{hosts}");
    let mut child = Command::new(env!("CARGO_BIN_EXE_urtica"))
        .args(["net", &spec, "--simulated"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    assert!(stdout.read_line(&mut line).unwrap() > 0, "it ended");
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    drop(child.stdin.take());
    child.wait().unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.unwrap().trim().trim_end_matches(" kB");
    peak.parse().unwrap()
}

/// An earlier version needed 17 KB.
#[test]
fn a_host_and_its_port_need_little_memory() {
    let (few, many) = (peak_kb(100), peak_kb(1_100));
    let bytes = 1024 * many.saturating_sub(few) / 1_000;
    assert!(bytes < 4_000, "{bytes} bytes");
}

#[test]
fn an_invalid_time_is_refused() {
    for time in ["-5", "-0.1", "soon", "NaN", "inf", "1e300"] {
        let output = urtica(&["net", "single,2", "--ping-all", "--seconds", time]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        let expected = format!("'{time}' is not a time; expected seconds, 0 or more");
        assert!(told.contains(&expected), "{told}");
    }
}

#[test]
fn a_signal_ends_pings_and_commands() {
    let folder = tempfile::tempdir().unwrap();
    let apart = folder.path().join("apart.toml");
    std::fs::write(&apart, APART).unwrap();
    let apart = apart.to_str().unwrap();
    // Pings between unconnected hosts last for seconds, and never succeed.
    let ping = "h1 ping -c 100000 h2\n";
    for (arguments, commands, begun, expected) in [
        (
            &[apart, "--ping-all"][..],
            "",
            "2 hosts",
            " of 2 to be sent",
        ),
        (&[apart], "pingall\nwait 100000\n", "*** Ping", "*** "),
        (&[apart], ping, "PING h2", "packets transmitted, 0 received"),
        (&[STORM], "pingall\nwait 100000\n", "*** Ping", "*** "),
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_urtica"))
            .arg("net")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(commands.as_bytes()).unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains(begun) {
            line.clear();
            assert!(stdout.read_line(&mut line).unwrap() > 0, "it ended");
        }
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let mut told = String::new();
        stdout.read_to_string(&mut told).unwrap();
        // The command ends although the pipe stays open.
        assert_eq!(child.wait().unwrap().code(), Some(1), "{told}");
        // It prints the results so far; on a machine that was suspended, the measurement may be complete.
        let is_told = told.contains(expected) || told.contains("Results: ");
        assert!(is_told, "{told}");
    }
}
