//! The rules of 1.3.5 sections 5 and 6, each in a test that reads like it.

mod actions;
mod expiry;
mod flow_mods;
mod groups;
mod matches;
mod meters;
mod model;
mod outputs;
mod refusals;
mod select_groups;
mod sequences;
mod steps;
mod support;
mod tables;
mod walks;
