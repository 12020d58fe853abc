//! A row of the registry.

use super::about::About;
use super::setup::Setup;

/// A program that `urtica run` takes by name, with options of type `O`. It stands in the program's own file.
pub(crate) struct Row<O = ()> {
    pub about: About,
    /// Joins the controller that is being set up, or returns the reason why it cannot.
    pub add: fn(&mut Setup, &O) -> Result<(), String>,
}

impl<O> Row<O> {
    /// The name by which `urtica run` takes it.
    pub const fn name(&self) -> &'static str {
        self.about.name
    }
}
