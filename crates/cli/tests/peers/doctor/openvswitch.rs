//! Tests of mistakes in Open vSwitch's settings.

use super::{Report, examine, find_and_fix};
use crate::controller::{Controller, LISTEN, TARGET};
use crate::namespace::{Host, Namespace};
use crate::openvswitch::{OpenVswitch, TOOLS};
use crate::process::{DEADLINE, eventually, run};
use crate::require;

const OPTIONS: [&str; 3] = ["openvswitch", "--listen", LISTEN];

fn can_run() -> bool {
    require::root_and(&[TOOLS, &["ss", "ovs-appctl"]].concat())
}

/// Creates a bridge under our controller, valid except for the change by this ovs-vsctl command.
fn with_bridge(change: &[&str], look: impl FnOnce(&OpenVswitch)) {
    if !can_run() {
        return;
    }
    let room = Namespace::new();
    let _controller = Controller::urtica_l2(&room);
    let switch = OpenVswitch::start(&room);
    switch.add_bridge("s1", "OpenFlow13", TARGET, &[]);
    switch.wait_connected();
    if !change.is_empty() {
        run(switch
            .command("ovs-vsctl")
            .arg("--timeout=120")
            .args(change));
    }
    look(&switch);
}

/// Makes a mistake by this ovs-vsctl command, finds it, and fixes it.
fn mistake(change: &[&str], name: &str, severity: &str, words: &[&str]) {
    with_bridge(change, |switch| {
        let shell = || switch.command("sh");
        find_and_fix(&shell, &OPTIONS, name, severity, words);
        switch.wait_connected();
    });
}

fn examine_in(switch: &OpenVswitch) -> Report {
    examine(&|| switch.command("sh"), &OPTIONS)
}

#[test]
fn finds_an_unsupported_openflow_version() {
    let change = ["set", "bridge", "s1", "protocols=OpenFlow14"];
    mistake(
        &change,
        "bridge-protocols",
        "problem",
        &["protocols=OpenFlow14", "expected OpenFlow13"],
    );
}

#[test]
fn finds_a_bridge_that_forwards_itself() {
    let change = ["set-fail-mode", "s1", "standalone"];
    mistake(
        &change,
        "bridge-fail-mode",
        "warning",
        &["standalone", "past every firewall rule"],
    );
}

#[test]
fn finds_a_wrong_controller_port() {
    let change = ["set-controller", "s1", "tcp:127.0.0.1:7000"];
    let words = [
        "tcp:127.0.0.1:7000",
        "the controller listens at ptcp:6653:127.0.0.1",
    ];
    mistake(&change, "bridge-controller-address", "problem", &words);
}

#[test]
fn finds_tls_to_a_controller_without_tls() {
    let change = ["set-controller", "s1", "ssl:127.0.0.1:6653"];
    mistake(
        &change,
        "bridge-controller-tls",
        "problem",
        &["expected tcp:"],
    );
}

#[test]
fn finds_a_bridge_without_inactivity_probes() {
    let change = ["set", "controller", "s1", "inactivity_probe=0"];
    mistake(
        &change,
        "bridge-inactivity-probe",
        "warning",
        &["after 0 ms", "never notices"],
    );
}

#[test]
fn finds_in_band_control() {
    let change = ["set", "controller", "s1", "connection_mode=in-band"];
    mistake(&change, "bridge-in-band", "note", &["hidden flow entries"]);
}

#[test]
fn finds_a_port_without_a_device() {
    // ovs-vsctl itself reports the missing device, and makes all other changes.
    let change = ["--no-wait", "add-port", "s1", "eth77"];
    mistake(
        &change,
        "bridge-port-broken",
        "problem",
        &["eth77", "No such device"],
    );
}

#[test]
fn finds_an_unfinished_upgrade() {
    let change = [
        "--no-wait",
        "set",
        "open_vswitch",
        ".",
        "other_config:flow-restore-wait=true",
    ];
    mistake(
        &change,
        "ovs-waits-for-flows",
        "problem",
        &["flow-restore-wait"],
    );
}

#[test]
fn finds_two_bridges_with_one_datapath_id() {
    let id = "other_config:datapath-id=0000000000000007";
    with_bridge(&["set", "bridge", "s1", id], |switch| {
        switch.add_bridge("s2", "OpenFlow13", TARGET, &[]);
        let same = ["--timeout=120", "set", "bridge", "s2", id];
        run(switch.command("ovs-vsctl").args(same));
        let shell = || switch.command("sh");
        let words = ["s1", "s2", "0000000000000007"];
        find_and_fix(&shell, &OPTIONS, "bridge-datapath-id", "problem", &words);
    });
}

#[test]
fn finds_two_equal_controllers() {
    if !can_run() {
        return;
    }
    let room = Namespace::new();
    let one = Controller::urtica_l2(&room);
    let _other = Controller::urtica_at(&room, 6654, "l2", &[]);
    let switch = OpenVswitch::start(&room);
    switch.add_bridge("s1", "OpenFlow13", TARGET, &[]);
    let both = [
        "--timeout=120",
        "set-controller",
        "s1",
        TARGET,
        "tcp:127.0.0.1:6654",
    ];
    run(switch.command("ovs-vsctl").args(both));
    switch.wait_connected();
    let found = examine_in(&switch);
    let words = [TARGET, "tcp:127.0.0.1:6654", "twice"];
    let commands = found.commands("bridge-equal-controllers", "warning", &words);
    assert_eq!(
        commands,
        ["urtica run l2 --listen ptcp:6653:127.0.0.1 --role primary"]
    );
    one.interrupt();
    let _primary = Controller::urtica_with(&room, "l2", &["--role", "primary"]);
    eventually("one controller is the primary", DEADLINE, || {
        let found = examine_in(&switch);
        found.find("bridge-equal-controllers").is_none()
            && found.find("bridge-not-connected").is_none()
    });
}

#[test]
fn finds_a_stopped_controller() {
    if !can_run() {
        return;
    }
    let room = Namespace::new();
    let switch = OpenVswitch::start(&room);
    switch.add_bridge("s1", "OpenFlow13", TARGET, &[]);
    let shell = || switch.command("sh");
    let refused = || {
        examine(&shell, &OPTIONS)
            .find("bridge-not-connected")
            .is_some_and(|found| found.to_string().contains("refused"))
    };
    eventually("a connection is refused", DEADLINE, refused);
    let words = ["Connection refused", "start it"];
    let commands = examine(&shell, &OPTIONS).commands("bridge-not-connected", "problem", &words);
    assert_eq!(commands, ["urtica run l2 --listen ptcp:6653:127.0.0.1"]);
    let _controller = Controller::urtica_l2(&room);
    switch.wait_connected();
    assert!(
        examine(&shell, &OPTIONS)
            .find("bridge-not-connected")
            .is_none()
    );
}

#[test]
fn accepts_a_bridge_that_has_just_joined() {
    if !can_run() {
        return;
    }
    let room = Namespace::new();
    let controller = Controller::urtica_l2(&room);
    let switch = OpenVswitch::start(&room);
    // The database reports the connection up to five seconds later.
    switch.add_bridge("s1", "OpenFlow13", TARGET, &[]);
    eventually("the switch has joined", DEADLINE, || {
        controller.log().contains("switch joined")
    });
    let found = examine_in(&switch);
    assert!(found.find("bridge-not-connected").is_none(), "{found:#?}");
}

#[test]
fn finds_a_controller_behind_a_firewall() {
    if !require::root_and(&[TOOLS, &["ss", "ovs-appctl", "nft"]].concat()) {
        return;
    }
    let room = Namespace::new();
    for rule in [
        "table inet guard",
        "chain inet guard out { type filter hook output priority 0; policy accept; }",
        "rule inet guard out tcp dport 6653 drop",
    ] {
        run(room.command("nft").args(["add", rule]));
    }
    let _controller = Controller::urtica_l2(&room);
    let switch = OpenVswitch::start(&room);
    switch.add_bridge("s1", "OpenFlow13", TARGET, &[]);
    let found = examine_in(&switch);
    let words = [TARGET, "nothing replies there: a firewall drops"];
    found.commands("bridge-not-connected", "problem", &words);
}

#[test]
fn finds_a_bridge_that_limits_packet_ins() {
    let change = ["set", "controller", "s1", "controller_rate_limit=100"];
    let words = ["at most 100 packet-ins a second"];
    mistake(&change, "bridge-rate-limit", "warning", &words);
}

/// Creates a bridge under our controller with the ports of two hosts.
fn with_ports(look: impl FnOnce(&OpenVswitch)) {
    if !can_run() {
        return;
    }
    let room = Namespace::new();
    let hosts = [1, 2].map(|number| Host::new(&room, number));
    let ports = hosts.each_ref().map(|host| host.switch_port.as_str());
    let _controller = Controller::urtica_l2(&room);
    let switch = OpenVswitch::start(&room);
    switch.add_bridge("s1", "OpenFlow13", TARGET, &ports);
    switch.wait_connected();
    look(&switch);
}

#[test]
fn finds_a_spanning_tree_that_blocks_a_port() {
    with_ports(|switch| {
        let enable = ["--timeout=120", "set", "bridge", "s1", "stp_enable=true"];
        run(switch.command("ovs-vsctl").args(enable));
        let shell = || switch.command("sh");
        // Under the spanning tree protocol, a port listens and learns for 30 s before it forwards.
        let is_found = || examine_in(switch).find("bridge-spanning-tree").is_some();
        eventually("STP has the ports", DEADLINE, is_found);
        let words = ["of bridge s1", "in STP"];
        find_and_fix(&shell, &OPTIONS, "bridge-spanning-tree", "warning", &words);
    });
}

#[test]
fn finds_an_entry_that_drops_all_packets() {
    with_ports(|switch| {
        let entry = [
            "-O",
            "OpenFlow13",
            "add-flow",
            "s1",
            "priority=60000,actions=drop",
        ];
        run(switch.command("ovs-ofctl").args(entry));
        let shell = || switch.command("sh");
        let words = ["s1", "60000", "programs never see them"];
        find_and_fix(&shell, &OPTIONS, "bridge-drops-all", "problem", &words);
        let entry = ["-O", "OpenFlow13", "add-flow", "s1", "arp,actions=drop"];
        run(switch.command("ovs-ofctl").args(entry));
        let words = ["drops ARP requests from port", "'arp, priority 32768'"];
        examine_in(switch).commands("bridge-drops-arp", "note", &words);
    });
}

#[test]
fn finds_different_mtus_in_a_bridge() {
    if !can_run() {
        return;
    }
    let room = Namespace::new();
    let hosts = [1, 2].map(|number| Host::new(&room, number));
    let ports = hosts.each_ref().map(|host| host.switch_port.as_str());
    let switch = OpenVswitch::start(&room);
    switch.add_bridge("s1", "OpenFlow13", TARGET, &ports);
    run(room
        .command("ip")
        .args(["link", "set", ports[0], "mtu", "1400"]));
    let shell = || switch.command("sh");
    let found = || examine(&shell, &["mtu"]).find("mtu-differs").is_some();
    eventually("Open vSwitch sees the MTU", DEADLINE, found);
    find_and_fix(
        &shell,
        &["mtu"],
        "mtu-differs",
        "warning",
        &["p1 of bridge s1", "1400"],
    );
}

#[test]
fn finds_an_unresponsive_open_vswitch() {
    with_bridge(&[], |switch| {
        switch.pause();
        let found = examine_in(switch);
        switch.resume();
        let words = ["ovs-vswitchd does not answer", "no bridge forwards"];
        let commands = found.commands("ovs-vswitchd-stopped", "problem", &words);
        // This command is for the machine's own Open vSwitch.
        assert!(commands[0].contains(" restart "), "{commands:?}");
    });
}

#[test]
fn finds_a_stopped_open_vswitch() {
    if !require::root_and(&["ovs-vsctl"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let shell = || {
        let mut command = super::shell();
        command.env("OVS_RUNDIR", folder.path());
        command
    };
    let found = examine(&shell, &["openvswitch"]);
    let commands = found.commands("ovs-database-unreachable", "warning", &["does not answer"]);
    // This command is for the machine's own Open vSwitch.
    assert!(commands[0].contains(" start "), "{commands:?}");
}
