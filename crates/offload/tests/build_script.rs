//! The build script's decision: without a suitable clang, the crate is built without the programs for the kernel, and the
//! script reports why. The script is compiled and run here like cargo does it, in other environments.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The compiled script, in a folder that is deleted at the end.
struct Script {
    folder: tempfile::TempDir,
}

impl Script {
    fn compile() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(rustc)
            .args(["--edition", "2024", "-o"])
            .arg(folder.path().join("script"))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs"))
            .output()
            .expect("rustc can be run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        Self { folder }
    }

    /// Runs the script with the feature, and with only these variables.
    fn run(&self, variables: &[(&str, &Path)]) -> Output {
        Command::new(self.folder.path().join("script"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env_clear()
            .env("OUT_DIR", self.folder.path())
            .env("CARGO_FEATURE_LIBBPF", "1")
            .env("DEP_BPF_INCLUDE", self.folder.path())
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    /// Writes a compiler that prints this message, and fails.
    fn compiler(&self, says: &str) -> PathBuf {
        let path = self.folder.path().join("clang");
        fs::write(&path, format!("#!/bin/sh\necho '{says}' >&2\nexit 1\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

/// Checks that the programs are left out for this reason, with a warning if they were requested.
fn check_left_out(output: &Output, reason: &str, is_wanted: bool) {
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "the build goes on: {said}");
    let lines: Vec<_> = said.lines().collect();
    assert!(
        lines.contains(&"cargo::rustc-cfg=without_programs"),
        "{said}"
    );
    let told = format!("cargo::rustc-env=URTICA_WITHOUT_PROGRAMS={reason}");
    assert!(lines.contains(&&*told), "{said}");
    let warning = format!("cargo::warning=the kernel half is left out: {reason}");
    assert_eq!(lines.contains(&&*warning), is_wanted, "{said}");
}

#[test]
fn without_clang_the_programs_are_left_out() {
    let script = Script::compile();
    let absent = Path::new("/nonexistent/clang");
    let reason = "/nonexistent/clang cannot be run (No such file or directory (os error 2))";
    check_left_out(&script.run(&[("CLANG", absent)]), reason, true);
    // This system has no clang.
    let empty = tempfile::tempdir().unwrap();
    let reason = "clang cannot be run (No such file or directory (os error 2))";
    check_left_out(&script.run(&[("PATH", empty.path())]), reason, true);
}

#[test]
fn a_clang_without_bpf_is_no_suitable_one() {
    let script = Script::compile();
    let clang = script.compiler(
        "error: unable to create target: no available targets are compatible with triple \"bpf\"",
    );
    let reason = format!("{} cannot compile for BPF", clang.display());
    check_left_out(&script.run(&[("CLANG", &clang)]), &reason, true);
}

#[test]
fn without_the_feature_nothing_is_compiled() {
    let script = Script::compile();
    let output = Command::new(script.folder.path().join("script"))
        .env_clear()
        .output()
        .unwrap();
    let reason = "the feature kernel-half is not enabled: build with --features kernel-half";
    check_left_out(&output, reason, false);
}

/// A mistake of our own ends the build instead of leaving the programs out silently.
#[test]
fn a_clang_that_refuses_our_source_ends_the_build() {
    let script = Script::compile();
    let clang = script.compiler("bpf/l3.bpf.c:7:1: error: expected expression");
    let output = script.run(&[("CLANG", &clang)]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("refuses bpf/learning_switch.bpf.c; see above"),
        "{said}"
    );
    assert!(said.contains("expected expression"), "{said}");
}
