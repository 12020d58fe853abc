//! The programs, where this machine takes them.

use urtica_offload::Kernel;

/// The programs in the kernel; without, a line that says so, or a failure with CI=true.
pub fn kernel() -> Option<Kernel> {
    match Kernel::start() {
        Ok(kernel) => Some(kernel),
        Err(reason) if std::env::var("CI").is_ok_and(|ci| ci == "true") => {
            panic!("the kernel half cannot be tested here: {reason}")
        }
        Err(reason) => {
            println!("skipped: the kernel half cannot be tested here: {reason}");
            None
        }
    }
}
