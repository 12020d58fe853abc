//! The paths of Ryu's `ofctl_rest` and `rest_topology`, answered as Ryu answered them.
//!
//! What Ryu took and printed was recorded by os-ken, which has Ryu's libraries: `recorded.rs` compares every body and
//! every answer with that.

mod action13;
mod field;
mod match13;
mod of10;
pub(crate) mod ofctl;
mod payload;
mod read;
#[cfg(test)]
mod recorded;
pub(crate) mod topology;
mod write;
