//! `urtica demo`, the README's first command, in short.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn demo(report: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_urtica"))
        .args(["demo", "--seconds", "1", "--switches", "2", "--report"])
        .arg(report)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn every_answer_is_right_and_the_report_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("demo.html");
    let output = demo(&report);
    let (told, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{told}{errors}");
    assert_eq!(
        told.matches("answers checked: all right").count(),
        2,
        "{told}"
    );
    assert!(told.contains("the bottleneck"), "{told}");
    assert!(told.contains("ovs-vsctl set-controller"), "{told}");
    assert_eq!(errors, "");
    let page = std::fs::read_to_string(report).unwrap();
    assert!(page.contains("2 switches against tcp:127.0.0.1:"));
}

#[test]
fn a_report_that_cannot_be_written_is_a_sentence_and_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let output = demo(&directory.path().join("missing").join("demo.html"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors.starts_with("urtica demo: cannot write ") && errors.contains("demo.html"),
        "{errors}"
    );
}
