//! Ryu's `rest_qos`: the requests in Ryu's book, in its order, and their answers there.

use crate::lab::{Lab, Response, wait};
use serde_json::{Value, json};
use urtica_wire::Version;

const RULES: &str = "/qos/rules/0000000000000001";
const METER: &str = "/qos/meter/0000000000000001";

/// Returns a switch's row in the response to a command.
pub fn answered(command_result: Value) -> Value {
    json!([{"switch_id": "0000000000000001", "command_result": command_result}])
}

fn success(details: &str) -> Value {
    json!({"result": "success", "details": details})
}

pub fn check(response: &Response, expected: &Value) {
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(&response.json(), expected);
}

/// Returns a network with a learning switch after the rules, as soon as rules can be added.
pub fn lab() -> Lab {
    let lab = Lab::new("single,2", Version::Of13, &["rest_qos", "l2"]);
    wait("rules can be made", || lab.get(RULES).status == 200);
    lab
}

fn add(lab: &Lab, path: &str, body: Value, number: u32) {
    let details = format!("QoS added. : qos_id={number}");
    let told = answered(json!([success(&details)]));
    check(&lab.post(path, &body.to_string()), &told);
}

/// Returns the entries of table 0 except table-miss entries: priority, match and actions.
fn entries(lab: &Lab) -> Vec<(u64, Value, Value)> {
    let entries = lab.json("/stats/flow/1")["1"].as_array().unwrap().clone();
    let in_first = |entry: &&Value| entry["table_id"] == 0 && entry["priority"] != 0;
    let mut entries: Vec<_> = entries
        .iter()
        .filter(in_first)
        .map(|entry| {
            let priority = entry["priority"].as_u64().unwrap();
            (priority, entry["match"].clone(), entry["actions"].clone())
        })
        .collect();
    entries.sort_by_key(|(priority, match_, _)| (*priority, match_.to_string()));
    entries
}

#[test]
fn flows_get_a_queue_as_in_the_book() {
    let lab = lab();
    // All packets continue in the table of the forwarding programs.
    let default = (1, json!({}), json!(["GOTO_TABLE:1"]));
    assert_eq!(entries(&lab), std::slice::from_ref(&default));
    let match_ = json!({"nw_dst": "10.0.0.1", "nw_proto": "UDP", "tp_dst": "5002"});
    add(
        &lab,
        RULES,
        json!({"match": match_, "actions": {"queue": "1"}}),
        1,
    );
    let rule = json!({
        "qos_id": 1, "priority": 1, "dl_type": "IPv4", "nw_proto": "UDP", "nw_dst": "10.0.0.1", "tp_dst": 5002,
        "actions": [{"queue": "1"}],
    });
    assert_eq!(lab.json(RULES), answered(json!([{"qos": [rule]}])));
    let (priority, match_, actions) = entries(&lab)[1].clone();
    assert_eq!((priority, &match_["tp_dst"]), (2, &json!(5002)));
    assert_eq!(actions, json!(["SET_QUEUE:1", "GOTO_TABLE:1"]));

    let deleted = lab.delete(RULES, r#"{"qos_id": "1"}"#);
    check(
        &deleted,
        &answered(json!([success(" deleted. : QoS ID=1")])),
    );
    assert_eq!(entries(&lab), [default]);
    let gone = lab.delete(RULES, r#"{"qos_id": "1"}"#);
    let failure = json!({"result": "failure", "details": "QoS rule is not exist. : QoS ID=1"});
    check(&gone, &answered(failure));
}

#[test]
fn packets_are_marked_and_classes_queued_as_in_the_book() {
    let lab = lab();
    for (number, dscp) in [(1, "26"), (2, "34")] {
        let queue = number.to_string();
        add(
            &lab,
            RULES,
            json!({"match": {"ip_dscp": dscp}, "actions": {"queue": queue}}),
            number,
        );
    }
    let marked = json!({"nw_dst": "172.16.20.10", "nw_proto": "UDP", "tp_dst": "5002"});
    add(
        &lab,
        RULES,
        json!({"match": marked, "actions": {"mark": "26"}, "priority": 5}),
        3,
    );
    // A rule without actions, whose packets use the queue of all others.
    add(&lab, RULES, json!({"match": {"in_port": "2"}}), 4);
    let class = |id: u32, dscp: u8| json!({"qos_id": id, "priority": 1, "dl_type": "IPv4", "ip_dscp": dscp, "actions": [{"queue": id.to_string()}]});
    let marked = json!({
        "qos_id": 3, "priority": 5, "dl_type": "IPv4", "nw_proto": "UDP", "nw_dst": "172.16.20.10", "tp_dst": 5002,
        "actions": [{"mark": "26"}],
    });
    let rest = json!({"qos_id": 4, "priority": 1, "in_port": 2, "actions": [{"queue": "0"}]});
    let rules = json!([class(1, 26), class(2, 34), marked, rest]);
    assert_eq!(lab.json(RULES), answered(json!([{"qos": rules}])));

    let mut told = success("QoS added. : qos_id=1");
    told["vlan_id"] = json!(2);
    let of_vlan = lab.post(&format!("{RULES}/2"), r#"{"match": {"ip_dscp": "0"}}"#);
    check(&of_vlan, &answered(json!([told])));
    let rule = json!({"qos_id": 1, "priority": 1, "dl_type": "IPv4", "dl_vlan": 2, "ip_dscp": 0, "actions": [{"queue": "0"}]});
    let listed = answered(json!([{"vlan_id": 2, "qos": [rule]}]));
    assert_eq!(lab.json(&format!("{RULES}/2")), listed);
    let mut told = success(" deleted. : QoS ID=1");
    told["vlan_id"] = json!(2);
    let all = lab.delete(&format!("{RULES}/all"), r#"{"qos_id": "all"}"#);
    check(
        &all,
        &answered(json!([success(" deleted. : QoS ID=1,2,3,4"), told])),
    );
}

#[test]
fn rules_may_precede_their_meters() {
    let lab = lab();
    add(
        &lab,
        RULES,
        json!({"match": {"ip_dscp": "10"}, "actions": {"meter": "1"}}),
        1,
    );
    let rule = json!({"qos_id": 1, "priority": 1, "dl_type": "IPv4", "ip_dscp": 10, "actions": [{"meter": "1"}]});
    let listed = answered(json!([{"qos": [rule]}]));
    assert_eq!(lab.json(RULES), listed);
    assert_eq!(entries(&lab).len(), 1, "the switch lacks the meter");

    let meter = r#"{"meter_id": "1", "flags": "KBPS", "bands": [{"type": "DSCP_REMARK", "rate": "400", "prec_level": "1"}]}"#;
    let added = answered(json!([success("Meter added. : Meter ID=1")]));
    check(&lab.post(METER, meter), &added);
    assert_eq!(entries(&lab)[1].2, json!(["METER:1", "GOTO_TABLE:1"]));
    assert_eq!(lab.json(RULES), listed);
    // A repeated request changes the meter.
    check(&lab.post(METER, &meter.replace("400", "800")), &added);
    let bands = &lab.json("/stats/meterconfig/1")["1"][0]["bands"];
    assert_eq!(
        bands,
        &json!([{"type": "DSCP_REMARK", "rate": 800, "burst_size": 0, "prec_level": 1}])
    );
    let counted = lab.json(METER);
    assert_eq!(counted[0]["command_result"]["1"][0]["meter_id"], 1);

    let deleted = lab.delete(METER, r#"{"meter_id": "1"}"#);
    check(&deleted, &answered(success("Meter deleted. : Meter ID=1")));
    assert_eq!(lab.json(RULES), answered(json!([])), "its rules go with it");
    assert_eq!(entries(&lab).len(), 1);
    let gone = lab.delete(METER, r#"{"meter_id": "1"}"#);
    let failure = json!({"result": "failure", "details": "Meter is not exist. : Meter ID=1"});
    check(&gone, &answered(failure));
}

#[test]
fn bad_requests_get_ryus_status_and_a_sentence() {
    let lab = lab();
    for (path, body, status, expected) in [
        (RULES, "{}", 400, "match is missing"),
        (
            RULES,
            r#"{"match": 5}"#,
            400,
            "match is 5: expected an object",
        ),
        (
            RULES,
            r#"{"match": {}, "rule": 1}"#,
            400,
            "rule is not part of a rule",
        ),
        (
            RULES,
            r#"{"match": {"priority": 1}}"#,
            400,
            "match.priority is not part of a rule",
        ),
        (
            RULES,
            r#"{"match": {}, "priority": 65535}"#,
            400,
            "expected a number from 1 to 65534",
        ),
        (
            RULES,
            r#"{"match": {}, "actions": {"mark": "64"}}"#,
            400,
            "actions.mark is \"64\": expected a DSCP",
        ),
        (
            RULES,
            r#"{"match": {}, "actions": {"drop": "1"}}"#,
            400,
            "actions.drop is not an action",
        ),
        (
            RULES,
            r#"{"match": {}, "actions": {"queue": "x"}}"#,
            400,
            "actions.queue is \"x\"",
        ),
        ("/qos/rules/0000000000000001/1", "{}", 400, "vlan_id is 1"),
        (
            "/qos/rules/0000000000000009",
            "{}",
            400,
            "switch 0000000000000009 is not connected",
        ),
        (METER, "{}", 400, "meter_id is missing"),
        (
            METER,
            r#"{"meter_id": 1, "bands": [{"type": "DROPS"}]}"#,
            400,
            "bands[0].type is \"DROPS\"",
        ),
        (
            METER,
            r#"{"meter_id": 0, "bands": [{"type": "DROP", "rate": 1}]}"#,
            409,
            "the switch refused with OFPMMFC_",
        ),
    ] {
        let response = lab.post(path, body);
        assert_eq!(response.status, status, "{path} {body}: {response:?}");
        let error = response.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(expected), "{path} {body}: {error}");
    }
    assert_eq!(lab.json(&format!("{RULES}/all")), answered(json!([])));
    let without = Lab::new("single,2", Version::Of13, &["hub"]);
    let response = without.get(RULES);
    assert_eq!(response.status, 400, "{response:?}");
    assert!(
        response.body.contains("rest_qos among the programs"),
        "{response:?}"
    );
}
