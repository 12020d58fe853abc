//! Ryu's `rest_router`: the requests in Ryu's book, in its order, and their answers there.

use crate::lab::{Lab, Response, wait};
use serde_json::{Value, json};
use urtica_wire::Version;

fn path(switch: u32) -> String {
    format!("/router/{switch:016x}")
}

/// Returns a switch's row in the response to a command.
fn answered(switch: u32, result: &str, details: &str) -> Value {
    json!([{"switch_id": format!("{switch:016x}"), "command_result": [{"result": result, "details": details}]}])
}

fn check(response: &Response, expected: &Value) {
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(&response.json(), expected);
}

/// Returns a network, when all of its switches are routers.
fn lab(plan: &str, version: Version) -> Lab {
    let lab = Lab::new(plan, version, &["rest_router"]);
    wait("the switches are routers", || {
        let routers = lab.get("/router/all").body.matches("switch_id").count();
        routers == lab.network().switches().len()
    });
    lab
}

fn add(lab: &Lab, switch: u32, body: &Value, details: &str) {
    let response = lab.post(&path(switch), &body.to_string());
    check(&response, &answered(switch, "success", details));
}

/// Returns three routers in a row, with the addresses and routes of the book.
fn three_routers(version: Version) -> Lab {
    let lab = lab("linear,3", version);
    let addresses: [(u32, &[&str]); 3] = [
        (1, &["172.16.20.1/24", "172.16.30.30/24"]),
        (2, &["172.16.10.1/24", "172.16.30.1/24", "192.168.10.1/24"]),
        (3, &["192.168.30.1/24", "192.168.10.20/24"]),
    ];
    for (switch, addresses) in addresses {
        for (number, address) in (1..).zip(addresses) {
            let details = format!("Add address [address_id={number}]");
            add(&lab, switch, &json!({"address": address}), &details);
        }
    }
    for (switch, gateway) in [(1, "172.16.30.1"), (2, "172.16.30.30"), (3, "192.168.10.1")] {
        add(
            &lab,
            switch,
            &json!({"gateway": gateway}),
            "Add route [route_id=1]",
        );
    }
    let to_h3 = json!({"destination": "192.168.30.0/24", "gateway": "192.168.10.20"});
    add(&lab, 2, &to_h3, "Add route [route_id=2]");
    lab
}

fn of_second_router(routes: &[Value]) -> Value {
    let address = |id: u32, address: &str| json!({"address_id": id, "address": address});
    let addresses = [
        address(1, "172.16.10.1/24"),
        address(2, "172.16.30.1/24"),
        address(3, "192.168.10.1/24"),
    ];
    json!([{"switch_id": "0000000000000002", "internal_network": [{"address": addresses, "route": routes}]}])
}

#[test]
fn connects_three_routers_as_in_the_book() {
    for version in Version::ALL {
        let lab = three_routers(version);
        let route = |id: u32, destination: &str, gateway: &str| json!({"route_id": id, "destination": destination, "gateway": gateway});
        let default = route(1, "0.0.0.0/0", "172.16.30.30");
        let to_h3 = route(2, "192.168.30.0/24", "192.168.10.20");
        // Routes are listed after their gateways have replied, so the routers have found each other.
        let all = of_second_router(&[default.clone(), to_h3]);
        wait("the second router knows its gateways", || {
            lab.json(&path(2)) == all
        });
        let first = json!([{"switch_id": "0000000000000001", "internal_network": [{
            "address": [{"address_id": 1, "address": "172.16.20.1/24"}, {"address_id": 2, "address": "172.16.30.30/24"}],
            "route": [{"route_id": 1, "destination": "0.0.0.0/0", "gateway": "172.16.30.1"}],
        }]}]);
        wait("the first router knows its gateway", || {
            lab.json(&path(1)) == first
        });

        let deleted = lab.delete(&path(2), r#"{"route_id": "2"}"#);
        check(
            &deleted,
            &answered(2, "success", "Delete route [route_id=2]"),
        );
        assert_eq!(lab.json(&path(2)), of_second_router(&[default]));
        let gone = lab.delete(&path(2), r#"{"route_id": "2"}"#);
        check(&gone, &answered(2, "failure", "Data is nothing."));

        // An address is kept while its subnet contains a gateway.
        let kept = lab.delete(&path(3), r#"{"address_id": "all"}"#);
        let details =
            "Delete address [address_id=1], Skip delete (related route exist) [address_id=2]";
        check(&kept, &answered(3, "success", details));
        let kept = lab.delete(&path(3), r#"{"address_id": "2"}"#);
        check(
            &kept,
            &answered(
                3,
                "failure",
                "Skip delete (related route exist) [address_id=2]",
            ),
        );
        check(
            &lab.delete(&path(3), r#"{"route_id": "all"}"#),
            &answered(3, "success", "Delete route [route_id=1]"),
        );
        check(
            &lab.delete(&path(3), r#"{"address_id": 2}"#),
            &answered(3, "success", "Delete address [address_id=2]"),
        );
        let empty = json!([{"switch_id": "0000000000000003", "internal_network": [{}]}]);
        assert_eq!(lab.json(&path(3)), empty);
    }
}

#[test]
fn vlans_separate_tenants_as_in_the_book() {
    let lab = lab("linear,2", Version::Of13);
    for vlan_id in [2, 110] {
        for switch in [1_u32, 2] {
            let address = format!("172.16.{}.1/24", switch * 10);
            let response = lab.post(
                &format!("{}/{vlan_id}", path(switch)),
                &json!({"address": address}).to_string(),
            );
            let mut told = answered(switch, "success", "Add address [address_id=1]");
            told[0]["command_result"][0]["vlan_id"] = json!(vlan_id);
            check(&response, &told);
        }
    }
    let network = |vlan_id: u32| json!({"vlan_id": vlan_id, "address": [{"address_id": 1, "address": "172.16.10.1/24"}]});
    let all = json!([{"switch_id": "0000000000000001", "internal_network": [{}, network(2), network(110)]}]);
    assert_eq!(lab.json(&format!("{}/all", path(1))), all);
    let one = json!([{"switch_id": "0000000000000001", "internal_network": [network(2)]}]);
    assert_eq!(lab.json(&format!("{}/2", path(1))), one);
    let none = json!([{"switch_id": "0000000000000001", "internal_network": [{"vlan_id": 3}]}]);
    assert_eq!(lab.json(&format!("{}/3", path(1))), none);

    // Empty routers are removed.
    let deleted = lab.delete(&format!("{}/2", path(1)), r#"{"address_id": "all"}"#);
    assert_eq!(deleted.json()[0]["command_result"][0]["vlan_id"], 2);
    let left = json!([{"switch_id": "0000000000000001", "internal_network": [{}, network(110)]}]);
    assert_eq!(lab.json(&format!("{}/all", path(1))), left);
    // This request is for all existing VLANs.
    let added = lab
        .post(&format!("{}/all", path(1)), r#"{"address": "10.0.0.1/8"}"#)
        .json();
    assert_eq!(
        added[0]["command_result"].as_array().unwrap().len(),
        2,
        "{added}"
    );
}

/// Sends a tenant's setting to a router.
fn add_of_tenant(lab: &Lab, switch: u32, vlan_id: u16, body: &Value, details: &str) {
    let response = lab.post(&format!("{}/{vlan_id}", path(switch)), &body.to_string());
    let mut told = answered(switch, "success", details);
    told[0]["command_result"][0]["vlan_id"] = json!(vlan_id);
    check(&response, &told);
}

#[test]
fn connects_three_routers_of_two_tenants_as_in_the_book() {
    let lab = lab("linear,3", Version::Of13);
    let networks = [
        (1, "172.16.10.1/24"),
        (2, "192.168.30.1/24"),
        (3, "172.16.20.1/24"),
    ];
    for vlan_id in [2, 110] {
        for (switch, hosts) in networks {
            let between = format!("10.10.10.{switch}/24");
            for (number, address) in [(1, hosts), (2, &*between)] {
                let details = format!("Add address [address_id={number}]");
                add_of_tenant(
                    &lab,
                    switch,
                    vlan_id,
                    &json!({"address": address}),
                    &details,
                );
            }
        }
        for (switch, gateway) in [(1, "10.10.10.2"), (2, "10.10.10.1"), (3, "10.10.10.2")] {
            let gateway = json!({"gateway": gateway});
            add_of_tenant(&lab, switch, vlan_id, &gateway, "Add route [route_id=1]");
        }
    }
    let to_hosts = json!({"destination": "172.16.20.0/24", "gateway": "10.10.10.3"});
    add_of_tenant(&lab, 2, 2, &to_hosts, "Add route [route_id=2]");

    let addresses = json!([
        {"address_id": 1, "address": "192.168.30.1/24"}, {"address_id": 2, "address": "10.10.10.2/24"},
    ]);
    let default = json!({"route_id": 1, "destination": "0.0.0.0/0", "gateway": "10.10.10.1"});
    let to_hosts = json!({"route_id": 2, "destination": "172.16.20.0/24", "gateway": "10.10.10.3"});
    let tenant = |vlan_id: u16, routes: Value| json!({"vlan_id": vlan_id, "address": addresses, "route": routes});
    let all = json!([{"switch_id": "0000000000000002", "internal_network": [
        {}, tenant(2, json!([default, to_hosts])), tenant(110, json!([default])),
    ]}]);
    // A gateway is resolved inside its own VLAN: the other tenant's gateway has an equal address.
    wait("the second router knows both tenants' gateways", || {
        lab.json(&format!("{}/all", path(2))) == all
    });
    let of_tenant = lab.json(&format!("{}/110", path(2)));
    assert_eq!(
        of_tenant[0]["internal_network"],
        json!([tenant(110, json!([default]))])
    );
}

#[test]
fn entries_have_ryus_priorities_and_cookies() {
    let lab = lab("single,2", Version::Of13);
    let added = lab.post(&format!("{}/2", path(1)), r#"{"address": "10.0.1.254/24"}"#);
    assert_eq!(added.status, 200, "{added:?}");
    add(
        &lab,
        1,
        &json!({"address": "10.0.2.254/24"}),
        "Add address [address_id=1]",
    );
    add(
        &lab,
        1,
        &json!({"destination": "192.168.0.0/16", "gateway": "10.0.2.77"}),
        "Add route [route_id=1]",
    );
    let entries = lab.json("/stats/flow/1")["1"].as_array().unwrap().clone();
    let own = |entry: &&Value| entry["priority"] != 0;
    let mut found: Vec<_> = entries
        .iter()
        .filter(own)
        .map(|entry| {
            let cookie = entry["cookie"].as_u64().unwrap() & ((1 << 56) - 1);
            (
                entry["priority"].as_u64().unwrap(),
                cookie,
                entry["actions"].to_string(),
            )
        })
        .collect();
    found.sort();
    let (up, normal) = (r#"["OUTPUT:CONTROLLER"]"#, r#"["OUTPUT:NORMAL"]"#);
    let expected = [
        (1, 0, up),
        (1, 0, "[]"),
        (2, 1, up),
        (18, 1 << 16, up),
        (36, 1, normal),
        (1001, 2 << 32, "[]"),
        (1002, (2 << 32) + 1, up),
        (1036, (2 << 32) + 1, normal),
        (1037, 1, up),
        (1037, (2 << 32) + 1, up),
    ];
    assert_eq!(
        found,
        expected.map(|(priority, cookie, actions)| (priority, cookie, actions.to_owned()))
    );
}

#[test]
fn conflicting_changes_fail() {
    let lab = lab("single,2", Version::Of13);
    add(
        &lab,
        1,
        &json!({"address": "10.0.1.254/24"}),
        "Add address [address_id=1]",
    );
    for (body, details) in [
        (
            json!({"address": "10.0.1.1/16"}),
            "Address overlaps [address_id=1]",
        ),
        (
            json!({"address": "10.0.1.254/32"}),
            "Address overlaps [address_id=1]",
        ),
        (
            json!({"gateway": "10.0.2.1"}),
            "Gateway=10.0.2.1's address is not registered.",
        ),
        (
            json!({"gateway": "10.0.1.254"}),
            "Gateway=10.0.1.254 is used as default gateway of address_id=1",
        ),
    ] {
        let response = lab.post(&path(1), &body.to_string());
        check(&response, &answered(1, "failure", details));
    }
    add(
        &lab,
        1,
        &json!({"gateway": "10.0.1.1"}),
        "Add route [route_id=1]",
    );
    let again = lab.post(
        &path(1),
        r#"{"destination": "0.0.0.0/0", "gateway": "10.0.1.2"}"#,
    );
    check(
        &again,
        &answered(1, "failure", "Destination overlaps [route_id=1]"),
    );
}

#[test]
fn bad_requests_get_ryus_status_and_a_sentence() {
    let lab = lab("single,2", Version::Of13);
    for (path, body, status, expected) in [
        ("/router/0000000000000001", "{}", 400, "gateway is missing"),
        (
            "/router/0000000000000001",
            r#"{"address": "10.0.0.1"}"#,
            400,
            "address is \"10.0.0.1\": expected an IPv4 address with the length",
        ),
        (
            "/router/0000000000000001",
            r#"{"address": "10.0.0.1/33"}"#,
            400,
            "expected an IPv4 address",
        ),
        (
            "/router/0000000000000001",
            r#"{"address": 5}"#,
            400,
            "address is 5",
        ),
        (
            "/router/0000000000000001",
            r#"{"gateway": "h1"}"#,
            400,
            "gateway is \"h1\"",
        ),
        (
            "/router/0000000000000001",
            r#"{"gateway": "10.0.0.1", "metric": 1}"#,
            400,
            "metric is not part of a router",
        ),
        ("/router/0000000000000001/1", "{}", 400, "vlan_id is 1"),
        (
            "/router/0000000000000009",
            "{}",
            404,
            "switch 0000000000000009 is not connected",
        ),
        ("/router/s1", "{}", 400, "dpid is s1"),
    ] {
        let response = lab.post(path, body);
        assert_eq!(response.status, status, "{path} {body}: {response:?}");
        let told = response.json();
        assert_eq!(
            (&told["result"], &told["details"]),
            (&json!("failure"), &told["error"])
        );
        assert!(
            told["error"].as_str().unwrap().contains(expected),
            "{path} {body}: {told}"
        );
    }
    let response = lab.delete(&path(1), "{}");
    assert_eq!(response.status, 400, "{response:?}");
    let empty = json!([{"switch_id": "0000000000000001", "internal_network": [{}]}]);
    assert_eq!(lab.json(&format!("{}/all", path(1))), empty);
    let without = Lab::new("single,2", Version::Of13, &["hub"]);
    let response = without.get("/router/all");
    assert_eq!(response.status, 404, "{response:?}");
    assert!(
        response.body.contains("rest_router among the programs"),
        "{response:?}"
    );
}
