//! Requirements of tests, and the behaviour without them.

use std::env;
use std::io::{self, Write};
use std::path::Path;

/// Returns `true` if a tool is installed: a name on the `PATH`, or a path. Prints one line if it is missing.
///
/// # Panics
/// If it is missing and `CI=true`, as a skipped test would hide a broken set-up.
pub fn tool(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_there = Path::new(name).is_file()
        || !name.contains('/') && env::split_paths(&path).any(|folder| folder.join(name).is_file());
    if !is_there {
        let skipped = format!("skipped: needs {name} (tools/setup)");
        assert!(env::var("CI").as_deref() != Ok("true"), "{skipped}");
        // Not println!, which cargo hides for tests that pass.
        let _ = writeln!(io::stderr(), "{skipped}");
    }
    is_there
}
