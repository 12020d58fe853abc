//! Tests of Urtica's own interface.

use crate::drawing;
use crate::lab::{BOUND, Lab, config, wait};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::thread;
use urtica_controller::Controller;
use urtica_northbound::{Northbound, NorthboundConfig};
use urtica_wire::Version;

fn list(lab: &Lab, path: &str) -> Vec<Value> {
    lab.json(&format!("/api/v1/{path}"))
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn a_network_is_described() {
    let lab = Lab::new("linear,2", Version::Of13, &["discovery", "hosts", "hub"]);
    wait("all links and hosts are found", || {
        list(&lab, "links").len() == 2 && list(&lab, "hosts").len() == 2
    });
    let switches = list(&lab, "switches");
    assert_eq!(
        (&switches[0]["id"], &switches[0]["openflow"]),
        (&json!("0000000000000001"), &json!("1.3"))
    );
    assert_eq!(lab.json("/api/v1/switches/0x2")["id"], "0000000000000002");
    let ports = list(&lab, "switches/1/ports");
    let first = ports.iter().find(|port| port["name"] == "s1-eth1").unwrap();
    assert!(
        first["up"] == true && first["received_packets"].is_u64(),
        "{first}"
    );
    assert!(list(&lab, "switches/1/tables")[0]["entries"].is_u64());
    assert_eq!(list(&lab, "programs"), ["discovery", "hosts", "hub"]);

    let hosts = list(&lab, "hosts");
    let mac = |index: usize| hosts[index]["mac"].as_str().unwrap();
    let path = list(&lab, &format!("paths?from={}&to={}", mac(0), mac(1)));
    assert_eq!(path.len(), 2, "{path:?}");
    assert_eq!(
        path[0]["in_port"],
        hosts[0]["port"]
            .as_str()
            .unwrap()
            .split(':')
            .nth(1)
            .unwrap()
    );
    let same = list(&lab, "paths?from=1:1&to=1:1");
    assert_eq!(
        same,
        [json!({"switch": "0000000000000001", "in_port": "1", "out_port": "1"})]
    );
}

#[test]
fn reports_programs_panics_and_settings() {
    let controller = Controller::new().background(|background| {
        background.spawn("fragile", async { panic!("it had to be") });
    });
    let keep = |northbound: Northbound| {
        let settings = [("listen".to_owned(), vec!["ptcp:6653".to_owned()])];
        northbound.handle().set_settings(settings);
        northbound
    };
    let lab = Lab::beside(
        controller,
        "single,1",
        Version::Of13,
        &["hub"],
        config(),
        keep,
    );
    let state = || lab.json("/api/v1/controller");
    wait("the panic is told", || state()["panics"] != json!([]));
    let state = state();
    let panic = &state["panics"][0];
    assert_eq!(
        (&panic["program"], &panic["switch"], &panic["reason"]),
        (&json!("fragile"), &json!(null), &json!("it had to be"))
    );
    let program = &state["programs"][0];
    assert_eq!(program["name"], "hub");
    for seconds in [
        &panic["age_seconds"],
        &program["running_seconds"],
        &state["running_seconds"],
    ] {
        assert!(seconds.is_u64(), "{state}");
    }
    assert_eq!(
        state["settings"],
        json!([{"name": "listen", "values": ["ptcp:6653"]}])
    );
}

#[test]
fn urtica_switches_report_the_forms_of_their_tables() {
    for version in Version::ALL {
        let lab = Lab::new("single,1", version, &["hub"]);
        let entry = json!({"flow": "priority=9,in_port=1,actions=drop"}).to_string();
        let added = lab.post("/api/v1/switches/1/flows", &entry);
        assert_eq!(added.status, 204, "{}", added.body);
        let tables = list(&lab, "switches/1/tables");
        assert_eq!(tables[0]["form"], "direct code", "{version}");
        assert_eq!(tables[1]["form"], Value::Null, "{version}");
    }
}

/// If the list waited for the description, the tables would only be shown after the time limit for a reply.
#[test]
fn shows_tables_of_a_switch_without_description() {
    let config = NorthboundConfig {
        reply_timeout: 10 * BOUND,
        ..config()
    };
    let lab = Lab::with("single,1", Version::Of13, &["hub"], config, |northbound| {
        northbound
    });
    let mut switch = drawing::connect(lab.switches, "br9");
    let answering = thread::spawn(move || {
        let mut header = [0; 8];
        while switch.read_exact(&mut header).is_ok() {
            let mut body = vec![0; usize::from(u16::from_be_bytes([header[2], header[3]])) - 8];
            switch.read_exact(&mut body).unwrap();
            // Among all requests, it only answers the one for its table.
            if header[1] == 16 && body[..2] == [0, 3] {
                let mut reply = vec![1, 17, 0, 76];
                reply.extend(&header[4..]);
                reply.extend([0, 3, 0, 0]);
                reply.extend([0; 64]);
                switch.write_all(&reply).unwrap();
            }
        }
    });
    wait("it is connected", || lab.network().switches().len() == 2);
    let tables = list(&lab, "switches/9/tables");
    assert_eq!((tables.len(), &tables[0]["form"]), (1, &Value::Null));
    drop(lab);
    answering.join().unwrap();
}

#[test]
fn lists_ports_of_all_switches_with_counters() {
    for version in Version::ALL {
        let lab = Lab::new("linear,2", version, &["hub"]);
        wait("all switches have told their counters", || {
            let told = list(&lab, "ports");
            told.len() == 2 && told.iter().all(|row| row["age_seconds"].is_f64())
        });
        let told = list(&lab, "ports");
        assert_eq!(
            told[0]["switch"],
            json!("0000000000000001"),
            "OpenFlow {version}"
        );
        assert!(told[0]["age_seconds"].as_f64().unwrap() < 60.0);
        let ports = told[0]["ports"].as_array().unwrap();
        let first = ports.iter().find(|port| port["name"] == "s1-eth1").unwrap();
        assert!(first["sent_bytes"].is_u64(), "{first}");
        // Links without a bandwidth have ports without a speed.
        assert_eq!(first.get("speed_bps"), Some(&Value::Null), "{first}");
    }
}

#[test]
fn entries_are_changed_and_confirmed_in_the_syntax_of_ovs_ofctl() {
    for version in Version::ALL {
        let lab = Lab::new("single,2", version, &["hub"]);
        let change = |command: &str, flow: &str| {
            let body = json!({"command": command, "flow": flow}).to_string();
            lab.post("/api/v1/switches/1/flows", &body)
        };
        let added = change(
            "add",
            "cookie=0x5,priority=7,tcp,tp_dst=80,actions=output:2",
        );
        assert_eq!((added.status, added.body.as_str()), (204, ""));
        let entries = || -> Vec<_> {
            let entries = list(&lab, "switches/1/flows").into_iter();
            entries.filter(|entry| entry["priority"] == 7).collect()
        };
        let entry = &entries()[0];
        assert_eq!(
            (&entry["match"], &entry["actions"]),
            (&json!("tcp,tp_dst=80"), &json!("output:2"))
        );
        assert_eq!(
            (&entry["cookie"], &entry["program"], &entry["program_name"]),
            (&json!("0x5"), &json!(251), &json!(null))
        );
        assert_eq!(change("delete", "tcp").status, 204);
        assert_eq!(entries(), Vec::<Value>::new());
    }
}

#[test]
fn entries_name_the_program_that_installed_them() {
    let lab = Lab::new("single,1", Version::Of13, &["discovery", "hosts"]);
    let lldp = || {
        let entries = list(&lab, "switches/1/flows").into_iter();
        let mut entries = entries.filter(|entry| entry["match"].to_string().contains("0x88cc"));
        entries.next()
    };
    wait("discovery has its entry", || lldp().is_some());
    assert_eq!(lldp().unwrap()["program_name"], "discovery");
}

#[test]
fn groups_and_meters_are_changed_and_confirmed() {
    let lab = Lab::new("single,2", Version::Of13, &["hub"]);
    let group =
        json!({"group": "group_id=3,type=select,bucket=weight:2,actions=output:1"}).to_string();
    assert_eq!(lab.post("/api/v1/switches/1/groups", &group).status, 204);
    assert_eq!(list(&lab, "switches/1/groups")[0]["group"], 3);
    let again = lab.post("/api/v1/switches/1/groups", &group);
    assert_eq!(again.status, 409, "{}", again.body);
    assert!(
        again.body.contains("OFPGMFC_GROUP_EXISTS"),
        "{}",
        again.body
    );
    let meter = json!({"meter": "meter=2 kbps band=type=drop rate=1000"}).to_string();
    assert_eq!(lab.post("/api/v1/switches/1/meters", &meter).status, 204);
    assert_eq!(list(&lab, "switches/1/meters")[0]["meter"], 2);
    let of10 = Lab::new("single,2", Version::Of10, &["hub"]);
    for what in ["groups", "meters"] {
        let response = of10.get(&format!("/api/v1/switches/1/{what}"));
        assert_eq!(response.status, 409, "{}", response.body);
        assert!(
            response.body.contains("expected OpenFlow 1.3"),
            "{}",
            response.body
        );
    }
}

#[test]
fn errors_name_the_field_and_show_a_valid_example() {
    let lab = Lab::new("single,2", Version::Of13, &["hub"]);
    for (path, body, status, field, expected) in [
        ("switches/1/flows", "{}", 400, "flow", "flow is missing"),
        (
            "switches/1/flows",
            "{\"flow\": \"tpc,actions=output:1\"}",
            400,
            "flow",
            "column 1",
        ),
        (
            "switches/1/flows",
            "{\"flow\": 5}",
            400,
            "flow",
            "flow is 5",
        ),
        (
            "switches/1/flows",
            "{\"command\": \"put\", \"flow\": \"\"}",
            400,
            "command",
            "expected one of add",
        ),
        (
            "switches/1/groups",
            "{\"group\": \"group_id=x\"}",
            400,
            "group",
            "column 10",
        ),
        (
            "switches/1/meters",
            "{\"meter\": \"\"}",
            400,
            "meter",
            "expected",
        ),
        (
            "switches/s1/flows",
            "{}",
            400,
            "dpid",
            "expected a datapath id",
        ),
    ] {
        let response = lab.post(&format!("/api/v1/{path}"), body);
        assert_eq!(response.status, status, "{path} {body}: {}", response.body);
        let told = response.json();
        assert_eq!(told["field"], field, "{told}");
        assert!(told["error"].as_str().unwrap().contains(expected), "{told}");
        assert!(told["example"].is_string(), "{told}");
    }
    for (path, status) in [
        ("switches/9/ports", 404),
        ("paths", 400),
        ("paths?from=1:1&to=x", 400),
        ("paths?from=02:00:00:00:00:99&to=1:1", 404),
        ("paths?from=1:1&from=1:1", 400),
        ("paths?from=%ff&to=1:1", 400),
        ("paths?from=1:1&to=2:1", 409),
    ] {
        let response = lab.get(&format!("/api/v1/{path}"));
        assert_eq!(response.status, status, "{path}: {}", response.body);
        assert!(
            response.json()["error"]
                .as_str()
                .unwrap()
                .contains("expected"),
            "{}",
            response.body
        );
    }
}

#[test]
fn the_interface_describes_itself() {
    let lab = Lab::new("single,1", Version::Of13, &["rest_qos", "rest_firewall"]);
    let key = "/v1.0/conf/switches/0000000000000001/key";
    assert_eq!(lab.put(key, "1").status, 201);
    for path in ["/qos/rules/all", "/firewall/module/status"] {
        wait("the programs have the switch", || {
            lab.get(path).status == 200
        });
    }
    let described = lab.json("/openapi.json");
    assert!(described["openapi"].as_str().unwrap().starts_with("3.1"));
    let gets = described["paths"].as_object().unwrap().iter();
    for (path, _) in gets.filter(|(_, item)| item["get"].is_object()) {
        let path = path
            .replace("{dpid}", "1")
            .replace("{port}", "1")
            .replace("{queue}", "1")
            .replace("{switch_id}", "0000000000000001")
            .replace("{vlan_id}", "2")
            .replace("{key}", "key");
        let path = path.replace("{meter}", "1").replace("{group}", "1");
        let response = lab.get(&path);
        let is_path = path == "/api/v1/paths" && response.status == 400
            || path == "/api/v1/trace" && response.status == 409;
        // The router is not running.
        let is_router = path.starts_with("/router/") && response.status == 404;
        assert!(
            response.status == 200 || is_path || is_router || path == "/api/v1/events",
            "{path}: {}",
            response.body
        );
    }
}

#[test]
fn role_changes_are_reported() {
    for version in Version::ALL {
        let lab = Lab::new("single,2", version, &["hub"]);
        let change = |body: &str| lab.post("/api/v1/switches/1/role", body);
        let role = || lab.json("/api/v1/switches/1")["role"].clone();
        assert_eq!(role(), "equal");
        assert_eq!(change(r#"{"role": "secondary"}"#).status, 204);
        assert_eq!(role(), "secondary");
        let entry = json!({"flow": "priority=7,actions=output:2"}).to_string();
        let refused = lab.post("/api/v1/switches/1/flows", &entry);
        assert_eq!(refused.status, 409);
        assert!(refused.body.contains("may only read"), "{}", refused.body);
        assert_eq!(change(r#"{"role": "primary"}"#).status, 204);
        assert_eq!(lab.post("/api/v1/switches/1/flows", &entry).status, 204);
        for wrong in [r#"{"role": "leader"}"#, r#"{"role": 1}"#, "{}"] {
            let refused = change(wrong);
            assert_eq!(refused.status, 400, "{wrong}");
            let error = refused.json();
            assert_eq!(error["field"], "role");
            assert!(
                error["error"].as_str().unwrap().contains("primary"),
                "{error}"
            );
        }
        assert_eq!(lab.post("/api/v1/switches/9/role", "{}").status, 404);
    }
}
