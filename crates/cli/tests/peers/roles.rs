//! Tests of several controllers at one Open vSwitch: each packet is answered once, and lost and gained roles are
//! logged.

use crate::controller::{Controller, PYTHON, TARGET, TLS_TARGET};
use crate::namespace::{Host, Namespace};
use crate::openvswitch::{self, OpenVswitch};
use crate::pki::{self, Pki};
use crate::process::{DEADLINE, Signal, eventually, run};
use crate::require;

const BRIDGE: &str = "s1";
const SECOND_PORT: u16 = 6654;
const SECOND_TARGET: &str = "tcp:127.0.0.1:6654";
const TOOLS: &[&str] = &["ping", "ss"];

fn can_run(more: &[&str]) -> bool {
    require::root_and(&[openvswitch::TOOLS, TOOLS, more].concat())
}

/// Creates a namespace with two hosts.
fn room_with_hosts() -> (Namespace, Vec<Host>) {
    let room = Namespace::new();
    let hosts = (1..=2).map(|number| Host::new(&room, number)).collect();
    (room, hosts)
}

/// Creates a bridge between the hosts, without a controller at first.
fn bridge<'room>(room: &'room Namespace, hosts: &[Host], protocol: &str) -> OpenVswitch<'room> {
    let switch = OpenVswitch::start(room);
    let ports: Vec<&str> = hosts.iter().map(|host| host.switch_port.as_str()).collect();
    switch.add_bridge(BRIDGE, protocol, TARGET, &ports);
    switch
}

fn set_controllers(switch: &OpenVswitch, targets: &[&str]) {
    let mut command = switch.command("ovs-vsctl");
    command.args(["--timeout=120", "set-controller", BRIDGE]);
    run(command.args(targets));
}

/// Returns the roles that the bridge has given, in order: `master`, `other` (which is equal) or `slave`.
fn roles(switch: &OpenVswitch) -> Vec<String> {
    let columns = ["--bare", "--columns=role", "list", "controller"];
    let roles = run(switch.command("ovs-vsctl").args(columns));
    let mut roles: Vec<String> = roles.split_whitespace().map(str::to_owned).collect();
    roles.sort();
    roles
}

fn wait_for_roles(switch: &OpenVswitch, expected: &[&str]) {
    eventually(&format!("the roles {expected:?}"), DEADLINE, || {
        roles(switch) == expected
    });
}

/// Returns the output of five pings.
fn ping(hosts: &[Host]) -> String {
    let arguments = ["-n", "-c", "5", "-i", "0.2", "-W", "5", &hosts[1].address];
    let output = hosts[0].command("ping").args(arguments).output();
    let output = output.expect("ping starts");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn expect_each_answered_once(hosts: &[Host]) {
    let said = ping(hosts);
    assert!(said.contains(" 0% packet loss"), "{said}");
    assert!(!said.contains("duplicates"), "{said}");
}

#[test]
fn of_two_controllers_of_ours_one_answers_of10() {
    one_of_two_answers("OpenFlow10", "hub", &[]);
}

#[test]
fn of_two_controllers_of_ours_one_answers_of13() {
    one_of_two_answers("OpenFlow13", "hub", &[]);
}

#[test]
fn of_two_controllers_of_ours_one_answers_in_the_kernel() {
    if require::kernel_half() {
        for protocol in ["OpenFlow10", "OpenFlow13"] {
            one_of_two_answers(protocol, "l2", &["--offload", "kernel"]);
        }
    }
}

#[test]
fn of_two_controllers_of_ours_one_answers_behind_rings() {
    if require::rings() {
        one_of_two_answers("OpenFlow13", "hub", &["--offload", "ring"]);
    }
}

/// `hub` answers each packet, so that each ping needs the controllers.
fn one_of_two_answers(protocol: &str, app: &str, options: &[&str]) {
    if !can_run(&[]) {
        return;
    }
    let (room, hosts) = room_with_hosts();
    let with_role = |role| [&["--role", role], options].concat();
    let primary = Controller::urtica_with(&room, app, &with_role("primary"));
    let options = with_role("secondary");
    let secondary = Controller::urtica_at(&room, SECOND_PORT, app, &options);
    let switch = bridge(&room, &hosts, protocol);
    set_controllers(&switch, &[TARGET, SECOND_TARGET]);
    wait_for_roles(&switch, &["master", "slave"]);
    expect_each_answered_once(&hosts);
    drop(switch);
    primary.interrupt();
    secondary.interrupt();
}

/// The control experiment, which shows why roles are needed.
#[test]
fn two_equals_answer_each_packet_twice() {
    if !can_run(&[]) {
        return;
    }
    let (room, hosts) = room_with_hosts();
    let first = Controller::urtica_with(&room, "hub", &[]);
    let second = Controller::urtica_at(&room, SECOND_PORT, "hub", &[]);
    let switch = bridge(&room, &hosts, "OpenFlow13");
    set_controllers(&switch, &[TARGET, SECOND_TARGET]);
    wait_for_roles(&switch, &["other", "other"]);
    eventually("pings are answered twice", DEADLINE, || {
        ping(&hosts).contains("duplicates")
    });
    drop(switch);
    first.interrupt();
    second.interrupt();
}

#[test]
fn a_later_primary_takes_over_and_a_reconnection_takes_back() {
    if !can_run(&[]) {
        return;
    }
    let (room, hosts) = room_with_hosts();
    let first = Controller::urtica_with(&room, "hub", &["--role", "primary"]);
    let switch = bridge(&room, &hosts, "OpenFlow13");
    wait_for_roles(&switch, &["master"]);
    expect_each_answered_once(&hosts);
    let second = Controller::urtica_at(&room, SECOND_PORT, "hub", &["--role", "primary"]);
    set_controllers(&switch, &[TARGET, SECOND_TARGET]);
    wait_for_roles(&switch, &["master", "slave"]);
    eventually("one of them says that it lost its role", DEADLINE, || {
        let says = |controller: &Controller| controller.log().contains("has taken over the switch");
        says(&first) || says(&second)
    });
    expect_each_answered_once(&hosts);
    // Leaves only the first controller, which reconnects.
    set_controllers(&switch, &[SECOND_TARGET]);
    set_controllers(&switch, &[TARGET]);
    wait_for_roles(&switch, &["master"]);
    expect_each_answered_once(&hosts);
    drop(switch);
    first.interrupt();
    second.interrupt();
}

#[test]
fn a_secondary_with_os_ken_is_silent() {
    if !can_run(&[PYTHON]) {
        return;
    }
    let (room, hosts) = room_with_hosts();
    let os_ken = Controller::os_ken(&room);
    let ours = Controller::urtica_at(&room, SECOND_PORT, "hub", &["--role", "secondary"]);
    let switch = bridge(&room, &hosts, "OpenFlow13");
    set_controllers(&switch, &[TARGET, SECOND_TARGET]);
    wait_for_roles(&switch, &["other", "slave"]);
    hosts[0].reach(&hosts[1]);
    expect_each_answered_once(&hosts);
    drop(switch);
    ours.interrupt();
    drop(os_ken);
}

#[test]
fn os_ken_takes_a_switch_over_from_ours() {
    if !can_run(&[PYTHON]) {
        return;
    }
    let (room, hosts) = room_with_hosts();
    let ours = Controller::urtica_with(&room, "hub", &["--role", "primary"]);
    let switch = bridge(&room, &hosts, "OpenFlow13");
    wait_for_roles(&switch, &["master"]);
    let os_ken = Controller::os_ken_master_at(&room, SECOND_PORT);
    let add = [
        "--",
        "--id=@c",
        "create",
        "controller",
        "target=\"tcp:127.0.0.1:6654\"",
        "connection_mode=out-of-band",
        "--",
        "add",
        "bridge",
        BRIDGE,
        "controller",
        "@c",
    ];
    run(switch.command("ovs-vsctl").arg("--timeout=120").args(add));
    wait_for_roles(&switch, &["master", "slave"]);
    eventually("ours says that it lost its role", DEADLINE, || {
        ours.log().contains("has taken over the switch")
    });
    hosts[0].reach(&hosts[1]);
    expect_each_answered_once(&hosts);
    drop(switch);
    ours.interrupt();
    drop(os_ken);
}

#[test]
fn a_held_connection_keeps_its_role() {
    for protocol in ["OpenFlow10", "OpenFlow13"] {
        keeps_its_role(protocol);
    }
}

fn keeps_its_role(protocol: &str) {
    if !can_run(&[]) {
        return;
    }
    let (room, hosts) = room_with_hosts();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let hold = format!("--hold={}", folder.path().join("hold.sock").display());
    let start = || Controller::urtica_with(&room, "hub", &["--role", "primary", &hold]);
    let mut controller = start();
    let secondary = Controller::urtica_at(&room, SECOND_PORT, "hub", &["--role", "secondary"]);
    let switch = bridge(&room, &hosts, protocol);
    set_controllers(&switch, &[TARGET, SECOND_TARGET]);
    wait_for_roles(&switch, &["master", "slave"]);
    expect_each_answered_once(&hosts);
    for signal in [Signal::KILL, Signal::TERM] {
        controller.end_by(signal);
        controller = start();
        assert_eq!(roles(&switch), ["master", "slave"]);
        expect_each_answered_once(&hosts);
    }
    drop(switch);
    controller.interrupt();
    secondary.interrupt();
}

#[test]
fn roles_work_over_tls() {
    if !can_run(&[pki::TOOL]) {
        return;
    }
    let pki = Pki::new(&[("ctl", "controller"), ("s1", "switch")]);
    let mut options = pki::options(&pki.controller("ctl"));
    options.extend(["--role".to_owned(), "primary".to_owned()]);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let (room, hosts) = room_with_hosts();
    let controller = Controller::urtica_tls(&room, &options);
    let switch = bridge(&room, &hosts, "OpenFlow13");
    let mut set_ssl = switch.command("ovs-vsctl");
    run(set_ssl
        .args(["--timeout=120", "set-ssl"])
        .args(pki.switch("s1")));
    set_controllers(&switch, &[TLS_TARGET]);
    wait_for_roles(&switch, &["master"]);
    hosts[0].ping(&hosts[1]);
    drop(switch);
    controller.interrupt();
}
