//! The kernel's half, if this machine accepts it.

use urtica_offload::Unavailable;
use urtica_offload::ring::RingKernel;

/// Loads the program; if that fails, prints a line, or fails with CI=true.
pub fn kernel_of_rings() -> Option<RingKernel> {
    match RingKernel::start() {
        Ok(kernel) => Some(kernel),
        Err(reason) => {
            skip(&reason);
            None
        }
    }
}

/// Prints the reason why rings cannot be tested here.
pub fn skip(reason: &Unavailable) {
    let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!is_ci, "rings cannot be tested here: {reason}");
    println!("skipped: rings cannot be tested here: {reason}");
}
