//! Tests of TLS between us and Open vSwitch in both directions, by the commands of docs/operating.md.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::controller::{Controller, TLS_TARGET};
use crate::namespace::{Host, Namespace};
use crate::openvswitch::{self, OpenVswitch};
use crate::pki::{self, Pki};
use crate::process::{DEADLINE, eventually, run};
use crate::require;
use crate::switch::Switch;

const URTICA: &str = env!("CARGO_BIN_EXE_urtica");
const BRIDGE: &str = "s1";

fn can_run(more: &[&str]) -> bool {
    require::root_and(&[openvswitch::TOOLS, &[pki::TOOL, "ping", "ss"], more].concat())
}

fn strings(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}

pub fn set_ssl(switch: &OpenVswitch, pki: &Pki, name: &str) {
    let mut command = switch.command("ovs-vsctl");
    run(command
        .args(["--timeout=120", "set-ssl"])
        .args(pki.switch(name)));
}

#[test]
fn ovs_under_our_controller_over_tls() {
    if !can_run(&[]) {
        return;
    }
    let pki = Pki::new(&[("ctl", "controller"), ("s1", "switch")]);
    let files = pki::options(&pki.controller("ctl"));
    let room = Namespace::new();
    let hosts: Vec<Host> = (1..=2).map(|number| Host::new(&room, number)).collect();
    let controller = Controller::urtica_tls(&room, &strings(&files));
    let switch = OpenVswitch::start(&room);
    set_ssl(&switch, &pki, "s1");
    let ports: Vec<&str> = hosts.iter().map(|host| host.switch_port.as_str()).collect();
    switch.add_bridge(BRIDGE, "OpenFlow13", TLS_TARGET, &ports);
    switch.wait_connected();
    hosts[0].ping(&hosts[1]);
    // We also connect to the switch, like ovs-ofctl.
    let both = ["set-controller", BRIDGE, TLS_TARGET, "pssl:6654:127.0.0.1"];
    run(switch.command("ovs-vsctl").arg("--timeout=120").args(both));
    let mut shown = String::new();
    eventually("the bridge listens", DEADLINE, || {
        let mut flows = room.command(URTICA);
        flows
            .args(["flows", "dump", "ssl:127.0.0.1:6654"])
            .args(&files);
        let output = flows.output().expect("urtica starts");
        shown = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success()
    });
    assert!(shown.contains("actions="), "{shown}");
    drop(switch);
    controller.interrupt();
}

#[test]
fn our_switch_under_ovs_programs_over_tls() {
    if !can_run(&["ovs-testcontroller"]) {
        return;
    }
    let pki = Pki::new(&[("ctl", "controller"), ("s1", "switch")]);
    let controller_files = pki::options(&pki.controller("ctl"));
    let room = Namespace::new();
    let hosts: Vec<Host> = (1..=2).map(|number| Host::new(&room, number)).collect();
    let _controller = Controller::ovs_testcontroller_tls(&room, &strings(&controller_files));
    let ports: Vec<String> = hosts
        .iter()
        .map(|host| format!("afpacket:{}", host.switch_port))
        .collect();
    let switch_files = pki::options(&pki.switch("s1"));
    let addresses = [
        "--controller",
        TLS_TARGET,
        "--controller",
        "pssl:6654:127.0.0.1",
    ];
    let options = [&addresses[..], &strings(&switch_files)].concat();
    let mut switch = Switch::start(&room, &ports, &options);
    hosts[0].reach(&hosts[1]);
    let mut command = room.command("ovs-ofctl");
    command.args(["-O", "OpenFlow13", "show", "ssl:127.0.0.1:6654"]);
    let shown = run(command.args(&controller_files));
    assert!(shown.contains(&hosts[0].switch_port), "{shown}");
    switch.interrupt();
}

#[test]
fn our_switch_under_our_controller_over_tls_and_our_bench() {
    if !can_run(&[]) {
        return;
    }
    let pki = Pki::new(&[("ctl", "controller"), ("s1", "switch")]);
    let ctl = pki::options(&pki.controller("ctl"));
    let s1 = pki::options(&pki.switch("s1"));
    let room = Namespace::new();
    let hosts: Vec<Host> = (1..=2).map(|number| Host::new(&room, number)).collect();
    let controller = Controller::urtica_tls(&room, &strings(&ctl));
    let ports: Vec<String> = hosts
        .iter()
        .map(|host| format!("afpacket:{}", host.switch_port))
        .collect();
    let options = [
        &["--controller", TLS_TARGET, "--peer-name=ctl"][..],
        &strings(&s1),
    ]
    .concat();
    let mut switch = Switch::start(&room, &ports, &options);
    hosts[0].ping(&hosts[1]);
    switch.interrupt();
    let load = "-s 4 -l 3 -m 100 -w 1 -t --verify --openflow 1.3";
    let mut bench = room.command(URTICA);
    bench
        .args(["bench", "-c", TLS_TARGET])
        .args(load.split(' '));
    let said = run(bench.args(&s1));
    assert!(said.contains("RESULT: 4 switches"), "{said}");
    controller.interrupt();
}

/// Checks that our controller logs `words` about a bridge with this set-up.
fn complaint(
    pki: &Pki,
    more: &[&str],
    set_up: impl FnOnce(&OpenVswitch),
    target: &str,
    words: &str,
) {
    let files = pki::options(&pki.controller("ctl"));
    let room = Namespace::new();
    let controller = Controller::urtica_tls(&room, &[&strings(&files)[..], more].concat());
    let switch = OpenVswitch::start(&room);
    set_up(&switch);
    switch.add_bridge(BRIDGE, "OpenFlow13", target, &[]);
    eventually(&format!("the controller logs: {words}"), DEADLINE, || {
        controller.log().contains(words)
    });
    assert!(!controller.log().contains("BEGIN"), "{}", controller.log());
}

#[test]
fn invalid_set_ups_of_ovs_are_logged_with_the_cause() {
    if !can_run(&[]) {
        return;
    }
    let pki = Pki::new(&[("ctl", "controller"), ("s1", "switch")]);
    let other = Pki::new(&[("s1", "switch")]);
    let ids = pki.write("ids", "00000000000000ff s2\n");
    complaint(
        &pki,
        &[],
        |_| {},
        "tcp:127.0.0.1:6653",
        "the peer does not speak TLS; expected ssl:",
    );
    let strange = |switch: &OpenVswitch| {
        let [key, certificate, _] = other.switch("s1");
        let [.., authority] = pki.switch("s1");
        let mut command = switch.command("ovs-vsctl");
        run(command
            .args(["--timeout=120", "set-ssl"])
            .args([key, certificate, authority]));
    };
    complaint(
        &pki,
        &[],
        strange,
        TLS_TARGET,
        "whose certificate is not in",
    );
    let right = |switch: &OpenVswitch| set_ssl(switch, &pki, "s1");
    complaint(
        &pki,
        &["--datapath-ids", &ids],
        right,
        TLS_TARGET,
        "is refused to the certificate 's1 id:",
    );
}

#[test]
fn files_that_are_missing_are_named() {
    let said = |arguments: &[&str]| {
        let output = Command::new(URTICA)
            .args(arguments)
            .output()
            .expect("urtica starts");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for arguments in [
        &["run", "l2", "--listen", "pssl:0:127.0.0.1"][..],
        &[
            "switch",
            "--port",
            "1=pcap:,/dev/null",
            "--controller",
            "ssl:127.0.0.1",
        ],
        &["flows", "dump", "ssl:127.0.0.1"],
        &["trace", "in_port=1", "--switch", "ssl:127.0.0.1"],
        &["bench", "-c", "ssl:127.0.0.1"],
    ] {
        let sentence = said(arguments);
        assert!(
            sentence.contains("--private-key, --certificate and --ca-cert"),
            "{arguments:?}: {sentence}"
        );
        let none = [
            "--private-key=/none/k",
            "--certificate=/none/c",
            "--ca-cert=/none/a",
        ];
        let sentence = said(&[arguments, &none].concat());
        assert!(
            sentence.contains("/none/c cannot be read"),
            "{arguments:?}: {sentence}"
        );
    }
}

#[test]
fn open_vswitch_with_a_revoked_certificate_is_refused() {
    if !can_run(&["openssl"]) {
        return;
    }
    let pki = Pki::new(&[("ctl", "controller"), ("s1", "switch"), ("s2", "switch")]);
    let list = format!("--crl={}", pki.revoke_switch("s1").display());
    let files = pki::options(&pki.controller("ctl"));
    let room = Namespace::new();
    let hosts: Vec<Host> = (1..=2).map(|number| Host::new(&room, number)).collect();
    let controller = Controller::urtica_tls(&room, &[&strings(&files)[..], &[&list]].concat());
    let switch = OpenVswitch::start(&room);
    set_ssl(&switch, &pki, "s1");
    let ports: Vec<&str> = hosts.iter().map(|host| host.switch_port.as_str()).collect();
    switch.add_bridge(BRIDGE, "OpenFlow13", TLS_TARGET, &ports);
    eventually("it is refused", DEADLINE, || {
        let log = controller.log();
        log.contains("was revoked") && log.contains("crl.pem")
    });
    assert!(!controller.log().contains("switch joined"));
    set_ssl(&switch, &pki, "s2");
    switch.wait_connected();
    hosts[0].ping(&hosts[1]);
    drop(switch);
    controller.interrupt();
}

#[test]
fn our_switch_accepts_the_ca_of_open_vswitchs_controller() {
    if !can_run(&["ovs-testcontroller"]) {
        return;
    }
    let pki = Pki::new(&[("ctl", "controller"), ("s1", "switch")]);
    let [key, certificate, authority] = pki.switch("s1");
    let shows = format!("--peer-ca-cert={}", authority.display());
    let files = pki::options(&pki.controller("ctl"));
    let room = Namespace::new();
    let hosts: Vec<Host> = (1..=2).map(|number| Host::new(&room, number)).collect();
    let _controller =
        Controller::ovs_testcontroller_tls(&room, &[&strings(&files)[..], &[&shows]].concat());
    let ports: Vec<String> = hosts
        .iter()
        .map(|host| format!("afpacket:{}", host.switch_port))
        .collect();
    let taken = pki.path("taken.pem");
    let options = [
        format!("--controller={TLS_TARGET}"),
        format!("--private-key={}", key.display()),
        format!("--certificate={}", certificate.display()),
        format!("--bootstrap-ca-cert={}", taken.display()),
    ];
    let mut switch = Switch::start(&room, &ports, &strings(&options));
    hosts[0].reach(&hosts[1]);
    let log = switch.log();
    let told = log
        .lines()
        .find(|line| line.contains("trusted on first use"));
    assert!(told.is_some_and(|line| line.contains("WARN")), "{log}");
    let text = std::fs::read_to_string(&taken).expect("it was saved");
    let whole = std::fs::read_to_string(&authority).expect("it is there");
    assert!(whole.ends_with(&text), "{text}");
    let mode = std::fs::metadata(&taken)
        .expect("it is there")
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    switch.interrupt();
}
