//! Scripts for Ryu's `ofctl_rest`: the examples of its documentation work here.

use crate::lab::{Lab, wait};
use serde_json::{Value, json};
use urtica_wire::Version;

/// Returns the entries of switch 1, except the controller's own.
fn flows(lab: &Lab) -> Vec<Value> {
    let entries = lab.json("/stats/flow/1")["1"].as_array().unwrap().clone();
    entries
        .into_iter()
        .filter(|entry| entry["priority"] != 0)
        .collect()
}

#[test]
fn an_entry_is_added_changed_and_deleted_in_1_3() {
    let lab = Lab::new("single,2", Version::Of13, &["hub"]);
    let added = lab.post(
        "/stats/flowentry/add",
        r#"{"dpid": 1, "cookie": 1, "cookie_mask": 1, "table_id": 0, "idle_timeout": 30, "hard_timeout": 30,
            "priority": 11111, "flags": 1, "match": {"in_port": 1}, "actions": [{"type": "OUTPUT", "port": 2}]}"#,
    );
    assert_eq!((added.status, added.body.as_str()), (200, ""));
    let entry = &flows(&lab)[0];
    for (field, value) in [
        ("cookie", json!(1)),
        ("priority", json!(11111)),
        ("idle_timeout", json!(30)),
        ("hard_timeout", json!(30)),
        ("flags", json!(1)),
        ("table_id", json!(0)),
        ("length", json!(88)),
        ("match", json!({"in_port": 1})),
        ("actions", json!(["OUTPUT:2"])),
        ("packet_count", json!(0)),
    ] {
        assert_eq!(entry[field], value, "{field}: {entry}");
    }
    // A Python literal, as scripts print it.
    let modified = lab.post(
        "/stats/flowentry/modify_strict",
        "{'dpid': '1', 'priority': 11111, 'match': {'in_port': 1}, 'actions': [{'type': 'OUTPUT', 'port': 'FLOOD'}],}",
    );
    assert_eq!(modified.status, 200, "{}", modified.body);
    assert_eq!(flows(&lab)[0]["actions"], json!(["OUTPUT:FLOOD"]));
    let deleted = lab.post(
        "/stats/flowentry/delete",
        r#"{"dpid": 1, "cookie": 1, "cookie_mask": 1}"#,
    );
    assert_eq!(deleted.status, 200, "{}", deleted.body);
    assert_eq!(flows(&lab), Vec::<Value>::new());
}

#[test]
fn an_entry_is_added_filtered_and_cleared_in_1_0() {
    let lab = Lab::new("single,2", Version::Of10, &["hub"]);
    for (priority, port) in [(10, 1), (20, 2)] {
        let body = json!({
            "dpid": 1, "cookie": 5, "priority": priority, "match": {"in_port": port, "dl_type": 2048, "nw_dst": "10.0.0.0/8"},
            "actions": [{"type": "SET_DL_DST", "dl_dst": "02:00:00:00:00:09"}, {"type": "OUTPUT", "port": 2}],
        });
        assert_eq!(
            lab.post("/stats/flowentry/add", &body.to_string()).status,
            200
        );
    }
    assert_eq!(flows(&lab).len(), 2);
    let found = lab.post("/stats/flow/1", r#"{"priority": 20}"#).json();
    let found = found["1"].as_array().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0]["match"],
        json!({"in_port": 2, "dl_type": 2048, "nw_dst": "10.0.0.0/8"})
    );
    assert_eq!(
        found[0]["actions"],
        json!(["SET_DL_DST:02:00:00:00:00:09", "OUTPUT:2"])
    );
    assert_eq!(found[0]["cookie"], 5);
    let sums = lab
        .post("/stats/aggregateflow/1", r#"{"match": {"in_port": 1}}"#)
        .json();
    assert_eq!(sums["1"][0]["flow_count"], 1);
    assert_eq!(
        lab.send("DELETE", "/stats/flowentry/clear/1", "", "")
            .status,
        200
    );
    assert_eq!(lab.json("/stats/flow/1"), json!({"1": []}));
}

#[test]
fn groups_and_meters_are_set_up_and_read_back() {
    let lab = Lab::new("single,2", Version::Of13, &["hub"]);
    let group = r#"{"dpid": 1, "type": "SELECT", "group_id": 7, "buckets": [
        {"weight": 1, "actions": [{"type": "OUTPUT", "port": 1}]}, {"weight": 3, "actions": [{"type": "OUTPUT", "port": 2}]}]}"#;
    assert_eq!(lab.post("/stats/groupentry/add", group).status, 200);
    let meter = r#"{"dpid": 1, "flags": ["KBPS", "BURST"], "meter_id": 3,
        "bands": [{"type": "DROP", "rate": 1000, "burst_size": 100}]}"#;
    assert_eq!(lab.post("/stats/meterentry/add", meter).status, 200);

    let groups = lab.json("/stats/groupdesc/1");
    assert_eq!(groups["1"][0]["type"], "SELECT");
    assert_eq!(groups["1"][0]["buckets"][1]["weight"], 3);
    assert_eq!(groups["1"][0]["buckets"][1]["actions"], json!(["OUTPUT:2"]));
    assert_eq!(lab.json("/stats/group/1/7")["1"][0]["group_id"], 7);
    let meters = lab.json("/stats/meterconfig/1/3");
    let bands = json!([{"type": "DROP", "rate": 1000, "burst_size": 100}]);
    assert_eq!(
        meters,
        json!({"1": [{"meter_id": 3, "flags": ["KBPS", "BURST"], "bands": bands}]})
    );
    assert_eq!(lab.json("/stats/meter/1")["1"][0]["meter_id"], 3);
    // The answer to a refused request is empty.
    assert_eq!(lab.json("/stats/meter/1/99"), json!({"1": []}));

    assert_eq!(
        lab.post("/stats/groupentry/delete", r#"{"dpid": 1, "group_id": 7}"#)
            .status,
        200
    );
    assert_eq!(
        lab.post("/stats/meterentry/delete", r#"{"dpid": 1, "meter_id": 3}"#)
            .status,
        200
    );
    assert_eq!(lab.json("/stats/groupdesc/1"), json!({"1": []}));
    assert_eq!(lab.json("/stats/meterconfig/1"), json!({"1": []}));
}

#[test]
fn everything_about_a_switch_can_be_read_in_both_versions() {
    for version in Version::ALL {
        let lab = Lab::new("linear,2", version, &["hub"]);
        assert_eq!(lab.json("/stats/switches"), json!([1, 2]));
        assert!(lab.json("/stats/desc/2")["2"]["sw_desc"].is_string());
        let ports = lab.json("/stats/portdesc/1")["1"]
            .as_array()
            .unwrap()
            .clone();
        assert!(
            ports.iter().any(|port| port["name"] == "s1-eth1"),
            "{ports:?}"
        );
        let port = lab.json("/stats/port/1/1")["1"].as_array().unwrap().clone();
        assert_eq!((port.len(), &port[0]["port_no"]), (1, &json!(1)));
        assert!(
            !lab.json("/stats/table/1")["1"]
                .as_array()
                .unwrap()
                .is_empty()
        );
        assert!(lab.json("/stats/queue/1")["1"].is_array());
        for path in [
            "group",
            "groupdesc",
            "groupfeatures",
            "meter",
            "meterconfig",
            "meterfeatures",
            "tablefeatures",
            "role",
        ] {
            let response = lab.get(&format!("/stats/{path}/1"));
            match version {
                Version::Of10 => assert_eq!(response.status, 501, "{path}: {}", response.body),
                Version::Of13 => assert!(response.json()["1"].is_array(), "{path}"),
            }
        }
    }
}

#[test]
fn a_port_taken_down_is_reported_by_its_switch() {
    for version in Version::ALL {
        let lab = Lab::new("single,2", version, &["hub"]);
        let body = r#"{"dpid": 1, "port_no": 2, "config": 1, "mask": 1}"#;
        assert_eq!(lab.post("/stats/portdesc/modify", body).status, 200);
        let is_down = || {
            let ports = lab.json("/stats/portdesc/1")["1"]
                .as_array()
                .unwrap()
                .clone();
            ports
                .iter()
                .any(|port| port["port_no"] == 2 && port["config"] == 1)
        };
        wait("the port is down", is_down);
        let unknown = lab.post("/stats/portdesc/modify", r#"{"dpid": 1, "port_no": 99}"#);
        assert_eq!(unknown.status, 404, "{}", unknown.body);
    }
}

#[test]
fn table_numbers_are_the_switchs_even_with_a_filter() {
    let lab = Lab::new("single,2", Version::Of13, &["security", "hub"]);
    for table in [0, 1] {
        let body = json!({"dpid": 1, "table_id": table, "priority": 9, "match": {"in_port": 1}});
        assert_eq!(
            lab.post("/stats/flowentry/add", &body.to_string()).status,
            200
        );
    }
    // The filter has entries, too.
    let tables = || -> Vec<_> {
        let own = flows(&lab)
            .into_iter()
            .filter(|entry| entry["priority"] == 9);
        own.map(|entry| entry["table_id"].clone()).collect()
    };
    assert_eq!(tables(), [0, 1]);
    let all = r#"{"dpid": 1, "table_id": "ALL", "match": {"in_port": 1}}"#;
    assert_eq!(lab.post("/stats/flowentry/delete", all).status, 200);
    assert_eq!(tables(), Vec::<Value>::new());
}

#[test]
fn bad_requests_get_a_sentence_that_names_the_field() {
    let lab = Lab::new("single,2", Version::Of13, &["hub"]);
    for (path, body, status, expected) in [
        (
            "flowentry/add",
            "{\"dpid\": 1, \"match\": {\"eth_type\": \"ip\"}}",
            400,
            "match.eth_type is \"ip\": expected a number",
        ),
        (
            "flowentry/add",
            "{\"dpid\": 1, \"match\": {\"nw_typ\": 5}}",
            400,
            "match.nw_typ is not a match field",
        ),
        (
            "flowentry/add",
            "{\"dpid\": 1, \"match\": {\"tp_dst\": 80}}",
            400,
            "match.nw_proto is missing",
        ),
        (
            "flowentry/add",
            "{\"dpid\": 1, \"match\": 5}",
            400,
            "match is 5: expected an object",
        ),
        (
            "flowentry/add",
            "{\"dpid\": 1, \"priority\": 65536}",
            400,
            "priority is 65536: expected a number from 0 to 65535",
        ),
        (
            "flowentry/add",
            "{\"dpid\": 1, \"priority\": -1}",
            400,
            "priority is -1: expected a number from 0 to 65535",
        ),
        (
            "flowentry/add",
            "{\"dpid\": 1, \"actions\": [{\"type\": \"SEND\"}]}",
            400,
            "actions[0].type is \"SEND\"",
        ),
        (
            "flowentry/add",
            "{\"dpid\": 1, \"actions\": [{}]}",
            400,
            "actions[0].type is missing",
        ),
        (
            "flowentry/add",
            "{\"dpid\": 1, \"actions\": [{\"type\": \"OUTPUT\", \"port\": \"eth1\"}]}",
            400,
            "actions[0].port is",
        ),
        (
            "flowentry/add",
            "{\"dpid\": 1, \"actions\": {}}",
            400,
            "actions is {}: expected a list",
        ),
        (
            "flowentry/add",
            "{\"dpid\": 1",
            400,
            "line 1, column 11: expected ',' or '}'",
        ),
        ("flowentry/add", "", 400, "dpid is missing"),
        (
            "flowentry/add",
            "[]",
            400,
            "the body is []: expected an object",
        ),
        (
            "flowentry/add",
            "{\"dpid\": \"s1\"}",
            400,
            "dpid is s1: expected a datapath id",
        ),
        (
            "flowentry/add",
            "{\"dpid\": 9}",
            404,
            "no switch with datapath id 0000000000000009",
        ),
        (
            "flowentry/put",
            "{\"dpid\": 1}",
            404,
            "expected add, modify",
        ),
        (
            "groupentry/add",
            "{\"dpid\": 1, \"type\": \"ANY\"}",
            400,
            "type is \"ANY\": expected ALL",
        ),
        (
            "meterentry/add",
            "{\"dpid\": 1, \"flags\": \"MBPS\"}",
            400,
            "flags is \"MBPS\": expected KBPS",
        ),
        (
            "meterentry/add",
            "{\"dpid\": 1, \"bands\": [{\"type\": 1}]}",
            400,
            "bands[0].type is 1",
        ),
        ("flow/1", "{\"table_id\": 256}", 400, "table_id is 256"),
    ] {
        let response = lab.post(&format!("/stats/{path}"), body);
        assert_eq!(response.status, status, "{path} {body}: {}", response.body);
        let error = response.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(expected), "{path} {body}: {error}");
    }
    for (path, status) in [
        ("/stats/flow/s1", 400),
        ("/stats/flow/99", 404),
        ("/stats/flow/-1", 400),
        ("/stats/flow/%ff", 400),
        ("/stats/flow/18446744073709551616", 400),
        ("/stats/port/1/x", 400),
        ("/stats/flow", 404),
        ("/nothing", 404),
        ("/stats/flowentry/add", 405),
    ] {
        let response = lab.get(path);
        assert_eq!(response.status, status, "{path}: {}", response.body);
        assert!(response.json()["error"].is_string(), "{path}");
    }
    let of10 = Lab::new("single,2", Version::Of10, &["hub"]);
    for (body, expected) in [
        (
            r#"{"dpid": 1, "match": {"nw_dst": "10.0.0.1"}}"#,
            "match.dl_type is missing: expected 2048 (IPv4) or 2054 (ARP)",
        ),
        (
            r#"{"dpid": 1, "match": {"eth_type": 5}}"#,
            "not a match field: expected a field of OpenFlow 1.0",
        ),
        (r#"{"dpid": 1, "match": {"in_port": 70000}}"#, "has 16 bits"),
        (
            r#"{"dpid": 1, "actions": [{"type": "GOTO_TABLE"}]}"#,
            "expected an action of OpenFlow 1.0",
        ),
    ] {
        let response = of10.post("/stats/flowentry/add", body);
        assert_eq!(response.status, 400, "{body}: {}", response.body);
        assert!(
            response.body.contains(expected),
            "{body}: {}",
            response.body
        );
    }
}

#[test]
fn fields_that_do_not_exist_are_refused_and_nothing_is_sent() {
    let lab = Lab::new("single,1", Version::Of13, &["hub"]);
    let before = lab.json("/stats/flow/1");
    for (path, body, meant) in [
        (
            "flowentry/add",
            r#"{"dpid": 1, "action": [{"type": "OUTPUT", "port": 1}]}"#,
            "actions",
        ),
        (
            "flowentry/add",
            r#"{"dpid": 1, "instructions": []}"#,
            "actions",
        ),
        (
            "flowentry/add",
            r#"{"dpid": 1, "matches": {"in_port": 1}}"#,
            "match",
        ),
        (
            "flowentry/add",
            r#"{"dpid": 1, "idle_timout": 5}"#,
            "idle_timeout",
        ),
        (
            "flowentry/add",
            r#"{"dpid": 1, "actions": [{"type": "OUTPUT", "prt": 1}]}"#,
            "port",
        ),
        (
            "flowentry/add",
            r#"{"dpid": 1, "actions": [{"type": "GOTO_TABEL", "table_id": 1}]}"#,
            "GOTO_TABLE",
        ),
        (
            "flowentry/add",
            r#"{"dpid": 1, "actions": [{"type": "SET_FIELD", "field": "eth_dest", "value": "02:00:00:00:00:01"}]}"#,
            "eth_dst",
        ),
        (
            "flowentry/add",
            r#"{"dpid": 1, "match": {"in_prt": 1}}"#,
            "in_port",
        ),
        (
            "groupentry/add",
            r#"{"dpid": 1, "group_id": 1, "bucket": []}"#,
            "buckets",
        ),
        (
            "groupentry/add",
            r#"{"dpid": 1, "buckets": [{"action": []}]}"#,
            "actions",
        ),
        (
            "meterentry/add",
            r#"{"dpid": 1, "meter_id": 1, "band": []}"#,
            "bands",
        ),
        (
            "meterentry/add",
            r#"{"dpid": 1, "bands": [{"type": "DROP", "rat": 1}]}"#,
            "rate",
        ),
        ("role", r#"{"dpid": 1, "rol": "MASTER"}"#, "role"),
        ("flow/1", r#"{"matc": {}}"#, "match"),
    ] {
        let response = lab.post(&format!("/stats/{path}"), body);
        assert_eq!(response.status, 400, "{body}: {}", response.body);
        let named = format!("did you mean '{meant}'?");
        assert!(response.body.contains(&named), "{body}: {}", response.body);
    }
    assert_eq!(entries(&lab.json("/stats/flow/1")), entries(&before));
}

/// Returns the number of entries.
fn entries(flows: &serde_json::Value) -> usize {
    flows["1"].as_array().unwrap().len()
}

#[test]
fn cookies_that_need_the_top_byte_are_refused() {
    let lab = Lab::new("single,1", Version::Of13, &["hub"]);
    for (cookie, status) in [((1_u64 << 56) - 1, 200), (1 << 56, 400)] {
        let body = format!(r#"{{"dpid": 1, "cookie": {cookie}}}"#);
        let response = lab.post("/stats/flowentry/add", &body);
        assert_eq!(response.status, status, "{cookie}: {}", response.body);
    }
}

#[test]
fn descriptions_of_ports_and_groups_take_a_number() {
    let lab = Lab::new("single,2", Version::Of13, &["hub"]);
    assert_eq!(
        lab.json("/stats/portdesc/1/2"),
        lab.json("/stats/portdesc/1")
    );
    assert_eq!(
        lab.json("/stats/groupdesc/1/1"),
        lab.json("/stats/groupdesc/1")
    );
    assert_eq!(lab.get("/stats/portdesc/1/x").status, 400);
}
