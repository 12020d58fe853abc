//! Names of machine code for `perf`.
//!
//! **What.** `/tmp/perf-PID.map`, which `perf report` reads: a line for each piece of code, with its address, length and
//! name, for all code generated after [`write_perf_map`].
//!
//! **Limits.** Freed code stays in the file. If other code reuses its address, `perf` cannot distinguish them.

use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io;
#[cfg(target_arch = "x86_64")]
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// `O_NOFOLLOW`: a symbolic link that another user created is not followed.
const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

static MAP: OnceLock<Mutex<File>> = OnceLock::new();

/// Makes the process list its machine code in `/tmp/perf-PID.map`, so that `perf` can name it. Must be called before
/// anything is compiled.
///
/// # Errors
/// If the file cannot be created; the error's message contains its name.
pub fn write_perf_map() -> io::Result<()> {
    let path = format!("/tmp/perf-{}.map", std::process::id());
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(NO_FOLLOW)
        .open(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot write {path}: {error}")))?;
    // A process has only one such file.
    let _ = MAP.set(Mutex::new(file));
    Ok(())
}

/// Adds a piece of code to the file, if there is one.
#[cfg(target_arch = "x86_64")]
pub(super) fn note(code: &[u8], name: impl FnOnce() -> String) {
    if let Some(map) = MAP.get() {
        let mut map = map.lock();
        // A full disk must not stop forwarding: the code just stays without a name.
        let _ = map.write_all(line(code.as_ptr().addr(), code.len(), &name()).as_bytes());
    }
}

#[cfg(target_arch = "x86_64")]
fn line(start: usize, len: usize, name: &str) -> String {
    format!("{start:x} {len:x} urtica {name}\n")
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_format_of_perf() {
        let line = line(0x7f00_1000, 26, "tuple space");
        assert_eq!(line, "7f001000 1a urtica tuple space\n");
    }
}
