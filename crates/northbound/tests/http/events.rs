//! Clients that watch events: over Ryu's WebSocket, and as server-sent events.

use crate::lab::{BOUND, Lab, config, wait};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use tungstenite::{Message, WebSocket};
use urtica_controller::Controller;
use urtica_northbound::{Northbound, NorthboundConfig};
use urtica_wire::{DatapathId, PortNo, Version};

fn connect(lab: &Lab) -> WebSocket<TcpStream> {
    let socket = TcpStream::connect(lab.address).unwrap();
    socket.set_read_timeout(Some(BOUND)).unwrap();
    let url = format!("ws://{}/v1.0/topology/ws", lab.address);
    tungstenite::client(url, socket).unwrap().0
}

/// Reads calls until each of these methods has been called.
fn calls(socket: &mut WebSocket<TcpStream>, mut methods: Vec<&str>) -> Vec<Value> {
    let mut calls = Vec::new();
    while !methods.is_empty() {
        let Message::Text(text) = socket.read().unwrap() else {
            continue;
        };
        let call: Value = serde_json::from_str(&text).unwrap();
        let reply = format!(
            "{{\"jsonrpc\": \"2.0\", \"id\": {}, \"result\": \"\"}}",
            call["id"]
        );
        // The server may have closed the connection.
        let _ = socket.send(Message::text(reply));
        methods.retain(|method| call["method"] != *method);
        calls.push(call);
    }
    calls
}

#[test]
fn the_websocket_calls_as_ryus_did() {
    let lab = Lab::new("linear,2", Version::Of13, &["discovery", "hosts", "hub"]);
    let count = |what: &str| {
        lab.json(&format!("/v1.0/topology/{what}"))
            .as_array()
            .unwrap()
            .len()
    };
    wait("all is found", || {
        (count("links"), count("hosts")) == (2, 2)
    });
    let mut watcher = connect(&lab);
    // Port 1 leads to a host, port 2 to the other switch.
    let set = |port: u8, config: u8| {
        let body =
            format!("{{\"dpid\": 1, \"port_no\": {port}, \"config\": {config}, \"mask\": 1}}");
        assert_eq!(lab.post("/stats/portdesc/modify", &body).status, 200);
    };
    set(2, 1);
    let gone = calls(&mut watcher, vec!["event_link_delete"]);
    let link = &gone[0]["params"][0];
    assert!(
        link["src"]["dpid"].is_string() && link["dst"]["port_no"].is_string(),
        "{link}"
    );
    set(2, 0);
    let added = calls(&mut watcher, vec!["event_link_add"]);
    assert_eq!(added[0]["jsonrpc"], "2.0");
    set(1, 1);
    wait("a host is gone", || count("hosts") == 1);
    set(1, 0);
    let found = calls(&mut watcher, vec!["event_host_add"]);
    assert!(found.last().unwrap()["params"][0]["mac"].is_string());
}

#[test]
fn leaving_and_returning_switches_are_reported() {
    let lab = Lab::new("single,1", Version::Of13, &["hub"]);
    let mut watcher = connect(&lab);
    // A second connection with the switch's id replaces the first, and the switch reconnects.
    let mut impostor = TcpStream::connect(lab.switches).unwrap();
    let hello = [4, 0, 0, 8, 0, 0, 0, 1];
    let features = [
        4, 6, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0,
    ];
    impostor
        .write_all(&[&hello[..], &features].concat())
        .unwrap();
    let calls = calls(
        &mut watcher,
        vec!["event_switch_leave", "event_switch_enter"],
    );
    let enter = calls
        .iter()
        .find(|call| call["method"] == "event_switch_enter")
        .unwrap();
    assert_eq!(enter["params"][0]["dpid"], "0000000000000001");
}

#[test]
fn server_sent_events_begin_with_the_switches() {
    let lab = Lab::new("linear,2", Version::Of13, &["discovery", "hosts", "hub"]);
    let mut names = server_sent(&lab).map(|(name, _)| name);
    assert_eq!(
        (names.next().unwrap(), names.next().unwrap()),
        ("switch_up".into(), "switch_up".into())
    );
    assert!(names.any(|name| name == "host_joined"));
}

/// Returns server-sent events, each with its name and its data.
fn server_sent(lab: &Lab) -> impl Iterator<Item = (String, Value)> {
    let mut socket = TcpStream::connect(lab.address).unwrap();
    socket.set_read_timeout(Some(BOUND)).unwrap();
    let request = "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    socket.write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(socket).lines().map(Result::unwrap);
    std::iter::from_fn(move || {
        let name = lines.find_map(|line| line.strip_prefix("event: ").map(str::to_owned))?;
        let data = lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned))?;
        Some((name, serde_json::from_str(&data).unwrap()))
    })
}

#[test]
fn refusals_panics_and_program_changes_are_reported() {
    let (go, wait_for_it) = std::sync::mpsc::channel::<()>();
    let controller = Controller::new().background(|background| {
        background.spawn("fragile", async move {
            let _ = wait_for_it.recv();
            panic!("it had to be")
        });
    });
    let mut handle = None;
    let keep = |northbound: Northbound| {
        handle = Some(northbound.handle());
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
    let mut events = server_sent(&lab);
    assert_eq!(events.next().unwrap().0, "switch_up");
    let unknown = urtica_wire::Message::QueueGetConfigRequest(PortNo(99));
    lab.network().send(DatapathId(1), &unknown).unwrap();
    let mut next = |wanted: &str| events.find(|(name, _)| name == wanted).unwrap().1;
    assert_eq!(
        next("refused"),
        json!({"dpid": "0000000000000001", "code": "OFPQOFC_BAD_PORT", "count": 1})
    );
    go.send(()).unwrap();
    assert_eq!(
        next("program_panicked"),
        json!({"program": "fragile", "dpid": null, "reason": "it had to be"})
    );
    handle.unwrap().set_programs(["hub", "l2"], None, None);
    assert_eq!(next("programs_changed"), json!({"programs": ["hub", "l2"]}));
}

#[test]
fn watchers_are_bounded_and_need_a_handshake() {
    let lab = Lab::with(
        "single,1",
        Version::Of13,
        &["hub"],
        NorthboundConfig {
            max_watchers: 1,
            ..config()
        },
        |northbound| northbound,
    );
    let first = connect(&lab);
    assert_eq!(lab.get("/api/v1/events").status, 503);
    drop(first);
    wait("there is room again", || {
        let socket = TcpStream::connect(lab.address).unwrap();
        let url = format!("ws://{}/v1.0/topology/ws", lab.address);
        tungstenite::client(url, socket).is_ok()
    });
    let plain = lab.get("/v1.0/topology/ws");
    assert!((400..500).contains(&plain.status), "{}", plain.body);
    assert!(
        plain.json()["error"]
            .as_str()
            .unwrap()
            .contains("expected a WebSocket"),
        "{}",
        plain.body
    );
    let upgrade = "Upgrade: websocket\r\nOrigin: https://attacker.example\r\n";
    assert_eq!(
        lab.send("GET", "/v1.0/topology/ws", upgrade, "").status,
        403
    );
}

#[test]
fn watchers_learn_that_a_removed_service_has_no_links() {
    let mut handle = None;
    let programs = ["discovery", "hosts", "hub"];
    let keep_handle = |northbound: Northbound| {
        handle = Some(northbound.handle());
        northbound
    };
    let lab = Lab::with("linear,2", Version::Of13, &programs, config(), keep_handle);
    let count = |path: &str| lab.json(path).as_array().unwrap().len();
    wait("links are found", || count("/v1.0/topology/links") == 2);
    let mut watcher = connect(&lab);
    handle.unwrap().set_programs(["hub"], None, None);
    let gone = calls(&mut watcher, vec!["event_link_delete"]);
    assert!(
        gone.last().unwrap()["params"][0]["src"].is_object(),
        "{gone:?}"
    );
    assert_eq!(count("/v1.0/topology/links"), 0);
    assert_eq!(lab.json("/api/v1/programs"), serde_json::json!(["hub"]));
}
