//! Actions of an application when the owner of its tables changes.

use std::sync::{Arc, OnceLock};

/// The actions of an application when the owner of its tables changes.
pub(crate) trait Turns: Send + Sync {
    /// Called before the program hands the connection over.
    fn before_kernel(&self) {}

    /// Called after the program has reclaimed the connection.
    fn after_kernel(&self) {}
}

/// No actions, for tables that the kernel and the program use in the same way.
impl Turns for () {}

/// The actions for a session of an earlier program, which are set when its handler is created.
#[derive(Clone, Default)]
pub(crate) struct LateTurns(Arc<OnceLock<Box<dyn Turns>>>);

impl LateTurns {
    /// Sets the actions, once.
    pub fn set(&self, turns: impl Turns + 'static) {
        let _ = self.0.set(Box::new(turns));
    }
}

impl Turns for LateTurns {
    fn before_kernel(&self) {
        if let Some(turns) = self.0.get() {
            turns.before_kernel();
        }
    }

    fn after_kernel(&self) {
        if let Some(turns) = self.0.get() {
            turns.after_kernel();
        }
    }
}
