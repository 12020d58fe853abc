//! Tests of requests to an emulated network: those that reach its thread, and those that are refused before.

use crate::lab::{Lab, config};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use urtica_northbound::{
    Emulated, EmulatedHost, EmulatedNetwork, EmulatedTraffic, Emulation, EmulationError,
    EmulationRequests, NorthboundConfig, PingResults, Tokens,
};
use urtica_wire::{DatapathId, Version};

/// A network that records its requests.
#[derive(Default)]
struct Noted(Vec<String>);

impl EmulatedNetwork for Noted {
    fn describe(&mut self) -> Result<Emulated, EmulationError> {
        let host = EmulatedHost {
            name: "h1".into(),
            mac: "00:00:00:00:00:01".into(),
            ipv4: "10.0.0.1".into(),
        };
        Ok(Emulated {
            hosts: vec![host],
            ..Emulated::default()
        })
    }

    fn set_link(&mut self, number: usize, up: bool) -> Result<(), EmulationError> {
        self.0.push(format!("link {number} {up}"));
        Ok(())
    }

    fn set_switch(&mut self, id: DatapathId, runs: bool) -> Result<(), EmulationError> {
        self.0.push(format!("switch {id} {runs}"));
        Ok(())
    }

    fn ping(&mut self, from: &str, to: &str) -> Result<PingResults, EmulationError> {
        self.0.push(format!("{from} pings {to}"));
        Err(EmulationError::Unknown("there is no such host".into()))
    }

    fn ping_all(&mut self) -> Result<PingResults, EmulationError> {
        Err(EmulationError::Refused("there are too many hosts".into()))
    }

    fn start_traffic(&mut self, traffic: &EmulatedTraffic) -> Result<(), EmulationError> {
        self.0.push(format!("{traffic:?}"));
        Ok(())
    }
}

/// Returns an interface with an emulated network, and the queue of requests to it.
fn lab(config: NorthboundConfig) -> (Lab, EmulationRequests) {
    let (emulation, requests) = Emulation::new();
    let set_up = |northbound: urtica_northbound::Northbound| northbound.emulation(emulation);
    let lab = Lab::with("single,1", Version::Of13, &["hub"], config, set_up);
    (lab, requests)
}

/// Serves requests while `act` runs. Returns the requests that the network recorded.
fn served(mut requests: EmulationRequests, act: impl FnOnce()) -> Vec<String> {
    let is_over = Arc::new(AtomicBool::new(false));
    let server = thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let mut network = Noted::default();
            while !is_over.load(Ordering::Relaxed) {
                requests.serve(&mut network);
                thread::sleep(Duration::from_millis(1));
            }
            network.0
        }
    });
    act();
    is_over.store(true, Ordering::Relaxed);
    server.join().unwrap()
}

#[test]
fn requests_are_carried_out_by_the_network() {
    let (lab, requests) = lab(config());
    let noted = served(requests, || {
        let parts = lab.get("/api/v1/emulation");
        let expected = r#"{"switches":[],"hosts":[{"name":"h1","mac":"00:00:00:00:00:01","ipv4":"10.0.0.1"}],"links":[]}"#;
        assert_eq!((parts.status, &parts.body[..]), (200, expected));
        for (path, body, status, told) in [
            ("links/3", r#"{"up": false}"#, 204, ""),
            ("switches/0x10", r#"{"running": true}"#, 204, ""),
            (
                "pings",
                r#"{"from": "h1", "to": "h2"}"#,
                404,
                "no such host",
            ),
            ("pings", "{}", 409, "too many hosts"),
            ("traffic", r#"{"from": "h1", "to": "h2"}"#, 204, ""),
        ] {
            let response = lab.post(&format!("/api/v1/emulation/{path}"), body);
            assert_eq!(response.status, status, "{path}: {}", response.body);
            assert!(response.body.contains(told), "{}", response.body);
        }
    });
    let traffic = r#"EmulatedTraffic { from: "h1", to: "h2", mbit_per_s: 10, time: 30s }"#;
    assert_eq!(
        noted,
        [
            "link 3 false",
            "switch 0000000000000010 true",
            "h1 pings h2",
            traffic
        ]
    );
}

#[test]
fn invalid_requests_do_not_reach_the_network() {
    let (lab, requests) = lab(config());
    let noted = served(requests, || {
        for (path, body, expected) in [
            (
                "links/first",
                r#"{"up": true}"#,
                "a link's position in GET /api/v1/emulation",
            ),
            ("links/1", "{}", "up is missing: expected true or false"),
            ("links/1", r#"{"up": "no"}"#, "expected true or false"),
            (
                "links/1",
                r#"{"up": true, "upp": 1}"#,
                "there is no field upp",
            ),
            (
                "switches/1",
                r#"{"runing": false}"#,
                "did you mean 'running'?",
            ),
            ("switches/x", r#"{"running": false}"#, "expected"),
            ("pings", r#"{"from": "h1"}"#, "to is missing"),
            (
                "pings",
                r#"{"from": 1, "to": "h2"}"#,
                "from is 1: expected the name of a host",
            ),
            ("traffic", r#"{"from": "h1"}"#, "to is missing"),
            (
                "traffic",
                r#"{"from": "h1", "to": "h2", "mbit_per_s": 0}"#,
                "from 1 to 100",
            ),
            (
                "traffic",
                r#"{"from": "h1", "to": "h2", "seconds": 601}"#,
                "from 1 to 600",
            ),
            ("traffic", "[]", "an object"),
        ] {
            let response = lab.post(&format!("/api/v1/emulation/{path}"), body);
            assert_eq!(response.status, 400, "{path} {body}: {}", response.body);
            assert!(response.body.contains(expected), "{}", response.body);
        }
    });
    assert_eq!(noted, [""; 0]);
}

#[test]
fn real_networks_refuse_emulation_requests() {
    let lab = Lab::new("single,1", Version::Of13, &["hub"]);
    let parts = lab.get("/api/v1/emulation");
    let expected = r#"{"switches":[],"hosts":[],"links":[]}"#;
    assert_eq!((parts.status, &parts.body[..]), (200, expected));
    for (path, body) in [
        ("links/0", r#"{"up": false}"#),
        ("switches/1", r#"{"running": false}"#),
        ("pings", ""),
        ("traffic", r#"{"from": "h1", "to": "h2"}"#),
    ] {
        let response = lab.post(&format!("/api/v1/emulation/{path}"), body);
        assert_eq!(response.status, 409, "{path}: {}", response.body);
        assert!(response.body.contains("not emulated"), "{}", response.body);
    }
}

#[test]
fn busy_networks_refuse_excess_requests_and_run_none_late() {
    let config = NorthboundConfig {
        reply_timeout: Duration::from_millis(50),
        ..config()
    };
    let (lab, mut requests) = lab(config);
    let response = lab.post("/api/v1/emulation/links/0", r#"{"up": false}"#);
    assert_eq!(response.status, 504, "{}", response.body);
    assert!(response.body.contains("within 100ms"), "{}", response.body);
    // One request is waiting although its client has disconnected.
    let statuses: Vec<u16> = (0..16)
        .map(|_| lab.get("/api/v1/emulation").status)
        .collect();
    assert_eq!(statuses, [&[504; 15][..], &[503]].concat());
    let mut network = Noted::default();
    requests.serve(&mut network);
    assert_eq!(network.0, [""; 0]);
    drop(requests);
    let ended = lab.get("/api/v1/emulation");
    assert_eq!(ended.status, 503, "{}", ended.body);
}

#[test]
fn an_ending_network_answers_pending_requests() {
    let (lab, requests) = lab(config());
    let response = thread::scope(|scope| {
        let response = scope.spawn(|| lab.get("/api/v1/emulation"));
        // The request is answered immediately, whether it is already waiting or arrives later.
        thread::sleep(Duration::from_millis(20));
        drop(requests);
        response.join().unwrap()
    });
    assert_eq!(response.status, 503, "{}", response.body);
    assert!(response.body.contains("has ended"), "{}", response.body);
}

#[test]
fn a_token_that_may_only_read_changes_nothing() {
    let config = NorthboundConfig {
        tokens: Tokens::default().with_read_only(["0123456789abcdef"]),
        ..config()
    };
    let (lab, requests) = lab(config);
    let token = "Authorization: Bearer 0123456789abcdef\r\n";
    let noted = served(requests, || {
        let parts = lab.send("GET", "/api/v1/emulation", token, "");
        assert_eq!(parts.status, 200, "{}", parts.body);
        let cut = lab.send(
            "POST",
            "/api/v1/emulation/links/0",
            token,
            r#"{"up": false}"#,
        );
        assert_eq!(cut.status, 403, "{}", cut.body);
    });
    assert_eq!(noted, [""; 0]);
}
