//! Tests of each reason why there may be no kernel half.

use super::*;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::fs;

#[test]
fn a_release_begins_with_its_version() {
    assert_eq!(version_of("6.18.44-amd64"), Some((6, 18)));
    assert_eq!(version_of("6.6"), Some((6, 6)));
    assert_eq!(version_of("unknown"), None);
    assert!(version_of("5.15.0").is_some_and(|version| version < OLDEST));
    assert!(version_of("6.10.1").is_some_and(|version| version > OLDEST));
}

/// Returns the message for a system with these settings.
#[cfg(not(without_programs))]
fn message_of(release: &str, jit: Option<&str>) -> Option<String> {
    let settings = tempfile::tempdir().unwrap();
    for folder in ["kernel", "net/core"] {
        fs::create_dir_all(settings.path().join(folder)).unwrap();
    }
    fs::write(settings.path().join("kernel/osrelease"), release).unwrap();
    if let Some(jit) = jit {
        fs::write(settings.path().join("net/core/bpf_jit_enable"), jit).unwrap();
    }
    let checked = check_kernel(settings.path());
    checked.err().map(|reason| reason.to_string())
}

#[cfg(not(without_programs))]
#[test]
fn an_old_kernel_and_one_without_jit_are_reported() {
    assert_eq!(
        message_of("6.1.0-28-amd64\n", Some("1\n")).as_deref(),
        Some("Linux 6.1.0-28-amd64 is too old: expected 6.6 or later")
    );
    assert_eq!(
        message_of("6.12.9\n", Some("0\n")).as_deref(),
        Some("the kernel's JIT compiler is off: type `sysctl net.core.bpf_jit_enable=1`")
    );
    assert_eq!(message_of("6.6.0\n", Some("1\n")), None);
    // A kernel that always compiles has no such setting, and a container may hide it.
    assert_eq!(message_of("6.6.0\n", None), None);
}

#[test]
fn errors_while_loading_name_the_missing_part() {
    let because = |error: rustix::io::Errno| {
        let error = io::Error::from(error);
        let error = io::Error::new(error.kind(), error.to_string());
        Unavailable::because(error).to_string()
    };
    assert!(because(rustix::io::Errno::NOSYS).contains("CONFIG_BPF_SYSCALL"));
    assert!(because(rustix::io::Errno::PERM).contains("user namespace"));
    assert!(because(rustix::io::Errno::ACCESS).contains("refuses its programs"));
    assert!(because(rustix::io::Errno::INVAL).contains("refuses its programs"));
}

/// A root thread without capabilities may not load programs; a thread with the three that the error names may.
#[cfg(not(without_programs))]
#[test]
fn the_required_privileges_suffice() {
    let asked_for = CapabilitySet::BPF | CapabilitySet::NET_ADMIN | CapabilitySet::PERFMON;
    let has_all = capabilities(None).is_ok_and(|sets| sets.effective.contains(asked_for));
    let start_with = |effective| {
        let thread = std::thread::spawn(move || {
            let mut sets = capabilities(None).expect("a thread may ask for its own");
            sets.effective = effective;
            set_capabilities(None, sets).expect("a thread may give up what it has");
            Kernel::start().map(drop)
        });
        thread.join().expect("no panic")
    };
    let asked = Kernel::start().map(drop);
    if matches!(asked, Err(Unavailable::TooOld { .. } | Unavailable::NoJit)) {
        return;
    }
    let refused = start_with(CapabilitySet::empty());
    assert!(
        matches!(refused, Err(Unavailable::NotPermitted)),
        "{refused:?}"
    );
    if has_all && asked.is_ok() {
        for missing in [
            CapabilitySet::BPF,
            CapabilitySet::NET_ADMIN,
            CapabilitySet::PERFMON,
        ] {
            let refused = start_with(asked_for - missing);
            assert!(
                matches!(refused, Err(Unavailable::NotPermitted)),
                "{missing:?}: {refused:?}"
            );
        }
        start_with(asked_for).expect("these suffice");
    }
}

/// Set in a process that must report whether the kernel half is available to it.
#[cfg(not(without_programs))]
const ASKED: &str = "URTICA_TEST_IS_AVAILABLE";

/// Run only as a child of the test below.
#[cfg(not(without_programs))]
#[test]
fn report_availability() {
    if std::env::var_os(ASKED).is_some() {
        let told = Kernel::start().map_or_else(|reason| reason.to_string(), |_| "it is".into());
        println!("available: {told}");
    }
}

/// Root in a user namespace has all capabilities, but may not load programs.
#[cfg(not(without_programs))]
#[test]
fn the_root_of_a_container_gets_the_reason() {
    if Kernel::start().is_err() {
        return;
    }
    let test = std::env::current_exe().expect("the test has a file");
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user"])
        .arg(test)
        .args([
            "--exact",
            "kernel::tests::report_availability",
            "--nocapture",
        ])
        .env(ASKED, "1")
        .output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    match said {
        Ok(said) if said.contains("available:") => {
            assert!(said.contains("container or user namespace"), "{said}");
        }
        // This machine has no `unshare`, or no user namespaces.
        said => println!("skipped: needs user namespaces ({said:?})"),
    }
}
