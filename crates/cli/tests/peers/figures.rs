//! Tests that the measuring tools work, with runs too short for meaningful figures. Excludes measurements of other
//! programs, whose success is not ours to test (`make rivals`).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tempfile::TempDir;

use crate::process::run;
use crate::require;

const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools");
const OVS_BENCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/ovs_bench.py");

#[test]
fn the_tools_own_tests_pass() {
    if !require::all(&["python3"]) {
        return;
    }
    for tool in [
        "figures",
        "network-figures",
        "kernel-half-figures",
        "northbound-figures",
        "python-figures",
        "web-figures",
    ] {
        run(Command::new("python3")
            .args(["-m", "unittest", "discover"])
            .arg(Path::new(TOOLS).join(tool)));
    }
}

#[test]
#[ignore = "takes long: make nightly"]
fn figures_are_measured_and_written() {
    if !require::all(&["python3", "taskset", "valgrind"]) {
        return;
    }
    let _turn = turn();
    let folder = TempDir::new().expect("a temporary folder can be made");
    run(quick("figures")
        .args(["--rows", "1,5", "--out"])
        .arg(folder.path()));

    let (lines, rows) = lines_of(folder.path(), "figures");
    assert!(rows.starts_with(&["1".into(), "5".into()]), "{rows:?}");
    assert!(
        lines.iter().all(|line| line["figure"].as_f64() > Some(0.0)),
        "{lines:?}"
    );
}

#[test]
#[ignore = "takes long: make nightly"]
fn network_figures_are_measured_and_written() {
    if !require::all(&["python3", "taskset"]) {
        return;
    }
    let _turn = turn();
    let folder = TempDir::new().expect("a temporary folder can be made");
    run(quick("network-figures")
        .args(["--rows", "3,6,figure-20", "--out"])
        .arg(folder.path()));

    let (lines, rows) = lines_of(folder.path(), "network-figures");
    assert_eq!(rows[..5], ["3", "3", "3", "3", "6"]);
    assert!(
        lines.iter().all(|line| line["figure"].as_f64() > Some(0.0)),
        "{lines:?}"
    );
    let plot = folder.path().join("network-figures-shared-state.svg");
    let svg = fs::read_to_string(plot).expect("a plot is drawn");
    assert_eq!(svg.matches("<polyline points=").count(), 4, "{svg}");
}

#[test]
#[ignore = "takes long: make nightly"]
fn northbound_figures_are_measured_and_written() {
    if !require::all(&["python3", "taskset", "ovs-pki"]) {
        return;
    }
    let _turn = turn();
    let folder = TempDir::new().expect("a temporary folder can be made");
    run(quick("northbound-figures")
        .args(["--rows", "1,2,4", "--out"])
        .arg(folder.path()));

    let (lines, rows) = lines_of(folder.path(), "northbound-figures");
    assert_eq!(rows, ["1", "1", "2", "4", "4"]);
    assert!(
        lines
            .iter()
            .all(|line| line["figure"].as_f64() >= Some(0.0)),
        "{lines:?}"
    );
}

#[test]
#[ignore = "takes long: make nightly"]
fn discovery_is_measured_on_mininet() {
    let tools = ["python3", "taskset", "mn", "ip", "ovs-vswitchd", "unshare"];
    if !require::root_and(&tools) {
        return;
    }
    let _turn = turn();
    let folder = TempDir::new().expect("a temporary folder can be made");
    run(quick("network-figures")
        .args(["--rows", "4", "--out"])
        .arg(folder.path()));

    let (lines, rows) = lines_of(folder.path(), "network-figures");
    assert_eq!(rows, ["4"]);
    assert!(
        lines.iter().all(|line| line["figure"].as_f64() > Some(0.0)),
        "{lines:?}"
    );
}

#[test]
#[ignore = "takes long: make nightly"]
fn kernel_half_figures_are_measured_and_written() {
    if !require::root_and(&["python3", "taskset", "ip", "ss"]) {
        return;
    }
    let _turn = turn();
    let folder = TempDir::new().expect("a temporary folder can be made");
    run(quick("kernel-half-figures")
        .args(["--rows", "3,6,7,8,figure-4", "--out"])
        .arg(folder.path()));

    let (lines, mut rows) = lines_of(folder.path(), "kernel-half-figures");
    rows.dedup();
    assert_eq!(rows, ["3", "8", "6", "7", "figure-4"]);
    // A pipeline that the program does not support gets a message instead.
    for line in &lines {
        let is_refused = line["remarks"].to_string().contains("refused: ");
        assert!(is_refused || line["figure"].as_f64().is_some(), "{line}");
    }
    let held = lines.iter().find(|line| {
        line["what"] == "stopped for 1 s, `none`, 16 switches, ping-pong: replies lost"
    });
    assert_eq!(held.expect("there is this line")["figure"], 0);
    let plot = folder.path().join("kernel-half-figures-threads.svg");
    let svg = fs::read_to_string(plot).expect("a plot is drawn");
    assert!(svg.contains("<polyline points="), "{svg}");
}

#[test]
#[ignore = "takes long: make nightly"]
fn switch_figures_are_measured_and_written() {
    if !require::root_and(&["python3"]) {
        return;
    }
    let _turn = turn();
    let folder = TempDir::new().expect("a temporary folder can be made");
    let ovs_bench = stand_in_for_ovs_bench(folder.path());
    let mut command = quick("switch-figures");
    command
        .env("OVS_BENCH_CACHE", &ovs_bench)
        .args(["--ovs-bench", &ovs_bench, "--out"])
        .arg(folder.path())
        .arg("--sitting")
        .arg(folder.path().join("sitting.jsonl"));
    run(&mut command);

    let (lines, mut rows) = lines_of(folder.path(), "switch-figures");
    let share_of_plain = |line: &Value| {
        line["what"]
            .as_str()
            .is_some_and(|what| what.starts_with("share of packets"))
    };
    assert!(
        lines
            .iter()
            .all(|line| line["figure"].as_f64() > Some(0.0) || share_of_plain(line)),
        "{lines:?}"
    );
    rows.dedup();
    let expected = [
        "1", "2", "4", "5", "6", "7", "9", "10", "11", "12", "13", "14", "15",
    ];
    assert_eq!(rows, expected);
    let document =
        fs::read_to_string(folder.path().join("switch-figures.md")).expect("it is written");
    let measured_on = document.matches("\nMeasured on: ").count();
    assert_eq!(measured_on, expected.len(), "{document}");
    // Open vSwitch was given the entries of the rule set.
    let runs = fs::read_to_string(folder.path().join("sitting.jsonl")).expect("runs are kept");
    let rules = |line: &&str| line.contains("ovs_files.py") && line.contains("acl1-1k");
    let run_of_rules: Value =
        serde_json::from_str(runs.lines().find(rules).expect("a run")).expect("JSON");
    let entries = &run_of_rules["records"][0]["entries"];
    assert!(entries.as_u64() > Some(1000), "{run_of_rules}");
    let remarks = lines.iter().map(|line| line["remarks"].to_string());
    let remarks = remarks.collect::<String>();
    for remark in ["did not settle", "13,000 updates/s applied", "was beyond"] {
        assert!(remarks.contains(remark), "{remark}: {remarks}");
    }
    for plot in ["rate", "latency", "updates"] {
        let file = folder.path().join(format!("switch-figures-{plot}.svg"));
        let svg = fs::read_to_string(file).expect("a plot is written");
        assert!(svg.contains("<polyline points="), "{svg}");
    }

    // An interrupted sitting continues from its last result, and loses nothing.
    let sitting = folder.path().join("sitting.jsonl");
    let whole = fs::read_to_string(&sitting).expect("runs are kept");
    fs::write(&sitting, &whole[..whole.len() - 10]).expect("it can be cut");
    run(command.arg("--continue"));
    let again = fs::read_to_string(&sitting).expect("runs are kept");
    assert_eq!(again.lines().count(), whole.lines().count());
    let up_to_last = |text: &str| {
        text.trim_end()
            .rsplit_once('\n')
            .map(|(rest, _)| rest.to_owned())
    };
    assert_eq!(up_to_last(&again), up_to_last(&whole));
}

/// Serialises these tests, all of which pin programs to the same two cores.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the command of a tool, for tiny runs of the tested program.
fn quick(tool: &str) -> Command {
    let mut command = Command::new("python3");
    command.arg(Path::new(TOOLS).join(tool)).args([
        "--quick",
        "--program",
        env!("CARGO_BIN_EXE_urtica"),
    ]);
    if matches!(tool, "figures" | "network-figures" | "kernel-half-figures") {
        command.arg("--without-rivals");
    }
    command
}

/// Returns the lines of the table that a tool wrote as JSON, and the row of each.
fn lines_of(folder: &Path, name: &str) -> (Vec<Value>, Vec<String>) {
    let table =
        fs::read_to_string(folder.join(format!("{name}.md"))).expect("a document is written");
    assert!(
        table.contains("| row | what | target | reached |"),
        "{table}"
    );
    let json = fs::read(folder.join(format!("{name}.json"))).expect("JSON is written");
    let figures: Value = serde_json::from_slice(&json).expect("it is JSON");
    let lines = figures["lines"].as_array().expect("it has lines").clone();
    let row = |line: &Value| line["row"].as_str().expect("a line has a row").to_owned();
    let rows = lines.iter().map(row).collect();
    (lines, rows)
}

/// Creates a folder that the tool takes for an installed ovs-bench.
fn stand_in_for_ovs_bench(folder: &Path) -> String {
    let place = folder.join("ovs-bench");
    fs::create_dir(&place).expect("a folder can be made");
    for program in ["run", "limit", "bench.py", "pipelines.py"] {
        let file = place.join(program);
        fs::copy(OVS_BENCH, &file).expect("the stand-in can be copied");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it can be run");
    }
    fs::write(place.join("librte_net_flowgen.so"), "").expect("a file can be made");
    place.to_str().expect("the path is text").to_owned()
}
