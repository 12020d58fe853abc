//! Ryu's `rest_conf_switch`: values that are stored for switches.

use crate::lab::Lab;
use serde_json::json;
use urtica_wire::Version;

const SWITCHES: &str = "/v1.0/conf/switches";

#[test]
fn values_are_kept_listed_and_deleted() {
    let lab = Lab::new("single,2", Version::Of13, &["hub"]);
    assert_eq!(lab.json(SWITCHES), json!([]));
    // A switch need not be connected.
    let switch = format!("{SWITCHES}/1000000000000001");
    let address = format!("{switch}/ovsdb_addr");
    let kept = lab.put(&address, "\"tcp:127.0.0.1:6632\"");
    assert_eq!((kept.status, kept.body.as_str()), (201, ""));
    let other = lab.put(&format!("{switch}/tunnel"), r#"{"a": [1, null]}"#);
    assert_eq!(other.status, 201);

    assert_eq!(lab.json(SWITCHES), json!(["1000000000000001"]));
    assert_eq!(lab.json(&switch), json!(["ovsdb_addr", "tunnel"]));
    assert_eq!(lab.json(&address), json!("tcp:127.0.0.1:6632"));
    assert_eq!(
        lab.json(&format!("{switch}/tunnel")),
        json!({"a": [1, null]})
    );

    let deleted = lab.delete(&address, "");
    assert_eq!((deleted.status, deleted.body.as_str()), (200, ""));
    assert_eq!(lab.json(&switch), json!(["tunnel"]));
    let deleted = lab.delete(&switch, "");
    assert_eq!((deleted.status, deleted.body.as_str()), (202, ""));
    assert_eq!(lab.json(SWITCHES), json!([]));
}

#[test]
fn missing_values_are_404_and_invalid_ones_400() {
    let lab = Lab::new("single,2", Version::Of13, &["hub"]);
    let switch = format!("{SWITCHES}/0000000000000001");
    let key = format!("{switch}/key");
    for (response, status, expected) in [
        (
            lab.get(&switch),
            404,
            "no values are stored for switch 0000000000000001",
        ),
        (
            lab.delete(&switch, ""),
            404,
            "no values are stored for switch",
        ),
        (lab.get(&key), 404, "the key is key: expected one that GET"),
        (lab.delete(&key, ""), 404, "the key is key"),
        (lab.put(&key, "{\"a\": "), 400, "line 1"),
        (
            lab.put(&format!("{SWITCHES}/s1/key"), "1"),
            400,
            "dpid is s1",
        ),
        (lab.post(&key, "1"), 405, "does not support POST"),
    ] {
        assert_eq!(response.status, status, "{response:?}");
        assert!(response.body.contains(expected), "{response:?}");
    }
    assert_eq!(lab.json(SWITCHES), json!([]));
}
