//! The measuring tool measures, in a form too short for its figures to mean anything.

use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::process::run;
use crate::require;

const TOOL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/figures");

#[test]
fn figures_are_measured_and_written() {
    if !require::all(&["python3", "taskset", "valgrind"]) {
        return;
    }
    let folder = TempDir::new().expect("a temporary folder can be made");
    run(Command::new("python3")
        .args([TOOL, "--quick", "--rows", "1,5", "--program"])
        .arg(env!("CARGO_BIN_EXE_urtica"))
        .arg("--out")
        .arg(folder.path()));

    let table = fs::read_to_string(folder.path().join("figures.md")).expect("a table is written");
    assert!(
        table.contains("| row | what | target | reached |"),
        "{table}"
    );
    let json = fs::read(folder.path().join("figures.json")).expect("JSON is written");
    let figures: Value = serde_json::from_slice(&json).expect("it is JSON");
    let lines = figures["lines"].as_array().expect("it has lines");
    let rows: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["row"].as_str())
        .collect();
    assert!(rows.starts_with(&["1", "5"]), "{rows:?}");
    assert!(
        lines.iter().all(|line| line["figure"].as_f64() > Some(0.0)),
        "{lines:?}"
    );
}
