//! Runs drawn from seeds: invariants hold, runs can be repeated, and bugs are found.

mod hostile;
mod minimise;
mod planted;
mod seeds;
mod siege;
