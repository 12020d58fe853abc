//! Scripts for Ryu's `rest_topology`.

use crate::lab::{Lab, wait};
use serde_json::{Value, json};
use urtica_wire::Version;

fn list(lab: &Lab, what: &str) -> Vec<Value> {
    lab.json(&format!("/v1.0/topology/{what}"))
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn lists_switches_links_and_hosts_as_ryu_does() {
    let lab = Lab::new("linear,2", Version::Of13, &["discovery", "hosts", "hub"]);
    wait("both directed links are found", || {
        list(&lab, "links").len() == 2
    });
    wait("both hosts are found", || list(&lab, "hosts").len() == 2);
    let switches = list(&lab, "switches");
    assert_eq!(switches.len(), 2);
    assert_eq!(switches[0]["dpid"], "0000000000000001");
    let port = &switches[0]["ports"][0];
    let keys: Vec<_> = port.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["dpid", "hw_addr", "name", "port_no"]);
    assert_eq!(
        (&port["port_no"], &port["name"]),
        (&json!("00000001"), &json!("s1-eth1"))
    );

    let links = list(&lab, "links/0000000000000001");
    assert_eq!(links.len(), 1);
    assert_eq!(links[0]["src"]["dpid"], "0000000000000001");
    assert_eq!(links[0]["dst"]["dpid"], "0000000000000002");

    let hosts = list(&lab, "hosts/2");
    assert_eq!(hosts.len(), 1, "{hosts:?}");
    assert_eq!(hosts[0]["port"]["dpid"], "0000000000000002");
    assert!(
        hosts[0]["mac"].is_string() && hosts[0]["ipv4"].is_array() && hosts[0]["ipv6"].is_array()
    );
}

#[test]
fn lists_only_switches_without_services() {
    let lab = Lab::new("linear,2", Version::Of10, &["hub"]);
    assert_eq!(list(&lab, "switches").len(), 2);
    assert_eq!(list(&lab, "switches/00:00:00:00:00:00:00:02").len(), 1);
    assert_eq!(list(&lab, "switches/9"), Vec::<Value>::new());
    assert_eq!(list(&lab, "links"), Vec::<Value>::new());
    assert_eq!(list(&lab, "hosts"), Vec::<Value>::new());
    assert_eq!(lab.get("/v1.0/topology/links/s1").status, 400);
}
