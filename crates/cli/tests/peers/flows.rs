//! Tests of `urtica flows` with Open vSwitch: each shows the entries that the other adds.

use std::process::{Command, Output};

use crate::namespace::Namespace;
use crate::openvswitch::{self, OpenVswitch};
use crate::process::run;
use crate::require;

const BRIDGE: &str = "s1";

#[test]
fn flows_of_ovs_in_of10() {
    changes_are_seen("OpenFlow10", "1.0");
}

#[test]
fn flows_of_ovs_in_of13() {
    changes_are_seen("OpenFlow13", "1.3");
}

#[test]
fn ovs_ports_are_listed_and_accepted_by_name() {
    if !require::root_and(openvswitch::TOOLS) {
        return;
    }
    let room = Namespace::new();
    run(room
        .command("ip")
        .args("link add left type veth peer name right".split(' ')));
    let switch = OpenVswitch::start(&room);
    for (protocol, name, target) in [
        ("OpenFlow10", "left", "ptcp:6653:127.0.0.1"),
        ("OpenFlow13", "right", "ptcp:6654:127.0.0.1"),
    ] {
        let bridge = format!("{BRIDGE}-{protocol}");
        switch.add_bridge(&bridge, protocol, target, &[name]);
        let flows = |verb: &str| {
            let mut command = switch.command(env!("CARGO_BIN_EXE_urtica"));
            command.args(["flows", verb, &bridge]);
            command
        };
        let row = |text: &str, start: &str| {
            let line = text.lines().find(|line| line.starts_with(start));
            line.unwrap_or_else(|| panic!("no line '{start}':\n{text}"))
                .to_owned()
        };
        let shown = row(&run(&mut flows("show")), &format!(" 1({name}): addr:"));
        assert!(shown.contains(", config: "), "{shown}");
        assert!(shown.contains(", state: "), "{shown}");
        let counted = row(&run(&mut flows("dump-ports")), "  port  1: rx pkts=");
        assert!(counted.contains(", tx pkts="), "{counted}");
        let one = run(flows("dump-ports").arg(name));
        assert_eq!(one.lines().filter(|line| line.contains("port ")).count(), 1);

        run(flows("add-flow").arg(format!("in_port={name},actions=output:LOCAL,{name}")));
        let dumped = run(flows("dump-flows").arg(format!("in_port={name}")));
        assert!(dumped.contains("in_port=1 actions="), "{dumped}");
        assert_eq!(run(&mut flows("dump-flows")).lines().count(), 1);
        run(flows("del-flows").arg(format!("in_port={name}")));
        assert_eq!(run(&mut flows("dump-flows")).lines().count(), 0);
    }
    let missing = switch
        .command(env!("CARGO_BIN_EXE_urtica"))
        .args(["flows", "show", "s9"])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&missing.stderr);
    assert!(
        stderr.contains("there is no bridge 's9'") && stderr.contains("s1-OpenFlow10"),
        "{stderr}"
    );
}

/// Returns the command `urtica flows` for a bridge of `switch`.
fn flows(switch: &OpenVswitch, verb: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urtica"));
    let socket = switch.file(&format!("{BRIDGE}.mgmt"));
    command
        .args(["flows", verb])
        .arg(format!("unix:{}", socket.display()));
    command
}

fn changes_are_seen(protocol: &str, version: &str) {
    if !require::root_and(openvswitch::TOOLS) {
        return;
    }
    let room = Namespace::new();
    let switch = OpenVswitch::start(&room);
    switch.add_bridge(BRIDGE, protocol, "ptcp:6653:127.0.0.1", &[]);
    let flows = |verb: &str| {
        let mut command = flows(&switch, verb);
        command.args(["-O", version]);
        command
    };
    let shown = run(&mut flows("show"));
    assert!(shown.contains("LOCAL(s1)"), "{shown}");

    let list = switch.file("flows.txt");
    std::fs::write(
        &list,
        "# two more\n\npriority=7,arp,actions=FLOOD\nudp,tp_dst=53 actions=drop\n",
    )
    .unwrap();
    let web = "priority=10,tcp,in_port=1,nw_dst=10.0.0.0/8,tp_dst=80,actions=output:2";
    run(flows("add").arg(web).arg("--file").arg(&list));
    let theirs = switch.dump_flows(BRIDGE, protocol);
    for expected in [
        "priority=10,tcp,in_port=1,nw_dst=10.0.0.0/8,tp_dst=80 actions=output:2",
        "priority=7,arp actions=FLOOD",
        "udp,tp_dst=53 actions=drop",
    ] {
        assert!(theirs.contains(expected), "{expected} in:\n{theirs}");
    }

    run(flows("mod").arg("tcp,actions=output:3"));
    let ours = run(&mut flows("dump"));
    assert_eq!(ours.lines().count(), 3, "{ours}");
    assert!(
        ours.contains("priority=10,tcp,in_port=1,nw_dst=10.0.0.0/8,tp_dst=80 actions=output:3"),
        "{ours}"
    );
    assert_eq!(run(flows("dump").arg("arp")).lines().count(), 1);

    run(flows("del").args(["--strict", "priority=7,arp"]));
    run(flows("del").arg("udp"));
    assert_eq!(
        switch
            .dump_flows(BRIDGE, protocol)
            .lines()
            .filter(|line| line.contains("cookie"))
            .count(),
        1
    );
    run(&mut flows("del"));
    assert!(!switch.dump_flows(BRIDGE, protocol).contains("cookie"));
}

#[test]
fn groups_and_meters_of_ovs() {
    if !require::root_and(openvswitch::TOOLS) {
        return;
    }
    let room = Namespace::new();
    let switch = OpenVswitch::start(&room);
    switch.add_bridge(BRIDGE, "OpenFlow13", "ptcp:6653:127.0.0.1", &[]);
    run(flows(&switch, "add-group")
        .arg("group_id=1,type=all,bucket=actions=output:2,bucket=actions=output:3"));
    run(flows(&switch, "add-meter")
        .arg("meter=1,kbps,burst,bands=type=drop,rate=1000,burst_size=100"));
    let groups = run(&mut flows(&switch, "dump-groups"));
    assert!(groups.contains("group_id=1,type=all,bucket="), "{groups}");
    let meters = run(&mut flows(&switch, "dump-meters"));
    assert!(meters.contains("rate=1000"), "{meters}");
    run(&mut flows(&switch, "del-groups"));
    run(&mut flows(&switch, "del-meters"));
    assert!(!run(&mut flows(&switch, "dump-groups")).contains("group_id=1"));
    assert!(!run(&mut flows(&switch, "dump-meters")).contains("rate=1000"));
}

#[test]
fn refusals_of_ovs_name_the_flow() {
    if !require::root_and(openvswitch::TOOLS) {
        return;
    }
    let room = Namespace::new();
    let switch = OpenVswitch::start(&room);
    switch.add_bridge(BRIDGE, "OpenFlow13", "ptcp:6653:127.0.0.1", &[]);
    let good = "in_port=1,actions=output:2";
    let bad = "table=5,in_port=1,actions=group:77";
    let Output { status, stderr, .. } = flows(&switch, "add").args([good, bad]).output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(!status.success());
    assert!(
        stderr.contains(bad) && stderr.contains("OFPBAC_BAD_OUT_GROUP"),
        "{stderr}"
    );
    assert!(run(&mut flows(&switch, "dump")).contains("in_port=1 actions=output:2"));
}

#[test]
fn packets_are_traced_through_ovs_with_unsupported_parts_named() {
    if !require::root_and(openvswitch::TOOLS) {
        return;
    }
    let room = Namespace::new();
    let switch = OpenVswitch::start(&room);
    switch.add_bridge(BRIDGE, "OpenFlow13", "ptcp:6653:127.0.0.1", &[]);
    let socket = format!("unix:{}", switch.file(&format!("{BRIDGE}.mgmt")).display());
    let trace = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_urtica"));
        command.args(["trace", "--switch", &socket, "in_port=1,tcp,tp_dst=80"]);
        command
    };
    run(flows(&switch, "add-group").arg("group_id=3,type=all,bucket=actions=output:2"));
    run(flows(&switch, "add").arg("priority=9,tcp,tp_dst=80,actions=group:3"));
    let told = run(&mut trace());
    assert!(
        told.contains("table 0 (direct code): priority=9,tcp,tp_dst=80 actions=group:3"),
        "{told}"
    );
    assert!(told.contains("-> port 2"), "{told}");

    let foreign = "in_port=5,actions=resubmit(,7)";
    run(switch
        .command("ovs-ofctl")
        .args(["-O", "OpenFlow13", "add-flow", BRIDGE, foreign]));
    let Output { status, stderr, .. } = trace().output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(!status.success());
    assert!(
        stderr.contains("in_port=5") && stderr.contains("cannot trace"),
        "{stderr}"
    );
}
