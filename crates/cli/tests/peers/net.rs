//! Tests a network in one process under another project's controller, over TCP.

use crate::controller::{Controller, TARGET};
use crate::namespace::Namespace;
use crate::process::{DEADLINE, eventually};
use crate::require;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

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
    net.args(["net", "tree,depth=2,fanout=3", "--controller", TARGET]);
    ping_until_complete(&mut net, "Results: 0% dropped (72/72 received)");
}

/// Makes all hosts ping each other repeatedly until the output contains this: a busy machine delays pings, and other
/// controllers may lose the first packets.
fn ping_until_complete(net: &mut Command, expected: &str) {
    let mut child = net
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut commands = child.stdin.take().expect("it has standard input");
    let mut told = BufReader::new(child.stdout.take().expect("it has standard output")).lines();
    eventually(expected, DEADLINE, || {
        writeln!(commands, "pingall").expect("it takes commands");
        let result = told.find(|line| line.as_ref().is_ok_and(|line| line.contains("Results: ")));
        result
            .expect("it tells results")
            .expect("text")
            .contains(expected)
    });
    drop(commands);
    child.wait().expect("it ends with its input");
}
