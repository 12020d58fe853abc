//! Tests of `urtica bench switch`.

use super::{stderr, stdout, urtica};
use serde_json::Value;

#[test]
#[ignore = "takes long: make nightly"]
fn each_form_of_the_switch_forwards_rule_sets_and_pipelines() {
    let forms = [
        "switch",
        "limit",
        "pipeline",
        "interpreted",
        "plain",
        "bare",
    ];
    let rates = bench_switch(&[
        "--pipeline",
        "gateway,ipc2-1k",
        "--flows",
        "100",
        "--form",
        &forms.join(","),
    ]);
    let told: Vec<_> = rates
        .iter()
        .map(|rate| rate["form"].as_str().unwrap())
        .collect();
    assert_eq!(told, [forms, forms].concat());
    for rate in &rates {
        assert_eq!(rate["forwarded_share"], 1.0, "{rate}");
        assert_eq!(
            rate["plain_share"] == 1.0,
            rate["form"] == "plain",
            "{rate}"
        );
        assert_eq!(
            rate["loading"] == "one-by-one",
            rate.get("open_s").is_some(),
            "{rate}"
        );
    }
}

#[test]
fn the_switch_is_measured_in_its_default_mode() {
    let rates = bench_switch(&["--pipeline", "port", "--flows", "1", "--latency"]);
    let forms: Vec<_> = rates.iter().map(|rate| &rate["form"]).collect();
    assert_eq!(forms, ["switch", "limit"]);
}

#[test]
fn every_packet_of_a_rule_set_is_checked_on_request() {
    let flags = [
        "--pipeline",
        "acl1-1k",
        "--flows",
        "2000",
        "--trace",
        "zipf",
        "--check-all",
        "--form",
        "switch,pipeline",
    ];
    for loading in ["one-by-one", "together"] {
        let rates = bench_switch(&[&flags[..], &["--loading", loading]].concat());
        assert_eq!(
            (&rates[0]["trace"], &rates[0]["loading"]),
            (&"zipf".into(), &loading.into())
        );
        assert!(rates[0]["entries"].as_u64() > Some(1000));
    }
}

#[test]
fn written_rule_sets_are_measured_again() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let write = [
        "switch",
        "--pipeline",
        "fw2-1k",
        "--flows",
        "500",
        "--trace",
        "zipf",
        "--write",
        place,
    ];
    let output = urtica(&write).output().unwrap();
    let [flows, pcap] =
        ["fw2-1k.flows", "fw2-1k-500-zipf.pcap"].map(|name| format!("{place}/{name}"));
    assert_eq!(
        stdout(&output),
        format!("{flows}\n{pcap}\n"),
        "{}",
        stderr(&output)
    );
    let rates = bench_switch(&["--flows-file", &flows, "--pcap", &pcap]);
    assert_eq!(
        (&rates[0]["pipeline"], &rates[0]["flows"]),
        (&"fw2-1k".into(), &500.into())
    );
    assert_eq!(rates[0]["forwarded_share"], 1.0);
    assert!(rates[0].get("trace").is_none());
}

#[test]
fn files_may_drop_flood_meter_and_group() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let write = [
        "switch",
        "--pipeline",
        "l3",
        "--flows",
        "64",
        "--write",
        place,
    ];
    assert!(urtica(&write).output().unwrap().status.success());
    let flows = format!("{place}/own.flows");
    let entries = "\
# every kind of entry that is not compiled, and one that is
meter=1,kbps,bands=type=drop,rate=100000000
group_id=1,type=all,bucket=output:2,bucket=output:4
priority=4,udp,nw_dst=0.0.0.0/1,nw_src=10.0.0.0/9,actions=group:1
priority=3,udp,nw_dst=0.0.0.0/1,actions=meter:1,output:5
priority=2,udp,nw_src=10.0.0.0/9,actions=drop
priority=1,actions=flood
";
    std::fs::write(&flows, entries).unwrap();
    let pcap = format!("{place}/l3-64.pcap");
    let rates = bench_switch(&[
        "--flows-file",
        &flows,
        "--pcap",
        &pcap,
        "--form",
        "switch,pipeline,plain",
    ]);
    assert_eq!(rates.len(), 3);
    for rate in &rates {
        assert_eq!(
            (&rate["pipeline"], &rate["entries"]),
            (&"own".into(), &4.into())
        );
    }
}

/// Returns the last of the cores that this process may use.
fn core() -> String {
    let cores = rustix::thread::sched_getaffinity(None).unwrap();
    let last = (0..rustix::thread::CpuSet::MAX_CPU).rfind(|&core| cores.is_set(core));
    last.unwrap().to_string()
}

/// Runs the switch's benchmark with tiny sizes; returns its JSON lines.
fn bench_switch(flags: &[&str]) -> Vec<Value> {
    let few = [
        "switch",
        "--readings",
        "2",
        "--seconds",
        "0.01",
        "--json",
        "-",
    ];
    let output = urtica(&[&few[..], &["--core", &core()], flags].concat())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("Mpps") || stderr(&output).contains("OpenFlow s"));
    stdout(&output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
#[ignore = "takes long: make nightly"]
fn every_pipeline_forwards_all_packets_in_every_form() {
    let records = bench_switch(&[
        "--pipeline",
        "all",
        "--flows",
        "40",
        "--form",
        "plain,limit",
    ]);
    let points: Vec<_> = records
        .iter()
        .map(|record| ["pipeline", "form"].map(|name| record[name].as_str().unwrap()))
        .collect();
    let pipelines = [
        "port",
        "l2-1k",
        "l2-100k",
        "l3",
        "lb",
        "gateway",
        "gateway-down",
        "gateway-groups",
        "gateway-groups-meters",
        "mobile",
        "mobile-groups",
        "mobile-groups-meters",
    ];
    let expected = pipelines
        .iter()
        .flat_map(|&name| [[name, "plain"], [name, "limit"]]);
    assert_eq!(points, expected.collect::<Vec<_>>());
    for record in &records {
        assert_eq!(
            (&record["kind"], &record["forwarded_share"]),
            (&"rate".into(), &1.0.into())
        );
        let [min, mpps, max] =
            ["mpps_min", "mpps", "mpps_max"].map(|name| record[name].as_f64().unwrap());
        assert!(min <= mpps && mpps <= max, "{record}");
        assert_eq!(record["readings"].as_array().unwrap().len(), 2);
        let has_cycles = record["cycles_per_packet"].is_number() && record["tsc_hz"].is_number();
        assert_eq!(has_cycles, cfg!(target_arch = "x86_64"), "{record}");
    }
}

#[test]
fn routes_are_updated_while_packets_are_forwarded() {
    let records = bench_switch(&[
        "--pipeline",
        "l3,gateway",
        "--flows",
        "40",
        "--updates",
        "500",
        "--form",
        "switch,limit",
    ]);
    let updated: Vec<_> = records
        .iter()
        .map(|record| record.get("updates_per_s_asked").is_some())
        .collect();
    // Each pipeline without updates, then with updates; then the limit, which has no routes.
    assert_eq!(updated, [false, true, false, false, true, false]);
    for record in records
        .iter()
        .filter(|record| record.get("mpps_ratio").is_some())
    {
        assert_eq!(record["updates_per_s_asked"], 500);
        assert!(record["mpps_ratio"].as_f64().unwrap() > 0.0);
        assert!(record["forwarded_share"].as_f64().unwrap() > 0.0);
        assert!(record["updates_per_s"].is_number());
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn bursts_are_timed() {
    let records = bench_switch(&["--pipeline", "port", "--flows", "1", "--latency"]);
    for record in &records {
        let [p50, p99, p999] = ["p50", "p99", "p999"]
            .map(|quantile| record[format!("burst_cycles_{quantile}")].as_u64().unwrap());
        assert!(0 < p50 && p50 <= p99 && p99 <= p999, "{record}");
    }
}

#[test]
fn the_loading_of_entries_is_timed() {
    let records = bench_switch(&["--load", "300"]);
    assert_eq!(records.len(), 1);
    assert_eq!(
        (&records[0]["kind"], &records[0]["entries"]),
        (&"load".into(), &300.into())
    );
    assert!(records[0]["openflow_s_min"].as_f64().unwrap() > 0.0);
}

#[test]
fn workloads_are_written_for_other_switches() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let flags = [
        "switch",
        "--pipeline",
        "lb,port",
        "--flows",
        "3",
        "--write",
        path,
    ];
    let output = urtica(&flags).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let sizes: Vec<_> = stdout(&output)
        .lines()
        .map(|line| {
            let name = line.rsplit('/').next().unwrap().to_owned();
            (name, std::fs::metadata(line).unwrap().len())
        })
        .collect();
    // A capture's header has 24 bytes, and each packet a header of 16 and 60 of its own.
    let port = "table=0,priority=10,in_port=1,actions=output:2\n".len() as u64;
    assert_eq!(
        sizes[1..],
        [
            ("lb-3.pcap".into(), 252),
            ("port.flows".into(), port),
            ("port-3.pcap".into(), 252)
        ]
    );
    assert_eq!(sizes[0].0, "lb.flows");
}
