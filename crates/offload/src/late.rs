//! Programs for the kernel that are loaded while the controller already serves switches, since the kernel's checks need seconds
//! on a busy machine.

use crate::application::Application;
use crate::kernel::{Kernel, Unavailable};
use std::sync::{Arc, OnceLock};

/// A kernel half that may become available later. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Late(Arc<OnceLock<Option<Kernel>>>);

impl Late {
    /// Wraps an available kernel half.
    pub fn of(kernel: Kernel) -> Self {
        Self(Arc::new(OnceLock::from(Some(kernel))))
    }

    /// Returns the kernel half, if it is available.
    pub fn get(&self) -> Option<&Kernel> {
        self.0.get()?.as_ref()
    }

    /// Returns whether the kernel half is available, or may be later.
    pub fn may_be(&self) -> bool {
        self.0.get().is_none_or(Option::is_some)
    }

    /// Loads an application's programs, for at most this number of switches. Only the first call has an effect.
    pub fn load(&self, application: Application, max_switches: u32) -> Result<(), Unavailable> {
        let loaded = Kernel::load(application).map(|kernel| kernel.max_switches(max_switches));
        let _ = self.0.set(loaded.as_ref().ok().cloned());
        loaded.map(drop)
    }
}
