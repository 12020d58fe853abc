//! The paths of Ryu's REST applications, with Ryu's responses.
//!
//! The expected input and output of `ofctl_rest` was recorded with os-ken, which contains Ryu's libraries, and `recorded.rs`
//! compares every body and every response with it. The responses of the other applications are compared with Ryu's
//! documentation in `tests/http`.

mod action13;
pub(crate) mod conf_switch;
mod field;
pub(crate) mod firewall;
mod match13;
mod of10;
pub(crate) mod ofctl;
mod payload;
pub(crate) mod qos;
mod read;
#[cfg(test)]
mod recorded;
pub(crate) mod router;
mod rule;
pub(crate) mod topology;
mod typed;
mod write;
