//! Runs drawn from seeds: they hold, they repeat, and they find bugs.

mod hostile;
mod minimise;
mod planted;
mod seeds;
mod siege;
