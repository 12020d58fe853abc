//! Prometheus scrapes the interface, and answers the queries of the dashboard.

use crate::lab::{BOUND, Lab, Response};
use crate::require;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use urtica_wire::Version;

const DASHBOARD: &str = include_str!("../../../../contrib/grafana/urtica.json");

/// A Prometheus process that scrapes one address every second, and is stopped when dropped.
struct Prometheus {
    process: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    fn scraping(target: SocketAddr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = folder.path().join("prometheus.yml");
        let text = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: urtica\n    static_configs: [{{targets: ['{target}']}}]\n"
        );
        std::fs::write(&settings, text).unwrap();
        let mut process = Command::new("prometheus")
            .arg(format!("--config.file={}", settings.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            .args(["--web.listen-address=127.0.0.1:0", "--log.format=json"])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            let line: Value = serde_json::from_str(&line.ok()?).ok()?;
            let is_it = line["msg"] == "Listening on";
            is_it
                .then(|| line["address"].as_str()?.parse().ok())
                .flatten()
        });
        // Its log must be read; otherwise it would block.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            address: address.expect("Prometheus says where it listens"),
            process,
            _folder: folder,
        }
    }

    /// Returns the result of a query.
    fn query(&self, query: &str) -> Result<Vec<Value>, Value> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let mut socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(BOUND)).unwrap();
        write!(
            socket,
            "GET /api/v1/query?query={encoded} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let response = Response::read(&mut socket);
        // Prometheus is still starting.
        if response.status == 503 {
            return Ok(Vec::new());
        }
        let answer = response.json();
        match answer["status"] == "success" {
            true => Ok(answer["data"]["result"]
                .as_array()
                .cloned()
                .unwrap_or_default()),
            false => Err(answer),
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the queries of all panels, for networks of any name and an interval of a minute.
fn queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    let queries = targets.map(|target| target["expr"].as_str().unwrap().to_owned());
    queries
        .map(|query| {
            query
                .replace("$__rate_interval", "1m")
                .replace("$dp_name", ".*")
        })
        .collect()
}

#[test]
fn the_dashboards_queries_find_something_in_a_real_scrape() {
    if !require::tool("prometheus") {
        return;
    }
    let lab = Lab::new("linear,2", Version::Of13, &["discovery", "hosts", "hub"]);
    let prometheus = Prometheus::scraping(lab.address);
    let mut waiting = queries();
    assert!(waiting.len() >= 10);
    let since = Instant::now();
    while !waiting.is_empty() {
        waiting.retain(|query| match prometheus.query(query) {
            Ok(found) => found.is_empty(),
            Err(refused) => panic!("{query}: {refused}"),
        });
        assert!(
            since.elapsed() < BOUND,
            "nothing is found by {waiting:?}\n{}",
            lab.get("/metrics").body
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(prometheus.query("up == 1").unwrap().len(), 1);
}
