//! A network in one process under a controller of others, over TCP.

use crate::controller::{Controller, TARGET};
use crate::namespace::Namespace;
use crate::process::run;
use crate::require;

#[test]
fn net_under_ovs_testcontroller() {
    hosts_reach_each_other(Controller::ovs_testcontroller);
}

#[test]
fn net_under_l2() {
    hosts_reach_each_other(Controller::urtica_l2);
}

fn hosts_reach_each_other(start: fn(&Namespace) -> Controller) {
    if !require::root_and(&["ip", "ss", "ovs-testcontroller"]) {
        return;
    }
    let room = Namespace::new();
    let _controller = start(&room);
    let mut net = room.command(env!("CARGO_BIN_EXE_urtica"));
    net.args([
        "net",
        "tree,depth=2,fanout=3",
        "--controller",
        TARGET,
        "--ping-all",
    ]);
    let told = run(&mut net);
    assert!(
        told.contains("Results: 0% dropped (72/72 received)"),
        "{told}"
    );
}
