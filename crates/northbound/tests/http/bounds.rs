//! Access to the interface, and its behaviour with hostile and slow clients.

use crate::lab::{BOUND, Lab, Response, config, wait};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use urtica_northbound::axum::{Router, routing::get};
use urtica_northbound::{Northbound, NorthboundConfig, Tokens};
use urtica_wire::{EntryOptions, Match, Message, Version};

const TOKEN: &str = "0123456789abcdef";

fn lab(config: NorthboundConfig) -> Lab {
    Lab::with("single,1", Version::Of13, &["hub"], config, |northbound| {
        northbound
    })
}

#[test]
fn other_machines_need_a_token() {
    let config = NorthboundConfig {
        address: "0.0.0.0:0".parse().unwrap(),
        ..config()
    };
    let refused = Northbound::bind(config.clone()).err().unwrap().to_string();
    assert!(refused.contains("no token is set"), "{refused}");
    let tokens = Tokens::new([TOKEN]);
    assert!(Northbound::bind(NorthboundConfig { tokens, ..config }).is_ok());
}

#[test]
fn all_requests_need_a_token_if_there_are_tokens() {
    let lab = lab(NorthboundConfig {
        tokens: Tokens::new([TOKEN]),
        ..config()
    });
    for (headers, status) in [
        (String::new(), 401),
        ("Authorization: Bearer wrong\r\n".into(), 401),
        (format!("Authorization: Basic {TOKEN}\r\n"), 401),
        ("Authorization: Bearer\r\n".into(), 401),
        (format!("Authorization: Bearer {TOKEN}\r\n"), 200),
        (
            format!("authorization: bearer {TOKEN}\r\nHost: controller.example\r\n"),
            200,
        ),
    ] {
        for path in ["/stats/switches", "/v1.0/topology/links"] {
            let response = lab.send("GET", path, &headers, "");
            assert_eq!(response.status, status, "{headers}: {}", response.body);
            assert!(!response.body.contains(TOKEN));
        }
    }
    let refused = lab.get("/nothing");
    assert_eq!(refused.status, 401);
    assert!(
        refused.headers.contains("www-authenticate: Bearer"),
        "{}",
        refused.headers
    );
}

#[test]
fn read_only_tokens_read_and_change_nothing() {
    const READER: &str = "fedcba9876543210";
    let config = NorthboundConfig {
        tokens: Tokens::new([TOKEN]).with_read_only([READER]),
        ..config()
    };
    let mut handle = None;
    let lab = Lab::with("single,1", Version::Of13, &["hub"], config, |northbound| {
        handle = Some(northbound.handle());
        northbound
    });
    let send = |token: &str, method: &str, path: &str, body: &str| {
        let header = format!("Authorization: Bearer {token}\r\n");
        lab.send(method, path, &header, body)
    };
    let is_marked = |response: &Response| response.headers.contains("urtica-access: read-only");
    for (method, path) in [
        ("GET", "/stats/switches"),
        ("HEAD", "/api/v1/switches"),
        ("GET", "/api/v1/switches/1/flows"),
        ("POST", "/stats/flow/1"),
        ("POST", "/stats/aggregateflow/1"),
    ] {
        let read = send(READER, method, path, "");
        assert_eq!(read.status, 200, "{method} {path}: {}", read.body);
        assert!(is_marked(&read), "{}", read.headers);
    }
    let flow = json!({"flow": "priority=7,in_port=1,actions=drop"}).to_string();
    for (method, path) in [
        ("POST", "/api/v1/switches/1/flows"),
        ("POST", "/stats/flowentry/add"),
        ("DELETE", "/stats/flowentry/clear/1"),
        ("PUT", "/v1.0/conf/switches/0000000000000001/key"),
        ("POST", "/nothing"),
    ] {
        let refused = send(READER, method, path, &flow);
        assert_eq!(refused.status, 403, "{method} {path}: {}", refused.body);
        assert!(refused.body.contains("may only read"), "{}", refused.body);
        assert!(refused.body.contains(path), "{}", refused.body);
        assert!(is_marked(&refused) && !refused.body.contains(READER));
    }
    let added = send(TOKEN, "POST", "/api/v1/switches/1/flows", &flow);
    assert_eq!(added.status, 204, "{}", added.body);
    assert!(!is_marked(&added), "{}", added.headers);
    // The tokens exchange their roles.
    let swapped = Tokens::new([READER]).with_read_only([TOKEN]);
    handle.unwrap().set_tokens(swapped).unwrap();
    assert_eq!(
        send(TOKEN, "POST", "/api/v1/switches/1/flows", &flow).status,
        403
    );
    assert_eq!(
        send(READER, "POST", "/api/v1/switches/1/flows", &flow).status,
        204
    );
}

#[test]
fn pages_of_other_origins_change_nothing_and_read_nothing() {
    let lab = lab(config());
    let own = format!("Origin: http://{}\r\n", lab.address);
    for (method, headers, status) in [
        ("GET", "Host: localhost\r\n", 200),
        ("GET", "Host: [::1]:8080\r\n", 200),
        ("GET", "Host: attacker.example:8080\r\n", 403),
        ("GET", "Host: 192.0.2.1\r\n", 403),
        ("DELETE", "Origin: https://attacker.example\r\n", 403),
        ("DELETE", "Sec-Fetch-Site: cross-site\r\n", 403),
        ("DELETE", own.as_str(), 200),
    ] {
        let path = if method == "GET" {
            "/stats/switches"
        } else {
            "/stats/flowentry/clear/1"
        };
        let response = lab.send(method, path, headers, "");
        assert_eq!(
            response.status, status,
            "{method} {headers}: {}",
            response.body
        );
    }
    let readable = lab.send(
        "GET",
        "/stats/switches",
        "Origin: https://attacker.example\r\n",
        "",
    );
    assert!(
        !readable
            .headers
            .to_lowercase()
            .contains("access-control-allow-origin")
    );
}

#[test]
fn bodies_headers_and_rates_are_bounded() {
    let lab = lab(NorthboundConfig {
        max_body_bytes: 1000,
        max_requests_per_second: 1,
        ..config()
    });
    let long = format!("{{\"dpid\": 1, \"x\": \"{}\"}}", "y".repeat(2000));
    assert_eq!(lab.post("/stats/flowentry/add", &long).status, 413);
    let header = format!("X-Long: {}\r\n", "y".repeat(100_000));
    assert_eq!(lab.send("GET", "/stats/switches", &header, "").status, 431);
    let many = "X-Many: y\r\n".repeat(200);
    assert_eq!(lab.send("GET", "/stats/switches", &many, "").status, 431);
    let statuses: Vec<_> = (0..40).map(|_| lab.get("/stats/switches").status).collect();
    assert!(
        statuses.contains(&200) && statuses.contains(&429),
        "{statuses:?}"
    );
}

#[test]
fn slow_senders_are_disconnected() {
    let lab = lab(NorthboundConfig {
        receive_timeout: Duration::from_millis(200),
        ..config()
    });
    for begun in ["", "GET /stats/switches HTTP/1.1\r\nHost:"] {
        let mut socket = TcpStream::connect(lab.address).unwrap();
        socket.set_read_timeout(Some(BOUND)).unwrap();
        socket.write_all(begun.as_bytes()).unwrap();
        // The other end closes it, with or without a response.
        socket.read_to_end(&mut Vec::new()).unwrap();
    }
    let mut socket = TcpStream::connect(lab.address).unwrap();
    socket.set_read_timeout(Some(BOUND)).unwrap();
    write!(
        socket,
        "POST /stats/flowentry/add HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 10\r\n\r\n{{"
    )
    .unwrap();
    assert_eq!(Response::read(&mut socket).status, 408);
}

#[test]
fn headers_have_the_same_bound_however_they_arrive() {
    let lab = lab(config());
    for (length, status) in [(32_000, 200), (33_000, 431), (40_000, 431), (100_000, 431)] {
        let header = format!("X-Long: {}\r\n", "y".repeat(length));
        let response = lab.send("GET", "/openapi.json", &header, "");
        assert_eq!(response.status, status, "{length}");
    }
}

/// Opens a connection and sends these bytes.
fn open(lab: &Lab, begun: &str) -> TcpStream {
    let mut socket = TcpStream::connect(lab.address).unwrap();
    socket.set_read_timeout(Some(BOUND)).unwrap();
    socket.write_all(begun.as_bytes()).unwrap();
    socket
}

#[test]
fn slow_connections_of_one_address_keep_no_client_out() {
    // The timeout is longer than the test, so that no connection is closed because of it.
    let lab = lab(NorthboundConfig {
        receive_timeout: BOUND * 10,
        ..config()
    });
    let begun = ["", "GET /stats/switches HTTP/1.1\r\nHost:"];
    let slow: Vec<_> = (0..600).map(|at| open(&lab, begun[at % 2])).collect();
    // Another connection from this address can be opened, too.
    assert_eq!(lab.json("/stats/switches"), json!([1]));
    // The oldest connections were closed for it; the newest are still open.
    let mut slow = slow.into_iter();
    let mut oldest = slow.next().unwrap();
    assert_eq!(oldest.read(&mut [0]).unwrap(), 0);
    let mut newest = slow.next_back().unwrap();
    write!(newest, " localhost\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(Response::read(&mut newest).status, 200);
}

#[test]
fn an_address_has_its_share_of_the_connections() {
    let lab = lab(NorthboundConfig {
        max_connections: 8,
        max_connections_per_address: 2,
        ..config()
    });
    let events = "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut watchers = [open(&lab, events), open(&lab, events)];
    for watcher in &mut watchers {
        // The request is served now.
        watcher.read_exact(&mut [0; 15]).unwrap();
    }
    let refused = lab.get("/stats/switches");
    assert_eq!(refused.status, 503, "{refused:?}");
    drop(watchers);
    wait("the slots are free again", || {
        lab.get("/stats/switches").status == 200
    });
}

/// Returns a client that does not read its response.
fn deaf(lab: &Lab) -> TcpStream {
    let mut socket = TcpStream::connect(lab.address).unwrap();
    socket.set_read_timeout(Some(BOUND)).unwrap();
    write!(
        socket,
        "GET /stats/flow/1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    )
    .unwrap();
    socket
}

#[test]
fn stalled_clients_do_not_block_others() {
    let lab = lab(NorthboundConfig {
        send_timeout: Duration::from_secs(3),
        // On a busy machine, it takes long to list so many entries.
        reply_timeout: Duration::from_secs(120),
        ..config()
    });
    // The list must not fit into the buffers of sockets.
    let network = lab.network();
    let entries = 40_000_u32;
    for cookie in 0..entries {
        let entry = urtica_wire::FlowMod {
            match_: Match::any()
                .eth_type(0x0800_u16)
                .ipv4_dst(std::net::Ipv4Addr::from_bits(cookie)),
            ..EntryOptions::PERMANENT.flow_mod()
        };
        let message = Message::FlowMod(entry);
        let id = urtica_wire::DatapathId(1);
        wait("there is room", || network.send(id, &message).is_ok());
    }
    let deaf: Vec<_> = (0..5).map(|_| deaf(&lab)).collect();
    let flows = lab.json("/stats/flow/1");
    let own = flows["1"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["priority"] != 0);
    assert_eq!(own.count(), entries as usize);
    drop(deaf);
}

#[test]
fn programs_add_paths_of_their_own() {
    let own = Router::new().route("/banned", get(async || "nobody"));
    let mut lab = Lab::with(
        "single,1",
        Version::Of13,
        &["hub"],
        config(),
        |northbound| northbound.merge(own),
    );
    assert_eq!(lab.get("/banned").body, "nobody");
    assert_eq!(
        lab.send("GET", "/banned", "Host: attacker.example\r\n", "")
            .status,
        403
    );
    assert_eq!(lab.json("/stats/switches"), json!([1]));
    lab.stop_controller();
    assert!(TcpStream::connect(lab.address).is_err());
}
