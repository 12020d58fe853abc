//! A row of the registry.

use super::about::About;
use super::setup::Setup;

/// A program that `urtica run` accepts by name, with options of type `O`. The program's file defines it.
pub(crate) struct Row<O = ()> {
    pub about: About,
    /// Adds the program to a set-up, or returns the reason why it cannot run.
    pub add: fn(&mut Setup, &O) -> Result<(), String>,
}

impl<O> Row<O> {
    /// Returns the program's name for `urtica run`.
    pub const fn name(&self) -> &'static str {
        self.about.name
    }
}
