//! The kernel's half, where this machine takes it.

use urtica_offload::Unavailable;
use urtica_offload::ring::RingKernel;

/// The program in the kernel; without, a line that says so, or a failure with CI=true.
pub fn kernel_of_rings() -> Option<RingKernel> {
    match RingKernel::start() {
        Ok(kernel) => Some(kernel),
        Err(reason) => {
            skip(&reason);
            None
        }
    }
}

/// Says why rings cannot be tested here.
pub fn skip(reason: &Unavailable) {
    let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!is_ci, "rings cannot be tested here: {reason}");
    println!("skipped: rings cannot be tested here: {reason}");
}
