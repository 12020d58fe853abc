//! Compares the golden messages of the wire crate with messages from os-ken, and with tshark's dissection.

use std::fs::File;
use std::process::Command;

use crate::process::run;
use crate::require;

const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin/python");
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/vectors");
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/tests/vectors");

#[test]
fn golden_messages_equal_oskens() {
    if require::all(&[PYTHON]) {
        run(Command::new(PYTHON)
            .arg(format!("{SCRIPTS}/osken_vectors.py"))
            .arg("--check"));
    }
}

#[test]
fn recorded_requests_and_answers_equal_oskens() {
    if require::all(&[PYTHON]) {
        run(Command::new(PYTHON)
            .arg(format!("{SCRIPTS}/osken_ofctl.py"))
            .arg("--check"));
    }
}

#[test]
fn osken_reads_golden_messages() {
    if require::all(&[PYTHON]) {
        check_golden_messages(PYTHON, "osken_check.py");
    }
}

#[test]
fn tshark_dissects_golden_messages() {
    if require::all(&["tshark", "python3"]) {
        check_golden_messages("python3", "tshark_check.py");
    }
}

fn check_golden_messages(python: &str, script: &str) {
    for version in ["of10", "of13"] {
        let messages = File::open(format!("{GOLDEN}/{version}.jsonl"))
            .expect("golden messages are in the repository");
        let verdicts = run(Command::new(python)
            .arg(format!("{SCRIPTS}/{script}"))
            .stdin(messages));
        assert!(
            verdicts.lines().count() > 100,
            "{script} checked only this of {version}:\n{verdicts}"
        );
    }
}
