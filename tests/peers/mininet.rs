//! Mininet's `pingall` on a tree of 13 switches and 27 hosts, as its users type it.

use crate::controller::Controller;
use crate::namespace::Namespace;
use crate::openvswitch::{self, OpenVswitch};
use crate::process::run;
use crate::require;

const DEADLINE_SECONDS: &str = "180";

#[test]
fn mininet_tree_pingall() {
    if !require::root_and(
        &[
            openvswitch::TOOLS,
            &["mn", "ping", "ss", "unshare", "timeout"],
        ]
        .concat(),
    ) {
        return;
    }
    let room = Namespace::new();
    let controller = Controller::urtica_l2(&room);
    let switch = OpenVswitch::start(&room);
    // Mininet prints its results on standard error.
    let output = run(switch
        .command("sh")
        .args(["-c", &format!("{} 2>&1", mininet_command())]));
    assert!(
        output.contains("*** Results: 0% dropped (702/702 received)"),
        "{output}"
    );
    drop(switch);
    controller.interrupt();
}

/// In a process namespace of its own, because a Mininet that fails kills other controllers and
/// pings by their names.
fn mininet_command() -> String {
    let mn = "mn --controller=remote,ip=127.0.0.1,port=6653 \
              --switch=ovs,datapath=user,protocols=OpenFlow13 \
              --topo=tree,depth=3,fanout=3 --mac --test=pingall";
    format!("timeout {DEADLINE_SECONDS} unshare --pid --fork --kill-child --mount-proc {mn}")
}
