//! Hosts in namespaces reach each other through Open vSwitch and the learning switch.

use crate::controller::{Controller, TARGET};
use crate::namespace::{Host, Namespace};
use crate::openvswitch::{self, OpenVswitch};
use crate::process::{DEADLINE, eventually, run};
use crate::require;

const BRIDGE: &str = "s1";
const HOSTS: u8 = 3;

#[test]
fn ovs_l2_of10() {
    hosts_reach_each_other(
        "OpenFlow10",
        Controller::urtica_l2,
        Host::ping,
        Controller::interrupt,
    );
}

#[test]
fn ovs_l2_of13() {
    hosts_reach_each_other(
        "OpenFlow13",
        Controller::urtica_l2,
        Host::ping,
        Controller::interrupt,
    );
}

#[test]
fn ovs_l2_of10_in_the_kernel() {
    in_the_kernel("OpenFlow10");
}

#[test]
fn ovs_l2_of13_in_the_kernel() {
    in_the_kernel("OpenFlow13");
}

fn in_the_kernel(protocol: &str) {
    if require::kernel_half() {
        hosts_reach_each_other(
            protocol,
            Controller::urtica_l2_in_the_kernel,
            ping_and_begin_flows,
            Controller::interrupt_offloaded,
        );
    }
}

/// A switch gets its kernel half only after 16 packet-ins and a second, so a ping alone has too few packets for the kernel.
fn ping_and_begin_flows(from: &Host, to: &Host) {
    from.ping(to);
    let script = format!(
        "for port in $(seq 2001 2020); do echo > /dev/udp/{}/$port || true; done",
        to.address
    );
    run(from.command("bash").args(["-c", &script]));
}

#[test]
fn ovs_l2_of10_behind_rings() {
    behind_rings("OpenFlow10");
}

#[test]
fn ovs_l2_of13_behind_rings() {
    behind_rings("OpenFlow13");
}

fn behind_rings(protocol: &str) {
    if require::rings() {
        hosts_reach_each_other(
            protocol,
            Controller::urtica_l2_behind_rings,
            Host::ping,
            Controller::interrupt_behind_rings,
        );
    }
}

/// The control experiment under Open vSwitch's own controller.
#[test]
fn ovs_l2_under_ovs_testcontroller() {
    hosts_reach_each_other(
        "OpenFlow13",
        Controller::ovs_testcontroller,
        Host::reach,
        drop,
    );
}

fn hosts_reach_each_other(
    protocol: &str,
    start: fn(&Namespace) -> Controller,
    meet: fn(&Host, &Host),
    stop: fn(Controller),
) {
    if !require::root_and(&[openvswitch::TOOLS, &["ping", "ss", "ovs-testcontroller"]].concat()) {
        return;
    }
    let room = Namespace::new();
    let hosts: Vec<Host> = (1..=HOSTS).map(|number| Host::new(&room, number)).collect();
    let controller = start(&room);
    let switch = OpenVswitch::start(&room);
    let ports: Vec<&str> = hosts.iter().map(|host| host.switch_port.as_str()).collect();
    switch.add_bridge(BRIDGE, protocol, TARGET, &ports);
    switch.wait_connected();

    for from in &hosts {
        for to in hosts.iter().filter(|to| to.address != from.address) {
            meet(from, to);
        }
    }
    eventually(
        "a flow entry with idle_timeout and an output action has counted packets",
        DEADLINE,
        || {
            // Open vSwitch updates its counters about once a second. Until then the entry must not be idle
            // for its five seconds.
            meet(&hosts[0], &hosts[1]);
            switch
                .dump_flows(BRIDGE, protocol)
                .lines()
                .any(is_busy_learned_entry)
        },
    );
    drop(switch);
    stop(controller);
}

fn is_busy_learned_entry(line: &str) -> bool {
    let counted = line.contains("n_packets=") && !line.contains("n_packets=0,");
    counted && line.contains("idle_timeout=") && line.contains("actions=output:")
}
