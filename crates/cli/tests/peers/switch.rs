//! Hosts in namespaces reach each other through our switch, under our controller and under others.

use std::process::Stdio;
use tempfile::TempDir;

use crate::controller::{Controller, PYTHON, TARGET};
use crate::namespace::{Host, Namespace};
use crate::process::{DEADLINE, Daemon, Signal, eventually, run};
use crate::require;

const HOSTS: u8 = 3;
const TOOLS: &[&str] = &["ip", "ping", "ss"];

#[test]
fn switch_under_l2_of10() {
    hosts_reach_each_other(&[], Controller::urtica_l2, &under_controller("1.0"));
}

#[test]
fn switch_under_l2_of13() {
    hosts_reach_each_other(&[], Controller::urtica_l2, &under_controller("1.3"));
}

#[test]
fn switch_under_ovs_testcontroller() {
    let tools = ["ovs-testcontroller"];
    let start = Controller::ovs_testcontroller;
    hosts_reach_each_other_by(
        "afpacket",
        &tools,
        start,
        Host::reach,
        &under_controller("1.0,1.3"),
    );
}

#[test]
fn switch_under_os_ken_of10() {
    let start = Controller::os_ken;
    hosts_reach_each_other_by(
        "afpacket",
        &[PYTHON],
        start,
        Host::reach,
        &under_controller("1.0"),
    );
}

#[test]
fn switch_under_os_ken_of13() {
    let start = Controller::os_ken;
    hosts_reach_each_other_by(
        "afpacket",
        &[PYTHON],
        start,
        Host::reach,
        &under_controller("1.3"),
    );
}

#[test]
fn switch_alone() {
    hosts_reach_each_other(&[], |_| (), &["--fail-mode", "standalone"]);
}

#[test]
fn switch_with_two_threads_of13() {
    let options = [&under_controller("1.3")[..], &["--threads", "2"]].concat();
    hosts_reach_each_other(&[], Controller::urtica_l2, &options);
}

#[test]
fn switch_with_two_threads_of10_plainly() {
    let threads = ["--threads", "2", "--forwarding", "plain"];
    let options = [&under_controller("1.0")[..], &threads].concat();
    hosts_reach_each_other(&[], Controller::urtica_l2, &options);
}

#[test]
fn switch_alone_with_two_threads() {
    let options = [
        "--fail-mode",
        "standalone",
        "--threads",
        "2",
        "--cores",
        "0",
    ];
    hosts_reach_each_other(&[], |_| (), &options);
}

#[test]
fn switch_with_af_xdp() {
    let start = Controller::urtica_l2;
    hosts_reach_each_other_by("afxdp", &[], start, Host::ping, &under_controller("1.3"));
}

/// By its LOCAL port, the switch's machine is a host of the network: as a port of the learning switch, by entries of
/// both versions, and under a controller.
#[test]
fn hosts_reach_the_switchs_machine_by_its_local_port() {
    if !require::root_and(TOOLS) {
        return;
    }
    let to_local = "in_port=1,actions=LOCAL";
    let from_local = "in_port=LOCAL,actions=output:1";
    for (options, entries) in [
        (&["--fail-mode", "standalone"][..], &[][..]),
        (&["--threads", "2"], &[to_local, from_local]),
        (&["--forwarding", "plain"], &["actions=FLOOD"]),
    ] {
        let room = Namespace::new();
        let host = Host::new(&room, 1);
        let folder = tempfile::tempdir().unwrap();
        let channel = format!("unix:{}", folder.path().join("of.sock").display());
        let passive = format!("p{channel}");
        let local = ["--local", "br0", "--controller", &passive];
        let options = match entries {
            [] => [options, &local[..2]].concat(),
            _ => [options, &local].concat(),
        };
        let ports = [host.switch_port.clone()];
        let mut switch = Switch::start_until(&room, &ports, &options, "switching");
        for entry in entries {
            let mut flows = room.command(env!("CARGO_BIN_EXE_urtica"));
            run(flows.args(["flows", "add", &channel, entry]));
        }
        let address = ["address", "add", "10.0.0.100/24", "dev", "br0"];
        run(room.command("ip").args(address));
        eventually("the switch's machine answers", DEADLINE, || {
            let mut ping = host.command("ping");
            let ping = ping.args(["-n", "-c", "1", "10.0.0.100"]);
            ping.output().is_ok_and(|output| output.status.success())
        });
        switch.interrupt();
        let gone = room.command("ip").args(["link", "show", "br0"]).output();
        assert!(!gone.unwrap().status.success(), "the device stays");
    }
}

#[test]
fn a_local_port_needs_a_free_name() {
    if !require::root_and(&["ip"]) {
        return;
    }
    let room = Namespace::new();
    for (name, sentence) in [
        ("lo", "expected a free name for LOCAL"),
        ("sixteen-bytes-it", "1 to 15 bytes"),
    ] {
        let mut command = room.command(env!("CARGO_BIN_EXE_urtica"));
        let output = command.args(["switch", "--local", name]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && errors.contains(sentence),
            "{errors}"
        );
    }
}

/// A local sender offloads checksums and segmentation to the switch. Tests one thread, and several threads that share
/// each port.
#[test]
fn switch_carries_tcp_whole() {
    if !require::root_and(&[TOOLS, &["python3"]].concat()) {
        return;
    }
    for threads in ["0", "1", "3"] {
        let room = Namespace::new();
        let [from, to] = [1, 2].map(|number| Host::new(&room, number));
        let ports = [&from, &to].map(|host| format!("afpacket:{}", host.switch_port));
        let options = ["--fail-mode", "standalone", "--threads", threads];
        let mut switch = Switch::start(&room, &ports, &options);
        from.reach(&to);
        let mut receiver = to.command("python3");
        let mut receiver = receiver
            .args(["-c", RECEIVE, &to.address])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let sent = run(from.command("python3").args(["-c", SEND, &to.address]));
        let output = receiver.stdout.take().map(std::io::read_to_string);
        assert!(receiver.wait().unwrap().success());
        assert_eq!(output.unwrap().unwrap(), sent, "with {threads} threads");
        switch.interrupt();
    }
}

/// Receives four streams from [`SEND`], and prints the sum of each.
const RECEIVE: &str = "\
import hashlib, socket, sys
listener = socket.create_server((sys.argv[1], 5000))
sums = []
for _ in range(4):
    stream, got = listener.accept()[0], hashlib.sha256()
    while part := stream.recv(1 << 16):
        got.update(part)
    sums.append(got.hexdigest())
print(sorted(sums))
";

const SEND: &str = "\
import hashlib, random, socket, sys, time
sums = []
for seed in range(4):
    data = random.Random(seed).randbytes(4 << 20)
    start = time.monotonic()
    while True:
        try:
            stream = socket.create_connection((sys.argv[1], 5000))
            break
        except ConnectionRefusedError:
            assert time.monotonic() < start + 60, 'nobody listens'
            time.sleep(0.05)
    stream.sendall(data)
    stream.close()
    sums.append(hashlib.sha256(data).hexdigest())
print(sorted(sums))
";

fn under_controller(versions: &str) -> [&str; 4] {
    ["--controller", TARGET, "--openflow", versions]
}

fn hosts_reach_each_other<C>(tools: &[&str], start: fn(&Namespace) -> C, options: &[&str]) {
    hosts_reach_each_other_by("afpacket", tools, start, Host::ping, options);
}

/// Tests a switch with ports of this kind.
fn hosts_reach_each_other_by<C>(
    kind: &str,
    tools: &[&str],
    start: fn(&Namespace) -> C,
    meet: fn(&Host, &Host),
    options: &[&str],
) {
    if !require::root_and(&[TOOLS, tools].concat()) {
        return;
    }
    let room = Namespace::new();
    let hosts: Vec<Host> = (1..=HOSTS).map(|number| Host::new(&room, number)).collect();
    let port = |host: &Host| format!("{kind}:{}", host.switch_port);
    let ports: Vec<String> = hosts.iter().map(port).collect();
    let _controller = start(&room);
    let mut switch = Switch::start(&room, &ports, options);
    for from in &hosts {
        for to in hosts.iter().filter(|to| to.address != from.address) {
            meet(from, to);
        }
    }
    switch.interrupt();
}

/// A running `urtica switch`; stopped on drop.
pub struct Switch {
    daemon: Daemon,
    _folder: TempDir,
}

impl Switch {
    /// Starts the switch, and waits for the controller that its options name.
    pub fn start(room: &Namespace, ports: &[String], options: &[&str]) -> Self {
        let ready = match options.contains(&"--controller") {
            true => "connected",
            false => "switching",
        };
        Self::start_until(room, ports, options, ready)
    }

    /// Starts the switch, and waits until its log contains `ready`.
    pub fn start_until(room: &Namespace, ports: &[String], options: &[&str], ready: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let mut command = room.command(env!("CARGO_BIN_EXE_urtica"));
        command.arg("switch").args(ports).args(options);
        let daemon = Daemon::start(&mut command, &folder.path().join("switch.out"));
        let mut switch = Self {
            daemon,
            _folder: folder,
        };
        eventually(&format!("the switch logs: {ready}"), DEADLINE, || {
            assert!(switch.daemon.is_running(), "the switch ended at once");
            switch.daemon.log().contains(ready)
        });
        switch
    }

    /// Returns its log.
    pub fn log(&self) -> String {
        self.daemon.log()
    }

    /// Ends it by Ctrl-C, like an operator.
    /// # Panics
    /// If it does not end in time or does not end with status 0.
    pub fn interrupt(&mut self) {
        let status = self
            .daemon
            .stop(Signal::INT)
            .expect("the switch ends after SIGINT");
        assert!(
            status.success(),
            "the switch ended with {status} after SIGINT\n{}",
            self.daemon.log()
        );
    }
}
