//! Mininet's `pingall`, as its users type it, on a tree of 13 switches and 27 hosts, and on a torus with many loops. It is
//! repeated until no ping is dropped, since Mininet waits for no controller, and a busy machine delays pings.

use crate::controller::Controller;
use crate::namespace::Namespace;
use crate::openvswitch::{self, OpenVswitch};
use crate::pki::{self, Pki};
use crate::process::run;
use crate::require;
use crate::tls::set_ssl;

/// Only a failing test waits for this.
const DEADLINE_SECONDS: &str = "900";

/// The test that `mn` runs.
const REACH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/mininet_reach.py");

#[test]
fn mininet_tree_pingall() {
    pingall(
        "l2",
        "tree,depth=3,fanout=3",
        "0% dropped (702/702 received)",
    );
}

#[test]
fn mininet_torus_pingall() {
    pingall(
        "discovery,hosts,routing",
        "torus,3,3",
        "0% dropped (72/72 received)",
    );
}

/// A tree, with services in the kernel.
#[test]
fn mininet_pingall_with_services_in_the_kernel() {
    if !has_tools() || !require::kernel_half() {
        return;
    }
    // A tree has only one path between hosts, so the kernel forwards first packets.
    for topology in ["torus,3,3", "tree,depth=2,fanout=3"] {
        let room = Namespace::new();
        let controller =
            Controller::urtica_with(&room, "discovery,hosts,routing", &["--offload", "driven"]);
        let switch = OpenVswitch::start(&room);
        ping_all(&switch, "tcp", topology, "0% dropped (72/72 received)");
        controller.interrupt_offloaded();
    }
}

/// A tree whose bridges connect by TLS.
#[test]
fn mininet_pingall_over_tls() {
    if !has_tools() || !require::root_and(&[pki::TOOL]) {
        return;
    }
    let pki = Pki::new(&[("ctl", "controller"), ("s1", "switch")]);
    let files = pki::options(&pki.controller("ctl"));
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let room = Namespace::new();
    let controller = Controller::urtica_tls(&room, &files);
    let switch = OpenVswitch::start(&room);
    set_ssl(&switch, &pki, "s1");
    ping_all(
        &switch,
        "ssl",
        "tree,depth=2,fanout=3",
        "0% dropped (72/72 received)",
    );
    controller.interrupt();
}

/// Makes all hosts of a topology ping each other, with these apps.
fn pingall(apps: &str, topology: &str, expected: &str) {
    if !has_tools() {
        return;
    }
    let room = Namespace::new();
    let controller = Controller::urtica(&room, apps);
    ping_all(&OpenVswitch::start(&room), "tcp", topology, expected);
    controller.interrupt();
}

fn has_tools() -> bool {
    let others = ["mn", "ping", "ss", "unshare", "timeout"];
    require::root_and(&[openvswitch::TOOLS, &others].concat())
}

fn ping_all(switch: &OpenVswitch, protocol: &str, topology: &str, expected: &str) {
    // Mininet prints its results on standard error.
    let output = run(switch.command("sh").args([
        "-c",
        &format!("{} 2>&1", mininet_command(protocol, topology)),
    ]));
    assert!(
        output.contains(&format!("*** Results: {expected}")),
        "{output}"
    );
}

/// Runs in its own process namespace, because a failing Mininet kills other controllers and pings by their names.
fn mininet_command(protocol: &str, topology: &str) -> String {
    let mn = format!(
        "mn --controller=remote,ip=127.0.0.1,port=6653,protocol={protocol} \
         --switch=ovs,datapath=user,protocols=OpenFlow13 \
         --topo={topology} --mac --custom={REACH} --test=reach"
    );
    format!("timeout {DEADLINE_SECONDS} unshare --pid --fork --kill-child --mount-proc {mn}")
}
