//! Scripts for Ryu's REST interface with a real Open vSwitch, using curl as in Ryu's documentation.

use crate::controller::{Controller, TARGET};
use crate::namespace::Namespace;
use crate::openvswitch::{self, OpenVswitch};
use crate::process::{DEADLINE, eventually, run};
use crate::require;

const URL: &str = "http://localhost:8080";

/// Adds an entry, as Ryu's documentation does for each version.
const ENTRY_10: &str = r#"{
    "dpid": 1, "cookie": 1, "cookie_mask": 1, "table_id": 0, "idle_timeout": 300, "hard_timeout": 300, "priority": 11111, "flags": 1,
    "match": {"in_port": 1, "dl_type": 2048, "nw_dst": "10.0.0.0/8"},
    "actions": [{"type": "SET_DL_DST", "dl_dst": "02:00:00:00:00:09"}, {"type": "OUTPUT", "port": 2}]
}"#;
const ENTRY_13: &str = r#"{
    "dpid": 1, "cookie": 1, "cookie_mask": 1, "table_id": 0, "idle_timeout": 300, "hard_timeout": 300, "priority": 11111, "flags": 1,
    "match": {"in_port": 1, "eth_type": 2048, "ipv4_dst": "10.0.0.0/8"},
    "actions": [{"type": "SET_FIELD", "field": "eth_dst", "value": "02:00:00:00:00:09"}, {"type": "OUTPUT", "port": 2}]
}"#;

/// The queues of the chapter on QoS in Ryu's book.
const QUEUES: &str = r#"{
    "port_name": "p1", "type": "linux-htb", "max_rate": "1000000",
    "queues": [{"max_rate": "500000"}, {"min_rate": "800000"}]
}"#;

#[test]
fn ovs_scripts_for_ryu_work_of10() {
    let set = "\"SET_DL_DST:02:00:00:00:00:09\"";
    scripts_for_ryu_work(
        "OpenFlow10",
        ENTRY_10,
        &[set, "\"dl_type\":2048", "\"nw_dst\":\"10.0.0.0/8\""],
    );
}

#[test]
fn ovs_scripts_for_ryu_work_of13() {
    let set = "\"SET_FIELD: {eth_dst:02:00:00:00:00:09}\"";
    scripts_for_ryu_work(
        "OpenFlow13",
        ENTRY_13,
        &[set, "\"dl_type\":2048", "\"nw_dst\":\"10.0.0.0/255.0.0.0\""],
    );
}

/// Adds, reads and deletes an entry, and compares the answers with dumps of `ovs-ofctl`.
fn scripts_for_ryu_work(protocol: &str, entry: &str, expected: &[&str]) {
    if !require::root_and(&[openvswitch::TOOLS, &["ss", "curl"]].concat()) {
        return;
    }
    let room = Namespace::new();
    let controller = Controller::urtica_with(&room, "l2", &["--northbound"]);
    let switch = OpenVswitch::start(&room);
    switch.add_bridge("s1", protocol, TARGET, &[]);
    run(switch.command("ovs-vsctl").args([
        "set",
        "bridge",
        "s1",
        "other-config:datapath-id=0000000000000001",
    ]));
    switch.wait_connected();
    let curl = |options: &[&str], path: &str| {
        let mut command = room.command("curl");
        run(command
            .args(["--silent", "--show-error", "--fail"])
            .args(options)
            .arg(format!("{URL}{path}")))
    };
    eventually("the switch is listed", DEADLINE, || {
        curl(&[], "/stats/switches") == "[1]"
    });
    curl(&["-X", "POST", "-d", entry], "/stats/flowentry/add");
    let dumped = || switch.dump_flows("s1", protocol);
    eventually("the entry is there", DEADLINE, || {
        dumped().contains("priority=11111")
    });
    let told = curl(&[], "/stats/flow/1");
    for expected in [
        expected,
        &["\"priority\":11111", "\"cookie\":1,", "\"OUTPUT:2\""],
    ]
    .concat()
    {
        assert!(told.contains(expected), "{expected}: {told}\n{}", dumped());
    }
    curl(&["-X", "DELETE"], "/stats/flowentry/clear/1");
    eventually("the entry is gone", DEADLINE, || {
        !dumped().contains("priority=11111")
    });
    assert!(curl(&[], "/stats/desc/1").contains("Open vSwitch"));
    assert!(curl(&[], "/v1.0/topology/switches").contains("\"dpid\":\"0000000000000001\""));
    assert!(curl(&[], "/metrics").contains("dp_name=\"s1\""));
    controller.interrupt();
}

#[test]
fn ovs_queues_are_set_up_as_in_ryus_book() {
    if !require::root_and(&[openvswitch::TOOLS, &["ss", "curl"]].concat()) {
        return;
    }
    let room = Namespace::new();
    run(room
        .command("ip")
        .args(["link", "add", "p1", "type", "veth", "peer", "name", "h1"]));
    let controller = Controller::urtica_with(&room, "rest_qos,l2", &["--northbound"]);
    let switch = OpenVswitch::start(&room);
    switch.add_bridge("s1", "OpenFlow13", TARGET, &["p1"]);
    run(switch.command("ovs-vsctl").args([
        "set",
        "bridge",
        "s1",
        "other-config:datapath-id=0000000000000001",
    ]));
    switch.wait_connected();
    let curl = |options: &[&str], path: &str| {
        let mut command = room.command("curl");
        run(command
            .args(["--silent", "--show-error", "--fail-with-body"])
            .args(options)
            .arg(format!("{URL}{path}")))
    };
    let database = format!("\"unix:{}\"", switch.file("db.sock").display());
    let queues = "/qos/queue/0000000000000001";
    curl(
        &["-X", "PUT", "-d", &database],
        "/v1.0/conf/switches/0000000000000001/ovsdb_addr",
    );
    eventually("rest_qos manages the switch", DEADLINE, || {
        room.command("curl")
            .args(["--silent", "--fail", &format!("{URL}{queues}")])
            .output()
            .is_ok_and(|output| output.status.success())
    });
    let told = curl(&["-X", "POST", "-d", QUEUES], queues);
    let details =
        r#""details":{"0":{"config":{"max-rate":"500000"}},"1":{"config":{"min-rate":"800000"}}}"#;
    assert!(told.contains(details), "{told}");
    assert_eq!(curl(&[], queues), told);
    let listed = |table: &str| {
        run(switch
            .command("ovs-vsctl")
            .args(["--bare", "--columns=other_config", "list", table]))
    };
    assert_eq!(listed("qos").trim(), "max-rate=1000000");
    let rates = listed("queue");
    assert!(
        rates.contains("max-rate=500000") && rates.contains("min-rate=800000"),
        "{rates}"
    );
    eventually("the port has both queues", DEADLINE, || {
        let status = curl(&[], "/qos/queue/status/0000000000000001");
        status.contains("\"queue_id\":0") && status.contains("\"queue_id\":1")
    });
    curl(&["-X", "DELETE"], queues);
    assert_eq!((listed("qos").trim(), listed("queue").trim()), ("", ""));
    controller.interrupt();
}
