//! Ryu's `rest_firewall`: the requests in Ryu's book, in its order, and their answers there.

use crate::lab::{Lab, Response, wait};
use serde_json::{Value, json};
use urtica_wire::Version;

const RULES: &str = "/firewall/rules/0000000000000001";

/// Returns a switch's row in the response to a command.
fn answered(command_result: Value) -> Value {
    json!([{"switch_id": "0000000000000001", "command_result": command_result}])
}

fn success(details: &str) -> Value {
    json!({"result": "success", "details": details})
}

/// Returns a network, when all of its switches have a firewall.
fn lab(plan: &str, version: Version) -> Lab {
    let lab = Lab::new(plan, version, &["rest_firewall"]);
    wait("the switches are guarded", || {
        let switches = lab.network().switches().len();
        lab.get("/firewall/module/status")
            .body
            .matches("switch_id")
            .count()
            == switches
    });
    lab
}

fn enable(lab: &Lab) {
    let enabled = lab.put("/firewall/module/enable/0000000000000001", "");
    assert_eq!(enabled.json(), answered(success("firewall running.")));
}

fn check(response: &Response, expected: &Value) {
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(&response.json(), expected);
}

fn add(lab: &Lab, path: &str, body: Value, expected: &Value) {
    check(&lab.post(path, &body.to_string()), expected);
}

#[test]
fn filters_a_single_tenant_as_in_the_book() {
    let lab = lab("single,3", Version::Of13);
    let status = |status| json!([{"switch_id": "0000000000000001", "status": status}]);
    assert_eq!(lab.json("/firewall/module/status"), status("disable"));
    enable(&lab);
    assert_eq!(lab.json("/firewall/module/status"), status("enable"));

    let (h1, h2, h3) = ("10.0.0.1", "10.0.0.2", "10.0.0.3");
    let both = |src: &str, dst: &str| json!({"nw_src": format!("{src}/32"), "nw_dst": format!("{dst}/32")});
    let mut bodies = vec![
        both(h1, h2),
        both(h2, h1),
        both(h2, h3),
        both(h3, h2),
        both(h2, h3),
        both(h3, h2),
    ];
    for body in bodies.iter_mut().take(2) {
        body["nw_proto"] = json!("ICMP");
    }
    for body in bodies.iter_mut().skip(4) {
        body["nw_proto"] = json!("ICMP");
        body["actions"] = json!("DENY");
        body["priority"] = json!("10");
    }
    for (number, body) in (1..).zip(bodies) {
        let details = format!("Rule added. : rule_id={number}");
        add(&lab, RULES, body, &answered(json!([success(&details)])));
    }
    let rule = |id: u32, src: &str, dst: &str| json!({"rule_id": id, "priority": 1, "dl_type": "IPv4", "nw_src": src, "nw_dst": dst, "actions": "ALLOW"});
    let icmp = |mut rule: Value| {
        rule["nw_proto"] = json!("ICMP");
        rule
    };
    let denied = |mut rule: Value| {
        (rule["priority"], rule["actions"]) = (json!(10), json!("DENY"));
        icmp(rule)
    };
    let mut rules = vec![
        icmp(rule(1, h1, h2)),
        icmp(rule(2, h2, h1)),
        rule(3, h2, h3),
        rule(4, h3, h2),
        denied(rule(5, h2, h3)),
        denied(rule(6, h3, h2)),
    ];
    let listed = |rules: &[Value]| json!([{"switch_id": "0000000000000001", "access_control_list": [{"rules": rules}]}]);
    assert_eq!(lab.json(RULES), listed(&rules));

    for number in ["5", "6"] {
        let deleted = lab.delete(RULES, &json!({"rule_id": number}).to_string());
        let details = format!("Rule deleted. : ruleID={number}");
        check(&deleted, &answered(json!([success(&details)])));
    }
    rules.truncate(4);
    assert_eq!(lab.json(RULES), listed(&rules));
    let gone = lab.delete(RULES, r#"{"rule_id": "5"}"#);
    let failure = json!({"result": "failure", "details": "Rule is not exist. : ruleID=5"});
    check(&gone, &answered(failure));
    let all = lab.delete(RULES, r#"{"rule_id": "all"}"#);
    check(
        &all,
        &answered(json!([success("Rule deleted. : ruleID=1,2,3,4")])),
    );
    let empty = json!([{"switch_id": "0000000000000001", "access_control_list": []}]);
    assert_eq!(lab.json(RULES), empty);
}

#[test]
fn vlans_separate_tenants_as_in_the_book() {
    let lab = lab("single,4", Version::Of13);
    enable(&lab);
    let of_vlan_2 = format!("{RULES}/2");
    for (number, field) in [(1, "nw_src"), (2, "nw_dst")] {
        let mut told = success(&format!("Rule added. : rule_id={number}"));
        told["vlan_id"] = json!(2);
        let body = json!({field: "10.0.0.0/8", "nw_proto": "ICMP"});
        add(&lab, &of_vlan_2, body, &answered(json!([told])));
    }
    let rule = |id: u32, field: &str| json!({"rule_id": id, "priority": 1, "dl_type": "IPv4", "nw_proto": "ICMP", "dl_vlan": 2, field: "10.0.0.0/8", "actions": "ALLOW"});
    let rules = json!([rule(1, "nw_src"), rule(2, "nw_dst")]);
    let listed = json!([{"switch_id": "0000000000000001", "access_control_list": [{"vlan_id": 2, "rules": rules}]}]);
    assert_eq!(lab.json(&format!("{RULES}/all")), listed);
    assert_eq!(lab.json(&of_vlan_2), listed);
    // There is no rule for packets of any VLAN, and none for those of another VLAN.
    let none = json!([{"switch_id": "0000000000000001", "access_control_list": []}]);
    assert_eq!(lab.json(RULES), none);
    assert_eq!(lab.json(&format!("{RULES}/110")), none);

    // For all VLANs that have rules, and for packets of any VLAN.
    let mut of_two = success("Rule added. : rule_id=3");
    of_two["vlan_id"] = json!(2);
    let body = json!({"nw_dst": "10.0.0.9", "actions": "DENY"});
    let told = json!([success("Rule added. : rule_id=1"), of_two]);
    add(&lab, &format!("{RULES}/all"), body, &answered(told));
    let mut of_two = success("Rule deleted. : ruleID=1,2,3");
    of_two["vlan_id"] = json!(2);
    let deleted = lab.delete(&of_vlan_2, r#"{"rule_id": "all"}"#);
    check(&deleted, &answered(json!([of_two])));
}

#[test]
fn filters_a_single_tenant_with_ipv6_as_in_the_book() {
    let lab = lab("single,3", Version::Of13);
    enable(&lab);
    let (h1, h2) = ("fe80::200:ff:fe00:1", "fe80::200:ff:fe00:2");
    let pairs = [
        (h1, h2),
        (h2, h1),
        (h1, "ff02::1:ff00:2"),
        (h2, "ff02::1:ff00:1"),
    ];
    let mut rules = Vec::new();
    for (number, (src, dst)) in (1_u32..).zip(pairs) {
        let body = json!({"ipv6_src": src, "ipv6_dst": dst, "nw_proto": "ICMPv6"});
        let details = format!("Rule added. : rule_id={number}");
        add(&lab, RULES, body, &answered(json!([success(&details)])));
        rules.push(json!({"rule_id": number, "priority": 1, "dl_type": "IPv6", "nw_proto": "ICMPv6", "ipv6_src": src, "ipv6_dst": dst, "actions": "ALLOW"}));
    }
    let listed =
        json!([{"switch_id": "0000000000000001", "access_control_list": [{"rules": rules}]}]);
    assert_eq!(lab.json(RULES), listed);
}

#[test]
fn rules_are_entries_of_the_switch_in_both_versions() {
    for version in Version::ALL {
        let lab = lab("single,2", version);
        let rule =
            json!({"nw_src": "10.0.0.1", "nw_proto": "ICMP", "actions": "DENY", "priority": 7});
        add(
            &lab,
            RULES,
            rule,
            &answered(json!([success("Rule added. : rule_id=1")])),
        );
        // A logged packet is sent to the controller.
        let actions = || -> Vec<_> {
            let entries = lab.json("/stats/flow/1")["1"].as_array().unwrap().clone();
            let of = |priority: u32| {
                let mut entries = entries.iter();
                let entry = entries.find(|entry| entry["priority"] == priority);
                entry.map(|entry| entry["actions"].clone())
            };
            [65535, 65534, 7].map(of).into()
        };
        let (drop, normal, log) = (
            json!([]),
            json!(["OUTPUT:NORMAL"]),
            json!(["OUTPUT:CONTROLLER"]),
        );
        assert_eq!(
            actions(),
            [Some(drop.clone()), Some(normal.clone()), Some(log.clone())]
        );
        assert_eq!(lab.json("/firewall/log/status")[0]["log_status"], "enable");

        let off = lab.put("/firewall/log/disable/all", "");
        check(&off, &answered(success("Log collection stopped.")));
        assert_eq!(lab.json("/firewall/log/status")[0]["log_status"], "disable");
        enable(&lab);
        assert_eq!(actions(), [None, Some(normal.clone()), Some(drop.clone())]);

        let on = lab.put("/firewall/log/enable/0000000000000001", "");
        check(&on, &answered(success("Log collection started.")));
        let stopped = lab.put("/firewall/module/disable/all", "");
        check(&stopped, &answered(success("firewall stopped.")));
        assert_eq!(actions(), [Some(drop), Some(normal), Some(log)]);
    }
}

#[test]
fn bad_requests_get_ryus_status_and_a_sentence() {
    let lab = lab("single,2", Version::Of13);
    for (path, body, expected) in [
        (
            RULES,
            r#"{"priority": 0}"#,
            "priority is 0: expected a number from 1 to 65533",
        ),
        (
            RULES,
            r#"{"priority": "65534"}"#,
            "expected a number from 1 to 65533",
        ),
        (
            RULES,
            r#"{"actions": "DROP"}"#,
            "actions is \"DROP\": expected ALLOW or DENY",
        ),
        (
            RULES,
            r#"{"nw_dst": "10.0.0.0/33"}"#,
            "nw_dst is \"10.0.0.0/33\": expected an IPv4 address",
        ),
        (
            RULES,
            r#"{"nw_dts": "10.0.0.1"}"#,
            "nw_dts is not part of a rule",
        ),
        (RULES, r#"{"nw_proto": "TCP"}"#, "dl_type is missing"),
        (RULES, r#"{"nw_src": "10.0.0.1""#, "line 1"),
        (RULES, "[]", "the body is []: expected an object"),
        (
            "/firewall/rules/0000000000000001/1",
            "{}",
            "vlan_id is 1: expected a VLAN id from 2 to 4094",
        ),
        (
            "/firewall/rules/0000000000000001/4095",
            "{}",
            "vlan_id is 4095",
        ),
        ("/firewall/rules/0000000000000001/x", "{}", "vlan_id is x"),
        (
            "/firewall/rules/0000000000000009",
            "{}",
            "switch 0000000000000009 is not connected",
        ),
        ("/firewall/rules/s1", "{}", "dpid is s1"),
    ] {
        let response = lab.post(path, body);
        assert_eq!(response.status, 400, "{path} {body}: {response:?}");
        let error = response.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(expected), "{path} {body}: {error}");
    }
    for body in ["", "{}", r#"{"rule_id": "one"}"#, r#"{"rule_id": -1}"#] {
        let response = lab.delete(RULES, body);
        assert_eq!(response.status, 400, "{body}: {response:?}");
        assert!(response.body.contains("rule_id is"), "{response:?}");
    }
    // None of these requests added a rule.
    let listed = lab.json(&format!("{RULES}/all"));
    assert_eq!(listed[0]["access_control_list"], json!([]));

    // The switch's version cannot match these fields.
    let of10 = self::lab("single,2", Version::Of10);
    let refused = of10.post(RULES, r#"{"ipv6_src": "::1"}"#);
    assert_eq!(refused.status, 400, "{refused:?}");
    let listed = of10.json(&format!("{RULES}/all"));
    assert_eq!(listed[0]["access_control_list"], json!([]));
}

#[test]
fn without_the_program_the_paths_say_how_to_run_it() {
    let lab = Lab::new("single,2", Version::Of13, &["hub"]);
    for path in ["/firewall/module/status", "/firewall/log/status", RULES] {
        let response = lab.get(path);
        assert_eq!(response.status, 400, "{path}: {response:?}");
        let expected = "expected one, and rest_firewall among the programs of urtica run";
        assert!(response.body.contains(expected), "{path}: {response:?}");
    }
}
