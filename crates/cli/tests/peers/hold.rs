//! Open vSwitch stays connected while its controller is killed and restarted.

use crate::controller::{Controller, TARGET};
use crate::namespace::{Host, Namespace};
use crate::openvswitch::{self, OpenVswitch};
use crate::process::{DEADLINE, Signal, eventually, run};
use crate::require;

const BRIDGE: &str = "s1";

#[test]
fn ovs_of10_stays_connected() {
    // `hub` answers each packet, so that each ping needs the controller.
    stays_connected("OpenFlow10", &["hub"]);
}

#[test]
fn ovs_of13_stays_connected() {
    stays_connected("OpenFlow13", &["hub"]);
}

#[test]
fn ovs_of10_stays_connected_to_a_kernel_half() {
    stays_connected("OpenFlow10", &["l2", "--offload", "kernel"]);
}

#[test]
fn ovs_of13_stays_connected_to_a_kernel_half() {
    stays_connected("OpenFlow13", &["l2", "--offload", "kernel"]);
}

fn stays_connected(protocol: &str, program: &[&str]) {
    if !require::root_and(&[openvswitch::TOOLS, &["ping", "ss"]].concat()) {
        return;
    }
    let room = Namespace::new();
    let hosts = [1, 2].map(|number| Host::new(&room, number));
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let hold = format!("--hold={}", folder.path().join("hold.sock").display());
    let options = [&program[1..], &[&hold]].concat();
    let start = || {
        let controller = Controller::urtica_with(&room, program[0], &options);
        // Before the controller runs, the holder has the listening socket open, and a kernel half answers.
        eventually("the controller has taken over", DEADLINE, || {
            controller.log().contains("listening address=")
        });
        controller
    };
    let mut controller = start();
    let switch = OpenVswitch::start(&room);
    let ports: Vec<&str> = hosts.iter().map(|host| host.switch_port.as_str()).collect();
    switch.add_bridge(BRIDGE, protocol, TARGET, &ports);
    switch.wait_connected();
    hosts[0].ping(&hosts[1]);
    let local_port = controller_port(&room);
    assert_eq!(local_port.len(), 1);
    for signal in [Signal::KILL, Signal::TERM, Signal::KILL] {
        controller.end_by(signal);
        assert!(controller_port(&room) == local_port, "the connection stays");
        controller = start();
        hosts[0].ping(&hosts[1]);
        let connected = ["--bare", "--columns=is_connected", "list", "controller"];
        let connected = run(switch.command("ovs-vsctl").args(connected));
        assert_eq!(connected.trim(), "true");
        assert!(
            controller_port(&room) == local_port,
            "it has not connected anew"
        );
    }
    controller.interrupt();
    eventually("the connection has ended", DEADLINE, || {
        controller_port(&room) != local_port
    });
    drop(switch);
}

/// Returns the client ports of established connections to the controller, which identify the connections.
fn controller_port(room: &Namespace) -> Vec<String> {
    let sockets = [
        "-H",
        "-t",
        "-n",
        "state",
        "established",
        "dport",
        "=",
        ":6653",
    ];
    let sockets = run(room.command("ss").args(sockets));
    let ports = sockets
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2));
    ports.map(str::to_owned).collect()
}
