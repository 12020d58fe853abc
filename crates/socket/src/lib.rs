//! Sockets of the OpenFlow channel: what stands behind an [`Address`](urtica_wire::Address).
//!
//! The crate stands apart because controllers listen and switches connect, and both do the other as well; and because
//! `urtica_wire`, which knows the addresses, opens no socket.

mod listener;
mod look_up;

pub use listener::{ListenError, Listener};
pub use look_up::look_up;
