//! Whole networks: switches, hosts, links, and a controller in the same process.

mod control;
mod flows;
mod interrupt;
mod links;
mod moves;
mod programs;
mod reach;
mod refusals;
mod roles;
mod statistics;
mod support;
mod trouble;
