//! Tests of `urtica capture` and `urtica replay` with the other commands: `urtica decode` reads the recording, and a
//! controller that receives a replay sends the recorded messages again.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

fn urtica(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urtica"));
    command.args(arguments).env_remove("RUST_LOG");
    command.stdin(Stdio::null());
    command
}

/// Runs a command to its end; returns whether it succeeded, and its output.
fn said(arguments: &[&str]) -> (bool, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = urtica(arguments).output().expect("urtica starts");
    let both = [stdout, stderr].concat();
    (
        status.success(),
        String::from_utf8(both).expect("it says text"),
    )
}

/// A command that listens until it is interrupted.
struct Daemon {
    child: Child,
    stderr: BufReader<ChildStderr>,
    /// Its address, in the form that clients connect to.
    address: String,
}

impl Daemon {
    fn start(arguments: &[&str]) -> Self {
        let mut command = urtica(arguments);
        let mut child = command
            .stderr(Stdio::piped())
            .spawn()
            .expect("urtica starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let address = loop {
            let mut line = String::new();
            let read = stderr.read_line(&mut line).expect("text");
            assert!(read > 0, "{arguments:?} ended before it listened");
            let mut words = line.split("ptcp:").skip(1);
            if let Some(port) = words.next().and_then(|rest| rest.split(':').next()) {
                break format!("tcp:127.0.0.1:{port}");
            }
        };
        Self {
            child,
            stderr,
            address,
        }
    }

    fn controller(programs: &str) -> Self {
        Self::start(&["run", programs, "--listen", "ptcp:0:127.0.0.1"])
    }

    fn capture(file: &Path, controller: &str) -> Self {
        let file = file.to_str().expect("text");
        let listen = ["--listen", "ptcp:0:127.0.0.1", "--controller", controller];
        Self::start(&[&["capture", "-w", file][..], &listen].concat())
    }

    /// Ends it like Ctrl-C; returns its output.
    fn interrupt(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it runs");
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).expect("text");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}: {said}");
        said
    }
}

/// Ends it if a test has failed.
impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Records the messages between two emulated switches and the learning switch.
fn record(file: &Path, controller: &Daemon, version: &str) {
    let capture = Daemon::capture(file, &controller.address);
    let load = "-s 2 -l 1 -m 100 -w 0 --openflow";
    let mut arguments = vec!["bench", "-c", &capture.address];
    arguments.extend(load.split(' '));
    arguments.push(version);
    let (went_well, output) = said(&arguments);
    assert!(went_well, "{output}");
    let told = capture.interrupt();
    assert!(told.contains("of 2 connections; 0 skipped"), "{told}");
}

#[test]
fn recordings_are_decoded_and_replayed() {
    let folder = tempfile::tempdir().expect("a folder");
    for version in ["1.0", "1.3"] {
        let controller = Daemon::controller("l2");
        let path = folder.path().join(format!("{version}.pcapng"));
        let file = path.to_str().expect("text");
        record(&path, &controller, version);
        let mode = path.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let (went_well, messages) = said(&["decode", file]);
        assert!(went_well, "{messages}");
        for name in ["HELLO", "FEATURES_REPLY", "PACKET_IN", "FLOW_MOD"] {
            assert!(messages.contains(&format!("OFPT_{name}")), "{name}");
        }
        let (went_well, told) = said(&[
            "replay",
            file,
            &controller.address,
            "--as-test",
            "--timeout",
            "300",
        ]);
        assert!(went_well, "{told}");
        let same = told.matches("types and order as recorded").count();
        assert_eq!(same, 2, "{told}");
        let load = [
            "replay",
            file,
            &controller.address,
            "--load",
            "--loops",
            "3",
        ];
        let (went_well, told) = said(&load);
        assert!(went_well, "{told}");
        controller.interrupt();
        another_controller_is_told_apart(file);
    }
}

/// The hub sends no flow mods, so the comparison fails.
fn another_controller_is_told_apart(file: &str) {
    let hub = Daemon::controller("hub");
    let (went_well, told) = said(&["replay", file, &hub.address, "--as-test", "--timeout", "1"]);
    assert!(!went_well, "{told}");
    assert!(
        told.contains("expected OFPT_FLOW_MOD") || told.contains("OFPT_PACKET_OUT"),
        "{told}"
    );
    hub.interrupt();
}

#[test]
fn recordings_are_written_to_a_pipe_while_recording() {
    let controller = Daemon::controller("l2");
    let mut capture = urtica(&["capture", "-w", "-", "--listen", "ptcp:0:127.0.0.1"]);
    capture.args(["--controller", &controller.address]);
    let capture = capture.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = capture.spawn().expect("urtica starts");
    let mut out = child.stdout.take().expect("it is piped");
    // The headers of a section and of an interface are written at once.
    let mut head = [0; 4];
    out.read_exact(&mut head).expect("read");
    assert_eq!(head, [0x0a, 0x0d, 0x0d, 0x0a]);
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    out.read_to_end(&mut Vec::new()).expect("read");
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn impossible_commands_are_refused_with_a_message() {
    let refusal = |arguments: &[&str]| {
        let (went_well, told) = said(arguments);
        assert!(!went_well, "{arguments:?}: {told}");
        told
    };
    let listen = ["--listen", "ptcp:0:127.0.0.1"];
    let capture = |more: &[&str]| refusal(&[&["capture"], &listen[..], more].concat());
    let told = capture(&["-w", "/none/of.pcapng"]);
    assert!(told.contains("cannot write /none/of.pcapng: "), "{told}");
    let told = capture(&["-w", "/none/x", "--controller", "ptcp:6653"]);
    assert!(told.contains("expected one to connect to"), "{told}");
    let told = capture(&["-w", "/none/x", "--controller", "ssl:127.0.0.1"]);
    assert!(
        told.contains("--private-key, --certificate and --ca-cert"),
        "{told}"
    );
    let told = refusal(&["replay", "/none/of.pcapng", "tcp:127.0.0.1:1"]);
    assert!(told.contains("/none/of.pcapng: No such file"), "{told}");
    let told = refusal(&["replay", "Cargo.toml", "tcp:127.0.0.1:1"]);
    assert!(told.contains("expected a pcap or pcapng file"), "{told}");
    let told = refusal(&["replay", "x", "tcp:127.0.0.1:1", "--loops", "3"]);
    assert!(told.contains("--load"), "{told}");
}

#[test]
fn a_missing_controller_only_closes_the_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("of.pcapng");
    let controller = Daemon::controller("l2");
    let address = controller.address.clone();
    controller.interrupt();
    let capture = Daemon::capture(&path, &address);
    let place = capture.address.trim_start_matches("tcp:");
    let mut switch = std::net::TcpStream::connect(place).expect("it listens");
    assert_eq!(switch.read(&mut [0; 8]).expect("read"), 0);
    let told = capture.interrupt();
    assert!(
        told.contains("cannot connect to the controller at"),
        "{told}"
    );
}
