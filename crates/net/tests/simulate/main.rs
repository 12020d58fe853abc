//! Runs drawn from seeds: they hold, they repeat, and they find bugs.

mod minimise;
mod planted;
mod seeds;
