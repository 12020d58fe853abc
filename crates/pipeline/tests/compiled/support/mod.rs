//! Random pipelines and packets, and their comparison, shared by tests, the long comparison and fuzz targets.

#![allow(dead_code, reason = "each of those who share this uses a part of it")]

pub mod changes;
pub mod choices;
pub mod differential;
pub mod frames;
pub mod rule_sets;
pub mod trial;
