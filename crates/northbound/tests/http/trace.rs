//! The path of a packet through the switches' entries.

use crate::lab::{Lab, config, wait};
use serde_json::{Value, json};
use std::time::Duration;
use urtica_northbound::NorthboundConfig;
use urtica_wire::Version;

const H1: &str = "00:00:00:00:00:01";
const H3: &str = "00:00:00:00:00:03";
const WAY: &str = "/api/v1/trace?from=00:00:00:00:00:01&to=00:00:00:00:00:03";

/// Returns a network of three switches in a row, each with a host, after the controller has learned of all of them.
fn row(version: Version) -> Lab {
    row_with(version, config())
}

fn row_with(version: Version, config: NorthboundConfig) -> Lab {
    let programs = ["discovery", "hosts"];
    let lab = Lab::with("linear,3", version, &programs, config, |northbound| {
        northbound
    });
    let count = |path: &str| lab.json(path).as_array().unwrap().len();
    wait("links and hosts are known", || {
        count("/api/v1/links") == 4 && count("/api/v1/hosts") == 3
    });
    lab
}

fn add(lab: &Lab, switch: u64, flow: &str) {
    let body = json!({ "flow": flow }).to_string();
    let response = lab.post(&format!("/api/v1/switches/{switch}/flows"), &body);
    assert_eq!(response.status, 204, "{flow}: {}", response.body);
}

/// Returns the ports of a switch: the one to its host, and those to its neighbours, with their datapath ids.
fn ports(lab: &Lab, switch: u64) -> (String, Vec<(u64, String)>) {
    let id = format!("{switch:016x}");
    let split = |end: &Value| {
        let (owner, port) = end.as_str().unwrap().split_once(':').unwrap();
        (owner.to_owned(), port.to_owned())
    };
    let hosts = lab.json("/api/v1/hosts");
    let mut hosts = hosts.as_array().unwrap().iter();
    let host = hosts.find_map(|host| {
        let (owner, port) = split(&host["port"]);
        (owner == id).then_some(port)
    });
    let links = lab.json("/api/v1/links");
    let links = links.as_array().unwrap().iter().filter_map(|link| {
        let ((owner, port), (other, _)) = (split(&link["from"]), split(&link["to"]));
        (owner == id).then(|| (u64::from_str_radix(&other, 16).unwrap(), port))
    });
    (host.unwrap(), links.collect())
}

/// Returns the port of a switch that leads to another switch.
fn towards(lab: &Lab, switch: u64, other: u64) -> String {
    let (_, links) = ports(lab, switch);
    let found = links.into_iter().find(|(id, _)| *id == other);
    found.unwrap().1
}

#[test]
fn a_packet_is_followed_from_switch_to_switch() {
    for version in [Version::Of10, Version::Of13] {
        let lab = row(version);
        add(
            &lab,
            1,
            &format!(
                "priority=9,dl_dst={H3},actions=output:{}",
                towards(&lab, 1, 2)
            ),
        );
        add(
            &lab,
            2,
            &format!(
                "priority=9,dl_dst={H3},actions=output:{}",
                towards(&lab, 2, 3)
            ),
        );
        let way = lab.json(WAY);
        // The third switch has no entry for the packet.
        assert_eq!(way["delivered"], false, "{way:#}");
        assert_eq!(way["hops"].as_array().unwrap().len(), 3, "{way:#}");
        assert_eq!(way["hops"][2]["outputs"], json!([]), "{way:#}");
        add(
            &lab,
            3,
            &format!("priority=9,dl_dst={H3},actions=output:{}", ports(&lab, 3).0),
        );
        let way = lab.json(WAY);
        assert_eq!(
            (&way["delivered"], &way["unfinished"]),
            (&json!(true), &json!(false)),
            "{way:#}"
        );
        let packet = way["packet"].as_str().unwrap();
        for expected in ["dl_src=00:00:00:00:00:01", "nw_dst=10.0.0.3", "icmp"] {
            assert!(packet.contains(expected), "{packet}");
        }
        let hops = way["hops"].as_array().unwrap();
        let switches: Vec<_> = hops
            .iter()
            .map(|hop| hop["switch"].as_str().unwrap())
            .collect();
        assert_eq!(
            switches,
            ["0000000000000001", "0000000000000002", "0000000000000003"]
        );
        let table = json!({"table": 0, "priority": 9, "match": format!("dl_dst={H3}"),
                           "actions": format!("output:{}", towards(&lab, 1, 2))});
        assert_eq!(hops[0]["tables"], json!([table]));
        let to = format!("0000000000000002:{}", towards(&lab, 2, 1));
        assert_eq!(
            hops[0]["outputs"],
            json!([{"port": towards(&lab, 1, 2), "to": to}])
        );
        assert_eq!(
            hops[2]["outputs"],
            json!([{"port": ports(&lab, 3).0, "to": null}])
        );
    }
}

#[test]
fn reports_drops_copies_and_loops() {
    let lab = row(Version::Of13);
    let (host, _) = ports(&lab, 2);
    let (left, right) = (towards(&lab, 2, 1), towards(&lab, 2, 3));
    add(
        &lab,
        1,
        &format!(
            "priority=9,dl_dst={H3},actions=output:{}",
            towards(&lab, 1, 2)
        ),
    );
    add(
        &lab,
        2,
        &format!("priority=9,dl_dst={H3},actions=output:{host},output:{right}"),
    );
    add(&lab, 3, &format!("priority=9,dl_src={H1},actions=drop"));
    let way = lab.json(WAY);
    assert_eq!(way["delivered"], false);
    let outputs = way["hops"][1]["outputs"].as_array().unwrap();
    assert_eq!(outputs.len(), 2, "{way:#}");
    assert_eq!(outputs[0], json!({"port": host, "to": null}));
    assert_eq!(way["hops"][2]["tables"][0]["actions"], "drop");
    assert_eq!(way["hops"][2]["outputs"], json!([]));
    // Two switches send the packet back and forth.
    add(
        &lab,
        2,
        &format!("priority=10,dl_dst={H3},actions=output:{left}"),
    );
    add(
        &lab,
        2,
        &format!("priority=11,in_port={left},dl_dst={H3},actions=in_port"),
    );
    add(
        &lab,
        1,
        &format!(
            "priority=10,in_port={},dl_dst={H3},actions=in_port",
            towards(&lab, 1, 2)
        ),
    );
    let way = lab.json(WAY);
    assert_eq!(
        (&way["delivered"], &way["unfinished"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(way["hops"].as_array().unwrap().len(), 256);
    // Each pass makes 200 copies, so the trace ends after 4,096 outputs.
    let copies = vec!["in_port"; 200].join(",");
    add(
        &lab,
        2,
        &format!("priority=12,in_port={left},dl_dst={H3},actions={copies}"),
    );
    let way = lab.json(WAY);
    assert_eq!(way["unfinished"], true);
    assert!(way["hops"].as_array().unwrap().len() < 256);
    // A group sends the packet to the controller.
    let group = json!({"group": "group_id=1,type=all,bucket=actions=CONTROLLER:65535"}).to_string();
    assert_eq!(lab.post("/api/v1/switches/1/groups", &group).status, 204);
    add(&lab, 1, &format!("priority=20,dl_dst={H3},actions=group:1"));
    let way = lab.json(WAY);
    assert_eq!(way["hops"].as_array().unwrap().len(), 1, "{way:#}");
    assert_eq!(way["hops"][0]["to_controller"], true, "{way:#}");
}

#[test]
fn untraceable_packets_are_refused() {
    let lab = row(Version::Of13);
    for (query, status, expected) in [
        (
            "from=1&to=2",
            400,
            "from is 1: expected a host's MAC address",
        ),
        ("from=00:00:00:00:00:01", 400, "to is "),
        (
            "from=00:00:00:00:00:01&to=00:00:00:00:00:99",
            404,
            "a host that GET /api/v1/hosts lists",
        ),
        ("from=1&from=2&to=3", 400, "once each"),
    ] {
        let response = lab.get(&format!("/api/v1/trace?{query}"));
        assert_eq!(response.status, status, "{query}: {}", response.body);
        assert!(response.body.contains(expected), "{}", response.body);
    }
    let lab = Lab::new("single,1", Version::Of13, &["hub"]);
    let response = lab.get(WAY);
    assert_eq!(response.status, 409, "{}", response.body);
    assert!(
        response.body.contains("`discovery` and `hosts`"),
        "{}",
        response.body
    );
}

#[test]
fn a_trace_ends_at_a_late_answer() {
    let config = NorthboundConfig {
        reply_timeout: Duration::from_nanos(1),
        ..config()
    };
    let response = row_with(Version::Of13, config).get(WAY);
    assert_eq!(response.status, 504, "{}", response.body);
}
