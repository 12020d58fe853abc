//! Sockets of the OpenFlow channel: addresses, and what stands behind them.
//!
//! The crate stands apart because controllers listen and switches connect, and both do the other as well.

#![forbid(unsafe_code)]

mod address;
mod listener;
mod look_up;

pub use address::{Address, AddressError, DEFAULT_PORT};
pub use listener::{ListenError, Listener};
pub use look_up::look_up;
