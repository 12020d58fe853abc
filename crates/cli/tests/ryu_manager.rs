//! Tests of `urtica ryu-manager`: its search for an interpreter, and its messages without one. The interpreters are
//! shell scripts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Writes an interpreter whose check ends with `status`; other runs print its arguments.
fn interpreter(folder: &Path, status: i32) -> PathBuf {
    let file = folder.join("python3");
    let script = format!("#!/bin/sh\nif [ \"$1\" = -c ]; then exit {status}; fi\necho \"$@\"\n");
    fs::write(&file, script).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

fn ryu_manager(arguments: &[&str], environment: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_urtica"));
    command
        .arg("ryu-manager")
        .args(arguments)
        .env_remove("VIRTUAL_ENV")
        .stdin(Stdio::null());
    if let Some(folder) = environment {
        command.env("VIRTUAL_ENV", folder);
    }
    command.output().expect("the program starts")
}

fn refusal(arguments: &[&str]) -> String {
    let output = ryu_manager(arguments, None);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn options_and_programs_reach_the_package() {
    let folder = tempfile::tempdir().unwrap();
    let python = interpreter(folder.path(), 0);
    let python = python.to_str().unwrap();
    let arguments = ["--verbose", "--ofp-tcp-listen-port", "7", "a.py", "--x=1"];
    let output = ryu_manager(&[&["--python", python], &arguments[..]].concat(), None);
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        told,
        "-m urtica_ryu --verbose --ofp-tcp-listen-port 7 a.py --x=1\n"
    );
    assert!(output.status.success());
}

#[test]
fn the_interpreter_of_the_virtual_environment_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join("bin");
    fs::create_dir(&programs).unwrap();
    interpreter(&programs, 0);
    let output = ryu_manager(&["a.py"], Some(folder.path()));
    assert_eq!(output.stdout, b"-m urtica_ryu a.py\n");
}

#[test]
fn a_missing_package_is_reported_with_the_command_that_installs_it() {
    let folder = tempfile::tempdir().unwrap();
    let python = interpreter(folder.path(), 4);
    let python = python.to_str().unwrap();
    let text = refusal(&["--python", python, "a.py"]);
    assert!(
        text.contains("the package urtica-ryu is not installed for"),
        "{text}"
    );
    assert!(
        text.contains(&format!(
            "{python} -m pip install target/wheels/urtica*.whl"
        )),
        "{text}"
    );
}

#[test]
fn old_and_missing_interpreters_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let python = interpreter(folder.path(), 3);
    let text = refusal(&["--python", python.to_str().unwrap(), "a.py"]);
    assert!(text.contains("is older than Python 3.10"), "{text}");
    let missing = folder.path().join("nonsense");
    let text = refusal(&["--python", missing.to_str().unwrap(), "a.py"]);
    assert!(text.contains("cannot run the Python interpreter"), "{text}");
    assert!(text.contains("No such file"), "{text}");
}
