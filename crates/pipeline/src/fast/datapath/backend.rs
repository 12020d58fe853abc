//! The backends of compiled tables, machine code and interpreter, and the signatures of machine code.

use super::context::Context;
#[cfg(target_arch = "x86_64")]
use super::frame::Frame;
#[cfg(target_arch = "x86_64")]
use super::table::{Body, Header};

/// How the compiled form is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// Machine code, generated at run time, for x86-64. On other processors, this means the interpreter.
    MachineCode,
    /// An interpreter, for all processors.
    Interpreter,
}

impl Backend {
    /// Returns the backend that this processor supports.
    pub(in crate::fast) fn here(self) -> Self {
        match cfg!(target_arch = "x86_64") {
            true => self,
            false => Self::Interpreter,
        }
    }
}

impl Default for Backend {
    /// Returns the fastest backend for this processor.
    fn default() -> Self {
        Self::MachineCode.here()
    }
}

/// The code of a table. It is called with a frame whose `resume` is 0.
#[cfg(target_arch = "x86_64")]
pub(crate) type TableCode =
    unsafe extern "sysv64" fn(*mut Frame, *const Context, *const Body, *const Header);

/// The continuation for a paused frame, whose address was in `resume`. `resume` is 0 again when it is called.
#[cfg(target_arch = "x86_64")]
pub(crate) type ResumeCode = unsafe extern "sysv64" fn(*mut Frame, *const Context);
