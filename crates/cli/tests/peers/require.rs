//! A test's requirements on the machine, and the reaction if they are missing.

use std::env;
use std::io::{self, Write};
use std::path::Path;

/// Returns `true` if a test of the network can run: we are root and all `tools` are installed.
///
/// Prints one line if it cannot.
///
/// # Panics
/// If something is missing and `CI=true`, as a skipped test would hide a broken set-up.
pub fn root_and(tools: &[&str]) -> bool {
    if !rustix::process::geteuid().is_root() {
        return skip("root");
    }
    all(tools)
}

/// Returns `true` if all `tools` are installed: names on the `PATH`, or paths. Otherwise like [`root_and`].
pub fn all(tools: &[&str]) -> bool {
    tools
        .iter()
        .find(|tool| !is_installed(tool))
        .is_none_or(|missing| skip(missing))
}

/// Returns `true` if the kernel accepts the programs that answer in it. Otherwise like [`root_and`].
pub fn kernel_half() -> bool {
    match urtica_offload::Kernel::start() {
        Ok(_) => true,
        Err(reason) => skip(&format!("a kernel half, but {reason}")),
    }
}

/// Returns `true` if the kernel accepts the program that fills rings. Otherwise like [`root_and`].
pub fn rings() -> bool {
    match urtica_offload::ring::RingKernel::start() {
        Ok(_) => true,
        Err(reason) => skip(&format!("rings, but {reason}")),
    }
}

fn skip(missing: &str) -> bool {
    let skipped = format!("skipped: needs {missing} (tools/setup)");
    assert!(env::var("CI").as_deref() != Ok("true"), "{skipped}");
    // Not println!, which cargo hides for tests that pass.
    let _ = writeln!(io::stderr(), "{skipped}");
    false
}

fn is_installed(tool: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| Path::new(&folder).join(tool).is_file())
}
