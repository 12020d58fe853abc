//! Shared by tests, the long comparison and fuzz targets: random pipelines and packets, and their comparison.

#![allow(dead_code, reason = "each of those who share this uses a part of it")]

pub mod changes;
pub mod choices;
pub mod differential;
pub mod frames;
pub mod rule_sets;
pub mod trial;
