//! Counting instructions of this program with callgrind. Unlike times, the counts of two runs are equal.

use std::process::Command;

/// Returns the number of instructions in a run of this program with these arguments; `None` if `valgrind` is not installed.
pub fn instructions(arguments: &[&str]) -> Option<u64> {
    let program = std::env::current_exe().expect("a program knows where it is");
    let counts = std::env::temp_dir().join(format!("urtica-instructions-{}", std::process::id()));
    let valgrind = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(program)
        .args(arguments)
        .output()
        .ok()?;
    assert!(valgrind.status.success(), "{valgrind:?}");
    let text = std::fs::read_to_string(&counts).expect("callgrind writes its counts");
    let _ = std::fs::remove_file(counts);
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    Some(total?.trim().parse().expect("a number"))
}
