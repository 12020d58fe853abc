//! Queues of Ryu's `rest_qos`, which are rows in a switch's database.

use crate::database::{self, Database};
use crate::lab::Lab;
use crate::qos::{answered, check, lab};
use serde_json::{Value, json};
use std::io::Write;
use std::net::SocketAddr;

const QUEUE: &str = "/qos/queue/0000000000000001";
const ADDRESS: &str = "/v1.0/conf/switches/0000000000000001/ovsdb_addr";

/// The request in Ryu's book.
const BOOK: &str = r#"{
    "port_name": "s1-eth1", "type": "linux-htb", "max_rate": "1000000",
    "queues": [{"max_rate": "500000"}, {"min_rate": "800000"}]
}"#;

fn success(details: Value) -> Value {
    answered(json!({"result": "success", "details": details}))
}

fn none() -> Value {
    answered(json!({"result": "failure", "details": "Queue is not exists."}))
}

/// Returns a network, and the database of its switch and of another bridge.
fn lab_with_database() -> (Lab, Database) {
    let database = Database::start(&[
        ("0000000000000001", &["s1-eth1", "s1-eth2"]),
        ("0000000000000002", &["s2-eth1"]),
    ]);
    let lab = lab();
    name_database(&lab, database.address);
    (lab, database)
}

fn name_database(lab: &Lab, address: SocketAddr) {
    let kept = lab.put(ADDRESS, &format!("\"tcp:{address}\""));
    assert_eq!(kept.status, 201, "{kept:?}");
}

#[test]
fn answers_without_a_database_as_ryu() {
    let lab = lab();
    let status = lab.json("/qos/queue/status/0000000000000001");
    assert_eq!(status[0]["switch_id"], "0000000000000001");
    assert!(status[0]["command_result"]["1"].is_array(), "{status}");
    assert_eq!(lab.json(QUEUE), none());
    let set = lab.post(QUEUE, BOOK).json();
    assert_eq!(set[0]["command_result"]["result"], "failure");
    let details = set[0]["command_result"]["details"].as_str().unwrap();
    assert!(details.contains("ovsdb_addr"), "{details}");
    check(&lab.delete(QUEUE, ""), &answered(json!("failure")));
}

#[test]
fn sets_lists_and_deletes_queues_as_in_the_book() {
    let (lab, database) = lab_with_database();
    assert_eq!(lab.json(QUEUE), none());
    let told = success(json!({
        "0": {"config": {"max-rate": "500000"}}, "1": {"config": {"min-rate": "800000"}},
    }));
    check(&lab.post(QUEUE, BOOK), &told);
    assert_eq!(lab.json(QUEUE), told);
    let shaping = database.shaping("s1-eth1").unwrap();
    assert_eq!(
        (&shaping["type"], &shaping["other_config"]),
        (
            &json!("linux-htb"),
            &json!(["map", [["max-rate", "1000000"]]])
        )
    );
    assert_eq!(database.shaping("s1-eth2"), None);
    assert_eq!((database.count("QoS"), database.count("Queue")), (1, 2));

    check(&lab.delete(QUEUE, ""), &answered(json!("success")));
    assert_eq!((database.count("QoS"), database.count("Queue")), (0, 0));
    assert_eq!(lab.json(QUEUE), none());
    check(&lab.delete(QUEUE, ""), &answered(json!("failure")));
}

#[test]
fn queues_of_all_ports_replace_those_of_one() {
    let (lab, database) = lab_with_database();
    lab.post(QUEUE, BOOK);
    let told = success(json!({"0": {"config": {"max-rate": "7", "min-rate": "5"}}}));
    let all = r#"{"queues": [{"max_rate": 7, "min_rate": "5"}]}"#;
    check(&lab.post(QUEUE, all), &told);
    assert_eq!((database.count("QoS"), database.count("Queue")), (2, 2));
    for port in ["s1-eth1", "s1-eth2"] {
        let shaping = database.shaping(port).unwrap();
        assert_eq!(
            (&shaping["type"], &shaping["other_config"]),
            (&json!("linux-htb"), &json!(["map", []]))
        );
    }
    assert_eq!(
        database.shaping("s2-eth1"),
        None,
        "the port of another bridge"
    );
}

#[test]
fn settings_that_another_port_uses_stay() {
    let (lab, database) = lab_with_database();
    lab.post(QUEUE, BOOK);
    database.share("s1-eth1", "s2-eth1");
    check(&lab.delete(QUEUE, ""), &answered(json!("success")));
    assert_eq!(database.shaping("s1-eth1"), None);
    assert!(database.shaping("s2-eth1").is_some());
    assert_eq!((database.count("QoS"), database.count("Queue")), (1, 2));
}

#[test]
fn invalid_requests_change_nothing_and_name_what_was_expected() {
    let (lab, database) = lab_with_database();
    let many = json!({"queues": vec![json!({"max_rate": 1}); 257]}).to_string();
    for (body, expected) in [
        (r#"{"port_nam": "s1-eth1"}"#, "did you mean 'port_name'?"),
        (
            r#"{"port_name": "s1-eth9"}"#,
            "no port s1-eth9: expected one of s1-eth1, s1-eth2",
        ),
        (r#"{"port_name": "s2-eth1"}"#, "no port s2-eth1"),
        (r#"{"queues": [{}]}"#, "queues[0].max_rate is missing"),
        (
            r#"{"queues": [{"max_rate": "fast"}]}"#,
            "queues[0].max_rate is \"fast\"",
        ),
        (
            r#"{"queues": [{"max_rate": 1, "rate": 2}]}"#,
            "there is no field queues[0].rate",
        ),
        (r#"{"max_rate": -1}"#, "max_rate is -1"),
        (&many, "there are 257 queues: expected at most 256"),
    ] {
        let refused = lab.post(QUEUE, body);
        assert_eq!(refused.status, 400, "{body}: {refused:?}");
        assert!(
            refused.json()["error"].as_str().unwrap().contains(expected),
            "{body}: {refused:?}"
        );
    }
    assert_eq!((database.count("QoS"), database.count("Queue")), (0, 0));
}

/// Answers all requests with these bytes, and closes the connection.
fn answering(bytes: &'static [u8]) -> SocketAddr {
    database::serve(move |mut stream| {
        database::receive(&mut stream);
        // The client may close the connection first.
        let _ = stream.write_all(bytes);
    })
}

#[test]
fn errors_name_the_failing_database_and_its_problem() {
    let lab = lab();
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (address, status, expected) in [
        (closed, 502, "cannot reach Open vSwitch's database at tcp:127.0.0.1:"),
        (answering(b""), 502, "cannot reach Open vSwitch's database at tcp:127.0.0.1:"),
        (answering(b"HTTP/1.1 400 Bad Request\r\n\r\n{}"), 502, "a message that is not JSON"),
        (answering(br#"{"id": 1, "error": null, "result": 5}"#), 502, "a reply without results"),
        (answering(br#"{"id": 1, "error": null, "result": [{"rows": []}]}"#), 502, "without a result for each operation"),
        (answering(br#"{"id": 1, "error": null, "result": [{}, {}, {}]}"#), 502, "a selection without rows"),
        (answering(br#"{"id": 1, "error": "unknown database", "result": null}"#), 502, "refused the change: unknown database"),
        (
            answering(br#"{"id": 1, "error": null, "result": [{"error": "resources exhausted", "details": "full"}]}"#),
            502,
            "resources exhausted: full",
        ),
        (
            answering(br#"{"id": 1, "error": null, "result": [{"rows": []}, {"rows": []}, {"rows": []}]}"#),
            400,
            "has no bridge whose datapath id is 0000000000000001",
        ),
    ] {
        name_database(&lab, address);
        for response in [lab.get(QUEUE), lab.post(QUEUE, BOOK), lab.delete(QUEUE, "")] {
            assert_eq!(response.status, status, "{expected}: {response:?}");
            assert!(response.json()["error"].as_str().unwrap().contains(expected), "{response:?}");
        }
    }
}

#[test]
fn a_silent_or_endless_database_does_not_hold_a_request() {
    let lab = lab();
    let silent = database::serve(|mut stream| while database::receive(&mut stream).is_some() {});
    name_database(&lab, silent);
    let late = lab.get(QUEUE);
    assert_eq!(late.status, 504, "{late:?}");
    let endless = database::serve(|mut stream| while stream.write_all(&[b'['; 4096]).is_ok() {});
    name_database(&lab, endless);
    let refused = lab.get(QUEUE);
    assert_eq!(refused.status, 502, "{refused:?}");
    assert!(refused.body.contains("more than 4 MiB"), "{refused:?}");
}

#[test]
fn errors_name_invalid_addresses() {
    let lab = lab();
    for (value, expected) in [
        ("\"ssl:127.0.0.1:6640\"", "'ssl:127.0.0.1:6640'"),
        ("6640", "6640"),
    ] {
        assert_eq!(lab.put(ADDRESS, value).status, 201);
        let refused = lab.get(QUEUE);
        assert_eq!(refused.status, 400, "{refused:?}");
        let error = refused.json()["error"].as_str().unwrap().to_owned();
        assert!(
            error.contains(&format!("ovsdb_addr is {expected}: expected the address")),
            "{error}"
        );
    }
}
