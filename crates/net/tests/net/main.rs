//! Whole networks: switches, hosts, cables, and a controller in the same process.

mod cables;
mod control;
mod flows;
mod interrupt;
mod moves;
mod reach;
mod refusals;
mod statistics;
mod support;
mod trouble;
