//! The backends of compiled tables: machine code, or the interpreter; and the signatures of machine code.

use super::context::Context;
#[cfg(target_arch = "x86_64")]
use super::frame::Frame;
#[cfg(target_arch = "x86_64")]
use super::table::{Body, Header};

/// The execution of the compiled form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// Machine code, made at run time. For x86-64; elsewhere it means the interpreter.
    MachineCode,
    /// An interpreter of these templates, for every processor.
    Interpreter,
}

impl Backend {
    /// Returns the backend on this processor.
    pub(in crate::fast) fn here(self) -> Self {
        match cfg!(target_arch = "x86_64") {
            true => self,
            false => Self::Interpreter,
        }
    }
}

impl Default for Backend {
    /// The fastest for this processor.
    fn default() -> Self {
        Self::MachineCode.here()
    }
}

/// A table's code. The frame's `resume` is 0 when it is called.
#[cfg(target_arch = "x86_64")]
pub(crate) type TableCode =
    unsafe extern "sysv64" fn(*mut Frame, *const Context, *const Body, *const Header);

/// The function that continues with a paused frame: the address in its `resume`, which is 0 again when it is called.
#[cfg(target_arch = "x86_64")]
pub(crate) type ResumeCode = unsafe extern "sysv64" fn(*mut Frame, *const Context);
