//! Hosts of different subnets, in namespaces, reach each other through Open vSwitch and the router.

use crate::controller::{Controller, TARGET};
use crate::namespace::{Host, Namespace};
use crate::openvswitch::{self, OpenVswitch};
use crate::process::run;
use crate::require;
use std::io::Write;
use tempfile::NamedTempFile;

const BRIDGE: &str = "s1";

/// The number of subnets, each with a host of its number.
const SUBNETS: u8 = 3;

/// OpenFlow 1.0 cannot decrement TTLs, so the controller forwards each packet.
#[test]
fn ovs_l3_of10_in_the_kernel() {
    if require::kernel_half() {
        subnets_reach_each_other(
            "OpenFlow10",
            "l3",
            "kernel",
            Controller::interrupt_offloaded,
        );
    }
}

/// In 1.3 the switch forwards all packets of a flow after the first.
#[test]
fn ovs_l3_of13_in_the_kernel() {
    if require::kernel_half() {
        subnets_reach_each_other("OpenFlow13", "l3,routing", "kernel", Controller::interrupt);
    }
}

#[test]
fn ovs_l3_of10() {
    subnets_reach_each_other("OpenFlow10", "l3", "none", Controller::interrupt);
}

fn subnets_reach_each_other(protocol: &str, programs: &str, offload: &str, stop: fn(Controller)) {
    if !require::root_and(&[openvswitch::TOOLS, &["ip", "ping", "ss"]].concat()) {
        return;
    }
    let room = Namespace::new();
    let hosts: Vec<Host> = (1..=SUBNETS).map(|subnet| host(&room, subnet)).collect();
    let file = config();
    let path = file.path().to_str().expect("a path of plain letters");
    let options = ["--l3-config", path, "--offload", offload];
    let controller = Controller::urtica_with(&room, programs, &options);
    let switch = OpenVswitch::start(&room);
    let ports: Vec<&str> = hosts.iter().map(|host| host.switch_port.as_str()).collect();
    switch.add_bridge(BRIDGE, protocol, TARGET, &ports);
    switch.wait_connected();
    for from in &hosts {
        for to in hosts.iter().filter(|to| to.address != from.address) {
            // New ports are not flooded to at first.
            from.reach(to);
            from.ping(to);
        }
    }
    drop(switch);
    stop(controller);
}

/// Creates a host in a subnet, with the router as its default gateway.
fn host(room: &Namespace, subnet: u8) -> Host {
    let mut host = Host::new(room, subnet);
    host.address = format!("10.0.{subnet}.1");
    for arguments in [
        "address flush dev eth0".to_owned(),
        format!("address add {}/24 dev eth0", host.address),
        format!("route add default via 10.0.{subnet}.254"),
    ] {
        run(host.command("ip").args(arguments.split(' ')));
    }
    host
}

fn config() -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a temporary file can be made");
    for subnet in 1..=SUBNETS {
        let interface = format!(
            "[[interface]]\naddress = \"10.0.{subnet}.254/24\"\nmac = \"02:00:00:00:0{subnet}:fe\"\n"
        );
        file.write_all(interface.as_bytes())
            .expect("it can be written");
    }
    file
}
