//! tshark recognises recordings of `urtica capture` between Open vSwitch and our controller as OpenFlow, even under
//! TLS.

use std::path::Path;
use std::process::Command;

use crate::controller::{Controller, TLS_TARGET};
use crate::namespace::{Host, Namespace};
use crate::openvswitch::{self, OpenVswitch};
use crate::pki::{self, Pki};
use crate::process::{DEADLINE, Daemon, Signal, eventually, run};
use crate::require;

const URTICA: &str = env!("CARGO_BIN_EXE_urtica");
const BRIDGE: &str = "s1";

/// The port that the capture listens on.
const PORT: u16 = 6654;

/// The messages in every session, by tshark's numbers of OpenFlow 1.3: hellos, features, packet-ins, flow mods.
const TYPES: [&str; 5] = ["0", "5", "6", "10", "14"];

fn can_run() -> bool {
    require::root_and(&[openvswitch::TOOLS, &[pki::TOOL, "ping", "ss", "tshark"]].concat())
}

/// Starts `urtica capture` in front of the controller.
fn start_capture(room: &Namespace, file: &Path, options: &[String]) -> Daemon {
    let mut command = room.command(URTICA);
    command.arg("capture").arg("-w").arg(file).args(options);
    let mut capture = Daemon::start(&mut command, &file.with_extension("log"));
    eventually("the capture listens", DEADLINE, || {
        assert!(capture.is_running(), "it ended: {}", capture.log());
        let listening = run(room.command("ss").args(["-H", "-l", "-t", "-n"]));
        listening.contains(&format!("127.0.0.1:{PORT}"))
    });
    capture
}

/// Returns tshark's description of each packet of the file, without a hint at the protocol.
fn dissected(file: &Path, options: &[&str]) -> String {
    let mut tshark = Command::new("tshark");
    tshark.arg("-n").arg("-r").arg(file).args(options);
    run(&mut tshark)
}

/// Checks that the file has no malformed, reordered or missing data, has correct checksums, and contains the
/// messages.
fn assert_dissected(file: &Path) {
    let checked = [
        "-o",
        "tcp.check_checksum:TRUE",
        "-o",
        "ip.check_checksum:TRUE",
    ];
    let faults = "_ws.malformed || tcp.analysis.flags || tcp.checksum.status == 0 || ip.checksum.status == 0";
    let faulty = dissected(file, &[&checked[..], &["-Y", faults]].concat());
    assert_eq!(faulty, "");
    let fields = [
        "-Y",
        "openflow_v4",
        "-T",
        "fields",
        "-e",
        "openflow_v4.type",
    ];
    let types = dissected(file, &fields);
    let mut types = types.split([',', '\n']);
    let missing: Vec<_> = TYPES
        .iter()
        .filter(|&&expected| !types.clone().any(|found| found == expected))
        .collect();
    assert_eq!(
        missing,
        [&""; 0],
        "in {:?}",
        types.by_ref().collect::<Vec<_>>()
    );
}

/// Records while hosts ping, then compares a replay of the recording as a test.
fn record_a_ping(room: &Namespace, switch: &OpenVswitch, target: &str, capture: &mut Daemon) {
    let hosts: Vec<Host> = (1..=2).map(|number| Host::new(room, number)).collect();
    let ports: Vec<&str> = hosts.iter().map(|host| host.switch_port.as_str()).collect();
    switch.add_bridge(BRIDGE, "OpenFlow13", target, &ports);
    switch.wait_connected();
    hosts[0].ping(&hosts[1]);
    let status = capture.stop(Signal::INT).expect("it ends after SIGINT");
    assert!(status.success(), "{}", capture.log());
    assert!(capture.log().contains("; 0 skipped"), "{}", capture.log());
}

#[test]
fn a_ping_through_ovs_is_recorded_and_replayed() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("of.pcapng");
    let room = Namespace::new();
    let controller = Controller::urtica_l2(&room);
    let mut capture = start_capture(&room, &file, &[]);
    let switch = OpenVswitch::start(&room);
    record_a_ping(&room, &switch, "tcp:127.0.0.1:6654", &mut capture);
    drop(switch);
    assert_dissected(&file);
    let mut replay = room.command(URTICA);
    replay.arg("replay").arg(&file);
    let told = run(replay.args(["tcp:127.0.0.1:6653", "--as-test", "--timeout=300"]));
    assert!(told.contains("types and order as recorded"), "{told}");
    controller.interrupt();
}

#[test]
fn tls_is_recorded_in_plain() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("of.pcapng");
    let pki = Pki::new(&[
        ("ctl", "controller"),
        ("s1", "switch"),
        ("capctl", "controller"),
        ("capsw", "switch"),
    ]);
    let room = Namespace::new();
    let options = pki::options(&pki.controller("ctl"));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let controller = Controller::urtica_tls(&room, &options);
    let addresses = [
        "--listen=pssl:6654:127.0.0.1".to_owned(),
        format!("--controller={TLS_TARGET}"),
    ];
    // The capture is a controller to switches, and a switch to the controller; each side knows only the other's CA.
    let to_switches = pki::options(&pki.controller("capctl"));
    let to_controller = pki::options_with("--controller-", &pki.switch("capsw"));
    let options = [&addresses[..], &to_switches, &to_controller].concat();
    let mut capture = start_capture(&room, &file, &options);
    let switch = OpenVswitch::start(&room);
    let mut set_ssl = switch.command("ovs-vsctl");
    run(set_ssl
        .args(["--timeout=120", "set-ssl"])
        .args(pki.switch("s1")));
    record_a_ping(&room, &switch, "ssl:127.0.0.1:6654", &mut capture);
    drop(switch);
    assert_dissected(&file);
    let mut replay = room.command(URTICA);
    replay
        .arg("replay")
        .arg(&file)
        .args([TLS_TARGET, "--as-test", "--timeout=300"]);
    let told = run(replay.args(pki::options(&pki.switch("s1"))));
    assert!(told.contains("types and order as recorded"), "{told}");
    controller.interrupt();
}
