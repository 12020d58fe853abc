//! Runs drawn from seeds: that they hold, that they repeat, and that what is wrong is found.

mod minimise;
mod planted;
mod seeds;
