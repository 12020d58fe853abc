//! What Prometheus scrapes.

use crate::lab::{Lab, wait};
use urtica_wire::Version;

/// The value of the row that begins like this.
fn value(lab: &Lab, row: &str) -> Option<f64> {
    let page = lab.get("/metrics").body;
    let line = page.lines().find(|line| line.starts_with(row))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

#[test]
fn counters_gauges_and_histograms_are_told() {
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
    let response = lab.get("/metrics");
    assert!(
        response.headers.contains("application/openmetrics-text"),
        "{}",
        response.headers
    );
    assert!(response.body.ends_with("# EOF\n"));
    for line in response.body.lines().filter(|line| !line.starts_with('#')) {
        assert!(line.starts_with("urtica_"), "{line}");
    }
}
