//! The page for Prometheus.

use crate::lab::{Lab, wait};
use crate::require;
use std::io::Write;
use std::process::{Command, Stdio};
use urtica_wire::Version;

/// Returns the value of the row that starts with `row`.
fn value(lab: &Lab, row: &str) -> Option<f64> {
    let page = lab.get("/metrics").body;
    let line = page.lines().find(|line| line.starts_with(row))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

#[test]
fn exports_counters_gauges_and_histograms() {
    let lab = Lab::new("linear,2", Version::Of13, &["discovery", "hosts", "hub"]);
    let s1 = "dp_id=\"0000000000000001\",dp_name=\"0000000000000001\"";
    wait("packets are counted", || {
        let received = value(
            &lab,
            &format!("urtica_port_received_packets_total{{{s1},port=\"1\"}}"),
        );
        let packet_ins = value(&lab, &format!("urtica_switch_packet_ins_total{{{s1}}}"));
        let wakeups = value(
            &lab,
            "urtica_shard_wakeup_duration_seconds_count{shard=\"0\"}",
        );
        [received, packet_ins, wakeups]
            .iter()
            .all(|count| count.is_some_and(|count| count > 0.0))
    });
    wait("packet-ins are timed in each program", || {
        ["discovery", "hub"].iter().all(|program| {
            let row = format!("urtica_packet_in_duration_seconds_count{{program=\"{program}\"}}");
            value(&lab, &row).is_some_and(|count| count > 0.0)
        })
    });
    assert_eq!(value(&lab, "urtica_switches"), Some(2.0));
    for waiting in ["reply", "received"] {
        let row = format!("urtica_switch_waiting_{waiting}_bytes{{{s1}}}");
        assert!(value(&lab, &row).is_some(), "{row}");
    }
    assert!(value(&lab, "urtica_shard_waiting_commands{shard=\"0\"}").is_some());
    assert!(value(&lab, "urtica_start_time_seconds").is_some_and(|time| time > 1.7e9));
    assert_eq!(
        value(&lab, &format!("urtica_switch_role{{{s1},role=\"equal\"}}")),
        Some(1.0)
    );
    assert_eq!(
        value(&lab, &format!("urtica_switch_queued_bytes{{{s1}}}")),
        Some(0.0)
    );
    assert_eq!(
        value(
            &lab,
            &format!("urtica_port_up{{{s1},port=\"1\",port_name=\"s1-eth1\"}}")
        ),
        Some(1.0)
    );
    for row in [
        "switch_port_counters_overdue",
        "switch_port_counters_age_seconds",
    ] {
        assert!(
            value(&lab, &format!("urtica_{row}{{{s1}}}")).is_some(),
            "{row}"
        );
    }
    let response = lab.get("/metrics");
    for line in response.body.lines().filter(|line| !line.starts_with('#')) {
        assert!(line.starts_with("urtica_"), "{line}");
    }
}

#[test]
fn clients_get_the_format_that_they_accept() {
    let lab = Lab::new("single,1", Version::Of13, &["hub"]);
    let response = lab.get("/metrics");
    assert!(
        response.headers.contains("text/plain; version=0.0.4"),
        "{}",
        response.headers
    );
    assert!(!response.body.contains("# EOF"));
    let accept = "Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2\r\n";
    let response = lab.send("GET", "/metrics", accept, "");
    assert!(
        response.headers.contains("application/openmetrics-text"),
        "{}",
        response.headers
    );
    assert!(response.body.ends_with("# EOF\n"));
}

#[test]
fn promtool_finds_no_fault_in_the_page() {
    if !require::tool("promtool") {
        return;
    }
    let lab = Lab::new("linear,2", Version::Of13, &["discovery", "hosts", "hub"]);
    let page = lab.get("/metrics").body;
    let mut promtool = Command::new("promtool");
    let promtool = promtool.args(["check", "metrics"]).stdin(Stdio::piped());
    let mut promtool = promtool
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = promtool.stdin.take().unwrap();
    input.write_all(page.as_bytes()).unwrap();
    drop(input);
    let output = promtool.wait_with_output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && complaints.is_empty(),
        "{complaints}\n{page}"
    );
}
