//! What tests require, and their behaviour if it is missing.

use std::env;
use std::io::{self, Write};
use std::path::Path;

/// Returns `true` if a tool is installed; it is given as a name on the `PATH`, or as a path. Prints a line if it is missing.
///
/// # Panics
/// If it is missing and `CI=true`, since a skipped test would hide a broken set-up.
pub fn tool(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_there = Path::new(name).is_file()
        || !name.contains('/') && env::split_paths(&path).any(|folder| folder.join(name).is_file());
    if !is_there {
        let skipped = format!("skipped: needs {name} (tools/setup)");
        assert!(env::var("CI").as_deref() != Ok("true"), "{skipped}");
        // Not println!, whose output cargo hides if the test passes.
        let _ = writeln!(io::stderr(), "{skipped}");
    }
    is_there
}
